/*
 * journal.h - appending to the journal, reading messages back from it, keeping its segment files.
 *
 * Purpose. The journal is the truth on disk: an endless stream of records, numbered by LSN, in
 * segment files (FORMAT.md). Records enter the log ring in the region; a flush (group_commit.h)
 * writes them out. This folder knows records as bytes, segments and batches; it knows nothing of
 * queues.
 *
 * Modules
 *   ring            appends: a record, or a run of them, in one ring micro-transaction
 *   segment_pool    spare segment files: made ahead, rolled into, retired to, archived
 *   segment_reserve those that a full disk cannot take away
 *   segment_pin     segments that stay while a backup copies them (segment_pin.h)
 *   group_commit    the flush leader and its followers; appends that may have to wait
 *   leadership      what a process does that cannot write the journal: another one leads
 *   write_file      the leader's descriptor, compared with its file before each flush
 *   journal_reader  messages read back through mapped segments
 *   journal_scan    a segment as a table of rows, without a region (penstock/journal_scan.h)
 *
 * Terms
 *   ring        `ring_size` bytes of the region that mirror the LSN space: the byte of LSN x is at
 *               ring_offset + x % ring_size. Records are appended at `tail`; what lies in
 *               [written, tail) is only here.
 *   open batch  the flush batch being filled; its 64 header bytes are left free at batch_start.
 *               Sealing it zero-fills to the page, queues it in sealed[], and opens the next one at
 *               the next page (or at the first page after the header of the next segment).
 *   COMMON      a record that holds what short records behind it in the same batch have in common;
 *               an append puts it in front of its record unless the batch has it (short_codec.h).
 *   spare       a whole, zero-filled segment file that is not yet part of the stream.
 *   closed      the active segment when its state is FULL: nothing more is appended to it, the next
 *               record needs a roll. It is closed when a record did not fit, and after a restart
 *               that found the tail not clean.
 *   reserve     journal space kept for records that free the journal: gets, commits, backouts.
 *   reserved    a whole segment file that is no room for anybody until the disk is full.
 *
 * Positions in the stream, from old to new
 *
 *       durable          written             batch_start            tail
 *          |                |                     |                   |
 *   ... on the medium | at the kernel | sealed batches ... | header | records | free ...
 *                     (unsynced != 0)   only in the ring     open batch
 *
 *   Everything below `durable` survives a power cut, everything below `written` a crash of all
 *   processes, everything below `tail` the death of any process while another one is attached (or
 *   attaches before the machine stops): the ring is in the region.
 *
 * Invariants
 *   1. durable <= written <= start of the oldest sealed batch or batch_start, except that a leader
 *      raises `durable` just before `written`; tail - written <= ring_size.
 *   2. A record never straddles a segment; a record is <= MQX_RING_RECORD_MAX.
 *   3. An append is one ring micro-transaction: tail, batch count, the context's first_lsn,
 *      record_count, running_crc, unit_id and (REC_COMMITS, COMMIT) its state DECIDED and
 *      decided_lsn (PREPARE: state PREPARED, no process, and decided_lsn), and the message's lsn
 *      and record_length. So a record is in the ring exactly when the context says so. The bytes
 *      are copied into the ring before these stores.
 *   4. Puts are refused with MQRC_STORAGE_MEDIUM_FULL before anything is written when messages take
 *      more than 70 % of the limit, or when the room that exists (rest of the active segment and
 *      spares) would fall below reserve_bytes and no more can be made within the limit; other
 *      records, and puts that note work which frees the journal, may use the reserve, and files
 *      beyond the limit (rule 12). They are refused as well while a reserved segment is in use, and
 *      when the reserve for a checkpoint is too short for what is present (rule 59).
 *   5. A recycled file gets a higher generation; a cached mapping carries the generation it was
 *      made with and is dropped when they differ (rule 8).
 *   6. Everything in a segment is durable before the next one gets its name: a roll first flushes.
 *      So a segment that has a successor is valid exactly up to the successor's prev_end_lsn (rule
 *      10).
 *   7. A record whose effect on index or catalog comes later than its append names a context: the
 *      context's first_lsn keeps the begin LSN of checkpoints at or below it. It is cleared when
 *      the effect is complete, not before.
 *
 * Locks. Flush, roll and ring lock, ranks in lock.h. The segment table is changed under roll AND
 * ring lock, so either is enough to read it; without one, an entry is believed only after its
 * generation was compared again. Functions take the locks they need; none may be held by the
 * caller, except locks of a lower rank than the one taken.
 *
 * Errors. Values read from the region are validated: one that cannot be true stops the queue
 * manager (region/damage.h, MQRC_Q_MGR_NOT_AVAILABLE). A failed write or flush stops it too, with
 * MQRC_CONNECTION_BROKEN, unless the failure is this process's own (leadership.h). All other
 * refusals change nothing.
 */
