/*
 * test_id_index.c - proves id_index.h against a plain list of messages that is searched from its
 * start.
 */
#include "fixtures/priority_index_fixture.h"

#include "base/error.h"

/* ---- the model: messages in the order of their puts ---- */

enum { MODEL_MAX = 4096 };
struct model_message {
    struct op put;
    bool available;
};
static struct model_message model[MODEL_MAX];
static uint32_t model_count;

static void begin(void)
{
    fixture_begin();
    model_count = 0;
}

/* The model's answer to mqx_id_index_find() for the queue: `nth` match in delivery order. */
static uint32_t model_find(uint32_t queue, int k, uint64_t tag, uint32_t nth)
{
    for (int p = MQX_MAX_PRIORITY; p >= 0; p--) {
        for (uint32_t i = 0; i < model_count; i++) {
            const struct op *put = &model[i].put;
            if (put->queue == queue && put->placement == (uint32_t)p && put->tag[k] == tag &&
                model[i].available && nth-- == 0) {
                return put->slot;
            }
        }
    }
    return 0;
}

static struct mqx_id_index *head_of(uint32_t queue, int k)
{
    return mqx_cells_span(&fixture.region, fixture.queue[queue]->index[k],
                          sizeof(struct mqx_id_index));
}

/* ---- building and dropping ---- */

static bool build_some(uint32_t queue, int k)
{
    bool done = false;
    int status = mqx_id_index_build(&fixture.guard, fixture.queue[queue], k, &done);
    while (status == MQX_NEED_CELLS) {
        CHECK_INT(mqx_stripe_guard_supply(&fixture.guard), 0);
        status = mqx_id_index_build(&fixture.guard, fixture.queue[queue], k, &done);
    }
    CHECK_INT(status, 0);
    CHECK_INT(done, mqx_id_index_ready(&fixture.region, fixture.queue[queue], k));
    return done;
}

static void build(uint32_t queue, int k)
{
    while (!build_some(queue, k)) {
    }
}

static uint32_t find(int k, uint64_t tag, uint32_t after)
{
    return mqx_id_index_find(&fixture.region, fixture.queue[0], k, tag, after);
}

static void check_indexes(uint32_t queue)
{
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        const int status = mqx_id_index_check(&fixture.region, fixture.queue[queue], k);
        if (status != MQX_OK) {
            printf("\n    %s", mqx_error_text());
        }
        CHECK_INT(status, 0);
    }
    CHECK(!mqx_region_damaged());
}

/* Every match of one tag, one after the other. */
static void check_find(uint32_t queue, int k, uint64_t tag)
{
    uint32_t slot = 0;
    for (uint32_t nth = 0; nth == 0 || slot != 0; nth++) {
        slot = mqx_id_index_find(&fixture.region, fixture.queue[queue], k, tag, slot);
        CHECK_INT(slot, model_find(queue, k, tag, nth));
    }
}

/* ---- random operations ---- */

/* Tags: of index 0 all different, of 1 a handful and none, of 2 about 100 with equal low bits. */
static void some_tags(struct test_random *random, uint64_t tag[MQX_INDEX_COUNT])
{
    tag[0] = test_next(random) | 1;
    tag[1] = test_below(random, 6);
    tag[2] = (1 + test_below(random, 100)) << 32;
}

static struct op some_op(struct test_random *random, uint32_t target, uint32_t *out_index)
{
    struct op op = {.kind = OP_PUT,
                    .queue = (uint32_t)test_below(random, FIXTURE_QUEUES),
                    .placement = (uint32_t)test_below(random, 3) * 4,
                    .available = test_below(random, 3) != 0};
    const uint64_t what = test_below(random, 9);
    some_tags(random, op.tag);
    if (model_count == 0 || what < (model_count < target ? 4 : 2)) {
        return op;
    }
    *out_index = (uint32_t)test_below(random, model_count);
    const struct model_message *message = &model[*out_index];
    op.queue = message->put.queue;
    op.slot = message->put.slot;
    op.kind = what < 5 ? OP_REMOVE : message->available ? OP_HIDE : OP_SHOW;
    return op;
}

