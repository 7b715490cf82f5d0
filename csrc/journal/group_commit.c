/*
 * group_commit.c - see group_commit.h. The leader's work, and appends that may have to wait for it.
 *
 * A leader (flush lock held) repeats: remove from the queue of sealed batches what a dead leader
 * had already published; seal the open batch; take the batches that adjoin; fill in their headers;
 * write them with one call; publish. What the next leader finds after a death:
 *   before `durable`/`written` is raised   the same batches, written again. No caller has been
 *                                          answered that they are durable, so their pages may be
 *                                          rewritten (rule 6).
 *   after, before they leave the queue     they are removed, never written again.
 *
 * Plain writes and data sync. Batches written to make room (mqx_flush_room) are not synced:
 * `unsynced` names their segment from before the write on. Data sync covers its own call only, so
 * while `unsynced` is set a durable flush writes plainly and then syncs the file (rule 44). While
 * it is 0 all that was written is durable.
 *
 * The first write of a restart that continues an old segment is done alone and with data sync. So
 * whatever may lie behind the end of a journal that looks clean was written by a process whose
 * first batch is there: a page that was lost cannot hide later ones that would become valid behind
 * a new batch of the same length.
 */
#include "journal/group_commit.h"

#include "journal/journal_private.h"
#include "journal/leadership.h"
#include "journal/write_file.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/siphash.h"
#include "format/segment.h"
#include "base/clock.h"
#include "os/block_hook.h"
#include "os/futex.h"
#include "os/interrupt.h"
#include "penstock/engine.h"
#include "region/damage.h"

#include <string.h>

enum {
    FOLLOWER_WAIT_US = 1000000, /* a lost wake-up costs this at most: rule 21 */
    APPEND_ATTEMPTS = 1 << 20,  /* each lost to another process's append */
    MARK_ATTEMPTS = 8,
    CRCS_AT_ONCE = 64,          /* even: the parts of a hash are words of 8 bytes */
    FETCH_AHEAD = 4,            /* records, as if they were of one length, which most are */
};

struct flight { /* batches written by one call */
    uint64_t start;
    uint64_t end;      /* page aligned */
    uint32_t segment;
    uint32_t count;
    uint32_t records;
    uint32_t bytes;    /* headers and records */
};

/* ---- the queue of sealed batches (flush lock held) ----
 *
 * sealed[] is a ring of MQX_SEALED_MAX entries in the region, oldest first. Appends add at its end
 * under the ring lock; only the leader removes at its front. So an entry that the leader has seen
 * stays as it is while the flush lock is held, with or without the ring lock.
 */

/* The i-th batch of the queue, the oldest is 0. The index wraps, so no value of sealed_first
 * leads outside the array. */
static const struct mqx_sealed *sealed_at(const struct mqx_journal *journal, uint32_t i)
{
    MQX_ASSERT(i < MQX_SEALED_MAX);
    return &journal->sealed[(journal->sealed_first + i) % MQX_SEALED_MAX];
}

