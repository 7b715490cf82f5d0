/* Claims of extents.c: an extent serves one class at a time and any class when it is empty; its
 * memory goes to the file system and comes back before it is used; records that cannot be true are
 * refused. */
#include "fixtures/region_fixture.h"
#include "region/extents.h"

#include <sched.h>

enum { CLASS = 15, BYTES = 2048, OF_CLASS = MQX_EXTENT_BYTES / BYTES };

static void take_arena(void)
{
    CHECK_INT(mqx_lock_take(&region, &region.header->arena_lock), 0);
}

static void drop_arena(void)
{
    mqx_undo_commit(&region.header->arena_lock);
    mqx_lock_drop(&region, &region.header->arena_lock);
}

/* Takes up to `want` items of a class, linked; grows as needed. */
static uint32_t take(uint32_t class_no, uint32_t want, uint32_t *count)
{
    uint32_t head = 0;
    for (;;) {
        take_arena();
        const int status = mqx_extents_take(&region, class_no, want, &head, count);
        drop_arena();
        if (status == MQX_OK) {
            return head;
        }
        CHECK_INT(status, MQX_NEED_GROWTH);
        CHECK_INT(mqx_extents_grow(&region, mqx_pool_of(class_no), 1), 0);
    }
}

static uint32_t take_one(uint32_t class_no)
{
    uint32_t count = 0;
    const uint32_t item = take(class_no, 1, &count);
    CHECK_INT(count, 1);
    return item;
}

static void give(uint32_t class_no, uint32_t item)
{
    take_arena();
    CHECK_INT(mqx_extents_give(&region, class_no, item), 0);
    drop_arena();
}

static const struct mqx_pool *pool(enum mqx_pool_no no)
{
    return &region.header->pool[no];
}

static struct mqx_extent *extent_of(enum mqx_pool_no no, uint32_t item)
{
    const uint32_t unit = no == MQX_POOL_CELLS ? MQX_CELL : sizeof(struct mqx_message);
    return &region.extents[no][item / (MQX_EXTENT_BYTES / unit)];
}

static uint32_t punch(enum mqx_pool_no no, uint32_t count)
{
    uint32_t done = 0;
    CHECK_INT(mqx_extents_punch(&region, no, count, &done), 0);
    return done;
}

TEST(items_of_a_class_come_from_one_extent_until_it_is_exhausted)
{
    uint32_t count = 0, items[OF_CLASS];
    region_begin();
    const uint32_t head = take(CLASS, 5, &count);
    CHECK_INT(count, 5);
    CHECK_INT(head, BYTES / MQX_CELL); /* item 0 is none */
    struct mqx_extent *extent = extent_of(MQX_POOL_CELLS, head);
    CHECK_INT(extent->in_use, 5);
    for (uint32_t i = 6; i < OF_CLASS; i++) {
        items[i] = take_one(CLASS);
        CHECK(extent_of(MQX_POOL_CELLS, items[i]) == extent);
    }
    CHECK_INT(extent->in_use, OF_CLASS - 1);
    CHECK(extent_of(MQX_POOL_CELLS, take_one(CLASS)) != extent);
    give(CLASS, items[9]);
    give(CLASS, items[8]);
    CHECK_INT(take(CLASS, 64, &count), items[8]); /* what came back goes out first */
    CHECK_INT(count, 2);
    CHECK_INT(*mqx_item_link(&region, CLASS, items[8]), items[9]);
    CHECK_INT(*mqx_item_link(&region, CLASS, items[9]), 0);
}

TEST(an_extent_whose_last_item_comes_back_serves_another_class)
{
    region_begin();
    for (uint32_t c = 0; mqx_class_bytes(c) <= MQX_BLOCK_MAX; c++) {
        const uint32_t item = take_one(c), other = take_one(c);
        CHECK_INT(extent_of(MQX_POOL_CELLS, item)->class_no, c);
        give(c, item);
        give(c, other);
        CHECK(pool(MQX_POOL_CELLS)->free_count >= 1);
    }
    CHECK(region.header->area[MQX_AREA_ARENA].used <= 2 * MQX_EXTENT_BYTES / MQX_CELL);
    const uint32_t entry = take_one(MQX_ENTRY_CLASS);
    CHECK_INT(entry, 1);
    CHECK_INT(extent_of(MQX_POOL_ENTRIES, entry)->class_no, MQX_ENTRY_CLASS);
}

