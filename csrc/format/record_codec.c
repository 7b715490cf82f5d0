/*
 * record_codec.c - see record_codec.h; format.h has the layout.
 *
 * A record is built front to back: begin() leaves room for the header, add() appends a section and
 * pads it, finish() writes length and CRC. It is taken apart in the same order, with one table that
 * says for each section tag where its pointer goes and how long it must be, and one that says for
 * each record type which sections it needs.
 */
#include "format/record_codec.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SCRATCH_SIZE = MQX_RING_RECORD_MAX + 4096 };

/* ---- the thread's buffer ---- */

MQX_THREAD_LOCAL unsigned char *scratch;
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static bool scratch_key_made;

static void make_scratch_key(void)
{
    scratch_key_made = pthread_key_create(&scratch_key, free) == 0;
}

static MQX_COLD unsigned char *make_scratch(void)
{
    MQX_ASSERT(scratch == NULL);
    (void)pthread_once(&scratch_once, make_scratch_key);
    unsigned char *memory = scratch_key_made ? aligned_alloc(64, SCRATCH_SIZE) : NULL;
    if (memory != NULL && pthread_setspecific(scratch_key, memory) != 0) {
        free(memory);
        memory = NULL;
    }
    scratch = memory;
    return memory;
}

unsigned char *mqx_scratch(size_t size)
{
    MQX_ASSERT(size <= SCRATCH_SIZE);
    return MQX_LIKELY(scratch != NULL) ? scratch : make_scratch();
}

/* ---- building ---- */

static uint32_t begin(unsigned char *to, const struct mqx_record_head *head)
{
    MQX_ASSERT((head->type & PS_MUST_UNDERSTAND) == 0);
    MQX_ASSERT((head->flags & ~PS_FLAG_COMMITS) == 0);
    const uint16_t must = head->type == PS_REC_MARK ? 0 : PS_MUST_UNDERSTAND;
    const struct psj_record record = {
        .type = (uint16_t)(head->type | must),
        .version = 1,
        .flags = head->flags,
        .unit_id = head->unit_id,
        .object = head->object,
        .object_gen = head->object_gen,
        .identity = head->type == PS_REC_CLEAR ? 0 : head->number, /* it names no message */
        .arrival = head->number,
    };
    MQX_ASSERT((uintptr_t)to % PS_ALIGN == 0);
    memcpy(to, &record, sizeof record);
    return sizeof record;
}

static uint32_t add(unsigned char *to, uint32_t at, uint16_t tag, const void *from, uint32_t length)
{
    MQX_ASSERT(at % PS_ALIGN == 0);
    MQX_ASSERT(from != NULL || length == 0);
    MQX_ASSERT(at + length <= SCRATCH_SIZE);
    const struct ps_section section = {.tag = tag, .length = length};
    const uint32_t padded = (uint32_t)mqx_round_up(length, PS_ALIGN);
    memcpy(to + at, &section, sizeof section);
    at += (uint32_t)sizeof section;
    if (length > 0) {
        memset(to + at + padded - PS_ALIGN, 0, PS_ALIGN); /* the padding lies in them */
        memcpy(to + at, from, length);
    }
    return at + padded;
}

static uint32_t record_crc(const void *record, uint32_t length)
{
    MQX_ASSERT(length >= sizeof(struct psj_record));
    const unsigned char *bytes = record;
    return mqx_crc32c(mqx_crc32c(0, bytes, 4), bytes + 8, length - 8);
}

static uint32_t finish(unsigned char *to, uint32_t length)
{
    struct psj_record *record = (struct psj_record *)(void *)to;
    MQX_ASSERT(length % PS_ALIGN == 0);
    MQX_ASSERT(length >= sizeof *record);
    MQX_ASSERT(length <= SCRATCH_SIZE);
    record->length = length;
    record->crc = record_crc(to, length);
    return length;
}

uint32_t mqx_encode_plain(unsigned char *to, const struct mqx_record_head *head)
{
    MQX_ASSERT(to != NULL);
    return finish(to, begin(to, head));
}