/* LSN behind the pages of the batch: where the next one may begin. */
static uint64_t sealed_end(const struct mqx_sealed *sealed)
{
    MQX_ASSERT(sealed->start % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(sealed->length >= sizeof(struct psj_batch));
    return mqx_round_up(sealed->start + sealed->length, MQX_PAGE_SIZE);
}

/* Is the queue one that this code can have made? */
static bool queue_is_sound(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    bool sound = journal->sealed_first < MQX_SEALED_MAX && journal->sealed_count <= MQX_SEALED_MAX;
    MQX_ASSERT(journal != NULL);
    for (uint32_t i = 0; sound && i < journal->sealed_count; i++) {
        const struct mqx_sealed *sealed = sealed_at(journal, i);
        sound = sealed->start % MQX_PAGE_SIZE == 0 && sealed->segment < MQX_SEGMENT_MAX &&
                sealed->length >= sizeof(struct psj_batch) && sealed->length <= region->ring_size;
    }
    return sound;
}

/* Raises `written` and removes the batches below it from the queue (ring lock held; the caller
 * commits). The queue is sound. */
static void remove_written(struct mqx_region *region, uint64_t upto)
{
    struct mqx_journal *journal = region->journal;
    uint32_t count = journal->sealed_count;
    uint32_t first = journal->sealed_first % MQX_SEALED_MAX;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(upto % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(upto <= journal->batch_start);
    while (count > 0 && sealed_end(&journal->sealed[first]) <= upto) {
        first = (first + 1) % MQX_SEALED_MAX;
        count -= 1;
    }
    MQX_ASSERT(count <= journal->sealed_count);
    if (count == journal->sealed_count && upto <= journal->written) {
        return; /* the last leader has published what it wrote */
    }
    mqx_undo_store32(region->base, &journal->ring_lock, &journal->sealed_first, first);
    mqx_undo_store32(region->base, &journal->ring_lock, &journal->sealed_count, count);
    if (upto > journal->written) {
        mqx_undo_store64(region->base, &journal->ring_lock, &journal->written, upto);
    }
    mqx_ring_sum(region);
}

/* Adjoining batches of one segment from the front of the queue, at most `most`. */
static void take_adjoining(const struct mqx_journal *journal, uint32_t most, struct flight *out)
{
    MQX_ASSERT(most >= 1);
    MQX_ASSERT(most <= MQX_SEALED_MAX);
    *out = (struct flight){0};
    for (uint32_t i = 0; i < journal->sealed_count && i < most; i++) {
        const struct mqx_sealed *sealed = sealed_at(journal, i);
        if (i == 0) {
            out->start = sealed->start;
            out->segment = sealed->segment;
        } else if (sealed->start != out->end || sealed->segment != out->segment) {
            return;
        }
        out->end = sealed_end(sealed);
        out->count = i + 1;
        out->records += sealed->record_count;
        out->bytes += sealed->length;
        MQX_ASSERT(out->end > sealed->start);
    }
}

/* The next batches to be written; *out counts none when there are none. */
static int collect(struct mqx_store *store, struct flight *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    int status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    if (MQX_UNLIKELY(!queue_is_sound(region))) {
        status = mqx_region_damage(region, "journal's sealed batches", journal->sealed_count);
        mqx_lock_drop(region, &journal->ring_lock);
        return status;
    }
    const uint64_t durable = mqx_journal_durable(journal);
    remove_written(region, durable > journal->written ? durable : journal->written);
    mqx_undo_commit(&journal->ring_lock);
    status = mqx_journal_seal(store);
    if (status == MQX_OK || status == MQX_NEED_RING) { /* a full queue: write what is there */
        mqx_undo_commit(&journal->ring_lock);
        status = MQX_OK;
        take_adjoining(journal, journal->epoch_written != 0 ? MQX_SEALED_MAX : 1, out);
    }
    if (MQX_UNLIKELY(status == MQX_OK && out->count > 0 &&
                     !mqx_segment_is_sound(journal, out->segment % MQX_SEGMENT_MAX))) {
        status = mqx_region_damage(region, "segment of a sealed batch", out->segment);
    }
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}

/* ---- writing a flight ----
 *
 * What adjoins is written with one call, so that a load of many small commits costs one data sync
 * for all of them. After a restart that continues an old segment the first flight is one batch
 * (epoch_written is 0).
 */

/* Are the record's bytes in the ring those that were appended? A batch with another one would be
 * refused by every restart, together with all that follows (rule 57). */
static bool record_is_whole(const struct mqx_region *region, uint64_t lsn,
                            const struct psj_record *record, uint32_t seed)
{
    const uint64_t skip = mqx_record_is_short(record) ? offsetof(struct psj_short, unit)
                                                      : offsetof(struct psj_record, unit_id);
    const uint64_t rest = mqx_record_length(record) - skip;
    const uint64_t until_wrap = region->ring_size - ((lsn + skip) & (region->ring_size - 1));
    const uint64_t first = rest < until_wrap ? rest : until_wrap;
    uint32_t crc = mqx_crc32c(seed, record, offsetof(struct psj_record, crc));
    MQX_ASSERT(mqx_record_length(record) >= PS_RECORD_MIN);
    MQX_ASSERT(first <= rest);
    MQX_ASSERT(until_wrap <= region->ring_size);
    crc = mqx_crc32c(crc, mqx_ring_at(region, lsn + skip), first);
    if (MQX_UNLIKELY(first != rest)) {
        crc = mqx_crc32c(crc, region->ring, rest - first);
    }
    return crc == record->crc;
}

/* What the record's CRC starts from: a short one's goes on from its COMMON record, which lies in
 * the same batch, so it is in the ring as long as the record is. False: it is not there. */
static bool find_seed(const struct mqx_region *region, const struct mqx_sealed *sealed,
                      uint64_t lsn, const struct psj_record *record, uint32_t *out)
{
    MQX_ASSERT(lsn % PS_ALIGN == 0);
    MQX_ASSERT(lsn > sealed->start);
    if (!mqx_record_is_short(record)) {
        return true;
    }
    uint32_t distance; /* may stand behind the ring's end, which the first word does not */
    memcpy(&distance, mqx_ring_at(region, lsn + offsetof(struct psj_short, common)),
           sizeof distance);
    if (distance % PS_ALIGN != 0 || distance == 0 ||
        distance > lsn - sealed->start - sizeof(struct psj_batch)) {
        return false;
    }
    const struct psj_record *common = (const void *)mqx_ring_at(region, lsn - distance);
    *out = common->crc;
    return mqx_record_type(common) == PS_REC_COMMON;
}

/* Adds the records' crc fields to the hash; false when the ring does not hold what the queue lists
 * (rule 28). */
static bool hash_records(const struct mqx_region *region, const struct mqx_sealed *sealed,
                         const uint8_t *salt, uint64_t *out_hash)
{
    uint64_t lsn = sealed->start + sizeof(struct psj_batch);
    const uint64_t end = sealed->start + sealed->length;
    uint32_t crcs[CRCS_AT_ONCE];
    struct mqx_siphash hash;
    uint32_t records = 0, gathered = 0;
    MQX_ASSERT(sealed->length >= sizeof(struct psj_batch));
    mqx_siphash_begin(&hash, salt);
    while (lsn < end) { /* length and crc lie in one aligned word, so never at both ring ends */
        const struct psj_record *record = (const void *)mqx_ring_at(region, lsn);
        const uint32_t length = mqx_record_length(record);
        uint32_t seed = 0;
        if (length < PS_RECORD_MIN || length > end - lsn ||
            !find_seed(region, sealed, lsn, record, &seed) ||
            !record_is_whole(region, lsn, record, seed)) {
            return false;
        }
        __builtin_prefetch(mqx_ring_at(region, lsn + FETCH_AHEAD * (uint64_t)length));
        crcs[gathered++] = record->crc;
        lsn += length;
        records += 1;
        if (gathered == CRCS_AT_ONCE) {
            mqx_siphash_add(&hash, crcs, sizeof crcs);
            gathered = 0;
        }
    }
    MQX_ASSERT(gathered < CRCS_AT_ONCE);
    *out_hash = mqx_siphash_finish(&hash, crcs, gathered * sizeof crcs[0]);
    return records == sealed->record_count;
}

/* Puts the header in front of the batch in the ring; false when the batch is not a possible one. */
static bool fill_batch(struct mqx_store *store, const struct mqx_sealed *sealed, uint64_t now_us)
{
    const struct mqx_region *region = &store->region;
    const struct mqx_journal *journal = region->journal;
    const struct mqx_segment *segment = &journal->segment[sealed->segment % MQX_SEGMENT_MAX];
    const uint8_t *salt = (const uint8_t *)segment->salt;
    const struct mqx_flush_batch_position position = {store->qm_id, salt, segment->number,
                                                      segment->generation, sealed->start};
    MQX_ASSERT(mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(sealed->start >= mqx_journal_durable(journal)); /* rule 6 */
    struct psj_batch header = {
        .magic = PS_BATCH_MAGIC,
        .lsn = sealed->start,
        .durable_lsn = mqx_journal_durable(journal),
        .time_us = now_us,
        .length = sealed->length,
        .record_count = sealed->record_count,
        .segment_no = segment->number,
    };
    const bool whole = hash_records(region, sealed, salt, &header.records);
    header.hash = mqx_flush_batch_hash(&position, &header);
    memcpy(mqx_ring_at(region, sealed->start), &header, sizeof header);
    return whole && sealed->start >= segment->base_lsn + MQX_PAGE_SIZE &&
           sealed_end(sealed) <= segment->base_lsn + segment->size;
}

/* EFBIG, EBADF: nothing of the flight counts; another leader writes the same pages again. */
static MQX_COLD int own_write_failed(struct mqx_store *store, int negated_errno)
{
    MQX_ASSERT(mqx_io_write_is_own_fault(negated_errno));
    MQX_ASSERT(store->files->write.fd >= 0);
    if (negated_errno == -EBADF) {
        mqx_write_file_forget(store);
    }
    return mqx_leadership_cannot(store, negated_errno, "writing the journal");
}

/* Fills in the headers of the flight's batches and writes them with one call; `flags` is
 * MQX_IO_DSYNC or 0. The ring wraps, so there may be two parts. The file offset of an LSN is its
 * distance from the segment's base_lsn. A batch that the ring cannot hold stops the queue manager
 * before anything is written (rule 28). */
static int write_flight(struct mqx_store *store, const struct flight *flight, int flags)
{
    const struct mqx_region *region = &store->region;
    const struct mqx_journal *journal = region->journal;
    const uint64_t now_us = store->io->ops->now_us(store->io);
    const uint64_t size = flight->end - flight->start;
    const uint64_t until_wrap = region->ring_size - (flight->start & (region->ring_size - 1));
    int fd = -1;
    MQX_ASSERT(flight->count > 0);
    MQX_ASSERT(flight->end > flight->start);
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);

    for (uint32_t i = 0; i < flight->count; i++) {
        if (size > region->ring_size || !fill_batch(store, sealed_at(journal, i), now_us)) {
            (void)mqx_region_damage(region, "the log ring, batch", flight->start);
            return mqx_fail(MQRC_CONNECTION_BROKEN, "the log ring is damaged");
        }
    }
    const int status = mqx_write_file(store, flight->segment, &fd);
    if (status != MQX_OK) {
        return status;
    }
    const struct iovec parts[2] = {
        {mqx_ring_at(region, flight->start), size < until_wrap ? size : until_wrap},
        {mqx_ring_at(region, flight->start + until_wrap),
         size < until_wrap ? 0 : size - until_wrap},
    };
    const uint64_t offset = flight->start - journal->segment[flight->segment].base_lsn;
    const int err = store->io->ops->write(store->io, fd, parts, parts[1].iov_len > 0 ? 2 : 1,
                                          offset, flags);
    return err == 0                         ? MQX_OK
           : mqx_io_write_is_own_fault(err) ? own_write_failed(store, err)
                                            : mqx_journal_write_failed(store, err,
                                                                       "writing the journal");
}

/* After the write: `written` moves behind the flight, its batches leave the queue, statistics are
 * counted. A process that dies before this leaves the batches to the next leader. */
static int note_written(struct mqx_store *store, const struct flight *flight, uint64_t now_us)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->flush_lock));
    int status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    remove_written(region, flight->end);
    MQX_ASSERT(journal->written >= flight->end); /* a roll may have followed the publication */
    mqx_undo_store32(region->base, &journal->ring_lock, &journal->epoch_written, 1);
    mqx_undo_commit(&journal->ring_lock);
    journal->flushes += 1; /* statistics: a count lost by a death does no harm */
    journal->flushed_bytes += flight->bytes;
    journal->flushed_records += flight->records;
    journal->last_flush_us = now_us;
    mqx_lock_drop(region, &journal->ring_lock);
    return MQX_OK;
}

