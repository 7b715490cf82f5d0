/*
 * stop_flag.c - see stop_flag.h.
 */
#include "region/stop_flag.h"

#include "base/error.h"
#include "os/futex.h"
#include "region/access.h"

#include <limits.h>

void mqx_region_stop_header(struct mqx_header *header, uint32_t how)
{
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(how == MQX_STOP_BROKEN || how == MQX_STOP_ENDED);
    if (!mqx_cas32(&header->stopped, MQX_RUNNING, how) && how == MQX_STOP_BROKEN) {
        mqx_store_release(&header->stopped, how);
    }
    MQX_ASSERT(mqx_load_acquire(&header->stopped) != MQX_RUNNING);
}

void mqx_region_stop(const struct mqx_region *region, uint32_t how)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->area[MQX_AREA_CONTEXTS] != NULL);
    struct mqx_header *header = region->header;
    mqx_region_stop_header(header, how);
    mqx_futex_raise(&header->journal.flush_word, INT_MAX);
    const struct mqx_area *contexts = &header->area[MQX_AREA_CONTEXTS];
    const uint64_t used = mqx_load_acquire(&contexts->used);
    for (uint64_t slot = 1; slot < used; slot++) {
        struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        if (context == NULL) {
            break; /* `used` lies beyond the area's memory: damaged */
        }
        mqx_futex_raise(&context->wait_word, INT_MAX);
    }
    for (uint32_t slot = 0; slot < MQX_PROCESS_MAX; slot++) {
        if (mqx_load_relaxed(&header->process[slot].state) != MQX_PROC_FREE) {
            mqx_futex_raise(&header->process[slot].doorbell, INT_MAX);
        }
    }
}

int mqx_region_stop_reason(const struct mqx_region *region)
{
    MQX_ASSERT(region->header != NULL);
    switch (mqx_region_stopped(region)) {
    case MQX_RUNNING: return MQX_OK;
    case MQX_STOP_ENDED: return mqx_fail(MQRC_Q_MGR_STOPPING, "the queue manager was ended");
    default:
        return mqx_fail(MQRC_CONNECTION_BROKEN,
                        "the queue manager has stopped after an error; connect again");
    }
}
