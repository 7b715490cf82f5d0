/* Claims of wake_channel.h: bits and datagrams; test_listed_wait has those about waits. */
#include "fixtures/engine_fixture.h"

#include "queue/wake_channel.h"

#include <stdio.h>
#include <unistd.h>

TEST(only_the_first_ring_after_an_answer_sends)
{
    char path[MQX_WAKE_PATH];
    struct mqx_file_id id;
    uint32_t slot = 0;
    engine_begin();
    struct mqx_region *region = &engine.manager->store.region;
    (void)snprintf(region->wake_prefix, sizeof region->wake_prefix, "/tmp/penstock-ring-%d-",
                   (int)getpid());
    CHECK_INT(mqx_slot_take(region, MQX_AREA_CONTEXTS, NULL, &slot), 0);
    CHECK(mqx_wake_channel_path(region, slot, path));
    const int fd = mqx_wake_socket_bind(mqx_io_posix(), path, &id);
    CHECK(fd >= 0);
    char byte;
    mqx_wake_channel_ring(region, slot, 5); /* it is no channel yet */
    CHECK_INT(mqx_wake_channel_answer(region, slot), 0);
    mqx_context(region, slot)->wait_channel = slot;
    mqx_wake_channel_ring(region, slot, 5);
    mqx_wake_channel_ring(region, slot, 70);
    CHECK_INT(read(fd, &byte, 1), 0);
    CHECK_INT(read(fd, &byte, 1), -1);
    CHECK(mqx_wake_channel_answer(region, slot) == (UINT64_C(1) << 5 | UINT64_C(1) << 6));
    mqx_wake_channel_ring(region, slot, 5);
    CHECK_INT(read(fd, &byte, 1), 0);
    mqx_context(region, slot)->wait_channel = 0;
    CHECK_INT(mqx_slot_give(region, MQX_AREA_CONTEXTS, slot), 0);
    mqx_wake_socket_close(fd, &id);
    CHECK_INT(unlink(path), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
