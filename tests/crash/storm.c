/*
 * storm.c - crash-safety layer T7: processes are killed at random while others work; then
 * everything is counted.
 *
 * Workers (forked, each attaches again) are producers (units of 1 to 4 messages onto A), movers (A
 * to B, one unit), consumers (from B); each message is put and got by a call of its own, or all of
 * a unit by one call, producers' batches outside a unit, too. Now and then each walks over a queue
 * by calls that look at many, lives a life of a dynamic queue
 * (dynamic.h), of which nothing may be left but permanent queues, and prepares a unit instead of
 * committing it; each from time to time ends some of the prepared units there are, whoever made
 * them, as their names say. Ids are (worker, incarnation, counter), never used again.
 * Each worker has a pipe to the supervisor: a producer writes INTENT before and ACKED after its
 * commit, a consumer TAKING before and TOOK after; a record is one write below PIPE_BUF, whole or
 * absent, and outlives its writer. The supervisor kills through pidfds, only its own children,
 * never pid 1 or less, in a separate PID namespace where the system allows it.
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
#include "dynamic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 32,
    UNIT_MAX = 4,
    DEPTH_MAX = 500,
    TABLE_BITS = 22,
    TABLE_SIZE = 1 << TABLE_BITS,
};
enum {
    DYNAMIC_EVERY = 12,
    ROUND_KILLS = 5000,
    IDS_A_KILL = 60,
    IDS_AT_FIRST = 4000,
    STUCK_MS = 60000
};
enum { PREPARE_EVERY = 6, RESOLVE_EVERY = 10, WALK_EVERY = 24 };
enum { CONSUMERS_END = 1, MOVERS_END = 2, PRODUCERS_END = 3 };
enum kind { INTENT = 1, ACKED = 2, TAKING = 3, TOOK = 4, UNDONE = 5 };

struct note { /* one write to the pipe */
    uint32_t kind, count;
    uint64_t id[UNIT_MAX];
};

struct fate { /* what the supervisor knows of an id */
    uint64_t id, unit;
    uint8_t intended, acked, taking, took, undone, queued, persistent;
};

struct shared {
    uint32_t stop;                   /* raised to end consumers, then movers, then producers */
    uint64_t ids, ration;            /* put so far; the supervisor lets that many be put */
    uint64_t beat[WORKERS_MAX];      /* raised by the worker after each call */
    uint64_t lasting[WORKERS_MAX];   /* milliseconds: longest stand-still seen by the supervisor */
};

struct worker {
    pid_t pid;
    int pidfd, pipe;
    uint32_t incarnation;
    uint64_t last_beat, last_change_ms;
};

static struct crash_fixture fixture;
static struct shared *shared;
static struct worker workers[WORKERS_MAX];
static struct fate *table;
static uint32_t worker_count = 10;
static uint64_t seed = 1, round_no, ids_known, ids_total, units_acked, units_undone;

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- workers ---- */

static int note_pipe;
static uint32_t self;

static void tell(enum kind kind, const uint64_t *ids, uint32_t count)
{
    struct note note = {.kind = kind, .count = count};
    memcpy(note.id, ids, count * sizeof *ids);
    if (write(note_pipe, &note, sizeof note) != (ssize_t)sizeof note) {
        _exit(4);
    }
}

static void must(const char *what, int reason)
{
    if (reason != 0) {
        fixture_die(what, reason);
    }
}

/* The unit is backed out: by us, or by the queue manager, which says 2003 to a unit that a stopped
 * or starved process kept open while the journal filled up; it then waits for our backout. */
static void undo(mqe_unit *unit, const uint64_t *ids, uint32_t count)
{
    must("backout", mqe_backout(unit));
    tell(UNDONE, ids, count);
}

static bool is_refusal(int reason)
{
    return reason == MQRC_Q_FULL || reason == MQRC_STORAGE_MEDIUM_FULL || reason == MQRC_BACKED_OUT;
}

static enum fixture_fate fate_drawn(uint64_t *random)
{
    return next_random(random) % 3 == 0 ? FIXTURE_BACKS_OUT : FIXTURE_COMMITS;
}

/* The unit is prepared: every process that finds it from now on resolves it as its name says, and
 * the outcome is known already. False when the queue manager had backed it out. */
