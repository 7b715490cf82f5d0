/* Claims of resolved_path.c, and of what engine.h offers for resolving names: versions of
 * definitions, steps of a destination, defaults, identifiers. */
#include "fixtures/engine_fixture.h"

enum { ALIAS = 3, RESOLUTION = MQE_ALTER_RESOLUTION };

/* An alias: a definition that holds no messages. */
static struct queue define_alias(const char *name, const int *pairs)
{
    struct queue alias = {0};
    struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes(pairs);
    object.type = ALIAS;
    CHECK_INT(mqe_define(engine.manager, &object, attrs.bytes, attrs.length, &alias.slot,
                         &alias.generation), 0);
    return alias;
}
#define ALIAS_OF(name, ...) define_alias(name, (const int[]){__VA_ARGS__ __VA_OPT__(,) 0})

static int alter(const char *name, uint32_t type, uint64_t version, uint32_t flags,
                 const int *pairs)
{
    struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes(pairs);
    struct mqe_found found = {0};
    CHECK_INT(mqe_find(engine.manager, 1, object.name, 0, &found), 0);
    object.type = type;
    return mqe_alter(engine.manager, found.slot, found.generation, &object, attrs.bytes,
                     attrs.length, version, flags);
}
#define PAIRS(...) ((const int[]){__VA_ARGS__ __VA_OPT__(,) 0})

/* Through `alias` to `q`, both as they are now. */
static struct mqe_destination through(const char *alias, const char *q)
{
    struct mqe_destination path = {.step_count = 2};
    const char *const names[] = {alias, q};
    struct mqe_found found = {0};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(mqe_find(engine.manager, 1, engine_name(names[i]).name, 0, &found), 0);
        path.step[i] = (struct mqe_step){found.slot, found.generation, found.resolution_version};
    }
    path.first = path.step[0].slot;
    path.first_generation = path.step[0].generation;
    path.queue = path.step[1].slot;
    path.queue_generation = path.step[1].generation;
    return path;
}

static int put_to(const struct mqe_destination *path)
{
    struct ps_descriptor d = {.priority = -1, .persistence = 2};
    return mqe_put(engine.manager, NULL, path, &d, NULL, "x", 1, -1, 0);
}

static int get_by(mqe_queue *handle)
{
    char body[8];
    struct mqe_get get = {.buffer = body, .capacity = sizeof body};
    return mqe_get(engine.manager, NULL, handle, &get);
}

TEST(a_resolution_change_of_any_step_ends_puts_and_gets_through_it_with_2041_and_no_others)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), other = QUEUE("OTHER", 0);
    (void)ALIAS_OF("A");
    const struct mqe_destination before = through("A", "Q");
    mqe_queue *handle = NULL;
    CHECK_INT(mqe_open(engine.manager, &before, 2, &handle), 0);
    CHECK_INT(put_to(&before), 0);
    CHECK_INT(alter("A", ALIAS, 0, 0, PAIRS(DEFPRTY, 3)), 0); /* an ordinary attribute */
    CHECK_INT(put_to(&before), 0);
    CHECK_INT(get_by(handle), 0);
    for (int i = 0; i < 2; i++) {
        const struct mqe_destination path = through("A", "Q");
        CHECK_INT(alter(i == 0 ? "A" : "Q", i == 0 ? ALIAS : 1, 0, RESOLUTION, PAIRS()), 0);
        CHECK_INT(put_to(&path), 2041);
        CHECK_INT(PUT(other, .text = "x"), 0);
    }
    CHECK_INT(get_by(handle), 2041);
    const struct mqe_destination after = through("A", "Q");
    CHECK_INT(put_to(&after), 0);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
    CHECK_INT(depth(q), 2);
}

TEST(a_deleted_step_is_2041_and_the_deleted_queue_itself_2052)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct queue a = ALIAS_OF("A");
    const struct mqe_destination path = through("A", "Q");
    CHECK_INT(mqe_delete(engine.manager, a.slot, a.generation, 0), 0);
    CHECK_INT(put_to(&path), 2041);
    (void)ALIAS_OF("A");
    CHECK_INT(put_to(&path), 2041); /* another definition of that name and slot */
    const struct mqe_destination again = through("A", "Q");
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 1), 0);
    CHECK_INT(put_to(&again), 2052);
}

