/*
 * rehearsal.h - a new checkpoint is compared with the journal before it replaces the older one
 * (rule 57).
 *
 * Purpose. A checkpoint is copied from the region, and stray pointers may have damaged that: a
 * message whose state, position or index word changed would be missing in it. Once the older
 * checkpoint and the journal behind it are gone, so is the message. Therefore the restart that the
 * new checkpoint would lead to is rehearsed, and so is the one from the older checkpoint; both must
 * leave the same objects, messages and units of work.
 *
 *   older checkpoint   + journal from its begin LSN  to the end LSN  =  what the files say
 *   new checkpoint     + journal from its begin LSN  to the end LSN  =  what it would lead to
 *
 * Terms
 *   end LSN    of the new checkpoint: durable, and above everything whose effects it holds.
 *   candidate  the new checkpoint, whole, verified, still named *.tmp.
 *   begin LSN  of the candidate. The older side is read before the candidate is complete: which
 *              units are not decided there is what it carries (units_in_flight.h).
 *
 * What may differ
 *   - A message must lie in a segment that the candidate keeps.
 *   - A message that has expired, by its record or the line in the older checkpoint, may be gone.
 *   - BackoutCounts, the listed expiry, non-persistent messages of an image.
 *   - The place of a message that was moved: the checkpoint may list any that it has had, because
 *     the process that moved it may have died before the index knew (compaction.h).
 * Everything else that differs stops the queue manager (region/damage.h): the candidate is removed,
 * all files stay, and the next restart uses the older checkpoint.
 *
 * What cannot be rehearsed is not a difference: when the older files can no longer be read, the
 * candidate may be all that is left, and it is taken.
 *
 * Memory and time: those of two restarts over this journal, without the region.
 *
 * Locks. The caller holds the maintenance lock, so that no file goes away. No other lock is held.
 *
 * Errors. MQRC_Q_MGR_NOT_AVAILABLE for a difference, MQRC_STORAGE_NOT_AVAILABLE without memory (no
 * checkpoint is taken then), what store->maintenance_hook returns.
 */
#ifndef PENSTOCK_RECOVERY_REHEARSAL_H
#define PENSTOCK_RECOVERY_REHEARSAL_H

#include "recovery/checkpoint_file.h"
#include "recovery/units_in_flight.h"
#include "region/store.h"

struct mqx_older_checkpoint { /* the newest whole one that begins earlier than another one */
    uint64_t begin_lsn;         /* 0: there is none */
    uint64_t begin_segment;     /* a restart from it needs this one and all that follow */
    struct psc_segment *listed; /* and these, ascending by number */
    size_t listed_count;
};

struct mqx_rehearsal;

/* Reads the older side, up to the end LSN. *out, which may be there after a failure, too, is to be
 * ended. */
int mqx_rehearsal_begin(struct mqx_store *store, uint64_t begin_lsn, uint64_t end_lsn,
                        struct mqx_rehearsal **out) MQX_MUST_USE;
/* The units that are not decided at the begin LSN, which the candidate has to carry. NULL: not
 * known, because the older files cannot be read, or a unit cannot be carried. */
const struct mqx_units_in_flight *mqx_rehearsal_units(const struct mqx_rehearsal *rehearsal);
/* `candidate` is the name of a file in the checkpoint directory, whose header has that begin and
 * end LSN. */
int mqx_rehearsal_compare(struct mqx_rehearsal *rehearsal, const char *candidate) MQX_MUST_USE;
/* *out: the checkpoint that it was compared with, to be freed. Once. */
void mqx_rehearsal_older(struct mqx_rehearsal *rehearsal, struct mqx_older_checkpoint *out);
/* Harmless on NULL. */
void mqx_rehearsal_end(struct mqx_rehearsal *rehearsal);

/* The newest whole checkpoint that begins below that LSN. *out as above; what it had is freed. */
int mqx_find_older_checkpoint(struct mqx_store *store, uint64_t begin_lsn,
                              struct mqx_older_checkpoint *out) MQX_MUST_USE;

/* Does a restart from it need that segment? From one that is not there: from segment 1 on, all. */
bool mqx_older_checkpoint_needs(const struct mqx_older_checkpoint *older, uint64_t number);

/* Frees the list; harmless on a zeroed one, and twice. */
void mqx_older_checkpoint_free(struct mqx_older_checkpoint *older);

#endif
