/*
 * checkpoint_round.h - when checkpoints are taken, how many, and with how much compaction.
 *
 * Purpose. Three occasions: maintenance finds that one is due, a put finds the journal full, an
 * administrator asks. Each is a round: messages move out of segments that are nearly empty
 * (compaction.h), then a checkpoint no longer lists these (checkpoint.h).
 *
 * Why one checkpoint is often not enough. Two are kept, and the older one keeps what it needs: what
 * a round has emptied is freed by the checkpoint after it. A second checkpoint is taken in the same
 * round when the files would exceed their bound before the next one is due, or when a put waits for
 * room. Both checkpoints are then near each other, and what a restart from either reads is there.
 *
 * Bound of the journal's files: 2.5 x the bytes of live messages, two intervals, four segments. A
 * round leaves one interval less, since the next one comes an interval later.
 *
 * Locks. The maintenance lock is held throughout a round, so that an append in it starts no other
 * one. Functions take it themselves, except mqx_checkpoint_round() and mqx_checkpoint_free_all();
 * no other lock may be held.
 *
 * Errors: those of checkpoints and compactions. What was done before an error stays.
 */
#ifndef PENSTOCK_CHECKPOINT_ROUND_H
#define PENSTOCK_CHECKPOINT_ROUND_H

#include "region/store.h"

/* A checkpoint, and the compaction that is needed; the maintenance lock is held. */
int mqx_checkpoint_round(struct mqx_store *store) MQX_MUST_USE;
/* The same for callers without a lock: waits for a round of maintenance that is under way. */
int mqx_checkpoint_now(struct mqx_store *store) MQX_MUST_USE;
/* The same, on request: as many segments as possible are emptied, and freed. */
int mqx_compact_now(struct mqx_store *store) MQX_MUST_USE;

/* Two, if the first one has freed nothing; the maintenance lock is held. */
int mqx_checkpoint_free_all(struct mqx_store *store) MQX_MUST_USE;
/* The same when puts have found the journal full, for callers without a lock. */
int mqx_checkpoint_make_room(struct mqx_store *store) MQX_MUST_USE;

/* True when the tail since the last checkpoint is at least max(256 MiB (or journal limit / 4), 2 x
 * its size), or a quarter of the limit: two such intervals are kept; or a sixteenth of the limit
 * while the files take more than 80 % of it. And when the restart has met a damaged one. */
bool mqx_checkpoint_due(struct mqx_store *store);
/* True also a quarter of that after the last one, when the files are about to exceed their bound:
 * messages have left the queues since. For maintenance: it reads a word of each stripe. */
bool mqx_checkpoint_wanted(struct mqx_store *store);
/* True when it is not to be left to another process, which may leave it, too: twice that was
 * written since the last one, or space is short. */
bool mqx_checkpoint_is_late(struct mqx_store *store);

#endif
