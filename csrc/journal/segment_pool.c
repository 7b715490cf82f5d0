/*
 * segment_pool.c - spare segment files: making them, rolling into one. Segments come back by
 * segment_retire.c. See journal.h for terms and invariants.
 *
 * A roll, step by step, and what a process that comes after a death finds:
 *   1. An append that does not fit seals the open batch and closes the segment (ring.c).
 *   2. Everything sealed is flushed (group_commit.c). The segment is now durable up to its end_lsn.
 *   3. Under the roll lock a spare gets its header page, written with data sync while it still has
 *      the spare's name. After a death: the same spare gets its header again.
 *   4. It is renamed and the directory flushed. After a death: the spare's name is gone, the file
 *      is found under the next segment's name and taken as it is.
 *   5. HEAD names it, durable (head_file.h). After a death: HEAD names it once more.
 *   6. One ring micro-transaction makes it the active segment.
 *
 * States of an entry of the segment table, and what changes them
 *   FREE    no file              -> SPARE   a spare's file is whole and entered (mqx_pool_register)
 *   SPARE   spare-<number>.psj   -> ACTIVE  a roll took it (make_active)
 *                                -> FREE    unlinked at the orderly end (segment_retire.c)
 *   ACTIVE  <number>.psj         -> FULL    an append did not fit (ring.c, close_segment)
 *   FULL    <number>.psj         -> SPARE   retired, and the file is kept (segment_retire.c)
 *                                -> FREE    retired, and the file is unlinked or archived
 *                                -> RESERVED  retired on a full disk, and too few are reserved
 *   RESERVED  reserve-<number>.psj  -> ACTIVE  a roll that found no spare and no room for one
 *   FREE, SPARE -> RESERVED: segment_reserve.c
 *   A restart sets FULL for every segment it finds, ACTIVE for the last one after an orderly end,
 *   SPARE for usable spares.
 *
 * Invariants
 *   1. A table entry is SPARE only while its file exists under the spare's name, except between
 *      steps 4 and 6 of a roll; used_bytes counts the files of all entries that are not FREE or
 *      RESERVED. A RESERVED one may have either name: a roll looks for both.
 *   2. Segments from the checkpoint's begin segment on are kept without a hole; of the older ones
 *      any may be retired.
 *
 * Locks. Roll lock for every change of files and table, the ring lock inside it for the table.
 * Making a spare's file takes long and is done without a lock.
 *
 * Errors. MQRC_STORAGE_MEDIUM_FULL at the limit, at MQX_SEGMENT_MAX files, or on a full disk: the
 * table is unchanged and no file is left. A failed write or flush on the way into a segment stops
 * the queue manager (mqx_journal_write_failed), unless it is a fault of this process alone:
 * MQX_CANNOT_LEAD (leadership.h); another process may roll.
 */
#include "journal/journal_private.h"
#include "journal/leadership.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/head_file.h"
#include "journal/segment_pin.h"
#include "os/futex.h"
#include "region/damage.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define SET32(at, value) mqx_undo_store32(region->base, &journal->ring_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &journal->ring_lock, (at), (value))

enum {
    STREAM_SEGMENTS = 2,
    STREAM_SPARES = 3,
    SMALL_MOST = 16 << 20, /* bytes of a segment that is made in the time of an append */
};

/* ---- spares ----
 *
 * A spare is made ahead of its use, because filling a file with zeroes and flushing it takes as
 * long as many commits. It is zero-filled so that a write into it changes no metadata of the file
 * system: a data sync then writes the data alone (rule 7).
 */

/* An unused entry of the segment table, or -1 when it is full. */
static int free_entry(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(journal->used_bytes > 0); /* there is a segment, always */
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        if (journal->segment[i].state == MQX_SEG_FREE) {
            return i;
        }
    }
    return -1;
}

/* The oldest entry of that state; -1 when there is none. */
int mqx_pool_next(const struct mqx_region *region, uint32_t state)
{
    const struct mqx_journal *journal = region->journal;
    int found = -1;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(state == MQX_SEG_SPARE || state == MQX_SEG_RESERVED);
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->state == state &&
            (found < 0 || segment->number < journal->segment[found].number)) {
            found = i;
        }
    }
    return found;
}

