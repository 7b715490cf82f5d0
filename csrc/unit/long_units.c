/*
 * long_units.c - see long_units.h.
 */
#include "unit/long_units.h"

#include "base/assert.h"

enum {
    SHORT_TENTHS = 8,     /* of what puts may use: space is short */
    SPACE_FRACTION = 4,   /* of the allowed journal: how long ago a unit that takes it began */
    SECOND_US = 1000000,
};

static struct mqx_lock *helpers_lock(const struct mqx_store *store)
{
    MQX_ASSERT(store->region.base != NULL);
    MQX_ASSERT(store->region.header != NULL);
    return &store->region.header->maintenance_lock;
}

const char *mqx_why_ended_text(uint32_t why)
{
    switch (why) {
    case MQX_WHY_LONG: return "80 % of journal.limit was written after its first record";
    case MQX_WHY_SPACE: return "the journal was nearly full and it was the oldest one";
    case MQX_WHY_AGE: return "it was older than limits.max_unit_age";
    default: return "it was open for too long";
    }
}

/* ---- the helper ---- */

int mqx_long_units_continue(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, helpers_lock(store)));
    MQX_ASSERT(mqx_unit_helper_of(mqx_load_acquire(&unit->access)) != 0);
    const int status = mqx_unit_backout(store, slot);
    const uint32_t state = mqx_load_acquire(&unit->state);
    if (state == MQX_CTX_IDLE) { /* also when only the end of a deleted queue has failed */
        mqx_store_release(&unit->access, MQX_ACCESS_BACKED_OUT);
    } else if (state == MQX_CTX_ACTIVE) { /* its record could not be written: as before */
        mqx_store_release(&unit->access, MQX_ACCESS_OPEN);
    }
    return status;
}

struct limits { /* what units are measured against in one round */
    const struct mqx_journal *journal;
    uint64_t tail, now_us, max_age_us;
};

static uint64_t age_of(const struct mqx_context *unit, uint64_t now_us)
{
    const uint64_t started_us = mqx_load_relaxed(&unit->started_us);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(now_us != 0);
    return started_us < now_us ? now_us - started_us : 0; /* the clock may have been set back */
}

static uint64_t bytes_since(uint64_t tail, uint64_t first)
{
    const uint64_t bytes = first != 0 && first < tail ? tail - first : 0;
    MQX_ASSERT(bytes <= tail);
    MQX_ASSERT(first != 0 || bytes == 0);
    return bytes;
}

/* Is the unit too long or too old, whatever space there is? One that holds nothing is not. */
static uint32_t why_too_old(const struct limits *limits, const struct mqx_context *unit)
{
    const uint64_t first = mqx_load_acquire(&unit->first_lsn);
    MQX_ASSERT(limits->journal != NULL);
    MQX_ASSERT(limits->now_us != 0);
    if (mqx_unit_is_long(limits->journal, limits->tail, first)) {
        return MQX_WHY_LONG;
    }
    const bool holds = first != 0 || mqx_load_relaxed(&unit->count) != 0;
    const bool old = limits->max_age_us != 0 && age_of(unit, limits->now_us) > limits->max_age_us;
    return holds && old ? MQX_WHY_AGE : MQX_WHY_NONE;
}

/* Does the unit go back so far that it may be taken when space is short? */
static bool is_far_back(const struct limits *limits, uint64_t first)
{
    MQX_ASSERT(limits->journal != NULL);
    MQX_ASSERT(limits->journal->limit >= SPACE_FRACTION);
    return bytes_since(limits->tail, first) > limits->journal->limit / SPACE_FRACTION;
}

/* A unit that a helper may claim, as it looks without a claim; NULL: it is none. */
static struct mqx_context *candidate(const struct mqx_region *region, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(region, slot);
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(region->base != NULL);
    return unit != NULL && mqx_load_relaxed(&unit->access) == MQX_ACCESS_OPEN &&
                   mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE
               ? unit
               : NULL;
}

static void describe(const struct mqx_store *store, const struct limits *limits, uint32_t why,
                     const struct mqx_context *unit, struct mqx_long_unit *out)
{
    const uint32_t process = unit->process;
    MQX_ASSERT(why != MQX_WHY_NONE);
    MQX_ASSERT(mqx_unit_helper_of(mqx_load_relaxed(&unit->access)) == store->region.process);
    *out = (struct mqx_long_unit){
        .pid = process != 0 && process < MQX_PROCESS_MAX
                   ? mqx_load_relaxed(&mqx_process_slot(&store->region, process)->pid)
                   : 0,
        .why = why,
        .count = mqx_load_relaxed(&unit->count),
        .age_us = age_of(unit, limits->now_us),
        .bytes = bytes_since(limits->tail, mqx_load_relaxed(&unit->first_lsn)),
    };
}

/* Claims the unit, unless its owner is faster, and looks again: it may be another one by now. What
 * the owner is told is stored before the roll. */
