/*
 * listed_wait.c - see listed_wait.h.
 */
#include "api/listed_wait.h"

#include "api/context_pool.h"
#include "api/get_wait.h"
#include "base/error.h"
#include "queue/due_index.h"

#include <stdlib.h>

/* ---- the buckets of a channel ---- */

static struct mqe_wait **bucket_of(mqe_channel *channel, uint32_t context)
{
    MQX_ASSERT(context != 0);
    return &channel->bucket[context % MQX_CHANNEL_BUCKETS];
}

static void enter_bucket(mqe_channel *channel, struct mqe_wait *wait)
{
    MQX_ASSERT(wait->link == NULL);
    mqx_local_take(&channel->lock);
    struct mqe_wait **head = bucket_of(channel, wait->context);
    wait->next = *head;
    wait->link = head;
    if (*head != NULL) {
        (*head)->link = &wait->next;
    }
    *head = wait;
    mqx_local_drop(&channel->lock);
}

static void leave_bucket(mqe_channel *channel, struct mqe_wait *wait)
{
    MQX_ASSERT(wait->channel == channel);
    mqx_local_take(&channel->lock);
    if (wait->link != NULL) {
        *wait->link = wait->next;
        if (wait->next != NULL) {
            wait->next->link = wait->link;
        }
        wait->link = NULL;
        wait->next = NULL;
    }
    mqx_local_drop(&channel->lock);
}

/* ---- a call ---- */

void mqx_wait_resume(struct mqx_get_call *call)
{
    const struct mqe_wait *wait = call->posted;
    MQX_ASSERT(call->pool == 0);
    if (wait->context != 0) {
        call->pool = wait->context;
        call->listed = wait->listed != 0;
        call->was_listed = true;
        const struct mqx_object *queue = mqx_object(&call->store->region, wait->object);
        if (queue != NULL && mqx_due_is_due(&call->store->region, queue)) {
            call->due_at = mqx_load_relaxed(&queue->next_due_us); /* it comes for what is due */
        }
    }
}

void mqx_wait_suspend(struct mqx_get_call *call, int status)
{
    struct mqe_wait *wait = call->posted;
    const bool goes_on = call->pool != 0 && call->was_listed &&
                         (status == MQE_LISTED || status == MQE_INTERRUPTED);
    MQX_ASSERT(status != MQE_LISTED || call->listed);
    wait->listed = goes_on && call->listed;
    if (goes_on) {
        if (wait->context == 0) {
            wait->context = call->pool;
            wait->object = call->queue->object;
            enter_bucket(wait->channel, wait);
        }
        return;
    }
    if (wait->context != 0) {
        leave_bucket(wait->channel, wait);
        wait->context = 0;
    }
    if (call->pool != 0) {
        mqx_store_relaxed(&mqx_context(&call->store->region, call->pool)->wait_channel, 0u);
        mqx_pool_give(call->manager, call->pool);
    }
}

void mqe_wait_end(struct mqe_wait *wait)
{
    struct mqx_get_call call = {.posted = wait};
    if (wait->context == 0) {
        return;
    }
    MQX_ASSERT(wait->channel != NULL && wait->object != 0);
    call.manager = wait->channel->manager;
    call.store = &call.manager->store;
    if (mqx_enter(call.manager, false) != MQX_OK) { /* stopped, or a forked child: nothing is given
                                                     * back */
        mqx_error_clear();
        leave_bucket(wait->channel, wait);
        wait->context = 0;
        return;
    }
    mqx_wait_resume(&call);
    if (call.listed || mqx_wait_list_owes(&call.store->region, call.pool)) {
        mqx_ignore(mqx_get_leave_list(call.store, wait->object, call.pool, call.listed));
    }
    mqx_wait_suspend(&call, MQX_OK);
}

int64_t mqe_wait_due_in(const struct mqe_wait *wait)
{
    if (wait->context == 0 || mqx_forked(&wait->channel->manager->store)) {
        return -1;
    }
    const struct mqx_region *region = &wait->channel->manager->store.region;
    const struct mqx_object *queue = mqx_object(region, wait->object);
    if (queue == NULL || mqx_load_relaxed(&queue->delayed) == 0) {
        return -1;
    }
    const uint64_t due = mqx_load_relaxed(&queue->next_due_us), now = mqx_due_now(region);
    MQX_ASSERT(now > 0);
    return due > now ? (int64_t)((due - now) & INT64_MAX) : 0;
}

