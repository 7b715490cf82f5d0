/*
 * workload.c - making the calls of a workload and keeping its model. See workload.h.
 *
 * Every call is made in one of two ways. A step: the model is changed first, the new picture is
 * appended to the history, the intent is noted, the call is made, its return noted. Anything else:
 * the call is made, then the model changed. A call that fails leaves the model as it was before,
 * and, if it was a step whose outcome is unknown (2009), the workload with `pending` set.
 */
#include "workload_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char body_buffer[WL_BODY_MAX];

/* ---- settings, life ---- */

void workload_settings(struct mqe_settings *out, uint64_t seed, enum wl_profile profile)
{
    const uint64_t r = wl_mix(seed ^ 0x5e771465);
    *out = (struct mqe_settings){
        .segment_size = (r & 1) != 0 ? 131072 : 32768, /* with sizes in between */
        .first_segment_size = 32768,
        .journal_limit = 64 * 65536,
        .ring_size = 262144,
        .region_size = 64 << 20,
        .body_budget = (r & 2) != 0 ? 1 : 0, /* 1: persistent bodies lie in the journal alone */
        .stripe_count = 1,
        .name_bucket_count = 1,
        .growth_step = 65536,
        .linear = (r & 12) == 0, /* a quarter of the seeds */
        .no_maintenance = 1,
    };
    if (profile == WL_LARGE) {
        out->segment_size = 1 << 20;
        out->first_segment_size = 1 << 20;
        out->journal_limit = 16 << 20;
    }
    memcpy(out->name, "QM1", 4);
    for (size_t i = 0; i < sizeof out->qm_id; i++) {
        out->qm_id[i] = (uint8_t)(17 * i + 3);
    }
}

void workload_prepare(struct memory_io *files)
{
    memory_io_make_dirs(files, WL_PATH);
    memory_io_region_dir(files, WL_REGION_DIR);
}

void workload_init(struct workload *w, struct memory_io *files, uint64_t seed,
                   enum wl_profile profile)
{
    *w = (struct workload){
        .files = files,
        .io = memory_io_table(files),
        .profile = profile,
        .random = wl_mix(seed),
        .next_id = (seed % 1000 + 1) * 1000000,
    };
    workload_settings(&w->settings, seed, profile);
    wl_picture(&w->model, false, wl_append_picture(w));
}

/* Sets only the flag: no thread sleeps, and mqx_region_stop() would touch every page of the process
 * table. */
static void stop(mqe_manager *manager)
{
    mqx_store_release(&manager->store.region.header->stopped, (uint32_t)MQX_STOP_BROKEN);
}

void workload_abandon(mqe_manager *manager)
{
    uint64_t discarded = 0;
    stop(manager);
    (void)mqe_detach(manager, MQE_DETACH_ORDERLY, &discarded);
}

static void free_units(struct workload *w)
{
    for (uint32_t u = 0; u < WL_UNITS; u++) {
        if (w->unit[u] != NULL) {
            mqe_unit_free(w->unit[u]);
            w->unit[u] = NULL;
        }
    }
}

void workload_leave(struct workload *w)
{
    if (w->manager != NULL) {
        stop(w->manager);
        free_units(w);
        workload_abandon(w->manager);
        w->manager = NULL;
    }
}

void workload_fini(struct workload *w)
{
    workload_leave(w);
    free(w->history.step);
    w->history = (struct wl_history){NULL, 0, 0};
}

int workload_create(struct workload *w)
{
    const struct wl_model before = w->model;
    wl_begin_step(w, false);
    const int result = wl_settle_step(w, "create", mqx_manager_create(w->io, WL_PATH, &w->settings),
                                   &before);
    w->created = w->done == 1;
    return result;
}

/* ---- starting, ending, dying ---- */

