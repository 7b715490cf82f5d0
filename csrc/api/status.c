/*
 * status.c - numbers about queues and the queue manager: depth, counts, lists of processes, units
 * and handles, and the age of a queue (mqe_queue_oldest: when its oldest message was put).
 *
 * Numbers are read without locks unless stated otherwise, after what is due has become available;
 * each is right for one moment, not all for the same.
 *
 * Queue age. Within a placement priority messages stand in the order in which they arrived, so the
 * oldest one is at the head of one of the ten: their PutTimes are compared. Only messages count
 * that a get could have now: not those of units of work, nor locked ones. A message whose putter
 * left the time out (MQPMO_NO_CONTEXT) has none: the next one of its priority stands for it.
 * Locks: the stripe lock, for at most 64 messages a call; dropped while the descriptor of a message
 * whose body lies in the journal is read, which is pinned for that by a context of the pool.
 */

#include "api/context_pool.h"
#include "api/journal_holder.h"
#include "base/error.h"
#include "journal/journal.h"
#include "journal/segment_pin.h"
#include "os/block_hook.h"
#include "os/fork_guard.h"
#include "process/lock_watchdog.h"
#include "queue/due_release.h"
#include "queue/queue.h"
#include "region/extents.h"
#include "region/huge_blocks.h"
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>

/* ---- queues ---- */

int mqe_queue_status(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     struct mqe_queue_status *out)
{
    MQX_ASSERT(out != NULL);
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_object *queue = mqx_object(&manager->store.region, slot);
    if (queue == NULL || mqx_load_acquire(&queue->generation) != generation ||
        (mqx_load_acquire(&queue->state) == MQX_OBJ_DELETING &&
         manager->store.region.header->platform != MQX_PLATFORM_ZOS)) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
    }
    status = mqx_due_release(&manager->store, slot);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t got = mqx_load_relaxed(&queue->got);
    const uint32_t present = mqx_load_relaxed(&queue->present);
    *out = (struct mqe_queue_status){
        .depth = present > got ? present - got : 0,
        .uncommitted = mqx_load_relaxed(&queue->uncommitted),
        .got = got,
        .delayed = mqx_load_relaxed(&queue->delayed),
        .open_input = mqx_load_relaxed(&queue->open_input),
        .open_output = mqx_load_relaxed(&queue->open_output),
        .open_other = mqx_load_relaxed(&queue->open_other),
        .waiters = mqx_load_relaxed(&queue->waiters),
        .put_count = mqx_load_relaxed(&queue->put_count),
        .get_count = mqx_load_relaxed(&queue->get_count),
        .last_put_us = mqx_load_relaxed(&queue->last_put_us),
        .last_get_us = mqx_load_relaxed(&queue->last_get_us),
    };
    return MQX_OK;
}

/* ---- the age of a queue ---- */

struct age_search {
    mqe_manager *manager;
    struct mqx_region *region;
    uint32_t object, generation;
    uint32_t context;         /* of the pool, 0 while none was needed */
    struct mqx_cursor cursor;
    uint64_t oldest;          /* 0: nothing known */
};

/* Reads the descriptor of a message in the journal; drops the lock. *time 0: it went away, or
 * cannot be read, which a get of it will report. */
static int read_pinned(struct age_search *s, struct mqx_stripe_guard *guard, uint32_t slot,
                       uint64_t *time)
{
    MQX_ASSERT(s->context != 0);
    MQX_ASSERT(mqx_message(guard->region, slot)->cells == 0);
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct ps_descriptor d = {.put_time_us = 0};
    mqx_pending_pin(guard, s->context, s->object, slot);
    mqx_stripe_guard_drop(guard);
    mqx_about_to_block();
    mqx_file_calls_begin(s->manager);
    const int fetched =
        mqx_journal_fetch(&s->manager->store, message, &d, NULL, NULL, 0);
    const bool gone = *(volatile uint8_t *)&message->state == MQX_MSG_GONE;
    *time = fetched == MQX_OK && !gone ? d.put_time_us : 0;
    const int status = mqx_pending_release(&s->manager->store, s->context);
    mqx_file_calls_end(s->manager);
    if (fetched != MQX_OK) {
        mqx_error_clear();
    }
    return status;
}

/* The oldest message of the cursor's priority is known: moves to the head of the next priority.
 * False: there is none. */
