/*
 * load.h - joining checkpoint and tail, and filling catalog and queues with what is left.
 */
#ifndef PENSTOCK_RECOVERY_LOAD_H
#define PENSTOCK_RECOVERY_LOAD_H

#include "recovery/checkpoint_file.h"
#include "queue/queue.h"
#include "recovery/restart.h"
#include "recovery/replay.h"

struct mqx_found_segment { /* a segment that counts, oldest first */
    struct mqx_segment entry; /* as it will stand in the table */
    uint64_t epoch;
};

struct mqx_restart { /* everything about one restart */
    struct mqx_store *store;
    struct mqx_replay replay;
    struct mqx_checkpoint_reader checkpoint;
    bool has_checkpoint;
    bool use_image;
    uint64_t rest_at;             /* first block behind the objects */
    struct psc_end rest_totals;   /* totals before it */
    struct mqx_found_segment *segments;
    size_t segment_count;
    const struct mqx_in_flight *in_flight; /* the caller's, then a sorted copy */
    size_t in_flight_count;
    struct ps_count *raised;      /* of loaded messages, by units in flight at the end (rule 46) */
    size_t raised_count;
    struct mqx_recovery_report report;
};

/* Reads the objects of the checkpoint, and where its image messages lie. */
int mqx_load_checkpoint_start(struct mqx_restart *restart) MQX_MUST_USE;
/* After the replay: definitions into the catalog. */
int mqx_load_objects(struct mqx_restart *restart) MQX_MUST_USE;
/* Then messages into the queues, in delivery order; verifies the rest of the checkpoint. */
int mqx_load_messages(struct mqx_restart *restart) MQX_MUST_USE;
/* Then prepared units: what they have put and got is theirs again. */
int mqx_load_prepared(struct mqx_restart *restart) MQX_MUST_USE;

#endif
