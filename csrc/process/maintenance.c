/*
 * maintenance.c - see maintenance.h.
 *
 * A round collects what is to be logged, and the thread logs it after the lock.
 */
#include "process/maintenance.h"

#include "base/amq_codes.h"
#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "journal/journal.h"
#include "os/block_hook.h"
#include "os/fork_guard.h"
#include "os/futex.h"
#include "os/host_info.h"
#include "os/interrupt.h"
#include "process/attach.h"
#include "process/error_log.h"
#include "process/lock_watchdog.h"
#include "process/reaper.h"
#include "queue/expire.h"
#include "queue/queue.h"
#include "queue/wait_list.h"
#include "recovery/checkpoint_reserve.h"
#include "recovery/checkpoint_round.h"
#include "region/damage.h"
#include "region/queue_clock.h"
#include "region/reclaim.h"
#include "unit/long_units.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUND_US = 500000,        /* between rounds when nothing is pending, whoever makes them */
    STANDBY_COUNT = 16,       /* processes that look after the rounds in each ROUND_US */
    MARK_AFTER_US = 100000,   /* of idleness (rule 9) */
    OBJECTS_A_ROUND = 8192,   /* visited in one round */
    EXPIRE_STEPS = 64,        /* of 64 messages each, a queue and round */
    LOOK_US = 500,            /* between looks of a put that waits for the reserve */
    LOOKS = 500,
    STACK_BYTES = 512 * 1024,
};

enum step {
    REAP, MARK, RESERVE, BODIES, SPARE, WAY_OUT, OBJECTS, RECLAIM, GROW, CHECKPOINT, LONG_UNITS,
    STEP_COUNT
};
static const char *const step_names[STEP_COUNT] = {
    [REAP] = "reaping of dead processes",
    [MARK] = "mark page",
    [RESERVE] = "journal reserve",
    [BODIES] = "count of persistent bodies",
    [SPARE] = "spare segment",
    [WAY_OUT] = "reserve for a full disk",
    [OBJECTS] = "expiry and clean-up",
    [RECLAIM] = "return of memory",
    [GROW] = "growth of the region",
    [CHECKPOINT] = "checkpoint",
    [LONG_UNITS] = "back-out of long units of work",
};

struct round { /* kept from round to round, and the outcome of the last one */
    bool of_thread;      /* which leaves what waits to others when its process leaves */
    uint32_t next_object;
    uint64_t freed_at;   /* number of the next segment when the full disk's journal was freed */
    uint32_t dead;
    uint32_t long_units; /* marked: their next call backs them out */
    struct mqx_long_units backed_out;
    int status[STEP_COUNT];
    char text[STEP_COUNT][256];
};

struct mqx_maintenance {
    struct mqx_store *store;
    pthread_t thread;
    uint32_t stop; /* atomic */
    struct round round;
    int logged[STEP_COUNT]; /* status of a step when it was last logged */
    char cannot_lead[200];  /* the text that was logged last */
    uint64_t next_round_us; /* monotonic clock */
    bool active;            /* this thread made the newest round, or tried to */
    bool stop_logged;
    bool stop_passed;       /* on to threads that sleep longer */
    struct mqx_lock_watchdog watchdog;
};

/* ---- the steps ---- */

static int step_reap(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    return mqx_reap(store, &round->dead);
}

static bool is_unmarked(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    return mqx_load_relaxed(&journal->marked) < mqx_journal_durable(journal);
}

static int step_mark(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t now_us = store->io->ops->now_us(store->io);
    const uint64_t flushed_us = mqx_load_relaxed(&journal->last_flush_us);
    (void)round;
    /* a clock may be set back: nobody knows then how long nothing was flushed */
    const bool idle = now_us < flushed_us || now_us - flushed_us >= MARK_AFTER_US;
    /* a leader at work is no idleness, and a round is not to wait for one that is stopped */
    return idle && is_unmarked(journal) && mqx_load_relaxed(&journal->flush_lock.holder) == 0
               ? mqx_flush_mark(store)
               : MQX_OK;
}

