"""Planted faults in what a restart needs twice: HEAD's pages and the two checkpoints.

Layers as in mutations.py.
"""

from __future__ import annotations

from mutations_units import mutation

FILES = (
    mutation(
        "a roll does not name the new segment in HEAD",
        "c/head_file",
        "journal/segment_pool.c",
        "    if (err == 0) {\n        err = name_newest(store, header, &failure);",
        "    if (err > 0) {\n        err = name_newest(store, header, &failure);",
    ),
    mutation(
        "HEAD names a segment before that has its name",
        "t3",
        "journal/segment_pool.c",
        "    int err = mqx_segment_begin(store->io, store->journal_dir, store->qm_id, spare, "
        "header,\n"
        "                                &failure);\n"
        "    if (err == 0) {\n        err = name_newest(store, header, &failure);\n    }\n",
        "    int err = name_newest(store, header, &failure);\n"
        "    if (err == 0) {\n"
        "        err = mqx_segment_begin(store->io, store->journal_dir, store->qm_id, spare, "
        "header,\n"
        "                                &failure);\n    }\n",
    ),
    mutation(
        "HEAD is written without data sync",
        "c/head_file",
        "journal/head_file.c",
        "newest.sequence + 1, MQX_IO_DSYNC);",
        "newest.sequence + 1, 0);",
    ),
    mutation(
        "HEAD's newest page is written over",
        "t3",
        "journal/head_file.c",
        "newest.sequence + 1, MQX_IO_DSYNC);",
        "newest.sequence + 2, MQX_IO_DSYNC);",
    ),
    mutation(
        "a start believes a page of HEAD without its checksum",
        "c/head_file",
        "journal/head_file.c",
        "page->crc != mqx_crc32c(0, page, offsetof(struct psh_page, crc))",
        "page->crc + UINT64_C(0) > UINT32_MAX",
    ),
    mutation(
        "an older file in the place of the newest segment passes",
        "c/head_file",
        "recovery/restart_read.c",
        "newest->generation >= out->generation)",
        "newest->generation >= 1)",
    ),
    mutation(
        "a start does not ask HEAD for the newest segment",
        "c/head_file",
        "recovery/restart.c",
        "status = mqx_restart_check_head(restart, &head);",
        "head.segment_no = 1;",
    ),
    mutation(
        "only the newest checkpoint is kept",
        "t3",
        "recovery/checkpoint.c",
        "        begin_lsn != ckpt->older.begin_lsn) {",
        "        begin_lsn != 1) {",
    ),
    mutation(
        "segments that the older checkpoint needs are retired",
        "c/checkpoint",
        "recovery/checkpoint.c",
        "+= mqx_older_checkpoint_needs(&ckpt->older, located->number);",
        "+= 0 * mqx_older_checkpoint_needs(&ckpt->older, located->number);",
    ),
    mutation(
        "a damaged checkpoint is not passed over",
        "t12",
        "recovery/restart_read.c",
        "if (status != MQRC_OBJECT_DAMAGED) {\n            out->found = status == MQX_OK;",
        "if (status != 1) {\n            out->found = status == MQX_OK;",
    ),
    mutation(
        "padding of a checkpoint's block is not verified before the file is chosen",
        "t12",
        "recovery/checkpoint_file.c",
        "    while (status == MQX_OK && block.type != PSC_END) { /* bounded by the file's size */\n"
        "        status = read_block(&reader, &block, &payload);",
        "    while (status == MQX_OK && block.type != PSC_END) {\n"
        "        status = mqx_checkpoint_file_peek(&reader, &block);",
    ),
    mutation(
        "the image of a damaged checkpoint is not marked as consumed",
        "c/checkpoint",
        "recovery/restart.c",
        "for (size_t i = 0; i < choice->passed_over && status == MQX_OK; i++) {",
        "for (size_t i = 0; i + 1 < choice->passed_over && status == MQX_OK; i++) {",
    ),
    mutation(
        "two checkpoints that one unit bounds have one name",
        "c/unit_records",
        "recovery/checkpoint_begin.c",
        "    return newest < before ? before : first_lsn;",
        "    return newest == 1 ? before : first_lsn;",
    ),
    mutation(
        "a round leaves what only the older checkpoint keeps, however much that is",
        "c/turnover",
        "recovery/checkpoint_round.c",
        "status == MQX_OK && is_above_goal(store) ?",
        "status != MQX_OK && is_above_goal(store) ?",
    ),
    mutation(
        "a damaged checkpoint waits for the usual time to be replaced",
        "c/checkpoint",
        "recovery/checkpoint_round.c",
        "mqx_load_relaxed(&journal->checkpoint_damaged) != 0;",
        "mqx_load_relaxed(&journal->checkpoint_damaged) == 1;",
    ),
    mutation(
        "what a killed checkpointer left stays",
        "c/checkpoint",
        "recovery/checkpoint.c",
        'if (length > 4 && strcmp(name + length - 4, ".tmp") == 0) {',
        'if (length > 4 && strcmp(name + length - 4, ".TMP") == 0) {',
    ),
    mutation(
        "each put that a full journal refuses writes a page into the reserve",
        "c/checkpoint_round",
        "recovery/checkpoint_round.c",
        "           mqx_load_relaxed(&journal->older_keeps) != 0;",
        "           mqx_load_relaxed(&journal->older_keeps) != 2;",
    ),
)
