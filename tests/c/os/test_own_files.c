/* Claims of own_files.h: a number that the program gave to another file is not ours any more. */
#include "os/own_files.h"

#include "fixtures/harness.h"

#include <fcntl.h>

TEST(a_noted_descriptor_is_ours_once)
{
    const int fd = open("/", O_RDONLY | O_CLOEXEC);
    mqx_own_files_note(fd);
    CHECK(mqx_own_files_take(fd));
    CHECK(mqx_own_files_take(fd)); /* not noted by now */
    CHECK_INT(close(fd), 0);
}

TEST(a_number_that_has_another_file_or_none_is_not_ours)
{
    int fd = open("/", O_RDONLY | O_CLOEXEC);
    const int other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    mqx_own_files_note(fd);
    CHECK_INT(dup2(other, fd), fd);
    CHECK(!mqx_own_files_take(fd));
    CHECK_INT(close(fd), 0);
    fd = open("/", O_RDONLY | O_CLOEXEC);
    mqx_own_files_note(fd);
    CHECK_INT(close(fd), 0);
    CHECK(!mqx_own_files_take(fd));
    CHECK_INT(close(other), 0);
}

TEST(a_number_above_the_table_counts_as_ours)
{
    mqx_own_files_note(MQX_OWN_FILES_MAX);
    CHECK(mqx_own_files_take(MQX_OWN_FILES_MAX));
}

TEST_MAIN()
