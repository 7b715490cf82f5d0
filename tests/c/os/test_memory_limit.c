/* Claims of memory_limit.c: the least limit of the own control group and of those above it counts,
 * in both versions; what cannot be read sets none. */
#include "os/memory_limit.h"
#include "fixtures/harness.h"

#include <sys/stat.h>

static char root[] = "/tmp/penstock-groups-XXXXXX";

static char *path_of(const char *name)
{
    static char path[4][512];
    static int next;
    char *out = path[next++ % 4];
    (void)snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(fclose(file), 0);
}

static uint64_t limit_with(const char *list)
{
    write_text("list", list);
    return mqx_memory_limit_in(path_of("list"), path_of("v2"), path_of("v1"));
}

TEST(the_folders_are_made)
{
    static const char *const folders[] = {"v2", "v2/a", "v2/a/b", "v1", "v1/a", "v1/a/b"};
    CHECK(mkdtemp(root) != NULL);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(folders); i++) {
        CHECK_INT(mkdir(path_of(folders[i]), 0700), 0);
    }
}

TEST(without_a_limit_or_without_control_groups_there_is_none)
{
    CHECK(limit_with("0::/a/b\n") == UINT64_MAX);
    CHECK(limit_with("") == UINT64_MAX);
    CHECK(limit_with("nonsense\n") == UINT64_MAX);
    write_text("v2/a/b/memory.max", "max\n");
    write_text("v1/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(limit_with("0::/a/b\n") == UINT64_MAX);
    CHECK(limit_with("5:cpu,memory:/a/b\n") == UINT64_MAX);
    CHECK(mqx_memory_limit_in(path_of("no list"), path_of("v2"), path_of("v1")) == UINT64_MAX);
}

TEST(the_least_of_the_own_group_and_of_those_above_counts)
{
    write_text("v2/a/b/memory.max", "3000000\n");
    CHECK_INT(limit_with("0::/a/b\n"), 3000000);
    write_text("v2/a/memory.high", "2000000\n");
    CHECK_INT(limit_with("0::/a/b\n"), 2000000);
    write_text("v2/memory.max", "1000000\n");
    CHECK_INT(limit_with("0::/a/b\n"), 1000000);
    CHECK_INT(limit_with("0::/\n"), 1000000);
}

TEST(a_group_that_is_not_visible_leaves_those_above_it)
{
    CHECK_INT(limit_with("0::/docker/0123456789abcdef\n"), 1000000);
}

TEST(version_1_has_its_own_mount_and_file)
{
    write_text("v1/a/memory.limit_in_bytes", "500000\n");
    CHECK_INT(limit_with("5:cpu,memory:/a/b\n"), 500000);
    CHECK_INT(limit_with("7:memory,pids:/a/b\n0::/a/b\n"), 500000);
    CHECK(limit_with("7:memorylike:/a/b\n") == UINT64_MAX);
}

TEST(this_process_has_a_limit_that_is_not_zero)
{
    CHECK(mqx_memory_limit() > 0);
}

TEST(the_folders_are_removed)
{
    static const char *const names[] = {
        "v2/a/b/memory.max", "v2/a/memory.high", "v2/memory.max", "v1/a/b/memory.limit_in_bytes",
        "v1/a/memory.limit_in_bytes", "list"};
    static const char *const folders[] = {"v2/a/b", "v2/a", "v2", "v1/a/b", "v1/a", "v1"};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(names); i++) {
        CHECK_INT(unlink(path_of(names[i])), 0);
    }
    for (size_t i = 0; i < MQX_ARRAY_COUNT(folders); i++) {
        CHECK_INT(rmdir(path_of(folders[i])), 0);
    }
    CHECK_INT(rmdir(root), 0);
}

TEST_MAIN()
