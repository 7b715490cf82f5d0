/* Claims of cf_structure.c: what the structure of a queue permits its messages, and its failure. */
#include "catalog/catalog.h"
#include "fixtures/engine_fixture.h"
#include "process/reaper.h"

struct object {
    uint32_t slot, generation;
};

static struct ps_object_name structure_name(const char *name)
{
    struct ps_object_name out = engine_name(name);
    out.name_space = MQX_NAMES_STRUCTURE;
    out.type = 10;
    return out;
}

static struct object define_structure(const char *name, int level, int recover)
{
    struct object s = {0};
    const struct ps_object_name full = structure_name(name);
    const struct attributes attrs =
        engine_attributes((const int[]){CFLEVEL, level, RECOVER, recover, 0});
    CHECK_INT(mqe_define(engine.manager, &full, attrs.bytes, attrs.length, &s.slot, &s.generation),
              0);
    return s;
}

static int alter_structure(struct object s, const char *name, int level, int recover)
{
    const struct ps_object_name full = structure_name(name);
    const struct attributes attrs =
        engine_attributes((const int[]){CFLEVEL, level, RECOVER, recover, 0});
    return mqe_alter(engine.manager, s.slot, s.generation, &full, attrs.bytes, attrs.length, 0, 0);
}

static struct object find_structure(const char *name)
{
    struct mqe_found found = {0};
    CHECK_INT(mqe_find(engine.manager, MQX_NAMES_STRUCTURE, structure_name(name).name, 0, &found),
              0);
    return (struct object){found.slot, found.generation};
}

/* The attributes of a queue in the structure, NULL for none. */
static struct attributes in_structure(const char *structure, const int *pairs)
{
    struct attributes out = engine_attributes(pairs);
    if (structure != NULL) {
        const uint32_t length = (uint32_t)strlen(structure);
        const struct ps_attr head = {.selector = CFSTRUCT, .kind = 2, .length = (uint16_t)length};
        memcpy((char *)out.bytes + out.length, &head, 8);
        memset((char *)out.bytes + out.length + 8, 0, 16);
        memcpy((char *)out.bytes + out.length + 8, structure, length);
        out.length += 8 + (uint32_t)mqx_round_up(length, 8);
    }
    return out;
}

static int define_in(const char *name, const char *structure, const int *pairs, struct queue *q)
{
    const struct ps_object_name full = engine_name(name);
    const struct attributes attrs = in_structure(structure, pairs);
    const int status = mqe_define(engine.manager, &full, attrs.bytes, attrs.length, &q->slot,
                                  &q->generation);
    if (status == 0) {
        q->handle = engine_open(*q, 2 | MQE_BROWSE | MQE_OUTPUT);
    }
    return status;
}

static struct queue queue_in(const char *name, const char *structure)
{
    struct queue q = {0};
    CHECK_INT(define_in(name, structure, (const int[]){0}, &q), 0);
    return q;
}

static int move(struct queue q, const char *name, const char *structure)
{
    const struct ps_object_name full = engine_name(name);
    const struct attributes attrs = in_structure(structure, (const int[]){0});
    return mqe_alter(engine.manager, q.slot, q.generation, &full, attrs.bytes, attrs.length, 0, 0);
}

static int fail(struct object s, uint64_t *lost)
{
    return mqe_fail_structure(engine.manager, s.slot, s.generation, lost);
}

TEST(a_persistent_message_needs_level_3_and_recover_at_the_put_and_after_the_default_is_resolved)
{
    engine_begin();
    struct object s = define_structure("S", 1, 0);
    struct queue q = {0};
    CHECK_INT(define_in("Q", "S", (const int[]){DEFPSIST, 1, 0}, &q), 0);
    for (int level = 1; level <= 5; level++) {
        for (int recover = 0; recover < 2; recover++) {
            const int reason = level >= 3 && recover == 1 ? 0 : MQRC_PERSISTENT_NOT_ALLOWED;
            CHECK_INT(alter_structure(s, "S", level, recover), 0);
            CHECK_INT(PUT(q, .text = "p", .persistent = 1), reason);
            CHECK_INT(PUT(q, .text = "d", .persistent = 2), reason);
            CHECK_INT(PUT(q, .text = "n", .persistent = 0), 0);
            CHECK_STR(drain(q), reason == 0 ? "p d n" : "n");
        }
    }
}

TEST(a_level_below_4_takes_messages_of_at_most_63_kib)
{
    static char body[64513];
    engine_begin();
    struct object s = define_structure("S", 3, 1);
    struct queue q = queue_in("Q", "S");
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .body = body, .length = 64512, .persistent = persistent), 0);
        CHECK_INT(PUT(q, .body = body, .length = 64513, .persistent = persistent),
                  MQRC_MSG_TOO_BIG_FOR_Q);
    }
    CHECK_INT(alter_structure(s, "S", 4, 1), 0);
    CHECK_INT(PUT(q, .body = body, .length = 64513), 0);
}

