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

TEST_MAIN()
