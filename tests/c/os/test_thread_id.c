/* Claims of mqx_thread_id() in host_info.c, and of mqx_fork_epoch() in fork_guard.c. */
#include "fixtures/harness.h"
#include "os/fork_guard.h"
#include "os/host_info.h"

#include <pthread.h>
#include <sys/syscall.h>

static int32_t kernel_says(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static void *ask_twice(void *arg)
{
    int32_t *ids = arg;
    ids[0] = mqx_thread_id();
    ids[1] = mqx_thread_id();
    ids[2] = kernel_says();
    return NULL;
}

TEST(each_thread_has_the_id_that_the_kernel_gives_it)
{
    int owner = 0;
    int32_t ids[3] = {0};
    pthread_t thread;
    CHECK_INT(mqx_fork_guard_add(&owner), 0);
    CHECK_INT(mqx_thread_id(), kernel_says());
    CHECK_INT(pthread_create(&thread, NULL, ask_twice, ids), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(ids[0], ids[2]);
    CHECK_INT(ids[1], ids[2]);
    CHECK(ids[0] != mqx_thread_id());
    mqx_fork_guard_remove(&owner);
}

/* 0 when the id is right before and after the child registers its own owner. */
static int ask_in_child(uint64_t parents_epoch)
{
    int owner = 0;
    if (mqx_thread_id() != kernel_says() || mqx_fork_epoch() != 0) {
        return 1;
    }
    if (mqx_fork_guard_add(&owner) != 0 || mqx_fork_epoch() == parents_epoch) {
        return 2;
    }
    return mqx_thread_id() == kernel_says() && mqx_thread_id() == kernel_says() ? 0 : 3;
}

TEST(a_forked_child_has_an_id_and_an_epoch_of_its_own)
{
    int owner = 0, status = -1;
    CHECK_INT(mqx_fork_guard_add(&owner), 0);
    const uint64_t epoch = mqx_fork_epoch();
    CHECK(epoch != 0);
    CHECK_INT(mqx_thread_id(), kernel_says());
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(ask_in_child(epoch));
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_INT(mqx_fork_epoch(), epoch);
    mqx_fork_guard_remove(&owner);
}

TEST_MAIN()