/* Rule 12: the bytes that gets, commits and backouts of all messages present would write. */
static int step_reserve(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(store->region.stripe_mask < MQX_STRIPE_MAX);
    const struct mqx_region *region = &store->region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    uint64_t messages = 0, contexts = 0, live = 0;
    (void)round;
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        messages += mqx_load_relaxed(&region->stripes[i].persistent_present);
    }
    for (uint64_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        contexts += context != NULL && mqx_load_relaxed(&context->state) > MQX_CTX_IDLE;
    }
    mqx_store_release(&region->journal->reserve_bytes,
                      mqx_journal_reserve_for(region, messages, contexts));
    (void)mqx_journal_bound_puts(region, &live);
    return MQX_OK;
}

/* What puts compare with the budget: bodies that have left the region make room again. */
static int step_bodies(struct mqx_store *store, struct round *round)
{
    const struct mqx_region *region = &store->region;
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    uint64_t bytes = 0;
    (void)round;
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        bytes += mqx_load_relaxed(&region->stripes[i].body_bytes);
    }
    mqx_store_relaxed(&region->header->body_bytes, bytes);
    return MQX_OK;
}

static int step_spare(struct mqx_store *store, struct round *round)
{
    (void)round;
    const uint64_t size = mqx_journal_spare_wanted(store);
    const int status = size != 0 ? mqx_journal_make_spare(store, size) : MQX_OK;
    return status == MQX_LEAVING ? MQX_OK : status;
}

/* Makes what is lacking of both reserves, and lets puts know. A failure of this process alone says
 * nothing about the disk. */
static int keep_way_out(struct mqx_store *store, bool paced)
{
    uint32_t *way_out = &store->region.journal->way_out;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    int status = paced ? mqx_checkpoint_reserve_keep_paced(store)
                       : mqx_checkpoint_reserve_keep(store);
    if (status == MQX_OK) {
        status = mqx_journal_keep_reserved(store);
    }
    if (status == MQX_OK || status == MQRC_STORAGE_MEDIUM_FULL) {
        mqx_store_relaxed(way_out, (uint32_t)(status == MQX_OK ? MQX_WAY_OUT_WHOLE
                                                               : MQX_WAY_OUT_MISSING));
    }
    return status;
}

/* The maintenance is at work, and may lengthen the reserve between two steps: waits for that or for
 * the lock, for a while. True: puts are covered. */
static bool await_way_out(struct mqx_store *store, int *out_status)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    uint64_t live = 0;
    bool covered = false;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    *out_status = mqx_lock_try(&store->region, lock);
    for (int i = 0; i < LOOKS && *out_status == MQX_BUSY && !covered; i++) {
        mqx_clock_sleep_us(LOOK_US);
        covered = mqx_load_relaxed(&store->region.journal->way_out) == MQX_WAY_OUT_WHOLE &&
                  mqx_journal_bound_puts(&store->region, &live);
        *out_status = covered ? MQX_BUSY : mqx_lock_try(&store->region, lock);
    }
    return covered;
}

int mqx_maintenance_way_out(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    int status = MQX_OK;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    mqx_about_to_block();
    if (await_way_out(store, &status)) {
        return MQX_OK;
    }
    if (status == MQX_BUSY) {
        status = mqx_lock_enter(&store->region, lock);
    }
    if (status == MQX_OK) {
        status = keep_way_out(store, false);
        mqx_lock_drop(&store->region, lock);
    }
    return status;
}

/* Does the restart have to begin its segment in a reserved file, of which another restart has taken
 * some? */
static bool is_short_of_reserved(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->first_segment_size > 0);
    return mqx_journal_spare_count(store) == 0 &&
           mqx_journal_reserved_count(journal) < MQX_RESERVED_SEGMENTS;
}

int mqx_maintenance_refill(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    MQX_ASSERT(store->files != NULL);
    if (!is_short_of_reserved(store)) {
        return MQX_OK;
    }
    int status = mqx_lock_enter(&store->region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = keep_way_out(store, false);
    if (status == MQRC_STORAGE_MEDIUM_FULL) {
        status = mqx_checkpoint_free_all(store);
    }
    mqx_lock_drop(&store->region, lock);
    return status;
}

/* Rule 59. Where the disk has no room, what gets have left behind is freed for it: once for each
 * segment, since nothing else has changed then. */
static int step_way_out(struct mqx_store *store, struct round *round)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (mqx_load_relaxed(&journal->way_out) != MQX_WAY_OUT_MISSING &&
        mqx_journal_checkpoint_reserve(&store->region) == 0) {
        return MQX_OK; /* there is nothing to be got */
    }
    int status = keep_way_out(store, true);
    if (status == MQRC_STORAGE_MEDIUM_FULL && round->freed_at != journal->next_segment_no) {
        const int freed = mqx_checkpoint_free_all(store);
        round->freed_at = journal->next_segment_no;
        status = freed == MQX_OK ? keep_way_out(store, true) : status;
    }
    return status;
}

