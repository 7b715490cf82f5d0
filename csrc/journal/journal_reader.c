/*
 * journal_reader.c - reading messages back from the journal, through mappings; the process-local
 * cache of segment files.
 *
 * Terms
 *   mapping   a segment file mapped read-only; at most MQX_MAPPED_MAX of them, process-local.
 *   view      bytes of a mapping in use by one call; the mapping stays while a view is open.
 *   piece     the part of a chunked body that one CHUNK record holds.
 *
 * A fetch of a message whose PUT record is at `lsn`
 *   view_record(lsn)           the mapping is found or made, the pages are populated, the record is
 *                              decoded with its checksum
 *   check_put, copy_put        it is that message; descriptor and inline body are copied
 *   is_current                 the file was not recycled during the copy
 *   gather                     only for a chunked body: the same for each CHUNK record, from the
 *                              last to the first
 *
 * Which mapping goes when all MQX_MAPPED_MAX are taken: the one unused for longest that has no open
 * view. A journal of usual size has fewer segments than that.
 *
 * Invariants
 *   1. A mapping is used only while the segment table shows its generation at its index; one that
 *      is out of date is unmapped when its last view ends, or by the maintenance thread.
 *   2. Bytes are read outside the mutex and outside all region locks, after they were made readable
 *      (populate), so that a bad sector is a status and not a signal (rule 30).
 *   3. After the copy the generation is compared once more: what was copied from a file that was
 *      recycled during the copy is not believed (rule 8).
 *
 * Locks. The cache's mutex, of this process; the ring lock inside it, to copy a table entry.
 *
 * Errors. MQRC_OBJECT_DAMAGED with file and offset for bytes that are not the record they should
 * be; MQRC_RESOURCE_PROBLEM when all mappings are in use. Nothing in the store changes.
 */
#include "journal/journal_private.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/write_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES_MAX = 16 }; /* of a message, while one call reads it */

/* ---- attaching ---- */

/* The cache begins empty; the descriptors that leading takes are opened while there are some. */
int mqx_journal_attach(struct mqx_store *store)
{
    MQX_ASSERT(store->io != NULL);
    if (store->files != NULL) {
        return MQX_OK;
    }
    struct mqx_files *files = calloc(1, sizeof *files);
    if (files == NULL || pthread_mutex_init(&files->mutex, NULL) != 0 ||
        pthread_mutex_init(&files->leading, NULL) != 0) { /* of glibc: never fails */
        free(files);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the journal's file cache");
    }
    files->write.fd = -1;
    for (int i = 0; i < MQX_KEPT_FDS; i++) {
        files->kept_fd[i] = -1;
    }
    MQX_ASSERT(files->turn == 0);
    store->files = files;
    mqx_store_note(store);
    return mqx_write_file_prepare(store);
}

/* Called when the store is closed, by one thread; errors of unmap and close change nothing for
 * the files. */
void mqx_journal_detach(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    if (files == NULL) {
        return;
    }
    MQX_ASSERT(store->io != NULL);
    for (uint32_t i = 0; i < MQX_MAPPED_MAX; i++) {
        MQX_ASSERT(files->mapped[i].at == NULL || files->mapped[i].views == 0);
        if (files->mapped[i].at != NULL) {
            (void)store->io->ops->unmap(store->io, (void *)(uintptr_t)files->mapped[i].at,
                                        files->mapped[i].size);
        }
    }
    mqx_write_file_end(store);
    (void)pthread_mutex_destroy(&files->leading);
    (void)pthread_mutex_destroy(&files->mutex);
    free(files);
    store->files = NULL;
}

/* ---- errors ---- */

/* The text every refusal of this file gives: segment file, offset in it, what is wrong there. */
static MQX_COLD int damaged(const struct mqx_mapped *file, uint64_t lsn, const char *what)
{
    MQX_ASSERT(lsn >= file->base_lsn);
    MQX_ASSERT(what != NULL);
    return mqx_fail(MQRC_OBJECT_DAMAGED, "journal/%010" PRIu64 ".psj, offset %" PRIu64 ": %s",
                    file->number, lsn - file->base_lsn, what);
}

/* ---- the cache (mutex held) ---- */