TEST(a_block_above_the_largest_class_is_never_made)
{
    uint32_t head = 0, count = 0;
    region_begin();
    CHECK_INT(mqx_extents_grow(&region, MQX_POOL_CELLS, 1), 0);
    take_arena();
    CHECK_INT(mqx_extents_take(&region, MQX_CLASS_COUNT - 1, 1, &head, &count),
              MQRC_Q_MGR_NOT_AVAILABLE);
    drop_arena();
}

/* Random takes and gives of random classes: no item twice, and all extents free in the end. */
TEST(items_never_overlap_and_everything_is_free_when_all_have_come_back)
{
    enum { MOST = 2000, STEPS = 40000 };
    static struct { uint32_t item, class_no; } held[MOST];
    static uint8_t used[1 << 20];
    struct test_random random = {test_seed()};
    uint32_t held_count = 0;
    region_begin();
    memset(used, 0, sizeof used);
    for (int i = 0; i < STEPS; i++) {
        const bool take_it = held_count == 0 ||
                             (held_count < MOST && test_below(&random, 2000) >= held_count / 2);
        const uint32_t k = take_it ? held_count : (uint32_t)test_below(&random, held_count);
        if (take_it) {
            const uint32_t c = (uint32_t)test_below(&random, 36);
            held[held_count].class_no = c;
            held[held_count++].item = take_one(c);
        }
        const uint32_t cells = mqx_class_bytes(held[k].class_no) / MQX_CELL;
        for (uint32_t cell = 0; cell < cells; cell++) {
            CHECK(held[k].item + cell < sizeof used);
            CHECK_INT(used[held[k].item + cell], take_it ? 0 : 1);
            used[held[k].item + cell] = take_it;
        }
        if (!take_it) {
            give(held[k].class_no, held[k].item);
            held[k] = held[--held_count];
        }
    }
    while (held_count > 0) {
        held_count -= 1;
        give(held[held_count].class_no, held[held_count].item);
    }
    const uint64_t begun = region.header->area[MQX_AREA_ARENA].used / (MQX_EXTENT_BYTES / MQX_CELL);
    CHECK_INT(pool(MQX_POOL_CELLS)->free_count, begun);
    CHECK_INT(mqx_extents_used_bytes(&region, MQX_POOL_CELLS), 0);
}

/* ---- punching and backing ---- */

/* Makes `count` extents of a pool free. */
static void make_free(uint32_t class_no, uint32_t count)
{
    static uint32_t items[100000];
    const uint32_t each = MQX_EXTENT_BYTES / mqx_class_bytes(class_no);
    uint32_t n = 0;
    while (n < count * each) {
        items[n++] = take_one(class_no);
    }
    while (n > 0) {
        give(class_no, items[--n]);
    }
    CHECK(pool(mqx_pool_of(class_no))->free_count >= count);
}

