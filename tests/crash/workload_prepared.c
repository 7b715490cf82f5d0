/*
 * workload_prepared.c - the part of a workload that is about prepared units: preparing, with and
 * without waiting, ending some of them in one call, and reading what a queue manager says about
 * them. See workload.h.
 */
#include "workload_steps.h"

#include "api/message_copy.h"
#include "unit/prepared.h"

#include <stdio.h>
#include <string.h>

/* ---- preparing and ending ---- */

static uint32_t free_number(const struct wl_model *model)
{
    uint32_t p = 0;
    while (p < WL_PREPARED && model->prepared[p].there) {
        p += 1;
    }
    return p;
}

static void hand_over(struct wl_model *model, uint32_t u, uint32_t p, uint32_t serial)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            struct wl_message *message = &model->queue[q].message[i];
            if ((message->state != WL_PUT && message->state != WL_GOT) || message->unit != u) {
                continue;
            }
            message->state = message->state == WL_PUT ? WL_PREPARED_PUT : WL_PREPARED_GOT;
            message->unit = (uint8_t)p;
        }
    }
    model->prepared[p] = (struct wl_prepared){true, serial};
}

/* After a refusal the same Xid is used again: it must be free still. */
int workload_make_prepared(struct workload *w, uint32_t u, uint32_t p, bool waits)
{
    const struct wl_model before = w->model;
    struct ps_xid xid;
    wl_xid(p, w->serial, &xid);
    hand_over(&w->model, u, p, w->serial);
    wl_begin_step(w, false);
    const uint32_t flags = MQE_PREPARE_EMPTY | (waits ? 0u : (uint32_t)MQE_PREPARE_LAZY);
    const int reason = mqe_prepare(w->unit[u], &xid, flags);
    w->serial += reason == 0;
    w->prepared_by[p] = wl_newest(w) + 1;
    return waits ? wl_settle_step(w, "prepare", reason, &before)
                 : wl_settle_unsure(w, "prepare without waiting", reason, &before);
}

/* Now and then a unit without messages, and more often without waiting. */
int wl_prepare(struct workload *w, uint32_t u)
{
    const uint32_t p = free_number(&w->model);
    if (p == WL_PREPARED || (w->unit[u] == NULL && wl_below(w, 4) != 0) ||
        wl_need_unit(w, u) != GO_ON || w->unit[u] == NULL) {
        return wl_over(w) ? STOP : GO_ON;
    }
    return workload_make_prepared(w, u, p, wl_below(w, 2) != 0);
}

static int resolve(mqe_manager *manager, const struct wl_model *model, uint32_t which, bool commit,
                   uint64_t *vanished)
{
    struct ps_xid xids[WL_PREPARED];
    uint32_t count = 0;
    for (uint32_t p = 0; p < WL_PREPARED; p++) {
        if ((which >> p & 1) != 0) {
            wl_xid(p, model->prepared[p].serial, &xids[count++]);
        }
    }
    *vanished = 0;
    return commit ? mqe_commit_prepared(manager, xids, count)
                  : mqe_backout_prepared(manager, xids, count, vanished);
}

static uint32_t all_there(const struct wl_model *model)
{
    uint32_t which = 0;
    for (uint32_t p = 0; p < WL_PREPARED; p++) {
        which |= (uint32_t)model->prepared[p].there << p;
    }
    return which;
}

/* The BackoutCounts of what the units had got go before the next step (rule 46). */
static void count_for_sure(struct wl_model *model, const struct wl_model *before, uint32_t which)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < before->queue[q].count; i++) {
            const struct wl_message *old = &before->queue[q].message[i];
            for (uint32_t k = 0; k < model->queue[q].count; k++) {
                struct wl_message *now = &model->queue[q].message[k];
                if (now->id == old->id && old->state == WL_PREPARED_GOT && now->kept != 0 &&
                    (which >> old->unit & 1) != 0) {
                    now->sure = now->backouts;
                }
            }
        }
    }
}

/* Several in one call end together or not at all. */
int workload_end_prepared(struct workload *w, uint32_t which, bool commit)
{
    const struct wl_model before = w->model;
    const uint64_t strikes = memory_io_fault_strikes(w->files);
    uint64_t vanished = 0;
    const uint32_t expected = wl_end_prepared(&w->model, which, commit);
    wl_begin_step(w, false);
    const int reason = resolve(w->manager, &before, which, commit, &vanished);
    w->spared |= reason == 0 && !commit && memory_io_fault_strikes(w->files) != strikes;
    if (reason == 0 && vanished != expected) {
        return wl_trouble(w, "backing prepared units out discarded %llu messages, not %u",
                          (unsigned long long)vanished, expected);
    }
    const int result = wl_settle_step(
        w, commit ? "commit of prepared units" : "backout of prepared units", reason, &before);
    if (reason == 0 && !commit && w->failures == 0) {
        count_for_sure(&w->model, &before, which);
    }
    return result;
}

