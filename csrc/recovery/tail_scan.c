/*
 * tail_scan.c - see tail_scan.h.
 *
 * A batch is good when its header says that it belongs at this LSN of this use of the file, it lies
 * within the limit, every record's CRC is right, and its own CRC is (segment.h). The first batch
 * that is not good ends the scan, whatever lies behind it. Why behind it matters nevertheless:
 * headers there may carry a durable mark, which says that batches at or beyond the end were flushed
 * once. Then it is damage and no torn tail. Such a header counts by its hash alone, which nobody
 * can make who does not know the segment's salt: the body of a message may look like one.
 *
 * A mark is believed wherever its header lies, at every sector: a write that was torn may have
 * reached the medium in any subset of its sectors, and the header is in the first one of its batch.
 */
#include "recovery/tail_scan.h"

#include "base/assert.h"
#include "base/error.h"
#include "format/record_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { SECTOR = 512 }; /* unit in which a torn write may have reached the medium */

/* ---- what the end of a segment means ---- */

const struct mqx_tail_case mqx_tail_cases[] = {
    {'A', 1, 1, -1, -1, -1, MQX_TAIL_NEXT, "complete up to the next segment"},
    {'B', 1, 0, -1, -1, -1, MQX_TAIL_DAMAGE, "batches are missing before the next segment"},
    {'C', 0, 0, 1, -1, -1, MQX_TAIL_DAMAGE, "a durable batch is bad or missing"},
    {'D', 0, 0, 0, 1, 0, MQX_TAIL_CLEAN, "orderly end, nothing after it"},
    {'E', 0, 0, 0, 1, 1, MQX_TAIL_TORN, "orderly end, then a write that was not finished"},
    {'F', 0, 0, 0, 0, 0, MQX_TAIL_TORN, "ends with a whole batch, without an orderly end"},
    {'G', 0, 0, 0, 0, 1, MQX_TAIL_TORN, "torn tail"},
};
const size_t mqx_tail_case_count = MQX_ARRAY_COUNT(mqx_tail_cases);

/* Does a column of the table allow the fact? */
static bool fits(signed char wanted, bool fact)
{
    MQX_ASSERT(wanted >= -1 && wanted <= 1);
    return wanted < 0 || (wanted != 0) == fact;
}

/* The first case that fits is the only one: a test tries all combinations. */
const struct mqx_tail_case *mqx_tail_decide(const struct mqx_tail_facts *facts)
{
    MQX_ASSERT(facts != NULL);
    for (size_t i = 0; i < mqx_tail_case_count; i++) {
        const struct mqx_tail_case *tail = &mqx_tail_cases[i];
        if (fits(tail->has_next, facts->has_next) && fits(tail->at_next, facts->at_next) &&
            fits(tail->below_mark, facts->below_mark) &&
            fits(tail->clean_here, facts->clean_here) && fits(tail->remains, facts->remains)) {
            return tail;
        }
    }
    return NULL;
}

/* ---- batches ---- */

/* A bad sector is damage naming file and offset; only memory is another reason. */
static int read_failed(const struct mqx_tail_scan *scan, int err, uint64_t offset)
{
    MQX_ASSERT(err < 0);
    MQX_ASSERT(offset <= scan->segment->size);
    if (err == -ENOMEM) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to read a journal batch");
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal/%010" PRIu64 ".psj, offset %" PRIu64 ": cannot be read: %s",
                    scan->segment->number, offset, strerror(-err));
}

/* Where a batch at that LSN would lie. */
static struct mqx_flush_batch_position position_of(const struct mqx_tail_scan *scan, uint64_t lsn)
{
    MQX_ASSERT(scan->segment->number != 0);
    MQX_ASSERT(scan->qm_id != NULL);
    return (struct mqx_flush_batch_position){
        .qm_id = scan->qm_id,
        .salt = (const uint8_t *)scan->segment->salt,
        .segment_no = scan->segment->number,
        .generation = scan->segment->generation,
        .lsn = lsn,
    };
}

