/*
 * prepared_bed.h - prepared units for tests on engine_bed.h: units are named by numbers, and what
 * one holds is read as a text.
 */
#ifndef PENSTOCK_TESTS_PREPARED_BED_H
#define PENSTOCK_TESTS_PREPARED_BED_H

#include "engine_bed.h"
#include "prepared.h"

__attribute__((unused)) static struct ps_xid xid_of(uint32_t number)
{
    struct ps_xid xid = {.format_id = 0x50534b54, .gtrid_length = 4, .bqual_length = 1};
    memcpy(xid.gtrid, &number, 4);
    xid.bqual[0] = 7;
    return xid;
}

__attribute__((unused)) static int prepare(mqe_unit *unit, uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_prepare(unit, &xid, 0);
}

__attribute__((unused)) static int commit(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_commit_prepared(engine.manager, &xid, 1);
}

static uint64_t discarded;

__attribute__((unused)) static int back_out(uint32_t number)
{
    const struct ps_xid xid = xid_of(number);
    return mqe_backout_prepared(engine.manager, &xid, 1, &discarded);
}

__attribute__((unused)) static uint32_t prepared_count(void)
{
    uint32_t count = 0;
    CHECK_INT(mqe_prepared_list(engine.manager, NULL, 0, &count), 0);
    return count;
}

__attribute__((unused)) static struct mqe_prepared only_one(void)
{
    struct mqe_prepared row = {0};
    uint32_t count = 0;
    CHECK_INT(mqe_prepared_list(engine.manager, &row, 1, &count), 0);
    CHECK_INT(count, 1);
    return row;
}

__attribute__((unused)) static bool is_all_sound(void)
{
    return mqe_check(engine.manager) == 0;
}

/* ---- reading ---- */

enum { ROWS = 8000, BODIES = 1 << 20 };
static struct mqe_item items[ROWS];
static unsigned char bodies[BODIES];
static int64_t offsets[ROWS + 1];
static struct mqe_batch batch;

__attribute__((unused)) static int browse_some(uint32_t number, struct mqe_prepared_cursor *cursor,
                                               uint32_t rows, uint64_t room)
{
    const struct ps_xid xid = xid_of(number);
    batch = (struct mqe_batch){.items = items, .capacity = rows, .bodies = bodies,
                               .body_capacity = room, .offsets = offsets};
    return mqe_browse_prepared(engine.manager, &xid, cursor, &batch);
}

/* Texts from index `from` on, a few a call; bodies are cut at 20 bytes. */
__attribute__((unused)) static const char *rows_from(uint32_t number, uint64_t from,
                                                     uint32_t a_call)
{
    static char all[4096];
    struct mqe_prepared_cursor cursor = {.index = from};
    size_t used = 0;
    all[0] = '\0';
    do {
        CHECK_INT(browse_some(number, &cursor, a_call, BODIES), 0);
        for (uint32_t i = 0; i < batch.count && used < sizeof all - 100; i++) {
            const int length = (int)(offsets[i + 1] - offsets[i]);
            CHECK_INT(items[i].length, length);
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s%.*s",
                                     used != 0 ? " " : "",
                                     items[i].work == MQE_ITEM_PUT ? "+" : "",
                                     length < 20 ? length : 20, bodies + offsets[i]);
        }
    } while (batch.count != 0);
    return all;
}

__attribute__((unused)) static const char *rows(uint32_t number)
{
    return rows_from(number, 0, 3);
}

#endif