/* Writes a flight and publishes it: `written`, and `durable` when it was synced. */
static int write_out(struct mqx_store *store, const struct flight *flight, bool durably)
{
    struct mqx_journal *journal = store->region.journal;
    const bool first = mqx_load_relaxed(&journal->epoch_written) == 0;
    const bool sync = (durably && journal->unsynced == 0) || first;
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->flush_lock));
    MQX_ASSERT(flight->start >= mqx_journal_durable(journal)); /* nothing is rewritten */
    if (MQX_UNLIKELY((journal->unsynced != 0 && journal->unsynced != flight->segment + 1) ||
                     (first && flight->count != 1))) {
        return mqx_region_damage(&store->region, "journal's unsynced segment", journal->unsynced);
    }
    if (!sync) {
        mqx_store_release(&journal->unsynced, flight->segment + 1);
    }
    int status = write_flight(store, flight, sync ? MQX_IO_DSYNC : 0);
    if (status != MQX_OK) {
        return status;
    }
    if (sync) {
        mqx_journal_set_durable(journal, flight->end);
    }
    return note_written(store, flight, store->io->ops->now_us(store->io));
}

/* Makes everything written durable. */
static int sync_written(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    int fd = -1;
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->flush_lock));
    MQX_ASSERT(journal->unsynced != 0);
    const int status = mqx_write_file(store, journal->unsynced - 1, &fd);
    if (status != MQX_OK) {
        return status;
    }
    const int err = store->io->ops->sync(store->io, fd);
    if (err != 0) {
        return mqx_journal_write_failed(store, err, "flushing the journal");
    }
    mqx_store_release(&journal->unsynced, 0);
    mqx_journal_set_durable(journal, mqx_load_relaxed(&journal->written));
    return MQX_OK;
}

