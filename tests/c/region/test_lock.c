/* Claims of lock.c: after a death inside a micro-transaction the next owner sees the state before
 * it; an undo list that cannot be true is not followed. */
#include "fixtures/region_fixture.h"

#include "os/block_hook.h"
#include "os/host_info.h"
#include "os/interrupt.h"
#include "penstock/engine.h"
#include "region/damage.h"
#include "region/mutex_words.h"

static struct mqx_lock *lock;
static uint64_t *field; /* in the memory that the lock protects: the area of objects */

static void begin(void)
{
    region_begin();
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_OBJECTS, 65536), 0);
    lock = &region.stripes[1].lock;
    field = (uint64_t *)(void *)region.area[MQX_AREA_OBJECTS];
    for (int i = 0; i < 16; i++) {
        field[i] = 0x1111111111111111u * (uint64_t)(i + 1);
    }
}

static bool untouched(void)
{
    bool same = lock->undo_count == 0;
    for (int i = 0; i < 16; i++) {
        same = same && field[i] == 0x1111111111111111u * (uint64_t)(i + 1);
    }
    return same;
}

static void change(uint64_t value)
{
    mqx_undo_store8(region.base, lock, (uint8_t *)&field[0] + 3, (uint8_t)value);
    mqx_undo_store8(region.base, lock, (uint8_t *)&field[1] + 6, (uint8_t)value);
    mqx_undo_store32(region.base, lock, (uint32_t *)(void *)&field[2] + 1, (uint32_t)value);
    mqx_undo_store64(region.base, lock, &field[3], value);
    mqx_undo_store64(region.base, lock, &field[3], value + 1);
    mqx_undo_store64(region.base, lock, &field[15], value);
}

TEST(a_rolled_back_micro_transaction_leaves_everything_as_it_was)
{
    begin();
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK(mqx_lock_held(&region, lock));
    change(7);
    CHECK(field[3] == 8 && field[15] == 7);
    mqx_undo_rollback(&region, lock);
    CHECK(untouched());
    change(9);
    mqx_undo_commit(lock);
    mqx_undo_rollback(&region, lock);
    CHECK_INT(field[3], 10);
    mqx_lock_drop(&region, lock);
    CHECK(!mqx_lock_held(&region, lock));
}

static void die_inside(void *arg)
{
    mqx_ignore(mqx_lock_take(&region, lock));
    change(*(uint64_t *)arg);
}

static void die_after_commit(void *arg)
{
    die_inside(arg);
    mqx_undo_commit(lock);
}

TEST(the_next_owner_after_a_death_rolls_back_what_was_not_committed_and_only_that)
{
    uint64_t value = 77;
    begin();
    killed_after(die_inside, &value);
    CHECK(field[3] == 78);
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK(untouched());
    CHECK_INT(lock->repairs, 1);
    mqx_lock_drop(&region, lock);
    killed_after(die_after_commit, &value);
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK_INT(field[3], 78);
    CHECK_INT(lock->repairs, 2);
    mqx_lock_drop(&region, lock);
    CHECK_INT(mqx_lock_try(&region, lock), 0);
    mqx_lock_drop(&region, lock);
    CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING);
}

/* Takes over from a dead owner, undoes a part, dies as well. */
static void die_in_the_repair(void *arg)
{
    const uint32_t steps = *(uint32_t *)arg;
    if (pthread_mutex_lock(&lock->mutex) != EOWNERDEAD) {
        _exit(1);
    }
    for (uint32_t i = 0; i < steps && lock->undo_count > 0; i++) {
        const struct mqx_undo *undo = &lock->undo[lock->undo_count - 1];
        memcpy(region.base + (undo->location >> 4), &undo->old, undo->location & 15u);
        if (i + 1 < steps) {
            lock->undo_count -= 1; /* the last one dies between the store and the count */
        }
    }
}

