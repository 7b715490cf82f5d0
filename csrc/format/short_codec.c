/*
 * short_codec.c - see short_codec.h; format.h has the layout.
 *
 * What is common to two descriptors: all from `report` to `accounting_token`, persistence and
 * version. The message's own are its identifiers, times, priority, placement and extension. A MsgId
 * that was generated follows from the message number: its last 8 bytes, highest first, rise with
 * the number, and the COMMON record has what they would be for the number 0.
 */
#include "format/short_codec.h"

#include "base/assert.h"
#include "base/checksum.h"

#include <string.h>

enum {
    SHARED_FROM = offsetof(struct ps_descriptor, report),
    SHARED_SIZE = offsetof(struct ps_descriptor, persistence) - SHARED_FROM,
    ID_PREFIX = MQX_ID_SIZE - sizeof(uint64_t),
    QUEUES_KEPT = 4,   /* that a thread puts to and gets from by turns */
    PUTS_IN_FULL = 1,  /* of a unit, before it uses a COMMON record (240 bytes, 200 saved a PUT) */
    GETS_IN_FULL = 3,  /* 32 bytes, 8 saved a GET */
};

/* ---- COMMON records ---- */

static const struct psj_record *head_of(const struct mqx_common *common)
{
    MQX_ASSERT(common->length >= sizeof(struct psj_record));
    return (const void *)common->record;
}

/* The descriptor in it; NULL in one for GETs alone. */
static const struct ps_descriptor *template_of(const struct mqx_common *common)
{
    const size_t at = sizeof(struct psj_record) + sizeof(struct ps_section);
    MQX_ASSERT(common->length >= sizeof(struct psj_record));
    return common->length > at ? (const void *)(common->record + at) : NULL;
}

static uint64_t id_tail(const uint8_t id[MQX_ID_SIZE])
{
    uint64_t tail;
    MQX_ASSERT(id != NULL);
    memcpy(&tail, id + ID_PREFIX, sizeof tail);
    return __builtin_bswap64(tail);
}

static bool is_near(uint64_t value, uint64_t base)
{
    const uint64_t distance = value - base + UINT64_C(0x80000000); /* wraps: a signed difference */
    return distance <= UINT32_MAX;
}

static bool shares(const struct ps_descriptor *d, const struct ps_descriptor *with)
{
    MQX_ASSERT(d->backout_count == 0);
    return with != NULL && d->persistence == with->persistence &&
           d->md_version == with->md_version &&
           memcmp((const char *)d + SHARED_FROM, (const char *)with + SHARED_FROM,
                  SHARED_SIZE) == 0;
}

bool mqx_common_fits(const struct mqx_common *common, const struct mqx_record_head *head,
                     const struct ps_descriptor *d)
{
    const struct psj_record *own = head_of(common);
    MQX_ASSERT(mqx_record_length(own) == common->length);
    return own->object == head->object && own->object_gen == head->object_gen &&
           is_near(head->unit_id, own->unit_id) && (d == NULL || shares(d, template_of(common)));
}

/* What the descriptor of a COMMON record has of the one of its first message. */
static struct ps_descriptor make_template(const struct mqx_record_head *head,
                                          const struct ps_descriptor *d)
{
    struct ps_descriptor with = *d;
    const uint64_t tail = __builtin_bswap64(id_tail(d->msg_id) - head->number);
    MQX_ASSERT(d->backout_count == 0);
    memcpy(with.msg_id + ID_PREFIX, &tail, sizeof tail);
    memset(with.correl_id, 0, sizeof with.correl_id);
    with.expiry_us = 0;
    with.due_us = 0;
    with.priority = 0;
    with.placement = 0;
    with.has_ext = 0;
    return with;
}

/* The place for those of a queue, one for each of the two types: a GET needs no descriptor. */
static struct mqx_common *kept(uint32_t object, bool put)
{
    struct mqx_common *all = mqx_scratch_kept();
    MQX_STATIC_ASSERT(2 * QUEUES_KEPT * sizeof *all <= MQX_SCRATCH_KEPT, "there is room");
    MQX_ASSERT(object != 0);
    return all != NULL ? &all[2 * (object % QUEUES_KEPT) + put] : NULL;
}

