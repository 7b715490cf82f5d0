/*
 * control.c - the control plane of engine.h: objects, status, maintenance on request. Nothing here is
 * called on a put or a get; numbers are snapshots, taken without locks unless said otherwise.
 */
#include "process/attach.h"

#include "base/checksum.h"
#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "catalog/cf_structure.h"
#include "os/block_hook.h"
#include "os/fork_guard.h"
#include "os/host_info.h"
#include "process/attachment.h"
#include "process/error_log.h"
#include "queue/id_index.h"
#include "queue/queue.h"
#include "queue/wait_list.h"
#include "recovery/checkpoint.h"
#include "unit/unit.h"

#include <string.h>

/* ---- objects ---- */

/* A context for a change of the catalog, and back. */
typedef int (*change)(struct mqx_store *store, uint32_t context, void *arg);

static int with_context(mqe_manager *manager, change call, void *arg)
{
    uint32_t context = 0;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, true, &context);
    }
    if (status != MQX_OK) {
        return status;
    }
    mqx_about_to_block();
    mqx_inside(manager, 1);
    status = call(&manager->store, context, arg);
    mqx_inside(manager, -1);
    mqx_pool_give(manager, context);
    return status;
}

struct object_change {
    struct mqx_definition definition;
    uint32_t *slot, *generation;
    uint64_t stamp;
    uint32_t flags;
};

static int do_define(struct mqx_store *store, uint32_t context, void *arg)
{
    const struct object_change *c = arg;
    return mqx_catalog_define(store, context, &c->definition, c->slot, c->generation);
}

int mqe_define(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
               uint32_t attrs_length, uint32_t *slot, uint32_t *generation)
{
    struct object_change c = {
        .definition = {*name, attrs, attrs_length}, .slot = slot, .generation = generation};
    return with_context(manager, do_define, &c);
}

enum { DEFINE_STEP = 256 };  /* definitions handed to the catalog in one go */

struct define_many {
    const struct mqe_definition *definitions;
    uint32_t count, done;
};

static int do_define_many(struct mqx_store *store, uint32_t context, void *arg)
{
    struct define_many *many = arg;
    struct mqx_definition definitions[DEFINE_STEP];
    uint32_t slots[DEFINE_STEP], generations[DEFINE_STEP];
    int status = MQX_OK;
    while (many->done < many->count && status == MQX_OK) {
        const struct mqe_definition *from = many->definitions + many->done;
        const uint32_t left = many->count - many->done;
        const uint32_t step = left < DEFINE_STEP ? left : (uint32_t)DEFINE_STEP;
        uint32_t done = 0;
        for (uint32_t i = 0; i < step; i++) {
            definitions[i] = (struct mqx_definition){*from[i].name, from[i].attrs, from[i].length};
        }
        status = mqx_catalog_define_many(store, context, definitions, step, slots, generations,
                                         &done);
        many->done += done;
    }
    return status;
}

int mqe_define_many(mqe_manager *manager, const struct mqe_definition *definitions, uint32_t count,
                    uint32_t *done)
{
    struct define_many many = {definitions, count, 0};
    const int status = with_context(manager, do_define_many, &many);
    *done = many.done;
    return status;
}

static int do_alter(struct mqx_store *store, uint32_t context, void *arg)
{
    const struct object_change *c = arg;
    return mqx_catalog_alter(store, context, *c->slot, *c->generation, &c->definition, c->stamp,
                             c->flags);
}

int mqe_alter(mqe_manager *manager, uint32_t slot, uint32_t generation,
              const struct ps_object_name *name, const void *attrs, uint32_t attrs_length,
              uint64_t stamp, uint32_t flags)
{
    struct object_change c = {.definition = {*name, attrs, attrs_length}, .slot = &slot,
                              .generation = &generation, .stamp = stamp, .flags = flags};
    const int status = with_context(manager, do_alter, &c);
    return status == MQX_OK ? mqe_wake(manager, slot) : status; /* waiters see 2016 or 2041 */
}

