/*
 * test_definition.c - proves definition.h: every row of its table, and that no bytes of a list do
 * harm.
 */
#include "catalog/definition.h"

#include "base/error.h"
#include "fixtures/harness.h"
#include "region/region.h"

struct list {
    uint64_t bytes[16];
    uint32_t length;
};

static void add(struct list *list, int32_t selector, int64_t value)
{
    const struct ps_attr head = {.selector = selector, .kind = 1, .length = 8};
    CHECK(list->length + 16 <= sizeof list->bytes);
    memcpy((char *)list->bytes + list->length, &head, sizeof head);
    memcpy((char *)list->bytes + list->length + sizeof head, &value, sizeof value);
    list->length += 16;
}

static void add_text(struct list *list, int32_t selector, const char *text)
{
    const struct ps_attr head = {.selector = selector, .kind = 2, .length = (uint16_t)strlen(text)};
    memset((char *)list->bytes + list->length, 0, sizeof list->bytes - list->length);
    memcpy((char *)list->bytes + list->length, &head, sizeof head);
    memcpy((char *)list->bytes + list->length + sizeof head, text, strlen(text));
    list->length += (uint32_t)(sizeof head + (strlen(text) + 7) / 8 * 8);
}

static const struct ps_object_name queue_name = {.name_space = MQX_NAMES_QUEUE,
                                                 .type = MQX_LOCAL_QUEUE};
static const struct ps_object_name manager_name = {.name_space = MQX_NAMES_MANAGER, .type = 5};
static const struct ps_object_name structure_name = {.name_space = MQX_NAMES_STRUCTURE, .type = 10};

static int read_one(const struct ps_object_name *name, int32_t selector, int64_t value,
                    struct mqx_values *out)
{
    struct list list = {.length = 0};
    add(&list, selector, value);
    return mqx_definition_read_values(name, list.bytes, list.length, out);
}

TEST(absent_attributes_have_the_documented_values)
{
    struct mqx_values v;
    CHECK_INT(mqx_definition_read_values(&queue_name, NULL, 0, &v), 0);
    CHECK_INT(v.max_depth, 5000);
    CHECK_INT(v.max_length, 4194304);
    CHECK_INT(v.definition_type, MQX_PREDEFINED);
    CHECK_INT(v.def_priority + v.def_persistence + v.fifo + v.put_inhibited + v.get_inhibited, 0);
    CHECK_INT(v.may_persist, 1);
    CHECK_INT(v.np_life, MQX_NP_TO_RESTART);
    CHECK_INT(v.structure[0], ' ');
    CHECK_INT(mqx_definition_read_values(&manager_name, NULL, 0, &v), 0);
    CHECK_INT(v.max_depth, 0);
    CHECK_INT(v.max_length, 0);
    CHECK_INT(mqx_definition_read_values(&structure_name, NULL, 0, &v), 0);
    CHECK_INT(v.max_depth, 3);
    CHECK_INT(v.max_length, 64512);
    CHECK_INT(v.may_persist, 0);
}

TEST(each_attribute_takes_its_limits_and_refuses_one_beyond_with_its_reason)
{
    static const struct {
        const struct ps_object_name *name;
        int32_t selector;
        int reason;
        int64_t least, most;
    } rows[] = {
        {&queue_name, 5, MQRC_PERSISTENCE_ERROR, 0, 1},
        {&queue_name, 6, MQRC_PRIORITY_ERROR, 0, 9},
        {&queue_name, 7, MQRC_SELECTOR_NOT_FOR_TYPE, 1, 4},
        {&queue_name, 9, MQRC_INHIBIT_VALUE_ERROR, 0, 1},
        {&queue_name, 10, MQRC_INHIBIT_VALUE_ERROR, 0, 1},
        {&queue_name, 12, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1},
        {&queue_name, 13, MQRC_MAX_MSG_LENGTH_ERROR, 0, 104857600},
        {&queue_name, 15, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 999999999},
        {&queue_name, 16, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1},
        {&queue_name, 57, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 5},
        {&queue_name, 78, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 10},
        {&manager_name, 13, MQRC_MAX_MSG_LENGTH_ERROR, 32768, 104857600},
        {&manager_name, 33, MQRC_SELECTOR_NOT_FOR_TYPE, 1, 999999999},
        {&structure_name, 70, MQRC_SELECTOR_NOT_FOR_TYPE, 1, 5},
        {&structure_name, 71, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1},
    };
    struct mqx_values v;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(rows); i++) {
        CHECK_INT(read_one(rows[i].name, rows[i].selector, rows[i].least, &v), 0);
        CHECK_INT(read_one(rows[i].name, rows[i].selector, rows[i].most, &v), 0);
        CHECK_INT(read_one(rows[i].name, rows[i].selector, rows[i].least - 1, &v), rows[i].reason);
        CHECK_INT(read_one(rows[i].name, rows[i].selector, rows[i].most + 1, &v), rows[i].reason);
    }
    CHECK_INT(read_one(&queue_name, 78, 5, &v), MQRC_SELECTOR_NOT_FOR_TYPE); /* only 0 and 10 */
    CHECK_INT(read_one(&queue_name, 2013, INT64_MIN, &v), 0);                /* not read by C */
}

TEST(level_and_recover_of_a_structure_decide_what_its_queues_may_hold)
{
    struct mqx_values v;
    struct list list = {.length = 0};
    add(&list, 70, 4);
    add(&list, 71, 1);
    CHECK_INT(mqx_definition_read_values(&structure_name, list.bytes, list.length, &v), 0);
    CHECK_INT(v.max_length, MQX_MAX_BODY);
    CHECK_INT(v.may_persist, 1);
    list.length = 0;
    add(&list, 70, 2);
    add(&list, 71, 1);
    CHECK_INT(mqx_definition_read_values(&structure_name, list.bytes, list.length, &v), 0);
    CHECK_INT(v.max_length, 64512);
    CHECK_INT(v.may_persist, 0);
}

