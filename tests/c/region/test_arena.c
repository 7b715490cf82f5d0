/* Claims of arena.c: blocks and entries are free once or used once, wherever a process dies; lists
 * that cannot be true are not followed. */
#include "fixtures/region_fixture.h"
#include "region/extents.h"

static struct mqx_stripe_guard guard;

static void take_stripe(uint32_t object)
{
    CHECK_INT(mqx_stripe_guard_take(&region, object, &guard), 0);
}

static uint32_t cells_of(uint32_t class_no)
{
    uint32_t cell = 0;
    int status = mqx_cells_take(&guard, class_no, &cell);
    while (status == MQX_NEED_CELLS) {
        CHECK_INT(mqx_stripe_guard_supply(&guard), 0);
        status = mqx_cells_take(&guard, class_no, &cell);
    }
    CHECK_INT(status, 0);
    return cell;
}

static uint64_t walk(uint32_t class_no, uint32_t item)
{
    uint64_t n = 0;
    for (; item != 0 && n < 1000000; n++) {
        const uint32_t *link = mqx_item_link(&region, class_no, item);
        item = link == NULL ? 0 : *link;
    }
    return n;
}

/* Cells of a class on free lists and in parcels of the stripes. */
static uint64_t cells_of_stripes(uint32_t c)
{
    uint64_t blocks = 0;
    for (uint32_t s = 0; s < region.header->stripe_count; s++) {
        const struct mqx_stripe *stripe = &region.stripes[s];
        const struct mqx_parcel *parcels[] = {&stripe->incoming, &stripe->outgoing};
        blocks += walk(c, stripe->free_cells[c]);
        for (int i = 0; i < 2; i++) {
            blocks += parcels[i]->kind == 1 && parcels[i]->class_no == c
                          ? walk(c, parcels[i]->head) : 0;
        }
    }
    return blocks * mqx_class_bytes(c) / MQX_CELL;
}

static uint32_t begun(enum mqx_pool_no no)
{
    const struct mqx_area *area =
        &region.header->area[no == MQX_POOL_CELLS ? MQX_AREA_ARENA : MQX_AREA_MESSAGES];
    return (uint32_t)(area->used * area->item_size / MQX_EXTENT_BYTES);
}

/* Cells that extents have handed out. */
static uint64_t cells_in_use(void)
{
    uint64_t cells = 0;
    for (uint32_t i = 0; i < begun(MQX_POOL_CELLS); i++) {
        const struct mqx_extent *extent = &region.extents[MQX_POOL_CELLS][i];
        cells += extent->state == MQX_EXTENT_USED
                     ? (uint64_t)extent->in_use * mqx_class_bytes(extent->class_no) / MQX_CELL : 0;
    }
    return cells;
}

/* Handed out and in no message. */
static uint64_t free_cells(void)
{
    uint64_t total = 0;
    for (uint32_t c = 0; c < MQX_CLASS_COUNT; c++) {
        total += cells_of_stripes(c);
    }
    return total;
}

TEST(blocks_come_from_the_stripe_and_go_back_to_it)
{
    region_begin();
    take_stripe(1);
    const uint32_t a = cells_of(3), b = cells_of(3);
    CHECK(a != b && *(uint32_t *)mqx_cells(&region, a) == 0);
    mqx_stripe_guard_commit(&guard);
    const uint64_t in_use = cells_in_use();
    mqx_cells_give(&guard, 3, a);
    mqx_cells_give(&guard, 3, b);
    mqx_stripe_guard_commit(&guard);
    CHECK_INT(free_cells(), in_use);
    CHECK_INT(cells_of(3), b);
    mqx_stripe_guard_commit(&guard);
    CHECK_INT(cells_in_use(), in_use);
    mqx_stripe_guard_drop(&guard);
}

TEST(rolling_back_gives_blocks_and_entries_back)
{
    uint32_t slot = 0, again = 0;
    region_begin();
    take_stripe(1);
    (void)cells_of(5);
    mqx_stripe_guard_commit(&guard);
    const uint64_t free = free_cells();
    CHECK_INT(mqx_entry_take(&guard, &slot), MQX_NEED_CELLS);
    CHECK_INT(mqx_stripe_guard_supply(&guard), 0);
    CHECK_INT(mqx_entry_take(&guard, &slot), 0);
    CHECK_INT(mqx_message(&region, slot)->state, MQX_MSG_RESERVED);
    (void)cells_of(5);
    mqx_stripe_guard_rollback(&guard);
    CHECK_INT(free_cells(), free);
    CHECK_INT(mqx_message(&region, slot)->state, MQX_MSG_FREE);
    CHECK_INT(mqx_entry_take(&guard, &again), 0);
    CHECK_INT(again, slot);
    mqx_entry_give(&guard, again);
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
}

