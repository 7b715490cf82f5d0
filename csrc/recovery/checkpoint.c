/*
 * checkpoint.c - see checkpoint.h. In order: objects; messages, counting what keeps
 * which segment; image (orderly end); flush and mark; units; the file gets its name; it is
 * published; what only its predecessor needed is removed.
 *
 * Why nothing that is needed is retired. A message counts for every segment from its first piece to
 * its PUT; one that was put after the copy of its queue has its PUT above the begin LSN. A segment
 * that was begun after the list was made is newer than everything that is retired. What the older
 * checkpoint needs is read from its file, never from the region.
 *
 * Which chunked messages are read. Only the PUT says where the first piece lies, so the journal is
 * read for messages with pieces; one whose PUT cannot be read keeps all older segments.
 */
#include "recovery/checkpoint.h"

#include "catalog/catalog.h"
#include "recovery/checkpoint_begin.h"
#include "recovery/checkpoint_file.h"
#include "recovery/checkpoint_reserve.h"
#include "recovery/rehearsal.h"
#include "recovery/segment_use.h"
#include "base/error.h"
#include "queue/queue.h"
#include "queue/stored.h"
#include "region/damage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ATTRS_MAX = 60000,          /* bytes of an object's attribute list */
    IMAGE_PIECE = PS_CHUNK_BYTES,
    HOOK_EVERY_US = 250000,     /* store->maintenance_hook at most so often */
};

struct checkpoint { /* one that is being taken */
    struct mqx_store *store;
    int mode;
    struct mqx_checkpoint_begin begin;
    uint64_t end_lsn;         /* durable when everything was copied */
    bool reserved;            /* it is written over the reserve */
    struct mqx_checkpoint_writer writer;
    struct mqx_rehearsal *rehearsal;
    struct mqx_older_checkpoint older;    /* kept beside the new one */
    struct mqx_segment_use use;
    unsigned char *attrs;     /* ATTRS_MAX bytes */
    struct psc_message last;  /* written last, number 0: none */
    unsigned char *body;      /* of an image message */
    uint64_t body_capacity;
    uint64_t images;
    uint64_t hook_us;      /* when store->maintenance_hook was last called */
};

/* ---- objects ---- */

/* The object's definition, in an OBJECTS block. */
static int write_object(struct checkpoint *ckpt, uint32_t slot, uint32_t generation)
{
    struct ps_object_name name;
    uint32_t length = 0, most = 0;
    uint64_t version = 0;
    void *to = NULL;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(ckpt->attrs != NULL);
    int status = mqx_catalog_read(ckpt->store, slot, generation, &name, ckpt->attrs, ATTRS_MAX,
                                  &length, &version);
    if (status == MQRC_UNKNOWN_OBJECT_NAME || status == MQRC_Q_DELETED) {
        return MQX_OK; /* deleted since it was listed; its record lies in the tail */
    }
    if (status == MQX_OK && length > ATTRS_MAX) {
        status = mqx_fail(MQRC_RESOURCE_PROBLEM, "object slot %u has %u bytes of attributes", slot,
                          length);
    }
    if (status == MQX_OK) {
        status = mqx_checkpoint_file_reserve(&ckpt->writer, PSC_OBJECTS, MQX_RING_RECORD_MAX, &to,
                                             &most);
    }
    if (status == MQX_OK) {
        const struct mqx_record_head head = {
            .type = PS_REC_OBJECT, .object = slot, .object_gen = generation};
        mqx_checkpoint_file_added(&ckpt->writer, 1,
                                  mqx_encode_object(to, &head, &name, ckpt->attrs, length));
    }
    return status;
}

/* Generations of objects that are gone, as OBJECT_DELETE records behind the definitions. A restart
 * that did not know them would use them again, and one from the older checkpoint, which still knows
 * the messages of the first object, would give these to the second. */
