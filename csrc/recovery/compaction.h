/*
 * compaction.h - messages are moved out of the emptiest segments, so that these can be freed
 * (rule 47).
 *
 * Purpose. A message keeps the segment in which it was put. One forgotten message would so keep
 * 64 MiB, and thousands of them the whole journal. Compaction writes such messages anew at the end
 * of the journal, as MOVED records; the next checkpoint does not list the old segments, and frees
 * them.
 *
 * Terms
 *   live bytes   of a segment: of the records of stored messages in it, as the last checkpoint
 *                counted them. A segment before its begin LSN only loses some, so they are an upper
 *                bound and choose well; what is moved is decided by a walk over the index.
 *   goal         bytes of journal files without spares that should be left: see
 *                mqx_compaction_goal().
 *   victim       a segment that is to be emptied.
 *
 * Steps, for 64 messages or 1 MiB at a time
 *   1 list       stored messages of a queue, 64 in a lock hold (queue/stored.h)
 *   2 append     a MOVED record of each that lies in a victim, its CHUNK records before it
 *   3 flush      everything appended is durable
 *   4 move       each entry that is still the same message gets its new LSN, under its stripe lock
 *
 * What a death or a crash leaves
 *   after 2 or 3   MOVED records of messages whose entries have the old LSN. The message lies in
 *                  both places, with the same bytes. While processes live, checkpoints list the old
 *                  place and keep its segment; a restart takes the place of the last MOVED record
 *                  that it reads. The rehearsal of a checkpoint accepts each of them. The list of
 *                  units is made from the journal and has the new place: that checkpoint completes
 *                  step 4 for them (checkpoint.c, complete_moves()).
 *   after 4        the message lies in the new place. The old segment is freed by the checkpoint
 *                  that no longer lists it, once that is whole: until then the older checkpoint and
 *                  the old segment are there.
 *
 * Which messages move. All that are stored: available, got or locked, since a get names the message
 * by its number, and what a unit of work has put that is not complete. The MOVED of such a one says
 * so (PS_FLAG_UNDECIDED): it proves that the message was put, not that it was committed. Its unit,
 * and the list of units in a checkpoint, go on naming it by its number. A message whose record
 * cannot be read stays, and keeps its segment, and so do the pieces of a body whose PUT is still to
 * come, and what a prepared unit had got of messages that are not persistent (TAKEN).
 *
 * Invariants
 *   1. A segment is freed by checkpoints alone, which count what lies in it themselves: nothing
 *      here decides that.
 *   2. An entry gets a new LSN only after the record there is durable.
 *   3. Moving leaves the reserve of rule 12 untouched: without room it ends early.
 *
 * Locks. The caller holds the maintenance lock; stripe, roll and ring locks are taken inside for
 * short holds. Errors: those of appends and flushes; what store->maintenance_hook returns. Without
 * room (MQRC_STORAGE_MEDIUM_FULL) and for messages that cannot be read it returns 0.
 */
#ifndef PENSTOCK_RECOVERY_COMPACTION_H
#define PENSTOCK_RECOVERY_COMPACTION_H

#include "region/store.h"

/* Bytes of journal files, spares not counted, that may be left after a round of compaction and
 * checkpoints (checkpoint_round.h), while messages of so many bytes are live: 2.5 x these, one
 * interval between checkpoints and two segments, but at most three quarters of the limit. Until the
 * next round another interval is added, for which the spares are taken. */
uint64_t mqx_compaction_goal(const struct mqx_journal *journal, uint64_t live_bytes);

/* Empties segments, those with the fewest live bytes first, until the checkpoints after it would
 * bring the files below that goal; does nothing when the next one does so anyway. */
int mqx_compact_to(struct mqx_store *store, uint64_t goal) MQX_MUST_USE;
/* The same with mqx_compaction_goal(). */
int mqx_compact(struct mqx_store *store) MQX_MUST_USE;

#endif
