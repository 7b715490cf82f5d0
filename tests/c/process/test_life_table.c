/* Claims of life_table.h: what is written is read, and what a full disk does to it. */
#include "fixtures/store_fixture.h"

#include "os/host_info.h"
#include "process/life_table.h"

static struct memory_io *files;
static struct mqx_io *io;
static int fd;

static void start(void)
{
    memory_io_free(files);
    files = memory_io_new();
    memory_io_make_dirs(files, FIXTURE_PATH);
    io = memory_io_table(files);
    const int dir = io->ops->open_dir(io, FIXTURE_PATH);
    fd = io->ops->open(io, dir, "lock", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK(fd >= 0);
}

static struct mqx_life_entry entry_of_us(void)
{
    const int32_t self = (int32_t)getpid();
    return (struct mqx_life_entry){.pid = self,
                                   .thread = self,
                                   .start_time = mqx_own_start_time(),
                                   .pid_namespace = 7};
}

TEST(an_entry_is_read_as_written_and_others_are_zero)
{
    static const struct mqx_life_entry none;
    const struct mqx_life_entry mine = entry_of_us();
    struct mqx_life_entry all[MQX_PROCESS_MAX], one;
    start();
    CHECK_INT(mqx_life_table_read(io, fd, 5, &one), 0); /* before anything was written */
    CHECK_MEM(&one, &none, sizeof one);
    CHECK_INT(mqx_life_table_write(io, fd, MQX_PROCESS_MAX - 1, &mine), 0);
    CHECK_INT(mqx_life_table_write(io, fd, 5, &mine), 0);
    CHECK_INT(mqx_life_table_read_all(io, fd, all), 0);
    CHECK_MEM(&all[5], &mine, sizeof mine);
    CHECK_MEM(&all[MQX_PROCESS_MAX - 1], &mine, sizeof mine);
    CHECK_MEM(&all[6], &none, sizeof none);
}

TEST(a_clear_keeps_the_entry_of_the_attach_lock_alone)
{
    const struct mqx_life_entry mine = entry_of_us();
    struct mqx_life_entry one;
    start();
    CHECK_INT(mqx_life_table_write(io, fd, MQX_LIFE_TABLE_ATTACH, &mine), 0);
    CHECK_INT(mqx_life_table_write(io, fd, 9, &mine), 0);
    CHECK_INT(mqx_life_table_clear(io, fd), 0);
    CHECK_INT(mqx_life_table_read(io, fd, 9, &one), 0);
    CHECK_INT(one.pid, 0);
    CHECK_INT(mqx_life_table_read(io, fd, MQX_LIFE_TABLE_ATTACH, &one), 0);
    CHECK_INT(one.pid, getpid());
}

TEST(a_full_disk_leaves_the_process_unnamed_and_another_error_is_reported)
{
    const struct mqx_life_entry mine = entry_of_us();
    struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = ENOSPC,
                                 .ops = 1u << MEMORY_WRITE};
    start();
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_life_table_write(io, fd, 3, &mine), 0);
    fault.error = EIO;
    memory_io_set_fault(files, &fault);
    CHECK(mqx_life_table_write(io, fd, 3, &mine) != 0);
    memory_io_set_fault(files, NULL);
}

TEST(an_entry_lives_while_its_thread_does_in_its_own_namespace)
{
    struct mqx_life_entry mine = entry_of_us();
    CHECK(mqx_life_entry_lives(&mine, 7));
    CHECK(!mqx_life_entry_lives(&mine, 8));
    mine.start_time += 1;
    CHECK(!mqx_life_entry_lives(&mine, 7));
    mine = (struct mqx_life_entry){.pid = 0};
    CHECK(!mqx_life_entry_lives(&mine, 7));
}

TEST_MAIN()