/* Is it one of the unit's first ones for this queue? */
static bool is_early(struct mqx_common *common, uint64_t unit_id, uint32_t in_full)
{
    MQX_ASSERT(in_full > 0);
    if (common->unit_id != unit_id) {
        common->unit_id = unit_id;
        common->asked = 0;
    }
    if (common->asked == in_full) {
        return false;
    }
    common->asked += 1;
    return true;
}

struct mqx_common *mqx_common_for(uint64_t store, const struct mqx_record_head *head,
                                  const struct ps_descriptor *d, bool many)
{
    struct mqx_common *common = kept(head->object, d != NULL);
    MQX_ASSERT(head->type == PS_REC_PUT || head->type == PS_REC_GET);
    MQX_ASSERT((head->type == PS_REC_PUT) == (d != NULL));
    if (common == NULL || head->unit_id == 0 || (d != NULL && d->backout_count != 0)) {
        return NULL;
    }
    if (!many && is_early(common, head->unit_id, d != NULL ? PUTS_IN_FULL : GETS_IN_FULL)) {
        return NULL;
    }
    if (common->length != 0 && common->store == store && mqx_common_fits(common, head, d)) {
        return common;
    }
    const struct mqx_record_head own = {.type = PS_REC_COMMON,
                                        .unit_id = head->unit_id,
                                        .object = head->object,
                                        .object_gen = head->object_gen};
    common->store = store;
    common->lsn = 0;
    if (d == NULL) {
        common->length = mqx_encode_plain(common->record, &own);
    } else {
        const struct ps_descriptor with = make_template(head, d);
        common->length = mqx_encode_common(common->record, &own, &with);
    }
    MQX_ASSERT(common->length <= MQX_COMMON_MAX);
    return common;
}

/* ---- short records ---- */

uint32_t mqx_short_put_length(bool ext, uint32_t body_length)
{
    MQX_ASSERT(body_length <= PS_INLINE_BODY_MAX);
    const uint32_t fields = 2 * MQX_ID_SIZE + 3 * sizeof(uint64_t) + sizeof(int32_t);
    return (uint32_t)mqx_round_up(sizeof(struct psj_short) + sizeof(struct ps_short_put) + fields +
                                      (ext ? sizeof(struct ps_descriptor_ext) : 0) + body_length,
                                  PS_ALIGN);
}

static uint32_t finish(unsigned char *to, const struct mqx_common *common,
                       const struct mqx_record_head *head, uint32_t length)
{
    const uint32_t padded = (uint32_t)mqx_round_up(length, PS_ALIGN);
    const struct psj_record *own = head_of(common);
    MQX_ASSERT(padded <= MQX_RING_RECORD_MAX);
    MQX_ASSERT((head->flags & ~PS_FLAG_COMMITS) == 0);
    struct psj_short record = {
        .eighths = (uint16_t)(padded / PS_ALIGN),
        .type = (uint8_t)(head->type | PS_MUST_UNDERSTAND),
        .flags = (uint8_t)(head->flags | PS_FLAG_SHORT | (padded - length) << PS_PADDING_SHIFT),
        .unit = (int32_t)(uint32_t)(head->unit_id - own->unit_id),
        .number = head->number,
    };
    memset(to + length, 0, padded - length);
    memcpy(to, &record, sizeof record);
    record.crc = mqx_short_crc(own->crc, to, padded);
    memcpy(to, &record, sizeof record);
    return padded;
}

uint32_t mqx_encode_short_get(unsigned char *to, const struct mqx_common *common,
                              const struct mqx_record_head *head)
{
    MQX_ASSERT(head->type == PS_REC_GET);
    MQX_ASSERT(mqx_common_fits(common, head, NULL));
    return finish(to, common, head, sizeof(struct psj_short));
}

struct fields { /* being written behind a short PUT's head */
    unsigned char *to;
    uint32_t at;
    uint32_t present;
};

static void add(struct fields *fields, uint32_t bit, const void *from, uint32_t size)
{
    MQX_ASSERT(size > 0);
    MQX_ASSERT(bit > fields->present); /* in the order of the bits */
    fields->present |= bit;
    memcpy(fields->to + fields->at, from, size);
    fields->at += size;
}