TEST(a_repair_may_die_at_every_step_and_is_done_again)
{
    for (uint32_t steps = 0; steps <= 7; steps++) {
        uint64_t value = 5;
        begin();
        killed_after(die_inside, &value);
        killed_after(die_in_the_repair, &steps);
        CHECK_INT(mqx_lock_take(&region, lock), 0);
        CHECK(untouched());
        mqx_lock_drop(&region, lock);
    }
}

static void make_it_dead_for_ever(void *arg)
{
    (void)arg;
    if (pthread_mutex_lock(&lock->mutex) == EOWNERDEAD) {
        (void)pthread_mutex_unlock(&lock->mutex); /* without having made it consistent */
    }
}

static void *take_it(void *arg)
{
    *(int *)arg = mqx_lock_take(&region, lock);
    return NULL;
}

TEST(a_lock_beyond_repair_stops_the_queue_manager)
{
    pthread_t thread;
    int status = 0;
    uint64_t value = 5;
    begin();
    killed_after(die_inside, &value);
    killed_after(make_it_dead_for_ever, NULL);
    CHECK_INT(mqx_lock_take(&region, lock), MQRC_CONNECTION_BROKEN);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK_INT(pthread_create(&thread, NULL, take_it, &status), 0); /* is not left waiting either */
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(status, MQRC_CONNECTION_BROKEN);
    CHECK_INT(mqx_lock_take(&region, &region.stripes[2].lock), 0);
    mqx_lock_drop(&region, &region.stripes[2].lock);
}

TEST(a_damaged_undo_list_of_a_dead_owner_is_not_believed)
{
    uint64_t value = 5;
    begin();
    killed_after(die_inside, &value);
    lock->undo_count = MQX_UNDO_MAX + 1;
    CHECK_INT(mqx_lock_take(&region, lock), MQRC_CONNECTION_BROKEN);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
}

static void *try_it(void *arg)
{
    *(int *)arg = mqx_lock_try(&region, lock);
    return NULL;
}

struct entering { /* a thread that takes the lock as the first one of a call */
    bool allowed;
    int status;
};

static uint32_t long_waits; /* atomic */

static void count_long_wait(struct mqx_region *of, struct mqx_lock *which, uint64_t since_us)
{
    CHECK(of == &region && which == lock && since_us != 0);
    mqx_add_relaxed(&long_waits, 1u);
}

static void *enter_it(void *arg)
{
    struct entering *entering = arg;
    mqx_interrupt_allow(entering->allowed);
    entering->status = mqx_lock_enter(&region, lock);
    if (entering->status == MQX_OK) {
        mqx_lock_drop(&region, lock);
    }
    return NULL;
}

TEST(a_call_that_may_be_interrupted_waits_a_second_for_its_first_lock_and_another_for_ever)
{
    struct entering may = {.allowed = true, .status = -1}, may_not = {.status = -1};
    pthread_t threads[2];
    begin();
    long_waits = 0;
    region.long_wait = count_long_wait;
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK_INT(pthread_create(&threads[0], NULL, enter_it, &may), 0);
    CHECK_INT(pthread_create(&threads[1], NULL, enter_it, &may_not), 0);
    CHECK_INT(pthread_join(threads[0], NULL), 0);
    CHECK_INT(may.status, MQE_INTERRUPTED);
    for (int i = 0; i < 60000 && mqx_load_relaxed(&long_waits) < 3; i++) {
        usleep(1000);
    }
    CHECK(mqx_load_relaxed(&long_waits) >= 3); /* both, and the other one goes on waiting */
    mqx_lock_drop(&region, lock);
    CHECK_INT(pthread_join(threads[1], NULL), 0);
    CHECK_INT(may_not.status, MQX_OK);
    region.long_wait = NULL;
}

