/*
 * orphan_region.c - see orphan_region.h. In order:
 *
 *   open_source      the file is this user's, its header is of this layout, its areas lie within it
 *   gather_undone    undo entries of every lock; from here on every read has them applied
 *   contexts         which units are lost; their lists of messages
 *   queues, stripes  how many non-persistent messages there were
 *   messages         all of them, only when a BACKOUT record may not have become durable
 */
#include "recovery/orphan_region.h"

#include "base/assert.h"
#include "base/error.h"
#include "format/record_codec.h"
#include "os/host_info.h"
#include "queue/delayed.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_BYTES = 65536 };

struct undone { /* an undo entry of a lock that was held: these bytes had this value before */
    uint64_t offset;
    uint32_t size;
    uint64_t old;
};

struct source {
    struct mqx_io *io;
    int fd;
    bool in_memory;            /* it is a memory file */
    uint64_t size;             /* of the file */
    struct mqx_header *header; /* a copy */
    struct undone *undone;     /* newest first within a lock */
    size_t undone_count;
    size_t undone_capacity;
};

/* ---- reading, with half-made changes undone ---- */

/* Puts the old values of undo entries into a copy of [offset, offset + size) of the file. */
static void apply_undone(const struct source *source, uint64_t offset, unsigned char *to,
                         size_t size)
{
    MQX_ASSERT(size >= sizeof(uint64_t)); /* so an entry's size never exceeds it */
    MQX_ASSERT(source->undone_count <= source->undone_capacity);
    for (size_t i = 0; i < source->undone_count; i++) {
        const struct undone *undone = &source->undone[i];
        if (undone->offset >= offset && undone->offset - offset <= size - undone->size) {
            memcpy(to + (undone->offset - offset), &undone->old, undone->size);
        }
    }
}

/* A copy of bytes of the file, with undo entries applied; false when it has not so many. */
static bool fetch(const struct source *source, uint64_t offset, void *to, size_t size)
{
    MQX_ASSERT(size >= sizeof(uint64_t));
    MQX_ASSERT(source->fd >= 0);
    if (offset > source->size || size > source->size - offset ||
        mqx_io_read_all(source->io, source->fd, to, size, offset) != 0) {
        return false;
    }
    apply_undone(source, offset, to, size);
    return true;
}

/* Undo entries of one lock, newest first; none when the list's length cannot be true. */
static bool note_undone(struct source *source, const struct mqx_lock *lock)
{
    const uint32_t count = lock->undo_count <= MQX_UNDO_MAX ? lock->undo_count : 0;
    MQX_ASSERT(source->undone_count <= source->undone_capacity);
    if (count > source->undone_capacity - source->undone_count) {
        const size_t capacity = source->undone_capacity + 4 * MQX_UNDO_MAX;
        void *more = realloc(source->undone, capacity * sizeof source->undone[0]);
        if (more == NULL) {
            return false;
        }
        source->undone = more;
        source->undone_capacity = capacity;
    }
    MQX_ASSERT(count <= source->undone_capacity - source->undone_count);
    for (uint32_t i = count; i > 0; i--) {
        const uint32_t size = (uint32_t)(lock->undo[i - 1].location & 15u);
        if (size == 1 || size == 2 || size == 4 || size == 8) {
            source->undone[source->undone_count++] = (struct undone){
                .offset = lock->undo[i - 1].location >> 4,
                .size = size,
                .old = lock->undo[i - 1].old};
        }
    }
    return true;
}

/* Undo lists of every lock, then the header again, with them applied. */
static bool gather_undone(struct source *source)
{
    struct mqx_header *header = source->header;
    struct mqx_stripe stripe;
    MQX_ASSERT(source->undone_count == 0); /* so the reads here are of the file as it is */
    MQX_ASSERT(header->stripe_count <= MQX_STRIPE_MAX);
    bool ok = note_undone(source, &header->catalog_lock) &&
              note_undone(source, &header->slots_lock) &&
              note_undone(source, &header->arena_lock) &&
              note_undone(source, &header->journal.ring_lock) &&
              note_undone(source, &header->journal.roll_lock) &&
              note_undone(source, &header->journal.flush_lock);
    for (uint32_t i = 0; i < header->stripe_count && ok; i++) {
        ok = fetch(source, header->stripe_offset + i * sizeof stripe, &stripe, sizeof stripe) &&
             note_undone(source, &stripe.lock);
    }
    return ok && fetch(source, 0, header, sizeof *header);
}

