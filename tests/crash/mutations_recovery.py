"""Planted faults in checkpoints and restarts: units that a checkpoint carries, messages that units
have put and that move, the sweep of a replay, the columns of a checkpoint. Layers: mutations.py.
"""

from __future__ import annotations

from mutations_units import mutation

CARRIED = (
    mutation(
        "units are listed as they are at the end of the checkpoint, not at its begin",
        "c/checkpoint",
        "recovery/restart_read.c",
        "restart->list_lsn != 0 && lsn >= restart->list_lsn ?",
        "restart->list_lsn == 1 && lsn >= restart->list_lsn ?",
    ),
    mutation(
        "a carried unit forgets how many records it had",
        "c/checkpoint",
        "recovery/units_in_flight.c",
        "                                       .record_count = line->record_count,\n",
        "                                       .record_count = 0,\n",
    ),
    mutation(
        "a carried unit forgets the checksum of its records",
        "c/checkpoint",
        "recovery/units_in_flight.c",
        "                                       .running_crc = line->running_crc,\n",
        "                                       .running_crc = 0,\n",
    ),
    mutation(
        "a body that a carried unit has put keeps no segment",
        "c/segment_use",
        "recovery/segment_use.c",
        "    for (size_t i = 0; i < units->put_count; i++) {",
        "    for (size_t i = 0; i + 1 < units->put_count; i++) {",
    ),
    mutation(
        "pieces of which the PUT is still to come keep no segment",
        "c/checkpoint",
        "recovery/segment_use.c",
        "        if (units->units[i].pieces_lsn != 0) {",
        "        if (units->units[i].pieces_lsn == 1) {",
    ),
    mutation(
        "of pieces only the last one keeps its segment",
        "c/checkpoint",
        "recovery/replay_units.c",
        "        unit->pieces_lsn = unit->pieces_lsn == 0 ? op->lsn : unit->pieces_lsn;",
        "        unit->pieces_lsn = op->lsn;",
    ),
    mutation(
        "a unit that is not carried passes for one that was over",
        "c/units_in_flight",
        "recovery/replay_units.c",
        "    return replay->units_listed || unit->carried || first_lsn >= replay->begin_lsn;",
        "    return unit->carried || first_lsn >= replay->begin_lsn;",
    ),
    mutation(
        "a get that a carried unit has made is lost",
        "c/checkpoint",
        "recovery/units_in_flight.c",
        "    return status == MQX_OK ? mqx_replay_add_op(replay, unit, &op) : status;",
        "    return status == MQX_OK && m != NULL ? mqx_replay_add_op(replay, unit, &op) : status;",
    ),
)

MOVED = (
    mutation(
        "what an open unit has put does not move",
        "c/unit_turnover",
        "queue/stored.c",
        "            message->state == MQX_MSG_LOCKED || message->state == MQX_MSG_PUT);",
        "            message->state == MQX_MSG_LOCKED);",
    ),
    mutation(
        "a checkpoint lists what a unit has put where it was put, not where it was moved",
        "c/unit_turnover",
        "recovery/units_in_flight.c",
        "op->type == PS_REC_PUT ? mqx_replay_locate(replay, line) : MQX_OK;",
        "MQX_OK;",
    ),
    mutation(
        "a move of a unit's message that a dead process has not noted is not completed",
        "c/unit_turnover",
        "recovery/checkpoint.c",
        "if (put->lsn != operation->lsn) {",
        "if (put->lsn == 1) {",
    ),
    mutation(
        "of two places of a message that is listed and carried the earlier one holds",
        "c/unit_turnover",
        "recovery/merge.c",
        "if (merge->also != NULL && merge->also->lsn > out->lsn) {",
        "if (merge->also != NULL && merge->also->lsn == 1) {",
    ),
    mutation(
        "a MOVED of a unit that is not decided looks like one that was committed",
        "c/short_codec",
        "format/short_codec.c",
        "    moved.unit = (flags & PS_FLAG_UNDECIDED) != 0 ? moved.unit : 0;\n",
        "    moved.unit = 0;\n",
    ),
    mutation(
        "a message moves back to where it lay before",
        "c/stored",
        "queue/stored.c",
        "is_stored(message) && message->lsn < lsn) {",
        "is_stored(message)) {",
    ),
)

