/*
 * arena.h - memory of the region: message entries and blocks of cells, by size class.
 *
 * Terms
 *   stripe guard  a stripe lock that the caller has taken; every function here that takes one
 *                 changes the stripe in the caller's micro-transaction, so rolling back gives the
 *                 memory back.
 *   block         a run of cells of one size class. Its first 4 bytes are the free-list link while
 *                 it is free; a message's blocks begin with struct mqx_block, whose `next` is at
 *                 the same location.
 *   parcel        some items of one class on their way between a stripe and the extents
 *                 (extents.h). A parcel is changed under the stripe lock AND the arena lock; each
 *                 step is one micro-transaction of one of them, so that a death between the steps
 *                 leaves a whole parcel, never a leak:
 *
 *                   refill   arena tx    extent of the class -> stripe.incoming
 *                            stripe tx   incoming -> free list
 *                   return   stripe tx   free list -> stripe.outgoing
 *                            arena tx    outgoing -> their extents, SEND_EXTENTS at a time
 *
 *                 A parcel that is found full is finished first.
 *   surplus       what a stripe's free list of a class has beyond MQX_STRIPE_KEEP_BYTES. It is
 *                 returned when the stripe guard is dropped, whatever call gave the items back.
 *
 * Free lists per stripe let processes that use different queues allocate without contention; the
 * global arena lock is taken once in MQX_PARCEL_BYTES.
 *
 * How callers work: take what is needed; on MQX_NEED_CELLS roll the micro-transaction back, call
 * mqx_stripe_guard_supply(), begin again.
 *
 * Invariants
 *   1. An item is in one extent, on one free list, in one parcel, or in use: never two of them,
 *      never none, whichever instruction a process dies at.
 *   2. free_count[] and free_entry_count are hints for what is surplus: plain stores, possibly off
 *      after a death. The lists themselves are the truth.
 *
 * Shortage. When the region cannot grow, supply first returns what all stripes keep, then punches
 * free extents of the other area, and tries again. A call may need memory of several classes, and
 * two calls may take the last extent from each other for ever, so this relief is given RELIEFS_MAX
 * times a guard, and only the first time takes from the guard's own stripe.
 *
 * Locks. Functions with a guard need its stripe lock; supply and drop take the arena lock inside
 * it. mqx_store_bytes() and mqx_free_bytes() take the arena lock alone, mqx_arena_return() and
 * _return_all() one stripe lock after the other, by trylock.
 *
 * Errors. MQX_NEED_CELLS as above; 2071 when the region is used up; 2009 from a lock; 2059 when a
 * list names an item that is not there (damage.h): the free lists lie in the region and are
 * validated step by step.
 */
#ifndef PENSTOCK_ARENA_H
#define PENSTOCK_ARENA_H

#include "region/region.h"
#include "region/size_class.h"
#include "region/slots.h"

enum {
    MQX_PARCEL_BYTES = 16384,        /* a parcel holds about so many bytes, at least one block */
    MQX_PARCEL_ITEMS = MQX_LOCKED_STEPS_MAX, /* and at most so many blocks; entries: so many */
    MQX_STRIPE_KEEP_BYTES = 1 << 20, /* a stripe gives back beyond this much per class */
};

struct mqx_stripe_guard {
    struct mqx_region *region;
    struct mqx_stripe *stripe;
    uint32_t want;    /* what MQX_NEED_CELLS asks for: class number, MQX_ENTRY_CLASS: entries */
    uint32_t reliefs; /* how often supply has freed memory elsewhere since the guard was taken */
    uint64_t surplus; /* bit set of classes: returned when the guard is dropped */
};

struct mqx_block { /* head of each block of a message; the rest is payload */
    uint32_t next; /* next block of the message, 0 = last; free-list link when free */
    uint32_t class_no;
};

/* Takes the stripe lock of `object` and fills `guard`. */
int mqx_stripe_guard_take(struct mqx_region *region, uint32_t object,
                          struct mqx_stripe_guard *guard) MQX_MUST_USE;
/* The same for the first lock of a call that has done nothing yet: as mqx_lock_enter(). */
int mqx_stripe_guard_enter(struct mqx_region *region, uint32_t object,
                           struct mqx_stripe_guard *guard) MQX_MUST_USE;
