/*
 * journal_state.h - the part of the region that belongs to the journal: log ring, closed flush
 * batches, segment table, progress of the group commit (journal/ring.h, group_commit.h).
 *
 * Terms
 *   ring           circular buffer of `ring_size` bytes; LSN % ring_size is an offset in it.
 *   flush batch    records that are written together; the open one grows at `tail`, closed ones
 *                  wait in sealed[].
 *   written        passed to the kernel; durable: on the medium. durable <= written <= tail.
 *
 * Locks. The ring lock, unless the field states otherwise.
 */
#ifndef PENSTOCK_JOURNAL_STATE_H
#define PENSTOCK_JOURNAL_STATE_H

#include "region/lock.h"

/* Control words. A stray pointer that changes a position or an entry of the segment table would
 * lead to a journal that no restart accepts, so these words are covered by sums (control_sum,
 * segment_sum[]): stored in the same micro-transaction as a changed word, compared when the ring
 * lock is taken or the entry is used. One changed word always shows, several but once in 2^64. The
 * one word that is read without a lock, `durable`, has a complement: what both say, at the least,
 * is durable.
 */
enum { MQX_SEGMENT_MAX = 4096, MQX_SEALED_MAX = 64 };

enum mqx_segment_state {
    MQX_SEG_FREE = 0,         /* table entry unused */
    MQX_SEG_SPARE = 1,        /* whole file spare-<number>.psj, ready */
    MQX_SEG_ACTIVE = 2,       /* being appended to */
    MQX_SEG_FULL = 3,         /* left; still needed */
    MQX_SEG_RESERVED = 4,     /* whole file, for gets and the like on a full disk */
};

/* Has the disk given what gets, ends of units and checkpoints need when it is full (rule 59)? */
enum mqx_way_out {
    MQX_WAY_OUT_UNKNOWN = 0,  /* nobody has looked since the start */
    MQX_WAY_OUT_WHOLE = 1,
    MQX_WAY_OUT_MISSING = 2,  /* puts are refused */
};
struct mqx_segment {
    uint64_t number;          /* of the file; a spare has the number it is named after */
    uint64_t generation;
    uint64_t base_lsn;
    uint64_t size;
    uint64_t end_lsn;         /* FULL: end of its batches */
    uint64_t live_bytes;      /* about the bytes of records of messages present at the last
                               * checkpoint or restart, pieces included */
    uint32_t live_messages;
    uint32_t state;           /* enum mqx_segment_state */
    uint64_t prev_end_lsn;
    uint64_t salt[2];         /* keys the hashes of its batches */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_segment) == 80, "segment table entry");

enum mqx_linked { /* a flush sees hard links of the file, a maintenance thread logs them once */
    MQX_LINKED_NONE = 0,
    MQX_LINKED_SEEN = 1,
    MQX_LINKED_LOGGED = 2,
};

struct mqx_sealed { /* a closed flush batch that waits to be written, oldest first */
    uint64_t start;           /* LSN of its header */
    uint32_t length;          /* header + records */
    uint32_t record_count;
    uint32_t segment;         /* index in the segment table */
    uint32_t zero;
};

struct mqx_journal_pin {  /* of a backup; journal/segment_pin.h */
    uint32_t owner;           /* atomic: attachment slot + 1, 0 none; stored last, cleared first */
    uint32_t broken;          /* atomic */
    uint64_t first, last;     /* atomic: numbers of segments */
};

