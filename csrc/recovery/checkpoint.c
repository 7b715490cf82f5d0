/*
 * checkpoint.c - see checkpoint.h. In order: begin LSN; objects; messages, counting what keeps
 * which segment; image (orderly end); flush and mark; the file gets its name; it is published; what
 * only its predecessor needed is removed.
 *
 * Why the begin LSN is right. `tail` is read under the ring lock, then the contexts are looked at.
 * A unit whose first record lies below that tail and which is still in flight when its context is
 * looked at bounds the begin LSN. One that ended before that had completed its effects, so the
 * checkpoint, which begins later, has them. One that begins later lies above.
 */
#include "recovery/checkpoint.h"

#include "catalog/catalog.h"
#include "recovery/checkpoint_file.h"
#include "base/error.h"
#include "queue/queue.h"
#include "os/block_hook.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRS_MAX = 60000, IMAGE_PIECE = PS_CHUNK_BYTES };

struct located_segment { /* a segment, for finding the one that holds an LSN */
    uint64_t base_lsn;
    uint64_t size;
    uint64_t number;
    uint32_t index; /* in the segment table */
};

struct checkpoint { /* a checkpoint under way */
    struct mqx_store *store;
    int mode;
    uint64_t begin_lsn;
    uint64_t begin_segment;
    uint64_t tail;            /* of the journal when it began */
    bool in_flight;           /* a unit that is not prepared had a record */
    struct mqx_checkpoint_writer writer;
    struct located_segment *segments;     /* by LSN */
    uint32_t segment_count;
    uint32_t last_found;      /* where the message before was found */
    uint32_t *live;           /* messages, parallel to the segment table */
    uint64_t *live_bytes;
    unsigned char *attrs;     /* ATTRS_MAX bytes */
    struct psc_message last;  /* written last, number 0: none */
    unsigned char *body;      /* of an image message */
    uint64_t body_capacity;
    uint64_t images;
    uint64_t between_us;    /* when others were last looked after */
};

/* ---- where the replay will begin ---- */

static uint64_t lowest_in_flight(struct checkpoint *checkpoint, uint64_t bound, int *status)
{
    struct mqx_region *region = &checkpoint->store->region;
    struct mqx_lock *ring_lock = &region->journal->ring_lock;
    const uint64_t used = mqx_load_acquire(&region->header->area[MQX_AREA_CONTEXTS].used);
    for (uint64_t slot = 1; slot < used && *status == MQX_OK;) {
        *status = mqx_lock_take(region, ring_lock);
        if (*status != MQX_OK) {
            return bound;
        }
        for (int i = 0; i < MQX_LOCKED_STEPS_MAX && slot < used; i++, slot++) {
            const struct mqx_context *context = mqx_context(region, (uint32_t)slot);
            if (context != NULL && context->first_lsn != 0) {
                bound = context->first_lsn < bound ? context->first_lsn : bound;
                checkpoint->in_flight |= context->state != MQX_CTX_PREPARED;
            }
        }
        mqx_lock_drop(region, ring_lock);
    }
    return bound;
}

static int by_base(const void *a, const void *b)
{
    const struct located_segment *first = a;
    const struct located_segment *second = b;
    return first->base_lsn < second->base_lsn ? -1 : first->base_lsn > second->base_lsn;
}

/* Copies what the segment table says; under the roll lock, because nobody else changes it
 * meanwhile. */
static int list_segments(struct checkpoint *checkpoint)
{
    struct mqx_region *region = &checkpoint->store->region;
    const struct mqx_journal *journal = region->journal;
    int status = mqx_lock_take(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL) {
            checkpoint->segments[checkpoint->segment_count++] =
                (struct located_segment){segment->base_lsn, segment->size, segment->number, i};
        }
    }
    mqx_lock_drop(region, &region->journal->roll_lock);
    qsort(checkpoint->segments, checkpoint->segment_count, sizeof *checkpoint->segments, by_base);
    return MQX_OK;
}

/* The segment that holds the LSN; NULL for one that was begun after the list was made. */
static const struct located_segment *locate(struct checkpoint *checkpoint, uint64_t lsn)
{
    uint32_t low = 0, high = checkpoint->segment_count;
    const struct located_segment *found = &checkpoint->segments[checkpoint->last_found];
    if (lsn < found->base_lsn || lsn - found->base_lsn >= found->size) {
        while (high - low > 1) {
            const uint32_t middle = (low + high) / 2;
            if (checkpoint->segments[middle].base_lsn <= lsn) {
                low = middle;
            } else {
                high = middle;
            }
        }
        checkpoint->last_found = low;
        found = &checkpoint->segments[low];
    }
    return lsn >= found->base_lsn && lsn - found->base_lsn < found->size ? found : NULL;
}