static uint32_t sure_count(const struct wl_model *picture, uint32_t q, uint64_t id)
{
    for (uint32_t i = 0; i < picture->queue[q].count; i++) {
        if (picture->queue[q].message[i].id == id) {
            return picture->queue[q].message[i].sure;
        }
    }
    return 0;
}

struct past { /* steps before a start */
    uint32_t before, done, newest;
};

/* The picture that the engine found, when that is one that it may find; NULL with words else. After
 * a failed end or start the image may be there or not. */
static const struct wl_model *what_is_found(struct workload *w, const struct wl_model *found,
                                            const struct past *past, char *text, size_t size)
{
    const struct wl_model *without = &w->history.step[w->done];
    char other[WL_TROUBLE / 2];
    uint32_t step = wl_step_like(&w->history, past->done, past->newest, found, text, size);
    if (step == UINT32_MAX && w->may_lose_last && !w->ended && past->done > 0) {
        /* P7: what a read garbled in the last batch looks like a torn tail */
        step = wl_step_like(&w->history, past->before, past->done - 1, found, other, sizeof other);
        w->lost_last += step != UINT32_MAX;
    }
    if (step != UINT32_MAX) {
        return &w->history.step[step];
    }
    if ((w->failures > 0 && wl_compare(found, without, other, sizeof other) == 0) ||
        (w->has_alternative && wl_compare(found, &w->alternative, other, sizeof other) == 0)) {
        return without;
    }
    return NULL;
}

/* What the engine found becomes the model: BackoutCounts may have got lost. */
static int adopt_found(struct workload *w, const struct past *past)
{
    static struct wl_model found;
    char text[WL_TROUBLE / 2];
    if (wl_look(w->manager, &found, text, sizeof text) != 0) {
        const int refusal = wl_refusal();
        w->blind = w->tolerant && refusal != 0 &&
                   (wl_is_clean(refusal) || refusal == w->also_clean);
        if (past->newest != past->done) { /* which of them it found is not known */
            w->unsure = w->done - past->done;
            w->done = past->done;
        }
        return w->blind ? STOP : wl_trouble(w, "after a start: %s", text);
    }
    const struct wl_model *like = what_is_found(w, &found, past, text, sizeof text);
    if (like == NULL) {
        return wl_trouble(w, "after a start: %s", text);
    }
    w->has_alternative = false;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < found.queue[q].count; i++) {
            struct wl_message *message = &found.queue[q].message[i];
            message->sure = message->kept != 0 ? sure_count(like, q, message->id) : 0;
        }
    }
    wl_mark_ghosts(&found);
    w->model = found;
    w->calls = 1000; /* above the order of what is found */
    wl_picture(&found, false, &w->history.step[w->done]);
    return GO_ON;
}

/* A start that failed may have consumed the image and not: both pictures stay acceptable. */
int workload_start(struct workload *w)
{
    struct mqe_attach_info info;
    const struct past past = {w->before, w->done, wl_newest(w)};
    const struct wl_model before = w->model;
    wl_lose_volatile(&w->model);
    wl_begin_step(w, false);
    const int reason =
        mqx_manager_attach(w->io, WL_PATH, &w->settings, &w->manager, &info);
    if (!wl_worked(w, "start", reason)) {
        w->manager = NULL;
        w->model = before;
        w->stopped = false;
        return w->in_trouble ? STOP : GO_ON;
    }
    wl_end_step(w);
    w->stopped = false;
    (void)adopt_found(w, &past);
    w->ended = false;
    return w->in_trouble ? STOP : GO_ON;
}

void wl_forget_units(struct workload *w, bool count_gets)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &w->model.queue[q];
        for (uint32_t i = queue->count; i-- > 0;) {
            struct wl_message *message = &queue->message[i];
            if (message->state == WL_PUT) {
                wl_remove(queue, i);
            } else if (message->state == WL_GOT) {
                message->state = WL_AVAILABLE;
                message->backouts += count_gets;
                wl_allow_backout(w, q, message->id, message->backouts, UINT32_MAX);
            } else if (message->state == WL_PREPARED_GOT) { /* a unit that a crash takes back */
                wl_allow_backout(w, q, message->id, message->backouts + 1,
                                 w->prepared_by[message->unit]);
            }
        }
    }
}

