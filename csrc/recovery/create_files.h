/*
 * create_files.h - the first files of a new queue manager.
 *
 * Purpose. Segment 1, begun like any other segment (mqx_segment_begin), HEAD, which names it, and
 * an empty checkpoint of an orderly end. So the first start is an ordinary restart: there is no
 * special case for a queue manager that has never run.
 *
 * Invariants
 *   1. The checkpoint gets its name last: a creation that was interrupted leaves no checkpoint, and
 *      the next attempt begins in an empty directory.
 *   2. Unit id 1 has named the first spare, so units begin at 2.
 *
 * No locks, no region: works on files alone. Errors: those of the file table
 * (MQRC_STORAGE_MEDIUM_FULL, MQRC_NOT_AUTHORIZED, ...); files may be left, and the caller removes
 * the directory.
 */
#ifndef PENSTOCK_CREATE_FILES_H
#define PENSTOCK_CREATE_FILES_H

#include "os/io.h"
#include "region/region.h"

/* `dir` is the queue manager's, flushed by the caller. Segment 1 has first_segment_size bytes.
 * MQRC_UNEXPECTED_ERROR for sizes that are below PS_MIN_SEGMENT or no multiple of a page. */
int mqx_journal_create(struct mqx_io *io, int dir, int journal_dir, int checkpoint_dir,
                       const uint8_t qm_id[16], const struct mqx_region_plan *plan) MQX_MUST_USE;

#endif
