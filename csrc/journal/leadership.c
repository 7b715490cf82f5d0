/*
 * leadership.c - see leadership.h.
 *
 * Whom to ask. The process that was rung last is asked first, since it has led; each further turn
 * rings the next one that is attached. So one that is stopped, busy or in the same trouble costs
 * 10 ms, not the wait.
 */
#include "journal/leadership.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/futex.h"

#include <stdio.h>
#include <string.h>

uint64_t mqx_leadership_patience_us = 5000000;

enum { TURN_US = 10000 };

/* ---- the last failure ---- */

/* What the caller's error text says now is kept: the call that reports it may come much later. */
static int note(struct mqx_store *store, int reason, int error, const char *call)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(reason != MQX_OK);
    MQX_ASSERT(call[0] != '\0');
    (void)pthread_mutex_lock(&files->leading);
    files->cannot.reason = reason;
    files->cannot.error = error;
    files->cannot.call = call;
    (void)snprintf(files->cannot.text, sizeof files->cannot.text, "%s", mqx_error_text());
    (void)pthread_mutex_unlock(&files->leading);
    return MQX_CANNOT_LEAD;
}

/* The newest one: a copy, since other threads of the process may meet the next. */
static void read_failure(struct mqx_store *store, struct mqx_cannot_lead *out)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    (void)pthread_mutex_lock(&files->leading);
    *out = files->cannot;
    (void)pthread_mutex_unlock(&files->leading);
    MQX_ASSERT(out->reason != MQX_OK); /* somebody of this process was refused before */
}

/* Of a call to the file table, while this process was about to write: nothing is decided yet. */
int mqx_leadership_cannot(struct mqx_store *store, int negated_errno, const char *call)
{
    MQX_ASSERT(negated_errno < 0);
    MQX_ASSERT(store->files != NULL);
    return note(store, mqx_io_reason(negated_errno, call), -negated_errno, call);
}

/* The same of a step that has a reason code already. */
int mqx_leadership_refused(struct mqx_store *store, int reason, const char *call)
{
    MQX_ASSERT(mqx_leadership_is_own(reason));
    MQX_ASSERT(store->files != NULL);
    return note(store, reason, 0, call);
}

/* Reasons that another process of the same queue manager need not meet (rule 51): its descriptors,
 * its memory, its user and its surroundings are others. */
bool mqx_leadership_is_own(int status)
{
    MQX_ASSERT(status != MQX_CANNOT_LEAD);
    MQX_ASSERT(status != MQX_OK);
    return status == MQRC_RESOURCE_PROBLEM || status == MQRC_STORAGE_NOT_AVAILABLE ||
           status == MQRC_NOT_AUTHORIZED || status == MQRC_ENVIRONMENT_ERROR;
}

int mqx_leadership_stop(struct mqx_store *store)
{
    struct mqx_cannot_lead failure;
    MQX_ASSERT(store->region.base != NULL);
    read_failure(store, &failure);
    mqx_region_stop_because(&store->region, failure.call, failure.error);
    MQX_ASSERT(mqx_region_stopped(&store->region) != MQX_RUNNING);
    return mqx_fail(MQRC_CONNECTION_BROKEN,
                    "%s, and no other process writes the journal; the queue manager has stopped, "
                    "the outcome of open calls is unknown until restart", failure.text);
}

int mqx_leadership_reason(struct mqx_store *store)
{
    struct mqx_cannot_lead failure;
    MQX_ASSERT(store->files != NULL);
    read_failure(store, &failure);
    MQX_ASSERT(failure.text[0] != '\0');
    return mqx_fail(failure.reason, "%s", failure.text);
}

bool mqx_journal_cannot_lead(struct mqx_store *store, char *text, size_t size)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    MQX_ASSERT(size > 0);
    (void)pthread_mutex_lock(&files->leading);
    const bool cannot = files->cannot.reason != MQX_OK;
    (void)snprintf(text, size, "%s", files->cannot.text);
    (void)pthread_mutex_unlock(&files->leading);
    return cannot;
}

/* ---- handing over ---- */

int mqx_leadership_follow(struct mqx_journal *journal, uint32_t seen, uint64_t timeout_us)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(timeout_us > 0);
    /* A follower that dies leaves the count too high: then leaders make one needless call. */
    (void)__atomic_fetch_add(&journal->flush_waiters, 1, __ATOMIC_SEQ_CST);
    const int slept = mqx_futex_wait(&journal->flush_word, seen, timeout_us);
    (void)mqx_fetch_add(&journal->flush_waiters, (uint32_t)-1);
    return slept;
}

/* An attached process other than this one: the first from slot `from` on, around the table; 0 when
 * there is none. */
static uint32_t other_process(const struct mqx_region *region, uint32_t from)
{
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    MQX_ASSERT(from < 2 * MQX_PROCESS_MAX);
    for (uint32_t i = 0; i < MQX_PROCESS_MAX; i++) {
        const uint32_t slot = (from + i) % MQX_PROCESS_MAX;
        const struct mqx_process *process = &region->header->process[slot];
        if (slot != 0 && slot != region->process &&
            mqx_load_acquire(&process->state) == MQX_PROC_LIVE) {
            return slot;
        }
    }
    return 0;
}

/* Counts the time from the last moment at which anything was written by anybody. */
static bool is_over(struct mqx_handing *handing, uint64_t progress)
{
    const uint64_t now_us = mqx_clock_monotonic_us();
    MQX_ASSERT(now_us > 0);
    if (handing->begun_us == 0 || handing->progress != progress) {
        handing->begun_us = now_us;
        handing->progress = progress;
    }
    MQX_ASSERT(now_us >= handing->begun_us);
    return now_us - handing->begun_us >= mqx_leadership_patience_us;
}

int mqx_leadership_wait(struct mqx_store *store, struct mqx_handing *handing, uint64_t lsn)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_files *files = store->files;
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    const uint32_t seen = mqx_load_acquire(&journal->flush_word);
    const uint64_t durable = mqx_journal_durable(journal);
    if (durable >= lsn || mqx_region_stopped(region) != MQX_RUNNING) {
        return MQX_OK; /* the caller sees it */
    }
    const uint32_t last = mqx_load_relaxed(&files->helper);
    const uint32_t slot =
        other_process(region, handing->slot == 0 ? last % MQX_PROCESS_MAX : handing->slot + 1);
    if (slot == 0 || is_over(handing, durable + mqx_load_relaxed(&journal->written))) {
        return MQX_CANNOT_LEAD;
    }
    handing->slot = slot;
    mqx_store_relaxed(&files->helper, slot);
    if (mqx_load_acquire(&journal->lead_wanted) < lsn) {
        mqx_store_release(&journal->lead_wanted, lsn);
    }
    mqx_futex_raise(&region->header->process[slot].doorbell, 1);
    (void)mqx_leadership_follow(journal, seen, TURN_US);
    return MQX_OK;
}

bool mqx_leadership_take_request(struct mqx_store *store, uint64_t *out_lsn)
{
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(store->region.base != NULL);
    MQX_ASSERT(out_lsn != NULL);
    *out_lsn = 0;
    if (mqx_load_relaxed(&journal->lead_wanted) != 0) {
        *out_lsn = mqx_exchange(&journal->lead_wanted, UINT64_C(0));
    }
    return *out_lsn != 0;
}
