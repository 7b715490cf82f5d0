/*
 * restart.c - see restart.h. The order of a restart:
 *
 *   list_files       segments, spares and half-made files; the newest checkpoint
 *   open_checkpoint  its header, objects, and where its image lies (load.c)
 *   find_segments    headers from the newest segment back, each must precede the one after it
 *   scan_journal     records from the begin segment on into the replay; what the end means
 *   load             what a prepared unit holds, objects, messages, prepared units (load.c)
 *   set_journal      segment table, positions and counters in the region
 *   write_counts, write_image_consumed   the records of invariant 2
 *   remove_leftovers
 *
 * What is read when. Steps up to scan_journal only read files and fill memory of this process; load
 * and set_journal write the region, which counts for nothing until the caller sets `ready`; the
 * rest appends to the journal like any process would. So a restart that fails or dies at any point
 * leaves files that the next restart reads the same way.
 *
 * Which segments must be there: from the oldest that the checkpoint names (a message in it lies
 * there) to the newest, without a hole. Older files are left over from an interrupted retirement
 * and may be anything; they are not examined further.
 */
#include "recovery/restart.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/group_commit.h"
#include "recovery/load.h"
#include "recovery/tail_scan.h"
#include "region/damage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BATCH = MQX_PAGE_SIZE,  /* offset in a segment */
    FIRST_NUMBERS = 8,
    COUNTS_IN_RECORD = 2000,      /* backout counts in a BACKOUT record at most */
    SLOTS_MAX = 1 << 28,          /* see mqx_replay.slot_limit */
    BEGIN_LSN_AT = 48,            /* of the begin LSN in a checkpoint's header */
};

/* ---- what files there are ----
 *
 * Names that this version does not know are left alone.
 */

struct numbers { /* of files of one kind */
    uint64_t *items;
    size_t count, capacity;
};

struct listing {
    struct numbers segments, spares, half_made;
    bool no_memory;
    bool has_checkpoint;
    uint64_t newest_checkpoint;
};

/* Without memory it is marked in the listing, since a visitor has no status. */
static void add_number(struct listing *listing, struct numbers *numbers, uint64_t number)
{
    MQX_ASSERT(numbers->count <= numbers->capacity);
    if (numbers->count == numbers->capacity) {
        const size_t wanted = numbers->capacity == 0 ? FIRST_NUMBERS : numbers->capacity * 2;
        uint64_t *items = realloc(numbers->items, wanted * sizeof *items);
        if (items == NULL) {
            listing->no_memory = true;
            return;
        }
        numbers->items = items;
        numbers->capacity = wanted;
    }
    MQX_ASSERT(numbers->count < numbers->capacity);
    numbers->items[numbers->count++] = number;
}

/* Visits a file of the journal directory. */
static int note_journal_file(void *arg, const char *name)
{
    struct listing *listing = arg;
    MQX_ASSERT(listing != NULL);
    MQX_ASSERT(name != NULL);
    uint64_t number = 0;
    switch (mqx_file_kind_of(name, &number)) {
    case MQX_FILE_SEGMENT: add_number(listing, &listing->segments, number); break;
    case MQX_FILE_SPARE: add_number(listing, &listing->spares, number); break;
    case MQX_FILE_HALF_MADE: add_number(listing, &listing->half_made, number); break;
    case MQX_FILE_OTHER: break;
    }
    return 0;
}

/* Visits a file of the checkpoint directory: the one with the highest begin LSN counts. */
static int note_checkpoint_file(void *arg, const char *name)
{
    struct listing *listing = arg;
    MQX_ASSERT(listing != NULL);
    MQX_ASSERT(name != NULL);
    uint64_t begin_lsn = 0;
    if (mqx_checkpoint_file_parse(name, &begin_lsn) &&
        (!listing->has_checkpoint || begin_lsn > listing->newest_checkpoint)) {
        listing->has_checkpoint = true;
        listing->newest_checkpoint = begin_lsn;
    }
    return 0;
}

/* For qsort. */
static int by_value(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a;
    const uint64_t second = *(const uint64_t *)b;
    MQX_ASSERT(a != NULL);
    MQX_ASSERT(b != NULL);
    return first < second ? -1 : first > second;
}