static int write_gone(struct checkpoint *ckpt)
{
    uint32_t slot = 0, generation = 0;
    MQX_ASSERT(ckpt->writer.fd >= 0);
    MQX_ASSERT(ckpt->use.count > 0);
    for (;;) { /* slots rise */
        void *to = NULL;
        uint32_t most = 0;
        int status = mqx_catalog_next_gone(ckpt->store, &slot, &generation);
        if (status != MQX_OK) {
            return status == MQRC_UNKNOWN_OBJECT_NAME ? MQX_OK : status;
        }
        const struct mqx_record_head head = {
            .type = PS_REC_OBJECT_DELETE, .object = slot, .object_gen = generation};
        status = mqx_checkpoint_file_reserve(&ckpt->writer, PSC_OBJECTS, MQX_RING_RECORD_MAX, &to,
                                             &most);
        if (status != MQX_OK) {
            return status;
        }
        mqx_checkpoint_file_added(&ckpt->writer, 1, mqx_encode_plain(to, &head));
    }
}

typedef int (*object_step)(struct checkpoint *ckpt, uint32_t slot, uint32_t generation);

/* Calls `step` for each object that is in the journal, slots ascending. */
static int for_objects(struct checkpoint *ckpt, object_step step)
{
    uint32_t slot = 0, generation = 0;
    MQX_ASSERT(step != NULL);
    for (;;) { /* slots rise */
        const uint32_t before = slot;
        int status = mqx_catalog_next(ckpt->store, &slot, &generation);
        MQX_ASSERT(status != MQX_OK || slot > before);
        if (status != MQX_OK) {
            return status == MQRC_UNKNOWN_OBJECT_NAME ? MQX_OK : status;
        }
        if (mqx_catalog_is_journalled(ckpt->store, slot, generation)) {
            status = step(ckpt, slot, generation);
        }
        if (status != MQX_OK) {
            return status;
        }
    }
}

/* ---- messages ----
 *
 * A queue's entries are copied straight into the block, at most 64 in a lock hold; counting and the
 * check of their order are done on the copies.
 */

/* The order that restarts rely on: an index out of order must not become the only checkpoint. */
static int check_sorted(struct checkpoint *ckpt, const struct psc_message *m)
{
    const struct psc_message *last = &ckpt->last;
    MQX_ASSERT(m != last);
    MQX_ASSERT(m->placement <= MQX_MAX_PRIORITY);
    const bool sorted =
        last->number == 0 || last->object < m->object ||
        (last->object == m->object &&
         (last->placement > m->placement ||
          (last->placement == m->placement && last->number < m->number)));
    if (!sorted) {
        return mqx_region_damage(&ckpt->store->region, "the order of a queue's messages",
                                 m->number);
    }
    ckpt->last = *m;
    return MQX_OK;
}

/* A paced checkpoint of a deep index takes seconds. Maintenance continues in between: processes
 * that died must be cleaned up within a second. */
static int call_maintenance_hook(struct checkpoint *ckpt)
{
    struct mqx_store *store = ckpt->store;
    const uint64_t now = store->io->ops->now_us(store->io);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    const bool early = now - ckpt->hook_us < HOOK_EVERY_US &&
                       mqx_load_acquire(&store->leaving) == 0;
    if (ckpt->mode != MQX_CHECKPOINT_FUZZY || store->maintenance_hook == NULL || early) {
        return MQX_OK;
    }
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    ckpt->hook_us = now;
    return store->maintenance_hook(store);
}

/* The messages of a queue in delivery order, in MESSAGES blocks: what is in the journal. */
static int write_messages(struct checkpoint *ckpt, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    bool done = false;
    int status = MQX_OK;
    (void)generation;
    MQX_ASSERT(slot != 0);
    while (!done && status == MQX_OK) { /* each turn moves the cursor by up to 64 messages */
        void *to = NULL;
        uint32_t most = 0, count = 0;
        status = mqx_checkpoint_file_reserve(&ckpt->writer, PSC_MESSAGES,
                                             sizeof(struct psc_message), &to, &most);
        if (status == MQX_OK) {
            status = mqx_queue_copy_entries(ckpt->store, slot, &cursor, to, most, &count, &done);
        }
        struct psc_message *messages = to;
        MQX_ASSERT(count <= most);
        for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
            mqx_segment_use_message(&ckpt->use, &messages[i]);
            status = check_sorted(ckpt, &messages[i]);
        }
        if (status == MQX_OK) {
            mqx_checkpoint_file_added(&ckpt->writer, count, (uint64_t)count * sizeof *messages);
            status = call_maintenance_hook(ckpt);
        }
    }
    return status;
}

