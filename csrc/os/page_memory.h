/*
 * page_memory.h - whole pages of private memory that go back to the system when they are freed.
 *
 * Purpose. Buffers of half a MiB and more that a checkpoint or a reader needs for a moment. The C
 * library would keep them: once a block that malloc() had mapped is freed, it takes all blocks up
 * to that size from its heap, so that each process that ever took a checkpoint would stay some MiB
 * larger, and the host program's own blocks would, too.
 *
 * Invariants
 *   1. Memory is zero, aligned to a page and belongs to the caller until it is freed.
 *
 * Large arrays of the C library are another thing: they are filled once, from begin to end, and
 * take a page fault every 4 KiB unless huge pages are asked for.
 *
 * No locks. Under the address sanitizer the memory is malloc's, whose bounds it knows.
 */
#ifndef PENSTOCK_PAGE_MEMORY_H
#define PENSTOCK_PAGE_MEMORY_H

#include "base/base.h"

#include <stddef.h>

/* `size` bytes, rounded up to pages; NULL when the system has none. */
void *mqx_pages_alloc(size_t size) MQX_MUST_USE;
/* Gives them back, with the size that was asked for; NULL is allowed. */
void mqx_pages_free(void *memory, size_t size);

/* Asks for huge pages in a block of the C library's that will be filled from its begin: what is
 * small, or does not hold a whole one, stays as it is, and so does all when the system has none. */
void mqx_pages_prefer_huge(void *memory, size_t size);

#endif
