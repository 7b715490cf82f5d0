/* Claims of atomic.h: a compare and swap says whether it happened; counters lose nothing; a release
 * store publishes what was stored before it. */
#include "base/atomic.h"
#include "fixtures/harness.h"

#include <pthread.h>

enum { THREADS = 4, STEPS = 20000 };

TEST(a_compare_and_swap_changes_the_word_only_when_it_is_as_expected)
{
    uint32_t word = 7;
    CHECK(!mqx_cas32(&word, 6, 9));
    CHECK_INT(word, 7);
    CHECK(mqx_cas32(&word, 7, 9));
    CHECK_INT(word, 9);
    CHECK_INT(mqx_exchange(&word, 1u), 9);
    CHECK_INT(mqx_fetch_add(&word, 2u), 1);
    CHECK_INT(mqx_load_relaxed(&word), 3);
}

static uint32_t total, relaxed_total, swapped;

static void *count(void *arg)
{
    for (int i = 0; i < STEPS; i++) {
        (void)mqx_fetch_add(&total, 1u);
        mqx_add_relaxed(&relaxed_total, 1u);
        uint32_t seen = mqx_load_acquire(&swapped);
        while (!mqx_cas32(&swapped, seen, seen + 1)) {
            seen = mqx_load_acquire(&swapped);
        }
    }
    return arg;
}

TEST(counters_of_several_threads_lose_nothing)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, count, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    CHECK_INT(total, THREADS * STEPS);
    CHECK_INT(relaxed_total, THREADS * STEPS);
    CHECK_INT(swapped, THREADS * STEPS);
}

static uint64_t data[2];
static uint32_t published;

static void *publish(void *arg)
{
    for (uint32_t i = 1; i <= STEPS; i++) {
        while (mqx_load_acquire(&published) != 0) {
        }
        mqx_store_relaxed(&data[0], (uint64_t)i);
        mqx_order();
        mqx_store_relaxed(&data[1], (uint64_t)i * 3);
        mqx_store_release(&published, i);
    }
    return arg;
}

TEST(what_was_stored_before_a_release_is_seen_after_the_acquire)
{
    pthread_t thread;
    CHECK_INT(pthread_create(&thread, NULL, publish, NULL), 0);
    for (uint32_t i = 1; i <= STEPS; i++) {
        while (mqx_load_acquire(&published) != i) {
        }
        CHECK(mqx_load_relaxed(&data[0]) == i && mqx_load_relaxed(&data[1]) == i * 3u);
        mqx_store_release(&published, 0u);
    }
    CHECK_INT(pthread_join(thread, NULL), 0);
}

TEST_MAIN()
