/*
 * test_replay_sweep.c - proves what replay_sweep.c says: a message that is gone leaves no entry,
 * and the outcome of a replay is that of a replay without sweeps.
 *
 * Records are handed to a replay without files; a model in this file says what must be present.
 */
#include "fixtures/harness.h"

#include "format/segment.h"
#include "recovery/replay_private.h"

enum {
    QUEUES = 3,          /* slots 1 to 3 */
    MANY = 20000,        /* records of a long tail */
    FEW = 64,            /* entries of a table that thousands went through */
    NUMBERS = 4096,      /* messages of the model */
};

struct tail { /* a replay, and where its next record lies */
    struct mqx_replay replay;
    uint64_t lsn;
    uint32_t generation[QUEUES + 1];
    struct ps_commit unit; /* of the unit that is under way */
    uint64_t unit_id;      /* 0: records stand alone */
};

static unsigned char buffer[1024] MQX_ALIGNED(8);

static void feed(struct tail *tail, uint32_t length)
{
    const struct psj_record *record = (const void *)buffer;
    if (record->unit_id != 0 && mqx_record_type(record) != PS_REC_COMMIT &&
        mqx_record_type(record) != PS_REC_PREPARE) {
        tail->unit.first_lsn = tail->unit.record_count == 0 ? tail->lsn : tail->unit.first_lsn;
        tail->unit.record_count += 1;
        tail->unit.running_crc = mqx_running_crc(tail->unit.running_crc, record);
    }
    CHECK_INT(mqx_replay_record(&tail->replay, tail->lsn, record), 0);
    tail->lsn += length;
}

static struct mqx_record_head head_of(const struct tail *tail, uint16_t type, uint32_t queue,
                                      uint64_t number)
{
    return (struct mqx_record_head){.type = type,
                                    .unit_id = tail->unit_id,
                                    .object = queue,
                                    .object_gen = tail->generation[queue],
                                    .number = number};
}

static void plain(struct tail *tail, uint16_t type, uint32_t queue, uint64_t number)
{
    const struct mqx_record_head head = head_of(tail, type, queue, number);
    feed(tail, mqx_encode_plain(buffer, &head));
}

static uint64_t put_as(struct tail *tail, uint16_t type, uint32_t queue, uint64_t number)
{
    const struct ps_descriptor d = {.priority = 4, .placement = 4, .persistence = 1};
    const struct mqx_record_head head = head_of(tail, type, queue, number);
    const uint64_t lsn = tail->lsn;
    feed(tail, mqx_encode_put(buffer, &head, &d, NULL, NULL, &number, sizeof number));
    return lsn;
}

static void put(struct tail *tail, uint32_t queue, uint64_t number)
{
    (void)put_as(tail, PS_REC_PUT, queue, number);
}

static void define(struct tail *tail, uint32_t queue, uint32_t generation)
{
    static const struct ps_object_name name = {.name_space = 1, .type = 1};
    tail->generation[queue] = generation;
    const struct mqx_record_head head = head_of(tail, PS_REC_OBJECT, queue, 0);
    feed(tail, mqx_encode_object(buffer, &head, &name, NULL, 0));
}

/* A replay of a checkpoint that ends 1 MiB behind its begin LSN, with all queues defined. */
static void begin(struct tail *tail)
{
    *tail = (struct tail){.replay = {.begin_lsn = 8192, .checkpoint_end = 8192 + (1 << 20),
                                     .slot_limit = 100, .units_listed = true, .next_number = 1,
                                     .next_unit_id = 1},
                          .lsn = 8192};
    for (uint32_t queue = 1; queue <= QUEUES; queue++) {
        define(tail, queue, 1);
    }
}

static void end_tail(struct tail *tail)
{
    mqx_replay_free(&tail->replay);
}
#define TAIL(name)                                                                                 \
    __attribute__((cleanup(end_tail))) struct tail name;                                           \
    begin(&name)

static void begin_unit(struct tail *tail, uint64_t id)
{
    tail->unit = (struct ps_commit){0};
    tail->unit_id = id;
}

/* The unit of `parked`, which may have been begun some records ago, is committed. */
static void commit(struct tail *tail, uint64_t id, const struct ps_commit *parked)
{
    const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = id};
    tail->unit_id = 0;
    feed(tail, mqx_encode_commit(buffer, &head, parked));
}

