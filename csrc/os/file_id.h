/*
 * file_id.h - is a descriptor still the one that was opened? (crash-safety rule 51)
 *
 * Purpose. The core shares its descriptor table with the program around it. A program that closes
 * descriptors it did not open (os.closerange, a daemon's "close everything") takes ours away, and
 * the numbers are given to the next files it opens. What is then written goes into these files. So
 * a descriptor that is kept for long is compared with the file it was opened for before it is used
 * for a change.
 *
 * Terms
 *   identity   device and inode of a file. No two files have the same one at the same time; while
 *              a descriptor is open, its file's is not given to another file.
 *
 * A descriptor that is not ours any more is forgotten, never closed: its number may belong to a
 * file of the program.
 *
 * Errors: negated errnos, as those of the file table. Locks: none. Threads: any.
 */
#ifndef PENSTOCK_FILE_ID_H
#define PENSTOCK_FILE_ID_H

#include "os/io.h"

struct mqx_file_id {
    uint64_t device;
    uint64_t inode; /* 0: not known */
};

static inline struct mqx_file_id mqx_file_id_of(const struct mqx_io_stat *facts)
{
    return (struct mqx_file_id){.device = facts->device, .inode = facts->inode};
}

/* 0, or why the descriptor's file cannot be asked; *out is unknown then. */
int mqx_file_id_read(struct mqx_io *io, int fd, struct mqx_file_id *out) MQX_MUST_USE;

/* 0 when `fd` is open and has that identity; -EBADF when it is closed or belongs to another file;
 * another errno when it cannot be asked. */
int mqx_file_id_check(struct mqx_io *io, int fd, const struct mqx_file_id *id) MQX_MUST_USE;

/* Closes *fd (below 0: none) unless it is another file now, and sets it to -1 in any case. */
void mqx_file_id_close(struct mqx_io *io, int *fd, const struct mqx_file_id *id);

#endif
