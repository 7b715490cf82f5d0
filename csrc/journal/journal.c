/*
 * journal.c - appending to the ring, leaving a segment for the next one, making and retiring
 * segment files. See journal.h for terms and invariants.
 *
 * A roll, step by step, with what whoever comes after a death finds:
 *   1. An append that does not fit seals the open batch and closes the segment (ring lock).
 *   2. Everything sealed is flushed (group_commit.c). The segment is now durable up to its end_lsn.
 *   3. Under the roll lock a spare gets its header page, written with data sync while it still has
 *      the spare's name. After a death: the same spare gets the same header again.
 *   4. It is renamed and the directory flushed. After a death: the spare's name is gone, the file
 *      is found under the next segment's name and taken as it is.
 *   5. One ring micro-transaction makes it the active segment.
 *
 * A retirement with linear logging, under the roll lock:
 *   1. The file moves to the archive, in one step of the file system: it is in one place or in the
 *      other, whole. After a death before the table knows: the next retirement finds the name gone
 *      and goes on with step 2. After a power cut that takes the move back: the restart finds the
 *      segment where it was, and the checkpoint after it retires it again.
 *   2. Archive and journal directory are flushed, the archive first: the name appears on the
 *      medium before it is seen to be gone.
 *   3. One ring micro-transaction frees the table's entry.
 */
#include "journal/journal.h"

#include "base/error.h"
#include "journal/journal_files.h"
#include "format/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARES_KEPT_MIN = 2,   /* full-size files that retiring keeps */
    SPARES_KEPT_MAX = 8,
    RESERVE_MIN = 65536,
    RESERVE_MESSAGE = 128, /* bytes of journal kept for a persistent message's removal */
    RESERVE_CONTEXT = 4096,
};

#define SET32(at, value) mqx_undo_store32(region->base, &journal->ring_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &journal->ring_lock, (at), (value))

/* ---- attaching ---- */

int mqx_journal_attach(struct mqx_store *store)
{
    if (store->files != NULL) {
        return MQX_OK;
    }
    struct mqx_files *files = calloc(1, sizeof *files);
    if (files == NULL || pthread_mutex_init(&files->mutex, NULL) != 0) {
        free(files);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the journal's file cache");
    }
    files->write_fd = -1;
    store->files = files;
    return MQX_OK;
}

void mqx_journal_detach(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    if (files == NULL) {
        return;
    }
    for (uint32_t i = 0; i < MQX_MAPPED_MAX; i++) {
        if (files->mapped[i].at != NULL) {
            (void)store->io->ops->unmap(store->io, (void *)(uintptr_t)files->mapped[i].at,
                                        files->mapped[i].size);
        }
    }
    if (files->write_fd >= 0) {
        (void)store->io->ops->close(store->io, files->write_fd);
    }
    (void)pthread_mutex_destroy(&files->mutex);
    free(files);
    store->files = NULL;
}

/* ---- small questions ---- */

static struct mqx_segment *active_segment(struct mqx_journal *journal)
{
    const uint32_t active = journal->active;
    mqx_check(active >= 1 && active <= MQX_SEGMENT_MAX);
    return &journal->segment[active - 1];
}

static uint64_t smallest_segment(const struct mqx_journal *journal)
{
    return journal->segment_size < journal->first_segment_size ? journal->segment_size
                                                               : journal->first_segment_size;
}

uint64_t mqx_journal_reserve_for(const struct mqx_region *region, uint64_t messages,
                                 uint64_t contexts)
{
    const uint64_t quarter = smallest_segment(region->journal) / 4;
    const uint64_t least = quarter < RESERVE_MIN ? quarter : RESERVE_MIN;
    const uint64_t wanted = messages * RESERVE_MESSAGE + contexts * RESERVE_CONTEXT;
    return wanted > least ? wanted : least;
}

uint64_t mqx_journal_unit_id(struct mqx_store *store)
{
    return mqx_fetch_add(&store->region.journal->next_unit_id, 1);
}

int mqx_journal_segment_of(const struct mqx_region *region, uint64_t lsn)
{
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &region->journal->segment[i];
        if ((segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL) &&
            lsn >= segment->base_lsn && lsn - segment->base_lsn < segment->size) {
            return i;
        }
    }
    return -1;
}

