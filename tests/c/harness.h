/*
 * harness.h - what a C test file needs, in one header.
 *
 *     #include "harness.h"
 *
 *     TEST(crc_of_a_concatenation_is_the_chained_crc)
 *     {
 *         CHECK_INT(mqx_crc32c(0, "ab", 2), mqx_crc32c(mqx_crc32c(0, "a", 1), "b", 1));
 *     }
 *
 *     TEST_MAIN()
 *
 * A test's name is the claim that it proves. Tests run in the order of the file, in one process. A
 * failed check prints file, line and both values, ends its test and makes the program's status 1; a
 * test that needs cleaning up does it with __attribute__((cleanup)) or not at all. Arguments of the
 * program choose tests by a part of their names.
 *
 * Random tests take their numbers from a test_random that starts at test_seed(): 1, or the number
 * in the environment variable SEED. The seed is printed at the end.
 *
 * A check may be used in helper functions and in other threads' code only as test_expect(), which
 * records the failure and returns false, since ending a test is a longjmp of the main thread.
 */
#ifndef PENSTOCK_TESTS_HARNESS_H
#define PENSTOCK_TESTS_HARNESS_H

#include "../../csrc/base.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct test_case {
    const char *name;
    void (*run)(void);
    struct test_case *next;
};

static struct test_case *test_first;
static struct test_case **test_last = &test_first;
static jmp_buf test_stop;
static int test_failures; /* of the running test */

#define TEST(name) \
    static void test_##name(void); \
    static struct test_case case_##name = {#name, test_##name, NULL}; \
    __attribute__((constructor)) static void register_##name(void) \
    { \
        *test_last = &case_##name; \
        test_last = &case_##name.next; \
    } \
    static void test_##name(void)

/* Records a failure when `ok` is false; the caller goes on. */
__attribute__((unused)) static bool test_expect(bool ok, const char *file, int line,
                                                const char *what)
{
    if (!ok) {
        __atomic_fetch_add(&test_failures, 1, __ATOMIC_RELAXED);
        printf("\n    %s:%d: %s", file, line, what);
    }
    return ok;
}

__attribute__((unused)) static void test_int(int64_t got, int64_t want, const char *text,
                                             const char *file, int line)
{
    if (got != want) {
        test_expect(false, file, line, text);
        printf("\n        got %" PRId64 " (0x%" PRIx64 "), want %" PRId64 " (0x%" PRIx64 ")", got,
               (uint64_t)got, want, (uint64_t)want);
        longjmp(test_stop, 1);
    }
}

__attribute__((unused)) static void test_string(const char *got, const char *want, const char *text,
                                                const char *file, int line)
{
    if (strcmp(got, want) != 0) {
        test_expect(false, file, line, text);
        printf("\n        got \"%s\", want \"%s\"", got, want);
        longjmp(test_stop, 1);
    }
}

__attribute__((unused)) static void test_memory(const void *got, const void *want, size_t size,
                                                const char *text, const char *file, int line)
{
    const uint8_t *a = got;
    const uint8_t *b = want;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            test_expect(false, file, line, text);
            printf("\n        byte %zu of %zu: got 0x%02x, want 0x%02x", i, size, a[i], b[i]);
            longjmp(test_stop, 1);
        }
    }
}

#define CHECK(cond) \
    do { \
        if (!test_expect((cond), __FILE__, __LINE__, #cond)) { \
            longjmp(test_stop, 1); \
        } \
    } while (0)
#define CHECK_INT(got, want) \
    test_int((int64_t)(got), (int64_t)(want), #got " is " #want, __FILE__, __LINE__)
#define CHECK_STR(got, want) test_string((got), (want), #got " is " #want, __FILE__, __LINE__)
#define CHECK_MEM(got, want, size) \
    test_memory((got), (want), (size), #got " equals " #want, __FILE__, __LINE__)

/* Runs body(arg) in a child whose stderr is caught in `text`; true when it died of that signal. */
__attribute__((unused)) static bool test_dies(int signal_number, void (*body)(void *), void *arg,
                                              char *text, size_t text_size)
{
    int ends[2];
    int status = 0;

    fflush(NULL);
    if (pipe(ends) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        body(arg);
        _exit(0);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t n = 1;
    while (n > 0 && used + 1 < text_size) {
        n = read(ends[0], text + used, text_size - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    text[used] = '\0';
    close(ends[0]);
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == signal_number;
}

__attribute__((unused)) static uint64_t test_seed(void)
{
    const char *text = getenv("SEED");
    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

/* A small generator of random numbers (xorshift multiply); any state will do to start. */
struct test_random {
    uint64_t state;
};

__attribute__((unused)) static uint64_t test_next(struct test_random *random)
{
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 .. bound - 1 */
__attribute__((unused)) static uint64_t test_below(struct test_random *random, uint64_t bound)
{
    return test_next(random) % bound;
}

__attribute__((unused)) static bool test_chosen(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strstr(name, argv[i]) != NULL) {
            return true;
        }
    }
    return argc == 1;
}

static int test_run_all(int argc, char **argv)
{
    volatile int run = 0;
    volatile int failed = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (struct test_case *volatile test = test_first; test != NULL; test = test->next) {
        if (!test_chosen(test->name, argc, argv)) {
            continue;
        }
        printf("%s ... ", test->name);
        fflush(stdout);
        test_failures = 0;
        if (setjmp(test_stop) == 0) {
            test->run();
        }
        printf("%s\n", test_failures == 0 ? "ok" : "\n    FAILED");
        run++;
        failed += test_failures != 0;
    }
    printf("%d tests, %d failed, seed %" PRIu64 "\n", run, failed, test_seed());
    return failed != 0 || run == 0;
}

#define TEST_MAIN() \
    int main(int argc, char **argv) \
    { \
        return test_run_all(argc, argv); \
    }

#endif
