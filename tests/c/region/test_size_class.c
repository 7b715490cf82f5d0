/* Claims of size_class.c: the class for a size is the smallest that holds it. */
#include "region/size_class.h"

#include "fixtures/harness.h"

TEST(the_class_for_a_size_is_the_smallest_that_holds_it)
{
    for (uint32_t bytes = 1; bytes <= MQX_BLOCK_MAX; bytes++) {
        const uint32_t c = mqx_class_for(bytes);
        CHECK(c < MQX_CLASS_COUNT);
        CHECK(mqx_class_bytes(c) >= bytes && (c == 0 || mqx_class_bytes(c - 1) < bytes));
        CHECK(bytes < 512 || mqx_class_bytes(c) - bytes <= bytes / 4);
    }
    CHECK_INT(mqx_class_for(0), 0);
}

TEST(a_length_that_no_block_has_gets_a_class_without_blocks)
{
    CHECK_INT(mqx_class_for(MQX_BLOCK_MAX + 1), MQX_CLASS_COUNT - 1);
    CHECK_INT(mqx_class_for(UINT32_MAX), MQX_CLASS_COUNT - 1);
    CHECK(mqx_class_bytes(MQX_CLASS_COUNT - 1) > MQX_BLOCK_MAX);
}

TEST(entries_are_a_class_too)
{
    CHECK_INT(mqx_class_bytes(MQX_ENTRY_CLASS), sizeof(struct mqx_message));
}

TEST_MAIN()
