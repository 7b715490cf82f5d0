/*
 * test_xid_table.c - proves xid_table.h: xids are compared and shown, contexts are found by theirs
 * while they are listed, and a damaged chain is a reason code.
 */
#include "unit/xid_table.h"

#include "fixtures/region_fixture.h"
#include "region/damage.h"

enum { UNITS = 40 };

static struct ps_xid xid_of(uint32_t number)
{
    struct ps_xid xid = {.format_id = 0x50534b54, .gtrid_length = 4, .bqual_length = 1};
    memcpy(xid.gtrid, &number, sizeof number);
    xid.bqual[0] = 7;
    return xid;
}

static struct mqx_lock *slots_lock(void)
{
    return &region.header->slots_lock;
}

/* A region with UNITS contexts that are not listed; the slots lock is held. */
static void begin(void)
{
    region_begin();
    for (uint32_t i = 1; i <= UNITS; i++) {
        uint32_t slot = 0;
        CHECK_INT(mqx_slot_take(&region, MQX_AREA_CONTEXTS, NULL, &slot), 0);
        CHECK_INT(slot, i);
        mqx_context(&region, slot)->xid = xid_of(i);
    }
    CHECK_INT(mqx_lock_take(&region, slots_lock()), 0);
}

static void end(void)
{
    mqx_undo_commit(slots_lock());
    mqx_lock_drop(&region, slots_lock());
    region_end();
}

static uint32_t find(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqx_xid_table_find(&region, &xid);
}

static void add(uint32_t slot)
{
    CHECK_INT(mqx_xid_table_add(&region, slot), 0);
    mqx_undo_commit(slots_lock());
}

/* Lists all contexts in one chain, whatever their hashes are. */
static void one_chain(void)
{
    for (uint32_t i = 1; i <= UNITS; i++) {
        add(i);
    }
    for (uint32_t b = 0; b < MQX_XID_BUCKETS; b++) {
        region.header->xid_bucket[b] = UNITS;
    }
    for (uint32_t i = 1; i <= UNITS; i++) {
        mqx_context(&region, i)->xid_next = i - 1;
    }
}

TEST(a_context_is_found_by_its_xid_while_it_is_listed)
{
    begin();
    CHECK_INT(find(3), 0);
    for (uint32_t i = 1; i <= UNITS; i++) {
        add(i);
    }
    for (uint32_t i = 1; i <= UNITS; i++) {
        CHECK_INT(find(i), i);
    }
    CHECK_INT(find(UNITS + 1), 0);
    CHECK_INT(mqx_xid_table_unlink(&region, 3), 0);
    mqx_undo_commit(slots_lock());
    CHECK_INT(find(3), 0);
    CHECK_INT(mqx_context(&region, 3)->xid_listed, 0);
    CHECK_INT(find(4), 4);
    end();
}

TEST(a_context_leaves_a_chain_from_anywhere_and_the_others_stay)
{
    static const uint32_t order[] = {UNITS, 1, UNITS / 2, UNITS - 1, 2};
    begin();
    one_chain();
    for (size_t k = 0; k < MQX_ARRAY_COUNT(order); k++) {
        const struct ps_xid xid = xid_of(order[k]);
        const uint32_t slot = mqx_xid_table_find(&region, &xid);
        CHECK_INT(slot, order[k]);
        if (slot != UNITS) { /* the first one is named by every bucket */
            CHECK_INT(mqx_xid_table_unlink(&region, slot), 0);
            mqx_undo_commit(slots_lock());
            CHECK_INT(find(order[k]), 0);
        }
    }
    for (uint32_t i = 3; i < UNITS - 1; i++) {
        CHECK_INT(find(i), i == UNITS / 2 ? 0 : i);
    }
    end();
}

TEST(a_rolled_back_change_leaves_the_chain_as_it_was)
{
    begin();
    add(1);
    CHECK_INT(mqx_xid_table_add(&region, 2), 0);
    mqx_undo_rollback(&region, slots_lock());
    CHECK_INT(find(2), 0);
    CHECK_INT(mqx_xid_table_unlink(&region, 1), 0);
    mqx_undo_rollback(&region, slots_lock());
    CHECK_INT(find(1), 1);
    CHECK_INT(mqx_context(&region, 1)->xid_listed, 1);
    end();
}

TEST(remove_takes_the_lock_and_commits)
{
    begin();
    add(1);
    mqx_lock_drop(&region, slots_lock());
    CHECK_INT(mqx_xid_table_remove(&region, 1), 0);
    CHECK_INT(mqx_lock_take(&region, slots_lock()), 0);
    CHECK_INT(find(1), 0);
    end();
}

TEST(a_chain_with_a_bad_context_or_a_loop_stops_the_queue_manager)
{
    begin();
    one_chain();
    mqx_context(&region, 1)->xid_next = UNITS; /* a loop */
    CHECK_INT(find(UNITS + 1), 0);
    CHECK(mqx_region_damaged());
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    end();
    begin();
    one_chain();
    mqx_context(&region, 5)->xid_next = 1u << 30;
    CHECK_INT(find(3), 0);
    CHECK(mqx_region_damaged());
    CHECK_INT(mqx_xid_table_unlink(&region, 3), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "chain of xids") != NULL);
    end();
}

TEST(what_is_listed_is_not_listed_again_and_what_is_not_is_not_taken_off)
{
    begin();
    add(1);
    CHECK_INT(mqx_xid_table_add(&region, 1), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_undo_commit(slots_lock());
    CHECK_INT(mqx_xid_table_unlink(&region, 2), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_undo_commit(slots_lock());
    CHECK_INT(mqx_xid_table_add(&region, 1u << 30), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK_INT(find(1), 1);
    (void)mqx_region_damaged();
    end();
}

TEST(xids_are_equal_when_all_of_their_bytes_are)
{
    const struct ps_xid a = xid_of(1);
    struct ps_xid b = a;
    CHECK(mqx_xid_equal(&a, &b));
    b.bqual[0] = 8;
    CHECK(!mqx_xid_equal(&a, &b));
    b = a;
    b.format_id += 1;
    CHECK(!mqx_xid_equal(&a, &b));
    b = a;
    b.gtrid_length += 1; /* a zero more */
    CHECK(!mqx_xid_equal(&a, &b));
}

TEST(a_xid_is_shown_in_letters_where_it_has_them_and_in_digits_where_not)
{
    char text[MQX_XID_TEXT_SIZE];
    struct ps_xid xid = {.format_id = 0x5053504b, .gtrid_length = 7, .bqual_length = 2};
    memcpy(xid.gtrid, "7f3a-01", 7);
    memcpy(xid.bqual, "\0\xff", 2);
    CHECK_STR(mqx_xid_text(&xid, text), "PSPK:7f3a-01:0x00ff");
    xid.format_id = -5;
    xid.bqual_length = 0;
    CHECK_STR(mqx_xid_text(&xid, text), "-5:7f3a-01");
    memcpy(xid.gtrid, "0x12345", 7); /* would be read as digits */
    CHECK_STR(mqx_xid_text(&xid, text), "-5:0x30783132333435");
    xid.format_id = INT32_MIN;
    xid.gtrid_length = xid.bqual_length = 64;
    memset(xid.gtrid, 0x80, 64);
    memset(xid.bqual, 0x80, 64);
    CHECK_INT(strlen(mqx_xid_text(&xid, text)), 11 + 1 + 130 + 1 + 130);
    xid.gtrid_length = UINT16_MAX; /* damaged */
    CHECK_INT(strlen(mqx_xid_text(&xid, text)), 11 + 1 + 130 + 1 + 130);
}

TEST_MAIN()
