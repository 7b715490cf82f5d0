/*
 * test_merge.c - proves merge.h: what is joined out of checkpoint and tail is a sequence in
 * delivery order, and damage names the message. Whole restarts: test_load.c.
 */
#include "fixtures/harness.h"

#include "base/error.h"
#include "recovery/merge.h"

static struct psc_message message(uint32_t object, uint8_t placement, uint64_t number)
{
    return (struct psc_message){.object = object, .placement = placement, .number = number};
}

TEST(delivery_order_is_queue_then_placement_descending_then_number)
{
    const struct psc_message sorted[] = {
        message(1, 9, 7), message(1, 9, 8), message(1, 3, 1), message(1, 0, 2), message(2, 9, 1),
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(sorted); i++) {
        for (size_t j = 0; j < MQX_ARRAY_COUNT(sorted); j++) {
            const struct psc_message other = sorted[j];
            const int order = mqx_merge_compare(&sorted[i], &other);
            CHECK(i < j ? order < 0 : i > j ? order > 0 : order == 0);
        }
    }
}

TEST(damage_names_the_message_and_the_checkpoint_when_there_is_one)
{
    const struct psc_message m = {.number = 77, .lsn = 4096};
    struct mqx_checkpoint_reader reader = {.name = "0000000000001000.psc"};
    CHECK_INT(mqx_merge_bad_message(NULL, &m, "it is odd"), MQRC_OBJECT_DAMAGED);
    CHECK_STR(strstr(mqx_error_text(), "message 77"), "message 77 at LSN 4096: it is odd");
    CHECK_INT(mqx_merge_bad_message(&reader, &m, "it is odd"), MQRC_OBJECT_DAMAGED);
    CHECK(strstr(mqx_error_text(), "checkpoint/0000000000001000.psc") != NULL);
}

TEST(without_a_checkpoint_the_effective_puts_come_in_order_and_removed_ones_do_not)
{
    struct mqx_replay_put puts[] = {
        {.m = message(1, 4, 5), .state = MQX_PUT_EFFECTIVE},
        {.m = message(1, 9, 6), .state = MQX_PUT_EFFECTIVE},
        {.m = message(1, 9, 7), .state = MQX_PUT_WAITING},
        {.m = message(1, 9, 3), .state = MQX_PUT_EFFECTIVE},
    };
    struct mqx_replay_definition definition = {.attrs_length = 0};
    struct mqx_slot_state objects[] = {{NULL, 0, 0}, {&definition, 0, 0}};
    const struct mqx_replay replay = {.puts = puts,
                                      .put_count = MQX_ARRAY_COUNT(puts),
                                      .put_capacity = MQX_ARRAY_COUNT(puts),
                                      .objects = objects,
                                      .object_capacity = 2,
                                      .slot_limit = 2};
    static const uint64_t wanted[] = {3, 6, 5};
    const struct mqx_replay_put *put = NULL;
    struct mqx_merge merge;
    struct psc_message m;
    bool more = false;
    CHECK_INT(mqx_merge_begin(&merge, &replay, NULL), 0);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(wanted); i++) {
        CHECK_INT(mqx_merge_next(&merge, &m, &put, &more), 0);
        CHECK(more && put != NULL);
        CHECK_INT(m.number, wanted[i]);
    }
    CHECK_INT(mqx_merge_next(&merge, &m, &put, &more), 0);
    CHECK(!more);
    mqx_merge_end(&merge);
}

TEST_MAIN()
