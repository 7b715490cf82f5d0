/*
 * workload_model.c - the model of a workload: names, attributes, messages made from their ids,
 * pictures. See workload.h.
 */
#include "workload.h"
#include "fixtures/require.h"

#include <stdio.h>
#include <string.h>

uint64_t wl_mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

/* ---- queues ---- */

void wl_name(uint32_t queue, struct ps_object_name *out)
{
    *out = (struct ps_object_name){.name_space = 1, .type = 1};
    memset(out->name, ' ', sizeof out->name);
    memcpy(out->name, "QUEUE.", 6);
    out->name[6] = (char)('A' + queue);
}

uint32_t wl_queue_of(const struct ps_object_name *name)
{
    struct ps_object_name known;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        wl_name(q, &known);
        if (memcmp(&known, name, sizeof known) == 0) {
            return q;
        }
    }
    return WL_QUEUES;
}

void wl_other_name(uint32_t other, struct ps_object_name *out)
{
    wl_name(0, out);
    out->name_space = other == WL_STRUCTURE ? 110 : 103; /* 100 + MQOT_* */
    out->type = other == WL_STRUCTURE ? 10 : 3;
    memcpy(out->name, "STRUCT.A", 8);
}

static unsigned char *encode_text(unsigned char *at, int32_t selector, const char *text)
{
    const struct ps_attr attr = {selector, 2, 8};
    memcpy(at, &attr, 8);
    memcpy(at + 8, text, 8);
    return at + 16;
}

static unsigned char *encode_value(unsigned char *at, int32_t selector, int64_t value)
{
    const struct ps_attr attr = {selector, 1, 8};
    memcpy(at, &attr, 8);
    memcpy(at + 8, &value, 8);
    return at + 16;
}

/* The structure takes persistent messages of any length. */
uint32_t wl_encode_other(uint32_t other, int32_t mark, unsigned char out[256])
{
    unsigned char *at = out;
    char words[16];
    (void)snprintf(words, sizeof words, "%08x", (unsigned)mark);
    if (other == WL_STRUCTURE) {
        at = encode_value(at, 70, 5);
        at = encode_value(at, 71, 1);
    }
    return (uint32_t)(encode_text(at, 2013, words) - out);
}

/* MQIA_* selectors ascending, then DESCR, a text that carries the mark, and CFSTRUCT. */
uint32_t wl_encode(const struct wl_attributes *attributes, unsigned char out[256])
{
    const struct {
        int32_t selector, value;
    } rows[] = {
        {5, attributes->def_persistence}, {6, attributes->def_priority},
        {7, attributes->definition},      {13, attributes->max_length},
        {15, attributes->max_depth},      {16, attributes->fifo},
        {78, attributes->npm_class},
    };
    unsigned char *at = out;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(rows); i++) {
        at = encode_value(at, rows[i].selector, rows[i].value);
    }
    char words[16];
    (void)snprintf(words, sizeof words, "%08x", (unsigned)attributes->mark);
    at = encode_text(at, 2013, words);
    at = encode_text(at, 2039, attributes->structure != 0 ? "STRUCT.A" : "        ");
    return (uint32_t)(at - out);
}

/* ---- messages ---- */

uint32_t wl_correl(uint64_t id)
{
    return 1 + (uint32_t)(id % 4);
}

void wl_body(uint64_t id, uint32_t length, unsigned char *out)
{
    uint64_t word = wl_mix(id);
    for (uint32_t at = 0; at < length; at += 8) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        memcpy(out + at, &word, length - at < 8 ? length - at : 8);
    }
}

static void fill(void *to, size_t size, uint64_t from)
{
    wl_body(from, (uint32_t)size, to);
}

void wl_descriptor(const struct wl_message *message, struct ps_descriptor *out)
{
    const uint64_t id = message->id;
    const uint64_t correl = wl_correl(id);
    *out = (struct ps_descriptor){
        .put_time_us = WL_NOW_US,
        .priority = message->priority,
        .report = (int32_t)(id * 3),
        .msg_type = 8,
        .feedback = (int32_t)(id % 7),
        .encoding = 546,
        .ccsid = 1208,
        .put_appl_type = 28,
        .persistence = message->persistent,
        .placement = message->placement,
        .has_ext = message->has_ext,
        .md_version = 2,
        .due_us = message->delayed != 0 ? WL_DUE_US : 0,
    };
    memcpy(out->msg_id, &id, sizeof id);
    fill(out->msg_id + 8, sizeof out->msg_id - 8, id + 1);
    memcpy(out->correl_id, &correl, sizeof correl);
    memcpy(out->format, "MQSTR   ", 8);
    fill(out->accounting_token, sizeof out->accounting_token, id + 2);
    memcpy(out->user_identifier, "somebody    ", 12);
    memcpy(out->put_appl_name, "workload                    ", 28);
    memcpy(out->appl_origin_data, "orig", 4);
}

