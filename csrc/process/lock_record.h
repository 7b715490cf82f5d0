/*
 * lock_record.h - the text in the file `lock`: which region belongs to the directory (rule 17).
 *
 * One key=value a line, in this order, filled up with newlines to 1,024 bytes and written in one
 * call:
 *
 *     penstock=1
 *     boot=<32 hex digits>          boot id
 *     namespace=<decimal>           inode of the PID namespace
 *     libc=glibc 2.36
 *     device=<decimal>              of the directory: a copy has another one
 *     inode=<decimal>
 *     layout=<16 hex digits>        of the region
 *     incarnation=<32 hex digits>   random, one for each region
 *     region=penstock-...           file name
 *     directory=/dev/shm            where it lies
 *     end=1
 *
 * A text that does not parse to the end counts as none: a write torn by a power cut.
 *
 * Locks: the caller holds the attach lock (life_lock.h).
 */
#ifndef PENSTOCK_LOCK_RECORD_H
#define PENSTOCK_LOCK_RECORD_H

#include "os/io.h"
#include "os/host_info.h"

enum { MQX_LOCK_RECORD_NAME_SIZE = 80, MQX_LOCK_RECORD_PATH_SIZE = 256 };

struct mqx_lock_record {
    struct mqx_host_info where;
    uint64_t device;
    uint64_t inode;
    uint64_t layout;
    uint8_t incarnation[16];
    char region[MQX_LOCK_RECORD_NAME_SIZE];
    char directory[MQX_LOCK_RECORD_PATH_SIZE];
};

/* *out_found is false when there is no whole record. 2101 2195 */
int mqx_lock_record_read(struct mqx_io *io, int fd, struct mqx_lock_record *out,
                         bool *out_found) MQX_MUST_USE;
/* Writes the record in one call and flushes it. 2101 2192 2195 */
int mqx_lock_record_write(struct mqx_io *io, int fd,
                          const struct mqx_lock_record *record) MQX_MUST_USE;

#endif
