/*
 * liveness.c - see liveness.h.
 */
#include "process/liveness.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/process_files.h"
#include "process/life_table.h"
#include "recovery/orphan_region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_US = 5000, NAMED_MAX = 8 };

uint64_t mqx_liveness_patience_us = 2000000;

static void name_process(struct mqx_liveness *found, int32_t pid)
{
    MQX_ASSERT(found != NULL);
    size_t used = found->living == 0 ? 0 : strlen(found->names);
    if (found->living < NAMED_MAX) {
        (void)snprintf(found->names + used, sizeof found->names - used, "%s%d",
                       found->living == 0 ? "" : ", ", pid);
    }
    MQX_ASSERT(found->living < MQX_PROCESS_MAX);
    found->pids[found->living++] = pid;
}

static void finish_names(struct mqx_liveness *found)
{
    MQX_ASSERT(found != NULL);
    const size_t used = strlen(found->names);
    if (found->living == 0) {
        (void)snprintf(found->names, sizeof found->names, "none");
    } else if (found->living > NAMED_MAX) {
        (void)snprintf(found->names + used, sizeof found->names - used, " and %u more",
                       found->living - NAMED_MAX);
    }
}

struct looking { /* what is looked at */
    struct mqx_store *store;
    const struct mqx_location *location;
    const struct mqx_lock_record *record; /* NULL: the lock file has none */
    struct mqx_life_entry entries[MQX_PROCESS_MAX];
};

/* Only processes of the recorded namespace attach. If that is ours, a slot that says otherwise, or
 * has impossible numbers, is damaged: the table then has the right ones. */
static bool lives_by_word(const struct looking *looking, uint32_t slot,
                          const struct mqx_process *process)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    const uint64_t here = looking->location->here.pid_namespace;
    const bool may_live = mqx_process_may_live(process, here);
    return may_live && (mqx_process_is_askable(process, here) ||
                        looking->record->where.pid_namespace != here ||
                        mqx_life_entry_lives(&looking->entries[slot], here));
}

/* Who may have a memory file open: everybody in the life table, living or not. */
static uint32_t list_peers(const struct looking *looking, int32_t out[MQX_PROCESS_MAX])
{
    uint32_t count = 0;
    MQX_ASSERT(looking->location->here.pid_namespace != 0);
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        const struct mqx_life_entry *entry = &looking->entries[slot];
        if (entry->pid > 0 && entry->pid_namespace == looking->location->here.pid_namespace) {
            out[count++] = entry->pid;
        }
    }
    return count;
}

/* By the life words of the region's file; *out_read is false when it is missing or not readable. */
static int look_at_words(const struct looking *looking, struct mqx_liveness *found, bool *out_read)
{
    MQX_ASSERT(found->living == 0);
    const struct mqx_store *store = looking->store;
    int32_t pids[MQX_PROCESS_MAX];
    const struct mqx_peers peers = {pids, list_peers(looking, pids)};
    struct mqx_process *processes = calloc(MQX_PROCESS_MAX, sizeof *processes);
    if (processes == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attachment");
    }
    *out_read = mqx_orphan_region_processes(store->io, store->region_dir, looking->record->region,
                                            &peers, looking->record->incarnation, processes);
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && *out_read; slot++) {
        if (lives_by_word(looking, slot, &processes[slot])) {
            name_process(found, processes[slot].pid);
        }
    }
    free(processes);
    return MQX_OK;
}

/* Is the lock file of this boot and of this directory? That of a copy names processes of the
 * original. */
static bool is_of_this_place(const struct mqx_lock_record *record,
                             const struct mqx_location *location)
{
    MQX_ASSERT(record != NULL);
    return memcmp(record->where.boot_id, location->here.boot_id, sizeof record->where.boot_id) ==
               0 &&
           record->device == location->device && record->inode == location->inode;
}

/* By the life table. Processes that cannot be asked for, of another PID namespace, boot or
 * directory, live as long as the lock is held. */
static void look_at_table(const struct looking *looking, bool ours, struct mqx_liveness *found)
{
    MQX_ASSERT(found->living == 0);
    const uint64_t here = looking->location->here.pid_namespace;
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        const struct mqx_life_entry *entry = &looking->entries[slot];
        const bool askable = ours && entry->pid_namespace == here;
        if (entry->pid > 0 && (askable ? mqx_life_entry_lives(entry, here) : found->locked)) {
            name_process(found, entry->pid);
        }
    }
}

static int look(struct looking *looking, struct mqx_life_lock *file, struct mqx_liveness *out)
{
    MQX_ASSERT(looking->store->lock_fd >= 0);
    const struct mqx_lock_record *record = looking->record;
    bool read = false;
    *out = (struct mqx_liveness){.locked = false};
    int status = mqx_life_lock_is_any_held(file, 0, &out->locked);
    if (status == MQX_OK) {
        status = mqx_life_table_read_all(looking->store->io, looking->store->lock_fd,
                                         looking->entries);
    }
    const bool ours = record == NULL || is_of_this_place(record, looking->location);
    if (status == MQX_OK && ours && record != NULL) {
        status = look_at_words(looking, out, &read);
    }
    if (status == MQX_OK && !read) {
        look_at_table(looking, ours, out);
    }
    finish_names(out);
    return status;
}

static int refuse(const struct mqx_store *store, const struct mqx_liveness *found)
{
    MQX_ASSERT(found->locked != (found->living > 0));
    if (found->living > 0) {
        return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE,
                        "process %s is attached to the queue manager %s, but has closed its "
                        "descriptor of the file lock (closerange?); end that process",
                        found->names, store->name);
    }
    char pids[MQX_LIVING_TEXT_SIZE];
    mqx_processes_with_file(store->lock_fd, pids, sizeof pids);
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE,
                    "no process that was attached to the queue manager %s lives, but a child of "
                    "one holds the lock on the file lock; end it (open in process %s)",
                    store->name, pids);
}

int mqx_liveness_decide(struct mqx_store *store, const struct mqx_location *location,
                        struct mqx_life_lock *file, const struct mqx_lock_record *record,
                        struct mqx_liveness *out)
{
    MQX_ASSERT(store->region.base == NULL);
    MQX_ASSERT(location->here.pid_namespace != 0);
    struct looking looking = {.store = store, .location = location, .record = record};
    const uint64_t start_us = mqx_clock_monotonic_us();
    int status = look(&looking, file, out);
    while (status == MQX_OK && out->locked != (out->living > 0)) {
        if (mqx_clock_monotonic_us() - start_us >= mqx_liveness_patience_us) {
            return refuse(store, out);
        }
        mqx_clock_sleep_us(PAUSE_US);
        status = look(&looking, file, out);
    }
    return status;
}

int mqx_liveness_others(struct mqx_store *store, struct mqx_life_lock *file, bool *out)
{
    MQX_ASSERT(store->region.base != NULL);
    MQX_ASSERT(store->region.process != 0);
    const uint64_t here = store->region.header->pid_namespace;
    *out = false;
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && !*out; slot++) {
        *out = slot != store->region.process &&
               mqx_process_may_live(mqx_process_slot(&store->region, slot), here);
    }
    return *out ? MQX_OK : mqx_life_lock_is_any_held(file, store->region.process, out);
}
