/*
 * checkpoint_storm.c - the storm of checkpoints: checkpoints and compactions without a pause beside
 * units of all kinds; everybody is killed at one moment; each time what a restart finds is counted.
 *
 * Workers are those of T7 (storm.h); beside them one process takes checkpoints, compacts and rolls
 * maintenance all the time, and one keeps units open and idle over many of these. Messages of low
 * priority stay long, so that compaction has something to move; prepared units wait over several
 * restarts.
 *
 * A round: all processes attach (the first one restarts the queue manager), work for a drawn
 * time, often less than a restart takes, and are killed. Then a copy of the files is recovered, as
 * after a reboot, its units in doubt are ended, and everything is counted; it ends in order, and
 * what was found there holds for all later rounds (storm_settle()). In every third round the region
 * of the dead is removed, so that the next restart has the files alone; else it reads that region,
 * too. In every fifth round the queue manager itself is attached, its units in doubt are ended, and
 * its region is counted and audited; it is ended in order, or killed again.
 *
 * Journal files stay within the limit. Each STORE_ROUNDS rounds begin with new files; the copy of
 * the last round is left for the second reader, with --keep.
 *
 *   checkpoint_storm [--rounds N] [--workers N] [--seed S] [--keep PREFIX]
 */
#include "storm.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STORE_ROUNDS = 25, REBOOT_EVERY = 3, LIVE_EVERY = 5, LONGEST_MS = 160 };
enum { CHECKPOINTER = 0, HOLDER = 1 };

static uint64_t drawing; /* state of the supervisor's random numbers */
static uint64_t ids_total;

/* ---- workers ---- */

static _Noreturn void checkpointer(uint32_t index, uint32_t incarnation)
{
    mqe_unit *unit = NULL;
    uint64_t random = storm.seed * 0x9e3779b97f4a7c15ull + incarnation + 1;
    storm.self = index;
    mqe_manager *manager = storm_attach(&unit);
    for (;;) {
        const uint64_t drawn = storm_random(&random) % 8;
        const int reason = drawn < 4   ? mqe_checkpoint(manager)
                           : drawn < 7 ? mqe_compact(manager)
                                       : mqe_maintain(manager);
        storm_must("checkpoint", reason);
        storm.shared->beat[index]++;
        storm.shared->checkpoints++;
    }
}

static void work(uint32_t index, uint32_t incarnation)
{
    if (index == CHECKPOINTER) {
        checkpointer(index, incarnation);
    }
    if (index == HOLDER) {
        storm_holder(index, incarnation);
    }
    storm_worker(index, incarnation);
}

/* ---- counting ---- */

static void run(const char *format, const char *a, const char *b)
{
    char command[700];
    snprintf(command, sizeof command, format, a, b);
    if (system(command) != 0) {
        fixture_die(command, 0);
    }
}

static void check_size(mqe_manager *manager)
{
    struct mqe_manager_status status = {0};
    storm_must("status", mqe_status(manager, &status));
    if (status.journal_bytes > status.journal_limit) {
        fprintf(stderr, "%s FAILED: %llu bytes of journal, limit %llu, seed %llu\n", storm.layer,
                (unsigned long long)status.journal_bytes, (unsigned long long)status.journal_limit,
                (unsigned long long)storm.seed);
        exit(1);
    }
}

/* Everything that a restart of the files at `path` finds; the attachment is left as it is. */
static mqe_manager *count_all(const char *path, const char *witness, FILE *list)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    storm_must("attach", mqe_attach(path, &storm.fixture.settings, &manager, &info));
    check_size(manager);
    storm_clear_queued();
    storm.shared->doubted += storm_end_prepared(manager);
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        struct mqe_queue_status status;
        const uint32_t count = storm_browse(manager, q, true, list);
        storm_must("status", mqe_queue_status(manager, storm.fixture.slot[q],
                                              storm.fixture.generation[q], &status));
        if (status.depth != count) {
            fprintf(stderr, "%s FAILED (%s): queue %d has depth %u and %u messages, seed %llu\n",
                    storm.layer, witness, q, status.depth, count, (unsigned long long)storm.seed);
            exit(1);
        }
        storm.shared->found += count;
    }
    storm_check(witness, true);
    storm_must("check", mqe_check(manager));
    return manager;
}

static void leave(mqe_manager *manager)
{
    uint64_t lost;
    storm_must("end", mqe_detach(manager, MQE_DETACH_ORDERLY, &lost));
}

static void count_copy(const char *copy, const char *keep)
{
    FILE *list = keep != NULL ? storm_open_list(keep) : NULL;
    leave(count_all(copy, "copy", list));
    if (list != NULL) {
        (void)fclose(list);
    }
}

