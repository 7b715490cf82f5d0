/*
 * manager.c - queue managers as engine.h shows them: create, attach, detach, end.
 *
 * Registry. A process has one attachment a directory (device and inode), however many mqe_attach
 * calls ask for it (rule 36). `registry` lists them, under `registry_lock`, which is held during
 * attach and detach, so that two threads do not run restart recovery twice. A forked child finds
 * the lock free, whatever the parent's threads were doing (fork_guard.h). A manager found stopped
 * is taken off the list: the next mqe_attach makes a new attachment beside it (rule 13). In a
 * forked child the list is forgotten, not closed (rule 32).
 *
 * Locks: registry_lock, process-local, before the attach lock and all locks of the region.
 */
#include "api/manager.h"

#include "api/context_pool.h"
#include "base/amq_codes.h"
#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "os/block_hook.h"
#include "os/fork_guard.h"
#include "os/futex.h"
#include "process/attach.h"
#include "process/error_log.h"
#include "process/maintenance.h"
#include "process/reaper.h"
#include "queue/id_index.h"
#include "queue/queue.h"
#include "queue/wait_list.h"
#include "recovery/checkpoint.h"
#include "recovery/checkpoint_round.h"
#include "recovery/restart.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct mqx_local_lock registry_lock;
static mqe_manager *registry;

/* ---- settings ---- */

static void take_if_set64(uint64_t *to, uint64_t value)
{
    MQX_ASSERT(to != NULL);
    *to = value != 0 ? value : *to;
}

static void take_if_set32(uint32_t *to, uint32_t value)
{
    MQX_ASSERT(to != NULL);
    *to = value != 0 ? value : *to;
}

static void plan_from(const struct mqe_settings *settings, struct mqx_region_plan *plan)
{
    MQX_ASSERT(settings != NULL);
    mqx_region_default_plan(plan);
    take_if_set64(&plan->size, settings->region_size);
    take_if_set64(&plan->body_budget, settings->body_budget);
    take_if_set64(&plan->ring_size, settings->ring_size);
    take_if_set64(&plan->segment_size, settings->segment_size);
    take_if_set64(&plan->first_segment_size, settings->first_segment_size);
    take_if_set64(&plan->journal_limit, settings->journal_limit);
    take_if_set32(&plan->stripe_count, settings->stripe_count);
    take_if_set32(&plan->name_bucket_count, settings->name_bucket_count);
    take_if_set32(&plan->growth_step, settings->growth_step);
    take_if_set32(&plan->max_uncommitted, settings->max_uncommitted);
    take_if_set32(&plan->max_message, settings->max_message);
    take_if_set32(&plan->max_unit_age, settings->max_unit_age);
    plan->platform = settings->platform;
    plan->linear = settings->linear;
    if (plan->first_segment_size > plan->segment_size) {
        plan->first_segment_size = plan->segment_size;
    }
}

static int check_plan(const struct mqx_region_plan *plan)
{
    MQX_ASSERT(plan->stripe_count > 0);
    if (plan->segment_size % MQX_PAGE_SIZE != 0 || plan->segment_size < PS_MIN_SEGMENT ||
        plan->first_segment_size % MQX_PAGE_SIZE != 0 ||
        plan->first_segment_size < PS_MIN_SEGMENT) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "segment sizes %llu and %llu: multiples of 4096, at least %d",
                        (unsigned long long)plan->segment_size,
                        (unsigned long long)plan->first_segment_size, (int)PS_MIN_SEGMENT);
    }
    if (plan->journal_limit < 4 * plan->first_segment_size) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "a journal limit of %llu holds fewer than 4 segments",
                        (unsigned long long)plan->journal_limit);
    }
    return MQX_OK;
}

/* Of a queue manager to be made: can its segments fill the limit? */
static int check_reach(const struct mqx_region_plan *plan)
{
    const uint64_t most = (uint64_t)MQX_SEGMENT_MAX * plan->segment_size;
    MQX_ASSERT(plan->segment_size >= PS_MIN_SEGMENT);
    if (plan->journal_limit <= most) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_UNEXPECTED_ERROR,
                    "a journal limit of %llu cannot be reached: a journal has at most %d segments, "
                    "%llu bytes when each has %llu; raise the segment size or lower the limit",
                    (unsigned long long)plan->journal_limit, (int)MQX_SEGMENT_MAX,
                    (unsigned long long)most, (unsigned long long)plan->segment_size);
}

/* ---- create ---- */

