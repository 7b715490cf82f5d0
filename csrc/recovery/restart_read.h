/*
 * restart_read.h - the reading half of a restart: from files to a replay.
 *
 * Purpose. Lists the files, opens a checkpoint, finds the segments that count and replays the
 * records from the checkpoint's begin LSN on. Nothing is written, in files or in the region: a
 * restart goes on with restart.c, and a rehearsal (rehearsal.h) reads a journal at work, up to an
 * LSN that is durable.
 *
 * Steps, in this order
 *   list_files       segments, spares, half-made files, checkpoints
 *   choose           the newest checkpoint whose bytes are what was written
 *   open_checkpoint  its header, objects, and where its image lies (load.c)
 *   find_segments    headers from the newest segment back, each must precede the one after it
 *   check_head       the newest one is the one that HEAD names, or newer; not in a rehearsal,
 *                    beside which HEAD moves on
 *   scan             records from the begin segment on into the replay; what the end means
 *
 * Terms
 *   until LSN   where a rehearsal ends, 0: the journal's end. The batches must reach it, whatever
 *               lies behind it is not examined; images are left out.
 *
 * No locks: the caller knows that no file goes away (restart.h, rehearsal.h). Errors:
 * MQRC_OBJECT_DAMAGED with file and offset, MQRC_STORAGE_NOT_AVAILABLE without memory, reasons of
 * the file table; what store->maintenance_hook returns, in a rehearsal.
 */
#ifndef PENSTOCK_RECOVERY_RESTART_READ_H
#define PENSTOCK_RECOVERY_RESTART_READ_H

#include "journal/head_file.h"
#include "recovery/load.h"

struct mqx_file_numbers { /* of files of one kind */
    uint64_t *items;
    size_t count, capacity;
};

struct mqx_listing {
    struct mqx_file_numbers segments, spares, reserved, half_made; /* segments ascend */
    struct mqx_file_numbers checkpoints;                 /* begin LSNs, ascending */
    bool no_memory;
};

struct mqx_choice { /* of a checkpoint */
    bool found;
    uint64_t begin_lsn;
    size_t passed_over;  /* damaged ones that are newer; the last ones of the listing */
    char damage[160];    /* of the newest of them: file, offset and what is wrong */
};

struct mqx_journal_end { /* of the newest segment */
    uint64_t end_lsn;
    bool clean; /* an orderly end: appends continue right here */
};

/* An empty restart; mqx_restart_end() frees what it has by then, and is harmless on a zeroed
 * one. */
void mqx_restart_begin(struct mqx_restart *restart, struct mqx_store *store);
void mqx_restart_end(struct mqx_restart *restart);

/* `out` is zeroed; mqx_restart_free_listing() in either case. */
int mqx_restart_list_files(struct mqx_store *store, struct mqx_listing *out) MQX_MUST_USE;
void mqx_restart_free_listing(struct mqx_listing *listing);

/* The newest whole checkpoint whose begin LSN is below `below`. When none is found the replay
 * begins with segment 1: as long as that is there, the journal says everything. */
int mqx_restart_choose(const struct mqx_restart *restart, const struct mqx_listing *listing,
                       uint64_t below, struct mqx_choice *out) MQX_MUST_USE;
/* `name` in the checkpoint directory; NULL: there is none, the replay begins with segment 1. */
int mqx_restart_open_checkpoint(struct mqx_restart *restart, const char *name) MQX_MUST_USE;
int mqx_restart_find_segments(struct mqx_restart *restart,
                              const struct mqx_file_numbers *numbers) MQX_MUST_USE;
/* *out: what HEAD says. */
int mqx_restart_check_head(const struct mqx_restart *restart, struct mqx_head *out) MQX_MUST_USE;
int mqx_restart_scan(struct mqx_restart *restart, struct mqx_journal_end *out) MQX_MUST_USE;

/* All steps, with that checkpoint or (NULL) the newest whole one; prepared units hold their
 * messages, and the checkpoint is ready for its messages to be read (merge.h). */
int mqx_restart_read(struct mqx_restart *restart, const char *checkpoint) MQX_MUST_USE;

#endif
