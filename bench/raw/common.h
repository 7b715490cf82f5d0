/*
 * common.h - what the raw limits share: the clock, whole files, flushed writes.
 */
#ifndef PENSTOCK_RAW_COMMON_H
#define PENSTOCK_RAW_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAW_PAGE = 4096, RAW_BLOCK = 1 << 20 };

uint64_t raw_now_ns(void);

static inline uint64_t raw_round_up(uint64_t n, uint64_t a)
{
    return (n + a - 1) / a * a;
}

/* A new file of `bytes` zeroes, flushed, open for reading and writing. */
int raw_make_whole(const char *path, uint64_t bytes, int *out_fd);

/* Writes all of it at `offset` and returns when it is on the medium. *dsync tells how: it starts as
 * true and becomes false for good when the file system knows no RWF_DSYNC. */
int raw_write_flushed(int fd, const void *from, size_t size, uint64_t offset, bool *dsync);

int raw_read_all(int fd, void *to, size_t size, uint64_t offset);

/* Waits while *word is `value`; returns at once when it is not. */
void raw_futex_wait(uint32_t *word, uint32_t value);
void raw_futex_wake(uint32_t *word, int count);

#endif
