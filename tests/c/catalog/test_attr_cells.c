/*
 * test_attr_cells.c - proves attr_cells.h: lists are kept to the byte, each with a version of its
 * own, freed whole, and a damaged reference or list is found.
 */
#include "fixtures/catalog_fixture.h"

#include "catalog/attr_cells.h"

static uint32_t word; /* stands for the word of the region that names the cells */

static uint32_t store_list(const void *bytes, uint32_t length, uint64_t instance)
{
    struct mqx_definition def = fixture_definition("Q", NULL);
    uint32_t cell = 0;
    def.attrs = bytes;
    def.attrs_length = length;
    def.name.instance = instance;
    CHECK_INT(mqx_attrs_store(process.store, &def, NULL, &cell), 0);
    return cell;
}

TEST(lists_of_every_length_around_the_size_of_a_cell_are_kept_to_the_byte)
{
    static unsigned char bytes[300];
    struct mqx_attrs attrs;
    start();
    for (uint32_t length = 0; length < sizeof bytes; length++) {
        memset(bytes, (int)length + 1, length);
        const uint32_t cell = store_list(bytes, length, length * 3);
        CHECK(cell != 0);
        CHECK_INT(mqx_attrs_read(region_of(), cell, length, &attrs), 0);
        CHECK_INT(attrs.length, length);
        CHECK_INT(attrs.instance, length * 3);
        CHECK_MEM(attrs.list, bytes, length);
        CHECK_INT(mqx_attrs_free(region_of(), cell, length, NULL), 0);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(two_stored_lists_never_have_one_definition_version)
{
    struct mqx_attrs a, b;
    start();
    const uint32_t first = store_list("same", 4, 0), second = store_list("same", 4, 0);
    CHECK_INT(mqx_attrs_read(region_of(), first, 4, &a), 0);
    CHECK_INT(mqx_attrs_read(region_of(), second, 4, &b), 0);
    CHECK(a.definition_version != 0);
    CHECK(a.definition_version != b.definition_version);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(the_sum_of_a_definition_is_of_its_name_its_instance_and_its_list)
{
    const struct mqx_definition def = fixture_definition("Q", NULL);
    struct ps_object_name other = def.name;
    struct mqx_attrs attrs;
    start();
    const uint32_t cell = store_list("list", 4, 7);
    CHECK_INT(mqx_attrs_read(region_of(), cell, 4, &attrs), 0);
    CHECK(mqx_attrs_sum(&other, "list", 4) != attrs.sum); /* instance 0 */
    other.instance = 7;
    CHECK_INT(mqx_attrs_sum(&other, "list", 4), attrs.sum);
    CHECK(mqx_attrs_sum(&other, "lisu", 4) != attrs.sum);
    other.type++;
    CHECK(mqx_attrs_sum(&other, "list", 4) != attrs.sum);
    other.type--;
    other.name[0] = 'R';
    CHECK(mqx_attrs_sum(&other, "list", 4) != attrs.sum);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(freed_lists_are_used_again)
{
    static const unsigned char bytes[1000] = {1};
    start();
    const struct mqx_area *area = &region_of()->header->area[MQX_AREA_ARENA];
    uint64_t used = 0;
    for (int i = 0; i < 100; i++) {
        const uint32_t cell = store_list(bytes, sizeof bytes, 0);
        CHECK_INT(mqx_attrs_free(region_of(), cell, sizeof bytes, NULL), 0);
        used = i == 0 ? area->used : used;
    }
    CHECK_INT(area->used, used);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(no_cells_are_freed_for_the_reference_0)
{
    start();
    word = 0;
    CHECK_INT(mqx_attrs_free(region_of(), 0, 12345678, &word), 0);
    CHECK_INT(mqx_region_stopped(region_of()), MQX_RUNNING);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_reference_beyond_the_arena_or_a_length_beyond_the_limit_stops_the_queue_manager)
{
    struct mqx_attrs attrs;
    start();
    CHECK_INT(mqx_attrs_read(region_of(), 0, 0, &attrs), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(attrs.list == NULL);
    CHECK(is_stopped_by_damage("attribute list"));
    start();
    const uint32_t cell = store_list("abc", 3, 0);
    CHECK_INT(mqx_attrs_read(region_of(), cell, MQX_ATTRS_MAX + 1, &attrs),
              MQRC_Q_MGR_NOT_AVAILABLE);
    start();
    CHECK_INT(mqx_attrs_free(region_of(), UINT32_MAX, 3, &word), MQRC_Q_MGR_NOT_AVAILABLE);
    start();
    (void)store_list("abc", 3, 0);
    const uint64_t cells = region_of()->header->area[MQX_AREA_ARENA].capacity / MQX_CELL;
    CHECK_INT(mqx_attrs_read(region_of(), (uint32_t)cells - 1, 8, &attrs), 0); /* the last cell */
    CHECK_INT(mqx_attrs_read(region_of(), (uint32_t)cells - 1, 41, &attrs),
              MQRC_Q_MGR_NOT_AVAILABLE); /* 41 and 24 bytes are two cells */
    CHECK(is_stopped_by_damage("attribute list"));
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
