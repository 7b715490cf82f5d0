/*
 * damage.c - see damage.h.
 */
#include "region/damage.h"

#include "base/error.h"

MQX_THREAD_LOCAL bool damage_seen;

bool mqx_region_damaged(void)
{
    const bool seen = damage_seen;
    damage_seen = false;
    return seen;
}

int mqx_region_damage(const struct mqx_region *region, const char *structure, uint64_t item)
{
    damage_seen = true;
    mqx_region_stop(region, MQX_STOP_BROKEN);
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "shared region: %s (%llu) cannot be true", structure,
                    (unsigned long long)item);
}
