/*
 * drop_cache.c - see drop_cache.h. Knows files by the name under which they were opened; only
 * writes with data sync are followed, since what the core writes otherwise it never believes after
 * a failed flush.
 */
#include "drop_cache.h"

#include "fixtures/require.h"

#include <stdlib.h>
#include <string.h>

enum { FDS_MAX = 1100, LOST_MAX = 32, NAME_MAX_BYTES = 80 };

struct lost {
    char name[NAME_MAX_BYTES];
    uint64_t offset, size;
    uint8_t *before, *after;
};

static struct mqx_io_ops ops;
static const struct mqx_io_ops *below;
static struct mqx_io table;
static struct memory_io *memory;
static struct {
    char name[NAME_MAX_BYTES];
    int dir;
} opened[FDS_MAX];
static struct lost lost[LOST_MAX];
static uint32_t lost_count;
static uint64_t choice;

static int dc_open(struct mqx_io *io, int dir, const char *name, int flags, uint32_t mode)
{
    const int fd = below->open(io, dir, name, flags, mode);
    if (fd >= 0 && fd < FDS_MAX && strlen(name) < NAME_MAX_BYTES) {
        memcpy(opened[fd].name, name, strlen(name) + 1);
        opened[fd].dir = dir;
    }
    return fd;
}

static int dc_rename(struct mqx_io *io, int dir, const char *from, const char *to)
{
    const int result = below->rename(io, dir, from, to);
    for (uint32_t i = 0; result == 0 && i < lost_count; i++) {
        if (strcmp(lost[i].name, from) == 0 && strlen(to) < NAME_MAX_BYTES) {
            memcpy(lost[i].name, to, strlen(to) + 1);
        }
    }
    return result;
}

static uint64_t gather(const struct iovec *parts, int part_count, uint8_t *to)
{
    uint64_t size = 0;
    for (int i = 0; i < part_count; i++) {
        if (to != NULL) {
            memcpy(to + size, parts[i].iov_base, parts[i].iov_len);
        }
        size += parts[i].iov_len;
    }
    return size;
}

static int dc_write(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                    uint64_t offset, int flags)
{
    char path[160] = "/home/QM1/journal/";
    uint64_t file_size = 0;
    const uint64_t size = gather(parts, part_count, NULL);
    uint8_t *before = NULL;
    if ((flags & MQX_IO_DSYNC) != 0 && fd < FDS_MAX) {
        (void)strncat(path, opened[fd].name, NAME_MAX_BYTES);
        const uint8_t *bytes = memory_io_bytes(memory, path, &file_size);
        if (bytes != NULL && offset + size <= file_size) {
            before = malloc(size);
            REQUIRE(before != NULL);
            memcpy(before, bytes + offset, size);
        }
    }
    const int result = below->write(io, fd, parts, part_count, offset, flags);
    if (result == 0 || before == NULL || lost_count == LOST_MAX) {
        free(before);
        return result;
    }
    struct lost *entry = &lost[lost_count++];
    *entry = (struct lost){.offset = offset, .size = size, .before = before};
    memcpy(entry->name, opened[fd].name, sizeof entry->name);
    entry->after = malloc(size);
    REQUIRE(entry->after != NULL);
    (void)gather(parts, part_count, entry->after);
    return result;
}

/* False: the file cannot be written now either; it stays open what is on the medium. */
static bool choose_version(struct mqx_io *io, int fd, struct lost *entry)
{
    const int to = below->open(io, opened[fd].dir, entry->name, MQX_IO_WRITE, 0);
    if (to < 0) {
        return false;
    }
    const struct iovec part = {(choice++ & 1) != 0 ? entry->after : entry->before, entry->size};
    const int result = below->write(io, to, &part, 1, entry->offset, MQX_IO_DSYNC);
    (void)below->close(io, to);
    return result == 0;
}

static int dc_drop_cache(struct mqx_io *io, int fd)
{
    for (uint32_t i = lost_count; i-- > 0;) {
        if (strcmp(lost[i].name, opened[fd].name) == 0 && choose_version(io, fd, &lost[i])) {
            free(lost[i].before);
            free(lost[i].after);
            lost[i] = lost[--lost_count];
        }
    }
    return below->drop_cache(io, fd);
}

struct mqx_io *drop_cache_table(struct memory_io *files, uint64_t seed)
{
    const struct mqx_io *io = memory_io_table(files);
    while (lost_count > 0) {
        lost_count -= 1;
        free(lost[lost_count].before);
        free(lost[lost_count].after);
    }
    memory = files;
    choice = seed;
    below = io->ops;
    ops = *below;
    ops.open = dc_open;
    ops.rename = dc_rename;
    ops.write = dc_write;
    ops.drop_cache = dc_drop_cache;
    table = (struct mqx_io){.ops = &ops, .context = io->context};
    return &table;
}