/* Can every area and the stripes be read from a file of this size? */
static bool header_is_sound(const struct source *source)
{
    const struct mqx_header *header = source->header;
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(source->size >= sizeof *header); /* it was read */
    bool sound = memcmp(header->magic, "PSTKREGN", sizeof header->magic) == 0 &&
                 header->layout == mqx_region_layout() && header->size == source->size &&
                 header->stripe_count <= MQX_STRIPE_MAX && header->stripe_offset < source->size;
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct mqx_area *area = &header->area[kind];
        sound = sound && area->item_size == mqx_area_item_size((enum mqx_area_kind)kind) &&
                area->offset <= source->size &&
                area->reserved_bytes <= source->size - area->offset;
    }
    return sound;
}

/* Harmless after a failed open_source(). */
static void close_source(struct source *source)
{
    MQX_ASSERT(source->fd < 0 || source->io != NULL);
    if (source->fd >= 0 && source->in_memory) {
        mqx_memory_file_close(source->io, source->fd);
    } else if (source->fd >= 0) {
        (void)source->io->ops->close(source->io, source->fd);
    }
    free(source->header);
    free(source->undone);
}

/* False: nothing to be read; close_source() in either case. */
static bool open_source(struct mqx_io *io, int dir, const char *name,
                        const struct mqx_peers *peers, struct source *source)
{
    struct mqx_io_stat facts;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(io != NULL);
    *source = (struct source){.io = io, .fd = io->ops->open(io, dir, name, MQX_IO_READ, 0)};
    if (source->fd < 0 ||
        mqx_memory_file_follow(io, &source->fd, peers, &source->in_memory) != MQX_OK ||
        io->ops->stat(io, source->fd, &facts) < 0 || !mqx_io_is_ours(io, &facts)) {
        return false;
    }
    source->size = facts.size;
    source->header = malloc(sizeof *source->header);
    return source->header != NULL && fetch(source, 0, source->header, sizeof *source->header) &&
           header_is_sound(source);
}

/* Item count that the area has allocated, at most what its memory can hold. */
static uint64_t used_items(const struct source *source, enum mqx_area_kind kind)
{
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    MQX_ASSERT(source->header->area[kind].item_size > 0); /* header_is_sound() */
    const struct mqx_area *area = &source->header->area[kind];
    return mqx_area_used_within(area, kind, area->reserved_bytes);
}

typedef void (*item_visit)(void *arg, uint32_t slot, const void *item);

/* Calls `visit` for each item of the area; false when not all of them could be read. */
static bool for_each(const struct source *source, enum mqx_area_kind kind, item_visit visit,
                     void *arg)
{
    const struct mqx_area *area = &source->header->area[kind];
    const uint64_t used = used_items(source, kind), at_once = CHUNK_BYTES / area->item_size;
    unsigned char *chunk = aligned_alloc(MQX_CACHE_LINE, CHUNK_BYTES);
    MQX_ASSERT(at_once > 0);
    MQX_ASSERT(visit != NULL);
    bool ok = chunk != NULL;
    for (uint64_t slot = 1; slot < used && ok; slot += at_once) {
        const uint64_t count = used - slot < at_once ? used - slot : at_once;
        ok = fetch(source, area->offset + slot * area->item_size, chunk,
                   (size_t)(count * area->item_size));
        for (uint64_t i = 0; i < count && ok; i++) {
            visit(arg, (uint32_t)(slot + i), chunk + i * area->item_size);
        }
    }
    free(chunk);
    return ok;
}

