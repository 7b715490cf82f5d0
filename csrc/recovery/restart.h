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

#include "recovery/create_files.h" /* for those who included this header for them */
#include "recovery/distrust_cache.h"
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

#endif
