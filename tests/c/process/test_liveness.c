/*
 * test_liveness.c - claims of liveness.h: what each combination of life lock and life word leads
 * to, with and without the region's file.
 */
#include "fixtures/store_fixture.h"

#include "os/life_thread.h"
#include "process/life_table.h"
#include "process/liveness.h"

enum { NO_THREAD = 0x3ffffff0 }; /* above every id that the kernel gives */

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_liveness_patience_us = 20000;
}

static struct mqx_life_lock *lock_of(const struct fixture_process *process)
{
    return mqx_life_lock_find(process->store->io, process->store->lock_fd);
}

static struct mqx_process *slot_of(const struct fixture_process *process)
{
    return mqx_process_slot(&process->store->region, process->store->region.process);
}

TEST(a_process_without_its_lock_is_neither_joined_nor_destroyed_but_named)
{
    struct fixture_process a, b;
    char expected[64];
    start();
    fixture_attach(files, &a);
    mqx_life_lock_release(lock_of(&a), a.store->region.process, a.store); /* as by closerange */
    CHECK_INT(fixture_try_attach(files, &b), MQRC_Q_MGR_NOT_AVAILABLE);
    snprintf(expected, sizeof expected, "process %d is attached", (int)getpid());
    CHECK(strstr(mqx_error_text(), expected) != NULL);
    CHECK_INT(mqx_region_stopped(&a.store->region), MQX_RUNNING);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_attach(files, &b);
    CHECK(b.report.recovery.clean); /* a ended in order */
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(a_lock_that_outlived_its_process_is_refused)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    struct mqx_process *slot = slot_of(&a);
    const uint32_t word = slot->life_word;
    slot->life_word = MQX_LIFE_MARKED;
    CHECK_INT(fixture_try_attach(files, &b), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "holds the lock on the file lock") != NULL);
    slot->life_word = word;
    fixture_attach(files, &b);
    CHECK(!b.report.first);
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_lock_and_one_living_process_among_dead_ones_are_joined)
{
    struct fixture_process a, b, c;
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    fixture_kill(files, &b);
    fixture_attach(files, &c);
    CHECK(!c.report.first);
    CHECK_INT(fixture_detach(&c, NULL), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_queue_manager_whose_processes_all_died_is_restarted)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    fixture_kill(files, &a);
    fixture_attach(files, &b);
    CHECK(b.report.first && b.report.same_boot_orphan);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(an_entry_of_a_life_that_ended_is_no_obstacle_without_a_region)
{
    struct fixture_process a, b;
    struct mqx_life_entry entry;
    char path[160];
    start();
    fixture_attach(files, &a);
    snprintf(path, sizeof path, "%s", a.store->region_name);
    const uint32_t slot = a.store->region.process;
    struct mqx_io *io = memory_io_table(files);
    const int regions = io->ops->open_dir(io, FIXTURE_REGIONS);
    CHECK_INT(io->ops->unlink(io, regions, path), 0); /* a cleaner of temporary files */
    CHECK_INT(fixture_try_attach(files, &b), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "is gone while process") != NULL);
    CHECK_INT(mqx_life_table_read(a.store->io, a.store->lock_fd, slot, &entry), 0);
    CHECK_INT(entry.pid, getpid());
    fixture_kill(files, &a);
    fixture_attach(files, &b);
    CHECK(b.report.first);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(others_are_found_by_either_sign)
{
    struct fixture_process a, b;
    bool others = false;
    start();
    fixture_attach(files, &a);
    CHECK_INT(mqx_liveness_others(a.store, lock_of(&a), &others), 0);
    CHECK(!others);
    fixture_attach(files, &b);
    CHECK_INT(mqx_liveness_others(a.store, lock_of(&a), &others), 0);
    CHECK(others);
    mqx_life_lock_release(lock_of(&b), b.store->region.process, b.store);
    CHECK_INT(mqx_liveness_others(a.store, lock_of(&a), &others), 0);
    CHECK(others); /* by its word */
    slot_of(&b)->life_thread = NO_THREAD;
    CHECK_INT(mqx_liveness_others(a.store, lock_of(&a), &others), 0);
    CHECK(!others);
    CHECK_INT(mqx_life_lock_claim(lock_of(&b), b.store->region.process, b.store), 0);
    CHECK_INT(mqx_liveness_others(a.store, lock_of(&a), &others), 0);
    CHECK(others); /* by its lock */
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST_MAIN()
