/*
 * test_rehearsal.c - proves rehearsal.h: a checkpoint of a damaged region never replaces what the
 * journal says; a healthy one, with anything going on beside it, always does.
 */
#include "fixtures/engine_fixture.h"

#include "queue/expire.h"
#include "queue/queue.h"
#include "recovery/checkpoint_round.h"
#include "recovery/rehearsal.h"

enum { MESSAGES = 40 };

static struct queue queue;

/* Messages that were acknowledged; half of them are listed in an older checkpoint. */
static void begin_with_messages(void)
{
    engine_begin();
    queue = QUEUE("Q");
    (void)QUEUE("R");
    for (int i = 0; i < MESSAGES; i++) {
        CHECK_INT(PUT(queue, .text = "kept", .persistent = 1, .priority = i % 10,
                      .msg = (uint64_t)i + 1), 0);
        if (i == MESSAGES / 2) {
            CHECK_INT(mqx_checkpoint_now(&engine.manager->store), 0);
        }
    }
}

/* The n-th message that is on the queue. */
static struct mqx_message *present(uint32_t nth)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = mqx_area_used(region, MQX_AREA_MESSAGES);
    for (uint32_t slot = 1; slot < used; slot++) {
        struct mqx_message *message = mqx_message(region, slot);
        if (message->state == MQX_MSG_AVAILABLE && nth-- == 0) {
            return message;
        }
    }
    CHECK(false);
    return NULL;
}

enum { DAMAGES = 17 };

/* Damage number `how`, done to one message or to its queue. */
static void damage(int how)
{
    struct mqx_message *message = present(7);
    struct mqx_object *object = mqx_object(engine_region(), queue.slot);
    switch (how) {
    case 0: message->state = MQX_MSG_FREE; break;
    case 1: message->state = MQX_MSG_PUT; break;
    case 2: message->state = MQX_MSG_GONE; break;
    case 3: message->flags &= (uint8_t)~MQX_MSGF_PERSISTENT; break;
    case 4: message->number += 1000; break;
    case 5: message->lsn += 8; break;
    case 6: message->record_length += 8; break;
    case 7: message->length += 1; break;
    case 8: message->placement ^= 1; break;
    case 9: message->tag[0] ^= 1; break;
    case 10: message->object += 1; break;
    case 11: message->priority += 1; break;
    case 12: object->name[0] ^= 1; break;
    case 13: object->generation += 1; break;
    case 14: object->state = MQX_OBJ_DELETING; break;
    case 15: object->level[4].root = 0; break;
    default: message->expiry = 32; break;
    }
}

static uint32_t count_messages(void)
{
    uint32_t count = 0;
    queue = engine_find("Q");
    while ((void)TAKE(queue), got.status == MQX_OK) {
        count += 1;
    }
    return count;
}

TEST(a_checkpoint_of_a_damaged_region_stops_the_queue_manager_and_the_restart_has_everything)
{
    for (int how = 0; how < DAMAGES; how++) {
        begin_with_messages();
        damage(how);
        const int status = mqx_checkpoint_now(&engine.manager->store);
        if (status == MQX_OK || mqx_region_damage_text(engine_region()) == NULL) {
            printf("\n    damage %d: status %d", how, status);
        }
        CHECK(status != MQX_OK);
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
        CHECK(mqx_region_damage_text(engine_region()) != NULL);
        engine_kill_and_restart();
        CHECK_INT(count_messages(), MESSAGES);
    }
}

TEST(an_orderly_end_of_a_damaged_region_is_refused_and_the_restart_has_everything)
{
    for (int how = 0; how < DAMAGES; how++) {
        begin_with_messages();
        damage(how);
        (void)engine_detach(MQE_DETACH_ORDERLY, NULL);
        CHECK_INT(engine_attach(), 0);
        const uint32_t count = count_messages();
        if (count != MESSAGES) {
            printf("\n    damage %d: %u messages", how, count);
        }
        CHECK_INT(count, MESSAGES);
    }
}

/* Damage number `how`, done to what the region says of the first segment. */
static void damage_segment(int how)
{
    struct mqx_segment *segment = &engine_region()->journal->segment[0];
    CHECK_INT(segment->state, MQX_SEG_FULL);
    switch (how) {
    case 0: segment->state = MQX_SEG_FREE; break; /* to be used for another file */
    case 1: segment->state = MQX_SEG_SPARE; break;
    case 2: segment->number += 1000; break;
    case 3: segment->base_lsn = UINT64_MAX / 2; break;
    case 4: segment->end_lsn -= MQX_PAGE_SIZE; break;
    default: segment->salt[0] ^= 1; break;
    }
}

TEST(a_segment_that_a_damaged_region_forgets_keeps_its_messages)
{
    static char text[30000];
    memset(text, 'x', sizeof text - 1);
    for (int how = 0; how < 6; how++) {
        begin_with_messages();
        uint32_t accepted = MESSAGES;
        for (int i = 0; i < 100; i++) { /* more than two segments */
            accepted += PUT(queue, .text = text, .persistent = 1) == MQX_OK;
            if (i == 50) {
                damage_segment(how);
            }
        }
        const int status = mqx_checkpoint_now(&engine.manager->store);
        CHECK(status != MQX_OK);
        CHECK(mqx_region_damage_text(engine_region()) != NULL);
        engine_kill_and_restart();
        CHECK_INT(count_messages(), accepted);
    }
}

/* Puts a message that expires, drops it from the region at `now_us`, and takes a checkpoint at
 * `then_us`. */
