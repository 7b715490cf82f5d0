/* Claims of message_rows.h: what fits into a batch, and how its offsets are kept. */
#include "fixtures/batch_fixture.h"

TEST(the_first_body_may_fill_the_whole_room_and_further_ones_what_max_bytes_leaves)
{
    struct mqx_message message = {.length = 100};
    batch_clear();
    batch.body_capacity = 250;
    mqx_msg_batch_begin(&batch);
    const uint64_t room = mqx_msg_batch_room(&batch, 150);
    CHECK_INT(room, 150);
    CHECK_INT(mqx_msg_batch_room(&batch, 0), 250);
    CHECK_INT(mqx_msg_batch_room(&batch, 1000), 250);
    message.length = 250;
    CHECK(mqx_msg_batch_fits(&batch, room, &message)); /* the first one, above max_bytes */
    message.length = 100;
    CHECK(mqx_msg_batch_fits(&batch, room, &message));
    mqx_msg_batch_count(&batch, 100);
    message.length = 50;
    CHECK(mqx_msg_batch_fits(&batch, room, &message));
    message.length = 51;
    CHECK(!mqx_msg_batch_fits(&batch, room, &message));
    CHECK_INT(batch.needed, 51);
}

TEST(offsets_begin_at_0_and_end_at_the_bytes_of_all_bodies)
{
    batch_clear();
    mqx_msg_batch_begin(&batch);
    CHECK_INT(offsets[0], 0);
    mqx_msg_batch_count(&batch, 7);
    mqx_msg_batch_count(&batch, 0);
    mqx_msg_batch_count(&batch, 5);
    CHECK_INT(batch.count, 3);
    CHECK_INT(offsets[1], 7);
    CHECK_INT(offsets[2], 7);
    CHECK_INT(offsets[3], 12);
    CHECK_INT(batch.bytes, 12);
}

TEST(a_row_is_near_by_what_the_batch_wants_of_it)
{
    struct mqx_message message = {.cells = 1, .length = MQX_LOCKED_COPY_MAX};
    batch_clear();
    CHECK(mqx_msg_batch_is_near(&batch, &message));
    message.length += 1;
    CHECK(!mqx_msg_batch_is_near(&batch, &message));
    batch.bodies = NULL; /* descriptors alone: the body may be long */
    CHECK(mqx_msg_batch_is_near(&batch, &message));
    message.cells = 0; /* in the journal */
    CHECK(!mqx_msg_batch_is_near(&batch, &message));
    batch.items = NULL; /* nothing is wanted */
    CHECK(mqx_msg_batch_is_near(&batch, &message));
}

TEST(a_row_without_an_extension_has_blanks_and_sequence_number_1)
{
    struct mqe_item item;
    memset(&item, 0xff, sizeof item);
    mqx_msg_batch_item_clear(&item);
    CHECK_INT(item.ext.msg_seq_number, 1);
    CHECK_INT(item.ext.original_length, -1);
    CHECK_INT(item.ext.offset, 0);
    CHECK_INT(item.ext.reply_to_q[0], ' ');
    CHECK_INT(item.ext.reply_to_qmgr[sizeof item.ext.reply_to_qmgr - 1], ' ');
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
