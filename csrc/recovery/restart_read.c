/*
 * restart_read.c - see restart_read.h.
 *
 * Which segments must be there: from the checkpoint's begin segment to the newest, without a hole;
 * of the older ones those that the checkpoint lists, because a message in it lies there. Other
 * older files are left over from an interrupted retirement and may be anything: one with a good
 * header is entered, so that the next checkpoint retires it, and is not examined further.
 */
#include "recovery/restart_read.h"

#include "base/error.h"
#include "format/segment.h"
#include "recovery/tail_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BATCH = MQX_PAGE_SIZE,  /* offset in a segment */
    FIRST_NUMBERS = 8,
    SLOTS_MAX = 1 << 28,          /* see mqx_replay.slot_limit */
    BEGIN_LSN_AT = 48,            /* of the begin LSN in a checkpoint's header */
    BEGIN_SEGMENT_AT = 56,        /* of the begin segment */
    HOOK_RECORDS = 65536,         /* replayed between two calls of store->maintenance_hook */
    READINGS = 2,                 /* of a checkpoint that seems to be damaged */
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
    case MQX_FILE_RESERVED: add_number(listing, &listing->reserved, number); break;
    case MQX_FILE_HALF_MADE: add_number(listing, &listing->half_made, number); break;
    case MQX_FILE_OTHER: break;
    }
    return 0;
}

