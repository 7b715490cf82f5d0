/*
 * memory_ahead.c - see memory_ahead.h.
 */
#include "region/memory_ahead.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/futex.h"
#include "os/host_info.h"

enum {
    MIB = 1 << 20,
    STEP_BYTES = 2 * MIB,       /* made and touched before it is asked whether to go on */
    END = UINT32_MAX,           /* of `wanted` */
    MOST_MIB = 1 << 24,
    ASK_AGAIN_US = 1000000,
};
MQX_STATIC_ASSERT(MIB % sizeof(struct mqx_message) == 0, "whole entries");

/* Memory for the area's bytes from `from` to `to`. False: there is none. */
static bool make(struct mqx_region *region, uint64_t from, uint64_t to)
{
    MQX_ASSERT(from < to);
    MQX_ASSERT(mqx_load_acquire(&region->header->ready) == 0);
    if (mqx_region_grow(region, MQX_AREA_MESSAGES, to) != MQX_OK) {
        return false;
    }
    return region->io->ops->populate_write(region->io, region->area[MQX_AREA_MESSAGES] + from,
                                           to - from) == 0;
}

static void *run(void *arg)
{
    struct mqx_memory_ahead *ahead = arg;
    uint64_t done = 0;
    MQX_ASSERT(ahead->region != NULL);
    for (bool good = true; good;) {
        const uint32_t wanted = mqx_load_acquire(&ahead->wanted);
        const uint64_t bytes = (uint64_t)wanted * MIB;
        MQX_ASSERT(wanted == END || wanted <= MOST_MIB);
        if (wanted == (uint32_t)END) {
            break;
        }
        if (done >= bytes) {
            (void)mqx_futex_wait(&ahead->wanted, wanted, ASK_AGAIN_US);
            continue;
        }
        const uint64_t to = bytes - done < STEP_BYTES ? bytes : done + STEP_BYTES;
        good = make(ahead->region, done, to);
        done = to;
    }
    return NULL;
}

void mqx_memory_ahead_begin(struct mqx_memory_ahead *ahead, struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(mqx_load_acquire(&region->header->ready) == 0);
    *ahead = (struct mqx_memory_ahead){.region = region};
}

/* Is a second thread of use, and could it do its work? */
static bool may_help(const struct mqx_memory_ahead *ahead)
{
    const struct mqx_region *region = ahead->region;
    MQX_ASSERT(region->io != NULL);
    MQX_ASSERT(region->base != NULL);
    return region->io->ops->populate_write != NULL && !region->reach.stepwise &&
           mqx_usable_processors() > 1;
}

void mqx_memory_ahead_want(struct mqx_memory_ahead *ahead, uint64_t messages)
{
    const uint64_t mib = messages / (MIB / sizeof(struct mqx_message));
    const uint32_t wanted = mib < MOST_MIB ? (uint32_t)mib : (uint32_t)MOST_MIB;
    MQX_ASSERT(ahead->region != NULL);
    MQX_ASSERT(mqx_load_relaxed(&ahead->wanted) != (uint32_t)END);
    if (messages < MQX_AHEAD_LEAST || wanted <= mqx_load_relaxed(&ahead->wanted)) {
        return;
    }
    const bool first = mqx_load_relaxed(&ahead->wanted) == 0;
    mqx_store_release(&ahead->wanted, wanted);
    if (ahead->helper.runs) {
        mqx_futex_wake(&ahead->wanted, 1);
    } else if (first && may_help(ahead)) {
        (void)mqx_helper_thread_start(&ahead->helper, run, ahead);
    }
}

void mqx_memory_ahead_end(struct mqx_memory_ahead *ahead)
{
    MQX_ASSERT(ahead != NULL);
    if (ahead->helper.runs) {
        mqx_store_release(&ahead->wanted, (uint32_t)END);
        mqx_futex_wake(&ahead->wanted, 1);
        mqx_helper_thread_join(&ahead->helper);
    }
    MQX_ASSERT(!ahead->helper.runs);
}
