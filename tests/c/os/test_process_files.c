/* Claims of process_files.h: files of other processes are found, opened and never mistaken. */
#include "os/process_files.h"
#include "fixtures/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int made(struct stat *facts)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, facts) == 0);
    CHECK_INT(write(fd, "abc", 3), 3);
    return fd;
}

/* A child that has our descriptors, without those numbered in `close_it` and without consent if
 * `hidden`, until the pipe is closed. */
static pid_t keeper(const int go[2], int close_it, bool hidden)
{
    char byte = 0;
    int ready[2];
    CHECK_INT(pipe(ready), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        if (close_it >= 0) {
            close(close_it);
        }
        if (hidden) {
            (void)prctl(PR_SET_DUMPABLE, 0);
        }
        _exit(write(ready[1], "x", 1) == 1 ? (int)read(go[0], &byte, 1) : 1);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

static int open_of(pid_t pid, const struct stat *facts)
{
    return mqx_process_file_open((int32_t)pid, (uint64_t)facts->st_dev, (uint64_t)facts->st_ino);
}

TEST(processes_that_have_a_file_open_are_named)
{
    char text[64], expected[16];
    int go[2];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && pipe(go) == 0);
    fflush(NULL);
    const pid_t child = fork(); /* keeps the descriptor */
    if (child == 0) {
        char byte;
        close(go[1]);
        _exit((int)read(go[0], &byte, 1));
    }
    mqx_processes_with_file(fd, text, sizeof text);
    snprintf(expected, sizeof expected, "%d", (int)child);
    CHECK(strstr(text, expected) != NULL);
    close(go[1]);
    CHECK_INT(waitpid(child, NULL, 0), child);
    mqx_processes_with_file(fd, text, sizeof text);
    CHECK(strstr(text, expected) == NULL);
    close(fd);
    close(go[0]);
}

TEST(a_file_without_a_name_is_opened_through_a_process_that_has_it)
{
    struct stat facts;
    char text[4] = "";
    int go[2];
    const int fd = made(&facts);
    CHECK_INT(pipe(go), 0);
    const pid_t has = keeper(go, -1, false), lost = keeper(go, fd, false);
    close(fd);
    CHECK_INT(open_of(lost, &facts), -ENOENT);
    CHECK_INT(open_of(getpid(), &facts), -ENOENT);
    for (int i = 0; i < 2; i++) { /* of that process, and of any */
        const int again = open_of(i == 0 ? has : 0, &facts);
        CHECK(again >= 0);
        CHECK_INT(pread(again, text, 3, 0), 3);
        CHECK_STR(text, "abc");
        CHECK_INT(pwrite(again, "abc", 3, 0), 3);
        CHECK((fcntl(again, F_GETFD) & FD_CLOEXEC) != 0);
        close(again);
    }
    close(go[1]);
    CHECK_INT(waitpid(has, NULL, 0), has);
    CHECK_INT(waitpid(lost, NULL, 0), lost);
    CHECK_INT(open_of(has, &facts), -ENOENT);
    CHECK_INT(open_of(0, &facts), -ENOENT);
    close(go[0]);
}

static int of_hidden(const struct stat *facts, pid_t hidden)
{
    fflush(NULL);
    const pid_t child = fork();
    int status = 0;
    if (child == 0) { /* nobody special: root may look everywhere */
        const bool plain = geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
        _exit(plain ? -open_of(hidden, facts) : 1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_process_that_lets_nobody_look_is_no_process_without_the_file)
{
    struct stat facts;
    int go[2];
    const int fd = made(&facts);
    CHECK_INT(pipe(go), 0);
    const pid_t hidden = keeper(go, -1, true);
    CHECK_INT(of_hidden(&facts, hidden), EACCES);
    close(go[1]);
    CHECK_INT(waitpid(hidden, NULL, 0), hidden);
    close(go[0]);
    close(fd);
}

TEST_MAIN()