/* The spare that is used next. */
static int next_spare(const struct mqx_region *region)
{
    MQX_ASSERT(region->journal != NULL);
    return mqx_pool_next(region, MQX_SEG_SPARE);
}

/* Without a lock: a number for maintenance and tests, exact under the roll lock. */
uint32_t mqx_journal_spare_count(struct mqx_store *store)
{
    uint32_t count = 0;
    MQX_ASSERT(store != NULL);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        count += store->region.journal->segment[i].state == MQX_SEG_SPARE;
    }
    MQX_ASSERT(count < MQX_SEGMENT_MAX); /* one is the active segment */
    return count;
}

/* Without a lock, too: a number as good as live_messages is. */
static bool is_only_pinned(const struct mqx_journal *journal, const struct mqx_segment *segment)
{
    const uint64_t number = mqx_load_relaxed(&segment->number);
    MQX_ASSERT(segment >= journal->segment);
    return mqx_load_relaxed(&segment->live_messages) == 0 && number != 0 &&
           mqx_pin_holds(journal, number);
}

/* Without a lock, too. Spares are left out: they are what the next interval writes into, so that
 * they come on top of the stream only as long as they are not used. So are segments that only a
 * backup keeps: no checkpoint and no compaction would free them. */
uint64_t mqx_journal_stream_bytes(const struct mqx_journal *journal)
{
    uint64_t bytes = 0;
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->segment_size > 0);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        const bool holds = segment->state == MQX_SEG_ACTIVE ||
                           (segment->state == MQX_SEG_FULL && !is_only_pinned(journal, segment));
        bytes += holds ? segment->size : 0;
    }
    return bytes;
}

int mqx_pool_register(struct mqx_store *store, uint64_t number, uint64_t size, uint32_t state)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    const int index = free_entry(region);
    MQX_ASSERT(size >= PS_MIN_SEGMENT);
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);
    if (index < 0) {
        return mqx_fail(MQRC_STORAGE_MEDIUM_FULL, "the journal has %d segment files, the most",
                        MQX_SEGMENT_MAX);
    }
    if (MQX_UNLIKELY(!mqx_segment_is_sound(journal, (uint32_t)index))) { /* of a file that counts */
        return mqx_region_damage(region, "journal's segment table", (uint64_t)index);
    }
    int status = mqx_ring_take(region);
    if (status == MQX_OK) {
        struct mqx_segment *segment = &journal->segment[index];
        SET64(&segment->number, number);
        SET64(&segment->size, size);
        SET32(&segment->state, state);
        if (state == MQX_SEG_SPARE) {
            SET64(&journal->used_bytes, journal->used_bytes + size);
        }
        mqx_ring_sum_segment(region, segment);
        mqx_ring_sum(region);
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return status;
}

/* Does a spare of which so much is made keep up with the appends? Without a lock: a pause too many
 * or too few. */
static bool is_ahead(const struct mqx_journal *journal, uint64_t made, uint64_t size)
{
    const uint32_t active = mqx_load_relaxed(&journal->active);
    MQX_ASSERT(made < size);
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);
    if (active == 0 || active > MQX_SEGMENT_MAX) {
        return false;
    }
    const struct mqx_segment *segment = &journal->segment[active - 1];
    const uint64_t used = mqx_load_relaxed(&journal->tail) - mqx_load_relaxed(&segment->base_lsn);
    return (double)made / (double)size > (double)used / (double)mqx_load_relaxed(&segment->size);
}

/* The maintenance makes a spare: what others wait for is done beside that, above all a longer
 * reserve for a checkpoint, which puts need while a backlog grows. Pauses let commits get at the
 * disk, but a spare that comes too late costs them more: they make a small one themselves. */
static bool pause_between(void *arg, uint64_t made, uint64_t size)
{
    struct mqx_store *store = arg;
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    if (store->maintenance_hook != NULL && store->maintenance_hook(store) != MQX_OK) {
        mqx_error_clear();
    }
    return is_ahead(store->region.journal, made, size);
}

