/* Claims of get.c, browse_batch.c, status.c and prepared_browse.c about messages that are copied
 * without a lock: what is deleted in between is not shown, and leaves nothing behind. The core
 * calls a hook when it has released its locks to copy (block_hook.h); the deletion is done there.
 * */
#include "fixtures/dynamic_fixture.h"
#include "fixtures/prepared_fixture.h"
#include "os/block_hook.h"

enum { LONG = 9000, NEAR = 0, FAR = 1, WAYS = 2 }; /* FAR: the bodies are in the journal alone */

static struct queue q;
static mqe_queue *another;    /* handle of the same queue */
static struct got taken;
static int happened;

static bool is_pinned(void)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    bool pinned = false;
    for (uint32_t slot = 1; slot < used; slot++) {
        pinned |= mqx_context(region, slot)->pending_kind == MQX_PENDING_PINNED;
    }
    return pinned;
}

static int put_one(int mark, uint64_t length, mqe_unit *unit)
{
    static char body[LONG];
    memset(body, mark, length);
    return PUT(q, .body = body, .length = length, .persistent = 1, .unit = unit);
}

static void take_one(mqe_unit *unit)
{
    const struct ask ask = {.unit = unit};
    CHECK_INT(engine_take_with(another, &ask, &taken), 0);
}

/* Texts of these lengths, 'a', 'b', ... */
static void begin_with(const uint64_t *lengths, int count, int way)
{
    engine_begin();
    q = QUEUE("Q", 0);
    for (int i = 0; i < count; i++) {
        CHECK_INT(put_one('a' + i, lengths[i], NULL), 0);
    }
    if (way == FAR) {
        engine_kill_and_restart();
        q = engine_find("Q");
    }
    another = engine_open(q, 2 | MQE_BROWSE);
    happened = 0;
}

static bool is_half_removed(void)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_MESSAGES].used;
    bool gone = false;
    for (uint32_t slot = 1; slot < used; slot++) {
        gone |= mqx_message(region, slot)->state == MQX_MSG_GONE;
    }
    return gone;
}

/* Nothing is pinned, nothing half removed: the queue can be deleted to its last trace. */
static bool leaves_nothing(void)
{
    const bool quiet = happened == 1 && !is_pinned() && !is_half_removed() && is_sound();
    engine_close_all();
    return quiet && mqe_delete(engine.manager, q.slot, q.generation, 1) == 0 && is_sound() &&
           state_of(q) == MQX_OBJ_FREE;
}

/* ---- taken while it is examined ---- */

/* What comes next lies where the old body was, if that was given back too early. */
static void take_the_first(void *arg)
{
    (void)arg;
    happened += is_pinned();
    take_one(NULL);
    CHECK_INT(put_one('z', LONG, NULL), 0);
}

TEST(a_browse_shows_the_next_message_when_its_own_is_taken_meanwhile)
{
    for (int way = NEAR; way < WAYS; way++) {
        begin_with((const uint64_t[]){LONG, LONG}, 2, way);
        mqx_block_hook_arm(take_the_first, NULL);
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        CHECK_INT(got.length, LONG);
        CHECK(got.text[0] == 'b' && got.text[LONG - 1] == 'b');
        TAKE(q, .flags = MQE_GET_BROWSE_NEXT);
        CHECK(got.text[0] == 'z' && got.text[LONG - 1] == 'z');
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "(2033)");
        CHECK(leaves_nothing());
    }
}

static int look(uint32_t flags)
{
    struct mqe_get how = {.flags = flags};
    batch = (struct mqe_batch){.items = items, .capacity = ROWS, .bodies = bodies,
                               .body_capacity = BODIES, .offsets = offsets};
    return mqe_browse_batch(engine.manager, q.handle, &how, &batch);
}

