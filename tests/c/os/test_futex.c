/* Claims of futex.h: a sleeper is woken by a raise, never sleeps on a changed word, and no longer
 * than its bound; words in shared memory work across processes. */
#include "os/futex.h"
#include "base/clock.h"
#include "fixtures/harness.h"

#include <pthread.h>
#include <sys/mman.h>

static const uint64_t LONG_US = 30 * UINT64_C(1000000);

TEST(a_changed_word_is_not_slept_on_and_an_unchanged_one_no_longer_than_the_bound)
{
    uint32_t word = 4;
    const uint64_t before = mqx_clock_monotonic_us();
    CHECK_INT(mqx_futex_wait(&word, 3, LONG_US), 0);
    CHECK(mqx_clock_monotonic_us() - before < LONG_US / 2);
    CHECK_INT(mqx_futex_wait(&word, 4, 20000), -ETIMEDOUT);
    CHECK(mqx_clock_monotonic_us() - before >= 20000);
    mqx_futex_wake(&word, INT_MAX); /* no sleeper: no effect */
    CHECK_INT(word, 4);
}

static void *sleep_until_raised(void *arg)
{
    uint32_t *word = arg;
    while (mqx_load_acquire(word) == 0) {
        if (mqx_futex_wait(word, 0, LONG_US) == -ETIMEDOUT) {
            return word; /* was not woken */
        }
    }
    return NULL;
}

TEST(a_raise_wakes_as_many_as_it_says)
{
    pthread_t threads[4];
    uint32_t word = 0;
    void *late = NULL;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, sleep_until_raised, &word), 0);
    }
    mqx_clock_sleep_us(20000);
    mqx_futex_raise(&word, INT_MAX);
    CHECK_INT(word, 1);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(threads[i], &late), 0);
        CHECK(late == NULL);
    }
}

TEST(another_process_is_woken)
{
    uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    CHECK(word != MAP_FAILED);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(sleep_until_raised(word) == NULL ? 0 : 1);
    }
    mqx_clock_sleep_us(20000);
    mqx_futex_raise(word, 1);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(word, 4096);
}

TEST_MAIN()
