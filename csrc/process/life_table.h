/*
 * life_table.h - the table of attached processes in the file `lock` (crash-safety rule 50).
 *
 * The locks on the file do not say whose they are, and the region, which does, may be gone or
 * unreadable. So each process writes an entry at its attach, and clears it when it leaves. The
 * table names processes in messages, and tells whether they live when there is no region to ask.
 *
 * From byte 4096 of the file: MQX_PROCESS_MAX entries of 32 bytes, entry 0 for the process that has
 * the attach lock, the others by attachment slot; a process killed leaves its entry. Native byte
 * order and not flushed: entries have a meaning only in the boot that the lock record names
 * (lock_record.h), and a start with a new region clears them.
 *
 * Locks: entry 0 is written under the attach lock, another by the process that has the slot. Reads
 * take none: an entry is 32 bytes within one page, written by one call.
 */
#ifndef PENSTOCK_LIFE_TABLE_H
#define PENSTOCK_LIFE_TABLE_H

#include "os/io.h"
#include "region/process_slot.h"

enum {
    MQX_LIFE_TABLE_OFFSET = 4096,
    MQX_LIFE_TABLE_ATTACH = 0, /* the entry of the process that attaches or leaves */
};

struct mqx_life_entry {
    int32_t pid;            /* 0: none */
    int32_t thread;         /* of its life thread */
    uint64_t start_time;    /* of the thread */
    uint64_t pid_namespace;
    uint64_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct mqx_life_entry) == 32, "entry of the life table");

/* A full disk is no error: the process is not named then. 2035 2195 */
int mqx_life_table_write(struct mqx_io *io, int fd, uint32_t slot,
                         const struct mqx_life_entry *entry) MQX_MUST_USE;
/* An entry that was never written reads as zeroes. 2101 2195 */
int mqx_life_table_read(struct mqx_io *io, int fd, uint32_t slot,
                        struct mqx_life_entry *out) MQX_MUST_USE;
/* All of them. */
int mqx_life_table_read_all(struct mqx_io *io, int fd,
                            struct mqx_life_entry out[MQX_PROCESS_MAX]) MQX_MUST_USE;
/* Clears all entries but that of the attach lock. */
int mqx_life_table_clear(struct mqx_io *io, int fd) MQX_MUST_USE;

/* Does the process of the entry live? Only of this PID namespace; another one's counts as not
 * living. */
bool mqx_life_entry_lives(const struct mqx_life_entry *entry, uint64_t pid_namespace);

#endif