/* Does the segment table still show the use of the file that was mapped? Read without a lock: the
 * generation is raised in the same micro-transaction as the state (invariant 3). */
static bool is_current(const struct mqx_store *store, const struct mqx_mapped *file)
{
    const struct mqx_segment *segment = &store->region.journal->segment[file->index];
    MQX_ASSERT(file->at != NULL);
    MQX_ASSERT(file->index < MQX_SEGMENT_MAX);
    const uint32_t state = mqx_load_acquire(&segment->state);
    return mqx_load_acquire(&segment->generation) == file->generation &&
           (state == MQX_SEG_ACTIVE || state == MQX_SEG_FULL);
}

/* Frees the cache entry. No view may be open. */
static void unmap(struct mqx_store *store, struct mqx_mapped *file)
{
    MQX_ASSERT(file->views == 0);
    MQX_ASSERT(file->at != NULL);
    (void)store->io->ops->unmap(store->io, (void *)(uintptr_t)file->at, file->size);
    file->at = NULL;
}

void mqx_journal_drop_retired(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    MQX_ASSERT(store->region.base != NULL);
    (void)pthread_mutex_lock(&files->mutex);
    for (uint32_t i = 0; i < MQX_MAPPED_MAX; i++) {
        struct mqx_mapped *file = &files->mapped[i];
        if (file->at != NULL && file->views == 0 && !is_current(store, file)) {
            unmap(store, file);
        }
    }
    (void)pthread_mutex_unlock(&files->mutex);
}

/* The current mapping that holds the LSN, or NULL; mappings of an earlier use of a file are
 * removed on the way. */
static struct mqx_mapped *find_mapped(struct mqx_store *store, uint64_t lsn)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL);
    for (uint32_t i = 0; i < MQX_MAPPED_MAX; i++) {
        struct mqx_mapped *file = &files->mapped[i];
        if (file->at == NULL) {
            continue;
        }
        if (!is_current(store, file)) {
            if (file->views == 0) {
                unmap(store, file);
            }
        } else if (lsn >= file->base_lsn && lsn - file->base_lsn < file->size) {
            return file;
        }
    }
    return NULL;
}

/* A free entry, or the one unused for longest. */
static struct mqx_mapped *free_mapped(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    struct mqx_mapped *oldest = NULL;
    MQX_ASSERT(files != NULL);
    for (uint32_t i = 0; i < MQX_MAPPED_MAX; i++) {
        struct mqx_mapped *file = &files->mapped[i];
        if (file->at == NULL) {
            return file;
        }
        if (file->views == 0 && (oldest == NULL || file->used_at < oldest->used_at)) {
            oldest = file;
        }
    }
    if (oldest != NULL) {
        unmap(store, oldest);
    }
    MQX_ASSERT(oldest == NULL || oldest->at == NULL);
    return oldest;
}

/* A consistent copy of the table's entry for `lsn`; its index, or -1. */
static int find_segment(struct mqx_store *store, uint64_t lsn, struct mqx_segment *out)
{
    struct mqx_region *region = &store->region;
    const int index = mqx_journal_segment_of(region, lsn);
    MQX_ASSERT(index < MQX_SEGMENT_MAX);
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->ring_lock));
    if (index < 0 || mqx_lock_take(region, &region->journal->ring_lock) != MQX_OK) {
        return -1;
    }
    *out = region->journal->segment[index];
    mqx_lock_drop(region, &region->journal->ring_lock);
    const bool holds = (out->state == MQX_SEG_ACTIVE || out->state == MQX_SEG_FULL) &&
                       lsn >= out->base_lsn && lsn - out->base_lsn < out->size;
    return holds ? index : -1;
}

/* Maps the segment's file read-only; 0 or a negated errno. The descriptor is closed again:
 * MQX_MAPPED_MAX mappings cost no descriptors. */
static int map_file(struct mqx_store *store, const struct mqx_segment *segment, void **out)
{
    struct mqx_io *io = store->io;
    struct mqx_io_stat facts;
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL);
    mqx_file_name(name, MQX_FILE_SEGMENT, segment->number);
    int fd = io->ops->open(io, store->journal_dir, name, MQX_IO_LINKED, 0);
    if (fd < 0) {
        return fd;
    }
    int err = io->ops->stat(io, fd, &facts);
    if (err == 0 && facts.size < segment->size) {
        err = -EIO; /* reading beyond its end would be a signal */
    }
    if (err == 0) {
        err = io->ops->map(io, fd, segment->size, MQX_IO_MAP_READ, out);
    }
    (void)io->ops->close(io, fd); /* the mapping stays */
    MQX_ASSERT(err != 0 || *out != NULL);
    return err;
}

