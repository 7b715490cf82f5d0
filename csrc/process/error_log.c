/*
 * error_log.c - see error_log.h.
 */
#include "process/error_log.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/fork_guard.h"
#include "os/host_info.h"
#include "process/life_lock.h"
#include "region/store.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LOG_SIZE_MAX = 2 << 20,
    LINE_MAX_BYTES = 2048,
    LOCK_PAUSE_US = 1000,
};
#define LOG_NEWEST "AMQERR01.LOG"
#define LOG_MIDDLE "AMQERR02.LOG"
#define LOG_OLDEST "AMQERR03.LOG"

uint64_t mqx_log_patience_us = 100000;

static struct mqx_local_lock threads_lock;

/* U+0080 to U+009F in UTF-8. A terminal obeys them as it does ESC: U+009B begins a sequence. */
static bool is_c1(const char *c)
{
    const unsigned char first = (unsigned char)c[0], second = (unsigned char)c[1];
    return first == 0xc2 && second >= 0x80 && second <= 0x9f;
}

static void replace_control_characters(char *text, char blank)
{
    MQX_ASSERT(text != NULL);
    for (char *c = text; *c != '\0'; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (is_c1(c)) {
            c[0] = c[1] = blank;
        } else if (byte < 0x20 || byte == 0x7f || (byte == ' ' && blank != ' ')) {
            *c = blank;
        }
    }
}

/* "2025-11-21T09:36:12.123456Z pid program AMQ8003I "; its length. */
static size_t write_head(char *line, size_t size, uint64_t now_us, int amq, char severity)
{
    MQX_ASSERT(size > 0);
    MQX_ASSERT(severity == 'I' || severity == 'W' || severity == 'E');
    MQX_ASSERT(amq > 0);
    char program[48];
    struct tm utc;
    const time_t seconds = (time_t)(now_us / 1000000);
    if (gmtime_r(&seconds, &utc) == NULL) {
        memset(&utc, 0, sizeof utc);
    }
    (void)snprintf(program, sizeof program, "%s", mqx_program_name());
    replace_control_characters(program, '_');
    const int n = snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%06uZ %d %s AMQ%04d%c ",
                           utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                           utc.tm_min, utc.tm_sec, (unsigned)(now_us % 1000000), (int)getpid(),
                           program[0] != '\0' ? program : "-", amq, severity);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

struct turn {
    bool threads; /* the local lock was taken */
    struct mqx_life_lock *file; /* whose turn was taken; NULL: none */
};

/* Without the other processes' consent when it is not to be had: a line may then tear another. */
static struct turn take_turn(struct mqx_store *store)
{
    struct turn turn = {.threads = mqx_local_take_for(&threads_lock, mqx_log_patience_us)};
    const uint64_t tries = mqx_log_patience_us / LOCK_PAUSE_US;
    struct mqx_life_lock *file =
        turn.threads && store->lock_fd >= 0 ? mqx_life_lock_find(store->io, store->lock_fd) : NULL;
    int status = file != NULL ? MQX_BUSY : MQX_OK;
    for (uint64_t i = 0; status == MQX_BUSY && i < tries; i++) {
        status = mqx_life_lock_take_log(file);
        if (status == MQX_OK) {
            turn.file = file;
        } else if (status == MQX_BUSY) {
            mqx_clock_sleep_us(LOCK_PAUSE_US);
        }
    }
    return turn;
}

static void end_turn(const struct turn *turn)
{
    MQX_ASSERT(turn->file == NULL || turn->threads);
    if (turn->file != NULL) {
        mqx_life_lock_give_log(turn->file);
    }
    if (turn->threads) {
        mqx_local_drop(&threads_lock);
    }
}

static int open_newest(struct mqx_store *store, uint64_t *out_size)
{
    MQX_ASSERT(store->errors_dir >= 0);
    struct mqx_io *io = store->io;
    struct mqx_io_stat facts;
    /* A copy by hard links goes on being logged; among a group, a link may be another's trap. */
    const int flags = MQX_IO_WRITE | (io->shared ? 0 : MQX_IO_LINKED);
    int fd = io->ops->open(io, store->errors_dir, LOG_NEWEST, flags, 0);
    if (fd == -ENOENT) {
        fd = io->ops->open(io, store->errors_dir, LOG_NEWEST, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    if (fd >= 0 && io->ops->stat(io, fd, &facts) < 0) {
        (void)io->ops->close(io, fd);
        return -EIO;
    }
    *out_size = fd >= 0 ? facts.size : 0;
    return fd;
}

static void rotate(struct mqx_store *store)
{
    MQX_ASSERT(store->errors_dir >= 0);
    struct mqx_io *io = store->io;
    (void)io->ops->rename(io, store->errors_dir, LOG_MIDDLE, LOG_OLDEST);
    (void)io->ops->rename(io, store->errors_dir, LOG_NEWEST, LOG_MIDDLE);
}

static void append_line(struct mqx_store *store, const char *line, size_t length)
{
    MQX_ASSERT(length > 0 && line[length - 1] == '\n');
    MQX_ASSERT(length <= LINE_MAX_BYTES);
    struct mqx_io *io = store->io;
    uint64_t size = 0;
    int fd = open_newest(store, &size);
    if (fd >= 0 && size > 0 && size + length > LOG_SIZE_MAX) {
        (void)io->ops->close(io, fd);
        rotate(store);
        fd = open_newest(store, &size);
    }
    if (fd >= 0) {
        mqx_ignore(mqx_io_write_all(io, fd, line, length, size, 0)); /* never fails its caller */
        (void)io->ops->close(io, fd);
    }
}

void mqx_log(struct mqx_store *store, int amq, char severity, const char *format, ...)
{
    MQX_ASSERT(store->io != NULL);
    MQX_ASSERT(format != NULL);
    char line[LINE_MAX_BYTES];
    const int saved_errno = errno;
    va_list args;

    if (store->errors_dir < 0) {
        return;
    }
    const uint64_t now_us = store->io->ops->now_us(store->io);
    const size_t head = write_head(line, sizeof line - 1, now_us, amq, severity);
    va_start(args, format);
    const int n = vsnprintf(line + head, sizeof line - 1 - head, format, args);
    va_end(args);
    if (n >= 0) {
        replace_control_characters(line + head, ' ');
        const size_t length = strlen(line);
        line[length] = '\n'; /* the array has one byte more than what was printed into */
        const struct turn turn = take_turn(store);
        if (mqx_store_is_whole(store)) {
            append_line(store, line, length + 1);
        }
        end_turn(&turn);
    }
    errno = saved_errno;
}