uint32_t mqx_encode_put(unsigned char *to, const struct mqx_record_head *head,
                        const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                        const struct ps_chunked *chunked, const void *body, uint32_t body_length)
{
    return mqx_encode_taken(to, head, descriptor, ext, NULL, chunked, body, body_length);
}

uint32_t mqx_encode_taken(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_descriptor *descriptor,
                          const struct ps_descriptor_ext *ext, const struct ps_taken *taken,
                          const struct ps_chunked *chunked, const void *body, uint32_t body_length)
{
    MQX_ASSERT((descriptor->has_ext != 0) == (ext != NULL));
    MQX_ASSERT(chunked == NULL || body_length == 0);
    uint32_t at = begin(to, head);
    at = add(to, at, PS_SEC_DESCRIPTOR, descriptor, sizeof *descriptor);
    if (ext != NULL) {
        at = add(to, at, PS_SEC_DESCRIPTOR_EXT, ext, sizeof *ext);
    }
    if (taken != NULL) {
        at = add(to, at, PS_SEC_TAKEN, taken, sizeof *taken);
    }
    if (chunked != NULL) {
        at = add(to, at, PS_SEC_CHUNKED, chunked, sizeof *chunked);
    } else if (body_length > 0) {
        at = add(to, at, PS_SEC_BODY, body, body_length);
    }
    return finish(to, at);
}

uint32_t mqx_encode_chunk(unsigned char *to, const struct mqx_record_head *head,
                          const struct ps_chunk *chunk, const void *piece, uint32_t piece_length)
{
    MQX_ASSERT(piece_length > 0);
    MQX_ASSERT(piece_length <= PS_CHUNK_BYTES);
    uint32_t at = add(to, begin(to, head), PS_SEC_CHUNK, chunk, sizeof *chunk);
    return finish(to, add(to, at, PS_SEC_BODY, piece, piece_length));
}

uint32_t mqx_encode_commit(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_commit *commit)
{
    MQX_ASSERT(head->type == PS_REC_COMMIT);
    return finish(to, add(to, begin(to, head), PS_SEC_COMMIT, commit, sizeof *commit));
}

uint32_t mqx_encode_counts(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_count *counts, uint32_t count_count)
{
    MQX_ASSERT(counts != NULL || count_count == 0);
    uint32_t at = begin(to, head);
    if (count_count > 0) {
        at = add(to, at, PS_SEC_COUNTS, counts, count_count * (uint32_t)sizeof *counts);
    }
    return finish(to, at);
}

uint32_t mqx_encode_object(unsigned char *to, const struct mqx_record_head *head,
                           const struct ps_object_name *name, const void *attrs,
                           uint32_t attrs_length)
{
    MQX_ASSERT(attrs != NULL || attrs_length == 0);
    uint32_t at = add(to, begin(to, head), PS_SEC_OBJECT_NAME, name, sizeof *name);
    if (attrs_length > 0) {
        at = add(to, at, PS_SEC_OBJECT_ATTRS, attrs, attrs_length);
    }
    return finish(to, at);
}

uint32_t mqx_encode_prepare(unsigned char *to, const struct mqx_record_head *head,
                            const struct ps_xid *xid, const struct ps_prepared *prepared,
                            const struct ps_commit *commit)
{
    MQX_ASSERT(xid != NULL);
    MQX_ASSERT(prepared != NULL);
    uint32_t at = add(to, begin(to, head), PS_SEC_XID, xid, sizeof *xid);
    at = add(to, at, PS_SEC_PREPARED, prepared, sizeof *prepared);
    return finish(to, add(to, at, PS_SEC_COMMIT, commit, sizeof *commit));
}

uint32_t mqx_encode_units(unsigned char *to, const struct mqx_record_head *head,
                          const uint64_t *units, uint32_t unit_count)
{
    MQX_ASSERT(head->type == PS_REC_COMMIT_PREPARED || head->type == PS_REC_BACKOUT_PREPARED);
    MQX_ASSERT(unit_count > 0);
    return finish(to, add(to, begin(to, head), PS_SEC_UNITS, units,
                          unit_count * (uint32_t)sizeof *units));
}

