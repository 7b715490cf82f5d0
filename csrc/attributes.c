/*
 * attributes.c - see attributes.h.
 */
#include "attributes.h"

#include "error.h"
#include "format.h"

#include <string.h>

enum { KIND_INTEGER = 1, KIND_STRING = 2 };
enum { TEMPORARY_DYNAMIC = 3 }; /* MQQDT_* */

enum field { PERSISTENCE, PRIORITY, GET, PUT, LENGTH, DEPTH, SEQUENCE, NPM, DEFTYPE, FIELD_COUNT };

struct rule {
    int32_t selector;
    int reason;
    int64_t least, most, absent;
};

static const struct rule rules[FIELD_COUNT] = {
    [PERSISTENCE] = {5, MQRC_PERSISTENCE_ERROR, 0, 1, 0},
    [PRIORITY] = {6, MQRC_PRIORITY_ERROR, 0, MQX_MAX_PRIORITY, 0},
    [GET] = {9, MQRC_INHIBIT_VALUE_ERROR, 0, 1, 0},
    [PUT] = {10, MQRC_INHIBIT_VALUE_ERROR, 0, 1, 0},
    [LENGTH] = {13, MQRC_MAX_MSG_LENGTH_ERROR, 0, MQX_MAX_BODY, 4194304},
    [DEPTH] = {15, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 999999999, 5000},
    [SEQUENCE] = {16, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1, 0},
    [NPM] = {78, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 10, 0},
    [DEFTYPE] = {7, MQRC_SELECTOR_NOT_FOR_TYPE, 1, 4, 1},
};

struct entry {
    struct ps_attr head;
    const unsigned char *value;
};

static int malformed(uint32_t at, const char *what)
{
    return mqx_fail(MQRC_SELECTOR_ERROR, "attribute list, byte %u: %s", at, what);
}

/* The attribute at *at; moves *at behind it. */
static int next_entry(const unsigned char *list, uint32_t length, uint32_t *at, struct entry *out)
{
    const uint32_t start = *at;
    if (length - start < sizeof out->head) {
        return malformed(start, "cut off");
    }
    memcpy(&out->head, list + start, sizeof out->head);
    out->value = list + start + sizeof out->head;
    const uint32_t padded = (uint32_t)mqx_round_up(out->head.length, 8);
    if (padded > length - start - sizeof out->head) {
        return malformed(start, "longer than the list");
    }
    for (uint32_t i = out->head.length; i < padded; i++) {
        if (out->value[i] != 0) {
            return malformed(start, "padding is not zero");
        }
    }
    if (out->head.kind == KIND_INTEGER ? out->head.length != sizeof(int64_t)
                                       : out->head.kind != KIND_STRING ||
                                             memchr(out->value, 0, out->head.length) != NULL) {
        return malformed(start, "neither an integer of 8 bytes nor a string without NUL");
    }
    *at = start + (uint32_t)sizeof out->head + padded;
    return MQX_OK;
}

/* Does the selector occur before byte `end`? The list is well-formed up to there. */
static bool occurs_before(const unsigned char *list, uint32_t end, int32_t selector)
{
    uint32_t at = 0;
    while (at < end) {
        struct ps_attr head;
        memcpy(&head, list + at, sizeof head);
        if (head.selector == selector) {
            return true;
        }
        at += (uint32_t)sizeof head + (uint32_t)mqx_round_up(head.length, 8);
    }
    return false;
}

static int read_value(const struct entry *entry, int64_t values[FIELD_COUNT])
{
    for (int field = 0; field < FIELD_COUNT; field++) {
        const struct rule *rule = &rules[field];
        int64_t value = 0;
        if (rule->selector != entry->head.selector) {
            continue;
        }
        if (entry->head.kind != KIND_INTEGER) {
            return mqx_fail(MQRC_SELECTOR_ERROR, "attribute %d is an integer", rule->selector);
        }
        memcpy(&value, entry->value, sizeof value);
        if (value < rule->least || value > rule->most || (field == NPM && value % 10 != 0)) {
            return mqx_fail(rule->reason,
                            "attribute %d has the value %lld; allowed are %lld to %lld",
                            rule->selector, (long long)value, (long long)rule->least,
                            (long long)rule->most);
        }
        values[field] = value;
    }
    return MQX_OK;
}

int mqx_attributes_read(const void *list, uint32_t length, struct mqx_values *out)
{
    int64_t values[FIELD_COUNT];
    uint32_t at = 0;
    int status = MQX_OK;
    for (int field = 0; field < FIELD_COUNT; field++) {
        values[field] = rules[field].absent;
    }
    if (length > MQX_ATTRS_MAX) {
        return mqx_fail(MQRC_SELECTOR_ERROR, "an attribute list of %u bytes; at most %d are kept",
                        length, MQX_ATTRS_MAX);
    }
    while (at < length && status == MQX_OK) {
        const uint32_t start = at;
        struct entry entry = {.value = NULL};
        status = next_entry(list, length, &at, &entry);
        if (status == MQX_OK && occurs_before(list, start, entry.head.selector)) {
            status = mqx_fail(MQRC_SELECTOR_ERROR, "attribute %d occurs twice",
                              entry.head.selector);
        }
        if (status == MQX_OK) {
            status = read_value(&entry, values);
        }
    }
    *out = (struct mqx_values){
        .max_depth = (uint32_t)values[DEPTH],
        .max_length = (uint32_t)values[LENGTH],
        .def_priority = (uint8_t)values[PRIORITY],
        .def_persistence = (uint8_t)values[PERSISTENCE],
        .fifo = (uint8_t)values[SEQUENCE],
        .put_inhibited = (uint8_t)values[PUT],
        .get_inhibited = (uint8_t)values[GET],
        .npm_class = (uint8_t)values[NPM],
        .definition_type = (uint8_t)values[DEFTYPE],
        .may_persist = values[DEFTYPE] != TEMPORARY_DYNAMIC,
        .np_life = values[NPM] == 10 ? 1 : 0,
    };
    return status;
}
