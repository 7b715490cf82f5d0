/* Claims of memory_ahead.h: the area grows up to what is wanted and each piece is populated, by
 * growths like any other; what cannot be had ends the helper and nothing else. */
#include "region/memory_ahead.h"

#include "fixtures/region_fixture.h"
#include "os/host_info.h"

#include <unistd.h>

enum { MESSAGES = 300000, LOOKS = 20000, LOOK_US = 500 };

static struct mqx_io_ops ops;
static uint64_t populated, populated_end; /* bytes, and their end in the area; helper only */

static int populate(struct mqx_io *io, void *at, uint64_t size)
{
    const uint64_t from = (uint64_t)((unsigned char *)at - region.area[MQX_AREA_MESSAGES]);
    (void)io;
    CHECK_INT(from, mqx_load_relaxed(&populated_end)); /* no gap */
    CHECK(from + size <= mqx_area_sure(&region, MQX_AREA_MESSAGES));
    (void)mqx_fetch_add(&populated, size);
    mqx_store_release(&populated_end, from + size);
    return 0;
}

static struct mqx_memory_ahead ahead;

static void begin(void)
{
    region_begin();
    ops = *region.io->ops;
    CHECK(ops.populate_write == NULL); /* files in memory have none */
    ops.populate_write = populate;
    region.io->ops = &ops;
    populated = populated_end = 0;
    mqx_memory_ahead_begin(&ahead, &region);
}

static uint64_t whole_mib(uint64_t messages)
{
    return messages * sizeof(struct mqx_message) >> 20 << 20;
}

static bool becomes(const uint64_t *word, uint64_t value)
{
    for (int i = 0; i < LOOKS && mqx_load_acquire(word) < value; i++) {
        (void)usleep(LOOK_US);
    }
    return mqx_load_acquire(word) == value;
}

TEST(what_is_wanted_is_made_and_populated_where_there_is_a_second_processor)
{
    begin();
    const bool helps = mqx_usable_processors() > 1;
    mqx_memory_ahead_want(&ahead, MESSAGES / 2);
    CHECK_INT(ahead.helper.runs, helps);
    if (helps) {
        CHECK(becomes(&populated_end, whole_mib(MESSAGES / 2)));
    }
    mqx_memory_ahead_want(&ahead, MESSAGES / 3); /* less changes nothing */
    mqx_memory_ahead_want(&ahead, MESSAGES);
    if (helps) {
        CHECK(becomes(&populated_end, whole_mib(MESSAGES)));
        CHECK(mqx_area_sure(&region, MQX_AREA_MESSAGES) >= whole_mib(MESSAGES));
    }
    mqx_memory_ahead_end(&ahead);
    CHECK_INT(populated, helps ? whole_mib(MESSAGES) : 0);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_MESSAGES, whole_mib(2 * MESSAGES)), 0);
}

TEST(a_small_backlog_and_files_that_cannot_be_populated_start_no_thread)
{
    begin();
    mqx_memory_ahead_want(&ahead, MQX_AHEAD_LEAST - 1);
    CHECK(!ahead.helper.runs);
    ops.populate_write = NULL;
    mqx_memory_ahead_want(&ahead, MESSAGES);
    CHECK(!ahead.helper.runs);
    mqx_memory_ahead_end(&ahead);
}

TEST(the_helper_ends_at_its_first_failure_and_the_region_goes_on)
{
    begin();
    const uint64_t space = region.reach.space[MQX_AREA_MESSAGES];
    mqx_memory_ahead_want(&ahead, UINT64_MAX); /* more than the area can have */
    if (ahead.helper.runs) {
        for (int i = 0; i < LOOKS && mqx_load_acquire(&populated_end) + (2 << 20) <= space; i++) {
            (void)usleep(LOOK_US);
        }
    }
    mqx_memory_ahead_end(&ahead);
    CHECK(mqx_area_sure(&region, MQX_AREA_MESSAGES) <= space);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 1 << 20), 0);
}

TEST(the_end_does_not_wait_for_what_is_still_wanted)
{
    begin();
    mqx_memory_ahead_want(&ahead, MESSAGES);
    mqx_memory_ahead_end(&ahead);
    const uint64_t had = populated;
    (void)usleep(LOOK_US);
    CHECK_INT(populated, had);
    CHECK(had <= whole_mib(MESSAGES));
}

TEST_MAIN()
