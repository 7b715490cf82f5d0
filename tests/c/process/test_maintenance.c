/*
 * test_maintenance.c - claims of maintenance.h: what a round of maintenance does, that one process
 * at a time does it, and what the thread does by itself: reaping, marking, leaving when stopped.
 *
 * Waiting for the thread is a loop with an end: it checks every millisecond, 20 s at most.
 */
#include "fixtures/store_fixture.h"

#include "base/clock.h"
#include "os/futex.h"
#include "process/maintenance.h"
#include "journal/journal.h"
#include "recovery/checkpoint.h"
#include "recovery/checkpoint_round.h"
#include "region/damage.h"
#include "os/block_hook.h"

#include <pthread.h>
#include <time.h>

static struct memory_io *files;
static struct fixture_process process;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    fixture_attach(files, &process);
}

#define WAIT_FOR(cond) \
    do { \
        bool wait_over = (cond); \
        for (int wait_ms = 0; wait_ms < 20000 && !wait_over; wait_ms++) { \
            usleep(1000); \
            wait_over = (cond); \
        } \
        CHECK(wait_over); \
    } while (0)

/* Durable puts until more than half of the first segment is used. */
static void use_first_segment(void)
{
    struct fixture_queue q;
    const struct mqx_journal *journal = process.store->region.journal;
    CHECK_INT(fixture_define(&process, "USED", NULL, &q), 0);
    const struct mqx_segment *active = &journal->segment[journal->active - 1];
    for (int i = 0; i < 1000 && journal->tail - active->base_lsn <= active->size / 2; i++) {
        CHECK_INT(fixture_put(&process, NULL, q, true, "m", -1), 0);
    }
    CHECK(journal->tail - active->base_lsn > active->size / 2);
    CHECK_INT(journal->active, 1);
}

/* ---- one round ---- */

