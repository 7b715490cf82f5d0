/* Claims of message_body.c: bodies of every size come back whole, from the region and from the
 * journal's mapping. */
#include "fixtures/engine_fixture.h"
#include "process/maintenance.h"
#include "region/message_body.h"

enum { MIB = 1 << 20 };

static unsigned char *body_out, *body_in; /* 100 MiB each */

static void fill(uint64_t length, uint64_t seed)
{
    if (body_out == NULL) {
        body_out = malloc(MQX_MAX_BODY);
        body_in = malloc(MQX_MAX_BODY + 8);
        CHECK(body_out != NULL && body_in != NULL);
    }
    struct test_random random = {seed};
    for (uint64_t i = 0; i + 8 <= length; i += 8) {
        const uint64_t word = test_next(&random);
        memcpy(body_out + i, &word, 8);
    }
    memset(body_out + (length & ~UINT64_C(7)), (int)(length & 0xff), length & 7);
}

static bool comes_back(mqe_queue *handle, mqe_unit *unit, uint32_t flags, uint64_t length)
{
    struct mqe_get get = {.flags = flags, .buffer = body_in, .capacity = length};
    memset(body_in, 0xee, length + 8);
    return mqe_get(engine.manager, unit, handle, &get) == 0 && get.length == length &&
           memcmp(body_in, body_out, length) == 0 && body_in[length] == 0xee;
}

/* Put, browsed, got in a unit and backed out, got outside; in a unit and outside. */
static bool round_trip(struct queue q, mqe_unit *unit, uint64_t length, int persistent)
{
    fill(length, length + 1);
    bool good = PUT(q, .body = body_out, .length = length, .persistent = persistent) == 0 &&
                comes_back(q.handle, NULL, MQE_GET_BROWSE_FIRST, length) &&
                comes_back(q.handle, unit, 0, length) && mqe_backout(unit) == 0 &&
                comes_back(q.handle, NULL, 0, length);
    good = good &&
           PUT(q, .body = body_out, .length = length, .persistent = persistent, .unit = unit) ==
               0 &&
           mqe_commit(unit) == 0 && comes_back(q.handle, unit, 0, length) && mqe_commit(unit) == 0;
    if (!good) {
        printf("\n    %" PRIu64 " bytes, persistent %d: %s", length, persistent, mqe_error_text());
    }
    return good;
}

static struct queue wide(const struct mqe_settings *settings)
{
    engine_begin_with(settings);
    return QUEUE("Q", MAXMSGL, MQX_MAX_BODY);
}

TEST(bodies_around_every_limit_come_back_whole)
{
    static const uint64_t sizes[] = {0,     1,     7,     8,     4095,  4096,   4097,   5000,
                                     61439, 61440, 61441, 65536, 65537, 100000, 131072, 1 << 20};
    const struct mqe_settings settings = engine_settings();
    struct queue q = wide(&settings);
    mqe_unit *unit = engine_unit();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sizes); i++) {
        CHECK(round_trip(q, unit, sizes[i], 0));
        CHECK(round_trip(q, unit, sizes[i], 1));
    }
    CHECK_INT(depth(q), 0);
}

/* One block less descriptor (192), extension and head (8) ends at 65,336 bytes. */
TEST(bodies_around_the_largest_block_come_back_whole)
{
    const struct mqe_settings settings = engine_settings();
    struct queue q = wide(&settings);
    mqe_unit *unit = engine_unit();
    for (uint64_t length = 65300; length <= 65600; length++) {
        CHECK(round_trip(q, unit, length, length % 4 == 0));
    }
}