TEST(a_punched_extent_is_empty_and_gets_memory_before_it_is_used)
{
    region_begin();
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        const uint32_t class_no = no == MQX_POOL_ENTRIES ? (uint32_t)MQX_ENTRY_CLASS : CLASS;
        make_free(class_no, 40);
        const uint32_t free = pool((enum mqx_pool_no)no)->free_count;
        const uint64_t capacity = region.header->area[no == MQX_POOL_ENTRIES ? MQX_AREA_MESSAGES
                                                                             : MQX_AREA_ARENA]
                                      .capacity;
        memset(region.area[no == MQX_POOL_ENTRIES ? MQX_AREA_MESSAGES : MQX_AREA_ARENA] +
                   sizeof(struct mqx_message), 0x55, (free - 1) * MQX_EXTENT_BYTES);
        const uint64_t before = memory_io_calls(region_files, MEMORY_PUNCH);
        CHECK_INT(punch((enum mqx_pool_no)no, free), free);
        CHECK_INT(memory_io_calls(region_files, MEMORY_PUNCH), before + free);
        CHECK_INT(pool((enum mqx_pool_no)no)->free_count, 0);
        CHECK_INT(mqx_extents_punched_bytes(&region, (enum mqx_pool_no)no),
                  (uint64_t)free * MQX_EXTENT_BYTES);
        const uint64_t allocated = memory_io_calls(region_files, MEMORY_ALLOCATE);
        const uint32_t item = take_one(class_no);
        CHECK(memory_io_calls(region_files, MEMORY_ALLOCATE) > allocated);
        CHECK(extent_of((enum mqx_pool_no)no, item)->state == MQX_EXTENT_USED);
        CHECK_INT(capacity, region.header->area[no == MQX_POOL_ENTRIES ? MQX_AREA_MESSAGES
                                                                       : MQX_AREA_ARENA]
                                .capacity); /* punched ones come first */
        if (no == MQX_POOL_ENTRIES) {
            CHECK_INT(mqx_message(&region, item)->state, MQX_MSG_FREE);
        }
    }
}

static void *hold_stripe(void *arg)
{
    uint32_t *step = arg;
    CHECK_INT(mqx_lock_take(&region, &region.stripes[2].lock), 0);
    __atomic_store_n(step, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(step, __ATOMIC_ACQUIRE) == 1) {
        (void)sched_yield();
    }
    mqx_lock_drop(&region, &region.stripes[2].lock);
    return NULL;
}

TEST(nothing_is_punched_while_a_stripe_lock_is_held_and_the_next_call_finishes)
{
    pthread_t thread;
    uint32_t step = 0;
    region_begin();
    make_free(CLASS, 10);
    CHECK_INT(pthread_create(&thread, NULL, hold_stripe, &step), 0);
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 0) {
        (void)sched_yield();
    }
    CHECK_INT(punch(MQX_POOL_CELLS, 4), 0);
    CHECK_INT(memory_io_calls(region_files, MEMORY_PUNCH), 0);
    CHECK(pool(MQX_POOL_CELLS)->to_punch != 0);
    __atomic_store_n(&step, 2u, __ATOMIC_RELEASE);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(punch(MQX_POOL_CELLS, 0), 4);
    CHECK_INT(pool(MQX_POOL_CELLS)->to_punch, 0);
}

TEST(an_extent_that_cannot_be_punched_stays_usable)
{
    region_begin();
    make_free(CLASS, 10);
    const uint32_t free = pool(MQX_POOL_CELLS)->free_count;
    memory_io_set_fault(region_files, &(struct memory_fault){.kind = MEMORY_FAULT_ERROR, .at = 1,
                                                             .ops = 1u << MEMORY_PUNCH,
                                                       .error = EOPNOTSUPP});
    CHECK_INT(punch(MQX_POOL_CELLS, 4), 0);
    CHECK_INT(pool(MQX_POOL_CELLS)->free_count, free);
    CHECK_INT(pool(MQX_POOL_CELLS)->punched, 0);
}

