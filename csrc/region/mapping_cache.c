/*
 * mapping_cache.c - see mapping_cache.h.
 */
#include "region/mapping_cache.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/fork_guard.h"

struct kept {
    void *base; /* NULL: none */
    uint64_t size, device, inode;
    struct mqx_io *io;
};

static struct kept *page; /* wiped at a fork */
static struct mqx_local_lock guard;

/* guard held */
static void drop(void)
{
    MQX_ASSERT(guard.owner != 0);
    MQX_ASSERT(page == NULL || page->base == NULL || page->io != NULL);
    if (page != NULL && page->base != NULL) {
        (void)page->io->ops->unmap(page->io, page->base, page->size);
        page->base = NULL;
    }
}

void mqx_mapping_cache_drop(void)
{
    mqx_local_take(&guard);
    drop();
    MQX_ASSERT(page == NULL || page->base == NULL);
    mqx_local_drop(&guard);
}

void mqx_mapping_cache_put(struct mqx_io *io, const struct mqx_io_stat *file, void *base,
                           uint64_t size)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(base != NULL);
    MQX_ASSERT(size == file->size);
    mqx_local_take(&guard);
    drop();
    if (page == NULL) {
        void *at = NULL;
        const int status = mqx_fork_wiped_page(&at);
        page = status == MQX_OK ? at : NULL;
    }
    if (page != NULL) {
        *page = (struct kept){base, size, file->device, file->inode, io};
    } else { /* without a page to remember it in, the mapping is not kept */
        mqx_error_clear();
        (void)io->ops->unmap(io, base, size);
    }
    mqx_local_drop(&guard);
}

void *mqx_mapping_cache_take(struct mqx_io *io, const struct mqx_io_stat *file)
{
    void *base = NULL;
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(file != NULL);
    mqx_local_take(&guard);
    if (page != NULL && page->base != NULL && page->io == io && page->device == file->device &&
        page->inode == file->inode && page->size == file->size) {
        base = page->base;
        page->base = NULL;
    }
    drop();
    MQX_ASSERT(page == NULL || page->base == NULL);
    mqx_local_drop(&guard);
    return base;
}