static void step(struct test_random *random, uint32_t target, bool aborted)
{
    uint32_t i = 0;
    struct op op = some_op(random, target, &i);
    CHECK_INT(aborted ? fixture_run_aborted(&op) : fixture_run(&op), 0);
    const uint32_t index_stores = op.kind == OP_PUT ? 7 + 9 : op.kind == OP_SHOW ? 9 : 4;
    CHECK(fixture.stores <= 16 + 2 * 3 + 3 * index_stores);
    if (op.kind == OP_PUT) {
        CHECK(model_count < MODEL_MAX);
        model[model_count++] = (struct model_message){op, op.available};
    } else if (op.kind == OP_REMOVE) {
        model_count -= 1;
        memmove(&model[i], &model[i + 1], (model_count - i) * sizeof model[0]);
    } else {
        model[i].available = op.kind == OP_SHOW;
    }
    check_indexes(op.queue);
}

static void check_model(struct test_random *random)
{
    for (uint32_t q = 0; q < FIXTURE_QUEUES; q++) {
        for (int k = 0; k < MQX_INDEX_COUNT; k++) {
            const struct op *some = &model[test_below(random, model_count)].put;
            if (mqx_id_index_ready(&fixture.region, fixture.queue[q], k) && some->tag[k] != 0) {
                check_find(q, k, some->tag[k]);
                CHECK_INT(mqx_id_index_find(&fixture.region, fixture.queue[q], k, ~0ull, 0), 0);
            }
        }
    }
}

TEST_SERIAL(after_each_of_12000_random_operations_invariants_hold_and_finds_agree_with_the_model)
{
    struct test_random random = {test_seed()};
    begin();
    for (int i = 0; i < 12000; i++) {
        step(&random, i / 2000 % 2 == 0 ? 500 : 20, false);
        if (i >= 400 && i % 7 == 0) { /* indexes are built while messages come and go */
            (void)build_some((uint32_t)i % 2, i / 1000 % 3);
        }
        if (model_count > 0) {
            check_model(&random);
        }
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        CHECK(mqx_id_index_ready(&fixture.region, fixture.queue[0], k));
        CHECK(mqx_id_index_ready(&fixture.region, fixture.queue[1], k));
    }
}

TEST_SERIAL(an_operation_aborted_before_any_undo_entry_leaves_the_region_as_it_was)
{
    struct test_random random = {test_seed() + 1};
    begin();
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        build(0, k);
        build(1, k);
    }
    for (int i = 0; i < 1000; i++) { /* so many that buckets are split */
        step(&random, 800, i >= 500);
    }
    CHECK(head_of(0, 0)->bucket_count > MQX_ID_INDEX_BUCKETS);
    for (int i = 0; i < 300; i++) {
        step(&random, 10, true);
    }
    check_model(&random);
}

TEST(building_in_steps_meets_every_message_however_the_queue_changes_between_the_steps)
{
    struct test_random random = {test_seed() + 2};
    for (int round = 0; round < 30; round++) {
        begin();
        for (int i = 0; i < 1500; i++) {
            step(&random, 2000, false);
        }
        for (int i = 0; !build_some(0, round % 3); i++) {
            CHECK(i < 100);
            for (int n = 0; n < 20; n++) {
                step(&random, 2000, false);
            }
        }
        check_indexes(0);
        for (uint64_t tag = 1; tag < 6; tag++) {
            check_find(0, round % 3, round % 3 == 2 ? tag << 32 : tag);
        }
    }
}

TEST(a_level_that_empties_and_fills_again_under_the_builder_is_indexed_whole)
{
    begin();
    uint32_t slots[200];
    for (int i = 0; i < 200; i++) {
        slots[i] = fixture_add(5, 7, true);
    }
    CHECK(!build_some(0, 1));
    for (int i = 0; i < 200; i++) {
        fixture_do(OP_REMOVE, slots[i]);
    }
    for (int i = 0; i < 200; i++) {
        slots[i] = fixture_add(5, 7, i % 2 == 0);
        if (i == 100) {
            (void)build_some(0, 1);
        }
    }
    for (int i = 1; i < 200; i += 2) {
        fixture_do(OP_SHOW, slots[i]);
    }
    build(0, 1);
    check_indexes(0);
    for (uint32_t i = 0, slot = 0; i < 200; i++) {
        slot = find(1, 7, slot);
        CHECK_INT(slot, slots[i]);
    }
}

