/*
 * damage.c - see damage.h.
 *
 * The text is written once: a compare and swap of damage_claim decides which process writes it, a
 * release store publishes it. A writer that dies in between leaves no text, which costs a name in
 * the log and nothing else.
 */
#include "region/damage.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/error.h"
#include "region/reach.h"
#include "region/stop_flag.h"

#include <stdio.h>
#include <string.h>

MQX_THREAD_LOCAL bool damage_seen;

bool mqx_region_damaged(void)
{
    const bool seen = damage_seen;
    damage_seen = false;
    return seen;
}

static void publish_text(struct mqx_header *header, const char *structure, uint64_t item)
{
    MQX_ASSERT(header != NULL);
    char text[MQX_DAMAGE_TEXT];
    if (!mqx_cas32(&header->damage_claim, MQX_DAMAGE_NONE, MQX_DAMAGE_CLAIMED)) {
        return;
    }
    const int length = snprintf(text, sizeof text, "%s (%llu)", structure,
                                (unsigned long long)item);
    MQX_ASSERT(length > 0);
    MQX_ASSERT((size_t)length < sizeof text);
    (void)length;
    memcpy(header->damage_text, text, sizeof text);
    mqx_store_release(&header->damage_claim, (uint32_t)MQX_DAMAGE_WRITTEN);
}

/* Before the stop: the thread that sees the stop flag finds the text. */
static int report(struct mqx_header *header, const char *structure, uint64_t item)
{
    MQX_ASSERT(structure != NULL && structure[0] != '\0');
    MQX_ASSERT(header != NULL);
    damage_seen = true;
    publish_text(header, structure, item);
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "shared region: %s (%llu) cannot be true", structure,
                    (unsigned long long)item);
}

int mqx_region_damage(const struct mqx_region *region, const char *structure, uint64_t item)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    if (MQX_UNLIKELY(!mqx_reach_all(region))) { /* it may be true in memory not mapped here */
        mqx_reach_lose(region);
        return mqx_reach_refused(region);
    }
    const int status = report(region->header, structure, item);
    mqx_region_stop(region, MQX_STOP_BROKEN);
    return status;
}

int mqx_region_damage_header(struct mqx_header *header, const char *structure, uint64_t item)
{
    MQX_ASSERT(header != NULL);
    const int status = report(header, structure, item);
    mqx_region_stop_header(header, MQX_STOP_BROKEN);
    return status;
}

const char *mqx_region_damage_text(const struct mqx_region *region)
{
    MQX_ASSERT(region != NULL);
    const struct mqx_header *header = region->header;
    MQX_ASSERT(header != NULL);
    if (mqx_load_acquire(&header->damage_claim) != MQX_DAMAGE_WRITTEN ||
        memchr(header->damage_text, '\0', sizeof header->damage_text) == NULL) {
        return NULL; /* the text lies in the region, too: it may be damaged itself */
    }
    return header->damage_text;
}
