/*
 * restart_read.c - see restart_read.h.
 *
 * Which segments must be there: from the oldest that the checkpoint names (a message in it lies
 * there) to the newest, without a hole. Older files are left over from an interrupted retirement
 * and may be anything; they are not examined further.
 */
#include "recovery/restart_read.h"

#include "base/error.h"
#include "format/segment.h"
#include "recovery/tail_scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BATCH = MQX_PAGE_SIZE,  /* offset in a segment */
    FIRST_NUMBERS = 8,
    SLOTS_MAX = 1 << 28,          /* see mqx_replay.slot_limit */
    BEGIN_LSN_AT = 48,            /* of the begin LSN in a checkpoint's header */
    HOOK_RECORDS = 65536,         /* replayed between two calls of store->maintenance_hook */
};

/* ---- what files there are ----
 *
 * Names that this version does not know are left alone.
 */

/* Without memory it is marked in the listing, since a visitor has no status. */
static void add_number(struct mqx_listing *listing, struct mqx_file_numbers *numbers,
                       uint64_t number)
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
    struct mqx_listing *listing = arg;
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
    struct mqx_listing *listing = arg;
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
int mqx_restart_list_files(struct mqx_store *store, struct mqx_listing *out)
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
void mqx_restart_free_listing(struct mqx_listing *listing)
{
    MQX_ASSERT(listing->segments.count <= listing->segments.capacity);
    MQX_ASSERT(listing->spares.count <= listing->spares.capacity);
    free(listing->segments.items);
    free(listing->spares.items);
    free(listing->half_made.items);
}

/* ---- the checkpoint ---- */

/* A start refuses files that have other names, because a copy of hard links might be started, too;
 * a rehearsal is part of a queue manager that runs and goes on. */
static int open_flags(const struct mqx_restart *restart)
{
    MQX_ASSERT(restart->store != NULL);
    MQX_ASSERT(restart->store->io != NULL);
    return restart->until_lsn != 0 ? MQX_IO_LINKED : MQX_IO_READ;
}