/* One listing of each directory; segments sorted by number. */
static int list_files(struct mqx_store *store, struct listing *out)
{
    struct mqx_io *io = store->io;
    MQX_ASSERT(out->segments.count == 0);
    MQX_ASSERT(!out->has_checkpoint);
    int err = io->ops->list(io, store->journal_dir, note_journal_file, out);
    if (err == 0) {
        err = io->ops->list(io, store->checkpoint_dir, note_checkpoint_file, out);
    }
    if (err != 0) {
        return mqx_io_reason(err, "listing the queue manager's files");
    }
    if (out->no_memory) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to list the journal");
    }
    if (out->segments.count > 1) {
        qsort(out->segments.items, out->segments.count, sizeof(uint64_t), by_value);
    }
    return MQX_OK;
}

/* After a failure half way, too. */
static void free_listing(struct listing *listing)
{
    MQX_ASSERT(listing->segments.count <= listing->segments.capacity);
    MQX_ASSERT(listing->spares.count <= listing->spares.capacity);
    free(listing->segments.items);
    free(listing->spares.items);
    free(listing->half_made.items);
}

/* ---- the checkpoint ---- */

/* Without a checkpoint the replay begins with segment 1: none was ever finished. */
static int open_checkpoint(struct mqx_restart *restart, const struct listing *listing)
{
    struct mqx_store *store = restart->store;
    struct mqx_replay *replay = &restart->replay;
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(!restart->has_checkpoint);
    MQX_ASSERT(replay->put_count == 0);
    replay->next_number = 1;
    replay->next_unit_id = 1;
    if (!listing->has_checkpoint) {
        return MQX_OK;
    }
    mqx_checkpoint_file_name(name, listing->newest_checkpoint, true);
    int status = mqx_checkpoint_file_open(&restart->checkpoint, store->io, store->checkpoint_dir,
                                          name, store->qm_id);
    if (status != MQX_OK) {
        return status;
    }
    const struct psc_header *header = &restart->checkpoint.header;
    restart->has_checkpoint = true;
    restart->use_image = header->has_image != 0;
    replay->begin_lsn = header->begin_lsn;
    replay->checkpoint_end = header->end_lsn;
    replay->next_number = header->next_number;
    replay->next_unit_id = header->next_unit_id;
    return mqx_load_checkpoint_start(restart);
}

/* Number of the segment in which the replay begins. */
static uint64_t begin_segment(const struct mqx_restart *restart)
{
    MQX_ASSERT(!restart->has_checkpoint || restart->checkpoint.window.fd >= 0);
    return restart->has_checkpoint ? restart->checkpoint.header.begin_segment : 1;
}

/* The oldest segment in which a message or the begin LSN lies. */
static uint64_t oldest_needed(const struct mqx_restart *restart)
{
    const struct psc_header *header = &restart->checkpoint.header;
    MQX_ASSERT(!restart->has_checkpoint || restart->checkpoint.window.fd >= 0);
    if (!restart->has_checkpoint) {
        return 1;
    }
    return header->oldest_segment < header->begin_segment ? header->oldest_segment
                                                          : header->begin_segment;
}

/* ---- segments ----
 *
 * Two neighbours fit when the later one's LSNs lie behind the earlier one's, its generation is
 * higher, its epoch is not lower, and its prev_end_lsn lies within the earlier one: that is where
 * the earlier one's batches end, whatever lies behind (rule 10).
 */

/* For reading; the caller closes it. */
static int open_segment(const struct mqx_store *store, uint64_t number, uint64_t *out_size,
                        int *out)
{
    struct mqx_io_stat facts = {0};
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(number != 0);
    mqx_file_name(name, MQX_FILE_SEGMENT, number);
    int fd = store->io->ops->open(store->io, store->journal_dir, name, MQX_IO_READ, 0);
    if (fd < 0) {
        return mqx_io_reason(fd, "opening a journal segment");
    }
    const int err = store->io->ops->stat(store->io, fd, &facts);
    if (err != 0) {
        (void)store->io->ops->close(store->io, fd);
        return mqx_io_reason(err, "asking the size of a journal segment");
    }
    MQX_ASSERT(fd >= 0);
    *out_size = facts.size;
    *out = fd;
    return MQX_OK;
}

