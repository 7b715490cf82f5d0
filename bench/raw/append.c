/*
 * append.c - the limit of a durable call by one producer: append and flush of the same bytes.
 *
 * A batch is `payload` bytes made by one copy, then zeroes to the page boundary; it is written by
 * one pwritev2(RWF_DSYNC) on pages that no earlier batch of this run touched, in a file that was
 * written with zeroes before. That is what the journal has to do for a put, a get or a unit of
 * work, without encoding, checksums, queues and locks.
 *
 * Each batch starts with its number, so that the read-back can tell a batch that was left out.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOAD_MAX = 1 << 24 };

struct raw_log {
    int fd;
    bool dsync;
    uint64_t bytes;
    uint64_t next;   /* offset of the next batch */
    uint64_t number; /* of the next batch */
    char *batch;     /* PAYLOAD_MAX bytes, zero behind the payload */
    char *source;    /* what the payload is copied from */
};

int raw_log_open(const char *path, uint64_t bytes, struct raw_log **out)
{
    struct raw_log *log = calloc(1, sizeof(*log));
    int rc = -ENOMEM;

    if (log == NULL)
        return rc;
    log->fd = -1;
    log->dsync = true;
    log->bytes = bytes;
    log->number = 1;
    log->batch = calloc(1, PAYLOAD_MAX);
    log->source = malloc(PAYLOAD_MAX);
    if (log->batch == NULL || log->source == NULL)
        goto failed;
    memset(log->source, 'm', PAYLOAD_MAX);
    rc = raw_make_whole(path, bytes, &log->fd);
    if (rc == 0) {
        *out = log;
        return 0;
    }
failed:
    raw_log_close(log);
    return rc;
}

void raw_log_close(struct raw_log *log)
{
    if (log == NULL)
        return;
    if (log->fd >= 0)
        close(log->fd);
    free(log->batch);
    free(log->source);
    free(log);
}

int raw_log_uses_dsync(const struct raw_log *log)
{
    return log->dsync;
}

/* Compares the `count` batches that end before log->next with what they must hold. */
static int check_batches(struct raw_log *log, uint64_t start, uint32_t payload, uint32_t count)
{
    uint64_t size = raw_round_up(payload, RAW_PAGE);
    uint64_t number = log->number - count;
    char *page = malloc(size);
    int rc = page == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; i < count && rc == 0; i++, number++) {
        rc = raw_read_all(log->fd, page, size, start + i * size);
        if (rc != 0)
            break;
        if (memcmp(page, &number, sizeof(number)) != 0)
            rc = -EBADMSG;
        else if (memcmp(page + 8, log->source + 8, payload - 8) != 0)
            rc = -EBADMSG;
        else if (payload < size && page[payload] != 0)
            rc = -EBADMSG;
    }
    free(page);
    return rc;
}

int raw_log_append(struct raw_log *log, uint32_t payload, uint32_t count, uint64_t *elapsed_ns)
{
    uint64_t size = raw_round_up(payload, RAW_PAGE);
    uint64_t start;
    uint64_t begun;

    if (payload < 8 || size > PAYLOAD_MAX || size * count > log->bytes)
        return -EINVAL;
    if (log->next + size * count > log->bytes)
        log->next = 0;
    start = log->next;
    memset(log->batch, 0, PAYLOAD_MAX);
    begun = raw_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        memcpy(log->batch, log->source, payload);
        memcpy(log->batch, &log->number, sizeof(log->number));
        int rc = raw_write_flushed(log->fd, log->batch, size, log->next, &log->dsync);
        if (rc != 0)
            return rc;
        log->next += size;
        log->number++;
    }
    *elapsed_ns = raw_now_ns() - begun;
    return check_batches(log, start, payload, count);
}
