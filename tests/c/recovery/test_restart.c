/*
 * test_restart.c - proves restart.h: missing and foreign files are refused and nothing is changed;
 * after an orderly end the journal continues; no power cut loses what was acknowledged.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
#define FIXTURE FIXTURE_OF

TEST(missing_foreign_and_cut_files_are_refused_by_name_and_nothing_is_changed)
{
    for (uint32_t what = 0; what < 6; what++) {
        FIXTURE(fixture, 32768);
        for (uint64_t number = 1; number <= 30; number++) {
            CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, NULL), 0);
        }
        CHECK_INT(fixture_flush(&fixture), 0);
        fixture_crash(&fixture);
        const uint8_t *bytes = NULL;
        uint64_t size = 0;
        switch (what) {
        case 0: CHECK(memory_io_remove(fixture.files, fixture_segment_path(2))); break;
        case 1: memory_io_cut(fixture.files, fixture_segment_path(2), 32768 - 4096); break;
        case 2: memory_io_flip_bit(fixture.files, fixture_segment_path(2), 40 * 8); break;
        case 3: /* another segment's bytes */
            bytes = memory_io_bytes(fixture.files, fixture_segment_path(3), &size);
            memory_io_patch(fixture.files, fixture_segment_path(2), 0, bytes, size);
            break;
        case 4: CHECK(memory_io_remove(fixture.files, fixture_segment_path(1))); break;
        default: memory_io_cut(fixture.files, fixture_segment_path(3), 100); break;
        }
        memory_io_record(fixture.files, FIXTURE_HOME);
        CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
        CHECK(strstr(mqx_error_text(), "journal") != NULL);
        TAKE_TRACE(trace, fixture);
        CHECK_INT(trace->event_count, 0);
    }
}

TEST(after_an_orderly_end_writing_goes_on_in_the_same_segment)
{
    FIXTURE(fixture, 65536);
    struct mqx_append append;
    CHECK_INT(fixture_put(&fixture, 0, 1, 4, 100, NULL), 0);
    CHECK_INT(fixture_end(&fixture), 0);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK(fixture.report.clean);
    CHECK_INT(fixture_put(&fixture, 0, 2, 4, 100, &append), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    CHECK(append.lsn < 65536);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "1 2");
    CHECK(!fixture.report.clean);
}

/* ---- power cuts ---- */

enum { ACK_PUT = 1000, INTENT_GET = 2000, ACK_GET = 3000 };

struct power_cut {
    struct journal_fixture fixture;
    uint64_t last; /* highest number put */
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct journal_fixture *fixture = &cut->fixture;
    bool must[64] = {false}, may_not[64] = {false};
    uint8_t seen[64] = {0};
    fixture->files = state->files;
    fixture->io = state->io;
    for (uint32_t i = 0; i < state->ack_count; i++) {
        const uint64_t ack = state->acks[i];
        must[ack % 1000] = ack < INTENT_GET;
        may_not[ack % 1000] = ack >= ACK_GET;
    }
    cut->states += 1;
    for (int restart = 0; restart < 2; restart++) {
        int status = fixture_open(fixture);
        if (status != 0) {
            printf("\n    restart %d: %d %s", restart, status, mqx_error_text());
            return 1;
        }
        const uint32_t count = fixture_list(fixture, FIXTURE_QUEUE, listed);
        memset(seen, 0, sizeof seen);
        for (uint32_t i = 0; i < count; i++) {
            seen[listed[i].number % 64] += 1;
            if (!fixture_verify(fixture, &listed[i]) || listed[i].number >= 64) {
                printf("\n    message %" PRIu64 " has another body", listed[i].number);
                return 1;
            }
        }
        for (uint32_t number = 1; number < 64; number++) {
            if ((must[number] && seen[number] != 1) || (may_not[number] && seen[number] != 0) ||
                seen[number] > 1) {
                printf("\n    message %u is there %u times after restart %d", number, seen[number],
                       restart);
                return 1;
            }
        }
        if ((seen[20] != 0) != (seen[21] != 0) || (seen[30] != 0) != (seen[31] != 0)) {
            printf("\n    half a unit");
            return 1;
        }
        /* Something is written, and the next restart must not take what is left for damage. */
        if (restart == 0 &&
            (fixture_put(fixture, 0, 60, 4, 700, NULL) != 0 || fixture_flush(fixture) != 0)) {
            printf("\n    no put after the restart: %s", mqx_error_text());
            return 1;
        }
        must[60] = true;
        fixture_crash(fixture);
    }
    return 0;
}

static int put_acked(struct journal_fixture *fixture, uint64_t number, uint32_t length)
{
    int status = fixture_put(fixture, 0, number, (int)(number % 10), length, NULL);
    status = status == 0 ? fixture_flush(fixture) : status;
    if (status == 0) {
        memory_io_ack(fixture->files, ACK_PUT + number);
    }
    return status;
}

static void work(struct journal_fixture *fixture)
{
    const uint32_t unit = fixture_unit(fixture);
    CHECK_INT(put_acked(fixture, 1, 100), 0);
    CHECK_INT(put_acked(fixture, 2, 6000), 0);
    CHECK_INT(fixture_put(fixture, unit, 20, 4, 300, NULL), 0);
    CHECK_INT(put_acked(fixture, 3, 9000), 0);
    CHECK_INT(fixture_put_chunked(fixture, unit, 21, 4, 9000, 4000, NULL), 0);
    CHECK_INT(mqx_flush_room(&fixture->store), 0);
    CHECK_INT(put_acked(fixture, 4, 4000), 0);
    CHECK_INT(fixture_commit(fixture, unit, NULL), 0);
    CHECK_INT(mqx_flush_room(&fixture->store), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    memory_io_ack(fixture->files, ACK_PUT + 20);
    memory_io_ack(fixture->files, ACK_PUT + 21);
    fixture_unit_over(fixture, unit);
    memory_io_ack(fixture->files, INTENT_GET + 2);
    CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    memory_io_ack(fixture->files, ACK_GET + 2);
    CHECK_INT(fixture_put(fixture, unit, 30, 4, 300, NULL), 0);
    CHECK_INT(mqx_flush_room(&fixture->store), 0);
    CHECK_INT(fixture_put(fixture, unit, 31, 4, 2000, NULL), 0);
    CHECK_INT(fixture_commit(fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
    memory_io_ack(fixture->files, ACK_PUT + 30);
    memory_io_ack(fixture->files, ACK_PUT + 31);
}

static void cut_everywhere(const struct memory_trace *trace, const struct mqx_region_plan *plan,
                           uint32_t cap)
{
    static const uint32_t sectors[] = {4096, 512, 64, 8};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.fixture = {.plan = *plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = cap,
                                                    .seed = test_seed(),
                                                    .prepare = fixture_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST(every_acknowledged_message_survives_power_cuts_between_any_two_sectors)
{
    FIXTURE(fixture, 32768);
    CHECK_INT(fixture_end(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_open(&fixture), 0);
    work(&fixture);
    CHECK(fixture.store.region.journal->next_segment_no > 2);
    TAKE_TRACE(trace, fixture);
    cut_everywhere(trace, &fixture.plan, 120);
}

TEST_MAIN()
