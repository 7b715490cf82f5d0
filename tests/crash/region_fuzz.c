/*
 * region_fuzz.c - damage in the shared region: stray words while a queue manager works (rule 57).
 *
 *     region_fuzz --count ROUNDS --seed S [--only ROUND] [--trace 1]
 *
 * One process, no files (memory_io.h), the core as users have it: without assertions. Each round
 * makes a queue manager, puts messages that are acknowledged, changes 1 to 200 words of the region,
 * calls everything, ends the queue manager or dies, and starts it again. A round is violated by
 *   a signal      the process dies, with the round on stderr;
 *   a hang        the same, by SIGALRM, after HANG_S;
 *   a refusal     the restart fails;
 *   a loss        a message that was acknowledged before the damage is missing after the restart
 *                 (from the queues K1 and K2, of which nothing is got).
 * Words are chosen by part of the region, so that the few that steer everything are met often.
 */
#include "fixtures/engine_fixture.h"

#include "layer.h"

#include <signal.h>
#include <unistd.h>

enum {
    HANG_S = 30,
    STRANGER_US = 500000, /* instead of 10 s: nobody here holds a lock for long */
    KEPT_MAX = 96,
    WORDS_MAX = 200,
    CALLS = 40,
    PARTS = 10,
    REGION_BYTES = 64 << 20,
    JOURNAL_BYTES = 64 << 20,
};

static struct fuzz {
    struct layer layer;
    uint64_t state;              /* of the random numbers */
    struct queue kept[2], other; /* nothing is got from `kept` */
    mqe_unit *unit;
    uint32_t kept_count;         /* acknowledged messages on both */
    uint64_t found, stopped, refused, lost, rounds_lost;
} fuzz;

static uint64_t next_random(void)
{
    uint64_t z = fuzz.state += UINT64_C(0x9E3779B97F4A7C15); /* SplitMix64 */
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static uint32_t below(uint32_t bound)
{
    return (uint32_t)(next_random() % bound);
}

/* ---- before the damage ---- */

static void put_kept(uint32_t number)
{
    char text[3100];
    const uint32_t length = below(8) == 0 ? 3000 : below(60) + 8;
    memset(text, '.', length);
    text[length] = '\0';
    (void)snprintf(text, sizeof text, "%06u", number);
    text[6] = '.';
    mqe_unit *unit = below(4) == 0 ? engine_unit() : NULL;
    CHECK_INT(PUT(fuzz.kept[number % 2], .unit = unit, .body = text, .length = length,
                  .persistent = 1, .priority = (int32_t)below(10), .msg = below(3) * (number % 5)),
              0);
    if (unit != NULL) {
        CHECK_INT(mqe_commit(unit), 0);
    }
}

static void prepare_something(void)
{
    static const struct ps_xid xid = {.format_id = 1, .gtrid_length = 1};
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(fuzz.other, .unit = unit, .text = "prepared", .persistent = 1), 0);
    CHECK_INT(mqe_prepare(unit, &xid, 0), 0);
}

