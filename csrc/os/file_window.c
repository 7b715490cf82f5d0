/*
 * file_window.c - see file_window.h.
 */
#include "os/file_window.h"

#include "base/assert.h"
#include "os/page_memory.h"

#include <errno.h>
#include <string.h>

enum { WINDOW_SIZE = 512 * 1024 }; /* stays in the processor's cache between reading and checking */

void mqx_file_window_switch(struct mqx_file_window *window, int fd, uint64_t file_size)
{
    MQX_ASSERT(window->io != NULL);
    MQX_ASSERT(fd >= 0);
    window->fd = fd;
    window->file_size = file_size;
    window->at = 0;
    window->have = 0;
}

void mqx_file_window_free(struct mqx_file_window *window)
{
    MQX_ASSERT(window != NULL);
    mqx_pages_free(window->bytes, window->capacity);
    window->bytes = NULL;
    window->capacity = 0;
    window->have = 0;
}

/* Room for `size` bytes at least, for WINDOW_SIZE when the file is as large. A larger one replaces
 * what was in it. */
static int make_capacity(struct mqx_file_window *window, uint64_t size)
{
    uint64_t wanted = window->file_size < WINDOW_SIZE ? window->file_size : WINDOW_SIZE;
    wanted = mqx_round_up(wanted < size ? size : wanted, MQX_PAGE_SIZE);
    MQX_ASSERT(wanted >= size);
    if (wanted <= window->capacity) {
        return 0;
    }
    mqx_file_window_free(window);
    window->bytes = mqx_pages_alloc(wanted);
    if (window->bytes == NULL) {
        return -ENOMEM;
    }
    window->capacity = wanted;
    return 0;
}

/* Makes [offset, offset + step) the window's bytes. Those that it has already move to the front: a
 * batch that begins in one window and ends in the next is not read twice. */
static int move_to(struct mqx_file_window *window, uint64_t offset, uint64_t step)
{
    const uint64_t end = window->at + window->have;
    const uint64_t kept = offset > window->at && offset < end ? end - offset : 0;
    MQX_ASSERT(step <= window->capacity);
    MQX_ASSERT(kept < step);
    if (kept > 0) {
        memmove(window->bytes, window->bytes + (offset - window->at), kept);
    }
    window->have = 0;
    const int err = mqx_io_read_all(window->io, window->fd, window->bytes + kept, step - kept,
                                    offset + kept);
    if (err == 0) {
        window->at = offset;
        window->have = step;
    }
    return err;
}

int mqx_file_window_read(struct mqx_file_window *window, uint64_t offset, uint64_t size,
                         const unsigned char **out)
{
    MQX_ASSERT(window->fd >= 0);
    MQX_ASSERT(window->have <= window->capacity);
    if (offset > window->file_size || size > window->file_size - offset) {
        return -EIO;
    }
    if (offset < window->at || offset + size > window->at + window->have) {
        int err = make_capacity(window, size);
        if (err != 0) {
            return err;
        }
        const uint64_t left = window->file_size - offset;
        err = move_to(window, offset, left < window->capacity ? left : window->capacity);
        if (err != 0) {
            return err;
        }
    }
    MQX_ASSERT(offset - window->at + size <= window->have);
    *out = window->bytes + (offset - window->at);
    return 0;
}
