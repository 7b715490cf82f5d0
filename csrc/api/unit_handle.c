/*
 * unit_handle.c - see unit_handle.h.
 */
#include "api/unit_handle.h"

#include "api/context_pool.h"
#include "base/error.h"
#include "os/fork_guard.h"
#include "region/damage.h"
#include "process/unit_access.h"
#include "unit/long_units.h"

#include <stdlib.h>

int mqe_unit_new(mqe_manager *manager, mqe_unit **out)
{
    MQX_ASSERT(out != NULL);
    mqe_unit *unit = NULL;
    uint32_t context = 0;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, false, &context);
    }
    if (status != MQX_OK) {
        return status;
    }
    unit = calloc(1, sizeof *unit);
    if (unit == NULL) {
        mqx_pool_give(manager, context);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a unit of work");
    }
    *unit = (mqe_unit){.manager = manager, .context = context};
    *out = unit;
    return MQX_OK;
}

void mqe_unit_free(mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    struct mqx_store *store = &unit->manager->store;
    if (mqx_enter(unit->manager, false) == MQX_OK) {
        mqx_file_calls_begin(unit->manager);
        if (mqx_unit_enter_to_free(store, unit->context) == MQX_OK) {
            mqx_ignore(mqx_unit_backout(store, unit->context));
            mqx_unit_leave(store, unit->context); /* when that has failed: for maintenance */
            mqx_pool_give(unit->manager, unit->context);
        }
        mqx_file_calls_end(unit->manager);
    }
    free(unit);
}

static int end_unit(mqe_unit *unit, int (*end)(struct mqx_store *store, uint32_t context))
{
    MQX_ASSERT(unit->context != 0);
    MQX_ASSERT(end != NULL);
    int status = mqx_enter(unit->manager, false);
    if (status == MQX_OK) {
        mqx_file_calls_begin(unit->manager);
        status = mqx_unit_enter_to_end(&unit->manager->store, unit->context);
        if (status == MQX_OK) {
            status = end(&unit->manager->store, unit->context);
            mqx_unit_leave(&unit->manager->store, unit->context);
        }
        mqx_file_calls_end(unit->manager);
    }
    return status;
}

int mqe_commit(mqe_unit *unit)
{
    return end_unit(unit, mqx_unit_commit);
}

/* One unit of several that are committed together; entered when it is decided. */
static int enter_to_decide(const mqe_unit *unit, const mqe_manager *manager)
{
    struct mqx_store *store = &unit->manager->store;
    MQX_ASSERT(unit->context != 0);
    MQX_ASSERT(unit->manager == manager);
    int status = mqx_unit_enter_to_end(store, unit->context);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_unit_decide(store, unit->context);
    if (status != MQX_OK) {
        mqx_unit_leave(store, unit->context);
    }
    return status;
}

/* The other half of the commit; nothing is left of an empty one. */
static int finish_entered(const mqe_unit *unit)
{
    struct mqx_store *store = &unit->manager->store;
    const struct mqx_context *context = mqx_context(&store->region, unit->context);
    MQX_ASSERT(unit->context != 0);
    MQX_ASSERT(unit->manager != NULL);
    const bool empty = context != NULL && mqx_load_acquire(&context->state) == MQX_CTX_IDLE;
    const int status = empty ? MQX_OK : mqx_unit_finish(store, unit->context);
    mqx_unit_leave(store, unit->context);
    return status;
}

int mqe_commit_many(mqe_unit *const *units, uint32_t count, uint32_t *out_count)
{
    MQX_ASSERT(count > 0);
    MQX_ASSERT(out_count != NULL);
    mqe_manager *manager = units[0]->manager;
    uint32_t decided = 0, done = 0;
    *out_count = 0;
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    mqx_file_calls_begin(manager);
    while (status == MQX_OK && decided < count) {
        status = enter_to_decide(units[decided], manager);
        decided += status == MQX_OK;
    }
    for (uint32_t i = 0; i < decided; i++) { /* the flush for the first one is that of all */
        const int finished = finish_entered(units[i]);
        if (finished == MQX_OK && done == i) {
            done++;
        } else if (finished != MQX_OK) {
            status = finished;
        }
    }
    mqx_file_calls_end(manager);
    *out_count = done;
    return status;
}

int mqe_backout(mqe_unit *unit)
{
    const int status = end_unit(unit, mqx_unit_backout);
    if (status == MQRC_BACKED_OUT) { /* by another process: what the caller wants */
        mqx_error_clear();
        return MQX_OK;
    }
    return status;
}

MQX_THREAD_LOCAL uint64_t later_us; /* of mqe_backout_later, for back_out_later */

static int back_out_later(struct mqx_store *store, uint32_t context)
{
    MQX_ASSERT(context != 0);
    return mqx_unit_backout_later(store, context, later_us);
}

int mqe_backout_later(mqe_unit *unit, uint64_t delay_us)
{
    later_us = delay_us;
    const int status = end_unit(unit, back_out_later);
    MQX_ASSERT(unit->context != 0);
    if (status == MQRC_BACKED_OUT) {
        mqx_error_clear();
        return MQX_OK;
    }
    return status;
}

uint32_t mqe_unit_count(const mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    if (mqx_forked(&unit->manager->store)) {
        return 0; /* the region is not mapped in a child */
    }
    const struct mqx_context *context = mqx_context(&unit->manager->store.region, unit->context);
    return context == NULL ? 0 : mqx_unit_believed_count(context);
}

uint32_t mqe_unit_room(const mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    if (mqx_forked(&unit->manager->store)) {
        return 0;
    }
    const uint32_t limit =
        mqx_load_relaxed(&unit->manager->store.region.header->max_uncommitted);
    const uint32_t count = mqe_unit_count(unit);
    return limit > count ? limit - count : 0; /* MAXUMSGS may have fallen */
}

/* ---- what calls in a unit ask ---- */

int mqx_unit_handle_enter(const mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    struct mqx_store *store = &unit->manager->store;
    struct mqx_context *context = mqx_context(&store->region, unit->context);
    if (MQX_LIKELY(context != NULL && mqx_unit_try_enter(context))) {
        return MQX_OK;
    }
    mqx_file_calls_begin(unit->manager);
    const int status = mqx_unit_enter(store, unit->context);
    mqx_file_calls_end(unit->manager);
    return status;
}

void mqx_unit_handle_leave(const mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    mqx_unit_leave(&unit->manager->store, unit->context);
}

int mqx_unit_check_usable(const struct mqx_region *region, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(slot != 0);
    if (context == NULL) {
        return mqx_region_damage(region, "the context of a unit", slot);
    }
    return mqx_unit_must_back_out(context)
               ? mqx_fail(MQRC_BACKED_OUT, "the unit of work has been backed out; end it")
               : MQX_OK;
}

int mqx_unit_end_autocommit(struct mqx_store *store, uint32_t context, int status)
{
    MQX_ASSERT(context != 0);
    const struct mqx_context *unit = mqx_context(&store->region, context);
    if (unit == NULL) {
        return mqx_region_damage(&store->region, "the context of a unit", context);
    }
    MQX_ASSERT(unit->autocommit != 0);
    if (status == MQX_OK) {
        status = mqx_unit_commit(store, context);
    }
    if (status != MQX_OK && mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE) {
        const int undone = mqx_unit_backout(store, context);
        status = undone == MQX_OK ? status : undone;
    }
    return status;
}
