/*
 * attach.c - see attach.h.
 *
 * Locks: the attach lock is held around everything that decides which process is first or last.
 * Locks of the region are taken one at a time; the attach lock is never taken while one is held.
 */
#include "process/attach.h"

#include "base/amq_codes.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "os/fork_guard.h"
#include "os/limits.h"
#include "process/error_log.h"
#include "process/life_table.h"
#include "process/liveness.h"
#include "process/process_table.h"
#include "process/reaper.h"
#include "process/unit_access.h"
#include "queue/delayed.h"
#include "process/region_file.h"
#include "recovery/checkpoint.h"
#include "recovery/checkpoint_reserve.h"
#include "recovery/orphan_region.h"
#include "region/extents.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t mqx_attach_timeout_us = 30000000;

/* What an attachment keeps open: six directories, the file `lock`, the region, the segment being
 * written and one in reserve; and for a moment a checkpoint, a log, a segment and a listing. */
enum { DESCRIPTORS = 15 };

struct attaching { /* an attach in progress */
    struct mqx_store *store;
    struct mqx_location location;
    struct mqx_life_lock *file;
    struct mqx_attach_report *report;
    bool moved;  /* the record is of another directory: a copy */
    bool created;   /* this attach created the region */
    bool cache_in_doubt;  /* a flush had failed before this start */
    bool cow;
};

/* ---- directories ---- */

enum { OVERFLOW_USER = 65534 }; /* who owns what belongs to no user of this namespace */

static int stat_directory(struct mqx_io *io, int fd, const char *name, struct mqx_io_stat *facts)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(name != NULL);
    const int err = io->ops->stat(io, fd, facts);
    if (err < 0) {
        return mqx_io_reason(err, name);
    }
    return S_ISDIR(facts->mode) ? MQX_OK : mqx_fail(MQRC_ENVIRONMENT_ERROR,
                                                    "%s is not a directory", name);
}

/* Rule 39 in group mode. Whoever is not in the group would create files that lock the others out;
 * the kernel keeps out everybody but root. */
static int verify_member(const struct mqx_io *io, const char *name)
{
    MQX_ASSERT(io->shared);
    MQX_ASSERT(name != NULL);
    if (mqx_io_is_member(io->group)) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_NOT_AUTHORIZED, "%s is shared by group %u, and user %u is not in it", name,
                    io->group, (unsigned)geteuid());
}

/* Rules 37 and 39, of the queue manager's directory and those in it. */
static int verify_directory(struct mqx_io *io, int fd, const char *name, struct mqx_io_stat *facts)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(facts != NULL);
    const int status = stat_directory(io, fd, name, facts);
    if (status != MQX_OK || mqx_io_is_ours(io, facts)) {
        return status == MQX_OK && io->shared ? verify_member(io, name) : status;
    }
    if (io->shared) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "%s belongs to group %u with mode %03o; expected group %u and 770", name,
                        facts->group, facts->mode & 0777u, io->group);
    }
    if ((facts->mode & 022u) != 0) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "%s may be written by others (mode %03o): chmod go-w, or create the queue "
                        "manager with --group", name, facts->mode & 0777u);
    }
    return mqx_fail(MQRC_NOT_AUTHORIZED,
                    "%s belongs to user %u; files that user %u makes there would lock the owner "
                    "out", name, facts->owner, (unsigned)geteuid());
}

/* The directory of regions may be one for all users if its sticky bit protects our files there.
 * Its owner could remove them: root, or who owns what we cannot tell apart in a user namespace. */
static int verify_region_directory(struct mqx_io *io, int fd, const char *name)
{
    MQX_ASSERT(io != NULL);
    struct mqx_io_stat facts;
    const int status = stat_directory(io, fd, name, &facts);
    if (status != MQX_OK || (io->shared && mqx_io_is_ours(io, &facts))) {
        return status;
    }
    if ((facts.mode & 022u) != 0 && (facts.mode & S_ISVTX) == 0) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "region_dir %s may be written by others and has no sticky bit (mode %03o)",
                        name, facts.mode & 0777u);
    }
    if (facts.owner != 0 && facts.owner != (uint32_t)geteuid() && facts.owner != OVERFLOW_USER) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "region_dir %s belongs to user %u, who could remove the region", name,
                        facts.owner);
    }
    return MQX_OK;
}