TEST(non_persistent_messages_in_a_structure_survive_every_restart_and_keep_their_field)
{
    static char body[70000];
    memset(body, 'b', sizeof body);
    engine_begin();
    (void)define_structure("S", 5, 1);
    struct queue q = queue_in("Q", "S"), plain = QUEUE("PLAIN", 0);
    CHECK_INT(PUT(q, .text = "n1", .priority = 1), 0);
    CHECK_INT(PUT(q, .text = "p2", .persistent = 1), 0);
    CHECK_INT(PUT(q, .body = body, .length = sizeof body), 0);
    CHECK_INT(PUT(plain, .text = "gone"), 0);
    for (int round = 0; round < 4; round++) {
        if (round == 1) {
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
        if (round == 2) {
            engine_restart();
        } else {
            engine_kill_and_restart();
        }
        q = engine_find("Q");
        plain = engine_find("PLAIN");
        CHECK_STR(TAKE(plain), "(2033)");
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST), "n1");
        CHECK_INT(got.persistence, 0);
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT), "p2");
        CHECK_INT(got.persistence, 1);
        TAKE(q, .flags = MQE_GET_BROWSE_NEXT);
        CHECK_INT(got.length, sizeof body);
        CHECK_INT(got.persistence, 0);
        CHECK_INT(mqe_check(engine.manager), 0);
    }
    CHECK_STR(TAKE(q), "n1");
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_STR(TAKE(q), "p2"); /* a get is as durable as the put was */
    CHECK_INT(depth(q), 1);
}

TEST(units_with_messages_of_a_structure_are_whole_or_absent_and_counts_are_hardened)
{
    engine_begin();
    (void)define_structure("S", 3, 0);
    struct queue q = queue_in("Q", "S");
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(PUT(q, .text = "never", .unit = unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    engine_kill_and_restart();
    q = engine_find("Q");
    unit = engine_unit();
    CHECK_INT(depth(q), 2);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_INT(got.backout_count, 1);
    CHECK_INT(mqe_backout(unit), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_STR(TAKE(q), "a");
    CHECK_INT(got.backout_count, 2);
}

TEST(syncpoint_if_persistent_leaves_them_out_of_the_unit)
{
    engine_begin();
    (void)define_structure("S", 3, 1);
    struct queue q = queue_in("Q", "S");
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "n"), 0);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit, .flags = MQE_GET_IF_PERSISTENT), "n");
    CHECK_INT(mqe_unit_count(unit), 0);
    CHECK_STR(TAKE(q, .unit = unit, .flags = MQE_GET_IF_PERSISTENT), "p");
    CHECK_INT(mqe_unit_count(unit), 1);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(drain(q), "p");
}