TEST(a_try_says_busy_and_does_not_wait)
{
    pthread_t thread;
    int status = 0;
    begin();
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK_INT(pthread_create(&thread, NULL, try_it, &status), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(status, MQX_BUSY);
    mqx_lock_drop(&region, lock);
}

TEST(more_stores_than_the_undo_list_holds_stop_the_queue_manager_and_are_not_made)
{
    begin();
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    for (uint64_t i = 0; i < MQX_UNDO_MAX; i++) {
        mqx_undo_store64(region.base, lock, &field[0], i);
    }
    CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING);
    mqx_undo_store8(region.base, lock, (uint8_t *)&field[1], 1);
    mqx_undo_store32(region.base, lock, (uint32_t *)(void *)&field[3], 1);
    mqx_undo_store64(region.base, lock, &field[0], 4711);
    CHECK_INT(field[0], MQX_UNDO_MAX - 1);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK(mqx_region_damaged());
    CHECK(strstr(mqx_region_damage_text(&region), "undo list") != NULL);
    mqx_undo_rollback(&region, lock);
    CHECK(untouched());
    mqx_lock_drop(&region, lock);
}

TEST(dropping_a_half_made_change_undoes_it_and_stops_the_queue_manager)
{
    begin();
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    mqx_undo_store64(region.base, lock, &field[0], 1);
    mqx_lock_drop(&region, lock);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK(untouched());
    CHECK(mqx_region_damaged());
}

TEST(an_undo_entry_that_leads_outside_the_region_is_not_followed)
{
    const uint64_t bad[] = {
        region_plan().size << MQX_UNDO_SIZE_BITS | 8,
        UINT64_MAX,
        64 << MQX_UNDO_SIZE_BITS | 3,
        64 << MQX_UNDO_SIZE_BITS,
        65 << MQX_UNDO_SIZE_BITS | 8,
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        begin();
        CHECK_INT(mqx_lock_take(&region, lock), 0);
        change(7);
        lock->undo[0].location = bad[i];
        mqx_undo_rollback(&region, lock);
        CHECK_INT(lock->undo_count, 0);
        CHECK_INT(field[3], 0x4444444444444444u); /* what can be undone is */
        CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
        CHECK(mqx_region_damaged());
        mqx_lock_drop(&region, lock);
    }
}

TEST(a_count_of_undo_entries_that_cannot_be_true_is_not_followed)
{
    begin();
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    lock->undo_count = UINT32_MAX;
    mqx_undo_store64(region.base, lock, &field[0], 1);
    CHECK_INT(field[0], 0x1111111111111111u);
    mqx_undo_rollback(&region, lock);
    CHECK_INT(lock->undo_count, 0);
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    mqx_lock_drop(&region, lock);
}

static void take_in_descending_rank(void *arg)
{
    (void)arg;
    mqx_ignore(mqx_lock_take(&region, &region.header->arena_lock));
    mqx_ignore(mqx_lock_take(&region, lock));
}

TEST(locks_are_taken_in_ascending_rank_only)
{
    char text[400];
    begin();
    CHECK(test_dies(SIGABRT, take_in_descending_rank, NULL, text, sizeof text));
    CHECK(strstr(text, "held_ranks()") != NULL);
    CHECK_INT(mqx_lock_take(&region, lock), 0);
    CHECK_INT(mqx_lock_take(&region, &region.header->arena_lock), 0);
    mqx_lock_drop(&region, &region.header->arena_lock);
    mqx_lock_drop(&region, lock);
}

enum { MOVES = 20000 };

/* Moves 1 from a field to another, forever or MOVES times. */
static void *move_about(void *arg)
{
    struct test_random random = {(uint64_t)(uintptr_t)arg};
    for (int i = 0; i < MOVES; i++) {
        const uint64_t from = test_below(&random, 16), to = test_below(&random, 16);
        if (mqx_lock_take(&region, lock) != 0) {
            return (void *)1;
        }
        mqx_undo_store64(region.base, lock, &field[from], field[from] - 1);
        mqx_undo_store64(region.base, lock, &field[to], field[to] + 1);
        mqx_undo_commit(lock);
        mqx_lock_drop(&region, lock);
    }
    return NULL;
}

