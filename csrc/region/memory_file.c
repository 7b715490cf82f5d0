/*
 * memory_file.c - see memory_file.h.
 */
#include "region/memory_file.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/fork_files.h"
#include "os/host_info.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define REFERENCE_MAGIC "PSTKMEMF"

struct reference { /* the contents of the file; not beyond this boot, so native byte order */
    char magic[8];
    uint64_t device, inode; /* of the memory file */
    uint64_t pid_namespace; /* of who made it */
    int32_t pid;
    uint32_t zero;
};
MQX_STATIC_ASSERT(sizeof(struct reference) == 40, "no padding");

static bool read_reference(struct mqx_io *io, int fd, struct reference *out)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(out != NULL);
    return mqx_io_read_all(io, fd, out, sizeof *out, 0) == 0 &&
           memcmp(out->magic, REFERENCE_MAGIC, sizeof out->magic) == 0 && out->inode != 0 &&
           out->pid > 0 && out->zero == 0;
}

/* Takes care that a forked child does not keep the descriptor, if `fd` is one. */
static void end_opening(struct mqx_io *io, int fd)
{
    struct mqx_io_stat facts = {.inode = 0};
    MQX_ASSERT(io != NULL);
    const bool known = fd >= 0 && io->ops->stat(io, fd, &facts) == 0;
    MQX_ASSERT(!known || facts.inode != 0);
    mqx_fork_files_end(known ? fd : -1, facts.device, facts.inode);
}

/* ---- creating ---- */

/* 0 or a negated errno; nothing is left of it after an error. */
static int write_reference(struct mqx_io *io, int dir, const char *name,
                           const struct reference *reference)
{
    MQX_ASSERT(reference->inode != 0);
    MQX_ASSERT(reference->pid > 0);
    const int fd = io->ops->open(io, dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    if (fd < 0) {
        return fd;
    }
    const int err = mqx_io_write_all(io, fd, reference, sizeof *reference, 0, 0);
    (void)io->ops->close(io, fd);
    if (err != 0) {
        (void)io->ops->unlink(io, dir, name);
    }
    return err;
}

static int refer_to(struct mqx_io *io, int dir, const char *name, int fd,
                    const struct mqx_host_info *here)
{
    struct mqx_io_stat facts;
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(here->pid_namespace != 0);
    const int err = io->ops->stat(io, fd, &facts);
    struct reference reference = {.pid_namespace = here->pid_namespace, .pid = (int32_t)getpid()};
    if (err != 0) {
        return err;
    }
    memcpy(reference.magic, REFERENCE_MAGIC, sizeof reference.magic);
    reference.device = facts.device;
    reference.inode = facts.inode;
    return write_reference(io, dir, name, &reference);
}

int mqx_memory_file_create(struct mqx_io *io, int dir, const char *name, int *out_fd)
{
    struct mqx_host_info here;
    MQX_ASSERT(name[0] != '\0');
    MQX_ASSERT(out_fd != NULL);
    int status = mqx_host_info_read(&here);
    if (status == MQX_OK) {
        status = mqx_fork_files_begin();
    }
    if (status != MQX_OK) {
        return status;
    }
    const int fd = io->ops->memory_file(io, name);
    end_opening(io, fd);
    const int err = fd < 0 ? fd : refer_to(io, dir, name, fd, &here);
    if (fd >= 0 && err != 0) {
        mqx_memory_file_close(io, fd);
    }
    *out_fd = err != 0 ? err : fd;
    return MQX_OK;
}

void mqx_memory_file_close(struct mqx_io *io, int fd)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(fd >= 0);
    mqx_fork_files_remove(fd);
    (void)io->ops->close(io, fd);
}

/* ---- finding ---- */

static MQX_COLD int refuse(int negated_errno, int32_t pid)
{
    MQX_ASSERT(negated_errno < 0);
    MQX_ASSERT(pid >= 0);
    if (negated_errno == -EACCES) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the shared region is in the memory of process %d, which lets no other "
                        "process open it: it has made itself undumpable (PR_SET_DUMPABLE), has "
                        "changed its user, or has capabilities that this one has not; end it, or "
                        "set region.dir to a large tmpfs", pid);
    }
    if (negated_errno == -ENOENT) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the shared region is in the memory of process %d, which has closed its "
                        "descriptor of it (closerange?); end that process", pid);
    }
    return mqx_io_reason(negated_errno, "opening the shared region of another process");
}

/* From the first peer that gives it. -EACCES rather than -ENOENT when one refused; *out_pid is who
 * said so. */
static int open_from(struct mqx_io *io, const struct reference *reference,
                     const struct mqx_peers *peers, int32_t *out_pid)
{
    static const int32_t anyone = 0;
    const struct mqx_peers all = peers != NULL ? *peers : (struct mqx_peers){&anyone, 1};
    int result = -ENOENT;
    MQX_ASSERT(reference->inode != 0);
    MQX_ASSERT(all.pid != NULL || all.count == 0);
    *out_pid = reference->pid;
    for (uint32_t i = 0; i < all.count && result < 0; i++) {
        const int fd =
            io->ops->open_of_process(io, all.pid[i], reference->device, reference->inode);
        if (fd >= 0 || fd != -ENOENT || i == 0) {
            *out_pid = all.pid[i];
            result = fd;
        }
    }
    return result;
}

int mqx_memory_file_follow(struct mqx_io *io, int *fd, const struct mqx_peers *peers,
                           bool *out_followed)
{
    struct reference reference;
    int32_t pid = 0;
    MQX_ASSERT(*fd >= 0);
    MQX_ASSERT(out_followed != NULL);
    *out_followed = read_reference(io, *fd, &reference);
    if (!*out_followed) {
        return MQX_OK;
    }
    (void)io->ops->close(io, *fd);
    *fd = -1;
    const int status = mqx_fork_files_begin();
    if (status != MQX_OK) {
        return status;
    }
    *fd = open_from(io, &reference, peers, &pid);
    end_opening(io, *fd);
    return *fd >= 0 ? MQX_OK : refuse(*fd, pid);
}

int32_t mqx_memory_file_hidden_pid(struct mqx_io *io, int dir, const char *name)
{
    struct reference reference;
    struct mqx_host_info here;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(dir >= 0);
    const int fd = io->ops->open(io, dir, name, MQX_IO_READ, 0);
    const bool found = fd >= 0 && read_reference(io, fd, &reference);
    if (fd >= 0) {
        (void)io->ops->close(io, fd);
    }
    if (!found || mqx_host_info_read(&here) != MQX_OK) {
        return 0;
    }
    if (reference.pid_namespace != here.pid_namespace) {
        return reference.pid;
    }
    const int of_creator =
        io->ops->open_of_process(io, reference.pid, reference.device, reference.inode);
    if (of_creator >= 0) {
        (void)io->ops->close(io, of_creator);
    }
    return of_creator == -EACCES ? reference.pid : 0;
}
