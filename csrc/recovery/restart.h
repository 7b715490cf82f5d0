/*
 * restart.h - from files to an index: what the first process to attach does.
 *
 * Purpose. Reads the newest whole checkpoint and the journal's tail from its begin LSN, applies
 * what is committed, drops what is not, and loads objects and messages into catalog and queues.
 * Idempotent by message number: a restart that was interrupted is simply done again.
 *
 * Terms
 *   tail         the journal from the begin LSN to its end.
 *   torn tail    an unfinished last write: dropped. Damage: bytes that were durable and are not
 *                good now: refused. The table of cases is in tail_scan.h.
 *   in flight    a message that a unit had got which will not end (from the orphan region).
 *   epoch        what one restart and the processes after it write: a unit is decided in its epoch
 *                or never, but for prepared ones.
 *
 * Steps, in this order, and what a kill after each of them leaves to the next restart
 *   1 list         names of segments, spares, checkpoints       the same files
 *   2 open         the newest whole checkpoint (a damaged one   the same files
 *                  is passed over, and reported); its objects
 *   3 segments     their headers, in one unbroken row from      the same files
 *                  the checkpoint's begin LSN on, up to the
 *                  one that HEAD names
 *   4 scan         every batch from the begin LSN to the end    the same files
 *                  of the tail; records go to the replay
 *   5 load         catalog, messages and prepared units in      the same files: the region is not
 *                  the region                                   `ready` and is discarded
 *   6 counts       a BACKOUT record for what dead units had     the record: the counts in it are
 *                  got (rule 46), durable                       absolute, so writing it again is
 *                                                               harmless
 *   7 consumed     an IMAGE_CONSUMED record, durable, when      messages of the image are gone, as
 *                  messages of an image were loaded; and for    after a failure of the last process
 *                  each checkpoint that was passed over
 *   8 leftovers    *.tmp, spares that cannot be used and older  some of them; the rest goes at the
 *                  checkpoints are removed                      next restart
 * The region becomes `ready` after the last step, by the caller.
 *
 * Invariants
 *   1. Nothing is written before everything was read and found good; a refused restart leaves every
 *      file as it was.
 *   2. What it writes then: half-made files (*.tmp) and unusable spares are deleted; a page of HEAD
 *      that is not good is written again; the last segment is flushed when the end was not an
 *      orderly one (what was read from the cache must be on the medium before it is acted on, rule
 *      4); a BACKOUT record with the counts of messages in flight (rule 46); an IMAGE_CONSUMED
 *      record, durable, when image messages were loaded, and for each damaged checkpoint that was
 *      passed over: should it be readable once more, its image must not come up among later
 *      messages.
 *      After an orderly end with nothing of that it writes nothing.
 *   3. A journal that did not end in order is left closed, so that the first append begins a new
 *      segment (rule 10).
 *   4. Message numbers, unit ids, segment numbers and generations go on above everything found.
 *
 * Locks. The caller holds the attach lock, the region is fresh and not `ready`, and no other
 * process is attached: no lock of the region is contended.
 *
 * Errors. MQRC_OBJECT_DAMAGED with file and offset, MQRC_STORAGE_NOT_AVAILABLE without memory,
 * reasons of the file table; the region is to be discarded then.
 */
#ifndef PENSTOCK_RECOVERY_H
#define PENSTOCK_RECOVERY_H

#include "recovery/create_files.h" /* for those who included this header for them */
#include "recovery/distrust_cache.h"
#include "region/store.h"

struct mqx_in_flight { /* a message in flight; rule 46 */
    uint64_t number;
    uint32_t object;
    uint32_t count;     /* new BackoutCount */
};

struct mqx_recovery_report {
    uint64_t messages;
    uint64_t objects;
    uint64_t records_replayed;
    uint64_t bytes_replayed;
    uint64_t units_dropped;
    uint64_t units_prepared;   /* without an outcome: there again */
    uint64_t torn_bytes;       /* of the torn tail */
    uint64_t image_messages;
    uint64_t begin_lsn;
    uint64_t end_lsn;
    uint64_t damaged_checkpoint; /* begin LSN of the newest one, when it was passed over; else 0 */
    char damage[160];            /* what is wrong with it */
    bool clean;
};

/* `in_flight` may have a number more than once; the highest count counts. *out is filled in on
 * failure too, as far as it got. */
int mqx_recover(struct mqx_store *store, const struct mqx_in_flight *in_flight,
                size_t in_flight_count, struct mqx_recovery_report *out) MQX_MUST_USE;

#endif