/* Unit ids are unique in the store, so they name spares without a lock. */
int mqx_pool_create(struct mqx_store *store, uint64_t size, bool paced, uint64_t *out_number)
{
    const struct mqx_spare_pace pace = {&store->leaving, pause_between, store};
    *out_number = mqx_journal_unit_id(store);
    MQX_ASSERT(*out_number != 0);
    MQX_ASSERT(size >= PS_MIN_SEGMENT);
    int status = mqx_store_check(store);
    if (status == MQX_OK) {
        mqx_journal_lend_fd(store);
        status = mqx_spare_create(store->io, store->journal_dir, *out_number, size,
                                  paced ? &pace : NULL);
        mqx_journal_keep_fd(store);
        mqx_store_relaxed(&store->region.journal->disk_full,
                          (uint32_t)(status == MQRC_STORAGE_MEDIUM_FULL));
    }
    return status;
}

/* The file was made but could not be entered; a failure leaves a spare that the next restart
 * finds and uses. */
void mqx_pool_remove(struct mqx_store *store, uint64_t number)
{
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(number != 0);
    mqx_file_name(name, MQX_FILE_SPARE, number);
    MQX_ASSERT(mqx_file_kind_of(name, &number) == MQX_FILE_SPARE);
    (void)store->io->ops->unlink(store->io, store->journal_dir, name);
}

/* Would a file of this size keep the journal within its limit? */
static bool limit_allows(const struct mqx_journal *journal, uint64_t size)
{
    MQX_ASSERT(size > 0);
    return size <= journal->limit && journal->used_bytes <= journal->limit - size;
}

/* MQRC_STORAGE_MEDIUM_FULL with both numbers. */
static MQX_COLD int limit_reached(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    return mqx_fail(MQRC_STORAGE_MEDIUM_FULL,
                    "the journal's files have %" PRIu64 " bytes, %" PRIu64 " are allowed",
                    journal->used_bytes, journal->limit);
}

bool mqx_journal_is_out_of_files(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(journal->first_segment_size > 0);
    const bool refused = !limit_allows(journal, journal->first_segment_size) ||
                         mqx_load_relaxed(&journal->disk_full) != 0;
    return refused && mqx_journal_spare_count(store) == 0;
}

/* MQRC_STORAGE_MEDIUM_FULL: messages alone take what puts may use. */
static MQX_COLD int messages_fill(const struct mqx_journal *journal, uint64_t live)
{
    MQX_ASSERT(journal != NULL);
    return mqx_fail(MQRC_STORAGE_MEDIUM_FULL,
                    "messages on queues take %" PRIu64 " bytes of journal, %" PRIu64
                    " (70 %% of journal.limit) are allowed",
                    live, mqx_journal_live_limit(journal));
}

/* The file is made without a lock, since that takes long; then it is entered into the table. */
int mqx_journal_make_spare(struct mqx_store *store, uint64_t size)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t number = 0;
    MQX_ASSERT(size > 0);
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    if (!limit_allows(journal, size)) {
        size = mqx_journal_smallest_segment(journal);
    }
    if (!limit_allows(journal, size)) {
        return limit_reached(journal);
    }
    int status = mqx_pool_create(store, size, true, &number);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &journal->roll_lock);
    if (status == MQX_OK) {
        status = limit_allows(journal, size) ? mqx_pool_register(store, number, size, MQX_SEG_SPARE)
                                             : limit_reached(journal);
        mqx_lock_drop(region, &journal->roll_lock);
    }
    if (status != MQX_OK) {
        mqx_pool_remove(store, number);
    }
    return status;
}

/* Roll lock held: a new spare, in the table. */
static int add_spare(struct mqx_store *store, uint64_t size)
{
    uint64_t number = 0;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    int status = mqx_pool_create(store, size, false, &number);
    if (status == MQX_OK) {
        status = mqx_pool_register(store, number, size, MQX_SEG_SPARE);
    }
    MQX_ASSERT(status != MQX_OK || number != 0);
    return status;
}