/* Bytes of all spares (ring lock held). */
static uint64_t spare_bytes(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    const struct mqx_journal *journal = store->region.journal;
    if (files->seen_generation != journal->next_generation ||
        files->seen_used_bytes != journal->used_bytes) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
            sum += journal->segment[i].state == MQX_SEG_SPARE ? journal->segment[i].size : 0;
        }
        files->spare_bytes = sum;
        files->seen_generation = journal->next_generation;
        files->seen_used_bytes = journal->used_bytes;
    }
    return files->spare_bytes;
}

/* Bytes that can be appended without asking the disk for more (ring lock held). */
static uint64_t room_at_hand(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    const struct mqx_segment *active = active_segment(journal);
    const uint64_t end = active->base_lsn + active->size;
    const uint64_t rest =
        active->state == MQX_SEG_ACTIVE && journal->tail < end ? end - journal->tail : 0;
    return rest + spare_bytes(store);
}

/* ---- the ring (ring lock held) ---- */

static void ring_copy(const struct mqx_region *region, uint64_t lsn, const unsigned char *from,
                      uint32_t length)
{
    const uint64_t size = region->journal->ring_size;
    const uint64_t until_wrap = size - (lsn & (size - 1));
    const uint32_t first = length < until_wrap ? length : (uint32_t)until_wrap;
    memcpy(mqx_ring_at(region, lsn), from, first);
    memcpy(mqx_ring_at(region, lsn + first), from + first, length - first);
}

static bool ring_has_room(const struct mqx_journal *journal, uint64_t end)
{
    return mqx_round_up(end, MQX_PAGE_SIZE) - journal->written <= journal->ring_size;
}

/* Queues what lies in the open batch and opens the next one behind it. */
static int queue_batch(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    mqx_check(mqx_lock_held(region, &journal->ring_lock));
    if (journal->sealed_count >= MQX_SEALED_MAX) {
        return MQX_NEED_RING;
    }
    const uint64_t end = mqx_round_up(journal->tail, MQX_PAGE_SIZE);
    memset(mqx_ring_at(region, journal->tail), 0, end - journal->tail); /* within one page */
    struct mqx_sealed *sealed =
        &journal->sealed[(journal->sealed_first + journal->sealed_count) % MQX_SEALED_MAX];
    SET64(&sealed->start, journal->batch_start);
    SET32(&sealed->length, (uint32_t)(journal->tail - journal->batch_start));
    SET32(&sealed->record_count, journal->batch_records);
    SET32(&sealed->segment, journal->active - 1);
    SET32(&journal->sealed_count, journal->sealed_count + 1);
    SET64(&journal->batch_start, end);
    SET64(&journal->tail, end + sizeof(struct psj_batch));
    SET32(&journal->batch_records, 0);
    return MQX_OK;
}

int mqx_journal_seal(struct mqx_store *store)
{
    return store->region.journal->batch_records == 0 ? MQX_OK : queue_batch(store);
}

int mqx_journal_seal_mark(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    const struct mqx_segment *active = active_segment(journal);
    mqx_check(journal->batch_records == 0);
    if (active->state != MQX_SEG_ACTIVE || journal->tail > active->base_lsn + active->size) {
        return MQX_NEED_SEGMENT;
    }
    return ring_has_room(journal, journal->tail) ? queue_batch(store) : MQX_NEED_RING;
}

/* Nothing more goes into the active segment. Commits. */
static int close_segment(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *active = active_segment(journal);
    int status = mqx_journal_seal(store);
    if (status == MQX_OK) {
        SET64(&active->end_lsn, journal->batch_start);
        SET32(&active->state, MQX_SEG_FULL);
        mqx_undo_commit(&journal->ring_lock);
        status = MQX_NEED_SEGMENT;
    }
    return status;
}

/* ---- appending ---- */

/* Room for so many bytes at `tail`? *out_closes: it is the segment that has none. */
static int look_for_room(struct mqx_store *store, uint32_t length, uint32_t flags,
                         bool *out_closes)
{
    struct mqx_journal *journal = store->region.journal;
    const struct mqx_segment *active = active_segment(journal);

    *out_closes = false;
    if ((flags & MQX_APPEND_PUT) != 0 &&
        room_at_hand(store) < length + mqx_load_relaxed(&journal->reserve_bytes)) {
        return MQRC_STORAGE_MEDIUM_FULL;
    }
    if (active->state != MQX_SEG_ACTIVE) {
        return MQX_NEED_SEGMENT;
    }
    if (journal->tail + length > active->base_lsn + active->size) {
        *out_closes = true;
        return MQX_NEED_SEGMENT;
    }
    return ring_has_room(journal, journal->tail + length) ? MQX_OK : MQX_NEED_RING;
}