static uint64_t sum(void)
{
    uint64_t total = 0;
    for (int i = 0; i < 16; i++) {
        total += field[i];
    }
    return total;
}

TEST(threads_exclude_each_other)
{
    pthread_t threads[8];
    begin();
    const uint64_t before = sum();
    for (uintptr_t i = 0; i < 8; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, move_about, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < 8; i++) {
        void *failed = NULL;
        CHECK_INT(pthread_join(threads[i], &failed), 0);
        CHECK(failed == NULL);
    }
    CHECK_INT(sum(), before);
}

static void *execute_inside(void *arg)
{
    (void)arg;
    if (mqx_lock_take(&region, lock) == 0) {
        (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
    }
    return NULL;
}

/* The kernel marks no lock when the first thread's place is taken by the one that executes. */
TEST(a_lock_whose_owner_executed_another_program_from_a_second_thread_stops_the_queue_manager)
{
    const uint64_t before = mqx_lock_stranger_us;
    begin();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        region.process = 2;
        (void)pthread_create(&thread, NULL, execute_inside, NULL);
        (void)pthread_join(thread, NULL);
        _exit(1);
    }
    CHECK(child > 1);
    int32_t owner = 0;
    for (int i = 0; i < 60000 && (owner == 0 || mqx_thread_exists(child, owner)); i++) {
        owner = mqx_mutex_owner(&lock->mutex);
        usleep(1000);
    }
    CHECK(owner != 0 && owner != child && !mqx_thread_exists(child, owner));
    mqx_lock_stranger_us = 500000;
    CHECK_INT(mqx_lock_take(&region, lock), MQRC_CONNECTION_BROKEN);
    mqx_lock_stranger_us = before;
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    const char *text = mqx_region_damage_text(&region);
    char expected[64];
    (void)snprintf(expected, sizeof expected, "queues lock, thread (%d)", owner);
    CHECK(text != NULL && strstr(text, expected) != NULL);
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
}

/* A stray word made a process the owner that is not attached: it will never release the lock. */
TEST(a_call_that_looks_at_signals_each_second_does_not_wait_for_a_stranger_for_ever)
{
    const uint64_t before = mqx_lock_stranger_us;
    int status = MQE_INTERRUPTED, calls = 0;
    begin();
    const pid_t stranger = fork();
    if (stranger == 0) {
        (void)pause();
        _exit(1);
    }
    CHECK(stranger > 1);
    lock->mutex.__data.__lock = stranger;
    mqx_lock_stranger_us = 2500000;
    for (; calls < 6 && status == MQE_INTERRUPTED; calls++) {
        mqx_interrupt_allow(true);
        status = mqx_lock_enter(&region, lock);
        mqx_interrupt_allow(false);
    }
    mqx_lock_stranger_us = before;
    CHECK_INT(status, MQRC_CONNECTION_BROKEN);
    CHECK(calls <= 3); /* a second each */
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    CHECK_INT(kill(stranger, SIGKILL), 0);
    CHECK_INT(waitpid(stranger, NULL, 0), stranger);
}

TEST(processes_killed_at_any_moment_leave_the_sum_as_it_was_and_the_others_going)
{
    struct test_random random = {test_seed()};
    begin();
    const uint64_t before = sum();
    uint32_t kills = 0;
    for (; kills < 300; kills++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            region.process = kills % 1000 + 1;
            for (;;) {
                mqx_ignore(move_about((void *)(uintptr_t)(kills + 1)) != NULL);
            }
        }
        CHECK(child > 1);
        const struct timespec pause = {.tv_nsec = (long)test_below(&random, 900000)};
        (void)nanosleep(&pause, NULL);
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        CHECK_INT(mqx_lock_take(&region, lock), 0);
        const uint64_t now = sum();
        mqx_lock_drop(&region, lock);
        CHECK_INT(now, before);
    }
    CHECK(lock->repairs > 0);
    printf("(%u kills, %u repairs) ", kills, lock->repairs);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
