/*
 * storm_workers.c - what the processes of a kill storm do until they are killed: see storm.h.
 */
#include "storm.h"

#include "dynamic.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 500, DYNAMIC_EVERY = 12 };
enum { PREPARE_EVERY = 6, RESOLVE_EVERY = 10, WALK_EVERY = 24 };

static void tell(enum kind kind, const uint64_t *ids, uint32_t count)
{
    struct note note = {.kind = kind, .count = count};
    memcpy(note.id, ids, count * sizeof *ids);
    if (write(storm.note_pipe, &note, sizeof note) != (ssize_t)sizeof note) {
        _exit(4);
    }
}

/* The unit is backed out: by us, or by the queue manager, which says 2003 to a unit that a stopped
 * or starved process kept open while the journal filled up; it then waits for our backout. */
static void undo(mqe_unit *unit, const uint64_t *ids, uint32_t count)
{
    storm_must("backout", mqe_backout(unit));
    tell(UNDONE, ids, count);
}

static bool is_refusal(int reason)
{
    return reason == MQRC_Q_FULL || reason == MQRC_STORAGE_MEDIUM_FULL || reason == MQRC_BACKED_OUT;
}

static enum fixture_fate fate_drawn(uint64_t *random)
{
    return storm_random(random) % 3 == 0 ? FIXTURE_BACKS_OUT : FIXTURE_COMMITS;
}

/* The unit is prepared: every process that finds it from now on resolves it as its name says, and
 * the outcome is known already. False when the queue manager had backed it out. */
static bool hand_over(mqe_unit *unit, uint64_t name, enum fixture_fate fate)
{
    struct ps_xid xid;
    fixture_xid(name, fate, &xid);
    const int reason = mqe_prepare(unit, &xid, 0);
    storm_must("prepare", is_refusal(reason) ? mqe_backout(unit) : reason);
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
    storm_must("status", mqe_queue_status(m, storm.fixture.slot[0], storm.fixture.generation[0],
                                          &status));
    if (status.depth <= DEPTH_MAX && __atomic_load_n(&storm.shared->ids, __ATOMIC_RELAXED) <
                                         __atomic_load_n(&storm.shared->ration, __ATOMIC_RELAXED)) {
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
    return fixture_put_many(m, unit, &storm.fixture, queue, messages, count);
}

static int put_each(mqe_manager *m, mqe_unit *unit, int queue, const uint64_t *ids, uint32_t count)
{
    int reason = 0;
    for (uint32_t i = 0; i < count && reason == 0; i++) {
        reason = fixture_put(m, unit, &storm.fixture, queue, ids[i], ids[i] % 4 != 0,
                             length_of(ids[i]));
        storm.shared->beat[storm.self]++;
    }
    return reason;
}

/* A batch that is its own unit: refused as a whole, or done. */
static void produce_alone(mqe_manager *m, const uint64_t *ids, uint32_t count)
{
    const int reason = put_together(m, NULL, 0, ids, count);
    storm_must("put alone", is_refusal(reason) ? 0 : reason);
    tell(reason == 0 ? ACKED : UNDONE, ids, count);
}

static void produce(mqe_manager *m, mqe_unit *unit, uint64_t base, uint64_t *counter,
                    uint64_t *random)
{
    uint64_t ids[UNIT_MAX];
    if (rest_a_while(m)) {
        return;
    }
    const uint32_t count = (uint32_t)(storm_random(random) % UNIT_MAX) + 1;
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = base | (*counter)++;
    }
    (void)__atomic_add_fetch(&storm.shared->ids, count, __ATOMIC_RELAXED);
    tell(INTENT, ids, count);
    const uint64_t way = storm_random(random) % 3;
    if (way == 0) {
        produce_alone(m, ids, count);
        return;
    }
    const int put = (way == 1 ? put_together : put_each)(m, unit, 0, ids, count);
    storm_must("put", is_refusal(put) ? 0 : put);
    if (put != 0 || storm_random(random) % 16 == 0) {
        undo(unit, ids, count);
        return;
    }
    if (storm_random(random) % PREPARE_EVERY == 0) {
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
    storm_must("commit", reason);
    tell(ACKED, ids, count);
}

/* Takes one message of a queue into the unit, or several; how many: 0 when there is none or the
 * unit is lost. */
static uint32_t take(mqe_manager *m, mqe_unit *unit, int queue, uint64_t *ids, uint64_t *random)
{
    uint32_t count = 1;
    const int reason =
        storm_random(random) % 2 == 0
            ? fixture_get(m, unit, &storm.fixture, queue, 0, 20000, 0, ids)
            : fixture_get_many(m, unit, &storm.fixture, queue, 20000, ids, UNIT_MAX, &count);
    if (reason == MQRC_BACKED_OUT) {
        storm_must("backout", mqe_backout(unit));
    }
    if (reason == MQRC_NO_MSG_AVAILABLE || reason == MQRC_BACKED_OUT) {
        return 0;
    }
    storm_must("get", reason);
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
    int reason = (storm_random(random) % 2 == 0 ? put_together : put_each)(m, unit, 1, ids, count);
    if (is_refusal(reason) || storm_random(random) % 16 == 0) {
        storm_must("backout", mqe_backout(unit));
        return;
    }
    storm_must("put", reason);
    if (storm_random(random) % PREPARE_EVERY == 0) {
        (void)hand_over(unit, name, fate_drawn(random));
        return;
    }
    reason = mqe_commit(unit);
    storm_must("commit", reason == MQRC_BACKED_OUT ? 0 : reason);
}

static void consume(mqe_manager *m, mqe_unit *unit, uint64_t name, uint64_t *random)
{
    uint64_t ids[UNIT_MAX];
    const uint32_t count = take(m, unit, 1, ids, random);
    if (count == 0) {
        return;
    }
    if (storm_random(random) % 16 == 0) {
        storm_must("backout", mqe_backout(unit));
        return;
    }
    const bool prepares = storm_random(random) % PREPARE_EVERY == 0;
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
        storm_must("commit", reason);
        tell(TOOK, ids, count);
    }
}

