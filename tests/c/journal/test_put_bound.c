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
TEST(a_checkpoint_of_messages_in_units_is_not_taken_again_early_and_teaches_no_shape)
{
    FIXTURE_OF(fixture, 1u << 20);
    const struct mqx_region *region = &fixture.store.region;
    const struct psc_end units = {.message_count = 10, .unit_put_count = 100000};
    const struct psc_end many = {.message_count = 1000};
    make_present(&fixture, MANY);
    CHECK(region->journal->listed_bytes == 0);
    mqx_journal_learn(region->journal, &units, 65536 + 100000 * sizeof(struct psc_message));
    CHECK(!mqx_journal_would_learn(region));
    CHECK(region->journal->listed_bytes == 88); /* all fields of a message */
    mqx_journal_learn(region->journal, &many, 65536);
    CHECK(region->journal->listed_bytes == 66);
    mqx_journal_learn(region->journal, &units, 65536 + 100000 * sizeof(struct psc_message));
    CHECK(region->journal->listed_bytes == 66);
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

TEST_MAIN()
