/* Claims of prepared.c and twophase.c: units that are prepared are nobody's, survive everything,
 * and are ended by name, some of them at once. */
#include "engine_bed.h"
#include "prepared.h"
#include "sweep.h"

static struct ps_xid xid_of(uint32_t number)
{
    struct ps_xid xid = {.format_id = 0x50534b54, .gtrid_length = 4, .bqual_length = 1};
    memcpy(xid.gtrid, &number, 4);
    xid.bqual[0] = 7;
    return xid;
}

static int prepare(mqe_unit *unit, uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_prepare(unit, &xid, 0);
}

static int commit(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_commit_prepared(engine.manager, &xid, 1);
}

static uint64_t discarded;

static int back_out(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_backout_prepared(engine.manager, &xid, 1, &discarded);
}

static uint32_t prepared_count(void)
{
    uint32_t count = 0;
    CHECK_INT(mqe_prepared_list(engine.manager, NULL, 0, &count), 0);
    return count;
}

static struct mqe_prepared only_one(void)
{
    struct mqe_prepared row = {0};
    uint32_t count = 0;
    CHECK_INT(mqe_prepared_list(engine.manager, &row, 1, &count), 0);
    CHECK_INT(count, 1);
    return row;
}

static bool is_sound(void)
{
    return mqe_check(engine.manager) == 0;
}

/* ---- preparing ---- */

TEST(a_prepared_unit_is_nobodys_and_invisible_until_it_is_committed)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "got", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "stays"), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "np", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(mqe_unit_count(unit), 0);
    CHECK_STR(peruse(q), "stays");
    CHECK_INT(engine_status(q).got, 1);
    CHECK_INT(engine_status(q).uncommitted, 2);
    const struct mqe_prepared row = only_one();
    const struct ps_xid xid = xid_of(1);
    CHECK(mqx_xid_equal(&row.xid, &xid));
    CHECK_INT(row.puts, 2);
    CHECK_INT(row.gets, 1);
    CHECK_INT(row.nonpersistent, 1);
    CHECK_INT(row.bytes, 8);
    CHECK(row.unit_id != 0 && row.prepared_us != 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(prepared_count(), 1);
    CHECK_INT(commit(1), 0);
    CHECK_INT(prepared_count(), 0);
    CHECK_STR(drain(q), "stays put np");
    CHECK_INT(commit(1), MQRC_UOW_NOT_AVAILABLE);
    CHECK(strstr(mqe_error_text(), "PSKT:0x01000000:0x07") != NULL);
    CHECK(is_sound());
}

TEST(a_backout_gives_everything_back_in_its_place_and_counts_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    for (uint32_t n = 1; n <= 3; n++) {
        mqe_unit *unit = engine_unit();
        TAKE(q, .unit = unit);
        TAKE(q, .unit = unit);
        CHECK_INT(PUT(q, .text = "never", .unit = unit), 0);
        CHECK_INT(prepare(unit, n), 0);
        CHECK_STR(peruse(q), "c");
        CHECK_INT(back_out(n), 0);
        CHECK_INT(discarded, 0);
        CHECK_STR(peruse(q), "a b c");
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        CHECK_INT(got.backout_count, n);
    }
    engine_kill_and_restart();
    q = engine_find("Q");
    TAKE(q);
    CHECK_STR(got.text, "b");
    CHECK_INT(got.backout_count, 3);
    CHECK(is_sound());
}

TEST(a_prepared_unit_survives_restarts_and_is_ended_after_them)
{
    for (int way = 0; way < 4; way++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "np"), 0);
        CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
        mqe_unit *unit = engine_unit();
        CHECK_STR(TAKE(q, .unit = unit), "a");
        CHECK_STR(TAKE(q, .unit = unit), "np");
        CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "np put", .unit = unit), 0);
        CHECK_INT(prepare(unit, 5), 0);
        for (int i = 0; i < 3; i++) {
            way % 2 == 0 ? engine_restart() : engine_kill_and_restart();
            q = engine_find("Q");
            CHECK_STR(peruse(q), "b");
            CHECK_INT(engine_status(q).got, 2);
            CHECK_INT(engine_status(q).uncommitted, 1);
            CHECK_INT(only_one().gets, 2);
            CHECK_INT(only_one().puts, 1);
            CHECK_INT(only_one().nonpersistent, 1);
            CHECK_INT(only_one().bytes, 6);
            CHECK(is_sound());
        }
        CHECK_INT(way < 2 ? commit(5) : back_out(5), 0);
        CHECK_STR(peruse(q), way < 2 ? "b put" : "a b");
        CHECK_INT(way < 2 ? 1 : discarded, 1);
        CHECK_INT(prepared_count(), 0);
        CHECK(is_sound());
        engine_kill_and_restart();
        q = engine_find("Q");
        CHECK_STR(drain(q), way < 2 ? "b put" : "a b");
        CHECK_INT(prepared_count(), 0);
        CHECK(is_sound());
    }
}

/* ---- reading ---- */

enum { ROWS = 8000, BODIES = 1 << 20 };
static struct mqe_item items[ROWS];
static unsigned char bodies[BODIES];
static int64_t offsets[ROWS + 1];
static struct mqe_batch batch;

static int browse_some(uint32_t number, struct mqe_prepared_cursor *cursor, uint32_t rows,
                       uint64_t room)
{
    const struct ps_xid xid = xid_of(number);
    batch = (struct mqe_batch){.items = items, .capacity = rows, .bodies = bodies,
                               .body_capacity = room, .offsets = offsets};
    return mqe_browse_prepared(engine.manager, &xid, cursor, &batch);
}

