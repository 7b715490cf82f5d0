/*
 * xid_table.c - see xid_table.h.
 */
#include "unit/xid_table.h"

#include "base/checksum.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

bool mqx_xid_equal(const struct ps_xid *a, const struct ps_xid *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* no padding, and what is not used is zero */
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* As it is shown; the length. At most 2 + 2 * count + 1 bytes. */
static size_t show_part(const uint8_t *bytes, size_t count, char *out)
{
    bool plain = count > 0 && (count < 2 || bytes[0] != '0' || bytes[1] != 'x');
    for (size_t i = 0; i < count; i++) {
        plain = plain && (is_word(bytes[i]) || strchr("._-", bytes[i]) != NULL) && bytes[i] != 0;
    }
    if (plain) {
        memcpy(out, bytes, count);
        return count;
    }
    size_t at = (size_t)snprintf(out, 3, "0x");
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(out + at, 3, "%02x", bytes[i]);
    }
    return at;
}

static size_t show_format(int32_t format_id, char *out)
{
    const uint32_t id = (uint32_t)format_id;
    const uint8_t letters[4] = {(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                                (uint8_t)id};
    bool plain = letters[0] > '9'; /* a letter first */
    for (int i = 0; i < 4; i++) {
        plain = plain && is_word(letters[i]) && letters[i] <= 'Z';
    }
    if (plain) {
        memcpy(out, letters, sizeof letters);
        return sizeof letters;
    }
    return (size_t)snprintf(out, 12, "%d", format_id);
}

const char *mqx_xid_text(const struct ps_xid *xid, char out[MQX_XID_TEXT_SIZE])
{
    mqx_check(xid->gtrid_length <= sizeof xid->gtrid && xid->bqual_length <= sizeof xid->bqual);
    size_t at = show_format(xid->format_id, out);
    out[at++] = ':';
    at += show_part(xid->gtrid, xid->gtrid_length, out + at);
    if (xid->bqual_length > 0) {
        out[at++] = ':';
        at += show_part(xid->bqual, xid->bqual_length, out + at);
    }
    out[at] = '\0';
    return out;
}

static uint32_t *bucket_of(const struct mqx_region *region, const struct ps_xid *xid)
{
    const uint64_t hash = mqx_hash64(xid, sizeof *xid, region->header->tag_key);
    return &region->header->xid_bucket[hash % MQX_XID_BUCKETS];
}

uint32_t mqx_xid_table_find(const struct mqx_region *region, const struct ps_xid *xid)
{
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    uint32_t slot = *bucket_of(region, xid);
    mqx_check(mqx_lock_held(region, &region->header->slots_lock));
    for (uint64_t i = 0; i < used && slot != 0; i++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context == NULL || mqx_xid_equal(&context->xid, xid)) {
            return context == NULL ? 0 : slot;
        }
        slot = context->xid_next;
    }
    return 0;
}

void mqx_xid_table_add(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *context = mqx_context(region, slot);
    mqx_check(context != NULL && context->xid_listed == 0);
    uint32_t *bucket = bucket_of(region, &context->xid);
    mqx_undo_store32(region->base, lock, &context->xid_next, *bucket);
    mqx_undo_store32(region->base, lock, &context->xid_listed, 1);
    mqx_undo_store32(region->base, lock, bucket, slot);
}

void mqx_xid_table_take_off(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *context = mqx_context(region, slot);
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    mqx_check(mqx_lock_held(region, lock));
    mqx_check(context != NULL && context->xid_listed != 0);
    uint32_t *at = bucket_of(region, &context->xid);
    for (uint64_t i = 0; i < used && *at != slot; i++) {
        struct mqx_context *before = mqx_context(region, *at);
        mqx_check(before != NULL);
        at = &before->xid_next;
    }
    mqx_check(*at == slot);
    mqx_undo_store32(region->base, lock, at, context->xid_next);
    mqx_undo_store32(region->base, lock, &context->xid_next, 0);
    mqx_undo_store32(region->base, lock, &context->xid_listed, 0);
}

int mqx_xid_table_remove(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        mqx_xid_table_take_off(region, slot);
        mqx_undo_commit(lock);
        mqx_lock_drop(region, lock);
    }
    return status;
}
