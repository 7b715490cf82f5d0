/*
 * operations.c - see operations.h.
 */
#include "operations.h"

#include "base/clock.h"
#include "dynamic.h"
#include "unit/long_units.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_US = 1500000, BATCH = 5, SOON_US = 100, LOOKS = 1000, LOOK_US = 10 };
#define HOUR_US UINT64_C(3600000000)

/* ---- accounts ---- */

static void will_put(struct account *a, int queue, uint64_t id)
{
    if (a->puts == ACCOUNT_MAX || id >= ACCOUNT_IDS) {
        fixture_die("room in an account", 0);
    }
    a->put[a->puts].queue = (uint8_t)queue;
    a->put[a->puts].id = id;
    a->puts += 1;
}

static void has_got(struct account *a, int queue, uint64_t id)
{
    if (a->gets == ACCOUNT_MAX || id >= ACCOUNT_IDS) {
        fixture_die("an id in an account", (int)id);
    }
    a->got[a->gets].queue = (uint8_t)queue;
    a->got[a->gets].id = id;
    a->gets += 1;
    a->loose = 0;
}

static void expect(struct account *a, const char *what, int reason)
{
    if (reason != 0 && a->wrong == 0) {
        a->wrong = reason;
        snprintf(a->text, sizeof a->text, "%s: %s %s", what, mqe_reason_name(reason),
                 mqe_error_text());
    }
}

static void expect_or(struct account *a, const char *what, int reason, int allowed)
{
    expect(a, what, reason == allowed ? 0 : reason);
}

static uint64_t first_id(const struct account *a)
{
    return ACCOUNT_FIRST + ACCOUNT_STEP * a->worker;
}

/* ---- single messages ---- */

static void put(mqe_manager *m, const struct crash_fixture *f, struct account *a, int queue,
                uint64_t number, bool persistent, uint64_t length)
{
    will_put(a, queue, first_id(a) + number);
    a->decided = true;
    expect(a, "put", fixture_put(m, NULL, f, queue, first_id(a) + number, persistent, length));
}

static void put_nonpersistent(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    put(m, f, a, 0, 0, false, 100);
}

static void put_persistent(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    put(m, f, a, 0, 0, true, 500);
}

static void put_long_nonpersistent(mqe_manager *m, const struct crash_fixture *f,
                                   struct account *a)
{
    put(m, f, a, 1, 1, false, 150000);
}

static void put_long_persistent(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    put(m, f, a, 1, 1, true, 150000);
}

/* It is due while the other worker is at work: whoever comes by shows it. */
static void put_due_soon(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    will_put(a, 0, first_id(a) + 2);
    a->decided = true;
    expect(a, "put", fixture_put_later(m, NULL, f, 0, first_id(a) + 2, true, 100, SOON_US));
}

static void put_and_cancel(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    unsigned char msg_id[24] = {0};
    const uint64_t id = first_id(a) + 3;
    memcpy(msg_id, &id, sizeof id);
    will_put(a, 1, id);
    a->decided = a->in_pieces = true;
    expect(a, "put", fixture_put_later(m, NULL, f, 1, id, true, 100, HOUR_US));
    const int reason = mqe_cancel_delayed(m, f->slot[1], f->generation[1], msg_id);
    if (reason == 0) {
        has_got(a, 1, id);
    }
    expect_or(a, "cancel", reason, MQRC_NO_MSG_AVAILABLE); /* the queue has been cleared */
}

static void get(mqe_manager *m, const struct crash_fixture *f, struct account *a, int queue,
                uint64_t correl)
{
    uint64_t id = 0;
    a->loose_queue = (uint8_t)queue;
    a->loose = 1;
    a->decided = true;
    const int reason = fixture_get(m, NULL, f, queue, 0, 0, correl, &id);
    if (reason == 0) {
        has_got(a, queue, id);
    }
    a->loose = 0;
    expect_or(a, "get", reason, MQRC_NO_MSG_AVAILABLE);
}

static void get_nonpersistent(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    get(m, f, a, 1, 0);
}

static void get_persistent(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    get(m, f, a, 2, 0);
}

static void get_long_nonpersistent(mqe_manager *m, const struct crash_fixture *f,
                                   struct account *a)
{
    get(m, f, a, 0, 110);
}

/* The memory of the one that is got is used again at once. */
static void replace_long(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    a->in_pieces = true;
    get(m, f, a, 0, 110);
    put(m, f, a, 0, 1, false, 100000);
}