/* Bytes that can be appended without another file. */
static int read_room(struct mqx_store *store, uint64_t *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(out != NULL);
    int status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_segment *active = mqx_ring_active(region);
    if (active != NULL) {
        *out = mqx_ring_room(store, active);
    } else {
        status = mqx_region_stop_reason(region);
    }
    mqx_lock_drop(region, &journal->ring_lock);
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    return status;
}

/* Puts are not covered by what is reserved for gets: makes more, in the caller's time. */
static int secure_way_out(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(!mqx_lock_held(&store->region, &journal->roll_lock));
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    int status = store->keep_way_out != NULL ? store->keep_way_out(store) : MQX_OK;
    if (status == MQX_OK && mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_MISSING) {
        status = MQRC_STORAGE_MEDIUM_FULL;
    }
    return status == MQRC_STORAGE_MEDIUM_FULL ? mqx_pool_no_way_out(&store->region) : status;
}

/* The first size from `size` on, doubled, that holds so many bytes, or the largest. */
static uint64_t size_for(const struct mqx_journal *journal, uint64_t size, uint64_t bytes)
{
    const uint64_t most = mqx_journal_largest_segment(journal);
    MQX_ASSERT(size > 0);
    MQX_ASSERT(bytes > size);
    while (size < bytes && size < most) {
        size *= 2;
    }
    return size < most ? size : most;
}

/* Of a segment that an append makes itself, as no spare is ready. One behind another such is twice
 * as long: they come one after the other until the spare is made, and each costs a flush. */
static uint64_t small_size(const struct mqx_journal *journal)
{
    const uint64_t first = journal->first_segment_size;
    const uint64_t largest = mqx_journal_largest_segment(journal);
    const uint64_t most = largest < SMALL_MOST ? largest : (uint64_t)SMALL_MOST;
    const uint32_t active = journal->active;
    MQX_ASSERT(first > 0);
    MQX_ASSERT(largest > 0);
    if (active == 0 || active > MQX_SEGMENT_MAX || journal->segment[active - 1].size >= largest) {
        return first;
    }
    const uint64_t twice = 2 * journal->segment[active - 1].size;
    const uint64_t size = twice < most ? twice : most;
    return size > first ? size : first;
}

/* Roll lock held: a spare for so many bytes, in the time of an append. Where limit or disk have no
 * room for a longer one, a short one is tried. */
static int add_small(struct mqx_store *store, uint64_t bytes)
{
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t first = journal->first_segment_size, small = small_size(journal);
    const uint64_t size = bytes > small ? size_for(journal, small, bytes) : small;
    MQX_ASSERT(size >= first);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->roll_lock));
    int status = limit_allows(journal, size) ? add_spare(store, size) : limit_reached(journal);
    const uint64_t fits = bytes > first ? size_for(journal, first, bytes) : first;
    const uint64_t least = limit_allows(journal, fits) ? fits : first;
    if (status == MQRC_STORAGE_MEDIUM_FULL && least < size) {
        mqx_error_clear();
        status = limit_allows(journal, least) ? add_spare(store, least) : limit_reached(journal);
    }
    return status;
}

/* Looks again under the roll lock, because another process may have made the room in the
 * meantime. What does not fit into a small segment takes a longer one when the limit allows it. */
