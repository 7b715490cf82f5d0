/*
 * raw.h - the raw limits that the engine is measured against, as one shared library.
 *
 * Each function does the least work that a whole class of programs cannot avoid: append and flush,
 * group commit, a futex hand-over, reading the files of a restart. None of them is durable storage:
 * no checksums, no recovery, no repair. They are loaded into the benchmark's process, so that the
 * engine and its limit run in turn within seconds of each other on the same machine.
 *
 * Conventions
 *   - Result 0, or a negated errno. -EBADMSG: the function checked what it had written or read
 *     and found it wrong; a figure from such a run means nothing.
 *   - Times are nanoseconds of CLOCK_MONOTONIC and cover the measured loop only, not set-up or
 *     check.
 *   - Files are made whole (allocated, written with zeroes, flushed) before anything is timed.
 *
 * The text after the include is also read by cffi, so it holds plain declarations only.
 */
#include <stdint.h>

struct raw_log; /* a file that is appended to page by page, and starts again at its end */

/* Makes the file, `bytes` long (a multiple of 4096). */
int raw_log_open(const char *path, uint64_t bytes, struct raw_log **out);
void raw_log_close(struct raw_log *log);
/* Appends `count` batches one after another, each of `payload` bytes padded to whole pages, each
 * flushed before the next is made. Every page is then read back and compared. */
int raw_log_append(struct raw_log *log, uint32_t payload, uint32_t count, uint64_t *elapsed_ns);
/* 1 when the file is flushed by pwritev2(RWF_DSYNC), 0 by pwrite and fdatasync. */
int raw_log_uses_dsync(const struct raw_log *log);

struct raw_group_result {
    uint64_t elapsed_ns; /* from the moment all producers may start to the last one's return */
    uint64_t flushes;
    uint64_t records;
};

/* `producers` threads (processes = 0) or processes (1) append `each` records of `record_bytes`; one
 * that finds no flush under way writes everything pending in one call, the others wait for it.
 * The batches are then read back: every record once, each producer's in order. */
int raw_group_commit(const char *path, uint64_t bytes, uint32_t producers, uint32_t processes,
                     uint32_t each, uint32_t record_bytes, struct raw_group_result *out);

/* Two processes, on the processors given, hand a number to and fro through futex words; the times
 * of `count` round trips go to round_trip_ns. */
int raw_ping_pong(uint32_t count, int ask_on, int answer_on, uint64_t *round_trip_ns);

struct raw_restart_result {
    uint64_t elapsed_ns;
    uint64_t checkpoint_bytes; /* of the newest checkpoint, read whole */
    uint64_t journal_bytes;    /* from its BEGIN LSN to the end of the journal */
    uint64_t batches;          /* in those bytes */
};

/* Reads what a restart of the queue manager in `directory` has to read, allocates `region_bytes`
 * in a new file `region_path` (on tmpfs) and writes `index_bytes` of them once. */
int raw_restart(const char *directory, const char *region_path, uint64_t region_bytes,
                uint64_t index_bytes, struct raw_restart_result *out);

struct raw_journal_count {
    uint64_t batches; /* flush batches that hold records */
    uint64_t marks;   /* flush batches without records */
    uint64_t records;
};

/* Walks the batch headers of all segments of the queue manager in `directory`. Checks nothing of
 * the records: it counts flushes, independently of the engine's own statistics. */
int raw_journal_count(const char *directory, struct raw_journal_count *out);

/* The files a new queue manager cannot do without: a directory, a segment of `segment_bytes` made
 * whole, a settings file, and `region_bytes` allocated in `region_path`. All is removed again. */
int raw_create(const char *directory, const char *region_path, uint64_t segment_bytes,
               uint64_t region_bytes, uint64_t *elapsed_ns);

/* Two holds of a robust process-shared mutex and two copies of `bytes` for each of `count`
 * messages: into a 4 MiB ring in shared memory and out of it. */
int raw_copy_pairs(uint32_t bytes, uint32_t count, uint64_t *elapsed_ns);

/* Copies `count` records one after the other, each by two memcpy of `row` and `bytes` bytes, from
 * two arrays into shared memory, and back into two others: the time of each way. */
int raw_copy_records(uint32_t row, uint32_t bytes, uint32_t count, uint64_t *in_ns,
                     uint64_t *out_ns);

struct raw_index_result { /* nanoseconds for one operation */
    double insert;
    double pop_insert; /* take the first and insert another */
    double remove_any;
    double back_out;   /* the first is taken by a unit of work and returns to its place */
};

/* A binary heap of (priority descending, arrival ascending) with a position for each entry, filled
 * to `depth`, then `count` operations of each kind. The order of removal is checked. */
int raw_binary_heap(uint32_t depth, uint32_t count, struct raw_index_result *out);
