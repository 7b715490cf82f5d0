/* Claims of engine.h: it can be included alone, its structs have no holes, and a queue found by its
 * own name is a destination without steps. */
#include "penstock/engine.h"

#include "fixtures/harness.h"

TEST(a_direct_destination_names_the_queue_twice_and_has_no_steps)
{
    const struct mqe_destination to = mqe_direct(7, 3);
    static const struct mqe_step none[MQE_STEPS_MAX];
    CHECK_INT(to.queue, 7);
    CHECK_INT(to.queue_generation, 3);
    CHECK_INT(to.first, 7);
    CHECK_INT(to.first_generation, 3);
    CHECK_INT(to.step_count, 0);
    CHECK_MEM(to.step, none, sizeof none);
}

TEST(error_functions_work_without_a_queue_manager)
{
    CHECK_STR(mqe_reason_name(2053), "MQRC_Q_FULL");
    CHECK_INT(mqe_comp_code(0), MQCC_OK);
    CHECK_INT(mqe_comp_code(2079), MQCC_WARNING);
    CHECK(strlen(mqe_reason_text(2053)) > 5);
    CHECK_INT(mqe_crc32c(0, "123456789", 9), 0xe3069283);
}

TEST(an_item_of_a_batch_begins_with_descriptor_and_extension)
{
    CHECK_INT(offsetof(struct mqe_item, d), 0);
    CHECK_INT(offsetof(struct mqe_item, ext), sizeof(struct ps_descriptor));
    CHECK_INT(sizeof(struct ps_descriptor), 192);
    CHECK_INT(sizeof(struct ps_descriptor_ext), 192);
    CHECK_INT(sizeof(struct ps_xid), 136);
}

TEST_MAIN()
