/*
 * storm_processes.c - the processes of a kill storm, as their supervisor has them: see storm.h.
 */
#include "storm.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STUCK_MS = 60000 };

struct storm storm;

void storm_must(const char *what, int reason)
{
    if (reason != 0) {
        fixture_die(what, reason);
    }
}

uint64_t storm_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

uint64_t storm_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void drain(struct worker *worker)
{
    struct note note;
    while (read(worker->pipe, &note, sizeof note) == (ssize_t)sizeof note) {
        storm_apply(&note);
    }
}

void storm_spawn(uint32_t index)
{
    struct worker *worker = &storm.workers[index];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fixture_die("pipe", errno);
    }
    worker->incarnation++;
    fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        storm.note_pipe = ends[1];
        storm.work(index, worker->incarnation);
        _exit(0);
    }
    if (worker->pid <= 1) {
        fixture_die("fork", errno);
    }
    (void)close(ends[1]);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    worker->pipe = ends[0];
    worker->pidfd = (int)syscall(SYS_pidfd_open, worker->pid, 0);
    worker->last_change_ms = storm_now_ms();
}

void storm_bury(uint32_t index)
{
    struct worker *worker = &storm.workers[index];
    int outcome = 0;
    pid_t ended = 0;
    while (ended == 0) { /* a worker may be writing to a full pipe */
        const struct timespec pause = {.tv_nsec = 200000};
        drain(worker);
        ended = waitpid(worker->pid, &outcome, WNOHANG);
        (void)nanosleep(&pause, NULL);
    }
    if (ended != worker->pid) {
        fixture_die("waitpid", errno);
    }
    drain(worker);
    (void)close(worker->pipe);
    (void)close(worker->pidfd);
    if (!(WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGKILL) &&
        !(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0)) {
        fprintf(stderr, "a worker ended with status 0x%x, seed %llu\n", outcome,
                (unsigned long long)storm.seed);
        exit(1);
    }
}

void storm_kill(uint32_t index)
{
    struct worker *worker = &storm.workers[index];
    if (worker->pid <= 1 || worker->pidfd < 0) {
        fixture_die("refusing to kill", worker->pid);
    }
    if (syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0) != 0) {
        fixture_die("pidfd_send_signal", errno);
    }
}

void storm_watch(void)
{
    const uint64_t now = storm_now_ms();
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        struct worker *worker = &storm.workers[i];
        const uint64_t beat = __atomic_load_n(&storm.shared->beat[i], __ATOMIC_RELAXED);
        drain(worker);
        if (beat != worker->last_beat) {
            worker->last_beat = beat;
            worker->last_change_ms = now;
        } else if (now - worker->last_change_ms > storm.shared->lasting[i]) {
            storm.shared->lasting[i] = now - worker->last_change_ms;
            if (storm.shared->lasting[i] > STUCK_MS) {
                fprintf(stderr, "%s FAILED: worker %u is stuck, seed %llu\n", storm.layer, i,
                        (unsigned long long)storm.seed);
                exit(1);
            }
        }
    }
}

static void isolate(void)
{
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) {
        printf("no PID namespace of our own (%s); kills go through pidfds only\n", strerror(errno));
        return;
    }
    const pid_t inner = fork();
    if (inner > 0) {
        int outcome = -1;
        (void)waitpid(inner, &outcome, 0);
        exit(WIFEXITED(outcome) ? WEXITSTATUS(outcome) : 2);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the end of the storm ends all of it */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("proc", "/proc", "proc", 0, NULL) != 0) {
        fixture_die("mounting /proc", errno);
    }
    const pid_t main_process = fork(); /* not to be pid 1, which reaps and ignores signals */
    if (main_process > 0) {
        int outcome = -1;
        (void)waitpid(main_process, &outcome, 0);
        exit(WIFEXITED(outcome) ? WEXITSTATUS(outcome) : 2);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void storm_isolate(void)
{
    isolate();
    storm.shared = mmap(NULL, sizeof *storm.shared, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (storm.shared == MAP_FAILED) {
        fixture_die("mmap", errno);
    }
}
