/*
 * restart.c - see restart.h. The order of a restart:
 *
 *   reading          list, checkpoint, segments, scan (restart_read.c)
 *   load             what a prepared unit holds, objects, messages, prepared units (load.c)
 *   set_journal      segment table, positions and counters in the region
 *   write_counts, write_image_consumed   the records of invariant 2
 *   remove_leftovers
 *
 * What is read when. The reading steps only read files and fill memory of this process; load
 * and set_journal write the region, which counts for nothing until the caller sets `ready`; the
 * rest appends to the journal like any process would. So a restart that fails or dies at any point
 * leaves files that the next restart reads the same way.
 */
#include "recovery/restart.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/group_commit.h"
#include "recovery/checkpoint_reserve.h"
#include "recovery/load.h"
#include "recovery/restart_read.h"
#include "region/damage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BATCH = MQX_PAGE_SIZE,  /* offset in a segment */
    COUNTS_IN_RECORD = 2000,      /* backout counts in a BACKOUT record at most */
};


/* ---- the journal's state in the region ----
 *
 * The segments that were found, then the spares; positions at the end of the good batches. With a
 * clean end the last segment stays ACTIVE and is continued; else it is FULL, and the first append
 * rolls.
 */

/* Spares, or reserved files, that are usable enter the table from *index on; others are removed:
 * they cost room. */
static void register_spares(struct mqx_restart *restart, const struct mqx_file_numbers *spares,
                            enum mqx_file_kind kind, size_t *index)
{
    struct mqx_store *store = restart->store;
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(*index > 0); /* behind the segments */
    MQX_ASSERT(*index <= MQX_SEGMENT_MAX);
    for (size_t i = 0; i < spares->count; i++) {
        struct mqx_io_stat facts = {0};
        char name[MQX_FILE_NAME_SIZE];
        mqx_file_name(name, kind, spares->items[i]);
        int fd = store->io->ops->open(store->io, store->journal_dir, name, MQX_IO_READ, 0);
        int err = fd < 0 ? fd : store->io->ops->stat(store->io, fd, &facts);
        if (fd >= 0) {
            (void)store->io->ops->close(store->io, fd);
        }
        const bool fits = facts.size % MQX_PAGE_SIZE == 0 &&
                          (kind == MQX_FILE_RESERVED ||
                           (facts.size >= mqx_journal_smallest_segment(journal) &&
                            facts.size <= journal->segment_size));
        const bool usable = err == 0 && facts.size >= PS_MIN_SEGMENT && fits;
        if (!usable || *index >= MQX_SEGMENT_MAX) {
            (void)store->io->ops->unlink(store->io, store->journal_dir, name);
            continue;
        }
        journal->segment[(*index)++] = (struct mqx_segment){
            .number = spares->items[i],
            .size = facts.size,
            .state = kind == MQX_FILE_SPARE ? MQX_SEG_SPARE : MQX_SEG_RESERVED};
        journal->used_bytes += kind == MQX_FILE_SPARE ? facts.size : 0;
        if (spares->items[i] >= restart->replay.next_unit_id) {
            restart->replay.next_unit_id = spares->items[i] + 1; /* they are named after unit ids */
        }
    }
}

/* Plain stores: no other process is attached, and the region counts for nothing until it is
 * ready. */
static int set_journal(struct mqx_restart *restart, const struct mqx_listing *listing,
                       const struct mqx_journal_end *tail)
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
    register_spares(restart, &listing->spares, MQX_FILE_SPARE, &index);
    register_spares(restart, &listing->reserved, MQX_FILE_RESERVED, &index);
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
    journal->start_lsn =
        tail->clean ? tail->end_lsn : newest->entry.base_lsn + newest->entry.size;
    journal->written = tail->end_lsn;
    mqx_journal_set_durable(journal, tail->end_lsn);
    journal->marked = tail->end_lsn;
    journal->checkpoint_begin = restart->replay.begin_lsn;
    journal->checkpoint_bytes = restart->has_checkpoint ? restart->checkpoint.window.file_size : 0;
    journal->listed_bytes = 0;
    mqx_journal_learn(journal, &restart->checkpoint.totals, journal->checkpoint_bytes);
    if (tail->clean && restart->has_checkpoint) {
        mqx_checkpoint_reserve_know(restart->store, &restart->checkpoint.lines,
                                    journal->checkpoint_bytes);
    }
    journal->older_bytes = 0;
    journal->checkpoint_reserve = 0; /* it is looked for when it is wanted first */
    journal->checkpoint_damaged = restart->report.damaged_checkpoint;
    journal->older_keeps = listing->checkpoints.count > 1;
    journal->reserve_bytes =
        mqx_journal_reserve_for(&restart->store->region, restart->report.messages,
                                restart->report.units_prepared);
    journal->clean_tail = tail->clean;
    journal->epoch_written = 0;
    journal->way_out = MQX_WAY_OUT_UNKNOWN;
    journal->disk_full = 0;
    uint64_t live = 0;
    (void)mqx_journal_bound_puts(&restart->store->region, &live);
    mqx_journal_set_sums(journal);
    MQX_ASSERT(journal->next_generation > newest->entry.generation);
    MQX_ASSERT(journal->batch_start >= newest->entry.base_lsn + FIRST_BATCH);
    return MQX_OK;
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
                                  mqx_encode_counts(record, &head, restart->raised + at, NULL,
                                                    count));
    }
    return status;
}