/* The same for a record; closes the segment that has no room for it. */
static int place(struct mqx_store *store, uint32_t length, uint32_t flags)
{
    bool closes;
    const int status = look_for_room(store, length, flags, &closes);
    return closes ? close_segment(store) : status;
}

static void note_in_context(struct mqx_region *region, const struct mqx_append *append)
{
    struct mqx_journal *journal = region->journal;
    struct mqx_context *context = mqx_context(region, append->context);
    const struct psj_record *record = (const void *)append->record;
    mqx_check(context != NULL);

    if (context->unit_id == 0 && record->unit_id != 0) {
        SET64(&context->unit_id, record->unit_id);
    }
    if (context->first_lsn == 0) {
        SET64(&context->first_lsn, append->lsn);
    }
    if ((append->flags & MQX_APPEND_DECIDES) != 0) {
        SET64(&context->decided_lsn, append->end_lsn);
        SET32(&context->state, MQX_CTX_DECIDED);
    } else if ((append->flags & MQX_APPEND_PREPARES) != 0) {
        SET64(&context->decided_lsn, append->end_lsn);
        SET32(&context->process, 0);
        SET32(&context->state, MQX_CTX_PREPARED);
    } else {
        SET32(&context->record_count, context->record_count + 1);
        SET32(&context->running_crc, mqx_running_crc(context->running_crc, record));
    }
}

static void note_in_index(struct mqx_region *region, const struct mqx_append *append)
{
    struct mqx_journal *journal = region->journal;
    if (append->message != 0) {
        struct mqx_message *message = mqx_message(region, append->message);
        mqx_check(message != NULL);
        SET64(&message->lsn, append->lsn);
        SET32(&message->record_length, append->length);
    }
    if (append->object != 0) {
        struct mqx_object *object = mqx_object(region, append->object);
        mqx_check(object != NULL);
        SET32(&object->state, append->object_state);
    }
}

/* Can a record of this length be in a segment at all? */
static int check_length(const struct mqx_journal *journal, uint32_t length)
{
    mqx_check(length >= sizeof(struct psj_record) && length % 8 == 0);
    mqx_check(length <= MQX_RING_RECORD_MAX);
    if (length > smallest_segment(journal) - MQX_PAGE_SIZE - sizeof(struct psj_batch)) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "a record of %u bytes does not fit into a segment",
                        length);
    }
    return MQX_OK;
}

int mqx_journal_try_append(struct mqx_store *store, struct mqx_append *append)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = check_length(journal, append->length);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_region_stopped(region) != MQX_RUNNING
                 ? mqx_region_stop_reason(region)
                 : place(store, append->length, append->flags);
    if (status == MQX_OK) {
        append->lsn = journal->tail;
        append->end_lsn = journal->tail + append->length;
        ring_copy(region, append->lsn, append->record, append->length);
        mqx_order();
        SET64(&journal->tail, append->end_lsn);
        SET32(&journal->batch_records, journal->batch_records + 1);
        if (append->context != 0) {
            note_in_context(region, append);
        }
        note_in_index(region, append);
        mqx_undo_commit(&journal->ring_lock);
    } else {
        mqx_undo_rollback(region, &journal->ring_lock);
    }
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}

/* ---- appending many ---- */

/* How many of the run's next records go in together; one when not even that fits. */
static uint32_t fitting(struct mqx_store *store, const struct mqx_run *run, uint32_t *out_bytes)
{
    uint32_t count = run->count - run->done;
    uint32_t bytes = 0;
    bool closes;
    for (uint32_t i = 0; i < count; i++) {
        bytes += run->length[run->done + i];
    }
    while (count > 1 && look_for_room(store, bytes, run->flags, &closes) != MQX_OK) {
        count -= 1;
        bytes -= run->length[run->done + count];
    }
    *out_bytes = bytes;
    return count;
}

