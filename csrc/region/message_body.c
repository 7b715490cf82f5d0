/*
 * message_body.c - chains of blocks that hold descriptor and body. See message_body.h.
 */
#include "region/message_body.h"

#include "base/error.h"

#include <string.h>

enum { FULL_PAYLOAD = MQX_BLOCK_MAX - sizeof(struct mqx_block) };

static MQX_COLD int damaged_chain(const struct mqx_region *region, uint32_t cells)
{
    MQX_ASSERT(region != NULL);
    return mqx_region_damage(region, "the chain of blocks of a message, cell", cells);
}

int mqx_body_take(struct mqx_stripe_guard *guard, uint64_t payload, uint32_t *out_cells)
{
    const uint32_t class_no = mqx_class_for((uint32_t)(payload + sizeof(struct mqx_block)));
    MQX_ASSERT(mqx_body_is_single(payload));
    MQX_ASSERT(out_cells != NULL);
    int status = mqx_cells_take(guard, class_no, out_cells);
    if (status == MQX_OK) {
        struct mqx_block *block = mqx_cells(guard->region, *out_cells);
        MQX_ASSERT(block != NULL); /* it has just been validated */
        MQX_ASSERT(block->next == 0);
        block->class_no = class_no;
    }
    return status;
}

int mqx_body_extend(struct mqx_stripe_guard *guard, struct mqx_message *message, uint64_t payload,
                    uint64_t *have, bool *out_done)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(*have <= payload);
    for (int i = 0; i < MQX_CHAIN_STEP && *have < payload; i++) {
        /* the last block comes first: it takes what does not fill a block */
        uint64_t piece = *have == 0 ? payload % FULL_PAYLOAD : FULL_PAYLOAD;
        uint32_t cell = 0;
        piece = piece == 0 ? FULL_PAYLOAD : piece;
        int status = mqx_body_take(guard, piece, &cell);
        if (status != MQX_OK) {
            return status;
        }
        struct mqx_block *block = mqx_cells(guard->region, cell);
        MQX_ASSERT(cell != message->cells);
        mqx_guard_store32(guard, &block->next, message->cells);
        mqx_guard_store32(guard, &message->cells, cell);
        *have += piece;
        MQX_ASSERT(*have % FULL_PAYLOAD == payload % FULL_PAYLOAD);
    }
    *out_done = *have >= payload;
    return MQX_OK;
}

/* Walks a chain for a copy in either direction. */
struct walk {
    const struct mqx_region *region;
    uint32_t cell;       /* of the block after the present one */
    unsigned char *at;   /* in the present block */
    uint64_t left;
    uint32_t blocks;
};

static int next_block(struct walk *walk)
{
    struct mqx_block *block = mqx_cells(walk->region, walk->cell);
    const uint64_t known = mqx_load_relaxed(&walk->region->reach.usable[MQX_AREA_ARENA]);
    MQX_ASSERT(walk->left == 0);
    if (block == NULL || block->class_no >= MQX_CLASS_COUNT ||
        walk->blocks++ > known / MQX_CELL) { /* mqx_cells() has renewed what is known */
        return damaged_chain(walk->region, walk->cell);
    }
    const uint64_t bytes = mqx_class_bytes(block->class_no);
    const uint64_t end = (uint64_t)walk->cell * MQX_CELL + bytes;
    if (MQX_UNLIKELY(!mqx_area_has(walk->region, MQX_AREA_ARENA, end))) {
        return damaged_chain(walk->region, walk->cell);
    }
    MQX_ASSERT(bytes > sizeof *block);
    walk->at = (unsigned char *)(block + 1);
    walk->left = bytes - sizeof *block;
    walk->cell = block->next;
    return MQX_OK;
}

static int step(struct walk *walk, uint64_t wanted, uint64_t *out_piece)
{
    MQX_ASSERT(wanted > 0);
    while (walk->left == 0) {
        int status = next_block(walk);
        if (status != MQX_OK) {
            return status;
        }
    }
    *out_piece = wanted < walk->left ? wanted : walk->left;
    MQX_ASSERT(*out_piece > 0);
    return MQX_OK;
}

static int copy_in(struct walk *walk, const void *from, uint64_t size)
{
    MQX_ASSERT(from != NULL || size == 0);
    MQX_ASSERT(size <= MQX_MAX_BODY);
    const unsigned char *source = from;
    while (size > 0) {
        uint64_t piece;
        int status = step(walk, size, &piece);
        if (status != MQX_OK) {
            return status;
        }
        memcpy(walk->at, source, piece);
        walk->at += piece;
        walk->left -= piece;
        source += piece;
        size -= piece;
    }
    return MQX_OK;
}

