/*
 * load.h - joining checkpoint and tail, and filling catalog and queues with what is left.
 *
 * Purpose. After the replay a restart knows what changed since the checkpoint. This module reads
 * the checkpoint's items, joins them with the replay's, and hands objects to the catalog
 * (mqx_catalog_load), messages to the queues in delivery order (mqx_queue_load), and prepared units
 * to their contexts (mqx_prepared_restore).
 *
 * Terms
 *   delivery order  as in merge.h, which joins the two sources.
 *   raised          a message whose BackoutCount is higher than checkpoint and PUT say, because its
 *                   unit was in flight (rule 46).
 *
 * Invariants
 *   1. A message that is in checkpoint and tail is loaded once; one that the replay says is gone is
 *      not loaded.
 *   2. Within a queue and priority, numbers ascend: each message is appended at the end of its
 *      level (mqx_queue_load relies on it).
 *   3. Every message's record lies in a segment that counts (or in the image), or it is damage.
 *
 * No locks: the region is not ready, no other process is attached. Errors: MQRC_OBJECT_DAMAGED
 * naming message or file and offset; MQRC_STORAGE_NOT_AVAILABLE without memory; the region's own
 * (MQRC_STORAGE_NOT_AVAILABLE when it cannot grow).
 */
#ifndef PENSTOCK_RECOVERY_LOAD_H
#define PENSTOCK_RECOVERY_LOAD_H

#include "queue/queue.h"
#include "recovery/checkpoint_file.h"
#include "recovery/replay.h"
#include "recovery/restart.h"
#include "recovery/units_in_flight.h"
#include "region/memory_ahead.h"

struct mqx_found_segment { /* a segment that counts, oldest first */
    struct mqx_segment entry; /* as it will stand in the table */
    bool listed;              /* by the checkpoint, before its begin segment */
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
    struct psc_segment *listed;   /* by the checkpoint: older than its begin segment, and needed */
    size_t listed_count;
    struct mqx_found_segment *segments; /* those from `begin_index` on have no hole */
    size_t segment_count;
    size_t begin_index;           /* of the segment where the replay begins */
    uint64_t until_lsn;           /* restart_read.h */
    uint64_t list_lsn;            /* of a rehearsal: units_at is made there, 0: it is not wanted, or
                                   * there by now */
    struct mqx_units_in_flight carried;  /* lines of the checkpoint, until they are loaded */
    struct mqx_units_in_flight units_at; /* not decided at list_lsn */
    bool all_units;               /* ... and each can be carried */
    uint32_t end_units;           /* checksum of those at until_lsn */
    struct mqx_memory_ahead *ahead; /* NULL: the messages are not loaded */
    uint64_t listed_messages;     /* in the checkpoint's blocks */
    uint32_t hook_records;        /* replayed since store->maintenance_hook was last called */
    const struct mqx_in_flight *in_flight; /* the caller's, then a sorted copy */
    size_t in_flight_count;
    struct ps_count *raised;      /* of loaded messages, by units in flight at the end (rule 46) */
    size_t raised_count;
    struct mqx_recovery_report report;
};

/* Reads the objects of the checkpoint, which segments it needs, and where its image messages
 * lie. */
int mqx_load_checkpoint_start(struct mqx_restart *restart) MQX_MUST_USE;
/* After the replay: definitions into the catalog. */
int mqx_load_objects(struct mqx_restart *restart) MQX_MUST_USE;
/* Does a segment that the restart needs hold the message's record? *segment: where the one before
 * lay, a hint; then where this one lies. */
bool mqx_load_has_record(const struct mqx_restart *restart, const struct psc_message *m,
                         size_t *segment);
/* Then messages into the queues, in delivery order; verifies the rest of the checkpoint. */
int mqx_load_messages(struct mqx_restart *restart) MQX_MUST_USE;
/* Then prepared units: what they have put and got is linked to their contexts again. */
int mqx_load_prepared(struct mqx_restart *restart) MQX_MUST_USE;

#endif