static bool hand_over(mqe_unit *unit, uint64_t name, enum fixture_fate fate)
{
    struct ps_xid xid;
    fixture_xid(name, fate, &xid);
    const int reason = mqe_prepare(unit, &xid, 0);
    must("prepare", is_refusal(reason) ? mqe_backout(unit) : reason);
    return reason == 0;
}

static uint64_t length_of(uint64_t id)
{
    return id % 97 == 0 ? 70000 : id % 31 == 0 ? 6000 : 64 + id % 400;
}

static bool rest_a_while(mqe_manager *m)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct mqe_queue_status status;
    must("status", mqe_queue_status(m, fixture.slot[0], fixture.generation[0], &status));
    if (status.depth <= DEPTH_MAX && __atomic_load_n(&shared->ids, __ATOMIC_RELAXED) <
                                         __atomic_load_n(&shared->ration, __ATOMIC_RELAXED)) {
        return false;
    }
    (void)nanosleep(&pause, NULL);
    return true;
}

/* All of a unit by one call; without a unit they are there together, or none is: one of them is
 * persistent, or there is but one. */
static int put_together(mqe_manager *m, mqe_unit *unit, int queue, const uint64_t *ids,
                        uint32_t count)
{
    struct fixture_message messages[UNIT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        messages[i] = (struct fixture_message){ids[i], length_of(ids[i]), ids[i] % 4 != 0};
    }
    return fixture_put_many(m, unit, &fixture, queue, messages, count);
}

static int put_each(mqe_manager *m, mqe_unit *unit, int queue, const uint64_t *ids, uint32_t count)
{
    int reason = 0;
    for (uint32_t i = 0; i < count && reason == 0; i++) {
        reason = fixture_put(m, unit, &fixture, queue, ids[i], ids[i] % 4 != 0, length_of(ids[i]));
        shared->beat[self]++;
    }
    return reason;
}

/* A batch that is its own unit: refused as a whole, or done. */
static void produce_alone(mqe_manager *m, const uint64_t *ids, uint32_t count)
{
    const int reason = put_together(m, NULL, 0, ids, count);
    must("put alone", is_refusal(reason) ? 0 : reason);
    tell(reason == 0 ? ACKED : UNDONE, ids, count);
}

static void produce(mqe_manager *m, mqe_unit *unit, uint64_t base, uint64_t *counter,
                    uint64_t *random)
{
    uint64_t ids[UNIT_MAX];
    if (rest_a_while(m)) {
        return;
    }
    const uint32_t count = (uint32_t)(next_random(random) % UNIT_MAX) + 1;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = base | (*counter)++;
    }
    (void)__atomic_add_fetch(&shared->ids, count, __ATOMIC_RELAXED);
    tell(INTENT, ids, count);
    const uint64_t way = next_random(random) % 3;
    if (way == 0) {
        produce_alone(m, ids, count);
        return;
    }
    const int put = (way == 1 ? put_together : put_each)(m, unit, 0, ids, count);
    must("put", is_refusal(put) ? 0 : put);
    if (put != 0 || next_random(random) % 16 == 0) {
        undo(unit, ids, count);
        return;
    }
    if (next_random(random) % PREPARE_EVERY == 0) {
        const enum fixture_fate fate = fate_drawn(random);
        if (hand_over(unit, ids[0], fate)) {
            tell(fate == FIXTURE_COMMITS ? ACKED : UNDONE, ids, count);
        } else {
            tell(UNDONE, ids, count);
        }
        return;
    }
    const int reason = mqe_commit(unit);
    if (reason == MQRC_BACKED_OUT) {
        tell(UNDONE, ids, count);
        return;
    }
    must("commit", reason);
    tell(ACKED, ids, count);
}

/* Takes one message of a queue into the unit, or several; how many: 0 when there is none or the
 * unit is lost. */
static uint32_t take(mqe_manager *m, mqe_unit *unit, int queue, uint64_t *ids, uint64_t *random)
{
    uint32_t count = 1;
    const int reason =
        next_random(random) % 2 == 0
            ? fixture_get(m, unit, &fixture, queue, 0, 20000, 0, ids)
            : fixture_get_many(m, unit, &fixture, queue, 20000, ids, UNIT_MAX, &count);
    if (reason == MQRC_BACKED_OUT) {
        must("backout", mqe_backout(unit));
    }
    if (reason == MQRC_NO_MSG_AVAILABLE || reason == MQRC_BACKED_OUT) {
        return 0;
    }
    must("get", reason);
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == 0) {
            fixture_die("a body that is not whole", 0);
        }
    }
    return count;
}