/* ---- units in flight ----
 *
 * The state of a context decides the fate of its unit:
 *   IDLE, FREE     no unit
 *   ACTIVE         lost
 *   BACKING_OUT    lost; some of its messages are back already, with their counts
 *   DECIDED        committed when its COMMIT record is durable, else lost
 *   PREPARED       survives when the PREPARE record is durable and no backout was decided, else
 *                  lost
 */

struct reading {
    const struct source *source;
    struct mqx_orphan_region *out;
    size_t capacity;
    bool any_count;    /* a BACKOUT record may not be durable: look at every message */
    uint64_t steps;    /* messages examined by walking lists; bounded against rings */
    uint64_t np_open;  /* non-persistent messages that do not count as discarded: put by units in
                        * flight, got by prepared ones */
};

/* Without memory the count is lost: it is worth less than the start. */
static void add_in_flight(struct reading *reading, const struct mqx_message *message,
                          uint32_t count)
{
    struct mqx_orphan_region *out = reading->out;
    MQX_ASSERT(out->in_flight_count <= reading->capacity);
    if (out->in_flight_count == reading->capacity) {
        const size_t capacity = reading->capacity == 0 ? 64 : 2 * reading->capacity;
        void *more = realloc(out->in_flight, capacity * sizeof out->in_flight[0]);
        if (more == NULL) {
            return;
        }
        out->in_flight = more;
        reading->capacity = capacity;
    }
    MQX_ASSERT(out->in_flight_count < reading->capacity);
    out->in_flight[out->in_flight_count++] = (struct mqx_in_flight){
        .number = message->number, .object = message->object, .count = count};
}

/* Had the prepared unit's resolver decided to back it out? */
static bool was_being_backed_out(const struct source *source, const struct mqx_context *unit)
{
    const struct mqx_area *area = &source->header->area[MQX_AREA_CONTEXTS];
    struct mqx_context leader;
    MQX_ASSERT(unit->state == MQX_CTX_PREPARED);
    MQX_ASSERT(area->item_size == sizeof leader);
    return unit->resolver != 0 && unit->resolver < used_items(source, MQX_AREA_CONTEXTS) &&
           fetch(source, area->offset + (uint64_t)unit->resolver * area->item_size, &leader,
                 sizeof leader) &&
           leader.state == MQX_CTX_DECIDED && leader.leads == MQX_LEADS_BACKOUT;
}

/* Is the unit of that context lost? */
static bool is_lost(const struct source *source, const struct mqx_context *context)
{
    const bool durable = context->decided_lsn <= source->header->journal.durable;
    MQX_ASSERT(context != NULL);
    MQX_ASSERT(source->header->ready != 0); /* others are not examined */
    return context->state == MQX_CTX_ACTIVE || context->state == MQX_CTX_BACKING_OUT ||
           (context->state == MQX_CTX_DECIDED && !durable) ||
           (context->state == MQX_CTX_PREPARED &&
            (!durable || was_being_backed_out(source, context)));
}

/* Non-persistent messages of a temporary queue that is logically deleted do not count as discarded
 * by the restart: they were deleted with the queue. */
static bool is_purged(const struct mqx_object *object)
{
    MQX_ASSERT(object != NULL);
    return object->state == MQX_OBJ_DELETING && mqx_object_is_temporary(object);
}

/* A copy of the message's queue; false when its slot cannot be true. */
static bool queue_of(const struct source *source, const struct mqx_message *message,
                     struct mqx_object *out)
{
    const struct mqx_area *area = &source->header->area[MQX_AREA_OBJECTS];
    MQX_ASSERT(out != NULL);
    MQX_ASSERT(area->item_size == sizeof *out);
    return message->object < used_items(source, MQX_AREA_OBJECTS) &&
           fetch(source, area->offset + (uint64_t)message->object * area->item_size, out,
                 sizeof *out);
}

