/*
 * fork_guard.c - see fork_guard.h.
 */
#include "os/fork_guard.h"

#include "base/error.h"

#include <sys/mman.h>

int mqx_fork_wiped_page(void **out)
{
    void *at = mmap(NULL, MQX_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (at == MAP_FAILED) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attachment");
    }
    if (madvise(at, MQX_PAGE_SIZE, MADV_WIPEONFORK) != 0) {
        (void)munmap(at, MQX_PAGE_SIZE);
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "this kernel cannot wipe a page at fork");
    }
    *out = at;
    return MQX_OK;
}