/* What an end with the image discards by the model: the step was begun. */
static uint64_t discarded_by_end(const struct workload *w)
{
    const struct wl_model *after = &w->history.step[wl_newest(w) + 1];
    uint64_t count = 0;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        count += w->model.queue[q].count - after->queue[q].count;
    }
    return count;
}

int workload_end(struct workload *w, bool image)
{
    uint64_t discarded = 0;
    free_units(w); /* backs out, and counts */
    wl_forget_units(w, true);
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < w->model.queue[q].count; i++) {
            struct wl_message *message = &w->model.queue[q].message[i];
            message->sure = message->backouts; /* a clean checkpoint lists the counts */
        }
    }
    wl_begin_step(w, image);
    mqe_manager *manager = w->manager;
    w->manager = NULL;
    w->stopped = false;
    const bool worked = wl_worked(
        w, "end", mqe_detach(manager, image ? MQE_DETACH_ORDERLY : MQE_DETACH_DISCARD, &discarded));
    if (worked && !(w->loses_rights && image && discarded > discarded_by_end(w))) {
        wl_end_step(w);
        w->ended = true;
    } else { /* the image may be on the disk or not */
        w->alternative = w->history.step[wl_newest(w) + 1];
        w->has_alternative = true;
        w->pending = false;
    }
    w->stopped = false;
    w->model = w->history.step[wl_newest(w)];
    return w->in_trouble ? STOP : GO_ON;
}

void workload_die(struct workload *w)
{
    char path[192];
    const uint32_t running = MQX_RUNNING;
    const uint64_t at = (uint64_t)((unsigned char *)&w->manager->store.region.header->stopped -
                                   w->manager->store.region.base);
    const bool was_stopped = mqx_region_stopped(&w->manager->store.region) != MQX_RUNNING;
    (void)snprintf(path, sizeof path, "%s/%s", WL_REGION_DIR, w->manager->store.region_name);
    workload_leave(w);
    w->stopped = false;
    w->ended = false;
    if (!was_stopped) { /* the flag only kept the process' memory from leaking */
        memory_io_patch(w->files, path, at, &running, sizeof running);
    }
    wl_forget_units(w, true);
    w->model = w->history.step[wl_newest(w)];
}

void workload_adopt(struct workload *w, mqe_manager *manager, const struct wl_model *found)
{
    w->manager = manager;
    w->created = true;
    w->history.count = 0;
    *wl_append_picture(w) = *found;
    w->model = *found;
    wl_mark_ghosts(&w->model);
    wl_begin_step(w, false);
    wl_lose_volatile(&w->history.step[1]); /* the image has been consumed */
    wl_end_step(w);
}

/* ---- definitions ---- */

static struct wl_attributes random_attributes(struct workload *w)
{
    return (struct wl_attributes){
        .max_depth = 999999,
        .max_length = 4194304,
        .def_priority = (int32_t)wl_below(w, 10),
        .def_persistence = (int32_t)wl_below(w, 2),
        .fifo = wl_below(w, 4) == 0,
        .npm_class = wl_below(w, 2) == 0 ? 10 : 0,
        .mark = (int32_t)wl_below(w, 1000000),
        .definition = 1 + (int32_t)wl_below(w, 2),
        .structure = w->model.other[WL_STRUCTURE].defined && wl_below(w, 2) == 0,
    };
}

/* Closes with that option; a refusal leaves the handle open, so it is closed after all. */
static int close_with(mqe_queue *handle, uint32_t how)
{
    const int reason = mqe_close(handle, how);
    if (reason != 0 && how != MQE_CLOSE_KEEP && reason != MQRC_CONNECTION_BROKEN) {
        (void)mqe_close(handle, MQE_CLOSE_KEEP);
    }
    return reason;
}