/* ---- image ----
 *
 * Only at an orderly end, when no other process is attached: bodies are read without a lock. A body
 * is written as in the journal, inline or as pieces followed by the PUT.
 */

/* One CHUNK record into an IMAGE block. */
static int add_image_record(struct checkpoint *ckpt, const struct mqx_record_head *head,
                            const struct ps_chunk *chunk, const void *piece, uint32_t length)
{
    MQX_ASSERT(length <= IMAGE_PIECE);
    MQX_ASSERT(chunk->offset + length <= chunk->total);
    void *to = NULL;
    uint32_t most = 0;
    int status =
        mqx_checkpoint_file_reserve(&ckpt->writer, PSC_IMAGE, MQX_RING_RECORD_MAX, &to, &most);
    if (status == MQX_OK) {
        mqx_checkpoint_file_added(&ckpt->writer, 1,
                                  mqx_encode_chunk(to, head, chunk, piece, length));
    }
    return status;
}

/* The body in CHUNK records; *out is what the PUT states about them. */
static int write_pieces(struct checkpoint *ckpt, struct mqx_record_head head, uint64_t total,
                        struct ps_chunked *out)
{
    int status = MQX_OK;
    MQX_ASSERT(total > PS_INLINE_BODY_MAX);
    MQX_ASSERT(total <= ckpt->body_capacity);
    head.type = PS_REC_CHUNK;
    *out = (struct ps_chunked){.total = total};
    for (uint64_t at = 0; at < total && status == MQX_OK; at += IMAGE_PIECE) {
        const uint64_t left = total - at;
        const struct ps_chunk chunk = {.offset = at, .total = total, .number = out->count};
        status = add_image_record(ckpt, &head, &chunk, ckpt->body + at,
                                  left < IMAGE_PIECE ? (uint32_t)left : IMAGE_PIECE);
        out->count += 1;
    }
    return status;
}

/* Room for a body; grows, and is used again for the next message. */
static int make_body_room(struct checkpoint *ckpt, uint64_t length)
{
    if (ckpt->body == NULL || length > ckpt->body_capacity) {
        unsigned char *body = realloc(ckpt->body, length + 1);
        if (body == NULL) {
            return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a message of %" PRIu64
                            " bytes", length);
        }
        ckpt->body = body;
        ckpt->body_capacity = length;
    }
    MQX_ASSERT(ckpt->body != NULL);
    MQX_ASSERT(ckpt->body_capacity >= length);
    return MQX_OK;
}

/* One non-persistent message: its pieces, when it has any, then its PUT. */
static int write_image_message(struct checkpoint *ckpt, uint32_t slot, uint32_t generation,
                               const struct mqx_message *message)
{
    struct ps_descriptor descriptor;
    struct ps_descriptor_ext ext;
    struct ps_chunked chunked;
    void *to = NULL;
    uint32_t most = 0;
    const struct mqx_record_head head = {.type = PS_REC_PUT,
                                         .object = slot,
                                         .object_gen = generation,
                                         .number = message->number};
    MQX_ASSERT(ckpt->mode == MQX_CHECKPOINT_CLEAN);
    MQX_ASSERT((message->flags & MQX_MSGF_PERSISTENT) == 0);
    int status = make_body_room(ckpt, message->length);
    if (status == MQX_OK) {
        status = mqx_body_read(&ckpt->store->region, message, &descriptor, &ext, ckpt->body,
                               message->length);
    }
    const bool pieces = message->length > PS_INLINE_BODY_MAX;
    if (status == MQX_OK && pieces) {
        status = write_pieces(ckpt, head, message->length, &chunked);
    }
    if (status == MQX_OK) {
        status =
            mqx_checkpoint_file_reserve(&ckpt->writer, PSC_IMAGE, MQX_RING_RECORD_MAX, &to, &most);
    }
    if (status == MQX_OK) {
        descriptor.backout_count = message->backout_count;
        descriptor.due_us = mqx_delayed_due_us(message);
        mqx_checkpoint_file_added(
            &ckpt->writer, 1,
            mqx_encode_put(to, &head, &descriptor, descriptor.has_ext ? &ext : NULL,
                           pieces ? &chunked : NULL, ckpt->body, pieces ? 0 : message->length));
        ckpt->images += 1;
    }
    return status;
}

