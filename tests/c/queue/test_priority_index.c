/*
 * test_priority_index.c - proves priority_index.h against ten sorted lists, one a priority.
 */
#include "fixtures/priority_index_fixture.h"

#include "base/error.h"

/* ---- the model: per queue and priority the messages in order ---- */

enum { MODEL_MAX = 8192 };
struct model_level {
    uint32_t slot[MODEL_MAX];
    bool available[MODEL_MAX];
    uint32_t count;
};
static struct model_level model[FIXTURE_QUEUES][MQX_PRIORITY_COUNT];

static void model_add(const struct op *op)
{
    struct model_level *level = &model[op->queue][op->placement];
    CHECK(level->count < MODEL_MAX);
    level->slot[level->count] = op->slot;
    level->available[level->count++] = op->available;
}

static void model_remove(uint32_t queue, uint32_t placement, uint32_t i)
{
    struct model_level *level = &model[queue][placement];
    level->count -= 1;
    memmove(&level->slot[i], &level->slot[i + 1], (level->count - i) * sizeof level->slot[0]);
    memmove(&level->available[i], &level->available[i + 1],
            (level->count - i) * sizeof level->available[0]);
}

static uint32_t model_count(uint32_t queue)
{
    uint32_t count = 0;
    for (int p = 0; p < MQX_PRIORITY_COUNT; p++) {
        count += model[queue][p].count;
    }
    return count;
}

static void begin(void)
{
    fixture_begin();
    memset(model, 0, sizeof model);
}

/* Walks both ways through the whole queue and compares with the model. */
static void check_walk(uint32_t q, bool available_only)
{
    const struct mqx_object *queue = fixture.queue[q];
    struct mqx_cursor cursor = {0};
    uint32_t before = 0;
    for (int p = MQX_MAX_PRIORITY; p >= 0; p--) {
        before = 0;
        for (uint32_t i = 0; i < model[q][p].count; i++) {
            const uint32_t slot = model[q][p].slot[i];
            CHECK_INT(mqx_priority_index_before(&fixture.region, queue, slot), before);
            before = model[q][p].available[i] ? slot : before;
            if (!available_only || model[q][p].available[i]) {
                CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, available_only),
                          slot);
                CHECK_INT(cursor.number, fixture_message(slot)->number);
            }
        }
    }
    const struct mqx_cursor end = cursor;
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, available_only), 0);
    CHECK_MEM(&cursor, &end, sizeof end);
}

static void check_first(uint32_t q)
{
    uint32_t want = 0;
    for (int p = MQX_MAX_PRIORITY; p >= 0 && want == 0; p--) {
        for (uint32_t i = 0; i < model[q][p].count && want == 0; i++) {
            want = model[q][p].available[i] ? model[q][p].slot[i] : 0;
        }
    }
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[q]), want);
    CHECK_INT(mqx_priority_index_first_of_many(&fixture.region, fixture.queue[q]), want);
}

static void check_all(uint32_t q)
{
    CHECK_INT(mqx_priority_index_check(&fixture.region, fixture.queue[q]), 0);
    CHECK_INT(fixture.queue[q]->present, model_count(q));
    check_first(q);
    check_walk(q, true);
    check_walk(q, false);
    CHECK(!mqx_region_damaged());
}

/* ---- random operations ---- */

/* A priority: some levels are used often, others seldom, so that they empty. */
static uint32_t some_placement(struct test_random *random)
{
    const uint64_t n = test_below(random, 16);
    return (uint32_t)(n < 10 ? n : n < 13 ? 4 : 7);
}

/* Chooses an operation that is possible; `target` is about how many messages there are to be. */
static struct op some_op(struct test_random *random, uint32_t target, uint32_t *out_index)
{
    const uint32_t q = (uint32_t)test_below(random, FIXTURE_QUEUES), p = some_placement(random);
    const struct model_level *level = &model[q][p];
    struct op op = {.kind = OP_PUT, .queue = q, .placement = p,
                    .available = test_below(random, 4) != 0};
    const uint64_t what = test_below(random, 8);
    if (level->count == 0 || what < (level->count < target / 8 ? 5 : 3)) {
        return op;
    }
    const uint32_t i = (uint32_t)(test_below(random, 2) == 0 ? 0
                                                             : test_below(random, level->count));
    op.slot = level->slot[i];
    op.kind = what < 6 ? OP_REMOVE : level->available[i] ? OP_HIDE : OP_SHOW;
    *out_index = i;
    return op;
}

