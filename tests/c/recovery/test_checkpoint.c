/*
 * test_checkpoint.c - proves checkpoint.h: a checkpoint says what the index holds, the replay
 * begins low enough, nothing it needs is freed, and no crash finds the queue manager without one.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/journal_fixture.h"
#include "fixtures/disk_states.h"

static struct psc_message listed[FIXTURE_LISTED_MAX];
static struct psc_message before[FIXTURE_LISTED_MAX];

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

static bool exists(struct journal_fixture *fixture, const char *path)
{
    uint64_t size = 0;
    return memory_io_bytes(fixture->files, path, &size) != NULL;
}

TEST(after_a_checkpoint_the_same_messages_come_back_without_the_old_journal)
{
    FIXTURE(fixture, 1u << 20);
    put_many(&fixture, 1, 12000, 20); /* more than one block of the checkpoint */
    FIXTURE_REOPEN(fixture);
    const uint32_t count = fixture_list(&fixture, FIXTURE_QUEUE, before);
    CHECK_INT(count, 12000);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.messages, 12000);
    CHECK_INT(fixture.report.records_replayed, 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), count);
    CHECK_MEM(listed, before, sizeof *listed * count);
    for (uint32_t i = 0; i < count; i += 611) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

TEST(a_carried_unit_that_is_not_decided_leaves_nothing)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    CHECK_INT(fixture_put(&fixture, unit, 10, 4, 20, NULL), 0);
    CHECK_INT(fixture_record(&fixture, unit, PS_REC_GET, 2, NULL), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.units_dropped, 1);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 3);
    FIXTURE_REOPEN(fixture); /* from the same checkpoint, an epoch later */
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 3);
}

TEST(pieces_below_the_begin_lsn_stay_for_a_put_above_it)
{
    FIXTURE(fixture, 32768);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    struct mqx_append first;
    CHECK_INT(fixture_put_chunked(&fixture, unit, 10, 4, 90000, 10000, &first), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture_put(&fixture, unit, 11, 4, 20, NULL), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture_put(&fixture, unit, 12, 4, 20, NULL), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 6);
    for (uint32_t i = 0; i < 6; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

static int checkpoints_between(struct journal_fixture *fixture)
{
    fixture->before_put = NULL;
    const uint32_t other = fixture_unit(fixture);
    int status = mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_FUZZY);
    for (uint64_t i = 0; i < 3 && status == 0; i++) { /* what is freed is freed by then */
        status = fixture_put(fixture, other, 100 + i, 4, 20000, NULL);
        status = status == 0 ? mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_FUZZY) : status;
    }
    return status;
}

TEST(pieces_of_which_the_put_is_still_to_come_keep_their_segments_over_checkpoints)
{
    FIXTURE(fixture, 32768);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    const uint32_t unit = fixture_unit(&fixture);
    fixture.before_put = checkpoints_between;
    CHECK_INT(fixture_put_chunked(&fixture, unit, 10, 4, 90000, 10000, NULL), 0);
    CHECK_INT(fixture_commit(&fixture, unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

static struct journal_fixture *working;
static uint32_t working_unit;

/* In the middle of a checkpoint: the unit goes on, another one begins and ends. */
static int work_meanwhile(struct mqx_store *store)
{
    struct journal_fixture *fixture = working;
    (void)store;
    working = NULL;
    if (fixture == NULL) {
        return 0;
    }
    int status = fixture_put(fixture, working_unit, 11, 4, 20, NULL);
    return status == 0 ? fixture_record(fixture, working_unit, PS_REC_GET, 3, NULL) : status;
}

TEST(records_that_a_unit_writes_while_the_checkpoint_is_taken_count_once)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    working_unit = fixture_unit(&fixture);
    CHECK_INT(fixture_put(&fixture, working_unit, 10, 4, 20, NULL), 0);
    CHECK_INT(fixture_record(&fixture, working_unit, PS_REC_GET, 2, NULL), 0);
    working = &fixture;
    fixture.store.maintenance_hook = work_meanwhile;
    CHECK_INT(mqx_checkpoint_now(&fixture.store), 0);
    CHECK(working == NULL);
    fixture.store.maintenance_hook = NULL;
    CHECK_INT(fixture_commit(&fixture, working_unit, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "10 11 1");
}

/* Work after which everything is as before, so that the next checkpoint begins later. */
static void put_and_take(struct journal_fixture *fixture, uint64_t number)
{
    CHECK_INT(fixture_put(fixture, 0, number, 4, 20, NULL), 0);
    CHECK_INT(fixture_record(fixture, 0, PS_REC_GET, number, NULL), 0);
    CHECK_INT(fixture_flush(fixture), 0);
}

TEST(two_checkpoints_are_kept_and_the_segments_that_only_older_ones_needed_are_removed)
{
    FIXTURE(fixture, 32768);
    static char old_path[64];
    CHECK_INT(fixture_end(&fixture), 0);
    CHECK_INT(fixture_open(&fixture), 0);
    snprintf(old_path, sizeof old_path, "%s", fixture_checkpoint_path(&fixture));
    CHECK(exists(&fixture, old_path));
    for (uint64_t number = 1; number <= 40; number++) {
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, NULL), 0);
        CHECK_INT(number <= 30 ? fixture_record(&fixture, 0, PS_REC_GET, number, NULL) : 0, 0);
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 10);
    const uint64_t oldest = listed[0].lsn / 32768 + 1;
    CHECK(oldest > 2);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(exists(&fixture, old_path));
    CHECK(exists(&fixture, fixture_segment_path(1)));
    put_and_take(&fixture, 900);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&fixture, old_path));
    CHECK(!exists(&fixture, fixture_segment_path(1)));
    CHECK(!exists(&fixture, fixture_segment_path(oldest - 1)));
    CHECK(exists(&fixture, fixture_segment_path(oldest)));
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 10);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(fixture_verify(&fixture, &listed[i]));
    }
}