/* One micro-transaction: `count` records are in the ring, context and messages know of them. */
static void put_in_ring(struct mqx_store *store, struct mqx_run *run, uint32_t count,
                        uint32_t bytes)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_context *context = mqx_context(region, run->context);
    const unsigned char *record = run->records + run->done_bytes;
    const uint64_t first = journal->tail;
    uint32_t crcs[MQX_RUN_MAX];
    mqx_check(context != NULL && count <= MQX_RUN_MAX);

    ring_copy(region, first, record, bytes);
    mqx_order();
    if (context->unit_id == 0) {
        SET64(&context->unit_id, ((const struct psj_record *)(const void *)record)->unit_id);
    }
    if (context->first_lsn == 0) {
        SET64(&context->first_lsn, first);
    }
    for (uint32_t i = run->done, at = 0; i < run->done + count; at += run->length[i++]) {
        struct mqx_message *message = mqx_message(region, run->message[i]);
        crcs[i - run->done] = ((const struct psj_record *)(const void *)(record + at))->crc;
        if (message != NULL) {
            SET64(&message->lsn, first + at);
            SET32(&message->record_length, run->length[i]);
        }
    }
    SET32(&context->record_count, context->record_count + count);
    SET32(&context->running_crc, mqx_running_crcs(context->running_crc, crcs, count));
    SET32(&journal->batch_records, journal->batch_records + count);
    SET64(&journal->tail, first + bytes);
    mqx_undo_commit(&journal->ring_lock);
    run->done += count;
    run->done_bytes += bytes;
}

int mqx_journal_try_run(struct mqx_store *store, struct mqx_run *run)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = MQX_OK;
    mqx_check(run->count <= MQX_RUN_MAX && run->context != 0);
    for (uint32_t i = run->done; i < run->count && status == MQX_OK; i++) {
        status = check_length(journal, run->length[i]);
    }
    if (status == MQX_OK) {
        status = mqx_lock_take(region, &journal->ring_lock);
    }
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_region_stopped(region) != MQX_RUNNING) {
        status = mqx_region_stop_reason(region);
    }
    while (status == MQX_OK && run->done < run->count) {
        uint32_t bytes = 0;
        const uint32_t count = fitting(store, run, &bytes);
        status = place(store, bytes, run->flags);
        if (status == MQX_OK) {
            put_in_ring(store, run, count, bytes);
        }
    }
    mqx_undo_rollback(region, &journal->ring_lock); /* of a segment that could not be closed */
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}

uint64_t mqx_journal_closed_end(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t end = 0;
    if (mqx_lock_take(region, &journal->ring_lock) == MQX_OK) {
        const struct mqx_segment *active = active_segment(journal);
        end = active->state == MQX_SEG_FULL ? active->end_lsn : 0;
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return end;
}

/* ---- spares ---- */

static int free_entry(const struct mqx_journal *journal)
{
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        if (journal->segment[i].state == MQX_SEG_FREE) {
            return i;
        }
    }
    return -1;
}

/* The spare that is used next: the oldest; -1 when there is none. */
static int next_spare(const struct mqx_journal *journal)
{
    int found = -1;
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->state == MQX_SEG_SPARE &&
            (found < 0 || segment->number < journal->segment[found].number)) {
            found = i;
        }
    }
    return found;
}

uint32_t mqx_journal_spare_count(struct mqx_store *store)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        count += store->region.journal->segment[i].state == MQX_SEG_SPARE;
    }
    return count;
}

/* Roll lock held: the file spare-<number>.psj exists and is whole. */
static int register_spare(struct mqx_store *store, uint64_t number, uint64_t size)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    const int index = free_entry(journal);
    if (index < 0) {
        return mqx_fail(MQRC_STORAGE_MEDIUM_FULL, "the journal has %d segment files, the most",
                        MQX_SEGMENT_MAX);
    }
    int status = mqx_lock_take(region, &journal->ring_lock);
    if (status == MQX_OK) {
        struct mqx_segment *segment = &journal->segment[index];
        SET64(&segment->number, number);
        SET64(&segment->size, size);
        SET32(&segment->state, MQX_SEG_SPARE);
        SET64(&journal->used_bytes, journal->used_bytes + size);
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return status;
}

/* Unit ids are unique in the store, so they name spares without a lock. */
static int create_spare(struct mqx_store *store, uint64_t size, uint64_t *out_number)
{
    *out_number = mqx_journal_unit_id(store);
    return mqx_spare_create(store->io, store->journal_dir, *out_number, size);
}