/* A message of a unit that is lost. */
static void note_lost(struct reading *reading, const struct mqx_message *message, bool autocommit)
{
    MQX_ASSERT(message != NULL);
    const bool persistent = (message->flags & MQX_MSGF_PERSISTENT) != 0;
    struct mqx_object queue;
    if (message->state == MQX_MSG_GOT && persistent && !autocommit) {
        add_in_flight(reading, message, message->backout_count + 1);
    }
    if (message->state == MQX_MSG_PUT && !persistent) {
        const bool purged = queue_of(reading->source, message, &queue) && is_purged(&queue);
        reading->np_open += !purged;
    }
}

/* A message of a prepared unit that survives: what it got has an image, unless it is of a temporary
 * queue. */
static void note_prepared(struct reading *reading, const struct mqx_message *message)
{
    struct mqx_object queue;
    MQX_ASSERT(message != NULL);
    MQX_ASSERT(reading->source != NULL);
    reading->np_open += message->state == MQX_MSG_GOT &&
                        (message->flags & MQX_MSGF_PERSISTENT) == 0 &&
                        queue_of(reading->source, message, &queue) &&
                        !mqx_object_is_temporary(&queue);
}

/* Follows the context's list of messages, at most as many steps as there are messages in all. */
static void walk_unit(struct reading *reading, uint32_t owner, const struct mqx_context *context,
                      bool lost)
{
    const struct source *source = reading->source;
    const struct mqx_area *area = &source->header->area[MQX_AREA_MESSAGES];
    const uint64_t used = used_items(source, MQX_AREA_MESSAGES);
    struct mqx_message message;
    uint32_t slot = context->head;
    MQX_ASSERT(owner != 0);
    MQX_ASSERT(reading->steps <= used);
    while (slot != 0 && slot < used && reading->steps < used) {
        reading->steps++;
        if (!fetch(source, area->offset + (uint64_t)slot * area->item_size, &message,
                   sizeof message) ||
            message.unit != owner) {
            return;
        }
        if (lost) {
            note_lost(reading, &message, context->autocommit != 0);
        } else {
            note_prepared(reading, &message);
        }
        slot = message.unit_next;
    }
}

/* Counts what a lost unit had got, and what a prepared one holds. A unit that was being backed
 * out may have written a BACKOUT record that is not durable. */
static void visit_context(void *arg, uint32_t slot, const void *item)
{
    struct reading *reading = arg;
    const struct mqx_context *context = item;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT((uintptr_t)item % MQX_CACHE_LINE == 0);
    const bool lost = is_lost(reading->source, context);
    if (lost || context->state == MQX_CTX_PREPARED) {
        reading->any_count = reading->any_count || context->state == MQX_CTX_BACKING_OUT;
        walk_unit(reading, slot, context, lost);
    }
}

/* Every message with a count, when a BACKOUT record may be lost. */
static void visit_message(void *arg, uint32_t slot, const void *item)
{
    const struct mqx_message *message = item;
    const bool present = mqx_delayed_or_available(message) || message->state == MQX_MSG_LOCKED ||
                         message->state == MQX_MSG_GOT;
    (void)slot;
    MQX_ASSERT(arg != NULL);
    MQX_ASSERT((uintptr_t)item % MQX_CACHE_LINE == 0);
    if (present && (message->flags & MQX_MSGF_PERSISTENT) != 0 && message->backout_count > 0) {
        add_in_flight(arg, message, message->backout_count);
    }
}

/* ---- BACKOUT records that are only in the ring ----
 *
 * A backout that a process finished has raised the counts in the region; its BACKOUT record is not
 * flushed by itself. Records that are not durable are in the ring, so it is searched for one.
 */

struct ring {
    const unsigned char *bytes; /* a copy */
    uint64_t size;              /* power of two */
};

/* Is there a record of that type among those in [lsn, end)? True, too, when they make no sense. */
static bool has_record(const struct ring *ring, uint64_t lsn, uint64_t end, uint16_t type)
{
    MQX_ASSERT(ring->bytes != NULL);
    MQX_ASSERT((ring->size & (ring->size - 1)) == 0); /* counts_may_be_lost() */
    if (end < lsn || end - lsn > ring->size) {
        return true;
    }
    while (lsn < end) { /* 8-byte aligned: the first 8 bytes do not lie across the ring's end */
        struct psj_record head = {0};
        memcpy(&head, ring->bytes + (lsn & (ring->size - 1)), offsetof(struct psj_record, unit_id));
        const uint32_t length = mqx_record_length(&head);
        if (length < PS_RECORD_MIN || length > end - lsn || mqx_record_type(&head) == type) {
            return true;
        }
        lsn += length;
    }
    return false;
}