/* Visits a file of the checkpoint directory. */
static int note_checkpoint_file(void *arg, const char *name)
{
    struct mqx_listing *listing = arg;
    MQX_ASSERT(listing != NULL);
    MQX_ASSERT(name != NULL);
    uint64_t begin_lsn = 0;
    if (mqx_checkpoint_file_parse(name, &begin_lsn)) {
        add_number(listing, &listing->checkpoints, begin_lsn);
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

static void sort(struct mqx_file_numbers *numbers)
{
    MQX_ASSERT(numbers->count <= numbers->capacity);
    MQX_ASSERT(numbers->count == 0 || numbers->items != NULL);
    if (numbers->count > 1) {
        qsort(numbers->items, numbers->count, sizeof(uint64_t), by_value);
    }
}

/* One listing of each directory; segments and checkpoints sorted. */
int mqx_restart_list_files(struct mqx_store *store, struct mqx_listing *out)
{
    struct mqx_io *io = store->io;
    MQX_ASSERT(out->segments.count == 0);
    MQX_ASSERT(out->checkpoints.count == 0);
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
    sort(&out->segments);
    sort(&out->checkpoints);
    return MQX_OK;
}

/* After a failure half way, too. */
void mqx_restart_free_listing(struct mqx_listing *listing)
{
    MQX_ASSERT(listing->segments.count <= listing->segments.capacity);
    MQX_ASSERT(listing->spares.count <= listing->spares.capacity);
    free(listing->segments.items);
    free(listing->spares.items);
    free(listing->reserved.items);
    free(listing->half_made.items);
    free(listing->checkpoints.items);
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

/* Reads it twice before it counts as damaged: passing over one costs its image, and an error on the
 * way from the medium may not come again. */
static int verify_checkpoint(const struct mqx_restart *restart, const char *name)
{
    const struct mqx_store *store = restart->store;
    int status = MQRC_OBJECT_DAMAGED;
    MQX_ASSERT(name[0] != '\0');
    MQX_ASSERT(store->checkpoint_dir >= 0);
    for (int i = 0; i < READINGS && status == MQRC_OBJECT_DAMAGED; i++) {
        mqx_error_clear();
        status = mqx_checkpoint_file_verify(store->io, store->checkpoint_dir, name,
                                            open_flags(restart));
    }
    return status;
}

/* Damaged ones are passed over, so a flipped bit costs a longer replay. */
int mqx_restart_choose(const struct mqx_restart *restart, const struct mqx_listing *listing,
                       uint64_t below, struct mqx_choice *out)
{
    const struct mqx_file_numbers *all = &listing->checkpoints;
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(below > 0);
    *out = (struct mqx_choice){.found = false};
    for (size_t i = all->count; i > 0; i--) {
        if (all->items[i - 1] >= below) {
            continue;
        }
        mqx_checkpoint_file_name(name, all->items[i - 1], true);
        const int status = verify_checkpoint(restart, name);
        if (status != MQRC_OBJECT_DAMAGED) {
            out->found = status == MQX_OK;
            out->begin_lsn = all->items[i - 1];
            return status;
        }
        if (out->passed_over++ == 0) {
            (void)snprintf(out->damage, sizeof out->damage, "%s", mqx_error_text());
        }
    }
    MQX_ASSERT(!out->found);
    return MQX_OK;
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
    replay->units_listed = header->units_listed != 0;
    replay->next_number = header->next_number;
    replay->next_unit_id = header->next_unit_id;
    return mqx_load_checkpoint_start(restart);
}

/* Number of the segment in which the replay begins. */
static uint64_t begin_segment(const struct mqx_restart *restart)
{
    MQX_ASSERT(!restart->has_checkpoint || restart->checkpoint.window.fd >= 0);
    MQX_ASSERT(restart->store != NULL);
    return restart->has_checkpoint ? restart->checkpoint.header.begin_segment : 1;
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
    memcpy(out->entry.salt, header.salt, sizeof header.salt);
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

/* What the checkpoint says about a segment before its begin segment; NULL: it is not needed. */
static const struct psc_segment *find_listed(const struct mqx_restart *restart, uint64_t number)
{
    size_t low = 0, high = restart->listed_count;
    MQX_ASSERT(number != 0);
    MQX_ASSERT(restart->listed_count == 0 || restart->listed != NULL);
    while (low < high) { /* numbers ascend */
        const size_t middle = (low + high) / 2;
        if (restart->listed[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < restart->listed_count && restart->listed[low].number == number
               ? &restart->listed[low]
               : NULL;
}

static MQX_COLD int missing(uint64_t number)
{
    MQX_ASSERT(number != 0);
    return mqx_fail(MQRC_OBJECT_DAMAGED, "journal: segment %" PRIu64 " is missing", number);
}

/* A segment before the begin segment: where it ends, and does it fit the list and the one after it,
 * which need not be its neighbour? */
static bool is_older(struct mqx_found_segment *found, const struct mqx_found_segment *after,
                     const struct psc_segment *listed)
{
    struct mqx_segment *entry = &found->entry;
    MQX_ASSERT(after->entry.number > entry->number);
    MQX_ASSERT(listed == NULL || listed->number == entry->number);
    const uint64_t file_end = entry->base_lsn + entry->size;
    entry->end_lsn = listed != NULL                             ? listed->end_lsn
                     : after->entry.number == entry->number + 1 ? after->entry.prev_end_lsn
                                                                : file_end;
    return after->entry.base_lsn >= file_end && after->entry.generation > entry->generation &&
           after->epoch >= found->epoch && entry->end_lsn <= file_end &&
           entry->end_lsn >= entry->base_lsn + FIRST_BATCH &&
           (listed == NULL || (entry->generation == listed->generation &&
                               entry->base_lsn == listed->base_lsn &&
                               (after->entry.number != entry->number + 1 ||
                                after->entry.prev_end_lsn == listed->end_lsn)));
}

/* Segments before the begin segment, newest first, in front of segments[*first]. */
static int find_older(struct mqx_restart *restart, const struct mqx_file_numbers *numbers,
                      size_t below, size_t *first)
{
    size_t listed_left = restart->listed_count;
    MQX_ASSERT(below <= numbers->count);
    MQX_ASSERT(*first >= below); /* each has an entry */
    for (size_t i = below; i-- > 0 && numbers->items[i] != 0;) {
        const uint64_t number = numbers->items[i];
        const struct psc_segment *listed = find_listed(restart, number);
        struct mqx_found_segment found;
        int status = read_header(restart, number, &found);
        if (status == MQX_OK && !is_older(&found, &restart->segments[*first], listed)) {
            status = mqx_fail(MQRC_OBJECT_DAMAGED,
                              "journal/%010" PRIu64 ".psj: its header (offset 0) does not fit the "
                              "checkpoint or the next segment", number);
        }
        if (status != MQX_OK && listed != NULL) {
            return status;
        }
        if (status == MQX_OK) {
            found.listed = listed != NULL;
            restart->segments[--*first] = found;
            listed_left -= listed != NULL;
        }
    }
    for (size_t i = 0; i < restart->listed_count && listed_left > 0; i++) {
        const uint64_t number = restart->listed[i].number;
        if (bsearch(&number, numbers->items, numbers->count, sizeof number, by_value) == NULL) {
            return missing(number);
        }
    }
    MQX_ASSERT(listed_left == 0);
    return MQX_OK;
}

/* From the newest back to the begin segment, without a hole; then the older ones. */
int mqx_restart_find_segments(struct mqx_restart *restart,
                              const struct mqx_file_numbers *numbers)
{
    const uint64_t begin = begin_segment(restart);
    size_t first = numbers->count; /* index of the oldest that counts, in segments[] */
    size_t at = numbers->count;    /* and of its number */
    MQX_ASSERT(restart->segments == NULL);
    if (begin == 0) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, BEGIN_SEGMENT_AT,
                                           "its begin segment is 0");
    }
    restart->segments = calloc(numbers->count + 1, sizeof *restart->segments);
    if (restart->segments == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for the list of segments");
    }
    for (uint64_t next = at > 0 ? numbers->items[at - 1] : 0; at > 0 && next >= begin; next--) {
        struct mqx_found_segment *found = &restart->segments[first - 1];
        if (numbers->items[at - 1] != next) {
            return missing(next);
        }
        int status = read_header(restart, next, found);
        if (status == MQX_OK && first < numbers->count) {
            status = check_order(found, found + 1);
        }
        if (status != MQX_OK) {
            return status;
        }
        first -= 1;
        at -= 1;
    }
    if (first == numbers->count || restart->segments[first].entry.number != begin) {
        return missing(begin);
    }
    const int status = find_older(restart, numbers, at, &first);
    if (status != MQX_OK) {
        return status;
    }
    restart->segment_count = numbers->count - first;
    restart->begin_index = at - first;
    memmove(restart->segments, restart->segments + first,
            restart->segment_count * sizeof *restart->segments);
    MQX_ASSERT(restart->segments[restart->begin_index].entry.number == begin);
    return MQX_OK;
}

/* A segment that is newer than the one that HEAD names is empty, or HEAD's newer page is lost. */
int mqx_restart_check_head(const struct mqx_restart *restart, struct mqx_head *out)
{
    const struct mqx_store *store = restart->store;
    const struct mqx_segment *newest = &restart->segments[restart->segment_count - 1].entry;
    MQX_ASSERT(restart->segment_count > 0);
    MQX_ASSERT(restart->until_lsn == 0);
    const int status = mqx_head_read(store->io, store->dir, store->qm_id, MQX_IO_READ, out);
    if (status != MQX_OK || newest->number > out->segment_no ||
        (newest->number == out->segment_no && newest->generation >= out->generation)) {
        return status;
    }
    return newest->number < out->segment_no
               ? mqx_fail(MQRC_OBJECT_DAMAGED,
                          "journal/%010" PRIu64 ".psj is missing: HEAD names it as the newest "
                          "segment, %010" PRIu64 ".psj is the last one there", out->segment_no,
                          newest->number)
               : mqx_fail(MQRC_OBJECT_DAMAGED,
                          "journal/%010" PRIu64 ".psj is an older file of that name: HEAD says "
                          "generation %" PRIu64 ", its header (offset 56) %" PRIu64,
                          newest->number, out->generation, newest->generation);
}

/* The checkpoint must fit the segments. */
static int check_begin(const struct mqx_restart *restart)
{
    const struct psc_header *header = &restart->checkpoint.header;
    const struct mqx_segment *newest = &restart->segments[restart->segment_count - 1].entry;
    const struct mqx_segment *begin = &restart->segments[restart->begin_index].entry;
    MQX_ASSERT(restart->segment_count > 0);
    MQX_ASSERT(restart->begin_index < restart->segment_count);
    if (!restart->has_checkpoint) {
        return MQX_OK;
    }
    if (header->generation > newest->generation || header->oldest_segment > begin->number ||
        header->oldest_segment !=
            (restart->listed_count > 0 ? restart->listed[0].number : begin->number)) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, 0,
                                           "it does not fit the journal's segments");
    }
    if (header->begin_lsn < begin->prev_end_lsn ||
        header->begin_lsn > begin->base_lsn + begin->size) {
        return mqx_checkpoint_file_damaged(&restart->checkpoint, BEGIN_LSN_AT,
                                           "its begin LSN is not in its segment");
    }
    return MQX_OK;
}

/* ---- scanning ---- */

/* In a rehearsal, once: the units that are not decided at list_lsn. */
static int list_units(struct mqx_restart *restart)
{
    MQX_ASSERT(restart->list_lsn != 0);
    MQX_ASSERT(restart->list_lsn <= restart->until_lsn);
    restart->list_lsn = 0;
    return mqx_units_list(&restart->replay, &restart->units_at, &restart->all_units);
}

/* The same at the end, where the other side of the rehearsal must have the same. */
static int sum_units(struct mqx_restart *restart)
{
    struct mqx_units_in_flight list = {0};
    bool all = true;
    MQX_ASSERT(restart->until_lsn != 0);
    MQX_ASSERT(restart->list_lsn == 0);
    const int status = mqx_units_list(&restart->replay, &list, &all);
    restart->end_units = mqx_units_checksum(&list);
    mqx_units_free(&list);
    return status;
}

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
    const int status =
        restart->list_lsn != 0 && lsn >= restart->list_lsn ? list_units(restart) : MQX_OK;
    return status == MQX_OK ? mqx_replay_record(&restart->replay, lsn, record) : status;
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

/* The journal is read up to an LSN only: its batches must reach that far. Where a torn tail would
 * be accepted, at the end of the newest segment, that LSN was durable: what is not good there was
 * read wrong, or is gone. */
static int check_reached(const struct mqx_restart *restart, const struct mqx_tail_scan *scan,
                         struct mqx_journal_end *out)
{
    MQX_ASSERT(scan->limit_lsn <= restart->until_lsn);
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
    const bool last =
        restart->until_lsn != 0 && (limit >= restart->until_lsn || !has_next);
    const uint64_t end = last && limit > restart->until_lsn ? restart->until_lsn : limit;
    uint64_t size = 0;
    int fd = -1;
    MQX_ASSERT(index < restart->segment_count);
    int status = open_segment(restart, found->entry.number, &size, &fd);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t until = last ? end - found->entry.base_lsn : size;
    mqx_file_window_switch(window, fd, until < size ? until : size); /* nothing behind it is read */
    struct mqx_tail_scan scan = {
        .window = window,
        .qm_id = restart->store->qm_id,
        .segment = &found->entry,
        .limit_lsn = end,
        .begin_lsn = restart->replay.begin_lsn,
        .on_record = replay_record,
        .arg = restart,
    };
    status = mqx_tail_scan_run(&scan);
    if (status == MQX_OK) {
        status = last ? check_reached(restart, &scan, out)
                      : classify_tail(restart, &scan, has_next, out);
    }
    if (status == MQX_OK && !has_next && !out->clean && restart->until_lsn == 0) {
        const int err = restart->store->io->ops->sync(restart->store->io, fd);
        status = err == 0 ? MQX_OK : mqx_io_reason(err, "flushing the last journal segment");
    }
    (void)restart->store->io->ops->close(restart->store->io, fd);
    if (status == MQX_OK && restart->until_lsn != 0 && limit >= restart->until_lsn) {
        found->entry.end_lsn = restart->until_lsn; /* nothing behind it was read */
    }
    MQX_ASSERT(status != MQX_OK || !has_next || !out->clean); /* only the newest one can be */
    restart->report.records_replayed += scan.records;
    restart->report.bytes_replayed += scan.bytes;
    return status;
}

/* All segments from the begin LSN on. Units that an epoch left undecided are dropped at its end. */
int mqx_restart_scan(struct mqx_restart *restart, struct mqx_journal_end *out)
{
    struct mqx_file_window window = {.io = restart->store->io, .fd = -1};
    const size_t first = restart->begin_index;
    MQX_ASSERT(restart->segment_count > 0);
    MQX_ASSERT(first < restart->segment_count);
    int status = check_begin(restart);
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
    if (status == MQX_OK && restart->list_lsn != 0) {
        status = list_units(restart);
    }
    if (status == MQX_OK && restart->until_lsn != 0) {
        status = sum_units(restart);
    }
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
    MQX_ASSERT(restart->listed_count == 0 || restart->listed != NULL);
    if (restart->store != NULL) {
        free(restart->segments);
        free(restart->listed);
        mqx_units_free(&restart->carried);
        mqx_units_free(&restart->units_at);
        mqx_checkpoint_file_close(&restart->checkpoint);
        mqx_replay_free(&restart->replay);
        restart->segments = NULL;
        restart->listed = NULL;
    }
}

int mqx_restart_read(struct mqx_restart *restart, const char *checkpoint)
{
    struct mqx_listing listing = {0};
    struct mqx_journal_end end = {0};
    struct mqx_choice choice = {0};
    char chosen[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(restart->until_lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(restart->segments == NULL);
    int status = mqx_restart_list_files(restart->store, &listing);
    if (status == MQX_OK && checkpoint == NULL) {
        status = mqx_restart_choose(restart, &listing, UINT64_MAX, &choice);
        mqx_checkpoint_file_name(chosen, choice.begin_lsn, true);
        checkpoint = choice.found ? chosen : NULL;
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