mqe_manager *storm_attach(mqe_unit **out_unit)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    struct mqe_settings settings = storm.fixture.settings;
    settings.no_maintenance = 0;
    storm_must("attach", mqe_attach(storm.fixture.path, &settings, &manager, &info));
    storm_must("unit", mqe_unit_new(manager, out_unit));
    return manager;
}

static uint64_t base_of(uint32_t index, uint32_t incarnation)
{
    return (uint64_t)(index + 1) << 48 | (uint64_t)incarnation << 24;
}

_Noreturn void storm_worker(uint32_t index, uint32_t incarnation)
{
    mqe_unit *unit = NULL;
    const uint64_t base = base_of(index, incarnation);
    uint64_t random = storm.seed * 0x9e3779b97f4a7c15ull + base + 1, counter = 1;
    storm.self = index;
    mqe_manager *manager = storm_attach(&unit);
    const uint32_t end = index % 5 < 2 ? PRODUCERS_END : index % 5 < 4 ? MOVERS_END : CONSUMERS_END;
    while (__atomic_load_n(&storm.shared->stop, __ATOMIC_ACQUIRE) < end) {
        storm.shared->beat[index]++;
        if (storm_random(&random) % DYNAMIC_EVERY == 0) {
            dynamic_turn(manager, unit, storm_random, &random);
        }
        if (storm_random(&random) % WALK_EVERY == 0) {
            const uint64_t drawn = storm_random(&random);
            fixture_walk(manager, &storm.fixture, (int)(drawn % 2),
                         1 + (uint32_t)(drawn >> 8) % FIXTURE_BATCH);
        }
        if (storm_random(&random) % RESOLVE_EVERY == 0 &&
            __atomic_load_n(&storm.shared->stop, __ATOMIC_RELAXED) == 0) {
            /* those of the end stay in doubt */
            fixture_resolve(manager, 1 + (uint32_t)(storm_random(&random) % 6));
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

/* One life of the holder's unit: some go from A to B, some are put on A, then it is idle for up to
 * 64 ms, and ended. */
static void hold(mqe_manager *manager, mqe_unit *unit, uint64_t base, uint64_t *counter,
                 uint64_t *random)
{
    uint64_t got[UNIT_MAX], ids[UNIT_MAX];
    const uint32_t count = 1 + (uint32_t)(storm_random(random) % UNIT_MAX);
    const uint32_t moved = take(manager, unit, 0, got, random);
    int reason = put_each(manager, unit, 1, got, moved);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = base | (*counter)++;
    }
    tell(INTENT, ids, count);
    reason = reason == 0 ? put_each(manager, unit, 0, ids, count) : reason;
    storm_must("put", is_refusal(reason) ? 0 : reason);
    const struct timespec idle = {.tv_nsec = (long)(storm_random(random) % 64000000)};
    (void)nanosleep(&idle, NULL);
    if (reason != 0 || storm_random(random) % 2 == 0) {
        undo(unit, ids, count);
        return;
    }
    reason = mqe_commit(unit);
    storm_must("commit", reason == MQRC_BACKED_OUT ? 0 : reason);
    tell(reason == 0 ? ACKED : UNDONE, ids, count);
}

_Noreturn void storm_holder(uint32_t index, uint32_t incarnation)
{
    mqe_unit *unit = NULL;
    const uint64_t base = base_of(index, incarnation);
    uint64_t random = storm.seed * 0x9e3779b97f4a7c15ull + base + 1, counter = 1;
    storm.self = index;
    mqe_manager *manager = storm_attach(&unit);
    for (;;) {
        storm.shared->beat[index]++;
        hold(manager, unit, base, &counter, &random);
    }
}
