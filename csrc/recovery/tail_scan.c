/*
 * tail_scan.c - see tail_scan.h.
 */
#include "recovery/tail_scan.h"

#include "base/assert.h"
#include "base/error.h"
#include "format/record_codec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_SIZE = 512 * 1024, /* stays in the processor's cache between reading and checking */
    SECTOR = 512,
};

/* ---- the window ---- */

void mqx_file_window_switch(struct mqx_file_window *window, int fd, uint64_t file_size)
{
    window->fd = fd;
    window->file_size = file_size;
    window->at = 0;
    window->have = 0;
}

void mqx_file_window_free(struct mqx_file_window *window)
{
    free(window->bytes);
    window->bytes = NULL;
    window->capacity = 0;
}

static int make_capacity(struct mqx_file_window *window, uint64_t size)
{
    uint64_t wanted = window->file_size < WINDOW_SIZE ? window->file_size : WINDOW_SIZE;
    wanted = mqx_round_up(wanted < size ? size : wanted, MQX_PAGE_SIZE);
    if (wanted <= window->capacity) {
        return 0;
    }
    unsigned char *bytes = realloc(window->bytes, wanted);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    window->bytes = bytes;
    window->capacity = wanted;
    return 0;
}

int mqx_file_window_read(struct mqx_file_window *window, uint64_t offset, uint64_t size,
                         const unsigned char **out)
{
    if (offset > window->file_size || size > window->file_size - offset) {
        return -EIO;
    }
    if (offset < window->at || offset + size > window->at + window->have) {
        int err = make_capacity(window, size);
        if (err != 0) {
            return err;
        }
        const uint64_t left = window->file_size - offset;
        const uint64_t step = left < window->capacity ? left : window->capacity;
        window->have = 0;
        err = mqx_io_read_all(window->io, window->fd, window->bytes, step, offset);
        if (err != 0) {
            return err;
        }
        window->at = offset;
        window->have = step;
    }
    *out = window->bytes + (offset - window->at);
    return 0;
}

/* ---- what the end of a segment means ---- */

const struct mqx_tail_case mqx_tail_cases[] = {
    {'A', 1, 1, -1, -1, -1, MQX_TAIL_NEXT, "complete up to the next segment"},
    {'B', 1, 0, -1, -1, -1, MQX_TAIL_DAMAGE, "batches are missing before the next segment"},
    {'C', 0, 0, 1, -1, -1, MQX_TAIL_DAMAGE, "a durable batch is bad or missing"},
    {'D', 0, 0, 0, 1, 0, MQX_TAIL_CLEAN, "orderly end, nothing after it"},
    {'E', 0, 0, 0, 1, 1, MQX_TAIL_TORN, "orderly end, then a write that was not finished"},
    {'F', 0, 0, 0, 0, 0, MQX_TAIL_TORN, "ends with a whole batch, but nobody ended it in order"},
    {'G', 0, 0, 0, 0, 1, MQX_TAIL_TORN, "torn tail"},
};
const size_t mqx_tail_case_count = MQX_ARRAY_COUNT(mqx_tail_cases);

static bool fits(signed char wanted, bool fact)
{
    return wanted < 0 || (wanted != 0) == fact;
}

const struct mqx_tail_case *mqx_tail_decide(const struct mqx_tail_facts *facts)
{
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

static int read_failed(const struct mqx_tail_scan *scan, int err, uint64_t offset)
{
    if (err == -ENOMEM) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to read a journal batch");
    }
    return mqx_fail(MQRC_OBJECT_DAMAGED,
                    "journal/%010" PRIu64 ".psj, offset %" PRIu64 ": cannot be read: %s",
                    scan->segment->number, offset, strerror(-err));
}

/* The good batch at `lsn`, or *out = NULL. */
static int look_at_batch(const struct mqx_tail_scan *scan, uint64_t lsn,
                         const struct psj_batch **out)
{
    const struct mqx_flush_batch_position place = {scan->qm_id, scan->segment->number,
                                                   scan->segment->generation, lsn};
    const uint64_t offset = lsn - scan->segment->base_lsn;
    const unsigned char *bytes;

    *out = NULL;
    if (lsn + MQX_PAGE_SIZE > scan->limit_lsn) {
        return MQX_OK;
    }
    int err = mqx_file_window_read(scan->window, offset, sizeof(struct psj_batch), &bytes);
    if (err != 0) {
        return read_failed(scan, err, offset);
    }
    const struct psj_batch *header = (const void *)bytes;
    if (!mqx_flush_batch_is_at(&place, header) ||
        mqx_round_up(header->length, MQX_PAGE_SIZE) > scan->limit_lsn - lsn) {
        return MQX_OK;
    }
    const uint32_t length = header->length;
    err = mqx_file_window_read(scan->window, offset, length, &bytes);
    if (err != 0) {
        return read_failed(scan, err, offset);
    }
    if (mqx_flush_batch_valid(&place, bytes, length)) {
        *out = (const void *)bytes;
    }
    return MQX_OK;
}

static int hand_on(struct mqx_tail_scan *scan, const struct psj_batch *batch)
{
    const unsigned char *bytes = (const void *)batch;
    const uint64_t lsn = batch->lsn;
    uint64_t at = sizeof *batch;
    while (at < batch->length) {
        const struct psj_record *record = (const void *)(bytes + at);
        if (lsn + at >= scan->begin_lsn) {
            int status = scan->on_record(scan->arg, lsn + at, record);
            if (status != MQX_OK) {
                return status;
            }
            scan->records += 1;
        }
        at += record->length;
    }
    return MQX_OK;
}

int mqx_tail_scan_run(struct mqx_tail_scan *scan)
{
    const struct psj_batch *batch = NULL;
    scan->end_lsn = scan->segment->base_lsn + MQX_PAGE_SIZE;
    mqx_check(scan->end_lsn <= scan->limit_lsn);
    for (;;) { /* each turn goes at least a page forward */
        int status = look_at_batch(scan, scan->end_lsn, &batch);
        if (status != MQX_OK || batch == NULL) {
            return status;
        }
        const uint64_t end = mqx_round_up(scan->end_lsn + batch->length, MQX_PAGE_SIZE);
        if (end > scan->begin_lsn) {
            scan->bytes += end - scan->end_lsn;
            status = hand_on(scan, batch);
            if (status != MQX_OK) {
                return status;
            }
        }
        scan->end_lsn = end;
    }
}

/* A batch header of this use of the file, wherever it lies, whatever became of its records. */
static bool is_header(const struct mqx_segment *segment, const struct psj_batch *batch)
{
    return batch->magic == PS_BATCH_MAGIC && batch->segment_no == segment->number &&
           batch->generation == segment->generation && batch->zero == 0 &&
           batch->lsn % MQX_PAGE_SIZE == 0 && batch->lsn >= segment->base_lsn + MQX_PAGE_SIZE &&
           batch->lsn < segment->base_lsn + segment->size && batch->durable_lsn <= batch->lsn &&
           batch->length >= sizeof *batch && batch->length % 8 == 0;
}

int mqx_tail_scan_marks(const struct mqx_tail_scan *scan, uint64_t *mark, bool *remains,
                        uint64_t *torn_bytes)
{
    const uint64_t from = scan->end_lsn - scan->segment->base_lsn;
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
        if (MQX_UNLIKELY(batch->magic == PS_BATCH_MAGIC) && is_header(scan->segment, batch)) {
            *remains = true;
            *torn_bytes = offset - from + batch->length;
            *mark = batch->durable_lsn > *mark ? batch->durable_lsn : *mark;
        }
    }
    return MQX_OK;
}