int mqx_journal_make_room(struct mqx_store *store, uint32_t length)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t room = 0, live = 0;
    MQX_ASSERT(length > 0);
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    const bool frees = mqx_lock_held(region, &region->header->maintenance_lock); /* compaction */
    const bool unknown = store->keep_way_out != NULL &&
                         mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_UNKNOWN;
    if (!frees && (unknown || !mqx_journal_bound_puts(region, &live))) {
        const int status = secure_way_out(store);
        if (status != MQX_OK || !mqx_journal_bound_puts(region, &live)) {
            return status != MQX_OK ? status : messages_fill(journal, live);
        }
    }
    if (!frees) {
        mqx_journal_ask_for_reserve(region);
    }
    int status = mqx_lock_enter(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t wanted = length + mqx_load_relaxed(&journal->reserve_bytes);
    status = read_room(store, &room);
    if (status == MQX_OK && room < wanted) {
        status = add_small(store, wanted);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

/* No other file is made until half of the active one is used: most processes end before. A closed
 * one takes nothing more; behind one that is small and alone the next is as small. */
bool mqx_pool_is_in_use(const struct mqx_journal *journal, const struct mqx_segment *active)
{
    MQX_ASSERT(active != NULL);
    MQX_ASSERT(active->size > 0);
    return active->state == MQX_SEG_ACTIVE
               ? journal->tail - active->base_lsn > active->size / 2
               : active->size >= journal->segment_size || journal->used_bytes > active->size;
}

/* Was as much as a quarter of it written before, since the start? A spare is made as soon as the
 * one before is taken, then: appends that fill the segment before that make small ones in their
 * callers' time, each of which costs as much as ten commits. */
static bool is_busy(const struct mqx_journal *journal, const struct mqx_segment *active)
{
    MQX_ASSERT(active->size > 0);
    MQX_ASSERT(active->size % MQX_PAGE_SIZE == 0);
    return active->state == MQX_SEG_ACTIVE &&
           active->base_lsn >= journal->start_lsn + active->size / 4;
}

/* Was as much written since the start as several of full size have? */
static bool is_streaming(const struct mqx_journal *journal, const struct mqx_segment *active)
{
    MQX_ASSERT(active->size > 0);
    MQX_ASSERT(active->size % MQX_PAGE_SIZE == 0);
    return active->base_lsn >=
           journal->start_lsn + STREAM_SEGMENTS * mqx_journal_largest_segment(journal);
}

/* Files grow by doubling: one of full size takes longer than what a small one before it holds, and
 * most processes never need it. */
static uint64_t next_size(const struct mqx_journal *journal, const struct mqx_segment *active)
{
    const uint64_t least = mqx_journal_smallest_segment(journal);
    const uint64_t most = mqx_journal_largest_segment(journal);
    MQX_ASSERT(active->size > 0);
    MQX_ASSERT(least <= most);
    return active->size > most / 2 || is_streaming(journal, active) ? most
           : active->size <= least / 2                             ? least
                                                                   : 2 * active->size;
}

/* A burst of appends fills one spare sooner than the next one is made: a stream has several, where
 * limit and disk have ample room. */
static bool is_short_of_spares(const struct mqx_journal *journal, const struct mqx_segment *active,
                               uint64_t spare)
{
    const uint64_t enough = (STREAM_SPARES - 1) * mqx_journal_largest_segment(journal);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(enough > 0);
    return spare <= enough && is_streaming(journal, active) &&
           journal->used_bytes <= journal->limit / 2 && mqx_load_relaxed(&journal->disk_full) == 0;
}

/* The size of the spare to be made, under the ring lock; 0: none. */
static uint64_t wanted_spare(struct mqx_store *store, const struct mqx_segment *active)
{
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t twice = 2 * mqx_load_relaxed(&journal->reserve_bytes);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->ring_lock));
    MQX_ASSERT(store->files != NULL);
    if (!limit_allows(journal, mqx_journal_smallest_segment(journal))) {
        return 0;
    }
    const bool in_use = mqx_pool_is_in_use(journal, active) || is_busy(journal, active);
    const uint64_t size = in_use ? next_size(journal, active) : journal->first_segment_size;
    if (mqx_ring_room(store, active) < twice) {
        return twice > size ? size_for(journal, size, twice) : size;
    }
    const uint64_t spare = mqx_ring_spare_bytes(store);
    return in_use && (spare == 0 || is_short_of_spares(journal, active, spare)) ? size : 0;
}

/* Asked by the maintenance thread about ten times a second. */
uint64_t mqx_journal_spare_wanted(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(store->files != NULL);
    if (mqx_ring_take(region) != MQX_OK) {
        return 0;
    }
    const struct mqx_segment *active = mqx_ring_active(region);
    const uint64_t wanted = active != NULL ? wanted_spare(store, active) : 0;
    mqx_lock_drop(region, &journal->ring_lock);
    return wanted;
}

