/* Claims of memory_file.h: a reference leads to the region's memory while somebody has it. */
#include "region/memory_file.h"

#include "fixtures/region_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int32_t me(void)
{
    return (int32_t)getpid();
}

static struct mqx_io *io(void)
{
    return memory_io_table(region_files);
}

static int make(int dir, const char *name)
{
    int fd = -1;
    CHECK_INT(mqx_memory_file_create(io(), dir, name, &fd), 0);
    CHECK(fd >= 0);
    return fd;
}

static int follow(int dir, const struct mqx_peers *peers, int *fd)
{
    bool followed = false;
    *fd = io()->ops->open(io(), dir, "r", MQX_IO_READ, 0);
    CHECK(*fd >= 0);
    const int status = mqx_memory_file_follow(io(), fd, peers, &followed);
    CHECK(followed);
    return status;
}

TEST(a_reference_leads_to_the_file_that_somebody_has)
{
    const int32_t pid = me();
    const struct mqx_peers peers = {&pid, 1};
    uint32_t value = 0x12345678, seen = 0;
    int other = -1;
    const int dir = region_dir();
    const int fd = make(dir, "r");
    CHECK_INT(mqx_io_write_all(io(), fd, &value, sizeof value, 100, 0), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(follow(dir, i == 0 ? &peers : NULL, &other), 0);
        CHECK_INT(mqx_io_read_all(io(), other, &seen, sizeof seen, 100), 0);
        CHECK_INT(seen, value);
        mqx_memory_file_close(io(), other);
    }
    mqx_memory_file_close(io(), fd);
}

TEST(a_file_that_nobody_has_is_gone_and_the_process_that_should_have_it_is_named)
{
    const int32_t pid = me();
    const struct mqx_peers peers = {&pid, 1}, nobody = {NULL, 0};
    char expected[64];
    int other = -1;
    const int dir = region_dir();
    const int fd = make(dir, "r");
    CHECK_INT(follow(dir, &nobody, &other), MQRC_ENVIRONMENT_ERROR);
    mqx_memory_file_close(io(), fd);
    CHECK_INT(follow(dir, &peers, &other), MQRC_ENVIRONMENT_ERROR);
    snprintf(expected, sizeof expected, "process %d, which has closed its descriptor", pid);
    CHECK(strstr(mqx_error_text(), expected) != NULL);
    CHECK_INT(mqx_memory_file_hidden_pid(io(), dir, "r"), 0);
    CHECK_INT(memory_io_open_count(region_files), 1); /* the directory */
}

TEST(a_process_that_refuses_is_named_and_told_apart_from_one_that_is_gone)
{
    const int32_t pids[] = {me(), me() + 1};
    const struct mqx_peers peers = {pids, 2};
    const struct memory_fault refused = {.kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true,
                                         .ops = 1u << MEMORY_OPEN_OF_PROCESS, .error = EACCES};
    int other = -1;
    const int dir = region_dir();
    const int fd = make(dir, "r");
    memory_io_set_fault(region_files, &refused);
    CHECK_INT(follow(dir, &peers, &other), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "PR_SET_DUMPABLE") != NULL);
    CHECK_INT(mqx_memory_file_hidden_pid(io(), dir, "r"), me());
    memory_io_set_fault(region_files, NULL);
    CHECK_INT(follow(dir, &peers, &other), 0);
    mqx_memory_file_close(io(), other);
    mqx_memory_file_close(io(), fd);
}

TEST(what_is_no_reference_is_left_as_it_is)
{
    static const char text[] = "PSTKREGN, and more than forty bytes of something else";
    bool followed = true;
    const int dir = region_dir();
    memory_io_put(region_files, "/shm/r", text, sizeof text);
    int fd = io()->ops->open(io(), dir, "r", MQX_IO_READ, 0);
    const int before = fd;
    CHECK_INT(mqx_memory_file_follow(io(), &fd, NULL, &followed), 0);
    CHECK(!followed && fd == before);
    CHECK_INT(mqx_memory_file_hidden_pid(io(), dir, "r"), 0);
    CHECK_INT(mqx_memory_file_hidden_pid(io(), dir, "no such file"), 0);
    memory_io_cut(region_files, "/shm/r", 10);
    CHECK_INT(mqx_memory_file_follow(io(), &fd, NULL, &followed), 0);
    CHECK(!followed && fd == before);
}

TEST(a_name_that_is_taken_leaves_nothing_behind)
{
    int fd = 0;
    const int dir = region_dir();
    memory_io_put(region_files, "/shm/r", "x", 1);
    CHECK_INT(mqx_memory_file_create(io(), dir, "r", &fd), 0);
    CHECK_INT(fd, -EEXIST);
    CHECK_INT(memory_io_open_count(region_files), 1);
}

TEST(a_forked_child_does_not_keep_the_file)
{
    struct mqx_io *real = mqx_io_posix();
    char folder[] = "/dev/shm/penstock-test-XXXXXX";
    bool followed = false;
    int fd = -1, status = 0;
    CHECK(mkdtemp(folder) != NULL);
    const int dir = real->ops->open_dir(real, folder);
    CHECK_INT(mqx_memory_file_create(real, dir, "r", &fd), 0);
    int other = real->ops->open(real, dir, "r", MQX_IO_READ, 0);
    CHECK_INT(mqx_memory_file_follow(real, &other, NULL, &followed), 0);
    CHECK(fd >= 0 && followed && other >= 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(fcntl(fd, F_GETFD) != -1 || fcntl(other, F_GETFD) != -1 ||
              fcntl(dir, F_GETFD) == -1);
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    mqx_memory_file_close(real, other);
    mqx_memory_file_close(real, fd);
    CHECK_INT(real->ops->unlink(real, dir, "r"), 0);
    CHECK_INT(real->ops->close(real, dir), 0);
    CHECK_INT(rmdir(folder), 0);
}

TEST(a_region_in_memory_is_opened_by_its_reference_and_a_system_without_gets_a_file)
{
    const struct memory_fault denied = {.kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true,
                                        .ops = 1u << MEMORY_MEMORY_FILE, .error = EPERM};
    struct mqx_region_plan plan = region_plan();
    struct mqx_region other;
    plan.in_memory = true;
    for (int i = 0; i < 2; i++) {
        const int dir = region_dir();
        memory_io_set_fault(region_files, i == 1 ? &denied : NULL);
        CHECK_INT(mqx_region_create(io(), dir, "r", &plan, &region), 0);
        CHECK_INT(region.in_memory, i == 0);
        CHECK_INT(mqx_region_open(io(), dir, "r", NULL, &other), 0);
        CHECK_INT(other.in_memory, i == 0);
        CHECK(other.base == region.base);
        mqx_region_close(&other);
    }
}

TEST_MAIN()