/* ---- leading and following ----
 *
 * A caller reads flush_word, then `durable`, then tries the flush lock. When another thread leads,
 * it sleeps as long as flush_word has the value it read: a leader that published in between has
 * raised it. The counter of waiters spares leaders the wake-up call when none sleeps.
 */

/* Flush lock held. A leader that died between the two stores leaves the complement ahead, at the
 * end of a batch that it had written. */
static bool durable_is_sound(const struct mqx_journal *journal)
{
    const uint64_t durable = mqx_load_acquire(&journal->durable);
    const uint64_t other = ~mqx_load_acquire(&journal->durable_inverse);
    MQX_ASSERT(journal != NULL);
    return durable <= other && other <= mqx_load_relaxed(&journal->tail);
}

/* Flush lock held. For a backup, which copies more slowly when flushes take longer (it stores 0
 * without the lock: what is lost then comes again). */
static void note_slowest(struct mqx_journal *journal, uint64_t took_us)
{
    MQX_ASSERT(journal != NULL);
    if (took_us > mqx_load_relaxed(&journal->slowest_flush_us)) {
        mqx_store_relaxed(&journal->slowest_flush_us, took_us);
    }
}

/* Flush lock held. Writes at least one flight, and more until `target` is written. */
static int lead(struct mqx_store *store, uint64_t target, bool durably)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct flight flight = {0};
    int status = MQX_OK;
    MQX_ASSERT(mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));

    mqx_store_relaxed(&journal->leader_process, region->process + 1);
    const uint64_t began_us = mqx_clock_monotonic_us();
    const uint64_t written = mqx_load_relaxed(&journal->written);
    if (MQX_UNLIKELY(!durable_is_sound(journal))) {
        return mqx_region_damage(region, "journal's durable LSN", journal->durable);
    }
    if (journal->unsynced == 0 && mqx_journal_durable(journal) < written) {
        mqx_journal_set_durable(journal, written); /* a leader died before it published that */
    }
    do {
        status = mqx_region_stopped(region) != MQX_RUNNING ? mqx_region_stop_reason(region)
                                                           : collect(store, &flight);
        if (status == MQX_OK && flight.count > 0) {
            status = write_out(store, &flight, durably);
        }
    } while (status == MQX_OK && flight.count > 0 &&
             mqx_load_relaxed(&journal->written) < target);
    if (status == MQX_OK && durably && journal->unsynced != 0) {
        status = sync_written(store);
    }
    MQX_ASSERT(status != MQX_OK || !durably || journal->unsynced == 0);
    MQX_ASSERT(mqx_journal_durable(journal) <= mqx_load_relaxed(&journal->written) ||
               status != MQX_OK);
    note_slowest(journal, mqx_clock_monotonic_us() - began_us);
    mqx_store_relaxed(&journal->leader_process, 0);
    return status;
}

