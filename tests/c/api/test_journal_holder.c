/* Claims of journal_holder.h: the unit with the oldest record is found, and a refused put says what
 * holds the journal. */
#include "fixtures/engine_fixture.h"

#include "api/journal_holder.h"
#include "base/error.h"

TEST(the_unit_of_work_with_the_oldest_record_is_named)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqx_journal_holder holder;
    mqe_unit *first = engine_unit(), *second = engine_unit();
    mqx_journal_holder_find(engine_region(), &holder);
    CHECK_INT(holder.bytes, 0);
    CHECK_INT(PUT(q, .text = "a", .persistent = 1, .unit = first), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1, .unit = second), 0);
    mqx_journal_holder_find(engine_region(), &holder);
    const uint64_t both = holder.bytes;
    CHECK(both > 0);
    CHECK_INT(holder.pid, getpid());
    CHECK_INT(mqe_commit(first), 0);
    mqx_journal_holder_find(engine_region(), &holder);
    CHECK(holder.bytes > 0 && holder.since_us > 0);
    CHECK_INT(mqe_commit(second), 0);
    mqx_journal_holder_find(engine_region(), &holder);
    CHECK_INT(holder.bytes, 0);
}

TEST(a_refusal_says_which_queue_is_deep_and_which_unit_is_old)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), deep = QUEUE("DEEP.ONE", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .persistent = 1, .unit = unit), 0);
    engine_fill(deep, 3);
    CHECK_INT(mqx_journal_full(&engine.manager->store, 0), 0);
    CHECK_INT(mqx_journal_full(&engine.manager->store,
                               mqx_fail(MQRC_STORAGE_MEDIUM_FULL, "the journal is full")),
              MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "the journal is full; the deepest queue is DEEP.ONE with 3 "
                                   "messages; the oldest unit of work, of process ") != NULL);
    CHECK_INT(mqe_commit(unit), 0);
}

TEST_MAIN()
