/*
 * test_life_thread.c - claims of life_thread.h: what the kernel does to a life word when a process
 * is killed, exits, executes another program, forks, or stops.
 */
#include "os/life_thread.h"

#include "base/atomic.h"
#include "base/error.h"
#include "fixtures/harness.h"
#include "os/host_info.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static uint32_t *word; /* shared with children */

static void start(void)
{
    if (word == NULL) {
        word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(word != MAP_FAILED);
    }
    *word = 0;
}

/* A child that attaches, runs body() and stays until it is killed; returns when it has a sign. */
static pid_t child_with(void (*body)(void))
{
    start();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct mqx_life_thread *life = NULL;
        if (mqx_life_thread_start(word, &life) != 0) {
            _exit(9);
        }
        body();
        _exit(0);
    }
    for (int i = 0; i < 10000 && mqx_load_acquire(word) == 0; i++) {
        usleep(1000);
    }
    CHECK(mqx_load_acquire(word) != 0);
    return child;
}

static void wait_for_mark(void)
{
    for (int i = 0; i < 10000 && mqx_load_acquire(word) != MQX_LIFE_MARKED; i++) {
        usleep(1000);
    }
    CHECK_INT(mqx_load_acquire(word), MQX_LIFE_MARKED);
}

static void sleep_on(void)
{
    sleep(60);
}

static void exit_at_once(void)
{
}

static void execute(void)
{
    (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
}

static void *execute_in_thread(void *arg)
{
    (void)arg;
    execute();
    return NULL;
}

static void execute_elsewhere(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, execute_in_thread, NULL) == 0) {
        (void)pthread_join(thread, NULL);
    }
}

static void fork_child_that_stays(void)
{
    if (fork() == 0) {
        sleep(1);
        _exit(0);
    }
    sleep(60);
}

static void end(pid_t child)
{
    CHECK_INT(kill(child, SIGKILL), 0);
    CHECK_INT(waitpid(child, NULL, 0), child);
}

TEST(the_word_has_the_threads_id_while_it_lives_and_0_after_an_orderly_end)
{
    struct mqx_life_thread *life = NULL;
    start();
    CHECK_INT(mqx_life_thread_start(word, &life), 0);
    const int32_t id = mqx_life_thread_id(life);
    CHECK(id > 0 && id != getpid());
    CHECK_INT(*word, id);
    CHECK(mqx_thread_exists((int32_t)getpid(), id));
    mqx_life_thread_end(life, true);
    CHECK_INT(*word, 0);
    CHECK(!mqx_thread_exists((int32_t)getpid(), id));
}

TEST(an_end_that_is_not_orderly_leaves_the_mark_of_a_death)
{
    struct mqx_life_thread *life = NULL;
    start();
    CHECK_INT(mqx_life_thread_start(word, &life), 0);
    mqx_life_thread_end(life, false);
    CHECK_INT(*word, MQX_LIFE_MARKED);
}

TEST(a_killed_process_is_marked_even_before_its_parent_waits_for_it)
{
    const pid_t child = child_with(sleep_on);
    CHECK_INT(kill(child, SIGKILL), 0);
    wait_for_mark();
    CHECK_INT(waitpid(child, NULL, 0), child);
}

TEST(a_process_that_exits_is_marked)
{
    const pid_t child = child_with(exit_at_once);
    wait_for_mark();
    CHECK_INT(waitpid(child, NULL, 0), child);
}

TEST(a_process_that_executes_another_program_is_marked_whichever_thread_does_it)
{
    pid_t child = child_with(execute);
    wait_for_mark();
    CHECK(mqx_thread_exists(child, child)); /* the new program has the old pid */
    end(child);
    child = child_with(execute_elsewhere);
    wait_for_mark();
    CHECK(mqx_thread_exists(child, child));
    end(child);
}

TEST(a_forked_child_neither_marks_the_word_nor_keeps_it)
{
    const pid_t child = child_with(fork_child_that_stays);
    const uint32_t id = mqx_load_acquire(word);
    usleep(20000);
    CHECK_INT(mqx_load_acquire(word), id);
    end(child);
    CHECK_INT(mqx_load_acquire(word), MQX_LIFE_MARKED);
}

TEST(a_stopped_process_lives)
{
    const pid_t child = child_with(sleep_on);
    const uint32_t id = mqx_load_acquire(word);
    CHECK_INT(kill(child, SIGSTOP), 0);
    int status = 0;
    CHECK_INT(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    CHECK_INT(mqx_load_acquire(word), id);
    CHECK(mqx_thread_exists(child, (int32_t)id));
    end(child);
    CHECK_INT(mqx_load_acquire(word), MQX_LIFE_MARKED);
}

static void inherit(void)
{
    struct mqx_life_thread *life = NULL;
    uint32_t mine = 0;
    if (mqx_life_thread_start(&mine, &life) != 0) {
        _exit(9);
    }
    const pid_t child = fork();
    if (child == 0) {
        mqx_life_thread_end(life, true); /* frees only: the word is the parent's */
        _exit(mine == 0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
        _exit(8);
    }
    mqx_life_thread_end(life, true);
    _exit(mine == 0 ? 0 : 7);
}

TEST(ending_it_in_a_forked_child_leaves_the_parents_sign_alone)
{
    int status = 0;
    const pid_t child = child_with(inherit);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
}

TEST_MAIN()