static int open_sub(struct mqx_store *store, const char *name, bool make, int *out)
{
    MQX_ASSERT(store->dir >= 0);
    MQX_ASSERT(*out == -1);
    struct mqx_io *io = store->io;
    struct mqx_io_stat facts;
    int fd = io->ops->open_sub(io, store->dir, name);
    if (fd == -ENOENT && make) {
        const int err = io->ops->make_sub(io, store->dir, name, 0700);
        fd = err < 0 ? err : io->ops->open_sub(io, store->dir, name);
    }
    if (fd == -ENOENT) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "the queue manager's directory has no %s", name);
    }
    if (fd < 0) {
        return mqx_io_reason(fd, name);
    }
    *out = fd;
    return verify_directory(io, fd, name, &facts);
}

/* The name of the archive must be on the medium before a segment moves into it. */
static int open_archive(struct mqx_store *store)
{
    MQX_ASSERT(store->archive_dir == -1);
    if (store->plan.linear == 0) {
        return MQX_OK;
    }
    int status = open_sub(store, "archive", true, &store->archive_dir);
    if (status == MQX_OK) {
        const int err = store->io->ops->sync_dir(store->io, store->dir);
        status = err < 0 ? mqx_io_reason(err, "flushing the directory") : MQX_OK;
    }
    return status;
}

static int verify_media(struct mqx_store *store, const char *region_path, bool *out_cow)
{
    MQX_ASSERT(store->dir >= 0);
    MQX_ASSERT(store->region_dir >= 0);
    enum mqx_io_medium medium = MQX_MEDIUM_REFUSED;
    int err = store->io->ops->medium(store->io, store->dir, &medium);
    if (err == 0 && medium == MQX_MEDIUM_REFUSED) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the queue manager's directory lies on a file system that is not allowed "
                        "(NFS, SMB, FUSE, 9p or unknown): locks and mappings are not "
                        "coherent there");
    }
    *out_cow = medium == MQX_MEDIUM_COW;
    if (err == 0) {
        err = store->io->ops->medium(store->io, store->region_dir, &medium);
    }
    if (err < 0) {
        return mqx_io_reason(err, "asking for the file system");
    }
    if (medium != MQX_MEDIUM_MEMORY) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "region_dir %s is not on a tmpfs", region_path);
    }
    return MQX_OK;
}

static void clear_descriptors(struct mqx_store *store)
{
    store->dir = store->journal_dir = store->checkpoint_dir = -1;
    store->errors_dir = store->archive_dir = store->region_dir = store->lock_fd = -1;
}

int mqx_attach_open_roots(struct mqx_store *store, const char *path, struct mqx_location *location,
                          bool *out_cow)
{
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(location->region_path != NULL);
    struct mqx_io_stat facts;
    clear_descriptors(store);
    store->dir = store->io->ops->open_dir(store->io, path);
    if (store->dir < 0) {
        return mqx_io_reason(store->dir, path);
    }
    int status = verify_directory(store->io, store->dir, path, &facts);
    if (status != MQX_OK) {
        return status;
    }
    location->device = facts.device;
    location->inode = facts.inode;
    store->region_dir = store->io->ops->open_dir(store->io, location->region_path);
    if (store->region_dir < 0) {
        return mqx_io_reason(store->region_dir, location->region_path);
    }
    status = verify_region_directory(store->io, store->region_dir, location->region_path);
    return status == MQX_OK ? verify_media(store, location->region_path, out_cow) : status;
}

static int open_directories(struct attaching *a, const char *path)
{
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(a->store->region.base == NULL);
    struct mqx_store *store = a->store;
    int status = mqx_attach_open_roots(store, path, &a->location, &a->cow);
    if (status == MQX_OK) {
        status = open_sub(store, "journal", false, &store->journal_dir);
    }
    if (status == MQX_OK) {
        status = open_sub(store, "checkpoint", false, &store->checkpoint_dir);
    }
    if (status == MQX_OK) {
        status = open_archive(store);
    }
    return status == MQX_OK ? open_sub(store, "errors", true, &store->errors_dir) : status;
}

void mqx_attach_close_directories(struct mqx_store *store)
{
    MQX_ASSERT(store->region.base == NULL);
    mqx_store_close(store);
}

/* ---- attachment slots ---- */

