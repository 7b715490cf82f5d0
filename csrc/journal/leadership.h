/*
 * leadership.h - what a process does that cannot write the journal (crash-safety rule 51).
 *
 * Purpose. Any process may become the leader of a flush, also one that has reached its limit of
 * open files or whose program has closed descriptors of ours. Such a failure is the process's, not
 * the device's. It stays in that process: another one leads in its place, and nobody stops.
 *
 * Two classes of errors
 *
 *   cannot lead    open, look at, create, allocate, whatever the errno; EFBIG and EBADF of a write.
 *                  Nothing was written that counts, and a later attempt may be made by anybody.
 *   failed disk    every other error of a write with data sync, and every error of a sync: nothing
 *                  says what the medium holds (rule 13). The queue manager stops.
 *
 * Terms
 *   cannot lead   status MQX_CANNOT_LEAD; it never leaves the folder.
 *   to hand over  to ask other processes, one after the other, to flush up to an LSN and to leave a
 *                 closed segment: the request stands in the region (`lead_wanted`), the maintenance
 *                 thread of the process is rung, which then leads (mqx_journal_lead_for_others()).
 *   decided       a unit whose deciding record is in the ring: it has no way back.
 *
 * What becomes of a caller whose process cannot lead
 *
 *   decided       it waits as a follower while it hands over. When nobody leads within
 *                 mqx_leadership_patience_us, or no other process is attached, the queue manager
 *                 stops: the unit's outcome cannot be told.
 *   not decided   it hands over and waits the same way, but at the end it is refused with the
 *                 reason of its own failure, and nothing stops.
 *   maintenance   the step is refused with that reason; another process's round does it.
 *
 * Invariants
 *   1. A failed attempt to lead leaves sealed batches as a dead leader does: the next leader writes
 *      the same ones.
 *   2. `lead_wanted` is a hint: it is raised again in every turn of the wait, and whoever leads
 *      because of it flushes what is in the ring, whatever the hint says.
 *
 * Locks. A mutex of the process for the last failure, in which nothing is called.
 * mqx_leadership_wait() sleeps: the caller holds no lock of rank FLUSH or above.
 */
#ifndef PENSTOCK_LEADERSHIP_H
#define PENSTOCK_LEADERSHIP_H

#include "journal/journal_private.h"

/* Beyond every LSN: asks for room for a put, too. */
#define MQX_LEAD_ROOM UINT64_MAX

struct mqx_handing { /* a caller that hands over; starts zeroed */
    uint64_t begun_us;   /* since when nothing has been written */
    uint64_t progress;   /* what had been written then */
    uint32_t slot;       /* the process rung last, 0: none yet */
};

/* 5 s; tests shorten it. */
extern uint64_t mqx_leadership_patience_us;

/* Notes why this process cannot lead: `call` failed with that errno. Returns MQX_CANNOT_LEAD. */
int mqx_leadership_cannot(struct mqx_store *store, int negated_errno, const char *call) MQX_COLD;
/* The same for a failure that has a reason and a text already. */
int mqx_leadership_refused(struct mqx_store *store, int reason, const char *call) MQX_COLD;
/* Is that status one that another process may not have? */
bool mqx_leadership_is_own(int status);

/* One turn: asks the next process to make everything below `lsn` durable, and sleeps until a flush
 * ends or 10 ms are over. 0: look again. MQX_CANNOT_LEAD: there is no other process, or none has
 * led for so long. */
int mqx_leadership_wait(struct mqx_store *store, struct mqx_handing *handing,
                        uint64_t lsn) MQX_MUST_USE;
/* The end of a decided caller: stops the queue manager because of the last failure. */
int mqx_leadership_stop(struct mqx_store *store) MQX_COLD;
/* The end of any other caller: the reason of the last failure, with its text. */
int mqx_leadership_reason(struct mqx_store *store) MQX_COLD;

/* Takes the request that others have made; false when there is none. */
bool mqx_leadership_take_request(struct mqx_store *store, uint64_t *out_lsn);

/* Sleeps as a follower until flush_word no longer has the value `seen`, at most `timeout_us`. 0, or
 * -ETIMEDOUT, -EINTR as mqx_futex_wait(). */
int mqx_leadership_follow(struct mqx_journal *journal, uint32_t seen, uint64_t timeout_us);

#endif
