/*
 * storm.c - crash-safety layer T7: processes are killed at random while others work; then
 * everything is counted.
 *
 * Workers and the account: storm.h.
 *
 * The end check, from a recovery of a copy of the files, with units in doubt, and from the live
 * region (and, by the Python test around this program, from the second reader), each after ending
 * its prepared units: every acked id is on exactly one queue
 * or was taken exactly once; a unit is whole; nothing was invented, nothing doubled; a producer's
 * messages of one priority are in order on A; depths, indexes and free lists agree with a
 * walk; the longest time any live worker stood still is printed.
 *
 *   storm [--kills N] [--workers N] [--seed S] [--time SECONDS] [--keep PREFIX]
 *
 * --keep leaves the copy that was recovered as PREFIX-copy, and what was found in it as
 * PREFIX-found.txt.
 */
#include "storm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_KILLS = 5000 };

static uint64_t round_no, ids_total;

/* ---- the end check ---- */

static void check_live(void)
{
    uint32_t found = 0;
    storm_must("repair", mqe_maintain(storm.fixture.manager));
    fixture_resolve(storm.fixture.manager, UINT32_MAX);
    storm_clear_queued();
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        struct mqe_queue_status status;
        const uint32_t count = storm_browse(storm.fixture.manager, q, false, NULL);
        storm_must("status", mqe_queue_status(storm.fixture.manager, storm.fixture.slot[q],
                                              storm.fixture.generation[q], &status));
        if (status.depth != count) {
            fprintf(stderr, "queue %d has depth %u and %u messages\n", q, status.depth, count);
            exit(1);
        }
        found += count;
    }
    storm_check("live region", false);
    storm_must("check", mqe_check(storm.fixture.manager));
    if (!fixture_audit(&storm.fixture)) {
        fprintf(stderr, "T7 FAILED (memory), seed %llu\n", (unsigned long long)storm.seed);
        exit(1);
    }
    printf("live region: %u messages, all accounted for\n", found);
}

static void check_recovery(const char *keep)
{
    char copy[200], command[600];
    snprintf(copy, sizeof copy, "%s-copy", keep != NULL ? keep : storm.fixture.path);
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", copy, storm.fixture.path,
             copy);
    if (system(command) != 0) {
        fixture_die(command, 0);
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct mqe_attach_info info;
        mqe_manager *manager = NULL;
        uint32_t found = 0;
        FILE *list = keep != NULL ? storm_open_list(keep) : NULL;
        storm_clear_queued();
        storm_must("attach to the copy",
                   mqe_attach(copy, &storm.fixture.settings, &manager, &info));
        const uint32_t doubted = storm_end_prepared(manager);
        for (int q = 0; q < FIXTURE_QUEUES; q++) {
            found += storm_browse(manager, q, true, list);
        }
        storm_check("recovery from the files", true);
        printf("recovery: %u units in doubt, %u persistent messages, all accounted for\n", doubted,
               found);
        fflush(NULL);
        _exit(0);
    }
    int outcome = -1;
    if (waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0) {
        fprintf(stderr, "T7 FAILED in the second witness, seed %llu\n",
                (unsigned long long)storm.seed);
        exit(1);
    }
    snprintf(command, sizeof command, "rm -rf '%s'", copy);
    if (keep == NULL && system(command) != 0) {
        fixture_die(command, 0);
    }
}

/* ---- the run ---- */

static void forget_everything(void)
{
    storm_accounts_forget();
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm.shared->beat[i] = 0;
        storm.workers[i] = (struct worker){0};
    }
    storm.shared->stop = 0;
    storm.shared->ids = 0;
    storm.shared->ration = IDS_AT_FIRST;
}

/* Consumers leave first, then movers, so that both queues hold messages when they are counted. */
static void end_in_turn(void)
{
    for (uint32_t stop = CONSUMERS_END; stop <= PRODUCERS_END; stop++) {
        const struct timespec pause = {.tv_nsec = 100000000};
        __atomic_store_n(&storm.shared->stop, stop, __ATOMIC_RELEASE);
        (void)__atomic_add_fetch(&storm.shared->ration, 4 * IDS_A_KILL, __ATOMIC_RELAXED);
        (void)nanosleep(&pause, NULL);
        storm_watch();
    }
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm_bury(i);
    }
}

/* One queue manager, at most ROUND_KILLS kills, all checks; the kills done. */
static uint64_t one_storm(uint64_t kills, uint64_t end_ms, const char *keep)
{
    uint64_t random = (storm.seed + round_no) * 0x2545f4914f6cdd1dull + 7, done = 0;
    forget_everything();
    fixture_make(&storm.fixture);
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm_spawn(i);
    }
    while (done < kills && (end_ms == 0 || storm_now_ms() < end_ms)) {
        const struct timespec pause = {.tv_nsec = (long)(storm_random(&random) % 6000000)};
        (void)nanosleep(&pause, NULL);
        storm_watch();
        const uint32_t index = (uint32_t)(storm_random(&random) % storm.worker_count);
        storm_kill(index);
        storm_bury(index);
        storm_spawn(index);
        done++;
        (void)__atomic_add_fetch(&storm.shared->ration, IDS_A_KILL, __ATOMIC_RELAXED);
    }
    end_in_turn();
    check_recovery(keep);
    check_live();
    fixture_remove(&storm.fixture);
    ids_total += storm.shared->known;
    round_no += 1;
    return done;
}

static int storms(uint64_t kills, uint64_t seconds, const char *keep)
{
    const uint64_t start = storm_now_ms(), end = seconds == 0 ? 0 : start + seconds * 1000;
    uint64_t done = 0, longest = 0;
    while (done < kills && (end == 0 || storm_now_ms() < end)) {
        const uint64_t left = kills - done;
        done += one_storm(left < ROUND_KILLS ? left : ROUND_KILLS, end, keep);
    }
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        longest = storm.shared->lasting[i] > longest ? storm.shared->lasting[i] : longest;
    }
    printf("T7: %llu kills of %u C workers in %.1f s, %llu rounds, %llu units acked, %llu backed "
           "out, %llu ids, 0 lost, 0 twice, 0 torn, longest stand-still %llu ms, seed %llu\n",
           (unsigned long long)done, storm.worker_count, (double)(storm_now_ms() - start) / 1000,
           (unsigned long long)round_no, (unsigned long long)storm.units_acked,
           (unsigned long long)storm.units_undone, (unsigned long long)ids_total,
           (unsigned long long)longest, (unsigned long long)storm.seed);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t kills = 0, seconds = 0;
    const char *keep = NULL;
    storm.layer = "T7";
    storm.work = storm_worker;
    storm.worker_count = 10;
    storm.seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--kills") == 0) {
            kills = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--workers") == 0) {
            storm.worker_count = (uint32_t)strtoul(value, NULL, 10) % (WORKERS_MAX + 1);
        } else if (strcmp(argv[i], "--seed") == 0) {
            storm.seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--time") == 0) {
            seconds = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--keep") == 0) {
            keep = value;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    kills = kills == 0 && seconds == 0 ? 4700 : kills;
    storm_isolate();
    storm_accounts_make(1u << 22);
    return storms(seconds != 0 && kills == 0 ? UINT64_MAX : kills, seconds, keep);
}