TEST(what_one_stripe_has_too_much_of_reaches_another_through_the_extents)
{
    enum { CLASS = 35, COUNT = 60 }; /* blocks of 64 KiB; a stripe keeps 16 */
    uint32_t cells[COUNT];
    region_begin();
    take_stripe(1);
    for (int i = 0; i < COUNT; i++) {
        cells[i] = cells_of(CLASS);
        mqx_stripe_guard_commit(&guard);
    }
    const uint64_t in_use = cells_in_use();
    for (int i = 0; i < COUNT; i++) {
        mqx_cells_give(&guard, CLASS, cells[i]);
        mqx_stripe_guard_commit(&guard);
    }
    CHECK_INT(guard.surplus, UINT64_C(1) << CLASS);
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(walk(CLASS, region.stripes[1].free_cells[CLASS]), 16);
    CHECK(cells_in_use() <= in_use - (COUNT - 17) * MQX_BLOCK_MAX / MQX_CELL);
    const uint32_t extents = begun(MQX_POOL_CELLS);
    take_stripe(2);
    for (int i = 0; i < COUNT - 17; i++) {
        (void)cells_of(CLASS);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(begun(MQX_POOL_CELLS), extents);
}

TEST(what_calls_in_one_hold_leave_over_of_many_classes_and_of_entries_is_returned_when_it_ends)
{
    enum { CLASSES = 3, COUNT = 3000 };
    static const uint32_t classes[CLASSES] = {12, 16, 20}; /* 1,280, 2,560 and 5,120 bytes */
    static uint32_t cells[CLASSES][COUNT], slots[COUNT * 4];
    region_begin();
    take_stripe(1);
    for (int i = 0; i < COUNT * 4; i++) {
        while (mqx_entry_take(&guard, &slots[i]) == MQX_NEED_CELLS) {
            CHECK_INT(mqx_stripe_guard_supply(&guard), 0);
        }
        mqx_stripe_guard_commit(&guard);
    }
    for (int c = 0; c < CLASSES; c++) {
        for (int i = 0; i < COUNT; i++) {
            cells[c][i] = cells_of(classes[c]);
            mqx_stripe_guard_commit(&guard);
        }
    }
    mqx_stripe_guard_drop(&guard);
    for (int i = 0; i < COUNT * 4; i++) {
        take_stripe(1);
        mqx_entry_give(&guard, slots[i]);
        for (int c = 0; c < CLASSES && i < COUNT; c++) {
            mqx_cells_give(&guard, classes[c], cells[c][i]);
        }
        mqx_stripe_guard_commit(&guard);
        mqx_stripe_guard_drop(&guard);
    }
    for (int c = 0; c < CLASSES; c++) {
        const uint64_t bytes = mqx_class_bytes(classes[c]);
        const uint64_t kept = walk(classes[c], region.stripes[1].free_cells[classes[c]]) * bytes;
        CHECK(kept >= MQX_STRIPE_KEEP_BYTES / 2);
        CHECK(kept <= MQX_STRIPE_KEEP_BYTES + MQX_PARCEL_BYTES);
    }
    CHECK(walk(MQX_ENTRY_CLASS, region.stripes[1].free_entries) * sizeof(struct mqx_message) <=
          MQX_STRIPE_KEEP_BYTES + MQX_PARCEL_BYTES);
}

TEST(returning_everything_leaves_a_stripe_with_nothing)
{
    uint32_t cells[200];
    region_begin();
    take_stripe(1);
    for (int i = 0; i < 200; i++) {
        cells[i] = cells_of((uint32_t)i % 36);
        mqx_stripe_guard_commit(&guard);
    }
    for (int i = 0; i < 200; i++) {
        mqx_cells_give(&guard, (uint32_t)i % 36, cells[i]);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    CHECK(cells_in_use() > 0);
    CHECK_INT(mqx_arena_return_all(&region, MQX_STRIPE_MAX), 0);
    CHECK_INT(free_cells(), 0);
    CHECK_INT(cells_in_use(), 0);
    CHECK_INT(region.header->pool[MQX_POOL_CELLS].free_count, begun(MQX_POOL_CELLS));
}

/* ---- shortage ---- */

/* Takes blocks of a class for a stripe until the region has no more. */
static uint32_t fill_with(uint32_t object, uint32_t class_no, uint32_t cells[], uint32_t most)
{
    uint32_t count = 0;
    take_stripe(object);
    for (; count < most; count++) {
        int status = mqx_cells_take(&guard, class_no, &cells[count]);
        while (status == MQX_NEED_CELLS) {
            status = mqx_stripe_guard_supply(&guard);
            status = status == MQX_OK ? mqx_cells_take(&guard, class_no, &cells[count]) : status;
        }
        if (status != MQX_OK) {
            CHECK_INT(status, MQRC_STORAGE_NOT_AVAILABLE);
            return count; /* the lock has been dropped */
        }
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    return count;
}

static void give_all(uint32_t object, uint32_t class_no, const uint32_t cells[], uint32_t count)
{
    take_stripe(object);
    for (uint32_t i = 0; i < count; i++) {
        mqx_cells_give(&guard, class_no, cells[i]);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
}

TEST(a_full_region_serves_every_class_and_stripe_in_turn_when_it_has_been_emptied)
{
    enum { MOST = 100000 };
    static uint32_t cells[MOST];
    struct mqx_region_plan plan = region_plan();
    uint64_t bytes_before = 0;
    plan.size = 16 << 20;
    region_begin_with(&plan);
    for (uint32_t c = 2; c < 36; c++) {
        const uint32_t count = fill_with(c, c, cells, MOST);
        const uint64_t bytes = (uint64_t)count * mqx_class_bytes(c);
        CHECK(count > 0 && count < MOST);
        CHECK(bytes_before == 0 || bytes >= bytes_before / 4 * 3);
        bytes_before = bytes;
        give_all(c, c, cells, count);
    }
}

/* Takes an entry and a block of each of a few classes, as a put does, until there is no memory. */
static int take_message(void)
{
    static const uint32_t classes[] = {4, 12, 30};
    uint32_t slot = 0, cell = 0;
    for (int supplies = 0;; supplies++) {
        int status = mqx_entry_take(&guard, &slot);
        for (size_t i = 0; i < MQX_ARRAY_COUNT(classes) && status == MQX_OK; i++) {
            status = mqx_cells_take(&guard, classes[i], &cell);
        }
        CHECK(supplies < 100);
        if (status != MQX_NEED_CELLS) {
            return status;
        }
        status = mqx_stripe_guard_supply(&guard);
        if (status != MQX_OK) {
            return status;
        }
    }
}

TEST(a_call_that_needs_several_classes_of_the_last_memory_ends)
{
    struct mqx_region_plan plan = region_plan();
    int status = 0;
    region_begin_with(&plan);
    for (uint32_t extents = 1; extents < 6; extents++) {
        memory_io_set_space(region_files, UINT64_MAX, UINT64_MAX);
        const enum mqx_pool_no no = extents % 2 == 0 ? MQX_POOL_CELLS : MQX_POOL_ENTRIES;
        CHECK_INT(mqx_extents_grow(&region, no, 1), 0);
        memory_io_set_space(region_files, UINT64_MAX, 0); /* what there is must do */
        do {
            take_stripe(1);
            status = take_message();
            if (status == MQX_OK) {
                mqx_stripe_guard_commit(&guard);
                mqx_stripe_guard_drop(&guard);
            }
        } while (status == MQX_OK);
        CHECK_INT(status, MQRC_STORAGE_NOT_AVAILABLE); /* the lock has been dropped */
    }
    memory_io_set_space(region_files, UINT64_MAX, UINT64_MAX);
}

/* ---- deaths between the steps of a parcel ---- */

enum { ROUNDS = 400 };

/* Takes and gives blocks of a few classes until it is killed. */
static void churn(uint32_t seed)
{
    struct test_random random = {seed};
    uint32_t kept[8], classes[8], count = 0;
    for (;;) {
        const uint32_t object = (uint32_t)test_below(&random, 4), c = 33 + object % 3;
        mqx_ignore(mqx_stripe_guard_take(&region, object, &guard));
        if (count < 8 && test_below(&random, 2) == 0) {
            classes[count] = c;
            kept[count++] = cells_of(c);
            mqx_stripe_guard_commit(&guard);
        } else if (count > 0) {
            count -= 1;
            mqx_cells_give(&guard, classes[count], kept[count]);
            mqx_stripe_guard_commit(&guard);
        }
        mqx_stripe_guard_drop(&guard);
        if (test_below(&random, 8) == 0) {
            mqx_ignore(mqx_arena_return(&region, object, UINT64_C(7) << 33));
        }
    }
}

/* What the dead had taken is named nowhere here (a context would name it), so cells may be missing
 * from the lists, but none may be on two of them. */
static bool each_cell_once(void)
{
    static uint8_t seen[1 << 22];
    const uint64_t cells = region.header->area[MQX_AREA_ARENA].used;
    bool once = cells < sizeof seen;
    memset(seen, 0, once ? cells : 0);
    for (uint32_t s = 0; s < region.header->stripe_count + begun(MQX_POOL_CELLS); s++) {
        const bool is_extent = s >= region.header->stripe_count;
        const struct mqx_stripe *stripe = &region.stripes[is_extent ? 0 : s];
        const struct mqx_extent *extent =
            &region.extents[MQX_POOL_CELLS][is_extent ? s - region.header->stripe_count : 0];
        for (uint32_t c = 0; c < MQX_CLASS_COUNT && once; c++) {
            const bool of_extent =
                is_extent && extent->state == MQX_EXTENT_USED && extent->class_no == c;
            const uint32_t heads[3] = {
                of_extent ? extent->free_head : is_extent ? 0 : stripe->free_cells[c],
                !is_extent && stripe->incoming.kind == 1 && stripe->incoming.class_no == c
                    ? stripe->incoming.head : 0,
                !is_extent && stripe->outgoing.kind == 1 && stripe->outgoing.class_no == c
                    ? stripe->outgoing.head : 0,
            };
            for (int i = 0; i < 3; i++) {
                for (uint32_t cell = heads[i]; cell != 0 && once;) {
                    once = seen[cell] == 0;
                    seen[cell] = 1;
                    cell = *(uint32_t *)mqx_cells(&region, cell);
                }
            }
        }
    }
    return once;
}

/* Each extent counts as in use what its lists do not have. */
static bool counts_are_right(void)
{
    for (uint32_t i = 0; i < begun(MQX_POOL_CELLS); i++) {
        const struct mqx_extent *extent = &region.extents[MQX_POOL_CELLS][i];
        if (extent->state == MQX_EXTENT_USED &&
            extent->in_use + walk(extent->class_no, extent->free_head) + (i == 0) !=
                extent->carved) {
            return false;
        }
    }
    return true;
}

TEST(a_death_at_any_moment_leaves_no_block_on_two_lists)
{
    struct test_random random = {test_seed()};
    region_begin();
    for (uint32_t n = 0; n < ROUNDS; n++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            region.process = n % 1000 + 1;
            churn(n + 1);
        }
        CHECK(child > 1);
        const struct timespec pause = {.tv_nsec = (long)test_below(&random, 500000)};
        (void)nanosleep(&pause, NULL);
        CHECK_INT(kill(child, SIGKILL), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
        for (uint32_t s = 0; s < 4; s++) {
            take_stripe(s);
            mqx_stripe_guard_drop(&guard);
        }
        CHECK_INT(mqx_lock_take(&region, &region.header->arena_lock), 0);
        mqx_lock_drop(&region, &region.header->arena_lock);
        CHECK(each_cell_once());
        CHECK(counts_are_right());
    }
    printf("(%d kills, %u repairs) ", ROUNDS,
           region.header->arena_lock.repairs + region.stripes[0].lock.repairs +
               region.stripes[1].lock.repairs);
}

/* ---- numbers, slots, bytes ---- */

TEST(numbers_rise_within_a_stripe_and_never_repeat_across_stripes)
{
    static uint64_t last[4];
    static uint8_t seen[60000];
    struct test_random random = {test_seed()};
    region_begin();
    memset(last, 0, sizeof last);
    region.journal->next_number = 1;
    for (int i = 0; i < 20000; i++) {
        const uint32_t object = (uint32_t)test_below(&random, 4);
        take_stripe(object);
        const uint64_t number = mqx_number_take(&guard);
        mqx_stripe_guard_commit(&guard);
        mqx_stripe_guard_drop(&guard);
        CHECK(number > last[object] && number < sizeof seen && seen[number] == 0);
        seen[number] = 1;
        last[object] = number;
    }
}

TEST(stored_bytes_come_back_and_their_owner_names_them_while_they_are_there)
{
    static unsigned char bytes[MQX_BLOCK_MAX + 1];
    uint32_t owner = 0, cell = 0;
    region_begin();
    memset(bytes, 0x5a, sizeof bytes);
    for (uint32_t size = 1; size <= MQX_BLOCK_MAX; size = size * 3 + 1) {
        CHECK_INT(mqx_store_bytes(&region, bytes, size, &owner, &cell), 0);
        CHECK_INT(owner, cell);
        CHECK_MEM(mqx_cells(&region, cell), bytes, size);
        CHECK_INT(mqx_free_bytes(&region, cell, size, &owner), 0);
        CHECK_INT(owner, 0);
        CHECK_INT(cells_in_use(), 0);
        CHECK_INT(mqx_store_bytes(&region, bytes, size, NULL, &cell), 0);
        CHECK_INT(mqx_free_bytes(&region, cell, size, NULL), 0);
    }
    CHECK_INT(mqx_store_bytes(&region, bytes, sizeof bytes, NULL, &cell),
              MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(begun(MQX_POOL_CELLS), 1);
}

static void find_damage(int status)
{
    CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(mqx_region_damaged());
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    region.header->stopped = MQX_RUNNING;
}

TEST(a_damaged_free_list_is_refused_and_stops_the_queue_manager)
{
    uint32_t cell = 0, slot = 0;
    region_begin();
    take_stripe(1);
    guard.stripe->free_cells[4] = UINT32_MAX;
    find_damage(mqx_cells_take(&guard, 4, &cell));
    guard.stripe->free_entries = UINT32_MAX;
    find_damage(mqx_entry_take(&guard, &slot));
    region.header->partial[7] = UINT32_MAX;
    guard.stripe->incoming.kind = MQX_PARCEL_NONE;
    guard.want = 7;
    find_damage(mqx_stripe_guard_supply(&guard));
}

TEST(a_damaged_parcel_is_refused)
{
    const struct mqx_parcel bad[] = {
        {.kind = MQX_PARCEL_OF_CELLS, .class_no = 4, .head = 9, .count = 3},
        {.kind = MQX_PARCEL_OF_CELLS, .class_no = MQX_CLASS_COUNT, .head = 1, .count = 1},
        {.kind = MQX_PARCEL_OF_CELLS, .class_no = 4, .head = UINT32_MAX, .count = 1},
        {.kind = MQX_PARCEL_OF_CELLS, .class_no = 4, .head = 1, .count = UINT32_MAX},
        {.kind = MQX_PARCEL_OF_ENTRIES, .class_no = 0, .head = 0, .count = 1},
        {.kind = 3, .class_no = 4, .head = 1, .count = 1},
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        region_begin();
        take_stripe(1);
        guard.stripe->incoming = bad[i];
        guard.want = 4;
        find_damage(mqx_stripe_guard_supply(&guard));
        take_stripe(1);
        guard.stripe->outgoing = bad[i];
        guard.stripe->free_cells[4] = 1;
        guard.surplus = 1 << 4;
        mqx_stripe_guard_drop(&guard);
        find_damage(MQRC_Q_MGR_NOT_AVAILABLE);
    }
}

TEST(a_damaged_high_water_mark_is_refused)
{
    static const char bytes[100];
    uint32_t cell = 0;
    const uint64_t bad[] = {0, UINT32_MAX, UINT64_MAX, UINT64_MAX / 64};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        region_begin();
        region.header->area[MQX_AREA_ARENA].used = bad[i];
        find_damage(mqx_store_bytes(&region, bytes, sizeof bytes, NULL, &cell));
    }
}

TEST(blocks_and_entries_that_are_not_there_are_not_given_back)
{
    region_begin();
    take_stripe(1);
    mqx_cells_give(&guard, 4, UINT32_MAX);
    find_damage(MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_cells_give(&guard, MQX_CLASS_COUNT, cells_of(4));
    find_damage(MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_entry_give(&guard, UINT32_MAX);
    find_damage(MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK_INT(guard.stripe->free_entries, 0);
    mqx_stripe_guard_rollback(&guard);
    mqx_stripe_guard_drop(&guard);
    find_damage(mqx_free_bytes(&region, UINT32_MAX, 100, NULL));
    find_damage(mqx_free_bytes(&region, 1, MQX_BLOCK_MAX + 1, NULL));
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