/* A permanent dynamic queue is on disk when it is open. */
static int define_dynamic(struct workload *w, const struct ps_object_name *name, const void *attrs,
                          uint32_t length, uint32_t *slot, uint32_t *generation)
{
    mqe_queue *handle = NULL;
    struct mqe_found found = {0};
    const int reason =
        mqe_open_new(w->manager, name, attrs, length, 2 | MQE_OUTPUT, &handle, &found);
    *slot = found.slot;
    *generation = found.generation;
    if (reason == 0) {
        (void)mqe_close(handle, MQE_CLOSE_KEEP);
    }
    return reason;
}

static int define_with(struct workload *w, uint32_t q, const struct wl_attributes *attributes)
{
    const struct wl_model before = w->model;
    struct ps_object_name name;
    unsigned char attrs[256];
    struct wl_queue *queue = &w->model.queue[q];
    const uint32_t length = wl_encode(attributes, attrs);
    wl_name(q, &name);
    queue->defined = true;
    queue->attributes = *attributes;
    queue->count = 0;
    wl_begin_step(w, false);
    uint32_t slot = 0, generation = 0;
    const int reason =
        attributes->definition == 2
            ? define_dynamic(w, &name, attrs, length, &slot, &generation)
            : mqe_define(w->manager, &name, attrs, length, &slot, &generation);
    queue->slot = slot;
    queue->generation = generation;
    return wl_settle_step(w, "define", reason, &before);
}

int workload_define(struct workload *w, uint32_t q)
{
    const struct wl_attributes attributes = {.max_depth = 999999, .max_length = 4194304,
                                             .def_priority = 4, .def_persistence = 1,
                                             .definition = 1};
    return define_with(w, q, &attributes);
}

static int do_define(struct workload *w, uint32_t q)
{
    const struct wl_attributes attributes = random_attributes(w);
    return define_with(w, q, &attributes);
}

static int do_alter(struct workload *w, uint32_t q)
{
    const struct wl_model before = w->model;
    struct wl_attributes attributes = random_attributes(w);
    struct ps_object_name name;
    unsigned char attrs[256];
    struct wl_queue *queue = &w->model.queue[q];
    attributes.definition = queue->attributes.definition; /* it stays */
    if (queue->count != 0) { /* so does the structure of a queue that is not empty */
        attributes.structure = queue->attributes.structure;
    }
    const uint32_t length = wl_encode(&attributes, attrs);
    wl_name(q, &name);
    queue->attributes = attributes;
    wl_begin_step(w, false);
    return wl_settle_step(w, "alter", mqe_alter(w->manager, queue->slot, queue->generation, &name,
                                             attrs, length, 0, wl_below(w, 2)), &before);
}

static bool has_units(const struct wl_queue *queue)
{
    bool any = false;
    for (uint32_t i = 0; i < queue->count; i++) {
        any |= queue->message[i].state != WL_AVAILABLE;
    }
    return any;
}

/* Deleted by closing; another handle may still be open then. */
static int delete_by_close(struct workload *w, uint32_t q)
{
    const struct wl_model before = w->model;
    struct wl_queue *queue = &w->model.queue[q];
    const uint32_t how = queue->count == 0 ? 1 + wl_below(w, 2) : (uint32_t)MQE_CLOSE_PURGE;
    mqe_queue *handle = NULL, *other = NULL;
    if (!wl_worked(
            w, "open",
            mqe_open_direct(w->manager, queue->slot, queue->generation, MQE_BROWSE, &handle))) {
        return wl_over(w) ? STOP : GO_ON;
    }
    if (wl_below(w, 2) == 0) {
        (void)wl_worked(
            w, "open",
            mqe_open_direct(w->manager, queue->slot, queue->generation, MQE_OUTPUT, &other));
    }
    queue->defined = false;
    queue->count = 0;
    wl_begin_step(w, false);
    const int result = wl_settle_step(w, "delete by closing", close_with(handle, how), &before);
    if (other != NULL) {
        (void)mqe_close(other, MQE_CLOSE_KEEP);
    }
    return result;
}