static int expire(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const uint64_t now_us =
        store->io->ops->now_us(store->io) + mqx_queue_advanced_us(&store->region);
    struct mqx_expire_step step = {.more = true};
    int status = MQX_OK;
    for (int i = 0; i < EXPIRE_STEPS && step.more && status == MQX_OK; i++) {
        status = mqx_queue_expire_step(store, slot, now_us, &step);
    }
    if (step.reports) { /* the host program's calls make them */
        mqx_store_relaxed(&store->region.header->expired[slot % MQX_EXPIRED_MAX], slot);
    }
    return status;
}

/* The end of what another process left half done; it begins with a flush. */
static int finish_change(struct mqx_store *store, const struct round *round, uint32_t slot,
                         int (*finish)(struct mqx_store *store, uint32_t slot))
{
    MQX_ASSERT(slot != 0);
    if (!round->of_thread) {
        return finish(store, slot);
    }
    mqx_interrupt_allow_while(&store->leaving);
    const int status = finish(store, slot);
    mqx_interrupt_allow(false);
    return status == MQE_INTERRUPTED ? MQX_LEAVING : status;
}

static int maintain_object(struct mqx_store *store, const struct round *round, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const struct mqx_object *object = mqx_object(&store->region, slot);
    if (object == NULL) {
        return MQX_OK;
    }
    switch (mqx_load_acquire(&object->state)) {
    case MQX_OBJ_ACTIVE:
        return mqx_load_relaxed(&object->expiring) != 0 ? expire(store, slot) : MQX_OK;
    case MQX_OBJ_LOGGED: return finish_change(store, round, slot, mqx_catalog_activate);
    case MQX_OBJ_DELETING: return finish_change(store, round, slot, mqx_catalog_finish);
    default: return MQX_OK;
    }
}

static int step_objects(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_OBJECTS);
    const uint64_t count = used - 1 < OBJECTS_A_ROUND ? used - 1 : OBJECTS_A_ROUND;
    int status = MQX_OK;
    for (uint64_t i = 0; i < count && status == MQX_OK; i++) {
        round->next_object = round->next_object + 1 < used ? round->next_object + 1 : 1;
        status = maintain_object(store, round, round->next_object);
    }
    return status == MQX_LEAVING ? MQX_OK : status;
}

static int step_reclaim(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    (void)round;
    return mqx_reclaim_step(&store->region, store->io->ops->now_us(store->io));
}

static int step_grow(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(store->region.base != NULL);
    struct mqx_region *region = &store->region;
    int status = MQX_OK;
    (void)round;
    for (int no = 0; no < MQX_POOL_COUNT && status == MQX_OK; no++) {
        status = mqx_reclaim_ahead(region, (enum mqx_pool_no)no);
    }
    for (int kind = 0; kind < MQX_AREA_MESSAGES && status == MQX_OK; kind++) {
        const struct mqx_area *area = &region->header->area[kind];
        const enum mqx_area_kind of = (enum mqx_area_kind)kind;
        const uint64_t ahead = mqx_area_used(region, of) * mqx_area_item_size(of) + area->step;
        if (ahead > mqx_load_acquire(&area->capacity) && ahead <= region->reach.space[kind]) {
            status = mqx_region_grow(region, of, ahead);
        }
    }
    return status;
}

static uint32_t count_attached(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    uint32_t count = 0;
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        count += mqx_load_relaxed(&mqx_process_slot(region, slot)->state) != MQX_PROC_FREE;
    }
    return count;
}

/* A process that leaves does not wait for a checkpoint, which takes seconds: one that stays takes
 * it. */
static bool is_left_to_others(struct mqx_store *store)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    return mqx_load_acquire(&store->leaving) != 0 && count_attached(&store->region) > 1 &&
           !mqx_checkpoint_is_late(store);
}

