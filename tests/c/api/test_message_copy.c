/* Claims of message_copy.h: a copy is the same from the region and from the journal. */
#include "fixtures/engine_fixture.h"

#include "api/message_copy.h"
#include "base/clock.h"

TEST(on_z_os_the_backout_count_ends_at_255)
{
    struct mqe_settings settings = engine_settings();
    for (uint32_t platform = 0; platform < 2; platform++) {
        settings.platform = platform;
        engine_begin_with(&settings);
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT(q, .text = "x"), 0);
        for (int i = 0; i < 257; i++) {
            CHECK_STR(TAKE(q, .unit = unit), "x");
            CHECK_INT(mqe_backout(unit), 0);
        }
        CHECK_STR(TAKE(q), "x");
        CHECK_INT(got.backout_count, platform == 0 ? 257 : 255);
    }
}

TEST(what_is_left_of_an_expiry_is_at_least_one_tenth_and_minus_one_when_unlimited)
{
    engine_begin();
    const struct mqx_region *region = engine_region();
    struct ps_descriptor d = {.expiry_us = 0};
    CHECK_INT(mqx_expiry_left(region, &d), -1);
    d.expiry_us = 1; /* long past */
    CHECK_INT(mqx_expiry_left(region, &d), 1);
    d.expiry_us = mqx_clock_coarse_us() + 50 * 100000u + 99999u;
    CHECK(mqx_expiry_left(region, &d) >= 49 && mqx_expiry_left(region, &d) <= 50);
    CHECK_INT(mqe_advance(engine.manager, 4000000), 0);
    CHECK(mqx_expiry_left(region, &d) >= 9 && mqx_expiry_left(region, &d) <= 10);
    d.expiry_us = UINT64_MAX;
    CHECK_INT(mqx_expiry_left(region, &d), 999999999);
}

/* The only message of the queue. */
static const struct mqx_message *only_message(struct queue q)
{
    struct mqx_region *region = engine_region();
    const struct mqx_object *queue = mqx_object(region, q.slot);
    return mqx_message(region, mqx_priority_index_first(region, queue));
}

TEST(a_copy_from_the_journal_equals_the_one_from_the_region)
{
    struct ps_descriptor d[2];
    struct ps_descriptor_ext ext[2];
    char body[2][16] = {{0}};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "body", .persistent = 1, .correl = 7, .group = 9), 0);
    for (int i = 0; i < 2; i++) {
        const struct mqx_message *message = only_message(q);
        CHECK(message != NULL && (message->cells == 0) == (i == 1));
        CHECK_INT(mqx_message_copy(&engine.manager->store, message, &d[i], &ext[i], body[i], 3),
                  0);
        engine_kill_and_restart();
        q = engine_find("Q");
    }
    CHECK_STR(body[0], "bod");
    CHECK_STR(body[1], "bod");
    CHECK_MEM(&d[0], &d[1], sizeof d[0]);
    CHECK_MEM(&ext[0], &ext[1], sizeof ext[0]);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
