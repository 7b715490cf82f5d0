/*
 * test_put_bound.c - what a full disk must not take away is reckoned by what checkpoints had; puts
 * end where it would not suffice.
 */
#include "fixtures/harness.h"

#include "fixtures/journal_fixture.h"
#include "journal/journal.h"
#include "region/journal_state.h"

enum { MANY = 20000, RESERVED = 64u << 20 };

/* As if so many persistent messages were present. */
static void make_present(struct journal_fixture *fixture, uint64_t count)
{
    fixture->store.region.stripes[0].persistent_present = count;
}

TEST(the_bytes_of_a_message_are_those_of_the_newest_checkpoint_with_many)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    const struct psc_end many = {.message_count = 100000, .operation_count = 1000};
    const struct psc_end none = {.message_count = 0};
    make_present(&fixture, MANY);
    const uint64_t unknown = mqx_journal_checkpoint_reserve(region);
    mqx_journal_learn(region->journal, &many, 1500000 + 32000);
    CHECK(region->journal->listed_bytes == 16);
    mqx_journal_learn(region->journal, &none, 8192);
    CHECK(region->journal->listed_bytes == 16);
    CHECK(mqx_journal_checkpoint_reserve(region) < unknown * 2 / 3);
    make_present(&fixture, 0);
}

TEST(a_checkpoint_is_worth_taking_for_what_it_says_only_until_one_had_many_messages)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    const struct psc_end few = {.message_count = 999}, many = {.message_count = 1000};
    CHECK(!mqx_journal_would_learn(region));
    make_present(&fixture, MANY);
    CHECK(mqx_journal_would_learn(region));
    mqx_journal_learn(region->journal, &few, 65536);
    CHECK(mqx_journal_would_learn(region));
    mqx_journal_learn(region->journal, &many, 65536);
    CHECK(!mqx_journal_would_learn(region));
    make_present(&fixture, 0);
}

/* A sink of Spark has its messages in prepared units: a checkpoint came every 16 MiB. */
TEST(a_checkpoint_of_messages_in_units_says_what_others_take_without_their_operations)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    const struct psc_end units = {
        .message_count = 10, .unit_put_count = 99990, .operation_count = 99995};
    make_present(&fixture, MANY);
    CHECK(region->journal->listed_bytes == 0);
    mqx_journal_learn(region->journal, &units, 100000 * 20 + 99995 * sizeof(struct psc_operation));
    CHECK(!mqx_journal_would_learn(region));
    CHECK(region->journal->listed_bytes == 21);
    mqx_journal_learn(region->journal, &units, 99995 * sizeof(struct psc_operation));
    CHECK(region->journal->listed_bytes == 21); /* no file of such a length: nothing is learnt */
    make_present(&fixture, 0);
}

TEST(puts_go_as_far_as_the_reserve_covers_and_not_at_all_without_it)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    struct mqx_journal *journal = region->journal;
    uint64_t live = 0;
    make_present(&fixture, MANY);
    journal->way_out = MQX_WAY_OUT_WHOLE;
    journal->checkpoint_reserve = RESERVED;
    CHECK(mqx_journal_bound_puts(region, &live));
    const uint64_t far = journal->put_until;
    CHECK(far > journal->tail);
    journal->checkpoint_reserve = mqx_journal_checkpoint_reserve(region) + 8192;
    CHECK(mqx_journal_bound_puts(region, &live));
    CHECK(journal->put_until > journal->tail && journal->put_until < far);
    journal->checkpoint_reserve = mqx_journal_checkpoint_reserve(region);
    CHECK(!mqx_journal_bound_puts(region, &live));
    CHECK(journal->put_until == journal->tail);
    make_present(&fixture, 0);
}

/* As an orderly end and the start behind it say it. */
static void know(struct journal_fixture *fixture)
{
    const struct mqx_known_lines known = {
        .line_bytes = 13, .lines = 12 * MANY, .first_lsn = 16384, .others = 8192};
    fixture->store.region.journal->checkpoint_bytes = 16 * MANY + 8192;
    fixture->store.region.journal->older_bytes = 16 * MANY + 8192;
    mqx_journal_know(&fixture->store.region, &known);
}

TEST(known_messages_need_a_reserve_of_little_more_than_a_checkpoint_of_them)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    const struct psc_end many = {.message_count = MANY};
    make_present(&fixture, MANY);
    mqx_journal_learn(region->journal, &many, 16 * MANY + 8192);
    know(&fixture);
    const uint64_t known = mqx_journal_checkpoint_reserve(region);
    CHECK(known >= 16 * MANY + 8192);
    region->journal->known_line = 0;
    CHECK(known < mqx_journal_checkpoint_reserve(region));
    know(&fixture);
    make_present(&fixture, MANY / 2);
    CHECK(mqx_journal_checkpoint_reserve(region) < known);
    make_present(&fixture, 0);
    CHECK(mqx_journal_checkpoint_reserve(region) == 0);
}

TEST(the_first_new_messages_need_no_longer_reserve_and_more_of_them_do)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    struct mqx_journal *journal = region->journal;
    uint64_t live = 0;
    make_present(&fixture, MANY);
    journal->way_out = MQX_WAY_OUT_WHOLE;
    know(&fixture);
    const uint64_t known = mqx_journal_checkpoint_reserve(region);
    journal->checkpoint_reserve = known;
    CHECK(mqx_journal_bound_puts(region, &live));
    journal->next_number += 99;
    CHECK(mqx_journal_checkpoint_reserve(region) == known);
    journal->next_number += 1;
    CHECK(mqx_journal_checkpoint_reserve(region) > known);
    CHECK(mqx_journal_bound_puts(region, &live)); /* it is lengthened beside them */
    journal->next_number += 900;
    CHECK(!mqx_journal_bound_puts(region, &live));
    make_present(&fixture, 0);
}

/* LSNs of those that are moved take 8 bytes then. */
TEST(messages_that_may_be_moved_far_need_a_longer_reserve)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    make_present(&fixture, MANY);
    know(&fixture);
    const uint64_t near = mqx_journal_checkpoint_reserve(region);
    region->journal->tail += UINT64_C(1) << 32;
    CHECK(mqx_journal_checkpoint_reserve(region) > near);
    region->journal->tail -= UINT64_C(1) << 32;
    make_present(&fixture, 0);
}

TEST_MAIN()
