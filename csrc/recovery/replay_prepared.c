/*
 * replay_prepared.c - prepared units in a replay: they outlive the epoch, until a record with their
 * outcome. See replay.h.
 *
 *   PREPARE            the unit leaves those in progress; its operations stay, without effect
 *   COMMIT_PREPARED    of each unit named: the operations take effect
 *   BACKOUT_PREPARED   of each unit named: the puts are dropped
 *   end of the tail    units without an outcome: what they hold is found
 *                      (mqx_replay_hold_prepared), loaded with the other messages, and linked to
 *                      them again (load.c)
 *
 * A unit that began below the begin LSN is carried by the checkpoint (units_in_flight.h). Of a
 * checkpoint that does not list units, contexts of prepared units keep the begin LSN down
 * (checkpoint.c): one that began below it has an outcome in the tail, and without is damage.
 */
#include "recovery/replay_private.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- preparing and resolving ----
 *
 * A prepared unit is found by its unit id; its xid only matters to those who resolve it later.
 */

/* An entry for a prepared unit; its index. */
static int new_prepared(struct mqx_replay *replay, uint32_t *out)
{
    if (replay->free_prepared != 0) {
        *out = replay->free_prepared - 1;
        MQX_ASSERT(*out < replay->prepared_count);
        MQX_ASSERT(replay->prepared[*out].unit.id == 0);
        replay->free_prepared = replay->prepared[*out].unit.first_op;
        return MQX_OK;
    }
    int status = mqx_replay_grow(&replay->prepared, replay->prepared_count,
                                 &replay->prepared_capacity, sizeof *replay->prepared);
    if (status == MQX_OK) {
        *out = (uint32_t)replay->prepared_count++;
        replay->prepared[*out].unit.id = 0;
    }
    return status;
}

int mqx_replay_add_prepared(struct mqx_replay *replay, const struct mqx_replay_prepared *prepared)
{
    uint32_t index = 0;
    size_t at = 0;
    bool is_new = false;
    MQX_ASSERT(prepared->unit.id != 0);
    MQX_ASSERT(prepared->unit.first_lsn != 0);
    int status = new_prepared(replay, &index);
    if (status == MQX_OK) {
        status = mqx_number_map_add(&replay->prepared_by_id, prepared->unit.id, &at,
                                    &is_new);
    }
    if (status == MQX_OK) {
        replay->prepared_by_id.values[at] = index + 1;
        replay->prepared[index] = *prepared;
    }
    return status;
}

/* Moves the unit from those in progress to the prepared ones. One that began below the begin LSN
 * was read in part, so it cannot be compared; its outcome follows. */
int mqx_replay_prepare(struct mqx_replay *replay, uint64_t lsn, const struct mqx_decoded *record)
{
    const struct ps_commit *stated = record->commit;
    const uint64_t id = record->head->unit_id;
    struct mqx_replay_unit unit = {.id = id, .first_lsn = stated->first_lsn};
    MQX_ASSERT(lsn >= replay->begin_lsn);
    MQX_ASSERT(record->xid != NULL); /* the decoder refuses a PREPARE without */
    MQX_ASSERT(record->prepared != NULL);
    (void)mqx_replay_remove_unit(replay, id, &unit);
    if ((stated->record_count == 0 ||
         mqx_replay_knows_unit(replay, &unit, stated->first_lsn)) &&
        !mqx_replay_unit_agrees(&unit, stated)) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "PREPARE at LSN %" PRIu64 " of unit %" PRIu64 " is about %u records from "
                        "LSN %" PRIu64 ", found are %u from LSN %" PRIu64,
                        lsn, id, stated->record_count, stated->first_lsn, unit.record_count,
                        unit.first_lsn);
    }
    unit.id = id;
    unit.first_lsn = stated->record_count == 0 ? lsn : stated->first_lsn;
    const struct mqx_replay_prepared prepared = {
        .unit = unit,
        .xid = *record->xid,
        .prepare_end_lsn = lsn + mqx_record_length(record->head),
        .stated = *record->prepared,
    };
    return mqx_replay_add_prepared(replay, &prepared);
}

/* The outcome of one unit. One that is not among the prepared ones was prepared below the begin
 * LSN: it was resolved when the checkpoint began. */
static int end_one(struct mqx_replay *replay, uint64_t id, bool committed)
{
    size_t at = 0;
    const bool found = mqx_number_map_find(&replay->prepared_by_id, id, &at);
    const uint32_t index = found ? replay->prepared_by_id.values[at] : 0;
    if (index == 0) {
        return MQX_OK;
    }
    struct mqx_replay_unit *unit = &replay->prepared[index - 1].unit;
    MQX_ASSERT(index <= replay->prepared_count);
    MQX_ASSERT(unit->id == id);
    int status = mqx_replay_end_unit(replay, unit, committed);
    replay->prepared_by_id.values[at] = 0;
    unit->id = 0;
    unit->first_op = replay->free_prepared;
    replay->free_prepared = index;
    return status;
}

/* One record may name many units; each is independent of the others. */
int mqx_replay_end_prepared(struct mqx_replay *replay, const struct mqx_decoded *record,
                            bool committed)
{
    int status = MQX_OK;
    MQX_ASSERT(record->unit_count == 0 || record->units != NULL);
    MQX_ASSERT(replay->held == NULL); /* the tail is still being read */
    for (uint32_t i = 0; i < record->unit_count && status == MQX_OK; i++) {
        status = end_one(replay, record->units[i], committed);
    }
    return status;
}

