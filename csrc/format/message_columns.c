/*
 * message_columns.c - see message_columns.h.
 */
#include "format/message_columns.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

struct field { /* of struct psc_message */
    uint8_t offset;
    uint8_t size;
};
#define FIELD(name)                                                                                \
    {                                                                                              \
        offsetof(struct psc_message, name), sizeof(((struct psc_message *)0)->name)                \
    }
static const struct field fields[PSC_COLUMN_COUNT] = {
    FIELD(number),         FIELD(lsn),          FIELD(first_lsn),   FIELD(expiry_us),
    FIELD(tag_msg_id),     FIELD(tag_correl_id), FIELD(tag_group_id), FIELD(object),
    FIELD(object_gen),     FIELD(length),       FIELD(backout_count), FIELD(priority),
    FIELD(placement),      FIELD(has_ext),      FIELD(is_volatile), FIELD(record_length),
    FIELD(chunk_count),
};
enum { NUMBER = 0, LSN = 1, FIRST_LSN = 2, PADDING = 8 };

/* ---- fields ---- */

/* The highest value of a field of that size. */
static uint64_t limit_of(uint32_t size)
{
    MQX_ASSERT(size == 1 || size == 4 || size == 8);
    return size == 8 ? UINT64_MAX : (1ull << 8 * size) - 1;
}

static uint64_t get_field(const struct psc_message *m, uint32_t i)
{
    const unsigned char *from = (const unsigned char *)m + fields[i].offset;
    uint32_t word;
    uint64_t value;
    MQX_ASSERT(i < PSC_COLUMN_COUNT);
    if (i == FIRST_LSN) {
        return m->lsn - m->first_lsn;
    }
    switch (fields[i].size) {
    case 1: return *from;
    case 4: memcpy(&word, from, sizeof word); return word;
    default: memcpy(&value, from, sizeof value); return value;
    }
}

/* The same field of `count` messages. */
static void set_fields(struct psc_message *messages, uint32_t i, const uint64_t *values,
                       uint32_t count)
{
    unsigned char *to = (unsigned char *)messages + fields[i].offset;
    MQX_ASSERT(i < PSC_COLUMN_COUNT);
    switch (fields[i].size) {
    case 1:
        for (uint32_t k = 0; k < count; k++, to += sizeof *messages) {
            *to = (unsigned char)values[k];
        }
        break;
    case 4:
        for (uint32_t k = 0; k < count; k++, to += sizeof *messages) {
            const uint32_t word = (uint32_t)values[k];
            memcpy(to, &word, sizeof word);
        }
        break;
    default:
        for (uint32_t k = 0; k < count; k++, to += sizeof *messages) {
            memcpy(to, &values[k], sizeof *values);
        }
    }
}

/* ---- encoding ---- */

/* The smallest width that has room for it. */
static uint8_t width_of(uint64_t value)
{
    const uint8_t width = value == 0            ? 0
                          : value <= UINT8_MAX  ? 1
                          : value <= UINT16_MAX ? 2
                          : value <= UINT32_MAX ? 4
                                                : 8;
    MQX_ASSERT(width == 8 || value >> 8 * width == 0);
    return width;
}

/* Base and width of column i. With 8 bytes a value needs no base. */
static void measure(struct psc_columns *header, const struct psc_message *messages, uint32_t count,
                    uint32_t i)
{
    uint64_t least = UINT64_MAX, most = 0;
    MQX_ASSERT(count > 0);
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t value = get_field(&messages[k], i);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    MQX_ASSERT(least <= most);
    header->width[i] = width_of(most - least);
    header->base[i] = header->width[i] == 8 ? 0 : least;
    MQX_ASSERT(header->width[i] <= fields[i].size);
}