/* A temporary queue lives and ends; nothing of it gets to the disk, whatever else is written. */
static int live_shortly(struct workload *w)
{
    static const struct wl_attributes attributes = {
        .max_depth = 100, .max_length = 4194304, .npm_class = 10, .definition = 3};
    struct ps_object_name name;
    unsigned char attrs[256];
    struct ps_descriptor descriptor = {.md_version = 2};
    struct mqe_found found;
    mqe_queue *handle = NULL;
    const uint32_t length = wl_encode(&attributes, attrs);
    wl_name(WL_QUEUES, &name);
    if (!wl_worked(w, "a temporary queue",
                   mqe_open_new(w->manager, &name, attrs, length, 2 | MQE_OUTPUT, &handle,
                                &found))) {
        return wl_over(w) ? STOP : GO_ON;
    }
    const struct mqe_destination to = mqe_direct(found.slot, found.generation);
    (void)wl_worked(w, "put on it", mqe_put(w->manager, NULL, &to, &descriptor, NULL, attrs, length,
                                            -1, 0));
    if (wl_below(w, 2) == 0) {
        (void)wl_worked(w, "checkpoint", mqe_checkpoint(w->manager));
    }
    (void)wl_worked(w, "its end", close_with(handle, wl_below(w, 3)));
    return wl_over(w) ? STOP : GO_ON;
}

static int do_delete(struct workload *w, uint32_t q)
{
    const struct wl_model before = w->model;
    struct wl_queue *queue = &w->model.queue[q];
    if (has_units(queue)) {
        return GO_ON;
    }
    if (queue->attributes.definition == 2 && wl_below(w, 4) != 0) {
        return delete_by_close(w, q);
    }
    queue->defined = false;
    queue->count = 0;
    wl_begin_step(w, false);
    return wl_settle_step(w, "delete", mqe_delete(w->manager, queue->slot, queue->generation, 1),
                       &before);
}

static int do_clear(struct workload *w, uint32_t q)
{
    const struct wl_model before = w->model;
    struct wl_queue *queue = &w->model.queue[q];
    if (has_units(queue)) {
        return GO_ON;
    }
    bool kept = false;
    for (uint32_t i = 0; i < queue->count; i++) {
        kept |= queue->message[i].kept != 0;
    }
    queue->count = 0;
    if (!kept) {
        return wl_settle_call(w, "clear", mqe_clear(w->manager, queue->slot, queue->generation),
                           &before);
    }
    wl_begin_step(w, false);
    return wl_settle_step(w, "clear", mqe_clear(w->manager, queue->slot, queue->generation),
                          &before);
}

/* ---- puts ---- */

static int put_message(struct workload *w, const struct wl_queue *queue, mqe_unit *unit,
                       const struct wl_order *order, const struct wl_message *message)
{
    struct ps_descriptor descriptor;
    struct ps_descriptor_ext extension;
    const struct mqe_destination to = mqe_direct(queue->slot, queue->generation);
    wl_descriptor(message, &descriptor);
    descriptor.priority = order->priority;
    descriptor.persistence = order->persistence;
    descriptor.placement = 0;
    wl_extension(message, &extension);
    wl_body(message->id, message->length, body_buffer);
    wl_tell(w, "put %llu on slot %u, unit %d, persistent %u, placement %u, %u bytes",
         (unsigned long long)message->id, queue->slot, unit != NULL ? (int)message->unit : -1,
         message->persistent, message->placement, message->length);
    return mqe_put(w->manager, unit, &to, &descriptor, order->has_ext ? &extension : NULL,
                   body_buffer, message->length, -1, 0);
}