TEST(an_index_built_over_hidden_messages_has_room_for_them_when_they_are_shown)
{
    enum { COUNT = 3000 };
    uint32_t slots[COUNT];
    begin();
    for (uint32_t i = 0; i < COUNT; i++) {
        slots[i] = fixture_add(5, i + 1, false);
    }
    build(0, 1);
    for (uint32_t i = 0; i < COUNT; i++) {
        fixture_do(OP_SHOW, slots[i]);
    }
    CHECK_INT(head_of(0, 1)->bucket_count, COUNT);
    check_indexes(0);
}

/* ---- edges ---- */

TEST(a_message_without_a_tag_is_neither_linked_nor_found)
{
    begin();
    build(0, 1);
    const uint32_t slot = fixture_add(5, 0, true);
    CHECK_INT(head_of(0, 1)->linked, 0);
    CHECK_INT(find(1, 0, 0), 0);
    CHECK_INT(fixture_message(slot)->flags & MQX_MSGF_KEY << 1, 0);
    check_indexes(0);
}

TEST(without_an_index_there_is_nothing_to_find_link_or_reserve)
{
    begin();
    const uint32_t slot = fixture_add(5, 9, true);
    CHECK(!mqx_id_index_ready(&fixture.region, fixture.queue[0], 1));
    CHECK_INT(find(1, 9, 0), 0);
    mqx_id_index_link(&fixture.guard, fixture.queue[0], slot);
    mqx_id_index_unlink(&fixture.guard, fixture.queue[0], slot);
    CHECK_INT(mqx_id_index_reserve(&fixture.guard, fixture.queue[0]), 0);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
}

TEST(linking_twice_and_unlinking_twice_does_nothing)
{
    begin();
    build(0, 0);
    const uint32_t slot = fixture_add(5, 9, true);
    mqx_id_index_link(&fixture.guard, fixture.queue[0], slot);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
    mqx_id_index_unlink(&fixture.guard, fixture.queue[0], slot);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 3);
    mqx_stripe_guard_commit(&fixture.guard);
    mqx_id_index_unlink(&fixture.guard, fixture.queue[0], slot);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
    check_find(0, 0, 9);
}

TEST(matches_come_by_priority_then_arrival_and_other_keys_between_them_are_passed_over)
{
    uint32_t low[3], high[3];
    begin();
    build(0, 1);
    for (int i = 0; i < 3; i++) {
        low[i] = fixture_add(0, 11, true);
        fixture_add(5, 12, true);
        high[i] = fixture_add(9, 11, true);
    }
    for (uint32_t i = 0, slot = 0; i < 7; i++) {
        slot = find(1, 11, slot);
        CHECK_INT(slot, i < 3 ? high[i] : i < 6 ? low[i - 3] : 0);
    }
}

TEST(one_tag_at_ten_priorities_spreads_over_the_buckets)
{
    begin();
    build(0, 1);
    for (uint32_t p = 0; p < MQX_PRIORITY_COUNT; p++) {
        fixture_add(p, 0x1234, true);
    }
    const uint32_t *bucket = mqx_cells(&fixture.region, head_of(0, 1)->segment[0]);
    uint32_t used = 0;
    for (int i = 0; i < MQX_ID_INDEX_BUCKETS; i++) {
        used += bucket[i] != 0;
    }
    CHECK_INT(head_of(0, 1)->leaders, 10);
    CHECK(used >= 7);
}

/* ---- a million ---- */

enum { MILLION = 1000000 };
static uint32_t many[MILLION + 1];

static void put_million(bool same)
{
    begin();
    for (uint32_t i = 0; i < MILLION; i++) {
        many[i] = fixture_add(4, same ? 77 : i + 1, true);
    }
}

