/*
 * test_unit_turnover.c - proves that a forgotten unit of work costs its own bytes and not the
 * journal: what open and prepared units have put moves out of nearly empty segments (compaction.h),
 * takes effect whole and once when the unit ends, and not otherwise, whoever dies in between.
 */
#include "fixtures/prepared_fixture.h"

#include "queue/stored.h"
#include "recovery/checkpoint.h"
#include "recovery/checkpoint_round.h"
#include "recovery/compaction.h"

enum { SMALL = 32768, UNITS = 300, LIMIT = 16 << 20, LONG = 40000, TRAFFIC = 3000, FILL = 4 };

static unsigned char body[LONG];
static struct queue held, busy; /* what units put; what passes by */
static mqe_unit *units[UNITS];

static void begin_small(void)
{
    struct mqe_settings settings = engine_settings();
    settings.segment_size = SMALL;
    settings.first_segment_size = SMALL;
    settings.journal_limit = LIMIT;
    engine_begin_with(&settings);
    busy = QUEUE("BUSY", 0); /* walked first by a checkpoint */
    held = QUEUE("HELD", 0);
}

/* Messages that come and go, with what the maintenance thread does. */
static void pass_by(int count)
{
    for (int i = 0; i < count; i++) {
        CHECK_INT(PUT(busy, .body = body, .length = TRAFFIC, .persistent = 1), 0);
        CHECK_STR(TAKE(busy), "");
        CHECK_INT(i % 8 == 0 ? mqe_maintain(engine.manager) : 0, 0);
    }
}

static int put_held(mqe_unit *unit, uint64_t id, uint32_t length)
{
    body[0] = 0; /* TAKE gives a text */
    return PUT(held, .body = body, .length = length, .persistent = 1, .correl = id, .unit = unit);
}

/* Gets the message and compares it. */
static bool is_there(uint64_t id, uint32_t length)
{
    static unsigned char got[LONG];
    const struct ask ask = {.correl = id};
    struct mqe_get get = engine_ask(&ask);
    get.buffer = got;
    get.capacity = sizeof got;
    return mqe_get(engine.manager, NULL, held.handle, &get) == 0 && get.length == length &&
           memcmp(got, body, length) == 0;
}

static void restart(void)
{
    engine_kill_and_restart();
    held = engine_find("HELD");
    busy = engine_find("BUSY");
}

static uint64_t journal_bytes(void)
{
    struct mqe_manager_status now;
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    return now.journal_bytes;
}

TEST(a_forgotten_unit_in_each_segment_keeps_none_of_them)
{
    begin_small();
    const uint64_t bound = 2 * mqx_journal_interval(engine_region()->journal) + 4 * SMALL +
                           (uint64_t)UNITS * 1000;
    CHECK((uint64_t)UNITS * SMALL > bound); /* what they would keep otherwise */
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = engine_unit();
        CHECK_INT(put_held(units[i], i + 1, 15), 0);
        CHECK_INT(i % 2 == 0 ? prepare(units[i], i) : 0, 0);
        pass_by(FILL);
    }
    pass_by(150);
    CHECK(journal_bytes() <= bound);
    CHECK(engine_region()->journal->moved_messages >= UNITS / 2);
    for (uint32_t i = 1; i < UNITS; i += 2) { /* the open ones */
        CHECK_INT(i % 4 == 1 ? mqe_commit(units[i]) : mqe_backout(units[i]), 0);
    }
    restart();
    CHECK_INT(depth(held), UNITS / 4 + UNITS / 2); /* of prepared units, too */
    for (uint32_t i = 0; i < UNITS; i += 2) {
        CHECK_INT(i % 4 == 0 ? commit(i) : back_out(i), 0);
    }
    pass_by(300);
    restart();
    for (uint32_t i = 0; i < UNITS; i++) {
        CHECK(i % 4 > 1 || is_there(i + 1, 15));
    }
    CHECK_INT(depth(held), 0);
    CHECK(is_all_sound());
}

TEST(a_message_in_pieces_of_a_prepared_unit_moves_and_comes_back_over_restarts)
{
    begin_small();
    units[0] = engine_unit();
    CHECK_INT(put_held(units[0], 1, LONG), 0);
    CHECK_INT(put_held(units[0], 2, 300), 0);
    CHECK_INT(prepare(units[0], 0), 0);
    for (int round = 0; round < 4; round++) {
        pass_by(20);
        CHECK_INT(mqe_compact(engine.manager), 0);
        CHECK(engine_region()->journal->moved_messages >= 2);
        CHECK(mqx_journal_segment_of(engine_region(), 2 * MQX_PAGE_SIZE) < 0);
        restart();
        CHECK_INT(prepared_count(), 1);
    }
    CHECK_INT(commit(0), 0);
    CHECK(is_there(1, LONG) && is_there(2, 300));
    CHECK_INT(depth(held), 0);
}