static int step_checkpoint(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    (void)round;
    if (!mqx_checkpoint_wanted(store) || is_left_to_others(store)) {
        return MQX_OK;
    }
    const int status = mqx_checkpoint_round(store);
    return status == MQX_LEAVING ? MQX_OK : status;
}

/* The last step: an owner that meets it waits for nothing else. Those whose owner is inside a call
 * are marked. */
static int step_long_units(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    const int status = mqx_long_units_back_out(store, false, &round->backed_out);
    mqx_unit_mark_long(store, &round->long_units);
    return status;
}

typedef int (*step_function)(struct mqx_store *store, struct round *round);
static const step_function steps[STEP_COUNT] = {
    [REAP] = step_reap,
    [MARK] = step_mark,
    [RESERVE] = step_reserve,
    [BODIES] = step_bodies,
    [SPARE] = step_spare,
    [WAY_OUT] = step_way_out,
    [OBJECTS] = step_objects,
    [RECLAIM] = step_reclaim,
    [GROW] = step_grow,
    [CHECKPOINT] = step_checkpoint,
    [LONG_UNITS] = step_long_units,
};

/* ---- a round ---- */

static int help_between_steps(struct mqx_store *store)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    uint32_t dead = 0;
    if (is_left_to_others(store)) {
        return MQX_LEAVING;
    }
    (void)mqx_journal_lead_for_others(store);
    const struct mqx_journal *journal = store->region.journal;
    const bool in_use = mqx_load_relaxed(&journal->checkpoint_reserve) == 0;
    if (!in_use && keep_way_out(store, true) != MQX_OK) { /* puts go on beside a long checkpoint */
        mqx_error_clear();
    }
    return mqx_reap(store, &dead);
}

/* MQX_BUSY when another thread or process has the maintenance lock. */
static int run_round(struct mqx_store *store, struct round *round)
{
    MQX_ASSERT(store->region.process != 0);
    struct mqx_region *region = &store->region;
    struct mqx_header *header = region->header;
    round->dead = 0;
    round->long_units = 0;
    round->backed_out.count = 0;
    store->maintenance_hook = help_between_steps;
    memset(round->status, 0, sizeof round->status);
    const int status = mqx_lock_try(region, &header->maintenance_lock);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < STEP_COUNT && mqx_region_stopped(region) == MQX_RUNNING; i++) {
        round->status[i] = steps[i](store, round);
        if (round->status[i] != MQX_OK) {
            (void)snprintf(round->text[i], sizeof round->text[i], "%s", mqx_error_text());
        }
    }
    mqx_add_relaxed(&header->maintenance_seq, UINT64_C(1));
    mqx_store_relaxed(&header->attached, count_attached(region));
    mqx_store_relaxed(&header->last_round_us, mqx_clock_monotonic_us());
    mqx_lock_drop(region, &header->maintenance_lock);
    return MQX_OK;
}

int mqx_maintenance_round(struct mqx_store *store)
{
    struct round round = {.next_object = 0};
    int status = run_round(store, &round);
    for (int i = 0; i < STEP_COUNT && status == MQX_OK; i++) {
        status = round.status[i];
        if (status != MQX_OK) {
            status = mqx_fail(status, "%s: %s", step_names[i], round.text[i]);
        }
    }
    return status;
}

/* ---- the thread ---- */

static void log_backed_out(struct mqx_store *store, const struct mqx_long_units *units)
{
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    MQX_ASSERT(units->count <= MQX_LONG_UNITS_A_ROUND);
    for (uint32_t i = 0; i < units->count; i++) {
        const struct mqx_long_unit *unit = &units->unit[i];
        mqx_log(store, MQX_AMQ_LONG_UNIT, 'W',
                "a unit of work of process %d was backed out, since %s: %u messages, %llu s old, "
                "first record %llu bytes of journal ago; its next calls get 2003", (int)unit->pid,
                mqx_why_ended_text(unit->why), unit->count,
                (unsigned long long)(unit->age_us / 1000000), (unsigned long long)unit->bytes);
    }
}

int mqx_maintenance_back_out_units(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    struct mqx_long_units units = {.count = 0};
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status == MQX_OK) {
        status = mqx_long_units_back_out(store, true, &units);
        mqx_lock_drop(&store->region, lock);
        log_backed_out(store, &units);
    }
    return status;
}