TEST(nothing_is_punched_or_backed_in_a_file_of_the_program_that_got_the_descriptors_number)
{
    region_begin();
    make_free(CLASS, 8);
    const uint32_t free = pool(MQX_POOL_CELLS)->free_count;
    CHECK_INT(punch(MQX_POOL_CELLS, 1), 1);
    memory_io_put(region_files, "/shm/program's own", "x", 1);
    const int dir = region.io->ops->open_dir(region.io, "/shm"), own = region.fd;
    region.fd = region.io->ops->open(region.io, dir, "program's own", MQX_IO_WRITE, 0);
    const uint64_t punches = memory_io_calls(region_files, MEMORY_PUNCH);
    const uint64_t allocations = memory_io_calls(region_files, MEMORY_ALLOCATE);
    CHECK_INT(punch(MQX_POOL_CELLS, free - 1), 0);
    CHECK_INT(pool(MQX_POOL_CELLS)->free_count, free - 1); /* they serve again */
    CHECK_INT(mqx_extents_grow(&region, MQX_POOL_CELLS, 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "has closed its descriptor") != NULL);
    CHECK_INT(memory_io_calls(region_files, MEMORY_PUNCH), punches);
    CHECK_INT(memory_io_calls(region_files, MEMORY_ALLOCATE), allocations);
    region.fd = own;
    CHECK_INT(punch(MQX_POOL_CELLS, free - 1), free - 1);
}

TEST(memory_that_cannot_be_had_again_is_refused_and_the_extent_stays_punched)
{
    region_begin();
    make_free(CLASS, 4);
    const uint32_t free = pool(MQX_POOL_CELLS)->free_count;
    CHECK_INT(punch(MQX_POOL_CELLS, free), free);
    memory_io_set_fault(region_files, &(struct memory_fault){.kind = MEMORY_FAULT_ERROR, .at = 1,
                                                       .ops = 1u << MEMORY_ALLOCATE,
                                                       .error = ENOSPC});
    CHECK_INT(mqx_extents_grow(&region, MQX_POOL_CELLS, 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(mqx_extents_punched_bytes(&region, MQX_POOL_CELLS),
              (uint64_t)free * MQX_EXTENT_BYTES);
    CHECK_INT(mqx_extents_grow(&region, MQX_POOL_CELLS, 1), 0);
    CHECK(pool(MQX_POOL_CELLS)->free_count > 0);
}

/* ---- readers that remember a slot ---- */

TEST(an_entry_is_seen_by_a_remembered_slot_only_while_its_extent_holds_entries)
{
    region_begin();
    const uint32_t slot = take_one(MQX_ENTRY_CLASS);
    CHECK(mqx_message_peek(&region, slot) == mqx_message(&region, slot));
    CHECK(mqx_message_peek(&region, 0) == NULL);
    CHECK(mqx_message_peek(&region, UINT32_MAX) == NULL);
    CHECK_INT(mqx_message_next_used(&region, 1), 1);
    give(MQX_ENTRY_CLASS, slot);
    CHECK(mqx_message_peek(&region, slot) == NULL);
    CHECK_INT(punch(MQX_POOL_ENTRIES, 1), 1);
    CHECK(mqx_message_peek(&region, slot) == NULL);
    CHECK_INT(mqx_message_next_used(&region, 1),
              MQX_EXTENT_BYTES / sizeof(struct mqx_message)); /* all that were begun */
}

/* ---- deaths ---- */

/* Takes, gives, punches and backs until it is killed. */
static void churn(uint32_t seed)
{
    struct test_random random = {seed};
    uint32_t held[64], classes[64], count = 0, done = 0;
    for (;;) {
        const uint32_t choice = (uint32_t)test_below(&random, 16);
        if (choice == 0) {
            mqx_ignore(mqx_extents_punch(&region, MQX_POOL_CELLS,
                                         (uint32_t)test_below(&random, 4), &done));
        } else if (choice == 1) {
            mqx_ignore(mqx_extents_grow(&region, MQX_POOL_CELLS, 1));
        } else if (count < 64 && choice % 2 == 0) {
            classes[count] = 28 + choice / 2;
            held[count] = take_one(classes[count]);
            count += 1;
        } else if (count > 0) {
            count -= 1;
            give(classes[count], held[count]);
        }
    }
}

/* Every extent is in the one list that its state says. */
static bool lists_are_right(void)
{
    const uint64_t begun = region.header->area[MQX_AREA_ARENA].used / (MQX_EXTENT_BYTES / MQX_CELL);
    const struct mqx_extent *extents = region.extents[MQX_POOL_CELLS];
    const uint32_t heads[3] = {pool(MQX_POOL_CELLS)->free, pool(MQX_POOL_CELLS)->to_punch,
                               pool(MQX_POOL_CELLS)->punched};
    uint64_t states[5] = {0}, listed[5] = {0}, partial = 0, partial_listed = 0;
    for (uint64_t i = 0; i < begun; i++) {
        states[extents[i].state] += 1;
        partial += extents[i].state == MQX_EXTENT_USED &&
                   (extents[i].free_head != 0 || extents[i].carved < extents[i].total);
    }
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t state = k == 0 ? MQX_EXTENT_FREE
                               : k == 1 ? MQX_EXTENT_TO_PUNCH : MQX_EXTENT_PUNCHED;
        for (uint32_t at = heads[k]; at != 0 && listed[state] <= begun; at = extents[at - 1].next) {
            listed[state] += extents[at - 1].state == state;
        }
        if (listed[state] != states[state]) {
            return false;
        }
    }
    for (uint32_t c = 0; c < MQX_CLASS_COUNT; c++) {
        for (uint32_t at = region.header->partial[c]; at != 0 && partial_listed <= begun;
             at = extents[at - 1].next) {
            partial_listed += extents[at - 1].class_no == c;
        }
    }
    return partial == partial_listed && states[MQX_EXTENT_NEW] == 0 &&
           pool(MQX_POOL_CELLS)->free_count == states[MQX_EXTENT_FREE] &&
           pool(MQX_POOL_CELLS)->idle_count == begun - states[MQX_EXTENT_USED];
}

TEST(a_death_at_any_moment_leaves_every_extent_in_one_list)
{
    enum { ROUNDS = 300 };
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
        CHECK_INT(mqx_extents_grow(&region, MQX_POOL_CELLS, 1), 0);
        take_arena();
        drop_arena();
        CHECK(lists_are_right());
    }
    printf("(%d kills, %u repairs) ", ROUNDS, region.header->arena_lock.repairs +
                                                  region.header->growth_lock.repairs);
}