TEST_SERIAL(a_million_messages_of_one_key_are_found_linked_and_unlinked_without_a_walk)
{
    put_million(true);
    build(0, 1);
    CHECK_INT(head_of(0, 1)->leaders, 1);
    CHECK_INT(head_of(0, 1)->linked, MILLION);
    for (int i = 0; i < 200000; i++) { /* what walks does not end here */
        CHECK_INT(find(1, 77, 0), many[0]);
        fixture_do(OP_HIDE, many[0]);
        CHECK_INT(find(1, 77, 0), many[1]);
        fixture_do(OP_SHOW, many[0]);
        fixture_do(OP_HIDE, many[MILLION / 2]);
        fixture_do(OP_SHOW, many[MILLION / 2]);
        fixture_do(OP_REMOVE, fixture_add(4, 77, true));
    }
    check_indexes(0);
    for (int i = 0; i < MILLION; i++) {
        CHECK_INT(find(1, 77, 0), many[i]);
        fixture_do(OP_REMOVE, many[i]);
    }
    check_indexes(0);
    CHECK_INT(head_of(0, 1)->linked, 0);
}

/* The longest chain. */
static uint32_t chain_max(int k)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; i < MILLION; i++) {
        uint32_t length = 0;
        const struct mqx_message *message = fixture_message(many[i]);
        for (; message != NULL; message = fixture_message(message->key[k].chain)) {
            length += 1;
        }
        longest = length > longest ? length : longest;
    }
    return longest;
}

TEST_SERIAL(a_million_keys_are_found_at_once_in_chains_of_at_most_16)
{
    put_million(false);
    build(0, 1);
    const struct mqx_id_index *head = head_of(0, 1);
    CHECK_INT(head->leaders, MILLION);
    CHECK_INT(head->bucket_count, MILLION);
    CHECK(head->directory != 0);
    CHECK(chain_max(1) <= 16);
    check_indexes(0);
    for (uint32_t i = 0; i < MILLION; i++) {
        CHECK_INT(find(1, i + 1, 0), many[i]);
        CHECK_INT(find(1, i + 1, many[i]), 0);
    }
    for (uint32_t i = 0; i < MILLION; i++) {
        const uint32_t at = (uint32_t)(i * 7919ull % MILLION);
        fixture_do(i % 2 == 0 ? OP_REMOVE : OP_HIDE, many[at]);
        CHECK_INT(find(1, at + 1, 0), 0);
    }
    check_indexes(0);
}

TEST(puts_and_commits_make_an_index_grow_as_building_does)
{
    begin();
    build(0, 1);
    for (uint32_t i = 0; i < MILLION; i++) { /* half of them hidden, as those of open units */
        many[i] = fixture_add(4, i + 1, i % 2 == 0);
        const struct mqx_id_index *head = head_of(0, 1);
        CHECK(head->capacity >= i + 1);
        CHECK_INT(head->bucket_count, head->leaders < 64 ? 64 : head->leaders);
    }
    check_indexes(0);
    for (uint32_t i = 1; i < MILLION; i += 2) {
        fixture_do(OP_SHOW, many[i]);
        CHECK(fixture.stores <= 1 + 4 + 1 + 9);
    }
    CHECK_INT(head_of(0, 1)->bucket_count, MILLION);
    check_indexes(0);
}

TEST(a_message_shown_anew_is_linked_within_the_bound_whatever_the_order_of_a_backout)
{
    enum { GOT = 10000 };
    struct test_random random = {test_seed() + 3};
    for (uint32_t keys = 1; keys <= 1000; keys *= 10) {
        begin();
        build(0, 1);
        for (uint32_t i = 0; i < 200000; i++) {
            many[i] = fixture_add(4, 1 + i % keys, true);
        }
        for (int way = 0; way < 3; way++) { /* oldest first, newest first, any order */
            uint32_t order[GOT];
            for (uint32_t i = 0; i < GOT; i++) {
                order[i] = many[5000 + (way == 1 ? GOT - 1 - i : i)];
                fixture_do(OP_HIDE, many[5000 + i]);
            }
            for (uint32_t i = GOT - 1; way == 2 && i > 0; i--) {
                const uint32_t j = (uint32_t)test_below(&random, i + 1), swap = order[i];
                order[i] = order[j];
                order[j] = swap;
            }
            for (uint32_t i = 0; i < GOT; i++) {
                fixture_do(OP_SHOW, order[i]);
            }
            check_indexes(0);
        }
    }
}

