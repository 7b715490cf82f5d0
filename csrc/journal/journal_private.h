/*
 * journal_private.h - what the modules of this folder share: the process's cache of segment files,
 * sealing, and rolling. For journal/ and its tests only.
 *
 * Order of use, no circle: group_commit -> segment_pool -> ring; journal_reader -> ring.
 *
 * Positions. A segment file is named by its index in the segment table and the generation that the
 * entry had when the position was read. An entry may be recycled while nobody holds the roll or the
 * ring lock, so a cached descriptor or mapping is used only after the generations were compared.
 *
 * Locks of struct mqx_files, each part has its own: the mapping cache the mutex, the write
 * descriptor the region's flush lock, the sum of spares the region's ring lock, the last failure
 * `leading`, a mutex in which nothing is called.
 */
#ifndef PENSTOCK_JOURNAL_PRIVATE_H
#define PENSTOCK_JOURNAL_PRIVATE_H

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

struct mqx_write_file { /* the segment file that this process writes as leader (write_file.h) */
    int fd;                /* -1: none */
    uint64_t generation;   /* of the segment it belongs to */
    struct mqx_file_id id; /* of the file that was opened */
};

struct mqx_cannot_lead { /* the last failure that kept this process from leading (leadership.h) */
    int reason;            /* MQRC_*, 0: none so far */
    int error;             /* errno, 0: none */
    const char *call;      /* what failed, in words; static */
    char text[200];
};

enum { MQX_KEPT_FDS = 2 }; /* one for a roll, one for a spare that is made at the same time */

struct mqx_files { /* what a process remembers of segment files */
    pthread_mutex_t mutex;
    struct mqx_mapped mapped[MQX_MAPPED_MAX];
    uint64_t turn;

    struct mqx_write_file write;

    int kept_fd[MQX_KEPT_FDS]; /* atomic, -1: none; closed by whoever takes it out */
    pthread_mutex_t leading;
    struct mqx_cannot_lead cannot;
    uint32_t helper;           /* atomic: process slot that was asked last to lead for this one */

    /* Sum of spare sizes, valid while these two are unchanged: each change of the set of spares
     * changes one of them. */
    uint64_t spare_bytes;
    uint64_t seen_generation;
    uint64_t seen_used_bytes;
};

/* ---- ring (ring lock held) ---- */

/* Takes the ring lock and compares the control words with their sum: damage is reported, and the
 * lock is not held then. */
int mqx_ring_take(struct mqx_region *region) MQX_MUST_USE;
/* Stores the sum of the control words, or of a table entry, as part of the micro-transaction that
 * changed them; before its commit. */
void mqx_ring_sum(struct mqx_region *region);
void mqx_ring_sum_segment(struct mqx_region *region, const struct mqx_segment *segment);
/* The segment being appended to. NULL: `active` cannot be true, the queue manager is stopped. */
struct mqx_segment *mqx_ring_active(const struct mqx_region *region);
/* Bytes that can be appended without asking the disk for more. */
uint64_t mqx_ring_room(struct mqx_store *store, const struct mqx_segment *active);
/* Bytes of all spares. */
uint64_t mqx_ring_spare_bytes(struct mqx_store *store);
/* Closes the open batch if it has records (the caller commits): MQX_NEED_RING when the queue of
 * sealed batches is full. */
int mqx_journal_seal(struct mqx_store *store) MQX_MUST_USE;
/* Queues an empty batch, a mark page (the same way); MQX_NEED_SEGMENT when the segment has no page
 * left. */
int mqx_journal_seal_mark(struct mqx_store *store) MQX_MUST_USE;

/* ---- ring (takes the ring lock) ---- */

/* End of the closed segment's batches, 0 when the active one is not closed. */
uint64_t mqx_journal_closed_end(struct mqx_store *store);

/* ---- segment_pool ---- */

/* Puts a spare in place of the closed segment, once that is durable; 0 too when another process did
 * or when it must be flushed first: the caller then repeats what it wanted. */
int mqx_journal_roll(struct mqx_store *store) MQX_MUST_USE;
/* Roll lock held: the oldest entry of the segment table with that state, -1: none. */
int mqx_pool_next(const struct mqx_region *region, uint32_t state);
/* Is a spare wanted behind the active segment, or the closed one? Half of it is used. */
bool mqx_pool_is_in_use(const struct mqx_journal *journal, const struct mqx_segment *active);
/* Makes the file spare-<number>.psj; no lock is held but perhaps the roll lock. Paced: nobody waits
 * for it. */
int mqx_pool_create(struct mqx_store *store, uint64_t size, bool paced,
                    uint64_t *out_number) MQX_MUST_USE;
/* Roll lock held: that file, whole, enters the table as SPARE or RESERVED. */
int mqx_pool_register(struct mqx_store *store, uint64_t number, uint64_t size,
                      uint32_t state) MQX_MUST_USE;
/* MQRC_STORAGE_MEDIUM_FULL for a put: what gets need of a full disk is not there. */
int mqx_pool_no_way_out(const struct mqx_region *region) MQX_COLD;
/* By a put that has come to its bound: the maintenance thread of its process lengthens the reserve
 * for a checkpoint now, if it is nearly too short. Puts would do that in their callers' time. */
void mqx_journal_ask_for_reserve(const struct mqx_region *region);
/* It could not be entered. */
void mqx_pool_remove(struct mqx_store *store, uint64_t number);
/* After a failed write or flush the content of the medium is unknown: stops the queue manager for
 * all processes. Returns MQRC_CONNECTION_BROKEN with "<what> failed: <error>". */
int mqx_journal_write_failed(struct mqx_store *store, int negated_errno, const char *what) MQX_COLD;

#endif
