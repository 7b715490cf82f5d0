/* Claims of process_table.h: which process counts as alive, and what a published slot says. */
#include "fixtures/store_fixture.h"

#include "os/host_info.h"
#include "os/life_thread.h"
#include "process/process_table.h"

enum { NO_THREAD = 0x3ffffff0 }; /* above every id that the kernel gives */

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_attach_timeout_us = 30000000;
}

TEST(a_process_is_gone_only_when_its_thread_is_whatever_its_word_says)
{
    struct fixture_process a;
    start();
    fixture_attach(files, &a);
    struct mqx_process *other = mqx_process_slot(&a.store->region, 9);
    *other = *mqx_process_slot(&a.store->region, a.store->region.process);
    CHECK(mqx_process_alive(a.store, 9));
    other->life_word = MQX_LIFE_MARKED; /* damaged: our own thread lives */
    CHECK(mqx_process_alive(a.store, 9));
    other->start_time -= 1; /* another thread that got the same numbers */
    CHECK(!mqx_process_alive(a.store, 9));
    other->start_time += 1;
    other->life_word = (uint32_t)other->life_thread;
    other->life_thread = NO_THREAD;
    CHECK(!mqx_process_alive(a.store, 9)); /* the mark is missing, but the thread is gone */
    other->pid_namespace += 1;
    CHECK(mqx_process_alive(a.store, 9)); /* cannot be asked for from here */
    other->state = MQX_PROC_FREE;
    CHECK(!mqx_process_alive(a.store, 9));
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_process_that_withdrew_its_life_sign_has_left_during_an_end_only)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    const uint32_t slot = b.store->region.process;
    mqx_process_end_life(b.store, true);
    mqx_process_end_life(b.store, true); /* again, to no effect */
    CHECK_INT(mqx_process_slot(&a.store->region, slot)->life_word, 0);
    CHECK(!mqx_process_alive(a.store, slot)); /* its thread is gone */
    mqx_process_slot(&a.store->region, slot)->life_thread = (int32_t)getpid();
    CHECK(mqx_process_alive(a.store, slot));
    a.store->region.ending = true;
    CHECK(!mqx_process_alive(a.store, slot));
    a.store->region.ending = false;
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
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
    CHECK_INT(slot->start_time, mqx_life_thread_start_time(b.store->life));
    CHECK_INT(slot->life_word, slot->life_thread);
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