static int choose_begin(struct checkpoint *checkpoint)
{
    struct mqx_region *region = &checkpoint->store->region;
    struct mqx_journal *journal = region->journal;
    int status = mqx_lock_take(region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t tail = journal->batch_records != 0 ? journal->tail : journal->batch_start;
    checkpoint->tail = tail;
    checkpoint->begin_segment = journal->segment[journal->active - 1].number;
    mqx_lock_drop(region, &journal->ring_lock);
    checkpoint->begin_lsn = lowest_in_flight(checkpoint, tail, &status);
    if (status == MQX_OK) {
        status = list_segments(checkpoint);
    }
    if (status == MQX_OK && checkpoint->begin_lsn < tail) {
        const struct located_segment *located = locate(checkpoint, checkpoint->begin_lsn);
        mqx_check(located != NULL);
        checkpoint->begin_segment = located->number;
    }
    return status;
}

/* ---- objects ---- */

static int write_object(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation)
{
    struct ps_object_name name;
    uint32_t length = 0, most = 0;
    uint64_t stamp = 0;
    void *to = NULL;
    int status = mqx_catalog_read(checkpoint->store, slot, generation, &name, checkpoint->attrs, ATTRS_MAX,
                                  &length, &stamp);
    if (status == MQRC_UNKNOWN_OBJECT_NAME || status == MQRC_Q_DELETED) {
        return MQX_OK; /* deleted meanwhile; its record lies in the tail */
    }
    if (status == MQX_OK && length > ATTRS_MAX) {
        status = mqx_fail(MQRC_RESOURCE_PROBLEM, "object slot %u has %u bytes of attributes", slot,
                          length);
    }
    if (status == MQX_OK) {
        status =
            mqx_checkpoint_file_room(&checkpoint->writer, PSC_OBJECTS, MQX_RING_RECORD_MAX, &to, &most);
    }
    if (status == MQX_OK) {
        const struct mqx_record_head head = {
            .type = PS_REC_OBJECT, .object = slot, .object_gen = generation};
        mqx_checkpoint_file_took(&checkpoint->writer, 1,
                                 mqx_encode_object(to, &head, &name, checkpoint->attrs, length));
    }
    return status;
}

typedef int (*object_step)(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation);

static int for_objects(struct checkpoint *checkpoint, object_step step)
{
    uint32_t slot = 0, generation = 0;
    for (;;) { /* slots rise */
        int status = mqx_catalog_next(checkpoint->store, &slot, &generation);
        if (status != MQX_OK) {
            return status == MQRC_UNKNOWN_OBJECT_NAME ? MQX_OK : status;
        }
        if (mqx_catalog_is_journalled(checkpoint->store, slot, generation)) {
            status = step(checkpoint, slot, generation);
        }
        if (status != MQX_OK) {
            return status;
        }
    }
}

/* ---- messages ---- */

/* The message keeps all segments from its first piece to its PUT. One whose pieces cannot be read
 * keeps everything before it. */
static void count_live(struct checkpoint *checkpoint, struct psc_message *m)
{
    uint64_t first_lsn = m->lsn;
    if (m->chunk_count > 0) {
        if (mqx_journal_first_lsn(checkpoint->store, m->lsn, m->record_length, &first_lsn) == MQX_OK) {
            m->first_lsn = first_lsn;
        } else {
            first_lsn = 0;
        }
    }
    const struct located_segment *located = locate(checkpoint, m->lsn);
    if (located == NULL) {
        located = &checkpoint->segments[checkpoint->segment_count - 1]; /* in a newer one, not retired now */
    }
    for (;; located--) { /* towards the oldest */
        checkpoint->live[located->index] += 1;
        if (located->base_lsn <= first_lsn || located == checkpoint->segments) {
            break;
        }
    }
    located = locate(checkpoint, m->lsn);
    if (located != NULL) {
        checkpoint->live_bytes[located->index] += m->record_length;
    }
}

/* The order that restarts rely on; our own error would otherwise be found when it is too late. */
static int check_sorted(struct checkpoint *checkpoint, const struct psc_message *m)
{
    const struct psc_message *last = &checkpoint->last;
    const bool sorted =
        last->number == 0 || last->object < m->object ||
        (last->object == m->object &&
         (last->placement > m->placement ||
          (last->placement == m->placement && last->number < m->number)));
    if (!sorted) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "queue slot %u gave message %" PRIu64 " after %" PRIu64
                        ": the checkpoint is given up", m->object, m->number, last->number);
    }
    checkpoint->last = *m;
    return MQX_OK;
}