TEST(bodies_of_5_and_100_mebibytes_come_back_whole)
{
    struct mqe_settings settings = engine_settings();
    settings.segment_size = 32 * MIB;
    settings.journal_limit = UINT64_C(1) << 30;
    struct queue q = wide(&settings);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK(round_trip(q, unit, 5 * MIB, persistent));
        CHECK(round_trip(q, unit, MQX_MAX_BODY, persistent));
    }
    CHECK_INT(PUT(q, .body = body_out, .length = MQX_MAX_BODY + UINT64_C(1)),
              MQRC_MSG_TOO_BIG_FOR_Q);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(bodies_outside_the_region_are_served_from_the_mapping_without_a_read_call)
{
    static const uint64_t sizes[] = {1, 300, 5000, 70000, 300000};
    struct mqe_settings settings = engine_settings();
    settings.body_budget = 1;
    struct queue q = wide(&settings);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sizes); i++) {
        fill(sizes[i], sizes[i]);
        CHECK_INT(PUT(q, .body = body_out, .length = sizes[i], .persistent = 1), 0);
        const uint32_t slot =
            mqx_priority_index_first(engine_region(), mqx_object(engine_region(), q.slot));
        CHECK_INT(mqx_message(engine_region(), slot)->cells, 0);
        const uint64_t reads = memory_io_calls(engine.files, MEMORY_READ);
        CHECK(comes_back(q.handle, NULL, MQE_GET_BROWSE_FIRST, sizes[i]));
        CHECK(comes_back(q.handle, NULL, 0, sizes[i]));
        CHECK_INT(memory_io_calls(engine.files, MEMORY_READ), reads);
    }
}

TEST(what_was_recovered_is_served_from_the_mapping_without_a_read_call)
{
    const struct mqe_settings settings = engine_settings();
    struct queue q = wide(&settings);
    fill(200000, 3);
    CHECK_INT(PUT(q, .body = body_out, .length = 200000, .persistent = 1), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0); /* opens and verifies the active segment */
    const uint64_t reads = memory_io_calls(engine.files, MEMORY_READ);
    CHECK(comes_back(q.handle, NULL, MQE_GET_BROWSE_FIRST, 200000));
    CHECK(comes_back(q.handle, NULL, 0, 200000));
    CHECK_INT(memory_io_calls(engine.files, MEMORY_READ), reads);
}

TEST(a_backlog_far_above_the_budget_keeps_only_its_index_in_the_region)
{
    enum { COUNT = 1000, LENGTH = 20000 };
    struct mqe_settings settings = engine_settings();
    settings.body_budget = MIB;
    struct queue q = wide(&settings);
    fill(LENGTH, 5);
    for (int i = 0; i < COUNT; i++) {
        CHECK_INT(PUT(q, .body = body_out, .length = LENGTH, .persistent = 1), 0);
    }
    CHECK(engine_region()->header->area[MQX_AREA_ARENA].used * MQX_CELL < 3 * MIB);
    for (int i = 0; i < COUNT; i++) {
        CHECK(comes_back(q.handle, NULL, 0, LENGTH));
    }
}

static bool is_in_region(struct queue q)
{
    const struct mqx_region *region = engine_region();
    const uint32_t slot = mqx_priority_index_first(region, mqx_object(region, q.slot));
    return slot != 0 && mqx_message(region, slot)->cells != 0;
}

TEST(after_a_backlog_above_the_budget_bodies_are_kept_in_the_region_again)
{
    enum { COUNT = 200, LENGTH = 20000 };
    struct mqe_settings settings = engine_settings();
    settings.body_budget = MIB;
    struct queue q = wide(&settings), other = QUEUE("OTHER", MAXMSGL, MQX_MAX_BODY);
    fill(LENGTH, 5);
    for (int i = 0; i < COUNT; i++) {
        CHECK_INT(PUT(q, .body = body_out, .length = LENGTH, .persistent = 1), 0);
    }
    CHECK_INT(mqx_maintenance_round(&engine.manager->store), 0);
    CHECK_INT(PUT(other, .body = body_out, .length = LENGTH, .persistent = 1), 0);
    CHECK(!is_in_region(other));
    CHECK(comes_back(other.handle, NULL, 0, LENGTH));
    for (int i = 0; i < COUNT; i++) {
        CHECK(comes_back(q.handle, NULL, 0, LENGTH));
    }
    CHECK_INT(mqx_maintenance_round(&engine.manager->store), 0);
    CHECK_INT(engine_region()->header->body_bytes, 0);
    CHECK_INT(PUT(other, .body = body_out, .length = LENGTH, .persistent = 1), 0);
    CHECK(is_in_region(other));
    CHECK_INT(PUT(q, .body = body_out, .length = LENGTH, .persistent = 1), 0);
    CHECK(is_in_region(q));
    CHECK_INT(mqx_maintenance_round(&engine.manager->store), 0);
    CHECK(engine_region()->header->body_bytes > LENGTH);
}