/* ---- damage ---- */

static void find_damage(int status)
{
    CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(mqx_region_damaged());
    CHECK_INT(mqx_region_stopped(&region), MQX_STOP_BROKEN);
    region.header->stopped = MQX_RUNNING;
}

/* A chain of `count` items at the front of a class's free list. */
static uint32_t take_chain(uint32_t class_no, uint32_t count)
{
    uint32_t got = 0;
    const uint32_t head = take(class_no, count, &got);
    CHECK_INT(got, count);
    return head;
}

TEST(a_chain_goes_back_with_the_stores_of_one_item)
{
    enum { LENGTH = 40, STORES_MAX = 11 };
    region_begin();
    const uint32_t kept = take_one(CLASS), head = take_chain(CLASS, LENGTH);
    const struct mqx_extent *extent = extent_of(MQX_POOL_CELLS, kept);
    const uint32_t third = *mqx_item_link(&region, CLASS, *mqx_item_link(&region, CLASS, head));
    uint32_t count = 0, rest = 1, again = 0;
    take_arena();
    CHECK_INT(mqx_extents_give_chain(&region, CLASS, head, 2, &count, &rest), 0);
    CHECK_INT(count, 2);
    CHECK_INT(rest, third);
    CHECK_INT(extent->in_use, 1 + LENGTH - 2);
    CHECK_INT(mqx_extents_give_chain(&region, CLASS, rest, LENGTH, &count, &rest), 0);
    CHECK_INT(count, LENGTH - 2);
    CHECK_INT(rest, 0);
    CHECK_INT(extent->in_use, 1);
    CHECK(region.header->arena_lock.undo_count <= 2 * STORES_MAX);
    drop_arena();
    CHECK_INT(take(CLASS, LENGTH, &again), third);
    CHECK_INT(again, LENGTH);
}

