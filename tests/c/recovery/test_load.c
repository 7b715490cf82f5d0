/*
 * test_load.c - proves load.h: checkpoint and tail come back in delivery order, each message once;
 * the image of an orderly end is loaded by one restart.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "queue/queue.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];

#define FIXTURE(name, segment)                                                                     \
    FIXTURE_OF(name, segment);                                                                     \
    CHECK_INT(fixture_flush(&name), 0)

static void put_many(struct journal_fixture *fixture, uint64_t first, uint32_t count,
                     uint32_t length)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, (int)(number % 10), length, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

TEST(tail_and_checkpoint_are_merged_in_delivery_order)
{
    FIXTURE(fixture, 1u << 20);
    put_many(&fixture, 100, 50, 20);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    put_many(&fixture, 200, 30, 20);
    put_many(&fixture, 40, 20, 20); /* lower numbers later: put order, not journal order */
    for (uint64_t number = 100; number < 120; number++) {
        CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, number, NULL), 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, listed);
    CHECK_INT(count, 80);
    for (uint32_t i = 1; i < count; i++) {
        CHECK(listed[i - 1].placement >= listed[i].placement);
        CHECK(listed[i - 1].placement > listed[i].placement ||
              listed[i - 1].number < listed[i].number);
    }
}

/* ---- the image of the orderly end ---- */

static const struct {
    struct ps_attr attr;
    int64_t value;
} npm_high = {{78, 1, 8}, 10};

static int load_image(struct journal_fixture *fixture, uint64_t number, uint32_t length, bool ext)
{
    struct ps_descriptor d = {.placement = 4, .priority = 4, .md_version = 2, .has_ext = ext};
    const struct ps_descriptor_ext e = {.msg_flags = 77};
    unsigned char *body = malloc(length + 1);
    uint32_t slot = 0;
    for (uint32_t i = 0; i < length; i++) {
        body[i] = fixture_byte(number, i);
    }
    const struct mqx_loaded loaded = {.m = {.number = number,
                                            .object = FIXTURE_QUEUE,
                                            .object_gen = FIXTURE_GENERATION,
                                            .length = length,
                                            .priority = 4,
                                            .placement = 4,
                                            .has_ext = ext,
                                            .backout_count = (uint32_t)number},
                                      .descriptor = &d,
                                      .ext = ext ? &e : NULL,
                                      .body = body};
    memcpy(d.msg_id, &number, sizeof number);
    struct mqx_queue_loading loading = {.store = &fixture->store};
    const int status = mqx_queue_load(&loading, &loaded, &slot);
    mqx_queue_load_end(&loading);
    free(body);
    return status;
}

/* The non-persistent messages on the queue with right bodies. */
static uint32_t count_image(struct journal_fixture *fixture)
{
    struct mqx_cursor cursor = {0};
    uint32_t count = 0;
    uint32_t slot = mqx_queue_next_image(&fixture->store, FIXTURE_QUEUE, &cursor);
    while (slot != 0) {
        const struct mqx_message *m = mqx_message(&fixture->store.region, slot);
        struct ps_descriptor d;
        struct ps_descriptor_ext ext = {0};
        unsigned char *body = malloc(m->length + 1);
        CHECK_INT(mqx_body_read(&fixture->store.region, m, &d, &ext, body, m->length), 0);
        bool same = memcmp(d.msg_id, &m->number, 8) == 0 && m->backout_count == m->number;
        same = same && (d.has_ext == 0 || ext.msg_flags == 77);
        for (uint32_t i = 0; i < m->length; i++) {
            same = same && body[i] == fixture_byte(m->number, i);
        }
        free(body);
        CHECK(same);
        count += 1;
        slot = mqx_queue_next_image(&fixture->store, FIXTURE_QUEUE, &cursor);
    }
    return count;
}

static void make_image(struct journal_fixture *fixture)
{
    static const uint32_t lengths[] = {0, 1, 5000, 61440, 61441, 150000, 7};
    CHECK_INT(
        fixture_define_with(fixture, FIXTURE_QUEUE, FIXTURE_GENERATION, &npm_high, sizeof npm_high),
        0);
    CHECK_INT(fixture_put(fixture, 0, 500, 4, 20, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    FIXTURE_REOPEN(*fixture);
    CHECK_INT(fixture_list(fixture, FIXTURE_QUEUE, listed), 1);
    for (uint32_t i = 0; i < MQX_ARRAY_COUNT(lengths); i++) {
        CHECK_INT(load_image(fixture, 600 + i, lengths[i], i % 2 == 1), 0);
    }
}

TEST(non_persistent_messages_of_a_high_class_queue_survive_an_orderly_end_once)
{
    FIXTURE(fixture, 65536);
    make_image(&fixture);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_CLEAN), 0);
    FIXTURE_REOPEN(fixture);
    CHECK(fixture.report.clean);
    CHECK_INT(fixture.report.image_messages, 7);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 1);
    CHECK_INT(listed[0].number, 500);
    CHECK_INT(count_image(&fixture), 7);
    CHECK(fixture.store.region.journal->durable > fixture.report.end_lsn); /* consumed, durably */
    FIXTURE_REOPEN(fixture); /* death of the last process: nothing of them comes back */
    CHECK_INT(fixture.report.image_messages, 0);
    CHECK_INT(count_image(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 1);
}

TEST(an_image_outlives_several_orderly_ends_and_order_is_kept)
{
    FIXTURE(fixture, 65536);
    make_image(&fixture);
    for (int turn = 0; turn < 3; turn++) {
        CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_CLEAN), 0);
        FIXTURE_REOPEN(fixture);
        CHECK_INT(count_image(&fixture), 7);
    }
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_CLEAN_NO_IMAGE), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(count_image(&fixture), 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 1);
}

TEST_MAIN()
