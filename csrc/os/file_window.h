/*
 * file_window.h - a window over a file: a run of its bytes in memory, moved forward.
 *
 * Purpose. Reading a large file from beginning to end with read(), never through a mapping: a bad
 * sector is an error code, and nothing changes under the reader (rule 30). Bytes that are in the
 * window already are given again without a read, also those at its end when it moves on: batches of
 * any length are read once.
 *
 * Invariants
 *   1. bytes[0 .. have) are those of the file at [at, at + have); `have` is 0 before the first read
 *      and after one that failed.
 *   2. What mqx_file_window_read() gives is valid until the next call, and 8-byte aligned when the
 *      offset is.
 *
 * No locks: a window belongs to one thread. Errors are negated errno values, without a text.
 */
#ifndef PENSTOCK_FILE_WINDOW_H
#define PENSTOCK_FILE_WINDOW_H

#include "os/io.h"

struct mqx_file_window { /* to begin with: .io and .fd set, all else zero */
    struct mqx_io *io;
    int fd;
    uint64_t file_size;
    unsigned char *bytes; /* 8-byte aligned */
    uint64_t capacity;
    uint64_t at;          /* offset in the file of bytes[0] */
    uint64_t have;
};

/* Makes [offset, offset + size) readable at *out. -EIO beyond the end of the file, -ENOMEM, or what
 * the read gave. */
int mqx_file_window_read(struct mqx_file_window *window, uint64_t offset, uint64_t size,
                         const unsigned char **out) MQX_MUST_USE;
/* Turns to another file, keeping the memory. */
void mqx_file_window_switch(struct mqx_file_window *window, int fd, uint64_t file_size);
/* Frees the memory; the file stays open. */
void mqx_file_window_free(struct mqx_file_window *window);

#endif