/* The column behind the others; nothing when no message is delayed. */
static unsigned char *encode_dues(struct psc_columns *header, unsigned char *at,
                                  const struct psc_message *messages, uint32_t count)
{
    uint64_t any = 0;
    MQX_ASSERT(header->due_width == 0);
    for (uint32_t k = 0; k < count; k++) {
        any |= messages[k].due_us;
    }
    if (any == 0) {
        return at;
    }
    header->due_width = sizeof any;
    for (uint32_t k = 0; k < count; k++, at += sizeof any) {
        memcpy(at, &messages[k].due_us, sizeof any);
    }
    return at;
}

uint64_t mqx_columns_encode(unsigned char *to, const struct psc_message *messages, uint32_t count)
{
    struct psc_columns header = {.zero = {0}};
    unsigned char *at = to + sizeof header;
    MQX_ASSERT(messages != NULL);
    MQX_ASSERT(count > 0);
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT; i++) {
        measure(&header, messages, count, i);
        const uint32_t width = header.width[i];
        for (uint32_t k = 0; k < count && width != 0; k++, at += width) {
            const uint64_t value = get_field(&messages[k], i) - header.base[i];
            memcpy(at, &value, width); /* little-endian */
        }
        while ((size_t)(at - to) % PADDING != 0) {
            *at++ = 0;
        }
    }
    at = encode_dues(&header, at, messages, count);
    memcpy(to, &header, sizeof header);
    MQX_ASSERT((uint64_t)(at - to) <= MQX_COLUMNS_MAX((uint64_t)count));
    return (uint64_t)(at - to);
}

/* ---- how much columns can take ---- */

void mqx_columns_note(struct mqx_columns_reach *reach, const struct psc_columns *header,
                      uint32_t count)
{
    MQX_ASSERT(count > 0);
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT; i++) {
        const uint32_t width = header->width[i];
        const uint64_t base = header->base[i], limit = limit_of(fields[i].size);
        const uint64_t span = width == 8 ? UINT64_MAX : (1ull << 8 * width) - 1;
        const uint64_t most = span <= limit && base <= limit - span ? base + span : limit;
        MQX_ASSERT(width <= fields[i].size);
        reach->least[i] = reach->blocks == 0 || base < reach->least[i] ? base : reach->least[i];
        reach->most[i] = reach->blocks == 0 || most > reach->most[i] ? most : reach->most[i];
        reach->bytes += i == LSN ? 0 : (uint64_t)width * count;
    }
    reach->due_width = header->due_width > reach->due_width ? header->due_width : reach->due_width;
    reach->bytes += (uint64_t)header->due_width * count;
    reach->messages += count;
    reach->blocks += 1;
}

uint32_t mqx_columns_line_most(const struct mqx_columns_reach *reach, uint64_t next_number,
                               uint64_t *out_lsn)
{
    uint32_t bytes = 0;
    MQX_ASSERT(reach->blocks > 0);
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT; i++) {
        const uint64_t least = reach->least[i];
        const uint64_t most =
            i == NUMBER && next_number > least && next_number < reach->most[i] ? next_number
                                                                               : reach->most[i];
        bytes += i == LSN ? 0 : width_of(most - least);
    }
    bytes += reach->due_width;
    *out_lsn = reach->least[LSN];
    MQX_ASSERT(bytes <= sizeof(struct psc_message));
    return bytes;
}

/* ---- decoding ---- */

static bool column_is_sound(const struct psc_columns *header, uint32_t i)
{
    const uint32_t width = header->width[i];
    MQX_ASSERT(i < PSC_COLUMN_COUNT);
    return (width == 0 || width == 1 || width == 2 || width == 4 || width == 8) &&
           width <= fields[i].size && header->base[i] <= limit_of(fields[i].size) &&
           (width != 8 || header->base[i] == 0);
}