/* The region's arena is used up: what needs it is refused, what has the journal continues. */
TEST(a_region_at_its_limit_refuses_non_persistent_messages_and_keeps_persistent_ones_in_the_journal)
{
    struct mqe_settings settings = engine_settings();
    settings.region_size = 24 * MIB;
    struct queue q = wide(&settings);
    int count = 0;
    fill(60000, 6);
    while (count < 5000 && PUT(q, .body = body_out, .length = 60000) == 0) {
        count++;
    }
    CHECK(count > 10 && count < 5000);
    CHECK_INT(PUT(q, .body = body_out, .length = 60000), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(PUT(q, .body = body_out, .length = 3 * MIB), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(depth(q), count);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(PUT(q, .body = body_out, .length = 60000, .persistent = 1, .priority = 9), 0);
    }
    for (int i = 0; i < 20 + count; i++) {
        CHECK(comes_back(q.handle, NULL, 0, 60000));
    }
    CHECK_INT(PUT(q, .body = body_out, .length = 60000), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(the_memory_of_long_bodies_is_used_again)
{
    const struct mqe_settings settings = engine_settings();
    struct queue q = wide(&settings);
    uint64_t used = 0;
    fill(3 * MIB, 8);
    for (int i = 0; i < 50; i++) {
        CHECK_INT(PUT(q, .body = body_out, .length = 3 * MIB), 0);
        CHECK(comes_back(q.handle, NULL, 0, 3 * MIB));
        used = i == 5 ? engine_region()->header->area[MQX_AREA_ARENA].used : used;
    }
    CHECK_INT(engine_region()->header->area[MQX_AREA_ARENA].used, used);
}

TEST(a_damaged_chain_is_refused_and_never_followed)
{
    const struct mqe_settings settings = engine_settings();
    struct queue q = wide(&settings);
    fill(200000, 9);
    CHECK_INT(PUT(q, .body = body_out, .length = 200000), 0);
    const uint32_t slot =
        mqx_priority_index_first(engine_region(), mqx_object(engine_region(), q.slot));
    struct mqx_message *message = mqx_message(engine_region(), slot);
    struct mqx_block *block = mqx_cells(engine_region(), message->cells);
    const struct mqx_block was = *block;
    const struct mqx_block bad[] = {{UINT32_MAX, was.class_no}, {message->cells, was.class_no},
                                    {was.next, 9999}, {0, was.class_no}};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        struct ps_descriptor d;
        struct ps_descriptor_ext ext;
        *block = bad[i];
        const int status = mqx_body_read(engine_region(), message, &d, &ext, body_in, 200000);
        *block = was;
        if (i != 1) { /* a loop of whole blocks ends when the length is reached */
            CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
            CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
            CHECK(mqx_region_damaged());
            engine_region()->header->stopped = MQX_RUNNING;
        }
    }
    CHECK(comes_back(q.handle, NULL, 0, 200000));
}

TEST(the_fixture_is_removed)
{
    engine_end();
    free(body_out);
    free(body_in);
    body_out = NULL;
    body_in = NULL;
}

TEST_MAIN()
