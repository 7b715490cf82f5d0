/*
 * unit_records.c - see unit_records.h.
 */
#include "unit/unit_records.h"

#include "base/assert.h"
#include "base/error.h"
#include "region/damage.h"

enum { PIECE_OVERHEAD = 256 }; /* bytes of a CHUNK record besides its piece, at the most */

/* ---- many messages ---- */

int mqx_gather_begin(struct mqx_gather *gather, struct mqx_store *store, uint32_t context,
                     uint32_t flags)
{
    unsigned char *memory = mqx_scratch(MQX_RING_RECORD_MAX);
    MQX_ASSERT(context != 0);
    MQX_ASSERT((flags & ~(uint32_t)MQX_APPEND_PUT) == 0);
    gather->store = store;
    gather->memory = memory;
    gather->bytes = 0;
    gather->run.records = memory;
    gather->run.common = NULL;
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
    MQX_ASSERT(gather->memory != NULL);
    MQX_ASSERT(gather->run.count <= MQX_RUN_MAX);
    MQX_ASSERT(gather->bytes <= MQX_RING_RECORD_MAX - MQX_COMMON_MAX);
    if (gather->run.count == MQX_RUN_MAX ||
        length > MQX_RING_RECORD_MAX - MQX_COMMON_MAX - gather->bytes) {
        return NULL;
    }
    return gather->memory + gather->bytes;
}

/* The lines of the ring that the record goes to, unless another thread appends first, come into the
 * cache while others are encoded. */
static void fetch_ring(const struct mqx_gather *gather, uint32_t length)
{
    const struct mqx_region *region = &gather->store->region;
    const uint64_t at = mqx_load_relaxed(&region->journal->tail) + gather->bytes;
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    for (uint32_t i = 0; i < length; i += MQX_CACHE_LINE) {
        __builtin_prefetch(mqx_ring_at(region, at + i), 1);
    }
}

void mqx_gather_add(struct mqx_gather *gather, uint32_t length, uint32_t message)
{
    struct mqx_run *run = &gather->run;
    MQX_ASSERT(run->count < MQX_RUN_MAX);
    MQX_ASSERT(run->done == 0);
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX - gather->bytes);
    MQX_ASSERT(length % 8 == 0);
    fetch_ring(gather, length);
    run->length[run->count] = length;
    run->message[run->count] = message;
    run->count += 1;
    gather->bytes += length;
}

int mqx_gather_append(struct mqx_gather *gather)
{
    MQX_ASSERT(gather->run.done == 0);
    if (gather->run.count == 0) {
        return MQX_OK;
    }
    const int status = mqx_journal_append_run(gather->store, &gather->run);
    MQX_ASSERT(status != MQX_OK || gather->run.done == gather->run.count);
    MQX_ASSERT(status != MQX_OK || gather->run.done_bytes == gather->bytes);
    return status;
}

/* ---- pieces of a long body ---- */

uint32_t mqx_piece_bytes(const struct mqx_store *store)
{
    const uint64_t half = (store->region.journal->first_segment_size - 2 * MQX_PAGE_SIZE) / 2;
    const uint64_t room = half - PIECE_OVERHEAD;
    const uint32_t bytes = room < PS_CHUNK_BYTES ? (uint32_t)room & ~7u : (uint32_t)PS_CHUNK_BYTES;
    MQX_ASSERT(bytes % 8 == 0);
    MQX_ASSERT(bytes + PIECE_OVERHEAD <= MQX_RING_RECORD_MAX);
    return bytes;
}

int mqx_unit_append_pieces(struct mqx_store *store, uint32_t context,
                           const struct mqx_record_head *head, const void *body, uint64_t total,
                           struct ps_chunked *out)
{
    const uint32_t most = mqx_piece_bytes(store);
    const unsigned char *bytes = body;
    struct mqx_record_head piece_head = *head;
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    MQX_ASSERT(context != 0);
    MQX_ASSERT(body != NULL);
    MQX_ASSERT(total > 0);
    if (most == 0) {
        return mqx_region_damage(&store->region, "the size of a first segment", total);
    }
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a CHUNK record");
    }
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
        MQX_ASSERT(append.lsn > out->last_lsn);
        out->first_lsn = out->count == 0 ? append.lsn : out->first_lsn;
        out->last_lsn = append.lsn;
        out->count += 1;
    }
    MQX_ASSERT(out->count == (total + most - 1) / most);
    return MQX_OK;
}