static void move(mqe_manager *m, mqe_unit *unit, uint64_t name, uint64_t *random)
{
    uint64_t ids[UNIT_MAX];
    const uint32_t count = take(m, unit, 0, ids, random);
    if (count == 0) {
        return;
    }
    int reason = (next_random(random) % 2 == 0 ? put_together : put_each)(m, unit, 1, ids, count);
    if (is_refusal(reason) || next_random(random) % 16 == 0) {
        must("backout", mqe_backout(unit));
        return;
    }
    must("put", reason);
    if (next_random(random) % PREPARE_EVERY == 0) {
        (void)hand_over(unit, name, fate_drawn(random));
        return;
    }
    reason = mqe_commit(unit);
    must("commit", reason == MQRC_BACKED_OUT ? 0 : reason);
}

static void consume(mqe_manager *m, mqe_unit *unit, uint64_t name, uint64_t *random)
{
    uint64_t ids[UNIT_MAX];
    const uint32_t count = take(m, unit, 1, ids, random);
    if (count == 0) {
        return;
    }
    if (next_random(random) % 16 == 0) {
        must("backout", mqe_backout(unit));
        return;
    }
    const bool prepares = next_random(random) % PREPARE_EVERY == 0;
    const enum fixture_fate fate = prepares ? fate_drawn(random) : FIXTURE_COMMITS;
    if (fate == FIXTURE_BACKS_OUT) {
        (void)hand_over(unit, name, fate);
        return;
    }
    tell(TAKING, ids, count);
    if (prepares) {
        if (hand_over(unit, name, fate)) {
            tell(TOOK, ids, count);
        }
        return;
    }
    const int reason = mqe_commit(unit);
    if (reason != MQRC_BACKED_OUT) {
        must("commit", reason);
        tell(TOOK, ids, count);
    }
}

static _Noreturn void worker_main(uint32_t index, uint32_t incarnation)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    mqe_unit *unit = NULL;
    const uint64_t base = (uint64_t)(index + 1) << 48 | (uint64_t)incarnation << 24;
    uint64_t random = seed * 0x9e3779b97f4a7c15ull + base + 1, counter = 1;
    struct mqe_settings settings = fixture.settings;
    settings.no_maintenance = 0;
    self = index;
    must("attach", mqe_attach(fixture.path, &settings, &manager, &info));
    must("unit", mqe_unit_new(manager, &unit));
    const uint32_t end = index % 5 < 2 ? PRODUCERS_END : index % 5 < 4 ? MOVERS_END : CONSUMERS_END;
    while (__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE) < end) {
        shared->beat[index]++;
        if (next_random(&random) % DYNAMIC_EVERY == 0) {
            dynamic_turn(manager, unit, next_random, &random);
        }
        if (next_random(&random) % WALK_EVERY == 0) {
            const uint64_t drawn = next_random(&random);
            fixture_walk(manager, &fixture, (int)(drawn % 2),
                         1 + (uint32_t)(drawn >> 8) % FIXTURE_BATCH);
        }
        if (next_random(&random) % RESOLVE_EVERY == 0 &&
            __atomic_load_n(&shared->stop, __ATOMIC_RELAXED) == 0) { /* later ones stay in doubt */
            fixture_resolve(manager, 1 + (uint32_t)(next_random(&random) % 6));
        }
        if (end == PRODUCERS_END) {
            produce(manager, unit, base, &counter, &random);
        } else if (end == MOVERS_END) {
            move(manager, unit, base | counter++, &random);
        } else {
            consume(manager, unit, base | counter++, &random);
        }
    }
    _exit(0);
}

/* ---- what the supervisor knows ---- */

static struct fate *fate_of(uint64_t id)
{
    uint64_t at = (id * 0x9e3779b97f4a7c15ull) >> (64 - TABLE_BITS);
    while (table[at].id != 0 && table[at].id != id) {
        at = (at + 1) % TABLE_SIZE;
    }
    if (table[at].id == 0) {
        if (++ids_known > TABLE_SIZE / 2) {
            fixture_die("more ids than the table holds: fewer kills or less time", 0);
        }
        table[at].id = id;
        table[at].persistent = id % 4 != 0;
    }
    return &table[at];
}

