/*
 * replay_units.c - units of work in a replay: their records are kept until the unit is decided. See
 * replay.h.
 *
 *   record                   of a unit that ...     what happens
 *   without a unit           -                      takes effect at once
 *   of a unit                is in progress         becomes an operation of the unit, in order
 *   with REC_COMMITS         in progress or new     the unit's operations take effect, then it
 *   COMMIT                   is in progress         must agree with the unit, which takes effect
 *   BACKOUT                  is in progress         the unit's puts are dropped
 *   end of the epoch         is in progress         the same: it never was decided
 *
 * Units in progress are in a table with open addressing by unit id, at most half full; an entry
 * that leaves lets those behind it move up. Operations of all units share one array, linked by
 * index; entries of units that ended are used again.
 */
#include "recovery/replay_private.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_UNITS = 16 };

/* ---- the table of units ---- */

/* Where the search for a unit begins. */
static size_t first_bucket(const struct mqx_replay *replay, uint64_t id)
{
    MQX_ASSERT(id != 0);
    MQX_ASSERT((replay->unit_capacity & (replay->unit_capacity - 1)) == 0);
    return (size_t)(id * 0x9e3779b97f4a7c15u >> 32) & (replay->unit_capacity - 1);
}

/* The entry of the unit, or the free one where it would be. */
static size_t find_unit(const struct mqx_replay *replay, uint64_t id)
{
    size_t at = first_bucket(replay, id);
    MQX_ASSERT(replay->unit_count < replay->unit_capacity); /* so the search ends */
    MQX_ASSERT(replay->units != NULL);
    while (replay->units[at].id != 0 && replay->units[at].id != id) {
        at = (at + 1) & (replay->unit_capacity - 1);
    }
    return at;
}

/* Twice as many entries; every unit gets a new one. */
static int grow_units(struct mqx_replay *replay)
{
    struct mqx_replay_unit *old = replay->units;
    const size_t had = replay->unit_capacity;
    const size_t wanted = had == 0 ? FIRST_UNITS : had * 2;
    MQX_ASSERT(replay->unit_count <= had);
    struct mqx_replay_unit *units = calloc(wanted, sizeof *units);
    if (units == NULL) {
        return mqx_replay_no_memory();
    }
    replay->units = units;
    replay->unit_capacity = wanted;
    for (size_t i = 0; i < had; i++) {
        if (old[i].id != 0) {
            units[find_unit(replay, old[i].id)] = old[i];
        }
    }
    free(old);
    MQX_ASSERT(2 * replay->unit_count <= replay->unit_capacity);
    return MQX_OK;
}

/* The unit with that id; a new one begins at `lsn`. The pointer holds until the next unit. */
static int unit_for(struct mqx_replay *replay, uint64_t id, uint64_t lsn,
                    struct mqx_replay_unit **out)
{
    if (2 * (replay->unit_count + 1) > replay->unit_capacity) {
        int status = grow_units(replay);
        if (status != MQX_OK) {
            return status;
        }
    }
    struct mqx_replay_unit *unit = &replay->units[find_unit(replay, id)];
    if (unit->id == 0) {
        *unit = (struct mqx_replay_unit){.id = id, .first_lsn = lsn};
        replay->unit_count += 1;
    }
    MQX_ASSERT(unit->id == id);
    MQX_ASSERT(unit->first_lsn <= lsn);
    *out = unit;
    return MQX_OK;
}

int mqx_replay_carry_unit(struct mqx_replay *replay, const struct mqx_replay_unit *unit)
{
    struct mqx_replay_unit *entry = NULL;
    MQX_ASSERT(unit->carried);
    MQX_ASSERT(unit->first_lsn < replay->begin_lsn);
    const int status = unit_for(replay, unit->id, unit->first_lsn, &entry);
    if (status == MQX_OK) {
        *entry = *unit;
    }
    return status;
}

/* Entries behind the one that leaves move up, so that a search does not end at the gap. */
bool mqx_replay_remove_unit(struct mqx_replay *replay, uint64_t id, struct mqx_replay_unit *out)
{
    if (replay->unit_count == 0 || id == 0) {
        return false;
    }
    const size_t mask = replay->unit_capacity - 1;
    size_t hole = find_unit(replay, id);
    if (replay->units[hole].id == 0) {
        return false;
    }
    *out = replay->units[hole];
    replay->unit_count -= 1;
    for (size_t at = (hole + 1) & mask; replay->units[at].id != 0; at = (at + 1) & mask) {
        const size_t home = first_bucket(replay, replay->units[at].id);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            replay->units[hole] = replay->units[at];
            hole = at;
        }
    }
    replay->units[hole].id = 0;
    MQX_ASSERT(out->id == id);
    MQX_ASSERT(replay->units[find_unit(replay, id)].id == 0);
    return true;
}

