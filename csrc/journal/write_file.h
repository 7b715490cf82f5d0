/*
 * write_file.h - the descriptor through which this process writes the journal as leader, and the
 * one that it keeps for bad times (crash-safety rule 51).
 *
 * Purpose. Before each flush the descriptor is compared with the file that it was opened for: a
 * program that closes descriptors it did not open would otherwise send the journal into another
 * file, and a segment that was removed under a living queue manager would take records that nobody
 * finds again. The comparison is one fstat, 0.5 us.
 *
 *   the same file                  it is written
 *   closed, or another file        the number is forgotten, not closed; the segment is opened by
 *                                  its name, and is the right one when its header page says so
 *   the same, but without a name   the journal is gone: the queue manager stops
 *   the same, but shorter          as well
 *
 * Everything else that fails here means "this process cannot lead" (leadership.h).
 *
 * The next segment is opened before the last one is closed, so a process keeps what it has. The
 * descriptor for it was taken at attach: the kept one (mqx_journal_keep_fd() of journal.h) is
 * closed around each open of a roll, a spare and a checkpoint, and opened again. A program that has
 * used up its limit of open files leaves that number to us, but for threads of it that open
 * something in between.
 *
 * Locks. The flush lock for the write descriptor; the kept one is one atomic word.
 */
#ifndef PENSTOCK_WRITE_FILE_H
#define PENSTOCK_WRITE_FILE_H

#include "journal/journal_private.h"

/* The verified descriptor of a segment (flush lock held). MQX_CANNOT_LEAD; 2009 when the journal is
 * gone, 2195 and a stop for an index that cannot be true. */
int mqx_write_file(struct mqx_store *store, uint32_t segment_index, int *out) MQX_MUST_USE;
/* Forgets the descriptor after a write that found it closed (flush lock held); closes what is open
 * and ours all the same. */
void mqx_write_file_forget(struct mqx_store *store);

/* Opens the active segment ahead, at attach; no other thread uses the store yet. Only the want of
 * descriptors is an error (2102); whatever else fails is met, and handed over, when a flush needs
 * it. */
int mqx_write_file_prepare(struct mqx_store *store) MQX_MUST_USE;
/* Closes what is still ours. */
void mqx_write_file_end(struct mqx_store *store);

#endif
