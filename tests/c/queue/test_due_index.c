/* Claims of due_index.h: order by time, finding by MsgId, and what the check finds. */
#include "fixtures/due_fixture.h"

enum { MODEL = 400, STEPS = 6000 };
static struct { uint64_t due; bool there; } model[MODEL];

static uint64_t random_below(uint64_t *state, uint64_t bound)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % bound;
}

/* Which messages are due, in the order of their puts: as the queue has them. */
static void compare(struct queue q, uint64_t now, const uint64_t *order, uint32_t puts)
{
    for (uint32_t i = 0; i < puts; i++) {
        const uint64_t k = order[i];
        if (model[k].there && model[k].due <= now) {
            CHECK_STR(TAKE(q, .match = MQE_MATCH_MSG_ID, .msg = k + 1), "x");
            model[k].there = false;
        }
    }
    CHECK_STR(TAKE(q), "(2033)");
}

/* How due times are drawn, and after which step messages are cancelled, too. */
struct habits {
    uint64_t seed;
    uint64_t least;  /* delay, in steps of time */
    uint64_t spread; /* different delays from there on */
    int cancels_from;
};

static void run_model(const struct habits *habits)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    static uint64_t order[STEPS];
    uint64_t state = habits->seed, now = 0;
    uint32_t puts = 0;
    memset(model, 0, sizeof model);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t k = random_below(&state, MODEL);
        const uint64_t what = random_below(&state, 20);
        if (what < 12 && !model[k].there) { /* few different times: many messages share one */
            const uint64_t later = habits->least + random_below(&state, habits->spread);
            CHECK_INT(PUT(q, .text = "x", .msg = k + 1, .delay_us = later * LONG), 0);
            model[k].there = true;
            model[k].due = now + later;
            order[puts++] = k;
        } else if (what < 18 && step >= habits->cancels_from) {
            CHECK_INT(cancel(q, k + 1), model[k].there && model[k].due > now);
            model[k].there = model[k].there && model[k].due <= now;
        } else if (what >= 18) {
            now += 1;
            pass(LONG);
            compare(q, now, order, puts);
        }
        if (step % 64 == 0) {
            CHECK_INT(mqe_check(engine.manager), 0);
        }
    }
    CHECK_INT(mqe_check(engine.manager), 0);
    CHECK_INT(object(q)->due_ids,
              habits->cancels_from < STEPS ? MQX_DUE_IDS_ALL : MQX_DUE_IDS_NONE);
}

TEST(random_puts_cancels_and_passing_time_agree_with_a_model_at_every_depth)
{
    run_model(&(struct habits){.seed = 7, .least = 1, .spread = 30});
}

TEST(so_they_do_with_one_delay_for_all)
{
    run_model(&(struct habits){.seed = 8, .least = 30, .spread = 1});
    run_model(&(struct habits){.seed = 9, .least = 6, .spread = 3});
}

TEST(so_they_do_with_the_first_cancel_among_many_messages_or_none)
{
    run_model(&(struct habits){.seed = 10, .least = 1, .spread = 30, .cancels_from = STEPS / 2});
    run_model(&(struct habits){.seed = 11, .least = 30, .spread = 2, .cancels_from = STEPS / 3});
    run_model(&(struct habits){.seed = 12, .least = 1, .spread = 9, .cancels_from = STEPS});
}

/* One lock hold of a cancel that has to make the tree by MsgId; true: it is complete. */
static bool make_ids(struct queue q, struct mqx_cursor *cursor)
{
    struct mqx_stripe_guard guard;
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    const bool done = mqx_due_index_make_ids(&guard, object(q), cursor);
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(mqe_check(engine.manager), 0);
    return done;
}

enum { PARTS = 3, WAITING = PARTS * MQX_LOCKED_STEPS_MAX };

static struct queue half_made(struct mqx_cursor *cursor)
{
    struct queue q = QUEUE("Q", 0);
    for (uint64_t i = 1; i <= WAITING; i++) {
        CHECK_INT(PUT(q, .text = "x", .msg = i, .delay_us = LONG), 0);
    }
    CHECK(!make_ids(q, cursor));
    CHECK_INT(object(q)->due_ids, MQX_DUE_IDS_SOME);
    return q;
}

TEST(a_tree_of_ids_of_which_a_part_was_made_is_finished_by_the_next_cancel)
{
    engine_begin();
    struct mqx_cursor cursor = {0};
    struct queue q = half_made(&cursor);
    for (uint64_t i = 1; i <= WAITING; i++) {
        CHECK(cancel(q, i));
    }
    CHECK_INT(mqe_check(engine.manager), 0);
    CHECK_INT(object(q)->delayed, 0);
}

TEST(a_message_that_is_put_where_the_making_of_the_tree_has_passed_is_in_it)
{
    engine_begin();
    struct mqx_cursor cursor = {0};
    struct queue q = half_made(&cursor);
    CHECK_INT(PUT(q, .text = "x", .msg = 1000, .priority = 9, .delay_us = LONG), 0);
    for (int i = 0; i <= PARTS && !make_ids(q, &cursor); i++) {
    }
    CHECK_INT(object(q)->due_ids, MQX_DUE_IDS_ALL);
    CHECK(cancel(q, 1000));
}

/* Restores what `change` makes of a field after mqe_check() has refused it. */
#define FOUND(field, value)                                                                        \
    do {                                                                                           \
        const __typeof__(field) before = (field);                                                  \
        (field) = (value);                                                                         \
        CHECK_INT(mqe_check(engine.manager), MQRC_OBJECT_DAMAGED);                                 \
        (field) = before;                                                                          \
        CHECK_INT(mqe_check(engine.manager), 0);                                                   \
    } while (0)

TEST(the_check_finds_what_contradicts_the_invariants)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (uint64_t i = 0; i < 40; i++) {
        CHECK_INT(PUT(q, .text = "x", .msg = i + 1, .delay_us = (i % 7 + 1) * LONG), 0);
    }
    struct mqx_object *queue = object(q);
    struct mqx_message *root = mqx_message(engine_region(), queue->due_root[0]);
    FOUND(root->flags, root->flags | MQX_MSGF_DUE_ID);
    CHECK(!cancel(q, 1000)); /* makes the tree by MsgId */
    FOUND(queue->due_finger, queue->due_finger + 1);
    FOUND(queue->due_finger, queue->due_finger + (UINT64_C(1) << 32));
    FOUND(queue->due_ids, MQX_DUE_IDS_NONE);
    FOUND(queue->due_ids, 3);
    FOUND(queue->delayed, queue->delayed - 1);
    FOUND(queue->next_due_us, queue->next_due_us + 1);
    FOUND(queue->due_root[0], root->due.child[0][0] + root->due.child[0][1]);
    FOUND(queue->due_root[1], 0);
    FOUND(root->due.key_us, 1);
    FOUND(root->state, MQX_MSG_AVAILABLE);
    FOUND(root->flags, 0);
    FOUND(root->due.child[1][0], queue->due_root[1]);
}

TEST_MAIN()