static bool are_zero(const unsigned char *bytes, uint64_t count)
{
    unsigned char any = 0;
    MQX_ASSERT(count < PADDING);
    for (uint64_t i = 0; i < count; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

bool mqx_columns_open(struct mqx_message_columns *columns, const unsigned char *payload,
                      uint64_t length, uint32_t count)
{
    uint64_t at = sizeof columns->header;
    MQX_ASSERT(payload != NULL);
    if (length < at || count == 0) {
        return false;
    }
    *columns = (struct mqx_message_columns){.left = count};
    memcpy(&columns->header, payload, sizeof columns->header);
    bool sound = are_zero(columns->header.zero, sizeof columns->header.zero);
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT && sound; i++) {
        const uint64_t bytes = (uint64_t)count * columns->header.width[i];
        const uint64_t padding = mqx_round_up(bytes, PADDING) - bytes;
        columns->at[i] = payload + at;
        sound = column_is_sound(&columns->header, i) && bytes + padding <= length - at &&
                are_zero(payload + at + bytes, padding);
        if (sound) {
            set_fields(&columns->common, i, &columns->header.base[i], 1);
            at += bytes + padding;
        }
    }
    const uint64_t due_width = columns->header.due_width;
    sound = sound && (due_width == 0 || due_width == sizeof(uint64_t)) &&
            count * due_width <= length - at;
    if (sound) {
        columns->due = payload + at;
        at += count * due_width;
    }
    MQX_ASSERT(at <= length);
    return sound && at == length && (count == 1 || columns->header.width[NUMBER] != 0);
}

/* `count` integers of that width. */
static void widen(uint64_t *to, const unsigned char *from, uint32_t width, uint32_t count)
{
    MQX_ASSERT(width == 1 || width == 2 || width == 4 || width == 8);
    MQX_ASSERT(count <= MQX_COLUMNS_STEP);
    uint16_t half;
    uint32_t word;
    switch (width) {
    case 1:
        for (uint32_t k = 0; k < count; k++) {
            to[k] = from[k];
        }
        break;
    case 2:
        for (uint32_t k = 0; k < count; k++) {
            memcpy(&half, from + 2 * (size_t)k, sizeof half);
            to[k] = half;
        }
        break;
    case 4:
        for (uint32_t k = 0; k < count; k++) {
            memcpy(&word, from + 4 * (size_t)k, sizeof word);
            to[k] = word;
        }
        break;
    default: memcpy(to, from, (size_t)count * sizeof *to);
    }
}

/* The values of column i, which has a width; false: one exceeds its field. */
static bool decode_column(struct mqx_message_columns *columns, uint32_t i, struct psc_message *out,
                          uint32_t count)
{
    const uint64_t base = columns->header.base[i];
    const uint64_t room = limit_of(fields[i].size) - base;
    const uint32_t width = columns->header.width[i];
    uint64_t values[MQX_COLUMNS_STEP];
    uint64_t most = 0;
    MQX_ASSERT(base <= limit_of(fields[i].size)); /* opened */
    widen(values, columns->at[i], width, count);
    for (uint32_t k = 0; k < count; k++) {
        most = values[k] > most ? values[k] : most;
        values[k] += base;
    }
    set_fields(out, i, values, count);
    columns->at[i] += (size_t)count * width;
    return most <= room;
}

bool mqx_columns_next(struct mqx_message_columns *columns, struct psc_message *out, uint32_t count)
{
    bool sound = true;
    MQX_ASSERT(count <= MQX_COLUMNS_STEP);
    MQX_ASSERT(count <= columns->left);
    for (uint32_t k = 0; k < count; k++) {
        out[k] = columns->common;
    }
    for (uint32_t i = 0; i < PSC_COLUMN_COUNT; i++) {
        if (columns->header.width[i] != 0) {
            sound &= decode_column(columns, i, out, count);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        out[k].first_lsn = out[k].lsn - out[k].first_lsn;
    }
    for (uint32_t k = 0; k < count && columns->header.due_width != 0; k++) {
        memcpy(&out[k].due_us, columns->due, sizeof out[k].due_us);
        columns->due += sizeof out[k].due_us;
        sound &= out[k].due_us <= PS_DUE_MAX;
    }
    columns->left -= count;
    return sound;
}