/* The image of a queue; of most queues there is nothing in it. */
static int write_images(struct checkpoint *ckpt, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    int status = MQX_OK;
    MQX_ASSERT(ckpt->mode == MQX_CHECKPOINT_CLEAN);
    MQX_ASSERT(generation != 0);
    uint32_t found = mqx_queue_next_image(ckpt->store, slot, &cursor);
    while (found != 0 && status == MQX_OK) { /* the cursor moves */
        const struct mqx_message *message = mqx_message(&ckpt->store->region, found);
        if (MQX_UNLIKELY(message == NULL)) {
            return mqx_region_damage(&ckpt->store->region, "message slot of a queue", found);
        }
        status = write_image_message(ckpt, slot, generation, message);
        found = mqx_queue_next_image(ckpt->store, slot, &cursor);
    }
    return status;
}

/* Has the queue any? Counts one for each queue that has. */
static int count_images(struct checkpoint *ckpt, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    (void)generation;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(ckpt->mode == MQX_CHECKPOINT_CLEAN);
    ckpt->images += mqx_queue_next_image(ckpt->store, slot, &cursor) != 0;
    return MQX_OK;
}

/* ---- segments ---- */

/* Lines of one size, in blocks of that type. */
static int write_lines(struct checkpoint *ckpt, uint32_t type, const void *lines, size_t count,
                       uint32_t size)
{
    const unsigned char *from = lines;
    MQX_ASSERT(size % 8 == 0);
    MQX_ASSERT(count == 0 || lines != NULL);
    while (count > 0) { /* each turn writes some */
        void *to = NULL;
        uint32_t most = 0;
        const int status = mqx_checkpoint_file_reserve(&ckpt->writer, type, size, &to, &most);
        if (status != MQX_OK) {
            return status;
        }
        const uint32_t now = count < most ? (uint32_t)count : most;
        memcpy(to, from, (size_t)now * size);
        mqx_checkpoint_file_added(&ckpt->writer, now, (uint64_t)now * size);
        from += (size_t)now * size;
        count -= now;
        const int called = call_maintenance_hook(ckpt);
        if (called != MQX_OK) {
            return called;
        }
    }
    return MQX_OK;
}

/* A unit's message lies where its last MOVED record below the begin LSN is, and what it was put as
 * may be freed. A process that died after writing that record has not noted it: so it is done here,
 * before this checkpoint, which relies on it, gets its name. Only units that move are looked at. */
static int complete_moves(struct checkpoint *ckpt, const struct mqx_units_in_flight *units)
{
    const struct psc_message *put = units->puts;
    int status = MQX_OK;
    MQX_ASSERT(ckpt->begin.lsn <= ckpt->end_lsn);
    MQX_ASSERT(units->put_count == 0 || put != NULL);
    for (size_t i = 0; i < units->operation_count && status == MQX_OK; i++) {
        const struct psc_operation *operation = &units->operations[i];
        if (operation->type != PS_REC_PUT && operation->type != PS_REC_TAKEN) {
            continue;
        }
        if (put->lsn != operation->lsn) {
            status = mqx_stored_relocate(ckpt->store, put->object, put->placement, put->number,
                                         put->lsn);
        }
        put += 1;
    }
    MQX_ASSERT(status != MQX_OK || put == units->puts + units->put_count);
    return status;
}

/* The units that are not decided at the begin LSN, as the journal has them; their records below it
 * are durable by now. MQX_BUSY: they are not known, the checkpoint must be bounded by them. */