#ifndef PENSTOCK_JOURNAL_H
#define PENSTOCK_JOURNAL_H

#include "format/short_codec.h"
#include "region/store.h"

#include <string.h>

enum { /* append flags */
    MQX_APPEND_PUT = 1,      /* subject to the reserve: may fail with MQRC_STORAGE_MEDIUM_FULL */
    MQX_APPEND_DECIDES = 2,  /* COMMIT, or a record with PS_FLAG_COMMITS of the context's unit */
    MQX_APPEND_PREPARES = 4, /* PREPARE: the context belongs to no process from here on */
    MQX_APPEND_MOVES = 8,    /* compaction: subject to the reserve as a put is */
};

struct mqx_append {
    const unsigned char *record; /* finished bytes */
    struct mqx_common *common;   /* of a short record; goes into the ring in front of it unless it
                                  * is in the open batch already */
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

/* Tells the regions of one process apart: struct mqx_common. */
static inline uint64_t mqx_journal_store_id(const struct mqx_store *store)
{
    uint64_t id;
    MQX_ASSERT(store->region.header != NULL);
    MQX_ASSERT(store->region.journal == &store->region.header->journal);
    MQX_STATIC_ASSERT(sizeof id <= sizeof store->region.header->incarnation, "a part of it");
    memcpy(&id, store->region.header->incarnation, sizeof id);
    return id;
}

enum { MQX_RUN_MAX = 32 }; /* two undoable stores a record, and eight others: see MQX_UNDO_MAX */

/* Records of one unit that are appended together, none of which decides it. */
struct mqx_run {
    const unsigned char *records; /* finished bytes, one behind the other; not longer together
                                   * than one record may be, their COMMON record included */
    struct mqx_common *common;    /* of those that are short */
    uint32_t context;
    uint32_t flags;               /* MQX_APPEND_PUT or 0 */
    uint32_t count;
    uint32_t length[MQX_RUN_MAX];
    uint32_t message[MQX_RUN_MAX]; /* as in struct mqx_append */
    uint32_t done;                /* in: 0; out: how many are in the ring */
    uint32_t done_bytes;          /* of those; in: 0 */
};

/* ---- process-local caches (journal_reader) ---- */

/* Attaching twice is harmless. MQRC_STORAGE_NOT_AVAILABLE without memory. */
int mqx_journal_attach(struct mqx_store *store) MQX_MUST_USE;
/* Unmaps what this process has of segment files that were retired since: their disk space comes
 * back when the last process has done so. Called now and then by the maintenance thread. */
void mqx_journal_drop_retired(struct mqx_store *store);
/* Unmaps and closes what this process has of segment files. No view may be open. */
void mqx_journal_detach(struct mqx_store *store);

/* ---- descriptors for bad times (write_file) ---- */

/* The process keeps two descriptors open for nothing: lent, one makes room for a file that is to be
 * opened although the program has used up its limit, for a roll or for a spare made at the same
 * time. Lending what was lent already, or could not be kept, does nothing. */
void mqx_journal_keep_fd(struct mqx_store *store);
void mqx_journal_lend_fd(struct mqx_store *store);

/* ---- leading for others (group_commit, leadership) ---- */

/* Does what processes have asked for that cannot write the journal: leaves a closed segment, makes
 * what is pending durable. Called by the maintenance thread when its doorbell rings, with no lock
 * but the maintenance lock. False when nobody had asked. */
bool mqx_journal_lead_for_others(struct mqx_store *store);
/* Was this process once refused to lead? The newest reason as a text. */
bool mqx_journal_cannot_lead(struct mqx_store *store, char *text, size_t size);

/* ---- appending (ring; the waiting ones in group_commit) ---- */

/* Appends one record. Waits (outside all locks) for ring space or a segment when needed. */
int mqx_journal_append(struct mqx_store *store, struct mqx_append *append) MQX_MUST_USE;
/* The same without waiting: MQX_NEED_RING, MQX_NEED_SEGMENT, MQRC_STORAGE_MEDIUM_FULL (reserve). */
int mqx_journal_try_append(struct mqx_store *store, struct mqx_append *append) MQX_MUST_USE;

/* The same for a run: as many records as fit in one lock hold, in as few micro-transactions as
 * possible. run->done and done_bytes say how far it got, whatever is returned; another call goes
 * on there. */
int mqx_journal_append_run(struct mqx_store *store, struct mqx_run *run) MQX_MUST_USE;
int mqx_journal_try_run(struct mqx_store *store, struct mqx_run *run) MQX_MUST_USE;

/* Puts are refused with MQRC_STORAGE_MEDIUM_FULL while messages, those of open units included, take
 * more than this part of the limit: what is left is for the tail, for gets, and for compaction. */
uint64_t mqx_journal_live_limit(const struct mqx_journal *journal);
/* How far puts may append until this is called again: as if all of that stayed. By the maintenance
 * step, and by puts that have come so far. *out_live: the bytes of messages; false: over the
 * limit. */
bool mqx_journal_bound_puts(const struct mqx_region *region, uint64_t *out_live);

/* Bytes that the reserve for a checkpoint must have now (recovery/checkpoint_reserve.h): for one of
 * what is present, and what the two kept ones are too short for that. 0: no message is present. */
uint64_t mqx_journal_checkpoint_reserve(const struct mqx_region *region);
/* A checkpoint of so many bytes is the newest now: what later ones will take is reckoned by it, if
 * it has many messages. By who writes it (maintenance lock), and by the restart. */
void mqx_journal_learn(struct mqx_journal *journal, const struct psc_end *totals, uint64_t size);
/* What is present, exactly: the messages that the newest checkpoint lists, one of an orderly end.
 * By its writer, and by the restart from it. Until some more messages are put, the reserve is
 * reckoned by this. */
struct mqx_known_lines { /* of messages in a checkpoint's blocks, without their LSNs */
    uint64_t line_bytes; /* of one in a block of any of them, at the most */
    uint64_t lines;      /* of all in any blocks, at the most */
    uint64_t first_lsn;  /* the lowest of them */
    uint64_t others;     /* bytes of the checkpoint that are not messages */
};
void mqx_journal_know(const struct mqx_region *region, const struct mqx_known_lines *known);
/* Is the reserve reckoned by that now? */
bool mqx_journal_is_known(const struct mqx_region *region);
/* Are there many messages, and none of the checkpoints had many? */
bool mqx_journal_would_learn(const struct mqx_region *region);

/* A unit id; never 0. */
uint64_t mqx_journal_unit_id(struct mqx_store *store);
/* The reserve for so many persistent messages and open contexts: what the maintenance step stores
 * in reserve_bytes. */
uint64_t mqx_journal_reserve_for(const struct mqx_region *region, uint64_t messages,
                                 uint64_t contexts);

/* ---- reading back (journal_reader) ---- */

/* Descriptor and body of a persistent message that is not in the region: decodes and verifies the
 * record at `lsn` (message number, CRC), copies `capacity` body bytes at most (chunks gathered).
 * Outputs may be NULL. MQRC_OBJECT_DAMAGED with file and offset when it is not what it should be. A
 * caller that only pinned the message looks at its state before it believes that: a removed
 * message's segment may be recycled. One that is moved while it is read is read again where it
 * lies then. */
int mqx_journal_fetch(struct mqx_store *store, const struct mqx_message *message,
                      struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                      uint64_t capacity) MQX_MUST_USE;
/* The records of a message, verified: its pieces in order, then its PUT or MOVED. `visit` may
 * append to the journal; what it returns ends the walk and comes back. The caller holds the
 * maintenance lock, so that no segment is recycled meanwhile. */
struct mqx_record_walk {
    uint64_t number;
    uint64_t lsn;                /* of the PUT or MOVED record */
    uint32_t record_length;
    int (*visit)(void *arg, const void *at, const struct mqx_decoded *record); /* at: bytes */
    void *arg;
};
int mqx_journal_walk(struct mqx_store *store, const struct mqx_record_walk *walk) MQX_MUST_USE;
/* LSN of the first CHUNK record of the message whose PUT record is at `lsn`; `lsn` when it has
 * none. */
int mqx_journal_first_lsn(struct mqx_store *store, uint64_t lsn, uint32_t record_length,
                          uint64_t *out) MQX_MUST_USE;

/* ---- segment files (segment_pool) ---- */

/* Size of the smallest segment that may become the active one. */
static inline uint64_t mqx_journal_smallest_segment(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->segment_size > 0);
    return journal->segment_size < journal->first_segment_size ? journal->segment_size
                                                               : journal->first_segment_size;
}

