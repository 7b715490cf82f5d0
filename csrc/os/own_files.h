/*
 * own_files.h - which descriptors are still those that the file table opened (crash-safety rule
 * 51).
 *
 * A program may close descriptors that are not its own (closerange), and then open files that get
 * the same numbers. The core must not close these. So each descriptor is noted when it is opened,
 * by device and inode, and compared before it is closed.
 *
 * Descriptors from MQX_OWN_FILES_MAX on are not noted, and count as ours.
 *
 * Threads: any. A number belongs to one thread from its opening until its closing, so an entry is
 * changed by one thread at a time.
 */
#ifndef PENSTOCK_OWN_FILES_H
#define PENSTOCK_OWN_FILES_H

#include "base/base.h"

enum { MQX_OWN_FILES_MAX = 4096 };

/* `fd` has just been opened. */
void mqx_own_files_note(int fd);

/* Is `fd` what was noted, or was it never noted? It is forgotten. */
bool mqx_own_files_take(int fd);

#endif
