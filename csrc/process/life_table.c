/*
 * life_table.c - see life_table.h.
 */
#include "process/life_table.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/host_info.h"

#include <errno.h>
#include <string.h>

static uint64_t offset_of(uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    return MQX_LIFE_TABLE_OFFSET + (uint64_t)slot * sizeof(struct mqx_life_entry);
}

int mqx_life_table_write(struct mqx_io *io, int fd, uint32_t slot,
                         const struct mqx_life_entry *entry)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(entry->zero == 0);
    const int err = mqx_io_write_all(io, fd, entry, sizeof *entry, offset_of(slot), 0);
    return err == 0 || err == -ENOSPC || err == -EDQUOT
               ? MQX_OK
               : mqx_io_reason(err, "writing the table of processes in the file lock");
}

/* What lies behind the end of the file reads as zeroes. */
static int read_entries(struct mqx_io *io, int fd, uint32_t first, uint32_t count,
                        struct mqx_life_entry *out)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(first + count <= MQX_PROCESS_MAX);
    memset(out, 0, count * sizeof *out);
    const int64_t n = io->ops->read(io, fd, out, count * sizeof *out, offset_of(first));
    return n >= 0 ? MQX_OK
                  : mqx_io_reason((int)n, "reading the table of processes in the file lock");
}

int mqx_life_table_read(struct mqx_io *io, int fd, uint32_t slot, struct mqx_life_entry *out)
{
    return read_entries(io, fd, slot, 1, out);
}

int mqx_life_table_read_all(struct mqx_io *io, int fd, struct mqx_life_entry out[MQX_PROCESS_MAX])
{
    return read_entries(io, fd, 0, MQX_PROCESS_MAX, out);
}

int mqx_life_table_clear(struct mqx_io *io, int fd)
{
    MQX_ASSERT(fd >= 0);
    static const struct mqx_life_entry none;
    struct mqx_life_entry entries[MQX_PROCESS_MAX];
    int status = mqx_life_table_read_all(io, fd, entries);
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && status == MQX_OK; slot++) {
        if (memcmp(&entries[slot], &none, sizeof none) != 0) {
            status = mqx_life_table_write(io, fd, slot, &none);
        }
    }
    return status;
}

bool mqx_life_entry_lives(const struct mqx_life_entry *entry, uint64_t pid_namespace)
{
    MQX_ASSERT(entry != NULL);
    MQX_ASSERT(pid_namespace != 0);
    return entry->pid > 0 && entry->thread > 0 && entry->start_time != 0 &&
           entry->pid_namespace == pid_namespace &&
           !mqx_thread_has_ended(entry->pid, entry->thread, entry->start_time);
}
