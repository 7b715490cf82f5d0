/*
 * clear.c - taking messages off a queue on request: CLEAR, and the simulated failure of a coupling
 * facility structure.
 *
 * Messages are got in units of work, so a process that dies half way leaves whole units.
 */

#include "api/context_pool.h"
#include "api/unit_handle.h"
#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "catalog/cf_structure.h"
#include "queue/queue.h"
#include "region/damage.h"
#include "unit/unit.h"

/* ---- clearing ---- */

enum { CLEAR_UNIT = 1024 }; /* messages a unit */

struct clear_target {
    uint32_t slot, generation;
    uint64_t below;            /* messages put later stay */
    bool only_volatile;        /* take what a failure of the structure loses, also locked
                                * messages */
    struct mqx_cursor cursor;  /* everything before it has been seen */
    bool more;
    uint64_t removed;
};

static bool is_wanted(const struct clear_target *target, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    if (target->only_volatile) {
        return (message->flags & MQX_MSGF_VOLATILE) != 0 &&
               (mqx_delayed_or_available(message) || message->state == MQX_MSG_LOCKED);
    }
    return mqx_delayed_or_available(message) && message->number < target->below;
}

/* Visits up to 64 messages and claims those that are wanted; their slots go to `claimed`. */
static int claim_some(struct mqx_store *store, uint32_t context, struct clear_target *target,
                      uint32_t claimed[MQX_LOCKED_STEPS_MAX], uint32_t *out_count)
{
    MQX_ASSERT(context != 0);
    struct mqx_object *queue = mqx_object(&store->region, target->slot);
    struct mqx_stripe_guard guard;
    *out_count = 0;
    if (queue == NULL) {
        return mqx_region_damage(&store->region, "a queue to be cleared", target->slot);
    }
    int status = mqx_stripe_guard_enter(&store->region, target->slot, &guard);
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
            mqx_queue_make_available(&guard, queue, slot, 0);
            mqx_stripe_guard_commit(&guard);
        }
        mqx_queue_claim(&guard, queue, slot, MQX_MSG_GOT, context);
        mqx_stripe_guard_commit(&guard);
        MQX_ASSERT(*out_count < MQX_LOCKED_STEPS_MAX);
        claimed[(*out_count)++] = slot;
    }
    mqx_stripe_guard_drop(&guard);
    return MQX_OK;
}

static int clear_unit(struct mqx_store *store, uint32_t context, struct clear_target *target)
{
    MQX_ASSERT(context != 0);
    MQX_ASSERT(target->more);
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
    status = mqx_unit_end_autocommit(store, context, status);
    target->removed += status == MQX_OK ? total : 0;
    return status;
}

static int do_clear(struct mqx_store *store, uint32_t context, void *arg)
{
    MQX_ASSERT(context != 0);
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
    MQX_ASSERT(manager != NULL);
    struct clear_target target = {.slot = slot, .generation = generation};
    return mqx_with_context(manager, do_clear, &target);
}

/* ---- the failure of a structure ---- */

enum { UNIT_PATIENCE = 200, PAUSE_US = 1000 }; /* checks of a queue of which units hold messages */

struct failure {
    uint32_t slot, generation;
    uint64_t lost;
};

/* Waits until no unit holds messages of the queue: gets and puts that began before the failure have
 * then come through its lock. */
static int wait_until_no_units(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const struct mqx_object *queue = mqx_object(&store->region, slot);
    if (queue == NULL) {
        return mqx_region_damage(&store->region, "a queue of a structure", slot);
    }
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

static int discard_messages(struct mqx_store *store, uint32_t context, struct failure *failure)
{
    MQX_ASSERT(failure->slot != 0);
    MQX_ASSERT(context != 0);
    uint32_t slot = 0;
    int status = MQX_OK;
    while (status == MQX_OK && mqx_cf_structure_next(&store->region, failure->slot, &slot)) {
        status = wait_until_no_units(store, slot);
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
    MQX_ASSERT(context != 0);
    struct failure *failure = arg;
    int status = mqx_catalog_fail(store, context, failure->slot, failure->generation);
    if (status != MQX_OK) {
        return status;
    }
    status = discard_messages(store, context, failure);
    if (mqx_region_stopped(&store->region) == MQX_RUNNING) {
        const int restored = mqx_catalog_restore(store, context, failure->slot);
        status = status == MQX_OK ? restored : status;
    }
    return status;
}

int mqe_fail_structure(mqe_manager *manager, uint32_t slot, uint32_t generation, uint64_t *lost)
{
    MQX_ASSERT(lost != NULL);
    struct failure failure = {.slot = slot, .generation = generation};
    const int status = mqx_with_context(manager, do_fail, &failure);
    *lost = failure.lost;
    return status;
}
