/*
 * extents.h - extents: which stretch of the arena, or of the message area, holds items of which
 * class.
 *
 * Purpose. Memory that one size class no longer needs must serve another, and memory that nobody
 * needs must leave the file. Both are possible for whole stretches only. So both areas are divided
 * into extents of MQX_EXTENT_BYTES; an extent holds items (blocks of cells, or entries) of one
 * class at a time, counts those that are in use, and is free for any class when the last one comes
 * back.
 *
 * Terms
 *   item      a block of cells of one class, or a message entry (MQX_ENTRY_CLASS).
 *   in use    handed out to a stripe: in its free list, in a parcel, or in a message.
 *   partial   a USED extent with items that can be handed out; in the list of its class.
 *   carve     to hand out an item of an extent that was never handed out since the extent got its
 *             class.
 *   punch     to give a free extent's memory back to the file system (a hole in the region's file).
 *   grace     that every stripe lock has been free once after an extent left the free list.
 *
 * States of an extent
 *   NEW -> USED <-> FREE -> TO_PUNCH -> PUNCHED -> FREE. An extent that cannot be punched returns
 *   from TO_PUNCH to FREE.
 *
 * What may be read. An item in use may be read and changed by its owner. A reader that only
 * remembers an entry's slot (a cursor, a handle) holds any stripe lock and asks
 * mqx_message_peek(): until it drops that lock the entry's memory is not punched, because an
 * extent is punched only after a grace. So nobody reads a hole, which would cost a page, and end
 * the process with SIGBUS when the file system is full.
 *
 * Deaths. Each change is one micro-transaction of the arena lock. A extent stays TO_PUNCH until its
 * hole is made and PUNCHED until its memory is allocated again, so a death in between leaves an
 * extent that the next call continues with, and never a free extent without memory.
 *
 * Invariants
 *   1. A USED extent with free_head != 0 or carved < total is in the list header.partial of its
 *      class, others are not; a FREE, TO_PUNCH or PUNCHED one is in the list of its pool.
 *   2. in_use + length of the list at free_head = carved; one less in the first extent of an area,
 *      whose item 0 stands for "none".
 *   3. in_use is 0 in no USED extent outside a micro-transaction.
 *   4. Extents at or above area.used are NEW, below it are not.
 *
 * Locks. mqx_extents_take() and _give() need the arena lock, and leave their stores to the caller's
 * micro-transaction: at most 24 for a take, 11 for a give. mqx_extents_grow() and _punch() take the
 * growth lock, below it the arena lock and, for a grace, each stripe lock in turn by trylock; the
 * caller holds none of them.
 *
 * Errors. MQX_NEED_GROWTH from take when all extents with memory are used; 2071 from grow; 2059
 * for a record that cannot be true.
 */
#ifndef PENSTOCK_RUNS_H
#define PENSTOCK_RUNS_H

#include "region/region.h"
#include "region/size_class.h"

enum {
    MQX_PUNCH_BATCH = 64, /* extents that one call of mqx_extents_punch() takes at most */
    MQX_SHORT_LOOKS = 4,  /* after a refusal, memory that is free goes back at once (reclaim.h) */
};

/* The pool that items of the class come from. */
static inline enum mqx_pool_no mqx_pool_of(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    MQX_STATIC_ASSERT(MQX_POOL_COUNT == 2, "entries and cells");
    return class_no == MQX_ENTRY_CLASS ? MQX_POOL_ENTRIES : MQX_POOL_CELLS;
}

/* The free-list link of a free item; NULL: not in memory that its area has. */
uint32_t *mqx_item_link(const struct mqx_region *region, uint32_t class_no, uint32_t item);

/* Hands out 1 to `want` items of a class, linked to each other, the last with link 0. */
int mqx_extents_take(struct mqx_region *region, uint32_t class_no, uint32_t want,
                     uint32_t *out_head, uint32_t *out_count) MQX_MUST_USE;

/* Takes one item back; its link is overwritten. */
int mqx_extents_give(struct mqx_region *region, uint32_t class_no, uint32_t item) MQX_MUST_USE;

/* Takes back the first items of a chain that lie in one extent, `most` at the most, with the stores
 * of one item. *out_rest: the item behind them, 0 for none; without a meaning when `most` is 1 and
 * the item was not part of a chain. */
int mqx_extents_give_chain(struct mqx_region *region, uint32_t class_no, uint32_t head,
                           uint32_t most, uint32_t *out_count, uint32_t *out_rest) MQX_MUST_USE;

/* Memory for at least `extents` more free extents: of punched ones first, then by growth of the
 * area. A refusal is noted, so that what other pools do not use goes back. */
int mqx_extents_grow(struct mqx_region *region, enum mqx_pool_no no, uint32_t extents) MQX_MUST_USE;

/* Punches up to `count` (at most MQX_PUNCH_BATCH) free extents, and those that were left over.
 * Nothing when a stripe lock is held for long, or the file system refuses. *out_done: how many. */
int mqx_extents_punch(struct mqx_region *region, enum mqx_pool_no no, uint32_t count,
                   uint32_t *out_done) MQX_MUST_USE;

/* Extents with memory that no class has, fresh ones included. A hint: no lock. */
uint64_t mqx_extents_available(const struct mqx_region *region, enum mqx_pool_no no);

/* Bytes of the extents that hold items; the same of punched extents. Hints. */
uint64_t mqx_extents_used_bytes(const struct mqx_region *region, enum mqx_pool_no no);
uint64_t mqx_extents_punched_bytes(const struct mqx_region *region, enum mqx_pool_no no);

/* The entry in a slot that the caller remembers, which may have been given back; NULL when its
 * extent holds no entries now. The caller holds a stripe lock, or is alone, and verifies what it
 * finds. */
struct mqx_message *mqx_message_peek(const struct mqx_region *region, uint32_t slot);

/* The first slot from `slot` on whose extent holds entries, or one at or beyond area.used. */
uint64_t mqx_message_next_used(const struct mqx_region *region, uint64_t slot);

#endif
