/* Claims of lock_record.h: what is written is read, and anything else counts as no record. */
#include "fixtures/store_fixture.h"

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_attach_timeout_us = 30000000;
}

TEST(the_lock_file_names_the_region_and_its_surroundings)
{
    struct fixture_process a;
    struct mqx_lock_record record;
    struct mqx_host_info here;
    bool found = false;
    start();
    fixture_attach(files, &a);
    CHECK_INT(mqx_lock_record_read(a.store->io, a.store->lock_fd, &record, &found), 0);
    CHECK(found);
    CHECK_INT(mqx_host_info_read(&here), 0);
    CHECK_MEM(&record.where, &here, sizeof here);
    CHECK_STR(record.region, a.store->region_name);
    CHECK_STR(record.directory, FIXTURE_REGIONS);
    CHECK_MEM(record.incarnation, a.store->region.header->incarnation, 16);
    CHECK_INT(record.layout, mqx_region_layout());
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_record_that_is_cut_or_changed_counts_as_none)
{
    struct mqx_lock_record record = {.region = "r", .directory = "/d"}, back;
    bool found = true;
    start();
    struct mqx_io *io = memory_io_table(files);
    int dir = io->ops->open_dir(io, "/home");
    int fd = io->ops->open(io, dir, "text", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK_INT(mqx_lock_record_read(io, fd, &back, &found), 0);
    CHECK(!found);
    CHECK_INT(mqx_lock_record_write(io, fd, &record), 0);
    CHECK_INT(mqx_lock_record_read(io, fd, &back, &found), 0);
    CHECK(found);
    uint64_t size = 0;
    const uint8_t *text = memory_io_bytes(files, "/home/text", &size);
    uint64_t used = size;
    while (text[used - 1] == '\n') {
        used--;
    }
    for (uint64_t cut = 0; cut < used; cut++) {
        memory_io_cut(files, "/home/text", cut);
        CHECK_INT(mqx_lock_record_read(io, fd, &back, &found), 0);
        CHECK(!found);
        CHECK_INT(mqx_lock_record_write(io, fd, &record), 0);
    }
}

static int write_text(const char *text, int *out_fd, struct mqx_io **out_io)
{
    struct mqx_io *io = memory_io_table(files);
    const int dir = io->ops->open_dir(io, "/home");
    (void)io->ops->unlink(io, dir, "text");
    *out_fd = io->ops->open(io, dir, "text", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    *out_io = io;
    return mqx_io_write_all(io, *out_fd, text, strlen(text), 0, 0);
}

static bool is_record(const char *region, const char *version)
{
    struct mqx_lock_record back;
    struct mqx_io *io;
    char text[700];
    bool found = true;
    int fd = -1;
    snprintf(text, sizeof text,
             "penstock=%s\nboot=%032d\nnamespace=1\nlibc=x\ndevice=1\ninode=2\nlayout=0\n"
             "incarnation=%032d\nregion=%s\ndirectory=/d\nend=1\n", version, 0, 0, region);
    CHECK_INT(write_text(text, &fd, &io), 0);
    CHECK_INT(mqx_lock_record_read(io, fd, &back, &found), 0);
    CHECK_INT(io->ops->close(io, fd), 0);
    return found;
}

TEST(a_record_of_another_version_or_with_a_path_as_region_counts_as_none)
{
    char name[200];
    start();
    CHECK(is_record("penstock-1-2", "1"));
    CHECK(!is_record("penstock-1-2", "2"));
    CHECK(!is_record("", "1"));
    CHECK(!is_record("../secret", "1"));
    memset(name, 'n', sizeof name - 1);
    name[MQX_LOCK_RECORD_NAME_SIZE] = '\0';
    CHECK(!is_record(name, "1"));
    name[MQX_LOCK_RECORD_NAME_SIZE - 1] = '\0';
    CHECK(is_record(name, "1"));
}

TEST(the_longest_record_fits_and_comes_back_whole)
{
    struct mqx_lock_record record = {.device = UINT64_MAX, .inode = UINT64_MAX - 1,
                                     .layout = UINT64_MAX}, back;
    struct mqx_io *io;
    bool found = false;
    int fd = -1;
    start();
    memset(record.region, 'r', sizeof record.region - 1);
    memset(record.directory, 'd', sizeof record.directory - 1);
    memset(record.where.libc, 'l', sizeof record.where.libc - 1);
    memset(record.where.boot_id, 0xff, sizeof record.where.boot_id);
    memset(record.incarnation, 0xa5, sizeof record.incarnation);
    record.where.pid_namespace = UINT64_MAX;
    CHECK_INT(write_text("", &fd, &io), 0);
    CHECK_INT(mqx_lock_record_write(io, fd, &record), 0);
    CHECK_INT(mqx_lock_record_read(io, fd, &back, &found), 0);
    CHECK(found);
    CHECK_MEM(&back, &record, sizeof record);
    CHECK_INT(io->ops->close(io, fd), 0);
}

TEST_MAIN()
