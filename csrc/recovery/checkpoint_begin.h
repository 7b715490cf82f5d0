/*
 * checkpoint_begin.h - where the replay of a checkpoint that is being taken will begin.
 *
 * Purpose. The begin LSN is the tail when the checkpoint begins, unless a unit of work keeps it
 * lower: one that is decided and not shown yet, or, in a bounded checkpoint, any that is in flight
 * (terms: checkpoint.h).
 *
 * Why it is right. `tail` is read under the ring lock, then the contexts are examined.
 * A unit that is decided below that tail and whose effects are not complete when its context is
 * examined bounds the begin LSN. One that ended before that had completed its effects, so the
 * checkpoint, which begins later, has them. One that is not decided at the begin LSN is carried,
 * whatever becomes of it meanwhile. One that begins later lies above.
 *
 * The contexts are examined in holds of MQX_LOCKED_STEPS_MAX: the bound only has to be right for
 * each context at the time it is examined.
 *
 * Locks. Ring and roll lock, taken inside. Errors: those of mqx_segment_use_begin();
 * MQRC_Q_MGR_NOT_AVAILABLE for a region that cannot be true.
 */
#ifndef PENSTOCK_RECOVERY_CHECKPOINT_BEGIN_H
#define PENSTOCK_RECOVERY_CHECKPOINT_BEGIN_H

#include "recovery/segment_use.h"
#include "region/store.h"

struct mqx_checkpoint_begin {
    bool bounded;      /* given: it begins at the first unit in flight, and carries none */
    bool in_flight;    /* a unit that is not prepared had a record */
    uint64_t lsn;
    uint64_t segment;
    uint64_t tail;     /* of the journal when it began */
};

/* Fills in `begin`, and begins the count of segments, which ends with mqx_segment_use_end() in
 * either case. */
int mqx_checkpoint_begin(struct mqx_store *store, struct mqx_checkpoint_begin *begin,
                         struct mqx_segment_use *use) MQX_MUST_USE;

#endif
