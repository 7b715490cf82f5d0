/* Claims of browse_batch.c: many messages are seen as single browses would; nothing is taken. */
#include "fixtures/dynamic_fixture.h"

enum { MOST = 200, BODIES = 1 << 20 };

static struct mqe_item items[MOST];
static unsigned char bodies[BODIES];
static int64_t offsets[MOST + 1];
static struct mqe_batch batch;

static int look_with(struct queue q, struct mqe_get *how, uint32_t capacity, uint64_t room)
{
    batch = (struct mqe_batch){.items = items, .capacity = capacity, .bodies = bodies,
                               .body_capacity = room, .offsets = offsets};
    return mqe_browse_batch(engine.manager, q.handle, how, &batch);
}

static int look(struct queue q, uint32_t flags, uint32_t capacity)
{
    struct mqe_get how = {.flags = flags};
    return look_with(q, &how, capacity, BODIES);
}

static uint64_t put_sized(struct queue q, uint64_t length, int priority, int persistent)
{
    static unsigned char body[BODIES];
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.priority = priority, .persistence = (uint8_t)persistent,
                              .md_version = 2};
    memset(body, (int)(length % 251), length);
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, body, length, -1, 0), 0);
    return length;
}

static uint64_t newest(struct queue q)
{
    uint64_t number = 0;
    CHECK_INT(mqe_queue_newest(engine.manager, q.slot, q.generation, &number), 0);
    return number;
}

static bool is_quiet(void)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    bool quiet = mqe_check(engine.manager) == 0;
    for (uint32_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        quiet = quiet && context->pending_kind == MQX_PENDING_NONE;
    }
    return quiet;
}

TEST(messages_are_seen_in_delivery_order_from_cursor_to_cursor_and_stay)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 150; i++) {
        (void)put_sized(q, (uint64_t)i, i % 3, i % 2);
    }
    CHECK_INT(look(q, MQE_GET_BROWSE_FIRST, 100), 0);
    CHECK_INT(batch.count, 100);
    CHECK_INT(items[0].length, 2);
    CHECK_INT(items[49].length, 149);
    CHECK_INT(items[50].length, 1);
    CHECK_INT(items[99].length, 148);
    CHECK_INT(look(q, MQE_GET_BROWSE_NEXT, 100), 0);
    CHECK_INT(batch.count, 50);
    CHECK_INT(items[0].length, 0);
    CHECK_INT(look(q, MQE_GET_BROWSE_NEXT, 100), 0);
    CHECK_INT(batch.count, 0);
    CHECK_INT(depth(q), 150);
    CHECK(is_quiet());
}

enum { SIZES = 5 };
static const uint64_t sizes[SIZES] = {0, 100, 5000, 100000, 300000};

/* Checks a queue with messages of these sizes while their bodies are in the region, and again when
 * they are in the journal alone. */
static void check_wherever_they_lie(void (*check)(struct queue q))
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < SIZES; i++) {
        (void)put_sized(q, sizes[i], 4, 1);
    }
    for (int round = 0; round < 2; round++) {
        check(q);
        CHECK_INT(depth(q), SIZES);
        CHECK(is_quiet());
        engine_kill_and_restart();
        q = engine_find("Q");
    }
}

static void check_bodies(struct queue q)
{
    CHECK_INT(look(q, MQE_GET_BROWSE_FIRST, MOST), 0);
    CHECK_INT(batch.count, SIZES);
    for (int i = 0; i < SIZES; i++) {
        CHECK_INT(items[i].length, sizes[i]);
        CHECK_INT(offsets[i + 1] - offsets[i], sizes[i]);
        for (int64_t at = offsets[i]; at < offsets[i + 1]; at++) {
            CHECK_INT(bodies[at], sizes[i] % 251);
        }
    }
}

TEST(long_bodies_and_those_in_the_journal_are_copied_whole)
{
    check_wherever_they_lie(check_bodies);
}