/* Texts from index `from` on, a few a call; bodies are cut at 20 bytes. */
static const char *rows_from(uint32_t number, uint64_t from, uint32_t a_call)
{
    static char all[4096];
    struct mqe_prepared_cursor cursor = {.index = from};
    size_t used = 0;
    all[0] = '\0';
    do {
        CHECK_INT(browse_some(number, &cursor, a_call, BODIES), 0);
        for (uint32_t i = 0; i < batch.count && used < sizeof all - 100; i++) {
            const int length = (int)(offsets[i + 1] - offsets[i]);
            CHECK_INT(items[i].length, length);
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s%.*s",
                                     used != 0 ? " " : "",
                                     items[i].work == MQE_ITEM_PUT ? "+" : "",
                                     length < 20 ? length : 20, bodies + offsets[i]);
        }
    } while (batch.count != 0);
    return all;
}

static const char *rows(uint32_t number)
{
    return rows_from(number, 0, 3);
}

TEST(a_browse_tells_what_was_got_and_put_in_the_order_of_the_calls_also_after_restarts)
{
    static char longer[ENGINE_TEXT];
    memset(longer, 'L', sizeof longer);
    engine_begin();
    struct queue q = QUEUE("Q", 0), r = QUEUE("R", 0);
    CHECK_INT(PUT(q, .text = "p1", .persistent = 1, .priority = 4), 0);
    CHECK_INT(PUT(q, .text = "n1", .priority = 9, .correl = 77, .expiry = 100000), 0);
    CHECK_INT(PUT(r, .text = "n2"), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 5000), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 90000), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 70000, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = ""), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(r, .unit = unit), "n2");
    CHECK_STR(TAKE(q, .unit = unit), "n1");
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1, .group = 5), 0);
    CHECK_INT(TAKE(r, .unit = unit)[4999], 'L');
    CHECK_STR(TAKE(q, .unit = unit), "p1");
    CHECK_INT(TAKE(r, .unit = unit)[89999], 'L');
    CHECK_INT(TAKE(r, .unit = unit)[69999], 'L');
    CHECK_STR(TAKE(q, .unit = unit), "");
    CHECK_INT(prepare(unit, 1), 0);
    const char *want =
        "n2 n1 +put LLLLLLLLLLLLLLLLLLLL p1 LLLLLLLLLLLLLLLLLLLL LLLLLLLLLLLLLLLLLLLL ";
    CHECK_STR(rows(1), want);
    for (int restart = 0; restart < 3; restart++) {
        restart % 2 == 0 ? engine_kill_and_restart() : engine_restart();
        for (uint32_t a_call = 1; a_call < 10; a_call += 2) {
            CHECK_STR(rows_from(1, 0, a_call), want);
        }
        struct mqe_prepared_cursor cursor = {.index = 1};
        CHECK_INT(browse_some(1, &cursor, ROWS, BODIES), 0);
        CHECK_INT(batch.count, 7);
        CHECK_INT(items[0].d.priority, 9);
        CHECK_INT(items[0].d.persistence, 0);
        CHECK_INT(number_of(items[0].d.correl_id), 77);
        CHECK(items[0].expiry > 0 && items[0].expiry <= 100000);
        CHECK_INT(items[0].ext.msg_seq_number, 1);
        CHECK_INT(number_of(items[1].ext.group_id), 5);
        CHECK_INT(offsets[5] - offsets[4], 90000);
        for (int64_t i = offsets[2]; i < offsets[6]; i++) {
            CHECK(bodies[i] == 'L' || (i >= offsets[3] && i < offsets[4]));
        }
        CHECK_INT(cursor.index, 8);
        CHECK_INT(browse_some(1, &cursor, ROWS, BODIES), 0);
        CHECK_INT(batch.count, 0);
    }
    q = engine_find("Q");
    r = engine_find("R");
    CHECK_INT(back_out(1), 0);
    CHECK_INT(discarded, 5);
    CHECK_STR(drain(q), "p1");
    CHECK_INT(depth(r), 1);
    CHECK(is_sound());
}

TEST(a_browse_ends_where_the_room_does_and_goes_on_there)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 10; i++) {
        char text[20];
        snprintf(text, sizeof text, "message %d", i);
        CHECK_INT(PUT(q, .text = text, .unit = unit, .persistent = i % 2), 0);
    }
    CHECK_INT(prepare(unit, 1), 0);
    struct mqe_prepared_cursor cursor = {0};
    CHECK_INT(browse_some(1, &cursor, 8, 50), 0);
    CHECK_INT(batch.count, 5);
    CHECK_INT(batch.needed, 9);
    CHECK_INT(browse_some(1, &cursor, 8, 8), MQRC_TRUNCATED_MSG_FAILED);
    CHECK_INT(batch.needed, 9);
    CHECK_INT(cursor.index, 5);
    CHECK_INT(browse_some(1, &cursor, 3, 50), 0);
    CHECK_INT(batch.count, 3);
    CHECK(memcmp(bodies, "message 5message 6message 7", 27) == 0);
    engine_kill_and_restart(); /* the np ones are gone; the cursor's entry is another's */
    CHECK_STR(rows_from(1, 1, 2), "+message 3 +message 5 +message 7 +message 9");
    cursor.index = 4;
    CHECK_INT(browse_some(1, &cursor, 8, 50), 0);
    CHECK_INT(batch.count, 1);
    CHECK(memcmp(bodies, "message 9", 9) == 0);
    CHECK_INT(commit(1), 0);
    CHECK_INT(browse_some(1, &cursor, 8, 50), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(batch.count, 0);
}

TEST_MAIN()