/* As many pairs as every table is swept several times. */
static void churn(struct tail *tail, uint64_t first)
{
    for (uint64_t number = first; number < first + 1000; number++) {
        put(tail, 1, number);
        plain(tail, PS_REC_GET, 1, number);
    }
}

static bool is_present(const struct tail *tail, uint64_t number)
{
    bool found = false;
    for (size_t i = 0; i < tail->replay.put_count; i++) {
        const struct mqx_replay_put *entry = &tail->replay.puts[i];
        const bool counts = entry->state == MQX_PUT_EFFECTIVE && entry->m.number == number &&
                            mqx_replay_is_present(&tail->replay, &entry->m);
        CHECK(!found || !counts); /* once */
        found |= counts;
    }
    return found;
}

TEST(messages_that_came_and_went_leave_no_entries_however_long_the_tail_is)
{
    TAIL(tail);
    for (uint64_t number = 1; number <= MANY; number++) {
        put(&tail, 1, number);
        plain(&tail, number % 2 != 0 ? PS_REC_GET : PS_REC_EXPIRE, 1, number);
    }
    CHECK(tail.replay.put_count <= FEW);
    CHECK(tail.replay.put_capacity <= FEW);
    CHECK(tail.replay.removed.capacity * sizeof *tail.replay.removed.groups < MANY);
    CHECK_INT(tail.replay.next_number, MANY + 1);
}

TEST(entries_follow_the_messages_that_wait_at_one_time)
{
    TAIL(tail);
    enum { DEPTH = 500 };
    for (uint64_t number = 1; number <= MANY; number++) {
        put(&tail, 1, number);
        if (number > DEPTH) {
            plain(&tail, PS_REC_GET, 1, number - DEPTH);
        }
    }
    CHECK(tail.replay.put_count <= 2 * (DEPTH + 1));
    for (uint64_t number = MANY - 2 * DEPTH; number <= MANY; number++) {
        CHECK_INT(is_present(&tail, number), number > MANY - DEPTH);
    }
}

TEST(a_line_of_the_checkpoint_whose_put_and_get_are_in_the_tail_is_not_present)
{
    TAIL(tail);
    struct psc_message line = {.number = 5, .lsn = 0, .object = 1, .object_gen = 1,
                               .placement = 4};
    line.lsn = line.first_lsn = put_as(&tail, PS_REC_PUT, 1, 5);
    CHECK(line.lsn < tail.replay.checkpoint_end);
    plain(&tail, PS_REC_GET, 1, 5);
    CHECK(!is_present(&tail, 5));
    churn(&tail, 10);
    for (size_t i = 0; i < tail.replay.put_count; i++) {
        CHECK(tail.replay.puts[i].m.number != 5); /* its entry was freed */
    }
    CHECK(!mqx_replay_is_present(&tail.replay, &line));
    line.number = 6; /* one that nobody got */
    CHECK(mqx_replay_is_present(&tail.replay, &line));
}

TEST(a_get_that_stands_before_the_put_takes_the_message_away)
{
    TAIL(tail);
    plain(&tail, PS_REC_GET, 1, 5);
    churn(&tail, 10);
    put(&tail, 1, 5);
    CHECK(!is_present(&tail, 5));
    churn(&tail, 2000);
    CHECK(!is_present(&tail, 5));
}

TEST(puts_of_a_unit_under_way_stay_until_it_is_decided)
{
    for (int committed = 0; committed < 2; committed++) {
        TAIL(tail);
        begin_unit(&tail, 7);
        for (uint64_t number = 1; number <= 100; number++) {
            put(&tail, 2, number);
        }
        plain(&tail, PS_REC_GET, 2, 3000); /* of its own: no entry */
        const struct ps_commit parked = tail.unit;
        tail.unit_id = 0;
        put(&tail, 2, 3000);
        churn(&tail, 1000);
        CHECK(!is_present(&tail, 1) && is_present(&tail, 3000));
        if (committed) {
            commit(&tail, 7, &parked);
        } else {
            mqx_replay_end_epoch(&tail.replay);
        }
        for (int i = 0; i < 2; i++) {
            for (uint64_t number = 1; number <= 100; number++) {
                CHECK_INT(is_present(&tail, number), committed);
            }
            CHECK_INT(is_present(&tail, 3000), !committed);
            churn(&tail, 4000 + 1000 * (uint64_t)i);
        }
        CHECK(tail.replay.put_count <= 250); /* 100 at one time */
    }
}

