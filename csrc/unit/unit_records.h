/*
 * unit_records.h - records of a unit that come in numbers: many messages' at once, and the pieces of a
 * long body.
 *
 * Term
 *   gathering  records encoded one behind the other in the thread's scratch memory, then appended
 *              in as few holds of the ring lock as there is room for. Nobody else uses that memory
 *              between mqx_gather_begin() and mqx_gather_append().
 *
 * Locks: none may be held; the ring lock is taken inside.
 */
#ifndef PENSTOCK_UNIT_LOG_H
#define PENSTOCK_UNIT_LOG_H

#include "unit/unit.h"

struct mqx_gather {
    struct mqx_store *store;
    unsigned char *memory;
    uint32_t bytes;
    struct mqx_run run; /* run.done after an append that failed: records that got in */
};

/* Nothing yet, of this unit. `flags`: MQX_APPEND_PUT or 0. 2071. */
int mqx_gather_begin(struct mqx_gather *gather, struct mqx_store *store, uint32_t context,
                     uint32_t flags) MQX_MUST_USE;
/* Where a record of so many bytes is to be encoded; NULL: no room for one more. */
unsigned char *mqx_gather_room(const struct mqx_gather *gather, uint32_t length);
/* It is there; `message` as in struct mqx_append. */
void mqx_gather_add(struct mqx_gather *gather, uint32_t length, uint32_t message);
int mqx_gather_append(struct mqx_gather *gather) MQX_MUST_USE;

/* Bodies above this many bytes are written as CHUNK records. */
uint32_t mqx_piece_bytes(const struct mqx_store *store);
/* Appends the CHUNK records of a body, whose own record has `head`. */
int mqx_unit_append_pieces(struct mqx_store *store, uint32_t context,
                           const struct mqx_record_head *head, const void *body, uint64_t total,
                           struct ps_chunked *out) MQX_MUST_USE;

#endif