static int put_single(struct workload *w, uint32_t q, const struct wl_order *order)
{
    struct wl_queue *queue = &w->model.queue[q];
    const struct wl_model before = w->model;
    const struct wl_message message = wl_message_for(w, queue, order);
    (void)wl_insert(queue, &message);
    if (message.kept == 0) {
        return wl_settle_call(w, "put", put_message(w, queue, NULL, order, &message), &before);
    }
    wl_begin_step(w, false);
    return wl_settle_step(w, "put", put_message(w, queue, NULL, order, &message), &before);
}

int wl_need_unit(struct workload *w, uint32_t u)
{
    if (w->unit[u] == NULL) {
        (void)wl_worked(w, "begin", mqe_unit_new(w->manager, &w->unit[u]));
    }
    return wl_over(w) ? STOP : GO_ON;
}

int workload_put_in_unit(struct workload *w, uint32_t q, uint32_t u)
{
    struct wl_queue *queue = &w->model.queue[q];
    const struct wl_order order = wl_random_order(w);
    struct wl_message message = wl_message_for(w, queue, &order);
    if (wl_need_unit(w, u) != GO_ON || w->unit[u] == NULL) {
        return wl_over(w) ? STOP : GO_ON;
    }
    message.state = WL_PUT;
    message.unit = (uint8_t)u;
    message.order = w->calls++;
    if (wl_worked(w, "put in a unit", put_message(w, queue, w->unit[u], &order, &message))) {
        (void)wl_insert(queue, &message);
    }
    return wl_over(w) ? STOP : GO_ON;
}

int workload_put(struct workload *w, uint32_t q, bool persistent, uint32_t length)
{
    const struct wl_order order = {AS_Q_DEF, persistent, false, length, false};
    return put_single(w, q, &order);
}

int workload_fill(struct workload *w, uint32_t q, uint32_t messages, uint32_t length)
{
    int result = GO_ON;
    for (uint32_t i = 0; i < messages && result == GO_ON; i++) {
        result = workload_put(w, q, true, length + wl_below(w, 40));
    }
    return result;
}

/* ---- gets ---- */

static int get_message(struct workload *w, const struct wl_queue *queue, mqe_unit *unit,
                       uint32_t correl, uint32_t flags, struct wl_message *out)
{
    static unsigned char got_buffer[WL_BODY_MAX];
    struct mqe_get get = {.flags = flags, .buffer = got_buffer, .capacity = sizeof got_buffer};
    mqe_queue *handle = NULL;
    const uint64_t key = correl;
    char text[256];
    int reason =
        mqe_open_direct(w->manager, queue->slot, queue->generation, 2 | MQE_BROWSE, &handle);
    if (reason != 0) {
        return reason;
    }
    if (correl != 0) {
        get.match = MQE_MATCH_CORREL_ID;
        memcpy(get.correl_id, &key, sizeof key);
    }
    reason = mqe_get(w->manager, unit, handle, &get);
    wl_tell(w, "get on slot %u, CorrelId %u, flags %u, %s: %d, message %llu", queue->slot, correl,
         flags,
         unit != NULL ? "in a unit" : "outside", reason,
         (unsigned long long)(get.d.msg_id[0] | get.d.msg_id[1] << 8 | get.d.msg_id[2] << 16));
    if (reason == 0 && wl_verify(&get, out, text, sizeof text) != 0) {
        (void)wl_trouble(w, "a get: %s", text);
    }
    (void)mqe_close(handle, MQE_CLOSE_KEEP);
    return reason;
}

void wl_compare_got(struct workload *w, const struct wl_message *got,
                    const struct wl_message *expected)
{
    if (got->id != expected->id || got->backouts != expected->backouts ||
        got->length != expected->length || got->priority != expected->priority) {
        (void)wl_trouble(w, "a get brought message %llu (BackoutCount %u), not %llu (%u)",
                      (unsigned long long)got->id, got->backouts, (unsigned long long)expected->id,
                      expected->backouts);
    }
}