TEST(a_round_makes_a_longer_spare_once_half_of_the_first_segment_is_used_and_not_before)
{
    start();
    struct mqx_journal *journal = process.store->region.journal;
    const uint64_t first = journal->used_bytes;
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(mqx_journal_spare_count(process.store), 0);
    use_first_segment();
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(mqx_journal_spare_count(process.store), 1);
    CHECK_INT(journal->used_bytes, first + 2 * first);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(mqx_journal_spare_count(process.store), 1);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_round_reserves_journal_for_every_message_present)
{
    struct fixture_queue q;
    struct mqx_region_plan plan;
    start();
    fixture_plan(&plan);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    const uint64_t empty = process.store->region.journal->reserve_bytes;
    CHECK(empty >= plan.first_segment_size / 4);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    for (int i = 0; i < 2000; i++) {
        CHECK_INT(fixture_put(&process, NULL, q, true, "m", -1), 0);
    }
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(process.store->region.journal->reserve_bytes >= 2000 * 128);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_round_marks_what_has_been_idle_for_100_ms_and_not_before)
{
    struct fixture_queue q;
    start();
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    const struct mqx_journal *journal = process.store->region.journal;
    CHECK(journal->marked < journal->durable);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(journal->marked < journal->durable);
    memory_io_set_clock(files, journal->last_flush_us + 100001);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(journal->marked >= journal->durable);
    const uint64_t writes = memory_io_calls(files, MEMORY_WRITE);
    memory_io_set_clock(files, journal->last_flush_us + 900000);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(memory_io_calls(files, MEMORY_WRITE), writes); /* nothing new: nothing to mark */
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_clock_that_is_set_back_does_not_keep_the_journal_unmarked)
{
    struct fixture_queue q;
    start();
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    const struct mqx_journal *journal = process.store->region.journal;
    CHECK(journal->marked < journal->durable);
    memory_io_set_clock(files, journal->last_flush_us - UINT64_C(3600000000));
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(journal->marked >= journal->durable);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* After a death numbers of non-persistent messages are given again. */
TEST(generated_identifiers_do_not_come_again_after_the_clock_was_set_back)
{
    enum { STARTS = 6, PUTS = 20 };
    static uint8_t ids[STARTS * PUTS][24];
    uint32_t count = 0;
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    for (int s = 0; s < STARTS; s++) { /* forward and back by an hour, and by a microsecond */
        static const int64_t steps[STARTS] = {0, 3600000000, -3600000000, 1, -1, -7200000000};
        memory_io_set_clock(files, (uint64_t)(UINT64_C(1700000000000000) + (uint64_t)steps[s]));
        fixture_attach(files, &process);
        CHECK_INT(fixture_find(&process, "Q", &q), 0);
        for (int i = 0; i < PUTS; i++) {
            const struct mqe_destination to = mqe_direct(q.slot, q.generation);
            struct ps_descriptor d = {.persistence = i % 2 != 0, .md_version = 2};
            CHECK_INT(mqe_put(process.manager, NULL, &to, &d, NULL, "x", 1, -1,
                              MQE_PUT_NEW_MSG_ID), 0);
            for (uint32_t before = 0; before < count; before++) {
                CHECK(memcmp(ids[before], d.msg_id, sizeof d.msg_id) != 0);
            }
            memcpy(ids[count++], d.msg_id, sizeof d.msg_id);
        }
        if (s % 2 == 0) {
            CHECK_INT(fixture_detach(&process, NULL), 0);
        } else {
            fixture_kill(files, &process);
        }
    }
}

TEST(a_round_discards_expired_messages_of_every_queue)
{
    struct fixture_queue q[3];
    start();
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof name, "Q%d", i);
        CHECK_INT(fixture_define(&process, name, NULL, &q[i]), 0);
        for (int m = 0; m < 150; m++) {
            CHECK_INT(fixture_put(&process, NULL, q[i], m % 3 == 0, "dies", 1), 0);
        }
        CHECK_INT(fixture_put(&process, NULL, q[i], false, "stays", -1), 0);
    }
    memory_io_set_clock(files, (uint64_t)time(NULL) * 1000000 + UINT64_C(3600000000));
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    for (int i = 0; i < 3; i++) {
        const struct mqx_object *object = mqx_object(&process.store->region, q[i].slot);
        CHECK_INT(object->present, 1);
        CHECK_INT(object->expiring, 0);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_round_grows_every_area_a_step_ahead)
{
    start();
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
        const struct mqx_area *area = &process.store->region.header->area[kind];
        CHECK(area->capacity >= area->used * area->item_size + area->step);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* Puts until so much was written since the last checkpoint that one is due. */
static void make_checkpoint_due(struct fixture_queue q)
{
    static char body[60000];
    memset(body, 'b', sizeof body - 1);
    for (int i = 0; i < 2000 && !mqx_checkpoint_due(process.store); i++) {
        CHECK_INT(fixture_put(&process, NULL, q, true, body, -1), 0);
    }
    CHECK(mqx_checkpoint_due(process.store));
}

TEST(a_round_takes_a_checkpoint_when_one_is_due)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    const uint64_t begin = process.store->region.journal->checkpoint_begin;
    make_checkpoint_due(q);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(!mqx_checkpoint_due(process.store));
    CHECK(process.store->region.journal->checkpoint_begin > begin);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_process_that_leaves_leaves_a_checkpoint_to_another_one_that_takes_it)
{
    struct fixture_process other;
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    make_checkpoint_due(q);
    const struct mqx_journal *journal = process.store->region.journal;
    const uint64_t begin = journal->checkpoint_begin;
    fixture_attach(files, &other);
    process.store->leaving = 1;
    CHECK(!mqx_checkpoint_is_late(process.store));
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(journal->checkpoint_begin, begin);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    CHECK_INT(mqx_maintenance_round(other.store), 0);
    CHECK(other.store->region.journal->checkpoint_begin > begin);
    CHECK_INT(fixture_detach(&other, NULL), 0);
}

