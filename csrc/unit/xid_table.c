/*
 * xid_table.c - see xid_table.h.
 */
#include "unit/xid_table.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "region/damage.h"

#include <stdio.h>
#include <string.h>

enum { FORMAT_LETTERS = 4, FORMAT_SIZE = 12 }; /* a format id as text: letters, or a number */

/* ---- text ---- */

bool mqx_xid_equal(const struct ps_xid *a, const struct ps_xid *b)
{
    MQX_ASSERT(a != NULL);
    MQX_ASSERT(b != NULL);
    return memcmp(a, b, sizeof *a) == 0; /* no padding, and unused bytes are zero */
}

static bool is_word(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A part as text; its length, at most 2 + 2 * count, and a NUL behind it. */
static size_t show_part(const uint8_t *bytes, size_t count, char *out)
{
    bool plain = count > 0 && (count < 2 || bytes[0] != '0' || bytes[1] != 'x');
    MQX_ASSERT(bytes != NULL);
    MQX_ASSERT(count <= sizeof((struct ps_xid *)0)->gtrid);
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
    MQX_ASSERT(at == 2 + 2 * count);
    return at;
}

static size_t show_format(int32_t format_id, char *out)
{
    const uint32_t id = (uint32_t)format_id;
    const uint8_t letters[FORMAT_LETTERS] = {(uint8_t)(id >> 24), (uint8_t)(id >> 16),
                                             (uint8_t)(id >> 8), (uint8_t)id};
    bool plain = letters[0] > '9'; /* a letter first */
    for (int i = 0; i < FORMAT_LETTERS; i++) {
        plain = plain && is_word(letters[i]) && letters[i] <= 'Z';
    }
    if (plain) {
        memcpy(out, letters, sizeof letters);
        return sizeof letters;
    }
    const int length = snprintf(out, FORMAT_SIZE, "%d", format_id);
    MQX_ASSERT(length > 0);
    MQX_ASSERT(length < FORMAT_SIZE);
    return (size_t)length;
}

/* The length of a part, which may come from the region or a file: no more than its field has. */
static size_t part_length(uint16_t length, size_t size)
{
    MQX_ASSERT(size != 0);
    return length < size ? length : size;
}

const char *mqx_xid_text(const struct ps_xid *xid, char out[MQX_XID_TEXT_SIZE])
{
    MQX_ASSERT(out != NULL);
    size_t at = show_format(xid->format_id, out);
    out[at++] = ':';
    at += show_part(xid->gtrid, part_length(xid->gtrid_length, sizeof xid->gtrid), out + at);
    if (xid->bqual_length > 0) {
        out[at++] = ':';
        at += show_part(xid->bqual, part_length(xid->bqual_length, sizeof xid->bqual), out + at);
    }
    MQX_ASSERT(at < MQX_XID_TEXT_SIZE);
    out[at] = '\0';
    return out;
}

/* ---- chains ---- */

static uint32_t *bucket_of(const struct mqx_region *region, const struct ps_xid *xid)
{
    const uint64_t hash = mqx_hash64(xid, sizeof *xid, region->tag_key);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    return &region->header->xid_bucket[hash % MQX_XID_BUCKETS];
}

static int damaged_chain(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    return mqx_region_damage(region, "a chain of xids, context", slot);
}

uint32_t mqx_xid_table_find(const struct mqx_region *region, const struct ps_xid *xid)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    uint32_t slot = *bucket_of(region, xid);
    MQX_ASSERT(mqx_lock_held(region, &region->header->slots_lock));
    for (uint64_t i = 0; slot != 0; i++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context == NULL || i >= used) {
            (void)damaged_chain(region, slot);
            return 0;
        }
        if (mqx_xid_equal(&context->xid, xid)) {
            return slot;
        }
        slot = context->xid_next;
    }
    return 0;
}

int mqx_xid_table_add(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(mqx_lock_held(region, lock));
    MQX_ASSERT(lock->undo_count == 0);
    if (context == NULL || context->xid_listed != 0) {
        return damaged_chain(region, slot);
    }
    MQX_ASSERT(mqx_xid_table_find(region, &context->xid) == 0); /* invariant 2 */
    uint32_t *bucket = bucket_of(region, &context->xid);
    mqx_undo_store32(region->base, lock, &context->xid_next, *bucket);
    mqx_undo_store32(region->base, lock, &context->xid_listed, 1);
    mqx_undo_store32(region->base, lock, bucket, slot);
    return MQX_OK;
}

int mqx_xid_table_unlink(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_context *context = mqx_context(region, slot);
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    MQX_ASSERT(mqx_lock_held(region, lock));
    MQX_ASSERT(lock->undo_count == 0);
    if (context == NULL || context->xid_listed == 0) {
        return damaged_chain(region, slot);
    }
    uint32_t *at = bucket_of(region, &context->xid);
    for (uint64_t i = 0; *at != slot; i++) {
        struct mqx_context *before = mqx_context(region, *at);
        if (before == NULL || i >= used) {
            return damaged_chain(region, slot);
        }
        at = &before->xid_next;
    }
    MQX_ASSERT(*at == slot);
    mqx_undo_store32(region->base, lock, at, context->xid_next);
    mqx_undo_store32(region->base, lock, &context->xid_next, 0);
    mqx_undo_store32(region->base, lock, &context->xid_listed, 0);
    return MQX_OK;
}

int mqx_xid_table_remove(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(!mqx_lock_held(region, lock));
    int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        status = mqx_xid_table_unlink(region, slot);
        mqx_undo_commit(lock);
        mqx_lock_drop(region, lock);
    }
    return status;
}