TEST(put_and_get_disabled_anywhere_in_the_path_count_and_only_while_they_last)
{
    engine_begin();
    (void)QUEUE("Q", 0);
    (void)ALIAS_OF("A");
    const struct mqe_destination path = through("A", "Q");
    mqe_queue *handle = NULL;
    CHECK_INT(mqe_open(engine.manager, &path, 2, &handle), 0);
    for (uint32_t i = 0; i < 2; i++) {
        const char *name = i == 0 ? "A" : "Q";
        const uint32_t type = i == 0 ? ALIAS : 1;
        CHECK_INT(put_to(&path), 0);
        CHECK_INT(alter(name, type, 0, 0, PAIRS(PUT_DISABLED, 1)), 0);
        CHECK_INT(put_to(&path), 2051);
        CHECK_INT(get_by(handle), 0);
        CHECK_INT(alter(name, type, 0, 0, PAIRS(GET_DISABLED, 1)), 0);
        CHECK_INT(put_to(&path), 0);
        CHECK_INT(get_by(handle), 2016);
        CHECK_INT(alter(name, type, 0, 0, PAIRS()), 0);
        CHECK_INT(get_by(handle), 0);
    }
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
}

TEST(a_getter_that_waits_through_an_alias_is_woken_when_the_alias_changes)
{
    const int reasons[] = {2041, 2016};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    (void)ALIAS_OF("A");
    for (int i = 0; i < 2; i++) {
        const struct mqe_destination path = through("A", "Q");
        struct queue by = q;
        struct waiter waiter = {0};
        CHECK_INT(mqe_open(engine.manager, &path, 2, &by.handle), 0);
        WAITER(&waiter, by, 0);
        CHECK(await_waiters(q, 1));
        const uint64_t bound = woken_by_bound();
        CHECK_INT(i == 0 ? alter("A", ALIAS, 0, RESOLUTION, PAIRS())
                         : alter("A", ALIAS, 0, 0, PAIRS(GET_DISABLED, 1)), 0);
        CHECK_INT(mqe_wake(engine.manager, q.slot), 0);
        (void)waiter_end(&waiter);
        CHECK_INT(waiter.got.status, reasons[i]);
        CHECK_INT(woken_by_bound(), bound);
        CHECK_INT(mqe_close(by.handle, MQE_CLOSE_KEEP), 0);
    }
    CHECK_INT(mqe_wake(engine.manager, 0), 0);
    CHECK_INT(mqe_wake(engine.manager, 4000000000u), 0);
}

TEST(an_alter_with_the_stamp_of_an_older_list_changes_nothing)
{
    struct ps_object_name name;
    unsigned char attrs[256];
    uint32_t length = 0;
    uint64_t version = 0, later = 0;
    engine_begin();
    struct queue q = QUEUE("Q", MAXDEPTH, 5);
    CHECK_INT(mqe_read_object(engine.manager, q.slot, q.generation, &name, attrs, sizeof attrs,
                              &length, &version), 0);
    CHECK(version != 0);
    CHECK_INT(alter("Q", 1, version, 0, PAIRS(MAXDEPTH, 1)), 0);
    CHECK_INT(alter("Q", 1, version, RESOLUTION, PAIRS(MAXDEPTH, 99)), MQE_CHANGED);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b"), MQRC_Q_FULL);
    CHECK_INT(mqe_read_object(engine.manager, q.slot, q.generation, &name, attrs, sizeof attrs,
                              &length, &later), 0);
    CHECK(later != version);
    CHECK_INT(alter("Q", 1, later, 0, PAIRS(MAXDEPTH, 2)), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
}

TEST(only_local_queues_are_opened_for_messages_and_put_to)
{
    mqe_queue *handle = NULL;
    engine_begin();
    struct queue a = ALIAS_OF("A");
    const struct mqe_destination straight = mqe_direct(a.slot, a.generation);
    const uint32_t refused[] = {2, MQE_INPUT_EXCLUSIVE, MQE_BROWSE, MQE_OUTPUT};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(refused); i++) {
        CHECK_INT(mqe_open(engine.manager, &straight, refused[i], &handle), 2043);
    }
    CHECK_INT(put_to(&straight), 2043);
    CHECK_INT(mqe_open(engine.manager, &straight, 0, &handle), 0);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
    const struct mqe_destination endless = {.queue = a.slot, .step_count = MQE_STEPS_MAX + 1};
    CHECK_INT(mqe_open(engine.manager, &endless, 0, &handle), MQRC_UNEXPECTED_ERROR);
    const struct mqe_destination astray = {.queue = a.slot, .step_count = MQE_STEPS_MAX};
    CHECK_INT(mqe_open(engine.manager, &astray, 0, &handle), MQRC_UNEXPECTED_ERROR);
}

