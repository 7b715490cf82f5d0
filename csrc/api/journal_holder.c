/*
 * journal_holder.c - see journal_holder.h.
 */
#include "api/journal_holder.h"

#include "base/clock.h"
#include "base/error.h"
#include "journal/journal.h"
#include "region/area.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 512 };

void mqx_journal_holder_find(const struct mqx_region *region, struct mqx_journal_holder *out)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    const uint64_t tail = mqx_load_relaxed(&region->journal->tail);
    uint64_t lowest = UINT64_MAX;
    MQX_ASSERT(out != NULL);
    *out = (struct mqx_journal_holder){.bytes = 0};
    for (uint64_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        const uint64_t first = context != NULL ? mqx_load_relaxed(&context->first_lsn) : 0;
        if (first == 0 || first >= lowest) {
            continue;
        }
        const uint32_t process = mqx_load_relaxed(&context->process);
        lowest = first;
        *out = (struct mqx_journal_holder){
            .bytes = tail > first ? tail - first : 0,
            .since_us = mqx_load_relaxed(&context->started_us),
            .pid = process != 0 && process < MQX_PROCESS_MAX
                       ? mqx_load_relaxed(&mqx_process_slot(region, process)->pid)
                       : 0,
            .context = (uint32_t)slot,
        };
    }
}

/* The queue with the most messages, blank padded; its depth, 0: there is none. */
static uint64_t find_deepest(const struct mqx_region *region, char name[MQX_NAME_SIZE])
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_OBJECTS);
    uint64_t most = 0;
    MQX_ASSERT(name != NULL);
    for (uint64_t slot = 1; slot < used; slot++) {
        const struct mqx_object *object = mqx_object(region, (uint32_t)slot);
        if (object != NULL && mqx_load_relaxed(&object->state) == MQX_OBJ_ACTIVE &&
            mqx_load_relaxed(&object->present) > most) {
            most = mqx_load_relaxed(&object->present);
            memcpy(name, object->name, MQX_NAME_SIZE);
        }
    }
    return most;
}

int mqx_journal_full(const struct mqx_store *store, int status)
{
    const struct mqx_region *region = &store->region;
    struct mqx_journal_holder holder;
    char before[TEXT / 2], name[MQX_NAME_SIZE] = {0}, queue[TEXT / 4] = "", unit[TEXT / 4] = "";
    MQX_ASSERT(region->base != NULL);
    if (status != MQRC_STORAGE_MEDIUM_FULL) {
        return status;
    }
    (void)snprintf(before, sizeof before, "%s", mqx_error_text());
    mqx_journal_holder_find(region, &holder);
    const uint64_t depth = find_deepest(region, name);
    size_t length = MQX_NAME_SIZE;
    while (length > 0 && (name[length - 1] == ' ' || name[length - 1] == 0)) {
        length -= 1;
    }
    if (depth > 0) {
        (void)snprintf(queue, sizeof queue, "; the deepest queue is %.*s with %" PRIu64
                       " messages", (int)length, name, depth);
    }
    if (holder.bytes > 0 && holder.pid != 0) {
        (void)snprintf(unit, sizeof unit, "; the oldest unit of work, of process %d, "
                       "began %" PRIu64 " bytes of journal ago", holder.pid, holder.bytes);
    } else if (holder.bytes > 0) {
        (void)snprintf(unit, sizeof unit, "; the oldest unit of work is prepared since %"
                       PRIu64 " bytes of journal: penstock resolve ends it", holder.bytes);
    }
    MQX_ASSERT(strlen(before) < sizeof before);
    return mqx_fail(status, "%s%s%s; penstock status shows more", before, queue, unit);
}