/* In its midst: what was written of it goes. The hook is the maintenance's, from a round before. */
TEST(a_checkpoint_under_way_is_given_up_when_its_process_leaves_but_not_when_it_is_late)
{
    struct fixture_process other;
    struct fixture_queue q;
    start();
    struct mqx_region *region = &process.store->region;
    struct mqx_lock *lock = &region->header->maintenance_lock;
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "m", -1), 0);
    fixture_attach(files, &other);
    const uint64_t begin = region->journal->checkpoint_begin;
    const uint64_t unlinked = memory_io_calls(files, MEMORY_UNLINK);
    process.store->leaving = 1;
    CHECK_INT(mqx_lock_take(region, lock), 0);
    CHECK_INT(mqx_checkpoint(process.store, MQX_CHECKPOINT_FUZZY), MQX_LEAVING);
    CHECK_INT(region->journal->checkpoint_begin, begin);
    CHECK(memory_io_calls(files, MEMORY_UNLINK) > unlinked);
    region->journal->checkpoint_damaged = 1;
    CHECK(mqx_checkpoint_is_late(process.store));
    CHECK_INT(mqx_checkpoint(process.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(region->journal->checkpoint_begin > begin);
    mqx_lock_drop(region, lock);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    CHECK_INT(fixture_detach(&other, NULL), 0);
}

TEST(the_last_process_leaves_no_checkpoint_to_others)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    make_checkpoint_due(q);
    process.store->leaving = 1;
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK(!mqx_checkpoint_due(process.store));
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

struct holder { /* a thread that has a lock until it is told, or for 20 s */
    struct mqx_lock *lock;
    pthread_t thread;
    uint32_t step; /* atomic: 1: it has the lock, 2: it is to drop it */
};

static void *hold(void *arg)
{
    struct mqx_region *region = &process.store->region;
    struct holder *holder = arg;
    CHECK_INT(mqx_lock_take(region, holder->lock), 0);
    __atomic_store_n(&holder->step, 1u, __ATOMIC_RELEASE);
    for (int i = 0; i < 20000 && __atomic_load_n(&holder->step, __ATOMIC_ACQUIRE) == 1; i++) {
        usleep(1000);
    }
    __atomic_store_n(&holder->step, 2u, __ATOMIC_RELEASE);
    mqx_lock_drop(region, holder->lock);
    return NULL;
}

static void begin_hold(struct holder *holder, struct mqx_lock *lock)
{
    *holder = (struct holder){.lock = lock};
    CHECK_INT(pthread_create(&holder->thread, NULL, hold, holder), 0);
    WAIT_FOR(__atomic_load_n(&holder->step, __ATOMIC_ACQUIRE) == 1);
}

static void end_hold(struct holder *holder)
{
    CHECK_INT(__atomic_exchange_n(&holder->step, 2u, __ATOMIC_ACQ_REL), 1); /* it had it so long */
    CHECK_INT(pthread_join(holder->thread, NULL), 0);
}

TEST(one_at_a_time_does_maintenance)
{
    struct holder holder;
    start();
    begin_hold(&holder, &process.store->region.header->maintenance_lock);
    CHECK_INT(mqx_maintenance_round(process.store), MQX_BUSY);
    end_hold(&holder);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_step_that_fails_is_named_and_does_not_keep_the_others_from_being_done)
{
    start();
    use_first_segment();
    memory_io_set_space(files, 0, UINT64_MAX); /* no spare can be made */
    const uint64_t rounds = process.store->region.header->maintenance_seq;
    CHECK_INT(mqx_maintenance_round(process.store), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "spare segment: ") != NULL);
    CHECK_INT(process.store->region.header->maintenance_seq, rounds + 1);
    const struct mqx_area *area = &process.store->region.header->area[MQX_AREA_MESSAGES];
    CHECK(area->capacity >= area->step); /* a later step */
    memory_io_set_space(files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- the thread ---- */

TEST(the_thread_does_rounds_by_itself_and_ends_when_asked)
{
    struct mqx_maintenance *thread = NULL;
    start();
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    WAIT_FOR(mqx_load_relaxed(&process.store->region.header->maintenance_seq) >= 2);
    mqx_maintenance_stop(thread);
    CHECK_INT(process.store->leaving, 0); /* what follows is this process's own */
    const uint64_t rounds = process.store->region.header->maintenance_seq;
    usleep(20000);
    CHECK_INT(process.store->region.header->maintenance_seq, rounds);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

struct deleter {
    struct fixture_process process;
    struct fixture_queue queue;
    pthread_t thread;
};

static void *delete_queue(void *arg)
{
    struct deleter *deleter = arg;
    CHECK_INT(mqx_catalog_delete(deleter->process.store, deleter->queue.slot,
                                 deleter->queue.generation, false), 0);
    return NULL;
}

TEST(a_process_that_leaves_does_not_wait_for_the_flush_of_somebodys_deletion)
{
    struct mqx_maintenance *thread = NULL;
    struct deleter other;
    struct holder leader; /* as one that was stopped */
    start();
    struct mqx_region *region = &process.store->region;
    CHECK_INT(fixture_define(&process, "GONE", NULL, &other.queue), 0);
    fixture_attach(files, &other.process);
    const struct mqx_object *object = mqx_object(region, other.queue.slot);
    begin_hold(&leader, &region->journal->flush_lock);
    CHECK_INT(pthread_create(&other.thread, NULL, delete_queue, &other), 0);
    WAIT_FOR(mqx_load_acquire(&object->state) == MQX_OBJ_DELETING);
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    WAIT_FOR(mqx_load_relaxed(&region->header->maintenance_lock.holder) != 0);
    usleep(100000);
    CHECK(mqx_load_relaxed(&region->header->maintenance_lock.holder) != 0);
    mqx_maintenance_stop(thread);
    CHECK_INT(object->state, MQX_OBJ_DELETING);
    CHECK(!fixture_logged(files, "AMQ7907E"));
    end_hold(&leader);
    CHECK_INT(pthread_join(other.thread, NULL), 0);
    CHECK_INT(object->state, MQX_OBJ_FREE);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    CHECK_INT(fixture_detach(&other.process, NULL), 0);
}

TEST(a_ring_of_the_doorbell_brings_a_round_at_once)
{
    struct mqx_maintenance *thread = NULL;
    start();
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    for (int i = 0; i < 50; i++) { /* 50 rounds would take 25 s otherwise, more than the wait */
        const uint64_t rounds = mqx_load_relaxed(&process.store->region.header->maintenance_seq);
        mqx_maintenance_ring(&process.store->region, process.store->region.process);
        WAIT_FOR(mqx_load_relaxed(&process.store->region.header->maintenance_seq) > rounds);
    }
    mqx_maintenance_stop(thread);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* Twelve processes made twenty-four rounds a second, each of which asked for the life of all. */
TEST(many_idle_processes_make_no_more_rounds_than_one)
{
    enum { PROCESSES = 12, SECONDS = 3, ROUNDS_A_SECOND = 2 };
    struct fixture_process all[PROCESSES];
    struct mqx_maintenance *thread[PROCESSES];
    start();
    for (int i = 0; i < PROCESSES; i++) {
        fixture_attach(files, &all[i]);
        CHECK_INT(mqx_maintenance_start(all[i].store, &thread[i]), 0);
    }
    const struct mqx_header *header = process.store->region.header;
    WAIT_FOR(mqx_load_relaxed(&header->attached) == PROCESSES + 1);
    usleep(1000000); /* rounds that each thread makes when it starts */
    const uint64_t rounds = mqx_load_relaxed(&header->maintenance_seq);
    const uint64_t asked = memory_io_calls(files, MEMORY_TEST_LOCK);
    const uint64_t start_us = mqx_clock_monotonic_us();
    usleep(SECONDS * 1000000);
    const uint64_t made = mqx_load_relaxed(&header->maintenance_seq) - rounds;
    const uint64_t seconds = (mqx_clock_monotonic_us() - start_us) / 1000000 + 1;
    CHECK(made > 0);
    CHECK(made <= ROUNDS_A_SECOND * seconds + 1);
    CHECK(memory_io_calls(files, MEMORY_TEST_LOCK) - asked <= (made + 1) * (PROCESSES + 1));
    mqx_maintenance_stop(thread[0]); /* whoever is the active one: the others go on */
    mqx_maintenance_stop(thread[1]);
    const uint64_t then = mqx_load_relaxed(&header->maintenance_seq);
    WAIT_FOR(mqx_load_relaxed(&header->maintenance_seq) >= then + 3);
    for (int i = 0; i < PROCESSES; i++) {
        if (i > 1) {
            mqx_maintenance_stop(thread[i]);
        }
        CHECK_INT(fixture_detach(&all[i], NULL), 0);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(the_thread_takes_no_signals)
{
    struct mqx_maintenance *thread = NULL;
    char path[64], name[64], text[4096];
    uint64_t blocked = 0;
    sigset_t all, mine;
    start();
    sigfillset(&all);
    CHECK_INT(pthread_sigmask(SIG_UNBLOCK, &all, NULL), 0);
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    struct dirent *entry;
    while ((entry = readdir(tasks)) != NULL) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        if (status == NULL) {
            continue;
        }
        size_t n = fread(text, 1, sizeof text - 1, status);
        fclose(status);
        text[n] = '\0';
        const char *mask = strstr(text, "SigBlk:");
        if (sscanf(text, "Name: %63s", name) == 1 && strcmp(name, "penstock") == 0 && mask) {
            blocked = strtoull(mask + 7, NULL, 16);
        }
    }
    closedir(tasks);
    CHECK((blocked >> (SIGINT - 1) & 1) != 0 && (blocked >> (SIGTERM - 1) & 1) != 0);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, NULL, &mine), 0);
    CHECK(!sigismember(&mine, SIGINT) && !sigismember(&mine, SIGTERM)); /* ours are as before */
    mqx_maintenance_stop(thread);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_stopped_region_is_left_when_the_last_call_is_out)
{
    struct mqx_maintenance *thread = NULL;
    struct fixture_process next;
    start();
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    struct mqx_process *slot =
        mqx_process_slot(&process.store->region, process.store->region.process);
    mqx_store_release(&slot->calls_inside, 1u);
    mqx_region_stop(&process.store->region, MQX_STOP_BROKEN);
    WAIT_FOR(fixture_logged(files, "AMQ7909E"));
    CHECK_INT(fixture_try_attach(files, &next), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_store_release(&slot->calls_inside, 0u);
    struct mqx_life_lock *file = mqx_life_lock_find(process.store->io, process.store->lock_fd);
    bool held = true;
    WAIT_FOR(mqx_life_lock_is_any_held(file, 0, &held) == 0 && !held);
    CHECK(process.store->life == NULL);
    fixture_attach(files, &next);
    CHECK(next.report.first);
    mqx_maintenance_stop(thread);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    CHECK_INT(fixture_detach(&next, NULL), 0);
}

TEST(a_failing_step_is_logged_when_it_begins_and_when_it_ends)
{
    struct mqx_maintenance *thread = NULL;
    start();
    use_first_segment();
    memory_io_set_space(files, 3 << 20, UINT64_MAX);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true,
                                       .ops = 1u << MEMORY_ALLOCATE, .error = ENOSPC};
    memory_io_set_fault(files, &fault);
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    WAIT_FOR(fixture_logged(files, "AMQ7907E spare segment fails"));
    memory_io_set_fault(files, NULL);
    WAIT_FOR(fixture_logged(files, "AMQ7908I spare segment works again"));
    mqx_maintenance_stop(thread);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

struct consumer {
    const struct fixture_dirs *place;
    int got[2];
};

static int get_in_a_unit(void *arg)
{
    const struct consumer *consumer = arg;
    struct fixture_queue q;
    char text[64];
    uint32_t count;
    mqe_unit *unit = NULL;
    if (fixture_attach_real(consumer->place, mqx_io_posix(), &process) != 0 ||
        fixture_find(&process, "Q", &q) != 0 || mqe_unit_new(process.manager, &unit) != 0 ||
        fixture_get(&process, unit, q, text, &count) != 0 || write(consumer->got[1], "x", 1) != 1) {
        return 1;
    }
    for (int i = 0; i < 60; i++) { /* to be killed */
        sleep(1);
    }
    return 2;
}

TEST(the_messages_of_a_killed_process_come_back_without_anybodys_doing)
{
    struct fixture_dirs place;
    struct fixture_queue q;
    struct consumer consumer = {.place = &place};
    struct mqx_maintenance *thread = NULL;
    char text[64], path[128];
    uint32_t count;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "back", -1), 0);
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    CHECK_INT(pipe(consumer.got), 0);
    struct fixture_process mine = process;
    pid_t child = fixture_child(get_in_a_unit, &consumer);
    CHECK_INT(read(consumer.got[0], text, 1), 1);
    CHECK_INT(fixture_get(&mine, NULL, q, text, &count), MQRC_NO_MSG_AVAILABLE);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(fixture_wait(child), 1000 + SIGKILL);
    const struct mqx_object *object = mqx_object(&mine.store->region, q.slot);
    WAIT_FOR(mqx_load_relaxed(&object->got) == 0);
    CHECK_INT(fixture_get(&mine, NULL, q, text, &count), 0);
    CHECK_STR(text, "back");
    CHECK_INT(count, 1);
    mqx_maintenance_stop(thread);
    CHECK_INT(fixture_detach(&mine, NULL), 0);
    snprintf(path, sizeof path, "grep -q AMQ7905W %s/errors/AMQERR01.LOG", place.path);
    CHECK_INT(system(path), 0);
    fixture_remove_dirs(&place);
}

TEST(a_queue_manager_stopped_by_damage_says_once_which_structure_was_damaged)
{
    struct mqx_maintenance *thread = NULL;
    start();
    CHECK_INT(mqx_maintenance_start(process.store, &thread), 0);
    CHECK_INT(mqx_region_damage(&process.store->region, "a free list of cells", 123),
              MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_maintenance_ring(&process.store->region, process.store->region.process);
    WAIT_FOR(fixture_logged(files, "the shared region is damaged in a free list of cells (123)"));
    mqx_maintenance_ring(&process.store->region, process.store->region.process);
    usleep(20000);
    mqx_maintenance_stop(thread);
    uint64_t size = 0;
    const char *log =
        (const char *)memory_io_bytes(files, FIXTURE_PATH "/errors/AMQERR01.LOG", &size);
    uint32_t lines = 0;
    for (uint64_t i = 0; log != NULL && i + 12 < size; i++) {
        lines += memcmp(log + i, "damaged in a", 12) == 0;
    }
    CHECK_INT(lines, 1);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- block_hook.h ---- */

static void count_call(void *arg)
{
    *(int *)arg += 1;
    mqx_about_to_block(); /* as a hook that itself blocks would */
}

TEST(the_yield_hook_is_called_once_and_only_when_armed)
{
    int calls = 0;
    mqx_about_to_block();
    mqx_block_hook_arm(count_call, &calls);
    CHECK_INT(calls, 0);
    mqx_about_to_block();
    mqx_about_to_block();
    CHECK_INT(calls, 1);
    mqx_block_hook_arm(count_call, &calls);
    mqx_block_hook_arm(NULL, NULL);
    mqx_about_to_block();
    CHECK_INT(calls, 1);
}

TEST_MAIN()
