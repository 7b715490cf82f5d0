/* Claims of process_table.h: which process counts as alive, and what a published slot says. */
#include "fixtures/store_fixture.h"

#include "process/process_table.h"

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_attach_timeout_us = 30000000;
}

TEST(a_dead_pid_that_another_process_has_by_now_does_not_count_as_alive)
{
    struct fixture_process a;
    start();
    fixture_attach(files, &a);
    struct mqx_process *other = mqx_process_slot(&a.store->region, 9);
    *other = *mqx_process_slot(&a.store->region, a.store->region.process);
    CHECK(mqx_process_alive(a.store, 9)); /* our own pid and start time: lock and table disagree */
    other->start_time -= 1;
    CHECK(!mqx_process_alive(a.store, 9));
    other->start_time += 1;
    other->pid_namespace += 1;
    CHECK(!mqx_process_alive(a.store, 9));
    struct mqx_io *another = memory_io_process(files, 1234); /* holds the life lock of slot 9 */
    int dir = another->ops->open_dir(another, FIXTURE_PATH);
    int fd = another->ops->open(another, dir, "lock", MQX_IO_WRITE, 0);
    CHECK_INT(another->ops->lock(another, fd, 1 + 9, 1, MQX_IO_LOCK_EXCLUSIVE), 0);
    CHECK(mqx_process_alive(a.store, 9)); /* dead only if both say so */
    CHECK_INT(another->ops->close(another, fd), 0);
    CHECK(!mqx_process_alive(a.store, 9));
    other->state = MQX_PROC_FREE;
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(start_times_tell_processes_apart)
{
    CHECK(mqx_process_start_time((int32_t)getpid()) > 0);
    CHECK_INT(mqx_process_start_time((int32_t)getpid()), mqx_process_start_time((int32_t)getpid()));
    CHECK(mqx_process_start_time(1) <= mqx_process_start_time((int32_t)getpid()));
    CHECK_INT(mqx_process_start_time(INT32_MAX), 0);
}

TEST(an_attached_process_has_a_live_slot_that_names_it_and_a_detached_one_has_none)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    const struct mqx_process *slot = mqx_process_slot(&b.store->region, b.store->region.process);
    CHECK_INT(slot->state, MQX_PROC_LIVE);
    CHECK_INT(slot->pid, getpid());
    CHECK_INT(slot->start_time, mqx_process_start_time((int32_t)getpid()));
    CHECK_INT(slot->calls_inside, 0);
    CHECK(strlen(slot->program) > 0);
    const uint32_t number = b.store->region.process;
    CHECK(mqx_process_alive(a.store, number));
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK_INT(mqx_process_slot(&a.store->region, number)->state, MQX_PROC_FREE);
    CHECK(!mqx_process_alive(a.store, number));
    CHECK(!mqx_process_alive(a.store, 0));
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST_MAIN()