/* Maps the segment that holds the LSN into a free entry of the cache. Mutex held. An LSN that no
 * segment holds is damage of the message entry that named it. */
static int map_segment(struct mqx_store *store, uint64_t lsn, struct mqx_mapped **out)
{
    struct mqx_segment segment;
    void *at = NULL;
    const int index = find_segment(store, lsn, &segment);
    if (index < 0) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "no journal segment holds LSN %" PRIu64, lsn);
    }
    struct mqx_mapped *file = free_mapped(store);
    if (file == NULL) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "%d journal segments are in use at once",
                        MQX_MAPPED_MAX);
    }
    const int status = mqx_store_check(store);
    if (status != MQX_OK) {
        return status;
    }
    const int err = map_file(store, &segment, &at);
    if (err != 0) {
        return mqx_io_reason(err, "mapping a journal segment");
    }
    *file = (struct mqx_mapped){
        .at = at,
        .base_lsn = segment.base_lsn,
        .size = segment.size,
        .generation = segment.generation,
        .number = segment.number,
        .index = (uint32_t)index,
    };
    MQX_ASSERT(lsn - file->base_lsn < file->size);
    MQX_ASSERT(file->views == 0);
    *out = file;
    return MQX_OK;
}

/* ---- views ---- */

/* Bytes of a segment, readable without a signal; keeps the mapping until it is ended. The caller
 * keeps the segment from being recycled (the message is present and claimed or pinned), or compares
 * the generation after reading. */
struct view {
    const unsigned char *at;
    uint64_t size;
    struct mqx_mapped *file;
};

/* Populates the pages of the view, so that a bad sector is reported here (rule 30). */
static int make_readable(struct mqx_store *store, const struct view *view)
{
    const uintptr_t start = (uintptr_t)view->at & ~(uintptr_t)(MQX_PAGE_SIZE - 1);
    MQX_ASSERT(view->file->views > 0); /* so it stays mapped */
    MQX_ASSERT(start >= (uintptr_t)view->file->at);
    return store->io->ops->populate(store->io, (const void *)start,
                                    (uintptr_t)view->at + view->size - start);
}

/* The mapping may be removed from now on; at once when it is out of date. */
static void end_view(struct mqx_store *store, struct view *view)
{
    struct mqx_files *files = store->files;
    struct mqx_mapped *file = view->file;
    (void)pthread_mutex_lock(&files->mutex);
    MQX_ASSERT(file->views > 0);
    MQX_ASSERT(view->at != NULL);
    file->views -= 1;
    if (file->views == 0 && !is_current(store, file)) {
        unmap(store, file);
    }
    (void)pthread_mutex_unlock(&files->mutex);
    view->at = NULL;
}

/* `size` bytes at `lsn`, mapped and populated; end_view() when this returned 0. The mutex is not
 * held while pages are read from the medium. */
static int begin_view(struct mqx_store *store, uint64_t lsn, uint64_t size, struct view *out)
{
    struct mqx_files *files = store->files;
    MQX_ASSERT(files != NULL); /* mqx_journal_attach() comes first */
    MQX_ASSERT(size > 0);
    (void)pthread_mutex_lock(&files->mutex);
    struct mqx_mapped *file = find_mapped(store, lsn);
    int status = file != NULL ? MQX_OK : map_segment(store, lsn, &file);
    if (status == MQX_OK && size > file->size - (lsn - file->base_lsn)) {
        status = damaged(file, lsn, "what should be here does not fit into the segment");
    }
    if (status == MQX_OK) {
        file->views += 1;
        file->used_at = ++files->turn;
        *out = (struct view){file->at + (lsn - file->base_lsn), size, file};
    }
    (void)pthread_mutex_unlock(&files->mutex);
    if (status != MQX_OK) {
        return status;
    }
    if (make_readable(store, out) != 0) {
        status = damaged(file, lsn, "the medium cannot read these bytes");
        end_view(store, out);
    }
    return status;
}