static void restart_and_checkpoint(struct journal_fixture *fixture)
{
    fixture_crash(fixture);
    CHECK_INT(fixture_open(fixture), 0);
    CHECK_INT(mqx_checkpoint(&fixture->store, MQX_CHECKPOINT_FUZZY), 0);
}

TEST(a_segment_that_only_the_older_checkpoint_lists_is_kept_and_one_that_neither_lists_is_not)
{
    FIXTURE(fixture, 32768);
    uint64_t second = 0, fourth = 0; /* a message in each of these segments */
    for (uint64_t number = 1; number <= 40; number++) {
        struct mqx_append append;
        CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, &append), 0);
        const uint64_t segment = append.lsn / 32768 + 1;
        second = segment == 2 ? number : second;
        fourth = segment == 4 ? number : fourth;
    }
    for (uint64_t number = 1; number <= 40; number++) {
        if (number != second && number != fourth) {
            CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, number, NULL), 0);
        }
    }
    CHECK_INT(fixture_flush(&fixture), 0);
    restart_and_checkpoint(&fixture);
    put_and_take(&fixture, 50);
    restart_and_checkpoint(&fixture); /* both list the second and the fourth */
    static const bool holes[] = {false, true, false, true};
    for (uint64_t number = 1; number <= 4; number++) {
        CHECK(exists(&fixture, fixture_segment_path(number)) == holes[number - 1]);
    }
    CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, second, NULL), 0);
    CHECK_INT(fixture_flush(&fixture), 0);
    restart_and_checkpoint(&fixture);
    CHECK(exists(&fixture, fixture_segment_path(2))); /* the older one lists it */
    put_and_take(&fixture, 51);
    restart_and_checkpoint(&fixture);
    CHECK(!exists(&fixture, fixture_segment_path(2)));
    CHECK(exists(&fixture, fixture_segment_path(4)));
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 1);
    CHECK(listed[0].number == fourth && fixture_verify(&fixture, &listed[0]));
}

TEST(a_chunked_message_keeps_all_segments_from_its_first_piece_on)
{
    FIXTURE(fixture, 32768);
    CHECK_INT(fixture_put_chunked(&fixture, 0, 1, 4, 150000, 12000, NULL), 0);
    put_many(&fixture, 2, 1, 20);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    for (uint32_t restart = 0; restart < 2; restart++) {
        CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 2);
        CHECK(fixture_verify(&fixture, &listed[0]));
        CHECK(fixture_verify(&fixture, &listed[1]));
        CHECK(exists(&fixture, fixture_segment_path(1)));
        FIXTURE_REOPEN(fixture);
    }
}

