/*
 * backup.h - the begin of a backup: which files of this moment a copy consists of.
 *
 * Purpose. A backup is a copy of HEAD, qm.toml, checkpoints and segments that opens as the queue
 * manager was at its begin: everything that was committed before is in it. The copying is done by
 * the caller, file by file, beside processes that go on; here is decided what is copied.
 *
 * Steps
 *   1  a checkpoint, so that little of the journal has to be replayed
 *   2  what is in the ring is flushed, and a mark page behind it says so
 *   3  all segments are pinned (journal/segment_pin.h); the end LSN is what is durable then
 * The copy consists of the segments from `first` to `last`, the newest one up to `end_lsn` and
 * zeroes behind it, of checkpoints with a begin LSN up to `checkpoint_lsn`, and of a HEAD that
 * names `last`. A restart of it finds a journal that ends at `end_lsn`: units that were not decided
 * then are dropped, as after a power cut.
 *
 * Why the files do not change meanwhile. No byte below `end_lsn` is written again (rule 6), nor is
 * the header page of a segment; a pinned segment keeps its file. Checkpoint files are never
 * changed, but removed when two newer ones are there: the caller opens them at once, and begins
 * again when one is gone.
 *
 * Locks: the maintenance lock for steps 1 to 3, so that no checkpoint comes between them; inside
 * those of checkpoints, flushes and the pin. Errors: those of checkpoints, flushes and the pin;
 * nothing is pinned then. A death at any point leaves at most a checkpoint more, and a pin that the
 * reaper releases.
 */
#ifndef PENSTOCK_RECOVERY_BACKUP_H
#define PENSTOCK_RECOVERY_BACKUP_H

#include "journal/segment_pin.h"

/* The caller holds no lock, and calls mqx_pin_end() in the end. */
int mqx_backup_begin(struct mqx_store *store, struct mqx_pinned *out,
                     uint64_t *out_checkpoint_lsn) MQX_MUST_USE;

#endif