/* The segment's entry from its header; where it ends is set by the one after it. */
static int read_header(const struct mqx_store *store, uint64_t number,
                       struct mqx_found_segment *out)
{
    struct psj_segment header;
    uint64_t size = 0;
    int fd = -1;
    MQX_ASSERT(out != NULL);
    int status = open_segment(store, number, &size, &fd);
    if (status != MQX_OK) {
        return status;
    }
    const int err = mqx_io_read_all(store->io, fd, &header, sizeof header, 0);
    (void)store->io->ops->close(store->io, fd);
    if (err != 0) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "journal/%010" PRIu64 ".psj: its header (offset 0) cannot be read: %s",
                        number, strerror(-err));
    }
    status = mqx_segment_verify(&header, store->qm_id, number, size);
    *out = (struct mqx_found_segment){
        .entry = {.number = number,
                  .generation = header.generation,
                  .base_lsn = header.base_lsn,
                  .size = header.size,
                  .state = MQX_SEG_FULL,
                  .prev_end_lsn = header.prev_end_lsn},
        .epoch = header.restart_epoch,
    };
    MQX_ASSERT(status != MQX_OK || out->entry.size % MQX_PAGE_SIZE == 0);
    return status;
}

/* Neighbours must fit together; sets where the earlier one ends. */
static int check_order(struct mqx_found_segment *segment, const struct mqx_found_segment *after)
{
    struct mqx_segment *entry = &segment->entry;
    const struct mqx_segment *next = &after->entry;
    MQX_ASSERT(next->number == entry->number + 1);
    MQX_ASSERT(entry->state == MQX_SEG_FULL);
    if (next->base_lsn < entry->base_lsn + entry->size || next->generation <= entry->generation ||
        after->epoch < segment->epoch || next->prev_end_lsn < entry->base_lsn + FIRST_BATCH ||
        next->prev_end_lsn > entry->base_lsn + entry->size) {
        return mqx_fail(MQRC_OBJECT_DAMAGED,
                        "journal/%010" PRIu64 ".psj: its header (offset 0) does not follow the one "
                        "of the segment before", next->number);
    }
    entry->end_lsn = next->prev_end_lsn;
    return MQX_OK;
}

/* From the newest back to the oldest one without a hole; what is older than needed may be
 * anything. */
static int find_segments(struct mqx_restart *restart, const struct numbers *numbers)
{
    const uint64_t needed = oldest_needed(restart);
    MQX_ASSERT(restart->segments == NULL);
    MQX_ASSERT(needed != 0 || restart->has_checkpoint);
    size_t first = numbers->count; /* index of the oldest that counts */
    restart->segments = calloc(numbers->count + 1, sizeof *restart->segments);
    if (restart->segments == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the list of segments");
    }
    while (first > 0) {
        const uint64_t number = numbers->items[first - 1];
        struct mqx_found_segment *found = &restart->segments[first - 1];
        const bool newest = first == numbers->count;
        if (!newest && number + 1 != found[1].entry.number) {
            break;
        }
        int status = read_header(restart->store, number, found);
        if (status == MQX_OK && !newest) {
            status = check_order(found, found + 1);
        }
        if (status != MQX_OK && number >= needed) {
            return status;
        }
        if (status != MQX_OK) {
            break;
        }
        first -= 1;
    }
    restart->segment_count = numbers->count - first;
    memmove(restart->segments, restart->segments + first,
            restart->segment_count * sizeof *restart->segments);
    if (restart->segment_count == 0 || restart->segments[0].entry.number > needed ||
        numbers->items[numbers->count - 1] < needed) {
        return mqx_fail(MQRC_OBJECT_DAMAGED, "journal: segment %" PRIu64 " is missing",
                        restart->segment_count == 0 ? needed
                                                    : restart->segments[0].entry.number - 1);
    }
    return MQX_OK;
}

/* Index of the segment where the replay begins; the checkpoint must fit the segments. */
static int find_begin(const struct mqx_restart *restart, size_t *out)
{
    const struct psc_header *header = &restart->checkpoint.header;
    const struct mqx_segment *newest = &restart->segments[restart->segment_count - 1].entry;
    const uint64_t number = begin_segment(restart);
    const uint64_t oldest = restart->segments[0].entry.number;
    MQX_ASSERT(restart->segment_count > 0);
    MQX_ASSERT(restart->has_checkpoint || number >= oldest);
    *out = (size_t)(number - oldest);
    if (!restart->has_checkpoint) {
        return MQX_OK;
    }
    if (number < oldest || number > newest->number || header->generation > newest->generation) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, 0,
                                           "it does not fit the journal's segments");
    }
    const struct mqx_segment *begin = &restart->segments[*out].entry;
    if (header->begin_lsn < begin->prev_end_lsn ||
        header->begin_lsn > begin->base_lsn + begin->size) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, BEGIN_LSN_AT,
                                           "its begin LSN is not in its segment");
    }
    return MQX_OK;
}