static int checkpoint_without(int32_t expiry, bool damaged, uint64_t now_us, uint64_t then_us)
{
    struct mqx_store *store = &engine.manager->store;
    struct mqx_expire_step step;
    CHECK_INT(PUT(queue, .text = "expires", .persistent = 1, .expiry = expiry), 0);
    struct mqx_message *message = present(0);
    for (uint32_t i = 1; message->expiry == 0; i++) {
        message = present(i);
    }
    message->expiry = damaged ? 1 : message->expiry;
    const uint32_t before = depth(queue);
    CHECK_INT(mqx_queue_expire_step(store, queue.slot, now_us, &step), 0);
    memory_io_set_clock(engine.files, then_us);
    CHECK_INT(depth(queue), before - 1);
    return mqx_checkpoint_now(store);
}

TEST(a_message_may_be_missing_when_its_record_says_that_it_has_expired_and_not_before)
{
    begin_with_messages();
    const uint64_t today = UINT64_C(1700000100000000), later = UINT64_C(4000000000000000);
    CHECK_INT(checkpoint_without(100000, true, today, today), MQRC_Q_MGR_NOT_AVAILABLE);
    engine_kill_and_restart();
    CHECK_INT(count_messages(), MESSAGES + 1);
    CHECK_INT(checkpoint_without(1, false, later, later), MQX_OK);
    CHECK_INT(checkpoint_without(1, false, later, today), MQX_OK); /* the clock is set back */
}

static void work(uint32_t round)
{
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(queue, .text = "a", .persistent = 1, .unit = unit), 0);
    CHECK_INT(PUT(queue, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT(queue, .text = "c", .persistent = 0), 0);
    CHECK(TAKE(queue, .unit = unit) != NULL && got.status == MQX_OK);
    CHECK(TAKE(queue) != NULL && got.status == MQX_OK);
    if (round % 3 == 0) {
        CHECK_INT(mqe_commit(unit), 0);
    } else if (round % 3 == 1) {
        CHECK_INT(mqe_backout(unit), 0);
    } /* else it stays open */
}

TEST(a_healthy_region_is_never_refused_whatever_is_open_beside_it)
{
    static char large[90000];
    begin_with_messages();
    memset(large, 'x', sizeof large - 1);
    for (uint32_t round = 0; round < 60; round++) {
        work(round);
        if (round % 7 == 0) {
            CHECK_INT(PUT(queue, .text = large, .persistent = 1), 0); /* in pieces */
        }
        CHECK_INT(mqx_checkpoint_now(&engine.manager->store), 0);
        if (round % 20 == 19) {
            engine_kill_and_restart();
            queue = engine_find("Q");
        }
    }
    CHECK(mqx_region_damage_text(engine_region()) == NULL);
    const uint32_t before = depth(queue);
    engine_restart();
    queue = engine_find("Q");
    CHECK(depth(queue) > 0 && depth(queue) <= before);
}

TEST(a_journal_that_can_no_longer_be_read_does_not_keep_a_checkpoint_from_being_taken)
{
    begin_with_messages();
    engine_restart();
    queue = engine_find("Q");
    CHECK_INT(PUT(queue, .text = "x", .persistent = 1), 0);
    memory_io_flip_bit(engine.files, ENGINE_HOME "/journal/0000000001.psj", 0);
    CHECK_INT(mqx_checkpoint_now(&engine.manager->store), 0);
}

static const struct mqx_io_ops *real_ops;
static uint64_t furthest; /* end of a read */

static int64_t note_read(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset)
{
    furthest = offset + size > furthest ? offset + size : furthest;
    return real_ops->read(io, fd, to, size, offset);
}

TEST(a_rehearsal_reads_no_further_than_the_journal_goes)
{
    begin_with_messages();
    struct mqx_store *store = &engine.manager->store;
    struct mqx_io_ops noting = *store->io->ops;
    const struct mqx_segment *segment = &store->region.journal->segment[0];
    real_ops = store->io->ops;
    noting.read = note_read;
    store->io->ops = &noting;
    furthest = 0;
    const int status = mqx_checkpoint_now(store);
    store->io->ops = real_ops;
    CHECK_INT(status, 0);
    const uint64_t end = mqx_round_up(store->region.journal->tail, MQX_PAGE_SIZE);
    CHECK_INT(store->region.journal->active, 1);
    CHECK(end - segment->base_lsn + MQX_PAGE_SIZE < segment->size); /* there is more of the file */
    CHECK(furthest > 0 && furthest <= end - segment->base_lsn);
}

/* ---- the older checkpoint ---- */

TEST(an_older_checkpoint_needs_what_it_lists_and_everything_from_its_begin_on)
{
    struct psc_segment listed[] = {{.number = 2}, {.number = 5}, {.number = 6}, {.number = 9}};
    const struct mqx_older_checkpoint older = {
        .begin_lsn = 4096, .begin_segment = 12, .listed = listed, .listed_count = 4};
    static const bool needed[] = {false, true, false, false, true, true, false, false,
                                  true, false, false, true, true, true}; /* of 1 and so on */
    for (uint64_t number = 1; number <= MQX_ARRAY_COUNT(needed); number++) {
        CHECK_INT(mqx_older_checkpoint_needs(&older, number), needed[number - 1]);
    }
    const struct mqx_older_checkpoint lists_none = {.begin_lsn = 4096, .begin_segment = 3};
    CHECK(!mqx_older_checkpoint_needs(&lists_none, 2));
    CHECK(mqx_older_checkpoint_needs(&lists_none, 3));
    const struct mqx_older_checkpoint none = {.begin_lsn = 0};
    CHECK(mqx_older_checkpoint_needs(&none, 1)); /* a restart reads the whole journal */
}

TEST(the_fixture_is_removed)
{
    engine_end();
}

TEST_MAIN()
