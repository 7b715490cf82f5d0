/*
 * journal.h - segments on disk and the log ring in the region.
 *
 * Terms
 *   ring      `ring_size` bytes of the region that mirror the LSN space: the byte of LSN x is at
 *             ring_offset + x % ring_size. Records are appended at `tail`; what lies in
 *             [written, tail) is only here.
 *   open batch  the batch being filled; its 64 header bytes are left free at batch_start. Closing
 *             ("sealing") it zero-fills to the page, queues it in sealed[], and opens the next one
 *             at the next page (or at the first page after the header of the next segment).
 *   spare     a whole, zero-filled segment file, not yet part of the stream.
 *   closed    the active segment when its state is FULL: nothing more is appended to it, the next
 *             record needs a roll. So it is after a record did not fit, and after a recovery that
 *             found the tail not clean.
 *
 * Invariants
 *   1. durable <= written <= start of the oldest sealed batch or batch_start, except that a leader
 *      raises `durable` a moment before `written`; tail - written <= ring_size.
 *   2. A record never straddles a segment; a record is <= MQX_RING_RECORD_MAX.
 *   3. An append is one ring micro-transaction: tail, batch count, the context's first_lsn,
 *      record_count, running_crc, unit_id and (REC_COMMITS, COMMIT) its state DECIDED and
 *      decided_lsn (PREPARE: PREPARED, nobody's, and decided_lsn), and the message's lsn and
 *      record_length. So a record is in the ring exactly
 *      when the context says so. The bytes are copied into the ring before these stores.
 *   4. Puts are refused with MQRC_STORAGE_MEDIUM_FULL before anything is written when the room that
 *      exists (rest of the active segment and spares) would fall below reserve_bytes and no more
 *      can be made within the limit; other records, and puts that note work which frees the
 *      journal, may use the reserve, and files beyond the limit (rule 12).
 *   5. A recycled file gets a higher generation; a cached mapping carries the generation it was
 *      made with and is dropped when they differ (rule 8).
 *   6. Everything in a segment is durable before the next one gets its name: a roll first flushes.
 *      So a segment that has a successor is valid exactly up to the successor's prev_end_lsn (rule
 *      10).
 *   7. A record whose effect on index or catalog comes later than its append names a context: the
 *      context's first_lsn keeps the begin LSN of checkpoints at or below it. It is cleared when
 *      the effect is complete, not before.
 *
 * Locks: flush, roll and ring lock, ranks in lock.h. The segment table is changed under roll AND
 * ring lock, so either is enough to read it; without one, an entry is believed only after its
 * generation was compared again.
 */
#ifndef PENSTOCK_JOURNAL_H
#define PENSTOCK_JOURNAL_H

#include "format/record_codec.h"
#include "region/store.h"

enum { /* append flags */
    MQX_APPEND_PUT = 1,      /* subject to the reserve: fails with 2192 */
    MQX_APPEND_DECIDES = 2,  /* COMMIT, or a record with PS_FLAG_COMMITS of the context's unit */
    MQX_APPEND_PREPARES = 4, /* PREPARE: the context is nobody's from here on */
};

struct mqx_append {
    const unsigned char *record; /* finished bytes */
    uint32_t length;
    uint32_t flags;
    uint32_t context;            /* slot, 0: stands alone */
    uint32_t message;            /* slot that gets lsn and record_length, 0: none */
    uint32_t object;             /* object slot whose state becomes `object_state` in the same
                                  * micro-transaction, 0: none */
    uint32_t object_state;
    uint64_t lsn;                /* out: of the record */
    uint64_t end_lsn;            /* out: durable >= end_lsn means it is on the medium */
};

enum { MQX_RUN_MAX = 32 }; /* two undoable stores a record, and eight others: see MQX_UNDO_MAX */

/* Records of one unit that are appended together, none of which decides it. */
struct mqx_run {
    const unsigned char *records; /* finished bytes, one behind the other; not longer together
                                   * than one record may be */
    uint32_t context;
    uint32_t flags;               /* MQX_APPEND_PUT or 0 */
    uint32_t count;
    uint32_t length[MQX_RUN_MAX];
    uint32_t message[MQX_RUN_MAX]; /* as in struct mqx_append */
    uint32_t done;                /* in: 0; out: how many are in the ring */
    uint32_t done_bytes;          /* of those; in: 0 */
};

/* Process-local caches. Attaching twice is harmless. */
int mqx_journal_attach(struct mqx_store *store) MQX_MUST_USE;
void mqx_journal_detach(struct mqx_store *store);

/* Appends one record. Waits (outside all locks) for ring space or a segment when needed. In
 * group_commit.c, because it may have to flush. */
int mqx_journal_append(struct mqx_store *store, struct mqx_append *append) MQX_MUST_USE;
/* The same without waiting: MQX_NEED_RING, MQX_NEED_SEGMENT, MQRC_STORAGE_MEDIUM_FULL (reserve). */
int mqx_journal_try_append(struct mqx_store *store, struct mqx_append *append) MQX_MUST_USE;

