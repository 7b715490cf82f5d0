/*
 * process_files.h - files that other processes have open, as /proc shows them.
 *
 * A file without a name (memfd_create) is reached through a process that has it: each of its
 * descriptors is an entry in /proc/PID/fd, which the kernel opens for whoever may trace that
 * process. It refuses for one that has made itself undumpable, has changed its user, or has more
 * capabilities.
 *
 * A file is named by device and inode; which descriptor it is does not matter, and a program may
 * have closed or replaced it. Errors: negated errnos. No locks; threads: any.
 */
#ifndef PENSTOCK_PROCESS_FILES_H
#define PENSTOCK_PROCESS_FILES_H

#include "base/base.h"

/* Opens a file that the process has open, for reading and writing; pid 0: that any process has. The
 * descriptor, -ENOENT when it has no such file or is gone, -EACCES when it lets nobody look. */
int mqx_process_file_open(int32_t pid, uint64_t device, uint64_t inode) MQX_MUST_USE;

/* "4711, 4712": processes that have the file of this descriptor open, as far as /proc shows them,
 * but for this one; "unknown" when it shows none. For messages. */
void mqx_processes_with_file(int fd, char *text, size_t size);

#endif
