/*
 * entry.c - see entry.h.
 */
#include "api/entry.h"

#include "base/checksum.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/fork_guard.h"
#include "os/interrupt.h"
#include "process/error_log.h"

/* One of the things that every call asks is not as usual. */
static MQX_COLD int enter_or_refuse(const mqe_manager *manager, bool fail_if_quiescing)
{
    MQX_ASSERT(manager != NULL);
    const struct mqx_region *region = &manager->store.region;
    if (mqx_forked(&manager->store)) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "this process is a fork of the one that connected; connect again");
    }
    if (mqx_region_stopped(region) != MQX_RUNNING) {
        return mqx_region_stop_reason(region);
    }
    if (!mqx_reach_ahead(region)) {
        return mqx_reach_refused(region);
    }
    if (fail_if_quiescing && mqx_load_relaxed(&region->header->quiescing) != 0) {
        return mqx_fail(MQRC_Q_MGR_QUIESCING, "the queue manager is quiescing");
    }
    return MQX_OK;
}

int mqx_enter(mqe_manager *manager, bool fail_if_quiescing)
{
    MQX_ASSERT(manager != NULL);
    const struct mqx_region *region = &manager->store.region;
    if (MQX_LIKELY(!mqx_forked(&manager->store) && mqx_region_stopped(region) == MQX_RUNNING &&
                   !region->reach.stepwise &&
                   (!fail_if_quiescing || mqx_load_relaxed(&region->header->quiescing) == 0))) {
        return MQX_OK;
    }
    return enter_or_refuse(manager, fail_if_quiescing);
}

int mqe_usable(mqe_manager *manager, int fail_if_quiescing)
{
    MQX_ASSERT(manager != NULL);
    return mqx_enter(manager, fail_if_quiescing != 0);
}

void mqx_file_calls_begin(mqe_manager *manager)
{
    MQX_ASSERT(manager->store.region.process != 0);
    struct mqx_region *region = &manager->store.region;
    mqx_add_relaxed(&mqx_process_slot(region, region->process)->calls_inside, 1u);
}

void mqx_file_calls_end(mqe_manager *manager)
{
    struct mqx_region *region = &manager->store.region;
    struct mqx_process *process = mqx_process_slot(region, region->process);
    MQX_ASSERT(region->process != 0);
    MQX_ASSERT(mqx_load_relaxed(&process->calls_inside) != 0);
    mqx_add_relaxed(&process->calls_inside, UINT32_MAX); /* minus 1 */
}

int mqx_queue_lock(struct mqx_region *region, uint32_t slot, uint32_t generation,
                   struct mqx_stripe_guard *guard, struct mqx_object **out)
{
    MQX_ASSERT(out != NULL);
    struct mqx_object *queue = mqx_object(region, slot);
    if (queue == NULL) {
        return mqx_fail(MQRC_Q_DELETED, "there is no queue in slot %u", slot);
    }
    const int status = mqx_stripe_guard_enter(region, slot, guard);
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_load_relaxed(&queue->generation) != generation ||
        mqx_load_relaxed(&queue->state) == MQX_OBJ_DELETING) {
        mqx_stripe_guard_drop(guard);
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
    }
    MQX_ASSERT(mqx_lock_held(region, &guard->stripe->lock));
    *out = queue;
    return MQX_OK;
}

/* ---- texts of failures, environment ---- */

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

void mqe_interrupt_allow(int allowed)
{
    mqx_interrupt_allow(allowed != 0);
}

void mqe_interrupt_at_once(void)
{
    mqx_interrupt_at_once();
}

void mqe_spin_rule_set(int (*rule)(void))
{
    mqx_spin_rule_set(rule);
}

void mqe_log(mqe_manager *manager, int amq, char severity, const char *text)
{
    MQX_ASSERT(text != NULL);
    mqx_log(&manager->store, amq, severity, "%s", text);
}

uint32_t mqe_crc32c(uint32_t crc, const void *data, size_t size)
{
    return mqx_crc32c(crc, data, size);
}