/* ---- scanning ---- */

struct tail { /* of the newest segment */
    uint64_t end_lsn;
    bool clean; /* an orderly end: appends continue right here */
};

/* What the end of the segment's batches means: collects the facts and looks them up in the table.
 * Damage is refused with the letter of its case. */
static int classify_tail(struct mqx_restart *restart, const struct mqx_tail_scan *scan,
                         bool has_next, struct tail *out)
{
    const struct psc_header *header = &restart->checkpoint.header;
    struct mqx_tail_facts facts = {.has_next = has_next,
                                   .at_next = has_next && scan->end_lsn == scan->limit_lsn};
    uint64_t mark = 0;
    MQX_ASSERT(scan->end_lsn <= scan->limit_lsn);
    MQX_ASSERT(scan->end_lsn >= scan->segment->base_lsn + FIRST_BATCH);
    if (!has_next) {
        int status = mqx_tail_scan_marks(scan, &mark, &facts.remains, &restart->report.torn_bytes);
        if (status != MQX_OK) {
            return status;
        }
        if (restart->has_checkpoint && header->end_lsn > mark) {
            mark = header->end_lsn;
        }
        facts.below_mark = scan->end_lsn < mark;
        facts.clean_here =
            restart->has_checkpoint && header->clean != 0 && header->end_lsn == scan->end_lsn;
    }
    const struct mqx_tail_case *tail = mqx_tail_decide(&facts);
    MQX_ASSERT(tail != NULL); /* every combination that can be collected here has a case */
    *out = (struct tail){scan->end_lsn, tail->verdict == MQX_TAIL_CLEAN};
    if (tail->verdict != MQX_TAIL_DAMAGE) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal/%010" PRIu64 ".psj, offset %" PRIu64 ": no good batch here, but more "
                    "was durable, up to LSN %" PRIu64 " (case %c: %s)",
                    scan->segment->number, scan->end_lsn - scan->segment->base_lsn,
                    has_next ? scan->limit_lsn : mark, tail->letter, tail->meaning);
}

/* Replays one segment's records and decides what its end means. */
static int scan_segment(struct mqx_restart *restart, struct mqx_file_window *window, size_t index,
                        struct tail *out)
{
    const bool has_next = index + 1 < restart->segment_count;
    struct mqx_found_segment *found = &restart->segments[index];
    uint64_t size = 0;
    int fd = -1;
    MQX_ASSERT(index < restart->segment_count);
    int status = open_segment(restart->store, found->entry.number, &size, &fd);
    if (status != MQX_OK) {
        return status;
    }
    mqx_file_window_switch(window, fd, size);
    struct mqx_tail_scan scan = {
        .window = window,
        .qm_id = restart->store->qm_id,
        .segment = &found->entry,
        .limit_lsn = has_next ? found->entry.end_lsn : found->entry.base_lsn + found->entry.size,
        .begin_lsn = restart->replay.begin_lsn,
        .on_record = mqx_replay_record,
        .arg = &restart->replay,
    };
    status = mqx_tail_scan_run(&scan);
    if (status == MQX_OK) {
        status = classify_tail(restart, &scan, has_next, out);
    }
    if (status == MQX_OK && !has_next && !out->clean) {
        const int err = restart->store->io->ops->sync(restart->store->io, fd);
        status = err == 0 ? MQX_OK : mqx_io_reason(err, "flushing the last journal segment");
    }
    (void)restart->store->io->ops->close(restart->store->io, fd);
    MQX_ASSERT(status != MQX_OK || !has_next || !out->clean); /* only the newest one can be */
    restart->report.records_replayed += scan.records;
    restart->report.bytes_replayed += scan.bytes;
    return status;
}

