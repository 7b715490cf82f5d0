/*
 * fork_files.h - descriptors that a forked child must not keep (crash-safety rules 32, 50).
 *
 * A lock of an open file description is held until the last descriptor of it is closed, and a fork
 * copies descriptors: a child that lives longer than its parent would keep the parent's lock. So
 * such a descriptor is opened and registered between mqx_fork_files_begin() and
 * mqx_fork_files_end(), during which no thread of this process forks, and a handler of
 * pthread_atfork closes it in each child. Children of vfork and posix_spawn close it when they
 * execute their program (O_CLOEXEC); a child of a bare clone system call keeps it.
 *
 * A program may close descriptors that it did not open (closerange), and the number may be another
 * file's by then. A registered descriptor is therefore known by device and inode, too.
 *
 * Locks: one, process-local, between begin and end and during a fork; none may be taken after it.
 */
#ifndef PENSTOCK_FORK_FILES_H
#define PENSTOCK_FORK_FILES_H

#include "base/base.h"

enum { MQX_FORK_FILES_MAX = 1024 }; /* registered descriptors of one process at a time */

/* MQRC_RESOURCE_PROBLEM when MQX_FORK_FILES_MAX are registered, 2071 without memory. Nothing is to
 * be ended after an error. */
int mqx_fork_files_begin(void) MQX_MUST_USE;
/* `fd` is registered when it is a descriptor of the file with that device and inode. */
void mqx_fork_files_end(int fd, uint64_t device, uint64_t inode);
/* Before it is closed. */
void mqx_fork_files_remove(int fd);

#endif