/* After commit or roll back; returns surplus before. */
void mqx_stripe_guard_drop(struct mqx_stripe_guard *guard);
static inline bool mqx_stripe_guard_held(const struct mqx_stripe_guard *guard) /* assertions */
{
    return guard->stripe != NULL && mqx_lock_held(guard->region, &guard->stripe->lock);
}
static inline void mqx_stripe_guard_commit(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->region != NULL);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    mqx_undo_commit(&guard->stripe->lock);
}
static inline void mqx_stripe_guard_rollback(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->region != NULL);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    mqx_undo_rollback(guard->region, &guard->stripe->lock);
}

/* After MQX_NEED_CELLS: rolls back and supplies what guard->want asks for. The stripe lock may have
 * been dropped and taken again, so everything read before must be read again. 0: begin
 * again. Otherwise the lock has been dropped: 2071, 2009, 2059. */
int mqx_stripe_guard_supply(struct mqx_stripe_guard *guard) MQX_MUST_USE;

/* One block of a class, off the stripe's free list: MQX_NEED_CELLS when it is empty. Content is
 * fresh memory apart from the first 4 bytes, which are 0. */
int mqx_cells_take(struct mqx_stripe_guard *guard, uint32_t class_no,
                   uint32_t *out_cell) MQX_MUST_USE;
void mqx_cells_give(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t cell);

/* One message entry (state RESERVED, other fields stale). */
int mqx_entry_take(struct mqx_stripe_guard *guard, uint32_t *out_slot) MQX_MUST_USE;
/* Sets state FREE; `message`: mqx_message() of the slot. */
void mqx_entry_give_back(struct mqx_stripe_guard *guard, uint32_t slot,
                         struct mqx_message *message);
static inline void mqx_entry_give(struct mqx_stripe_guard *guard, uint32_t slot)
{
    MQX_ASSERT(guard->region != NULL);
    mqx_entry_give_back(guard, slot, mqx_message(guard->region, slot));
}

/* A message number, rising within the stripe. */
uint64_t mqx_number_take(struct mqx_stripe_guard *guard);
/* How many numbers have been given out, and a constant: for differences. Without a lock; a moment
 * in which a stripe gets a block of numbers may count the whole block. */
uint64_t mqx_numbers_given(const struct mqx_region *region);

/* Returns all that a stripe's free lists of these classes (a bit set) have, unless its lock is
 * busy. */
int mqx_arena_return(struct mqx_region *region, uint32_t stripe, uint64_t classes) MQX_MUST_USE;

/* The head of a stripe's free list of a class, read without a lock. */
uint32_t mqx_arena_head(const struct mqx_stripe *stripe, uint32_t class_no);

/* The same of all classes and stripes, but for one of them (MQX_STRIPE_MAX: none). */
int mqx_arena_return_all(struct mqx_region *region, uint32_t except) MQX_MUST_USE;

/* undoable stores under the held stripe lock */
static inline void mqx_guard_store8(struct mqx_stripe_guard *guard, uint8_t *at, uint8_t value)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT((unsigned char *)(at + 1) <= guard->region->base + guard->region->size);
    mqx_undo_store8(guard->region->base, &guard->stripe->lock, at, value);
}
static inline void mqx_guard_store32(struct mqx_stripe_guard *guard, uint32_t *at, uint32_t value)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT((unsigned char *)(at + 1) <= guard->region->base + guard->region->size);
    mqx_undo_store32(guard->region->base, &guard->stripe->lock, at, value);
}
static inline void mqx_guard_store64(struct mqx_stripe_guard *guard, uint64_t *at, uint64_t value)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT((unsigned char *)(at + 1) <= guard->region->base + guard->region->size);
    mqx_undo_store64(guard->region->base, &guard->stripe->lock, at, value);
}

/* Cells for rare, long-lived things (attribute lists), from the extents. `owner`, a word of
 * the region that the caller may change, names the cells from (to) the micro-transaction that takes
 * (gives back) them, so that a death leaks nothing; NULL in a restart, where a region left half
 * made is discarded. 2071 also for more than MQX_BLOCK_MAX bytes. */
int mqx_store_bytes(struct mqx_region *region, const void *from, uint32_t size, uint32_t *owner,
                    uint32_t *out_cell) MQX_MUST_USE;
int mqx_free_bytes(struct mqx_region *region, uint32_t cell, uint32_t size,
                   uint32_t *owner) MQX_MUST_USE;

#endif