static uint32_t stores_max(const struct op *op, uint32_t height)
{
    switch (op->kind) {
    case OP_PUT: return 4 + 2 * height + 6; /* and taking an entry, number, state */
    case OP_REMOVE: return 5 + 2 * height + 3;
    default: return 1 + height + 1;
    }
}

static void step(struct test_random *random, uint32_t target, bool aborted)
{
    uint32_t i = 0;
    struct op op = some_op(random, target, &i);
    const uint32_t before = fixture.queue[op.queue]->level[op.placement].height;
    CHECK_INT(aborted ? fixture_run_aborted(&op) : fixture_run(&op), 0);
    const uint32_t after = fixture.queue[op.queue]->level[op.placement].height;
    CHECK(fixture.stores <= stores_max(&op, before > after ? before : after));
    struct model_level *level = &model[op.queue][op.placement];
    if (op.kind == OP_PUT) {
        model_add(&op);
    } else if (op.kind == OP_REMOVE) {
        model_remove(op.queue, op.placement, i);
    } else {
        level->available[i] = op.kind == OP_SHOW;
    }
    CHECK_INT(mqx_priority_index_check(&fixture.region, fixture.queue[op.queue]), 0);
    check_first(op.queue);
}

TEST(after_each_of_20000_random_operations_all_invariants_hold_and_the_order_is_the_models)
{
    struct test_random random = {test_seed()};
    begin();
    for (int i = 0; i < 20000; i++) {
        step(&random, i / 2000 % 2 == 0 ? 400 : 8, false);
        if (i % 16 == 0) {
            check_all((uint32_t)i / 16 % FIXTURE_QUEUES);
        }
    }
}

TEST(random_operations_at_heights_2_and_3_agree_with_the_model)
{
    struct test_random random = {test_seed() + 1};
    begin();
    for (uint32_t n = 0; n < 5000; n++) {
        struct op op = {.kind = OP_PUT, .queue = n % 2, .placement = 4,
                        .available = test_below(&random, 3) != 0};
        CHECK_INT(fixture_run(&op), 0);
        model_add(&op);
    }
    for (uint32_t n = 0; n < 9000; n++) {
        struct op op = {.kind = OP_PUT, .queue = 0, .placement = 4, .available = true};
        CHECK_INT(fixture_run(&op), 0); /* moves the positions on, over leaves that become empty */
        model_add(&op);
        const uint32_t i = (uint32_t)test_below(&random, 3) == 0
                               ? 0 : (uint32_t)test_below(&random, model[0][4].count);
        fixture_do(OP_REMOVE, model[0][4].slot[i]);
        model_remove(0, 4, i);
    }
    CHECK_INT(fixture.queue[0]->level[4].height, 3);
    check_all(0);
    check_all(1);
    for (int i = 0; i < 2000; i++) {
        step(&random, 4000, false);
    }
    check_all(0);
    check_all(1);
}

TEST_SERIAL(an_operation_aborted_before_any_undo_entry_leaves_the_region_as_it_was)
{
    struct test_random random = {test_seed() + 2};
    begin();
    for (int i = 0; i < 600; i++) {
        step(&random, i / 100 % 2 == 0 ? 150 : 4, true);
    }
    check_all(0);
    check_all(1);
}

/* ---- growth ---- */

/* Empties a queue of everything in the model. */
static void empty_model(uint32_t q)
{
    for (uint32_t p = 0; p < MQX_PRIORITY_COUNT; p++) {
        while (model[q][p].count > 0) {
            fixture_do(OP_REMOVE, model[q][p].slot[model[q][p].count / 2]);
            model_remove(q, p, model[q][p].count / 2);
        }
    }
}