/* Size that spares grow to: a sixteenth of a small limit, of which a checkpoint is to free a part
 * while the next one is written. */
static inline uint64_t mqx_journal_largest_segment(const struct mqx_journal *journal)
{
    const uint64_t part = journal->limit / 16 / MQX_PAGE_SIZE * MQX_PAGE_SIZE;
    const uint64_t least = mqx_journal_smallest_segment(journal);
    MQX_ASSERT(least >= PS_MIN_SEGMENT);
    MQX_ASSERT(least <= journal->segment_size);
    return part < least ? least : part < journal->segment_size ? part : journal->segment_size;
}

/* One spare ahead; called by the maintenance step. Near the limit it has the smallest size.
 * MQRC_STORAGE_MEDIUM_FULL when limit or disk do not allow it; MQX_LEAVING: this process leaves. */
int mqx_journal_make_spare(struct mqx_store *store, uint64_t size) MQX_MUST_USE;
/* The same for an append of a put that was refused: does nothing when there is room by now. */
int mqx_journal_make_room(struct mqx_store *store, uint32_t length) MQX_MUST_USE;
uint32_t mqx_journal_spare_count(struct mqx_store *store);
/* Bytes of the files that hold a stretch of the stream: all but spares, which the next interval
 * takes into use before other files are made. */
