/*
 * wake_channel.c - see wake_channel.h.
 */
#include "queue/wake_channel.h"

#include <stdio.h>
#include <string.h>

bool mqx_wake_channel_path(const struct mqx_region *region, uint32_t channel,
                           char out[MQX_WAKE_PATH])
{
    MQX_ASSERT(channel != 0);
    const int length = snprintf(out, MQX_WAKE_PATH, "%s%x", region->wake_prefix, channel);
    return region->wake_prefix[0] == '/' && length < MQX_WAKE_PATH;
}

void mqx_wake_channel_ring(const struct mqx_region *region, uint32_t channel, uint32_t waiter)
{
    MQX_ASSERT(waiter != 0);
    char path[MQX_WAKE_PATH];
    struct mqx_context *context = mqx_context(region, channel);
    if (context == NULL || mqx_load_relaxed(&context->wait_channel) != channel) {
        return;
    }
    if (mqx_fetch_or(&context->channel_rung, mqx_wake_bit(waiter)) == 0 &&
        mqx_wake_channel_path(region, channel, path)) {
        mqx_wake_socket_ring(path);
    }
}

uint64_t mqx_wake_channel_answer(const struct mqx_region *region, uint32_t channel)
{
    struct mqx_context *context = mqx_context(region, channel);
    MQX_ASSERT(channel != 0);
    return context == NULL ? 0 : mqx_exchange(&context->channel_rung, (uint64_t)0);
}

void mqx_wake_channel_unlink(const struct mqx_store *store, uint32_t channel)
{
    char path[MQX_WAKE_PATH];
    if (mqx_wake_channel_path(&store->region, channel, path) && mqx_store_is_whole(store)) {
        const char *name = strrchr(path, '/');
        MQX_ASSERT(name != NULL);
        (void)store->io->ops->unlink(store->io, store->region_dir, name + 1);
    }
}