/* Durable before the region is ready: no later restart loads the image of that checkpoint. */
static int write_image_consumed(struct mqx_restart *restart, uint64_t checkpoint_lsn)
{
    const struct ps_image image = {.checkpoint_lsn = checkpoint_lsn};
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    MQX_ASSERT(checkpoint_lsn != 0);
    MQX_ASSERT(mqx_load_acquire(&restart->store->region.header->ready) == 0);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a record");
    }
    return append_and_flush(restart->store, record, mqx_encode_image_consumed(record, &image));
}

/* The image that was loaded, and those of damaged checkpoints that may be readable once more. */
static int write_images_consumed(struct mqx_restart *restart, const struct mqx_listing *listing,
                                 const struct mqx_choice *choice)
{
    const struct mqx_file_numbers *all = &listing->checkpoints;
    int status = MQX_OK;
    MQX_ASSERT(choice->passed_over <= all->count);
    if (restart->report.image_messages > 0) {
        MQX_ASSERT(restart->use_image);
        MQX_ASSERT(!restart->replay.image_consumed);
        status = write_image_consumed(restart, restart->replay.begin_lsn);
    }
    for (size_t i = 0; i < choice->passed_over && status == MQX_OK; i++) {
        status = write_image_consumed(restart, all->items[all->count - 1 - i]);
    }
    return status;
}

/* A page of HEAD that is not good is written again. It says what the good one says: the name of a
 * segment that is newer may not be on the medium. */
static int mend_head(struct mqx_store *store, const struct mqx_head *head)
{
    bool unknown = false;
    MQX_ASSERT(head->segment_no != 0);
    MQX_ASSERT(store->dir >= 0);
    if (!head->damaged) {
        return MQX_OK;
    }
    const int err = mqx_head_write(store->io, store->dir, store->qm_id, head, &unknown);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "writing HEAD");
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
static void remove_leftovers(struct mqx_store *store, const struct mqx_listing *listing)
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
static int load(struct mqx_restart *restart, const struct mqx_listing *listing,
                const struct mqx_journal_end *tail)
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

/* The newest whole checkpoint; the report names a newer one that is damaged. */
static int open_newest(struct mqx_restart *restart, const struct mqx_listing *listing,
                       struct mqx_choice *out)
{
    const struct mqx_file_numbers *all = &listing->checkpoints;
    char name[MQX_CHECKPOINT_NAME_SIZE];
    MQX_ASSERT(restart->until_lsn == 0);
    const int status = mqx_restart_choose(restart, listing, UINT64_MAX, out);
    if (status != MQX_OK) {
        return status;
    }
    if (out->passed_over > 0) {
        MQX_ASSERT(out->passed_over <= all->count);
        restart->report.damaged_checkpoint = all->items[all->count - 1];
        memcpy(restart->report.damage, out->damage, sizeof restart->report.damage);
    }
    mqx_checkpoint_file_name(name, out->begin_lsn, true);
    const int opened = mqx_restart_open_checkpoint(restart, out->found ? name : NULL);
    if (opened == MQX_OK && restart->has_checkpoint && restart->checkpoint.header.clean != 0) {
        /* the tail is short: hardly any of them will be gone */
        mqx_memory_ahead_want(restart->ahead, restart->listed_messages);
    }
    return opened;
}

/* The steps in the order of the list above; the first failure ends it. */
static int run(struct mqx_restart *restart, const struct mqx_listing *listing)
{
    struct mqx_store *store = restart->store;
    struct mqx_journal_end tail = {0};
    struct mqx_head head = {0};
    struct mqx_choice choice = {0};
    MQX_ASSERT(restart->segments == NULL);
    int status = open_newest(restart, listing, &choice);
    if (status == MQX_OK) {
        status = mqx_restart_find_segments(restart, &listing->segments);
        if (status == MQRC_OBJECT_DAMAGED && !choice.found && choice.passed_over > 0) {
            status = mqx_fail(status, "%s; no older checkpoint is whole, and the journal does not "
                              "begin with segment 1", choice.damage);
        }
    }
    if (status == MQX_OK) {
        status = mqx_restart_check_head(restart, &head);
        store->region.journal->timeline = head.timeline;
    }
    if (status == MQX_OK) {
        status = mqx_restart_scan(restart, &tail);
    }
    if (status == MQX_OK) {
        status = load(restart, listing, &tail);
    }
    if (status == MQX_OK) {
        status = mend_head(store, &head);
    }
    if (status == MQX_OK) {
        status = mqx_journal_attach(store);
    }
    if (status == MQX_OK) {
        status = write_counts(restart);
    }
    if (status == MQX_OK) {
        status = write_images_consumed(restart, listing, &choice);
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
    struct mqx_listing listing = {0};
    struct mqx_memory_ahead ahead;
    struct mqx_restart restart;
    MQX_ASSERT(in_flight_count == 0 || in_flight != NULL);
    mqx_restart_begin(&restart, store);
    restart.in_flight = in_flight;
    restart.in_flight_count = in_flight_count;
    MQX_ASSERT(restart.until_lsn == 0);
    mqx_memory_ahead_begin(&ahead, &store->region);
    restart.ahead = &ahead;
    int status = mqx_load_acquire(&store->region.header->ready) == 0
                     ? mqx_restart_list_files(store, &listing)
                     : mqx_region_damage(&store->region, "ready word of a new region", 1);
    if (status == MQX_OK) {
        status = run(&restart, &listing);
    }
    mqx_memory_ahead_end(&ahead);
    *out = restart.report;
    if (restart.in_flight != in_flight) {
        free((void *)(uintptr_t)restart.in_flight);
    }
    free(restart.raised);
    mqx_restart_end(&restart);
    mqx_restart_free_listing(&listing);
    return status;
}
