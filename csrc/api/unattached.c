/*
 * unattached.c - what is asked of, and done to, a queue manager that this process does not start:
 * is anybody attached, and keeping everybody out while its files are deleted.
 *
 * Locks: the attach lock, between mqe_exclude() and mqe_exclude_end(). None of a region.
 */
#include "api/manager.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "penstock/engine.h"
#include "process/attach.h"
#include "process/life_table.h"
#include "process/liveness.h"
#include "process/lock_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

MQX_STATIC_ASSERT((int)MQE_PROCESSES_MAX == (int)MQX_PROCESS_MAX, "capacity of a caller's list");

/* ---- who is attached ---- */

struct asking { /* descriptors of its own, so that this process's locks are seen, too */
    struct mqx_io *io;
    int dir;
    int file;
};

static void end_asking(struct asking *asking)
{
    MQX_ASSERT(asking->io != NULL);
    if (asking->file >= 0) {
        (void)asking->io->ops->close(asking->io, asking->file);
    }
    if (asking->dir >= 0) {
        (void)asking->io->ops->close(asking->io, asking->dir);
    }
}

/* file: -1 when the queue manager was never attached. */
static int begin_asking(const char *path, struct asking *out)
{
    MQX_ASSERT(path != NULL);
    struct mqx_io *io = mqx_io_posix();
    *out = (struct asking){.io = io, .dir = io->ops->open_dir(io, path), .file = -1};
    if (out->dir < 0) {
        return mqx_io_reason(out->dir, path);
    }
    out->file = io->ops->open(io, out->dir, MQX_LOCK_FILE, MQX_IO_LOOK | MQX_IO_LINKED,
                               0);
    return out->file >= 0 || out->file == -ENOENT
               ? MQX_OK
               : mqx_io_reason(out->file, "opening the file lock");
}

static int list_living(const struct asking *asking, int32_t *pids, uint32_t capacity,
                       uint32_t *out_count)
{
    MQX_ASSERT(asking->file >= 0);
    struct mqx_life_entry entries[MQX_PROCESS_MAX];
    struct mqx_host_info here;
    int status = mqx_host_info_read(&here);
    if (status == MQX_OK) {
        status = mqx_life_table_read_all(asking->io, asking->file, entries);
    }
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && status == MQX_OK; slot++) {
        if (mqx_life_entry_lives(&entries[slot], here.pid_namespace)) {
            if (*out_count < capacity) {
                pids[*out_count] = entries[slot].pid;
            }
            *out_count += 1;
        }
    }
    return status;
}

/* Does the life table name processes of another directory? So it does in a copy, until its first
 * start, whoever works with the original. What cannot be read leaves the question to the table. */
static bool is_copied(const struct asking *asking)
{
    MQX_ASSERT(asking->dir >= 0);
    MQX_ASSERT(asking->file >= 0);
    struct mqx_io_stat facts;
    struct mqx_lock_record record;
    bool recorded = false;
    return asking->io->ops->stat(asking->io, asking->dir, &facts) == 0 &&
           mqx_lock_record_read(asking->io, asking->file, &record, &recorded) == MQX_OK &&
           recorded && (record.device != facts.device || record.inode != facts.inode);
}

int mqe_attached(const char *path, int32_t *pids, uint32_t capacity, uint32_t *out_count)
{
    MQX_ASSERT(out_count != NULL);
    MQX_ASSERT(pids != NULL && capacity > 0);
    struct asking asking;
    bool locked = false;
    mqx_about_to_block();
    *out_count = 0;
    int status = begin_asking(path, &asking);
    if (status == MQX_OK && asking.file >= 0) {
        const int err = asking.io->ops->test_lock(asking.io, asking.file, MQX_LOCK_BYTE_LIFE,
                                                  MQX_PROCESS_MAX, &locked);
        status = err < 0 ? mqx_io_reason(err, "asking for life locks") : MQX_OK;
        if (status == MQX_OK && (locked || !is_copied(&asking))) {
            status = list_living(&asking, pids, capacity, out_count);
        }
    }
    if (status == MQX_OK && locked && *out_count == 0) { /* in another PID namespace, perhaps */
        pids[0] = 0;
        *out_count = 1;
    }
    end_asking(&asking);
    return status;
}

