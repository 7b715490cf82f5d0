/*
 * workload_batch.c - the part of a workload that puts and gets several messages in one call, in a
 * unit. See workload.h.
 */
#include "workload_steps.h"

#include "api/message_rows.h"

#include <string.h>

enum { ROWS = 5 };

static struct mqe_item items[ROWS];
static unsigned char bodies[ROWS * WL_BODY_MAX];
static int64_t offsets[ROWS + 1];

static struct mqe_batch begin(uint32_t count)
{
    memset(items, 0, sizeof items);
    offsets[0] = 0;
    return (struct mqe_batch){.items = items, .capacity = ROWS, .count = count, .bodies = bodies,
                              .body_capacity = sizeof bodies, .offsets = offsets};
}

/* ---- puts ---- */

static void fill_row(uint32_t i, const struct wl_order *order, const struct wl_message *message)
{
    struct mqe_item *item = &items[i];
    mqx_msg_batch_item_clear(item);
    wl_descriptor(message, &item->d);
    item->d.priority = order->priority;
    item->d.persistence = order->persistence;
    item->d.placement = 0;
    item->d.has_ext = order->has_ext;
    item->expiry = -1;
    wl_extension(message, &item->ext);
    wl_body(message->id, message->length, bodies + offsets[i]);
    offsets[i + 1] = offsets[i] + (int64_t)message->length;
}

int wl_put_batch(struct workload *w, uint32_t q, uint32_t u)
{
    struct wl_queue *queue = &w->model.queue[q];
    const struct mqe_destination to = mqe_direct(queue->slot, queue->generation);
    struct wl_message messages[ROWS];
    struct mqe_batch batch = begin(1 + wl_below(w, ROWS));
    const uint32_t total = batch.count;
    if (wl_need_unit(w, u) != GO_ON || w->unit[u] == NULL) {
        return wl_over(w) ? STOP : GO_ON;
    }
    for (uint32_t i = 0; i < total; i++) {
        const struct wl_order order = wl_random_order(w);
        messages[i] = wl_message_for(w, queue, &order);
        messages[i].state = WL_PUT;
        messages[i].unit = (uint8_t)u;
        messages[i].order = w->calls++;
        fill_row(i, &order, &messages[i]);
    }
    wl_tell(w, "put %u from %llu on at once on slot %u, unit %u", total,
            (unsigned long long)messages[0].id, queue->slot, u);
    const int reason = mqe_put_batch(w->manager, w->unit[u], &to, &batch, 0);
    if (wl_worked(w, "put of many in a unit", reason) && batch.count != total) {
        return wl_trouble(w, "a put of %u put %u", total, batch.count);
    }
    for (uint32_t i = 0; i < batch.count; i++) { /* those before the one that failed */
        (void)wl_insert(queue, &messages[i]);
    }
    return wl_over(w) ? STOP : GO_ON;
}

/* ---- gets ---- */

static void take_row(struct workload *w, struct wl_queue *queue, uint32_t i, uint32_t u)
{
    struct mqe_get get = {.d = items[i].d, .ext = items[i].ext, .length = items[i].length,
                          .number = items[i].number, .expiry = items[i].expiry,
                          .buffer = bodies + offsets[i], .capacity = items[i].length};
    struct wl_message got;
    char text[256];
    const uint32_t index = wl_first(queue, 0);
    if (index == WL_DEPTH) {
        (void)wl_trouble(w, "a get of many brought more than there is");
        return;
    }
    struct wl_message *message = &queue->message[index];
    if (wl_verify(&get, &got, text, sizeof text) != 0) {
        (void)wl_trouble(w, "a get of many: %s", text);
    }
    wl_compare_got(w, &got, message);
    message->state = WL_GOT;
    message->unit = (uint8_t)u;
    message->order = w->calls++;
}

static uint32_t available(const struct wl_queue *queue)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < queue->count; i++) {
        count += queue->message[i].state == WL_AVAILABLE && queue->message[i].delayed == 0;
    }
    return count;
}

int wl_get_batch(struct workload *w, uint32_t q, uint32_t u)
{
    struct wl_queue *queue = &w->model.queue[q];
    struct mqe_get how = {0};
    struct mqe_batch batch = begin(0);
    mqe_queue *handle = NULL;
    const uint32_t there = available(queue);
    batch.capacity = 1 + wl_below(w, ROWS);
    const uint32_t expected = there < batch.capacity ? there : batch.capacity;
    if (expected == 0 || wl_need_unit(w, u) != GO_ON || w->unit[u] == NULL) {
        return wl_over(w) ? STOP : GO_ON;
    }
    int reason = mqe_open_direct(w->manager, queue->slot, queue->generation, 2, &handle);
    if (reason == 0) {
        reason = mqe_get_batch(w->manager, w->unit[u], handle, &how, &batch);
        (void)mqe_close(handle, MQE_CLOSE_KEEP);
    }
    wl_tell(w, "get of %u at once on slot %u, unit %u: %u", expected, queue->slot, u, batch.count);
    if (wl_worked(w, "get of many in a unit", reason) && batch.count != expected && !w->tolerant) {
        return wl_trouble(w, "a get of %u brought %u", expected, batch.count);
    }
    for (uint32_t i = 0; i < batch.count; i++) {
        take_row(w, queue, i, u);
    }
    return wl_over(w) ? STOP : GO_ON;
}