TEST(a_dropped_index_gives_all_its_memory_back)
{
    bool done = false;
    put_million(false);
    build(0, 1);
    const uint64_t used = fixture.region.header->area[MQX_AREA_ARENA].used;
    for (int i = 0; !done; i++) {
        CHECK(i < 100);
        mqx_id_index_drop(&fixture.guard, fixture.queue[0], 1, &done);
        CHECK(!mqx_id_index_ready(&fixture.region, fixture.queue[0], 1));
        CHECK_INT(find(1, 1, 0), 0);
    }
    CHECK_INT(fixture.queue[0]->index[1], 0);
    for (uint32_t i = 0; i < MILLION; i++) { /* so that they are not taken for linked ones */
        fixture_message(many[i])->flags = 0;
    }
    build(0, 1);
    CHECK_INT(fixture.region.header->area[MQX_AREA_ARENA].used, used);
    check_indexes(0);
}

TEST(an_index_that_is_being_dropped_refuses_to_be_built)
{
    bool done = false;
    put_million(false);
    build(0, 1);
    mqx_id_index_drop(&fixture.guard, fixture.queue[0], 1, &done);
    CHECK(!done);
    CHECK_INT(mqx_id_index_build(&fixture.guard, fixture.queue[0], 1, &done), MQRC_Q_DELETED);
    CHECK_INT(fixture.guard.stripe->lock.undo_count, 0);
    fixture_do(OP_REMOVE, many[0]);
}

/* ---- damage ---- */

static void some_messages(void)
{
    begin();
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        build(0, k);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        struct op op = {.kind = OP_PUT, .placement = 4 + i % 2, .available = i % 5 != 0,
                        .tag = {i + 1, 1 + i % 10, 1 + i % 500}};
        CHECK_INT(fixture_run(&op), 0);
        many[i] = op.slot;
    }
}

TEST(the_check_finds_each_broken_invariant)
{
    some_messages();
    struct mqx_message *first = fixture_message(find(1, 3, 0));
    struct mqx_message *second = fixture_message(first->key[1].next);
    struct mqx_message *third = fixture_message(second->key[1].next);
    struct mqx_id_index *head = head_of(0, 1);
    const struct {
        void *at;
        uint32_t size;
        uint64_t flip;
    } faults[] = {
        {&first->tag[1], 8, 1}, {&second->tag[1], 8, 1}, {&first->key[1].next, 4, 1},
        {&second->key[1].prev, 4, 1}, {&first->key[1].chain, 4, 1u << 31},
        {&second->key[1].chain, 4, 1}, {&second->flags, 1, MQX_MSGF_KEY << 1},
        {&second->state, 1, 1}, {&second->object, 4, 3}, {&third->position, 8, 1ull << 32},
        {&head->leaders, 4, 1}, {&head->linked, 4, 1}, {&head->bucket_count, 4, 64 | 32},
        {&head->bucket_count, 4, 64 | 128}, {&head->capacity, 4, 1}, {&head->capacity, 4, 64 | 256},
        {&head->state, 4, 4},
        {&head->segment[0], 4, 1u << 30}, {&second->placement, 1, 1},
    };
    check_indexes(0);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(faults); i++) {
        uint64_t value = 0;
        memcpy(&value, faults[i].at, faults[i].size);
        value ^= faults[i].flip;
        memcpy(faults[i].at, &value, faults[i].size);
        if (!test_expect(mqx_id_index_check(&fixture.region, fixture.queue[0], 1) ==
                             MQRC_OBJECT_DAMAGED,
                         __FILE__, __LINE__, "fault found")) {
            printf(" (fault %zu)", i);
        }
        value ^= faults[i].flip;
        memcpy(faults[i].at, &value, faults[i].size);
    }
    (void)mqx_region_damaged();
    check_indexes(0);
}