/* ---- messages ---- */

/* Length of the record at `lsn`, from its header. */
static int read_length(struct mqx_store *store, uint64_t lsn, uint32_t *out)
{
    struct view view;
    MQX_ASSERT(out != NULL);
    int status = begin_view(store, lsn, PS_RECORD_MIN, &view);
    if (status == MQX_OK) {
        *out = mqx_record_length((const void *)view.at);
        end_view(store, &view);
    }
    return status;
}

/* Decodes the record in a view. The COMMON record of a short one lies in front of it, in the same
 * segment, and is verified here, since nobody has read its batch. */
static int decode(struct mqx_store *store, const struct view *view, struct mqx_decoded *out)
{
    const uint64_t offset = (uint64_t)(view->at - view->file->at);
    const uint64_t least = MQX_PAGE_SIZE + sizeof(struct psj_batch);
    MQX_ASSERT(view->size >= PS_RECORD_MIN);
    MQX_ASSERT(view->at >= view->file->at);
    if (!mqx_record_is_short(view->at)) {
        return mqx_record_decode(view->at, view->size, 0, out);
    }
    const uint32_t distance = ((const struct psj_short *)(const void *)view->at)->common;
    if (offset < least || distance > offset - least || distance % PS_ALIGN != 0 || distance == 0) {
        return MQX_TORN;
    }
    const struct view common = {view->at - distance,
                                distance < MQX_COMMON_MAX ? distance : MQX_COMMON_MAX, view->file};
    if (make_readable(store, &common) != 0 ||
        mqx_record_check(common.at, common.size, 0) != MQX_OK) {
        return MQX_TORN;
    }
    return mqx_record_decode(view->at, view->size, distance, out);
}

/* The whole record at `lsn`; `length` 0 when it is not known. */
static int view_record(struct mqx_store *store, uint64_t lsn, uint32_t length, struct view *view,
                       struct mqx_decoded *out)
{
    int status = length == 0 ? read_length(store, lsn, &length) : MQX_OK;
    MQX_ASSERT(view != NULL);
    if (status == MQX_OK && (length < PS_RECORD_MIN || length > MQX_RING_RECORD_MAX)) {
        status = mqx_fail(MQRC_OBJECT_DAMAGED, "no journal record begins at LSN %" PRIu64, lsn);
    }
    if (status == MQX_OK) {
        status = begin_view(store, lsn, length, view);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = decode(store, view, out);
    if (status != MQX_OK || mqx_record_length(out->head) != length) {
        status = damaged(view->file, lsn, "the record's checksum or form is wrong");
        end_view(store, view);
    }
    MQX_ASSERT(status == MQX_OK || view->at == NULL);
    return status;
}

struct gathering { /* of the pieces of a body, from its end */
    const struct mqx_message *message;
    unsigned char *body;
    uint64_t capacity;
    uint64_t begin;  /* everything from here on has been seen */
    uint32_t number; /* the next piece has this number - 1 */
};

/* Verifies that the record is the piece before the one taken last, and copies what of it fits
 * into the caller's buffer. Numbers and offsets must meet without a gap. */
static int take_piece(struct gathering *gathering, const struct mqx_decoded *record,
                      const struct mqx_mapped *file, uint64_t lsn)
{
    const struct ps_chunk *chunk = record->chunk;
    MQX_ASSERT(gathering->number > 0);
    MQX_ASSERT(gathering->body != NULL);
    if (chunk == NULL || record->head->number != gathering->message->number ||
        chunk->total != gathering->message->length || chunk->number + 1 != gathering->number ||
        chunk->offset + record->body_length != gathering->begin ||
        (chunk->number == 0) != (chunk->offset == 0)) {
        return damaged(file, lsn, "this is not the piece of the message that it should be");
    }
    if (chunk->offset < gathering->capacity) {
        const uint64_t left = gathering->capacity - chunk->offset;
        memcpy(gathering->body + chunk->offset, record->body,
               record->body_length < left ? record->body_length : left);
    }
    gathering->begin = chunk->offset;
    gathering->number = chunk->number;
    MQX_ASSERT((gathering->number == 0) == (gathering->begin == 0));
    return MQX_OK;
}

/* Collects the pieces of a chunked body, from the last to the first: each names its predecessor.
 * Each is verified against message number, total length and the piece after it. */
static int gather(struct mqx_store *store, const struct ps_chunked *chunked,
                  struct gathering *gathering)
{
    struct view view;
    struct mqx_decoded record;
    uint64_t lsn = chunked->last_lsn;
    int status = MQX_OK;

