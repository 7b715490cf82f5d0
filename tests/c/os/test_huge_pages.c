/* Claims of huge_pages.h: blocks are whole, empty and no more than was asked for, whatever the
 * system lends; and it says why it lends none. */
#include "os/huge_pages.h"
#include "fixtures/harness.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { BLOCKS = 4, FILE_BLOCKS = 8 };

static char root[] = "/tmp/penstock-huge-XXXXXX";

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

static const char *refusal(const char *setting, bool in_memory)
{
    static char text[MQX_HUGE_TEXT];
    memset(text, 'x', sizeof text);
    write_text("shmem_enabled", setting);
    mqx_huge_refusal_in(root, path_of("mounts"), in_memory, makedev(0, 39), text);
    return text;
}

static uint64_t memory_of(int fd)
{
    struct stat facts;
    CHECK_INT(fstat(fd, &facts), 0);
    return (uint64_t)facts.st_blocks * 512;
}

static uint64_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_INT(fscanf(file, "%lu", &pages), 1);
    CHECK_INT(fclose(file), 0);
    return pages * 4096;
}

TEST(what_is_allocated_is_whole_empty_and_within_what_was_asked_for)
{
    const int fd = memfd_create("huge", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(ftruncate(fd, (off_t)FILE_BLOCKS * MQX_HUGE_BLOCK), 0);
    (void)mqx_huge_allocate(fd, 0, MQX_HUGE_BLOCK); /* what a first call costs the process */
    const uint64_t before = memory_of(fd), space = address_space();
    const uint64_t got =
        mqx_huge_allocate(fd, 2 * MQX_HUGE_BLOCK, (uint64_t)BLOCKS * MQX_HUGE_BLOCK);
    CHECK_INT(address_space(), space); /* nothing stays mapped */
    CHECK(got % MQX_HUGE_BLOCK == 0 && got <= (uint64_t)BLOCKS * MQX_HUGE_BLOCK);
    CHECK(memory_of(fd) - before >= got);
    CHECK(memory_of(fd) - before <= (uint64_t)BLOCKS * MQX_HUGE_BLOCK);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    static char bytes[MQX_HUGE_BLOCK], zero[MQX_HUGE_BLOCK];
    for (int i = 0; i < FILE_BLOCKS; i++) {
        CHECK_INT(read(fd, bytes, sizeof bytes), (int64_t)sizeof bytes);
        CHECK_MEM(bytes, zero, sizeof bytes);
    }
    CHECK_INT(posix_fallocate(fd, 0, (off_t)FILE_BLOCKS * MQX_HUGE_BLOCK), 0);
    CHECK_INT(memory_of(fd), (uint64_t)FILE_BLOCKS * MQX_HUGE_BLOCK);
    CHECK_INT(close(fd), 0);
}

TEST(blocks_come_as_huge_pages_exactly_where_the_system_lends_them)
{
    char text[MQX_HUGE_TEXT];
    const int fd = memfd_create("huge", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(ftruncate(fd, (off_t)FILE_BLOCKS * MQX_HUGE_BLOCK), 0);
    mqx_huge_refusal(true, 0, text);
    const uint64_t got = mqx_huge_allocate(fd, 0, (uint64_t)BLOCKS * MQX_HUGE_BLOCK);
    if (text[0] != '\0') {
        CHECK_INT(got, 0);
        CHECK(memory_of(fd) <= MQX_HUGE_BLOCK / 2); /* the page that was asked for */
    } else {
        CHECK(got <= memory_of(fd)); /* fewer when memory is in pieces */
    }
    CHECK_INT(close(fd), 0);
}

TEST(a_descriptor_that_cannot_be_mapped_gives_none)
{
    const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(mqx_huge_allocate(fd, 0, MQX_HUGE_BLOCK), 0);
    CHECK_INT(close(fd), 0);
}

TEST(of_a_file_without_a_name_the_setting_decides)
{
    CHECK(mkdtemp(root) != NULL);
    write_text("mounts", "");
    CHECK_STR(refusal("always within_size advise [never] deny force\n", true),
              "shmem_enabled is never");
    CHECK_STR(refusal("always within_size advise never [deny] force\n", true),
              "shmem_enabled is deny");
    CHECK_STR(refusal("always within_size [advise] never deny force\n", true), "");
    CHECK_STR(refusal("[always] within_size advise never deny force\n", true), "");
    CHECK_STR(refusal("always [within_size] advise never deny force\n", true), "");
    CHECK_STR(refusal("always within_size advise never deny [force]\n", true), "");
}

TEST(of_a_file_the_mount_of_its_device_decides_unless_the_setting_forbids_or_forces)
{
    write_text("mounts", "28 1 0:3 / /a rw - tmpfs tmpfs rw,huge=always\n"
                         "29 1 0:39 / /b rw shared:1 - tmpfs tmpfs rw,huge=advise,size=1k\n"
                         "30 1 0:4 / /c rw - tmpfs tmpfs rw\n");
    CHECK_STR(refusal("always within_size advise [never] deny force\n", false), "");
    CHECK_STR(refusal("always within_size advise never [deny] force\n", false),
              "shmem_enabled is deny");
    write_text("mounts", "29 1 0:39 / /b rw,relatime - tmpfs tmpfs rw,size=1k\n");
    CHECK_STR(refusal("[always] within_size advise never deny force\n", false),
              "the option huge= of the region's file system is never");
    CHECK_STR(refusal("always within_size advise never deny [force]\n", false), "");
    write_text("mounts", "30 1 0:4 / /c rw - tmpfs tmpfs rw,huge=always\n");
    CHECK_STR(refusal("[always] within_size advise never deny force\n", false),
              "the option huge= of the region's file system is not known");
}

TEST(without_a_setting_or_with_nonsense_in_it_there_are_none)
{
    const char *const none = "the kernel has no transparent huge pages";
    CHECK_STR(refusal("", true), "shmem_enabled is unreadable");
    CHECK_STR(refusal("advise\n", true), "shmem_enabled is unreadable");
    CHECK_STR(refusal("[advise\n", true), "shmem_enabled is unreadable");
    CHECK_STR(refusal("]a[]\n", true), "shmem_enabled is unreadable");
    CHECK_STR(refusal("[a word that is much longer than any]\n", true),
              "shmem_enabled is a word that is ");
    CHECK_INT(unlink(path_of("shmem_enabled")), 0);
    char text[MQX_HUGE_TEXT] = "x";
    mqx_huge_refusal_in(root, path_of("mounts"), true, 0, text);
    CHECK_STR(text, none);
    CHECK_INT(unlink(path_of("mounts")), 0);
    CHECK_INT(rmdir(root), 0);
}

TEST_MAIN()