/* After the flush lock was dropped, so that a follower who is woken finds it free. */
static void wake_followers(struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    /* A follower counts itself, then reads the word: one of the two sees the other. */
    (void)__atomic_fetch_add(&journal->flush_word, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&journal->flush_waiters, __ATOMIC_SEQ_CST) != 0) {
        mqx_futex_wake(&journal->flush_word, INT_MAX);
    }
    if (MQX_UNLIKELY(mqx_load_relaxed(&journal->flush_lock.slow_holder) != 0)) {
        mqx_store_relaxed(&journal->flush_lock.slow_holder, 0u);
    }
}

/* Follows a leader for a while. *since_us: when this thread began to wait for this flush; 0 at
 * first. MQE_INTERRUPTED when the call has decided nothing and its caller wants to look at signals
 * (os/interrupt.h). */
static int follow(struct mqx_region *region, uint32_t seen, uint64_t *since_us)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(since_us != NULL);
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    *since_us = *since_us != 0 ? *since_us : mqx_clock_monotonic_us();
    const int slept = mqx_leadership_follow(journal, seen, FOLLOWER_WAIT_US);
    if (mqx_load_acquire(&journal->flush_word) != seen) {
        *since_us = 0;
        return MQX_OK;
    }
    const uint64_t waited_us = mqx_clock_monotonic_us() - *since_us;
    if (slept == -ETIMEDOUT) {
        mqx_lock_waited(region, &journal->flush_lock, *since_us);
        if (waited_us + mqx_interrupt_waited_us() >= mqx_lock_stranger_us) {
            (void)mqx_lock_is_strangers(region, &journal->flush_lock);
        }
    }
    return slept != 0 && mqx_interrupt_take(waited_us) ? MQE_INTERRUPTED : MQX_OK;
}