/* Two messages on each side of every power of 64, so that the tree has all heights. */
static void put_at_every_height(bool aborted)
{
    struct mqx_level *level = &fixture.queue[0]->level[5];
    for (uint32_t height = 0; height <= MQX_RADIX_HEIGHT_MAX; height++) {
        for (uint64_t at = (1ull << 6 * height) - 2; at + 1 < (1ull << 6 * height) + 2; at++) {
            struct op op = {.kind = OP_PUT, .placement = 5, .available = at % 2 == 0};
            if (at + 1 < level->next_position || at + 1 >= 1ull << 48) {
                continue;
            }
            level->next_position = at + 1;
            CHECK_INT(aborted ? fixture_run_aborted(&op) : fixture_run(&op), 0);
            CHECK(fixture.stores <= stores_max(&op, level->height));
            model_add(&op);
            check_all(0);
        }
    }
    CHECK_INT(level->height, MQX_RADIX_HEIGHT_MAX);
}

TEST(a_tree_grows_to_height_8_and_shrinks_to_one_leaf_whichever_message_goes_first)
{
    struct test_random random = {test_seed() + 3};
    for (int round = 0; round < 20; round++) {
        begin();
        put_at_every_height(round == 0);
        struct model_level *level = &model[0][5];
        while (level->count > 0) {
            const uint32_t i = round == 0 ? 0 : round == 1 ? level->count - 1
                                              : (uint32_t)test_below(&random, level->count);
            struct op op = {.kind = level->available[i] ? OP_HIDE : OP_SHOW,
                            .slot = level->slot[i]};
            CHECK_INT(round < 3 ? fixture_run_aborted(&op) : fixture_run(&op), 0);
            CHECK(fixture.stores <= stores_max(&op, MQX_RADIX_HEIGHT_MAX));
            level->available[i] = !level->available[i];
            check_all(0);
            op.kind = OP_REMOVE;
            CHECK_INT(round < 3 ? fixture_run_aborted(&op) : fixture_run(&op), 0);
            CHECK(fixture.stores <= stores_max(&op, MQX_RADIX_HEIGHT_MAX));
            model_remove(0, 5, i);
            check_all(0);
        }
        CHECK_INT(fixture.queue[0]->level[5].height, 1);
    }
}

TEST(a_level_that_has_used_up_its_positions_says_2071_and_begins_again_when_it_has_been_empty)
{
    struct op op = {.kind = OP_PUT, .placement = 5, .available = true};
    begin();
    put_at_every_height(false);
    fixture.queue[0]->level[5].next_position = 1ull << 48;
    fixture_image(0);
    CHECK_INT(fixture_run(&op), MQRC_STORAGE_NOT_AVAILABLE);
    fixture_image(1);
    CHECK(fixture_images_equal());
    check_all(0);
    empty_model(0);
    CHECK_INT(fixture_run(&op), 0);
    CHECK_INT(fixture_message(op.slot)->position, 0);
}

TEST(a_node_without_messages_is_freed_and_used_again)
{
    begin();
    for (int i = 0; i < 100; i++) { /* a first leaf and what the list of free cells then holds */
        fixture_do(OP_REMOVE, fixture_add(0, 0, true));
    }
    const uint64_t used = fixture.region.header->area[MQX_AREA_ARENA].used;
    fixture_add(0, 0, true);
    for (int i = 0; i < 100000; i++) {
        const uint32_t slot = fixture_add(0, 0, true);
        fixture_do(OP_REMOVE, mqx_priority_index_first(&fixture.region, fixture.queue[0]));
        CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), slot);
    }
    CHECK_INT(fixture.queue[0]->level[0].height, 3);
    CHECK_INT(fixture.region.header->area[MQX_AREA_ARENA].used, used);
}

TEST(dropping_the_heap_of_an_emptied_queue_gives_all_its_nodes_back)
{
    struct op drop = {.kind = OP_DROP_HEAP};
    begin();
    const struct mqx_stripe *stripe = fixture.guard.stripe;
    for (uint32_t p = 0; p < MQX_PRIORITY_COUNT; p++) {
        fixture_do(OP_REMOVE, fixture_add(p, 0, true));
    }
    CHECK_INT(fixture_run_aborted(&drop), 0);
    CHECK(fixture.stores <= 40);
    const uint32_t class_no = mqx_class_for(sizeof(struct mqx_radix));
    uint32_t count = 0;
    for (uint32_t cell = stripe->free_cells[class_no]; cell != 0;) {
        cell = *(uint32_t *)mqx_cells(&fixture.region, cell);
        count += 1;
    }
    const struct mqx_extent *extent = &fixture.region.extents[MQX_POOL_CELLS][0];
    CHECK_INT(extent->class_no, class_no); /* the only one */
    CHECK_INT(count, extent->in_use);
    CHECK_INT(mqx_priority_index_check(&fixture.region, fixture.queue[0]), 0);
    CHECK(fixture_add(3, 0, true) != 0);
    CHECK_INT(mqx_priority_index_check(&fixture.region, fixture.queue[0]), 0);
}