uint32_t mqx_encode_image_consumed(unsigned char *to, const struct ps_image *image)
{
    MQX_ASSERT(image != NULL);
    const struct mqx_record_head head = {.type = PS_REC_IMAGE_CONSUMED};
    return finish(to, add(to, begin(to, &head), PS_SEC_IMAGE, image, sizeof *image));
}

uint32_t mqx_put_record_length(bool ext, uint32_t body_length)
{
    MQX_ASSERT(body_length <= PS_INLINE_BODY_MAX);
    const uint32_t section = sizeof(struct ps_section);
    uint32_t length = sizeof(struct psj_record) + section + sizeof(struct ps_descriptor);
    length += ext ? section + (uint32_t)sizeof(struct ps_descriptor_ext) : 0;
    return length + (body_length > 0 ? section + (uint32_t)mqx_round_up(body_length, PS_ALIGN) : 0);
}

uint32_t mqx_running_crc(uint32_t running, const struct psj_record *record)
{
    return mqx_running_crcs(running, &record->crc, 1);
}

uint32_t mqx_running_crcs(uint32_t running, const uint32_t *crcs, uint32_t count)
{
    MQX_ASSERT(crcs != NULL || count == 0);
    return mqx_crc32c(running, crcs, count * sizeof crcs[0]);
}

/* ---- taking apart ---- */

struct section_rule {
    uint32_t field;   /* offset of the pointer in struct mqx_decoded */
    uint32_t size;    /* exact length; 0: any, see `unit` */
    uint32_t counter; /* offset of the length or count, when the size is not fixed */
    uint32_t unit;    /* length is a multiple of this, and counted in it */
};
#define FIXED(name) \
    {offsetof(struct mqx_decoded, name), sizeof *((struct mqx_decoded *)0)->name, 0, 0}
#define COUNTED(name, counter, unit) \
    {offsetof(struct mqx_decoded, name), 0, offsetof(struct mqx_decoded, counter), unit}
static const struct section_rule section_rules[] = {
    [PS_SEC_DESCRIPTOR] = FIXED(descriptor),
    [PS_SEC_DESCRIPTOR_EXT] = FIXED(ext),
    [PS_SEC_BODY] = COUNTED(body, body_length, 1),
    [PS_SEC_CHUNKED] = FIXED(chunked),
    [PS_SEC_CHUNK] = FIXED(chunk),
    [PS_SEC_COMMIT] = FIXED(commit),
    [PS_SEC_COUNTS] = COUNTED(counts, count_count, sizeof(struct ps_count)),
    [PS_SEC_OBJECT_NAME] = FIXED(name),
    [PS_SEC_OBJECT_ATTRS] = COUNTED(attrs, attrs_length, 1),
    [PS_SEC_IMAGE] = FIXED(image),
    [PS_SEC_XID] = FIXED(xid),
    [PS_SEC_UNITS] = COUNTED(units, unit_count, sizeof(uint64_t)),
    [PS_SEC_PREPARED] = FIXED(prepared),
    [PS_SEC_TAKEN] = FIXED(taken),
};

/* Sections that a record type needs, one bit a tag. Types that are not here are unknown. */
#define BIT(tag) (1u << (tag))
struct type_rule {
    uint32_t needs;
    bool known;
};
static const struct type_rule type_rules[] = {
    [PS_REC_PUT] = {BIT(PS_SEC_DESCRIPTOR), true},
    [PS_REC_GET] = {0, true},
    [PS_REC_COMMIT] = {BIT(PS_SEC_COMMIT), true},
    [PS_REC_BACKOUT] = {0, true},
    [PS_REC_CHUNK] = {BIT(PS_SEC_CHUNK) | BIT(PS_SEC_BODY), true},
    [PS_REC_EXPIRE] = {0, true},
    [PS_REC_IMAGE_CONSUMED] = {BIT(PS_SEC_IMAGE), true},
    [PS_REC_OBJECT] = {BIT(PS_SEC_OBJECT_NAME), true},
    [PS_REC_OBJECT_DELETE] = {0, true},
    [PS_REC_CLEAR] = {0, true},
    [PS_REC_PREPARE] = {BIT(PS_SEC_XID) | BIT(PS_SEC_PREPARED) | BIT(PS_SEC_COMMIT), true},
    [PS_REC_COMMIT_PREPARED] = {BIT(PS_SEC_UNITS), true},
    [PS_REC_BACKOUT_PREPARED] = {BIT(PS_SEC_UNITS), true},
    [PS_REC_TAKEN] = {BIT(PS_SEC_DESCRIPTOR) | BIT(PS_SEC_TAKEN), true},
};