/* ---- records of a unit ----
 *
 * CHUNK records count and are part of the checksum, but are no operations: a message's pieces are
 * found through its PUT.
 */

int mqx_replay_add_op(struct mqx_replay *replay, struct mqx_replay_unit *unit,
                      const struct mqx_replay_op *op)
{
    uint32_t index = replay->free_op;
    MQX_ASSERT((unit->first_op == 0) == (unit->last_op == 0));
    if (index != 0) {
        replay->free_op = replay->ops[index - 1].next;
    } else {
        int status = mqx_replay_grow(&replay->ops, replay->op_count, &replay->op_capacity,
                          sizeof *replay->ops);
        if (status != MQX_OK) {
            return status;
        }
        index = (uint32_t)++replay->op_count;
    }
    replay->ops[index - 1] = *op;
    replay->ops[index - 1].next = 0;
    if (unit->last_op != 0) {
        replay->ops[unit->last_op - 1].next = index;
    } else {
        unit->first_op = index;
    }
    unit->last_op = index;
    MQX_ASSERT(index <= replay->op_count);
    MQX_ASSERT(unit->first_op != 0);
    return MQX_OK;
}

/* The entries of its operations go to the free list in one step. */
int mqx_replay_end_unit(struct mqx_replay *replay, const struct mqx_replay_unit *unit,
                        bool committed)
{
    int status = MQX_OK;
    MQX_ASSERT((unit->first_op == 0) == (unit->last_op == 0));
    for (uint32_t at = unit->first_op; at != 0 && status == MQX_OK;
         at = replay->ops[at - 1].next) {
        const struct mqx_replay_op *op = &replay->ops[at - 1];
        MQX_ASSERT(at <= replay->op_count);
        if (committed) {
            status = mqx_replay_apply(replay, op);
        } else if (op->type == PS_REC_PUT || op->type == PS_REC_TAKEN) {
            replay->puts[op->put].state = MQX_PUT_DROPPED;
        }
    }
    if (unit->last_op != 0) {
        replay->ops[unit->last_op - 1].next = replay->free_op;
        replay->free_op = unit->first_op;
    }
    return status;
}

/* Only their puts have left a trace, which becomes DROPPED. A sweep comes with the next record. */
void mqx_replay_end_epoch(struct mqx_replay *replay)
{
    MQX_ASSERT(replay->unit_count <= replay->unit_capacity);
    for (size_t i = 0; i < replay->unit_capacity && replay->unit_count > 0; i++) {
        struct mqx_replay_unit *unit = &replay->units[i];
        if (unit->id != 0) {
            (void)!mqx_replay_end_unit(replay, unit, false); /* dropping cannot fail */
            unit->id = 0;
            replay->unit_count -= 1;
            replay->units_dropped += 1;
        }
    }
    MQX_ASSERT(replay->unit_count == 0);
}

/* The operation that a record stands for; a PUT is entered with the puts, in state WAITING. */
static int make_op(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record,
                   struct mqx_replay_op *out)
{
    const struct psj_record *head = record->head;
    MQX_ASSERT(head != NULL);
    *out = (struct mqx_replay_op){
        .number = head->number,
        .lsn = lsn,
        .object = head->object,
        .object_gen = head->object_gen,
        .type = mqx_record_type(head),
    };
    if (out->type == PS_REC_PUT) {
        return mqx_replay_add_put(replay, record, lsn, &out->put);
    }
    if (out->type == PS_REC_TAKEN) {
        MQX_ASSERT(record->taken != NULL); /* the decoder refuses a TAKEN without */
        out->before = record->taken->before;
        int status = mqx_replay_add_put(replay, record, lsn, &out->put);
        if (status == MQX_OK) {
            replay->puts[out->put].taken = true;
        }
        return status;
    }
    if (out->type == PS_REC_OBJECT) {
        return mqx_replay_copy_definition(replay, record, &out->definition);
    }
    return MQX_OK;
}

/* Pieces whose PUT is still to come must stay where they are. */
static void note_pieces(struct mqx_replay_unit *unit, const struct mqx_replay_op *op)
{
    MQX_ASSERT(unit->id != 0);
    MQX_ASSERT(op->lsn != 0);
    if (op->type == PS_REC_CHUNK) {
        unit->pieces_lsn = unit->pieces_lsn == 0 ? op->lsn : unit->pieces_lsn;
    } else if (op->type == PS_REC_PUT || op->type == PS_REC_TAKEN) {
        unit->pieces_lsn = 0;
    }
}

/* A record of a unit that is not decided by it. */
static int add_to_unit(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record,
                       const struct mqx_replay_op *op)
{
    struct mqx_replay_unit *unit = NULL;
    MQX_ASSERT(record->head->unit_id != 0);
    MQX_ASSERT((record->head->flags & PS_FLAG_COMMITS) == 0);
    int status = unit_for(replay, record->head->unit_id, lsn, &unit);
    if (status == MQX_OK) {
        unit->record_count += 1;
        unit->running_crc = mqx_running_crc(unit->running_crc, record->head);
        note_pieces(unit, op);
        status = op->type == PS_REC_CHUNK ? MQX_OK : mqx_replay_add_op(replay, unit, op);
    }
    return status;
}