int mqe_wake(mqe_manager *manager, uint32_t slot)
{
    const int status = mqx_enter(manager, false);
    const struct mqx_object *queue =
        status == MQX_OK ? mqx_object(&manager->store.region, slot) : NULL;
    return queue == NULL || mqx_load_acquire(&queue->waiters) == 0
               ? status
               : mqx_wait_list_cancel_all(&manager->store, slot);
}

int mqe_delete(mqe_manager *manager, uint32_t slot, uint32_t generation, int purge)
{
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        mqx_about_to_block();
        mqx_inside(manager, 1);
        status = mqx_catalog_delete(&manager->store, slot, generation, purge != 0);
        mqx_inside(manager, -1);
    }
    return status;
}

int mqe_find(mqe_manager *manager, uint32_t name_space, const char name[48], uint64_t instance,
             struct mqe_found *out)
{
    int status = mqx_enter(manager, false);
    return status != MQX_OK
               ? status
               : mqx_catalog_find(&manager->store, name_space, name, instance, out);
}

int mqe_next_object(mqe_manager *manager, uint32_t *slot, uint32_t *generation)
{
    int status = mqx_enter(manager, false);
    return status != MQX_OK ? status : mqx_catalog_next(&manager->store, slot, generation);
}

int mqe_read_object(mqe_manager *manager, uint32_t slot, uint32_t generation,
                    struct ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length,
                    uint64_t *stamp)
{
    int status = mqx_enter(manager, false);
    return status != MQX_OK ? status
                            : mqx_catalog_read(&manager->store, slot, generation, name, attrs,
                                               capacity, length, stamp);
}

/* ---- clearing: gets in units of work, so that whoever dies half way leaves whole units ---- */

enum { CLEAR_UNIT = 1024 }; /* messages a unit */

struct clear_target {
    uint32_t slot, generation;
    uint64_t below;            /* messages put later stay */
    bool only_volatile;        /* what the failure of a structure takes, browse locks or not */
    struct mqx_cursor cursor;  /* everything before it has been seen */
    bool more;
    uint64_t removed;
};

static bool is_wanted(const struct clear_target *target, const struct mqx_message *message)
{
    if (target->only_volatile) {
        return (message->flags & MQX_MSGF_VOLATILE) != 0 &&
               (message->state == MQX_MSG_AVAILABLE || message->state == MQX_MSG_LOCKED);
    }
    return message->state == MQX_MSG_AVAILABLE && message->number < target->below;
}

/* Looks at up to 64 messages and claims those that are wanted; their slots go to `claimed`. */
static int claim_some(struct mqx_store *store, uint32_t context, struct clear_target *target,
                      uint32_t claimed[MQX_LOCKED_STEPS_MAX], uint32_t *out_count)
{
    struct mqx_object *queue = mqx_object(&store->region, target->slot);
    struct mqx_stripe_guard guard;
    *out_count = 0;
    int status = mqx_stripe_guard_take(&store->region, target->slot, &guard);
    if (status != MQX_OK) {
        return status;
    }
    target->more = mqx_load_relaxed(&queue->generation) == target->generation &&
                   mqx_load_relaxed(&queue->state) != MQX_OBJ_DELETING;
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && target->more; i++) {
        const uint32_t slot =
            mqx_priority_index_next(&store->region, queue, &target->cursor, false);
        const struct mqx_message *message = mqx_message(&store->region, slot);
        target->more = message != NULL;
        if (message == NULL || !is_wanted(target, message)) {
            continue;
        }
        if (message->state == MQX_MSG_LOCKED) {
            mqx_queue_show(&guard, queue, slot, 0);
            mqx_stripe_guard_commit(&guard);
        }
        mqx_queue_claim(&guard, queue, slot, MQX_MSG_GOT, context);
        mqx_stripe_guard_commit(&guard);
        claimed[(*out_count)++] = slot;
    }
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

static int clear_unit(struct mqx_store *store, uint32_t context, struct clear_target *target)
{
    uint32_t claimed[MQX_LOCKED_STEPS_MAX], count = 0, total = 0;
    int status = MQX_OK;
    mqx_unit_begin(store, context);
    do {
        status = claim_some(store, context, target, claimed, &count);
        for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
            if ((mqx_message(&store->region, claimed[i])->flags & MQX_MSGF_PERSISTENT) != 0) {
                status = mqx_unit_log_get(store, context, claimed[i], false);
            }
        }
        total += count;
    } while (status == MQX_OK && target->more && total < CLEAR_UNIT);
    if (status == MQX_OK) {
        target->removed += total;
        return mqx_unit_commit(store, context);
    }
    mqx_ignore(mqx_unit_backout(store, context)); /* the first failure is the one to report */
    return status;
}

