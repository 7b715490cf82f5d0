"""Planted faults in prepared units of work, batches, memory, the journal scan and the archive.

Layers as in mutations.py; "c/MODULE" is the C test of that module, "t2/SCENARIO" one scenario of
the store points.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A mutation: its effect, the layer that must notice, and (file, old text, new text)."""

    what: str
    layer: str
    changes: tuple[tuple[str, str, str], ...]


def mutation(what: str, layer: str, file: str, old: str, new: str) -> Mutation:
    """A mutation of one file."""
    return Mutation(what, layer, ((file, old, new),))


BATCHES = (
    mutation(
        "of a group of a batch that is put the first record is left out",
        "c/put_batch",
        "api/put_batch.c",
        "    uint32_t k = 0;\n    int status = MQX_OK;\n    while (k < group->count",
        "    uint32_t k = 1;\n    int status = MQX_OK;\n    while (k < group->count",
    ),
    mutation(
        "a group takes one message more than there is room for in its list",
        "c/put_batch",
        "api/put_batch.c",
        "if (group->count == MQX_LOCKED_STEPS_MAX ||",
        "if (group->count > MQX_LOCKED_STEPS_MAX ||",
    ),
    mutation(
        "the newest message of a group whose records found no room stays in the unit",
        "c/put_batch",
        "api/put_batch.c",
        "for (uint32_t k = group->count; k > from && status == MQX_OK; k--) {",
        "for (uint32_t k = group->count - 1; k > from && status == MQX_OK; k--) {",
    ),
    mutation(
        "a batch outside a unit that failed half way is not taken back",
        "c/put_batch",
        "api/unit_handle.c",
        "    if (status != MQX_OK && mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE) {",
        "    if (status != MQX_OK && mqx_load_acquire(&unit->state) == 77) {",
    ),
    mutation(
        "a batch is let onto a queue that has room for one message less",
        "c/put_batch",
        "api/put_batch.c",
        "if (many->total > most - queue->present) {",
        "if (many->total > most - queue->present + 1) {",
    ),
    mutation(
        "only the first message of a batch is looked at before it is put",
        "c/put_batch",
        "api/put_batch.c",
        "    for (uint32_t i = 0; i < many->total; i++) {\n"
        "        const int status = check_item(many, i);\n        if (status != MQX_OK) {",
        "    for (uint32_t i = 0; i < many->total; i++) {\n"
        "        const int status = check_item(many, i);\n"
        "        if (status != MQX_OK && i == 0) {",
    ),
    mutation(
        "bodies of a batch are written beyond the room given",
        "c/get_batch",
        "api/message_rows.c",
        "if (message->length <= most && batch->bytes <= most - message->length) {",
        "if (message->length <= most) {",
    ),
    mutation(
        "offsets are wrong behind a long body",
        "c/get_batch",
        "api/message_rows.c",
        "    batch->bytes += length;\n",
        "    batch->bytes += length <= MQX_LOCKED_COPY_MAX ? length : length - 1;\n",
    ),
    mutation(
        "the first GET record of a group of a batch is left out",
        "c/get_batch",
        "api/get_batch.c",
        "many->logged[k] = (message->flags & MQX_MSGF_PERSISTENT) != 0;",
        "many->logged[k] = (message->flags & MQX_MSGF_PERSISTENT) != 0 && k != 0;",
    ),
    mutation(
        "what was claimed and could not be copied is not given back",
        "c/get_batch",
        "api/get_batch.c",
        "status = mqx_unit_undo(many->call.store, many->context, many->slot[many->claimed]);",
        "status = MQX_OK;",
    ),
    mutation(
        "a batch that is got passes over the message that made it look for a context",
        "c/get_batch",
        "api/get_batch.c",
        "            many->cursor = before; /* the message is visited again */\n",
        "            (void)before;\n",
    ),
    mutation(
        "a batch passes over a message when the one that its handle has locked comes first",
        "c/get_batch",
        "api/get_batch.c",
        "            many->cursor = before; /* that one comes later */\n",
        "            (void)before;\n",
    ),
    mutation(
        "a batch in a unit of work knows no MAXUMSGS",
        "c/get_batch",
        "api/get_batch.c",
        "many->most = left < many->most ? left : many->most;",
        "many->most = left < many->most ? many->most : many->most;",
    ),
    mutation(
        "a batch whose commit failed is returned although it is on the queue again",
        "c/get_batch",
        "api/get_batch.c",
        "    batch->count = many->plain;\n",
        "    many->plain = batch->count;\n",
    ),
    mutation(
        "the undo entry of a claim of a batch is missing",
        "t2/get_batch",
        "queue/queue.c",
        "        mqx_guard_store32(guard, &queue->got, queue->got + 1);\n        mqx_unit_push",
        "        queue->got += 1;\n        mqx_unit_push",
    ),
    mutation(
        "the cursor of a browse of many moves behind a message that did not fit",
        "c/browse_batch",
        "api/browse_batch.c",
        "queue->cursor = b->done;",
        "queue->cursor = call->cursor;",
    ),
    mutation(
        "a browse of many keeps long messages pinned",
        "c/browse_batch",
        "api/browse_batch.c",
        "const int released = mqx_pending_release(call->store, call->pool);",
        "const int released = MQX_OK;",
    ),
    mutation(
        "the newest number is that of the next message",
        "c/browse_batch",
        "api/browse_batch.c",
        "? guard.stripe->next_number - 1",
        "? guard.stripe->next_number",
    ),
    mutation(
        "the newest number after a restart is that of the next message",
        "c/browse_batch",
        "api/browse_batch.c",
        ": mqx_load_relaxed(&guard.region->journal->next_number) - 1;",
        ": mqx_load_relaxed(&guard.region->journal->next_number);",
    ),
    mutation(
        "a queue that is being deleted has a newest number",
        "c/browse_batch",
        "api/entry.c",
        "mqx_load_relaxed(&queue->state) == MQX_OBJ_DELETING) {",
        "mqx_load_relaxed(&queue->state) == 77) {",
    ),
    mutation(
        "the oldest message is looked for in the highest priority only",
        "c/status",
        "api/status.c",
        "    if (placement == 0) {\n        return false;",
        "    if (placement <= 9) {\n        return false;",
    ),
    mutation(
        "a message without a time hides those behind it",
        "c/status",
        "api/status.c",
        "if (status == MQX_OK && time != 0) {",
        "if (status == MQX_OK) {",
    ),
    mutation(
        "the oldest message is that of the lowest priority",
        "c/status",
        "api/status.c",
        "if (s->oldest == 0 || time < s->oldest) {",
        "if (s->oldest == 0 || time > 0) {",
    ),
)

