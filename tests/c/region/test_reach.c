/* Claims of reach.h: a process whose address space is limited maps the region in steps; what it
 * cannot map refuses its own calls and stops nobody. Real files and real limits: each limited
 * process is a child. */
#include "fixtures/region_fixture.h"

#include <sys/resource.h>
#include <sys/stat.h>

#if defined(__SANITIZE_THREAD__)
enum { STEPS_WORK = 0 }; /* the sanitizer keeps the addresses for itself */
#else
enum { STEPS_WORK = 1 };
#endif

enum { MIB = 1 << 20, ROOM = 96 * MIB, FAR = 100 * MIB };

static char folder[] = "/dev/shm/penstock-reach-XXXXXX";
static int dir = -1;

static struct mqx_io *io(void)
{
    return mqx_io_posix();
}

static void begin(void)
{
    struct mqx_region_plan plan = region_plan();
    plan.size = UINT64_C(64) << 30;
    if (dir < 0) {
        CHECK(mkdtemp(folder) != NULL);
        dir = io()->ops->open_dir(io(), folder);
        CHECK(dir >= 0);
    }
    CHECK_INT(mqx_region_create(io(), dir, "r", &plan, &region), 0);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 4096), 0);
}

static void end(void)
{
    mqx_region_close(&region);
    CHECK_INT(io()->ops->unlink(io(), dir, "r"), 0);
}

/* From here on this process may have so many bytes of address space more than it has. */
static bool limit(uint64_t room)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    const bool read = file != NULL && fscanf(file, "%lu", &pages) == 1;
    if (file != NULL) {
        (void)fclose(file);
    }
    const struct rlimit most = {pages * 4096 + room, pages * 4096 + room};
    return read && setrlimit(RLIMIT_AS, &most) == 0;
}

/* Runs body() in a child; true when it returned true. */
static bool in_child(bool (*body)(void))
{
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(body() ? 0 : 1);
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(without_a_limit_the_region_is_mapped_whole)
{
    begin();
    CHECK(!region.reach.stepwise);
    CHECK(mqx_reach_all(&region) && mqx_reach_ahead(&region));
    CHECK(mqx_reach_has(&region, region.size - 1));
    CHECK_INT(region.reach.mapped[MQX_AREA_ARENA], region.reach.space[MQX_AREA_ARENA]);
    end();
}

TEST(a_capacity_beyond_the_address_space_of_its_area_is_never_touched)
{
    begin();
    uint64_t *capacity = &region.header->area[MQX_AREA_CONTEXTS].capacity;
    const uint64_t was = *capacity;
    *capacity = region.reach.space[MQX_AREA_CONTEXTS] + 4096;
    CHECK(mqx_context(&region, 5) == NULL);
    CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING); /* that is for the caller to say */
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_CONTEXTS, 8192), MQRC_Q_MGR_NOT_AVAILABLE);
    *capacity = was;
    end();
}

static bool works_in_steps(void)
{
    struct mqx_region mine;
    if (!limit(ROOM) || mqx_region_open(io(), dir, "r", NULL, &mine) != 0) {
        return false;
    }
    bool good = mine.reach.stepwise && mqx_reach_ahead(&mine);
    good = good && mqx_region_grow(&mine, MQX_AREA_ARENA, 6 * MIB) == 0;
    uint32_t *first = mqx_cells(&mine, 1), *last = mqx_cells(&mine, 6 * MIB / MQX_CELL - 1);
    good = good && first != NULL && last != NULL;
    if (good) {
        *first = 17;
        *last = 18;
        good = mqx_lock_take(&mine, &mine.header->slots_lock) == 0;
    }
    if (good) {
        mqx_lock_drop(&mine, &mine.header->slots_lock);
    }
    mqx_region_close(&mine);
    return good;
}

TEST(a_limited_process_maps_in_steps_and_shares_every_byte)
{
    begin();
    if (STEPS_WORK) {
        CHECK(in_child(works_in_steps));
        CHECK_INT(*(uint32_t *)mqx_cells(&region, 1), 17);
        CHECK_INT(*(uint32_t *)mqx_cells(&region, 6 * MIB / MQX_CELL - 1), 18);
    }
    end();
}

static bool is_refused_at_open(void)
{
    struct mqx_region mine;
    return limit(MIB / 4) &&
           mqx_region_open(io(), dir, "r", NULL, &mine) == MQRC_STORAGE_NOT_AVAILABLE &&
           strstr(mqx_error_text(), "RLIMIT_AS") != NULL;
}