TEST(a_chain_goes_back_extent_by_extent)
{
    region_begin();
    uint32_t first = take_one(CLASS), other = take_one(CLASS), count = 0, rest = 0;
    const uint32_t number = extent_of(MQX_POOL_CELLS, first)->total;
    for (uint32_t i = 0; i < number; i++) {
        other = take_one(CLASS); /* the last of these is of the next extent */
    }
    CHECK(extent_of(MQX_POOL_CELLS, first) != extent_of(MQX_POOL_CELLS, other));
    *mqx_item_link(&region, CLASS, first) = other;
    *mqx_item_link(&region, CLASS, other) = 0;
    take_arena();
    CHECK_INT(mqx_extents_give_chain(&region, CLASS, first, 2, &count, &rest), 0);
    CHECK_INT(count, 1);
    CHECK_INT(rest, other);
    CHECK_INT(mqx_extents_give_chain(&region, CLASS, other, 1, &count, &rest), 0);
    CHECK_INT(rest, 0);
    drop_arena();
}

static int try_take(void)
{
    uint32_t head = 0, count = 0;
    take_arena();
    const int status = mqx_extents_take(&region, CLASS, 4, &head, &count);
    mqx_undo_rollback(&region, &region.header->arena_lock);
    mqx_lock_drop(&region, &region.header->arena_lock);
    return status;
}

static int try_give(uint32_t class_no, uint32_t item)
{
    take_arena();
    const int status = mqx_extents_give(&region, class_no, item);
    mqx_undo_rollback(&region, &region.header->arena_lock);
    mqx_lock_drop(&region, &region.header->arena_lock);
    return status;
}

static int try_give_chain(uint32_t class_no, uint32_t head, uint32_t most)
{
    uint32_t count = 0, rest = 0;
    take_arena();
    const int status = mqx_extents_give_chain(&region, class_no, head, most, &count, &rest);
    mqx_undo_rollback(&region, &region.header->arena_lock);
    mqx_lock_drop(&region, &region.header->arena_lock);
    return status;
}

TEST(records_that_cannot_be_true_are_refused_and_stop_the_queue_manager)
{
    region_begin();
    const uint32_t a = take_one(CLASS), b = take_one(CLASS);
    struct mqx_extent *extent = extent_of(MQX_POOL_CELLS, a);
    const struct mqx_extent sound = *extent;
    find_damage(try_give(CLASS + 1, a)); /* of another class */
    find_damage(try_give(CLASS, UINT32_MAX));
    extent->in_use = 0;
    find_damage(try_give(CLASS, a));
    *extent = sound;
    *mqx_item_link(&region, CLASS, a) = b; /* more items than the extent has handed out */
    extent->in_use = 1;
    find_damage(try_give_chain(CLASS, a, 2));
    *extent = sound;
    extent->in_use = UINT32_MAX;
    find_damage(try_take());
    *extent = sound;
    extent->carved = UINT32_MAX;
    find_damage(try_take());
    *extent = sound;
    extent->total = UINT32_MAX;
    find_damage(try_take());
    *extent = sound;
    extent->state = MQX_EXTENT_PUNCHED;
    find_damage(try_take());
    *extent = sound;
    give(CLASS, b);
    extent->free_head = UINT32_MAX;
    find_damage(try_take());
    extent->free_head = b;
    extent->next = UINT32_MAX;
    find_damage(try_give(CLASS, a));
    extent->next = 0;
    region.header->partial[CLASS] = UINT32_MAX;
    find_damage(try_take());
    region.header->partial[CLASS] = 0;
    region.header->pool[MQX_POOL_CELLS].free = UINT32_MAX;
    find_damage(try_take());
    region.header->pool[MQX_POOL_CELLS].free = 0;
    region.header->pool[MQX_POOL_CELLS].punched = UINT32_MAX;
    find_damage(mqx_extents_grow(&region, MQX_POOL_CELLS, 1));
    region.header->pool[MQX_POOL_CELLS].punched = 0;
    region.header->pool[MQX_POOL_CELLS].to_punch = UINT32_MAX;
    uint32_t done = 0;
    find_damage(mqx_extents_punch(&region, MQX_POOL_CELLS, 0, &done));
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