static int enter_table(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot == store->region.process);
    const struct mqx_process *process = mqx_process_slot(&store->region, slot);
    const struct mqx_life_entry entry = {.pid = process->pid,
                                         .thread = process->life_thread,
                                         .start_time = process->start_time,
                                         .pid_namespace = process->pid_namespace};
    return mqx_life_table_write(store->io, store->lock_fd, slot, &entry);
}

/* MQX_BUSY when all are taken. */
static int try_take_slot(struct attaching *a)
{
    MQX_ASSERT(a->store->region.process == 0);
    MQX_ASSERT(a->file != NULL);
    struct mqx_store *store = a->store;
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        if (mqx_load_acquire(&mqx_process_slot(&store->region, slot)->state) != MQX_PROC_FREE) {
            continue;
        }
        int status = mqx_life_lock_claim(a->file, slot, store);
        if (status == MQX_BUSY) {
            continue; /* that process is leaving: it releases its life lock last */
        }
        if (status == MQX_OK) {
            status = mqx_process_publish(store, slot, a->location.here.pid_namespace);
            if (status != MQX_OK) {
                mqx_life_lock_release(a->file, slot, store);
            }
        }
        return status == MQX_OK ? enter_table(store, slot) : status;
    }
    return MQX_BUSY;
}

static int take_slot(struct attaching *a)
{
    MQX_ASSERT(a->store->region.base != NULL);
    uint32_t dead = 0;
    int status = try_take_slot(a);
    if (status == MQX_BUSY) { /* rule 27: slots of dead processes do not count */
        status = mqx_reap_unless_busy(a->store, &dead);
        status = status == MQX_OK ? try_take_slot(a) : status;
    }
    return status == MQX_BUSY ? mqx_fail(MQRC_MAX_CONNS_LIMIT_REACHED,
                                         "%d processes are attached, which is the most",
                                         MQX_PROCESS_MAX - 1)
                              : status;
}

/* ---- the first process: restart ---- */

static int recover(struct attaching *a, const struct mqx_orphan_region *orphan)
{
    MQX_ASSERT(a->store->region.process != 0);
    MQX_ASSERT(a->store->region.header->ready == 0);
    struct mqx_store *store = a->store;
    int status = orphan->broken ? mqx_recover_distrust_cache(store) : MQX_OK; /* rule 14 */
    if (status == MQX_OK) {
        status = mqx_journal_attach(store);
    }
    if (status == MQX_OK) {
        status = mqx_recover(store, orphan->in_flight, orphan->in_flight_count,
                             &a->report->recovery);
    }
    if (status == MQX_OK) {
        status = mqx_catalog_loaded(store);
    }
    if (status == MQX_OK) {
        store->region.header->np_discarded = orphan->np_discarded;
        a->report->first = true;
        a->report->same_boot_orphan = orphan->read;
        a->report->np_discarded = orphan->np_discarded;
        mqx_store_release(&store->region.header->ready, 1u);
    }
    return status;
}

/* Of a directory that shares its files with a copy (cp -al) nothing is touched: the copy might be
 * started, too. Every file is looked at when it is opened; `lock` is the first one. */
static int refuse_linked(struct mqx_store *store)
{
    struct mqx_io_stat facts;
    MQX_ASSERT(store->lock_fd >= 0);
    MQX_ASSERT(store->region.base == NULL);
    const int err = store->io->ops->stat(store->io, store->lock_fd, &facts);
    return err < 0           ? mqx_io_reason(err, "reading the state of the file lock")
           : facts.links > 1 ? mqx_io_reason(-EMLINK, "starting with the file lock")
                             : MQX_OK;
}

static int restart(struct attaching *a, const struct mqx_lock_record *record, bool recorded)
{
    MQX_ASSERT(!a->created);
    MQX_ASSERT(a->store->region.base == NULL);
    struct mqx_store *store = a->store;
    struct mqx_orphan_region orphan = {.read = false};
    int status = refuse_linked(store);
    if (status != MQX_OK) {
        return status;
    }
    if (recorded && mqx_record_matches(record, &a->location) &&
        mqx_region_file_is_named_for(&a->location, record->region)) {
        mqx_orphan_region_read(store->io, store->region_dir, record->region, record->incarnation,
                               store->qm_id, &orphan);
    }
    if (recorded) {
        a->moved = record->device != a->location.device || record->inode != a->location.inode;
        if (!a->moved && mqx_region_file_is_named_for(&a->location, record->region)) {
            mqx_region_file_remove(store, record->region);
        }
    }
    a->cache_in_doubt = orphan.broken;
    status = mqx_region_file_remove_strays(store, &a->location);
    if (status == MQX_OK) {
        status = mqx_life_table_clear(store->io, store->lock_fd);
    }
    if (status == MQX_OK) {
        status = mqx_region_file_create(store, &a->location);
    }
    if (status == MQX_OK) {
        a->created = true;
        status = take_slot(a);
    }
    if (status == MQX_OK) {
        status = recover(a, &orphan);
    }
    mqx_orphan_region_free(&orphan);
    return status;
}