/* ---- what prepared units hold at the end ----
 *
 *   PUT     the message is loaded, uncommitted
 *   GET     the message is loaded, got: it is on its queue, not available
 *   TAKEN   the image of a non-persistent message that was got: loaded the same way, and not given
 *           back when the unit is backed out
 */

/* One message that a prepared unit holds. */
static int hold_message(struct mqx_replay *replay, const struct mqx_replay_op *op)
{
    size_t at = 0;
    bool is_new = false;
    MQX_ASSERT(op->type == PS_REC_PUT || op->type == PS_REC_GET || op->type == PS_REC_TAKEN);
    MQX_ASSERT(replay->held_count <= replay->op_count);
    int status = mqx_number_map_add(&replay->held_by_number, op->number, &at, &is_new);
    if (status != MQX_OK || !is_new) { /* a second image: the first attempt to prepare failed */
        return status;
    }
    replay->held_by_number.values[at] = (uint32_t)replay->held_count;
    replay->held[replay->held_count++] =
        (struct mqx_replay_held){.number = op->number, .type = op->type, .put = op->put};
    if (op->type == PS_REC_PUT) {
        return mqx_replay_apply_put(replay, op);
    }
    if (op->type == PS_REC_TAKEN &&
        mqx_replay_defined_at(replay, op->object, op->object_gen) != NULL) {
        replay->puts[op->put].state = MQX_PUT_EFFECTIVE;
    }
    return MQX_OK;
}

/* The next op of that kind from `at` (index + 1) on. */
static uint32_t next_op(const struct mqx_replay *replay, uint32_t at, bool taken)
{
    MQX_ASSERT(at <= replay->op_count);
    MQX_ASSERT(at == 0 || replay->ops != NULL);
    while (at != 0) {
        const uint32_t type = replay->ops[at - 1].type;
        if (taken ? type == PS_REC_TAKEN : type == PS_REC_PUT || type == PS_REC_GET) {
            break;
        }
        at = replay->ops[at - 1].next;
    }
    return at;
}

/* What one unit holds, in the order of its calls. Images of non-persistent messages were written
 * last, by the prepare; `before` is the number of logged messages before each. */
static int hold_messages(struct mqx_replay *replay, struct mqx_replay_prepared *prepared)
{
    uint32_t taken = next_op(replay, prepared->unit.first_op, true);
    uint32_t logged = next_op(replay, prepared->unit.first_op, false);
    uint32_t passed = 0;
    int status = MQX_OK;
    MQX_ASSERT(prepared->unit.id != 0);
    prepared->first_held = replay->held_count;
    while ((taken != 0 || logged != 0) && status == MQX_OK) {
        const struct mqx_replay_op *image = taken != 0 ? &replay->ops[taken - 1] : NULL;
        if (image != NULL && (image->before <= passed || logged == 0)) {
            status = hold_message(replay, image);
            taken = next_op(replay, image->next, true);
        } else {
            const struct mqx_replay_op *op = &replay->ops[logged - 1];
            status = hold_message(replay, op);
            logged = next_op(replay, op->next, false);
            passed += 1;
        }
    }
    prepared->held_count = replay->held_count - prepared->first_held;
    MQX_ASSERT(status != MQX_OK || (taken == 0 && logged == 0));
    return status;
}

/* One entry of `held` for each operation at most, so the array is allocated once. */
int mqx_replay_hold_prepared(struct mqx_replay *replay)
{
    int status = MQX_OK;
    MQX_ASSERT(replay->held == NULL); /* once, after the last record */
    MQX_ASSERT(replay->unit_count == 0);
    replay->held = calloc(replay->op_count + 1, sizeof *replay->held);
    if (replay->held == NULL) {
        return mqx_replay_no_memory();
    }
    for (size_t i = 0; i < replay->prepared_count && status == MQX_OK; i++) {
        struct mqx_replay_prepared *prepared = &replay->prepared[i];
        if (prepared->unit.id != 0 && !prepared->unit.carried &&
            prepared->unit.first_lsn < replay->begin_lsn) {
            return mqx_fail(MQRC_OBJECT_DAMAGED,
                            "prepared unit %" PRIu64 " from LSN %" PRIu64 " began before the "
                            "checkpoint, %" PRIu64 ", and has no end", prepared->unit.id,
                            prepared->unit.first_lsn, replay->begin_lsn);
        }
        status = prepared->unit.id != 0 ? hold_messages(replay, prepared) : MQX_OK;
    }
    return status;
}

/* Asked for each message that is loaded; there are few held ones, and usually none. */
struct mqx_replay_held *mqx_replay_find_held(const struct mqx_replay *replay, uint64_t number)
{
    size_t at = 0;
    if (!mqx_number_map_find(&replay->held_by_number, number, &at)) {
        return NULL;
    }
    struct mqx_replay_held *held = &replay->held[replay->held_by_number.values[at]];
    MQX_ASSERT(replay->held_by_number.values[at] < replay->held_count);
    MQX_ASSERT(held->number == number);
    return held;
}