    MQX_ASSERT(chunked->count > 0);
    MQX_ASSERT(chunked->total == gathering->message->length);
    gathering->begin = chunked->total;
    gathering->number = chunked->count;
    while (gathering->number > 0 && status == MQX_OK) { /* falls with each piece */
        status = view_record(store, lsn, 0, &view, &record);
        if (status != MQX_OK) {
            return status;
        }
        const struct mqx_mapped *file = view.file;
        status = take_piece(gathering, &record, file, lsn);
        if (status == MQX_OK && !is_current(store, file)) {
            status = damaged(file, lsn, "the segment was recycled while it was read");
        }
        lsn = status == MQX_OK ? record.chunk->prev_lsn : 0;
        end_view(store, &view);
    }
    return status;
}

/* Is the decoded record the PUT of that message? Number, length and count of chunks must agree
 * with the message's entry. */
static int check_put(const struct mqx_message *message, uint64_t lsn,
                     const struct mqx_decoded *record, const struct mqx_mapped *file)
{
    MQX_ASSERT(record->head != NULL);
    const uint64_t total =
        record->chunked != NULL ? record->chunked->total : (uint64_t)record->body_length;
    const uint32_t chunks = record->chunked != NULL ? record->chunked->count : 0;
    if (record->descriptor == NULL || record->head->number != message->number ||
        total != message->length || chunks != message->chunk_count) {
        return damaged(file, lsn, "this is not the message that it should be");
    }
    MQX_ASSERT(record->body == NULL || record->chunked == NULL);
    return MQX_OK;
}

/* Copies the parts of a PUT that the caller requested; the body up to `capacity`. */
static void copy_put(const struct mqx_decoded *record, struct ps_descriptor *descriptor,
                     struct ps_descriptor_ext *ext, void *body, uint64_t capacity)
{
    MQX_ASSERT(record->descriptor != NULL); /* check_put() */
    MQX_ASSERT(body != NULL || capacity == 0);
    if (descriptor != NULL) {
        *descriptor = *record->descriptor;
    }
    if (ext != NULL && record->ext != NULL) {
        *ext = *record->ext;
    }
    if (body != NULL && record->body != NULL) {
        memcpy(body, record->body, record->body_length < capacity ? record->body_length : capacity);
    }
}

/* One view for the PUT record, then one for each piece. The comparison of the generation after
 * the copy is what makes a lock needless (invariant 3). */
static int fetch_at(struct mqx_store *store, const struct mqx_message *message, uint64_t lsn,
                    struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                    uint64_t capacity)
{
    struct view view;
    struct mqx_decoded record;
    struct ps_chunked chunked = {0};
    MQX_ASSERT(message->number != 0);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    int status = view_record(store, lsn, message->record_length, &view, &record);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_mapped *file = view.file;
    status = check_put(message, lsn, &record, file);
    if (status == MQX_OK) {
        copy_put(&record, descriptor, ext, body, capacity);
        if (record.chunked != NULL) {
            chunked = *record.chunked;
        }
        if (!is_current(store, file)) {
            status = damaged(file, lsn, "the segment was recycled while it was read");
        }
    }
    end_view(store, &view);
    if (status == MQX_OK && chunked.count > 0 && body != NULL) {
        struct gathering gathering = {.message = message, .body = body, .capacity = capacity};
        status = gather(store, &chunked, &gathering);
    }
    return status;
}

/* The place of a message that is present changes before its old segment is recycled: when reading
 * failed there, and there is another place by now, it is read there. */
int mqx_journal_fetch(struct mqx_store *store, const struct mqx_message *message,
                      struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                      uint64_t capacity)
{
    uint64_t lsn = mqx_load_acquire(&message->lsn);
    int status = fetch_at(store, message, lsn, descriptor, ext, body, capacity);
    MQX_ASSERT(body != NULL || capacity == 0);
    for (int i = 0; i < MOVES_MAX && status != MQX_OK; i++) {
        const uint64_t now = mqx_load_acquire(&message->lsn);
        if (now == lsn) {
            return status;
        }
        MQX_ASSERT(now % 8 == 0);
        lsn = now;
        mqx_error_clear();
        status = fetch_at(store, message, lsn, descriptor, ext, body, capacity);
    }
    return status;
}

/* ---- the records of a message, for compaction ---- */

/* Where the pieces lie: each names its predecessor. `lsns` has room for `chunked->count`. */
static int find_pieces(struct mqx_store *store, uint64_t number, const struct ps_chunked *chunked,
                       uint64_t *lsns)
{
    uint64_t lsn = chunked->last_lsn, begin = chunked->total;
    int status = MQX_OK;
    MQX_ASSERT(chunked->count > 0);
    MQX_ASSERT(number != 0);
    for (uint32_t left = chunked->count; left > 0 && status == MQX_OK; left--) {
        struct view view;
        struct mqx_decoded record;
        status = view_record(store, lsn, 0, &view, &record);
        if (status != MQX_OK) {
            return status;
        }
        const struct ps_chunk *chunk = record.chunk;
        if (chunk == NULL || record.head->number != number || chunk->total != chunked->total ||
            chunk->number + 1 != left || chunk->offset + record.body_length != begin ||
            (chunk->number == 0) != (chunk->offset == 0)) {
            status = damaged(view.file, lsn, "this is not the piece of the message that it "
                                             "should be");
        } else {
            lsns[left - 1] = lsn;
            begin = chunk->offset;
            lsn = chunk->prev_lsn;
        }
        end_view(store, &view);
    }
    return status;
}

/* Hands one record on, which was looked at before. */
static int visit_record(struct mqx_store *store, const struct mqx_record_walk *walk, uint64_t lsn,
                        uint32_t length)
{
    struct view view;
    struct mqx_decoded record;
    MQX_ASSERT(walk->visit != NULL);
    int status = view_record(store, lsn, length, &view, &record);
    if (status == MQX_OK) {
        status = record.head->number == walk->number
                     ? walk->visit(walk->arg, view.at, &record)
                     : damaged(view.file, lsn, "the record changed while it was read");
        end_view(store, &view);
    }
    MQX_ASSERT(status != MQX_OK || view.at == NULL);
    return status;
}

/* Pieces name their predecessor, so the chain is followed from the last one, and visited from the
 * first. No view is open while the next record is looked for: `visit` may wait for room. */
int mqx_journal_walk(struct mqx_store *store, const struct mqx_record_walk *walk)
{
    struct view view;
    struct mqx_decoded record;
    struct ps_chunked chunked = {0};
    uint64_t *lsns = NULL;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    int status = view_record(store, walk->lsn, walk->record_length, &view, &record);
    if (status != MQX_OK) {
        return status;
    }
    if (record.descriptor == NULL || record.head->number != walk->number) {
        status = damaged(view.file, walk->lsn, "this is not the message that it should be");
    } else if (record.chunked != NULL) {
        chunked = *record.chunked;
    }
    end_view(store, &view);
    if (status == MQX_OK && chunked.count > 0) {
        lsns = calloc(chunked.count, sizeof *lsns);
        status = lsns != NULL ? find_pieces(store, walk->number, &chunked, lsns)
                              : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the pieces of "
                                         "a message");
    }
    for (uint32_t i = 0; i < chunked.count && status == MQX_OK; i++) {
        status = visit_record(store, walk, lsns[i], 0);
    }
    free(lsns);
    return status == MQX_OK ? visit_record(store, walk, walk->lsn, walk->record_length) : status;
}

/* Used by checkpoints: a chunked message keeps all segments from its first piece on. */
int mqx_journal_first_lsn(struct mqx_store *store, uint64_t lsn, uint32_t record_length,
                          uint64_t *out)
{
    struct view view;
    struct mqx_decoded record;
    MQX_ASSERT(out != NULL);
    int status = view_record(store, lsn, record_length, &view, &record);
    if (status == MQX_OK) {
        *out = record.chunked != NULL ? record.chunked->first_lsn : lsn;
        MQX_ASSERT(view.size == record_length);
        end_view(store, &view);
    }
    return status;
}