static void apply_note(const struct note *note)
{
    for (uint32_t i = 0; i < note->count; i++) {
        struct fate *fate = fate_of(note->id[i]);
        switch (note->kind) {
        case INTENT: fate->intended++; fate->unit = note->id[0]; break;
        case ACKED: fate->acked++; break;
        case TAKING: fate->taking = 1; break;
        case UNDONE: fate->undone++; break;
        default: fate->took++; break;
        }
    }
    units_acked += note->kind == ACKED;
    units_undone += note->kind == UNDONE;
}

static void drain(struct worker *worker)
{
    struct note note;
    while (read(worker->pipe, &note, sizeof note) == (ssize_t)sizeof note) {
        apply_note(&note);
    }
}

static void spawn(uint32_t index)
{
    struct worker *worker = &workers[index];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fixture_die("pipe", errno);
    }
    worker->incarnation++;
    fflush(NULL);
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        note_pipe = ends[1];
        worker_main(index, worker->incarnation);
    }
    if (worker->pid <= 1) {
        fixture_die("fork", errno);
    }
    (void)close(ends[1]);
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    worker->pipe = ends[0];
    worker->pidfd = (int)syscall(SYS_pidfd_open, worker->pid, 0);
    worker->last_change_ms = now_ms();
}

/* After the process has ended: what it wrote is still in the pipe. */
static void bury(struct worker *worker)
{
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
                (unsigned long long)seed);
        exit(1);
    }
}

static void kill_worker(uint32_t index)
{
    struct worker *worker = &workers[index];
    if (worker->pid <= 1 || worker->pidfd < 0) {
        fixture_die("refusing to kill", worker->pid);
    }
    if (syscall(SYS_pidfd_send_signal, worker->pidfd, SIGKILL, NULL, 0) != 0) {
        fixture_die("pidfd_send_signal", errno);
    }
    bury(worker);
    spawn(index);
}

static void watch(void)
{
    const uint64_t now = now_ms();
    for (uint32_t i = 0; i < worker_count; i++) {
        struct worker *worker = &workers[i];
        const uint64_t beat = __atomic_load_n(&shared->beat[i], __ATOMIC_RELAXED);
        drain(worker);
        if (beat != worker->last_beat) {
            worker->last_beat = beat;
            worker->last_change_ms = now;
        } else if (now - worker->last_change_ms > shared->lasting[i]) {
            shared->lasting[i] = now - worker->last_change_ms;
            if (shared->lasting[i] > STUCK_MS) {
                fprintf(stderr, "T7 FAILED: worker %u is stuck, seed %llu\n", i,
                        (unsigned long long)seed);
                exit(1);
            }
        }
    }
}

/* ---- the end check ---- */

static uint64_t complaints;

static void complain(const char *what, uint64_t id)
{
    if (complaints++ < 20) {
        fprintf(stderr, "%s: worker %llu incarnation %llu counter %llu\n", what,
                (unsigned long long)(id >> 48), (unsigned long long)(id >> 24 & 0xffffff),
                (unsigned long long)(id & 0xffffff));
    }
}

/* Browses a queue; marks what is there; on A checks the order of each producer's messages of one
 * priority. */
