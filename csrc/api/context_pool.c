/*
 * context_pool.c - see context_pool.h.
 *
 * A place is emptied by an exchange with 0 and filled by a compare-and-exchange from 0, so of two
 * threads one has it. Places are searched from the first one on: in the usual case that is the one
 * that was given last.
 */
#include "api/context_pool.h"

#include "os/block_hook.h"
#include "region/damage.h"

static void prepare_context(struct mqx_context *context, bool autocommit)
{
    mqx_store_release(&context->single, autocommit ? 1u : 0u);
}

bool mqx_pool_take_idle(mqe_manager *manager, bool autocommit, uint32_t *out)
{
    for (uint32_t i = 0; i < MQX_POOL_SIZE; i++) {
        if (mqx_load_relaxed(&manager->pool[i]) == 0) {
            continue;
        }
        const uint32_t slot = mqx_exchange(&manager->pool[i], 0u);
        struct mqx_context *context = mqx_context(&manager->store.region, slot);
        if (context != NULL) { /* another thread was faster: slot 0 */
            mqx_check(context->state == MQX_CTX_IDLE);
            prepare_context(context, autocommit);
            *out = slot;
            return true;
        }
    }
    return false;
}

int mqx_pool_take(mqe_manager *manager, bool autocommit, uint32_t *out)
{
    struct mqx_region *region = &manager->store.region;
    uint32_t slot = 0;
    if (mqx_pool_take_idle(manager, autocommit, out)) {
        return MQX_OK;
    }
    const int status = mqx_slot_take(region, MQX_AREA_CONTEXTS, NULL, &slot);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_context *context = mqx_context(region, slot);
    mqx_check(context != NULL && context->state == MQX_CTX_IDLE);
    prepare_context(context, autocommit);
    *out = slot;
    return MQX_OK;
}

void mqx_pool_give(mqe_manager *manager, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(&manager->store.region, slot);
    mqx_check(context != NULL);
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
    for (uint32_t i = 0; i < MQX_POOL_SIZE; i++) {
        const uint32_t slot = mqx_exchange(&manager->pool[i], 0u);
        if (slot != 0) {
            mqx_ignore(mqx_slot_give(&manager->store.region, MQX_AREA_CONTEXTS, slot));
        }
    }
}

int mqx_with_context(mqe_manager *manager, mqx_context_change change, void *arg)
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
    mqx_file_calls_begin(manager);
    status = change(&manager->store, context, arg);
    mqx_file_calls_end(manager);
    mqx_pool_give(manager, context);
    return status;
}