/* ---- a process that dies while it moves ---- */

static struct mqx_stored stored[MQX_LOCKED_STEPS_MAX];

static uint32_t list_held(void)
{
    struct mqx_cursor cursor = {0};
    uint32_t count = 0;
    bool done = false;
    CHECK_INT(mqx_stored_list(&engine.manager->store, held.slot, &cursor, stored, &count, &done),
              0);
    return count;
}

/* One, without a compaction. */
static void checkpoint(void)
{
    struct mqx_region *region = engine_region();
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    CHECK_INT(mqx_checkpoint(&engine.manager->store, MQX_CHECKPOINT_FUZZY), 0);
    mqx_lock_drop(region, &region->header->maintenance_lock);
}

/* Three units, whose messages are moved, and whose entries do not know: as a process leaves it that
 * dies after the flush. */
static void move_and_die(void)
{
    begin_small();
    for (uint32_t i = 0; i < 3; i++) {
        units[i] = engine_unit();
        CHECK_INT(put_held(units[i], i + 1, i == 2 ? LONG : 200), 0);
        pass_by(FILL);
    }
    checkpoint();
    CHECK_INT(list_held(), 3);
    struct mqx_region *region = engine_region();
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    CHECK_INT(mqx_compact_to(&engine.manager->store, 0), 0);
    mqx_lock_drop(region, &region->header->maintenance_lock);
    for (uint32_t i = 0; i < 3; i++) {
        struct mqx_message *message = mqx_message(region, stored[i].slot);
        CHECK(message->lsn > stored[i].lsn);
        message->lsn = stored[i].lsn;
    }
}

TEST(a_checkpoint_completes_moves_that_a_dead_process_has_not_noted)
{
    move_and_die();
    checkpoint();
    for (uint32_t i = 0; i < 3; i++) {
        CHECK(mqx_message(engine_region(), stored[i].slot)->lsn > stored[i].lsn);
    }
    for (int i = 0; i < 3; i++) { /* the segments from which they moved are freed */
        pass_by(2);
        checkpoint();
    }
    CHECK(mqx_journal_segment_of(engine_region(), stored[0].lsn) < 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_INT(mqe_commit(units[i]), 0);
    }
    pass_by(100);
    CHECK_INT(mqx_region_stopped(engine_region()), MQX_RUNNING);
    restart();
    CHECK(is_there(1, 200) && is_there(2, 200) && is_there(3, LONG));
    CHECK_INT(depth(held), 0);
}

static int commits_meanwhile;

/* In a checkpoint, when its begin LSN is known and the queue is not copied yet. */
static int commit_meanwhile(struct mqx_store *store)
{
    (void)store;
    for (uint32_t i = 0; i < 3 && commits_meanwhile == 0; i++) {
        CHECK_INT(mqe_commit(units[i]), 0);
    }
    commits_meanwhile += 1;
    return 0;
}

static void end_in_a_checkpoint(void)
{
    move_and_die();
    struct mqx_store *store = &engine.manager->store;
    int (*const hook)(struct mqx_store *) = store->maintenance_hook;
    CHECK_INT(PUT(busy, .text = "x", .persistent = 1), 0);
    commits_meanwhile = 0;
    store->maintenance_hook = commit_meanwhile;
    checkpoint();
    store->maintenance_hook = hook;
    CHECK(commits_meanwhile > 0);
}

TEST(a_unit_that_ends_in_a_checkpoint_has_its_messages_in_either_place)
{
    for (int dies = 0; dies < 2; dies++) {
        end_in_a_checkpoint();
        if (dies) {
            restart();
        }
        for (int i = 0; i < 3; i++) { /* no checkpoint after it sees a difference */
            CHECK_INT(mqx_checkpoint_now(&engine.manager->store), 0);
            CHECK_STR(TAKE(busy), i == 0 ? "x" : "(2033)");
            pass_by(20);
        }
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_RUNNING);
        restart();
        CHECK(is_there(1, 200) && is_there(2, 200) && is_there(3, LONG));
    }
}

TEST_MAIN()