/* A paced checkpoint of a deep index takes seconds; others must not wait so long for the sweep. */
static int call_between_hook(struct checkpoint *checkpoint)
{
    enum { EVERY_US = 250000 };
    struct mqx_store *store = checkpoint->store;
    const uint64_t now = store->io->ops->now_us(store->io);
    if (checkpoint->mode != MQX_CHECKPOINT_FUZZY || store->between == NULL ||
        now - checkpoint->between_us < EVERY_US) {
        return MQX_OK;
    }
    checkpoint->between_us = now;
    return store->between(store);
}

static int write_messages(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    bool done = false;
    int status = MQX_OK;
    (void)generation;
    while (!done && status == MQX_OK) { /* each turn moves the cursor by up to 64 messages */
        void *to = NULL;
        uint32_t most = 0, count = 0;
        status = mqx_checkpoint_file_room(&checkpoint->writer, PSC_MESSAGES, sizeof(struct psc_message),
                                          &to, &most);
        if (status == MQX_OK) {
            status = mqx_queue_copy_entries(checkpoint->store, slot, &cursor, to, most, &count, &done);
        }
        struct psc_message *messages = to;
        for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
            count_live(checkpoint, &messages[i]);
            status = check_sorted(checkpoint, &messages[i]);
        }
        if (status == MQX_OK) {
            mqx_checkpoint_file_took(&checkpoint->writer, count, (uint64_t)count * sizeof *messages);
            status = call_between_hook(checkpoint);
        }
    }
    return status;
}

/* ---- image ---- */

static int add_image_record(struct checkpoint *checkpoint, const struct mqx_record_head *head,
                            const struct ps_chunk *chunk, const void *piece, uint32_t length)
{
    void *to = NULL;
    uint32_t most = 0;
    int status =
        mqx_checkpoint_file_room(&checkpoint->writer, PSC_IMAGE, MQX_RING_RECORD_MAX, &to, &most);
    if (status == MQX_OK) {
        mqx_checkpoint_file_took(&checkpoint->writer, 1,
                                 mqx_encode_chunk(to, head, chunk, piece, length));
    }
    return status;
}

static int write_pieces(struct checkpoint *checkpoint, struct mqx_record_head head, uint64_t total,
                        struct ps_chunked *out)
{
    int status = MQX_OK;
    head.type = PS_REC_CHUNK;
    *out = (struct ps_chunked){.total = total};
    for (uint64_t at = 0; at < total && status == MQX_OK; at += IMAGE_PIECE) {
        const uint64_t left = total - at;
        const struct ps_chunk chunk = {.offset = at, .total = total, .number = out->count};
        status = add_image_record(checkpoint, &head, &chunk, checkpoint->body + at,
                                  left < IMAGE_PIECE ? (uint32_t)left : IMAGE_PIECE);
        out->count += 1;
    }
    return status;
}

static int make_body_room(struct checkpoint *checkpoint, uint64_t length)
{
    if (checkpoint->body == NULL || length > checkpoint->body_capacity) {
        unsigned char *body = realloc(checkpoint->body, length + 1);
        if (body == NULL) {
            return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a message of %" PRIu64
                            " bytes", length);
        }
        checkpoint->body = body;
        checkpoint->body_capacity = length;
    }
    return MQX_OK;
}

static int write_image_message(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation,
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
    int status = make_body_room(checkpoint, message->length);
    if (status == MQX_OK) {
        status = mqx_queue_read_body(&checkpoint->store->region, message, &descriptor, &ext,
                                     checkpoint->body, message->length);
    }
    const bool pieces = message->length > PS_INLINE_BODY_MAX;
    if (status == MQX_OK && pieces) {
        status = write_pieces(checkpoint, head, message->length, &chunked);
    }
    if (status == MQX_OK) {
        status =
            mqx_checkpoint_file_room(&checkpoint->writer, PSC_IMAGE, MQX_RING_RECORD_MAX, &to, &most);
    }
    if (status == MQX_OK) {
        descriptor.backout_count = message->backout_count;
        mqx_checkpoint_file_took(
            &checkpoint->writer, 1,
            mqx_encode_put(to, &head, &descriptor, descriptor.has_ext ? &ext : NULL,
                           pieces ? &chunked : NULL, checkpoint->body, pieces ? 0 : message->length));
        checkpoint->images += 1;
    }
    return status;
}