static void get_by_correl(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    get(m, f, a, 1, 202);
}

/* For the first message of the other worker. A wake-up that is lost costs the second of the
 * bound, and the supervisor looks at the time. */
static void await_other(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    uint64_t id = 0;
    const uint64_t wanted = ACCOUNT_FIRST + ACCOUNT_STEP * (1 - a->worker);
    a->loose_queue = 0;
    a->loose = 1;
    a->decided = true;
    const int reason = fixture_get(m, NULL, f, 0, 0, WAIT_US, wanted, &id);
    if (reason == 0) {
        has_got(a, 0, id);
    }
    expect(a, "a get that waits", reason == 0 && id != wanted ? MQRC_UNEXPECTED_ERROR : reason);
}

/* Until a waiter of the channel was picked. A wake-up that is lost ends the looks, which are many
 * more than the switches of a schedule. */
static bool await_pick(mqe_channel *channel)
{
    struct mqe_wait *picked = NULL;
    for (int i = 0; i < LOOKS && mqe_channel_picked(channel, 0, &picked, 1) == 0; i++) {
        mqx_clock_sleep_us(LOOK_US); /* the other worker's turn */
    }
    return picked != NULL;
}

/* The same by a waiter without a thread. */
static void await_other_listed(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    unsigned char buffer[1024];
    const uint64_t wanted = ACCOUNT_FIRST + ACCOUNT_STEP * (1 - a->worker);
    mqe_queue *queue = NULL;
    struct mqe_wait wait = {NULL};
    struct mqe_get get = {.flags = MQE_GET_LISTED, .match = MQE_MATCH_CORREL_ID, .wait = &wait,
                          .buffer = buffer, .capacity = sizeof buffer};
    memcpy(get.correl_id, &wanted, sizeof wanted);
    expect(a, "open", mqe_open_direct(m, f->slot[0], f->generation[0], MQE_INPUT, &queue));
    expect(a, "channel", mqe_channel_new(m, &wait.channel));
    a->loose_queue = 0;
    a->loose = 1;
    a->decided = true;
    int reason = mqe_get(m, NULL, queue, &get);
    while (reason == MQE_LISTED && await_pick(wait.channel)) {
        reason = mqe_get(m, NULL, queue, &get);
    }
    if (reason == 0) {
        has_got(a, 0, wanted);
    }
    expect(a, reason == MQE_LISTED ? "a wake-up was lost" : "a get that is listed", reason);
    mqe_wait_end(&wait);
    mqe_channel_free(wait.channel);
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
}

/* ---- batches ---- */

static void put_batch(mqe_manager *m, const struct crash_fixture *f, struct account *a,
                      bool persistent)
{
    const uint64_t first = first_id(a) + 4;
    for (uint64_t i = 0; i < BATCH; i++) {
        will_put(a, 0, first + i);
    }
    a->in_pieces = !persistent;
    a->decided = true;
    expect(a, "put batch", fixture_put_batch(m, NULL, f, 0, first, BATCH, persistent));
}

static void put_batch_persistent(mqe_manager *m, const struct crash_fixture *f,
                                 struct account *a)
{
    put_batch(m, f, a, true);
}

static void put_batch_nonpersistent(mqe_manager *m, const struct crash_fixture *f,
                                    struct account *a)
{
    put_batch(m, f, a, false);
}

static void get_batch(mqe_manager *m, const struct crash_fixture *f, struct account *a, int queue)
{
    uint64_t ids[FIXTURE_BATCH];
    uint32_t count = 0;
    a->loose_queue = (uint8_t)queue;
    a->loose = BATCH;
    a->decided = true;
    const int reason = fixture_get_many(m, NULL, f, queue, 0, ids, BATCH, &count);
    for (uint32_t i = 0; i < count; i++) {
        has_got(a, queue, ids[i]);
    }
    a->loose = 0;
    expect_or(a, "get batch", reason, MQRC_NO_MSG_AVAILABLE);
}

static void get_batch_mixed(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    get_batch(m, f, a, 0);
}

static void get_batch_nonpersistent(mqe_manager *m, const struct crash_fixture *f,
                                    struct account *a)
{
    get_batch(m, f, a, 1);
}

/* ---- units ---- */

/* The other process backs out the units of this one: it has set this limit before. */
static bool may_be_backed_out(const mqe_manager *m)
{
    return mqx_load_acquire(&m->store.region.header->max_unit_age) != 0;
}

static int allowed_in_unit(const mqe_manager *m, int otherwise, int reason)
{
    return reason == MQRC_BACKED_OUT && may_be_backed_out(m) ? reason : otherwise;
}

