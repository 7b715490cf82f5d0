/*
 * ping.c - the limit of request and reply between two processes: two futex words in shared memory.
 *
 * The asking side stores a number in `request` and wakes; the answering process stores the same
 * number in `reply` and wakes. Nobody spins: each hand-over costs one wake-up of a sleeping
 * process, as it does for a get that waits.
 *
 * Where the two run decides the figure: on one processor the kernel switches from one to the other
 * (about 5 us for the round trip), on two it has to wake an idle one (tens of microseconds in a
 * virtual machine). The caller therefore says where.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct ping {
    uint32_t request __attribute__((aligned(64)));
    uint32_t reply __attribute__((aligned(64)));
};

/* Waits until *word is no longer `seen`; gives its value. */
static uint32_t next_value(uint32_t *word, uint32_t seen)
{
    uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

    while (value == seen) {
        raw_futex_wait(word, seen);
        value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    }
    return value;
}

static void hand_over(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    raw_futex_wake(word, 1);
}

static int run_on(int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

static _Noreturn void answer(struct ping *ping, uint32_t count, int processor)
{
    uint32_t seen = 0;

    if (run_on(processor) != 0)
        _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (seen != count) {
        seen = next_value(&ping->request, seen);
        hand_over(&ping->reply, seen);
    }
    _exit(0);
}

int raw_ping_pong(uint32_t count, int ask_on, int answer_on, uint64_t *round_trip_ns)
{
    cpu_set_t before;
    struct ping *ping;
    int status = 0;
    int rc = 0;
    pid_t child;

    if (sched_getaffinity(0, sizeof(before), &before) != 0)
        return -errno;
    if (ask_on < 0 || ask_on >= CPU_SETSIZE || !CPU_ISSET((size_t)ask_on, &before) ||
        answer_on < 0 || answer_on >= CPU_SETSIZE || !CPU_ISSET((size_t)answer_on, &before))
        return -EINVAL;
    ping = mmap(NULL, sizeof(*ping), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ping == MAP_FAILED)
        return -errno;
    child = fork();
    if (child == 0)
        answer(ping, count, answer_on);
    if (child < 0) {
        rc = -errno;
        goto done;
    }
    rc = run_on(ask_on);
    for (uint32_t i = 1; i <= count; i++) {
        uint64_t begun = raw_now_ns();
        hand_over(&ping->request, i);
        if (next_value(&ping->reply, i - 1) != i)
            rc = -EBADMSG;
        round_trip_ns[i - 1] = raw_now_ns() - begun;
    }
    if (waitpid(child, &status, 0) != child || status != 0)
        rc = -ECHILD;
    if (sched_setaffinity(0, sizeof(before), &before) != 0 && rc == 0)
        rc = -errno;
done:
    munmap(ping, sizeof(*ping));
    return rc;
}