int wl_resolve(struct workload *w)
{
    const uint32_t which = all_there(&w->model) & (1 + wl_below(w, (1u << WL_PREPARED) - 1));
    const bool commit = wl_below(w, 3) != 0;
    return which == 0 ? GO_ON : workload_end_prepared(w, which, commit);
}

/* ---- listing: what is reported is durable ---- */

/* Its Xid must be that of one of the rows. */
static bool is_among(const struct wl_model *model, uint32_t p, const struct mqe_prepared *rows,
                     uint32_t count)
{
    struct ps_xid xid;
    wl_xid(p, model->prepared[p].serial, &xid);
    for (uint32_t i = 0; i < count; i++) {
        if (memcmp(&xid, &rows[i].xid, sizeof xid) == 0) {
            return true;
        }
    }
    return false;
}

static int list_all(struct workload *w)
{
    struct mqe_prepared rows[WL_PREPARED];
    uint32_t count = 0, expected = 0;
    const int reason = mqe_prepared_list(w->manager, rows, WL_PREPARED, &count);
    if (!wl_worked(w, "listing prepared units", reason)) {
        return wl_over(w) ? STOP : GO_ON;
    }
    for (uint32_t p = 0; p < WL_PREPARED; p++) {
        if (!w->model.prepared[p].there) {
            continue;
        }
        expected += 1;
        if (count > WL_PREPARED || !is_among(&w->model, p, rows, count)) {
            return wl_trouble(w, "prepared unit %u is not listed", p);
        }
        wl_is_durable(w, w->prepared_by[p]);
    }
    return count == expected ? GO_ON
                             : wl_trouble(w, "%u units are listed, not %u", count, expected);
}

/* The message of prepared unit p whose call came next after `last` (0: the first); NULL at the
 * end. */
static const struct wl_message *next_of(const struct wl_model *model, uint32_t p,
                                        const struct wl_message *last)
{
    const struct wl_message *next = NULL;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            const struct wl_message *message = &model->queue[q].message[i];
            if ((message->state == WL_PREPARED_PUT || message->state == WL_PREPARED_GOT) &&
                message->unit == p && (last == NULL || message->order > last->order) &&
                (next == NULL || message->order < next->order)) {
                next = message;
            }
        }
    }
    return next;
}

static int read_one(struct workload *w, uint32_t p)
{
    enum { ROWS = 2 };
    static unsigned char bodies[ROWS * WL_BODY_MAX];
    struct mqe_item items[ROWS];
    int64_t offsets[ROWS + 1];
    struct mqe_prepared_cursor cursor = {0};
    struct mqe_batch batch = {.items = items, .capacity = ROWS, .count = 1, .bodies = bodies,
                              .body_capacity = sizeof bodies, .offsets = offsets};
    const struct wl_message *expected = next_of(&w->model, p, NULL);
    struct ps_xid xid;
    wl_xid(p, w->model.prepared[p].serial, &xid);
    while (batch.count != 0) {
        const int reason = mqe_browse_prepared(w->manager, &xid, &cursor, &batch);
        if (!wl_worked(w, "reading a prepared unit", reason)) {
            return wl_over(w) ? STOP : GO_ON;
        }
        wl_is_durable(w, w->prepared_by[p]);
        for (uint32_t i = 0; i < batch.count; i++) {
            if (expected == NULL || items[i].length != expected->length ||
                memcmp(items[i].d.msg_id, &expected->id, sizeof expected->id) != 0) {
                return wl_trouble(w, "prepared unit %u has another message, or another order", p);
            }
            expected = next_of(&w->model, p, expected);
        }
    }
    return expected == NULL ? GO_ON : wl_trouble(w, "prepared unit %u lacks messages", p);
}

int wl_ask_for_prepared(struct workload *w)
{
    const uint32_t p = wl_below(w, 2 * WL_PREPARED);
    return p < WL_PREPARED && w->model.prepared[p].there ? read_one(w, p) : list_all(w);
}

/* ---- both phases, for a scene ---- */