/* Looks at every batch that may not be durable: the sealed ones and the open one. */
static bool ring_has_backout(const struct ring *ring, const struct mqx_journal *journal)
{
    const uint64_t head = sizeof(struct psj_batch);
    MQX_ASSERT(journal->tail > journal->durable);
    MQX_ASSERT(ring->size == journal->ring_size);
    for (uint32_t i = 0; i < journal->sealed_count && i < MQX_SEALED_MAX; i++) {
        const struct mqx_sealed *sealed =
            &journal->sealed[(journal->sealed_first + i) % MQX_SEALED_MAX];
        const uint64_t end = sealed->start + sealed->length;
        if (end > journal->durable &&
            has_record(ring, sealed->start + head, end, PS_REC_BACKOUT)) {
            return true;
        }
    }
    return journal->tail > journal->batch_start + head &&
           has_record(ring, journal->batch_start + head, journal->tail, PS_REC_BACKOUT);
}

/* May a BackoutCount be known to the region alone, because its record did not get to the medium? */
static bool counts_may_be_lost(const struct source *source)
{
    enum { RING_MAX = 64 << 20 };
    const struct mqx_journal *journal = &source->header->journal;
    const uint64_t size = journal->ring_size;
    MQX_ASSERT(source->header != NULL);
    if (journal->tail <= journal->durable + sizeof(struct psj_batch) ||
        size < 4 * (uint64_t)MQX_RING_RECORD_MAX || size > RING_MAX || (size & (size - 1)) != 0) {
        return false;
    }
    unsigned char *bytes = malloc(size);
    const struct ring ring = {bytes, size};
    const bool found = bytes != NULL && fetch(source, journal->ring_offset, bytes, size) &&
                       ring_has_backout(&ring, journal);
    free(bytes);
    return found;
}

/* ---- non-persistent messages ----
 *
 * Only their number is wanted, for a warning; queues and stripes keep counts, so no message is
 * examined.
 */

/* Adds up the messages of all queues. */
static void visit_object(void *arg, uint32_t slot, const void *item)
{
    const struct mqx_object *object = item;
    uint64_t *present = arg;
    (void)slot;
    MQX_ASSERT(present != NULL);
    MQX_ASSERT((uintptr_t)item % MQX_CACHE_LINE == 0);
    *present += object->state != MQX_OBJ_FREE && !is_purged(object) ? object->present : 0;
}

/* Non-persistent messages: all, less the persistent ones of the stripes and those of open units. */
static uint64_t count_np(const struct source *source, uint64_t np_open)
{
    struct mqx_stripe stripe;
    uint64_t present = 0, others = np_open;
    MQX_ASSERT(source->header->stripe_count <= MQX_STRIPE_MAX);
    bool ok = for_each(source, MQX_AREA_OBJECTS, visit_object, &present);
    MQX_ASSERT(source->header->stripe_offset < source->size);
    for (uint32_t i = 0; i < source->header->stripe_count && ok; i++) {
        ok = fetch(source, source->header->stripe_offset + i * sizeof stripe, &stripe,
                   sizeof stripe);
        others += ok ? stripe.persistent_present : 0;
    }
    return ok && present > others ? present - others : 0;
}

/* ---- the whole ---- */

/* For qsort: ascending by number, the highest count first. */
static int by_number(const void *a, const void *b)
{
    const struct mqx_in_flight *left = a, *right = b;
    MQX_ASSERT(left != NULL);
    MQX_ASSERT(right != NULL);
    if (left->number != right->number) {
        return left->number < right->number ? -1 : 1;
    }
    return left->count < right->count ? 1 : left->count > right->count ? -1 : 0;
}