static void check_without_bodies(struct queue q)
{
    for (int rows = 0; rows < 2; rows++) {
        struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST, .max_bytes = 105100};
        memset(items, 0, sizeof items);
        batch = (struct mqe_batch){.items = rows != 0 ? items : NULL, .capacity = MOST};
        CHECK_INT(mqe_browse_batch(engine.manager, q.handle, &how, &batch), 0);
        CHECK_INT(batch.count, 4);
        CHECK_INT(batch.bytes, 105100);
        CHECK_INT(batch.needed, 300000);
        for (int i = 0; i < 4 && rows != 0; i++) {
            CHECK_INT(items[i].length, sizes[i]);
            CHECK_INT(items[i].d.persistence, 1);
        }
        how = (struct mqe_get){.flags = MQE_GET_BROWSE_NEXT};
        CHECK_INT(mqe_browse_batch(engine.manager, q.handle, &how, &batch), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(batch.bytes, 300000);
    }
}

TEST(without_bodies_or_rows_the_same_messages_are_seen_wherever_they_lie)
{
    check_wherever_they_lie(check_without_bodies);
}

TEST(what_does_not_fit_ends_the_batch_and_is_told_with_its_size)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST};
    (void)put_sized(q, 100, 4, 0);
    (void)put_sized(q, 500, 4, 0);
    CHECK_INT(look_with(q, &how, MOST, 400), 0);
    CHECK_INT(batch.count, 1);
    CHECK_INT(batch.needed, 500);
    how.flags = MQE_GET_BROWSE_NEXT;
    CHECK_INT(look_with(q, &how, MOST, 400), 2080);
    CHECK_INT(batch.count, 0);
    CHECK_INT(batch.needed, 500);
    how.max_bytes = 1; /* one message is examined whatever it says */
    CHECK_INT(look_with(q, &how, MOST, 1000), 0);
    CHECK_INT(batch.count, 1);
    CHECK_INT(items[0].length, 500);
}

TEST(a_number_parts_the_messages_that_are_there_from_those_that_come)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i += 500) { /* more than a block of numbers */
            struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST, .match = MQE_MATCH_UP_TO};
            how.up_to = newest(q);
            const uint32_t before = depth(q);
            (void)put_sized(q, 3, 9, 1);
            CHECK_INT(look_with(q, &how, MOST, BODIES), 0);
            CHECK_INT(batch.count, before);
            CHECK(newest(q) > how.up_to);
        }
        engine_kill_and_restart();
        q = engine_find("Q");
    }
    uint64_t number;
    CHECK_INT(mqe_queue_newest(engine.manager, q.slot, q.generation + 1, &number), 2052);
    CHECK_INT(mqe_queue_newest(engine.manager, UINT32_MAX, 0, &number), 2052);
}

/* ---- places ---- */

enum { SEVERAL = 1200 };

static uint64_t whole[SEVERAL], seen[SEVERAL];

/* Numbers of the messages of a range, `step` a call; how many. */
static uint32_t numbers(struct queue q, const struct mqe_position range[2], uint32_t step,
                        uint64_t *out)
{
    struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST};
    uint32_t n = 0;
    do {
        batch = (struct mqe_batch){.items = items, .capacity = step};
        CHECK_INT(range == NULL ? mqe_browse_batch(engine.manager, q.handle, &how, &batch)
                                : mqe_browse_range(engine.manager, q.handle, &how, range, &batch),
                  0);
        for (uint32_t i = 0; i < batch.count; i++) {
            out[n++] = items[i].number;
        }
        how.flags = MQE_GET_BROWSE_NEXT;
    } while (batch.count != 0);
    return n;
}

/* The ranges between the places make up the whole walk. */
static void check_ranges(struct queue q, const struct mqe_position *place, uint32_t count)
{
    const uint32_t all = numbers(q, NULL, MOST, whole);
    uint32_t n = 0;
    for (uint32_t k = 0; k <= count; k++) {
        const struct mqe_position range[2] = {
            k == 0 ? (struct mqe_position){9, 0, 0} : place[k - 1],
            k == count ? (struct mqe_position){0, 0, UINT64_MAX} : place[k],
        };
        n += numbers(q, range, 1 + k % 70, seen + n);
    }
    CHECK_INT(n, all);
    CHECK(memcmp(whole, seen, n * sizeof seen[0]) == 0);
}