TEST(an_unchanged_queue_manager_takes_no_checkpoint)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 5, 20);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, fixture);
    CHECK_INT(trace->event_count, 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_CLEAN), 0); /* but it was not clean */
    FIXTURE_REOPEN(fixture);
    CHECK(fixture.report.clean);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 5);
}

TEST(a_large_checkpoint_is_flushed_every_mebibyte)
{
    FIXTURE(fixture, 1u << 20);
    fixture.plan.size = 256u << 20; /* of the next region */
    put_many(&fixture, 1, 200000, 8);
    FIXTURE_REOPEN(fixture);
    memory_io_record(fixture.files, FIXTURE_HOME "/checkpoint");
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    TAKE_TRACE(trace, fixture);
    uint64_t unflushed = 0, largest = 0;
    for (uint32_t i = 0; i < trace->event_count; i++) {
        const struct memory_event *event = &trace->events[i];
        unflushed = event->kind == MEMORY_EV_SYNC ? 0 : unflushed;
        unflushed += event->kind == MEMORY_EV_WRITE ? event->size : 0;
        largest = unflushed > largest ? unflushed : largest;
    }
    CHECK(largest > 500000);
    CHECK(largest < 2200000);
}

TEST(messages_of_several_blocks_come_back_from_the_checkpoint_each_once)
{
    enum { COUNT = 15000 }; /* two blocks */
    static bool seen[COUNT + 1];
    FIXTURE(fixture, 1u << 20);
    put_many(&fixture, 1, COUNT, 8);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_end(&fixture), 0);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.records_replayed, 0);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint64_t number = listed[i].number;
        CHECK(number >= 1 && number <= COUNT && !seen[number]);
        seen[number] = true;
        CHECK(i % 1000 != 0 || fixture_verify(&fixture, &listed[i]));
    }
}

TEST(a_full_disk_fails_the_checkpoint_and_keeps_the_old_one)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 100, 20);
    FIXTURE_REOPEN(fixture);
    for (uint64_t at = 1; at < 12; at++) {
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = 28,
                                           .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC |
                                                  1u << MEMORY_OPEN | 1u << MEMORY_RENAME};
        memory_io_set_fault(fixture.files, &fault);
        int status = mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY);
        const bool struck = memory_io_fault_strikes(fixture.files) != 0;
        memory_io_set_fault(fixture.files, NULL);
        CHECK(struck == (status != 0));
        CHECK_INT(status != 0 && mqx_comp_code(status) != MQCC_FAILED, 0);
        if (status == 0) {
            CHECK(at > 5);
            break;
        }
        FIXTURE_REOPEN(fixture);
        CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 100);
    }
}

TEST(a_checkpoint_whose_descriptor_the_program_closed_says_so_and_the_next_one_works)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 100, 20);
    FIXTURE_REOPEN(fixture);
    const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = 1, .error = EBADF,
                                       .ops = 1u << MEMORY_WRITE};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "this program has closed or replaced") != NULL);
    memory_io_set_fault(fixture.files, NULL);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 100);
}

/* ---- the older one ---- */

/* A flipped bit of the file. */
static void flip(struct journal_fixture *fixture, const char *path)
{
    memory_io_flip_bit(fixture->files, path, 8 * 2000 + 3);
}

/* Puts 1 to 3, a checkpoint, puts 4 to 6, a checkpoint, puts 7 to 9; paths of both. */
static void make_two(struct journal_fixture *fixture, char older[64], char newer[64])
{
    put_many(fixture, 1, 3, 20);
    CHECK_INT(fixture_end(fixture), 0);
    CHECK_INT(fixture_open(fixture), 0);
    (void)snprintf(older, 64, "%s", fixture_checkpoint_path(fixture));
    put_many(fixture, 4, 3, 20);
    CHECK_INT(fixture_end(fixture), 0);
    CHECK_INT(fixture_open(fixture), 0);
    (void)snprintf(newer, 64, "%s", fixture_checkpoint_path(fixture));
    CHECK(strcmp(older, newer) < 0);
    put_many(fixture, 7, 3, 20);
    fixture_crash(fixture);
}