/* The good batch at `lsn`, or *out = NULL. */
static int read_batch(const struct mqx_tail_scan *scan, uint64_t lsn,
                         const struct psj_batch **out)
{
    const struct mqx_flush_batch_position position = position_of(scan, lsn);
    const uint64_t offset = lsn - scan->segment->base_lsn;
    const unsigned char *bytes;
    MQX_ASSERT(lsn % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(offset >= MQX_PAGE_SIZE); /* the first page is the segment's header */

    *out = NULL;
    if (lsn + MQX_PAGE_SIZE > scan->limit_lsn) {
        return MQX_OK;
    }
    int err = mqx_file_window_read(scan->window, offset, sizeof(struct psj_batch), &bytes);
    if (err != 0) {
        return read_failed(scan, err, offset);
    }
    const struct psj_batch *header = (const void *)bytes;
    if (!mqx_flush_batch_is_at(&position, header) ||
        mqx_round_up(header->length, MQX_PAGE_SIZE) > scan->limit_lsn - lsn) {
        return MQX_OK;
    }
    const uint32_t length = header->length;
    err = mqx_file_window_read(scan->window, offset, length, &bytes);
    if (err != 0) {
        return read_failed(scan, err, offset);
    }
    MQX_ASSERT(length >= sizeof *header);
    if (mqx_flush_batch_valid(&position, bytes, length)) {
        *out = (const void *)bytes;
    }
    return MQX_OK;
}

/* Calls on_record for the batch's records from begin_lsn on. */
static int deliver_records(struct mqx_tail_scan *scan, const struct psj_batch *batch)
{
    const unsigned char *bytes = (const void *)batch;
    const uint64_t lsn = batch->lsn;
    uint64_t at = sizeof *batch;
    MQX_ASSERT(scan->on_record != NULL);
    MQX_ASSERT(lsn == scan->end_lsn);
    while (at < batch->length) {
        const struct psj_record *record = (const void *)(bytes + at);
        if (lsn + at >= scan->begin_lsn) {
            int status = scan->on_record(scan->arg, lsn + at, record);
            if (status != MQX_OK) {
                return status;
            }
            scan->records += 1;
        }
        at += mqx_record_length(record);
    }
    MQX_ASSERT(at == batch->length);
    return MQX_OK;
}

/* Batches follow each other without a gap; each is read, verified, and its records passed on. */
int mqx_tail_scan_run(struct mqx_tail_scan *scan)
{
    const struct psj_batch *batch = NULL;
    scan->end_lsn = scan->segment->base_lsn + MQX_PAGE_SIZE;
    MQX_ASSERT(scan->end_lsn <= scan->limit_lsn); /* headers were compared with each other */
    MQX_ASSERT(scan->limit_lsn % MQX_PAGE_SIZE == 0);
    for (;;) { /* each turn goes at least a page forward */
        int status = read_batch(scan, scan->end_lsn, &batch);
        if (status != MQX_OK || batch == NULL) {
            return status;
        }
        const uint64_t end = mqx_round_up(scan->end_lsn + batch->length, MQX_PAGE_SIZE);
        if (end > scan->begin_lsn) {
            scan->bytes += end - scan->end_lsn;
            status = deliver_records(scan, batch);
            if (status != MQX_OK) {
                return status;
            }
        }
        MQX_ASSERT(end > scan->end_lsn);
        MQX_ASSERT(end <= scan->limit_lsn);
        scan->end_lsn = end;
    }
}

/* Is it a batch header of this use of the file? Its records are not examined, nor where it
 * lies. */
static bool is_header(const struct mqx_tail_scan *scan, const struct psj_batch *batch)
{
    const struct mqx_segment *segment = scan->segment;
    const struct mqx_flush_batch_position position = position_of(scan, batch->lsn);
    MQX_ASSERT(segment->number != 0);
    MQX_ASSERT(batch != NULL);
    return batch->lsn % MQX_PAGE_SIZE == 0 && batch->lsn >= segment->base_lsn + MQX_PAGE_SIZE &&
           batch->lsn < segment->base_lsn + segment->size &&
           mqx_flush_batch_is_at(&position, batch);
}

/* Sector by sector to the end of the file: a torn write may have left any subset of its sectors.
 */
int mqx_tail_scan_marks(const struct mqx_tail_scan *scan, uint64_t *mark, bool *remains,
                        uint64_t *torn_bytes)
{
    const uint64_t from = scan->end_lsn - scan->segment->base_lsn;
    MQX_ASSERT(scan->end_lsn > scan->segment->base_lsn); /* after mqx_tail_scan_run() */
    MQX_ASSERT(from % MQX_PAGE_SIZE == 0);
    *mark = 0;
    *remains = false;
    *torn_bytes = 0;
    for (uint64_t offset = from; offset < scan->segment->size; offset += SECTOR) {
        const unsigned char *bytes;
        int err = mqx_file_window_read(scan->window, offset, SECTOR, &bytes);
        if (err != 0) {
            return read_failed(scan, err, offset);
        }
        const struct psj_batch *batch = (const void *)bytes;
        if (MQX_UNLIKELY(batch->magic == PS_BATCH_MAGIC) && is_header(scan, batch)) {
            *remains = true;
            *torn_bytes = offset - from + batch->length;
            *mark = batch->durable_lsn > *mark ? batch->durable_lsn : *mark;
        }
    }
    return MQX_OK;
}