struct mqx_journal {
    struct mqx_lock ring_lock;
    struct mqx_lock flush_lock;   /* leader of the group commit */
    struct mqx_lock roll_lock;    /* segment files: make, activate, retire */
    uint64_t ring_offset;         /* fixed: in the region */
    uint64_t ring_size;           /* fixed: power of two */
    uint64_t segment_size;        /* fixed: of new full-size segments */
    uint64_t first_segment_size;  /* fixed: of the first one and of one that is needed at once */
    uint64_t limit;               /* fixed: bytes of all segment files together */
    uint64_t tail;                /* next LSN to append at */
    uint64_t batch_start;         /* header of the open batch; tail >= batch_start + 64 when open */
    uint32_t batch_records;
    uint32_t active;              /* segment table index + 1 of the segment being appended to; 0
                                   * none */
    uint32_t sealed_first;        /* sealed[] is a ring of MQX_SEALED_MAX */
    uint32_t sealed_count;
    struct mqx_sealed sealed[MQX_SEALED_MAX];
    uint64_t written;             /* everything below has been passed to the kernel (flush lock) */
    uint64_t durable;             /* atomic: everything below is on the medium (flush lock); read by
                                   * mqx_journal_durable() */
    uint64_t durable_inverse;     /* atomic: its complement, stored before it */
    uint32_t flush_word;          /* atomic: futex; raised after each flush */
    uint32_t flush_waiters;       /* atomic */
    uint32_t unsynced;            /* 1: bytes below `written` await an fdatasync (flush lock) */
    uint32_t leader_process;      /* attachment slot + 1 of the present leader */
    uint32_t linked;              /* atomic, mqx_linked: has a file that was written other names? */
    uint64_t next_generation;
    uint64_t next_segment_no;
    uint64_t restart_epoch;
    uint64_t timeline;            /* fixed: of this store, from HEAD; in headers and archived
                                   * names */
    uint64_t next_unit_id;        /* atomic */
    uint64_t next_number;         /* atomic: message numbers given to stripes in blocks */
    uint64_t checkpoint_begin;    /* begin LSN of the newest whole checkpoint */
    uint64_t checkpoint_bytes;    /* its size */
    uint64_t checkpoint_messages; /* atomic: in it; 0: not known */
    uint64_t listed_bytes;        /* atomic: of a message in the newest checkpoint with many; 0:
                                   * there was none (mqx_journal_learn()) */
    uint64_t older_bytes;         /* atomic: size of the checkpoint before it; 0: not known */
    uint64_t known_line;          /* atomic: what mqx_journal_know() was told; 0: nothing */
    uint64_t known_lines;         /* atomic: the same */
    uint64_t known_lsn;           /* atomic: the same */
    uint64_t known_others;        /* atomic: the same */
    uint64_t known_given;         /* atomic: mqx_numbers_given() then */
    uint64_t checkpoint_reserve;  /* atomic: bytes of the reserve for one on a full disk, 0: not
                                   * known (recovery/checkpoint_reserve.h) */
    uint64_t reserve_peak[2];     /* atomic: the longest that was wanted since the newest
                                   * checkpoint, and between it and the one before */
    uint64_t checkpoint_damaged;  /* begin LSN of a newer one that the restart found damaged; 0
                                   * none, or replaced since */
    uint64_t older_keeps;         /* hint: 1 when the checkpoint kept beside the newest one needs
                                   * segments that the newest does not */
    uint64_t reserve_bytes;       /* atomic: journal space kept for gets, commits, backouts (rule
                                   * 12) */
    uint64_t used_bytes;          /* of all segment files but the reserved ones */
    uint32_t way_out;             /* atomic, enum mqx_way_out */
    uint32_t disk_full;           /* atomic hint: 1 when the disk refused the last segment file */
    uint64_t put_until;           /* atomic: LSN up to which puts may be appended before the live
                                   * bytes are looked at again (mqx_journal_bound_puts()) */
    uint64_t flushes;             /* statistics */
    uint64_t flushed_bytes;
    uint64_t flushed_records;
    uint64_t last_flush_us;
    uint64_t compacted;           /* maintenance lock: checkpoint_begin at the last compaction */
    uint64_t moved_messages;      /* atomic: by compaction */
    uint64_t moved_bytes;         /* atomic: of journal, written for that */
    uint64_t lead_wanted;         /* atomic: LSN up to which a process that cannot write the journal
                                   * wants it flushed by another; 0 none */
    struct mqx_journal_pin pin;   /* roll lock */
    uint64_t slowest_flush_us;    /* atomic: since a backup asked last */
    uint64_t marked;              /* batch end covered by the newest mark on the medium */
    uint64_t start_lsn;           /* fixed: where the files ended, or the next segment begins */
    uint32_t epoch_written;       /* 1: this restart has begun a segment of its own */
    uint32_t clean_tail;          /* 1: the active segment may be appended to as it is */
    uint64_t control_sum;         /* mqx_journal_control_sum() */
    struct mqx_segment segment[MQX_SEGMENT_MAX];
    uint64_t segment_sum[MQX_SEGMENT_MAX]; /* mqx_segment_sum() of each entry; 0 of a zeroed one */
};

