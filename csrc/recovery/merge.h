/*
 * merge.h - the messages that a replay leaves, out of two sources, as one sequence in delivery
 * order.
 *
 * Purpose. What is on the queues lies in the checkpoint's MESSAGES blocks, and in the puts of the
 * tail (with those of the image). Each source is in delivery order; this module reads them side by
 * side. Loading (load.c) and the rehearsal of a new checkpoint (rehearsal.c) both walk the result.
 *
 * How the two sources are joined, for one queue and priority:
 *
 *   checkpoint   101 102     104 105          (stream, verified block by block)
 *   tail             102 103         106      (effective puts, sorted)
 *   removed      101             105          (GET, EXPIRE)
 *   merged           102 103 104     106
 *
 * Terms
 *   delivery order  queues by slot, placement priority descending, message number.
 *   stream          the checkpoint's messages, one after another.
 *
 * Invariants
 *   1. A message that both sources have comes once, as the checkpoint lists it; one that the replay
 *      says is gone does not come.
 *   2. Its place is that of its last move, unless the checkpoint lists a later one. Where the
 *      checkpoint lists it, and carries the unit that put it, the later place of the two holds.
 *   3. Delivery order rises from one message to the next, or it is damage.
 *
 * No locks. Errors: MQRC_OBJECT_DAMAGED naming message and file; MQRC_STORAGE_NOT_AVAILABLE without
 * memory.
 */
#ifndef PENSTOCK_RECOVERY_MERGE_H
#define PENSTOCK_RECOVERY_MERGE_H

#include "recovery/checkpoint_file.h"
#include "recovery/replay.h"

struct mqx_merge {
    const struct mqx_replay *replay;
    struct mqx_checkpoint_reader *reader;  /* at the first block behind the objects; NULL: there is
                                            * no checkpoint */
    /* the stream */
    struct mqx_message_columns columns;    /* of the block: messages not decoded yet */
    struct psc_message decoded[MQX_COLUMNS_STEP];
    uint32_t next_decoded, decoded_count;
    const struct psc_message *listed;      /* the next one, in `decoded`; NULL: there is none */
    struct psc_message last;               /* of the messages decoded before */
    /* the puts */
    uint32_t *order;
    size_t next_put, put_count;
    const struct psc_message *also;          /* the put of a listed message, if it has one, too */
    uint64_t unmoved_lsn, unmoved_first_lsn; /* of the message given last: before it was moved */
};

/* Sorts the puts and reads the first message of the stream. mqx_merge_end() in either case. */
int mqx_merge_begin(struct mqx_merge *merge, const struct mqx_replay *replay,
                    struct mqx_checkpoint_reader *reader) MQX_MUST_USE;
void mqx_merge_end(struct mqx_merge *merge);

/* The next message: *out_more is false at the end. *out_put is its put when it comes from the tail
 * or the image alone, else NULL. The checkpoint was verified to its end when the end is reached. */
int mqx_merge_next(struct mqx_merge *merge, struct psc_message *out,
                   const struct mqx_replay_put **out_put, bool *out_more) MQX_MUST_USE;

/* Below 0, 0, above 0: delivery order. */
int mqx_merge_compare(const struct psc_message *a, const struct psc_message *b);

/* Damage that names the message, and the checkpoint when there is one. */
int mqx_merge_bad_message(const struct mqx_checkpoint_reader *reader, const struct psc_message *m,
                          const char *what) MQX_MUST_USE MQX_COLD;

#endif
