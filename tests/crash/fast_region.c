/*
 * fast_region.c - see fast_region.h. A region file is known by the size it is given; its descriptor
 * is remembered.
 */
#include "fast_region.h"

#include "fixtures/require.h"

#include <string.h>
#include <sys/mman.h>

enum { RANGES_MAX = 128 };

struct range {
    uint64_t offset, size;
};

static struct mqx_io_ops ops;
static const struct mqx_io_ops *below;
static struct mqx_io table;
static unsigned char *memory;
static uint64_t memory_size;
static int region_fd = -1;
static bool mapped;
static struct range ranges[RANGES_MAX];
static uint32_t range_count;

static int fast_truncate(struct mqx_io *io, int fd, uint64_t size)
{
    if (size != memory_size) {
        return below->truncate(io, fd, size);
    }
    region_fd = fd;
    range_count = 0;
    return 0;
}

static int fast_allocate(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    if (fd != region_fd) {
        return below->allocate(io, fd, offset, size);
    }
    for (uint32_t i = 0; i < range_count; i++) { /* memory that was punched, or half a page */
        if (offset >= ranges[i].offset && offset + size <= ranges[i].offset + ranges[i].size) {
            return 0;
        }
    }
    REQUIRE(range_count < RANGES_MAX && offset + size <= memory_size);
    ranges[range_count++] = (struct range){offset, size};
    return 0;
}

static int fast_punch(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    if (fd != region_fd) {
        return below->punch(io, fd, offset, size);
    }
    REQUIRE(offset + size <= memory_size);
    memset(memory + offset, 0, size);
    return 0;
}

static int fast_map(struct mqx_io *io, int fd, uint64_t size, int kind, void **out)
{
    if (kind != MQX_IO_MAP_REGION) {
        return below->map(io, fd, size, kind, out);
    }
    REQUIRE(fd == region_fd && size == memory_size && !mapped);
    mapped = true;
    *out = memory;
    return 0;
}

static int fast_unmap(struct mqx_io *io, void *at, uint64_t size)
{
    if (at != memory) {
        return below->unmap(io, at, size);
    }
    for (uint32_t i = 0; i < range_count; i++) {
        memset(memory + ranges[i].offset, 0, ranges[i].size);
    }
    mapped = false;
    region_fd = -1;
    return 0;
}

/* A restore of the files closes descriptors behind our back; numbers are given again. */
static int fast_open(struct mqx_io *io, int dir, const char *name, int flags, uint32_t mode)
{
    const int fd = below->open(io, dir, name, flags, mode);
    if (fd == region_fd && !mapped) {
        region_fd = -1;
    }
    return fd;
}

struct mqx_io *fast_region_table(struct memory_io *files, uint64_t region_size)
{
    const struct mqx_io *io = memory_io_table(files);
    if (memory_size != region_size) {
        REQUIRE(!mapped);
        if (memory != NULL) {
            REQUIRE(munmap(memory, memory_size) == 0);
        }
        memory = mmap(NULL, region_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        memory_size = region_size;
    }
    below = io->ops;
    ops = *below;
    ops.open = fast_open;
    ops.truncate = fast_truncate;
    ops.allocate = fast_allocate;
    ops.punch = fast_punch;
    ops.map = fast_map;
    ops.unmap = fast_unmap;
    table = (struct mqx_io){.ops = &ops, .context = io->context};
    return &table;
}