static bool is_zero_id(const uint8_t id[MQX_ID_SIZE])
{
    static const uint8_t zero[MQX_ID_SIZE];
    MQX_ASSERT(id != NULL);
    return memcmp(id, zero, sizeof zero) == 0;
}

uint32_t mqx_encode_short_put(unsigned char *to, const struct mqx_common *common,
                              const struct mqx_record_head *head, const struct ps_descriptor *d,
                              const struct ps_descriptor_ext *ext, const void *body,
                              uint32_t body_length)
{
    const struct ps_descriptor *with = template_of(common);
    struct fields fields = {.to = to,
                            .at = sizeof(struct psj_short) + sizeof(struct ps_short_put),
                            .present = d->placement};
    struct ps_short_put put = {0};
    MQX_ASSERT(mqx_common_fits(common, head, d));
    MQX_ASSERT((d->has_ext != 0) == (ext != NULL));
    if (memcmp(d->msg_id, with->msg_id, ID_PREFIX) != 0 ||
        id_tail(d->msg_id) != id_tail(with->msg_id) + head->number) {
        add(&fields, PS_SHORT_MSG_ID, d->msg_id, sizeof d->msg_id);
    }
    if (!is_zero_id(d->correl_id)) {
        add(&fields, PS_SHORT_CORREL_ID, d->correl_id, sizeof d->correl_id);
    }
    if (is_near(d->put_time_us, with->put_time_us)) {
        put.time = (int32_t)(uint32_t)(d->put_time_us - with->put_time_us);
    } else {
        add(&fields, PS_SHORT_PUT_TIME, &d->put_time_us, sizeof d->put_time_us);
    }
    if (d->expiry_us != 0) {
        add(&fields, PS_SHORT_EXPIRY, &d->expiry_us, sizeof d->expiry_us);
    }
    if (d->priority != d->placement) {
        add(&fields, PS_SHORT_PRIORITY, &d->priority, sizeof d->priority);
    }
    if (ext != NULL) {
        add(&fields, PS_SHORT_EXT, ext, sizeof *ext);
    }
    if (d->due_us != 0) {
        add(&fields, PS_SHORT_DUE, &d->due_us, sizeof d->due_us);
    }
    put.fields = fields.present;
    memcpy(to + sizeof(struct psj_short), &put, sizeof put);
    if (body_length > 0) {
        memcpy(to + fields.at, body, body_length);
    }
    return finish(to, common, head, fields.at + body_length);
}

/* ---- compaction ---- */

void mqx_common_take(struct mqx_common *common, uint64_t store, const struct psj_record *record)
{
    const uint32_t length = mqx_record_length(record);
    MQX_ASSERT(mqx_record_type(record) == PS_REC_COMMON);
    MQX_ASSERT(length <= MQX_COMMON_MAX);
    if (common->store == store && common->length == length &&
        memcmp(common->record, record, length) == 0) {
        return;
    }
    memcpy(common->record, record, length);
    common->length = length;
    common->store = store;
    common->lsn = 0;
}

uint32_t mqx_encode_short_moved(unsigned char *to, const struct mqx_common *common,
                                const void *record, uint32_t flags)
{
    const uint32_t length = mqx_record_length(record);
    struct psj_short moved;
    MQX_ASSERT((flags & ~(uint32_t)PS_FLAG_UNDECIDED) == 0);
    MQX_ASSERT(mqx_record_is_short(record));
    MQX_ASSERT(length >= sizeof moved && length <= MQX_RING_RECORD_MAX);
    memcpy(to, record, length);
    memcpy(&moved, to, sizeof moved);
    moved.type = PS_REC_MOVED | PS_MUST_UNDERSTAND;
    moved.flags = (uint8_t)((moved.flags & (PS_FLAG_SHORT | PS_PADDING_MASK)) | flags);
    moved.common = 0;
    moved.unit = (flags & PS_FLAG_UNDECIDED) != 0 ? moved.unit : 0;
    memcpy(to, &moved, sizeof moved);
    moved.crc = mqx_short_crc(head_of(common)->crc, to, length);
    memcpy(to, &moved, sizeof moved);
    return length;
}