TEST(a_failure_loses_the_non_persistent_messages_of_its_queues_for_good_and_nothing_else)
{
    uint64_t lost = 99;
    engine_begin();
    (void)define_structure("S", 3, 1);
    (void)define_structure("T", 3, 1);
    struct queue a = queue_in("A", "S"), b = queue_in("B", "S"), t = queue_in("OTHER", "T");
    for (int i = 0; i < 1500; i++) {
        CHECK_INT(PUT(a, .text = i % 3 == 0 ? "p" : "n", .persistent = i % 3 == 0), 0);
    }
    CHECK_INT(PUT(b, .text = "n", .priority = 9), 0);
    CHECK_INT(PUT(t, .text = "other"), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    CHECK_INT(PUT(b, .text = "n2"), 0);
    engine_kill_and_restart(); /* most from the checkpoint, one from the journal */
    struct object s = find_structure("S");
    struct queue plain = QUEUE("PLAIN", NPMCLASS, 10);
    a = engine_find("A");
    b = engine_find("B");
    t = engine_find("OTHER");
    CHECK_INT(PUT(plain, .text = "plain"), 0);
    CHECK_STR(TAKE(b, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "n"); /* goes, too */
    CHECK_INT(fail(s, &lost), 0);
    CHECK_INT(lost, 1002);
    CHECK_INT(fail(s, &lost), 0);
    CHECK_INT(lost, 0);
    for (int round = 0; round < 2; round++) {
        CHECK_INT(depth(a), 500);
        CHECK_INT(depth(b), 0);
        CHECK_INT(depth(t), 1);
        CHECK_INT(depth(engine_find("PLAIN")), round == 0 ? 1 : 0);
        CHECK_INT(mqe_check(engine.manager), 0);
        engine_kill_and_restart();
        a = engine_find("A");
        b = engine_find("B");
        t = engine_find("OTHER");
    }
    CHECK_STR(drain(t), "other");
    CHECK_INT(PUT(b, .text = "again"), 0);
}

TEST(a_failure_waits_for_no_unit_and_is_refused_while_one_holds_messages)
{
    uint64_t lost = 99;
    engine_begin();
    struct object s = define_structure("S", 3, 1);
    struct queue a = queue_in("A", "S"), b = queue_in("B", "S");
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(a, .text = "n"), 0);
    CHECK_INT(PUT(b, .text = "n", .unit = unit), 0);
    CHECK_INT(fail(s, &lost), MQRC_Q_NOT_EMPTY);
    CHECK_INT(lost, 0);
    CHECK_INT(depth(a), 1);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(TAKE(b, .unit = unit), "n");
    CHECK_INT(fail(s, &lost), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(fail(s, &lost), 0);
    CHECK_INT(lost, 2);
    CHECK_INT(mqe_fail_structure(engine.manager, a.slot, a.generation, &lost), 2043);
    CHECK_INT(mqe_fail_structure(engine.manager, s.slot, s.generation + 1, &lost), 2085);
}

TEST(while_the_failure_lasts_calls_are_2373_and_a_death_in_it_ends_it)
{
    uint32_t dead = 0;
    engine_begin_real();
    struct object s = define_structure("S", 3, 1);
    struct queue q = queue_in("Q", "S"), plain = QUEUE("PLAIN", 0);
    struct mqx_region *region = engine_region();
    CHECK_INT(PUT(q, .text = "n"), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        uint32_t context = 0;
        if (mqe_attach(engine.path, &engine.settings, &engine.manager, &engine.info) != 0 ||
            mqx_pool_take(engine.manager, true, &context) != 0 ||
            mqx_catalog_fail(&engine.manager->store, context, s.slot, s.generation) != 0) {
            _exit(3);
        }
        (void)kill(getpid(), SIGKILL);
    }
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_INT(PUT(q, .text = "x"), MQRC_CF_STRUC_FAILED);
    CHECK_STR(TAKE(q), "(2373)");
    CHECK_INT(PUT(plain, .text = "x"), 0);
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    CHECK_INT(mqx_reap(&engine.manager->store, &dead), 0);
    mqx_lock_drop(region, &region->header->maintenance_lock);
    CHECK_INT(dead, 1);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(drain(q), "n x");
    CHECK_INT(alter_structure(s, "S", 4, 1), 0);
}

TEST(an_unknown_structure_is_refused_and_one_with_queues_is_not_deleted)
{
    struct queue q = {0};
    engine_begin();
    CHECK_INT(define_in("Q", "NONE", (const int[]){0}, &q), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK(strstr(mqe_error_text(), "NONE") != NULL);
    q = queue_in("Q", NULL);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(move(q, "Q", "NONE"), MQRC_UNKNOWN_OBJECT_NAME);
    struct object s = define_structure("S", 3, 1); /* in a later slot than its queue */
    CHECK_INT(move(q, "Q", "S"), 0);
    for (int round = 0; round < 2; round++) {
        CHECK_INT(mqe_delete(engine.manager, s.slot, s.generation, 0), MQRC_OBJECT_IN_USE);
        CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
        engine_kill_and_restart();
        s = find_structure("S");
    }
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 1), 0);
    CHECK_INT(mqe_delete(engine.manager, s.slot, s.generation, 0), 0);
}

TEST(the_structure_of_a_queue_and_a_lower_level_wait_until_it_is_empty_and_closed)
{
    engine_begin();
    struct object s = define_structure("S", 4, 1);
    struct queue q = queue_in("Q", NULL);
    CHECK_INT(move(q, "Q", "S"), MQRC_OBJECT_IN_USE);
    CHECK_INT(PUT(q, .text = "n"), 0);
    CHECK_INT(engine_close(q.handle), 0);
    CHECK_INT(move(q, "Q", "S"), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    CHECK_INT(move(q, "Q", "S"), 0);
    CHECK_INT(PUT(q, .text = "n"), 0);
    CHECK_INT(alter_structure(s, "S", 3, 1), MQRC_Q_NOT_EMPTY);
    CHECK_INT(alter_structure(s, "S", 5, 1), 0); /* higher, at any time */
    CHECK_INT(move(q, "Q", "S"), 0);
    CHECK_INT(move(q, "Q", NULL), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), 0);
    CHECK_INT(alter_structure(s, "S", 3, 1), 0);
    CHECK_INT(move(q, "Q", NULL), 0);
    CHECK_INT(PUT(q, .text = "n"), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(depth(q), 0); /* an ordinary queue again */
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
