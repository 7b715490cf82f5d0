/*
 * test_segment_reserve.c - proves segment_reserve.c: what a full disk cannot take away is enough
 * for gets without end, is no room for puts, and is there after a restart and a power cut.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "fixtures/disk_states.h"
#include "fixtures/journal_fixture.h"
#include "journal/journal_private.h"
#include "recovery/checkpoint_reserve.h"

enum { SEGMENT = 32768, MESSAGES = 300 };
static struct psc_message listed[FIXTURE_LISTED_MAX];

static void put_many(struct journal_fixture *fixture, uint64_t first, uint32_t count)
{
    for (uint64_t number = first; number < first + count; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 20, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
}

/* Under the maintenance lock, as its step does it. */
static int with_lock(struct journal_fixture *fixture, int (*step)(struct mqx_store *store))
{
    struct mqx_region *region = &fixture->store.region;
    int status = mqx_lock_take(region, &region->header->maintenance_lock);
    if (status == MQX_OK) {
        status = step(&fixture->store);
        mqx_lock_drop(region, &region->header->maintenance_lock);
    }
    return status;
}

static int keep(struct journal_fixture *fixture)
{
    return with_lock(fixture, mqx_journal_keep_reserved);
}

static uint32_t reserved(const struct journal_fixture *fixture)
{
    return mqx_journal_reserved_count(fixture->store.region.journal);
}

static void fill_disk(struct journal_fixture *fixture, bool full)
{
    memory_io_set_space(fixture->files, full ? memory_io_space_used(fixture->files) : UINT64_MAX,
                        UINT64_MAX);
}

/* A durable get that stands alone: a page. */
static int get(struct journal_fixture *fixture, uint64_t number)
{
    const int status = fixture_record(fixture, 0, PS_REC_GET, number, NULL);
    return status == 0 ? fixture_flush(fixture) : status;
}

/* Puts make spares ahead: gets use them up. */
static void use_spares(struct journal_fixture *fixture)
{
    enum { OTHERS = 10001, COUNT = 60 };
    put_many(fixture, OTHERS, COUNT);
    for (uint64_t number = OTHERS; number < OTHERS + COUNT; number++) {
        CHECK_INT(get(fixture, number), 0);
    }
    CHECK_INT(mqx_journal_spare_count(&fixture->store), 0);
}

/* What gets have left behind is freed, as maintenance does it. The index learns of records of this
 * fixture by a restart only. */
static void free_all(struct journal_fixture *fixture)
{
    FIXTURE_REOPEN(*fixture);
    (void)with_lock(fixture, mqx_checkpoint_free_all);
    if (with_lock(fixture, mqx_checkpoint_reserve_keep) != 0) {
        mqx_error_clear();
    }
}

/* Messages that the index knows, and what is reserved. */
#define FIXTURE(name)                                                                              \
    FIXTURE_OF(name, SEGMENT);                                                                     \
    put_many(&name, 1, MESSAGES);                                                                  \
    use_spares(&name);                                                                             \
    FIXTURE_REOPEN(name);                                                                          \
    CHECK_INT(mqx_journal_spare_count(&name.store), 0);                                            \
    CHECK_INT(keep(&name), 0);                                                                     \
    CHECK_INT(with_lock(&name, mqx_checkpoint_reserve_keep), 0)

TEST(what_is_reserved_is_no_room_for_puts)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_journal *journal = fixture.store.region.journal;
    const uint64_t used = journal->used_bytes;
    CHECK_INT(keep(&fixture), 0);
    CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK(journal->used_bytes == used);
    const uint64_t calls = memory_io_calls(fixture.files, MEMORY_OP_COUNT);
    CHECK_INT(keep(&fixture), 0);
    CHECK(memory_io_calls(fixture.files, MEMORY_OP_COUNT) == calls);
    fill_disk(&fixture, true);
    int status = 0;
    for (uint64_t number = 1; number < 100 && status == 0; number++) {
        status = fixture_put(&fixture, 0, number, 4, 1000, NULL);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS);
}

TEST(a_roll_on_a_full_disk_takes_one_and_puts_are_refused_until_it_is_replaced)
{
    FIXTURE(fixture);
    struct mqx_journal *journal = fixture.store.region.journal;
    fill_disk(&fixture, true);
    const uint64_t used = journal->used_bytes;
    CHECK_INT(get(&fixture, 1), 0); /* behind a torn tail: it begins a segment */
    CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS - 1);
    CHECK(journal->used_bytes == used + SEGMENT);
    CHECK_INT(journal->way_out, MQX_WAY_OUT_MISSING);
    uint64_t live = 0;
    CHECK(!mqx_journal_bound_puts(&fixture.store.region, &live));
    CHECK_INT(fixture_put(&fixture, 0, 1000, 4, 20, NULL), MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "gets, commits and backouts go on") != NULL);
    CHECK_INT(get(&fixture, 2), 0);
    CHECK_INT(keep(&fixture), MQRC_STORAGE_MEDIUM_FULL);
    fill_disk(&fixture, false);
    CHECK_INT(keep(&fixture), 0);
    CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS);
    journal->way_out = MQX_WAY_OUT_WHOLE; /* as the maintenance step says then */
    CHECK_INT(fixture_put(&fixture, 0, 1000, 4, 20, NULL), 0);
}