static int get_nothing(struct workload *w, const struct wl_queue *queue, uint32_t correl)
{
    struct wl_message got;
    const int reason = get_message(w, queue, NULL, correl, 0, &got);
    if (reason != MQRC_NO_MSG_AVAILABLE) {
        if (wl_worked(w, "a get that finds nothing", reason)) {
            (void)wl_trouble(w, "a get brought message %llu where there was none",
                          (unsigned long long)got.id);
        }
    }
    return wl_over(w) ? STOP : GO_ON;
}

int wl_get_single(struct workload *w, uint32_t q, uint32_t correl)
{
    struct wl_queue *queue = &w->model.queue[q];
    const uint32_t index = wl_first(queue, correl);
    if (index == WL_DEPTH) {
        return get_nothing(w, queue, correl);
    }
    const struct wl_model before = w->model;
    const struct wl_message expected = queue->message[index];
    struct wl_message got = expected;
    wl_remove(queue, index);
    if (expected.kept != 0) {
        wl_begin_step(w, false);
    }
    const int reason = get_message(w, queue, NULL, correl, 0, &got);
    if (reason == 0) {
        wl_compare_got(w, &got, &expected);
    }
    return expected.kept != 0 ? wl_settle_step(w, "get", reason, &before)
                              : wl_settle_call(w, "get", reason, &before);
}

int workload_get_in_unit(struct workload *w, uint32_t q, uint32_t u, uint32_t correl)
{
    struct wl_queue *queue = &w->model.queue[q];
    const uint32_t index = wl_first(queue, correl);
    struct wl_message got = {0};
    if (index == WL_DEPTH || wl_need_unit(w, u) != GO_ON || w->unit[u] == NULL) {
        return wl_over(w) ? STOP : GO_ON;
    }
    struct wl_message *message = &queue->message[index];
    if (wl_worked(w, "get in a unit", get_message(w, queue, w->unit[u], correl, 0, &got))) {
        wl_compare_got(w, &got, message);
        message->state = WL_GOT;
        message->unit = (uint8_t)u;
        message->order = w->calls++;
    }
    return wl_over(w) ? STOP : GO_ON;
}

static int browse(struct workload *w, uint32_t q)
{
    const struct wl_queue *queue = &w->model.queue[q];
    const uint32_t index = wl_first(queue, 0);
    struct wl_message got = {0};
    if (index == WL_DEPTH) {
        return get_nothing(w, queue, 0);
    }
    if (wl_worked(w, "browse", get_message(w, queue, NULL, 0, MQE_GET_BROWSE_FIRST, &got))) {
        wl_compare_got(w, &got, &queue->message[index]);
    }
    return wl_over(w) ? STOP : GO_ON;
}

/* ---- the mixture ---- */

static int restart(struct workload *w)
{
    if (wl_below(w, 3) == 0) {
        wl_tell(w, "dies");
        workload_die(w);
    } else if (workload_end(w, wl_below(w, 4) != 0) != GO_ON) {
        return STOP;
    }
    return workload_start(w);
}

int wl_maintain(struct workload *w)
{
    const uint32_t way = wl_below(w, 6);
    if (way < 2) {
        (void)wl_worked(w, "compaction", mqe_compact(w->manager));
    } else if (way < 4) {
        (void)wl_worked(w, "checkpoint", mqe_checkpoint(w->manager));
    } else {
        (void)wl_worked(w, "maintenance", mqe_maintain(w->manager));
    }
    return wl_over(w) ? STOP : GO_ON;
}