/* All segments from the begin LSN on. Units that an epoch left undecided are dropped at its end. */
static int scan_journal(struct mqx_restart *restart, struct tail *out)
{
    struct mqx_file_window window = {.io = restart->store->io, .fd = -1};
    size_t first = 0;
    MQX_ASSERT(restart->segment_count > 0);
    int status = find_begin(restart, &first);
    MQX_ASSERT(status != MQX_OK || first < restart->segment_count);
    for (size_t i = first; i < restart->segment_count && status == MQX_OK; i++) {
        if (i > first && restart->segments[i].epoch != restart->segments[i - 1].epoch) {
            mqx_replay_end_epoch(&restart->replay);
        }
        status = scan_segment(restart, &window, i, out);
    }
    mqx_file_window_free(&window);
    if (status == MQX_OK) {
        mqx_replay_end_epoch(&restart->replay);
        restart->segments[restart->segment_count - 1].entry.end_lsn = out->end_lsn;
    }
    return status;
}

/* ---- the journal's state in the region ----
 *
 * The segments that were found, then the spares; positions at the end of the good batches. With a
 * clean end the last segment stays ACTIVE and is continued; else it is FULL, and the first append
 * rolls.
 */

/* Spares that are usable enter the table from *index on; others are removed: they cost room. */
static int register_spares(struct mqx_restart *restart, const struct numbers *spares, size_t *index)
{
    struct mqx_store *store = restart->store;
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(*index > 0); /* behind the segments */
    MQX_ASSERT(*index <= MQX_SEGMENT_MAX);
    for (size_t i = 0; i < spares->count; i++) {
        struct mqx_io_stat facts = {0};
        char name[MQX_FILE_NAME_SIZE];
        mqx_file_name(name, MQX_FILE_SPARE, spares->items[i]);
        int fd = store->io->ops->open(store->io, store->journal_dir, name, MQX_IO_READ, 0);
        int err = fd < 0 ? fd : store->io->ops->stat(store->io, fd, &facts);
        if (fd >= 0) {
            (void)store->io->ops->close(store->io, fd);
        }
        const bool usable = err == 0 && facts.size >= PS_MIN_SEGMENT &&
                            (facts.size == journal->segment_size ||
                             facts.size == journal->first_segment_size);
        if (!usable || *index >= MQX_SEGMENT_MAX) {
            (void)store->io->ops->unlink(store->io, store->journal_dir, name);
            continue;
        }
        journal->segment[(*index)++] = (struct mqx_segment){
            .number = spares->items[i], .size = facts.size, .state = MQX_SEG_SPARE};
        journal->used_bytes += facts.size;
        if (spares->items[i] >= restart->replay.next_unit_id) {
            restart->replay.next_unit_id = spares->items[i] + 1; /* they are named after unit ids */
        }
    }
    return MQX_OK;
}

/* Plain stores: no other process is attached, and the region counts for nothing until it is
 * ready. */
static int set_journal(struct mqx_restart *restart, const struct listing *listing,
                       const struct tail *tail)
{
    struct mqx_journal *journal = restart->store->region.journal;
    const struct psc_header *header = &restart->checkpoint.header;
    const struct mqx_found_segment *newest = &restart->segments[restart->segment_count - 1];
    size_t index = restart->segment_count;
    MQX_ASSERT(index > 0);
    MQX_ASSERT(tail->end_lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(mqx_load_acquire(&restart->store->region.header->ready) == 0);
    if (index > MQX_SEGMENT_MAX) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "%zu journal segments, at most %d can be managed",
                        index, MQX_SEGMENT_MAX);
    }
    journal->used_bytes = 0;
    for (size_t i = 0; i < index; i++) {
        journal->segment[i] = restart->segments[i].entry;
        journal->used_bytes += journal->segment[i].size;
    }
    journal->active = (uint32_t)index;
    journal->segment[index - 1].state = tail->clean ? MQX_SEG_ACTIVE : MQX_SEG_FULL;
    int status = register_spares(restart, &listing->spares, &index);
    const uint64_t known = restart->has_checkpoint ? header->generation : 0;
    journal->next_generation =
        (newest->entry.generation > known ? newest->entry.generation : known) + 1;
    /* A clean journal continues in the same segment, to whose epoch its later units belong: one
     * that begins there and is committed in the next segment would otherwise be dropped as
     * undecided. Nothing undecided lies before. */
    journal->restart_epoch = newest->epoch + (tail->clean ? 0 : 1);
    journal->next_segment_no = newest->entry.number + 1;
    journal->next_unit_id = restart->replay.next_unit_id;
    journal->next_number = restart->replay.next_number;
    journal->batch_start = tail->end_lsn;
    journal->tail = tail->end_lsn + sizeof(struct psj_batch);
    journal->batch_records = 0;
    journal->written = tail->end_lsn;
    journal->durable = tail->end_lsn;
    journal->marked = tail->end_lsn;
    journal->checkpoint_begin = restart->replay.begin_lsn;
    journal->checkpoint_bytes = restart->has_checkpoint ? restart->checkpoint.window.file_size : 0;
    journal->reserve_bytes =
        mqx_journal_reserve_for(&restart->store->region, restart->report.messages,
                                restart->report.units_prepared);
    journal->clean_tail = tail->clean;
    journal->epoch_written = 0;
    MQX_ASSERT(journal->next_generation > newest->entry.generation);
    MQX_ASSERT(journal->batch_start >= newest->entry.base_lsn + FIRST_BATCH);
    return status;
}

