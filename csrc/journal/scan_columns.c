/*
 * scan_columns.c - see scan_columns.h.
 */
#include "journal/scan_columns.h"

#include "base/assert.h"

#include <string.h>

enum { FROM_ROW, FROM_DESCRIPTOR, FROM_EXT }; /* the struct that a column's value lies in */

/* The columns, in the order that callers see. ROW: of every row; PUT: of rows of messages; MD and
 * EXT: of the descriptor and of its extension. Size and offset come from the struct. */

#define FIELD(message, name, kind, from, type, member)                                     \
    {#name, MQE_SCAN_##kind, sizeof((type *)0)->member, message, from, offsetof(type, member)}
#define ROW(name, kind, member) FIELD(0, name, kind, FROM_ROW, struct mqx_scan_row, member)
#define PUT(name, kind, member) FIELD(1, name, kind, FROM_ROW, struct mqx_scan_row, member)
#define MD(name, kind, member) FIELD(1, name, kind, FROM_DESCRIPTOR, struct ps_descriptor, member)
#define EXT(name, kind, member) FIELD(1, name, kind, FROM_EXT, struct ps_descriptor_ext, member)

const struct mqe_journal_scan_field mqe_journal_scan_fields[] = {
    ROW(event, UINT, event),
    ROW(commits, BOOL, commits),
    ROW(lsn, UINT, lsn),
    ROW(time, TIME, time_us),
    ROW(segment, UINT, segment),
    ROW(unit_id, UINT, unit_id),
    ROW(object, UINT, object),
    ROW(object_name, TEXT, name),
    ROW(sequence, UINT, number),
    ROW(first_lsn, UINT, first_lsn),
    PUT(body_length, UINT, body_length),
    PUT(body_state, UINT, body_state),
    PUT(put_time, TIME, put_time_us),
    PUT(expiry, INT, expiry),
    PUT(expiry_time, TIME, expiry_us),
    MD(msg_id, ID, msg_id),
    MD(correl_id, ID, correl_id),
    MD(priority, INT, priority),
    MD(placement, UINT, placement),
    MD(persistent, BOOL, persistence),
    MD(report, INT, report),
    MD(msg_type, INT, msg_type),
    MD(feedback, INT, feedback),
    MD(encoding, INT, encoding),
    MD(ccsid, INT, ccsid),
    MD(format, TEXT, format),
    MD(put_appl_type, INT, put_appl_type),
    MD(put_appl_name, TEXT, put_appl_name),
    MD(user_identifier, TEXT, user_identifier),
    MD(appl_origin_data, TEXT, appl_origin_data),
    MD(accounting_token, ID, accounting_token),
    MD(backout_count, UINT, backout_count),
    EXT(reply_to_q, TEXT, reply_to_q),
    EXT(reply_to_qmgr, TEXT, reply_to_qmgr),
    EXT(appl_identity_data, TEXT, appl_identity_data),
    EXT(group_id, ID, group_id),
    EXT(msg_seq_number, INT, msg_seq_number),
    EXT(offset, INT, offset),
    EXT(msg_flags, INT, msg_flags),
    EXT(original_length, INT, original_length),
};
const uint32_t mqe_journal_scan_field_count = MQX_ARRAY_COUNT(mqe_journal_scan_fields);

static const struct ps_descriptor no_descriptor;
static const struct ps_descriptor_ext no_ext;
static const struct ps_descriptor_ext initial_ext = {.msg_seq_number = 1, .original_length = -1};

/* Copies a text up to its padding of blanks and NULs; the rest becomes NUL. */
static void copy_text(unsigned char *to, const unsigned char *from, uint32_t size)
{
    static const uint64_t blanks = 0x2020202020202020u;
    uint32_t used = size;
    uint64_t word = 0;
    MQX_ASSERT(size > 0);
    while (used >= sizeof word) { /* most texts are short, or nothing */
        memcpy(&word, from + used - sizeof word, sizeof word);
        if (word != 0 && word != blanks) {
            break;
        }
        used -= (uint32_t)sizeof word;
    }
    while (used > 0 && (from[used - 1] == ' ' || from[used - 1] == 0)) {
        used -= 1;
    }
    MQX_ASSERT(used <= size);
    memcpy(to, from, used);
    memset(to + used, 0, size - used);
}

/* One value into its column: row `index` of it. */
static void copy_field(const struct mqe_journal_scan_field *field, void *column, uint32_t index,
                       const void *source)
{
    const unsigned char *from = (const unsigned char *)source + field->offset;
    unsigned char *to = (unsigned char *)column + (size_t)index * field->size;
    MQX_ASSERT(column != NULL);
    MQX_ASSERT(source != NULL);
    if (field->kind == MQE_SCAN_TEXT) {
        copy_text(to, from, field->size);
        return;
    }
    switch (field->size) { /* fixed sizes are single moves */
    case 1:
        *to = *from;
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    case 24:
        memcpy(to, from, 24);
        break;
    default:
        memcpy(to, from, field->size);
    }
}

void mqx_scan_give_row(const struct mqe_journal_scan_rows *rows, const struct mqx_scan_row *row,
                       const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext)
{
    const void *const sources[] = {
        [FROM_ROW] = row,
        [FROM_DESCRIPTOR] = descriptor != NULL ? descriptor : &no_descriptor,
        [FROM_EXT] = ext != NULL ? ext : descriptor != NULL ? &initial_ext : &no_ext,
    };
    MQX_ASSERT(rows->count < rows->capacity);
    MQX_ASSERT(ext == NULL || descriptor != NULL);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(mqe_journal_scan_fields); i++) {
        if (rows->columns[i] != NULL) {
            const struct mqe_journal_scan_field *field = &mqe_journal_scan_fields[i];
            copy_field(field, rows->columns[i], rows->count, sources[field->from]);
        }
    }
}