PREPARED = (
    mutation(
        "a unit that was ended keeps its name",
        "c/prepared",
        "unit/prepared.c",
        "    status = mqx_xid_table_unlink(region, slot);\n    SET32",
        "    SET32",
    ),
    mutation(
        "a unit that could not be prepared keeps the name",
        "c/prepared",
        "unit/prepared.c",
        "const int unlisted = mqx_xid_table_remove(region, slot);",
        "const int unlisted = MQX_OK;",
    ),
    mutation(
        "of the names with one hash only the newest is found",
        "c/prepared",
        "unit/xid_table.c",
        "        slot = context->xid_next;\n",
        "        slot = 0;\n",
    ),
    mutation(
        "of the names with one hash the newest takes all others with it",
        "c/prepared",
        "unit/xid_table.c",
        "mqx_undo_store32(region->base, lock, at, context->xid_next);",
        "mqx_undo_store32(region->base, lock, at, 0);",
    ),
    mutation(
        "the undo entry of a name that is taken off is missing",
        "t2/commit_prepared",
        "unit/xid_table.c",
        "    mqx_undo_store32(region->base, lock, &context->xid_listed, 0);",
        "    context->xid_listed = 0;",
    ),
    mutation(
        "the undo entry of a name that is listed is missing",
        "t2/prepare",
        "unit/xid_table.c",
        "    mqx_undo_store32(region->base, lock, bucket, slot);",
        "    *bucket = slot;",
    ),
    mutation(
        "the name is listed after the record that detaches the unit from its process",
        "t2/prepare",
        "unit/prepared.c",
        "    int status = list_xid(region, slot, xid, facts);\n    if (status != MQX_OK) {\n"
        "        return status;\n    }\n"
        "    status = append_prepare(store, slot, xid, facts, out_lsn);",
        "    int status = append_prepare(store, slot, xid, facts, out_lsn);\n"
        "    if (status != MQX_OK) {\n        return status;\n    }\n"
        "    status = list_xid(region, slot, xid, facts);",
    ),
    mutation(
        "no images of non-persistent messages are written",
        "c/prepared",
        "api/prepare.c",
        "return lost ? MQX_OK : append_image(writer, message);",
        "return lost || message != NULL ? MQX_OK : append_image(writer, message);",
    ),
    mutation(
        "the record of a preparation goes before the images",
        "t3",
        "api/prepare.c",
        "    int status = write_images(&writer);\n    if (status == MQRC_STORAGE",
        "    int status = MQX_OK;\n    if (status == MQRC_STORAGE",
    ),
    mutation(
        "an image has the BackoutCount of the put",
        "c/prepared",
        "api/prepare.c",
        "    d.backout_count = message->backout_count;\n",
        "    d.backout_count = 0;\n",
    ),
    mutation(
        "non-persistent messages that a backout discards are not counted",
        "c/prepared",
        "unit/unit.c",
        "mqx_guard_store32(guard, &unit->discarded, unit->discarded + 1);",
        "mqx_guard_store32(guard, &unit->discarded, unit->discarded);",
    ),
    mutation(
        "messages that a restart has taken come back by a backout",
        "c/prepared",
        "unit/unit.c",
        "message->state == MQX_MSG_GOT && (message->flags & MQX_MSGF_TAKEN) == 0;",
        "message->state == MQX_MSG_GOT;",
    ),
    mutation(
        "units that were about to be ended with an unknown one stay about to be ended",
        "c/prepared_deaths",
        "api/prepare.c",
        "status != MQX_OK ? mqx_prepared_release(resolution->store, resolution->leader) : MQX_OK;",
        "MQX_OK;",
    ),
    mutation(
        "what a dead process had decided to commit is backed out",
        "c/prepared_deaths",
        "unit/prepared.c",
        "finish_member(store, member, leader->leads == MQX_LEADS_COMMIT, &discarded);",
        "finish_member(store, member, leader->leads == MQX_LEADS_BACKOUT, &discarded);",
    ),
    mutation(
        "of several units that a dead process had decided to end every second is left",
        "c/prepared_deaths",
        "unit/prepared.c",
        "member = next_of(region, slot, member + 1);",
        "member = next_of(region, slot, member + 2);",
    ),
    mutation(
        "units that are being resolved are still listed and read",
        "c/prepared_deaths",
        "unit/prepared.c",
        "return !is_decided(region, unit) && mqx_load_acquire",
        "return mqx_load_acquire",
    ),
    mutation(
        "a unit is listed before its flush",
        "c/prepared_deaths",
        "api/prepare.c",
        "return durable != 0 ? mqx_flush_to(store, durable) : MQX_OK;",
        "return durable == 1 ? mqx_flush_to(store, durable) : MQX_OK;",
    ),
    mutation(
        "the list of prepared units is returned before it is durable",
        "t3",
        "api/prepare.c",
        "return durable != 0 ? mqx_flush_to(store, durable) : MQX_OK;",
        "return durable == 1 ? mqx_flush_to(store, durable) : MQX_OK;",
    ),
    mutation(
        "a prepared unit is read before it is durable",
        "t3",
        "unit/prepared.c",
        "return open ? mqx_flush_to(store, lsn) : unknown(xid);",
        "return open ? (lsn == 1 ? mqx_flush_to(store, lsn) : MQX_OK) : unknown(xid);",
    ),
    mutation(
        "no unit that is prepared waits until it is durable",
        "t3",
        "api/prepare.c",
        "return (flags & MQE_PREPARE_LAZY) != 0 ? MQX_OK : mqx_flush_decided(store, lsn);",
        "return (flags & MQE_PREPARE_LAZY) != 8 ? MQX_OK : mqx_flush_decided(store, lsn);",
    ),
    mutation(
        "prepared units are ended without a flush",
        "t3",
        "unit/prepared.c",
        "status = mqx_flush_decided(resolution->store, leader->decided_lsn);",
        "status = leader->decided_lsn == 1 ? mqx_flush_decided(resolution->store, 1) : MQX_OK;",
    ),
    mutation(
        "the LSN from which on a prepared unit is durable is lost",
        "t2/commit_prepared_lazily",
        "journal/ring.c",
        "        SET64(&context->decided_lsn, append->end_lsn);\n"
        "        SET32(&context->process, 0);",
        "        SET32(&context->process, 0);",
    ),
    mutation(
        "a unit that no call waits for dies with its process",
        "t2/prepare_lazily",
        "journal/ring.c",
        "        SET32(&context->process, 0);\n        SET32(&context->state, MQX_CTX_PREPARED);",
        "        SET32(&context->state, MQX_CTX_PREPARED);",
    ),
    mutation(
        "a cursor of a prepared unit that outlives a restart is believed",
        "c/prepared",
        "api/prepared_browse.c",
        "message != NULL && mqx_load_relaxed(&message->unit) == b->unit &&\n"
        "           mqx_load_relaxed(&message->number) == cursor->next_number;",
        "message != NULL;",
    ),
    mutation(
        "a browse of a prepared unit passes over the message that did not fit",
        "c/prepared",
        "api/prepared_browse.c",
        "    cursor->index += batch->count;\n",
        "    cursor->index += batch->count + (uint64_t)b->full;\n",
    ),
    mutation(
        "the list gives the newest unit first",
        "c/prepared",
        "api/prepare.c",
        "? (first->prepared_us < second->prepared_us ? -1 : 1)",
        "? (first->prepared_us < second->prepared_us ? 1 : -1)",
    ),
)

