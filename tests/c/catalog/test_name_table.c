/*
 * test_name_table.c - proves name_table.h: every linked name is found, none other is, chains shrink
 * from anywhere, and a damaged chain is a reason code.
 */
#include "fixtures/catalog_fixture.h"

#include "catalog/attr_cells.h"
#include "catalog/name_table.h"

enum { NAMES = 60 };

/* All chains become one: every name must be distinguished from all others. */
static void one_bucket(void)
{
    region_of()->name_mask = 0;
}

static struct fixture_queue define_number(uint32_t i)
{
    struct fixture_queue q;
    char name[16];
    snprintf(name, sizeof name, "NAME%u", i);
    CHECK_INT(fixture_define(&process, name, NULL, &q), 0);
    return q;
}

static uint32_t look_up_name(const char *name, uint64_t instance, uint32_t name_space)
{
    const struct mqx_definition def = fixture_definition(name, NULL);
    struct ps_object_name key = def.name;
    uint32_t slot = 12345;
    key.instance = instance;
    key.name_space = name_space;
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    const int status = mqx_names_look_up(region_of(), &key, &slot);
    mqx_catalog_drop_lock(region_of());
    return status == 0 ? slot : UINT32_MAX;
}

static uint32_t look_up_number(uint32_t i)
{
    char name[16];
    snprintf(name, sizeof name, "NAME%u", i);
    return look_up_name(name, 0, MQX_NAMES_QUEUE);
}

static int unlink_slot(uint32_t slot)
{
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    const int status = mqx_names_unlink(region_of(), slot);
    mqx_catalog_commit_and_drop(region_of());
    return status;
}

TEST(names_of_one_chain_are_told_apart_by_name_space_name_and_instance)
{
    struct fixture_queue q[NAMES];
    start();
    one_bucket();
    for (uint32_t i = 0; i < NAMES; i++) {
        q[i] = define_number(i);
    }
    for (uint32_t i = 0; i < NAMES; i++) {
        CHECK_INT(look_up_number(i), q[i].slot);
    }
    CHECK_INT(look_up_name("NAME0", 1, MQX_NAMES_QUEUE), 0);
    CHECK_INT(look_up_name("NAME0", 0, MQX_NAMES_STRUCTURE), 0);
    CHECK_INT(look_up_name("NAME", 0, MQX_NAMES_QUEUE), 0);
}

TEST(first_last_and_middle_ones_leave_a_chain_and_can_be_linked_again)
{
    struct fixture_queue q[NAMES];
    start();
    one_bucket();
    for (uint32_t i = 0; i < NAMES; i++) {
        q[i] = define_number(i);
    }
    const uint32_t some[] = {0, NAMES - 1, NAMES / 2};
    for (uint32_t k = 0; k < 3; k++) {
        CHECK_INT(unlink_slot(q[some[k]].slot), 0);
        CHECK_INT(unlink_slot(q[some[k]].slot), 0); /* nothing */
        CHECK_INT(look_up_number(some[k]), 0);
    }
    for (uint32_t i = 1; i < NAMES - 1; i++) {
        CHECK(i == NAMES / 2 || look_up_number(i) == q[i].slot);
    }
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    CHECK_INT(mqx_names_link(region_of(), q[0].slot), 0);
    mqx_catalog_commit_and_drop(region_of());
    CHECK_INT(look_up_number(0), q[0].slot);
    CHECK_INT(look_up_number(1), q[1].slot);
}

TEST(a_rolled_back_link_and_unlink_leave_the_chain_as_it_was)
{
    struct mqx_lock *lock;
    start();
    one_bucket();
    const struct fixture_queue a = define_number(1), b = define_number(2);
    lock = &region_of()->header->catalog_lock;
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    CHECK_INT(mqx_names_unlink(region_of(), a.slot), 0);
    CHECK_INT(mqx_names_unlink(region_of(), b.slot), 0);
    mqx_undo_rollback(region_of(), lock);
    mqx_catalog_drop_lock(region_of());
    CHECK_INT(look_up_number(1), a.slot);
    CHECK_INT(look_up_number(2), b.slot);
}

TEST(a_deleted_object_has_its_name_on_zos_alone)
{
    start();
    const struct fixture_queue q = define_number(1);
    mqx_object(region_of(), q.slot)->state = MQX_OBJ_DELETING;
    mqx_object(region_of(), q.slot)->deleted_generation = q.generation;
    CHECK_INT(look_up_number(1), 0);
    region_of()->header->platform = MQX_PLATFORM_ZOS;
    CHECK_INT(look_up_number(1), q.slot);
}

TEST(a_chain_with_a_bad_slot_or_a_loop_stops_the_queue_manager)
{
    start();
    one_bucket();
    const struct fixture_queue first = define_number(1), second = define_number(2);
    mqx_object(region_of(), first.slot)->name_next = second.slot; /* a loop of two */
    mqx_object(region_of(), first.slot)->name_next_inverse = ~second.slot;
    CHECK_INT(look_up_number(3), UINT32_MAX);
    CHECK(is_stopped_by_damage("chain of object names"));
    start();
    one_bucket();
    const struct fixture_queue q = define_number(1);
    region_of()->names[0] = 1u << 30;
    CHECK_INT(look_up_number(1), UINT32_MAX);
    CHECK_INT(unlink_slot(q.slot), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(is_stopped_by_damage("chain of object names"));
}

TEST(an_object_that_is_linked_already_is_not_linked_twice)
{
    start();
    const struct fixture_queue q = define_number(1);
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    CHECK_INT(mqx_names_link(region_of(), q.slot), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_catalog_commit_and_drop(region_of());
    CHECK(is_stopped_by_damage("chain of object names"));
}

/* Each of the words that lead to an object, so that its name seems to be free. */
static void hide(uint32_t what, uint32_t first, uint32_t second)
{
    struct mqx_region *region = region_of();
    struct mqx_object *object = mqx_object(region, first);
    struct mqx_attrs attrs;
    switch (what) {
    case 0: region->names[0] = 0; break;
    case 1: region->names[1] = 0; break; /* the bucket's complement */
    case 2: mqx_object(region, second)->name_next = 0; break;
    case 3: mqx_object(region, second)->name_next_inverse += 1; break;
    case 4: object->name[4] = 'X'; break;
    case 5: object->name_space += 1; break;
    case 6: object->instance += 1; break;
    case 7: object->state = MQX_OBJ_DELETING; break;
    default:
        CHECK_INT(mqx_attrs_read(region, object->attrs, object->attrs_length, &attrs), 0);
        memset((unsigned char *)(uintptr_t)attrs.list + attrs.length, 1, 16); /* its trailer */
        break;
    }
}

TEST(an_object_that_damage_hides_is_not_defined_again)
{
    for (uint32_t what = 0; what < 9; what++) {
        start();
        one_bucket();
        const struct fixture_queue first = define_number(1), second = define_number(2);
        struct fixture_queue again;
        hide(what, first.slot, second.slot);
        CHECK_INT(fixture_define(&process, "NAME1", NULL, &again), MQRC_Q_MGR_NOT_AVAILABLE);
        CHECK(mqx_region_damage_text(region_of()) != NULL);
    }
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