int mqx_record_check(const void *at, size_t size)
{
    const struct psj_record *record = at;
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    if (size < sizeof *record || record->length < sizeof *record ||
        record->length % PS_ALIGN != 0 || record->length > MQX_RING_RECORD_MAX ||
        record->length > size) {
        return MQX_TORN;
    }
    return record_crc(at, record->length) == record->crc ? MQX_OK : MQX_TORN;
}

static MQX_COLD int unreadable(const struct psj_record *record, const char *why, uint32_t value)
{
    MQX_ASSERT(why != NULL);
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal record of type %u, version %u cannot be read by this version: %s %u",
                    mqx_record_type(record), record->version, why, value);
}

static bool is_zero(const unsigned char *from, const unsigned char *to)
{
    MQX_ASSERT(from <= to);
    for (; from < to; from++) {
        if (*from != 0) {
            return false;
        }
    }
    return true;
}

static bool is_known_section(uint16_t tag)
{
    return tag < MQX_ARRAY_COUNT(section_rules) &&
           (section_rules[tag].size != 0 || section_rules[tag].unit != 0);
}

/* Sections of tags that this version does not know are skipped. */
static int take_section(const struct ps_section *section, struct mqx_decoded *out)
{
    MQX_ASSERT(is_known_section(section->tag));
    const struct section_rule *rule = &section_rules[section->tag];
    unsigned char *const fields = (unsigned char *)out;
    const void **pointer = (const void **)(void *)(fields + rule->field);
    const uint32_t unit = rule->unit != 0 ? rule->unit : 1;
    const bool size_fits =
        rule->size != 0 ? section->length == rule->size : section->length % unit == 0;
    if (*pointer != NULL || !size_fits || out->body != NULL) { /* the body is the last one */
        return unreadable(out->head, "form of section", section->tag);
    }
    *pointer = section + 1;
    if (rule->size == 0) {
        *(uint32_t *)(void *)(fields + rule->counter) = section->length / unit;
    }
    return MQX_OK;
}

static int take_sections(const struct type_rule *rule, struct mqx_decoded *out)
{
    MQX_ASSERT(out->head->length % PS_ALIGN == 0);
    const unsigned char *at = (const unsigned char *)(out->head + 1);
    const unsigned char *end = (const unsigned char *)out->head + out->head->length;
    uint32_t seen = 0;

    while (at < end) { /* both are aligned, so a section header fits */
        const struct ps_section *section = (const void *)at;
        const uint64_t padded = mqx_round_up(section->length, PS_ALIGN);
        if (section->zero != 0 || padded > (uint64_t)(end - at) - sizeof *section) {
            return unreadable(out->head, "length of section", section->tag);
        }
        if (is_known_section(section->tag)) {
            int status = take_section(section, out);
            if (status != MQX_OK) {
                return status;
            }
            seen |= BIT(section->tag);
        }
        at += sizeof *section;
        if (!is_zero(at + section->length, at + padded)) {
            return unreadable(out->head, "padding of section", section->tag);
        }
        at += padded;
    }
    return (seen & rule->needs) == rule->needs ? MQX_OK
                                               : unreadable(out->head, "sections found", seen);
}