/* One attempt to lead up to `lsn`. MQX_BUSY: another thread leads; MQX_CANNOT_LEAD: this process
 * cannot. */
static int try_lead(struct mqx_store *store, uint64_t lsn)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    int status = mqx_lock_try(region, &journal->flush_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = lead(store, lsn, true);
    const bool reached = mqx_journal_durable(journal) >= lsn;
    mqx_lock_drop(region, &journal->flush_lock);
    wake_followers(journal);
    if (status != MQX_OK || reached) {
        return status;
    }
    return mqx_fail(MQRC_UNEXPECTED_ERROR, "the LSN to be flushed was never appended");
}

/* Leads, follows or hands over. A follower sleeps on the value of flush_word that it read before it
 * tried the lock, so a leader that finishes in between has changed the word and the sleep returns
 * at once. MQX_CANNOT_LEAD: nobody writes the journal (leadership.h). */
static int flush_until(struct mqx_store *store, uint64_t lsn, struct mqx_handing *handing)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(handing != NULL);
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    uint64_t since_us = 0;
    for (;;) { /* each turn a leader has written, or time has gone by */
        const uint32_t seen = mqx_load_acquire(&journal->flush_word);
        if (mqx_journal_durable(journal) >= lsn) {
            return MQX_OK;
        }
        if (mqx_region_stopped(region) != MQX_RUNNING) {
            return mqx_region_stop_reason(region);
        }
        int status = try_lead(store, lsn);
        if (status == MQX_BUSY) {
            status = follow(region, seen, &since_us);
            if (status == MQX_OK) {
                continue;
            }
        }
        if (status == MQX_CANNOT_LEAD) {
            status = mqx_leadership_wait(store, handing, lsn);
            if (status == MQX_OK) {
                continue;
            }
        }
        return status;
    }
}

/* What is to be flushed is decided, as a rule: when nobody can write it, its outcome cannot be
 * told. */
int mqx_flush_to(struct mqx_store *store, uint64_t lsn)
{
    struct mqx_handing handing = {.slot = 0};
    MQX_ASSERT(store->files != NULL); /* mqx_journal_attach() comes first */
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    if (mqx_journal_durable(store->region.journal) >= lsn) {
        return MQX_OK;
    }
    mqx_about_to_block();
    const int status = flush_until(store, lsn, &handing);
    return MQX_UNLIKELY(status == MQX_CANNOT_LEAD) ? mqx_leadership_stop(store) : status;
}

/* One attempt at mqx_flush_room(). */
static int try_room(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    const uint32_t seen = mqx_load_acquire(&journal->flush_word);
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    int status = mqx_lock_try(region, &journal->flush_lock);
    if (status == MQX_BUSY) { /* the leader makes room already */
        uint64_t since_us = 0;
        return follow(region, seen, &since_us);
    }
    if (status == MQX_OK) {
        status = lead(store, 0, false);
        mqx_lock_drop(region, &journal->flush_lock);
        wake_followers(journal);
    }
    return status;
}

/* Leads without data sync: what is written leaves the ring, but `durable` does not move. When
 * another leader is at work its write makes room too, so one wait for it is enough. A process that
 * cannot lead asks for a flush of everything appended, and is content with any progress. */
int mqx_flush_room(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    const uint64_t written = mqx_load_relaxed(&journal->written);
    struct mqx_handing handing = {.slot = 0};
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(!mqx_lock_held(&store->region, &journal->flush_lock));
    mqx_about_to_block();
    int status = try_room(store);
    while (MQX_UNLIKELY(status == MQX_CANNOT_LEAD)) { /* ends with the patience of the wait */
        status = mqx_leadership_wait(store, &handing, mqx_load_relaxed(&journal->tail));
        if (status == MQX_CANNOT_LEAD) {
            return mqx_leadership_reason(store);
        }
        status = mqx_load_relaxed(&journal->written) != written ? MQX_OK : try_room(store);
    }
    return status;
}