/* ---- channels ---- */

/* A name of a killed process' channel in the same slot is in the way: it was not swept yet. */
static int bind_channel(mqe_channel *channel)
{
    char path[MQX_WAKE_PATH];
    struct mqx_store *store = &channel->manager->store;
    MQX_ASSERT(channel->context != 0);
    if (!mqx_wake_channel_path(&store->region, channel->context, path)) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "waits without a thread need a directory of regions with a shorter path");
    }
    mqx_wake_channel_unlink(store, channel->context);
    channel->fd = mqx_wake_socket_bind(store->io, path, &channel->file);
    return channel->fd < 0 ? mqx_io_reason(channel->fd, path) : MQX_OK;
}

int mqe_channel_new(mqe_manager *manager, mqe_channel **out)
{
    MQX_ASSERT(out != NULL);
    mqe_channel *channel = calloc(1, sizeof *channel);
    if (channel == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a channel");
    }
    channel->manager = manager;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_pool_take(manager, false, &channel->context);
    }
    if (status == MQX_OK) {
        status = bind_channel(channel);
        if (status != MQX_OK) {
            mqx_pool_give(manager, channel->context);
        }
    }
    if (status != MQX_OK) {
        free(channel);
        return status;
    }
    struct mqx_context *context = mqx_context(&manager->store.region, channel->context);
    mqx_store_release(&context->channel_rung, (uint64_t)0);
    mqx_store_release(&context->wait_channel, channel->context);
    *out = channel;
    return MQX_OK;
}

int mqe_channel_fd(const mqe_channel *channel)
{
    return channel->fd;
}

/* Their owners call mqe_wait_end() later, for waits that have ended. */
static void end_waits(mqe_channel *channel)
{
    MQX_ASSERT(channel->context != 0);
    for (uint32_t at = 0; at < MQX_CHANNEL_BUCKETS; at++) {
        while (channel->bucket[at] != NULL) {
            mqe_wait_end(channel->bucket[at]);
        }
    }
}

void mqe_channel_free(mqe_channel *channel)
{
    struct mqx_store *store = &channel->manager->store;
    end_waits(channel);
    if (!mqx_forked(store) && store->region.base != NULL) {
        struct mqx_context *context = mqx_context(&store->region, channel->context);
        if (context != NULL && mqx_enter(channel->manager, false) == MQX_OK) {
            mqx_store_release(&context->wait_channel, 0u);
            mqx_wake_channel_unlink(store, channel->context);
            mqx_pool_give(channel->manager, channel->context);
        }
        mqx_error_clear();
        mqx_wake_socket_close(channel->fd, &channel->file);
    }
    free(channel);
}

/* Waits of one bucket that were picked; those that there is no room for stay for the next call. */
static uint32_t collect_picked(mqe_channel *channel, uint32_t at, struct mqe_wait **out,
                               uint32_t capacity)
{
    const struct mqx_region *region = &channel->manager->store.region;
    uint32_t count = 0;
    MQX_ASSERT(at < MQX_CHANNEL_BUCKETS);
    for (struct mqe_wait *wait = channel->bucket[at]; wait != NULL && count < capacity;
         wait = wait->next) {
        const struct mqx_context *context = mqx_context(region, wait->context);
        if (wait->listed == 0 || wait->told != 0 || context == NULL ||
            mqx_load_acquire(&context->wait_state) == MQX_WAIT_LISTED) {
            continue;
        }
        wait->told = 1;
        out[count++] = wait;
    }
    return count;
}

uint32_t mqe_channel_picked(mqe_channel *channel, int all, struct mqe_wait **out,
                            uint32_t capacity)
{
    MQX_ASSERT(capacity > 0);
    const struct mqx_store *store = &channel->manager->store;
    uint32_t count = 0;
    if (mqx_forked(store)) {
        return 0;
    }
    mqx_wake_socket_answer(channel->fd, &channel->file);
    uint64_t rung = mqx_wake_channel_answer(&store->region, channel->context);
    rung = all != 0 ? UINT64_MAX : rung;
    mqx_local_take(&channel->lock);
    for (uint32_t at = 0; rung != 0 && count < capacity; at++, rung >>= 1) {
        if ((rung & 1) != 0) {
            count += collect_picked(channel, at, out + count, capacity - count);
        }
    }
    mqx_local_drop(&channel->lock);
    return count;
}
