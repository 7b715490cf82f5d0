/*
 * message_body.h - a message's descriptor and body in cells of the region.
 *
 * Shape. A chain of blocks, usually one. Each block begins with struct mqx_block; the payload of
 * the chain is ps_descriptor, ps_descriptor_ext (when has_ext), body. Blocks but the last are of
 * the largest class. A chain is built from its end, so that message.cells names a whole chain after
 * each step.
 *
 * Steps. A chain of more than MQX_CHAIN_STEP blocks is taken and freed in several
 * micro-transactions: while it is built the entry is RESERVED and a context's pending reference;
 * while it is freed the entry stays where it is with message.cells moving along, so that the reaper
 * can continue after a death.
 *
 * Locks. take, extend and free_step need the stripe lock (guard); write and read need that no other
 * thread changes the chain: it is fresh, claimed, pinned, or the stripe lock is held.
 *
 * Errors. 2059 when the chain is damaged: it names a block that is not there, a class that does not
 * exist, or more blocks than the arena has. The length of the message bounds every copy. The queue
 * manager is stopped then (damage.h). MQX_NEED_CELLS from take and extend.
 */
#ifndef PENSTOCK_MESSAGE_BODY_H
#define PENSTOCK_MESSAGE_BODY_H

#include "region/arena.h"
#include "format/format.h"

enum { MQX_CHAIN_STEP = 16 };

/* Payload bytes of a message: descriptor, extension, body. */
static inline uint64_t mqx_body_payload(bool has_ext, uint64_t length)
{
    return sizeof(struct ps_descriptor) + (has_ext ? sizeof(struct ps_descriptor_ext) : 0) + length;
}

/* True when one block holds it. */
static inline bool mqx_body_is_single(uint64_t payload)
{
    MQX_ASSERT(payload > 0);
    return payload + sizeof(struct mqx_block) <= MQX_BLOCK_MAX;
}

/* Prefetches the entry and the block that the next message of that payload will take: hints, for
 * callers that put many. */
static inline void mqx_body_expect(const struct mqx_stripe_guard *guard, uint64_t payload)
{
    MQX_ASSERT(payload >= sizeof(struct ps_descriptor));
    enum { LINE = 64, LINES = 16 };
    const uint64_t bytes = payload + sizeof(struct mqx_block);
    const struct mqx_stripe *stripe = guard->stripe;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    const char *entry = (const char *)mqx_message(guard->region, stripe->free_entries);
    const char *block =
        bytes > MQX_BLOCK_MAX
            ? NULL
            : mqx_cells(guard->region, stripe->free_cells[mqx_class_for((uint32_t)bytes)]);
    for (uint64_t at = 0; entry != NULL && at < sizeof(struct mqx_message); at += LINE) {
        __builtin_prefetch(entry + at, 1);
    }
    for (uint64_t at = 0; block != NULL && at < bytes && at < LINES * LINE; at += LINE) {
        __builtin_prefetch(block + at, 1);
    }
}

/* Prefetches the first block of a message that will be read soon. Reads message->cells; the entry
 * should be in the cache. */
static inline void mqx_body_expect_read(const struct mqx_region *region,
                                        const struct mqx_message *message)
{
    enum { LINE = 64, LINES = 8 };
    MQX_ASSERT(message != NULL);
    const char *block = message->cells == 0 ? NULL : mqx_cells(region, message->cells);
    const uint64_t bytes =
        sizeof(struct mqx_block) + sizeof(struct ps_descriptor) + message->length;
    MQX_ASSERT(region != NULL);
    for (uint64_t at = 0; block != NULL && at < bytes && at < LINES * LINE; at += LINE) {
        __builtin_prefetch(block + at);
    }
}

/* One block for the payload, taken in the caller's micro-transaction. */
int mqx_body_take(struct mqx_stripe_guard *guard, uint64_t payload,
                  uint32_t *out_cells) MQX_MUST_USE;

/* Adds up to MQX_CHAIN_STEP blocks to the front of message->cells until the chain has `payload`
 * bytes; *out_done. One micro-transaction, left open for the caller to commit. */
int mqx_body_extend(struct mqx_stripe_guard *guard, struct mqx_message *message, uint64_t payload,
                    uint64_t *have, bool *out_done) MQX_MUST_USE;

/* Fills a chain that no other thread can see. */
int mqx_body_write(const struct mqx_region *region, uint32_t cells,
                   const struct ps_descriptor *descriptor, const struct ps_descriptor_ext *ext,
                   const void *body, uint64_t length) MQX_MUST_USE;

/* Copies out of a chain: descriptor, ext and `capacity` body bytes at most; each may be NULL. */
int mqx_body_read(const struct mqx_region *region, const struct mqx_message *message,
                  struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                  uint64_t capacity) MQX_MUST_USE;

/* The descriptor in place; NULL when the chain is damaged. */
const struct ps_descriptor *mqx_body_descriptor(const struct mqx_region *region,
                                                const struct mqx_message *message);

/* Gives back up to MQX_CHAIN_STEP blocks in the caller's micro-transaction; true when none is left,
 * or when the rest of the chain is damaged. */
bool mqx_body_free_step(struct mqx_stripe_guard *guard, struct mqx_message *message);

#endif
