/*
 * workload_check.c - what a recovered queue manager holds, and whether it is what was promised. See
 * workload.h.
 */
#include "workload_steps.h"
#include "fixtures/require.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MQX_PRINTF(3, 4) int wrong(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, size, format, args);
    va_end(args);
    return -1;
}

static int refusal;

int wl_refusal(void)
{
    return refusal;
}

int wl_refused(char *text, size_t size, const char *what, int reason)
{
    refusal = reason;
    return wrong(text, size, "%s: %d %s: %s", what, reason, mqe_reason_name(reason),
                 mqe_error_text());
}

static unsigned char got_body[WL_BODY_MAX];
static unsigned char made_body[WL_BODY_MAX];

int wl_verify(const struct mqe_get *got, struct wl_message *out, char *text, size_t size)
{
    struct ps_descriptor descriptor;
    struct ps_descriptor_ext extension;
    *out = (struct wl_message){
        .priority = got->d.priority,
        .length = (uint32_t)got->length,
        .backouts = got->d.backout_count,
        .sure = got->d.backout_count,
        .placement = got->d.placement,
        .persistent = got->d.persistence,
        .has_ext = got->d.has_ext,
        .delayed = got->d.due_us != 0,
        .state = WL_AVAILABLE,
    };
    memcpy(&out->id, got->d.msg_id, sizeof out->id);
    wl_descriptor(out, &descriptor);
    descriptor.backout_count = got->d.backout_count;
    if (memcmp(&descriptor, &got->d, sizeof descriptor) != 0) {
        return wrong(text, size, "message %llu has a damaged descriptor",
                     (unsigned long long)out->id);
    }
    if (out->has_ext != 0) {
        wl_extension(out, &extension);
        if (memcmp(&extension, &got->ext, sizeof extension) != 0) {
            return wrong(text, size, "message %llu has a damaged descriptor extension",
                         (unsigned long long)out->id);
        }
    }
    if (out->length > WL_BODY_MAX) {
        return wrong(text, size, "message %llu has %u bytes", (unsigned long long)out->id,
                     out->length);
    }
    wl_body(out->id, out->length, made_body);
    if (memcmp(made_body, got->buffer, out->length) != 0) {
        return wrong(text, size, "message %llu has a damaged body of %u bytes",
                     (unsigned long long)out->id, out->length);
    }
    return 0;
}

/* ---- looking ---- */

static int read_attributes(mqe_manager *manager, uint32_t slot, uint32_t generation,
                           struct ps_object_name *name, struct wl_attributes *out, char *text,
                           size_t size)
{
    unsigned char attrs[256], again[256];
    uint32_t length = 0;
    uint64_t version = 0;
    enum { VALUES = 7 };
    int64_t value[VALUES];
    const int reason =
        mqe_read_object(manager, slot, generation, name, attrs, sizeof attrs, &length, &version);
    if (reason != 0) {
        return wl_refused(text, size, "reading a definition", reason);
    }
    if (length != VALUES * 16 + 32) {
        return wrong(text, size, "a definition has %u bytes of attributes", length);
    }
    for (uint32_t i = 0; i < VALUES; i++) {
        memcpy(&value[i], attrs + i * 16 + 8, 8);
    }
    char words[9] = {0};
    memcpy(words, attrs + VALUES * 16 + 8, 8);
    const bool in_structure = attrs[VALUES * 16 + 24] != ' ';
    *out = (struct wl_attributes){
        .def_persistence = (int32_t)value[0], .def_priority = (int32_t)value[1],
        .definition = (int32_t)value[2],      .max_length = (int32_t)value[3],
        .max_depth = (int32_t)value[4],       .fifo = (int32_t)value[5],
        .npm_class = (int32_t)value[6],
        .mark = (int32_t)strtoul(words, NULL, 16),
        .structure = in_structure,
    };
    if (wl_encode(out, again) != length || memcmp(attrs, again, length) != 0) {
        return wrong(text, size, "%.48s has damaged attributes", name->name);
    }
    return 0;
}

/* An object that is no queue; 1 when it is one. */
static int look_at_other(mqe_manager *manager, uint32_t slot, uint32_t generation,
                         struct wl_model *out, char *text, size_t size)
{
    struct ps_object_name name, known;
    unsigned char attrs[256], again[256];
    char words[9] = {0};
    uint32_t length = 0;
    uint64_t version = 0;
    const int reason =
        mqe_read_object(manager, slot, generation, &name, attrs, sizeof attrs, &length, &version);
    if (reason != 0) {
        return wl_refused(text, size, "reading a definition", reason);
    }
    for (uint32_t o = 0; o < WL_OTHERS; o++) {
        wl_other_name(o, &known);
        if (memcmp(&known, &name, sizeof known) != 0) {
            continue;
        }
        memcpy(words, attrs + length - 8, 8);
        const int32_t mark = (int32_t)strtoul(words, NULL, 16);
        if (out->other[o].defined || wl_encode_other(o, mark, again) != length ||
            memcmp(attrs, again, length) != 0) {
            return wrong(text, size, "object %u is damaged or defined twice", o);
        }
        out->other[o] = (struct wl_other){true, mark, slot, generation};
        return 0;
    }
    return 1;
}

