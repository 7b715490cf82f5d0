/*
 * create_files.c - the first files of a queue manager, and making the last segment anew from what
 * the medium says. Both work on files alone; see restart.h.
 */
#include "recovery/restart.h"

#include "recovery/checkpoint_file.h"
#include "base/error.h"
#include "format/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_STEP = 1 << 20 };

static int write_first_header(struct mqx_io *io, int dir, const char *name,
                              const struct psj_segment *header)
{
    int fd = io->ops->open(io, dir, name, MQX_IO_WRITE, 0);
    if (fd < 0) {
        return fd;
    }
    const int err = mqx_io_write_all(io, fd, header, sizeof *header, 0, MQX_IO_DSYNC);
    const int closed = io->ops->close(io, fd);
    return err != 0 ? err : closed;
}

static int create_first_segment(struct mqx_io *io, int dir, const uint8_t qm_id[16], uint64_t size)
{
    char spare[MQX_FILE_NAME_SIZE], name[MQX_FILE_NAME_SIZE];
    struct psj_segment header = {.segment_no = 1,
                                 .generation = 1,
                                 .restart_epoch = 1,
                                 .size = size,
                                 .created_us = io->ops->now_us(io)};
    memcpy(header.qm_id, qm_id, sizeof header.qm_id);
    mqx_segment_seal(&header);
    mqx_file_name(spare, MQX_FILE_SPARE, 1);
    mqx_file_name(name, MQX_FILE_SEGMENT, 1);
    int status = mqx_spare_create(io, dir, 1, size);
    if (status != MQX_OK) {
        return status;
    }
    int err = write_first_header(io, dir, spare, &header);
    if (err == 0) {
        err = io->ops->rename(io, dir, spare, name);
    }
    if (err == 0) {
        err = io->ops->sync_dir(io, dir);
    }
    return err == 0 ? MQX_OK : mqx_io_reason(err, "making the first journal segment");
}

int mqx_journal_create(struct mqx_io *io, int journal_dir, int checkpoint_dir,
                       const uint8_t qm_id[16], const struct mqx_region_plan *plan)
{
    struct mqx_checkpoint_writer writer;
    uint64_t size = 0;
    struct psc_header header = {
        .begin_segment = 1,
        .end_lsn = MQX_PAGE_SIZE, /* behind the header page: nothing has been written */
        .next_number = 1,
        .next_unit_id = 2, /* 1 has named a spare */
        .restart_epoch = 1,
        .generation = 1,
        .clean = 1,
        .created_us = io->ops->now_us(io),
        .oldest_segment = 1,
    };
    memcpy(header.qm_id, qm_id, sizeof header.qm_id);
    if (plan->first_segment_size < PS_MIN_SEGMENT || plan->segment_size < PS_MIN_SEGMENT ||
        plan->first_segment_size % MQX_PAGE_SIZE != 0 || plan->segment_size % MQX_PAGE_SIZE != 0) {
        return mqx_fail(MQRC_UNEXPECTED_ERROR,
                        "journal segments of %" PRIu64 " and %" PRIu64 " bytes: at least %d and a "
                        "multiple of %d are needed", plan->first_segment_size, plan->segment_size,
                        PS_MIN_SEGMENT, MQX_PAGE_SIZE);
    }
    int status = create_first_segment(io, journal_dir, qm_id, plan->first_segment_size);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_checkpoint_file_begin(&writer, io, checkpoint_dir, qm_id, MQX_PAGE_SIZE, false);
    return status == MQX_OK ? mqx_checkpoint_file_finish(&writer, &header, &size) : status;
}

/* ---- distrusting the cache (rule 14) ---- */

struct newest {
    uint64_t number;
};

static int see_file(void *arg, const char *name)
{
    struct newest *newest = arg;
    uint64_t number = 0;
    if (mqx_file_kind_of(name, &number) == MQX_FILE_SEGMENT && number > newest->number) {
        newest->number = number;
    }
    return 0;
}

static int copy_bytes(struct mqx_io *io, int from, int to, uint64_t size)
{
    unsigned char *buffer = malloc(COPY_STEP);
    int err = buffer != NULL ? 0 : -ENOMEM;
    for (uint64_t at = 0; at < size && err == 0; at += COPY_STEP) {
        const uint64_t left = size - at;
        const size_t step = left < COPY_STEP ? (size_t)left : COPY_STEP;
        err = mqx_io_read_all(io, from, buffer, step, at);
        if (err == 0) {
            err = mqx_io_write_all(io, to, buffer, step, at, 0);
        }
    }
    free(buffer);
    return err;
}

/* A file with the same bytes, flushed, takes the place of `name`. */
static int replace_file(struct mqx_io *io, int dir, int from, const char *name, const char *half)
{
    struct mqx_io_stat facts = {0};
    int err = io->ops->stat(io, from, &facts);
    if (err != 0) {
        return err;
    }
    (void)io->ops->unlink(io, dir, half); /* left over by somebody who died */
    int to = io->ops->open(io, dir, half, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (to < 0) {
        return to;
    }
    err = io->ops->allocate(io, to, 0, facts.size);
    if (err == 0) {
        err = copy_bytes(io, from, to, facts.size);
    }
    if (err == 0) {
        err = io->ops->sync(io, to);
    }
    const int closed = io->ops->close(io, to);
    err = err != 0 ? err : closed;
    if (err == 0) {
        err = io->ops->rename(io, dir, half, name);
    }
    if (err != 0) {
        (void)io->ops->unlink(io, dir, half);
        return err;
    }
    return io->ops->sync_dir(io, dir);
}

int mqx_recover_distrust_cache(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    struct newest newest = {0};
    char name[MQX_FILE_NAME_SIZE], half[MQX_FILE_NAME_SIZE];
    int err = io->ops->list(io, store->journal_dir, see_file, &newest);
    if (err != 0) {
        return mqx_io_reason(err, "listing the journal");
    }
    if (newest.number == 0) {
        return MQX_OK;
    }
    mqx_file_name(name, MQX_FILE_SEGMENT, newest.number);
    mqx_file_name(half, MQX_FILE_HALF_MADE, newest.number);
    int fd = io->ops->open(io, store->journal_dir, name, MQX_IO_READ, 0);
    if (fd < 0) {
        return mqx_io_reason(fd, "opening the last journal segment");
    }
    (void)io->ops->drop_cache(io, fd); /* where that is not possible the copy is all we can do */
    err = replace_file(io, store->journal_dir, fd, name, half);
    (void)io->ops->close(io, fd);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "making the last journal segment anew");
}