/* ---- what a restart writes ----
 *
 * Through the journal's own appends, so that a death at any point leaves a journal like any other.
 */

/* A record of the restart itself: alone, and durable before the restart continues. */
static int append_and_flush(struct mqx_store *store, const unsigned char *record, uint32_t length)
{
    struct mqx_append append = {.record = record, .length = length};
    MQX_ASSERT(record != NULL);
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    MQX_ASSERT(mqx_load_acquire(&store->region.header->ready) == 0);
    int status = mqx_journal_append(store, &append);
    return status == MQX_OK ? mqx_flush_to(store, append.end_lsn) : status;
}

/* BackoutCounts of messages that were in flight (rule 46), in as many BACKOUT records as it takes.
 * After a death in between the next restart writes them again: the counts are absolute. */
static int write_counts(struct mqx_restart *restart)
{
    const struct mqx_record_head head = {.type = PS_REC_BACKOUT};
    const uint32_t smallest = (uint32_t)restart->store->region.journal->first_segment_size;
    const size_t fits = (smallest - 2 * MQX_PAGE_SIZE) / sizeof(struct ps_count);
    const size_t most = fits < COUNTS_IN_RECORD ? fits : COUNTS_IN_RECORD;
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    MQX_ASSERT(restart->raised_count == 0 || restart->raised != NULL);
    MQX_ASSERT(most > 0);
    int status = record != NULL
                     ? MQX_OK
                     : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a BACKOUT record");
    for (size_t at = 0; at < restart->raised_count && status == MQX_OK; at += most) {
        const size_t left = restart->raised_count - at;
        const uint32_t count = (uint32_t)(left < most ? left : most);
        status = append_and_flush(restart->store, record,
                                  mqx_encode_counts(record, &head, restart->raised + at, count));
    }
    return status;
}

/* Durable before the region is ready: a restart after this one must not load the image again. */
static int write_image_consumed(struct mqx_restart *restart)
{
    const struct ps_image image = {.checkpoint_lsn = restart->replay.begin_lsn};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    if (restart->report.image_messages == 0) {
        return MQX_OK;
    }
    MQX_ASSERT(restart->use_image);
    MQX_ASSERT(!restart->replay.image_consumed);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    }
    return append_and_flush(restart->store, record, mqx_encode_image_consumed(record, &image));
}

/* Visits a file of the checkpoint directory. */
static int remove_half_made(void *arg, const char *name)
{
    static const char half_made[] = ".tmp";
    struct mqx_store *store = arg;
    const size_t length = strlen(name), ending = sizeof half_made - 1;
    MQX_ASSERT(store != NULL);
    MQX_ASSERT(length > 0);
    if (length > ending && strcmp(name + length - ending, half_made) == 0) {
        (void)store->io->ops->unlink(store->io, store->checkpoint_dir, name);
    }
    return 0;
}

/* Left-overs cost room and nothing else, so a failure to remove them does no harm. */
static void remove_leftovers(struct mqx_store *store, const struct listing *listing)
{
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(listing->half_made.count <= listing->half_made.capacity);
    MQX_ASSERT(store->files != NULL); /* everything was read and found good */
    for (size_t i = 0; i < listing->half_made.count; i++) {
        mqx_file_name(name, MQX_FILE_HALF_MADE, listing->half_made.items[i]);
        (void)store->io->ops->unlink(store->io, store->journal_dir, name);
    }
    (void)store->io->ops->list(store->io, store->checkpoint_dir, remove_half_made, store);
}