static void get_in_unit(mqe_manager *m, mqe_unit *unit, const struct crash_fixture *f,
                        struct account *a, int queue, uint64_t correl)
{
    uint64_t id = 0;
    const int reason = fixture_get(m, unit, f, queue, 0, 0, correl, &id);
    if (reason == 0) {
        has_got(a, queue, id);
    }
    expect_or(a, "get in a unit", reason, allowed_in_unit(m, MQRC_NO_MSG_AVAILABLE, reason));
}

static void put_in_unit(mqe_manager *m, mqe_unit *unit, const struct crash_fixture *f,
                        struct account *a, int queue, uint64_t number, bool persistent,
                        uint64_t length)
{
    will_put(a, queue, first_id(a) + number);
    const int reason =
        fixture_put(m, unit, f, queue, first_id(a) + number, persistent, length);
    expect_or(a, "put in a unit", reason, allowed_in_unit(m, 0, reason));
}

static mqe_unit *fill_unit(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    mqe_unit *unit = NULL;
    expect(a, "unit", mqe_unit_new(m, &unit));
    put_in_unit(m, unit, f, a, 0, 0, true, 300);
    put_in_unit(m, unit, f, a, 1, 1, false, 200);
    put_in_unit(m, unit, f, a, 2, 2, true, 9000);
    get_in_unit(m, unit, f, a, 0, 101);
    get_in_unit(m, unit, f, a, 1, 0);
    put_in_unit(m, unit, f, a, 1, 3, false, 80000);
    return unit;
}

/* `reason`: of what decides the unit, 2003 if it was backed out instead. */
static void end_unit(mqe_manager *m, struct account *a, const char *what, int reason)
{
    expect_or(a, what, reason, allowed_in_unit(m, 0, reason));
    if (reason == MQRC_BACKED_OUT) {
        a->puts = a->gets = 0;
    }
    a->over = true;
}

static void commit_unit(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    mqe_unit *unit = fill_unit(m, f, a);
    a->decided = true;
    end_unit(m, a, "commit", mqe_commit(unit));
    mqe_unit_free(unit);
}

static void back_out_unit(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    mqe_unit *unit = fill_unit(m, f, a);
    expect(a, "backout", mqe_backout(unit));
    a->puts = a->gets = 0;
    mqe_unit_free(unit);
}

/* A trigger message stays, whoever backs the unit out; the message before it does not. */
static void back_out_triggered(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    mqe_unit *unit = NULL;
    expect(a, "unit", mqe_unit_new(m, &unit));
    const int put = fixture_put(m, unit, f, 0, first_id(a), false, 300);
    expect_or(a, "put in a unit", put, allowed_in_unit(m, 0, put));
    a->in_pieces = true;
    a->decided = true;
    will_put(a, 1, first_id(a) + 1);
    const int reason = fixture_put_flagged(m, unit, f, 1, first_id(a) + 1, MQE_PUT_STAYS);
    expect_or(a, "put of what stays", reason, allowed_in_unit(m, 0, reason));
    if (reason != 0) {
        a->puts = 0;
    }
    expect(a, "backout", mqe_backout(unit));
    a->over = true;
    mqe_unit_free(unit);
}

/* The supervisor commits what is prepared. */
static void prepare_unit(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    struct ps_xid xid;
    mqe_unit *unit = fill_unit(m, f, a);
    fixture_xid(20 + a->worker, FIXTURE_COMMITS, &xid);
    a->decided = true;
    end_unit(m, a, "prepare", mqe_prepare(unit, &xid, 0));
    mqe_unit_free(unit);
}

/* Every open unit is too old. */
static void back_out_old_units(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    struct mqx_region *region = &m->store.region;
    struct mqx_long_units units = {.count = 0};
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    (void)f;
    mqx_store_release(&region->header->max_unit_age, 1u);
    for (uint32_t slot = 1; slot < used; slot++) {
        struct mqx_context *unit = mqx_context(region, slot);
        if (unit != NULL && mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE) {
            mqx_store_release(&unit->started_us, UINT64_C(1));
        }
    }
    expect(a, "maintenance lock", mqx_lock_take(region, &region->header->maintenance_lock));
    expect(a, "back-out", mqx_long_units_back_out(&m->store, false, &units));
    mqx_lock_drop(region, &region->header->maintenance_lock);
}