static int make_sub(struct mqx_io *io, int dir, const char *name, int *out)
{
    MQX_ASSERT(*out == -1);
    int err = io->ops->make_sub(io, dir, name, 0700);
    if (err == -EEXIST) {
        return mqx_fail(MQRC_OBJECT_ALREADY_EXISTS, "the directory holds \"%s\" already", name);
    }
    if (err >= 0) {
        err = io->ops->open_sub(io, dir, name);
    }
    if (err < 0) {
        return mqx_io_reason(err, name);
    }
    *out = err;
    return MQX_OK;
}

static int create_in(struct mqx_io *io, int dir, const struct mqe_settings *settings,
                     const struct mqx_region_plan *plan)
{
    MQX_ASSERT(dir >= 0);
    int journal = -1, checkpoint = -1, errors = -1, archive = -1;
    int status = make_sub(io, dir, "journal", &journal);
    if (status == MQX_OK) {
        status = make_sub(io, dir, "checkpoint", &checkpoint);
    }
    if (status == MQX_OK) {
        status = make_sub(io, dir, "errors", &errors);
    }
    if (status == MQX_OK && plan->linear != 0) {
        status = make_sub(io, dir, "archive", &archive);
    }
    if (status == MQX_OK) {
        status = mqx_journal_create(io, dir, journal, checkpoint, settings->qm_id, plan);
    }
    if (status == MQX_OK) {
        int err = io->ops->sync_dir(io, dir);
        status = err < 0 ? mqx_io_reason(err, "flushing the directory") : MQX_OK;
    }
    const int opened[] = {journal, checkpoint, errors, archive};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(opened); i++) {
        if (opened[i] >= 0) {
            (void)io->ops->close(io, opened[i]);
        }
    }
    return status;
}

int mqx_manager_create(struct mqx_io *io, const char *path, const struct mqe_settings *settings)
{
    MQX_ASSERT(io != NULL && path != NULL);
    MQX_ASSERT(settings != NULL);
    struct mqx_region_plan plan;
    plan_from(settings, &plan);
    int status = check_plan(&plan);
    if (status == MQX_OK) {
        status = check_reach(&plan);
    }
    if (status != MQX_OK) {
        return status;
    }
    const int dir = io->ops->open_dir(io, path);
    if (dir < 0) {
        return mqx_io_reason(dir, path);
    }
    status = create_in(io, dir, settings, &plan);
    (void)io->ops->close(io, dir);
    return status;
}

struct mqx_io *mqx_manager_table(const struct mqe_settings *settings)
{
    MQX_ASSERT(settings != NULL);
    MQX_ASSERT(settings->group <= (uint64_t)UINT32_MAX + 1);
    return settings->group != 0 ? mqx_io_posix_shared((uint32_t)(settings->group - 1))
                                : mqx_io_posix();
}

static int fail_without_table(void)
{
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the files of a group");
}

int mqe_create(const char *path, const struct mqe_settings *settings)
{
    mqx_about_to_block();
    struct mqx_io *io = mqx_manager_table(settings);
    if (io == NULL) {
        return fail_without_table();
    }
    return mqx_manager_create(io, path, settings);
}

/* ---- attach ---- */

static void forget_parents(void)
{
    while (registry != NULL && mqx_forked(&registry->store)) {
        mqe_manager *inherited = registry;
        registry = inherited->next;
        mqx_attach_forget(&inherited->store); /* not freed: handles of the parent point to it */
    }
}

static mqe_manager **find_registered(uint64_t device, uint64_t inode)
{
    MQX_ASSERT(inode != 0);
    mqe_manager **at = &registry;
    while (*at != NULL && ((*at)->device != device || (*at)->inode != inode)) {
        at = &(*at)->next;
    }
    return at;
}

static int identify(struct mqx_io *io, const char *path, uint64_t *device, uint64_t *inode)
{
    MQX_ASSERT(path != NULL);
    struct mqx_io_stat facts;
    const int dir = io->ops->open_dir(io, path);
    if (dir < 0) {
        return mqx_io_reason(dir, path);
    }
    const int err = io->ops->stat(io, dir, &facts);
    (void)io->ops->close(io, dir);
    if (err < 0) {
        return mqx_io_reason(err, path);
    }
    *device = facts.device;
    *inode = facts.inode;
    return MQX_OK;
}

/* "AMQ " or "CSQ " and the first 12 characters of the name, blank padded. A restored store has its
 * timeline in the last two of them, so that the ids that it makes are none that the original, or
 * a store restored before, has made since the copy; with as many digits to the base 36. */