/* ---- rolling (roll lock held) ---- */

/* The header of the segment after the closed one: its LSNs follow without a gap, its generation
 * is higher than that of any use of a file before. */
static struct psj_segment next_header(const struct mqx_journal *journal,
                                      const struct mqx_segment *closed, uint64_t size)
{
    MQX_ASSERT(closed->state == MQX_SEG_FULL);
    MQX_ASSERT(closed->end_lsn > closed->base_lsn);
    MQX_ASSERT(closed->end_lsn <= closed->base_lsn + closed->size);
    return (struct psj_segment){
        .segment_no = journal->next_segment_no,
        .generation = journal->next_generation,
        .restart_epoch = journal->restart_epoch,
        .base_lsn = closed->base_lsn + closed->size,
        .size = size,
        .prev_end_lsn = closed->end_lsn,
        .timeline = journal->timeline,
    };
}

/* The stop flag is set before the text is made: no process may flush after this (rule 13). */
int mqx_journal_write_failed(struct mqx_store *store, int negated_errno, const char *what)
{
    MQX_ASSERT(negated_errno < 0);
    MQX_ASSERT(what != NULL);
    mqx_region_stop_because(&store->region, what, -negated_errno);
    return mqx_fail(MQRC_CONNECTION_BROKEN,
                    "%s failed: %s; the queue manager has stopped, the outcome of open calls is "
                    "unknown until restart", what, strerror(-negated_errno));
}

/* Writes the header page of an open file and closes it. */
static int write_header(struct mqx_io *io, int fd, const struct psj_segment *header)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(header->crc != 0 || header->segment_no != 0); /* sealed */
    const int err = mqx_io_write_all(io, fd, header, sizeof *header, 0, MQX_IO_DSYNC);
    const int closed = io->ops->close(io, fd);
    return err != 0 ? err : closed;
}

/* Of an open or rename: ENOSPC and EDQUOT are the disk's, whoever meets them. */
static bool is_own_fault(int negated_errno)
{
    MQX_ASSERT(negated_errno < 0);
    MQX_STATIC_ASSERT(ENOSPC != EDQUOT, "two limits");
    return negated_errno != -ENOSPC && negated_errno != -EDQUOT;
}

/* Steps 3 and 4 of a roll. `unknown` is set for the steps after which the medium may hold either
 * state; an open or rename that failed has changed nothing, and a write that failed because of a
 * limit of this process leaves what the next attempt writes again. */
int mqx_segment_begin(struct mqx_io *io, int journal_dir, const uint8_t qm_id[16],
                      uint64_t spare_number, struct psj_segment *header,
                      struct mqx_segment_failure *out)
{
    char from[MQX_FILE_NAME_SIZE], to[MQX_FILE_NAME_SIZE];
    bool renamed = false;
    MQX_ASSERT(header->segment_no != 0);
    MQX_ASSERT(header->base_lsn % MQX_PAGE_SIZE == 0);
    memcpy(header->qm_id, qm_id, sizeof header->qm_id);
    header->created_us = io->ops->now_us(io);
    *out = (struct mqx_segment_failure){.step = "drawing a segment's salt", .own = true};
    const int drawn = io->ops->random(io, header->salt, sizeof header->salt);
    if (drawn != 0) {
        return drawn;
    }
    mqx_segment_seal(header);
    mqx_file_name(from, MQX_FILE_SPARE, spare_number);
    mqx_file_name(to, MQX_FILE_SEGMENT, header->segment_no);