static int do_clear(struct mqx_store *store, uint32_t context, void *arg)
{
    struct clear_target *target = arg;
    const struct mqx_object *queue = mqx_object(&store->region, target->slot);
    if (queue == NULL || mqx_load_relaxed(&queue->generation) != target->generation) {
        return mqx_fail(MQRC_UNKNOWN_OBJECT_NAME, "the queue has been deleted");
    }
    if (queue->open_input != 0 || queue->open_output != 0 || queue->open_other != 0) {
        return mqx_fail(MQRC_OBJECT_IN_USE, "%.48s is open", queue->name);
    }
    if (queue->got != 0 || queue->uncommitted != 0) {
        return mqx_fail(MQRC_Q_NOT_EMPTY, "units of work hold messages of %.48s", queue->name);
    }
    target->below = mqx_fetch_add(&store->region.journal->next_number, (uint64_t)0);
    target->more = true;
    int status = MQX_OK;
    while (status == MQX_OK && target->more) {
        status = clear_unit(store, context, target);
    }
    return status;
}

int mqe_clear(mqe_manager *manager, uint32_t slot, uint32_t generation)
{
    struct clear_target target = {.slot = slot, .generation = generation};
    return with_context(manager, do_clear, &target);
}

/* ---- the failure of a structure ---- */

enum { UNIT_PATIENCE = 200, PAUSE_US = 1000 }; /* looks at a queue that units hold messages of */

struct failure {
    uint32_t slot, generation;
    uint64_t lost;
};

/* No unit holds messages of the queue; puts and gets that began before the failure have come
 * through the lock. */
static int await_no_units(struct mqx_store *store, uint32_t slot)
{
    const struct mqx_object *queue = mqx_object(&store->region, slot);
    for (int i = 0; i < UNIT_PATIENCE; i++) {
        struct mqx_stripe_guard guard;
        int status = mqx_stripe_guard_take(&store->region, slot, &guard);
        if (status != MQX_OK) {
            return status;
        }
        const bool free = queue->got == 0 && queue->uncommitted == 0;
        mqx_stripe_guard_drop(&guard);
        if (free) {
            return MQX_OK;
        }
        mqx_clock_sleep_us(PAUSE_US);
    }
    return mqx_fail(MQRC_Q_NOT_EMPTY, "units of work hold messages of %.48s", queue->name);
}

static int lose_messages(struct mqx_store *store, uint32_t context, struct failure *failure)
{
    uint32_t slot = 0;
    int status = MQX_OK;
    while (status == MQX_OK && mqx_cf_structure_next(&store->region, failure->slot, &slot)) {
        status = await_no_units(store, slot);
    }
    slot = 0;
    while (status == MQX_OK && mqx_cf_structure_next(&store->region, failure->slot, &slot)) {
        struct clear_target target = {
            .slot = slot,
            .generation = mqx_object(&store->region, slot)->generation,
            .only_volatile = true,
            .more = true,
        };
        while (status == MQX_OK && target.more) {
            status = clear_unit(store, context, &target);
        }
        failure->lost += target.removed;
    }
    return status;
}

static int do_fail(struct mqx_store *store, uint32_t context, void *arg)
{
    struct failure *failure = arg;
    int status = mqx_catalog_fail(store, context, failure->slot, failure->generation);
    if (status != MQX_OK) {
        return status;
    }
    status = lose_messages(store, context, failure);
    if (mqx_region_stopped(&store->region) == MQX_RUNNING) {
        const int restored = mqx_catalog_restore(store, context, failure->slot);
        status = status == MQX_OK ? restored : status;
    }
    return status;
}

int mqe_fail_structure(mqe_manager *manager, uint32_t slot, uint32_t generation, uint64_t *lost)
{
    struct failure failure = {.slot = slot, .generation = generation};
    const int status = with_context(manager, do_fail, &failure);
    *lost = failure.lost;
    return status;
}