static void log_round(struct mqx_maintenance *m)
{
    MQX_ASSERT(!mqx_lock_held(&m->store->region, &m->store->region.header->maintenance_lock));
    struct mqx_store *store = m->store;
    const struct round *round = &m->round;
    if (round->dead > 0) {
        mqx_log(store, MQX_AMQ_PROCESS_DIED, 'W',
                "%u processes ended without leaving %s; their units of work were backed out",
                round->dead, store->name);
    }
    if (round->long_units > 0) {
        mqx_log(store, MQX_AMQ_LONG_UNIT, 'W',
                "%u units of work hold more than 80 %% of the journal of %s and are backed out by "
                "their next call", round->long_units, store->name);
    }
    log_backed_out(store, &round->backed_out);
    for (int i = 0; i < STEP_COUNT; i++) {
        const int status = round->status[i];
        if (status != MQX_OK && status != m->logged[i]) {
            mqx_log(store, MQX_AMQ_MAINTENANCE, 'E', "%s fails: %s (%s)", step_names[i],
                    mqx_reason_name(status), round->text[i]);
        } else if (status == MQX_OK && m->logged[i] != MQX_OK) {
            mqx_log(store, MQX_AMQ_MAINTENANCE_OK, 'I', "%s works again", step_names[i]);
        }
        m->logged[i] = status;
    }
}

static void log_held_lock(struct mqx_maintenance *m)
{
    MQX_ASSERT(!mqx_lock_held(&m->store->region, &m->store->region.header->maintenance_lock));
    struct mqx_held_lock held;
    if (mqx_lock_watchdog_check(&m->watchdog, &m->store->region, &held)) {
        mqx_lock_watchdog_log(&m->store->region, &held);
    }
}

/* Once for each text: a process at its limit would fill the log. */
static void log_cannot_lead(struct mqx_maintenance *m)
{
    char text[sizeof m->cannot_lead];
    MQX_ASSERT(!mqx_lock_held(&m->store->region, &m->store->region.header->maintenance_lock));
    if (mqx_journal_cannot_lead(m->store, text, sizeof text) &&
        strcmp(text, m->cannot_lead) != 0) {
        memcpy(m->cannot_lead, text, sizeof text);
        mqx_log(m->store, MQX_AMQ_CANNOT_LEAD, 'W',
                "this process cannot write the journal of %s, another one does it: %s",
                m->store->name, text);
    }
}

/* Once, by one of all processes. */
static void log_linked(struct mqx_maintenance *m)
{
    uint32_t *linked = &m->store->region.journal->linked;
    MQX_ASSERT(!mqx_lock_held(&m->store->region, &m->store->region.header->maintenance_lock));
    if (mqx_load_relaxed(linked) == MQX_LINKED_SEEN &&
        mqx_cas32(linked, MQX_LINKED_SEEN, MQX_LINKED_LOGGED)) {
        mqx_log(m->store, MQX_AMQ_LINKED, 'W',
                "the journal of %s has other names, too (hard links, as cp -al makes them): that "
                "is no backup, because it changes with the queue manager. Remove the copy: the "
                "next start refuses files that are shared with one", m->store->name);
    }
}

/* Logs once that the queue manager has stopped and why: what failed, in which process; which
 * structure was damaged if that is it. */
static void log_stop(struct mqx_maintenance *m)
{
    struct mqx_store *store = m->store;
    const char *damage = mqx_region_damage_text(&store->region);
    char cause[MQX_STOP_TEXT];
    MQX_ASSERT(store->region.process != 0);
    if (m->stop_logged || mqx_region_stopped(&store->region) != MQX_STOP_BROKEN) {
        return;
    }
    m->stop_logged = true;
    (void)mqx_region_stop_cause(&store->region, cause);
    if (damage == NULL) {
        mqx_log(store, MQX_AMQ_STOPPED, 'E', "queue manager %s has stopped: %s", store->name,
                cause);
    } else {
        mqx_log(store, MQX_AMQ_STOPPED, 'E',
                "queue manager %s has stopped: the shared region is damaged in %s, %s",
                store->name, damage, cause);
    }
}

/* Rule 13: once no file call is in progress in any process, the next attach may recover. A stop
 * that rang no doorbell (only the header was known) is passed on to threads that sleep longer. */