TEST(a_damaged_checkpoint_is_passed_over_and_the_next_one_replaces_it)
{
    FIXTURE(fixture, 65536);
    char older[64], newer[64];
    make_two(&fixture, older, newer);
    flip(&fixture, newer);
    for (int restart = 0; restart < 2; restart++) {
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK(strstr(newer, ".psc") != NULL && fixture.report.damaged_checkpoint != 0);
        CHECK(strstr(fixture.report.damage, strrchr(newer, '/') + 1) != NULL);
        CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "9 8 7 6 5 4 3 2 1");
        CHECK(mqx_checkpoint_due(&fixture.store));
        fixture_crash(&fixture);
    }
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!mqx_checkpoint_due(&fixture.store));
    CHECK(!exists(&fixture, newer));
    CHECK(exists(&fixture, older)); /* the one that was read */
    (void)snprintf(newer, sizeof newer, "%s", fixture_checkpoint_path(&fixture));
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture.report.damaged_checkpoint, 0);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "9 8 7 6 5 4 3 2 1");
    fixture_crash(&fixture);
    flip(&fixture, newer); /* and it is good for another time */
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "9 8 7 6 5 4 3 2 1");
}

TEST(a_checkpoint_that_one_reading_finds_damaged_is_read_again)
{
    FIXTURE(fixture, 65536);
    char older[64], newer[64];
    make_two(&fixture, older, newer);
    for (uint64_t at = 1; at < 4; at++) {
        const struct memory_fault fault = {.kind = MEMORY_FAULT_ERROR, .at = at, .error = EIO,
                                           .ops = 1u << MEMORY_READ};
        memory_io_set_fault(fixture.files, &fault);
        const int status = fixture_open(&fixture);
        memory_io_set_fault(fixture.files, NULL);
        CHECK(at > 1 || status == 0); /* the first reading is of the newest checkpoint */
        if (status == 0) {
            CHECK_INT(fixture.report.damaged_checkpoint, 0);
            CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "9 8 7 6 5 4 3 2 1");
        }
        fixture_crash(&fixture);
    }
}

TEST(with_both_checkpoints_damaged_the_whole_journal_is_replayed)
{
    FIXTURE(fixture, 65536);
    char older[64], newer[64];
    make_two(&fixture, older, newer);
    flip(&fixture, newer);
    flip(&fixture, older);
    for (int restart = 0; restart < 2; restart++) {
        CHECK_INT(fixture_open(&fixture), 0);
        CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "9 8 7 6 5 4 3 2 1");
        CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
        CHECK(exists(&fixture, fixture_segment_path(1))); /* it takes the older one's place */
        (void)snprintf(newer, sizeof newer, "%s", fixture_checkpoint_path(&fixture));
        fixture_crash(&fixture);
        flip(&fixture, newer);
    }
}

TEST(without_a_whole_checkpoint_and_the_first_segment_a_start_is_refused_and_changes_nothing)
{
    FIXTURE(fixture, 32768);
    char older[64] = "", newer[64] = "";
    for (uint64_t turn = 0; turn < 4; turn++) {
        for (uint64_t i = 0; i < 20; i++) {
            const uint64_t number = turn * 100 + i + 1;
            CHECK_INT(fixture_put(&fixture, 0, number, 4, 3000, NULL), 0);
            CHECK_INT(fixture_record(&fixture, 0, PS_REC_GET, number, NULL), 0);
        }
        CHECK_INT(fixture_end(&fixture), 0);
        CHECK_INT(fixture_open(&fixture), 0);
        memcpy(older, newer, sizeof older);
        (void)snprintf(newer, sizeof newer, "%s", fixture_checkpoint_path(&fixture));
    }
    CHECK(!exists(&fixture, fixture_segment_path(1)));
    fixture_crash(&fixture);
    flip(&fixture, newer);
    flip(&fixture, older);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_open(&fixture), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), strrchr(newer, '/') + 1) != NULL);
    TAKE_TRACE(trace, fixture);
    CHECK_INT(trace->event_count, 0);
    flip(&fixture, newer);
    CHECK_INT(fixture_open(&fixture), 0); /* the older one is not looked at */
    CHECK_INT(fixture.report.damaged_checkpoint, 0);
}