    *out = (struct mqx_segment_failure){.step = "opening a spare segment"};
    int fd = io->ops->open(io, journal_dir, from, MQX_IO_WRITE | MQX_IO_LINKED, 0);
    if (fd == -ENOENT) {
        mqx_file_name(from, MQX_FILE_RESERVED, spare_number);
        fd = io->ops->open(io, journal_dir, from, MQX_IO_WRITE | MQX_IO_LINKED, 0);
    }
    if (fd == -ENOENT) {
        renamed = true;
        fd = io->ops->open(io, journal_dir, to, MQX_IO_WRITE | MQX_IO_LINKED, 0);
    }
    if (fd < 0) {
        out->own = is_own_fault(fd);
        return fd;
    }
    int err = write_header(io, fd, header);
    *out = (struct mqx_segment_failure){.step = "writing a segment header", .unknown = true};
    if (err != 0 && mqx_io_write_is_own_fault(err)) {
        *out = (struct mqx_segment_failure){.step = out->step, .own = true};
    }
    if (err == 0 && !renamed) {
        err = io->ops->rename(io, journal_dir, from, to);
        *out = (struct mqx_segment_failure){.step = "renaming a spare segment",
                                            .own = err != 0 && is_own_fault(err)};
    }
    if (err == 0) {
        *out = (struct mqx_segment_failure){.step = "flushing the journal directory",
                                            .unknown = true};
        err = io->ops->sync_dir(io, journal_dir);
    }
    return err;
}

/* Step 5. */
static int name_newest(struct mqx_store *store, const struct psj_segment *header,
                       struct mqx_segment_failure *out)
{
    const struct mqx_head head = {.segment_no = header->segment_no,
                                  .generation = header->generation,
                                  .timeline = header->timeline};
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    MQX_ASSERT(header->segment_no == store->region.journal->next_segment_no);
    bool unknown = false;
    const int err = mqx_head_write(store->io, store->dir, store->qm_id, &head, &unknown);
    if (err != 0) {
        const bool own = unknown ? mqx_io_write_is_own_fault(err) : is_own_fault(err);
        *out = (struct mqx_segment_failure){
            .step = "writing HEAD", .unknown = unknown && !own, .own = own};
    }
    return err;
}

/* Steps 3 to 5: header, name, HEAD. */
static int begin_segment(struct mqx_store *store, uint64_t spare, struct psj_segment *header)
{
    struct mqx_segment_failure failure;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    mqx_journal_lend_fd(store);
    int err = mqx_segment_begin(store->io, store->journal_dir, store->qm_id, spare, header,
                                &failure);
    if (err == 0) {
        err = name_newest(store, header, &failure);
    }
    mqx_journal_keep_fd(store);
    MQX_ASSERT(err <= 0);
    if (err == 0) {
        return MQX_OK;
    }
    return failure.unknown ? mqx_journal_write_failed(store, err, failure.step)
           : failure.own   ? mqx_leadership_cannot(store, err, failure.step)
                           : mqx_io_reason(err, failure.step);
}

/* Step 6. */
static int make_active(struct mqx_store *store, uint32_t index, const struct psj_segment *header)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *segment = &journal->segment[index];
    const uint64_t first_batch = header->base_lsn + MQX_PAGE_SIZE;
    uint64_t salt[2];
    memcpy(salt, header->salt, sizeof salt);
    MQX_ASSERT(index < MQX_SEGMENT_MAX);
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    int status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    if (MQX_UNLIKELY(journal->sealed_count != 0 &&
                     journal->written > mqx_journal_durable(journal))) {
        status = mqx_region_damage(region, "journal's sealed batches", journal->sealed_count);
        mqx_lock_drop(region, &journal->ring_lock);
        return status;
    }
    MQX_ASSERT(header->base_lsn >= journal->batch_start); /* LSNs rise */
    MQX_ASSERT(journal->batch_records == 0);
    if (segment->state == MQX_SEG_RESERVED) {
        SET64(&journal->used_bytes, journal->used_bytes + segment->size);
        mqx_store_relaxed(&journal->way_out, (uint32_t)MQX_WAY_OUT_MISSING);
    }
    SET64(&segment->number, header->segment_no);
    SET64(&segment->generation, header->generation);
    SET64(&segment->base_lsn, header->base_lsn);
    SET64(&segment->end_lsn, 0);
    SET64(&segment->live_bytes, 0);
    SET32(&segment->live_messages, 0);
    SET64(&segment->prev_end_lsn, header->prev_end_lsn);
    SET64(&segment->salt[0], salt[0]);
    SET64(&segment->salt[1], salt[1]);
    SET32(&segment->state, MQX_SEG_ACTIVE);
    SET64(&journal->next_segment_no, header->segment_no + 1);
    SET64(&journal->next_generation, header->generation + 1);
    SET32(&journal->active, index + 1);
    SET64(&journal->batch_start, first_batch);
    SET64(&journal->tail, first_batch + sizeof(struct psj_batch));
    SET32(&journal->batch_records, 0);
    SET64(&journal->written, first_batch);
    SET32(&journal->epoch_written, 1);
    mqx_ring_sum_segment(region, segment);
    mqx_ring_sum(region);
    mqx_undo_commit(&journal->ring_lock);
    mqx_lock_drop(region, &journal->ring_lock);
    return MQX_OK;
}