static int write_images(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    int status = MQX_OK;
    uint32_t found = mqx_queue_next_image(checkpoint->store, slot, &cursor);
    while (found != 0 && status == MQX_OK) { /* the cursor moves */
        const struct mqx_message *message = mqx_message(&checkpoint->store->region, found);
        mqx_check(message != NULL);
        status = write_image_message(checkpoint, slot, generation, message);
        found = mqx_queue_next_image(checkpoint->store, slot, &cursor);
    }
    return status;
}

static int count_images(struct checkpoint *checkpoint, uint32_t slot, uint32_t generation)
{
    struct mqx_cursor cursor = {0};
    (void)generation;
    checkpoint->images += mqx_queue_next_image(checkpoint->store, slot, &cursor) != 0;
    return MQX_OK;
}

/* ---- the end ---- */

static void fill_header(const struct checkpoint *checkpoint, struct psc_header *out)
{
    const struct mqx_store *store = checkpoint->store;
    struct mqx_journal *journal = store->region.journal;
    const bool clean = checkpoint->mode != MQX_CHECKPOINT_FUZZY;
    uint64_t oldest = checkpoint->begin_segment;
    for (uint32_t i = 0; i < checkpoint->segment_count; i++) {
        const struct located_segment *located = &checkpoint->segments[i];
        if (checkpoint->live[located->index] != 0 && located->number < oldest) {
            oldest = located->number;
        }
    }
    *out = (struct psc_header){
        .begin_segment = checkpoint->begin_segment,
        .end_lsn = mqx_load_acquire(&journal->durable),
        .next_number = mqx_load_acquire(&journal->next_number),
        .next_unit_id = mqx_load_acquire(&journal->next_unit_id),
        .restart_epoch = journal->restart_epoch,
        .generation = journal->segment[checkpoint->segments[checkpoint->segment_count - 1].index].generation,
        .clean = clean,
        .has_image = clean && checkpoint->images > 0,
        .created_us = store->io->ops->now_us(store->io),
        .oldest_segment = oldest,
    };
    memcpy(out->qm_id, store->qm_id, sizeof out->qm_id);
}

/* Everybody learns of the new checkpoint: one ring micro-transaction, then the statistics. */
static int publish(struct checkpoint *checkpoint, uint64_t size)
{
    struct mqx_region *region = &checkpoint->store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_lock *lock = &journal->ring_lock;
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    mqx_undo_store64(region->base, lock, &journal->checkpoint_begin, checkpoint->begin_lsn);
    mqx_undo_store64(region->base, lock, &journal->checkpoint_bytes, size);
    mqx_undo_store32(region->base, lock, &journal->clean_tail,
                     checkpoint->mode != MQX_CHECKPOINT_FUZZY);
    mqx_undo_commit(lock);
    for (uint32_t i = 0; i < checkpoint->segment_count; i++) {
        const uint32_t index = checkpoint->segments[i].index;
        mqx_store_relaxed(&journal->segment[index].live_messages, checkpoint->live[index]);
        mqx_store_relaxed(&journal->segment[index].live_bytes, checkpoint->live_bytes[index]);
    }
    mqx_lock_drop(region, lock);
    return MQX_OK;
}

static int remove_other(void *arg, const char *name)
{
    struct checkpoint *checkpoint = arg;
    uint64_t begin_lsn = 0;
    if (mqx_checkpoint_file_parse(name, &begin_lsn) && begin_lsn != checkpoint->begin_lsn) {
        struct mqx_store *store = checkpoint->store;
        (void)store->io->ops->unlink(store->io, store->checkpoint_dir, name);
    }
    return 0;
}

static int finish(struct checkpoint *checkpoint)
{
    struct mqx_store *store = checkpoint->store;
    struct psc_header header;
    uint64_t size = 0;
    int status = mqx_flush_mark(store); /* so everything the checkpoint saw is durable */
    if (status != MQX_OK) {
        return status;
    }
    fill_header(checkpoint, &header);
    mqx_check(header.end_lsn >= checkpoint->begin_lsn);
    mqx_check(header.clean == 0 || !checkpoint->in_flight); /* nobody else is here */
    status = mqx_checkpoint_file_finish(&checkpoint->writer, &header, &size);
    if (status == MQX_OK) {
        status = publish(checkpoint, size);
    }
    if (status != MQX_OK) {
        return status;
    }
    /* What is left over is removed by the next checkpoint: a failure here does no harm. */
    (void)store->io->ops->list(store->io, store->checkpoint_dir, remove_other, checkpoint);
    return mqx_journal_retire(store, checkpoint->begin_lsn, checkpoint->live);
}

