/* Claims of expiry.c, and of searches that meet expired messages whose reports are to be made. */
#include "base/clock.h"
#include "fixtures/batch_fixture.h"
#include "queue/priority_index.h"
#include "queue/expire.h"

enum { ASKS = MQRO_EXPIRATION, STOPS = MQE_GET_REPORT_EXPIRED, SOON = 1 };

static void expire_soon(void)
{
    sleep_ms(250); /* the region rounds an expiry up */
}

/* With an extension (.group), which has ReplyToQ. */
#define PUT_ASKING(q, ...) PUT(q, .group = 1, .expiry = SOON, .report = ASKS, __VA_ARGS__)

TEST(a_search_ends_at_an_expired_message_whose_report_is_to_be_made_and_another_passes_it)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT_ASKING(q, .text = "asks", .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "plain", .expiry = SOON, .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "live", .persistent = persistent), 0);
        expire_soon();
        CHECK_STR(TAKE(q, .flags = STOPS), "(90106)");
        const uint64_t number = got.number;
        CHECK_STR(TAKE(q, .flags = STOPS | MQE_GET_BROWSE_FIRST), "(90106)");
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "live");
        CHECK_INT(depth(q), 2);
        CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED, .number = number + 100), "(2033)");
        CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED, .number = number, .unit = unit), "asks");
        CHECK_STR(TAKE(q, .flags = STOPS), "live");
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED), "asks");
        CHECK_STR(TAKE(q, .flags = STOPS), "(2033)");
        CHECK_INT(mqe_check(engine.manager), 0);
    }
}

TEST(a_search_by_id_ends_at_the_expired_message_of_the_id_alone)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT_ASKING(q, .text = "asks", .correl = 7), 0);
    CHECK_INT(PUT(q, .text = "seven", .correl = 7), 0);
    for (int i = 0; i < 100; i++) { /* an index by id is used */
        CHECK_INT(PUT(q, .text = "other", .correl = 8), 0);
    }
    expire_soon();
    CHECK_STR(TAKE(q, .correl = 8, .flags = STOPS), "other");
    CHECK_STR(TAKE(q, .correl = 7, .flags = STOPS), "(90106)");
    CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED, .number = got.number), "asks");
    CHECK_STR(TAKE(q, .correl = 7, .flags = STOPS), "seven");
}

TEST(a_batch_ends_before_it_and_tells_its_number_when_it_is_the_first)
{
    static unsigned char bodies[4096];
    static struct mqe_item items[8];
    static int64_t offsets[9];
    struct mqe_batch batch = {.items = items, .capacity = 8, .bodies = bodies,
                              .body_capacity = sizeof bodies, .offsets = offsets};
    struct mqe_get how = {.flags = STOPS};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT_ASKING(q, .text = "asks"), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    expire_soon();
    CHECK_INT(mqe_get_batch(engine.manager, NULL, q.handle, &how, &batch), 0);
    CHECK_INT(batch.count, 2);
    CHECK_INT(mqe_get_batch(engine.manager, NULL, q.handle, &how, &batch), MQE_EXPIRED);
    CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED, .number = how.number), "asks");
    CHECK_INT(mqe_get_batch(engine.manager, NULL, q.handle, &how, &batch), 0);
    CHECK_INT(batch.count, 1);
}

TEST(the_maintenance_leaves_it_and_a_hint_that_one_caller_takes)
{
    uint32_t slot = 0, generation = 0;
    struct mqx_expire_step step;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT_ASKING(q, .text = "asks", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "plain", .expiry = SOON, .persistent = 1), 0);
    expire_soon();
    CHECK_INT(mqx_queue_expire_step(&engine.manager->store, q.slot, mqx_clock_coarse_us(), &step),
              0);
    CHECK(step.reports);
    CHECK_INT(depth(q), 1);
    memory_io_set_clock(engine.files, mqx_clock_wall_us());
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK(mqe_expired_due(engine.manager));
    CHECK(mqe_expired_take(engine.manager, &slot, &generation));
    CHECK(!mqe_expired_due(engine.manager));
    CHECK_INT(slot, q.slot);
    CHECK_INT(generation, q.generation);
    CHECK(!mqe_expired_take(engine.manager, &slot, &generation));
    CHECK_STR(TAKE(q, .match = MQE_MATCH_EXPIRED), "asks");
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK(!mqe_expired_take(engine.manager, &slot, &generation));
}

TEST(one_whose_options_are_in_the_journal_is_kept_until_they_have_been_read)
{
    static char body[1000000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .body = body, .length = sizeof body, .group = 1, .expiry = SOON,
                  .persistent = 1), 0);
    engine_restart();
    q = engine_find("Q");
    expire_soon();
    const struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    const uint32_t first = mqx_priority_index_first(engine_region(), queue);
    if (mqx_message(engine_region(), first)->cells == 0) {
        CHECK_STR(TAKE(q, .flags = STOPS), "(90106)");
    }
    (void)TAKE(q, .match = MQE_MATCH_EXPIRED, .capacity = NONE, .flags = MQE_GET_ACCEPT_TRUNCATED);
    CHECK_STR(TAKE(q, .flags = STOPS), "(2033)");
}

TEST_MAIN()