/* Five steps: four aliases and the queue. */
static struct mqe_destination through_five(void)
{
    static const char *const names[MQE_STEPS_MAX] = {"A1", "A2", "A3", "A4", "Q"};
    struct mqe_destination path = {.step_count = MQE_STEPS_MAX};
    for (int i = 0; i < MQE_STEPS_MAX; i++) {
        struct mqe_found found = {0};
        CHECK_INT(mqe_find(engine.manager, 1, engine_name(names[i]).name, 0, &found), 0);
        path.step[i] = (struct mqe_step){found.slot, found.generation, found.resolution_version};
        path.queue = found.slot;
        path.queue_generation = found.generation;
    }
    path.first = path.step[0].slot;
    path.first_generation = path.step[0].generation;
    return path;
}

TEST(the_last_of_five_steps_is_checked_too_and_the_handle_names_all)
{
    static const char *const aliases[] = {"A1", "A2", "A3", "A4"};
    struct mqe_handle_status shown[2] = {0};
    mqe_queue *handle = NULL;
    uint32_t count = 0;
    engine_begin();
    const struct queue q = QUEUE("Q", 0);
    CHECK_INT(engine_close(q.handle), 0);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(aliases); i++) {
        (void)ALIAS_OF(aliases[i]);
    }
    const struct mqe_destination path = through_five();
    CHECK_INT(mqe_open(engine.manager, &path, MQE_OUTPUT | 2, &handle), 0);
    CHECK_INT(mqe_handles(engine.manager, shown, 2, &count), 0);
    CHECK_INT(count, 1);
    CHECK_INT(shown[0].object, path.step[4].slot);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(shown[0].step[i], path.step[i].slot);
    }
    CHECK_INT(put_to(&path), 0);
    CHECK_INT(get_by(handle), 0);
    CHECK_INT(alter("Q", 1, 0, MQE_ALTER_RESOLUTION, PAIRS(DEFPRTY, 2)), 0);
    CHECK_INT(put_to(&path), 2041);
    CHECK_INT(get_by(handle), 2041);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
}

TEST(defaults_come_from_the_first_definition_and_are_resolved_as_a_put_would)
{
    engine_begin();
    (void)QUEUE("Q", DEFPRTY, 1, DEFPSIST, 0);
    (void)ALIAS_OF("A", DEFPRTY, 6, DEFPSIST, 1);
    const struct mqe_destination path = through("A", "Q");
    struct ps_descriptor d = {.priority = -1, .persistence = 2};
    int warning = 99;
    CHECK_INT(mqe_resolve_defaults(engine.manager, &path, &d, &warning), 0);
    CHECK_INT(d.priority, 6);
    CHECK_INT(d.persistence, 1);
    CHECK_INT(warning, 0);
    d = (struct ps_descriptor){.priority = 12};
    CHECK_INT(mqe_resolve_defaults(engine.manager, &path, &d, &warning), 0);
    CHECK_INT(d.priority, 12);
    CHECK_INT(warning, 2049);
    d = (struct ps_descriptor){.priority = -2};
    CHECK_INT(mqe_resolve_defaults(engine.manager, &path, &d, &warning), 2050);
    d = (struct ps_descriptor){.persistence = 3};
    CHECK_INT(mqe_resolve_defaults(engine.manager, &path, &d, &warning), 2047);
}