/* ---- further processes: join ---- */

static int refuse_stopped(const struct mqx_store *store, const char *holders)
{
    MQX_ASSERT(holders != NULL);
    const bool ended = mqx_region_stopped(&store->region) == MQX_STOP_ENDED;
    char cause[MQX_STOP_TEXT] = "";
    const bool told = !ended && mqx_region_stop_cause(&store->region, cause);
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE,
                    "the queue manager %s has %s; it restarts when process %s has left%s%s",
                    store->name, ended ? "been ended" : "stopped", holders,
                    told ? "; it stopped because of: " : "", cause);
}

int mqx_attach_check_quiescing(const struct mqx_store *store, bool control, const char *holders)
{
    MQX_ASSERT(store->region.base != NULL);
    char own[16];
    if (control || mqx_load_acquire(&store->region.header->quiescing) == 0) {
        return MQX_OK;
    }
    if (holders == NULL) {
        (void)snprintf(own, sizeof own, "%d", (int)getpid());
        holders = own;
    }
    return mqx_fail(MQRC_Q_MGR_QUIESCING,
                    "the queue manager %s is quiescing: it takes no new connections, and ends "
                    "when process %s has left", store->name, holders);
}

static int join(struct attaching *a, const struct mqx_lock_record *record, bool recorded,
                const struct mqx_liveness *found)
{
    const char *holders = found->names;
    const struct mqx_peers peers = {found->pids, found->living};
    MQX_ASSERT(!a->created);
    MQX_ASSERT(a->store->region.base == NULL);
    struct mqx_store *store = a->store;
    uint32_t dead = 0;
    if (!recorded) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the file lock is damaged while process %s is attached", holders);
    }
    int status = mqx_region_file_join(store, &a->location, record, holders, &peers);
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_load_acquire(&store->region.header->ready) == 0 ||
        mqx_region_stopped(&store->region) != MQX_RUNNING) {
        return refuse_stopped(store, holders);
    }
    status = mqx_attach_check_quiescing(store, store->control, holders);
    if (status == MQX_OK) {
        status = take_slot(a);
    }
    if (status == MQX_OK) {
        status = mqx_journal_attach(store);
    }
    return status == MQX_OK ? mqx_reap_unless_busy(store, &dead) : status;
}

/* ---- attach ---- */

static int attach_locked(struct attaching *a)
{
    MQX_ASSERT(a->store->lock_fd >= 0);
    struct mqx_lock_record record;
    struct mqx_liveness found;
    bool recorded = false;
    int status = mqx_lock_record_read(a->store->io, a->store->lock_fd, &record, &recorded);
    if (status == MQX_OK) {
        status = mqx_liveness_decide(a->store, &a->location, a->file, recorded ? &record : NULL,
                                     &found);
    }
    if (status != MQX_OK) {
        return status;
    }
    return found.living > 0 ? join(a, &record, recorded, &found)
                            : restart(a, &record, recorded);
}

/* This process's life signs: it has left, whatever becomes of its mapping. May be repeated. */
static void release_life(struct mqx_store *store, struct mqx_life_lock *file)
{
    MQX_ASSERT(file != NULL);
    static const struct mqx_life_entry none;
    const uint32_t slot = store->region.process;
    if (mqx_load_acquire(&store->life) != NULL) {
        mqx_process_end_life(store, true);
        if (mqx_life_lock_is_usable(file)) {
            mqx_ignore(mqx_life_table_write(store->io, store->lock_fd, slot, &none));
        }
    }
    mqx_life_lock_release(file, slot, store);
}

