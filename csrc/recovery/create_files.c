/*
 * create_files.c - see create_files.h.
 */
#include "recovery/create_files.h"

#include "base/assert.h"
#include "base/error.h"
#include "format/segment.h"
#include "journal/head_file.h"
#include "journal/journal.h"
#include "recovery/checkpoint_file.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_NUMBER = 1 }; /* of segment, generation, epoch and spare */

/* A whole number of pages, room for a header and some batches. */
static bool is_segment_size(uint64_t size)
{
    MQX_STATIC_ASSERT(PS_MIN_SEGMENT % MQX_PAGE_SIZE == 0, "the smallest one is one");
    return size >= PS_MIN_SEGMENT && size % MQX_PAGE_SIZE == 0;
}

/* Segment 1, through a spare like every segment. */
static int create_first_segment(struct mqx_io *io, int dir, const uint8_t qm_id[16], uint64_t size)
{
    struct mqx_segment_failure failure;
    struct psj_segment header = {.segment_no = FIRST_NUMBER,
                                 .generation = FIRST_NUMBER,
                                 .restart_epoch = FIRST_NUMBER,
                                 .size = size};
    MQX_ASSERT(is_segment_size(size));
    MQX_ASSERT(dir >= 0);
    int status = mqx_spare_create(io, dir, FIRST_NUMBER, size, NULL);
    if (status != MQX_OK) {
        return status;
    }
    const int err = mqx_segment_begin(io, dir, qm_id, FIRST_NUMBER, &header, &failure);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "making the first journal segment");
}

/* HEAD names segment 1. */
static int create_head(struct mqx_io *io, int dir, const uint8_t qm_id[16])
{
    const struct mqx_head head = {.segment_no = FIRST_NUMBER, .generation = FIRST_NUMBER};
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT(qm_id != NULL);
    const int err = mqx_head_create(io, dir, qm_id, &head);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "making HEAD");
}

/* A checkpoint of an orderly end before anything was written. */
static int create_first_checkpoint(struct mqx_io *io, int dir, const uint8_t qm_id[16])
{
    struct mqx_checkpoint_writer writer;
    uint64_t size = 0;
    struct psc_header header = {
        .begin_segment = FIRST_NUMBER,
        .end_lsn = MQX_PAGE_SIZE, /* behind the header page of segment 1 */
        .next_number = 1,
        .next_unit_id = FIRST_NUMBER + 1, /* the first one has named a spare */
        .restart_epoch = FIRST_NUMBER,
        .generation = FIRST_NUMBER,
        .clean = 1,
        .created_us = io->ops->now_us(io),
        .oldest_segment = FIRST_NUMBER,
        .units_listed = 1,
    };
    memcpy(header.qm_id, qm_id, sizeof header.qm_id);
    MQX_ASSERT(dir >= 0);
    int status = mqx_checkpoint_file_begin(&writer, io, dir, qm_id, MQX_PAGE_SIZE, false);
    if (status == MQX_OK) {
        status = mqx_checkpoint_file_finish(&writer, &header, &size);
    }
    MQX_ASSERT(status != MQX_OK || size > MQX_PAGE_SIZE);
    return status;
}

/* Sizes are checked before anything is written. */
int mqx_journal_create(struct mqx_io *io, int dir, int journal_dir, int checkpoint_dir,
                       const uint8_t qm_id[16], const struct mqx_region_plan *plan)
{
    MQX_ASSERT(qm_id != NULL);
    MQX_ASSERT(journal_dir != checkpoint_dir);
    if (!is_segment_size(plan->first_segment_size) || !is_segment_size(plan->segment_size)) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "journal segments of %" PRIu64 " and %" PRIu64 " bytes: at least %d and a "
                        "multiple of %d are needed", plan->first_segment_size, plan->segment_size,
                        PS_MIN_SEGMENT, MQX_PAGE_SIZE);
    }
    int status = create_first_segment(io, journal_dir, qm_id, plan->first_segment_size);
    if (status == MQX_OK) {
        status = create_head(io, dir, qm_id);
    }
    return status == MQX_OK ? create_first_checkpoint(io, checkpoint_dir, qm_id) : status;
}