TEST(the_checkpoint_of_a_new_queue_manager_says_nothing_that_the_journal_does_not_say)
{
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    fixture_crash(&fixture);
    memory_io_flip_bit(fixture.files, FIXTURE_HOME "/checkpoint/0000000000001000.psc", 500);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(fixture.report.damaged_checkpoint, MQX_PAGE_SIZE);
    CHECK_STR(fixture_numbers(&fixture, FIXTURE_QUEUE, listed), "3 2 1");
}

/* Otherwise a checkpoint of an orderly end that can be read again would bring its image back. */
TEST(the_image_of_a_damaged_checkpoint_is_marked_as_consumed)
{
    FIXTURE(fixture, 65536);
    char older[64], newer[64];
    make_two(&fixture, older, newer);
    flip(&fixture, newer);
    CHECK_INT(fixture_open(&fixture), 0);
    const uint64_t damaged = fixture.report.damaged_checkpoint;
    const struct mqx_journal *journal = fixture.store.region.journal;
    const struct mqx_segment *active = &journal->segment[journal->active - 1];
    uint64_t size = 0;
    const uint8_t *bytes =
        memory_io_bytes(fixture.files, fixture_segment_path(active->number), &size);
    const struct psj_record *record =
        (const void *)(bytes + MQX_PAGE_SIZE + sizeof(struct psj_batch));
    CHECK_INT(record->type & ~PS_MUST_UNDERSTAND, PS_REC_IMAGE_CONSUMED);
    const struct ps_image *image =
        (const void *)((const uint8_t *)(record + 1) + sizeof(struct ps_section));
    CHECK(image->checkpoint_lsn == damaged && damaged != 0);
}

TEST(what_a_killed_checkpointer_left_goes_with_the_next_checkpoint)
{
    static const char left[] = FIXTURE_HOME "/checkpoint/0000000000abc000.tmp";
    FIXTURE(fixture, 65536);
    put_many(&fixture, 1, 3, 20);
    FIXTURE_REOPEN(fixture);
    memory_io_put(fixture.files, left, "half", 4);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&fixture, left));
}

/* ---- power cuts ---- */

struct power_cut {
    struct journal_fixture fixture;
    uint64_t states;
};

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct power_cut *cut = arg;
    struct journal_fixture *fixture = &cut->fixture;
    fixture->files = state->files;
    fixture->io = state->io;
    cut->states += 1;
    int status = fixture_open(fixture);
    const uint32_t count = status == 0 ? fixture_list(fixture, FIXTURE_QUEUE, listed) : 0;
    bool right = status == 0 && count == 12;
    for (uint32_t i = 0; i < count && right; i++) {
        right = fixture_verify(fixture, &listed[i]);
    }
    right =
        right && fixture_put(fixture, 0, 900, 4, 3000, NULL) == 0 && fixture_flush(fixture) == 0;
    fixture_crash(fixture);
    right =
        right && fixture_open(fixture) == 0 && fixture_list(fixture, FIXTURE_QUEUE, listed) == 13;
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    fixture_crash(fixture);
    return right ? 0 : 1;
}

TEST(a_power_cut_between_any_two_steps_of_checkpoints_and_retirement_finds_everything)
{
    FIXTURE(fixture, 32768);
    CHECK_INT(fixture_fill_and_crash(&fixture), 0);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(fixture_open(&fixture), 0);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(exists(&fixture, fixture_segment_path(1)));
    put_and_take(&fixture, 950);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK(!exists(&fixture, fixture_segment_path(1)));
    CHECK(mqx_journal_spare_count(&fixture.store) >= 2);
    for (uint64_t number = 100; number <= 112; number++) { /* into the recycled segments */
        const uint32_t unit = fixture_unit(&fixture);
        CHECK_INT(fixture_put(&fixture, unit, number, 4, 9000, NULL), 0); /* never committed */
        CHECK_INT(fixture_flush(&fixture), 0);
    }
    TAKE_TRACE(trace, fixture);
    static const uint32_t sectors[] = {4096, 512};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sectors); i++) {
        struct power_cut cut = {.fixture = {.plan = fixture.plan}};
        struct disk_states_counts counts;
        const struct disk_states_options options = {.sector = sectors[i],
                                                    .cap = 40,
                                                    .seed = test_seed(),
                                                    .prepare = fixture_prepare_state,
                                                    .arg = &cut};
        CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
        printf("%" PRIu64 " ", cut.states);
        CHECK(cut.states > 50);
    }
}

TEST_MAIN()