static int write_units(struct checkpoint *ckpt)
{
    struct mqx_store *store = ckpt->store;
    int status = mqx_flush_mark(store); /* so everything that was copied is durable */
    MQX_ASSERT(ckpt->rehearsal == NULL);
    if (status != MQX_OK) {
        return status;
    }
    ckpt->end_lsn = mqx_journal_durable(store->region.journal);
    if (MQX_UNLIKELY(ckpt->end_lsn < ckpt->begin.lsn)) {
        return mqx_region_damage(&store->region, "journal's durable LSN", ckpt->end_lsn);
    }
    status = mqx_rehearsal_begin(store, ckpt->begin.lsn, ckpt->end_lsn, &ckpt->rehearsal);
    if (status != MQX_OK || ckpt->begin.bounded) {
        return status;
    }
    const struct mqx_units_in_flight *units = mqx_rehearsal_units(ckpt->rehearsal);
    if (units == NULL) {
        return MQX_BUSY;
    }
    MQX_ASSERT(units->put_count <= units->operation_count);
    status = complete_moves(ckpt, units);
    if (status != MQX_OK) {
        return status;
    }
    mqx_segment_use_units(&ckpt->use, units, ckpt->begin.lsn);
    status = write_lines(ckpt, PSC_UNITS, units->units, units->unit_count, sizeof *units->units);
    if (status == MQX_OK) {
        status = write_lines(ckpt, PSC_OPERATIONS, units->operations, units->operation_count,
                             sizeof *units->operations);
    }
    if (status == MQX_OK) {
        status = write_lines(ckpt, PSC_UNIT_PUTS, units->puts, units->put_count,
                             sizeof *units->puts);
    }
    return status;
}

/* The segments before the begin segment in which a listed message lies: a restart from this
 * checkpoint needs them. All others of these may be freed once it is whole. */
static int write_segments(struct checkpoint *ckpt)
{
    int status = MQX_OK;
    MQX_ASSERT(ckpt->use.count > 0);
    for (uint32_t i = 0; i < ckpt->use.count && status == MQX_OK; i++) {
        const struct mqx_located_segment *located = &ckpt->use.segments[i];
        void *to = NULL;
        uint32_t most = 0;
        if (located->number >= ckpt->begin.segment || ckpt->use.live[located->index] == 0) {
            continue;
        }
        status = mqx_checkpoint_file_reserve(&ckpt->writer, PSC_SEGMENTS,
                                             sizeof(struct psc_segment), &to, &most);
        if (status == MQX_OK) {
            const struct psc_segment line = {located->number, located->generation,
                                             located->base_lsn, located->end_lsn};
            MQX_ASSERT(line.end_lsn > line.base_lsn);
            memcpy(to, &line, sizeof line);
            mqx_checkpoint_file_added(&ckpt->writer, 1, sizeof line);
        }
    }
    return status;
}

/* ---- the end ----
 *
 * From here on the order matters: flush, name, publish, remove, retire (invariant 2).
 */

/* What the file's header says; end LSN and counters are read after the last message was copied, so
 * they are above everything in the file. */
static void fill_header(const struct checkpoint *ckpt, struct psc_header *out)
{
    const struct mqx_store *store = ckpt->store;
    struct mqx_journal *journal = store->region.journal;
    const bool clean = ckpt->mode != MQX_CHECKPOINT_FUZZY;
    MQX_ASSERT(ckpt->use.count > 0);
    MQX_ASSERT(ckpt->end_lsn >= ckpt->begin.lsn);
    *out = (struct psc_header){
        .begin_segment = ckpt->begin.segment,
        .end_lsn = ckpt->end_lsn,
        .next_number = mqx_load_acquire(&journal->next_number),
        .next_unit_id = mqx_load_acquire(&journal->next_unit_id),
        .restart_epoch = journal->restart_epoch,
        .generation = journal->segment[ckpt->use.segments[ckpt->use.count - 1].index].generation,
        .clean = clean,
        .has_image = clean && ckpt->images > 0,
        .created_us = store->io->ops->now_us(store->io),
        .oldest_segment = mqx_segment_use_oldest(&ckpt->use, ckpt->begin.segment),
        .units_listed = !ckpt->begin.bounded,
    };
    memcpy(out->qm_id, store->qm_id, sizeof out->qm_id);
}

/* Is there a segment that only the older checkpoint needs? It goes with the next checkpoint. */
static bool older_keeps(const struct checkpoint *ckpt)
{
    bool found = false;
    MQX_ASSERT(ckpt->use.live != NULL);
    for (uint32_t i = 0; i < ckpt->use.count && !found && ckpt->older.begin_lsn != 0; i++) {
        const struct mqx_located_segment *located = &ckpt->use.segments[i];
        found = located->number < ckpt->begin.segment && ckpt->use.live[located->index] == 0 &&
                mqx_older_checkpoint_needs(&ckpt->older, located->number);
    }
    return found;
}