uint64_t mqx_journal_stream_bytes(const struct mqx_journal *journal);
/* The size of the spare to be made; 0: none. One is wanted when the room left is less than twice
 * the reserve, or when there is none and more than half of the active segment is used, or enough
 * was written before it; after as much as two segments of full size, when there are less than
 * three. Sizes double up to the full one. The limit must allow it. */
uint64_t mqx_journal_spare_wanted(struct mqx_store *store);

/* ---- for a full disk (segment_reserve) ---- */

enum { MQX_RESERVED_SEGMENTS = 3 };
/* Bytes that each must have, at the least; and how many there are. */
uint64_t mqx_journal_reserved_size(const struct mqx_journal *journal);
uint32_t mqx_journal_reserved_count(const struct mqx_journal *journal);
/* Makes so many, of new files or of spares. By the maintenance step. MQRC_STORAGE_MEDIUM_FULL: some
 * are lacking, and the disk has no room. */
int mqx_journal_keep_reserved(struct mqx_store *store) MQX_MUST_USE;

/* Bytes of journal from one checkpoint to the next, at the least. */
uint64_t mqx_journal_interval(const struct mqx_journal *journal);

/* Segments older than `begin_segment` which no restart needs (`live[]`, parallel to the segment
 * table, is 0), and which so end at or before `begin_lsn`, become spares (full-size ones, as many
 * as an interval uses: two to eight) or are unlinked; with plan.linear all move to the archive,
 * where they count against no limit. */
int mqx_journal_retire(struct mqx_store *store, uint64_t begin_segment, uint64_t begin_lsn,
                       const uint32_t *live) MQX_MUST_USE;

/* At the orderly end: removes the spares but for one that the next start would make at once.
 * Reserved ones stay. */
int mqx_journal_end_spares(struct mqx_store *store) MQX_MUST_USE;

/* A hint: the next roll finds no spare, and the limit allows no other file. */
bool mqx_journal_is_out_of_files(struct mqx_store *store);

/* Index in the segment table of the segment that holds `lsn`, or -1. */
int mqx_journal_segment_of(const struct mqx_region *region, uint64_t lsn);

/* What a segment file needs to begin: who it belongs to and where it stands in the stream. The
 * spare with that number gets `header` as its first page, written with data sync, then the name of
 * segment header->segment_no; the directory is flushed. A spare that has that name already (its
 * process died after the rename) is continued. Fills in qm_id, created_us and the checksum. */
struct mqx_segment_failure {
    const char *step; /* what failed */
    bool unknown;     /* a write or flush failed: what the medium holds is not known */
    bool own;         /* a failure of this process, not of the device (leadership.h) */
};
/* 0 or a negated errno, *out filled in then. */
int mqx_segment_begin(struct mqx_io *io, int journal_dir, const uint8_t qm_id[16],
                      uint64_t spare_number, struct psj_segment *header,
                      struct mqx_segment_failure *out) MQX_MUST_USE;

/* A byte of the ring. */
static inline unsigned char *mqx_ring_at(const struct mqx_region *region, uint64_t lsn)
{
    MQX_ASSERT(region->ring > region->base);
    MQX_ASSERT((region->ring_size & (region->ring_size - 1)) == 0);
    return region->ring + (lsn & (region->ring_size - 1));
}

#endif