/* Without a checkpoint the replay begins with segment 1: none was ever finished. */
int mqx_restart_open_checkpoint(struct mqx_restart *restart, const char *name)
{
    struct mqx_store *store = restart->store;
    struct mqx_replay *replay = &restart->replay;
    MQX_ASSERT(!restart->has_checkpoint);
    MQX_ASSERT(replay->put_count == 0);
    replay->next_number = 1;
    replay->next_unit_id = 1;
    if (name == NULL) {
        return MQX_OK;
    }
    int status = mqx_checkpoint_file_open(&restart->checkpoint, store->io, store->checkpoint_dir,
                                          name, store->qm_id, open_flags(restart));
    if (status != MQX_OK) {
        return status;
    }
    const struct psc_header *header = &restart->checkpoint.header;
    restart->has_checkpoint = true;
    restart->use_image = header->has_image != 0 && restart->until_lsn == 0;
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
static int open_segment(const struct mqx_restart *restart, uint64_t number, uint64_t *out_size,
                        int *out)
{
    const struct mqx_store *store = restart->store;
    struct mqx_io_stat facts = {0};
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(number != 0);
    mqx_file_name(name, MQX_FILE_SEGMENT, number);
    int fd = store->io->ops->open(store->io, store->journal_dir, name,
                                  open_flags(restart), 0);
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
static int read_header(const struct mqx_restart *restart, uint64_t number,
                       struct mqx_found_segment *out)
{
    const struct mqx_store *store = restart->store;
    struct psj_segment header;
    uint64_t size = 0;
    int fd = -1;
    MQX_ASSERT(out != NULL);
    int status = open_segment(restart, number, &size, &fd);
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
int mqx_restart_find_segments(struct mqx_restart *restart,
                              const struct mqx_file_numbers *numbers)
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
        int status = read_header(restart, number, found);
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

/* A record of the tail. The hook is called in a rehearsal, which goes on beside other work. */
static int replay_record(void *arg, uint64_t lsn, const struct psj_record *record)
{
    struct mqx_restart *restart = arg;
    struct mqx_store *store = restart->store;
    MQX_ASSERT(record != NULL);
    MQX_ASSERT(store != NULL);
    restart->hook_records += restart->until_lsn != 0;
    if (restart->hook_records == HOOK_RECORDS && store->maintenance_hook != NULL) {
        restart->hook_records = 0;
        const int status = store->maintenance_hook(store);
        if (status != MQX_OK) {
            return status;
        }
    }
    return mqx_replay_record(&restart->replay, lsn, record);
}

/* What the end of the segment's batches means: collects the facts and looks them up in the table.
 * Damage is refused with the letter of its case. */
static int classify_tail(struct mqx_restart *restart, const struct mqx_tail_scan *scan,
                         bool has_next, struct mqx_journal_end *out)
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
    *out = (struct mqx_journal_end){scan->end_lsn, tail->verdict == MQX_TAIL_CLEAN};
    if (tail->verdict != MQX_TAIL_DAMAGE) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal/%010" PRIu64 ".psj, offset %" PRIu64 ": no good batch here, but more "
                    "was durable, up to LSN %" PRIu64 " (case %c: %s)",
                    scan->segment->number, scan->end_lsn - scan->segment->base_lsn,
                    has_next ? scan->limit_lsn : mark, tail->letter, tail->meaning);
}

/* The journal is read up to an LSN only: its batches must reach that far. */
static int check_reached(const struct mqx_restart *restart, const struct mqx_tail_scan *scan,
                         struct mqx_journal_end *out)
{
    MQX_ASSERT(scan->limit_lsn == restart->until_lsn);
    MQX_ASSERT(scan->end_lsn <= scan->limit_lsn);
    *out = (struct mqx_journal_end){scan->end_lsn, false};
    return scan->end_lsn == restart->until_lsn
               ? MQX_OK
               : mqx_fail(MQRC_OBJECT_DAMAGED,
                          "journal/%010" PRIu64 ".psj: its batches end at LSN %" PRIu64
                          ", not at %" PRIu64, scan->segment->number, scan->end_lsn,
                          restart->until_lsn);
}

/* Replays one segment's records and decides what its end means. */
static int scan_segment(struct mqx_restart *restart, struct mqx_file_window *window, size_t index,
                        struct mqx_journal_end *out)
{
    const bool has_next = index + 1 < restart->segment_count;
    struct mqx_found_segment *found = &restart->segments[index];
    const uint64_t limit = has_next ? found->entry.end_lsn
                                    : found->entry.base_lsn + found->entry.size;
    const bool partly = restart->until_lsn != 0 && limit > restart->until_lsn;
    uint64_t size = 0;
    int fd = -1;
    MQX_ASSERT(index < restart->segment_count);
    int status = open_segment(restart, found->entry.number, &size, &fd);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t until = partly ? restart->until_lsn - found->entry.base_lsn : size;
    mqx_file_window_switch(window, fd, until < size ? until : size); /* nothing behind it is read */
    struct mqx_tail_scan scan = {
        .window = window,
        .qm_id = restart->store->qm_id,
        .segment = &found->entry,
        .limit_lsn = partly ? restart->until_lsn : limit,
        .begin_lsn = restart->replay.begin_lsn,
        .on_record = replay_record,
        .arg = restart,
    };
    status = mqx_tail_scan_run(&scan);
    if (status == MQX_OK) {
        status = partly ? check_reached(restart, &scan, out)
                        : classify_tail(restart, &scan, has_next, out);
    }
    if (status == MQX_OK && !has_next && !out->clean && restart->until_lsn == 0) {
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
int mqx_restart_scan(struct mqx_restart *restart, struct mqx_journal_end *out)
{
    struct mqx_file_window window = {.io = restart->store->io, .fd = -1};
    size_t first = 0;
    MQX_ASSERT(restart->segment_count > 0);
    int status = find_begin(restart, &first);
    MQX_ASSERT(status != MQX_OK || first < restart->segment_count);
    for (size_t i = first; i < restart->segment_count && status == MQX_OK; i++) {
        if (restart->until_lsn != 0 && restart->segments[i].entry.base_lsn >= restart->until_lsn) {
            break;
        }
        if (i > first && restart->segments[i].epoch != restart->segments[i - 1].epoch) {
            mqx_replay_end_epoch(&restart->replay);
        }
        status = scan_segment(restart, &window, i, out);
    }
    mqx_file_window_free(&window);
    if (status == MQX_OK) {
        mqx_replay_end_epoch(&restart->replay);
    }
    if (status == MQX_OK && restart->until_lsn == 0) {
        restart->segments[restart->segment_count - 1].entry.end_lsn = out->end_lsn;
    }
    return status;
}

/* ---- the whole ---- */

void mqx_restart_begin(struct mqx_restart *restart, struct mqx_store *store)
{
    const uint64_t slots =
        store->region.reach.space[MQX_AREA_OBJECTS] / sizeof(struct mqx_object);
    MQX_ASSERT(store->region.base != NULL);
    *restart = (struct mqx_restart){
        .store = store,
        .replay = {.tag_key = mqx_tag_key(store->qm_id),
                   .slot_limit = slots < SLOTS_MAX ? (uint32_t)slots : SLOTS_MAX},
        .checkpoint = {.window = {.io = store->io, .fd = -1}},
    };
    MQX_ASSERT(restart->replay.slot_limit > 0);
}

void mqx_restart_end(struct mqx_restart *restart)
{
    MQX_ASSERT(restart->store != NULL || restart->segments == NULL);
    if (restart->store != NULL) {
        free(restart->segments);
        mqx_checkpoint_file_close(&restart->checkpoint);
        mqx_replay_free(&restart->replay);
        restart->segments = NULL;
    }
}

int mqx_restart_read(struct mqx_restart *restart, const char *checkpoint)
{
    struct mqx_listing listing = {0};
    struct mqx_journal_end end = {0};
    char newest[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(restart->until_lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(restart->segments == NULL);
    int status = mqx_restart_list_files(restart->store, &listing);
    if (checkpoint == NULL && listing.has_checkpoint) {
        mqx_checkpoint_file_name(newest, listing.newest_checkpoint, true);
        checkpoint = newest;
    }
    if (status == MQX_OK) {
        status = mqx_restart_open_checkpoint(restart, checkpoint);
    }
    if (status == MQX_OK) {
        status = mqx_restart_find_segments(restart, &listing.segments);
    }
    if (status == MQX_OK) {
        status = mqx_restart_scan(restart, &end);
    }
    if (status == MQX_OK) {
        status = mqx_replay_hold_prepared(&restart->replay);
        restart->checkpoint.at = restart->rest_at;
        restart->checkpoint.totals = restart->rest_totals;
    }
    mqx_restart_free_listing(&listing);
    return status;
}