/* Flush lock held. One attempt at a mark page: *out_done when nothing is left to be covered. */
static int mark_step(struct mqx_store *store, bool *out_done)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!*out_done);
    int status = lead(store, 0, true);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_ring_take(region);
    if (status != MQX_OK) {
        return status;
    }
    bool queued = false;
    uint64_t mark_end = 0;
    const bool idle = journal->batch_records == 0 && journal->sealed_count == 0;
    if (idle && mqx_journal_durable(journal) > journal->marked) {
        status = mqx_journal_seal_mark(store);
        queued = status == MQX_OK;
        mark_end = journal->batch_start;
    }
    mqx_undo_commit(&journal->ring_lock);
    mqx_lock_drop(region, &journal->ring_lock);
    *out_done = idle && !queued;
    if (status == MQX_NEED_SEGMENT) { /* the next segment's header will cover it */
        status = MQX_OK;
    }
    if (queued) {
        status = lead(store, mark_end, true);
        if (status == MQX_OK) {
            MQX_ASSERT(mark_end <= mqx_journal_durable(journal));
            mqx_store_release(&journal->marked, mark_end);
        }
    }
    return status;
}

/* Attempts, because appends may slip in between two steps; when all are lost the next idle moment
 * or the next segment's header covers what is left open. */
int mqx_flush_mark(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    bool done = false;
    MQX_ASSERT(!mqx_lock_held(region, &journal->flush_lock));
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    mqx_about_to_block();
    int status = mqx_lock_enter(region, &journal->flush_lock);
    if (status != MQX_OK) {
        return status;
    }
    for (int i = 0; i < MARK_ATTEMPTS && status == MQX_OK && !done; i++) {
        status = mark_step(store, &done);
    }
    mqx_lock_drop(region, &journal->flush_lock);
    wake_followers(journal);
    return status == MQX_CANNOT_LEAD ? mqx_leadership_reason(store) : status;
}

/* The callers look for themselves whether that helped, and ask again. */
bool mqx_journal_lead_for_others(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    uint64_t lsn = 0;
    MQX_ASSERT(store->files != NULL);
    MQX_ASSERT(!mqx_lock_held(&store->region, &journal->flush_lock));
    if (!mqx_leadership_take_request(store, &lsn)) {
        return false;
    }
    const uint64_t end = mqx_journal_closed_end(store);
    if (end != 0) {
        const bool flushed = mqx_journal_durable(journal) >= end;
        if (flushed || try_lead(store, end) == MQX_OK) {
            mqx_ignore(mqx_journal_roll(store));
        }
    }
    if (lsn == MQX_LEAD_ROOM) {
        mqx_ignore(mqx_journal_make_room(store, MQX_RING_RECORD_MAX));
    }
    if (mqx_journal_durable(journal) < lsn) {
        mqx_ignore(try_lead(store, lsn));
    }
    return true;
}

/* ---- appending ----
 *
 * An append that lacks room waits here, outside all locks, and tries again: room that was made may
 * have gone to another append, so this is a loop.
 */

/* Before another file is made beyond the limit: what the journal no longer needs is freed, in the
 * caller's time. Without success the file is made nevertheless: nothing but gets, ends of units and
 * the like come this far. */
static void free_journal(struct mqx_store *store)
{
    const struct mqx_region *region = &store->region;
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->ring_lock));
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->roll_lock));
    if (store->free_journal == NULL || !mqx_journal_is_out_of_files(store) ||
        mqx_lock_held(region, &region->header->maintenance_lock)) {
        return;
    }
    unsigned char *record = mqx_scratch_put_away(); /* the caller's */
    if (store->free_journal(store) != MQX_OK) {
        mqx_error_clear();
    }
    mqx_scratch_restore(record);
}

/* The active segment is closed: it is flushed, then the next one begins. A process that cannot do
 * that hands it over; nothing is decided here, so its end is a refusal. */