/* ---- order ---- */

TEST(delivery_is_by_priority_and_within_it_by_arrival)
{
    uint32_t slot[30];
    begin();
    for (uint32_t i = 0; i < 30; i++) {
        slot[i] = fixture_add(i % 3 == 0 ? 9 : i % 3 == 1 ? 0 : 4, 0, true);
    }
    for (uint32_t n = 0; n < 30; n++) {
        const uint32_t class_no = n / 10 == 0 ? 0 : n / 10 == 1 ? 2 : 1;
        CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]),
                  slot[n % 10 * 3 + class_no]);
        fixture_do(OP_REMOVE, slot[n % 10 * 3 + class_no]);
    }
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), 0);
}

TEST(a_message_that_is_shown_again_is_back_in_its_old_place)
{
    begin();
    const uint32_t high = fixture_add(7, 0, true), a = fixture_add(3, 0, true),
                   b = fixture_add(3, 0, true);
    fixture_do(OP_HIDE, high);
    fixture_do(OP_HIDE, a);
    const uint32_t c = fixture_add(3, 0, true);
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), b);
    fixture_do(OP_SHOW, a);
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), a);
    fixture_do(OP_SHOW, high);
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), high);
    fixture_do(OP_REMOVE, high);
    fixture_do(OP_REMOVE, a);
    fixture_do(OP_REMOVE, b);
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), c);
}

TEST(showing_what_is_shown_and_hiding_what_is_hidden_changes_nothing)
{
    begin();
    const uint32_t slot = fixture_add(3, 0, true);
    mqx_priority_index_set_available(&fixture.guard, fixture.queue[0], slot, true);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
    fixture_do(OP_HIDE, slot);
    mqx_priority_index_set_available(&fixture.guard, fixture.queue[0], slot, false);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
}

TEST(putting_and_getting_at_height_1_takes_5_undo_entries_each_at_most)
{
    begin();
    fixture_add(4, 0, true);
    for (int i = 0; i < 40; i++) {
        const uint32_t slot = fixture_add(4, 0, true);
        mqx_priority_index_remove(&fixture.guard, fixture.queue[0], slot);
        CHECK(fixture.guard.stripe->lock.undo_count <= 5);
        mqx_stripe_guard_rollback(&fixture.guard);
        mqx_priority_index_set_available(&fixture.guard, fixture.queue[0], slot, false);
        CHECK_INT(fixture.guard.stripe->lock.undo_count, 1);
        mqx_stripe_guard_rollback(&fixture.guard);
        fixture_do(OP_REMOVE, slot);
    }
}

/* ---- a million ---- */

TEST(one_available_message_behind_a_million_locked_ones_is_found_at_once)
{
    enum { COUNT = 1000000, SEARCHES = 200000 };
    uint32_t last = 0;
    begin();
    for (int i = 0; i < COUNT; i++) {
        last = fixture_add(4, 0, i == COUNT - 1);
    }
    fixture_add(2, 0, true);
    const struct mqx_object *queue = fixture.queue[0];
    CHECK_INT(queue->level[4].height, 4);
    for (int i = 0; i < SEARCHES; i++) { /* a search that is not at once does not end here */
        struct mqx_cursor cursor = {0};
        CHECK_INT(mqx_priority_index_first(&fixture.region, queue), last);
        CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), last);
        CHECK_INT(mqx_priority_index_before(&fixture.region, queue, last), 0);
    }
    CHECK_INT(mqx_priority_index_check(&fixture.region, queue), 0);
    struct mqx_cursor cursor = {0};
    for (int i = 0; i < COUNT / 2; i++) {
        CHECK(mqx_priority_index_next(&fixture.region, queue, &cursor, false) != 0);
    }
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), last);
    while (mqx_priority_index_next(&fixture.region, queue, &(struct mqx_cursor){0}, false) !=
           last) {
        struct mqx_cursor start = {0};
        fixture_do(OP_REMOVE, mqx_priority_index_next(&fixture.region, queue, &start, false));
    }
    CHECK_INT(mqx_priority_index_check(&fixture.region, queue), 0);
    CHECK_INT(queue->present, 2);
}