/* A copy of the closed segment's entry; it changes only under the roll lock, which is held. */
static int read_closed(struct mqx_region *region, struct mqx_segment *out)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(out != NULL);
    int status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_segment *active = mqx_ring_active(region);
    if (active != NULL) {
        *out = *active;
    } else {
        status = mqx_region_stop_reason(region);
    }
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}

/* Every next record needs a segment: when no spare is ready a small one is made at once, even
 * beyond the limit, because only records that may use the reserve come this far. On a full disk a
 * reserved one is taken. */
static int roll_locked(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment closed = {0};
    int status = read_closed(region, &closed);
    int spare = next_spare(region);
    if (status == MQX_OK && spare < 0) {
        status = limit_allows(journal, journal->first_segment_size)
                     ? add_small(store, 0)
                     : add_spare(store, journal->first_segment_size);
        spare = next_spare(region);
        if (status != MQX_OK && mqx_leadership_is_own(status)) {
            return mqx_leadership_refused(store, status, "making a journal segment");
        }
        const int reserved = mqx_pool_next(region, MQX_SEG_RESERVED);
        if (status == MQRC_STORAGE_MEDIUM_FULL && reserved >= 0) {
            spare = reserved;
            status = MQX_OK;
            mqx_error_clear();
        }
    }
    if (status != MQX_OK) {
        return status;
    }
    if (MQX_UNLIKELY(spare < 0 || !mqx_segment_is_sound(journal, (uint32_t)spare))) {
        return mqx_region_damage(region, "journal's segment table", MQX_SEGMENT_MAX);
    }
    struct psj_segment header = next_header(journal, &closed, journal->segment[spare].size);
    MQX_ASSERT(header.generation > closed.generation);
    MQX_ASSERT(header.segment_no > closed.number);
    if (MQX_UNLIKELY(!mqx_segment_sizes_are_sound(&header))) { /* a restart would refuse it */
        return mqx_region_damage(region, "the size of a journal segment", header.size);
    }
    status = begin_segment(store, journal->segment[spare].number, &header);
    return status == MQX_OK ? make_active(store, (uint32_t)spare, &header) : status;
}

/* After a roll that took the last spare: the maintenance thread makes the next one now and not in
 * its next round, since appends would make small ones in their callers' time. */
static void ask_for_spare(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    MQX_ASSERT(mqx_lock_held(region, &region->journal->roll_lock));
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    if (next_spare(region) < 0) {
        mqx_futex_raise(&mqx_process_slot(region, region->process)->doorbell, 1);
    }
}

/* Does nothing when another process has rolled already, or when the closed segment is not yet
 * durable: appends repeat what they wanted, and come back here if that is still needed. */
int mqx_journal_roll(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(store->files != NULL);
    int status = mqx_lock_enter(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(journal->roll_lock.undo_count == 0); /* the table is changed under the ring lock */
    /* The closed segment changes only under the roll lock, and its end is fixed. */
    const uint64_t end = mqx_journal_closed_end(store);
    if (mqx_region_stopped(region) != MQX_RUNNING) {
        status = mqx_region_stop_reason(region);
    } else if (end != 0 && mqx_journal_durable(journal) >= end) {
        status = mqx_store_check(store);
        status = status == MQX_OK ? roll_locked(store)
                                  : mqx_leadership_refused(store, status,
                                                           "looking at the directory journal");
        if (status == MQX_OK) {
            ask_for_spare(store);
        }
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}