static int leave_segment(struct mqx_store *store)
{
    struct mqx_handing handing = {.slot = 0};
    const bool was_taken = mqx_interrupt_was_taken();
    MQX_ASSERT(store->files != NULL);
    free_journal(store);
    if (!was_taken && mqx_interrupt_was_taken()) { /* a wait in there has ended: none follows */
        return MQE_INTERRUPTED;
    }
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    for (;;) { /* ends with the patience of the wait */
        const uint64_t end = mqx_journal_closed_end(store); /* 0 once another process has rolled */
        int status = flush_until(store, end, &handing);
        if (status == MQX_OK) {
            status = mqx_journal_roll(store);
            if (MQX_LIKELY(status != MQX_CANNOT_LEAD)) {
                return status;
            }
            status = mqx_leadership_wait(store, &handing, end + 1); /* beyond it: a roll, too */
        }
        if (status != MQX_OK) {
            return status == MQX_CANNOT_LEAD ? mqx_leadership_reason(store) : status;
        }
    }
}

/* A put lacks room beside the reserve: another segment is made, by another process when this one
 * may not. */
static int make_room(struct mqx_store *store, uint32_t length)
{
    struct mqx_handing handing = {.slot = 0};
    MQX_ASSERT(length > 0);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    int status = mqx_journal_make_room(store, length);
    while (status != MQX_OK && mqx_leadership_is_own(status)) { /* as above */
        (void)mqx_leadership_refused(store, status, "making a journal segment");
        if (mqx_leadership_wait(store, &handing, MQX_LEAD_ROOM) != MQX_OK) {
            return mqx_leadership_reason(store);
        }
        status = mqx_journal_make_room(store, length);
    }
    return status;
}

/* Three kinds of refusal, three remedies: the ring is full (write it out), no spare is ready for
 * a put (make one within the limit), the segment is closed (flush it, then roll). */
int mqx_journal_wait_for_room(struct mqx_store *store, uint32_t length, int need)
{
    MQX_ASSERT(need != MQX_OK);
    MQX_ASSERT(!mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    if (need != MQX_NEED_RING && need != MQX_NEED_SEGMENT && need != MQRC_STORAGE_MEDIUM_FULL) {
        return need;
    }
    if (mqx_interrupt_take_at_once()) {
        return MQE_INTERRUPTED;
    }
    mqx_about_to_block();
    if (need == MQX_NEED_RING) {
        return mqx_flush_room(store);
    }
    return need == MQX_NEED_SEGMENT ? leave_segment(store) : make_room(store, length);
}

/* Every attempt lost its room to another append. */
static MQX_COLD int fail_starved(void)
{
    return mqx_fail(MQRC_RESOURCE_PROBLEM, "no room in the journal in %d attempts",
                    APPEND_ATTEMPTS);
}

/* Bytes of a COMMON record that may have to go in front. */
static uint32_t most_in_front(const struct mqx_common *common)
{
    MQX_ASSERT(common == NULL || common->length > 0);
    MQX_ASSERT(common == NULL || common->length <= MQX_COMMON_MAX);
    return common != NULL ? common->length : 0;
}

/* The usual case is one attempt. Bounded, so that a fault in the accounting of room cannot become
 * an endless loop. */
int mqx_journal_append(struct mqx_store *store, struct mqx_append *append)
{
    MQX_ASSERT(append != NULL);
    MQX_ASSERT(append->record != NULL);
    for (uint32_t i = 0; i < APPEND_ATTEMPTS; i++) {
        int status = mqx_journal_try_append(store, append);
        if (MQX_LIKELY(status == MQX_OK)) {
            return MQX_OK;
        }
        status = mqx_journal_wait_for_room(store, append->length + most_in_front(append->common),
                                           status);
        if (status != MQX_OK) {
            return status;
        }
    }
    return fail_starved();
}

/* As mqx_journal_append(); records that were entered by an attempt are not repeated by the next.
 */
int mqx_journal_append_run(struct mqx_store *store, struct mqx_run *run)
{
    MQX_ASSERT(run != NULL);
    MQX_ASSERT(run->count > 0);
    for (uint32_t i = 0; i < APPEND_ATTEMPTS; i++) {
        int status = mqx_journal_try_run(store, run);
        if (MQX_LIKELY(status == MQX_OK)) {
            return MQX_OK;
        }
        status = mqx_journal_wait_for_room(
            store, run->length[run->done] + most_in_front(run->common), status);
        if (status != MQX_OK) {
            return status;
        }
    }
    return fail_starved();
}
