/*
 * file_id.c - see file_id.h.
 */
#include "os/file_id.h"

#include "base/assert.h"

#include <errno.h>

int mqx_file_id_read(struct mqx_io *io, int fd, struct mqx_file_id *out)
{
    struct mqx_io_stat facts = {.inode = 0};
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(out != NULL);
    const int err = io->ops->stat(io, fd, &facts);
    *out = err == 0 ? mqx_file_id_of(&facts) : (struct mqx_file_id){.inode = 0};
    return err;
}

int mqx_file_id_check(struct mqx_io *io, int fd, const struct mqx_file_id *id)
{
    struct mqx_file_id now;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(id->inode != 0); /* it was read when the file was opened */
    const int err = mqx_file_id_read(io, fd, &now);
    return err != 0 ? err : now.inode == id->inode && now.device == id->device ? 0 : -EBADF;
}

void mqx_file_id_close(struct mqx_io *io, int *fd, const struct mqx_file_id *id)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(fd != NULL);
    if (*fd >= 0 && mqx_file_id_check(io, *fd, id) != -EBADF) {
        (void)io->ops->close(io, *fd);
    }
    *fd = -1;
}