static void remove_spare(struct mqx_store *store, uint64_t number)
{
    char name[MQX_FILE_NAME_SIZE];
    mqx_file_name(name, MQX_FILE_SPARE, number);
    (void)store->io->ops->unlink(store->io, store->journal_dir, name);
}

static bool limit_allows(const struct mqx_journal *journal, uint64_t size)
{
    return size <= journal->limit && journal->used_bytes <= journal->limit - size;
}

static MQX_COLD int limit_reached(const struct mqx_journal *journal)
{
    return mqx_fail(MQRC_STORAGE_MEDIUM_FULL,
                    "the journal's files have %" PRIu64 " bytes, %" PRIu64 " are allowed",
                    journal->used_bytes, journal->limit);
}

/* The file is made without a lock, since that takes long; then it is entered into the table. */
int mqx_journal_make_spare(struct mqx_store *store, bool full_size)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t number = 0;
    uint64_t size = full_size ? journal->segment_size : journal->first_segment_size;
    if (!limit_allows(journal, size)) {
        size = smallest_segment(journal);
    }
    if (!limit_allows(journal, size)) {
        return limit_reached(journal);
    }
    int status = create_spare(store, size, &number);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &journal->roll_lock);
    if (status == MQX_OK) {
        status = limit_allows(journal, size) ? register_spare(store, number, size)
                                             : limit_reached(journal);
        mqx_lock_drop(region, &journal->roll_lock);
    }
    if (status != MQX_OK) {
        remove_spare(store, number);
    }
    return status;
}