/* It is committed in any case, by the supervisor at the latest. */
static void commit_prepared(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    struct ps_xid xid;
    (void)f;
    fixture_xid(1, FIXTURE_COMMITS, &xid);
    expect_or(a, "commit of a prepared unit", mqe_commit_prepared(m, &xid, 1),
              MQRC_UOW_NOT_AVAILABLE);
}

/* ---- what changes no messages ---- */

static void browse(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    static unsigned char buffer[1 << 20];
    mqe_queue *queue = NULL;
    expect(a, "open", mqe_open_direct(m, f->slot[0], f->generation[0], MQE_BROWSE, &queue));
    for (int i = 0; i < 5; i++) {
        struct mqe_get how = {.flags = MQE_GET_BROWSE_NEXT | (i % 2 != 0 ? MQE_GET_LOCK : 0u),
                              .buffer = buffer, .capacity = sizeof buffer};
        expect_or(a, "browse", mqe_get(m, NULL, queue, &how), MQRC_NO_MSG_AVAILABLE);
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
}

static void checkpoint(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    (void)f;
    expect(a, "checkpoint", mqe_checkpoint(m));
}

static void compact(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    (void)f;
    expect(a, "compact", mqe_compact(m));
}

static void maintain(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    (void)f;
    expect_or(a, "a round of maintenance", mqe_maintain(m), MQX_BUSY);
}

static void clear(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    a->loose_queue = 1;
    a->loose = UINT32_MAX;
    a->decided = true;
    const int reason = mqe_clear(m, f->slot[1], f->generation[1]);
    expect_or(a, "clear", reason == MQRC_OBJECT_IN_USE ? 0 : reason, MQRC_Q_NOT_EMPTY);
}

static void define_and_delete(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    struct ps_object_name name = {.name_space = 1, .type = 1};
    struct mqe_found found = {0};
    (void)f;
    memset(name.name, ' ', sizeof name.name);
    memcpy(name.name, a->worker == 0 ? "NEW0" : "NEW1", 4);
    if (mqe_find(m, 1, name.name, 0, &found) != 0) { /* else left by one that was killed */
        expect(a, "define", mqe_define(m, &name, NULL, 0, &found.slot, &found.generation));
    }
    expect(a, "alter", mqe_alter(m, found.slot, found.generation, &name, NULL, 0, 0, 0));
    expect(a, "delete", mqe_delete(m, found.slot, found.generation, 1));
}

/* One name for both workers: each step may come too late. */
static void expect_or_late(struct account *a, const char *what, int reason)
{
    const bool late = reason == MQRC_Q_DELETED || reason == MQRC_UNKNOWN_OBJECT_NAME;
    expect(a, what, late ? 0 : reason);
}

static void temporary_queue(mqe_manager *m, const struct crash_fixture *f, struct account *a)
{
    mqe_queue *queue = NULL;
    struct crash_fixture own;
    uint64_t id;
    (void)f;
    int reason = dynamic_make(m, "SHARED", DYNAMIC_TEMPORARY, &queue, &own);
    if (reason == MQRC_OBJECT_ALREADY_EXISTS) {
        reason = dynamic_open(m, "SHARED", 2 | MQE_BROWSE, &queue, &own);
    }
    expect_or_late(a, "open", reason);
    if (reason != 0) {
        return;
    }
    expect_or_late(a, "put", fixture_put(m, NULL, &own, 0, 1, false, 3000));
    reason = fixture_get(m, NULL, &own, 0, 0, 0, 0, &id);
    expect_or_late(a, "get", reason == MQRC_NO_MSG_AVAILABLE ? 0 : reason);
    expect_or_late(a, "close", mqe_close(queue, MQE_CLOSE_KEEP));
}

const struct operation operations[] = {
    {"put_nonpersistent", put_nonpersistent, 3, 0, true, false},
    {"put_persistent", put_persistent, 3, 0, true, false},
    {"put_long_nonpersistent", put_long_nonpersistent, 3, 0, false, false},
    {"put_long_persistent", put_long_persistent, 3, 0, false, false},
    {"put_due_soon", put_due_soon, 3, 0, false, false},
    {"put_and_cancel", put_and_cancel, 3, 0, false, false},
    {"get_nonpersistent", get_nonpersistent, 3, 0, false, false},
    {"get_persistent", get_persistent, 3, 0, false, false},
    {"get_long_nonpersistent", get_long_nonpersistent, 3, 0, false, false},
    {"replace_long", replace_long, 3, 0, false, false},
    {"get_by_correl", get_by_correl, 3, 0, false, false},
    {"await_other", await_other, 3, 0, false, true},
    {"await_other_listed", await_other_listed, 3, 0, false, true},
    {"put_batch", put_batch_persistent, 3, 0, false, false},
    {"put_batch_nonpersistent", put_batch_nonpersistent, 3, 0, false, false},
    {"get_batch", get_batch_mixed, 3, 0, false, false},
    {"get_batch_nonpersistent", get_batch_nonpersistent, 8, 0, false, false},
    {"commit_unit", commit_unit, 3, 0, true, false},
    {"back_out_unit", back_out_unit, 3, 0, false, false},
    {"back_out_triggered", back_out_triggered, 3, 0, false, false},
    {"prepare_unit", prepare_unit, 3, 0, false, false},
    {"commit_prepared", commit_prepared, 3, 1, false, false},
    {"back_out_old_units", back_out_old_units, 3, 0, false, false},
    {"browse", browse, 3, 0, false, false},
    {"checkpoint", checkpoint, 3, 0, false, false},
    {"compact", compact, 3, 0, false, false},
    {"maintain", maintain, 3, 0, false, false},
    {"clear", clear, 8, 0, false, false},
    {"define_and_delete", define_and_delete, 3, 0, false, false},
    {"temporary_queue", temporary_queue, 3, 0, false, false},
};
const uint32_t operation_count = sizeof operations / sizeof operations[0];

/* ---- what is left ---- */

bool tally_of(const struct picture *picture, struct tally *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < picture->count; i++) {
        const struct seen *seen = &picture->message[i];
        if (!seen->whole || seen->unit != 0 || seen->id >= ACCOUNT_IDS) {
            fprintf(stderr, "a message is not whole, or in a unit that nobody has\n");
            return false;
        }
        out->count[seen->queue][seen->id] += 1;
    }
    return true;
}

