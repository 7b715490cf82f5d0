/* Claims of fork_files.h: which descriptors a forked child has. */
#include "os/fork_files.h"

#include "base/error.h"
#include "fixtures/harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Opens a file as the lock file is opened, and registers it. */
static int open_registered(const char *path)
{
    struct stat facts;
    CHECK_INT(mqx_fork_files_begin(), 0);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &facts) == 0);
    mqx_fork_files_end(fd, (uint64_t)facts.st_dev, (uint64_t)facts.st_ino);
    return fd;
}

/* Is the descriptor open in a child? */
static bool child_has(int fd)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(fcntl(fd, F_GETFD) >= 0 ? 1 : 0);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

TEST(a_registered_descriptor_is_closed_in_a_forked_child_and_stays_open_in_the_parent)
{
    const int fd = open_registered("/proc/self/exe");
    CHECK(!child_has(fd));
    CHECK(fcntl(fd, F_GETFD) >= 0);
    mqx_fork_files_remove(fd);
    CHECK(child_has(fd));
    CHECK_INT(close(fd), 0);
}

TEST(a_number_that_the_program_gave_to_another_file_is_left_alone)
{
    const int fd = open_registered("/proc/self/exe");
    const int other = open("/", O_RDONLY | O_CLOEXEC);
    CHECK_INT(dup2(other, fd), fd);
    CHECK(child_has(fd));
    mqx_fork_files_remove(fd);
    CHECK_INT(close(fd), 0);
    CHECK_INT(close(other), 0);
}

TEST(a_descriptor_that_was_not_opened_is_not_registered)
{
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK_INT(mqx_fork_files_begin(), 0);
    mqx_fork_files_end(-1, 0, 0);
    CHECK_INT(mqx_fork_files_begin(), 0);
    mqx_fork_files_end(fd, 1, 1); /* not that file */
    CHECK(child_has(fd));
    CHECK_INT(close(fd), 0);
}

TEST(more_descriptors_than_there_is_room_for_are_refused_and_room_comes_back)
{
    static int fds[MQX_FORK_FILES_MAX];
    struct stat facts;
    CHECK_INT(stat("/", &facts), 0);
    fds[0] = open("/", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < MQX_FORK_FILES_MAX; i++) { /* one number many times: the count matters */
        CHECK_INT(mqx_fork_files_begin(), 0);
        mqx_fork_files_end(fds[0], (uint64_t)facts.st_dev, (uint64_t)facts.st_ino);
    }
    CHECK_INT(mqx_fork_files_begin(), MQRC_RESOURCE_PROBLEM);
    mqx_fork_files_remove(fds[0]);
    CHECK_INT(mqx_fork_files_begin(), 0);
    mqx_fork_files_end(-1, 0, 0);
    CHECK_INT(close(fds[0]), 0);
}

TEST_MAIN()