/* Every function, on whatever is there; all micro-transactions are undone. */
static void use_damaged(struct test_random *random)
{
    struct mqx_object *queue = fixture.queue[0];
    const uint32_t slot = many[test_below(random, 2000)];
    const int k = (int)test_below(random, MQX_INDEX_COUNT);
    uint32_t after = 0;
    for (int i = 0; i < 5; i++) {
        after = find(k, 1 + test_below(random, 20), after);
    }
    mqx_id_index_unlink(&fixture.guard, queue, slot);
    mqx_stripe_guard_rollback(&fixture.guard);
    fixture_message(slot)->flags = 0;
    mqx_id_index_link(&fixture.guard, queue, slot);
    mqx_stripe_guard_rollback(&fixture.guard);
    const int status = mqx_id_index_reserve(&fixture.guard, queue);
    CHECK(status == MQX_OK || status == MQX_NEED_CELLS || status == MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_stripe_guard_rollback(&fixture.guard);
    const int verdict = mqx_id_index_check(&fixture.region, queue, k);
    CHECK(verdict == MQX_OK || verdict == MQRC_OBJECT_DAMAGED);
    (void)mqx_region_damaged();
}

/* Garbage of the kinds that matter: near misses, far misses, random, another message. */
static void spoil(struct test_random *random, void *at, uint64_t size)
{
    unsigned char *byte = (unsigned char *)at + test_below(random, size);
    uint32_t *word = (uint32_t *)at + test_below(random, size / sizeof *word);
    switch (test_below(random, 5)) {
    case 0: *byte ^= (unsigned char)(1u << test_below(random, 8)); break;
    case 1: *byte = 0; break;
    case 2: *byte = 0xff; break;
    case 3: *word = many[test_below(random, 2000)]; break;
    default: *byte = (unsigned char)test_next(random); break;
    }
}

TEST(no_damage_in_the_region_crashes_or_hangs_an_operation)
{
    struct test_random random = {test_seed() + 4};
    some_messages();
    const struct mqx_area *areas = fixture.region.header->area;
    const struct mqx_area *messages = &areas[MQX_AREA_MESSAGES], *arena = &areas[MQX_AREA_ARENA];
    unsigned char *base = fixture.region.base;
    memcpy(fixture.image[0] + messages->offset, base + messages->offset, messages->capacity);
    memcpy(fixture.image[0] + arena->offset, base + arena->offset, arena->capacity);
    const struct mqx_object whole = *fixture.queue[0];
    struct mqx_id_index *head[MQX_INDEX_COUNT] = {head_of(0, 0), head_of(0, 1), head_of(0, 2)};
    for (int i = 0; i < 20000; i++) {
        for (uint64_t n = 1 + test_below(&random, 4); n > 0; n--) {
            spoil(&random, head[test_below(&random, 3)], sizeof *head[0]);
            spoil(&random, base + arena->offset, arena->used * MQX_CELL);
            spoil(&random, base + messages->offset, messages->used * sizeof(struct mqx_message));
            spoil(&random, fixture_message(many[test_below(&random, 2000)]),
                  sizeof(struct mqx_message));
        }
        if (i % 100 == 0) {
            spoil(&random, fixture.queue[0]->index, sizeof whole.index);
        }
        use_damaged(&random);
        if (i % 16 == 0) {
            bool done;
            mqx_id_index_drop(&fixture.guard, fixture.queue[0], (int)test_below(&random, 3), &done);
            memcpy(base + messages->offset, fixture.image[0] + messages->offset,
                   messages->capacity);
            memcpy(base + arena->offset, fixture.image[0] + arena->offset, arena->capacity);
            *fixture.queue[0] = whole;
        }
    }
}

TEST(the_fixture_is_cleared_away)
{
    fixture_end();
    CHECK(fixture.files == NULL);
}

TEST_MAIN()