void wl_extension(const struct wl_message *message, struct ps_descriptor_ext *out)
{
    *out = (struct ps_descriptor_ext){.msg_seq_number = 1 + (int32_t)(message->id % 5),
                                      .offset = (int32_t)(message->id % 1000),
                                      .msg_flags = 8,
                                      .original_length = -1};
    memset(out->reply_to_q, ' ', sizeof out->reply_to_q);
    memcpy(out->reply_to_q, "REPLY", 5);
    memset(out->reply_to_qmgr, ' ', sizeof out->reply_to_qmgr);
    memset(out->appl_identity_data, ' ', sizeof out->appl_identity_data);
    fill(out->group_id, sizeof out->group_id, message->id + 3);
}

struct wl_message *wl_insert(struct wl_queue *queue, const struct wl_message *message)
{
    uint32_t at = queue->count;
    REQUIRE(queue->count < WL_DEPTH);
    while (at > 0 && queue->message[at - 1].placement < message->placement) {
        at -= 1;
    }
    memmove(&queue->message[at + 1], &queue->message[at],
            (queue->count - at) * sizeof queue->message[0]);
    queue->message[at] = *message;
    queue->count += 1;
    return &queue->message[at];
}

struct wl_message *wl_insert_old(struct wl_queue *queue, const struct wl_message *message)
{
    uint32_t at = 0;
    struct wl_message *rest = queue->message;
    REQUIRE(queue->count < WL_DEPTH);
    while (at < queue->count &&
           (rest[at].placement > message->placement ||
            (rest[at].placement == message->placement && rest[at].id < message->id))) {
        at += 1;
    }
    memmove(&rest[at + 1], &rest[at], (queue->count - at) * sizeof rest[0]);
    rest[at] = *message;
    queue->count += 1;
    return &rest[at];
}

void wl_remove(struct wl_queue *queue, uint32_t index)
{
    REQUIRE(index < queue->count);
    queue->count -= 1;
    memmove(&queue->message[index], &queue->message[index + 1],
            (queue->count - index) * sizeof queue->message[0]);
}

uint32_t wl_first(const struct wl_queue *queue, uint32_t correl)
{
    for (uint32_t i = 0; i < queue->count; i++) {
        const struct wl_message *message = &queue->message[i];
        if (message->state == WL_AVAILABLE && message->delayed == 0 &&
            (correl == 0 || wl_correl(message->id) == correl)) {
            return i;
        }
    }
    return WL_DEPTH;
}

void wl_mark_ghosts(struct wl_model *model)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            struct wl_message *message = &model->queue[q].message[i];
            message->ghost = !message->kept && message->state == WL_PREPARED_GOT;
        }
    }
}

void wl_lose_volatile(struct wl_model *model)
{
    wl_mark_ghosts(model);
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &model->queue[q];
        for (uint32_t i = queue->count; i-- > 0;) {
            if (!queue->message[i].kept && !queue->message[i].ghost) {
                wl_remove(queue, i);
            }
        }
    }
}

/* ---- prepared units ---- */

void wl_xid(uint32_t number, uint32_t serial, struct ps_xid *out)
{
    *out = (struct ps_xid){.format_id = 0x574f524b, .gtrid_length = 4, .bqual_length = 1};
    memcpy(out->gtrid, &serial, sizeof serial);
    out->bqual[0] = (uint8_t)number;
}

uint32_t wl_end_prepared(struct wl_model *model, uint32_t which, bool commit)
{
    uint32_t vanished = 0;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &model->queue[q];
        for (uint32_t i = queue->count; i-- > 0;) {
            struct wl_message *message = &queue->message[i];
            const bool put = message->state == WL_PREPARED_PUT;
            if ((!put && message->state != WL_PREPARED_GOT) || (which >> message->unit & 1) == 0) {
                continue;
            }
            if (put != commit || message->ghost != 0) {
                vanished += message->ghost != 0 && !commit;
                wl_remove(queue, i);
                continue;
            }
            message->state = WL_AVAILABLE;
            message->backouts += !commit;
        }
    }
    for (uint32_t p = 0; p < WL_PREPARED; p++) {
        model->prepared[p].there &= (which >> p & 1) == 0;
    }
    return vanished;
}

/* ---- pictures ---- */

static bool is_prepared(const struct wl_message *message)
{
    return message->state == WL_PREPARED_PUT || message->state == WL_PREPARED_GOT;
}

/* The place of a prepared unit's message among those that are there. */
static uint32_t rank_of(const struct wl_model *model, const struct wl_message *message)
{
    uint32_t rank = 0;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            const struct wl_message *other = &model->queue[q].message[i];
            rank += is_prepared(other) && other->unit == message->unit &&
                    other->order < message->order;
        }
    }
    return rank;
}

