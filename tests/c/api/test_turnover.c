/*
 * test_turnover.c - proves that a journal under traffic keeps to its bounds: messages that live for
 * random times, in pieces too, a slow consumer and forgotten messages, in many small segments, with
 * deaths and restarts in between. Every message is there, whole and once.
 */
#include "fixtures/engine_fixture.h"

#include "recovery/compaction.h"

enum { LIVES = 600, STEPS = 4000, SMALL = 32768, LONGEST = 70000 };

static struct { /* what should be on the queue, by correlation id */
    uint64_t id;
    uint32_t length;
} present[LIVES];
static unsigned char body[LONGEST], read_back[LONGEST];
static uint64_t next_id, live_bodies;
static struct test_random random_numbers;

static unsigned char filler(uint64_t id, uint32_t i)
{
    return (unsigned char)(id * 31 + i * 7 + i / 251);
}

static void put_one(struct queue q, uint32_t at, uint32_t length)
{
    next_id += 1;
    for (uint32_t i = 0; i < length; i++) {
        body[i] = filler(next_id, i);
    }
    CHECK_INT(PUT(q, .body = body, .length = length, .persistent = 1, .correl = next_id), 0);
    present[at].id = next_id;
    present[at].length = length;
    live_bodies += length;
}

static void get_one(struct queue q, uint32_t at)
{
    const struct ask ask = {.correl = present[at].id};
    struct mqe_get get = engine_ask(&ask);
    get.buffer = read_back;
    get.capacity = sizeof read_back;
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
    CHECK_INT(get.length, present[at].length);
    bool same = true;
    for (uint32_t i = 0; i < present[at].length; i++) {
        same = same && read_back[i] == filler(present[at].id, i);
    }
    CHECK(same);
    live_bodies -= present[at].length;
    present[at].id = 0;
}

static uint32_t random_length(void)
{
    const uint64_t kind = test_below(&random_numbers, 40);
    return (uint32_t)(kind == 0  ? 1 + test_below(&random_numbers, LONGEST - 1)
                      : kind < 8 ? 1 + test_below(&random_numbers, 4000)
                                 : 1 + test_below(&random_numbers, 400));
}

/* Files against the bound: 2.5 times the live bytes, two intervals, four segments. */
static uint64_t percent_of_bound(void)
{
    struct mqe_manager_status now;
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    const uint64_t interval = mqx_journal_interval(engine_region()->journal);
    const uint64_t bound = now.live_bytes * 5 / 2 + 2 * interval + 4 * SMALL;
    return now.journal_bytes * 100 / bound;
}

TEST(random_lifetimes_forgotten_messages_and_deaths_keep_the_files_within_the_bound)
{
    struct mqe_settings settings = engine_settings();
    settings.segment_size = SMALL;
    settings.first_segment_size = SMALL;
    settings.journal_limit = 8 << 20;
    engine_begin_with(&settings);
    random_numbers = (struct test_random){test_seed()};
    struct queue q = QUEUE("Q", 0);
    uint64_t worst = 0, moved = 0;
    memset(present, 0, sizeof present);
    next_id = live_bodies = 0;
    for (int step = 0; step < STEPS; step++) {
        const uint32_t at = (uint32_t)test_below(&random_numbers, LIVES);
        const bool is_forgotten = at % 16 == 0;
        if (present[at].id == 0 && live_bodies < 1 << 20) {
            put_one(q, at, is_forgotten ? 15 : random_length());
        } else if (present[at].id != 0 && !is_forgotten) {
            get_one(q, at);
        }
        if (step % 8 == 0) { /* what the maintenance thread does */
            CHECK_INT(mqe_maintain(engine.manager), 0);
            const uint64_t now = percent_of_bound();
            worst = now > worst ? now : worst;
        }
        if (step % 500 == 499) {
            moved += engine_region()->journal->moved_messages;
            CHECK_INT(mqe_check(engine.manager), 0);
            engine_kill_and_restart();
            q = engine_find("Q");
        }
    }
    for (uint32_t at = 0; at < LIVES; at++) {
        if (present[at].id != 0) {
            get_one(q, at);
        }
    }
    CHECK_INT(depth(q), 0);
    printf("%" PRIu64 " %% of the bound, %" PRIu64 " moved ", worst, moved);
    CHECK(worst <= 100);
    CHECK(moved > 0);
}

TEST(messages_that_were_moved_are_whole_in_any_size_and_after_any_restart)
{
    struct mqe_settings settings = engine_settings();
    settings.segment_size = SMALL;
    settings.first_segment_size = SMALL;
    settings.journal_limit = 16 << 20;
    engine_begin_with(&settings);
    random_numbers = (struct test_random){test_seed() + 1};
    struct queue q = QUEUE("Q", 0);
    next_id = live_bodies = 0;
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t at = 0; at < 120; at++) {
            put_one(q, at, at % 10 == 0 ? (at + 1) * 500 : random_length());
        }
        for (uint32_t at = 0; at < 120; at++) {
            if (at % 3 != 0) {
                get_one(q, at);
            }
        }
        if (round % 2 == 0) {
            engine_kill_and_restart(); /* bodies are read from the journal then */
        } else {
            engine_restart();
        }
        q = engine_find("Q");
        CHECK_INT(mqe_compact(engine.manager), 0);
        CHECK(engine_region()->journal->moved_messages > 0);
        for (uint32_t at = 0; at < 120; at += 3) {
            get_one(q, at);
        }
        CHECK_INT(depth(q), 0);
    }
}

TEST_MAIN()