/* ---- status ---- */

int mqe_queue_status(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     struct mqe_queue_status *out)
{
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_object *queue = mqx_object(&manager->store.region, slot);
    if (queue == NULL || mqx_load_acquire(&queue->generation) != generation ||
        mqx_load_acquire(&queue->state) == MQX_OBJ_DELETING) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
    }
    const uint32_t got = mqx_load_relaxed(&queue->got);
    const uint32_t present = mqx_load_relaxed(&queue->present);
    *out = (struct mqe_queue_status){
        .depth = present > got ? present - got : 0,
        .uncommitted = mqx_load_relaxed(&queue->uncommitted),
        .got = got,
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

static uint64_t used_bytes(const struct mqx_header *header)
{
    uint64_t total = header->area[0].offset;
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        total += mqx_load_relaxed(&header->area[kind].capacity);
    }
    return total;
}

static void count_tables(const struct mqx_region *region, struct mqe_manager_status *out)
{
    for (uint32_t i = 0; i < MQX_PROCESS_MAX; i++) {
        out->attached += mqx_load_relaxed(&region->header->process[i].state) == MQX_PROC_LIVE;
    }
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_CONTEXTS].used; i++) {
        const struct mqx_context *context = mqx_context(region, i);
        const uint32_t state = context == NULL ? 0 : mqx_load_relaxed(&context->state);
        out->contexts += state != MQX_CTX_FREE;
        out->units += state > MQX_CTX_IDLE && state != MQX_CTX_PREPARED;
        out->prepared += state == MQX_CTX_PREPARED;
    }
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_HANDLES].used; i++) {
        const struct mqx_handle *handle = mqx_handle(region, i);
        out->handles += handle != NULL && mqx_load_relaxed(&handle->state) != 0;
    }
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_OBJECTS].used; i++) {
        const struct mqx_object *object = mqx_object(region, i);
        const uint32_t state = object == NULL ? 0 : mqx_load_relaxed(&object->state);
        out->objects += state == MQX_OBJ_ACTIVE;
        out->deleted += state == MQX_OBJ_DELETING;
    }
    for (uint32_t i = 0; i < region->header->stripe_count; i++) {
        out->repairs += region->stripes[i].lock.repairs;
    }
}

static void count_segments(const struct mqx_journal *journal, struct mqe_manager_status *out)
{
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const uint32_t state = mqx_load_relaxed(&journal->segment[i].state);
        out->segments += state == MQX_SEG_ACTIVE || state == MQX_SEG_FULL;
        out->spare_segments += state == MQX_SEG_SPARE;
    }
}

int mqe_status(mqe_manager *manager, struct mqe_manager_status *out)
{
    const struct mqx_region *region = &manager->store.region;
    const struct mqx_header *header = region->header;
    const struct mqx_journal *journal = region->journal;
    if (mqx_forked(&manager->store)) {
        return mqx_enter(manager, false);
    }
    *out = (struct mqe_manager_status){
        .quiescing = mqx_load_relaxed(&header->quiescing),
        .stopped = mqx_load_relaxed(&header->stopped),
        .region_bytes = header->size,
        .region_used = used_bytes(header),
        .message_entries = mqx_load_relaxed(&header->area[MQX_AREA_MESSAGES].used),
        .body_bytes = mqx_load_relaxed(&header->area[MQX_AREA_ARENA].used) * MQX_CELL,
        .durable_lsn = mqx_load_acquire(&journal->durable),
        .tail_lsn = mqx_load_relaxed(&journal->tail),
        .checkpoint_lsn = mqx_load_relaxed(&journal->checkpoint_begin),
        .journal_bytes = mqx_load_relaxed(&journal->used_bytes),
        .journal_limit = journal->limit,
        .flushes = mqx_load_relaxed(&journal->flushes),
        .flushed_bytes = mqx_load_relaxed(&journal->flushed_bytes),
        .flushed_records = mqx_load_relaxed(&journal->flushed_records),
        .woken_by_bound = mqx_load_relaxed(&header->woken_by_bound),
        .np_discarded = mqx_load_relaxed(&header->np_discarded),
    };
    count_tables(region, out);
    count_segments(journal, out);
    return MQX_OK;
}