int mqx_journal_make_room(struct mqx_store *store, uint32_t length)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t number = 0;
    int status = mqx_lock_take(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &journal->ring_lock);
    if (status == MQX_OK) {
        const uint64_t wanted = length + mqx_load_relaxed(&journal->reserve_bytes);
        const bool enough = room_at_hand(store) >= wanted;
        mqx_lock_drop(region, &journal->ring_lock);
        const bool large = wanted > journal->first_segment_size &&
                           limit_allows(journal, journal->segment_size);
        const uint64_t size = large ? journal->segment_size : journal->first_segment_size;
        if (!enough && !limit_allows(journal, size)) {
            status = limit_reached(journal);
        } else if (!enough) {
            status = create_spare(store, size, &number);
            if (status == MQX_OK) {
                status = register_spare(store, number, size);
            }
        }
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

bool mqx_journal_spare_wanted(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    if (mqx_lock_take(region, &journal->ring_lock) != MQX_OK) {
        return false;
    }
    const bool wanted = (spare_bytes(store) == 0 ||
                         room_at_hand(store) < 2 * mqx_load_relaxed(&journal->reserve_bytes)) &&
                        limit_allows(journal, smallest_segment(journal));
    mqx_lock_drop(region, &journal->ring_lock);
    return wanted;
}

/* ---- rolling (roll lock held) ---- */

static void fill_header(struct mqx_store *store, const struct mqx_segment *closed, uint64_t size,
                        struct psj_segment *out)
{
    const struct mqx_journal *journal = store->region.journal;
    *out = (struct psj_segment){
        .segment_no = journal->next_segment_no,
        .generation = journal->next_generation,
        .restart_epoch = journal->restart_epoch,
        .base_lsn = closed->base_lsn + closed->size,
        .size = size,
        .prev_end_lsn = closed->end_lsn,
        .created_us = store->io->ops->now_us(store->io),
    };
    memcpy(out->qm_id, store->qm_id, sizeof out->qm_id);
    mqx_segment_seal(out);
}

/* A failed write or flush on the way into a segment leaves its content unknown: the store stops. */
static MQX_COLD int roll_failed(struct mqx_store *store, int err, const char *what)
{
    mqx_region_stop(&store->region, MQX_STOP_BROKEN);
    return mqx_fail(MQRC_CONNECTION_BROKEN,
                    "%s failed: %s; the queue manager has stopped, the outcome of open calls is "
                    "unknown until restart", what, strerror(-err));
}

/* Steps 3 and 4: header, name. */
static int put_in_place(struct mqx_store *store, uint64_t spare, const struct psj_segment *header)
{
    struct mqx_io *io = store->io;
    char from[MQX_FILE_NAME_SIZE], to[MQX_FILE_NAME_SIZE];
    mqx_file_name(from, MQX_FILE_SPARE, spare);
    mqx_file_name(to, MQX_FILE_SEGMENT, header->segment_no);

    bool renamed = false;
    int fd = io->ops->open(io, store->journal_dir, from, MQX_IO_WRITE, 0);
    if (fd == -ENOENT) {
        renamed = true;
        fd = io->ops->open(io, store->journal_dir, to, MQX_IO_WRITE, 0);
    }
    if (fd < 0) {
        return mqx_io_reason(fd, "opening a spare segment");
    }
    int err = mqx_io_write_all(io, fd, header, sizeof *header, 0, MQX_IO_DSYNC);
    const int closed = io->ops->close(io, fd);
    if (err != 0 || closed != 0) {
        return roll_failed(store, err != 0 ? err : closed, "writing a segment header");
    }
    if (!renamed) {
        err = io->ops->rename(io, store->journal_dir, from, to);
        if (err != 0) {
            return mqx_io_reason(err, "renaming a spare segment");
        }
    }
    err = io->ops->sync_dir(io, store->journal_dir);
    return err == 0 ? MQX_OK : roll_failed(store, err, "flushing the journal directory");
}

/* Step 5. */
static int make_active(struct mqx_store *store, int index, const struct psj_segment *header)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *segment = &journal->segment[index];
    const uint64_t first_batch = header->base_lsn + MQX_PAGE_SIZE;
    int status = mqx_lock_take(region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    mqx_check(journal->sealed_count == 0 ||
              journal->written <= mqx_load_acquire(&journal->durable));
    SET64(&segment->number, header->segment_no);
    SET64(&segment->generation, header->generation);
    SET64(&segment->base_lsn, header->base_lsn);
    SET64(&segment->end_lsn, 0);
    SET64(&segment->live_bytes, 0);
    SET32(&segment->live_messages, 0);
    SET64(&segment->prev_end_lsn, header->prev_end_lsn);
    SET32(&segment->state, MQX_SEG_ACTIVE);
    SET64(&journal->next_segment_no, header->segment_no + 1);
    SET64(&journal->next_generation, header->generation + 1);
    SET32(&journal->active, (uint32_t)index + 1);
    SET64(&journal->batch_start, first_batch);
    SET64(&journal->tail, first_batch + sizeof(struct psj_batch));
    SET32(&journal->batch_records, 0);
    SET64(&journal->written, first_batch);
    SET32(&journal->epoch_written, 1);
    mqx_undo_commit(&journal->ring_lock);
    mqx_lock_drop(region, &journal->ring_lock);
    return MQX_OK;
}

/* Everybody's next record needs a segment: when no spare is ready a small one is made at once, the
 * limit notwithstanding, because only records that may use the reserve come this far. */
static int roll_locked(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    struct psj_segment header;
    const struct mqx_segment closed = *active_segment(journal);
    int spare = next_spare(journal);
    if (spare < 0) {
        uint64_t number = 0;
        int status = create_spare(store, journal->first_segment_size, &number);
        if (status == MQX_OK) {
            status = register_spare(store, number, journal->first_segment_size);
        }
        if (status != MQX_OK) {
            return status;
        }
        spare = next_spare(journal);
        mqx_check(spare >= 0);
    }
    fill_header(store, &closed, journal->segment[spare].size, &header);
    int status = put_in_place(store, journal->segment[spare].number, &header);
    return status == MQX_OK ? make_active(store, spare, &header) : status;
}

int mqx_journal_roll(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = mqx_lock_take(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    /* The closed segment changes only under the roll lock, and its end is fixed. */
    const uint64_t end = mqx_journal_closed_end(store);
    if (mqx_region_stopped(region) != MQX_RUNNING) {
        status = mqx_region_stop_reason(region);
    } else if (end != 0 && mqx_load_acquire(&journal->durable) >= end) {
        status = roll_locked(store);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

/* ---- retiring ---- */

uint64_t mqx_journal_interval(const struct mqx_journal *journal)
{
    const uint64_t usual = 256ull << 20;
    return journal->limit / 4 < usual ? journal->limit / 4 : usual;
}

/* What is used from one checkpoint to the next: a file that is written over need not be made,
 * filled with zeroes and flushed while others want the disk. */
static uint32_t spares_kept(const struct mqx_journal *journal)
{
    const uint64_t used = mqx_journal_interval(journal) / journal->segment_size + 1;
    return used < SPARES_KEPT_MIN   ? SPARES_KEPT_MIN
           : used > SPARES_KEPT_MAX ? SPARES_KEPT_MAX
                                    : (uint32_t)used;
}

/* The segment with the lowest number, when nothing in it is needed any more; else -1. */
static int next_retired(const struct mqx_journal *journal, uint64_t begin_lsn, const uint32_t *live)
{
    int oldest = -1;
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if ((segment->state == MQX_SEG_FULL || segment->state == MQX_SEG_ACTIVE) &&
            (oldest < 0 || segment->number < journal->segment[oldest].number)) {
            oldest = i;
        }
    }
    if (oldest < 0 || (uint32_t)oldest + 1 == journal->active || live[oldest] != 0 ||
        journal->segment[oldest].end_lsn > begin_lsn) {
        return -1;
    }
    mqx_check(journal->segment[oldest].state == MQX_SEG_FULL);
    return oldest;
}

/* After the file has its new name, or none (new_state FREE). A new generation tells cached
 * mappings. */
static int set_retired(struct mqx_store *store, uint32_t index, uint32_t new_state, uint64_t number)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *segment = &journal->segment[index];
    int status = mqx_lock_take(region, &journal->ring_lock);
    if (status == MQX_OK) {
        SET32(&segment->state, new_state);
        SET64(&segment->number, number);
        SET64(&segment->generation, journal->next_generation);
        SET64(&journal->next_generation, journal->next_generation + 1);
        if (new_state == MQX_SEG_FREE) {
            SET64(&journal->used_bytes, journal->used_bytes - segment->size);
        }
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return status;
}

/* A file that is already gone (somebody died between name and table) only leaves the table. */
static int retire_one(struct mqx_store *store, uint32_t index, bool keep)
{
    struct mqx_io *io = store->io;
    const struct mqx_segment *segment = &store->region.journal->segment[index];
    char name[MQX_FILE_NAME_SIZE], spare[MQX_FILE_NAME_SIZE];
    mqx_file_name(name, MQX_FILE_SEGMENT, segment->number);
    if (keep) {
        const uint64_t number = mqx_journal_unit_id(store);
        mqx_file_name(spare, MQX_FILE_SPARE, number);
        int err = io->ops->rename(io, store->journal_dir, name, spare);
        if (err == 0) { /* the old name must not come back once the header says something else */
            err = io->ops->sync_dir(io, store->journal_dir);
            return err == 0 ? set_retired(store, index, MQX_SEG_SPARE, number)
                            : roll_failed(store, err, "flushing the journal directory");
        }
        if (err != -ENOENT) {
            return mqx_io_reason(err, "renaming a retired segment");
        }
    }
    const int err = io->ops->unlink(io, store->journal_dir, name);
    if (err != 0 && err != -ENOENT) {
        return mqx_io_reason(err, "removing a retired segment");
    }
    return set_retired(store, index, MQX_SEG_FREE, 0);
}

static int archive_one(struct mqx_store *store, uint32_t index)
{
    struct mqx_io *io = store->io;
    char name[MQX_FILE_NAME_SIZE];
    mqx_check(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    mqx_file_name(name, MQX_FILE_SEGMENT, store->region.journal->segment[index].number);
    int err = io->ops->move(io, store->journal_dir, name, store->archive_dir);
    if (err != 0 && err != -ENOENT) {
        return mqx_io_reason(err, "moving a segment to the archive");
    }
    err = io->ops->sync_dir(io, store->archive_dir);
    if (err == 0) {
        err = io->ops->sync_dir(io, store->journal_dir);
    }
    return err == 0 ? set_retired(store, index, MQX_SEG_FREE, 0)
                    : roll_failed(store, err, "flushing the journal's directories");
}

int mqx_journal_retire(struct mqx_store *store, uint64_t begin_lsn, const uint32_t *live)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = mqx_lock_take(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    uint32_t spares = mqx_journal_spare_count(store);
    int i = next_retired(journal, begin_lsn, live);
    while (i >= 0 && status == MQX_OK) { /* each turn leaves one segment fewer */
        const bool keep = journal->segment[i].size == journal->segment_size &&
                          spares < spares_kept(journal) && journal->used_bytes <= journal->limit;
        spares += keep;
        status = store->plan.linear != 0 ? archive_one(store, (uint32_t)i)
                                         : retire_one(store, (uint32_t)i, keep);
        i = next_retired(journal, begin_lsn, live);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}
