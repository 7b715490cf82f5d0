/*
 * restart.h - from files to an index: restart.
 *
 * Called by the first process to attach, alone (attach lock held, region not `ready`, fresh), so
 * that no lock of the region is contended. Reads the newest checkpoint and the journal's tail from
 * its begin LSN, applies what is committed, drops what is not, idempotent by message identity, and
 * loads objects and messages through mqx_catalog_load(), mqx_catalog_loaded() and mqx_queue_load().
 * Decides by a labelled table (tail_scan.c, cases A..G) between torn tail and damage.
 *
 * What it writes, and only after everything was read and found good: half-made files (*.tmp) and
 * unusable spares are deleted; the last segment is flushed when the end was not an orderly one
 * (what was read from the cache must be on the medium before anybody acts on it, rule 4); a BACKOUT
 * record with the counts of units in flight (rule 46); an IMAGE_CONSUMED record, durable, when
 * image messages were loaded. After an orderly end with nothing of that it writes nothing. A
 * journal that did not end in order is left closed, so that the first append begins a new segment
 * (rule 10).
 */
#ifndef PENSTOCK_RECOVERY_H
#define PENSTOCK_RECOVERY_H

#include "region/store.h"

struct mqx_in_flight { /* from the orphan region: got by a unit that will not end; rule 46 */
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
    uint64_t units_prepared;   /* and not ended: there again */
    uint64_t torn_bytes;       /* of the torn tail */
    uint64_t image_messages;
    uint64_t begin_lsn;
    uint64_t end_lsn;
    bool clean;
};

/* MQRC_OBJECT_DAMAGED with file and offset when the files are damaged; no file is changed then, and
 * the region is to be discarded. */
int mqx_recover(struct mqx_store *store, const struct mqx_in_flight *in_flight,
                size_t in_flight_count, struct mqx_recovery_report *out) MQX_MUST_USE;

/* Before mqx_recover() when the orphan region says that a flush failed (MQX_STOP_BROKEN, same
 * boot): the page cache may hold what the medium does not (rule 14). Drops the cache, copies the
 * last segment, the only one that can have unflushed bytes, into a fresh file, flushes that and
 * puts it in place. */
int mqx_recover_distrust_cache(struct mqx_store *store) MQX_MUST_USE;

/* Writes the first files of a new queue manager: segment 1 (first_segment_size) and an empty, clean
 * checkpoint. */
int mqx_journal_create(struct mqx_io *io, int journal_dir, int checkpoint_dir,
                       const uint8_t qm_id[16], const struct mqx_region_plan *plan) MQX_MUST_USE;

#endif