/* A record alone and a record with REC_COMMITS take effect here; all others wait for their unit.
 */
int mqx_replay_take_record(struct mqx_replay *replay, uint64_t lsn,
                           const struct mqx_decoded *record)
{
    struct mqx_replay_op op;
    struct mqx_replay_unit unit = {0};
    const struct psj_record *head = record->head;
    MQX_ASSERT(lsn >= replay->begin_lsn);
    MQX_ASSERT(replay->held == NULL); /* the tail is still being read */
    int status = make_op(replay, lsn, record, &op);
    if (status != MQX_OK) {
        return status;
    }
    if (head->unit_id != 0 && (head->flags & PS_FLAG_COMMITS) == 0) {
        return add_to_unit(replay, lsn, record, &op);
    }
    if (head->unit_id != 0 && mqx_replay_remove_unit(replay, head->unit_id, &unit)) {
        status = mqx_replay_end_unit(replay, &unit, true);
    }
    if (status == MQX_OK && op.type != PS_REC_CHUNK) {
        status = mqx_replay_apply(replay, &op);
    }
    return status;
}

/* ---- the end of a unit ----
 *
 * A disagreement between a COMMIT and the records before it cannot come from a crash: records are
 * in the journal in order, each batch is whole. So it is damage.
 */

/* Count and running checksum cover CHUNK records as well, so a unit with a lost piece does not
 * pass. */
bool mqx_replay_unit_agrees(const struct mqx_replay_unit *unit, const struct ps_commit *stated)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(stated != NULL);
    return unit->first_lsn == stated->first_lsn && unit->record_count == stated->record_count &&
           unit->running_crc == stated->running_crc;
}

/* Not one whose first record lies below the begin LSN of a checkpoint that does not list units: it
 * was over when that began, and only its later records were read. */
bool mqx_replay_knows_unit(const struct mqx_replay *replay, const struct mqx_replay_unit *unit,
                           uint64_t first_lsn)
{
    MQX_ASSERT(!unit->carried || unit->first_lsn < replay->begin_lsn);
    MQX_ASSERT(replay->begin_lsn == 0 || replay->checkpoint_end >= replay->begin_lsn);
    return replay->units_listed || unit->carried || first_lsn >= replay->begin_lsn;
}

/* Of a unit that is not known as a whole the checkpoint has the effects. Those of its records that
 * were read take effect again, unchecked: it may have got a message whose PUT lies above the begin
 * LSN, too, and that PUT must not come back without its GET. */
int mqx_replay_commit(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    const struct ps_commit *stated = record->commit;
    struct mqx_replay_unit unit = {.first_lsn = stated->first_lsn};
    MQX_ASSERT(lsn >= replay->begin_lsn);
    MQX_ASSERT(stated != NULL); /* the decoder refuses a COMMIT without */
    (void)mqx_replay_remove_unit(replay, record->head->unit_id, &unit);
    if (!mqx_replay_knows_unit(replay, &unit, stated->first_lsn)) {
        return mqx_replay_end_unit(replay, &unit, true);
    }
    if (record->head->unit_id == 0 || !mqx_replay_unit_agrees(&unit, stated)) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "COMMIT at LSN %" PRIu64 " of unit %" PRIu64 " is about %u records from "
                        "LSN %" PRIu64 ", found are %u from LSN %" PRIu64,
                        lsn, record->head->unit_id, stated->record_count, stated->first_lsn,
                        unit.record_count, unit.first_lsn);
    }
    return mqx_replay_end_unit(replay, &unit, true);
}

/* A BACKOUT record may name no unit and only bring counts (restart.c writes such ones). */
int mqx_replay_back_out(struct mqx_replay *replay, const struct mqx_decoded *record)
{
    struct mqx_replay_unit unit;
    int status = MQX_OK;
    MQX_ASSERT(record->count_count == 0 || record->counts != NULL);
    MQX_ASSERT(mqx_record_type(record->head) == PS_REC_BACKOUT);
    if (mqx_replay_remove_unit(replay, record->head->unit_id, &unit)) {
        status = mqx_replay_end_unit(replay, &unit, false);
    }
    for (uint32_t i = 0; i < record->count_count && status == MQX_OK; i++) {
        const struct ps_count *counted = &record->counts[i];
        status = mqx_replay_count(replay, counted->identity, counted->count);
        if (status == MQX_OK && record->dues != NULL) {
            status = mqx_replay_delay(replay, counted->identity, counted->count, record->dues[i]);
        }
    }
    return status;
}
