/*
 * advance.c - the clock of the queues, advanced for tests: messages expire and become due as if the
 * time had passed (region/queue_clock.h).
 *
 * Invariants
 *   1. Afterwards no queue has a delayed message that was due before, and waiters that such a
 *      message matches have been woken. Expired ones are discarded when they are met, as ever.
 *   2. The clock is never set back while the queue manager runs.
 *
 * Locks: none may be held; those of queue/due_release.h are taken inside.
 *
 * Errors: 2046 beyond a hundred years; 2009, 2162.
 */
#include "api/entry.h"
#include "base/error.h"
#include "os/fork_guard.h"
#include "queue/due_release.h"
#include "region/queue_clock.h"

#define ADVANCED_MOST_US 3155760000000000ull /* a hundred years */

uint64_t mqe_advanced_us(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    return mqx_forked(&manager->store) ? 0 : mqx_queue_advanced_us(&manager->store.region);
}

/* Under any number of callers at once: the sum stays below the bound. */
static int add(const struct mqx_region *region, uint64_t us)
{
    uint64_t before = 0;
    MQX_ASSERT(region->header != NULL);
    do {
        before = mqx_queue_advanced_us(region);
        if (us > ADVANCED_MOST_US || before > ADVANCED_MOST_US - us) {
            return mqx_fail(MQRC_OPTIONS_ERROR,
                            "the clock of a queue manager is advanced by a hundred years at most");
        }
    } while (us != 0 && !mqx_cas64(&region->header->advanced_us, before, before + us));
    MQX_ASSERT(before + us <= ADVANCED_MOST_US);
    return MQX_OK;
}

int mqe_advance(mqe_manager *manager, uint64_t us)
{
    MQX_ASSERT(manager != NULL);
    int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_store *store = &manager->store;
    MQX_ASSERT(store->region.header != NULL);
    status = add(&store->region, us);
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_OBJECTS);
    for (uint32_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_object *object = mqx_object(&store->region, slot);
        if (object != NULL && mqx_load_acquire(&object->state) == MQX_OBJ_ACTIVE) {
            status = mqx_due_release(store, slot);
        }
    }
    return status;
}