/* ---- cursors ---- */

TEST(a_cursor_goes_on_from_the_place_of_a_message_that_has_been_removed)
{
    struct mqx_cursor cursor = {0};
    begin();
    const struct mqx_object *queue = fixture.queue[0];
    const uint32_t a = fixture_add(4, 0, true), b = fixture_add(4, 0, true),
                   c = fixture_add(4, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), a);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), b);
    CHECK_INT(cursor.message, b);
    fixture_do(OP_REMOVE, b);
    fixture_do(OP_REMOVE, a);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), c);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), 0);
    CHECK_INT(cursor.message, c);
}

TEST(a_cursor_does_not_see_what_arrives_before_its_place_and_sees_what_arrives_behind_it)
{
    struct mqx_cursor cursor = {0};
    begin();
    const struct mqx_object *queue = fixture.queue[0];
    const uint32_t a = fixture_add(4, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), a);
    fixture_add(9, 0, true);
    const uint32_t low = fixture_add(1, 0, true), same = fixture_add(4, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), same);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), low);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), 0);
    const uint32_t lower = fixture_add(0, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), lower);
}

TEST(after_its_level_has_been_empty_a_cursor_sees_all_that_came_since_and_nothing_twice)
{
    struct mqx_cursor cursor = {0};
    begin();
    const struct mqx_object *queue = fixture.queue[0];
    for (int i = 0; i < 100; i++) {
        fixture_add(4, 0, true);
    }
    for (int i = 0; i < 90; i++) {
        mqx_priority_index_next(&fixture.region, queue, &cursor, true);
    }
    while (queue->present > 0) {
        fixture_do(OP_REMOVE, mqx_priority_index_first(&fixture.region, queue));
    }
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), 0);
    const uint32_t resets = queue->level[4].reset_count;
    uint32_t fresh[100];
    for (int i = 0; i < 100; i++) {
        fresh[i] = fixture_add(4, 0, true);
    }
    CHECK_INT(queue->level[4].reset_count, resets + 1);
    CHECK_INT(fixture_message(fresh[0])->position, 0);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), fresh[i]);
    }
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), 0);
}

TEST(a_cursor_that_skips_hidden_messages_meets_them_when_they_are_shown_in_time)
{
    struct mqx_cursor cursor = {0}, all = {0};
    begin();
    const struct mqx_object *queue = fixture.queue[0];
    const uint32_t a = fixture_add(4, 0, true), b = fixture_add(4, 0, false),
                   c = fixture_add(4, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), a);
    all = cursor;
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &all, false), b);
    fixture_do(OP_SHOW, b);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), b);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), c);
}

TEST(a_cursor_knows_that_a_slot_has_been_used_again)
{
    struct mqx_cursor cursor = {0};
    begin();
    const struct mqx_object *queue = fixture.queue[0];
    const uint32_t a = fixture_add(4, 0, true);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), a);
    fixture_do(OP_REMOVE, a);
    const uint32_t again = fixture_add(4, 0, true);
    CHECK_INT(again, a);
    CHECK(fixture_message(again)->number != cursor.number);
    CHECK_INT(mqx_priority_index_next(&fixture.region, queue, &cursor, true), again);
    CHECK_INT(fixture_message(again)->number, cursor.number);
}

/* ---- damage ---- */

static void some_messages(void)
{
    begin();
    for (int i = 0; i < 5000; i++) {
        fixture_add(i % 50 == 0 ? 6 : 4, 0, i % 7 != 0);
    }
}

static struct mqx_radix *root_of(uint32_t placement)
{
    return mqx_cells_span(&fixture.region, fixture.queue[0]->level[placement].root,
                          sizeof(struct mqx_radix));
}

