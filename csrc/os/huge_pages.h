/*
 * huge_pages.h - blocks of shared memory that the system gives as one page.
 *
 * Purpose. Memory that is read all over, as the index and the bodies of a deep queue are, costs a
 * walk through the page tables beside each read, and these tables are not in the cache either. A
 * page of 2 MiB has none of that.
 *
 * Who lends them. For a file in memory without a name (memfd_create) the setting shmem_enabled in
 * /sys/kernel/mm/transparent_hugepage, for a file of a tmpfs the option huge= of its mount. With
 * "never", the default of both, nobody gets any. What is called here asks the system within these
 * settings; it never overrides them, as MADV_COLLAPSE would.
 *
 * How a block is asked for. It is mapped for a moment with MADV_HUGEPAGE ("advise" and
 * "within_size" want that), and its first page is populated. The system then allocates the block,
 * or that page alone. How many bytes the file has got tells which.
 *
 * Nothing of the mapping remains: were the flag set where the region itself is mapped, the kernel's
 * khugepaged would fill holes that have been punched, and memory would not go back.
 *
 * Threads: any; of one file, one at a time, as what it has got is compared. Locks: none.
 */
#ifndef PENSTOCK_HUGE_PAGES_H
#define PENSTOCK_HUGE_PAGES_H

#include "base/base.h"

enum {
    MQX_HUGE_BLOCK = 2 << 20,
    MQX_HUGE_TEXT = 96, /* bytes of a refusal, NUL included */
};

/* Allocates whole blocks of a file, none of which has memory, from `offset` on, until one is
 * refused. Gives how many bytes came in huge pages: a multiple of MQX_HUGE_BLOCK, and 0 for any
 * error. Beyond these the first page of one block may have got memory, and nothing else has. */
uint64_t mqx_huge_allocate(int fd, uint64_t offset, uint64_t size);

/* Why the system lends none for the files of that device ("" when it does): `in_memory` says that
 * they have no name. */
void mqx_huge_refusal(bool in_memory, uint64_t device, char out[MQX_HUGE_TEXT]);

/* The same with other places for the folder of settings and the list of mounts (tests). */
void mqx_huge_refusal_in(const char *settings, const char *mounts, bool in_memory, uint64_t device,
                         char out[MQX_HUGE_TEXT]);

#endif
