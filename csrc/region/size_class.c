/*
 * size_class.c - see size_class.h.
 */
#include "region/size_class.h"

#include "base/assert.h"

enum {
    SMALL_CLASSES = 8,
    SMALL_BYTES = SMALL_CLASSES * MQX_CELL,
    QUARTERS = 4, /* classes per doubling */
    UNUSED_CLASS = MQX_CLASS_COUNT - 1,
};

uint32_t mqx_class_bytes(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    if (class_no < SMALL_CLASSES) {
        return (class_no + 1) * MQX_CELL;
    }
    if (class_no >= MQX_ENTRY_CLASS) {
        return sizeof(struct mqx_message);
    }
    const uint32_t doubling = (class_no - SMALL_CLASSES) / QUARTERS;
    const uint32_t quarter = (class_no - SMALL_CLASSES) % QUARTERS + 1;
    MQX_ASSERT(quarter <= QUARTERS);
    return ((uint32_t)SMALL_BYTES << doubling) +
           quarter * ((uint32_t)SMALL_BYTES / QUARTERS << doubling);
}

uint32_t mqx_class_for(uint32_t bytes)
{
    if (bytes <= SMALL_BYTES) {
        return bytes == 0 ? 0 : (bytes - 1) / MQX_CELL;
    }
    if (MQX_UNLIKELY(bytes > MQX_BLOCK_MAX)) {
        return UNUSED_CLASS;
    }
    const uint32_t doubling = (uint32_t)__builtin_clz(SMALL_BYTES) -
                              (uint32_t)__builtin_clz(bytes - 1);
    const uint32_t over = bytes - 1 - ((uint32_t)SMALL_BYTES << doubling);
    const uint32_t class_no =
        SMALL_CLASSES + doubling * QUARTERS + over / ((uint32_t)SMALL_BYTES / QUARTERS << doubling);
    MQX_ASSERT(mqx_class_bytes(class_no) >= bytes);
    MQX_ASSERT(mqx_class_bytes(class_no - 1) < bytes);
    return class_no;
}
