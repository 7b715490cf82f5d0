/*
 * area.h - how much of an area of the region has memory, whatever damage has done to its words.
 *
 * Purpose. Every slot that was read from the region is compared with its area's capacity before it
 * addresses memory. The capacity lies in the region too, where a stray pointer may have changed it,
 * so it is stored twice: as it is, and as its complement (`capacity_inverse`; the same for `used`
 * of the areas of slots). A process keeps its own copy (reach.h) and reads the two words again only
 * when a slot lies beyond it, which is once a growth.
 *
 * Terms
 *   sure     the lesser of the two words, at most the address space that the process itself mapped
 *            for the area: what is certainly backed by memory. Damage of one word makes it smaller,
 *            never larger than the truth.
 *   used     high water of slots; the greater of its two words, at most what is sure. Damage of one
 *            word makes a loop longer than needed, never endless, and lets it leave out nothing.
 *
 * Why the lesser and the greater one. Both words are changed in one micro-transaction, but a reader
 * without the lock may come between the two stores. Then the lesser capacity is the one before, and
 * the greater high water the one after: both are true.
 *
 * Locks: none. Nothing is reported here: who holds the lock of the words compares them
 * (mqx_area_words_agree) and reports damage.
 */
#ifndef PENSTOCK_AREA_H
#define PENSTOCK_AREA_H

#include "region/layout.h"

/* Bytes of an item. */
uint32_t mqx_area_item_size(enum mqx_area_kind kind);

/* Bytes of the area that are certainly backed by memory; whether this process has mapped them is
 * another question (reach.h). */
uint64_t mqx_area_sure(const struct mqx_region *region, enum mqx_area_kind kind);

/* Items for which there is certainly memory. */
uint64_t mqx_area_items(const struct mqx_region *region, enum mqx_area_kind kind);

/* Slots given out so far, slot 0 included: an upper bound for loops over them. */
uint64_t mqx_area_used(const struct mqx_region *region, enum mqx_area_kind kind);

/* The same of a copy of the area's words, with so much address space. */
uint64_t mqx_area_used_within(const struct mqx_area *area, enum mqx_area_kind kind, uint64_t space);

/* Do both words of capacity and high water say the same? Growth and slots lock held. */
bool mqx_area_words_agree(uint64_t word, uint64_t inverse);

/* Sets the high water of an area of slots: a restart, before the region is ready. */
void mqx_area_set_used(struct mqx_area *area, uint64_t used);

#endif
