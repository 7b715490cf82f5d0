/*
 * checkpoint.h - copies of catalog and index that bound the replay and free the journal (rule
 * 11).
 *
 * Fuzzy: begin LSN = min(first_lsn of every unit in flight, tail at the start); then objects and
 * messages are copied, at most 64 a lock hold; replay from begin LSN is idempotent by identity, so
 * whatever happened meanwhile comes out right. Written to *.tmp, flushed every 1 MiB with a pause,
 * renamed, directory flushed, re-read and verified; only then the older one is removed and segments
 * are retired.
 *
 * `clean` is the orderly end: nobody else is attached, no unit but prepared ones is in flight; the
 * journal's tail is flushed and marked; messages of NPMCLASS(HIGH) queues go into IMAGE blocks.
 *
 * Caller holds the maintenance lock, but of mqx_checkpoint_now().
 */
#ifndef PENSTOCK_CHECKPOINT_H
#define PENSTOCK_CHECKPOINT_H

#include "journal/group_commit.h"

enum { /* modes */
    MQX_CHECKPOINT_FUZZY = 0,
    MQX_CHECKPOINT_CLEAN = 1,          /* orderly end with image */
    MQX_CHECKPOINT_CLEAN_NO_IMAGE = 2, /* orderly end that discards non-persistent messages (-p) */
};
int mqx_checkpoint(struct mqx_store *store, int mode) MQX_MUST_USE;
/* A fuzzy one by whoever has no lock: waits for a round of maintenance that is under way. */
int mqx_checkpoint_now(struct mqx_store *store) MQX_MUST_USE;

/* True when the tail since the last checkpoint is at least max(256 MiB (or journal limit / 4), 2 x
 * its size). */
bool mqx_checkpoint_due(struct mqx_store *store);

#endif