static bool next_priority(struct age_search *s, const struct mqx_object *queue, uint64_t time)
{
    MQX_ASSERT(time != 0);
    MQX_ASSERT(s->cursor.placement <= MQX_MAX_PRIORITY);
    const uint32_t placement = s->cursor.placement;
    if (s->oldest == 0 || time < s->oldest) {
        s->oldest = time;
    }
    if (placement == 0) {
        return false;
    }
    s->cursor = (struct mqx_cursor){
        .started = 1,
        .placement = placement - 1,
        .reset_count = queue->level[placement - 1].reset_count + 1, /* from its beginning */
    };
    return true;
}

static int lock_again(const struct age_search *s, struct mqx_stripe_guard *guard,
                      struct mqx_object **queue)
{
    return mqx_queue_lock(s->region, s->object, s->generation, guard, queue);
}

/* Examines the next message. The lock is held before and after, except after a failure. */
static int examine_next(struct age_search *s, struct mqx_stripe_guard *guard,
                        struct mqx_object **queue, bool *more)
{
    MQX_ASSERT(mqx_lock_held(s->region, &guard->stripe->lock));
    const struct mqx_cursor before = s->cursor;
    const uint32_t slot = mqx_priority_index_next(s->region, *queue, &s->cursor, true);
    const struct mqx_message *message = mqx_message(s->region, slot);
    uint64_t time = 0;
    int status = MQX_OK;
    *more = message != NULL;
    if (message != NULL && message->cells != 0) {
        const struct ps_descriptor *d = mqx_body_descriptor(s->region, message);
        time = d == NULL ? 0 : d->put_time_us;
    } else if (message != NULL && s->context == 0) {
        mqx_stripe_guard_drop(guard);
        s->cursor = before;
        status = mqx_pool_take(s->manager, true, &s->context);
        return status == MQX_OK ? lock_again(s, guard, queue) : status;
    } else if (message != NULL && message->pins < UINT8_MAX) {
        status = read_pinned(s, guard, slot, &time);
        status = status == MQX_OK ? lock_again(s, guard, queue) : status;
    }
    if (status == MQX_OK && time != 0) {
        *more = next_priority(s, *queue, time);
    }
    return status;
}

int mqe_queue_oldest(mqe_manager *manager, uint32_t slot, uint32_t generation, uint64_t *out_us)
{
    MQX_ASSERT(out_us != NULL);
    struct age_search s = {.manager = manager, .object = slot, .generation = generation};
    struct mqx_object *queue;
    struct mqx_stripe_guard guard;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    *out_us = 0;
    s.region = &manager->store.region;
    queue = mqx_object(s.region, slot);
    if (queue != NULL && mqx_load_acquire(&queue->generation) == generation &&
        mqx_load_relaxed(&queue->present) == 0) {
        return MQX_OK;
    }
    if (queue == NULL) {
        return mqx_fail(MQRC_Q_DELETED, "there is no queue in slot %u", slot);
    }
    status = mqx_due_release(&manager->store, slot);
    if (status == MQX_OK) {
        status = mqx_queue_lock(s.region, slot, generation, &guard, &queue);
    }
    bool more = status == MQX_OK;
    for (uint32_t steps = 0; more && steps < MQX_LOCKED_STEPS_MAX; steps++) {
        status = examine_next(&s, &guard, &queue, &more);
        if (status != MQX_OK) {
            break;
        }
    }
    if (status == MQX_OK) {
        mqx_stripe_guard_drop(&guard);
        *out_us = s.oldest;
    }
    if (s.context != 0) {
        mqx_pool_give(manager, s.context);
    }
    return status;
}

/* ---- the queue manager ---- */

static uint64_t used_bytes(const struct mqx_region *region)
{
    const struct mqx_header *header = region->header;
    MQX_ASSERT(header != NULL);
    uint64_t total = header->pool[0].extents_offset; /* what is laid out at the start */
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        total += mqx_load_relaxed(&header->area[kind].capacity);
    }
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        total -= mqx_extents_punched_bytes(region, (enum mqx_pool_no)no);
    }
    return total;
}

