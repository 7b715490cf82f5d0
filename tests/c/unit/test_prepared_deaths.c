/* Claims of prepared.c about several processes and threads: prepared units outlive their creators,
 * an end that was begun is finished or forgotten whole, and of several that end a unit one wins.
 * Processes are real and die by SIGKILL. */
#include "fixtures/death_fixture.h"
#include "fixtures/prepared_fixture.h"
#include "process/reaper.h"

enum { UNITS = 5 };

static bool only_we_are_left(void)
{
    struct mqe_manager_status status;
    return mqe_maintain(engine.manager) == 0 && mqe_status(engine.manager, &status) == 0 &&
           status.attached == 1 && status.units == 0 && is_all_sound();
}

/* Each unit gets one message and puts one. */
static int prepare_units(const struct part *part)
{
    struct queue q = part->q;
    mqe_unit *unit = engine_unit();
    q.handle = engine_open(q, 2 | MQE_BROWSE | MQE_OUTPUT);
    for (uint32_t n = 1; n <= UNITS; n++) {
        TAKE(q, .unit = unit);
        if (got.status != 0 || PUT(q, .text = "put", .unit = unit, .persistent = n % 2) != 0 ||
            prepare(unit, n) != 0) {
            return 10 + (int)n;
        }
    }
    TAKE(q, .unit = unit); /* and this one is backed out */
    return got.status;
}

static struct queue filled(void)
{
    struct queue q = QUEUE("Q", 0);
    for (uint32_t n = 1; n <= UNITS + 1; n++) {
        CHECK_INT(PUT(q, .text = "m", .persistent = n % 3 == 0), 0);
    }
    return q;
}

static struct ps_xid all[UNITS];

static const struct ps_xid *all_xids(void)
{
    for (uint32_t n = 0; n < UNITS; n++) {
        all[n] = xid_of(UNITS - n);
    }
    return all;
}