/* The region names the new checkpoint: one ring micro-transaction, then the statistics. */
static int publish(struct checkpoint *ckpt, uint64_t size)
{
    struct mqx_region *region = &ckpt->store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_lock *lock = &journal->ring_lock;
    MQX_ASSERT(size > MQX_PAGE_SIZE);
    MQX_ASSERT(ckpt->begin.lsn >= journal->checkpoint_begin); /* it only rises */
    if (ckpt->begin.lsn > journal->checkpoint_begin) {
        mqx_store_relaxed(&journal->older_bytes, journal->checkpoint_bytes);
    }
    mqx_journal_learn(journal, &ckpt->writer.totals, size);
    if (ckpt->mode != MQX_CHECKPOINT_FUZZY) {
        mqx_checkpoint_reserve_know(ckpt->store, &ckpt->writer.lines, size);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    mqx_undo_store64(region->base, lock, &journal->checkpoint_begin, ckpt->begin.lsn);
    mqx_undo_store64(region->base, lock, &journal->checkpoint_bytes, size);
    mqx_undo_store64(region->base, lock, &journal->checkpoint_damaged, 0);
    mqx_undo_store64(region->base, lock, &journal->older_keeps, older_keeps(ckpt));
    mqx_undo_store32(region->base, lock, &journal->clean_tail,
                     ckpt->mode != MQX_CHECKPOINT_FUZZY);
    mqx_undo_commit(lock);
    for (uint32_t i = 0; i < ckpt->use.count; i++) {
        const uint32_t index = ckpt->use.segments[i].index;
        mqx_store_relaxed(&journal->segment[index].live_messages, ckpt->use.live[index]);
        mqx_store_relaxed(&journal->segment[index].live_bytes, ckpt->use.live_bytes[index]);
    }
    mqx_lock_drop(region, lock);
    return MQX_OK;
}

/* Visits a file of the checkpoint directory: removes what a checkpointer left that was killed. Only
 * one is at work at a time, under the maintenance lock. */
static int remove_half_made(void *arg, const char *name)
{
    struct mqx_store *store = arg;
    const size_t length = strlen(name);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    MQX_ASSERT(length > 0);
    if (length > 4 && strcmp(name + length - 4, ".tmp") == 0) {
        (void)store->io->ops->unlink(store->io, store->checkpoint_dir, name);
    }
    return 0;
}

/* Visits a file of the checkpoint directory: removes all whole checkpoints but two. The first of
 * them takes the place of a reserve that was used. */
static int remove_other(void *arg, const char *name)
{
    struct checkpoint *ckpt = arg;
    uint64_t begin_lsn = 0;
    MQX_ASSERT(ckpt->writer.fd < 0); /* the new one is finished */
    MQX_ASSERT(name != NULL);
    if (mqx_checkpoint_file_parse(name, &begin_lsn) && begin_lsn != ckpt->begin.lsn &&
        begin_lsn != ckpt->older.begin_lsn) {
        struct mqx_store *store = ckpt->store;
        if (!ckpt->reserved || !mqx_checkpoint_reserve_from(store, name)) {
            (void)store->io->ops->unlink(store->io, store->checkpoint_dir, name);
        }
        ckpt->reserved = false; /* there is one again */
    }
    return 0;
}

/* Would a restart find in it what the journal says? Invariant 4. The checkpoint that it is compared
 * with is kept; one with the same begin LSN, which the new one replaces, is followed by the one
 * before it. */
static int rehearse(void *arg, const char *name, uint64_t end_lsn)
{
    struct checkpoint *ckpt = arg;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(end_lsn == ckpt->end_lsn);
    const int status = mqx_rehearsal_compare(ckpt->rehearsal, name);
    mqx_rehearsal_older(ckpt->rehearsal, &ckpt->older);
    return status != MQX_OK || ckpt->older.begin_lsn < ckpt->begin.lsn
               ? status
               : mqx_find_older_checkpoint(ckpt->store, ckpt->begin.lsn, &ckpt->older);
}

/* Retires what neither this checkpoint needs nor the older one. */
static int retire(struct checkpoint *ckpt)
{
    MQX_ASSERT(ckpt->use.count > 0);
    MQX_ASSERT(ckpt->writer.fd < 0); /* the new one is finished */
    for (uint32_t i = 0; i < ckpt->use.count; i++) {
        const struct mqx_located_segment *located = &ckpt->use.segments[i];
        ckpt->use.live[located->index] += mqx_older_checkpoint_needs(&ckpt->older, located->number);
    }
    return mqx_journal_retire(ckpt->store, ckpt->begin.segment, ckpt->begin.lsn, ckpt->use.live);
}

/* Everything is copied: make it durable, give it its name, retire what it replaces. */
static int finish(struct checkpoint *ckpt)
{
    struct mqx_store *store = ckpt->store;
    struct psc_header header;
    uint64_t size = 0;
    int status = mqx_store_check(store); /* files are renamed and removed from here on */
    if (status != MQX_OK) {
        return status;
    }
    fill_header(ckpt, &header);
    MQX_ASSERT(header.clean == 0 || !ckpt->begin.in_flight); /* take() has looked */
    MQX_ASSERT(header.oldest_segment <= header.begin_segment);
    ckpt->writer.accept = rehearse;
    ckpt->writer.accept_arg = ckpt;
    status = mqx_checkpoint_file_finish(&ckpt->writer, &header, &size);
    if (status == MQX_OK) {
        status = publish(ckpt, size);
    }
    if (status != MQX_OK) {
        return status;
    }
    /* What is left over is removed by the next checkpoint: a failure here does no harm. */
    (void)store->io->ops->list(store->io, store->checkpoint_dir, remove_other, ckpt);
    if (ckpt->reserved) { /* there were no more than two */
        mqx_checkpoint_reserve_renew(store);
    }
    return retire(ckpt);
}

/* ---- taking one ---- */

/* Memory; and for an orderly end nothing may be left in the ring. */
static int begin(struct checkpoint *ckpt)
{
    MQX_ASSERT(ckpt->attrs == NULL);
    MQX_ASSERT(ckpt->store != NULL);
    ckpt->attrs = malloc(ATTRS_MAX);
    if (ckpt->attrs == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a checkpoint");
    }
    return ckpt->mode != MQX_CHECKPOINT_FUZZY ? mqx_flush_mark(ckpt->store) : MQX_OK;
}

/* Nothing to do: a fuzzy one would begin where the last one did; at an orderly end nothing was
 * written since the start, which was from a clean one, and there is no image to write. A damaged
 * checkpoint is replaced in any case. */
static int is_unnecessary(struct checkpoint *ckpt, bool *out)
{
    const struct mqx_journal *journal = ckpt->store->region.journal;
    *out = false;
    MQX_ASSERT(ckpt->images == 0);
    MQX_ASSERT(ckpt->begin.lsn <= ckpt->begin.tail);
    if (ckpt->begin.lsn != journal->checkpoint_begin || journal->checkpoint_damaged != 0) {
        return MQX_OK;
    }
    if (ckpt->mode == MQX_CHECKPOINT_FUZZY) {
        *out = true;
        return MQX_OK;
    }
    int status = MQX_OK;
    if (ckpt->mode == MQX_CHECKPOINT_CLEAN) {
        status = for_objects(ckpt, count_images);
    }
    *out = journal->clean_tail != 0 && ckpt->images == 0 &&
           ckpt->begin.lsn == mqx_journal_durable(journal); /* else: a prepared unit */
    ckpt->images = 0;
    return status;
}

static int begin_file(struct checkpoint *ckpt, bool paced)
{
    struct mqx_store *store = ckpt->store;
    MQX_ASSERT(ckpt->begin.lsn != 0);
    MQX_ASSERT(ckpt->writer.fd < 0);
    if (ckpt->reserved) { /* its size is asked again, whatever happens */
        mqx_store_relaxed(&store->region.journal->checkpoint_reserve, UINT64_C(0));
    }
    return ckpt->reserved
               ? mqx_checkpoint_file_begin_reserved(&ckpt->writer, store->io, store->checkpoint_dir,
                                                    store->qm_id, ckpt->begin.lsn, paced)
               : mqx_checkpoint_file_begin(&ckpt->writer, store->io, store->checkpoint_dir,
                                           store->qm_id, ckpt->begin.lsn, paced);
}

/* All steps in order. A failure leaves a temporary file, which the caller removes. */
static int take(struct checkpoint *ckpt)
{
    const bool paced = ckpt->mode == MQX_CHECKPOINT_FUZZY;
    bool needless = false;
    MQX_ASSERT(ckpt->attrs != NULL);
    MQX_ASSERT(ckpt->writer.fd < 0);
    int status = mqx_checkpoint_begin(ckpt->store, &ckpt->begin, &ckpt->use);
    if (status == MQX_OK) {
        status = is_unnecessary(ckpt, &needless);
    }
    if (status != MQX_OK || needless) {
        return status;
    }
    if (!paced && (ckpt->begin.in_flight ||
                   ckpt->begin.tail != mqx_journal_durable(ckpt->store->region.journal))) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR, "an orderly end with a unit of work in flight");
    }
    status = mqx_store_check(ckpt->store);
    if (status == MQX_OK) {
        (void)ckpt->store->io->ops->list(ckpt->store->io, ckpt->store->checkpoint_dir,
                                         remove_half_made, ckpt->store);
        status = begin_file(ckpt, paced);
    }
    if (status == MQX_OK) {
        status = for_objects(ckpt, write_object);
    }
    if (status == MQX_OK) {
        status = write_gone(ckpt);
    }
    if (status == MQX_OK) {
        status = for_objects(ckpt, write_messages);
    }
    if (status == MQX_OK && ckpt->mode == MQX_CHECKPOINT_CLEAN) {
        status = for_objects(ckpt, write_images);
    }
    if (status == MQX_OK) {
        status = write_units(ckpt);
    }
    if (status == MQX_OK) {
        status = write_segments(ckpt);
    }
    return status == MQX_OK ? finish(ckpt) : status;
}