/* ---- keeping everybody out ---- */

struct mqe_exclusion {
    struct mqx_store store; /* with descriptors alone, no region */
    struct mqx_life_lock *file;
};

/* Under the attach lock: nobody may be attached; then the region, which nobody needs, goes. */
static int exclude_everybody(struct mqe_exclusion *exclusion, const struct mqx_location *location)
{
    MQX_ASSERT(exclusion->store.region.base == NULL);
    struct mqx_store *store = &exclusion->store;
    struct mqx_lock_record record;
    struct mqx_liveness found;
    bool recorded = false;
    int status = mqx_lock_record_read(store->io, store->lock_fd, &record, &recorded);
    if (status == MQX_OK) {
        status = mqx_liveness_decide(store, location, exclusion->file, recorded ? &record : NULL,
                                     &found);
    }
    if (status == MQX_OK && found.living > 0) {
        status = mqx_fail(MQRC_OBJECT_IN_USE, "process %s is connected to it", found.names);
    }
    return status == MQX_OK ? mqx_region_file_remove_strays(store, location) : status;
}

static int enter(struct mqe_exclusion *exclusion, const char *path,
                 const struct mqe_settings *settings)
{
    MQX_ASSERT(path != NULL);
    struct mqx_store *store = &exclusion->store;
    struct mqx_location location = {
        .region_path =
            settings->region_dir != NULL ? settings->region_dir : MQX_REGION_DIRECTORY,
    };
    bool cow = false;
    int status = mqx_attach_open_roots(store, path, &location, &cow);
    if (status == MQX_OK) {
        status = mqx_host_info_read(&location.here);
    }
    if (status == MQX_OK) {
        const struct mqx_io_stat facts = {.device = location.device, .inode = location.inode};
        status = mqx_life_lock_open(store->io, store->dir, &facts, &exclusion->file);
    }
    if (status != MQX_OK) {
        return status;
    }
    store->lock_fd = mqx_life_lock_fd(exclusion->file);
    status = mqx_life_lock_enter(exclusion->file, mqx_attach_timeout_us);
    if (status == MQX_OK) {
        status = exclude_everybody(exclusion, &location);
        if (status != MQX_OK) {
            mqx_life_lock_leave(exclusion->file);
        }
    }
    return status;
}

static void free_exclusion(struct mqe_exclusion *exclusion)
{
    MQX_ASSERT(exclusion != NULL);
    if (exclusion->file != NULL) {
        mqx_life_lock_close(exclusion->file);
    }
    mqx_attach_close_directories(&exclusion->store);
    free(exclusion);
}

int mqe_exclude(const char *path, const struct mqe_settings *settings, struct mqe_exclusion **out)
{
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(out != NULL);
    struct mqe_exclusion *exclusion = calloc(1, sizeof *exclusion);
    if (exclusion == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to lock the queue manager");
    }
    exclusion->store.io = mqx_manager_table(settings);
    if (exclusion->store.io == NULL) {
        free(exclusion);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the files of a group");
    }
    memcpy(exclusion->store.name, settings->name, sizeof exclusion->store.name - 1);
    mqx_about_to_block();
    const int status = enter(exclusion, path, settings);
    if (status != MQX_OK) {
        free_exclusion(exclusion);
        return status;
    }
    *out = exclusion;
    return MQX_OK;
}

void mqe_exclude_end(struct mqe_exclusion *exclusion)
{
    MQX_ASSERT(exclusion != NULL);
    mqx_life_lock_leave(exclusion->file);
    free_exclusion(exclusion);
}
