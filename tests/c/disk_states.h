/*
 * disk_states.h - which states may a disk be in after a power cut? Replays a recording
 * (memory_io.h) and shows, after each event, the states that the rules below allow.
 *
 * Model of the disk
 *   - A file has durable content and cached content. A write changes the cache only; every sector
 *     it changes is *open* until a sync of the file, or a write with DSYNC over that sector,
 *     returned.
 *   - After a power cut an open sector holds: what was durable, or any version that the cache had
 *     since (written twice between flushes: both), or zeroes (the sector was being written).
 *     Sectors are independent: a later one may survive without an earlier one.
 *   - A DSYNC write is looked at twice: in flight (its sectors open) and returned (they are
 *     durable; sectors that other calls left open stay open).
 *   - A flush that failed (MEMORY_EV_LOST) leaves its sectors open for ever: later syncs believe
 *     them clean and skip them; writing them again and flushing that closes them.
 *   - The size of a file is durable or as cached (or between, when growing, at a sector boundary),
 *     at least reaching its last surviving changed sector.
 *   - Names: of each directory, any prefix of the operations since its last sync_dir has happened.
 *     A file's sync does not make its name durable.
 *
 * States are enumerated when there are at most `cap` at a point; else `cap` of them are chosen:
 * first the telling ones (nothing, everything, all zeroed, each single sector alone or missing),
 * then random ones with changing bias. Counting is by an image hash over what can be reached by
 * name, so two ways to the same files and contents count once; the visitor is called once for each
 * pair of image and acknowledged events.
 */
#ifndef PENSTOCK_TESTS_DISK_STATES_H
#define PENSTOCK_TESTS_DISK_STATES_H

#include "memory_io.h"

struct disk_state {
    struct memory_io *files; /* holds the state at the recorded path; the visitor may change it */
    struct mqx_io *io;       /* = memory_io_table(files) */
    const char *path;
    uint32_t sector;
    uint32_t event;          /* index of the newest event of the trace that has begun */
    bool in_flight;          /* that event is a write with DSYNC that has not returned */
    const uint64_t *acks;    /* values of the ACK events so far, in order */
    uint32_t ack_count;
    uint64_t image_hash;     /* the same at every sector size */
};

/* A result other than 0 ends the run, which returns it. */
typedef int (*disk_state_visit)(void *arg, const struct disk_state *state);

struct disk_states_options {
    uint32_t sector;      /* 8, 64, 512 or 4096 */
    uint32_t cap;         /* states at most at each point */
    uint64_t seed;
    bool no_zeroed;       /* open sectors are never zeroed */
    uint32_t first_event; /* points before this one are replayed but not shown */
    uint32_t last_event;  /* nothing after this one (0: the end) */
    /* Prepares the table before the first state (region directories, space, clock); may be NULL. */
    void (*prepare)(void *arg, struct memory_io *files);
    void *arg;            /* of prepare and visit */
};

struct disk_states_counts {
    uint64_t points;     /* moments looked at */
    uint64_t enumerated; /* of them completely */
    uint64_t generated;  /* states */
    uint64_t distinct;   /* pairs of image and acknowledgements: calls of the visitor */
};

/* Adds to *counts. The trace is not changed and may be used again with another sector size. */
int disk_states_run(const struct memory_trace *trace, const struct disk_states_options *options,
                    disk_state_visit visit, struct disk_states_counts *counts) MQX_MUST_USE;

#endif