/* Agreement between the sections of a PUT or CHUNK. */
static int check_message(const struct mqx_decoded *out)
{
    MQX_ASSERT(out->head != NULL);
    const struct ps_descriptor *d = out->descriptor;
    if (d != NULL && (d->zero != 0 || d->placement > MQX_MAX_PRIORITY ||
                      d->persistence > MQPER_PERSISTENT || d->has_ext > 1 ||
                      (d->has_ext == 1) != (out->ext != NULL))) {
        return unreadable(out->head, "descriptor of placement", d->placement);
    }
    if (out->ext != NULL && !is_zero((const unsigned char *)out->ext->zero,
                                     (const unsigned char *)(out->ext + 1))) {
        return unreadable(out->head, "reserved bytes of section", PS_SEC_DESCRIPTOR_EXT);
    }
    const struct ps_chunked *c = out->chunked;
    if (c != NULL && (out->body != NULL || c->zero != 0 || c->total > MQX_MAX_BODY ||
                      c->count == 0 || c->first_lsn > c->last_lsn)) {
        return unreadable(out->head, "chunks", c->count);
    }
    const struct ps_chunk *piece = out->chunk;
    if (piece != NULL &&
        (piece->zero != 0 || piece->total > MQX_MAX_BODY || piece->offset > piece->total ||
         out->body_length > piece->total - piece->offset)) {
        return unreadable(out->head, "chunk", piece->number);
    }
    return MQX_OK;
}

bool mqx_xid_is_sound(const struct ps_xid *xid)
{
    MQX_ASSERT(xid != NULL);
    return xid->format_id != -1 && xid->gtrid_length >= 1 &&
           xid->gtrid_length <= sizeof xid->gtrid &&
           xid->bqual_length <= sizeof xid->bqual &&
           is_zero(xid->gtrid + xid->gtrid_length, xid->gtrid + sizeof xid->gtrid) &&
           is_zero(xid->bqual + xid->bqual_length, xid->bqual + sizeof xid->bqual);
}

/* Values in the sections of PREPARE and of the records about prepared units. */
static int check_prepared(const struct mqx_decoded *out)
{
    MQX_ASSERT(out->head != NULL);
    if (out->xid != NULL && !mqx_xid_is_sound(out->xid)) {
        return unreadable(out->head, "lengths of section", PS_SEC_XID);
    }
    if (out->taken != NULL && out->taken->zero != 0) {
        return unreadable(out->head, "reserved bytes of section", PS_SEC_TAKEN);
    }
    const uint16_t type = mqx_record_type(out->head);
    if ((type == PS_REC_PREPARE || type == PS_REC_TAKEN) && out->head->unit_id == 0) {
        return unreadable(out->head, "unit of type", type);
    }
    if ((type == PS_REC_COMMIT_PREPARED || type == PS_REC_BACKOUT_PREPARED) &&
        out->unit_count == 0) {
        return unreadable(out->head, "units of type", type);
    }
    return MQX_OK;
}

int mqx_record_parse(const void *at, struct mqx_decoded *out)
{
    MQX_ASSERT(out != NULL);
    MQX_ASSERT((uintptr_t)at % PS_ALIGN == 0);
    const struct psj_record *record = at;
    const uint16_t type = mqx_record_type(record);

    *out = (struct mqx_decoded){.head = record};
    const bool known = type < MQX_ARRAY_COUNT(type_rules) && type_rules[type].known;
    if (!known && (record->type & PS_MUST_UNDERSTAND) == 0) {
        return MQX_OK;
    }
    if (!known) {
        return unreadable(record, "type", type);
    }
    if (record->version != 1 || record->zero != 0 || (record->flags & ~PS_FLAG_COMMITS) != 0) {
        return unreadable(record, "flags", record->flags);
    }
    int status = take_sections(&type_rules[type], out);
    if (status == MQX_OK) {
        status = check_message(out);
    }
    return status == MQX_OK ? check_prepared(out) : status;
}

int mqx_record_decode(const void *at, size_t size, struct mqx_decoded *out)
{
    MQX_ASSERT(out != NULL);
    int status = mqx_record_check(at, size);
    return status == MQX_OK ? mqx_record_parse(at, out) : status;
}