static void count_tables(const struct mqx_region *region, struct mqe_manager_status *out)
{
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    for (uint32_t i = 0; i < MQX_PROCESS_MAX; i++) {
        out->attached += mqx_load_relaxed(&region->header->process[i].state) == MQX_PROC_LIVE;
    }
    const uint64_t contexts = mqx_area_used(region, MQX_AREA_CONTEXTS);
    for (uint32_t i = 1; i < contexts; i++) {
        const struct mqx_context *context = mqx_context(region, i);
        const uint32_t state = context == NULL ? 0 : mqx_load_relaxed(&context->state);
        out->contexts += state != MQX_CTX_FREE;
        out->units += state > MQX_CTX_IDLE && state != MQX_CTX_PREPARED;
        out->prepared += state == MQX_CTX_PREPARED;
    }
    const uint64_t handles = mqx_area_used(region, MQX_AREA_HANDLES);
    for (uint32_t i = 1; i < handles; i++) {
        const struct mqx_handle *handle = mqx_handle(region, i);
        out->handles += handle != NULL && mqx_load_relaxed(&handle->state) != 0;
    }
    const uint64_t objects = mqx_area_used(region, MQX_AREA_OBJECTS);
    for (uint32_t i = 1; i < objects; i++) {
        const struct mqx_object *object = mqx_object(region, i);
        const uint32_t state = object == NULL ? 0 : mqx_load_relaxed(&object->state);
        out->objects += state == MQX_OBJ_ACTIVE;
        out->deleted += state == MQX_OBJ_DELETING;
    }
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        out->repairs += region->stripes[i].lock.repairs;
    }
}

static void count_segments(const struct mqx_journal *journal, struct mqe_manager_status *out)
{
    MQX_ASSERT(journal != NULL);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const uint32_t state = mqx_load_relaxed(&journal->segment[i].state);
        out->segments += state == MQX_SEG_ACTIVE || state == MQX_SEG_FULL;
        out->spare_segments += state == MQX_SEG_SPARE;
    }
}

static void count_backup(const struct mqx_region *region, struct mqe_manager_status *out)
{
    uint32_t process = 0;
    MQX_ASSERT(out != NULL);
    out->backup_bytes = mqx_pin_bytes(region->journal, &process);
    out->backup_pid = mqx_load_relaxed(&region->journal->pin.owner) != 0
                          ? mqx_process_slot(region, process)->pid
                          : 0;
}

int mqe_status(mqe_manager *manager, struct mqe_manager_status *out)
{
    MQX_ASSERT(out != NULL);
    const struct mqx_region *region = &manager->store.region;
    const struct mqx_header *header = region->header;
    const struct mqx_journal *journal = region->journal;
    if (mqx_forked(&manager->store)) {
        return mqx_enter(manager, false);
    }
    *out = (struct mqe_manager_status){
        .quiescing = mqx_load_relaxed(&header->quiescing),
        .stopped = mqx_load_relaxed(&header->stopped),
        .region_in_memory = region->in_memory,
        .region_bytes = header->size,
        .region_used = used_bytes(region),
        .message_entries =
            mqx_extents_used_bytes(region, MQX_POOL_ENTRIES) / sizeof(struct mqx_message),
        .body_bytes = mqx_extents_used_bytes(region, MQX_POOL_CELLS),
        .durable_lsn = mqx_journal_durable(journal),
        .tail_lsn = mqx_load_relaxed(&journal->tail),
        .checkpoint_lsn = mqx_load_relaxed(&journal->checkpoint_begin),
        .checkpoint_damaged = mqx_load_relaxed(&journal->checkpoint_damaged),
        .journal_bytes = mqx_load_relaxed(&journal->used_bytes),
        .journal_limit = journal->limit,
        .flushes = mqx_load_relaxed(&journal->flushes),
        .flushed_bytes = mqx_load_relaxed(&journal->flushed_bytes),
        .flushed_records = mqx_load_relaxed(&journal->flushed_records),
        .woken_by_bound = mqx_load_relaxed(&header->woken_by_bound),
        .np_discarded = mqx_load_relaxed(&header->np_discarded),
        .live_bytes = mqx_store_live_bytes(region),
        .live_limit = mqx_journal_live_limit(journal),
        .moved_messages = mqx_load_relaxed(&journal->moved_messages),
        .moved_bytes = mqx_load_relaxed(&journal->moved_bytes),
    };
    count_tables(region, out);
    count_segments(journal, out);
    out->region_huge = mqx_huge_bytes(region);
    MQX_STATIC_ASSERT(sizeof out->huge_refusal == MQX_HUGE_TEXT, "a whole refusal");
    mqx_huge_explain(region, out->huge_refusal);
    struct mqx_journal_holder holder;
    mqx_journal_holder_find(region, &holder);
    out->held_bytes = holder.bytes;
    out->held_us = holder.since_us;
    out->held_pid = holder.pid;
    count_backup(region, out);
    return MQX_OK;
}

