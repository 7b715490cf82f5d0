/*
 * unit_access.c - see unit_access.h.
 */
#include "process/unit_access.h"

#include "base/error.h"
#include "os/block_hook.h"
#include "penstock/engine.h"
#include "process/reaper.h"
#include "region/damage.h"
#include "unit/long_units.h"

static int damaged_context(const struct mqx_store *store, uint32_t slot)
{
    return mqx_region_damage(&store->region, "the context of a unit of work", slot);
}

/* Who gets the maintenance lock and finds the unit being backed out has found a dead helper. */
static int await_helper(struct mqx_store *store, uint32_t slot)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status == MQX_OK) {
        status = mqx_reap_helped(store, slot);
        mqx_lock_drop(&store->region, lock);
    }
    return status;
}

static int was_backed_out(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    return mqx_fail(MQRC_BACKED_OUT,
                    "process %d backed the unit of work out, since %s; backout or commit ends it",
                    (int)mqx_load_relaxed(&unit->ended_by),
                    mqx_why_ended_text(mqx_load_relaxed(&unit->ended_why)));
}

int mqx_unit_enter(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    int status = MQX_OK;
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(unit == NULL)) {
        return damaged_context(store, slot);
    }
    while (status == MQX_OK && !mqx_unit_try_enter(unit)) {
        const uint32_t word = mqx_load_acquire(&unit->access);
        if (word == MQX_ACCESS_BACKED_OUT) {
            return was_backed_out(unit);
        }
        if (mqx_unit_helper_of(word) != 0) {
            status = await_helper(store, slot);
        } else if (word != MQX_ACCESS_OPEN) { /* OPEN: a helper was faster, and changed nothing */
            return damaged_context(store, slot);
        }
    }
    MQX_ASSERT(status != MQX_OK || mqx_load_relaxed(&unit->access) == MQX_ACCESS_OWNER);
    return status;
}

int mqx_unit_enter_to_end(struct mqx_store *store, uint32_t slot)
{
    const int status = mqx_unit_enter(store, slot);
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(slot != 0);
    if (status == MQRC_BACKED_OUT && unit != NULL) {
        if (MQX_UNLIKELY(unit->state != MQX_CTX_IDLE)) {
            return damaged_context(store, slot);
        }
        mqx_store_release(&unit->access, MQX_ACCESS_OWNER);
    }
    return status;
}

int mqx_unit_enter_to_free(struct mqx_store *store, uint32_t slot)
{
    int status = mqx_unit_enter_to_end(store, slot);
    MQX_ASSERT(slot != 0);
    while (status == MQE_INTERRUPTED) {
        status = mqx_unit_enter_to_end(store, slot);
    }
    if (status == MQRC_BACKED_OUT) {
        mqx_error_clear();
        return MQX_OK;
    }
    return status;
}

int mqx_unit_enter_all(struct mqx_store *store)
{
    const struct mqx_region *region = &store->region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    int status = MQX_OK;
    MQX_ASSERT(region->process != 0);
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context != NULL && mqx_load_acquire(&context->state) != MQX_CTX_FREE &&
            mqx_load_relaxed(&context->process) == region->process) {
            status = mqx_unit_enter_to_free(store, slot);
        }
    }
    return status;
}
