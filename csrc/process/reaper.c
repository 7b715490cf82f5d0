/*
 * reaper.c - ends the work of dead processes. See reaper.h for the order.
 *
 * Locks: the caller holds the maintenance lock (or is the only process); the others are taken one
 * at a time.
 */
#include "process/reaper.h"

#include "process/handle_table.h"
#include "process/process_table.h"
#include "queue/wake_channel.h"
#include "journal/segment_pin.h"
#include "catalog/catalog.h"
#include "base/error.h"
#include "region/damage.h"
#include "unit/long_units.h"
#include "unit/prepared.h"

/* ---- locks that a dead process held ---- */

/* Taking a lock whose owner is dead rolls its change back. */
static int repair_if_held(struct mqx_region *region, struct mqx_lock *lock, uint32_t dead)
{
    MQX_ASSERT(dead < MQX_PROCESS_MAX);
    if (mqx_load_relaxed(&lock->holder) != dead + 1) {
        return MQX_OK;
    }
    int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        mqx_lock_drop(region, lock);
    }
    return status;
}

static int repair_locks(struct mqx_region *region, uint32_t dead)
{
    MQX_ASSERT(dead != region->process);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    struct mqx_header *header = region->header;
    struct mqx_lock *locks[] = {
        &header->journal.flush_lock, &header->growth_lock, &header->journal.roll_lock,
        &header->catalog_lock,       &header->slots_lock,  &header->arena_lock,
        &header->journal.ring_lock,
    };
    int status = MQX_OK;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(locks) && status == MQX_OK; i++) {
        status = repair_if_held(region, locks[i], dead);
    }
    for (uint32_t i = 0; i <= region->stripe_mask && status == MQX_OK; i++) {
        status = repair_if_held(region, &region->stripes[i].lock, dead);
    }
    return status;
}

/* ---- contexts ---- */

/* A wake-up that the dead waiter had been given and not used goes to another one. */
static int leave_wait_list(struct mqx_region *region, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(context != NULL); /* mqx_reap_context() has validated the slot */
    const uint32_t object = context->wait_object;
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    if ((context->wait_state == MQX_WAIT_NONE && !mqx_wait_list_owes(region, slot)) ||
        mqx_object(region, object) == NULL) {
        return MQX_OK;
    }
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    (void)mqx_wait_list_remove(&guard, slot);
    mqx_wait_list_hand_on(&guard, slot, false, &wakes);
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return MQX_OK;
}

static int release_pending(struct mqx_store *store, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(&store->region, slot);
    MQX_ASSERT(context != NULL);
    int status = context->pending_kind == MQX_PENDING_OBJECT
                     ? mqx_catalog_repair(store, slot, context->pending_ref)
                     : mqx_pending_release(store, slot);
    return status == MQX_OK ? mqx_catalog_free_unreferenced(&store->region, slot) : status;
}

static int end_unit(struct mqx_store *store, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(&store->region, slot);
    MQX_ASSERT(context != NULL);
    if (context->leads != MQX_LEADS_NONE) {
        return mqx_prepared_reap(store, slot);
    }
    switch (context->state) {
    case MQX_CTX_DECIDED: return mqx_unit_finish(store, slot);
    case MQX_CTX_ACTIVE:
    case MQX_CTX_BACKING_OUT: return mqx_unit_backout(store, slot);
    default: return MQX_OK;
    }
}

/* A channel loses its name, and a waiter its channel: the slot's next owner may have threads. */
static void end_channel(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *context = mqx_context(&store->region, slot);
    MQX_ASSERT(context != NULL); /* mqx_reap_context() has validated the slot */
    const uint32_t channel = mqx_load_relaxed(&context->wait_channel);
    mqx_store_release(&context->wait_channel, 0u);
    if (channel == slot) {
        mqx_wake_channel_unlink(store, slot);
    }
}

int mqx_reap_context(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(store->region.base != NULL);
    struct mqx_region *region = &store->region;
    if (mqx_context(region, slot) == NULL) {
        return mqx_region_damage(region, "a context to be reaped", slot);
    }
    mqx_store_release(&mqx_context(region, slot)->access, MQX_ACCESS_OWNER);
    int status = leave_wait_list(region, slot);
    if (status == MQX_OK) {
        status = release_pending(store, slot);
    }
    if (status == MQX_OK) {
        status = end_unit(store, slot);
    }
    end_channel(store, slot);
    return status == MQX_OK ? mqx_slot_give(region, MQX_AREA_CONTEXTS, slot) : status;
}

static int reap_contexts(struct mqx_store *store, uint32_t process)
{
    MQX_ASSERT(process != 0 && process < MQX_PROCESS_MAX);
    struct mqx_region *region = &store->region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    int status = MQX_OK;
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context != NULL && context->state != MQX_CTX_FREE && context->process == process) {
            status = mqx_reap_context(store, slot);
        }
    }
    return status;
}