SCAN_AND_ARCHIVE = (
    mutation(
        "a batch is read beyond the end of the segment",
        "c/journal_scan",
        "journal/journal_scan.c",
        "return mqx_round_up(out->length, MQX_PAGE_SIZE) <= limit - offset ? NULL\n"
        "                                                                      "
        ': "the batch does not fit";',
        "return NULL;",
    ),
    mutation(
        "a record is read beyond the end of its batch",
        "c/journal_scan",
        "journal/journal_scan.c",
        "length <= MQX_RING_RECORD_MAX && length <= room;",
        "length <= MQX_RING_RECORD_MAX && room > 0;",
    ),
    mutation(
        "the scan believes a record whose checksum is wrong",
        "c/journal_scan",
        "journal/journal_scan.c",
        "    *bad_offset = bad_record;\n"
        '    return bad_record == 0 ? NULL : "the record\'s CRC is wrong";',
        "    return NULL;",
    ),
    mutation(
        "of a record that decides several units the rest is lost when the rows are full",
        "c/journal_scan",
        "journal/journal_scan.c",
        "    if (scan->units_given >= count) {\n        scan->units_given = 0;\n    }",
        "    scan->units_given = 0;",
    ),
    mutation(
        "after damage the scan goes on one page too far",
        "c/journal_scan",
        "journal/journal_scan.c",
        "    do {\n        scan->at += MQX_PAGE_SIZE;",
        "    scan->at += MQX_PAGE_SIZE;\n    do {\n        scan->at += MQX_PAGE_SIZE;",
    ),
    mutation(
        "the scan reads a batch that ends beyond the durable end of the open segment",
        "c/journal_scan",
        "journal/journal_scan.c",
        "const char *wrong = take_header(scan, scan->at, scan->limit, &batch);",
        "const char *wrong = take_header(scan, scan->at, scan->length, &batch);",
    ),
    mutation(
        "the scan's last record before an LSN is left out",
        "c/journal_scan",
        "journal/journal_scan.c",
        "lsn + batch->length > scan->start_lsn && lsn < scan->end_lsn;",
        "lsn + batch->length > scan->start_lsn && lsn + batch->length <= scan->end_lsn;",
    ),
    mutation(
        "an archived name is not flushed",
        "c/segment_retire",
        "journal/segment_retire.c",
        "    err = io->ops->sync_dir(io, store->archive_dir);\n",
        "    err = 0;\n",
    ),
    mutation(
        "a retired segment is free at once, whatever becomes of the rest of its retirement",
        "t2/retire_to_spares",
        "journal/segment_retire.c",
        "        SET32(&segment->state, new_state);\n        SET64(&segment->number, number);",
        "        segment->state = new_state;\n        SET64(&segment->number, number);",
    ),
    mutation(
        "a segment that was archived before a death stays in the table",
        "t2/retire_to_archive",
        "journal/segment_retire.c",
        "    if (err != 0 && err != -ENOENT) {\n"
        '        return mqx_io_reason(err, "moving a segment to the archive");',
        "    if (err != 0) {\n"
        '        return mqx_io_reason(err, "moving a segment to the archive");',
    ),
    mutation(
        "retired segments with linear logging are removed",
        "t3",
        "journal/segment_retire.c",
        "err = store->io->ops->move(store->io, store->journal_dir, from, store->archive_dir, to);",
        "err = store->io->ops->unlink(store->io, store->journal_dir, from);",
    ),
    mutation(
        "a segment whose name in the archive is taken is not archived",
        "c/segment_retire",
        "journal/segment_retire.c",
        "copy < MQX_ARCHIVE_COPIES && err == -EEXIST; copy++",
        "copy < 1 && err == -EEXIST; copy++",
    ),
    mutation(
        "a new segment has no timeline",
        "c/segment_pool",
        "journal/segment_pool.c",
        "        .timeline = journal->timeline,\n",
        "",
    ),
    mutation(
        "a segment that a backup has pinned is retired",
        "c/segment_pin",
        "journal/segment_retire.c",
        " && !mqx_pin_holds(journal, segment->number) &&\n",
        " &&\n",
    ),
    mutation(
        "a backup keeps the journal until it is full",
        "c/segment_pin",
        "journal/segment_retire.c",
        "    mqx_pin_break_if_full(region);\n",
        "",
    ),
    mutation(
        "a process ends the backup of another one",
        "c/segment_pin",
        "journal/segment_pin.c",
        "if (mqx_load_relaxed(&journal->pin.owner) != process + 1) {",
        "if (process == MQX_PROCESS_MAX) {",
    ),
    mutation(
        "a segment that was moved before a death is an error for ever",
        "c/segment_retire",
        "journal/segment_retire.c",
        "    if (err != 0 && err != -ENOENT) {\n"
        '        return mqx_io_reason(err, "moving a segment to the archive");',
        "    if (err != 0) {\n"
        '        return mqx_io_reason(err, "moving a segment to the archive");',
    ),
    mutation(
        "with linear logging a retired segment becomes a spare",
        "c/segment_retire",
        "journal/segment_retire.c",
        "status = store->plan.linear != 0 ? archive_one",
        "status = store->plan.linear != 0 && !keep ? archive_one",
    ),
    mutation(
        "the store goes on when the archive cannot be flushed",
        "c/segment_retire",
        "journal/segment_retire.c",
        ': mqx_journal_write_failed(store, err, "flushing the journal\'s directories");',
        ': mqx_io_reason(err, "flushing the journal\'s directories");',
    ),
)

