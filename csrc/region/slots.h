/*
 * slots.h - taking and giving back slots of contexts, handles and objects.
 *
 * Each of the three areas has a list of freed slots (area.free_head, linked by next_free) and a
 * high-water mark of slots ever used (area.used). A slot is taken from the list, else from above
 * the mark; the area grows when it is used up.
 *
 * Invariants
 *   1. A slot is on its free list, or its state is not FREE, or it lies above `used`: taking and
 *      giving are one micro-transaction each, so a death leaves no slot without an owner.
 *   2. The generation of an object is raised in the micro-transaction that frees its slot.
 *
 * Locks. The slots lock, taken and dropped inside; called with no lock of its rank or above held.
 *
 * Errors. 2071 when the area has no room; 2009 from the lock; 2059 when the list is damaged.
 */
#ifndef PENSTOCK_SLOTS_H
#define PENSTOCK_SLOTS_H

#include "region/layout.h"

/* Takes a slot. In the same micro-transaction it is marked as taken (context: IDLE, handle: open,
 * object: DEFINING), owned by this process, and, when `pending_ref` is not NULL, its number is
 * stored there (a context's pending reference), so that a death right after leaks nothing. */
int mqx_slot_take(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *pending_ref,
                  uint32_t *out) MQX_MUST_USE;

/* Gives it back: state FREE. */
int mqx_slot_give(struct mqx_region *region, enum mqx_area_kind kind, uint32_t slot) MQX_MUST_USE;

#endif