/* ---- checkpoint one ---- */

static int prepare(struct checkpoint *checkpoint)
{
    checkpoint->segments = calloc(MQX_SEGMENT_MAX, sizeof *checkpoint->segments);
    checkpoint->live = calloc(MQX_SEGMENT_MAX, sizeof *checkpoint->live);
    checkpoint->live_bytes = calloc(MQX_SEGMENT_MAX, sizeof *checkpoint->live_bytes);
    checkpoint->attrs = malloc(ATTRS_MAX);
    if (checkpoint->segments == NULL || checkpoint->live == NULL || checkpoint->live_bytes == NULL ||
        checkpoint->attrs == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a checkpoint");
    }
    return checkpoint->mode != MQX_CHECKPOINT_FUZZY ? mqx_flush_mark(checkpoint->store) : MQX_OK;
}

/* Nothing to do: a fuzzy one would begin where the last one did; at an orderly end nothing was
 * written since the start, which was from a clean one, and there is no image to write. */
static int is_needless(struct checkpoint *checkpoint, bool *out)
{
    const struct mqx_journal *journal = checkpoint->store->region.journal;
    *out = false;
    if (checkpoint->begin_lsn != journal->checkpoint_begin) {
        return MQX_OK;
    }
    if (checkpoint->mode == MQX_CHECKPOINT_FUZZY) {
        *out = true;
        return MQX_OK;
    }
    int status = MQX_OK;
    if (checkpoint->mode == MQX_CHECKPOINT_CLEAN) {
        status = for_objects(checkpoint, count_images);
    }
    *out = journal->clean_tail != 0 && checkpoint->images == 0 &&
           checkpoint->begin_lsn == mqx_load_acquire(&journal->durable); /* else: a prepared unit */
    checkpoint->images = 0;
    return status;
}

static int take(struct checkpoint *checkpoint)
{
    const bool paced = checkpoint->mode == MQX_CHECKPOINT_FUZZY;
    bool needless = false;
    int status = choose_begin(checkpoint);
    if (status == MQX_OK) {
        status = is_needless(checkpoint, &needless);
    }
    if (status != MQX_OK || needless) {
        return status;
    }
    if (!paced && (checkpoint->in_flight ||
                   checkpoint->tail != mqx_load_acquire(&checkpoint->store->region.journal->durable))) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR, "an orderly end with a unit of work in flight");
    }
    status =
        mqx_checkpoint_file_begin(&checkpoint->writer, checkpoint->store->io, checkpoint->store->checkpoint_dir,
                                  checkpoint->store->qm_id, checkpoint->begin_lsn, paced);
    if (status == MQX_OK) {
        status = for_objects(checkpoint, write_object);
    }
    if (status == MQX_OK) {
        status = for_objects(checkpoint, write_messages);
    }
    if (status == MQX_OK && checkpoint->mode == MQX_CHECKPOINT_CLEAN) {
        status = for_objects(checkpoint, write_images);
    }
    return status == MQX_OK ? finish(checkpoint) : status;
}

int mqx_checkpoint(struct mqx_store *store, int mode)
{
    struct checkpoint checkpoint = {.store = store, .mode = mode, .writer = {.fd = -1}};
    mqx_check(mode >= MQX_CHECKPOINT_FUZZY && mode <= MQX_CHECKPOINT_CLEAN_NO_IMAGE);
    int status = mqx_region_stopped(&store->region) != MQX_RUNNING
                     ? mqx_region_stop_reason(&store->region)
                     : prepare(&checkpoint);
    if (status == MQX_OK) {
        status = take(&checkpoint);
    }
    mqx_checkpoint_file_abandon(&checkpoint.writer);
    free(checkpoint.segments);
    free(checkpoint.live);
    free(checkpoint.live_bytes);
    free(checkpoint.attrs);
    free(checkpoint.body);
    return status;
}

int mqx_checkpoint_now(struct mqx_store *store)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    mqx_about_to_block();
    int status = mqx_lock_take(&store->region, lock);
    if (status == MQX_OK) {
        status = mqx_checkpoint(store, MQX_CHECKPOINT_FUZZY);
        mqx_lock_drop(&store->region, lock);
    }
    return status;
}

bool mqx_checkpoint_due(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t since = mqx_load_relaxed(&journal->tail) -
                           mqx_load_relaxed(&journal->checkpoint_begin);
    const uint64_t least = mqx_journal_interval(journal);
    const uint64_t twice = 2 * mqx_load_relaxed(&journal->checkpoint_bytes);
    return since >= journal->limit / 2 || since >= (least > twice ? least : twice);
}