SWEEP = "recovery/replay_sweep.c"
SWEPT = (
    mutation(
        "a sweep frees puts of units that are not decided",
        "t3",
        SWEEP,
        "    return put->state == MQX_PUT_DROPPED || (",
        "    return put->state != MQX_PUT_EFFECTIVE || (",
    ),
    mutation(
        "a sweep frees what is on a queue",
        "t3",
        SWEEP,
        "                                             !mqx_replay_is_present(replay, &put->m));",
        "                                             put->m.number != 0);",
    ),
    mutation(
        "a sweep forgets which messages are gone",
        "t3",
        SWEEP,
        "    const size_t wanted = at_next(replay->put_count - freed);",
        "    const size_t wanted = at_next(replay->put_count - freed);\n"
        "    mqx_number_set_free(&replay->removed);",
    ),
    mutation(
        "a sweep frees messages of the image",
        "c/replay_sweep",
        SWEEP,
        "    if (put->image != 0) {",
        "    if (put->image == UINT32_MAX) {",
    ),
    mutation(
        "two puts get one free entry",
        "c/replay_sweep",
        "recovery/replay_messages.c",
        "        replay->free_put = replay->puts[*out].m.object;\n",
        "        replay->free_put = replay->puts[*out].m.object != 0 ? *out + 1 : 0;\n",
    ),
    mutation(
        "a sweep of backout counts drops those of messages that are there",
        "c/replay_sweep",
        SWEEP,
        ": !mqx_number_set_has(&replay->removed, map->numbers[at]);",
        ": mqx_number_set_has(&replay->removed, map->numbers[at]);",
    ),
    mutation(
        "a sweep of prepared units drops those that wait",
        "c/replay_sweep",
        SWEEP,
        "? map->values[at] != 0\n",
        "? map->values[at] == 0\n",
    ),
    mutation(
        "a sweep of moves cuts off the earlier ones of a message",
        "c/replay_sweep",
        SWEEP,
        "            move.before = is_new ? 0 : last.values[at] + 1;",
        "            move.before = 0;",
    ),
    mutation(
        "the table of puts is never gone through",
        "c/replay_sweep",
        SWEEP,
        "        sweep_puts(replay);\n    }",
        "        replay->sweep_at.puts = SIZE_MAX;\n    }",
    ),
    mutation(
        "images of a prepared unit that has its outcome keep their entries",
        "c/replay_sweep",
        "recovery/replay_messages.c",
        "    case PS_REC_TAKEN: replay->puts[op->put].state = MQX_PUT_DROPPED; return MQX_OK;",
        "    case PS_REC_TAKEN: return MQX_OK;",
    ),
    mutation(
        "a set of numbers loses those it had when it grows",
        "c/number_set",
        "base/number_set.c",
        "            *probe(&larger, set->groups[i].first) = set->groups[i];",
        "            probe(&larger, set->groups[i].first)->first = set->groups[i].first;",
    ),
)

COLUMNS = "format/message_columns.c"
COLUMNED = (
    mutation(
        "a column's width is chosen for its values, not for their distance from the base",
        "c/message_columns",
        COLUMNS,
        "header->width[i] = width_of(most - least);",
        "header->width[i] = width_of(most);",
    ),
    mutation(
        "a column of messages with pieces says nothing of the first one",
        "t3",
        COLUMNS,
        "        out[k].first_lsn = out[k].lsn - out[k].first_lsn;",
        "        out[k].first_lsn = out[k].lsn;",
    ),
    mutation(
        "the second step of a block begins with its first values again",
        "c/message_columns",
        COLUMNS,
        "    columns->at[i] += (size_t)count * width;",
        "    columns->at[i] += 0;",
    ),
    mutation(
        "a value that exceeds its field is believed",
        "c/message_columns",
        COLUMNS,
        "    return most <= room;",
        "    return most <= room || true;",
    ),
    mutation(
        "columns may end before their block does",
        "c/message_columns",
        COLUMNS,
        "    return sound && at == length && (",
        "    return sound && at <= length && (",
    ),
    mutation(
        "a count that no bytes bound is believed",
        "c/message_columns",
        COLUMNS,
        "(count == 1 || columns->header.width[NUMBER] != 0)",
        "(count != 0 || columns->header.width[NUMBER] != 0)",
    ),
    mutation(
        "behind the first messages of a block the stream goes on with the next block",
        "c/checkpoint",
        "recovery/merge.c",
        "    if (merge->columns.left == 0) {\n        status = next_block(merge);",
        "    if (merge->columns.left == 0 || merge->decoded_count != 0) {\n"
        "        merge->columns.left = 0;\n        status = next_block(merge);",
    ),
)

RECOVERY = (*CARRIED, *MOVED, *SWEPT, *COLUMNED)
