/*
 * long_units.h - open units of work that have become too old, backed out by whoever maintains the
 * queue manager (rules 12, 44, 58).
 *
 * Purpose. A unit that nobody ends keeps what it has put in the journal, and what it has got from
 * everybody. Its process may be idle for days, stopped, or waiting for something else. So the
 * maintenance thread of any process backs it out; the owner learns it, by 2003, in its next calls.
 *
 * Terms
 *   owner    the process whose unit it is; its calls enter the unit and leave it again.
 *   helper   the thread that backs out units of others: it holds the maintenance lock.
 *   access   context.access, the word by which owner and helper take turns (enum mqx_access).
 *
 * States of `access`, each change one atomic store or compare-and-swap
 *   OWNER      --owner leaves an ACTIVE unit-->            OPEN
 *   OPEN       --owner enters (compare-and-swap)-->        OWNER
 *   OPEN       --helper (compare-and-swap)-->              BACKING
 *   BACKING    --helper: the unit is IDLE-->               BACKED_OUT
 *   BACKING    --the helper is dead, another one goes on--> BACKING, with the slot of that one
 *   BACKING    --helper: not wanted, or no room for its record; nothing is changed--> OPEN
 *   BACKED_OUT --owner ends the unit (commit, backout, prepare, end of the handle)--> OWNER
 *
 * Which units. Open ones whose owner is outside and that have a message or a record:
 *   long     80 % of the allowed journal was written since the unit's first record;
 *   space    live messages, uncommitted ones included, take 80 % of what puts may use, and a
 *            quarter of the allowed journal was written since: the oldest such unit, one a round;
 *   age      the unit began more than max_unit_age seconds ago, if the administrator has set that.
 * Never one that is prepared, decided or being backed out, never that of an autocommit call, and
 * never one whose owner is inside a call, however long that takes: such a one is marked
 * (mqx_unit_mark_long()) and backs itself out.
 *
 * Invariants
 *   1. OPEN: the unit is ACTIVE, no thread of its owner works on it, no reference is pending.
 *   2. Who has changed OPEN to OWNER or BACKING is the only one that works on the unit, until it
 *      changes the word again: with a death, until the maintenance lock is taken after it.
 *   3. BACKING: the helper holds the maintenance lock, or is dead, or the region is stopped. So
 *      whoever gets that lock and finds BACKING continues the roll.
 *   4. BACKED_OUT: the unit is IDLE and nothing of it is left, in the region or undecided in the
 *      journal.
 *
 * Deaths. A helper that is killed at any store leaves ACTIVE (nothing changed but the word), or
 * BACKING_OUT (continued from where the list stands, unit.h), or IDLE (only the last store is
 * missing), and perhaps a half-made micro-transaction under a stripe's lock. So its locks are
 * repaired first (the word names its slot); then another thread becomes the helper, by one store of
 * its own slot, and mqx_long_units_continue() makes BACKED_OUT of all three. That is done by the
 * reaper (mqx_reap_helped()), in the next round or for an owner that waits. All hold the
 * maintenance lock, so two never roll one list. An owner that is killed outside leaves OPEN, and
 * its unit to the reaper, which holds the maintenance lock as helpers do. Killed inside, it leaves
 * OWNER; the reaper does not need the word then.
 *
 * Locks. Helpers hold the maintenance lock. Owners hold none: entering costs one compare-and-swap,
 * leaving one store; only an owner that finds BACKING waits (process/unit_access.h).
 */
#ifndef PENSTOCK_UNIT_LONG_UNITS_H
#define PENSTOCK_UNIT_LONG_UNITS_H

#include "unit/unit.h"

/* Claims the context's unit for its owner when that needs no wait. */
static inline bool mqx_unit_try_enter(struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT((uintptr_t)unit % MQX_CACHE_LINE == 0);
    return mqx_load_relaxed(&unit->access) == MQX_ACCESS_OWNER ||
           mqx_cas32(&unit->access, MQX_ACCESS_OPEN, MQX_ACCESS_OWNER);
}

/* Ends the owner's call: whatever it has made of the unit. */
void mqx_unit_leave(struct mqx_store *store, uint32_t context);

/* The helper's slot, from a word `access`; 0: nobody is backing the unit out. */
static inline uint32_t mqx_unit_helper_of(uint32_t word)
{
    return (word & MQX_ACCESS_MASK) == MQX_ACCESS_BACKING ? word >> MQX_ACCESS_BITS : 0;
}

/* Messages that the owner believes to be in its unit; those that were backed out included, so that
 * it ends the unit and learns of it. */
uint32_t mqx_unit_believed_count(const struct mqx_context *unit);

enum { MQX_LONG_UNITS_A_ROUND = 8 };
struct mqx_long_unit { /* one that was backed out, for the log */
    int32_t pid;
    uint32_t why;    /* enum mqx_why_ended */
    uint32_t count;  /* of its messages */
    uint64_t age_us;
    uint64_t bytes;  /* of journal since its first record; 0: it had none */
};
struct mqx_long_units {
    uint32_t count;
    struct mqx_long_unit unit[MQX_LONG_UNITS_A_ROUND];
};

/* Backs out units, at most so many as *out takes. `full`: a put has been refused, so space is short
 * whatever the counts say. Maintenance lock held. Errors: those of mqx_unit_backout(); 2192: there
 * is no room for its record, and the unit is as before. */
int mqx_long_units_back_out(struct mqx_store *store, bool full,
                            struct mqx_long_units *out) MQX_MUST_USE;
/* The caller's process, with attachment slot `helper`, is the helper from now on. Maintenance lock
 * held, the locks of the helper before it repaired. */
static inline void mqx_unit_take_over(struct mqx_context *unit, uint32_t helper)
{
    MQX_ASSERT(helper != 0);
    MQX_ASSERT(mqx_unit_helper_of(mqx_load_relaxed(&unit->access)) != 0);
    mqx_store_release(&unit->access, MQX_ACCESS_BACKING | helper << MQX_ACCESS_BITS);
}
/* Backs out a unit of which it is the helper, from wherever the one before it was stopped. */
int mqx_long_units_continue(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

/* Why a unit was backed out, as words that follow "since". */
const char *mqx_why_ended_text(uint32_t why);

#endif