int workload_two_phases(struct workload *w, bool ends)
{
    uint32_t q = 0;
    int result = GO_ON;
    while (q < WL_QUEUES && !w->model.queue[q].defined) {
        q += 1;
    }
    if (q < WL_QUEUES && w->model.queue[q].count < WL_DEPTH - 6) {
        result = workload_put_in_unit(w, q, 0);
        result = result == GO_ON ? workload_get_in_unit(w, q, 0, 0) : result;
    }
    result = result == GO_ON ? wl_prepare(w, 0) : result;
    if (result == GO_ON && ends) {
        (void)wl_resolve(w);
    }
    return w->in_trouble ? STOP : GO_ON;
}

int wl_end_all_prepared(mqe_manager *manager, struct wl_model *model, bool commit, char *text,
                        size_t size)
{
    const uint32_t which = all_there(model);
    uint64_t vanished = 0;
    if (which == 0) {
        return 0;
    }
    const int reason = resolve(manager, model, which, commit, &vanished);
    if (reason != 0) {
        (void)snprintf(text, size, "ending the prepared units: %d %s: %s", reason,
                       mqe_reason_name(reason), mqe_error_text());
        return -1;
    }
    (void)wl_end_prepared(model, which, commit);
    return 0;
}

/* ---- looking: which messages are in a unit, and on what queue, is seen in the region; the
 * content is read as a get would ---- */

static struct wl_queue *queue_at(struct wl_model *model, uint32_t slot)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        if (model->queue[q].defined && model->queue[q].slot == slot) {
            return &model->queue[q];
        }
    }
    return NULL;
}

static int look_at_message(mqe_manager *manager, const struct mqx_message *message, uint32_t p,
                           uint32_t order, struct wl_model *out, char *text, size_t size)
{
    static unsigned char body[WL_BODY_MAX];
    struct mqe_get get = {.buffer = body, .capacity = sizeof body, .length = message->length};
    struct wl_queue *queue = queue_at(out, message->object);
    struct wl_message seen;
    if (queue == NULL || message->length > sizeof body || queue->count == WL_DEPTH ||
        (message->state != MQX_MSG_PUT && message->state != MQX_MSG_GOT)) {
        (void)snprintf(text, size, "a message in state %u, of slot %u, in prepared unit %u",
                       message->state, message->object, p);
        return -1;
    }
    const int reason = mqx_message_copy(&manager->store, message, &get.d, &get.ext, body,
                                    message->length);
    if (reason != 0) {
        return wl_refused(text, size, "reading a message of a prepared unit", reason);
    }
    if (wl_verify(&get, &seen, text, size) != 0) {
        return -1;
    }
    seen.kept = seen.persistent != 0 || queue->attributes.structure != 0;
    seen.state = message->state == MQX_MSG_PUT ? WL_PREPARED_PUT : WL_PREPARED_GOT;
    seen.unit = (uint8_t)p;
    seen.order = order;
    (void)wl_insert_old(queue, &seen);
    return 0;
}

static int look_at_unit(mqe_manager *manager, const struct ps_xid *xid, struct wl_model *out,
                        char *text, size_t size)
{
    const struct mqx_region *region = &manager->store.region;
    uint32_t context = 0, order = 0;
    uint64_t unit_id = 0;
    const int reason = mqx_prepared_find(&manager->store, xid, &context, &unit_id);
    if (reason != 0) {
        return wl_refused(text, size, "looking for a prepared unit", reason);
    }
    const struct mqx_message *message =
        mqx_message(region, mqx_context(region, context)->head);
    for (; message != NULL; message = mqx_message(region, message->unit_next)) {
        if (look_at_message(manager, message, xid->bqual[0], order, out, text, size) != 0) {
            return -1;
        }
        order += 1;
    }
    return 0;
}

int wl_look_at_prepared(mqe_manager *manager, struct wl_model *out, char *text, size_t size)
{
    struct mqe_prepared rows[WL_PREPARED + 1];
    uint32_t count = 0;
    const int reason = mqe_prepared_list(manager, rows, MQX_ARRAY_COUNT(rows), &count);
    memset(out->prepared, 0, sizeof out->prepared);
    if (reason != 0) {
        return wl_refused(text, size, "listing prepared units", reason);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct ps_xid xid;
        uint32_t serial;
        const uint32_t p = rows[i].xid.bqual[0];
        memcpy(&serial, rows[i].xid.gtrid, sizeof serial);
        wl_xid(p, serial, &xid);
        if (count > WL_PREPARED || p >= WL_PREPARED || out->prepared[p].there ||
            memcmp(&xid, &rows[i].xid, sizeof xid) != 0) {
            (void)snprintf(text, size, "a prepared unit, number %u of %u, out of nothing", p,
                           count);
            return -1;
        }
        out->prepared[p] = (struct wl_prepared){true, serial};
        if (look_at_unit(manager, &xid, out, text, size) != 0) {
            return -1;
        }
    }
    return 0;
}