TEST(a_message_that_is_not_at_its_place_is_neither_shown_nor_removed_but_remembered)
{
    begin();
    const uint32_t in = fixture_add(4, 0, true), out = fixture_add(4, 0, true);
    const uint32_t present[2] = {2, 2000};
    for (int round = 0; round < 2; round++) { /* at height 1, then above */
        while (fixture.queue[0]->present < present[round]) {
            fixture_add(4, 0, true);
        }
        const uint64_t place = fixture_message(out)->position;
        fixture_message(out)->position = fixture_message(in)->position;
        mqx_priority_index_remove(&fixture.guard, fixture.queue[0], out);
        CHECK(mqx_region_damaged());
        mqx_priority_index_set_available(&fixture.guard, fixture.queue[0], out, false);
        CHECK(mqx_region_damaged());
        CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
        fixture_message(out)->position = place;
        CHECK_INT(mqx_priority_index_check(&fixture.region, fixture.queue[0]), 0);
    }
}

TEST(the_check_finds_each_broken_invariant)
{
    some_messages();
    struct mqx_object *queue = fixture.queue[0];
    struct mqx_message *message = fixture_message(mqx_priority_index_first(&fixture.region, queue));
    struct mqx_radix *root = root_of(4);
    const struct {
        void *at;
        uint32_t size;
        uint64_t flip;
    } faults[] = {
        {&root->available, 8, 1}, {&root->present, 8, 1}, {&root->present, 8, 1ull << 63},
        {&root->available, 8, 1ull << 63}, {&root->child[0], 4, 1}, {&root->child[0], 4, 1u << 31},
        {&message->state, 1, 7}, {&message->position, 8, 1}, {&message->object, 4, 3},
        {&message->placement, 1, 1}, {&queue->present, 4, 1}, {&queue->available_mask, 2, 1},
        {&queue->available_mask, 2, 1u << 6}, {&queue->available_mask, 2, 1u << 12},
        {&queue->level[4].present, 4, 1}, {&queue->level[4].height, 4, 1},
        {&queue->level[4].root, 4, 1}, {&queue->level[6].root, 4, 1u << 30},
        {&queue->level[0].height, 4, 1}, {&queue->level[0].present, 4, 1},
    };
    CHECK_INT(mqx_priority_index_check(&fixture.region, queue), 0);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(faults); i++) {
        uint64_t value = 0;
        memcpy(&value, faults[i].at, faults[i].size);
        value ^= faults[i].flip;
        memcpy(faults[i].at, &value, faults[i].size);
        if (!test_expect(mqx_priority_index_check(&fixture.region, queue) == MQRC_OBJECT_DAMAGED,
                         __FILE__, __LINE__, "fault found")) {
            printf(" (fault %zu)", i);
        }
        value ^= faults[i].flip;
        memcpy(faults[i].at, &value, faults[i].size);
    }
    CHECK_INT(mqx_priority_index_check(&fixture.region, queue), 0);
}

/* Garbage of the kinds that matter: near misses, far misses, random. */
static void spoil(struct test_random *random, unsigned char *at, uint64_t size)
{
    unsigned char *byte = at + test_below(random, size);
    switch (test_below(random, 4)) {
    case 0: *byte ^= (unsigned char)(1u << test_below(random, 8)); break;
    case 1: *byte = 0; break;
    case 2: *byte = 0xff; break;
    default: *byte = (unsigned char)test_next(random); break;
    }
}

/* Every function, on whatever is there; all micro-transactions are undone. */
static void use_damaged(struct test_random *random, uint32_t spare)
{
    struct mqx_object *queue = fixture.queue[0];
    struct mqx_cursor cursor = {0};
    const uint32_t slot = 1 + (uint32_t)test_below(random, 5000);
    (void)mqx_priority_index_first_of_many(&fixture.region, queue);
    mqx_priority_index_expect(&fixture.region, queue, fixture_message(slot));
    for (int i = 0; i < 20; i++) {
        (void)mqx_priority_index_next(&fixture.region, queue, &cursor, i % 2 == 0);
    }
    (void)mqx_priority_index_before(&fixture.region, queue, slot);
    const int verdict = mqx_priority_index_check(&fixture.region, queue);
    CHECK(verdict == MQX_OK || verdict == MQRC_OBJECT_DAMAGED);
    mqx_priority_index_set_available(&fixture.guard, queue, slot, test_below(random, 2) == 0);
    mqx_stripe_guard_rollback(&fixture.guard);
    mqx_priority_index_remove(&fixture.guard, queue, slot);
    mqx_stripe_guard_rollback(&fixture.guard);
    if (fixture_message(spare)->placement < MQX_PRIORITY_COUNT) {
        const int status = mqx_priority_index_insert(&fixture.guard, queue, spare, true);
        CHECK(status == MQX_OK || status == MQX_NEED_CELLS ||
              status == MQRC_Q_MGR_NOT_AVAILABLE || status == MQRC_STORAGE_NOT_AVAILABLE);
        mqx_stripe_guard_rollback(&fixture.guard);
    }
    (void)mqx_region_damaged();
}