MEMORY = (
    mutation(
        "an extent is punched while a reader may look at its entries",
        "c/extents",
        "region/extents.c",
        "    if (status == MQX_OK && pass_grace(region)) {",
        "    if (status == MQX_OK) {",
    ),
    mutation(
        "an extent without memory is used before it is allocated again",
        "c/extents",
        "region/extents.c",
        "        status = mqx_region_back(region, area_kind(no), (uint64_t)(number - 1) * "
        "MQX_EXTENT_BYTES,\n"
        "                                 MQX_EXTENT_BYTES);\n",
        "        status = MQX_OK;\n",
    ),
    mutation(
        "what a hold leaves over stays in its stripe",
        "c/arena",
        "region/arena.c",
        "    if (MQX_UNLIKELY(guard->surplus != 0)) {",
        "    if (MQX_UNLIKELY(guard->surplus == 1)) {",
    ),
    mutation(
        "calls take the last memory from themselves for ever",
        "c/arena",
        "region/arena.c",
        "    *reliefs += 1;\n",
        "    *reliefs += 0;\n",
    ),
    mutation(
        "an outgoing parcel that is half sent names what it has sent",
        "t2/return_memory",
        "region/arena.c",
        "    arena_store32(region, &parcel->head, item);\n"
        "    arena_store32(region, &parcel->count, left);\n",
        "    parcel->head = item;\n    parcel->count = left;\n",
    ),
    mutation(
        "an extent leaves the list of its class without an undo entry",
        "t2/return_memory",
        "region/extents.c",
        "    store32(region, prev != NULL ? &prev->next : "
        "&region->header->partial[extent->class_no],\n            extent->next);",
        "    *(prev != NULL ? &prev->next : &region->header->partial[extent->class_no]) =\n"
        "            extent->next;",
    ),
    mutation(
        "the undo entries of a block that is given back count only after its stores",
        "t2/get_nonpersistent",
        "region/arena.c",
        "    mqx_undo_count(lock, lock->undo_count + STORES);\n"
        "    mqx_store_relaxed(link, new_link);\n"
        "    mqx_store_relaxed(list, head);\n",
        "    mqx_store_relaxed(link, new_link);\n"
        "    mqx_store_relaxed(list, head);\n"
        "    mqx_undo_count(lock, lock->undo_count + STORES);\n",
    ),
    mutation(
        "the undo entries of an entry that is taken count only after its stores",
        "t2/put_nonpersistent",
        "region/arena.c",
        "    mqx_undo_count(lock, lock->undo_count + STORES);\n"
        "    mqx_store_relaxed(&message->state, state);\n"
        "    mqx_store_relaxed(&message->unit_next, link);\n"
        "    mqx_store_relaxed(list, head);\n",
        "    mqx_store_relaxed(&message->state, state);\n"
        "    mqx_store_relaxed(&message->unit_next, link);\n"
        "    mqx_store_relaxed(list, head);\n"
        "    mqx_undo_count(lock, lock->undo_count + STORES);\n",
    ),
    mutation(
        "the undo entries of the leaf of a short level count only after its stores",
        "t2/put_nonpersistent",
        "queue/priority_index.c",
        "    mqx_undo_count(lock, n + count);\n"
        "    mqx_store_relaxed(&words[0], present);\n"
        "    mqx_store_relaxed(&words[1], available);\n",
        "    mqx_store_relaxed(&words[0], present);\n"
        "    mqx_store_relaxed(&words[1], available);\n"
        "    mqx_undo_count(lock, n + count);\n",
    ),
    mutation(
        "memory that is used all the time is punched",
        "c/reclaim",
        "region/reclaim.c",
        "    return low < now ? low : now;",
        "    return low < now ? now : now;",
    ),
)