static int read_messages(mqe_manager *manager, struct wl_queue *out, uint32_t options,
                         uint32_t flags, char *text, size_t size)
{
    mqe_queue *queue = NULL;
    int result = 0;
    int reason = mqe_open_direct(manager, out->slot, out->generation, options, &queue);
    if (reason != 0) {
        return wl_refused(text, size, "opening a queue", reason);
    }
    while (result == 0) {
        struct mqe_get get = {.flags = flags, .buffer = got_body, .capacity = sizeof got_body};
        get.match = options == MQE_BROWSE ? MQE_MATCH_DELAYED : 0;
        reason = mqe_get(manager, NULL, queue, &get);
        if (reason == MQRC_NO_MSG_AVAILABLE) {
            break;
        }
        if (reason != 0) {
            result = wl_refused(text, size, "reading a message", reason);
        } else if (out->count == WL_DEPTH) {
            result = wrong(text, size, "slot %u has more messages than were ever put", out->slot);
        } else {
            struct wl_message *message = &out->message[out->count];
            result = wl_verify(&get, message, text, size);
            message->kept = message->persistent != 0 || out->attributes.structure != 0;
            out->count += 1;
        }
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
    return result;
}

int wl_look(mqe_manager *manager, struct wl_model *out, char *text, size_t size)
{
    uint32_t slot = 0, generation = 0;
    int reason;
    refusal = 0;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        out->queue[q].defined = false;
        out->queue[q].count = 0;
    }
    memset(out->other, 0, sizeof out->other);
    while ((reason = mqe_next_object(manager, &slot, &generation)) == 0) {
        struct ps_object_name name;
        struct wl_attributes attributes;
        const int other = look_at_other(manager, slot, generation, out, text, size);
        if (other < 0) {
            return -1;
        }
        if (other == 0) {
            continue;
        }
        if (read_attributes(manager, slot, generation, &name, &attributes, text, size) != 0) {
            return -1;
        }
        const uint32_t q = wl_queue_of(&name);
        if (q == WL_QUEUES || out->queue[q].defined) {
            return wrong(text, size, "%.48s is defined, twice or out of nothing", name.name);
        }
        struct wl_queue *queue = &out->queue[q];
        queue->defined = true;
        queue->attributes = attributes;
        queue->slot = slot;
        queue->generation = generation;
        if (read_messages(manager, queue, MQE_BROWSE, MQE_GET_BROWSE_NEXT, text, size) != 0) {
            return -1;
        }
    }
    return reason == MQRC_UNKNOWN_OBJECT_NAME ? wl_look_at_prepared(manager, out, text, size)
                                              : wl_refused(text, size, "the objects", reason);
}

/* Cancels what no get finds, and enters it as found. */
static int cancel_delayed(mqe_manager *manager, struct wl_queue *out,
                          const struct wl_queue *expected, char *text, size_t size)
{
    for (uint32_t i = 0; i < expected->count; i++) {
        const struct wl_message *message = &expected->message[i];
        struct ps_descriptor descriptor;
        if (message->delayed == 0 || message->state != WL_AVAILABLE) {
            continue;
        }
        wl_descriptor(message, &descriptor);
        const int reason =
            mqe_cancel_delayed(manager, out->slot, out->generation, descriptor.msg_id);
        if (reason != 0) {
            return wl_refused(text, size, "cancelling a delayed message", reason);
        }
        if (out->count == WL_DEPTH) {
            return wrong(text, size, "slot %u has more messages than were ever put", out->slot);
        }
        (void)wl_insert_old(out, message);
    }
    return 0;
}

int wl_drain(mqe_manager *manager, const struct wl_model *expected, char *text, size_t size)
{
    static struct wl_model found;
    wl_picture(expected, true, &found);
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &found.queue[q];
        queue->count = 0;
        if (queue->defined && read_messages(manager, queue, 2, 0, text, size) != 0) {
            return -1;
        }
        if (queue->defined &&
            cancel_delayed(manager, queue, &expected->queue[q], text, size) != 0) {
            return -1;
        }
    }
    return wl_compare(&found, expected, text, size);
}

/* ---- judging ---- */

void wl_acked(const uint64_t *acks, uint32_t ack_count, uint32_t *done, uint32_t *begun)
{
    *done = *begun = 0;
    for (uint32_t i = 0; i < ack_count; i++) {
        *(acks[i] % 2 == 1 ? done : begun) = (uint32_t)(acks[i] / 2);
    }
    *begun = *begun < *done ? *done : *begun;
}

uint32_t wl_step_like(const struct wl_history *history, uint32_t first, uint32_t last,
                      const struct wl_model *found, char *text, size_t size)
{
    char other[WL_TROUBLE];
    for (uint32_t step = last + 1; step-- > first;) {
        char *where = step == last ? text : other;
        if (wl_compare(found, &history->step[step], where,
                       step == last ? size : sizeof other) == 0) {
            return step;
        }
    }
    return UINT32_MAX;
}

int wl_judge(const struct wl_history *history, const uint64_t *acks, uint32_t ack_count,
             const struct wl_model *found, char *text, size_t size)
{
    uint32_t done = 0, begun = 0;
    char first[WL_TROUBLE / 2], last[WL_TROUBLE / 2];
    wl_acked(acks, ack_count, &done, &begun);
    REQUIRE(begun < history->count);
    const uint32_t step = wl_step_like(history, done, begun, found, last, sizeof last);
    if (step != UINT32_MAX) {
        return (int)step;
    }
    (void)wl_compare(found, &history->step[done], first, sizeof first);
    return done == begun ? wrong(text, size, "after step %u: %s", done, first)
                         : wrong(text, size, "neither as after step %u: %s; nor as after step %u: "
                                 "%s; nor as in between", done, first, begun, last);
}