static void apply(const struct account *a, struct tally *to)
{
    for (uint32_t i = 0; i < a->puts; i++) {
        to->count[a->put[i].queue][a->put[i].id] += 1;
    }
    for (uint32_t i = 0; i < a->gets; i++) {
        to->count[a->got[i].queue][a->got[i].id] -= 1;
    }
}

/* May the puts of the account be there or not, one by one? */
static bool is_loose_put(const struct account *a, int queue, uint64_t id)
{
    bool is = false;
    for (uint32_t i = 0; i < a->puts && a->in_pieces && !a->over; i++) {
        is = is || (a->put[i].queue == queue && a->put[i].id == id);
    }
    return is;
}

/* Is the difference one that operations in progress explain? */
static bool explains(const struct tally *expected, const struct account accounts[2],
                     const struct tally *found, bool say)
{
    uint64_t loose[FIXTURE_QUEUES] = {0};
    for (int i = 0; i < 2; i++) {
        loose[accounts[i].loose_queue] += accounts[i].loose;
    }
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        for (uint64_t id = 0; id < ACCOUNT_IDS; id++) {
            const int difference = found->count[q][id] - expected->count[q][id];
            const bool piece =
                is_loose_put(&accounts[0], q, id) || is_loose_put(&accounts[1], q, id);
            const uint64_t missing = difference < 0 ? (uint64_t)-difference : 0;
            if (difference > 0 || (missing > loose[q] && !piece)) {
                if (say) {
                    fprintf(stderr, "queue %c: message %llu is there %d times, not %d\n", 'A' + q,
                            (unsigned long long)id, found->count[q][id], expected->count[q][id]);
                }
                return false;
            }
            loose[q] -= piece ? 0 : missing;
        }
    }
    return true;
}

/* A worker that died may have done all or nothing, from its decision on; one that is over has done
 * all. Puts that come in pieces are expected, and may be missing. */
bool tally_agrees(const struct tally *before, const struct account accounts[2],
                  const struct tally *found)
{
    static struct tally expected;
    for (uint32_t way = 0; way < 4; way++) {
        bool possible = true;
        expected = *before;
        for (uint32_t i = 0; i < 2; i++) {
            const struct account *a = &accounts[i];
            const bool applied = (way >> i & 1u) == 0;
            possible = possible && (applied ? a->over || a->decided : !a->over);
            if (applied) {
                apply(a, &expected);
            }
        }
        if (possible && explains(&expected, accounts, found, false)) {
            return true;
        }
    }
    expected = *before;
    apply(&accounts[0], &expected);
    apply(&accounts[1], &expected);
    (void)explains(&expected, accounts, found, true);
    return false;
}
