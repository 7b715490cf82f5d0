/*
 * wake_socket.c - see wake_socket.h.
 */
#include "os/wake_socket.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/fork_files.h"
#include "os/fork_guard.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; /* as in io.c: 0 to 2 are the program's */

static struct mqx_local_lock making;
static int sender = -1;        /* atomic */
static uint64_t sender_epoch;  /* mqx_fork_epoch() when it was made */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    MQX_ASSERT(strlen(path) < MQX_WAKE_PATH);
    MQX_STATIC_ASSERT(MQX_WAKE_PATH == sizeof address.sun_path, "a path fits");
    memcpy(address.sun_path, path, strnlen(path, MQX_WAKE_PATH - 1));
    return address;
}

/* A new socket that blocks nobody; its descriptor is not one of the program's first three. */
static int new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    MQX_ASSERT(fd >= -1);
    if (fd >= 0 && fd < FIRST_FD) {
        const int higher = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
        (void)close(fd);
        fd = higher;
    }
    return fd < 0 ? -errno : fd;
}

/* The name gets the mode that the socket had before it was bound; then the group is given. */
static int bind_private(const struct mqx_io *io, int fd, const char *path)
{
    const struct sockaddr_un address = address_of(path);
    MQX_ASSERT(fd >= FIRST_FD);
    if (fchmod(fd, 0600) != 0 ||
        bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address) != 0) {
        return -errno;
    }
    if (io->shared && (chown(path, (uid_t)-1, (gid_t)io->group) != 0 || chmod(path, 0660) != 0)) {
        const int err = -errno;
        (void)unlink(path);
        return err;
    }
    return 0;
}

int mqx_wake_socket_bind(struct mqx_io *io, const char *path, struct mqx_file_id *id)
{
    MQX_ASSERT(path[0] == '/');
    MQX_ASSERT(id != NULL);
    if (mqx_fork_files_begin() != MQX_OK) {
        return -EMFILE;
    }
    int fd = new_socket();
    int err = fd < 0 ? fd : bind_private(io, fd, path);
    struct stat facts;
    if (err == 0) {
        err = fstat(fd, &facts) == 0 ? 0 : -errno;
    }
    if (err == 0) {
        *id = (struct mqx_file_id){.device = facts.st_dev, .inode = facts.st_ino};
    }
    if (err < 0 && fd >= 0) {
        (void)close(fd);
        fd = -1;
    }
    mqx_fork_files_end(fd, err < 0 ? 0 : id->device, err < 0 ? 0 : id->inode);
    return err < 0 ? err : fd;
}

static bool is_ours(int fd, const struct mqx_file_id *id)
{
    struct stat facts;
    MQX_ASSERT(id != NULL);
    return fstat(fd, &facts) == 0 && (uint64_t)facts.st_dev == id->device &&
           (uint64_t)facts.st_ino == id->inode;
}

void mqx_wake_socket_close(int fd, const struct mqx_file_id *id)
{
    MQX_ASSERT(fd >= FIRST_FD);
    mqx_fork_files_remove(fd);
    if (is_ours(fd, id)) {
        (void)close(fd);
    }
}

/* The sender of this process, made when there is none, or when `broken` turned out not to be one.
 * That is never closed: its number may be a file of the program. */
static int sender_of(int broken)
{
    MQX_ASSERT(broken >= -1);
    const uint64_t epoch = mqx_fork_epoch();
    int fd = __atomic_load_n(&sender, __ATOMIC_ACQUIRE);
    if (MQX_LIKELY(fd >= 0 && fd != broken && sender_epoch == epoch)) {
        return fd;
    }
    mqx_local_take(&making);
    fd = sender;
    if (fd < 0 || fd == broken || sender_epoch != epoch) {
        fd = new_socket();
        sender_epoch = epoch;
        __atomic_store_n(&sender, fd < 0 ? -1 : fd, __ATOMIC_RELEASE);
    }
    mqx_local_drop(&making);
    return fd;
}

/* 0, or why the descriptor cannot be a socket of this kind any more. */
static int send_hint(int fd, const struct sockaddr_un *address)
{
    MQX_ASSERT(fd >= FIRST_FD);
    const ssize_t sent = sendto(fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL,
                                (const struct sockaddr *)(const void *)address, sizeof *address);
    const int err = sent < 0 ? errno : 0;
    return err == ECONNREFUSED || err == ENOENT || err == EAGAIN || err == ENOBUFS ||
                   err == EACCES || err == EINTR || err == ENOTDIR
               ? 0
               : err;
}

void mqx_wake_socket_ring(const char *path)
{
    MQX_ASSERT(path[0] == '/');
    const int saved = errno; /* the caller is a put, which has succeeded */
    const struct sockaddr_un address = address_of(path);
    int fd = sender_of(-1);
    if (fd >= 0 && send_hint(fd, &address) != 0) {
        fd = sender_of(fd);
        if (fd >= 0) {
            (void)send_hint(fd, &address);
        }
    }
    errno = saved;
}

void mqx_wake_socket_answer(int fd, const struct mqx_file_id *id)
{
    char none;
    MQX_ASSERT(fd >= FIRST_FD);
    if (is_ours(fd, id)) {
        (void)recv(fd, &none, sizeof none, MSG_DONTWAIT);
    }
}
