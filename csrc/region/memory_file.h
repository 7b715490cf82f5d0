/*
 * memory_file.h - a region whose file is in memory and has no name.
 *
 * Purpose. In a container /dev/shm has 64 MB unless somebody chose another size, and the index of a
 * million messages needs more. A memory file (memfd_create) is shared memory as a tmpfs has it,
 * with the same calls, and no file system limits it. It lasts as long as a process has it open or
 * mapped.
 *
 * Terms
 *   memory file   the region's file; it has no name.
 *   reference     the file with the region's name in the directory of regions. It says which memory
 *                 file the region is (device and inode), and who made it. So everything that holds
 *                 for the name of a region holds for it: it is recorded before it exists, it is
 *                 removed with the region, it is found when the file `lock` is lost.
 *   peers         processes that may have the memory file open: those attached.
 *
 * Invariants
 *   1. A reference without a process that has its memory file is the region of dead processes, of
 *      which nothing can be read. A restart then knows less than it learns from a region file: not
 *      what units in flight had got, and not whether a flush had failed.
 *   2. The descriptor of a memory file is closed in forked children, which would otherwise keep the
 *      memory of a region that nobody is attached to (os/fork_files.h).
 *
 * Not for the files of a group: the kernel lets no other user open a descriptor of a process.
 *
 * Locks: the caller holds the attach lock.
 */
#ifndef PENSTOCK_MEMORY_FILE_H
#define PENSTOCK_MEMORY_FILE_H

#include "os/io.h"

struct mqx_peers {
    const int32_t *pid;
    uint32_t count;
};

/* Creates a memory file, and the reference `name` to it. *out_fd is a negated errno when only the
 * file system or the system is to blame: -ENOSYS, -EPERM and -EACCES when there are no memory
 * files here. 2071 2102 */
int mqx_memory_file_create(struct mqx_io *io, int dir, const char *name, int *out_fd) MQX_MUST_USE;

/* If *fd is a reference: replaces it by a descriptor of its memory file, from any of the peers
 * (NULL: from whoever has it). *out_followed says so. An error closes *fd: 2012 with the pid when
 * no peer gives it, 2035 2071 2101 2102 2195 */
int mqx_memory_file_follow(struct mqx_io *io, int *fd, const struct mqx_peers *peers,
                           bool *out_followed) MQX_MUST_USE;

/* The pid of a process that may have the memory file of the reference `name`, though it cannot be
 * seen there: it lets nobody look, or is of another PID namespace. 0: there is none. */
int32_t mqx_memory_file_hidden_pid(struct mqx_io *io, int dir, const char *name);

/* Closes the descriptor of a memory file. */
void mqx_memory_file_close(struct mqx_io *io, int fd);

#endif