static void rank_all(struct wl_model *model)
{
    uint32_t ranks[WL_QUEUES][WL_DEPTH] = {{0}};
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            const struct wl_message *message = &model->queue[q].message[i];
            ranks[q][i] = is_prepared(message) ? rank_of(model, message) : 0;
        }
    }
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < model->queue[q].count; i++) {
            model->queue[q].message[i].order = ranks[q][i];
        }
    }
}

void wl_picture(const struct wl_model *model, bool image, struct wl_model *out)
{
    memcpy(out->other, model->other, sizeof out->other);
    memcpy(out->prepared, model->prepared, sizeof out->prepared);
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        const struct wl_queue *from = &model->queue[q];
        struct wl_queue *to = &out->queue[q];
        to->defined = from->defined;
        to->attributes = from->attributes;
        to->slot = from->slot;
        to->generation = from->generation;
        to->count = 0;
        for (uint32_t i = 0; i < from->count; i++) {
            const struct wl_message *message = &from->message[i];
            const bool ghost = !message->kept && message->state == WL_PREPARED_GOT;
            const bool kept = message->kept || ghost ||
                              (image && !is_prepared(message) && from->attributes.npm_class == 10);
            if (kept && message->state != WL_PUT) {
                struct wl_message *copy = &to->message[to->count++];
                *copy = *message;
                copy->ghost = ghost;
                copy->state = is_prepared(message) ? message->state : WL_AVAILABLE;
            }
        }
    }
    rank_all(out);
}

static int differ(char *text, size_t size, uint32_t q, const struct wl_queue *found,
                  const struct wl_queue *expected, const char *what)
{
    int used = snprintf(text, size, "QUEUE.%c: %s; found", 'A' + (int)q, what);
    for (uint32_t i = 0; i < found->count && used > 0 && (size_t)used < size; i++) {
        used += snprintf(text + used, size - (size_t)used, " %llu",
                         (unsigned long long)found->message[i].id);
    }
    used += (size_t)used < size ? snprintf(text + used, size - (size_t)used, ", expected") : 0;
    for (uint32_t i = 0; i < expected->count && used > 0 && (size_t)used < size; i++) {
        used += snprintf(text + used, size - (size_t)used, " %llu",
                         (unsigned long long)expected->message[i].id);
    }
    return -1;
}

static bool same_message(const struct wl_message *found, const struct wl_message *expected)
{
    return found->id == expected->id && found->priority == expected->priority &&
           found->length == expected->length && found->placement == expected->placement &&
           found->persistent == expected->persistent && found->has_ext == expected->has_ext &&
           found->state == expected->state && found->delayed == expected->delayed &&
           (!is_prepared(found) ||
            (found->unit == expected->unit && found->order == expected->order));
}

int wl_compare(const struct wl_model *found, const struct wl_model *expected, char *text,
               size_t size)
{
    for (uint32_t o = 0; o < WL_OTHERS; o++) {
        const struct wl_other *a = &found->other[o], *b = &expected->other[o];
        if (a->defined != b->defined || (a->defined && a->mark != b->mark)) {
            (void)snprintf(text, size, "object %u is %sdefined with mark %d; %sdefined with %d", o,
                           a->defined ? "" : "not ", a->mark, b->defined ? "" : "not ", b->mark);
            return -1;
        }
    }
    for (uint32_t p = 0; p < WL_PREPARED; p++) {
        const struct wl_prepared *a = &found->prepared[p], *b = &expected->prepared[p];
        if (a->there != b->there || (a->there && a->serial != b->serial)) {
            (void)snprintf(text, size, "prepared unit %u is %sthere (serial %u), expected %sthere "
                           "(serial %u)", p, a->there ? "" : "not ", a->serial,
                           b->there ? "" : "not ", b->serial);
            return -1;
        }
    }
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        const struct wl_queue *a = &found->queue[q], *b = &expected->queue[q];
        if (a->defined != b->defined) {
            return differ(text, size, q, a, b, a->defined ? "is defined" : "is not defined");
        }
        if (a->defined && memcmp(&a->attributes, &b->attributes, sizeof a->attributes) != 0) {
            return differ(text, size, q, a, b, "has other attributes");
        }
        if (a->count != b->count) {
            return differ(text, size, q, a, b, "has another number of messages");
        }
        for (uint32_t i = 0; i < a->count; i++) {
            const struct wl_message *x = &a->message[i], *y = &b->message[i];
            if (!same_message(x, y)) {
                return differ(text, size, q, a, b, "has another message, or another order");
            }
            if (x->backouts < y->sure || x->backouts > y->backouts) {
                (void)snprintf(text, size,
                               "QUEUE.%c: message %llu has BackoutCount %u, not %u to %u",
                               'A' + (int)q, (unsigned long long)x->id, x->backouts, y->sure,
                               y->backouts);
                return -1;
            }
        }
    }
    return 0;
}
