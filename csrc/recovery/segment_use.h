/*
 * segment_use.h - which segments of the journal a checkpoint needs (rules 11, 47).
 *
 * Purpose. A checkpoint lists the segments before its begin segment that a restart from it reads:
 * those in which the record of a listed message lies, or the body of a message that a unit of work
 * in flight has put. This module copies the segment table and counts what keeps each of them.
 *
 * Terms
 *   live   a message or a unit that keeps the segments from its first piece to its PUT.
 *
 * Invariants
 *   1. A message whose pieces cannot be read keeps everything before it: only its PUT says where
 *      the first piece lies.
 *   2. A segment that was begun after the table was copied is newer than everything that is freed,
 *      and needs no count.
 *
 * Locks. mqx_segment_use_begin() takes the roll lock, so that the table is of one moment; the other
 * functions read files and the copy. Errors: MQRC_STORAGE_NOT_AVAILABLE without memory,
 * MQRC_Q_MGR_NOT_AVAILABLE for a damaged table.
 */
#ifndef PENSTOCK_RECOVERY_SEGMENT_USE_H
#define PENSTOCK_RECOVERY_SEGMENT_USE_H

#include "recovery/units_in_flight.h"
#include "region/store.h"

struct mqx_located_segment { /* a segment, for finding the one that holds an LSN */
    uint64_t base_lsn;
    uint64_t size;
    uint64_t number;
    uint64_t generation;
    uint64_t end_lsn;
    uint32_t index; /* in the segment table */
};

struct mqx_segment_use {
    struct mqx_store *store;
    struct mqx_located_segment *segments; /* by LSN */
    uint32_t count;
    uint32_t last_found;  /* where the LSN before was found */
    uint32_t *live;       /* messages and units, parallel to the segment table */
    uint64_t *live_bytes; /* about the bytes of their records */
};

/* Copies the table. mqx_segment_use_end() in either case. */
int mqx_segment_use_begin(struct mqx_segment_use *use, struct mqx_store *store) MQX_MUST_USE;
void mqx_segment_use_end(struct mqx_segment_use *use);
/* The segment that holds the LSN; NULL for one that was begun after the table was copied. */
const struct mqx_located_segment *mqx_segment_use_locate(struct mqx_segment_use *use, uint64_t lsn);
/* Counts a message; sets m->first_lsn of one with pieces. */
void mqx_segment_use_message(struct mqx_segment_use *use, struct psc_message *m);
/* Counts what the units need below their list's LSN: bodies that they have put, and pieces whose
 * PUT is still to come, up to `begin_lsn`. */
void mqx_segment_use_units(struct mqx_segment_use *use, const struct mqx_units_in_flight *units,
                           uint64_t begin_lsn);
/* The oldest segment that is needed, when all from `begin_segment` on are. */
uint64_t mqx_segment_use_oldest(const struct mqx_segment_use *use, uint64_t begin_segment);

#endif