static void count_live(bool ends)
{
    mqe_manager *manager = count_all(storm.fixture.path, "restart", NULL);
    struct crash_fixture here = storm.fixture;
    here.manager = manager;
    if (!fixture_audit(&here)) {
        fprintf(stderr, "%s FAILED (memory), seed %llu\n", storm.layer,
                (unsigned long long)storm.seed);
        exit(1);
    }
    if (ends) {
        leave(manager);
    }
}

static void await(pid_t child)
{
    int outcome = -1;
    if (child <= 1 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome) ||
        WEXITSTATUS(outcome) != 0) {
        fprintf(stderr, "%s FAILED: a count ended with 0x%x, seed %llu\n", storm.layer, outcome,
                (unsigned long long)storm.seed);
        exit(1);
    }
}

/* After the death of all: a copy, in a process of its own. */
static void witness_copy(const char *keep)
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s-copy", keep != NULL ? keep : storm.fixture.path);
    run("rm -rf '%s'%s", copy, "");
    run("cp -r '%s' '%s'", storm.fixture.path, copy);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        count_copy(copy, keep);
        _exit(0);
    }
    await(child);
    storm_settle();
    if (keep == NULL) {
        run("rm -rf '%s'%s", copy, "");
    }
}

static void witness_live(void)
{
    const bool ends = storm_random(&drawing) % 2 == 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        count_live(ends);
        _exit(0); /* or it dies with all that it has */
    }
    await(child);
}

/* Removes the region that the lock file names. */
static void reboot(void)
{
    char name[300], line[300], pattern[400];
    glob_t found = {0};
    snprintf(name, sizeof name, "%s/lock", storm.fixture.path);
    FILE *lock = fopen(name, "r");
    while (lock != NULL && fgets(line, sizeof line, lock) != NULL) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "region=penstock-", 16) == 0) {
            snprintf(pattern, sizeof pattern, "/dev/shm/%s*", line + 7);
            (void)glob(pattern, 0, NULL, &found);
        }
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        (void)unlink(found.gl_pathv[i]);
    }
    globfree(&found);
    if (lock != NULL) {
        (void)fclose(lock);
    }
}

/* ---- the run ---- */

static void make_store(void)
{
    storm_accounts_forget();
    fixture_make(&storm.fixture);
    leave(storm.fixture.manager);
    storm.fixture.manager = NULL;
    storm.shared->ration = UINT64_MAX;
}

static void remove_store(void)
{
    reboot();
    ids_total += storm.shared->known;
    run("rm -rf '%s'%s", storm.fixture.path, "");
}

static void work_and_die(void)
{
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm_spawn(i);
    }
    const uint64_t end = storm_now_ms() + storm_random(&drawing) % LONGEST_MS;
    do {
        const struct timespec pause = {.tv_nsec = (long)(storm_random(&drawing) % 4000000)};
        (void)nanosleep(&pause, NULL);
        storm_watch(); /* else a pipe fills up */
    } while (storm_now_ms() < end);
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm_kill(i);
    }
    for (uint32_t i = 0; i < storm.worker_count; i++) {
        storm_bury(i);
    }
}

static void rounds(uint64_t count, const char *keep)
{
    for (uint64_t round = 0; round < count; round++) {
        if (round % STORE_ROUNDS == 0) {
            make_store();
        }
        work_and_die();
        witness_copy(round + 1 == count ? keep : NULL);
        if (round % REBOOT_EVERY == REBOOT_EVERY - 1) {
            reboot();
        }
        if (round % LIVE_EVERY == LIVE_EVERY - 1) {
            witness_live();
        }
        if (round % STORE_ROUNDS == STORE_ROUNDS - 1 || round + 1 == count) {
            remove_store();
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t count = 100;
    const char *keep = NULL;
    storm.layer = "checkpoint storm";
    storm.work = work;
    storm.worker_count = 9;
    storm.seed = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--rounds") == 0) {
            count = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--workers") == 0) {
            storm.worker_count = (uint32_t)strtoul(value, NULL, 10) % (WORKERS_MAX + 1);
        } else if (strcmp(argv[i], "--seed") == 0) {
            storm.seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--keep") == 0) {
            keep = value;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    storm_isolate();
    storm_accounts_make(1u << 18);
    drawing = storm.seed * 0x2545f4914f6cdd1dull + 7;
    const uint64_t start = storm_now_ms();
    rounds(count, keep);
    printf("checkpoint storm: %llu rounds of %u C workers, all killed each time, in %.1f s: %llu "
           "checkpoints and compactions, %llu units acked, %llu in doubt, %llu ids, %llu messages "
           "found, 0 lost, 0 twice, 0 torn, seed %llu\n",
           (unsigned long long)count, storm.worker_count, (double)(storm_now_ms() - start) / 1000,
           (unsigned long long)storm.shared->checkpoints, (unsigned long long)storm.units_acked,
           (unsigned long long)storm.shared->doubted, (unsigned long long)ids_total,
           (unsigned long long)storm.shared->found, (unsigned long long)storm.seed);
    return 0;
}
