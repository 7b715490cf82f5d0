/* Claims of unit_records.c: records that are gathered are in the journal as if appended one by
 * one. */
#include "fixtures/engine_fixture.h"
#include "unit/unit_records.h"

enum { MOST = 400, BODY = 1000 };

static struct mqe_item items[MOST];
static unsigned char bodies[MOST * BODY];
static int64_t offsets[MOST + 1];
static struct mqe_batch batch;

/* A unit with a few special settings, on a small journal. */
static struct queue begin_with(uint64_t ring, uint64_t segment, uint64_t limit)
{
    struct mqe_settings settings = engine_settings();
    settings.ring_size = ring;
    settings.segment_size = segment;
    settings.first_segment_size = segment;
    settings.journal_limit = limit;
    engine_begin_with(&settings);
    return QUEUE("Q", DEFPSIST, 1, MAXMSGL, 400000);
}

static int put_many(struct queue q, mqe_unit *unit, uint32_t count, uint32_t length, uint32_t mark)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    batch = (struct mqe_batch){.items = items, .capacity = MOST, .count = count, .bodies = bodies,
                               .body_capacity = sizeof bodies, .offsets = offsets};
    for (uint32_t i = 0; i < count; i++) {
        items[i] = (struct mqe_item){.d = {.priority = 4, .persistence = i % 5 != 4}, .expiry = -1};
        memset(bodies + (uint64_t)i * length, (int)(mark + i), length);
        offsets[i] = (int64_t)i * length;
    }
    offsets[count] = (int64_t)count * length;
    return mqe_put_batch(engine.manager, unit, &to, &batch, 0);
}

static int get_many(struct queue q, mqe_unit *unit)
{
    struct mqe_get how = {0};
    batch = (struct mqe_batch){.items = items, .capacity = MOST, .bodies = bodies,
                               .body_capacity = sizeof bodies, .offsets = offsets};
    return mqe_get_batch(engine.manager, unit, q.handle, &how, &batch);
}

TEST(a_unit_knows_of_gathered_records_what_it_knows_of_single_ones)
{
    struct queue q = begin_with(1 << 20, 1 << 20, 64 << 20);
    const struct mqx_region *region = engine_region();
    mqe_unit *unit = engine_unit();
    const struct mqx_context *context = mqx_context(region, unit->context);
    CHECK_INT(put_many(q, unit, 100, 300, 0), 0);
    CHECK_INT(context->record_count, 80);
    CHECK_INT(context->count, 100);
    CHECK_INT(context->first_lsn, items[0].lsn);
    uint32_t crc = 0;
    uint64_t last = 0;
    for (uint32_t slot = context->head; slot != 0;) {
        const struct mqx_message *message = mqx_message(region, slot);
        if ((message->flags & MQX_MSGF_PERSISTENT) != 0) {
            const struct psj_record *record = (const void *)mqx_ring_at(region, message->lsn);
            CHECK(message->lsn > last);
            CHECK_INT(message->record_length, mqx_record_length(record));
            struct mqx_decoded decoded;
            CHECK_INT(mqx_record_parse(record, &decoded), 0);
            CHECK_INT(decoded.head->number, message->number);
            CHECK_INT(decoded.head->unit_id, context->unit_id);
            crc = mqx_running_crc(crc, record);
            last = message->lsn;
        } else {
            CHECK_INT(message->lsn, 0);
        }
        slot = message->unit_next;
    }
    CHECK_INT(context->running_crc, crc);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(get_many(q, unit), 0);
    CHECK_INT(context->record_count, 80);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(runs_that_do_not_fit_go_on_behind_the_roll_and_the_turn_of_the_ring)
{
    struct queue q = begin_with(256 << 10, 96 << 10, 64 << 20);
    mqe_unit *unit = engine_unit();
    uint32_t put = 0;
    for (uint32_t round = 0; round < 12; round++) {
        const uint32_t length = 300 + 75 * round;
        CHECK_INT(put_many(q, round % 2 == 0 ? unit : NULL, 150, length, round), 0);
        CHECK_INT(batch.count, 150);
        CHECK_INT(mqe_commit(unit), 0);
        put += 120;
    }
    CHECK(engine_region()->journal->next_segment_no > 10);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(depth(q), put);
    unit = engine_unit();
    for (uint32_t round = 0; round < 12; round++) {
        struct mqe_get how = {0};
        batch = (struct mqe_batch){.items = items, .capacity = 120, .bodies = bodies,
                                   .body_capacity = sizeof bodies, .offsets = offsets};
        CHECK_INT(mqe_get_batch(engine.manager, unit, q.handle, &how, &batch), 0);
        CHECK_INT(batch.count, 120);
        for (uint32_t i = 0; i < 120; i++) {
            CHECK_INT(items[i].length, 300 + 75 * round);
            CHECK_INT(bodies[offsets[i]], (round + i / 4 * 5 + i % 4) & 255);
        }
        CHECK_INT(mqe_commit(unit), 0);
    }
    engine_kill_and_restart();
    CHECK_INT(depth(engine_find("Q")), 0);
}

TEST(what_the_journal_has_no_room_for_is_not_in_the_unit_and_what_it_had_room_for_is)
{
    struct queue q = begin_with(256 << 10, 64 << 10, 256 << 10);
    mqe_unit *unit = engine_unit();
    uint32_t total = 0;
    int status = 0;
    for (int i = 0; i < 100 && status == 0; i++) {
        status = put_many(q, unit, 130, 500, 0);
        total += batch.count;
        if (status == 0) {
            CHECK_INT(mqe_commit(unit), 0);
        }
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(mqe_unit_count(unit), batch.count);
    CHECK(batch.count < 130);
    CHECK_INT(items[batch.count].d.persistence, 1);
    CHECK_INT(mqe_check(engine.manager), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(depth(q), total);
    engine_kill_and_restart();
    CHECK_INT(depth(engine_find("Q")), total / 130 * 104 + total % 130 - total % 130 / 5);
}

TEST(a_journal_that_is_full_because_its_checkpoint_lags_takes_batch_after_batch)
{
    struct queue q = begin_with(256 << 10, 64 << 10, 384 << 10);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 20; i++) {
        CHECK_INT(put_many(q, i % 2 == 0 ? unit : NULL, 100, 400, 0), 0);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(get_many(q, NULL), 0);
        CHECK_INT(batch.count, 100);
    }
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
