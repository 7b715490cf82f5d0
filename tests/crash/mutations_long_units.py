"""Planted faults in the back-out of open units by other processes (csrc/unit/long_units.h)."""

from __future__ import annotations

from mutations_units import mutation

LONG_UNITS = (
    mutation(
        "a helper takes a unit whatever its owner does",
        "c/long_units",
        "unit/long_units.c",
        """    return unit != NULL && mqx_load_relaxed(&unit->access) == MQX_ACCESS_OPEN &&
                   mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE
               ? unit""",
        """    if (unit != NULL && unit->state == MQX_CTX_ACTIVE) {
        unit->access = MQX_ACCESS_OPEN;
    }
    return unit != NULL && mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE
               ? unit""",
    ),
    mutation(
        "an owner inside a call looks as if it were outside",
        "c/long_units",
        "api/unit_handle.c",
        "    if (MQX_LIKELY(context != NULL && mqx_unit_try_enter(context))) {",
        "    if (context != NULL && mqx_load_acquire(&context->access) <= MQX_ACCESS_OPEN) {",
    ),
    mutation(
        "a helper takes a unit although its owner was faster",
        "t9/commit_unit+back_out_old_units",
        "unit/long_units.c",
        """    if (!mqx_cas32(&unit->access, MQX_ACCESS_OPEN,
                   MQX_ACCESS_BACKING | store->region.process << MQX_ACCESS_BITS)) {
        return MQX_OK;
    }""",
        """    mqx_store_release(&unit->access,
                      MQX_ACCESS_BACKING | store->region.process << MQX_ACCESS_BITS);""",
    ),
    mutation(
        "a unit counts as backed out before it is",
        "t2/back_out_anothers_unit",
        "unit/long_units.c",
        "    const int status = mqx_unit_backout(store, slot);\n",
        "    mqx_store_release(&unit->access, MQX_ACCESS_BACKED_OUT);\n"
        "    const int status = mqx_unit_backout(store, slot);\n",
    ),
    mutation(
        "units have no age",
        "c/long_units",
        "unit/long_units.c",
        "age_of(unit, limits->now_us) > limits->max_age_us;",
        "age_of(unit, limits->now_us) > UINT64_MAX - limits->max_age_us;",
    ),
    mutation(
        "a unit that holds nothing is too old, too",
        "c/long_units",
        "unit/long_units.c",
        "    return holds && old ? MQX_WHY_AGE : MQX_WHY_NONE;",
        "    return (holds || old) && old ? MQX_WHY_AGE : MQX_WHY_NONE;",
    ),
    mutation(
        "of the units that take space the youngest is backed out",
        "c/long_units",
        "unit/long_units.c",
        "        if (first != 0 && first < lowest && is_far_back(limits, first)) {",
        "        if (first != 0 && is_far_back(limits, first)) {",
    ),
    mutation(
        "a refused put backs nothing out",
        "c/long_units",
        "api/put.c",
        "    const int status = mqx_maintenance_back_out_units(store);",
        "    const int status = MQX_OK;",
    ),
    mutation(
        "the locks of a dead helper are not repaired before its work is continued",
        "t2/back_out_anothers_unit",
        "process/reaper.c",
        "        const int status = repair_locks(region, helper);\n",
        "        const int status = MQX_OK;\n",
    ),
    mutation(
        "who continues the work of a dead helper does not become the helper",
        "t2/continue_a_back_out",
        "process/reaper.c",
        "        mqx_unit_take_over(unit, region->process);\n",
        "",
    ),
    mutation(
        "the reaper does not look for the work of dead helpers",
        "c/long_units",
        "process/reaper.c",
        "        status = reap_all_helped(store);\n",
        "        status = MQX_OK;\n",
    ),
    mutation(
        "a unit that was backed out commits",
        "c/long_units",
        "process/unit_access.c",
        """        if (word == MQX_ACCESS_BACKED_OUT) {
            return was_backed_out(unit);
        }""",
        """        if (word == MQX_ACCESS_BACKED_OUT) {
            mqx_store_release(&unit->access, MQX_ACCESS_OWNER);
            return MQX_OK;
        }""",
    ),
    mutation(
        "a unit that was backed out counts no messages, so that its connection closes in silence",
        "c/long_units",
        "unit/long_units.c",
        "    case MQX_ACCESS_BACKED_OUT: return ended != 0 ? ended : 1;",
        "    case MQX_ACCESS_BACKED_OUT: return count;",
    ),
    mutation(
        "a process leaves without waiting for whoever backs out one of its units",
        "c/unit_access",
        "process/unit_access.c",
        "        if (context != NULL && mqx_load_acquire(&context->state) != MQX_CTX_FREE &&",
        "        if (context != NULL && mqx_load_acquire(&context->state) == MQX_CTX_DECIDED &&",
    ),
)