static void release_life_when_stopped(struct mqx_maintenance *m, bool rung)
{
    MQX_ASSERT(m->store->region.process != 0);
    struct mqx_store *store = m->store;
    const struct mqx_process *process = mqx_process_slot(&store->region, store->region.process);
    log_stop(m);
    if (!m->stop_passed && !rung) {
        mqx_region_stop(&store->region, mqx_region_stopped(&store->region));
    }
    m->stop_passed = true;
    if (mqx_load_acquire(&process->calls_inside) == 0) {
        mqx_attach_release_life(store);
    }
}

/* The pause of a waker's second look, unless a round is rung for; then the look. */
static void take_second_look(struct mqx_maintenance *m, uint32_t *doorbell)
{
    MQX_ASSERT(m->store->region.process != 0);
    const uint64_t until_us = mqx_clock_monotonic_us() + MQX_SECOND_LOOK_US;
    const uint32_t seen = mqx_load_acquire(doorbell);
    uint64_t now_us = until_us - MQX_SECOND_LOOK_US;
    while (now_us < until_us && mqx_load_acquire(doorbell) == seen) {
        (void)mqx_futex_wait(doorbell, seen, until_us - now_us);
        now_us = mqx_clock_monotonic_us();
    }
    (void)mqx_fetch_and(doorbell, (uint32_t)MQX_BELL_ROUNDS);
    if (mqx_region_stopped(&m->store->region) == MQX_RUNNING) {
        mqx_ignore(mqx_wait_list_second_look(&m->store->region));
    }
}

/* Sleeps until somebody rings for a round, or for so long. A ring for a second look alone starts no
 * round. `seen`: the doorbell before the last round. */
static void rest(struct mqx_maintenance *m, uint32_t seen, uint64_t us)
{
    MQX_ASSERT(us > 0);
    const struct mqx_region *region = &m->store->region;
    uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    const uint64_t until_us = mqx_clock_monotonic_us() + us;
    for (uint64_t now_us = until_us - us; now_us < until_us; now_us = mqx_clock_monotonic_us()) {
        const uint32_t word = mqx_load_acquire(doorbell);
        if (((word ^ seen) & MQX_BELL_ROUNDS) != 0 || mqx_load_acquire(&m->stop) != 0) {
            return;
        }
        if ((word & MQX_BELL_SECOND_LOOK) != 0) {
            take_second_look(m, doorbell);
        } else {
            (void)mqx_futex_wait(doorbell, word, until_us - now_us);
        }
    }
}

/* ---- whose turn it is ---- */

/* One round in ROUND_US is enough for all processes together. */
static bool is_due(const struct mqx_region *region)
{
    const uint64_t last_us = mqx_load_relaxed(&region->header->last_round_us);
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint64_t between_us = is_unmarked(region->journal) ? MARK_AFTER_US : ROUND_US;
    MQX_ASSERT(region->process != 0);
    return now_us < last_us || now_us - last_us >= between_us;
}

/* How long a thread sleeps that found the round made by another process: until its turn in a
 * following period of ROUND_US. A turn is shared by about STANDBY_COUNT processes, however many
 * there are, so that neither wake-ups nor rounds grow with their number. */
static uint64_t standby_us(const struct mqx_region *region)
{
    const uint64_t attached = mqx_load_relaxed(&region->header->attached) % MQX_PROCESS_MAX;
    const uint64_t turns = 1 + attached / STANDBY_COUNT;
    const uint64_t now_us = mqx_clock_monotonic_us();
    const uint64_t period = now_us / ROUND_US, own = region->process % turns;
    const uint64_t ahead = (own + turns - period % turns) % turns;
    const uint64_t place = region->process / turns % STANDBY_COUNT; /* within the period */
    const uint64_t next_us = (period + (ahead == 0 ? turns : ahead)) * ROUND_US +
                             place * (ROUND_US / STANDBY_COUNT);
    MQX_ASSERT(next_us > now_us);
    return next_us - now_us;
}

/* A process that cannot write the journal rings for each of its commits: a round, which is long,
 * is not run for that alone. True when one is due. */
static bool lead_if_asked(struct mqx_maintenance *m)
{
    MQX_ASSERT(m->store->region.process != 0);
    const bool asked = mqx_journal_lead_for_others(m->store);
    return !asked || mqx_clock_monotonic_us() >= m->next_round_us;
}

