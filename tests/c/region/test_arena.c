/* Claims of arena.c: blocks and entries are free once or used once, wherever a process dies; lists
 * that cannot be true are not followed. */
#include "fixtures/region_fixture.h"

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

static uint64_t walk(uint32_t cell)
{
    uint64_t n = 0;
    for (; cell != 0 && n < 1000000; n++) {
        const uint32_t *link = mqx_cells(&region, cell);
        cell = link == NULL ? 0 : *link;
    }
    return n;
}

/* Cells on free lists and in parcels, of all stripes and the global lists. */
static uint64_t free_cells(void)
{
    uint64_t total = 0;
    for (uint32_t c = 0; c < MQX_CLASS_COUNT; c++) {
        uint64_t blocks = walk(region.header->global_cells[c]);
        for (uint32_t s = 0; s < region.header->stripe_count; s++) {
            const struct mqx_stripe *stripe = &region.stripes[s];
            const struct mqx_parcel *parcels[] = {&stripe->incoming, &stripe->outgoing};
            blocks += walk(stripe->free_cells[c]);
            for (int i = 0; i < 2; i++) {
                blocks += parcels[i]->kind == 1 && parcels[i]->class_no == c
                              ? walk(parcels[i]->head) : 0;
            }
        }
        total += blocks * mqx_class_bytes(c) / MQX_CELL;
    }
    return total;
}

static uint64_t carved_cells(void)
{
    return region.header->area[MQX_AREA_ARENA].used - 1;
}

TEST(the_class_for_a_size_is_the_smallest_that_holds_it)
{
    for (uint32_t bytes = 1; bytes <= MQX_BLOCK_MAX; bytes++) {
        const uint32_t c = mqx_class_for(bytes);
        CHECK(c < MQX_CLASS_COUNT);
        CHECK(mqx_class_bytes(c) >= bytes && (c == 0 || mqx_class_bytes(c - 1) < bytes));
        CHECK(bytes < 512 || mqx_class_bytes(c) - bytes <= bytes / 4);
    }
}

TEST(blocks_come_from_the_stripe_and_go_back_to_it)
{
    region_begin();
    take_stripe(1);
    const uint32_t a = cells_of(3), b = cells_of(3);
    CHECK(a != b && *(uint32_t *)mqx_cells(&region, a) == 0);
    mqx_stripe_guard_commit(&guard);
    const uint64_t carved = carved_cells();
    mqx_cells_give(&guard, 3, a);
    mqx_cells_give(&guard, 3, b);
    mqx_stripe_guard_commit(&guard);
    CHECK_INT(free_cells(), carved);
    CHECK_INT(cells_of(3), b);
    mqx_stripe_guard_commit(&guard);
    CHECK_INT(carved_cells(), carved);
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

TEST(what_one_stripe_has_too_much_of_reaches_another_through_the_global_list)
{
    enum { CLASS = 39, COUNT = 60 }; /* blocks of 64 KiB; a stripe keeps 16 */
    uint32_t cells[COUNT];
    region_begin();
    take_stripe(1);
    for (int i = 0; i < COUNT; i++) {
        cells[i] = cells_of(CLASS);
        mqx_stripe_guard_commit(&guard);
    }
    for (int i = 0; i < COUNT; i++) {
        mqx_cells_give(&guard, CLASS, cells[i]);
        mqx_stripe_guard_commit(&guard);
        mqx_stripe_guard_trim(&guard, CLASS);
    }
    mqx_stripe_guard_drop(&guard);
    CHECK(walk(region.stripes[1].free_cells[CLASS]) <= 17);
    CHECK(walk(region.header->global_cells[CLASS]) >= COUNT - 17);
    const uint64_t carved = carved_cells();
    CHECK_INT(free_cells(), carved);
    take_stripe(2);
    for (int i = 0; i < COUNT - 17; i++) {
        (void)cells_of(CLASS);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(carved_cells(), carved);
}

/* ---- deaths between the steps of a parcel ---- */

enum { ROUNDS = 400 };

/* Takes and gives blocks of a few classes until it is killed. */
static void churn(uint32_t seed)
{
    struct test_random random = {seed};
    uint32_t kept[8], classes[8], count = 0;
    for (;;) {
        const uint32_t object = (uint32_t)test_below(&random, 4), c = 36 + object % 3;
        mqx_ignore(mqx_stripe_guard_take(&region, object, &guard));
        if (count < 8 && test_below(&random, 2) == 0) {
            classes[count] = c;
            kept[count++] = cells_of(c);
            mqx_stripe_guard_commit(&guard);
        } else if (count > 0) {
            mqx_cells_give(&guard, classes[count - 1], kept[count - 1]);
            mqx_stripe_guard_commit(&guard);
            mqx_stripe_guard_trim(&guard, classes[--count]);
        }
        mqx_stripe_guard_drop(&guard);
    }
}

/* What the dead had taken is named nowhere here (a context would name it), so cells may be missing
 * from the lists, but none may be on two of them: free cells never exceed what was carved,
 * each cell once. */
static bool each_cell_once(void)
{
    static uint8_t seen[1 << 22];
    bool once = carved_cells() < sizeof seen;
    memset(seen, 0, once ? carved_cells() + 1 : 0);
    for (uint32_t c = 0; c < MQX_CLASS_COUNT && once; c++) {
        for (uint32_t s = 0; s <= region.header->stripe_count; s++) {
            const bool global = s == region.header->stripe_count;
            const struct mqx_stripe *stripe = &region.stripes[global ? 0 : s];
            const uint32_t heads[3] = {
                global ? region.header->global_cells[c] : stripe->free_cells[c],
                !global && stripe->incoming.kind == 1 && stripe->incoming.class_no == c
                    ? stripe->incoming.head : 0,
                !global && stripe->outgoing.kind == 1 && stripe->outgoing.class_no == c
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
        const uint64_t carved = carved_cells();
        CHECK_INT(mqx_store_bytes(&region, bytes, size, NULL, &cell), 0);
        CHECK_INT(mqx_free_bytes(&region, cell, size, NULL), 0);
        CHECK_INT(carved_cells(), carved);
    }
    CHECK_INT(mqx_store_bytes(&region, bytes, sizeof bytes, NULL, &cell),
              MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(free_cells(), carved_cells());
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
    region.header->global_cells[7] = UINT32_MAX;
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
        guard.stripe->free_count[4] = UINT32_MAX;
        mqx_stripe_guard_trim(&guard, 4);
        find_damage(MQRC_Q_MGR_NOT_AVAILABLE);
        mqx_stripe_guard_drop(&guard);
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
    CHECK_INT(mqx_class_for(UINT32_MAX), MQX_CLASS_COUNT - 1);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
