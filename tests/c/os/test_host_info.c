/* Claims of host_info.c: what it says of this machine is what /proc says. */
#include "os/host_info.h"
#include "base/error.h"
#include "fixtures/harness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

TEST(boot_pid_namespace_and_libc_are_those_of_this_process_each_time)
{
    struct mqx_host_info first, second;
    struct stat facts;
    static const uint8_t zeroes[16];
    CHECK_INT(mqx_host_info_read(&first), 0);
    CHECK_INT(mqx_host_info_read(&second), 0);
    CHECK_MEM(&first, &second, sizeof first);
    CHECK(memcmp(first.boot_id, zeroes, sizeof zeroes) != 0);
    CHECK_INT(stat("/proc/self/ns/pid", &facts), 0);
    CHECK_INT(first.pid_namespace, facts.st_ino);
    CHECK(strlen(first.libc) > 4);
}

TEST(the_boot_id_is_the_one_of_proc)
{
    struct mqx_host_info info;
    char text[64] = "", expected[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    CHECK(file != NULL);
    CHECK(fgets(text, sizeof text, file) != NULL);
    (void)fclose(file);
    CHECK_INT(mqx_host_info_read(&info), 0);
    for (int i = 0, n = 0; i < 16; i++) {
        n += snprintf(expected + n, sizeof expected - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.boot_id[i]);
    }
    text[strcspn(text, "\n")] = '\0';
    CHECK_STR(expected, text);
}

TEST(random_bytes_differ_and_fill_what_was_asked_for_alone)
{
    uint8_t first[256] = {0}, second[256] = {0}, part[8] = {0};
    CHECK_INT(mqx_random_bytes(first, sizeof first), 0);
    CHECK_INT(mqx_random_bytes(second, sizeof second), 0);
    CHECK(memcmp(first, second, sizeof first) != 0);
    CHECK_INT(mqx_random_bytes(part, 4), 0);
    CHECK_INT(part[4] | part[5] | part[6] | part[7], 0);
}

TEST(a_process_that_waits_for_its_parent_exists_but_has_ended)
{
    const uint64_t start = mqx_own_start_time();
    int go[2];
    CHECK(start > 0);
    CHECK_INT(mqx_own_start_time(), start);
    CHECK(pipe(go) == 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const uint64_t mine = mqx_own_start_time();
        (void)!write(go[1], &mine, sizeof mine);
        _exit(0);
    }
    uint64_t theirs = 0;
    CHECK_INT(read(go[0], &theirs, sizeof theirs), sizeof theirs);
    for (int i = 0; i < 1000 && !mqx_thread_has_ended(child, child, theirs); i++) {
        usleep(1000);
    }
    CHECK(mqx_thread_exists(child, child));
    CHECK(mqx_thread_has_ended(child, child, theirs));
    CHECK_INT(waitpid(child, NULL, 0), child);
    CHECK(!mqx_thread_exists(child, child));
    CHECK(mqx_thread_has_ended(child, child, theirs));
    close(go[0]);
    close(go[1]);
}

TEST(a_thread_with_the_numbers_of_an_ended_one_is_told_apart_by_its_start_time)
{
    const int32_t self = (int32_t)getpid();
    const uint64_t start = mqx_own_start_time();
    CHECK(mqx_thread_exists(self, self));
    CHECK(!mqx_thread_has_ended(self, self, start));
    CHECK(mqx_thread_has_ended(self, self, start - 1));
    CHECK(!mqx_thread_exists(self, 1)); /* a thread of another process */
    CHECK(mqx_thread_exists(1, 1));     /* of another user, perhaps */
}

TEST(the_room_of_a_directory_is_known_and_that_of_nothing_is_unlimited)
{
    CHECK(mqx_room_at("/") < UINT64_MAX);
    CHECK(mqx_size_at("/") < UINT64_MAX && mqx_size_at("/") >= mqx_room_at("/"));
    CHECK(mqx_size_at("/proc") == UINT64_MAX && mqx_size_at("/no such directory") == UINT64_MAX);
    CHECK(mqx_room_at("/no such directory") == UINT64_MAX);
    CHECK(strstr(mqx_program_name(), "test_host_info") != NULL);
}

TEST(the_machine_has_memory_and_proc_has_our_pids)
{
    CHECK(mqx_physical_memory() > (64u << 20) && mqx_physical_memory() < UINT64_MAX);
    CHECK(mqx_proc_is_ours());
}

TEST_MAIN()