TEST(ranges_between_places_are_the_whole_queue_whatever_leaves_and_after_a_restart)
{
    static struct mqe_position place[SEVERAL];
    const uint32_t parts[] = {1, 2, 3, 70, 200};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < SEVERAL; i++) {
        (void)put_sized(q, 3, i % 7 == 0 ? 9 : i % 3, i % 5 != 0);
    }
    for (int k = 0; k < 5; k++) {
        uint32_t count;
        CHECK_INT(
            mqe_queue_split_points(engine.manager, q.slot, q.generation, parts[k], place, &count),
            0);
        CHECK_INT(count, parts[k] - 1);
        check_ranges(q, place, count);
        for (int i = 0; i < 60; i++) {
            CHECK_STR(TAKE(q, .number = whole[i * 7 + k], .match = MQE_MATCH_NUMBER), "\3\3\3");
        }
        CHECK_INT(depth(q), SEVERAL - 60 * (k + 1));
        check_ranges(q, place, count);
        if (k == 4) {
            engine_kill_and_restart();
            q = engine_find("Q");
            check_ranges(q, place, count);
            while (depth(q) != 0) {
                (void)TAKE(q);
            }
            check_ranges(q, place, count);
            (void)put_sized(q, 3, 1, 0); /* at the position of what was first there */
            check_ranges(q, place, count);
        }
    }
}

TEST(places_cut_the_queue_evenly_and_an_empty_one_not_at_all)
{
    struct mqe_position place[8];
    uint32_t count;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_queue_split_points(engine.manager, q.slot, q.generation, 8, place, &count), 0);
    CHECK_INT(count, 0);
    for (int i = 0; i < 600; i++) {
        (void)put_sized(q, 3, i < 100 ? 0 : 5, 0);
    }
    CHECK_INT(mqe_queue_split_points(engine.manager, q.slot, q.generation, 4, place, &count), 0);
    CHECK_INT(count, 3);
    for (uint32_t k = 0; k < 3; k++) {
        const struct mqe_position range[2] = {
            k == 0 ? (struct mqe_position){9, 0, 0} : place[k - 1], place[k]};
        CHECK_INT(place[k].placement, 5);
        CHECK_INT(numbers(q, range, MOST, seen), 150);
    }
    CHECK_INT(mqe_queue_split_points(engine.manager, q.slot, q.generation + 1, 2, place, &count),
              2052);
    struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST};
    const struct mqe_position wrong[2] = {{10, 0, 0}, {0, 0, 0}};
    batch = (struct mqe_batch){.items = items, .capacity = MOST};
    CHECK_INT(mqe_browse_range(engine.manager, q.handle, &how, wrong, &batch), 2046);
}

TEST(flags_match_bits_and_rights_that_do_not_fit_are_refused)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(look(q, MQE_GET_BROWSE_FIRST | MQE_GET_WAIT, 1), 2046);
    struct mqe_get how = {.flags = MQE_GET_BROWSE_NEXT, .match = MQE_MATCH_NUMBER};
    CHECK_INT(look_with(q, &how, 1, 10), 2247);
    CHECK_INT(look(q, MQE_GET_BROWSE_FIRST, 0), 0);
}

TEST(a_queue_that_is_being_deleted_has_no_newest_number)
{
    engine_begin();
    struct queue q = make("D", PERMANENT);
    uint64_t number = 0;
    mqe_queue *other = engine_open(q, MQE_BROWSE);
    (void)newest(q);
    CHECK_INT(shut(q.handle, PURGE), 0);
    CHECK_INT(mqe_queue_newest(engine.manager, q.slot, q.generation, &number), MQRC_Q_DELETED);
    CHECK_INT(shut(other, KEEP), 0);
    CHECK_INT(mqe_queue_newest(engine.manager, q.slot, q.generation, &number), MQRC_Q_DELETED);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