TEST(an_instance_of_a_cluster_queue_is_a_first_definition_like_any_other)
{
    enum { CLUSTER_QUEUE = 7 };
    engine_begin();
    const struct queue xmitq = QUEUE("XQ", DEFPRTY, 1, DEFPSIST, 0);
    const struct attributes attrs = engine_attributes(PAIRS(DEFPRTY, 6, DEFPSIST, 1));
    struct ps_object_name object = engine_name("CQ");
    object.name_space = MQX_NAMES_CLUSTER;
    object.type = CLUSTER_QUEUE;
    object.instance = 1;
    struct mqe_destination path = mqe_direct(xmitq.slot, xmitq.generation);
    CHECK_INT(mqe_define(engine.manager, &object, attrs.bytes, attrs.length, &path.first,
                         &path.first_generation), 0);
    struct ps_descriptor d = {.priority = -1, .persistence = 2};
    int warning = 99;
    CHECK_INT(mqe_resolve_defaults(engine.manager, &path, &d, &warning), 0);
    CHECK_INT(d.priority, 6);
    CHECK_INT(d.persistence, 1);
}

TEST(generated_ids_are_like_no_message_s)
{
    uint8_t id[2][24];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_new_id(engine.manager, id[0]), 0);
    CHECK_INT(PUT(q, .text = "x", .flags = MQE_PUT_NEW_MSG_ID), 0);
    CHECK_INT(mqe_new_id(engine.manager, id[1]), 0);
    CHECK_MEM(id[0], "AMQ QM1         ", 16);
    CHECK(memcmp(id[0], id[1], 24) != 0);
    CHECK(memcmp(id[0], put_descriptor.msg_id, 24) != 0);
    CHECK(memcmp(id[1], put_descriptor.msg_id, 24) != 0);
}

TEST(many_definitions_need_one_flush_and_stop_at_the_first_that_cannot_be)
{
    enum { MANY = 600 };
    static struct ps_object_name names[MANY];
    static struct mqe_definition definitions[MANY];
    struct mqe_manager_status before, after;
    uint32_t done = 0;
    engine_begin();
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "N%d", i == 555 ? 17 : i);
        names[i] = engine_name(name);
        definitions[i] = (struct mqe_definition){.name = &names[i]};
    }
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    CHECK_INT(mqe_define_many(engine.manager, definitions, MANY, &done), 2100);
    CHECK_INT(mqe_status(engine.manager, &after), 0);
    CHECK_INT(done, 555);
    CHECK(after.flushes - before.flushes < 10);
    CHECK_INT(after.objects, 555);
    CHECK_INT(mqe_define_many(engine.manager, definitions, 0, &done), 0);
    CHECK_INT(done, 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()

TEST(a_handle_says_which_definitions_it_went_through_and_the_next_one_in_its_slot_says_its_own)
{
    struct mqe_handle_status rows[4];
    uint32_t count = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct queue a = ALIAS_OF("A");
    const struct mqe_destination path = through("A", "Q");
    const struct mqe_destination direct = {
        .queue = q.slot, .queue_generation = q.generation, .first = q.slot};
    mqe_queue *handle = NULL;
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(mqe_open(engine.manager, &path, 2, &handle), 0);
    CHECK_INT(mqe_handles(engine.manager, rows, 4, &count), 0);
    CHECK_INT(count, 1);
    CHECK(rows[0].object == q.slot && rows[0].step[0] == a.slot && rows[0].step[1] == q.slot);
    CHECK(rows[0].step[2] == 0 && rows[0].step[3] == 0);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
    CHECK_INT(mqe_open(engine.manager, &direct, 2, &handle), 0);
    CHECK_INT(mqe_handles(engine.manager, rows, 4, &count), 0);
    CHECK_INT(count, 1);
    CHECK(rows[0].object == q.slot && rows[0].step[0] == 0 && rows[0].step[1] == 0);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
}