int mqe_processes(mqe_manager *manager, struct mqe_process_status *out, uint32_t capacity,
                  uint32_t *out_count)
{
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

int mqe_units(mqe_manager *manager, struct mqe_unit_status *out, uint32_t capacity,
              uint32_t *out_count)
{
    const struct mqx_region *region = &manager->store.region;
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_CONTEXTS].used);
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
    const struct mqx_region *region = &manager->store.region;
    int status = mqx_enter(manager, false);
    *out_count = 0;
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_HANDLES].used);
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

/* ---- maintenance and verification on request ---- */

int mqe_checkpoint(mqe_manager *manager)
{
    const int status = mqx_enter(manager, false);
    return status == MQX_OK ? mqx_checkpoint_now(&manager->store) : status;
}

int mqe_maintain(mqe_manager *manager)
{
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_about_to_block();
    status = mqx_maintenance_round(&manager->store);
    return status == MQX_BUSY ? MQX_OK : status;
}

/* A temporary queue lives as long as the handle that made it. Slots lock held. */
static int check_creator(const struct mqx_region *region, uint32_t slot)
{
    const struct mqx_object *queue = mqx_object(region, slot);
    const struct mqx_handle *handle = mqx_handle(region, queue->creator);
    const bool orphaned = mqx_load_relaxed(&queue->state) == MQX_OBJ_ACTIVE &&
                          mqx_object_is_temporary(queue) &&
                          (handle == NULL || handle->state == 0 || handle->object != slot ||
                           handle->object_gen != queue->generation);
    return orphaned ? mqx_fail(MQRC_OBJECT_DAMAGED,
                               "the temporary queue \"%.48s\" has lost the handle that made it",
                               queue->name)
                    : MQX_OK;
}

static int check_life(struct mqx_region *region, uint32_t slot)
{
    struct mqx_lock *catalog = &region->header->catalog_lock, *slots = &region->header->slots_lock;
    int status = mqx_lock_take(region, catalog);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, slots);
    if (status == MQX_OK) {
        status = check_creator(region, slot);
        mqx_lock_drop(region, slots);
    }
    mqx_lock_drop(region, catalog);
    return status;
}

static int check_queue(struct mqx_store *store, uint32_t slot)
{
    const struct mqx_object *queue = mqx_object(&store->region, slot);
    struct mqx_stripe_guard guard;
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_acquire(&queue->state);
    if (state != MQX_OBJ_ACTIVE && state != MQX_OBJ_DELETING) {
        return MQX_OK;
    }
    int status = mqx_stripe_guard_take(&store->region, slot, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_priority_index_check(&store->region, queue);
    for (int k = 0; k < MQX_INDEX_COUNT && status == MQX_OK; k++) {
        if (mqx_id_index_ready(&store->region, queue, k)) {
            status = mqx_id_index_check(&store->region, queue, k);
        }
    }
    mqx_stripe_guard_drop(&guard);
    return status;
}

int mqe_check(mqe_manager *manager)
{
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_area *area = &manager->store.region.header->area[MQX_AREA_OBJECTS];
    const uint64_t used = mqx_load_acquire(&area->used);
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        status = check_queue(&manager->store, slot);
        if (status == MQX_OK) {
            status = check_life(&manager->store.region, slot);
        }
    }
    return status;
}

/* ---- errors, environment ---- */

const char *mqe_error_text(void)
{
    return mqx_error_text();
}

const char *mqe_reason_name(int reason)
{
    return mqx_reason_name(reason);
}

const char *mqe_reason_text(int reason)
{
    return mqx_reason_text(reason);
}

int mqe_comp_code(int reason)
{
    return mqx_comp_code(reason);
}

void mqe_block_hook_arm(void (*hook)(void *arg), void *arg)
{
    mqx_block_hook_arm(hook, arg);
}

void mqe_log(mqe_manager *manager, int amq, char severity, const char *text)
{
    mqx_log(&manager->store, amq, severity, "%s", text);
}

uint32_t mqe_crc32c(uint32_t crc, const void *data, size_t size)
{
    return mqx_crc32c(crc, data, size);
}