/* ---- lists ---- */

int mqe_processes(mqe_manager *manager, struct mqe_process_status *out, uint32_t capacity,
                  uint32_t *out_count)
{
    MQX_ASSERT(out != NULL || capacity == 0);
    MQX_ASSERT(out_count != NULL);
    const struct mqx_region *region = &manager->store.region;
    int status = mqx_enter(manager, false);
    *out_count = 0;
    for (uint32_t i = 0; i < MQX_PROCESS_MAX && status == MQX_OK; i++) {
        const struct mqx_process *process = mqx_process_slot(region, i);
        if (mqx_load_acquire(&process->state) != MQX_PROC_LIVE) {
            continue;
        }
        if (*out_count < capacity) {
            struct mqe_process_status *row = &out[*out_count];
            row->pid = process->pid;
            row->keeper = process->keeper;
            row->attached_us = process->attached_us;
            memcpy(row->program, process->program, sizeof row->program);
            row->program[sizeof row->program - 1] = '\0';
        }
        *out_count += 1;
    }
    return status;
}

int mqe_held_locks(mqe_manager *manager, struct mqe_held_lock *out, uint32_t capacity,
                   uint32_t *out_count)
{
    MQX_ASSERT(out != NULL || capacity == 0);
    MQX_ASSERT(out_count != NULL);
    struct mqx_region *region = &manager->store.region;
    const int status = mqx_enter(manager, false);
    const uint32_t count = status == MQX_OK ? mqx_lock_watchdog_count(region) : 0;
    *out_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct mqx_held_lock held;
        if (!mqx_lock_watchdog_slow(region, i, &held)) {
            continue;
        }
        if (*out_count < capacity) {
            struct mqe_held_lock *row = &out[*out_count];
            *row = (struct mqe_held_lock){.pid = held.pid, .seconds = held.seconds};
            (void)snprintf(row->lock, sizeof row->lock, "%s", held.name);
            memcpy(row->program, held.program, sizeof row->program);
        }
        *out_count += 1;
    }
    return status;
}

int mqe_units(mqe_manager *manager, struct mqe_unit_status *out, uint32_t capacity,
              uint32_t *out_count)
{
    MQX_ASSERT(out != NULL || capacity == 0);
    MQX_ASSERT(out_count != NULL);
    const struct mqx_region *region = &manager->store.region;
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    for (uint32_t i = 1; i < used; i++) {
        const struct mqx_context *context = mqx_context(region, i);
        const uint32_t state = context == NULL ? 0 : mqx_load_acquire(&context->state);
        if (state <= MQX_CTX_IDLE || state == MQX_CTX_PREPARED) {
            continue;
        }
        if (*out_count < capacity) {
            out[*out_count] = (struct mqe_unit_status){
                .pid = mqx_process_slot(region, context->process)->pid,
                .thread = context->thread,
                .state = context->state,
                .count = context->count,
                .unit_id = context->unit_id,
                .started_us = context->started_us,
            };
        }
        *out_count += 1;
    }
    return status;
}

int mqe_handles(mqe_manager *manager, struct mqe_handle_status *out, uint32_t capacity,
                uint32_t *out_count)
{
    MQX_ASSERT(out != NULL || capacity == 0);
    MQX_ASSERT(out_count != NULL);
    const struct mqx_region *region = &manager->store.region;
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t used = mqx_area_used(region, MQX_AREA_HANDLES);
    for (uint32_t i = 1; i < used; i++) {
        const struct mqx_handle *handle = mqx_handle(region, i);
        if (handle == NULL || mqx_load_acquire(&handle->state) == 0) {
            continue;
        }
        const struct mqx_object *object = mqx_object(region, handle->object);
        if (*out_count < capacity) {
            out[*out_count] = (struct mqe_handle_status){
                .pid = handle->pid,
                .object = handle->object,
                .generation = handle->object_gen,
                .deleted = object != NULL &&
                           mqx_load_acquire(&object->state) == MQX_OBJ_DELETING,
                .options = handle->options,
                .step = {handle->step[0], handle->step[1], handle->step[2], handle->step[3]},
                .opened_us = handle->opened_us,
            };
        }
        *out_count += 1;
    }
    return status;
}
