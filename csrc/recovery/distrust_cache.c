/*
 * distrust_cache.c - see distrust_cache.h. In order:
 *
 *   find the last segment -> drop its pages from the cache, where the system allows it -> copy it
 *   into a fresh file -> flush that -> rename it over the old one -> flush the directory
 *
 * Dropping the pages makes the copy read the medium. Where that is not possible the copy has what
 * the cache shows, which is then made durable: either is a state that restarts can build on.
 */
#include "recovery/distrust_cache.h"

#include "base/error.h"
#include "format/segment.h"

#include <errno.h>
#include <stdlib.h>

enum { COPY_STEP = 1 << 20 };

/* Visits a file of the journal directory; `arg` is the highest segment number so far. */
static int note_segment(void *arg, const char *name)
{
    uint64_t *newest = arg;
    uint64_t number = 0;
    MQX_ASSERT(newest != NULL);
    MQX_ASSERT(name != NULL);
    if (mqx_file_kind_of(name, &number) == MQX_FILE_SEGMENT && number > *newest) {
        *newest = number;
    }
    return 0;
}

/* 0 or a negated errno. */
static int copy_bytes(struct mqx_io *io, int from, int to, uint64_t size)
{
    MQX_ASSERT(from >= 0);
    MQX_ASSERT(to >= 0);
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

/* Replaces `name` by a file with the same bytes, flushed; `half` is its name until then. 0 or a
 * negated errno. */
static int replace_file(struct mqx_io *io, int dir, int from, const char *name, const char *half)
{
    struct mqx_io_stat facts = {0};
    MQX_ASSERT(from >= 0);
    MQX_ASSERT(name != half);
    int err = io->ops->stat(io, from, &facts);
    if (err != 0) {
        return err;
    }
    (void)io->ops->unlink(io, dir, half); /* left over by a process that died */
    int to = io->ops->open(io, dir, half, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (to < 0) {
        return to;
    }
    MQX_ASSERT(to != from);
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

/* Would a restart accept the header page as it reads now? */
static int check_header(struct mqx_store *store, int fd, uint64_t number)
{
    struct mqx_io_stat facts = {0};
    struct psj_segment header;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(number != 0);
    int err = store->io->ops->stat(store->io, fd, &facts);
    if (err == 0) {
        err = mqx_io_read_all(store->io, fd, &header, sizeof header, 0);
    }
    return err == 0 ? mqx_segment_verify(&header, store->qm_id, number, facts.size)
                    : mqx_io_reason(err, "reading the last journal segment");
}

/* No segment at all: a creation that was interrupted; there is nothing to distrust. */
int mqx_recover_distrust_cache(struct mqx_store *store)
{
    struct mqx_io *io = store->io;
    uint64_t newest = 0;
    char name[MQX_FILE_NAME_SIZE], half[MQX_FILE_NAME_SIZE];
    int err = io->ops->list(io, store->journal_dir, note_segment, &newest);
    if (err != 0) {
        return mqx_io_reason(err, "listing the journal");
    }
    MQX_ASSERT(store->files == NULL); /* nothing of the journal is mapped yet */
    if (newest == 0) {
        return MQX_OK;
    }
    MQX_ASSERT(mqx_load_acquire(&store->region.header->ready) == 0); /* before the restart */
    mqx_file_name(name, MQX_FILE_SEGMENT, newest);
    mqx_file_name(half, MQX_FILE_HALF_MADE, newest);
    int fd = io->ops->open(io, store->journal_dir, name, MQX_IO_READ, 0);
    if (fd < 0) {
        return mqx_io_reason(fd, "opening the last journal segment");
    }
    (void)io->ops->drop_cache(io, fd); /* see above where that is not possible */
    int status = check_header(store, fd, newest);
    if (status == MQX_OK) {
        err = replace_file(io, store->journal_dir, fd, name, half);
        status = err == 0 ? MQX_OK : mqx_io_reason(err, "rewriting the last journal segment");
    }
    (void)io->ops->close(io, fd);
    return status;
}