/* The same for a run: what fits of it in one hold, as few micro-transactions as it takes.
 * run->done and done_bytes say how far it got, whatever is returned; another call goes on there. */
int mqx_journal_append_run(struct mqx_store *store, struct mqx_run *run) MQX_MUST_USE;
int mqx_journal_try_run(struct mqx_store *store, struct mqx_run *run) MQX_MUST_USE;

/* A unit id; never 0. */
uint64_t mqx_journal_unit_id(struct mqx_store *store);
/* The reserve for so many persistent messages and open contexts: what the maintenance step stores
 * in reserve_bytes. */
uint64_t mqx_journal_reserve_for(const struct mqx_region *region, uint64_t messages,
                                 uint64_t contexts);

/* A stable view of `size` bytes at `lsn` in the mapping of its segment, made readable first so that
 * a bad sector is a status and not a signal. The view keeps the mapping until it is ended; the
 * caller keeps the segment from being recycled (the message is present and claimed or pinned). */
struct mqx_view {
    const unsigned char *at;
    uint64_t size;
    void *entry; /* of the cache */
};
int mqx_journal_view(struct mqx_store *store, uint64_t lsn, uint64_t size,
                     struct mqx_view *out) MQX_MUST_USE;
void mqx_journal_view_end(struct mqx_store *store, struct mqx_view *view);

/* Descriptor and body of a persistent message that is not in the region: decodes and verifies the
 * record at `lsn` (identity, CRC), copies `capacity` body bytes at most (chunks gathered). Outputs
 * may be NULL. MQRC_OBJECT_DAMAGED with file and offset when it is not what it should be. A caller
 * that only pinned the message looks at its state before it believes that: a removed message's
 * segment may be recycled. */
int mqx_journal_fetch(struct mqx_store *store, const struct mqx_message *message,
                      struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                      uint64_t capacity) MQX_MUST_USE;
/* LSN of the first CHUNK record of the message whose PUT record is at `lsn`; `lsn` when it has
 * none. */
int mqx_journal_first_lsn(struct mqx_store *store, uint64_t lsn, uint32_t record_length,
                          uint64_t *out) MQX_MUST_USE;

/* One spare ahead; called by the maintenance step. MQRC_STORAGE_MEDIUM_FULL when limit or disk do
 * not allow it. */
int mqx_journal_make_spare(struct mqx_store *store, bool full_size) MQX_MUST_USE;
/* The same for an append of a put that was refused: does nothing when there is room by now. */
int mqx_journal_make_room(struct mqx_store *store, uint32_t length) MQX_MUST_USE;
uint32_t mqx_journal_spare_count(struct mqx_store *store);
/* True when there is no spare, or when less than twice the reserve is at hand, and the limit allows
 * more. */
bool mqx_journal_spare_wanted(struct mqx_store *store);

/* Bytes of journal from one checkpoint to the next, at the least. */
uint64_t mqx_journal_interval(const struct mqx_journal *journal);

/* From the oldest on, segments that end at or before `begin_lsn` and in which `live[]` (parallel to
 * the segment table) is 0 become spares (full-size ones, as many as an interval uses: two to
 * eight) or are unlinked; with plan.linear all move to the archive, where they count against no
 * limit. It ends at the first one that is still needed: segments are kept without holes. */
int mqx_journal_retire(struct mqx_store *store, uint64_t begin_lsn,
                       const uint32_t *live) MQX_MUST_USE;

/* Index in the segment table of the segment that holds `lsn`, or -1. */
int mqx_journal_segment_of(const struct mqx_region *region, uint64_t lsn);

/* Closes the open batch if it has records (ring lock held; the caller commits): MQX_NEED_RING when
 * the queue of sealed batches is full. Used by group_commit.c. */
int mqx_journal_seal(struct mqx_store *store) MQX_MUST_USE;
/* Queues an empty batch, a mark page (the same way); MQX_NEED_SEGMENT when the segment has no page
 * left. */
int mqx_journal_seal_mark(struct mqx_store *store) MQX_MUST_USE;
/* Puts a spare in place of the closed segment, once that is durable; 0 too when somebody else did
 * or when it must be flushed first: the caller tries again what it wanted. */
int mqx_journal_roll(struct mqx_store *store) MQX_MUST_USE;
/* End of the closed segment's batches, 0 when the active one is not closed. */
uint64_t mqx_journal_closed_end(struct mqx_store *store);
/* Descriptor of a segment for the flush leader (flush lock held; cached, opened for writing). */
int mqx_journal_write_fd(struct mqx_store *store, uint32_t segment_index, int *out) MQX_MUST_USE;

/* A byte of the ring. */
static inline unsigned char *mqx_ring_at(const struct mqx_region *region, uint64_t lsn)
{
    const struct mqx_journal *journal = region->journal;
    return region->base + journal->ring_offset + (lsn & (journal->ring_size - 1));
}

#endif