/* Sorted by number, one entry a message: the highest count. */
static void make_unique(struct mqx_orphan_region *out)
{
    size_t kept = 0;
    MQX_ASSERT(out->in_flight_count == 0 || out->in_flight != NULL);
    if (out->in_flight_count != 0) {
        qsort(out->in_flight, out->in_flight_count, sizeof out->in_flight[0], by_number);
    }
    for (size_t i = 0; i < out->in_flight_count; i++) {
        if (kept == 0 || out->in_flight[kept - 1].number != out->in_flight[i].number) {
            out->in_flight[kept++] = out->in_flight[i];
        }
    }
    MQX_ASSERT(kept <= out->in_flight_count);
    out->in_flight_count = kept;
}

/* The whole of it, from a region that is complete and ready. */
static void read_source(const struct source *source, struct mqx_orphan_region *out)
{
    struct reading reading = {.source = source, .out = out};
    MQX_ASSERT(source->header->ready != 0);
    MQX_ASSERT(out->in_flight == NULL);
    out->read = for_each(source, MQX_AREA_CONTEXTS, visit_context, &reading);
    out->np_discarded = count_np(source, reading.np_open);
    if (reading.any_count || counts_may_be_lost(source)) {
        /* what can be read of them is better than nothing */
        mqx_ignore(!for_each(source, MQX_AREA_MESSAGES, visit_message, &reading));
    }
    make_unique(out);
}

/* The header is verified again after the undo entries were applied, because they may change it. */
void mqx_orphan_region_read(struct mqx_io *io, int dir, const char *name,
                            const uint8_t incarnation[16], const uint8_t qm_id[16],
                            struct mqx_orphan_region *out)
{
    static const struct mqx_peers nobody;
    struct source source;
    MQX_ASSERT(incarnation != NULL);
    MQX_ASSERT(qm_id != NULL);
    memset(out, 0, sizeof *out);
    if (open_source(io, dir, name, &nobody, &source) &&
        memcmp(source.header->incarnation, incarnation, 16) == 0 &&
        memcmp(source.header->qm_id, qm_id, 16) == 0) {
        /* A start that was not finished may have met a failed flush, or followed one. */
        out->broken = source.header->stopped == MQX_STOP_BROKEN || source.header->ready == 0;
        if (source.header->ready != 0 && gather_undone(&source) && header_is_sound(&source)) {
            read_source(&source, out);
        }
    }
    out->broken = out->broken || source.in_memory;
    close_source(&source);
}

/* Empty afterwards. */
void mqx_orphan_region_free(struct mqx_orphan_region *orphan)
{
    MQX_ASSERT(orphan->in_flight_count == 0 || orphan->in_flight != NULL);
    free(orphan->in_flight);
    memset(orphan, 0, sizeof *orphan);
}

bool mqx_orphan_region_processes(struct mqx_io *io, int dir, const char *name,
                                 const struct mqx_peers *peers, const uint8_t incarnation[16],
                                 struct mqx_process *out)
{
    struct source source;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(out != NULL);
    const bool found = open_source(io, dir, name, peers, &source) &&
                       memcmp(source.header->incarnation, incarnation, 16) == 0;
    if (found) {
        memcpy(out, source.header->process, MQX_PROCESS_MAX * sizeof *out);
    }
    close_source(&source);
    return found;
}

int32_t mqx_orphan_region_live_pid(struct mqx_io *io, int dir, const char *name)
{
    struct mqx_host_info here;
    struct source source;
    int32_t living = 0;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(dir >= 0);
    if (open_source(io, dir, name, NULL, &source) && mqx_host_info_read(&here) == MQX_OK &&
        memcmp(source.header->boot_id, here.boot_id, sizeof here.boot_id) == 0) {
        for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && living == 0; slot++) {
            const struct mqx_process *process = &source.header->process[slot];
            living = mqx_process_may_live(process, here.pid_namespace) ? process->pid : 0;
        }
    }
    if (source.fd < 0 && source.in_memory) {
        living = mqx_memory_file_hidden_pid(io, dir, name);
    }
    close_source(&source);
    return living;
}
