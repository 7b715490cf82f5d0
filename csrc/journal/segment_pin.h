/*
 * segment_pin.h - the pin of a backup: segments that stay while they are copied.
 *
 * Purpose. A backup copies the segments of one moment beside a queue manager that writes on. A
 * retired segment is written over, or moves away, so those that are still to be copied are pinned:
 * retiring passes them over.
 *
 * Terms
 *   owner   attachment slot + 1 of the process that copies; 0: nothing is pinned.
 *   first   segments from this number on are pinned; raised as segments have been copied.
 *   last    ... up to this one, the newest at the begin. Later ones are not pinned.
 *   broken  the journal's files take more than 80 % of the limit: nothing is pinned any more, and
 *           the backup fails. So a backup that is slow, or stopped, never fills the journal: the
 *           limit counts pinned segments like all others.
 *
 * What a death leaves. Every change is one store, and the order of begin is: first, last, broken,
 * then owner; so a pin is whole or none. The pin of a dead process is released by the reaper, and
 * that of one that detaches as well; nothing of it is on the medium.
 *
 * The words are no control words: a pin that a stray pointer has changed frees segments under a
 * copy, which is verified when it is complete, or keeps them until it is broken.
 *
 * Locks. The roll lock, taken inside, but for mqx_pin_holds() and mqx_pin_break_if_full(), whose
 * callers hold it, and mqx_pin_bytes(), a number for people.
 *
 * Errors. MQRC_OBJECT_IN_USE when another backup is under way; MQRC_STORAGE_MEDIUM_FULL when the
 * pin was broken, or is not this process's any more; reasons of a stopped queue manager.
 */
#ifndef PENSTOCK_JOURNAL_SEGMENT_PIN_H
#define PENSTOCK_JOURNAL_SEGMENT_PIN_H

#include "region/store.h"

struct mqx_pinned { /* what is copied: of one moment */
    uint64_t first;           /* segments, by number; some between may be gone */
    uint64_t last;
    uint64_t last_generation; /* of the newest */
    uint64_t end_lsn;         /* everything below is durable; in the newest, behind its header */
};

/* Pins all segments of the stream. */
int mqx_pin_begin(struct mqx_store *store, struct mqx_pinned *out) MQX_MUST_USE;
/* Segments before `first` are let go. */
int mqx_pin_advance(struct mqx_store *store, uint64_t first) MQX_MUST_USE;
/* Ends the pin of the process in that attachment slot, if it has it. */
int mqx_pin_end(struct mqx_store *store, uint32_t process) MQX_MUST_USE;

/* Roll lock held. */
bool mqx_pin_holds(const struct mqx_journal *journal, uint64_t number);
void mqx_pin_break_if_full(struct mqx_region *region);

/* Bytes of the pinned segments, and in which slot the process is that pins them; 0: none are. */
uint64_t mqx_pin_bytes(const struct mqx_journal *journal, uint32_t *out_process);

#endif