TEST(prepared_units_of_a_dead_process_are_left_alone_and_ended_by_others)
{
    engine_begin_real();
    struct queue q = filled();
    after_death_in(prepare_units, q, 0);
    CHECK_INT(prepared_count(), UNITS);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(prepared_count(), UNITS);
    CHECK_STR(peruse(q), "m");
    CHECK_STR(rows(3), "m +put");
    CHECK_INT(commit(1), 0);
    CHECK_INT(back_out(2), 0);
    CHECK_STR(peruse(q), "m m put");
    CHECK_INT(mqe_commit_prepared(engine.manager, all_xids(), UNITS), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(mqe_commit_prepared(engine.manager, all_xids(), UNITS - 2), 0);
    CHECK_STR(drain(q), "m m put put put put");
    CHECK(only_we_are_left());
}

static int prepare_and_leave(const struct part *part)
{
    uint64_t lost = 0;
    const int status = prepare_units(part);
    return status != 0 ? status : engine_detach(MQE_DETACH_ORDERLY, &lost) != 0 ? 4 : 77;
}

TEST(prepared_units_outlive_the_orderly_leave_of_their_process)
{
    engine_begin_real();
    struct queue q = filled();
    struct part part = {prepare_and_leave, q, 0};
    CHECK_INT(in_child(act, &part), 77);
    CHECK_INT(prepared_count(), UNITS);
    CHECK_STR(peruse(q), "m");
    CHECK_INT(mqe_backout_prepared(engine.manager, all_xids(), UNITS, &discarded), 0);
    CHECK_STR(drain(q), "m m m m m m");
    CHECK(only_we_are_left());
}

static int die_before_the_record(const struct part *part)
{
    struct queue q = part->q;
    struct mqx_region *region = engine_region();
    mqe_unit *unit = engine_unit();
    q.handle = engine_open(q, 2 | MQE_OUTPUT);
    TAKE(q, .unit = unit);
    struct mqx_context *context = mqx_context(region, unit->context);
    context->xid = xid_of(1);
    if (mqx_lock_take(region, &region->header->slots_lock) != 0) {
        return 4;
    }
    CHECK_INT(mqx_xid_table_add(region, unit->context), 0);
    mqx_undo_commit(&region->header->slots_lock);
    mqx_lock_drop(region, &region->header->slots_lock);
    return got.status;
}

TEST(a_unit_whose_owner_died_before_the_record_is_backed_out_and_its_name_is_free)
{
    engine_begin_real();
    struct queue q = filled();
    after_death_in(die_before_the_record, q, 0);
    CHECK_INT(prepared_count(), 0);
    CHECK_INT(commit(1), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_STR(peruse(q), "m m m m m m");
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "m");
    CHECK_INT(got.backout_count, 1);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(commit(1), 0);
    CHECK(only_we_are_left());
}

static int die_in_the_flush(const struct part *part)
{
    struct queue q = part->q;
    mqe_unit *unit = engine_unit();
    q.handle = engine_open(q, 2 | MQE_OUTPUT);
    TAKE(q, .unit = unit);
    if (got.status != 0 || PUT(q, .text = "put", .unit = unit, .persistent = 1) != 0) {
        return 4;
    }
    writes_left = 0;
    mqx_ignore(prepare(unit, 1));
    return 5;
}

TEST(a_unit_whose_process_died_in_the_flush_is_durable_once_it_was_reported)
{
    for (int how = 0; how < 2; how++) {
        engine_begin_real();
        struct queue q = filled();
        const struct mqx_journal *journal = engine_region()->journal;
        after_death_in(die_in_the_flush, q, 0);
        const uint64_t durable = journal->durable;
        if (how == 0) {
            CHECK_INT(prepared_count(), 1);
        } else {
            CHECK_STR(rows(1), "m +put");
        }
        CHECK(journal->durable > durable);
        CHECK(only_we_are_left());
        engine_restart();
        CHECK_STR(rows(1), "m +put");
        CHECK_INT(commit(1), 0);
    }
}

/* ---- an end that was begun ---- */

/* how: 0 some are claimed, 1 all are, 2 dies in the flush of the decision, of a commit; 10, 11, 12:
 * of a backout. */
static int die_while_ending(const struct part *part)
{
    struct mqx_member members[UNITS];
    uint64_t unit_ids[UNITS];
    const bool to_commit = part->how < 10;
    struct mqx_prepared_resolution resolution = {
        .store = &engine.manager->store,
        .commit = to_commit,
        .xids = all_xids(),
        .count = UNITS,
        .members = members,
        .unit_ids = unit_ids,
    };
    if (part->how % 10 == 2) {
        writes_left = 0;
        mqx_ignore(to_commit
                       ? mqe_commit_prepared(engine.manager, all_xids(), UNITS)
                       : mqe_backout_prepared(engine.manager, all_xids(), UNITS, &discarded));
        return 5;
    }
    if (mqx_pool_take(engine.manager, true, &resolution.leader) != 0 ||
        mqx_prepared_look_up(&resolution) != 0) {
        return 4;
    }
    mqx_context(engine_region(), resolution.leader)->leads =
        to_commit ? MQX_LEADS_COMMIT : MQX_LEADS_BACKOUT;
    resolution.count = part->how % 10 == 0 ? 2 : UNITS;
    return mqx_prepared_claim(&resolution);
}

TEST(an_end_whose_owner_died_before_the_decision_is_forgotten_after_it_finished)
{
    static const uint32_t hows[] = {0, 1, 2, 10, 11, 12};
    for (int swept = 0; swept < 2; swept++) {
        for (size_t i = 0; i < MQX_ARRAY_COUNT(hows); i++) {
            const bool decided = hows[i] % 10 == 2, committed = hows[i] < 10;
            engine_begin_real();
            struct queue q = filled();
            after_death_in(prepare_units, q, 0);
            CHECK_INT(mqe_maintain(engine.manager), 0);
            after_death_in(die_while_ending, q, hows[i]);
            CHECK_INT(prepared_count(), decided ? 0 : UNITS);
            CHECK_STR(peruse(q), "m");
            if (swept != 0) {
                CHECK_INT(mqe_maintain(engine.manager), 0);
                CHECK_INT(prepared_count(), decided ? 0 : UNITS);
                CHECK_STR(peruse(q), !decided ? "m"
                                     : committed ? "m put put put put put"
                                                 : "m m m m m m");
            }
            /* the next caller does not have to wait for the maintenance */
            CHECK_INT(mqe_backout_prepared(engine.manager, all_xids(), UNITS, &discarded),
                      decided ? MQRC_UOW_NOT_AVAILABLE : 0);
            CHECK_INT(mqe_maintain(engine.manager), 0);
            CHECK_STR(drain(q), decided && committed ? "m put put put put put" : "m m m m m m");
            CHECK_INT(discarded, 0);
            CHECK(only_we_are_left());
            engine_restart();
            CHECK_INT(prepared_count(), 0);
        }
    }
}

/* ---- several at once ---- */

enum { ROUNDS = 150, RESOLVERS = 4 };

struct resolver {
    pthread_t thread;
    uint32_t first, count;    /* units, in this order */
    bool backwards, to_commit;
    int status;
};

static void *end_some(void *arg)
{
    struct resolver *resolver = arg;
    struct ps_xid xids[16];
    uint64_t lost = 0;
    for (uint32_t i = 0; i < resolver->count; i++) {
        const uint32_t n = resolver->backwards ? resolver->count - 1 - i : i;
        xids[i] = xid_of(resolver->first + n);
    }
    resolver->status = resolver->to_commit
                           ? mqe_commit_prepared(engine.manager, xids, resolver->count)
                           : mqe_backout_prepared(engine.manager, xids, resolver->count, &lost);
    return NULL;
}

static void prepare_puts(struct queue q, uint32_t from, uint32_t count)
{
    mqe_unit *unit = engine_unit();
    for (uint32_t n = from; n < from + count; n++) {
        CHECK_INT(PUT(q, .text = "x", .unit = unit, .persistent = n % 2), 0);
        CHECK_INT(prepare(unit, n), 0);
    }
    mqe_unit_free(engine.units[--engine.unit_count]);
}

static void run_resolvers(struct resolver *resolvers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(pthread_create(&resolvers[i].thread, NULL, end_some, &resolvers[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(pthread_join(resolvers[i].thread, NULL), 0);
    }
}

TEST(of_several_that_end_the_same_units_exactly_one_wins)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct resolver resolvers[RESOLVERS];
        uint32_t won = 0, shown = 0;
        prepare_puts(q, 1, 8);
        for (uint32_t i = 0; i < RESOLVERS; i++) {
            resolvers[i] = (struct resolver){
                .first = 1, .count = 8, .backwards = i % 2 != 0, .to_commit = (i + round) % 3 != 0};
        }
        run_resolvers(resolvers, RESOLVERS);
        for (uint32_t i = 0; i < RESOLVERS; i++) {
            CHECK(resolvers[i].status == 0 || resolvers[i].status == MQRC_UOW_NOT_AVAILABLE);
            won += resolvers[i].status == 0;
            shown += resolvers[i].status == 0 && resolvers[i].to_commit ? 8 : 0;
        }
        CHECK_INT(won, 1);
        CHECK_INT(depth(q), shown);
        (void)drain(q);
        CHECK_INT(prepared_count(), 0);
    }
    CHECK(is_all_sound());
}

/* ---- an end that gives up ---- */

/* The leader that resolves unit 2 is held in its flush until another one has claimed unit 1, and
 * waits for 2. */
static struct {
    struct resolver other;       /* of 1 and 2 */
    bool begun;
} race;

static const struct mqx_context *unit_named(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    for (uint32_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        if (context->xid_listed != 0 && mqx_xid_equal(&context->xid, &xid)) {
            return context;
        }
    }
    return NULL;
}

static void begin_the_other(void *arg, enum memory_op op, uint64_t number)
{
    const struct mqx_context *first = unit_named(1);
    (void)arg;
    (void)number;
    if (op != MEMORY_WRITE || race.begun) {
        return;
    }
    race.begun = true;
    (void)pthread_create(&race.other.thread, NULL, end_some, &race.other);
    for (int i = 0; i < 10000 && mqx_load_acquire(&first->resolver) == 0; i++) {
        sleep_ms(1);
    }
}

TEST(an_end_that_finds_one_of_its_units_gone_leaves_the_others_to_be_ended)
{
    for (int to_commit = 0; to_commit < 2; to_commit++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        prepare_puts(q, 1, 2);
        race.other = (struct resolver){.first = 1, .count = 2, .to_commit = to_commit != 0};
        race.begun = false;
        memory_io_set_hook(engine.files, begin_the_other, NULL);
        CHECK_INT(commit(2), 0);
        memory_io_set_hook(engine.files, NULL, NULL);
        CHECK(race.begun);
        CHECK_INT(pthread_join(race.other.thread, NULL), 0);
        CHECK_INT(race.other.status, MQRC_UOW_NOT_AVAILABLE);
        CHECK_INT(prepared_count(), 1);
        CHECK_INT(unit_named(1)->resolver, 0); /* or the next leader would wait forever */
        CHECK_INT(to_commit != 0 ? commit(1) : back_out(1), 0);
        CHECK_INT(depth(q), 1 + to_commit);
        CHECK(is_all_sound());
    }
}

/* Sets that overlap, in opposite orders: no call waits forever, and a set is ended whole or not. */
TEST(resolvers_of_overlapping_sets_never_wait_in_a_circle_and_end_whole_sets)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct resolver resolvers[3] = {
            {.first = 1, .count = 6, .to_commit = true},
            {.first = 4, .count = 6, .to_commit = true, .backwards = true},
            {.first = 7, .count = 6, .to_commit = true, .backwards = round % 2 != 0},
        };
        uint32_t ended = 0;
        prepare_puts(q, 1, 12);
        run_resolvers(resolvers, 3);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK(resolvers[i].status == 0 || resolvers[i].status == MQRC_UOW_NOT_AVAILABLE);
            ended += resolvers[i].status == 0 ? 6 : 0;
        }
        CHECK(resolvers[1].status != 0 || resolvers[0].status != 0);
        CHECK(ended >= 6);
        CHECK_INT(depth(q) - engine_status(q).uncommitted, ended);
        CHECK_INT(prepared_count(), 12 - ended);
        for (uint32_t n = 1; n <= 12; n++) {
            const int status = back_out(n);
            CHECK(status == 0 || status == MQRC_UOW_NOT_AVAILABLE);
        }
        (void)drain(q);
    }
    CHECK(is_all_sound());
}

