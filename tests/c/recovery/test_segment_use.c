/*
 * test_segment_use.c - proves that a message, and a unit in flight, counts for every segment from
 * its first piece to its PUT.
 */
#include "fixtures/harness.h"

#include "fixtures/journal_fixture.h"
#include "recovery/segment_use.h"

#define FIXTURE FIXTURE_OF
enum { SEGMENT = 32768 };

/* Four segments, the last one active. */
static void fill(struct journal_fixture *fixture)
{
    for (uint64_t number = 1; number <= 10; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 10000, NULL), 0);
        CHECK_INT(fixture_flush(fixture), 0);
    }
}

static uint32_t live_of(const struct mqx_segment_use *use, uint32_t segment)
{
    return use->live[use->segments[segment].index];
}

TEST(an_lsn_is_located_in_its_segment_and_one_behind_all_is_not)
{
    FIXTURE(fixture, SEGMENT);
    struct mqx_segment_use use = {0};
    fill(&fixture);
    CHECK_INT(mqx_segment_use_begin(&use, &fixture.store), 0);
    CHECK(use.count >= 4);
    for (uint32_t i = 0; i < use.count; i++) {
        const struct mqx_located_segment *segment = &use.segments[i];
        CHECK(mqx_segment_use_locate(&use, segment->base_lsn) == segment);
        CHECK(mqx_segment_use_locate(&use, segment->base_lsn + segment->size - 1) == segment);
    }
    const struct mqx_located_segment *last = &use.segments[use.count - 1];
    CHECK(mqx_segment_use_locate(&use, last->base_lsn + last->size) == NULL);
    mqx_segment_use_end(&use);
}

TEST(a_message_keeps_its_segment_and_bodies_and_pieces_of_units_theirs)
{
    FIXTURE(fixture, SEGMENT);
    struct mqx_segment_use use = {0};
    fill(&fixture);
    CHECK_INT(mqx_segment_use_begin(&use, &fixture.store), 0);
    const struct mqx_located_segment *s = use.segments;
    const uint64_t begin = s[use.count - 1].base_lsn + 8192, newest = s[use.count - 1].number;
    CHECK_INT(mqx_segment_use_oldest(&use, newest), newest);

    struct psc_message m = {.number = 1, .lsn = s[2].base_lsn + 4160, .record_length = 300};
    mqx_segment_use_message(&use, &m);
    CHECK_INT(live_of(&use, 1), 0);
    CHECK_INT(live_of(&use, 2), 1);
    CHECK_INT(use.live_bytes[s[2].index], 300);
    CHECK_INT(mqx_segment_use_oldest(&use, newest), s[2].number);

    struct psc_message body = {.number = 2, .lsn = s[1].base_lsn + 4160, .record_length = 256,
                               .first_lsn = s[0].base_lsn + 4160, .chunk_count = 2,
                               .length = 20000};
    struct psc_operation operation = {.number = 2};
    struct psc_unit lines[2] = {{.id = 1}, {.id = 2, .pieces_lsn = s[1].base_lsn + 4160}};
    const struct mqx_units_in_flight units = {.units = lines, .unit_count = 2,
                                              .operations = &operation, .operation_count = 1,
                                              .puts = &body, .put_count = 1};
    mqx_segment_use_units(&use, &units, begin);
    CHECK_INT(live_of(&use, 0), 1);
    CHECK_INT(live_of(&use, 1), 2);
    CHECK_INT(live_of(&use, 2), 2);
    CHECK_INT(live_of(&use, use.count - 1), 1);
    CHECK_INT(use.live_bytes[s[0].index] + use.live_bytes[s[1].index], 20000 + 256);
    CHECK_INT(mqx_segment_use_oldest(&use, newest), s[0].number);
    mqx_segment_use_end(&use);
}

TEST_MAIN()