static void prepare(struct tail *tail, uint64_t id)
{
    const struct mqx_record_head head = {.type = PS_REC_PREPARE, .unit_id = id};
    const struct ps_xid xid = {.format_id = 1, .gtrid_length = 1};
    const struct ps_prepared prepared = {.prepared_us = 1};
    tail->unit_id = 0;
    feed(tail, mqx_encode_prepare(buffer, &head, &xid, &prepared, &tail->unit));
}

static void resolve(struct tail *tail, uint16_t type, uint64_t id)
{
    const struct mqx_record_head head = {.type = type};
    feed(tail, mqx_encode_units(buffer, &head, &id, 1));
}

static void take(struct tail *tail, uint64_t number)
{
    const struct ps_descriptor d = {.priority = 4, .placement = 4, .persistence = 0};
    const struct ps_taken taken = {.before = 0};
    const struct mqx_record_head head = head_of(tail, PS_REC_TAKEN, 3, number);
    feed(tail, mqx_encode_taken(buffer, &head, &d, NULL, &taken, NULL, "x", 1));
}

TEST(a_prepared_unit_holds_what_it_put_and_got_whatever_follows)
{
    TAIL(tail);
    put(&tail, 3, 1);
    begin_unit(&tail, 9);
    plain(&tail, PS_REC_GET, 3, 1);
    put(&tail, 3, 2);
    take(&tail, 3);
    prepare(&tail, 9);
    churn(&tail, 10);
    mqx_replay_end_epoch(&tail.replay);
    CHECK_INT(mqx_replay_hold_prepared(&tail.replay), 0);
    CHECK_INT(tail.replay.held_count, 3);
    for (uint64_t number = 1; number <= 3; number++) {
        const struct mqx_replay_held *held = mqx_replay_find_held(&tail.replay, number);
        CHECK(held != NULL && is_present(&tail, number));
        CHECK(number == 1 || tail.replay.puts[held->put].m.number == number);
    }
}

TEST(prepared_units_that_have_an_outcome_leave_nothing)
{
    TAIL(tail);
    for (uint64_t id = 1; id <= 2000; id++) {
        const uint64_t number = 3 * id;
        put(&tail, 3, number);
        begin_unit(&tail, id);
        plain(&tail, PS_REC_GET, 3, number);
        take(&tail, number + 1);
        put(&tail, 3, number + 2);
        prepare(&tail, id);
        if (id != 1000) {
            resolve(&tail, id % 2 != 0 ? PS_REC_COMMIT_PREPARED : PS_REC_BACKOUT_PREPARED, id);
        }
        plain(&tail, PS_REC_GET, 3, id % 2 != 0 ? number + 2 : number);
    }
    CHECK(tail.replay.prepared_by_id.count <= FEW);
    CHECK(tail.replay.put_count <= FEW);
    CHECK_INT(tail.replay.prepared_count, 2);
    resolve(&tail, PS_REC_COMMIT_PREPARED, 1000);
    CHECK(is_present(&tail, 3002) && !is_present(&tail, 3001) && !is_present(&tail, 3000));
}

TEST(moves_of_messages_that_are_gone_go_too_and_those_of_others_keep_their_order)
{
    TAIL(tail);
    struct psc_message m = {.number = 1, .object = 1, .object_gen = 1, .placement = 4};
    uint64_t place[3] = {0};
    m.lsn = m.first_lsn = put_as(&tail, PS_REC_PUT, 1, 1);
    for (int i = 0; i < 3; i++) {
        place[i] = put_as(&tail, PS_REC_MOVED, 1, 1);
        for (uint64_t number = 10; number < 1000; number++) {
            const uint64_t of = number + 1000 * (uint64_t)i;
            put(&tail, 1, of);
            (void)put_as(&tail, PS_REC_MOVED, 1, of);
            plain(&tail, PS_REC_GET, 1, of);
        }
    }
    CHECK(tail.replay.move_count <= FEW);
    CHECK(tail.replay.moved.count <= FEW);
    for (int i = 0; i < 3; i++) {
        m.lsn = m.first_lsn = place[i];
        CHECK(mqx_replay_was_moved_to(&tail.replay, &m));
    }
    struct mqx_replay_put found = {.state = MQX_PUT_FREE};
    for (size_t i = 0; i < tail.replay.put_count; i++) {
        found = tail.replay.puts[i].m.number == 1 ? tail.replay.puts[i] : found;
    }
    CHECK_INT(found.state, MQX_PUT_EFFECTIVE);
    CHECK_INT(mqx_replay_locate(&tail.replay, &found.m), 0);
    CHECK_INT(found.m.lsn, place[2]);
}