static int change_queue(struct workload *w, uint32_t q)
{
    const uint32_t way = wl_below(w, 10);
    if (!w->model.queue[q].defined) {
        return do_define(w, q);
    }
    if (way < 4) {
        return do_alter(w, q);
    }
    return way < 6 ? do_clear(w, q) : way < 9 ? do_delete(w, q) : live_shortly(w);
}

static int on_queue(struct workload *w, uint32_t q, uint32_t u, uint32_t way)
{
    const struct wl_queue *queue = &w->model.queue[q];
    const uint32_t correl = wl_below(w, 4) == 0 ? 1 + wl_below(w, 4) : 0;
    if (!queue->defined) {
        return do_define(w, q);
    }
    const bool may_put = queue->count < WL_DEPTH - 6;
    if (way < 20 && may_put) {
        const struct wl_order order = wl_random_order(w);
        return put_single(w, q, &order);
    }
    if (way < 48 && may_put) {
        return way < 40 ? workload_put_in_unit(w, q, u) : wl_put_batch(w, q, u);
    }
    if (way < 60) {
        return way < 56 ? wl_get_single(w, q, correl) : wl_cancel(w, q);
    }
    if (way < 74) {
        return way < 70 ? workload_get_in_unit(w, q, u, correl) : wl_get_batch(w, q, u);
    }
    return browse(w, q);
}

/* A unit that is larger than the log ring, so that most of it is in the journal before its COMMIT
 * (rule 44). Now and then the process dies with it: the restart reads what was never flushed. */
static int large_unit(struct workload *w, bool may_die)
{
    const uint32_t u = wl_below(w, WL_UNITS);
    int result = GO_ON;
    for (uint32_t i = 0; i < 6 && result == GO_ON; i++) {
        const uint32_t q = wl_below(w, 2);
        if (!w->model.queue[q].defined) {
            result = do_define(w, q);
        } else if (w->model.queue[q].count < WL_DEPTH - 6) {
            result = workload_put_in_unit(w, q, u);
        }
    }
    if (result != GO_ON) {
        return result;
    }
    const uint32_t way = wl_below(w, 6);
    if (way == 0 && may_die) {
        wl_tell(w, "dies");
        workload_die(w);
        return workload_start(w);
    }
    return way < 3 ? wl_commit(w, u) : way < 4 ? wl_prepare(w, u) : GO_ON;
}

static int random_call(struct workload *w, bool restarts)
{
    const uint32_t way = wl_below(w, 100);
    if (w->profile == WL_LARGE && way % 10 == 0) {
        return large_unit(w, restarts);
    }
    const uint32_t q = wl_below(w, w->profile == WL_LARGE ? 2 : WL_QUEUES - 1);
    const uint32_t u = wl_below(w, WL_UNITS);
    if (!w->model.other[WL_STRUCTURE].defined && way % 8 == 0) {
        return wl_change_other(w);
    }
    if (way < 75) {
        return on_queue(w, q, u, way);
    }
    if (way < 81) {
        return way < 79 ? wl_commit(w, u) : wl_commit_together(w, u);
    }
    if (way < 88) {
        return way < 84 ? wl_prepare(w, u) : way < 86 ? wl_ask_for_prepared(w) : wl_resolve(w);
    }
    if (way < 90) {
        return wl_back_out(w, u);
    }
    if (way < 92) {
        return wl_maintain(w);
    }
    if (way < 97) {
        return way < 95 ? change_queue(w, wl_below(w, WL_QUEUES)) : wl_change_other(w);
    }
    return restarts ? restart(w) : GO_ON;
}

int workload_run(struct workload *w, uint32_t count, bool restarts)
{
    int result = GO_ON;
    for (uint32_t i = 0; i < count && result == GO_ON && !w->blind; i++) {
        if (w->manager == NULL) { /* a start failed: once more */
            result = workload_start(w);
            if (w->manager == NULL) {
                break;
            }
        }
        result = result == GO_ON ? random_call(w, restarts) : result;
    }
    return w->in_trouble ? STOP : GO_ON;
}