TEST(no_damage_in_the_region_crashes_or_hangs_an_operation)
{
    struct test_random random = {test_seed() + 4};
    some_messages();
    const uint32_t spare = fixture_add(4, 0, true);
    fixture_do(OP_REMOVE, spare);
    const struct mqx_area *messages = &fixture.region.header->area[MQX_AREA_MESSAGES];
    const struct mqx_area *arena = &fixture.region.header->area[MQX_AREA_ARENA];
    memcpy(fixture.image[0] + messages->offset, fixture.region.base + messages->offset,
           messages->capacity);
    memcpy(fixture.image[0] + arena->offset, fixture.region.base + arena->offset, arena->capacity);
    const struct mqx_object whole = *fixture.queue[0];
    unsigned char *root = (unsigned char *)root_of(6);
    for (int i = 0; i < 20000; i++) {
        unsigned char *base = fixture.region.base;
        for (uint64_t n = 1 + test_below(&random, 8); n > 0; n--) {
            spoil(&random, (unsigned char *)fixture.queue[0]->level, sizeof whole.level);
            spoil(&random, root, sizeof(struct mqx_radix));
            spoil(&random, base + arena->offset, arena->used * MQX_CELL);
            spoil(&random, base + messages->offset, messages->used * sizeof(struct mqx_message));
            *fixture.queue[0] = n % 2 == 0 ? whole : *fixture.queue[0];
        }
        use_damaged(&random, spare);
        *fixture.queue[0] = whole;
        if (i % 50 == 0) {
            memcpy(base + messages->offset, fixture.image[0] + messages->offset,
                   messages->capacity);
            memcpy(base + arena->offset, fixture.image[0] + arena->offset, arena->capacity);
        }
    }
}

TEST(what_is_only_prefetched_may_be_damaged_without_a_word_of_it)
{
    struct mqx_object *queue = fixture.queue[0];
    some_messages();
    const struct mqx_level *level = &queue->level[31u - (uint32_t)__builtin_clz(
                                        queue->available_mask)];
    CHECK(level->height > 1);
    const uint32_t first = mqx_priority_index_first(&fixture.region, queue);
    struct mqx_radix *leaf = root_of((uint32_t)(level - queue->level));
    for (uint32_t height = level->height; height > 1; height--) {
        leaf = mqx_cells(&fixture.region, leaf->child[__builtin_ctzll(leaf->available)]);
    }
    CHECK_INT(leaf->child[__builtin_ctzll(leaf->available)], first);
    const uint64_t second = leaf->available & (leaf->available - 1);
    const uint64_t third = second & (second - 1);
    struct mqx_message *next = fixture_message(leaf->child[__builtin_ctzll(second)]);
    const uint32_t cells = next->cells, slot = leaf->child[__builtin_ctzll(third)];
    CHECK(third != 0);
    for (int i = 0; i < 3; i++) {
        next->cells = i == 0 ? UINT32_MAX : cells;
        leaf->child[__builtin_ctzll(third)] = i == 1 ? UINT32_MAX : slot;
        CHECK_INT(mqx_priority_index_first_of_many(&fixture.region, queue), first);
        CHECK(!mqx_region_damaged());
    }
}

TEST(damage_is_remembered_until_it_is_asked_for)
{
    some_messages();
    CHECK(!mqx_region_damaged());
    root_of(6)->child[__builtin_ctzll(root_of(6)->available)] = UINT32_MAX;
    CHECK_INT(mqx_priority_index_first(&fixture.region, fixture.queue[0]), 0);
    CHECK(mqx_region_damaged());
    CHECK(!mqx_region_damaged());
}

TEST(the_fixture_is_cleared_away)
{
    fixture_end();
    CHECK(fixture.files == NULL);
}

TEST_MAIN()