struct preparer {
    pthread_t thread;
    mqe_unit *unit;
    int status;
};

static void *prepare_same(void *arg)
{
    struct preparer *preparer = arg;
    preparer->status = prepare(preparer->unit, 1);
    return NULL;
}

TEST(of_several_that_take_the_same_name_exactly_one_gets_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct preparer preparers[RESOLVERS] = {0};
    for (uint32_t i = 0; i < RESOLVERS; i++) {
        preparers[i].unit = engine_unit();
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t won = 0;
        for (uint32_t i = 0; i < RESOLVERS; i++) {
            CHECK_INT(PUT(q, .text = "x", .unit = preparers[i].unit), 0);
        }
        for (uint32_t i = 0; i < RESOLVERS; i++) {
            CHECK_INT(pthread_create(&preparers[i].thread, NULL, prepare_same, &preparers[i]), 0);
        }
        for (uint32_t i = 0; i < RESOLVERS; i++) {
            CHECK_INT(pthread_join(preparers[i].thread, NULL), 0);
            CHECK(preparers[i].status == 0 || preparers[i].status == MQRC_UOW_IN_PROGRESS);
            won += preparers[i].status == 0;
            CHECK_INT(mqe_unit_count(preparers[i].unit), preparers[i].status == 0 ? 0 : 1);
            CHECK_INT(mqe_backout(preparers[i].unit), 0);
        }
        CHECK_INT(won, 1);
        CHECK_INT(commit(1), 0);
        CHECK_STR(drain(q), "x");
    }
}