static void set_id_prefix(struct mqx_header *header, const char *name)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const uint64_t base = sizeof digits - 1, timeline = header->journal.timeline;
    char prefix[sizeof header->id_prefix];
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(base == 36);
    memcpy(prefix, header->platform == MQX_PLATFORM_ZOS ? "CSQ " : "AMQ ", 4);
    memset(prefix + 4, ' ', sizeof prefix - 4);
    memcpy(prefix + 4, name, strnlen(name, sizeof prefix - 4));
    if (timeline != 0) {
        prefix[sizeof prefix - 2] = digits[timeline / base % base];
        prefix[sizeof prefix - 1] = digits[timeline % base];
    }
    memcpy(header->id_prefix, prefix, sizeof prefix);
}

static int attach_new(struct mqx_io *io, const char *path, const struct mqe_settings *settings,
                      mqe_manager **out, struct mqx_attach_report *report)
{
    MQX_ASSERT(report != NULL);
    mqe_manager *manager = calloc(1, sizeof *manager);
    if (manager == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attachment");
    }
    struct mqx_store *store = &manager->store;
    store->io = io;
    plan_from(settings, &store->plan);
    memcpy(store->qm_id, settings->qm_id, sizeof store->qm_id);
    memcpy(store->name, settings->name, sizeof store->name - 1);
    store->control = settings->control != 0;
    store->keep_mapping = settings->keep_mapping != 0;
    int status = check_plan(&store->plan);
    if (status == MQX_OK) {
        status = mqx_attach(store, path, settings->region_dir, report);
    }
    if (status != MQX_OK) {
        free(manager);
        return status;
    }
    set_id_prefix(store->region.header, store->name);
    mqx_process_slot(&store->region, store->region.process)->keeper = settings->keeper;
    store->free_journal = mqx_checkpoint_make_room;
    store->keep_way_out = mqx_maintenance_way_out;
    mqx_assert_guard(&store->region.header->stopped);
    const bool maintains = settings->no_maintenance == 0;
    const bool killed = report->first && !report->recovery.clean;
    if (maintains && killed && mqx_maintenance_refill(store) != MQX_OK) {
        mqx_error_clear();
    }
    if (maintains) {
        status = mqx_maintenance_start(store, &manager->maintenance);
    }
    if (status != MQX_OK) {
        uint64_t discarded = 0;
        mqx_assert_unguard(&store->region.header->stopped);
        mqx_ignore(mqx_detach(store, MQX_CHECKPOINT_CLEAN, &discarded));
        free(manager);
        return status;
    }
    *out = manager;
    return MQX_OK;
}

static void fill_info(const struct mqx_attach_report *report, struct mqe_attach_info *info)
{
    MQX_ASSERT(info != NULL);
    *info = (struct mqe_attach_info){
        .first = report->first,
        .clean = report->recovery.clean,
        .messages = report->recovery.messages,
        .np_discarded = report->np_discarded,
        .records_replayed = report->recovery.records_replayed,
        .torn_bytes = report->recovery.torn_bytes,
    };
}

/* A further connection of this process. */
static int share_attachment(mqe_manager *manager, const struct mqe_settings *settings,
                            mqe_manager **out)
{
    MQX_ASSERT(manager->references > 0);
    const int status = mqx_attach_check_quiescing(&manager->store, settings->control != 0, NULL);
    if (status == MQX_OK) {
        manager->references += 1;
        *out = manager;
    }
    return status;
}

/* Under the registry lock. */
static int attach_registered(struct mqx_io *io, const char *path,
                             const struct mqe_settings *settings, mqe_manager **out,
                             struct mqe_attach_info *info)
{
    MQX_ASSERT(out != NULL);
    uint64_t device = 0, inode = 0;
    struct mqx_attach_report report = {0};
    forget_parents();
    int status = identify(io, path, &device, &inode);
    if (status != MQX_OK) {
        return status;
    }
    mqe_manager **at = find_registered(device, inode);
    if (*at != NULL && mqx_region_stopped(&(*at)->store.region) != MQX_RUNNING) {
        mqe_manager *stopped = *at; /* its handles keep it until they are closed */
        *at = stopped->next;
        mqx_attach_release_life(&stopped->store);
        at = find_registered(device, inode);
    }
    if (*at != NULL) {
        return share_attachment(*at, settings, out);
    }
    status = attach_new(io, path, settings, out, &report);
    if (status != MQX_OK) {
        return status;
    }
    (*out)->device = device;
    (*out)->inode = inode;
    (*out)->references = 1;
    (*out)->next = registry;
    registry = *out;
    fill_info(&report, info);
    return MQX_OK;
}

