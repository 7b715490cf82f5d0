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

TEST(random_puts_cancels_and_passing_time_agree_with_a_model_at_every_depth)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    static uint64_t order[STEPS];
    uint64_t state = 7, now = 0;
    uint32_t puts = 0;
    memset(model, 0, sizeof model);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t k = random_below(&state, MODEL);
        const uint64_t what = random_below(&state, 20);
        if (what < 12 && !model[k].there) { /* few different times: many messages share one */
            const uint64_t later = 1 + random_below(&state, 30);
            CHECK_INT(PUT(q, .text = "x", .msg = k + 1, .delay_us = later * LONG), 0);
            model[k].there = true;
            model[k].due = now + later;
            order[puts++] = k;
        } else if (what < 18) {
            CHECK_INT(cancel(q, k + 1), model[k].there && model[k].due > now);
            model[k].there = model[k].there && model[k].due <= now;
        } else {
            now += 1;
            pass(LONG);
            compare(q, now, order, puts);
        }
        if (step % 64 == 0) {
            CHECK_INT(mqe_check(engine.manager), 0);
        }
    }
    CHECK_INT(mqe_check(engine.manager), 0);
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
