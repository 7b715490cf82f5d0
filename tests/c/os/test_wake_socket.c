/*
 * test_wake_socket.c - hints arrive, cost nothing when nobody is there, and go into no other file.
 */
#include "os/wake_socket.h"

#include "fixtures/harness.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];
static char path[MQX_WAKE_PATH];

static bool is_readable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static int bind_here(struct mqx_file_id *id)
{
    (void)snprintf(folder, sizeof folder, "/tmp/penstock-wake-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/wake", folder);
    return mqx_wake_socket_bind(mqx_io_posix(), path, id);
}

static void remove_here(int fd, const struct mqx_file_id *id)
{
    mqx_wake_socket_close(fd, id);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

TEST(a_hint_makes_the_descriptor_readable_until_it_is_answered)
{
    struct mqx_file_id id;
    const int fd = bind_here(&id);
    struct stat facts;
    CHECK(fd >= 3);
    CHECK(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    CHECK(!is_readable(fd));
    mqx_wake_socket_answer(fd, &id);
    mqx_wake_socket_ring(path);
    CHECK(is_readable(fd));
    mqx_wake_socket_answer(fd, &id);
    CHECK(!is_readable(fd));
    remove_here(fd, &id);
}

TEST(a_full_or_missing_receiver_holds_nobody_up)
{
    struct mqx_file_id id;
    const int fd = bind_here(&id);
    for (int i = 0; i < 5000; i++) {
        mqx_wake_socket_ring(path);
    }
    CHECK(is_readable(fd));
    mqx_wake_socket_close(fd, &id);
    mqx_wake_socket_ring(path); /* the name is there, nobody behind it */
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    mqx_wake_socket_ring(path);
}

/* The sender's number becomes a file, or a connected stream, of the program. */
TEST(a_sender_that_became_another_file_writes_nothing_there)
{
    struct mqx_file_id id;
    const int fd = bind_here(&id);
    mqx_wake_socket_ring(path); /* makes the sender */
    mqx_wake_socket_answer(fd, &id);
    int pair[2];
    const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int other[2] = {file, pair[0]};
    for (int round = 0; round < 2; round++) {
        int replaced = 0;
        for (int at = 3; at < 256; at++) { /* every socket that is not one of this test's */
            struct stat facts;
            struct sockaddr_un name;
            socklen_t size = sizeof name;
            if (at != fd && at != file && at != pair[0] && at != pair[1] &&
                fstat(at, &facts) == 0 && S_ISSOCK(facts.st_mode) &&
                getsockname(at, (struct sockaddr *)(void *)&name, &size) == 0 &&
                name.sun_family == AF_UNIX) {
                CHECK(dup2(other[round], at) == at);
                replaced++;
            }
        }
        CHECK(replaced >= 1);
        mqx_wake_socket_ring(path);
        CHECK(is_readable(fd));
        mqx_wake_socket_answer(fd, &id);
    }
    CHECK(lseek(file, 0, SEEK_END) == 0);
    CHECK(!is_readable(pair[1]));
    (void)close(file);
    (void)close(pair[0]);
    (void)close(pair[1]);
    remove_here(fd, &id);
}

TEST(a_receiver_that_became_another_file_is_left_alone)
{
    struct mqx_file_id id;
    int pair[2];
    const int fd = bind_here(&id);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && dup2(pair[0], fd) == fd);
    CHECK(write(pair[1], "program", 7) == 7);
    mqx_wake_socket_answer(fd, &id);
    CHECK(is_readable(fd));
    mqx_wake_socket_close(fd, &id);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    (void)close(fd);
    (void)close(pair[0]);
    (void)close(pair[1]);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
}

TEST(a_forked_child_does_not_have_the_receiver)
{
    struct mqx_file_id id;
    int status;
    const int fd = bind_here(&id);
    const pid_t child = fork();
    if (child == 0) {
        _exit(fcntl(fd, F_GETFD) < 0 ? 0 : 1);
    }
    CHECK(child > 1 && waitpid(child, &status, 0) == child && status == 0);
    remove_here(fd, &id);
}

TEST(a_name_that_exists_is_not_taken)
{
    struct mqx_file_id id, other;
    const int fd = bind_here(&id);
    CHECK_INT(mqx_wake_socket_bind(mqx_io_posix(), path, &other), -EADDRINUSE);
    mqx_wake_socket_ring(path);
    CHECK(is_readable(fd));
    remove_here(fd, &id);
}

TEST_MAIN()