/* Withdraws the life signs and unmaps the region. */
static void release_region(struct mqx_store *store, struct mqx_life_lock *file, bool unlink_region)
{
    MQX_ASSERT(file != NULL);
    if (store->region.base != NULL) {
        const uint32_t slot = store->region.process;
        mqx_journal_detach(store);
        release_life(store, file);
        if (unlink_region) { /* if unlinking fails, the slot must not look attached */
            mqx_store_release(&mqx_process_slot(&store->region, slot)->state,
                              (uint32_t)MQX_PROC_FREE);
            mqx_region_file_remove(store, store->region_name);
        }
        if (store->keep_mapping && !unlink_region) {
            mqx_region_leave(&store->region);
        } else {
            mqx_region_close(&store->region);
        }
    }
}

/* The region that a failed start created is kept when a failed flush, now or before, forbids the
 * next start to trust the page cache (rule 14): a region that never became ready says so. */
static bool must_keep_region(const struct attaching *a)
{
    MQX_ASSERT(a->created);
    const struct mqx_store *store = a->store;
    return a->cache_in_doubt || (store->region.base != NULL &&
                           mqx_region_stopped(&store->region) != MQX_RUNNING);
}

static int attach_under_lock(struct attaching *a)
{
    MQX_ASSERT(a->file != NULL);
    int status = mqx_life_lock_enter(a->file, mqx_attach_timeout_us);
    if (status != MQX_OK) {
        return status;
    }
    status = attach_locked(a);
    MQX_ASSERT(status != MQX_OK || a->store->region.process != 0);
    if (status != MQX_OK) {
        if (!a->created && a->store->region.base != NULL && a->store->region.process != 0) {
            /* an incomplete attachment to a running region; if this fails, the reaper does it */
            mqx_ignore(mqx_reap_process(a->store, a->store->region.process));
        }
        char text[512]; /* kept: the clean-up below may fail, too, and replace it */
        (void)snprintf(text, sizeof text, "%s", mqx_error_text());
        release_region(a->store, a->file, a->created && !must_keep_region(a));
        status = mqx_fail(status, "%s", text);
    }
    mqx_life_lock_leave(a->file);
    return status;
}

static void log_start(const struct attaching *a)
{
    MQX_ASSERT(a->store->errors_dir >= 0);
    struct mqx_store *store = a->store;
    const struct mqx_recovery_report *recovery = &a->report->recovery;
    if (!a->report->first) {
        return;
    }
    if (a->moved) {
        mqx_log(store, MQX_AMQ_DIRECTORY_MOVED, 'W',
                "the directory of %s is a copy or was restored: the original had another inode",
                store->name);
    }
    if (a->cow) {
        mqx_log(store, MQX_AMQ_COW_MEDIUM, 'W',
                "%s lies on a copy-on-write file system: journal space that open units of work "
                "need cannot be reserved", store->name);
    }
    mqx_log(store, MQX_AMQ_STARTED, 'I',
            "queue manager %s started after %s end: %llu objects, %llu messages, %llu records "
            "replayed, %llu units dropped, torn tail of %llu bytes", store->name,
            recovery->clean ? "an orderly" : "a disorderly", (unsigned long long)recovery->objects,
            (unsigned long long)recovery->messages, (unsigned long long)recovery->records_replayed,
            (unsigned long long)recovery->units_dropped, (unsigned long long)recovery->torn_bytes);
    if (recovery->damaged_checkpoint != 0) {
        mqx_log(store, MQX_AMQ_CHECKPOINT_DAMAGED, 'E',
                "the newest checkpoint of %s is damaged (%s): it was started from the one before "
                "and more of the journal. No persistent message is lost; non-persistent ones that "
                "an orderly end had kept are. The next checkpoint replaces it", store->name,
                recovery->damage);
    }
    if (a->report->np_discarded > 0) {
        mqx_log(store, MQX_AMQ_NP_DISCARDED, 'W',
                "%llu non-persistent messages were discarded: the last process of %s had not left "
                "in order", (unsigned long long)a->report->np_discarded, store->name);
    }
}