TEST(a_process_that_cannot_map_the_first_part_is_refused_by_name_of_the_limit)
{
    begin();
    CHECK(in_child(is_refused_at_open));
    end();
}

static struct mqx_region other; /* of the parent, in which another process grows the region */

static bool meets_what_it_cannot_map(void)
{
    struct mqx_region mine;
    struct mqx_lock *lock;
    if (!limit(ROOM) || mqx_region_open(io(), dir, "r", NULL, &mine) != 0 ||
        !mqx_reach_ahead(&mine)) {
        return false;
    }
    lock = &mine.header->slots_lock;
    /* stands for another process: it has the file and publishes the capacity */
    struct mqx_area *area = &mine.header->area[MQX_AREA_ARENA];
    if (io()->ops->allocate(io(), mine.fd, area->offset, FAR) != 0) {
        return false;
    }
    mqx_store_release(&area->capacity_inverse, ~(uint64_t)FAR);
    mqx_store_release(&area->capacity, (uint64_t)FAR);
    bool good = !mqx_reach_all(&mine) && !mqx_reach_ahead(&mine);
    good = good && mqx_cells(&mine, 1) != NULL && mqx_cells(&mine, FAR / MQX_CELL - 1) == NULL;
    good = good && mqx_lock_take(&mine, lock) == MQRC_STORAGE_NOT_AVAILABLE &&
           strstr(mqx_error_text(), "RLIMIT_AS") != NULL && mine.reach.lost == 1;
    good = good && mqx_lock_try(&mine, lock) == MQRC_STORAGE_NOT_AVAILABLE && lock->holder == 0;
    good = good && mqx_region_damage(&mine, "a cell", 1) == MQRC_STORAGE_NOT_AVAILABLE &&
           mqx_region_stopped(&mine) == MQX_RUNNING;
    good = good &&
           mqx_region_grow(&mine, MQX_AREA_ARENA, FAR) == MQRC_STORAGE_NOT_AVAILABLE &&
           mqx_region_grow(&mine, MQX_AREA_ARENA, FAR + 1) == MQRC_STORAGE_NOT_AVAILABLE;
    mqx_region_close(&mine);
    return good;
}

TEST(what_a_process_cannot_map_refuses_its_calls_and_stops_nobody)
{
    begin();
    if (STEPS_WORK) {
        CHECK(in_child(meets_what_it_cannot_map));
        CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING);
        CHECK_INT(mqx_lock_take(&region, &region.header->slots_lock), 0);
        mqx_lock_drop(&region, &region.header->slots_lock);
        CHECK(mqx_cells(&region, FAR / MQX_CELL - 1) != NULL);
    }
    end();
}

/* Dies with the lock, after a store in memory that the next owner cannot map. */
static bool dies_in_a_change(void)
{
    struct mqx_lock *lock;
    if (mqx_region_open(io(), dir, "r", NULL, &other) != 0) {
        return false;
    }
    lock = &other.header->slots_lock;
    uint32_t *word = mqx_cells(&other, FAR / MQX_CELL - 1);
    if (word == NULL || mqx_lock_take(&other, lock) != 0) {
        return false;
    }
    mqx_undo_store32(other.base, lock, word, 99);
    return true;
}

static bool repairs_it(void)
{
    struct mqx_region mine;
    return limit(ROOM) && mqx_region_open(io(), dir, "r", NULL, &mine) == 0 &&
           mqx_lock_take(&mine, &mine.header->slots_lock) == MQRC_STORAGE_NOT_AVAILABLE &&
           mqx_region_stopped(&mine) == MQX_RUNNING;
}

TEST(the_change_of_a_dead_owner_is_undone_in_memory_that_is_not_mapped)
{
    begin();
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, FAR), 0);
    uint32_t *word = mqx_cells(&region, FAR / MQX_CELL - 1);
    *word = 7;
    CHECK(in_child(dies_in_a_change));
    CHECK_INT(*word, 99);
    if (STEPS_WORK) {
        CHECK(in_child(repairs_it));
        CHECK_INT(*word, 7);
        CHECK_INT(region.header->slots_lock.repairs, 1);
    }
    CHECK_INT(mqx_lock_take(&region, &region.header->slots_lock), 0);
    mqx_lock_drop(&region, &region.header->slots_lock);
    end();
}

TEST(the_folder_is_removed)
{
    (void)io()->ops->close(io(), dir);
    CHECK_INT(rmdir(folder), 0);
}

TEST_MAIN()
