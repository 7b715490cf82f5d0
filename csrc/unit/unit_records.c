/*
 * unit_records.c - see unit_records.h.
 */
#include "unit/unit_records.h"

#include "base/error.h"

/* ---- many messages ---- */

int mqx_gather_begin(struct mqx_gather *gather, struct mqx_store *store, uint32_t context,
                     uint32_t flags)
{
    unsigned char *memory = mqx_scratch(MQX_RING_RECORD_MAX);
    gather->store = store;
    gather->memory = memory;
    gather->bytes = 0;
    gather->run.records = memory;
    gather->run.context = context;
    gather->run.flags = flags;
    gather->run.count = 0;
    gather->run.done = 0;
    gather->run.done_bytes = 0;
    return memory != NULL ? MQX_OK
                          : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for records");
}

unsigned char *mqx_gather_room(const struct mqx_gather *gather, uint32_t length)
{
    if (gather->run.count == MQX_RUN_MAX || length > MQX_RING_RECORD_MAX - gather->bytes) {
        return NULL;
    }
    return gather->memory + gather->bytes;
}

/* The lines of the ring that the record goes to, if nobody else appends first, come into the cache
 * while others are encoded. */
static void fetch_ring(const struct mqx_gather *gather, uint32_t length)
{
    const struct mqx_region *region = &gather->store->region;
    const uint64_t at = mqx_load_relaxed(&region->journal->tail) + gather->bytes;
    for (uint32_t i = 0; i < length; i += 64) {
        __builtin_prefetch(mqx_ring_at(region, at + i), 1);
    }
}

void mqx_gather_add(struct mqx_gather *gather, uint32_t length, uint32_t message)
{
    struct mqx_run *run = &gather->run;
    fetch_ring(gather, length);
    mqx_check(run->count < MQX_RUN_MAX && run->done == 0);
    mqx_check(length <= MQX_RING_RECORD_MAX - gather->bytes);
    run->length[run->count] = length;
    run->message[run->count] = message;
    run->count += 1;
    gather->bytes += length;
}

int mqx_gather_append(struct mqx_gather *gather)
{
    return gather->run.count == 0 ? MQX_OK : mqx_journal_append_run(gather->store, &gather->run);
}

/* ---- pieces of a long body ---- */

uint32_t mqx_piece_bytes(const struct mqx_store *store)
{
    const uint64_t room = (store->region.journal->first_segment_size - 2 * MQX_PAGE_SIZE) / 2 - 256;
    return room < PS_CHUNK_BYTES ? (uint32_t)room & ~7u : (uint32_t)PS_CHUNK_BYTES;
}

int mqx_unit_append_pieces(struct mqx_store *store, uint32_t context,
                           const struct mqx_record_head *head, const void *body, uint64_t total,
                           struct ps_chunked *out)
{
    const uint32_t most = mqx_piece_bytes(store);
    const unsigned char *bytes = body;
    struct mqx_record_head piece_head = *head;
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    mqx_check(record != NULL && total > 0);
    piece_head.type = PS_REC_CHUNK;
    piece_head.flags = 0;
    *out = (struct ps_chunked){.total = total};
    for (uint64_t at = 0; at < total; at += most) {
        const uint64_t left = total - at;
        const struct ps_chunk chunk = {
            .prev_lsn = out->last_lsn, .offset = at, .total = total, .number = out->count};
        struct mqx_append append = {
            .record = record,
            .length = mqx_encode_chunk(record, &piece_head, &chunk, bytes + at,
                                       left < most ? (uint32_t)left : most),
            .flags = MQX_APPEND_PUT,
            .context = context,
        };
        const int status = mqx_journal_append(store, &append);
        if (status != MQX_OK) {
            return status;
        }
        out->first_lsn = out->count == 0 ? append.lsn : out->first_lsn;
        out->last_lsn = append.lsn;
        out->count += 1;
    }
    return MQX_OK;
}