int mqx_attach(struct mqx_store *store, const char *path, const char *region_path,
               struct mqx_attach_report *out)
{
    MQX_ASSERT(store->io != NULL);
    MQX_ASSERT(path != NULL);
    MQX_ASSERT(out != NULL);
    struct attaching a = {
        .store = store,
        .report = out,
        .location.region_path = region_path != NULL ? region_path : MQX_REGION_DIRECTORY,
        .location.automatic = region_path == NULL,
    };
    *out = (struct mqx_attach_report){.first = false};
    store->region = (struct mqx_region){.base = NULL};
    store->life = NULL;
    store->files = NULL;
    clear_descriptors(store);
    int status = mqx_limits_check(DESCRIPTORS, store->plan.segment_size);
    if (status == MQX_OK) {
        status = mqx_host_info_read(&a.location.here);
    }
    if (status == MQX_OK) {
        status = open_directories(&a, path);
    }
    if (status == MQX_OK) {
        const struct mqx_io_stat facts = {.device = a.location.device, .inode = a.location.inode};
        status = mqx_life_lock_open(store->io, store->dir, &facts, &a.file);
    }
    if (status == MQX_OK) {
        store->lock_fd = mqx_life_lock_fd(a.file);
        status = mqx_fork_guard_add(store);
    }
    if (status == MQX_OK) {
        status = attach_under_lock(&a);
        if (status == MQX_OK) {
            log_start(&a);
            return MQX_OK;
        }
        mqx_fork_guard_remove(store);
    }
    if (a.file != NULL) {
        mqx_life_lock_close(a.file);
    }
    mqx_attach_close_directories(store);
    store->lock_fd = -1;
    return status;
}

/* ---- leaving ---- */

/* Non-persistent messages that an orderly end in that mode does not keep; no other process is
 * attached. */
static uint64_t count_np_lost(const struct mqx_region *region, int mode)
{
    MQX_ASSERT(region->header != NULL);
    const uint64_t used = mqx_area_used(region, MQX_AREA_MESSAGES);
    uint64_t lost = 0;
    for (uint64_t slot = 1; (slot = mqx_message_next_used(region, slot)) < used; slot++) {
        const struct mqx_message *message = mqx_message(region, (uint32_t)slot);
        if (message == NULL || (message->flags & MQX_MSGF_PERSISTENT) != 0 ||
            (!mqx_delayed_or_available(message) && message->state != MQX_MSG_LOCKED &&
             message->state != MQX_MSG_PUT)) { /* of a prepared unit: there are no others now */
            continue;
        }
        const struct mqx_object *object = mqx_object(region, message->object);
        const bool deleted = object != NULL && object->state == MQX_OBJ_DELETING;
        lost += !deleted &&
                !(mode == MQX_CHECKPOINT_CLEAN && object != NULL && object->np_life > 0);
    }
    return lost;
}

/* Reaps dead processes and writes the end; the maintenance lock is free, or its owner is dead. */
static int orderly_end(struct mqx_store *store, int mode, uint64_t *out_np_discarded)
{
    MQX_ASSERT(mode == MQX_CHECKPOINT_CLEAN || mode == MQX_CHECKPOINT_CLEAN_NO_IMAGE);
    struct mqx_region *region = &store->region;
    uint32_t dead = 0;
    int status = mqx_lock_take(region, &region->header->maintenance_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_reap(store, &dead);
    if (status == MQX_OK) {
        *out_np_discarded = count_np_lost(region, mode);
        status = mqx_checkpoint(store, mode);
    }
    if (status == MQX_OK) {
        mqx_checkpoint_reserve_cut(store);
        status = mqx_journal_end_spares(store);
    }
    mqx_lock_drop(region, &region->header->maintenance_lock);
    return status;
}

static void log_end(struct mqx_store *store, int status, uint64_t np_discarded)
{
    MQX_ASSERT(store->errors_dir >= 0);
    if (status != MQX_OK) {
        mqx_log(store, MQX_AMQ_END_FAILED, 'E',
                "the orderly end of %s could not be written: %s (%s)", store->name,
                mqx_reason_name(status), mqx_error_text());
        return;
    }
    if (np_discarded > 0) {
        mqx_log(store, MQX_AMQ_NP_DISCARDED, 'W',
                "%llu non-persistent messages were discarded when queue manager %s ended",
                (unsigned long long)np_discarded, store->name);
    }
    mqx_log(store, MQX_AMQ_ENDED, 'I', "queue manager %s ended", store->name);
}

/* A process that has given up the rights it attached with (setuid) cannot write the end: it leaves
 * the region as a process that is killed does, and the next start, by whoever may, recovers. */
static int leave_without_end(const struct mqx_region *region, uint64_t *out_np_discarded)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(mqx_region_stopped(region) == MQX_RUNNING);
    *out_np_discarded = count_np_lost(region, MQX_CHECKPOINT_CLEAN_NO_IMAGE);
    return MQX_OK;
}

