/*
 * test_orphan_region.c - proves orphan_region.h: counts of messages in flight come from the region
 * that dead processes left, half-made changes are undone in the copy, and nothing that cannot be
 * true is believed or followed.
 */
#include "fixtures/harness.h"

#include "fixtures/journal_fixture.h"
#include "recovery/orphan_region.h"

static const uint8_t incarnation[16] = {9};

/* The entry of a message, which is on the queue. */
static uint32_t slot_of(struct journal_fixture *fixture, uint64_t number)
{
    for (uint32_t slot = 1; slot < 1000; slot++) {
        const struct mqx_message *message = mqx_message(&fixture->store.region, slot);
        if (message != NULL && message->state != MQX_MSG_FREE && message->number == number) {
            return slot;
        }
    }
    return 0;
}

/* Messages 1 to 3 on the queue; 1 and 3 are got by a unit, whose context is returned. */
static struct mqx_context *make_unit(struct journal_fixture *fixture)
{
    CHECK_INT(fixture_define(fixture, FIXTURE_QUEUE, FIXTURE_GENERATION), 0);
    for (uint64_t number = 1; number <= 3; number++) {
        CHECK_INT(fixture_put(fixture, 0, number, 4, 50, NULL), 0);
    }
    CHECK_INT(fixture_flush(fixture), 0);
    FIXTURE_REOPEN(*fixture);
    const uint32_t unit = fixture_unit(fixture);
    struct mqx_context *context = mqx_context(&fixture->store.region, unit);
    const uint32_t first = slot_of(fixture, 1), second = slot_of(fixture, 3);
    CHECK(first != 0 && second != 0);
    context->head = first;
    mqx_message(&fixture->store.region, first)->unit_next = second;
    mqx_message(&fixture->store.region, second)->unit_next = 0;
    for (uint64_t number = 1; number <= 3; number += 2) {
        struct mqx_message *message = mqx_message(&fixture->store.region, slot_of(fixture, number));
        message->state = MQX_MSG_GOT;
        message->unit = unit;
        message->backout_count = (uint32_t)number;
    }
    memcpy(fixture->store.region.header->incarnation, incarnation, sizeof incarnation);
    return context;
}
#define UNIT_OF(fixture, context)                                                                  \
    FIXTURE_OF(fixture, 65536);                                                                    \
    struct mqx_context *context = make_unit(&fixture)

static void read_orphan(struct journal_fixture *fixture, struct mqx_orphan_region *out)
{
    char name[24];
    snprintf(name, sizeof name, "region-%u", fixture->regions);
    mqx_orphan_region_read(fixture->io, fixture->store.region_dir, name, incarnation,
                           fixture->store.qm_id, out);
}

TEST(what_a_lost_unit_had_got_is_counted_as_backed_out)
{
    UNIT_OF(fixture, context);
    struct mqx_orphan_region orphan;
    CHECK_INT(context->state, MQX_CTX_ACTIVE);
    read_orphan(&fixture, &orphan);
    CHECK(orphan.read && !orphan.broken);
    CHECK_INT(orphan.in_flight_count, 2);
    CHECK_INT(orphan.in_flight[0].number, 1);
    CHECK_INT(orphan.in_flight[0].count, 2);
    CHECK_INT(orphan.in_flight[1].number, 3);
    CHECK_INT(orphan.in_flight[1].count, 4);
    mqx_orphan_region_free(&orphan);
    CHECK_INT(orphan.in_flight_count, 0);
}

TEST(a_unit_whose_decision_is_durable_is_not_lost_and_one_that_is_not_is)
{
    UNIT_OF(fixture, context);
    struct mqx_orphan_region orphan;
    static const uint32_t states[] = {MQX_CTX_DECIDED, MQX_CTX_PREPARED};
    for (uint32_t i = 0; i < 4; i++) {
        context->state = states[i / 2];
        context->decided_lsn = fixture.store.region.journal->durable + i % 2;
        read_orphan(&fixture, &orphan);
        CHECK(orphan.read);
        CHECK_INT(orphan.in_flight_count, i % 2 == 0 ? 0 : 2);
        mqx_orphan_region_free(&orphan);
    }
}

TEST(a_change_that_was_half_made_is_undone_in_the_copy)
{
    UNIT_OF(fixture, context);
    struct mqx_orphan_region orphan;
    struct mqx_lock *lock = &fixture.store.region.header->slots_lock;
    CHECK_INT(mqx_lock_take(&fixture.store.region, lock), 0);
    mqx_undo_store32(fixture.store.region.base, lock, &context->state, MQX_CTX_IDLE);
    read_orphan(&fixture, &orphan);
    CHECK_INT(orphan.in_flight_count, 2); /* as before the change */
    mqx_orphan_region_free(&orphan);
    mqx_undo_commit(lock);
    read_orphan(&fixture, &orphan);
    CHECK_INT(orphan.in_flight_count, 0);
    mqx_orphan_region_free(&orphan);
    mqx_lock_drop(&fixture.store.region, lock);
}

TEST(a_list_that_runs_in_a_ring_or_leads_outside_ends)
{
    for (uint32_t what = 0; what < 3; what++) {
        UNIT_OF(fixture, context);
        struct mqx_orphan_region orphan;
        const uint32_t last = slot_of(&fixture, 3);
        struct mqx_message *message = mqx_message(&fixture.store.region, last);
        message->unit_next = what == 0 ? last : what == 1 ? UINT32_MAX : 0;
        context->head = what == 2 ? UINT32_MAX : context->head;
        read_orphan(&fixture, &orphan);
        CHECK(orphan.read);
        CHECK_INT(orphan.in_flight_count, what == 2 ? 0 : 2); /* each number once */
        mqx_orphan_region_free(&orphan);
    }
}

TEST(a_region_of_another_start_or_that_cannot_be_true_gives_nothing)
{
    for (uint32_t what = 0; what < 7; what++) {
        UNIT_OF(fixture, context);
        struct mqx_header *header = fixture.store.region.header;
        struct mqx_orphan_region orphan;
        CHECK(context != NULL);
        const struct mqx_header before = *header;
        switch (what) {
        case 0: header->incarnation[0] += 1; break;
        case 1: header->qm_id[0] += 1; break;
        case 2: header->layout += 1; break;
        case 3: header->stripe_count = MQX_STRIPE_MAX + 1; break;
        case 4: header->stripe_offset = header->size; break;
        case 5: header->area[MQX_AREA_CONTEXTS].item_size += 64; break;
        default: header->area[MQX_AREA_MESSAGES].reserved_bytes = header->size; break;
        }
        read_orphan(&fixture, &orphan);
        CHECK(!orphan.read && !orphan.broken);
        CHECK_INT(orphan.in_flight_count, 0);
        mqx_orphan_region_free(&orphan);
        *header = before;
    }
}

TEST(a_region_that_was_stopped_by_a_failure_says_so)
{
    UNIT_OF(fixture, context);
    struct mqx_orphan_region orphan;
    CHECK(context != NULL);
    fixture.store.region.header->stopped = MQX_STOP_BROKEN;
    read_orphan(&fixture, &orphan);
    CHECK(orphan.broken);
    mqx_orphan_region_free(&orphan);
    fixture.store.region.header->stopped = MQX_RUNNING;
    fixture.store.region.header->ready = 0; /* a start that was not finished */
    read_orphan(&fixture, &orphan);
    CHECK(orphan.broken && !orphan.read);
    mqx_orphan_region_free(&orphan);
}

TEST_MAIN()