MEANWHILE = (
    mutation(
        "rows are returned of a prepared unit that ended while the last one was copied",
        "c/deleted_while_used",
        "api/prepared_browse.c",
        "    return is_open(b) || mqx_region_stopped",
        "    return b->unit != 0 || mqx_region_stopped",
    ),
    mutation(
        "rows are returned of the unit that has the slot of the one that ended",
        "c/deleted_while_used",
        "api/prepared_browse.c",
        "mqx_prepared_is_open(&b->store->region, unit) &&\n"
        "           mqx_load_relaxed(&unit->unit_id) == b->unit_id;",
        "mqx_prepared_is_open(&b->store->region, unit);",
    ),
    mutation(
        "a message of a prepared unit stays pinned when its unit has ended",
        "c/deleted_while_used",
        "api/prepared_browse.c",
        "const int released = mqx_pending_release(b->store, b->pool);",
        "const int released = is_open(b) ? mqx_pending_release(b->store, b->pool) : MQX_OK;",
    ),
    mutation(
        "a browse shows a message that was taken while it was copied",
        "c/deleted_while_used",
        "api/get_attempt.c",
        "    return gone ? MQX_STEP_AGAIN : MQX_STEP_DONE;",
        "    return gone ? MQX_STEP_DONE : MQX_STEP_DONE;",
    ),
    mutation(
        "a browse of many shows a message that was taken while it was copied",
        "c/deleted_while_used",
        "api/browse_batch.c",
        "    if (copied == MQX_OK && !gone) {",
        "    if (copied == MQX_OK) {",
    ),
    mutation(
        "a message that was taken while it was looked at is the oldest",
        "c/deleted_while_used",
        "api/status.c",
        "*time = fetched == MQX_OK && !gone ? d.put_time_us : 0;",
        "*time = fetched == MQX_OK && gone != 77 ? d.put_time_us : 0;",
    ),
    mutation(
        "a message that is taken is freed at once, though it is being copied",
        "c/deleted_while_used",
        "queue/queue.c",
        "    *out_pinned = message->pins != 0;",
        "    *out_pinned = message->pins > 99;",
    ),
    mutation(
        "the last pin of a message that was taken leaves it where it is",
        "c/deleted_while_used",
        "unit/unit.c",
        "        if (message->state != MQX_MSG_GONE || message->pins != 0) {",
        "        if (message->state != MQX_MSG_GONE || message->pins < 99) {",
    ),
)

INTERLEAVED = (
    mutation(
        "a follower sleeps on a value that it read after the leader had published",
        "t9/put_persistent+put_persistent",
        "journal/group_commit.c",
        "status = follow(region, seen, &since_us);",
        "status = follow(region, mqx_load_acquire(&journal->flush_word), &since_us);",
    ),
    mutation(
        "a waiter that was chosen sleeps on",
        "t9/await_other+put_nonpersistent",
        "queue/wait_list.c",
        "mqx_guard_store32(guard, &context->wait_word, context->wait_word + 1);",
        "mqx_guard_store32(guard, &context->wait_word, context->wait_word + 0);",
    ),
    mutation(
        "two resolvers claim one prepared unit",
        "t9/commit_prepared+commit_prepared",
        "unit/prepared.c",
        "        if (unit->resolver != 0) {\n            status = MQX_BUSY;",
        "        if (unit->resolver == UINT32_MAX) {\n            status = MQX_BUSY;",
    ),
)

UNITS = (*BATCHES, *PREPARED, *SCAN_AND_ARCHIVE, *MEANWHILE, *MEMORY, *INTERLEAVED)