/* Ends the work of this process and, when no other one is attached, the queue manager. `entered`:
 * the attach lock is held, so it can be decided whether this process is the last one. */
static int leave_region(struct mqx_store *store, struct mqx_life_lock *file, bool entered, int mode,
                        bool *out_last, uint64_t *out_np_discarded)
{
    MQX_ASSERT(store->region.process != 0);
    MQX_ASSERT(!*out_last);
    struct mqx_region *region = &store->region;
    bool anyone = true;
    mqx_store_release(&mqx_process_slot(region, region->process)->leaving, 1u);
    int status = mqx_unit_enter_all(store);
    if (status == MQX_OK) {
        status = mqx_reap_process(store, region->process);
    }
    if (status == MQX_OK && entered) {
        status = mqx_liveness_others(store, file, &anyone);
    }
    if (status == MQX_OK && !anyone) {
        status = orderly_end(store, mode, out_np_discarded);
        log_end(store, status, *out_np_discarded);
        *out_last = status == MQX_OK; /* else the region stays: the next start reads it */
        if (status == MQRC_NOT_AUTHORIZED && mqx_region_stopped(region) == MQX_RUNNING) {
            status = leave_without_end(region, out_np_discarded);
        }
    }
    return status;
}

/* A process that cannot map the region as it is leaves its work to the others: for them it looks
 * like one that has died (process_table.h). */
static bool can_finish(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    MQX_ASSERT(region->process != 0);
    const bool can = mqx_load_acquire(&region->reach.lost) == 0 && mqx_reach_all(region);
    if (!can) {
        mqx_process_end_life(store, false);
    }
    return can;
}

int mqx_detach(struct mqx_store *store, int mode, uint64_t *out_np_discarded)
{
    MQX_ASSERT(store->io != NULL);
    MQX_ASSERT(out_np_discarded != NULL);
    int status = MQX_OK;
    bool last = false;
    *out_np_discarded = 0;
    if (mqx_forked(store)) {
        mqx_attach_forget(store);
        return MQX_OK;
    }
    struct mqx_life_lock *file = mqx_life_lock_find(store->io, store->lock_fd);
    MQX_ASSERT(file != NULL);
    const bool running =
        mqx_region_stopped(&store->region) == MQX_RUNNING && can_finish(store);
    const int entered = running ? mqx_life_lock_enter(file, mqx_attach_timeout_us) : MQX_BUSY;
    if (running) {
        status = leave_region(store, file, entered == MQX_OK, mode, &last, out_np_discarded);
        if (status == MQX_OK && entered != MQX_OK) {
            status = entered; /* it may have been the last one, and then the end is missing */
        }
    }
    release_region(store, file, last);
    if (entered == MQX_OK) {
        mqx_life_lock_leave(file);
    }
    mqx_fork_guard_remove(store);
    store->lock_fd = -1;
    mqx_life_lock_close(file);
    mqx_attach_close_directories(store);
    return status;
}

void mqx_attach_release_life(struct mqx_store *store)
{
    MQX_ASSERT(store->region.process != 0);
    struct mqx_life_lock *file = mqx_life_lock_find(store->io, store->lock_fd);
    if (file != NULL) {
        release_life(store, file);
    }
}

int mqx_attach_has_others(struct mqx_store *store, bool *anyone)
{
    struct mqx_life_lock *file = mqx_life_lock_find(store->io, store->lock_fd);
    MQX_ASSERT(file != NULL);
    MQX_ASSERT(store->region.process != 0);
    return mqx_liveness_others(store, file, anyone);
}

void mqx_attach_forget(struct mqx_store *store)
{
    MQX_ASSERT(store != NULL);
    struct mqx_life_lock *file = mqx_life_lock_find(store->io, store->lock_fd);
    if (file != NULL) {
        mqx_life_lock_forget(file);
    }
    mqx_process_end_life(store, false);
    mqx_fork_guard_remove(store);
    store->region = (struct mqx_region){.base = NULL};
    store->files = NULL;
    clear_descriptors(store);
}
