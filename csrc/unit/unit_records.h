/*
 * unit_records.h - records of a unit of work that are appended in numbers: those of many messages
 * at once, and the CHUNK records of a long body.
 *
 * Terms
 *   gathering  records encoded one behind the other in the thread's scratch memory, then appended
 *              in as few holds of the ring lock as there is room for. Nothing else may use that
 *              memory between mqx_gather_begin() and mqx_gather_append().
 *   piece      the part of a long body that one CHUNK record has.
 *
 * Invariants
 *   1. The records of a gathering are at most MQX_RUN_MAX and together at most MQX_RING_RECORD_MAX
 *      bytes; none of them decides the unit.
 *   2. CHUNK records are chained backwards by LSN (ps_chunk.prev_lsn), numbered from 0, and enter
 *      the ring before the PUT record that names the last one; all but the last are equally long.
 *
 * Locks: none may be held; the ring lock is taken inside.
 *
 * Errors: 2071 no memory; 2192 the journal has no room: records that got in stay in the ring and
 * belong to the unit, which is to be backed out.
 */
#ifndef PENSTOCK_UNIT_RECORDS_H
#define PENSTOCK_UNIT_RECORDS_H

#include "unit/unit.h"

struct mqx_gather {
    struct mqx_store *store;
    unsigned char *memory;
    uint32_t bytes;
    struct mqx_run run; /* run.done after an append that failed: records that got in */
};

/* An empty gathering of the unit in `context`. `flags`: MQX_APPEND_PUT or 0. 2071. */
int mqx_gather_begin(struct mqx_gather *gather, struct mqx_store *store, uint32_t context,
                     uint32_t flags) MQX_MUST_USE;
/* Where a record of `length` bytes is to be encoded; NULL: append first, there is no room. */
unsigned char *mqx_gather_room(const struct mqx_gather *gather, uint32_t length);
/* Counts the record that has been encoded there; `message` as in struct mqx_append. */
void mqx_gather_add(struct mqx_gather *gather, uint32_t length, uint32_t message);
/* Appends all of them; nothing when there are none. */
int mqx_gather_append(struct mqx_gather *gather) MQX_MUST_USE;

/* Bodies above this many bytes are written as CHUNK records of this many bytes. */
uint32_t mqx_piece_bytes(const struct mqx_store *store);
/* Appends the CHUNK records of a body of `total` > 0 bytes; `head` is of the message's own record.
 * *out is what that record states about them. */
int mqx_unit_append_pieces(struct mqx_store *store, uint32_t context,
                           const struct mqx_record_head *head, const void *body, uint64_t total,
                           struct ps_chunked *out) MQX_MUST_USE;

#endif