struct reader { /* browses while others end the unit */
    pthread_t thread;
    uint32_t whole, refused, wrong;
    uint32_t stop;            /* atomic */
};

static void *read_on(void *arg)
{
    enum { MOST = 64 };
    struct reader *reader = arg;
    struct mqe_item *rows_read = calloc(MOST, sizeof *rows_read);
    unsigned char *room = malloc(MOST * 6000);
    int64_t at[MOST + 1];
    const struct ps_xid xid = xid_of(1);
    while (mqx_load_acquire(&reader->stop) == 0) {
        struct mqe_prepared_cursor cursor = {0};
        struct mqe_batch b = {.items = rows_read, .capacity = MOST, .bodies = room,
                              .body_capacity = MOST * 6000, .offsets = at};
        const int status = mqe_browse_prepared(engine.manager, &xid, &cursor, &b);
        reader->whole += status == 0;
        reader->refused += status == MQRC_UOW_NOT_AVAILABLE;
        reader->wrong += status != 0 && status != MQRC_UOW_NOT_AVAILABLE;
        reader->wrong += status == 0 && b.count != 30;
        for (uint32_t i = 0; i < b.count && status == 0; i++) {
            const int64_t length = at[i + 1] - at[i];
            for (int64_t k = 0; k < length; k++) {
                reader->wrong += room[at[i] + k] != 'a' + i % 26;
            }
        }
    }
    free(rows_read);
    free(room);
    return NULL;
}

