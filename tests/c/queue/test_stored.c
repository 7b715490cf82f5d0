/* Claims of stored.h: what is listed, and that only the place of the same message changes. */
#include "fixtures/engine_fixture.h"

#include "queue/stored.h"

static struct mqx_stored stored[MQX_LOCKED_STEPS_MAX];

/* The stored messages of the queue, one hold's worth. */
static uint32_t list(struct queue q)
{
    struct mqx_cursor cursor = {0};
    uint32_t count = 0;
    bool done = false;
    CHECK_INT(mqx_stored_list(&engine.manager->store, q.slot, &cursor, stored, &count, &done), 0);
    return count;
}

/* Other places of records, all of them durable. */
static uint32_t move_all(struct queue q, uint32_t count, uint64_t by)
{
    uint64_t lsns[MQX_LOCKED_STEPS_MAX];
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        lsns[i] = stored[i].lsn + by;
    }
    CHECK_INT(mqx_stored_move(&engine.manager->store, q.slot, stored, lsns, count, &moved), 0);
    return moved;
}

TEST(messages_in_the_journal_are_listed_whatever_holds_them_others_not)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "got", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "locked", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "free", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "in memory"), 0);
    CHECK_INT(PUT(q, .text = "put", .persistent = 1, .unit = unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "locked");
    CHECK_INT(list(q), 4);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(stored[i].undecided, i == 3); /* "put" */
    }
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(list(q), 3);
    CHECK_INT(stored[2].undecided, 0);
}

TEST(a_message_that_was_got_or_put_anew_in_its_entry_is_not_moved)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "end", .persistent = 1), 0);
    CHECK_INT(list(q), 3);
    const uint64_t b_lsn = stored[1].lsn;
    CHECK_STR(TAKE(q), "a");
    CHECK_INT(PUT(q, .text = "c", .persistent = 1), 0); /* in the entry that "a" had */
    struct mqx_message *entry = mqx_message(engine_region(), stored[0].slot);
    CHECK(entry->number != stored[0].number);
    entry->lsn = stored[0].lsn; /* nothing but the number differs */
    CHECK_INT(move_all(q, 2, 8), 1);
    CHECK_INT(mqx_message(engine_region(), stored[0].slot)->lsn, stored[0].lsn);
    CHECK_INT(mqx_message(engine_region(), stored[1].slot)->lsn, b_lsn + 8);
    CHECK_INT(move_all(q, 2, 16), 0); /* not at the LSN that was listed, either */
}

TEST(a_message_that_a_unit_has_got_is_moved_and_comes_back_at_its_position)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_INT(list(q), 2);
    CHECK_INT(move_all(q, 1, 8), 1);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(drain(q), "a b");
}

TEST(a_message_is_relocated_towards_the_end_of_the_journal_alone_and_only_while_it_is_there)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .persistent = 1, .priority = 4), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1, .priority = 4, .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "c", .persistent = 1, .priority = 4), 0);
    CHECK_INT(list(q), 3);
    struct mqx_store *store = &engine.manager->store;
    struct mqx_message *b = mqx_message(engine_region(), stored[1].slot);
    const uint64_t at = b->lsn;
    CHECK_INT(mqx_stored_relocate(store, q.slot, 4, stored[1].number, at + 8), 0);
    CHECK_INT(b->lsn, at + 8);
    CHECK_INT(mqx_stored_relocate(store, q.slot, 4, stored[1].number, at), 0);
    CHECK_INT(b->lsn, at + 8);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(mqx_stored_relocate(store, q.slot, 4, stored[1].number, at + 16), 0);
    CHECK_INT(mqx_message(engine_region(), stored[2].slot)->lsn, stored[2].lsn);
    CHECK_STR(drain(q), "a c");
}

TEST_MAIN()
