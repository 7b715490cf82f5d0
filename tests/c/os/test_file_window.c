/*
 * test_file_window.c - proves file_window.h: any stretch of a file is given as it is there, with
 * few reads, and what lies beyond the end or cannot be read is an error code.
 */
#include "fixtures/harness.h"

#include "fixtures/memory_io.h"
#include "os/file_window.h"

#include <errno.h>

enum { SIZE = 3 << 20 };

static unsigned char byte_at(uint64_t offset)
{
    return (unsigned char)(offset * 7 + (offset >> 9));
}

/* A file of SIZE bytes, open. */
static int make_file(struct memory_io *files)
{
    struct mqx_io *io = memory_io_table(files);
    static unsigned char bytes[SIZE];
    for (uint64_t i = 0; i < SIZE; i++) {
        bytes[i] = byte_at(i);
    }
    memory_io_make_dirs(files, "/d");
    const int dir = io->ops->open_dir(io, "/d");
    const int fd = io->ops->open(io, dir, "f", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK_INT(mqx_io_write_all(io, fd, bytes, SIZE, 0, 0), 0);
    return fd;
}

TEST(a_file_is_read_forward_with_few_calls_and_each_byte_is_the_files)
{
    struct memory_io *files = memory_io_new();
    struct mqx_file_window window = {.io = memory_io_table(files), .fd = -1};
    const unsigned char *bytes = NULL;
    mqx_file_window_switch(&window, make_file(files), SIZE);
    const uint64_t before = memory_io_calls(files, MEMORY_READ);
    for (uint64_t offset = 0; offset + 4096 <= SIZE; offset += 4096) {
        CHECK_INT(mqx_file_window_read(&window, offset, 64, &bytes), 0);
        CHECK_INT(mqx_file_window_read(&window, offset, 4096, &bytes), 0);
        CHECK_INT((uintptr_t)bytes % 8, 0);
        CHECK_INT(bytes[0], byte_at(offset));
        CHECK_INT(bytes[4095], byte_at(offset + 4095));
    }
    CHECK(memory_io_calls(files, MEMORY_READ) - before <= 7);
    CHECK_INT(mqx_file_window_read(&window, 100, 2 << 20, &bytes), 0); /* back, and larger */
    for (uint64_t i = 0; i < 2 << 20; i += 4099) {
        CHECK_INT(bytes[i], byte_at(100 + i));
    }
    mqx_file_window_free(&window);
    memory_io_free(files);
}

static struct mqx_io_ops counting;
static const struct mqx_io_ops *counted;
static uint64_t bytes_read;

static int64_t count_read(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset)
{
    const int64_t got = counted->read(io, fd, to, size, offset);
    bytes_read += got > 0 ? (uint64_t)got : 0;
    return got;
}

/* Two lengths of which none fits twice into a window, with a look at each one's begin. */
TEST(stretches_that_end_in_the_next_window_are_read_once)
{
    const unsigned char *bytes = NULL;
    for (uint64_t length = 290 * 1024; length < 400 * 1024; length += 100 * 1024 + 8) {
        struct memory_io *files = memory_io_new();
        struct mqx_io io = *memory_io_table(files);
        struct mqx_file_window window = {.io = &io, .fd = -1};
        const int fd = make_file(files);
        counted = io.ops;
        counting = *counted;
        counting.read = count_read;
        io.ops = &counting;
        bytes_read = 0;
        mqx_file_window_switch(&window, fd, SIZE);
        for (uint64_t offset = 0; offset + length <= SIZE; offset += length) {
            CHECK_INT(mqx_file_window_read(&window, offset, 64, &bytes), 0);
            CHECK_INT(mqx_file_window_read(&window, offset, length, &bytes), 0);
            for (uint64_t i = 0; i < length; i += 511) {
                CHECK_INT(bytes[i], byte_at(offset + i));
            }
        }
        CHECK(bytes_read <= SIZE);
        mqx_file_window_free(&window);
        memory_io_free(files);
    }
}

TEST(bytes_beyond_the_end_are_refused_and_the_last_ones_are_given)
{
    struct memory_io *files = memory_io_new();
    struct mqx_file_window window = {.io = memory_io_table(files), .fd = -1};
    const unsigned char *bytes = NULL;
    mqx_file_window_switch(&window, make_file(files), SIZE);
    CHECK_INT(mqx_file_window_read(&window, SIZE - 10, 10, &bytes), 0);
    CHECK_INT(bytes[9], byte_at(SIZE - 1));
    CHECK_INT(mqx_file_window_read(&window, SIZE - 10, 11, &bytes), -EIO);
    CHECK_INT(mqx_file_window_read(&window, SIZE + 1, 0, &bytes), -EIO);
    CHECK_INT(mqx_file_window_read(&window, UINT64_MAX, 8, &bytes), -EIO);
    mqx_file_window_free(&window);
    memory_io_free(files);
}

TEST(after_a_failed_read_nothing_of_the_window_is_believed)
{
    struct memory_io *files = memory_io_new();
    struct mqx_file_window window = {.io = memory_io_table(files), .fd = -1};
    const unsigned char *bytes = NULL;
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = EIO,
                                       .ops = 1u << MEMORY_READ};
    mqx_file_window_switch(&window, make_file(files), SIZE);
    CHECK_INT(mqx_file_window_read(&window, 0, 8, &bytes), 0);
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_file_window_read(&window, 1 << 20, 8, &bytes), -EIO);
    CHECK_INT(window.have, 0);
    CHECK_INT(mqx_file_window_read(&window, 0, 8, &bytes), 0);
    CHECK_INT(bytes[3], byte_at(3));
    mqx_file_window_free(&window);
    memory_io_free(files);
}

TEST_MAIN()