/* ---- units that others were backing out ---- */

/* A helper holds the maintenance lock, as the caller does now: so its thread has ended, whether
 * others of its process are still there or not. Locks that these hold are only waited for. Then the
 * caller is the helper: should it die, too, it is its locks that are repaired. */
int mqx_reap_helped(struct mqx_store *store, uint32_t slot)
{
    struct mqx_region *region = &store->region;
    struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(mqx_lock_held(region, &region->header->maintenance_lock));
    const uint32_t helper =
        unit == NULL ? 0 : mqx_unit_helper_of(mqx_load_acquire(&unit->access));
    if (helper == 0) {
        return MQX_OK;
    }
    if (helper >= MQX_PROCESS_MAX || unit->process == 0 || unit->autocommit != 0) {
        return mqx_region_damage(region, "the helper of a unit of work", slot);
    }
    if (helper != region->process) {
        const int status = repair_locks(region, helper);
        if (status != MQX_OK) {
            return status;
        }
        mqx_unit_take_over(unit, region->process);
    }
    return mqx_long_units_continue(store, slot);
}

static int reap_all_helped(struct mqx_store *store)
{
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_CONTEXTS);
    int status = MQX_OK;
    MQX_ASSERT(used > 0);
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        status = mqx_reap_helped(store, slot);
    }
    return status;
}

/* ---- handles ---- */

static int reap_handles(struct mqx_store *store, uint32_t process)
{
    MQX_ASSERT(process != 0 && process < MQX_PROCESS_MAX);
    struct mqx_region *region = &store->region;
    const uint64_t used = mqx_area_used(region, MQX_AREA_HANDLES);
    int status = MQX_OK;
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_handle *handle = mqx_handle(region, slot);
        if (handle != NULL && handle->state != 0 && handle->process == process) {
            status = mqx_handle_close(store, slot, MQX_CLOSE_KEEP);
        }
    }
    return status;
}

/* ---- processes ---- */

int mqx_reap_process(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    struct mqx_region *region = &store->region;
    int status = reap_contexts(store, slot);
    if (status == MQX_OK) {
        status = reap_handles(store, slot);
    }
    if (status == MQX_OK) {
        status = mqx_pin_end(store, slot);
    }
    return status == MQX_OK ? mqx_process_free(region, slot) : status;
}

/* Repeats the futex calls: a waiter whose waker died before its call would sleep until its
 * bound. */
static void wake_picked(struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    for (uint32_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context != NULL && (mqx_load_relaxed(&context->wait_state) == MQX_WAIT_WOKEN ||
                                mqx_load_relaxed(&context->wait_state) == MQX_WAIT_CANCELLED)) {
            struct mqx_wakeups one = {.count = 1, .context = {slot}};
            mqx_wait_list_wake(region, &one);
        }
    }
}

/* Finds dead processes, and repairs every lock that one of them held (invariant 1). */
static int find_dead(struct mqx_store *store, uint8_t dead[MQX_PROCESS_MAX], uint32_t *out_dead)
{
    MQX_ASSERT(*out_dead == 0);
    struct mqx_region *region = &store->region;
    int status = MQX_OK;
    for (uint32_t slot = 0; slot < MQX_PROCESS_MAX && status == MQX_OK; slot++) {
        const uint32_t state = mqx_load_relaxed(&mqx_process_slot(region, slot)->state);
        dead[slot] = state != MQX_PROC_FREE && slot != region->process &&
                     !mqx_process_alive(store, slot);
        if (dead[slot] != 0) {
            status = repair_locks(region, slot);
            *out_dead += 1;
        }
    }
    return status;
}

int mqx_reap(struct mqx_store *store, uint32_t *out_dead)
{
    MQX_ASSERT(out_dead != NULL);
    MQX_ASSERT(store->io != NULL);
    struct mqx_region *region = &store->region;
    uint8_t dead[MQX_PROCESS_MAX];
    *out_dead = 0;
    int status = find_dead(store, dead, out_dead);
    if (status == MQX_OK && mqx_lock_held(region, &region->header->maintenance_lock)) {
        status = reap_all_helped(store);
    }
    for (uint32_t slot = 0; slot < MQX_PROCESS_MAX && status == MQX_OK && *out_dead != 0; slot++) {
        if (dead[slot] != 0) {
            status = mqx_reap_process(store, slot);
        }
    }
    if (*out_dead != 0) {
        wake_picked(region);
    }
    mqx_store_release(&region->header->last_reap_us, store->io->ops->now_us(store->io));
    return status;
}

int mqx_reap_unless_busy(struct mqx_store *store, uint32_t *out_dead)
{
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    *out_dead = 0;
    int status = mqx_lock_try(&store->region, lock);
    if (status == MQX_OK) {
        status = mqx_reap(store, out_dead);
        mqx_lock_drop(&store->region, lock);
    }
    return status == MQX_BUSY ? MQX_OK : status;
}