static uint32_t browse_queue(mqe_manager *manager, int q, bool persistent_only, FILE *list)
{
    static unsigned char buffer[1 << 20];
    static uint64_t newest[WORKERS_MAX + 1][3];
    mqe_queue *queue = NULL;
    uint32_t count = 0;
    memset(newest, 0, sizeof newest);
    must("open",
         mqe_open_direct(manager, fixture.slot[q], fixture.generation[q], MQE_BROWSE, &queue));
    for (;;) {
        struct mqe_get get = {.flags = MQE_GET_BROWSE_NEXT, .buffer = buffer,
                              .capacity = sizeof buffer};
        uint64_t id;
        const int reason = mqe_get(manager, NULL, queue, &get);
        if (reason == MQRC_NO_MSG_AVAILABLE) {
            break;
        }
        must("browse", reason);
        memcpy(&id, get.d.correl_id, sizeof id);
        count++;
        struct fate *fate = fate_of(id);
        if (persistent_only && !fate->persistent) {
            complain("a non-persistent message after a restart", id);
        }
        fate->queued++;
        if (list != NULL) {
            fprintf(list, "%c %llu %llu\n", 'A' + q, (unsigned long long)id,
                    (unsigned long long)get.length);
        }
        uint64_t *last = &newest[(id >> 48) % (WORKERS_MAX + 1)][id % 3];
        if (q == 0 && id <= *last) {
            complain("out of order", id);
        }
        *last = id;
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
    return count;
}

static void check_model(const char *witness, bool persistent_only)
{
    for (uint64_t i = 0; i < TABLE_SIZE; i++) {
        const struct fate *f = &table[i];
        if (f->id == 0 || (persistent_only && !f->persistent)) {
            continue;
        }
        if (f->intended == 0) {
            complain("invented", f->id);
        }
        if (f->took > 1 || f->queued > 1 || (f->took != 0 && f->queued != 0)) {
            complain("doubled", f->id);
        }
        if (f->acked != 0 && f->took == 0 && f->queued == 0 && f->taking == 0) {
            complain("lost", f->id);
        }
        if (f->undone != 0 && (f->queued != 0 || f->took != 0)) {
            complain("back after a backout", f->id);
        }
        const struct fate *unit = fate_of(f->unit != 0 ? f->unit : f->id);
        const bool here = f->queued != 0 || f->took != 0;
        if (f->acked == 0 && here && unit->persistent == f->persistent && unit->acked == 0 &&
            unit->queued == 0 && unit->took == 0 && unit->taking == 0) {
            complain("half a unit", f->id);
        }
    }
    if (complaints != 0) {
        fprintf(stderr, "T7 FAILED (%s): %llu complaints, seed %llu\n", witness,
                (unsigned long long)complaints, (unsigned long long)seed);
        exit(1);
    }
}

static void clear_queued(void)
{
    for (uint64_t i = 0; i < TABLE_SIZE; i++) {
        table[i].queued = 0;
    }
}

static void check_live(void)
{
    uint32_t found = 0;
    must("repair", mqe_maintain(fixture.manager));
    fixture_resolve(fixture.manager, UINT32_MAX);
    clear_queued();
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        struct mqe_queue_status status;
        const uint32_t count = browse_queue(fixture.manager, q, false, NULL);
        must("status",
             mqe_queue_status(fixture.manager, fixture.slot[q], fixture.generation[q], &status));
        if (status.depth != count) {
            fprintf(stderr, "queue %d has depth %u and %u messages\n", q, status.depth, count);
            exit(1);
        }
        found += count;
    }
    check_model("live region", false);
    must("check", mqe_check(fixture.manager));
    if (!fixture_audit(&fixture)) {
        fprintf(stderr, "T7 FAILED (memory), seed %llu\n", (unsigned long long)seed);
        exit(1);
    }
    printf("live region: %u messages, all accounted for\n", found);
}

/* What recovery found, for the second reader to compare: queue, id, length, in delivery order. */
static FILE *open_list(const char *keep)
{
    char name[300];
    snprintf(name, sizeof name, "%s-found.txt", keep);
    FILE *list = fopen(name, "w");
    if (list == NULL) {
        fixture_die(name, errno);
    }
    return list;
}

/* Ends all prepared units; how many there were. */
static uint32_t end_prepared(mqe_manager *manager)
{
    static struct ps_xid xids[FIXTURE_PREPARED_MAX];
    const uint32_t count = fixture_prepared(manager, FIXTURE_COMMITS, xids) +
                           fixture_prepared(manager, FIXTURE_BACKS_OUT, xids);
    fixture_resolve(manager, UINT32_MAX);
    return count;
}

static void check_recovery(const char *keep)
{
    char copy[200], command[600];
    snprintf(copy, sizeof copy, "%s-copy", keep != NULL ? keep : fixture.path);
    snprintf(command, sizeof command, "rm -rf '%s' && cp -r '%s' '%s'", copy, fixture.path, copy);
    if (system(command) != 0) {
        fixture_die(command, 0);
    }
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct mqe_attach_info info;
        mqe_manager *manager = NULL;
        uint32_t found = 0;
        FILE *list = keep != NULL ? open_list(keep) : NULL;
        clear_queued();
        must("attach to the copy", mqe_attach(copy, &fixture.settings, &manager, &info));
        const uint32_t doubted = end_prepared(manager);
        for (int q = 0; q < FIXTURE_QUEUES; q++) {
            found += browse_queue(manager, q, true, list);
        }
        check_model("recovery from the files", true);
        printf("recovery: %u units in doubt, %u persistent messages, all accounted for\n", doubted,
               found);
        fflush(NULL);
        _exit(0);
    }
    int outcome = -1;
    if (waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome) || WEXITSTATUS(outcome) != 0) {
        fprintf(stderr, "T7 FAILED in the second witness, seed %llu\n", (unsigned long long)seed);
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
    memset(table, 0, TABLE_SIZE * sizeof *table);
    ids_known = 0;
    for (uint32_t i = 0; i < worker_count; i++) {
        shared->beat[i] = 0;
        workers[i] = (struct worker){0};
    }
    shared->stop = 0;
    shared->ids = 0;
    shared->ration = IDS_AT_FIRST;
}