/* Each word times an odd number of its own: a sum that any one changed word changes. */
static inline uint64_t mqx_sum_word(uint64_t word, uint32_t place)
{
    const uint64_t odd = UINT64_C(0x9E3779B97F4A7C15), step = UINT64_C(0xD6E8FEB86659FD93);
    MQX_ASSERT(place < 64);
    MQX_ASSERT((odd + 2 * place * step) % 2 == 1);
    return word * (odd + 2 * place * step);
}

static inline uint64_t mqx_journal_control_sum(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT((uintptr_t)journal % sizeof(uint64_t) == 0);
    return ~(mqx_sum_word(journal->tail, 0) + mqx_sum_word(journal->batch_start, 1) +
             mqx_sum_word(journal->written, 2) + mqx_sum_word(journal->next_generation, 3) +
             mqx_sum_word(journal->next_segment_no, 4) + mqx_sum_word(journal->restart_epoch, 5) +
             mqx_sum_word(journal->used_bytes, 6) +
             mqx_sum_word(journal->batch_records | (uint64_t)journal->active << 32, 7) +
             mqx_sum_word(journal->sealed_first | (uint64_t)journal->sealed_count << 32, 8) +
             mqx_sum_word(journal->timeline, 9));
}

/* live_bytes and live_messages are statistics. */
static inline uint64_t mqx_segment_sum(const struct mqx_segment *segment)
{
    MQX_ASSERT(segment != NULL);
    MQX_ASSERT((uintptr_t)segment % sizeof(uint64_t) == 0);
    return mqx_sum_word(segment->number, 0) + mqx_sum_word(segment->generation, 1) +
           mqx_sum_word(segment->base_lsn, 2) + mqx_sum_word(segment->size, 3) +
           mqx_sum_word(segment->end_lsn, 4) + mqx_sum_word(segment->prev_end_lsn, 5) +
           mqx_sum_word(segment->state, 6) + mqx_sum_word(segment->salt[0], 7) +
           mqx_sum_word(segment->salt[1], 8);
}

static inline bool mqx_segment_is_sound(const struct mqx_journal *journal, uint32_t index)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(index < MQX_SEGMENT_MAX);
    return mqx_segment_sum(&journal->segment[index]) == journal->segment_sum[index];
}

/* Everything below is on the medium. A leader may be between its two stores: then it is the LSN
 * before. */
static inline uint64_t mqx_journal_durable(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT((uintptr_t)journal % sizeof(uint64_t) == 0);
    const uint64_t durable = mqx_load_acquire(&journal->durable);
    const uint64_t other = ~mqx_load_acquire(&journal->durable_inverse);
    return durable < other ? durable : other;
}

/* Flush lock held, or the region not ready. */
static inline void mqx_journal_set_durable(struct mqx_journal *journal, uint64_t lsn)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(lsn % MQX_PAGE_SIZE == 0);
    mqx_store_release(&journal->durable_inverse, ~lsn);
    mqx_store_release(&journal->durable, lsn);
}

/* Before the region is ready: sums of what was stored plainly. */
static inline void mqx_journal_set_sums(struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->ring_lock.undo_count == 0);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        journal->segment_sum[i] = mqx_segment_sum(&journal->segment[i]);
    }
    journal->control_sum = mqx_journal_control_sum(journal);
}

#endif
