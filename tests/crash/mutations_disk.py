"""Mutations of the way out of a full disk: the reserves, and who may take them."""

from __future__ import annotations

from mutations_units import mutation

DISK = (
    mutation(
        "on a full disk no checkpoint is written over the reserve",
        "c/checkpoint_reserve",
        "recovery/checkpoint.c",
        "    if (!mqx_checkpoint_reserve_ready(store)) {\n",
        "    if (mqx_checkpoint_reserve_ready(store) || text[0] == 0) {\n",
    ),
    mutation(
        "a checkpoint over the reserve is not cut to its length",
        "c/checkpoint_reserve",
        "recovery/checkpoint_file.c",
        "    int err = writer->reserved ? io->ops->truncate(io, writer->fd, writer->at) : 0;\n",
        "    int err = 0;\n",
    ),
    mutation(
        "a checkpoint that fails removes the reserve",
        "c/checkpoint_reserve",
        "recovery/checkpoint_file.c",
        "        if (!writer->reserved) {\n",
        "        if (writer->begin_lsn != 0) {\n",
    ),
    mutation(
        "the reserve is allocated and not written",
        "c/checkpoint_reserve",
        "recovery/checkpoint_reserve.c",
        "        err = mqx_write_zeroes(io, fd, size / MQX_PAGE_SIZE * MQX_PAGE_SIZE, wanted);\n",
        "        err = io->ops->allocate(io, fd, 0, wanted);\n",
    ),
    mutation(
        "the reserve is too short for the checkpoints after the next one",
        "c/checkpoint_reserve",
        "journal/put_bound.c",
        "mqx_round_up(now + now / 3 + later, MQX_PAGE_SIZE)",
        "mqx_round_up(now + now / 3 + later / UINT64_MAX, MQX_PAGE_SIZE)",
    ),
    mutation(
        "a reserve that was wanted lately is cut off at once",
        "c/checkpoint_reserve",
        "recovery/checkpoint_reserve.c",
        "const bool is_long = has > SHORTEN_ABOVE && has / 8 > lately;",
        "const bool is_long = has > SHORTEN_ABOVE && has / 8 > (lately & 0);",
    ),
    mutation(
        "a checkpoint of a drained queue manager says what others take",
        "c/put_bound",
        "journal/put_bound.c",
        "if (messages >= LISTED_KNOWN && size > others) {",
        "if (messages != UINT64_MAX && size > others) {",
    ),
    mutation(
        "a checkpoint that is needed no more does not become the reserve",
        "c/checkpoint_reserve",
        "recovery/checkpoint.c",
        "        if (!ckpt->reserved || !mqx_checkpoint_reserve_from(store, name)) {\n",
        "        if (!ckpt->reserved || name[0] != 0) {\n",
    ),
    mutation(
        "no reserved segment is taken on a full disk",
        "c/segment_reserve",
        "journal/segment_pool.c",
        "        if (status == MQRC_STORAGE_MEDIUM_FULL && reserved >= 0) {\n",
        "        if (status == MQRC_STORAGE_MEDIUM_FULL && reserved < -1) {\n",
    ),
    mutation(
        "puts go on when a reserved segment is in use",
        "c/segment_reserve",
        "journal/put_bound.c",
        "    if (mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_MISSING || covered == 0) {\n",
        "    if (covered == UINT64_MAX) {\n",
    ),
    mutation(
        "reserved segments count as room for puts",
        "c/segment_reserve",
        "journal/ring.c",
        "sum += journal->segment[i].state == MQX_SEG_SPARE ? journal->segment[i].size : 0;",
        "sum += journal->segment[i].state == MQX_SEG_SPARE ||\n"
        "                           journal->segment[i].state == MQX_SEG_RESERVED\n"
        "                       ? journal->segment[i].size : 0;",
    ),
    mutation(
        "no retired segment becomes reserved on a full disk",
        "c/segment_reserve",
        "journal/segment_retire.c",
        "    return reserve ? MQX_SEG_RESERVED : MQX_SEG_SPARE;\n",
        "    return MQX_SEG_SPARE;\n",
    ),
    mutation(
        "a restart does not find the reserved segments",
        "c/segment_reserve",
        "recovery/restart.c",
        "    register_spares(restart, &listing->reserved, MQX_FILE_RESERVED, &index);\n",
        "",
    ),
    mutation(
        "a reserved segment is not found by the name of a spare",
        "c/segment_reserve",
        "journal/segment_pool.c",
        "    mqx_file_name(from, MQX_FILE_SPARE, spare_number);\n"
        "    mqx_file_name(to, MQX_FILE_SEGMENT",
        "    mqx_file_name(from, MQX_FILE_RESERVED, spare_number);\n"
        "    mqx_file_name(to, MQX_FILE_SEGMENT",
    ),
    mutation(
        "a restart frees nothing of what kills have used up",
        "c/manager",
        "process/maintenance.c",
        "    if (!is_short_of_reserved(store)) {\n",
        "    if (is_short_of_reserved(store) || true) {\n",
    ),
)