static void run_and_log_round(struct mqx_maintenance *m)
{
    MQX_ASSERT(m->store->region.process != 0);
    struct mqx_region *region = &m->store->region;
    if (!m->active) { /* what it saw when it was active last says nothing now */
        m->watchdog = (struct mqx_lock_watchdog){0};
    }
    m->active = true;
    m->next_round_us = mqx_clock_monotonic_us() + MARK_AFTER_US;
    const int status = run_round(m->store, &m->round);
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        if (status == MQX_OK) {
            log_round(m);
        }
        log_held_lock(m);
    }
}

/* Leads for others when they ask; makes a round when one is due or this process was rung for one. A
 * process that cannot map what the others have (region/reach.h) leaves both to them. */
static void take_turn(struct mqx_maintenance *m, bool rung)
{
    struct mqx_region *region = &m->store->region;
    MQX_ASSERT(region->process != 0);
    if (!mqx_reach_ahead(region)) {
        m->active = false;
    } else if (lead_if_asked(m)) {
        if (rung || is_due(region)) {
            run_and_log_round(m);
        } else {
            m->active = false;
        }
    }
    if (mqx_region_stopped(region) == MQX_RUNNING) {
        log_cannot_lead(m);
        log_linked(m);
    }
    mqx_journal_drop_retired(m->store);
}

/* How long this thread sleeps unless it is rung. */
static uint64_t pause_us(const struct mqx_maintenance *m)
{
    const struct mqx_region *region = &m->store->region;
    MQX_ASSERT(region->process != 0);
    if (!m->active && mqx_region_stopped(region) == MQX_RUNNING) {
        return standby_us(region);
    }
    return is_unmarked(region->journal) ? MARK_AFTER_US : ROUND_US;
}

static void *run(void *arg)
{
    struct mqx_maintenance *m = arg;
    struct mqx_region *region = &m->store->region;
    uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    uint32_t answered = mqx_load_acquire(doorbell) - 1; /* the first turn is a round */
    while (mqx_load_acquire(&m->stop) == 0) {
        const uint32_t seen = mqx_load_acquire(doorbell);
        const bool rung = ((seen ^ answered) & MQX_BELL_ROUNDS) != 0;
        answered = seen;
        if (mqx_region_stopped(region) != MQX_RUNNING) {
            release_life_when_stopped(m, rung);
        } else {
            take_turn(m, rung);
        }
        rest(m, seen, pause_us(m));
    }
    log_stop(m); /* a process that leaves at once has a reason, too */
    return NULL;
}

/* All signals blocked, so that handlers run in the application's threads. */
static int start_thread(struct mqx_maintenance *m)
{
    MQX_ASSERT(m->store != NULL);
    pthread_attr_t attributes;
    sigset_t all, before;
    int err = pthread_attr_init(&attributes);
    if (err != 0) {
        return err;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES); /* if refused, the default will do */
    (void)sigfillset(&all);
    err = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (err == 0) {
        err = pthread_create(&m->thread, &attributes, run, m);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    if (err == 0) {
        (void)pthread_setname_np(m->thread, "penstock");
    }
    return err;
}

int mqx_maintenance_start(struct mqx_store *store, struct mqx_maintenance **out)
{
    MQX_ASSERT(store->region.process != 0);
    struct mqx_maintenance *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the maintenance thread");
    }
    m->store = store;
    m->round.of_thread = true;
    store->region.long_wait = mqx_lock_watchdog_waited;
    const int err = start_thread(m);
    if (err != 0) {
        free(m);
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "the maintenance thread cannot be started: %s",
                        strerror(err));
    }
    *out = m;
    return MQX_OK;
}

void mqx_maintenance_stop(struct mqx_maintenance *m)
{
    MQX_ASSERT(m->store != NULL);
    struct mqx_store *store = m->store;
    if (!mqx_forked(store)) {
        mqx_store_release(&store->leaving, 1u);
        mqx_store_release(&m->stop, 1u);
        mqx_maintenance_ring(&store->region, store->region.process);
        (void)pthread_join(m->thread, NULL);
        mqx_store_release(&store->leaving, 0u); /* an orderly end takes its checkpoint itself */
    }
    free(m);
}

void mqx_maintenance_ring(struct mqx_region *region, uint32_t process)
{
    MQX_ASSERT(process != 0 && process < MQX_PROCESS_MAX);
    mqx_futex_raise(&mqx_process_slot(region, process)->doorbell, 1);
}
