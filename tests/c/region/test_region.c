/* Claims of region.c: laying out, validating what is mapped, growing to the limit and not
 * further. */
#include "fixtures/region_fixture.h"

TEST(a_region_that_another_build_made_is_refused)
{
    struct mqx_region other;
    const int dir = region_dir();
    const struct mqx_region_plan plan = region_plan();
    struct mqx_io *io = memory_io_table(region_files);
    CHECK_INT(mqx_region_create(io, dir, "r", &plan, &region), 0);
    CHECK_INT(mqx_region_open(io, dir, "r", NULL, &other), 0);
    CHECK(other.header->layout == mqx_region_layout() && other.size == plan.size);
    mqx_region_close(&other);
    region.header->layout += 1;
    CHECK_INT(mqx_region_open(io, dir, "r", NULL, &other), MQRC_ENVIRONMENT_ERROR);
    region.header->layout -= 1;
    region.header->magic[0] = 'X';
    CHECK_INT(mqx_region_open(io, dir, "r", NULL, &other), MQRC_ENVIRONMENT_ERROR);
}

TEST(every_number_in_the_header_that_addresses_memory_is_checked)
{
    region_begin();
    struct mqx_header *header = region.header;
    struct mqx_area *area = &header->area[MQX_AREA_MESSAGES];
    uint64_t *const fields[] = {
        &header->size, &header->stripe_offset, &header->names_offset, &header->journal.ring_offset,
        &header->journal.ring_size, &area->offset, &area->reserved_bytes, &area->capacity,
    };
    struct mqx_region other;
    struct mqx_io *io = memory_io_table(region_files);
    const int dir = io->ops->open_dir(io, "/shm");
    for (size_t i = 0; i < MQX_ARRAY_COUNT(fields); i++) {
        const uint64_t was = *fields[i];
        *fields[i] = UINT64_C(1) << 60;
        const int status = mqx_region_open(io, dir, "r", NULL, &other);
        *fields[i] = was;
        CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
    }
    uint32_t *const counts[] = {&header->stripe_count, &area->item_size};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(counts); i++) {
        const uint32_t was = *counts[i];
        *counts[i] = 3;
        const int status = mqx_region_open(io, dir, "r", NULL, &other);
        *counts[i] = was;
        CHECK_INT(status, MQRC_Q_MGR_NOT_AVAILABLE);
    }
    CHECK_INT(mqx_region_open(io, dir, "r", NULL, &other), 0);
    mqx_region_close(&other);
}

TEST(an_impossible_plan_is_refused_and_a_full_medium_leaves_no_file)
{
    const struct mqx_region_plan good = region_plan();
    struct mqx_region_plan bad[5] = {good, good, good, good, good};
    bad[0].stripe_count = 3;
    bad[1].stripe_count = 2 * MQX_STRIPE_MAX;
    bad[2].ring_size = 100000;
    bad[3].name_bucket_count = 0;
    bad[4].size = 65536;
    const int dir = region_dir();
    struct mqx_io *io = memory_io_table(region_files);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        CHECK_INT(mqx_region_create(io, dir, "r", &bad[i], &region), MQRC_UNEXPECTED_ERROR);
    }
    const uint32_t open = memory_io_open_count(region_files);
    memory_io_set_space(region_files, UINT64_MAX, 100000);
    CHECK_INT(mqx_region_create(io, dir, "r", &good, &region), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "bytes") != NULL);
    CHECK_INT(memory_io_open_count(region_files), open);
    memory_io_set_space(region_files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(mqx_region_create(io, dir, "r", &good, &region), 0);
}

TEST(an_area_grows_to_its_share_of_address_space_and_then_says_2071)
{
    struct mqx_region_plan plan = region_plan();
    plan.size = 32 << 20;
    region_begin_with(&plan);
    const struct mqx_area *area = &region.header->area[MQX_AREA_ARENA];
    uint64_t before = 0;
    while (area->capacity < area->reserved_bytes) {
        before = area->capacity;
        CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, before + 1), 0);
        CHECK(area->capacity > before);
        memset(region.area[MQX_AREA_ARENA] + before, 1, area->capacity - before);
    }
    CHECK_INT(area->capacity, area->reserved_bytes);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, area->capacity), 0);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, area->capacity + 1),
              MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_MESSAGES, 4096), 0);
    CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING);
}

TEST(when_the_medium_has_no_room_an_area_keeps_its_size_and_grows_later)
{
    region_begin();
    const struct mqx_area *area = &region.header->area[MQX_AREA_ARENA];
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 100000), 0);
    const uint64_t capacity = area->capacity;
    memory_io_set_space(region_files, UINT64_MAX, 1);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity + 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK_INT(area->capacity, capacity);
    memory_io_set_space(region_files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity + 1), 0);
}

static void *grow_main(void *arg)
{
    (void)test_expect(mqx_region_grow(&region, MQX_AREA_ARENA, 1000) == 0, __FILE__, __LINE__,
                      "grows");
    return arg;
}

TEST(an_area_never_grows_into_a_file_of_the_program_that_got_the_descriptors_number)
{
    uint64_t size = 0;
    region_begin();
    memory_io_put(region_files, "/shm/own", "x", 1);
    const int dir = region.io->ops->open_dir(region.io, "/shm"), own = region.fd;
    region.fd = region.io->ops->open(region.io, dir, "own", MQX_IO_WRITE, 0);
    const uint64_t capacity = region.header->area[MQX_AREA_ARENA].capacity;
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity + 1), MQRC_STORAGE_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), "has closed its descriptor") != NULL);
    CHECK(memory_io_bytes(region_files, "/shm/own", &size) != NULL && size == 1);
    CHECK_INT(region.header->area[MQX_AREA_ARENA].capacity, capacity);
    region.fd = own;
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity + 1), 0);
}

TEST(threads_that_grow_the_same_area_make_one_step)
{
    region_begin();
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, grow_main, NULL), 0);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    CHECK_INT(region.header->area[MQX_AREA_ARENA].capacity, 65536);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