TEST(a_browse_of_many_passes_over_a_message_that_is_taken_meanwhile)
{
    for (int way = NEAR; way < WAYS; way++) {
        begin_with((const uint64_t[]){LONG, 3, LONG}, 3, way);
        mqx_block_hook_arm(take_the_first, NULL);
        CHECK_INT(look(MQE_GET_BROWSE_FIRST), 0);
        CHECK_INT(batch.count, 3);
        const char order[] = "bcz";
        for (int i = 0; i < 3; i++) {
            CHECK_INT(items[i].length, i == 0 ? 3 : LONG);
            CHECK_INT(bodies[offsets[i]], order[i]);
            CHECK_INT(bodies[offsets[i + 1] - 1], order[i]);
        }
        CHECK_INT(look(MQE_GET_BROWSE_NEXT), 0);
        CHECK_INT(batch.count, 0);
        CHECK(leaves_nothing());
    }
}

static void put_at(uint64_t time_us)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.priority = 4, .persistence = 1, .md_version = 2,
                              .put_time_us = time_us};
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, MQE_PUT_KEEP_TIME), 0);
}

TEST(the_oldest_message_is_the_next_one_when_it_is_taken_meanwhile)
{
    uint64_t us = 0;
    begin_with(NULL, 0, NEAR);
    for (uint64_t time = 500; time < 900; time += 100) {
        put_at(time);
    }
    engine_kill_and_restart();
    q = engine_find("Q");
    another = engine_open(q, 2);
    mqx_block_hook_arm(take_the_first, NULL);
    CHECK_INT(mqe_queue_oldest(engine.manager, q.slot, q.generation, &us), 0);
    CHECK_INT(us, 600);
    CHECK(leaves_nothing());
}

/* ---- prepared units that end while they are read ---- */

/* Long ones are pinned when they are in the region. */
static void note_reading(const void *arg)
{
    const int way = *(const int *)arg;
    happened += way == FAR || is_pinned();
}

static void commit_it(void *arg)
{
    note_reading(arg);
    CHECK_INT(commit(1), 0);
    CHECK_INT(put_one('z', LONG, NULL), 0);
}

static void back_it_out(void *arg)
{
    note_reading(arg);
    CHECK_INT(back_out(1), 0);
}

/* The context of the one prepared unit. */
static uint32_t place(void)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    uint32_t slot = 1;
    while (slot < used && mqx_context(region, slot)->state != MQX_CTX_PREPARED) {
        slot += 1;
    }
    return slot;
}

/* The same messages are in a unit of another name, which has the old one's place. */
static void prepare_another(void *arg)
{
    const uint32_t before = place();
    back_it_out(arg);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 100 && unit->context != before; i++) {
        unit = engine_unit();
    }
    while (depth(q) != 0) {
        take_one(unit);
    }
    CHECK_INT(prepare(unit, 2), 0);
    CHECK_INT(place(), before);
}

TEST(no_row_is_told_of_a_prepared_unit_that_ends_while_it_is_read)
{
    static void (*const ends[])(void *) = {commit_it, back_it_out, prepare_another};
    static const uint64_t shapes[][3] = {{3, LONG, 3}, {3, 3, LONG}, {LONG, LONG, LONG}};
    for (int n = 0; n < 3 * 3 * WAYS; n++) {
        struct mqe_prepared_cursor cursor = {0};
        int way = n / 9;
        begin_with(shapes[n % 3], 3, way);
        mqe_unit *unit = engine_unit();
        for (int i = 0; i < 3; i++) {
            take_one(unit);
        }
        CHECK_INT(prepare(unit, 1), 0);
        CHECK_INT(browse_some(1, &cursor, 1, BODIES), 0);
        CHECK_INT(batch.count, 1);
        cursor = (struct mqe_prepared_cursor){0};
        mqx_block_hook_arm(ends[n / 3 % 3], &way);
        CHECK_INT(browse_some(1, &cursor, ROWS, BODIES), MQRC_UOW_NOT_AVAILABLE);
        CHECK_INT(batch.count, 0);
        CHECK_INT(cursor.index, 0);
        CHECK_INT(back_out(2), ends[n / 3 % 3] == prepare_another ? 0 : MQRC_UOW_NOT_AVAILABLE);
        CHECK(leaves_nothing());
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