TEST(a_browse_beside_the_end_of_its_unit_is_whole_or_refused)
{
    static char body[6000];
    struct reader reader = {.whole = 0};
    engine_begin();
    struct queue q = QUEUE("Q", 0), r = QUEUE("R", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(pthread_create(&reader.thread, NULL, read_on, &reader), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < 30; i++) {
            memset(body, 'a' + (int)(i % 26), sizeof body);
            CHECK_INT(PUT(i % 2 != 0 ? q : r, .body = body, .unit = unit, .persistent = i % 3 == 0,
                          .length = i % 5 == 0 ? 5000 : 100 + i), 0);
        }
        CHECK_INT(prepare(unit, 1), 0);
        CHECK_STR(peruse(q), "");
        CHECK_INT(round % 2 != 0 ? commit(1) : back_out(1), 0);
        while (TAKE(q), got.status == 0) {
        }
        while (TAKE(r), got.status == 0) {
        }
    }
    mqx_store_release(&reader.stop, 1u);
    CHECK_INT(pthread_join(reader.thread, NULL), 0);
    CHECK_INT(reader.wrong, 0);
    CHECK(reader.refused > 0);
    CHECK(is_all_sound());
}

TEST(a_waiting_get_wakes_when_the_unit_is_committed_or_backed_out)
{
    struct waiter waiter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "put", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    WAITER(&waiter, q, .text = NULL);
    CHECK(await_waiters(q, 1));
    CHECK_INT(commit(1), 0);
    CHECK_STR(waiter_end(&waiter), "put");
    CHECK_INT(PUT(q, .text = "got"), 0);
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_INT(prepare(unit, 1), 0);
    WAITER(&waiter, q, .text = NULL);
    CHECK(await_waiters(q, 1));
    CHECK_INT(back_out(1), 0);
    CHECK_STR(waiter_end(&waiter), "got");
    CHECK_INT(waiter.got.backout_count, 1);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
