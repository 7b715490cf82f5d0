/*
 * store.c - see store.h.
 */
#include "region/store.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>

struct directory {
    const char *name;
    int fd; /* below 0: not open */
};

/* In the order of dir_id. */
static void list_directories(const struct mqx_store *store, struct directory out[MQX_STORE_DIRS])
{
    const struct directory all[] = {
        {"queue manager's directory", store->dir},
        {"directory journal", store->journal_dir},
        {"directory checkpoint", store->checkpoint_dir},
        {"directory archive", store->archive_dir},
        {"directory errors", store->errors_dir},
        {"directory of shared regions", store->region_dir},
    };
    MQX_STATIC_ASSERT(MQX_ARRAY_COUNT(all) == MQX_STORE_DIRS, "an identity for each");
    MQX_ASSERT(store->io != NULL);
    for (int i = 0; i < MQX_STORE_DIRS; i++) {
        MQX_ASSERT(all[i].name[0] != '\0');
        out[i] = all[i];
    }
}

void mqx_store_note(struct mqx_store *store)
{
    struct directory all[MQX_STORE_DIRS];
    MQX_ASSERT(store->io != NULL);
    list_directories(store, all);
    for (int i = 0; i < MQX_STORE_DIRS; i++) {
        if (all[i].fd < 0 || mqx_file_id_read(store->io, all[i].fd, &store->dir_id[i]) != 0) {
            store->dir_id[i].inode = 0;
        }
        MQX_ASSERT(store->dir_id[i].inode == 0 || all[i].fd >= 0);
    }
}

/* The first descriptor that is not what it was, and why; 0 when all are. */
static int find_lost(const struct mqx_store *store, struct directory *out)
{
    struct directory all[MQX_STORE_DIRS];
    int err = 0;
    MQX_ASSERT(store->io != NULL);
    MQX_ASSERT(out != NULL);
    list_directories(store, all);
    for (int i = 0; i < MQX_STORE_DIRS && err == 0; i++) {
        const struct mqx_file_id *id = &store->dir_id[i];
        err = all[i].fd < 0 || id->inode == 0 ? 0
                                              : mqx_file_id_check(store->io, all[i].fd, id);
        *out = all[i];
    }
    return err;
}

bool mqx_store_is_whole(const struct mqx_store *store)
{
    struct directory lost;
    MQX_ASSERT(store->io != NULL);
    const int err = find_lost(store, &lost);
    MQX_ASSERT(err <= 0);
    return err == 0;
}

int mqx_store_check(const struct mqx_store *store)
{
    struct directory lost;
    MQX_ASSERT(store->io != NULL);
    const int err = find_lost(store, &lost);
    MQX_ASSERT(err <= 0);
    if (MQX_LIKELY(err == 0)) {
        return MQX_OK;
    }
    return err == -EBADF
               ? mqx_fail(MQRC_ENVIRONMENT_ERROR,
                          "this program has closed or replaced descriptor %d, which penstock had "
                          "opened for the %s", lost.fd, lost.name)
               : mqx_fail(MQRC_ENVIRONMENT_ERROR, "descriptor %d of the %s: errno %d", lost.fd,
                          lost.name, -err);
}

void mqx_store_close(struct mqx_store *store)
{
    int *const fds[] = {&store->dir,         &store->journal_dir, &store->checkpoint_dir,
                        &store->archive_dir, &store->errors_dir,  &store->region_dir};
    MQX_STATIC_ASSERT(MQX_ARRAY_COUNT(fds) == MQX_STORE_DIRS, "an identity for each");
    MQX_ASSERT(store->io != NULL);
    for (int i = MQX_STORE_DIRS - 1; i >= 0; i--) {
        MQX_ASSERT(store->dir_id[i].inode == 0 || *fds[i] >= -1); /* below: an errno of its open */
        if (store->dir_id[i].inode != 0) {
            mqx_file_id_close(store->io, fds[i], &store->dir_id[i]);
        } else if (*fds[i] >= 0) {
            (void)store->io->ops->close(store->io, *fds[i]);
        }
        *fds[i] = -1;
        store->dir_id[i].inode = 0;
    }
}

uint64_t mqx_store_live_bytes(const struct mqx_region *region)
{
    uint64_t bytes = 0;
    MQX_ASSERT(region->stripes != NULL);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        const uint64_t one = mqx_load_relaxed(&region->stripes[i].live_bytes);
        bytes += one < UINT64_C(1) << 48 ? one : 0; /* a damaged one decides nothing */
    }
    return bytes;
}