/* ---- restart ---- */

/* The image was loaded by an earlier restart: its messages are gone. */
static void drop_image(struct mqx_restart *restart)
{
    MQX_ASSERT(restart->replay.image_consumed);
    MQX_ASSERT(restart->replay.image_count == restart->report.image_messages);
    for (size_t i = 0; i < restart->replay.put_count; i++) {
        if (restart->replay.puts[i].image != 0) {
            restart->replay.puts[i].state = MQX_PUT_DROPPED;
        }
    }
    restart->report.image_messages = 0;
}

/* From the replay into catalog, queues and the journal's state. */
static int load(struct mqx_restart *restart, const struct listing *listing, const struct tail *tail)
{
    MQX_ASSERT(restart->replay.unit_count == 0); /* all units are decided, dropped or prepared */
    MQX_ASSERT(restart->segment_count > 0);
    if (restart->replay.image_consumed) {
        drop_image(restart);
    }
    struct mqx_journal *journal = restart->store->region.journal;
    journal->next_unit_id = restart->replay.next_unit_id; /* the catalog versions what it stores */
    int status = mqx_replay_hold_prepared(&restart->replay);
    if (status == MQX_OK) {
        status = mqx_load_objects(restart);
    }
    restart->replay.next_unit_id = journal->next_unit_id;
    if (status == MQX_OK && (restart->has_checkpoint || restart->replay.put_count > 0)) {
        status = mqx_load_messages(restart);
    }
    if (status == MQX_OK) {
        status = mqx_load_prepared(restart);
    }
    if (status == MQX_OK) {
        status = set_journal(restart, listing, tail);
    }
    return status;
}

/* The steps in the order of the list above; the first failure ends it. */
static int run(struct mqx_restart *restart, const struct listing *listing)
{
    struct mqx_store *store = restart->store;
    struct tail tail = {0};
    MQX_ASSERT(restart->segments == NULL);
    int status = open_checkpoint(restart, listing);
    if (status == MQX_OK) {
        status = find_segments(restart, &listing->segments);
    }
    if (status == MQX_OK) {
        status = scan_journal(restart, &tail);
    }
    if (status == MQX_OK) {
        status = load(restart, listing, &tail);
    }
    if (status == MQX_OK) {
        status = mqx_journal_attach(store);
    }
    if (status == MQX_OK) {
        status = write_counts(restart);
    }
    if (status == MQX_OK) {
        status = write_image_consumed(restart);
    }
    if (status == MQX_OK) {
        MQX_ASSERT(tail.end_lsn <= store->region.journal->durable);
        remove_leftovers(store, listing);
        restart->report.units_dropped = restart->replay.units_dropped;
        restart->report.begin_lsn = restart->replay.begin_lsn;
        restart->report.end_lsn = tail.end_lsn;
        restart->report.clean = tail.clean;
    }
    return status;
}

/* One cleanup path for everything that was allocated or opened. */
int mqx_recover(struct mqx_store *store, const struct mqx_in_flight *in_flight,
                size_t in_flight_count, struct mqx_recovery_report *out)
{
    const struct mqx_area *objects = &store->region.header->area[MQX_AREA_OBJECTS];
    const uint64_t slots = objects->reserved_bytes / objects->item_size;
    struct listing listing = {0};
    struct mqx_restart restart = {
        .store = store,
        .replay = {.tag_key = mqx_tag_key(store->qm_id),
                   .slot_limit = slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX},
        .checkpoint = {.window = {.io = store->io, .fd = -1}},
        .in_flight = in_flight,
        .in_flight_count = in_flight_count,
    };
    MQX_ASSERT(in_flight_count == 0 || in_flight != NULL);
    MQX_ASSERT(restart.replay.slot_limit > 0);
    int status = mqx_load_acquire(&store->region.header->ready) == 0
                     ? list_files(store, &listing)
                     : mqx_region_damage(&store->region, "ready word of a new region", 1);
    if (status == MQX_OK) {
        status = run(&restart, &listing);
    }
    *out = restart.report;
    if (restart.in_flight != in_flight) {
        free((void *)(uintptr_t)restart.in_flight);
    }
    free(restart.raised);
    free(restart.segments);
    mqx_checkpoint_file_close(&restart.checkpoint);
    mqx_replay_free(&restart.replay);
    free_listing(&listing);
    return status;
}