TEST(a_queue_in_a_structure_keeps_non_persistent_messages_and_a_temporary_one_none)
{
    struct mqx_values v;
    struct list list = {.length = 0};
    add_text(&list, 2039, "STRUC ");
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v), 0);
    CHECK_MEM(v.structure, "STRUC  ", 7);
    CHECK_INT(v.np_life, MQX_NP_IN_STRUCTURE);
    add(&list, 7, MQX_TEMPORARY);
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v), 0);
    CHECK_INT(v.np_life, MQX_NP_TO_RESTART);
    CHECK_INT(v.may_persist, 0);
    CHECK_INT(read_one(&queue_name, 78, 10, &v), 0);
    CHECK_INT(v.np_life, MQX_NP_TO_FAILURE);
    list.length = 0;
    add_text(&list, 2039, " STRUC");
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v),
              MQRC_SELECTOR_NOT_FOR_TYPE);
    CHECK_INT(read_one(&queue_name, 2039, 1, &v), MQRC_SELECTOR_ERROR);
}

TEST(a_list_that_is_not_well_formed_is_refused)
{
    struct mqx_values v;
    struct list list = {.length = 0};
    add(&list, 6, 1);
    for (uint32_t cut = 1; cut < 16; cut++) {
        CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, cut, &v),
                  MQRC_SELECTOR_ERROR);
    }
    add(&list, 6, 1);
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v),
              MQRC_SELECTOR_ERROR);
    list.length = 0;
    add_text(&list, 9000, "abc");
    ((char *)list.bytes)[8 + 5] = 'x'; /* padding */
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v),
              MQRC_SELECTOR_ERROR);
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, MQX_ATTRS_MAX + 8, &v),
              MQRC_SELECTOR_ERROR);
}

TEST(random_bytes_are_a_list_or_refused_but_never_harm)
{
    static const struct ps_object_name names[] = {
        {.name_space = MQX_NAMES_QUEUE, .type = 1},
        {.name_space = MQX_NAMES_MANAGER, .type = 5},
        {.name_space = MQX_NAMES_STRUCTURE, .type = 10},
        {.name_space = 103, .type = 3},
    };
    struct test_random random = {.state = test_seed()};
    struct mqx_values values;
    for (int round = 0; round < 20000; round++) {
        const struct ps_object_name name = names[round % 4];
        const uint32_t length = (uint32_t)test_below(&random, 200);
        unsigned char *list = malloc(length + 1); /* exact, so that a sanitizer sees an overrun */
        CHECK(list != NULL);
        for (uint32_t i = 0; i < length; i++) {
            list[i] = (unsigned char)(test_below(&random, 4) == 0 ? test_next(&random) : 0);
        }
        int status = mqx_definition_read_values(&name, list, length, &values);
        CHECK(status == 0 || mqx_comp_code(status) == MQCC_FAILED);
        free(list);
    }
}

static struct mqx_definition definition(const char *name, uint32_t name_space, uint32_t type)
{
    struct mqx_definition def = {.name = {.name_space = name_space, .type = type}};
    memset(def.name.name, ' ', sizeof def.name.name);
    memcpy(def.name.name, name, strlen(name));
    return def;
}

TEST(a_name_begins_with_no_blank_has_no_nul_and_only_the_space_of_queues_has_local_queues)
{
    struct mqx_values v;
    struct mqx_definition def = definition("Q", MQX_NAMES_QUEUE, MQX_LOCAL_QUEUE);
    CHECK_INT(mqx_definition_check(&def, &v), 0);
    def.name.name[7] = '\0';
    CHECK_INT(mqx_definition_check(&def, &v), MQRC_OBJECT_NAME_ERROR);
    def = definition("", MQX_NAMES_QUEUE, MQX_LOCAL_QUEUE);
    CHECK_INT(mqx_definition_check(&def, &v), MQRC_OBJECT_NAME_ERROR);
    def = definition("S", MQX_NAMES_STRUCTURE, MQX_LOCAL_QUEUE);
    CHECK_INT(mqx_definition_check(&def, &v), MQRC_OBJECT_TYPE_ERROR);
}

TEST(only_local_queues_are_dynamic_and_only_an_open_makes_temporary_ones)
{
    struct mqx_values v;
    struct list list = {.length = 0};
    struct mqx_definition def = definition("Q", MQX_NAMES_QUEUE, MQX_LOCAL_QUEUE);
    struct mqx_definition model = definition("Q", MQX_NAMES_QUEUE, 2);
    add(&list, 7, MQX_TEMPORARY);
    CHECK_INT(mqx_definition_read_values(&queue_name, list.bytes, list.length, &v), 0);
    CHECK_INT(mqx_definition_type(&def, &v), MQX_TEMPORARY);
    CHECK_INT(mqx_definition_type(&model, &v), MQX_PREDEFINED);
    CHECK_INT(mqx_definition_check_type(&def, &v, true), 0);
    CHECK_INT(mqx_definition_check_type(&def, &v, false), MQRC_SELECTOR_NOT_FOR_TYPE);
    CHECK_INT(mqx_definition_check_type(&model, &v, false), 0);
    CHECK_INT(mqx_definition_check_type(&model, &v, true), MQRC_SELECTOR_NOT_FOR_TYPE);
    v.definition_type = MQX_PERMANENT;
    CHECK_INT(mqx_definition_check_type(&def, &v, true), 0);
    CHECK_INT(mqx_definition_check_type(&def, &v, false), 0);
}

TEST_MAIN()