static int copy_out(struct walk *walk, void *to, uint64_t size)
{
    MQX_ASSERT(to != NULL || size <= sizeof(struct ps_descriptor_ext));
    MQX_ASSERT(walk->region != NULL);
    unsigned char *target = to;
    while (size > 0) {
        uint64_t piece;
        int status = step(walk, size, &piece);
        if (status != MQX_OK) {
            return status;
        }
        if (target != NULL) {
            memcpy(target, walk->at, piece);
            target += piece;
        }
        walk->at += piece;
        walk->left -= piece;
        size -= piece;
    }
    return MQX_OK;
}

/* The payload of a chain of one block that is whole in the arena's memory; NULL when it is not so
 * simple. */
static unsigned char *only_block(const struct mqx_region *region, uint32_t cells, uint64_t payload)
{
    MQX_ASSERT(region != NULL);
    struct mqx_block *block = mqx_cells(region, cells);
    const uint64_t end = (uint64_t)cells * MQX_CELL + sizeof *block + payload;
    MQX_ASSERT(payload >= sizeof(struct ps_descriptor));
    if (block == NULL || block->next != 0 || payload > FULL_PAYLOAD ||
        !mqx_area_has(region, MQX_AREA_ARENA, end)) {
        return NULL;
    }
    return (unsigned char *)(block + 1);
}

int mqx_body_write(const struct mqx_region *region, uint32_t cells,
                   const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                   const void *body, uint64_t length)
{
    unsigned char *at = only_block(region, cells, mqx_body_payload(descriptor->has_ext, length));
    MQX_ASSERT(cells != 0);
    MQX_ASSERT(descriptor->has_ext == 0 || ext != NULL);
    MQX_ASSERT(body != NULL || length == 0);
    if (MQX_LIKELY(at != NULL && descriptor->has_ext == 0)) {
        memcpy(at, descriptor, sizeof *descriptor);
        memcpy(at + sizeof *descriptor, body, length);
        return MQX_OK;
    }
    struct walk walk = {.region = region, .cell = cells};
    int status = copy_in(&walk, descriptor, sizeof *descriptor);
    if (status == MQX_OK && descriptor->has_ext) {
        status = copy_in(&walk, ext, sizeof *ext);
    }
    return status == MQX_OK ? copy_in(&walk, body, length) : status;
}

int mqx_body_read(const struct mqx_region *region, const struct mqx_message *message,
                  struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                  uint64_t capacity)
{
    MQX_ASSERT(message != NULL);
    const bool has_ext = (message->flags & MQX_MSGF_HAS_EXT) != 0;
    MQX_ASSERT(body != NULL || capacity == 0);
    const unsigned char *at =
        only_block(region, message->cells, mqx_body_payload(has_ext, message->length));
    if (MQX_LIKELY(at != NULL && !has_ext && descriptor != NULL)) {
        memcpy(descriptor, at, sizeof *descriptor);
        if (body != NULL) {
            memcpy(body, at + sizeof *descriptor,
                   message->length < capacity ? message->length : capacity);
        }
        return MQX_OK;
    }
    struct walk walk = {.region = region, .cell = message->cells};
    const uint64_t wanted = message->length < capacity ? message->length : capacity;
    int status = copy_out(&walk, descriptor, sizeof *descriptor);
    if (status == MQX_OK && has_ext) {
        status = copy_out(&walk, ext, sizeof *ext);
    }
    return status == MQX_OK ? copy_out(&walk, body, body == NULL ? 0 : wanted) : status;
}

const struct ps_descriptor *mqx_body_descriptor(const struct mqx_region *region,
                                                const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    const struct mqx_block *block = mqx_cells(region, message->cells);
    MQX_ASSERT(message->state != MQX_MSG_FREE);
    return block == NULL ? NULL : (const struct ps_descriptor *)(block + 1);
}

bool mqx_body_free_step(struct mqx_stripe_guard *guard, struct mqx_message *message)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(message != NULL);
    for (int i = 0; i < MQX_CHAIN_STEP && message->cells != 0; i++) {
        struct mqx_block *block = mqx_cells(guard->region, message->cells);
        if (MQX_UNLIKELY(block == NULL || block->class_no >= MQX_CLASS_COUNT)) {
            (void)damaged_chain(guard->region, message->cells);
            return true;
        }
        const uint32_t cell = message->cells;
        mqx_guard_store32(guard, &message->cells, block->next);
        mqx_cells_give(guard, block->class_no, cell);
    }
    return message->cells == 0;
}