/* A small region: making and removing a large one costs most of a round. */
static void begin_round(void)
{
    struct mqe_settings settings = engine_settings();
    settings.region_size = REGION_BYTES;
    settings.journal_limit = JOURNAL_BYTES; /* a stray reserve for gets fills it with spares */
    engine_begin_with(&settings);
    engine.dead_count = 0; /* nobody looks at them again */
    fuzz.kept[0] = QUEUE("K1");
    fuzz.kept[1] = QUEUE("K2", INDXTYPE, 1);
    fuzz.other = QUEUE("O");
    fuzz.unit = engine_unit();
    fuzz.kept_count = 5 + below(KEPT_MAX - 5);
    const uint32_t checkpoint_at = below(2 * fuzz.kept_count);
    for (uint32_t i = 0; i < fuzz.kept_count; i++) {
        put_kept(i);
        if (i == checkpoint_at) {
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
    }
    engine_fill(fuzz.other, 12);
    if (below(3) == 0) {
        prepare_something();
    }
    if (below(2) == 0) {
        CHECK_INT(PUT(fuzz.other, .unit = fuzz.unit, .text = "open", .persistent = 1), 0);
    }
}

/* ---- the damage ---- */

struct part {
    unsigned char *at;
    uint64_t size;
};

static struct part part_of_area(enum mqx_area_kind kind)
{
    const struct mqx_region *region = engine_region();
    const uint64_t known = region->reach.usable[kind]; /* what an earlier damage cannot change */
    const uint64_t used = mqx_area_used(region, kind) * mqx_area_item_size(kind);
    const uint64_t size = used < known ? used : known;
    return size != 0 ? (struct part){region->area[kind], size}
                     : (struct part){(unsigned char *)region->header, 4096};
}

static struct part choose_part(void)
{
    struct mqx_region *region = engine_region();
    struct mqx_header *header = region->header;
    struct mqx_stripe *stripe = &region->stripes[below(region->stripe_mask + 1)];
    switch (below(PARTS + MQX_AREA_COUNT)) {
    case 0: return (struct part){(unsigned char *)header, offsetof(struct mqx_header, xid_bucket)};
    case 1: return (struct part){(unsigned char *)header->area, sizeof header->area};
    case 2: return (struct part){(unsigned char *)&header->journal.ring_offset,
                                 offsetof(struct mqx_journal, segment) -
                                     offsetof(struct mqx_journal, ring_offset)};
    case 3: return (struct part){(unsigned char *)header->journal.segment,
                                 4 * sizeof header->journal.segment[0]};
    case 4: return (struct part){(unsigned char *)stripe, sizeof *stripe};
    case 5: return (struct part){(unsigned char *)stripe, 64}; /* its mutex */
    case 6: return (struct part){region->ring, region->ring_size / 8};
    case 7: return (struct part){(unsigned char *)region->names,
                                 2 * (region->name_mask + UINT64_C(1)) * sizeof(uint32_t)};
    case 8: return (struct part){(unsigned char *)header->pool,
                                 sizeof header->pool + sizeof header->partial};
    case 9: {
        const enum mqx_pool_no no = below(2) == 0 ? MQX_POOL_CELLS : MQX_POOL_ENTRIES;
        return (struct part){(unsigned char *)region->extents[no], 4 * sizeof(struct mqx_extent)};
    }
    default: return part_of_area((enum mqx_area_kind)below(MQX_AREA_COUNT));
    }
}

static uint64_t changed(uint64_t old)
{
    static const int64_t steps[] = {1, -1, 64, 4096, 1 << 20, -4096};
    switch (below(7)) {
    case 0: return next_random();
    case 1: return 0;
    case 2: return UINT64_MAX;
    case 3: return old ^ UINT64_C(1) << below(64);
    case 4: return below(70000);
    case 5: return UINT64_C(1) << below(64);
    default: return old + (uint64_t)steps[below((uint32_t)MQX_ARRAY_COUNT(steps))];
    }
}

/* Words that are zero are mostly unused: few of them are changed. */
static void damage_a_word(void)
{
    for (uint32_t attempt = 0; attempt < 200; attempt++) {
        const struct part part = choose_part();
        unsigned char *at = part.at + (next_random() % part.size & ~UINT64_C(7));
        uint64_t old;
        memcpy(&old, at, sizeof old);
        if (old == 0 && below(30) != 0) {
            continue;
        }
        const uint64_t value = changed(old);
        const size_t size = below(2) == 0 ? sizeof value : sizeof(uint32_t);
        if (fuzz.layer.traced) {
            fprintf(stderr, "  word at offset 0x%llx: 0x%llx, %zu bytes of 0x%llx\n",
                    (unsigned long long)(at - engine_region()->base), (unsigned long long)old, size,
                    (unsigned long long)value);
        }
        memcpy(at, &value, size);
        return;
    }
}

static void damage(void)
{
    static const uint32_t counts[] = {1, 1, 1, 2, 4, 8, 30, WORDS_MAX};
    const uint32_t count = counts[below((uint32_t)MQX_ARRAY_COUNT(counts))];
    for (uint32_t i = 0; i < count; i++) {
        damage_a_word();
    }
}

/* ---- after it: any outcome but a signal or a hang is right ---- */

static void ask_for_status(void)
{
    static struct mqe_unit_status units[4];
    static struct mqe_handle_status handles[4];
    static struct mqe_process_status processes[4];
    static struct mqe_prepared prepared[4];
    struct mqe_manager_status manager;
    struct mqe_queue_status queue;
    uint32_t count;
    mqx_ignore(mqe_status(engine.manager, &manager));
    mqx_ignore(mqe_queue_status(engine.manager, fuzz.other.slot, fuzz.other.generation, &queue));
    mqx_ignore(mqe_units(engine.manager, units, 4, &count));
    mqx_ignore(mqe_handles(engine.manager, handles, 4, &count));
    mqx_ignore(mqe_processes(engine.manager, processes, 4, &count));
    mqx_ignore(mqe_prepared_list(engine.manager, prepared, 4, &count));
}

static void define_and_delete(void)
{
    const char name[3] = {'N', (char)('0' + below(3)), '\0'};
    const struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes((const int[]){0});
    uint32_t slot = 0, generation = 0;
    if (mqe_define(engine.manager, &object, attrs.bytes, attrs.length, &slot, &generation) == 0 &&
        below(2) == 0) {
        mqx_ignore(mqe_clear(engine.manager, slot, generation));
    }
}

static void open_and_close(void)
{
    const struct ps_object_name object = engine_name("O");
    struct mqe_found found = {0};
    mqe_queue *handle = NULL;
    if (mqe_find(engine.manager, 1, object.name, 0, &found) == 0 &&
        mqe_open_direct(engine.manager, found.slot, found.generation, 2 | MQE_OUTPUT, &handle) ==
            0) {
        mqx_ignore(mqe_close(handle, MQE_CLOSE_KEEP));
    }
}

static void end_unit(void)
{
    if (below(2) == 0) {
        mqx_ignore(mqe_commit(fuzz.unit));
    } else {
        mqx_ignore(mqe_backout(fuzz.unit));
    }
}

static void call_something(void)
{
    static char large[70000];
    struct queue any = below(2) == 0 ? fuzz.other : fuzz.kept[below(2)];
    mqe_unit *unit = below(2) == 0 ? fuzz.unit : NULL;
    switch (below(16)) {
    case 0:
    case 1: mqx_ignore(PUT(any, .text = "new", .persistent = 1, .priority = 3)); break;
    case 2: mqx_ignore(PUT(any, .unit = unit, .text = "new", .persistent = (int)below(2))); break;
    case 3: mqx_ignore(PUT(fuzz.other, .text = "np", .persistent = 0)); break;
    case 4:
        mqx_ignore(PUT(fuzz.other, .unit = unit, .body = large, .length = sizeof large,
                       .persistent = (int)below(2)));
        break;
    case 5:
    case 6: (void)TAKE(fuzz.other, .unit = unit); break;
    case 7: (void)TAKE(fuzz.other, .unit = unit, .msg = 1 + below(4)); break;
    case 8: (void)TAKE(any, .flags = MQE_GET_BROWSE_FIRST); break;
    case 9: (void)TAKE(any, .flags = MQE_GET_BROWSE_NEXT); break;
    case 10: end_unit(); break;
    case 11: ask_for_status(); break;
    case 12: define_and_delete(); break;
    case 13: open_and_close(); break;
    case 14: mqx_ignore(below(2) == 0 ? mqe_checkpoint(engine.manager)
                                      : mqe_maintain(engine.manager)); break;
    default: mqx_ignore(mqe_check(engine.manager)); break;
    }
}

/* ---- the restart ---- */

/* How many of the acknowledged messages are not there. */
static uint32_t count_missing(void)
{
    bool seen[KEPT_MAX] = {false};
    uint32_t missing = 0;
    for (int i = 0; i < 2; i++) {
        const struct queue queue = engine_find(i == 0 ? "K1" : "K2");
        uint32_t flags = MQE_GET_BROWSE_FIRST;
        while ((void)TAKE(queue, .flags = flags), got.status == MQX_OK) {
            const unsigned long number = strtoul(got.text, NULL, 10);
            if (got.text[0] >= '0' && got.text[0] <= '9' && number < KEPT_MAX) {
                seen[number] = true;
            }
            flags = MQE_GET_BROWSE_NEXT;
        }
    }
    for (uint32_t i = 0; i < fuzz.kept_count; i++) {
        missing += !seen[i];
    }
    return missing;
}

static void end_round(uint64_t round)
{
    fuzz.found += mqx_region_damage_text(engine_region()) != NULL;
    fuzz.stopped += mqx_region_stopped(engine_region()) != MQX_RUNNING;
    if (below(2) == 0) {
        mqx_ignore(engine_detach(MQE_DETACH_ORDERLY, NULL));
    } else {
        engine_kill();
    }
    const int status = engine_attach();
    if (status != MQX_OK) {
        engine.manager = NULL;
        fuzz.refused += 1;
        printf("round %llu: the restart is refused: %d %s\n", (unsigned long long)round, status,
               mqx_error_text());
        return;
    }
    const uint32_t missing = count_missing();
    if (missing != 0) {
        fuzz.lost += missing;
        fuzz.rounds_lost += 1;
        printf("round %llu: %u of %u acknowledged messages are missing\n",
               (unsigned long long)round, missing, fuzz.kept_count);
    }
}

static void run_round(uint64_t round)
{
    fuzz.state = fuzz.layer.seed * UINT64_C(1000003) + round;
    layer_where("region_fuzz --seed %llu --only %llu", (unsigned long long)fuzz.layer.seed,
                (unsigned long long)round);
    (void)alarm(HANG_S);
    begin_round();
    damage();
    for (uint32_t i = 0; i < CALLS; i++) {
        call_something();
        if (i == CALLS / 2 && below(4) == 0) {
            damage(); /* and once more, in the middle */
        }
    }
    end_round(round);
}

/* Ends the process with the round on stderr, as a fault does. */
static void hang(int number)
{
    (void)number;
    (void)write(STDERR_FILENO, "a hang\n", 7);
    abort();
}

int main(int argc, char **argv)
{
    volatile uint64_t rounds = 0;
    (void)test_run_all; /* of the harness only its checks are used */
    (void)test_last;
    layer_arguments(&fuzz.layer, argc, argv, 20000);
    mqx_lock_stranger_us = STRANGER_US;
    (void)signal(SIGALRM, hang);
    for (uint64_t i = 0; i < fuzz.layer.count && !layer_time_is_up(&fuzz.layer); i++) {
        volatile const uint64_t round = fuzz.layer.only != UINT64_MAX ? fuzz.layer.only : i;
        if (setjmp(test_stop) == 0) {
            run_round(round);
        } else {
            printf("\nround %llu: the harness failed\n", (unsigned long long)round);
            return 2;
        }
        rounds += 1;
        if (fuzz.layer.only != UINT64_MAX) {
            break;
        }
    }
    engine_end();
    printf("region fuzz: %llu rounds, seed %llu, %.0f s: damage named in %llu, stopped in %llu, "
           "restarts refused %llu, rounds with a loss %llu (%llu messages), 0 signals, 0 hangs\n",
           (unsigned long long)rounds, (unsigned long long)fuzz.layer.seed,
           layer_seconds(&fuzz.layer), (unsigned long long)fuzz.found,
           (unsigned long long)fuzz.stopped, (unsigned long long)fuzz.refused,
           (unsigned long long)fuzz.rounds_lost, (unsigned long long)fuzz.lost);
    return fuzz.refused + fuzz.rounds_lost == 0 ? 0 : 1;
}
