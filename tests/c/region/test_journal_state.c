/* Claims of journal_state.h: any one changed control word shows in its sum, and a damaged durable
 * LSN is never higher than the truth. */
#include "fixtures/region_fixture.h"

#define FLIPPED(word, sum_is_right)                                                                \
    do {                                                                                           \
        for (uint32_t bit = 0; bit < 8 * sizeof(word); bit++) {                                    \
            (word) ^= (__typeof__(word))1 << bit;                                                  \
            CHECK(!(sum_is_right));                                                                \
            (word) ^= (__typeof__(word))1 << bit;                                                  \
            CHECK(sum_is_right);                                                                   \
        }                                                                                          \
    } while (0)

static bool control_is_right(void)
{
    return region.journal->control_sum == mqx_journal_control_sum(region.journal);
}

TEST(every_changed_bit_of_a_control_word_shows)
{
    region_begin();
    struct mqx_journal *journal = region.journal;
    CHECK(control_is_right());
    FLIPPED(journal->tail, control_is_right());
    FLIPPED(journal->batch_start, control_is_right());
    FLIPPED(journal->written, control_is_right());
    FLIPPED(journal->next_generation, control_is_right());
    FLIPPED(journal->next_segment_no, control_is_right());
    FLIPPED(journal->restart_epoch, control_is_right());
    FLIPPED(journal->used_bytes, control_is_right());
    FLIPPED(journal->batch_records, control_is_right());
    FLIPPED(journal->active, control_is_right());
    FLIPPED(journal->sealed_first, control_is_right());
    FLIPPED(journal->sealed_count, control_is_right());
    FLIPPED(journal->control_sum, control_is_right());
}

TEST(every_changed_bit_of_a_segments_entry_shows_but_its_statistics)
{
    region_begin();
    struct mqx_journal *journal = region.journal;
    struct mqx_segment *segment = &journal->segment[5];
    *segment = (struct mqx_segment){.number = 3, .generation = 9, .base_lsn = 65536, .size = 65536,
                                    .state = MQX_SEG_FULL};
    mqx_journal_set_sums(journal);
    FLIPPED(segment->number, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->generation, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->base_lsn, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->size, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->end_lsn, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->prev_end_lsn, mqx_segment_is_sound(journal, 5));
    FLIPPED(segment->state, mqx_segment_is_sound(journal, 5));
    segment->live_messages = 7;
    CHECK(mqx_segment_is_sound(journal, 5));
    CHECK(mqx_segment_is_sound(journal, 6)); /* zeroed: unused */
}

TEST(a_damaged_durable_lsn_is_never_higher_than_the_truth)
{
    region_begin();
    struct mqx_journal *journal = region.journal;
    mqx_journal_set_durable(journal, 81920);
    CHECK_INT(mqx_journal_durable(journal), 81920);
    for (uint32_t bit = 0; bit < 64; bit++) {
        journal->durable ^= UINT64_C(1) << bit;
        CHECK(mqx_journal_durable(journal) <= 81920);
        journal->durable ^= UINT64_C(1) << bit;
        journal->durable_inverse ^= UINT64_C(1) << bit;
        CHECK(mqx_journal_durable(journal) <= 81920);
        journal->durable_inverse ^= UINT64_C(1) << bit;
    }
    region_end();
}

TEST_MAIN()