static int claim_and_back_out(struct mqx_store *store, const struct limits *limits, uint32_t slot,
                              bool space, struct mqx_long_units *out)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(out->count < MQX_LONG_UNITS_A_ROUND);
    MQX_ASSERT(store->region.process != 0);
    if (!mqx_cas32(&unit->access, MQX_ACCESS_OPEN,
                   MQX_ACCESS_BACKING | store->region.process << MQX_ACCESS_BITS)) {
        return MQX_OK;
    }
    uint32_t why = why_too_old(limits, unit);
    if (why == MQX_WHY_NONE && space && is_far_back(limits, unit->first_lsn)) {
        why = MQX_WHY_SPACE;
    }
    if (why == MQX_WHY_NONE) {
        mqx_store_release(&unit->access, MQX_ACCESS_OPEN);
        return MQX_OK;
    }
    struct mqx_long_unit *described = &out->unit[out->count];
    describe(store, limits, why, unit, described);
    mqx_store_relaxed(&unit->ended_why, why);
    mqx_store_relaxed(&unit->ended_by,
                      mqx_process_slot(&store->region, store->region.process)->pid);
    mqx_store_relaxed(&unit->ended_count, described->count);
    const int status = mqx_long_units_continue(store, slot);
    out->count += mqx_load_relaxed(&unit->access) == MQX_ACCESS_BACKED_OUT;
    return status;
}

static int back_out_old_ones(struct mqx_store *store, const struct limits *limits,
                             struct mqx_long_units *out)
{
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_CONTEXTS);
    int status = MQX_OK;
    MQX_ASSERT(out->count == 0);
    MQX_ASSERT(used > 0);
    for (uint32_t slot = 1;
         slot < used && status == MQX_OK && out->count < MQX_LONG_UNITS_A_ROUND; slot++) {
        const struct mqx_context *unit = candidate(&store->region, slot);
        if (unit != NULL && why_too_old(limits, unit) != MQX_WHY_NONE) {
            status = claim_and_back_out(store, limits, slot, false, out);
        }
    }
    return status;
}

/* The candidate with the oldest record; 0: there is none, or it is too young. */
static uint32_t find_oldest(const struct mqx_region *region, const struct limits *limits)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    uint64_t lowest = UINT64_MAX;
    uint32_t found = 0;
    MQX_ASSERT(used > 0);
    for (uint32_t slot = 1; slot < used; slot++) {
        const struct mqx_context *unit = candidate(region, slot);
        const uint64_t first = unit == NULL ? 0 : mqx_load_acquire(&unit->first_lsn);
        if (first != 0 && first < lowest && is_far_back(limits, first)) {
            lowest = first;
            found = slot;
        }
    }
    MQX_ASSERT(found < used);
    return found;
}

static bool is_space_short(const struct mqx_region *region)
{
    const uint64_t most = mqx_journal_live_limit(region->journal);
    MQX_ASSERT(most != 0);
    MQX_ASSERT(most <= region->journal->limit);
    return mqx_store_live_bytes(region) > most / 10 * SHORT_TENTHS;
}

int mqx_long_units_back_out(struct mqx_store *store, bool full, struct mqx_long_units *out)
{
    const struct mqx_region *region = &store->region;
    const struct limits limits = {
        .journal = region->journal,
        .tail = mqx_load_relaxed(&region->journal->tail),
        .now_us = store->io->ops->now_us(store->io),
        .max_age_us = (uint64_t)region->header->max_unit_age * SECOND_US,
    };
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(mqx_lock_held(region, helpers_lock(store)));
    out->count = 0;
    int status = back_out_old_ones(store, &limits, out);
    if (status == MQX_OK && out->count == 0 && (full || is_space_short(region))) {
        const uint32_t oldest = find_oldest(region, &limits);
        status = oldest == 0 ? MQX_OK : claim_and_back_out(store, &limits, oldest, true, out);
    }
    MQX_ASSERT(out->count <= MQX_LONG_UNITS_A_ROUND);
    return status;
}

/* ---- the owner ---- */

void mqx_unit_leave(struct mqx_store *store, uint32_t slot)
{
    struct mqx_context *unit = mqx_context(&store->region, slot);
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(store->region.process != 0);
    if (unit != NULL && mqx_load_relaxed(&unit->state) == MQX_CTX_ACTIVE) {
        MQX_ASSERT(mqx_load_relaxed(&unit->access) == MQX_ACCESS_OWNER);
        mqx_store_release(&unit->access, MQX_ACCESS_OPEN);
    }
}

uint32_t mqx_unit_believed_count(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT((uintptr_t)unit % MQX_CACHE_LINE == 0);
    const uint32_t count = mqx_load_relaxed(&unit->count);
    const uint32_t ended = mqx_load_relaxed(&unit->ended_count);
    switch (mqx_load_acquire(&unit->access) & MQX_ACCESS_MASK) {
    case MQX_ACCESS_BACKING: return count != 0 ? count : 1;
    case MQX_ACCESS_BACKED_OUT: return ended != 0 ? ended : 1;
    default: return count;
    }
}