/* One attempt. One cleanup path: the temporary file and all memory go, whatever happened. */
static int attempt(struct mqx_store *store, int mode, bool bounded, bool reserved)
{
    struct checkpoint ckpt = {.store = store,
                              .mode = mode,
                              .begin.bounded = bounded,
                              .reserved = reserved,
                              .writer = {.fd = -1}};
    MQX_ASSERT(mode >= MQX_CHECKPOINT_FUZZY);
    MQX_ASSERT(mode <= MQX_CHECKPOINT_CLEAN_NO_IMAGE);
    int status = mqx_region_stopped(&store->region) != MQX_RUNNING
                     ? mqx_region_stop_reason(&store->region)
                     : begin(&ckpt);
    if (status == MQX_OK) {
        mqx_journal_lend_fd(store); /* for the file */
        status = take(&ckpt);
        mqx_journal_keep_fd(store);
    }
    mqx_checkpoint_file_abandon(&ckpt.writer);
    mqx_segment_use_end(&ckpt.use);
    mqx_rehearsal_end(ckpt.rehearsal);
    mqx_older_checkpoint_free(&ckpt.older);
    free(ckpt.attrs);
    free(ckpt.body);
    return status;
}

/* The units in flight come from the older files. When these cannot be read, or a unit has defined
 * an object, the checkpoint begins at the first of the units instead. */
static int attempt_both(struct mqx_store *store, int mode, bool reserved)
{
    const int status = attempt(store, mode, false, reserved);
    MQX_ASSERT(store->region.base != NULL);
    MQX_ASSERT(status != MQX_BUSY || mqx_region_stopped(&store->region) == MQX_RUNNING);
    return status == MQX_BUSY ? attempt(store, mode, true, reserved) : status;
}

/* On a full disk it is written once more, over the reserve. Where there is none, the text is that
 * of the first attempt. */
int mqx_checkpoint(struct mqx_store *store, int mode)
{
    char text[256];
    const int status = attempt_both(store, mode, false);
    MQX_ASSERT(store->checkpoint_dir >= 0);
    if (MQX_LIKELY(status != MQRC_STORAGE_MEDIUM_FULL)) {
        return status;
    }
    MQX_ASSERT(mqx_error_text() != NULL);
    (void)snprintf(text, sizeof text, "%s", mqx_error_text());
    if (!mqx_checkpoint_reserve_ready(store)) {
        return mqx_fail(status, "%s", text);
    }
    mqx_error_clear();
    return attempt_both(store, mode, true);
}