TEST(backout_counts_of_messages_that_are_gone_go_too)
{
    TAIL(tail);
    struct psc_message m = {.number = 1};
    for (uint64_t number = 1; number <= MANY; number++) {
        const struct ps_count count = {number, 1, (uint32_t)number % 5 + 1};
        const struct mqx_record_head head = {.type = PS_REC_BACKOUT};
        put(&tail, 1, number);
        feed(&tail, mqx_encode_counts(buffer, &head, &count, NULL, 1));
        if (number % 1000 != 0) {
            plain(&tail, PS_REC_GET, 1, number);
        }
    }
    CHECK(tail.replay.counts.count <= FEW);
    for (m.number = 1000; m.number <= MANY; m.number += 1000) {
        CHECK_INT(mqx_replay_count_of(&tail.replay, &m), m.number % 5 + 1);
    }
}

TEST(messages_of_the_image_stay_to_the_end)
{
    TAIL(tail);
    const struct ps_descriptor d = {.priority = 4, .placement = 4};
    const struct mqx_record_head head = head_of(&tail, PS_REC_PUT, 2, 5);
    const struct mqx_image_position position = {4096, 8192};
    struct mqx_decoded record;
    (void)mqx_encode_put(buffer, &head, &d, NULL, NULL, "x", 1);
    CHECK_INT(mqx_record_parse((const void *)buffer, &record), 0);
    CHECK_INT(mqx_replay_add_image(&tail.replay, &record, &position), 0);
    plain(&tail, PS_REC_OBJECT_DELETE, 2, 0);
    churn(&tail, 10);
    CHECK_INT(tail.replay.puts[0].state, MQX_PUT_EFFECTIVE);
    CHECK_INT(tail.replay.puts[0].image, 1);
    for (size_t i = 1; i < tail.replay.put_count; i++) {
        CHECK_INT(tail.replay.puts[i].image, 0);
    }
}

/* ---- any history ---- */

struct model { /* of message `number`; index 0 is not used */
    bool present[NUMBERS];
    uint32_t queue[NUMBERS];
};

static uint32_t chance(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* One step at random; deleting a queue takes its messages away, clearing those below `next`. */
static void step(struct tail *tail, struct model *model, uint32_t *state, uint64_t *next)
{
    const uint32_t what = chance(state) % 1000, queue = chance(state) % QUEUES + 1;
    if (what < 500) {
        put(tail, queue, *next);
        model->present[*next] = true;
        model->queue[*next] = queue;
        *next += 1;
    } else if (what < 990) {
        const uint64_t number = chance(state) % *next;
        if (number != 0 && model->present[number]) {
            plain(tail, PS_REC_GET, model->queue[number], number);
            model->present[number] = false;
        }
    } else {
        plain(tail, what < 996 ? PS_REC_CLEAR : PS_REC_OBJECT_DELETE, queue, *next);
        if (what >= 996) {
            define(tail, queue, tail->generation[queue] + 1);
        }
        for (uint64_t number = 1; number < *next; number++) {
            model->present[number] &= model->queue[number] != queue;
        }
    }
}

TEST(after_any_history_what_is_present_is_what_a_model_says)
{
    static struct model model;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        TAIL(tail);
        uint32_t state = seed * 7919, *order = NULL;
        uint64_t next = 1;
        size_t count = 0, wanted = 0, seen = 0;
        memset(&model, 0, sizeof model);
        while (next < NUMBERS) {
            step(&tail, &model, &state, &next);
        }
        CHECK_INT(mqx_replay_sort(&tail.replay, &order, &count), 0);
        for (uint64_t number = 1; number < next; number++) {
            wanted += model.present[number];
        }
        for (size_t i = 0; i < count; i++) {
            const struct psc_message *m = &tail.replay.puts[order[i]].m;
            if (mqx_replay_is_present(&tail.replay, m)) {
                CHECK(model.present[m->number]);
                CHECK_INT(m->object, model.queue[m->number]);
                seen += 1;
            }
        }
        CHECK_INT(seen, wanted);
        free(order);
    }
}

TEST_MAIN()