int mqx_manager_attach(struct mqx_io *io, const char *path, const struct mqe_settings *settings,
                       mqe_manager **out, struct mqe_attach_info *info)
{
    MQX_ASSERT(io != NULL && path != NULL);
    MQX_ASSERT(settings != NULL);
    *info = (struct mqe_attach_info){0};
    mqx_local_take(&registry_lock);
    int status = attach_registered(io, path, settings, out, info);
    mqx_local_drop(&registry_lock);
    return status;
}

int mqe_attach(const char *path, const struct mqe_settings *settings, mqe_manager **out,
               struct mqe_attach_info *info)
{
    mqx_about_to_block();
    struct mqx_io *io = mqx_manager_table(settings);
    return io != NULL ? mqx_manager_attach(io, path, settings, out, info) : fail_without_table();
}

/* ---- detach ---- */

static void unregister(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    mqe_manager **at = &registry;
    while (*at != NULL && *at != manager) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = manager->next;
    }
}

int mqe_detach(mqe_manager *manager, int how, uint64_t *np_discarded)
{
    MQX_ASSERT(manager != NULL);
    MQX_ASSERT(np_discarded != NULL);
    const int mode =
        how == MQE_DETACH_DISCARD ? MQX_CHECKPOINT_CLEAN_NO_IMAGE : MQX_CHECKPOINT_CLEAN;
    *np_discarded = 0;
    if (mqx_forked(&manager->store)) {
        return MQX_OK; /* the parent's; a child owns nothing */
    }
    mqx_about_to_block();
    mqx_local_take(&registry_lock);
    MQX_ASSERT(manager->references > 0);
    manager->references -= 1;
    if (manager->references > 0) {
        mqx_local_drop(&registry_lock);
        return MQX_OK;
    }
    unregister(manager);
    if (manager->maintenance != NULL) {
        mqx_maintenance_stop(manager->maintenance);
    }
    if (mqx_region_stopped(&manager->store.region) == MQX_RUNNING) {
        mqx_pool_drain(manager);
    }
    mqx_assert_unguard(&manager->store.region.header->stopped);
    int status = mqx_detach(&manager->store, mode, np_discarded);
    mqx_local_drop(&registry_lock);
    free(manager);
    return status;
}

/* ---- end ---- */

enum { END_PATIENCE_MS = 10000, END_PAUSE_MS = 2 };

/* All calls of all processes fail from here on; the maintenance thread of each process releases its
 * life lock once its file calls have returned. */
static int stop_and_wait(struct mqx_store *store, uint32_t how)
{
    MQX_ASSERT(how == MQX_STOP_ENDED || how == MQX_STOP_BROKEN);
    bool anyone = true;
    int status = MQX_OK;
    if (how == MQX_STOP_BROKEN) {
        mqx_region_stop_because(&store->region, "end -p", 0);
    } else {
        mqx_region_stop(&store->region, how);
    }
    for (int waited_ms = 0; waited_ms < END_PATIENCE_MS && anyone && status == MQX_OK;
         waited_ms += END_PAUSE_MS) {
        status = mqx_attach_has_others(store, &anyone);
        if (anyone) {
            mqx_clock_sleep_us(END_PAUSE_MS * 1000);
        }
    }
    if (status == MQX_OK && anyone) {
        status = mqx_fail(MQRC_OBJECT_IN_USE,
                          "the queue manager has stopped, but a process has not left it "
                          "within %d s", END_PATIENCE_MS / 1000);
    }
    return status;
}

static int quiesce(struct mqx_store *store)
{
    MQX_ASSERT(store->region.process != 0);
    mqx_store_release(&store->region.header->quiescing, 1);
    mqx_log(store, MQX_AMQ_QUIESCING, 'I', "queue manager %s is quiescing", store->name);
    return mqx_wait_list_cancel_everywhere(store);
}

int mqe_end(mqe_manager *manager, int mode)
{
    MQX_ASSERT(manager != NULL);
    struct mqx_store *store = &manager->store;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_about_to_block();
    switch (mode) {
    case MQE_END_CONTROLLED:
    case MQE_END_WAIT:
        return quiesce(store);
    case MQE_END_IMMEDIATE:
        mqx_log(store, MQX_AMQ_ENDING, 'I', "queue manager %s is ended immediately", store->name);
        store->region.ending = true; /* this process continues: its detach writes the orderly end */
        return stop_and_wait(store, MQX_STOP_ENDED);
    case MQE_END_PREEMPTIVE:
        mqx_log(store, MQX_AMQ_ENDING, 'W', "queue manager %s is ended preemptively", store->name);
        return stop_and_wait(store, MQX_STOP_BROKEN);
    default:
        return mqx_fail(MQRC_OPTIONS_ERROR, "end mode %d is unknown", mode);
    }
}
