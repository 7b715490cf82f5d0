/*
 * tail_scan.h - reading a segment's batches in order, and what its end means (FORMAT.md,
 * section 9).
 *
 * Purpose. Distinguishes a torn tail from damage. A crash may leave the last write
 * of the journal in any state; that is a torn tail, and its records were never acknowledged. Bytes
 * that were durable once and are not good now are damage: the restart is refused, since going on
 * would lose acknowledged messages. The decision is a labelled table (mqx_tail_cases, A to G), so
 * that every combination of facts has exactly one answer.
 *
 * Terms
 *   tail          the journal from the checkpoint's begin LSN to its end.
 *   limit         LSN that no batch crosses: the successor's prev_end_lsn, or the end of the file.
 *   durable mark  the durable LSN that a batch header carries: all below it was on the medium when
 *                 that batch was written.
 *   remains       a batch header of this use of the file at or beyond the end of the good batches.
 *
 * Where the good batches end, and what that means (mqx_tail_cases has the same as a table)
 *   A   a next segment exists, and says so                    go on there
 *   B   a next segment exists, and says more                  damage
 *   C   a mark, or the checkpoint, says more was durable      damage
 *   D   the orderly end was exactly here, nothing behind      clean: continue right here
 *   E   the orderly end was exactly here, remains behind      torn: a write was not finished
 *   F   no orderly end, nothing behind                        torn: the last batch is whole
 *   G   no orderly end, remains behind                        torn
 * "Clean" lets appends continue in the segment; after "torn" the next record begins a new one, so
 * that what lies behind this end is never read again.
 *
 * Invariants
 *   1. Nothing is written. Everything is read with read() into a private buffer, never through a
 *      mapping: a bad sector is an error code, and no byte changes after it was verified (rule 30).
 *   2. A record is handed on only after its batch was verified as a whole.
 *
 * No locks: the restart has the files for itself. Errors: MQRC_OBJECT_DAMAGED with file and offset
 * when bytes cannot be read; what on_record returns ends the scan and comes back.
 */
#ifndef PENSTOCK_RECOVERY_SCAN_H
#define PENSTOCK_RECOVERY_SCAN_H

#include "format/segment.h"
#include "os/file_window.h"
#include "region/store.h"

/* What is known where the batches of a segment end. */
struct mqx_tail_facts {
    bool has_next;     /* a next segment exists */
    bool at_next;      /* ... and the batches end where it says that they do */
    bool below_mark;   /* something says that bytes beyond this end were durable */
    bool clean_here;   /* an orderly end left the journal ending exactly here */
    bool remains;      /* bytes of a batch of this use of the file lie at or beyond the end */
};
enum mqx_tail_verdict {
    MQX_TAIL_NEXT,     /* go on in the next segment */
    MQX_TAIL_CLEAN,    /* the end; append right here */
    MQX_TAIL_TORN,     /* the end; the next record begins a new segment */
    MQX_TAIL_DAMAGE,   /* refuse */
};
struct mqx_tail_case {
    char letter;
    signed char has_next, at_next, below_mark, clean_here, remains; /* 1 yes, 0 no, -1 either */
    enum mqx_tail_verdict verdict;
    const char *meaning;
};
extern const struct mqx_tail_case mqx_tail_cases[];
extern const size_t mqx_tail_case_count;
/* The one case that fits; NULL for an impossible combination. */
const struct mqx_tail_case *mqx_tail_decide(const struct mqx_tail_facts *facts);

struct mqx_tail_scan { /* in: what to read */
    struct mqx_file_window *window;
    const uint8_t *qm_id;
    const struct mqx_segment *segment;
    uint64_t limit_lsn;      /* no batch goes beyond */
    uint64_t begin_lsn;      /* records below are not handed on */
    int (*on_record)(void *arg, uint64_t lsn, const struct psj_record *record);
    void *arg;
    /* out */
    uint64_t end_lsn;        /* where the good batches end */
    uint64_t records;
    uint64_t bytes;          /* of the batches that reach beyond begin_lsn */
};
/* Hands on the records of all good batches, in order. A status of on_record ends it. */
int mqx_tail_scan_run(struct mqx_tail_scan *scan) MQX_MUST_USE;
/* Looks at every sector from end_lsn on: the highest durable mark of a batch header of this use of
 * the file, and whether there is such a header at all. *torn_bytes reaches to the last one. */
int mqx_tail_scan_marks(const struct mqx_tail_scan *scan, uint64_t *mark, bool *remains,
                        uint64_t *torn_bytes) MQX_MUST_USE;

#endif
