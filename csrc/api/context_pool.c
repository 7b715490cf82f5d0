/*
 * context_pool.c - see context_pool.h.
 *
 * An entry is emptied by an exchange with 0 and filled by a compare-and-exchange from 0, so of two
 * threads one has it. Entries are searched from the first one on: usually that is the one that was
 * given last.
 */
#include "api/context_pool.h"

#include "os/block_hook.h"
#include "region/damage.h"

/* The context of that slot for a call; false when it is damaged. */
static bool prepare_context(const struct mqx_region *region, uint32_t slot, bool autocommit)
{
    struct mqx_context *context = mqx_context(region, slot);
    if (MQX_UNLIKELY(context == NULL || context->state != MQX_CTX_IDLE || context->head != 0 ||
                     context->process != region->process ||
                     mqx_load_relaxed(&context->access) != MQX_ACCESS_OWNER ||
                     context->pending_kind != MQX_PENDING_NONE)) {
        mqx_ignore(mqx_region_damage(region, "an idle context", slot));
        return false;
    }
    MQX_ASSERT(slot != 0);
    mqx_store_release(&context->autocommit, autocommit ? 1u : 0u);
    return true;
}

bool mqx_pool_take_idle(mqe_manager *manager, bool autocommit, uint32_t *out)
{
    MQX_ASSERT(out != NULL);
    for (uint32_t i = 0; i < MQX_POOL_SIZE; i++) {
        if (mqx_load_relaxed(&manager->pool[i]) == 0) {
            continue;
        }
        const uint32_t slot = mqx_exchange(&manager->pool[i], 0u);
        if (slot != 0) { /* 0: another thread was faster */
            *out = slot;
            return prepare_context(&manager->store.region, slot, autocommit);
        }
    }
    return false;
}

int mqx_pool_take(mqe_manager *manager, bool autocommit, uint32_t *out)
{
    MQX_ASSERT(out != NULL);
    struct mqx_region *region = &manager->store.region;
    uint32_t slot = 0;
    if (mqx_pool_take_idle(manager, autocommit, out)) {
        return MQX_OK;
    }
    const int status = mqx_slot_take(region, MQX_AREA_CONTEXTS, NULL, &slot);
    if (status != MQX_OK) {
        return status;
    }
    if (!prepare_context(region, slot, autocommit)) {
        return mqx_region_stop_reason(region);
    }
    *out = slot;
    return MQX_OK;
}

void mqx_pool_give(mqe_manager *manager, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const struct mqx_context *context = mqx_context(&manager->store.region, slot);
    if (context == NULL) {
        mqx_ignore(mqx_region_damage(&manager->store.region, "a context", slot));
        return;
    }
    if (mqx_load_acquire(&context->state) != MQX_CTX_IDLE) {
        return; /* the call ended in a stopped region; the next restart recovers it */
    }
    for (uint32_t i = 0; i < MQX_POOL_SIZE; i++) {
        if (mqx_load_relaxed(&manager->pool[i]) == 0 &&
            mqx_cas32(&manager->pool[i], 0u, slot)) {
            return;
        }
    }
    mqx_ignore(mqx_slot_give(&manager->store.region, MQX_AREA_CONTEXTS, slot));
}

void mqx_pool_drain(mqe_manager *manager)
{
    MQX_ASSERT(manager->store.region.base != NULL);
    for (uint32_t i = 0; i < MQX_POOL_SIZE; i++) {
        const uint32_t slot = mqx_exchange(&manager->pool[i], 0u);
        if (slot != 0) {
            mqx_ignore(mqx_slot_give(&manager->store.region, MQX_AREA_CONTEXTS, slot));
        }
    }
}

int mqx_with_context(mqe_manager *manager, mqx_context_change change, void *arg)
{
    MQX_ASSERT(change != NULL);
    uint32_t context = 0;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, true, &context);
    }
    if (status != MQX_OK) {
        return status;
    }
    mqx_about_to_block();
    mqx_file_calls_begin(manager);
    status = change(&manager->store, context, arg);
    mqx_file_calls_end(manager);
    mqx_pool_give(manager, context);
    return status;
}