TEST(where_the_disk_has_no_room_a_spare_becomes_reserved)
{
    FIXTURE_OF(fixture, SEGMENT);
    struct mqx_journal *journal = fixture.store.region.journal;
    CHECK_INT(mqx_journal_make_spare(&fixture.store, SEGMENT), 0);
    const uint64_t used = journal->used_bytes;
    fill_disk(&fixture, true);
    CHECK_INT(keep(&fixture), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(reserved(&fixture), 1);
    CHECK_INT(mqx_journal_spare_count(&fixture.store), 0);
    CHECK(journal->used_bytes == used - SEGMENT);
}

TEST(gets_go_on_without_end_and_with_deaths_in_between)
{
    FIXTURE(fixture);
    CHECK_INT(mqx_checkpoint(&fixture.store, MQX_CHECKPOINT_FUZZY), 0);
    CHECK_INT(with_lock(&fixture, mqx_checkpoint_reserve_keep), 0);
    fill_disk(&fixture, true);
    const uint64_t first = fixture.store.region.journal->next_segment_no;
    for (uint64_t number = 1; number <= MESSAGES; number++) {
        CHECK_INT(get(&fixture, number), 0);
        if (number % 5 == 0) {
            free_all(&fixture);
        }
    }
    CHECK(fixture.store.region.journal->next_segment_no - first > MESSAGES / 8);
    FIXTURE_REOPEN(fixture); /* on the full disk */
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 0);
}

TEST(they_are_there_after_a_restart_which_may_take_one)
{
    FIXTURE(fixture);
    fill_disk(&fixture, true);
    for (uint64_t number = 1; number <= MQX_RESERVED_SEGMENTS; number++) {
        FIXTURE_REOPEN(fixture);
        CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS + 1 - (int)number);
        CHECK_INT(get(&fixture, number), 0); /* a segment of its own, behind the torn tail */
    }
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), MESSAGES - MQX_RESERVED_SEGMENTS);
    CHECK_INT(get(&fixture, 10), MQRC_STORAGE_MEDIUM_FULL); /* four deaths without a checkpoint */
}

TEST(on_a_full_disk_retired_segments_become_reserved)
{
    FIXTURE(fixture);
    fill_disk(&fixture, true);
    CHECK_INT(get(&fixture, 1), 0);
    CHECK_INT(reserved(&fixture), MQX_RESERVED_SEGMENTS - 1);
    for (uint64_t number = 2; number <= 4; number++) {
        CHECK_INT(get(&fixture, number), 0);
    }
    for (uint64_t number = 5; number <= 40; number++) {
        CHECK_INT(get(&fixture, number), 0);
        if (number % 5 == 0) {
            free_all(&fixture);
        }
    }
    CHECK(reserved(&fixture) >= MQX_RESERVED_SEGMENTS - 1); /* the last round may have taken one */
}

/* It failed at the flush or the rename, or its process died there. */
TEST(a_reserved_segment_that_did_not_get_its_name_is_taken_by_its_old_one)
{
    FIXTURE_OF(fixture, SEGMENT);
    put_many(&fixture, 1, 10);
    CHECK_INT(mqx_journal_make_spare(&fixture.store, SEGMENT), 0);
    fill_disk(&fixture, true);
    const struct memory_fault fault = {
        .kind = MEMORY_FAULT_ERROR, .at = 1, .error = 5, .ops = 1u << MEMORY_RENAME};
    memory_io_set_fault(fixture.files, &fault);
    CHECK_INT(keep(&fixture), MQRC_OBJECT_DAMAGED);
    memory_io_set_fault(fixture.files, NULL);
    CHECK_INT(reserved(&fixture), 1);
    const uint64_t next = fixture.store.region.journal->next_segment_no;
    for (uint64_t number = 1; number <= 10; number++) {
        CHECK_INT(get(&fixture, number), 0);
    }
    CHECK(fixture.store.region.journal->next_segment_no == next + 1);
    CHECK_INT(reserved(&fixture), 0);
    FIXTURE_REOPEN(fixture);
    CHECK_INT(fixture_list(&fixture, FIXTURE_QUEUE, listed), 0);
}

/* ---- power cuts ---- */

static int after_power_cut(void *arg, const struct disk_state *state)
{
    struct journal_fixture *fixture = arg;
    fixture->files = state->files;
    fixture->io = state->io;
    const int status = fixture_open(fixture);
    const uint32_t count = status == 0 ? fixture_list(fixture, FIXTURE_QUEUE, listed) : 0;
    bool right = status == 0 && count + state->ack_count + 1 >= MESSAGES &&
                 count <= MESSAGES;
    right = right && get(fixture, 250) == 0; /* a segment, perhaps a reserved one */
    fixture_crash(fixture);
    right = right && fixture_open(fixture) == 0 &&
            fixture_list(fixture, FIXTURE_QUEUE, listed) == count - 1;
    if (!right) {
        printf("\n    %d, %u messages: %s", status, count, mqx_error_text());
    }
    fixture_crash(fixture);
    return right ? 0 : 1;
}

TEST(a_power_cut_between_any_two_steps_loses_nothing)
{
    FIXTURE_OF(fixture, SEGMENT);
    put_many(&fixture, 1, MESSAGES);
    FIXTURE_REOPEN(fixture);
    memory_io_record(fixture.files, FIXTURE_HOME);
    CHECK_INT(keep(&fixture), 0);
    CHECK_INT(with_lock(&fixture, mqx_checkpoint_reserve_keep), 0);
    fill_disk(&fixture, true);
    for (uint64_t number = 1; number <= 20; number++) {
        CHECK_INT(get(&fixture, number), 0);
        memory_io_ack(fixture.files, number);
        if (number % 5 == 0) {
            free_all(&fixture);
        }
    }
    TAKE_TRACE(trace, fixture);
    struct journal_fixture cut = {.plan = fixture.plan};
    struct disk_states_counts counts;
    const struct disk_states_options options = {.sector = 4096,
                                                .cap = 40,
                                                .seed = test_seed(),
                                                .prepare = fixture_prepare_state,
                                                .arg = &cut};
    CHECK_INT(disk_states_run(trace, &options, after_power_cut, &counts), 0);
}

TEST_MAIN()
