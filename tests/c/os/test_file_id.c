/* Claims of file_id.h: a descriptor that was closed, or whose number belongs to another file, is
 * found and never closed. */
#include "fixtures/harness.h"

#include "os/file_id.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static struct mqx_io *io;
static int fd;
static struct mqx_file_id id;

static void start(void)
{
    io = mqx_io_posix();
    fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 3);
    CHECK_INT(mqx_file_id_read(io, fd, &id), 0);
    CHECK(id.inode != 0);
}

TEST(a_descriptor_that_is_still_open_is_recognized)
{
    start();
    CHECK_INT(mqx_file_id_check(io, fd, &id), 0);
    mqx_file_id_close(io, &fd, &id);
    CHECK_INT(fd, -1);
    mqx_file_id_close(io, &fd, &id); /* none: nothing to do */
    CHECK_INT(fd, -1);
}

TEST(a_closed_descriptor_is_ebadf)
{
    start();
    CHECK_INT(close(fd), 0);
    CHECK_INT(mqx_file_id_check(io, fd, &id), -EBADF);
    struct mqx_file_id other = id;
    CHECK_INT(mqx_file_id_read(io, fd, &other), -EBADF);
    CHECK_INT(other.inode, 0);
}

TEST(a_number_that_was_given_to_another_file_is_ebadf_and_stays_open)
{
    start();
    const int number = fd;
    const int other = open("/", O_PATH | O_CLOEXEC);
    CHECK(other >= 0);
    CHECK_INT(dup2(other, number), number);
    CHECK_INT(mqx_file_id_check(io, fd, &id), -EBADF);
    mqx_file_id_close(io, &fd, &id);
    CHECK_INT(fd, -1);
    CHECK(fcntl(number, F_GETFD) >= 0);
    CHECK_INT(close(number), 0);
    CHECK_INT(close(other), 0);
}

TEST_MAIN()
