"""Planted faults in compaction, in the set of segments, and in the limit of the journal.

Layers as in mutations.py.
"""

from __future__ import annotations

from mutations_units import Mutation, mutation

COMPACTION: tuple[Mutation, ...] = (
    mutation(
        "an entry is moved before the record there is durable",
        "c/compaction",
        "recovery/compaction.c",
        "    int status = mqx_flush_to(c->store, c->end_lsn);\n",
        "    int status = MQX_OK;\n",
    ),
    mutation(
        "a piece that is written anew names its old predecessor",
        "c/compaction",
        "recovery/compaction.c",
        "    piece.prev_lsn = c->chunked.last_lsn;\n",
        "",
    ),
    mutation(
        "a message that begins in a victim but ends behind it is not moved",
        "c/compaction",
        "recovery/compaction.c",
        "!is_in_victim(c, first_lsn, stored->lsn)",
        "!is_in_victim(c, stored->lsn, stored->lsn)",
    ),
    mutation(
        "an entry that is used for another message by now is moved",
        "c/stored",
        "queue/stored.c",
        "message->number == stored->number &&",
        "message->number != 0 &&",
    ),
    mutation(
        "an entry is moved although it has another place by now",
        "c/stored",
        "queue/stored.c",
        "           is_stored(message) && message->lsn == stored->lsn;",
        "           is_stored(message);",
    ),
    mutation(
        "a segment between others is freed although a message lies in it",
        "c/segment_retire",
        "journal/segment_retire.c",
        "segment->number < begin_segment && live[i] == 0 &&",
        "segment->number < begin_segment &&",
    ),
    mutation(
        "the segment in which a restart begins is freed",
        "c/segment_retire",
        "journal/segment_retire.c",
        "segment->number < begin_segment && live[i] == 0 &&",
        "segment->number <= begin_segment && live[i] == 0 &&",
    ),
    mutation(
        "a message in pieces keeps only the segment of its PUT",
        "c/checkpoint",
        "recovery/segment_use.c",
        "    while (located->base_lsn > first_lsn && located > use->segments) {",
        "    while (located->base_lsn > UINT64_MAX - 1 && located > use->segments) {",
    ),
    mutation(
        "a checkpoint does not list the older segments that it needs",
        "c/compaction",
        "recovery/checkpoint.c",
        "        status = write_segments(ckpt);\n",
        "        status = ckpt->use.count == 0 ? write_segments(ckpt) : MQX_OK;\n",
    ),
    mutation(
        "a listed segment that is missing goes unnoticed",
        "c/compaction",
        "recovery/restart_read.c",
        "i < restart->listed_count && listed_left > 0; i++) {",
        "i < restart->listed_count && listed_left > SIZE_MAX - 1; i++) {",
    ),
    mutation(
        "the rehearsal takes a message that was moved for a lost one",
        "c/compaction",
        "recovery/rehearsal.c",
        "           (new->lsn == merge->unmoved_lsn && "
        "new->first_lsn == merge->unmoved_first_lsn) ||\n",
        "",
    ),
    mutation(
        "messages may take the whole of the journal",
        "c/put",
        "journal/put_bound.c",
        "    if (*out_live > limit) {\n",
        "    if (*out_live > UINT64_MAX - 1) {\n",
    ),
    mutation(
        "gets make files beyond the limit",
        "c/put",
        "journal/group_commit.c",
        "    if (store->free_journal == NULL || !mqx_journal_is_out_of_files(store) ||",
        "    if (store->free_journal != NULL || !mqx_journal_is_out_of_files(store) ||",
    ),
    mutation(
        "what frees the journal in the middle of a call overwrites its record",
        "c/put",
        "journal/group_commit.c",
        "    unsigned char *record = mqx_scratch_put_away(); /* the caller's */\n",
        "    unsigned char *record = NULL;\n",
    ),
    mutation(
        "nothing is moved although the journal is full",
        "c/put",
        "recovery/compaction.c",
        "<= goal || counted == journal->compacted) {\n",
        "<= goal || counted >= journal->compacted) {\n",
    ),
)