/* Consumers leave first, then movers, so that both queues hold messages when they are counted. */
static void end_in_turn(void)
{
    for (uint32_t stop = CONSUMERS_END; stop <= PRODUCERS_END; stop++) {
        const struct timespec pause = {.tv_nsec = 100000000};
        __atomic_store_n(&shared->stop, stop, __ATOMIC_RELEASE);
        (void)__atomic_add_fetch(&shared->ration, 4 * IDS_A_KILL, __ATOMIC_RELAXED);
        (void)nanosleep(&pause, NULL);
        watch();
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        bury(&workers[i]);
    }
}

/* One queue manager, at most ROUND_KILLS kills, all checks; the kills done. */
static uint64_t storm(uint64_t kills, uint64_t end_ms, const char *keep)
{
    uint64_t random = (seed + round_no) * 0x2545f4914f6cdd1dull + 7, done = 0;
    forget_everything();
    fixture_make(&fixture);
    for (uint32_t i = 0; i < worker_count; i++) {
        spawn(i);
    }
    while (done < kills && (end_ms == 0 || now_ms() < end_ms)) {
        const struct timespec pause = {.tv_nsec = (long)(next_random(&random) % 6000000)};
        (void)nanosleep(&pause, NULL);
        watch();
        kill_worker((uint32_t)(next_random(&random) % worker_count));
        done++;
        (void)__atomic_add_fetch(&shared->ration, IDS_A_KILL, __ATOMIC_RELAXED);
    }
    end_in_turn();
    check_recovery(keep);
    check_live();
    fixture_remove(&fixture);
    ids_total += ids_known;
    round_no += 1;
    return done;
}

static int storms(uint64_t kills, uint64_t seconds, const char *keep)
{
    const uint64_t start = now_ms(), end = seconds == 0 ? 0 : start + seconds * 1000;
    uint64_t done = 0, longest = 0;
    while (done < kills && (end == 0 || now_ms() < end)) {
        const uint64_t left = kills - done;
        done += storm(left < ROUND_KILLS ? left : ROUND_KILLS, end, keep);
    }
    for (uint32_t i = 0; i < worker_count; i++) {
        longest = shared->lasting[i] > longest ? shared->lasting[i] : longest;
    }
    printf("T7: %llu kills of %u C workers in %.1f s, %llu rounds, %llu units acked, %llu backed "
           "out, %llu ids, 0 lost, 0 twice, 0 torn, longest stand-still %llu ms, seed %llu\n",
           (unsigned long long)done, worker_count, (double)(now_ms() - start) / 1000,
           (unsigned long long)round_no, (unsigned long long)units_acked,
           (unsigned long long)units_undone, (unsigned long long)ids_total,
           (unsigned long long)longest, (unsigned long long)seed);
    return 0;
}

/* A separate PID namespace, with a /proc that belongs to it; without the right to one the pidfds
 * must do. */
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

int main(int argc, char **argv)
{
    uint64_t kills = 0, seconds = 0;
    const char *keep = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--kills") == 0) {
            kills = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--workers") == 0) {
            worker_count = (uint32_t)strtoul(value, NULL, 10) % (WORKERS_MAX + 1);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--time") == 0) {
            seconds = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--keep") == 0) {
            keep = value;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    kills = kills == 0 && seconds == 0 ? 4700 : kills;
    isolate();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table = mmap(NULL, TABLE_SIZE * sizeof *table, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED || table == MAP_FAILED) {
        fixture_die("mmap", errno);
    }
    return storms(seconds != 0 && kills == 0 ? UINT64_MAX : kills, seconds, keep);
}
