/*
 * head_file.h - the file HEAD in the queue manager's directory: which segment is the newest
 * (crash-safety rule 60; FORMAT.md, section 9).
 *
 * Purpose. The journal's last segments may vanish as files (a restored copy, a careless clean-up),
 * and what is left looks like a journal that ended earlier. HEAD says in a second place how far the
 * journal reached, so that the loss is noticed.
 *
 * Two pages, written alternately: page `sequence % 2`, with data sync. A write that is torn, or a
 * page that is damaged, leaves the other one.
 *
 * Order of a roll, and what a crash after each step leaves
 *   1 the spare's header is written, the file gets its number     HEAD names the segment before:
 *     as a name, the directory is flushed                         a newer one is valid, it is empty
 *   2 HEAD names the new segment, durable                         the same segment
 *   3 the segment becomes the active one: records go into it
 * So no record is in a segment that is newer than the one that HEAD names.
 *
 * Locks. The roll lock of a running queue manager, or the attach lock of a restart: one writer.
 *
 * Errors. Negated errnos; MQRC_OBJECT_DAMAGED from mqx_head_read() naming the file.
 */
#ifndef PENSTOCK_JOURNAL_HEAD_FILE_H
#define PENSTOCK_JOURNAL_HEAD_FILE_H

#include "format/format.h"
#include "os/io.h"

#define MQX_HEAD_NAME "HEAD"

struct mqx_head { /* what the newest good page says */
    uint64_t sequence;
    uint64_t segment_no;
    uint64_t generation;
    uint64_t timeline;
    bool damaged;         /* the other page is not good: torn in a crash, or damaged */
};

/* Makes the file with both pages good, flushed; the caller flushes the directory. -EEXIST when
 * there is one. */
int mqx_head_create(struct mqx_io *io, int dir, const uint8_t qm_id[16],
                    const struct mqx_head *head) MQX_MUST_USE;

/* Reads both pages. `flags` of the file table: MQX_IO_READ, or MQX_IO_LINKED.
 * MQRC_OBJECT_DAMAGED when there is no file or no good page; reasons of the file table. */
int mqx_head_read(struct mqx_io *io, int dir, const uint8_t qm_id[16], int flags,
                  struct mqx_head *out) MQX_MUST_USE;

/* Writes the page that is not the newest, with data sync; a file that was removed is made again.
 * `sequence` and `damaged` of `head` are not looked at. *out_unknown: a write or flush failed, what
 * the medium holds is not known. */
int mqx_head_write(struct mqx_io *io, int dir, const uint8_t qm_id[16],
                   const struct mqx_head *head, bool *out_unknown) MQX_MUST_USE;

#endif
