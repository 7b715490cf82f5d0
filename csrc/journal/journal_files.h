/*
 * journal_files.h - what a process remembers of segment files; shared by journal.c and
 * journal_reader.c.
 *
 * Each part has its own guard: the mapping cache the mutex, the write descriptor the region's flush
 * lock, the sum of spares the region's ring lock.
 */
#ifndef PENSTOCK_JOURNAL_FILES_H
#define PENSTOCK_JOURNAL_FILES_H

#include "journal/journal.h"

#include <pthread.h>

enum { MQX_MAPPED_MAX = 64 };

struct mqx_mapped { /* a segment file mapped read-only */
    const unsigned char *at; /* NULL: entry free */
    uint64_t base_lsn;
    uint64_t size;
    uint64_t generation;     /* of the segment when it was mapped */
    uint64_t number;
    uint64_t used_at;        /* turn of the last use */
    uint32_t index;          /* in the segment table */
    uint32_t views;          /* that have not ended */
};

struct mqx_files {
    pthread_mutex_t mutex;
    struct mqx_mapped mapped[MQX_MAPPED_MAX];
    uint64_t turn;

    int write_fd;              /* -1: none */
    uint64_t write_generation; /* of the segment it belongs to */

    /* Sum of spare sizes, valid while these two are what they were: each change of the set of
     * spares changes one of them. */
    uint64_t spare_bytes;
    uint64_t seen_generation;
    uint64_t seen_used_bytes;
};

#endif
