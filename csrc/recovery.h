/*
 * recovery.h - from files to an index: restart.
 *
 * Called by the first process to attach, alone (attach lock held, region not `ready`), so that no lock of the
 * region is contended. Reads the newest whole checkpoint and the journal's tail from its begin LSN, applies
 * what is committed, drops what is not, idempotent by message identity, and loads objects and messages
 * through mqx_catalog_load() and mqx_queue_load(). Decides by a labelled table (cases A..) between torn tail
 * and damage. Never writes to a file that it reads, except: half-made files (*.tmp) are deleted, and a new
 * segment is begun at the first append when the tail was not clean (rule 10).
 */
#ifndef PENSTOCK_RECOVERY_H
#define PENSTOCK_RECOVERY_H

#include "store.h"

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
    uint64_t torn_bytes;       /* of the torn tail */
    uint64_t image_messages;
    uint64_t begin_lsn;
    uint64_t end_lsn;
    bool clean;
};

/* MQRC_OBJECT_DAMAGED with file and offset when the files are damaged; nothing is changed then. */
int mqx_recover(struct mqx_store *store, const struct mqx_in_flight *in_flight,
                size_t in_flight_count, struct mqx_recovery_report *out) MQX_MUST_USE;

/* Writes the first files of a new queue manager: segment 1 (first_segment_size) and checkpoint 0. */
int mqx_journal_create(struct mqx_io *io, int journal_dir, int checkpoint_dir,
                       const uint8_t qm_id[16], const struct mqx_region_plan *plan) MQX_MUST_USE;

#endif
