/*
 * attr_cells.c - see attr_cells.h.
 */
#include "catalog/attr_cells.h"

#include "base/error.h"
#include "region/region.h"

#include <string.h>

enum { KIND_INTEGER = 1, KIND_STRING = 2 };

enum field {
    PERSISTENCE, PRIORITY, TYPE, GET, PUT, USAGE, LENGTH, DEPTH, SEQUENCE, INDEX, NPM, QMGR_LENGTH,
    QMGR_UNITS, LEVEL, RECOVER, FIELD_COUNT
};
enum { SMALL_STRUCTURE_MAX = 64512, LARGE_LEVEL = 4, RECOVERABLE_LEVEL = 3 }; /* of CFLEVEL */

struct rule {
    uint32_t name_space;
    int32_t selector;
    int reason;
    int64_t least, most, absent;
};

static const struct rule rules[FIELD_COUNT] = {
    [PERSISTENCE] = {MQX_NAMES_QUEUE, MQIA_DEF_PERSISTENCE, MQRC_PERSISTENCE_ERROR, 0, 1, 0},
    [PRIORITY] = {MQX_NAMES_QUEUE, MQIA_DEF_PRIORITY, MQRC_PRIORITY_ERROR, 0, MQX_MAX_PRIORITY,
                  0},
    [TYPE] = {MQX_NAMES_QUEUE, MQIA_DEFINITION_TYPE, MQRC_SELECTOR_NOT_FOR_TYPE,
              MQQDT_PREDEFINED, MQQDT_SHARED_DYNAMIC, MQQDT_PREDEFINED},
    [GET] = {MQX_NAMES_QUEUE, MQIA_INHIBIT_GET, MQRC_INHIBIT_VALUE_ERROR, 0, 1, 0},
    [PUT] = {MQX_NAMES_QUEUE, MQIA_INHIBIT_PUT, MQRC_INHIBIT_VALUE_ERROR, 0, 1, 0},
    [USAGE] = {MQX_NAMES_QUEUE, MQIA_USAGE, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1, 0},
    [LENGTH] = {MQX_NAMES_QUEUE, MQIA_MAX_MSG_LENGTH, MQRC_MAX_MSG_LENGTH_ERROR, 0, MQX_MAX_BODY,
                4194304},
    [DEPTH] = {MQX_NAMES_QUEUE, MQIA_MAX_Q_DEPTH, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 999999999, 5000},
    [SEQUENCE] = {MQX_NAMES_QUEUE, MQIA_MSG_DELIVERY_SEQUENCE, MQRC_SELECTOR_NOT_FOR_TYPE,
                  MQMDS_PRIORITY, MQMDS_FIFO, MQMDS_PRIORITY},
    [INDEX] = {MQX_NAMES_QUEUE, MQIA_INDEX_TYPE, MQRC_SELECTOR_NOT_FOR_TYPE, MQIT_NONE,
               MQIT_GROUP_ID, MQIT_NONE},
    [NPM] = {MQX_NAMES_QUEUE, MQIA_NPM_CLASS, MQRC_SELECTOR_NOT_FOR_TYPE, MQNPM_CLASS_NORMAL,
             MQNPM_CLASS_HIGH, MQNPM_CLASS_NORMAL},
    [QMGR_LENGTH] = {MQX_NAMES_MANAGER, MQIA_MAX_MSG_LENGTH, MQRC_MAX_MSG_LENGTH_ERROR, 32768,
                     MQX_MAX_BODY, 0},
    [QMGR_UNITS] = {MQX_NAMES_MANAGER, MQIA_MAX_UNCOMMITTED_MSGS, MQRC_SELECTOR_NOT_FOR_TYPE, 1,
                    999999999, 0},
    [LEVEL] = {MQX_NAMES_STRUCTURE, MQIA_CF_LEVEL, MQRC_SELECTOR_NOT_FOR_TYPE, 1, 5, 3},
    [RECOVER] = {MQX_NAMES_STRUCTURE, MQIA_CF_RECOVER, MQRC_SELECTOR_NOT_FOR_TYPE, 0, 1, 0},
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

/* An instance of a cluster queue is a definition of a queue, elsewhere. */
static uint32_t rules_of(uint32_t name_space)
{
    return name_space == MQX_NAMES_CLUSTER ? (uint32_t)MQX_NAMES_QUEUE : name_space;
}

static int read_value(uint32_t name_space, const struct entry *entry, int64_t values[FIELD_COUNT])
{
    for (int field = 0; field < FIELD_COUNT; field++) {
        const struct rule *rule = &rules[field];
        int64_t value = 0;
        if (rule->selector != entry->head.selector || rule->name_space != rules_of(name_space)) {
            continue;
        }
        if (entry->head.kind != KIND_INTEGER) {
            return mqx_fail(MQRC_SELECTOR_ERROR, "attribute %d is an integer", rule->selector);
        }
        memcpy(&value, entry->value, sizeof value);
        if (value < rule->least || value > rule->most ||
            (field == NPM && value % MQNPM_CLASS_HIGH != 0)) {
            return mqx_fail(rule->reason,
                            "attribute %d has the value %lld; allowed are %lld to %lld",
                            rule->selector, (long long)value, (long long)rule->least,
                            (long long)rule->most);
        }
        values[field] = value;
    }
    return MQX_OK;
}

/* The structure of a local queue; blank padding in the list makes no difference. */
static int read_structure(const struct ps_object_name *name, const struct entry *entry,
                          char out[MQX_NAME_SIZE])
{
    uint32_t length = entry->head.length;
    if (entry->head.selector != MQCA_CF_STRUC_NAME || name->name_space != MQX_NAMES_QUEUE ||
        name->type != MQX_LOCAL_QUEUE) {
        return MQX_OK;
    }
    if (entry->head.kind != KIND_STRING) {
        return mqx_fail(MQRC_SELECTOR_ERROR, "attribute %d is a string", (int)MQCA_CF_STRUC_NAME);
    }
    while (length > 0 && entry->value[length - 1] == ' ') {
        length--;
    }
    if (length > MQX_NAME_SIZE || (length > 0 && entry->value[0] == ' ')) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE, "attribute %d, \"%.*s\", is no name",
                        (int)MQCA_CF_STRUC_NAME, (int)length, (const char *)entry->value);
    }
    memcpy(out, entry->value, length);
    return MQX_OK;
}

static void fill_queue(const int64_t values[FIELD_COUNT], struct mqx_values *out)
{
    const bool temporary = values[TYPE] == MQQDT_TEMPORARY_DYNAMIC; /* it dies with its handle */
    out->max_depth = (uint32_t)values[DEPTH];
    out->max_length = (uint32_t)values[LENGTH];
    out->def_priority = (uint8_t)values[PRIORITY];
    out->def_persistence = (uint8_t)values[PERSISTENCE];
    out->fifo = (uint8_t)values[SEQUENCE];
    out->put_inhibited = (uint8_t)values[PUT];
    out->get_inhibited = (uint8_t)values[GET];
    out->npm_class = (uint8_t)values[NPM];
    out->group_index = values[INDEX] == MQIT_GROUP_ID;
    out->definition_type = (uint8_t)values[TYPE];
    out->may_persist = !temporary;
    out->np_life = temporary ? MQX_NP_TO_RESTART
                   : out->structure[0] != ' ' ? MQX_NP_IN_STRUCTURE
                   : values[NPM] != MQNPM_CLASS_NORMAL ? MQX_NP_TO_FAILURE
                                              : MQX_NP_TO_RESTART;
}

static void fill_other(uint32_t name_space, const int64_t values[FIELD_COUNT],
                       struct mqx_values *out)
{
    if (name_space == MQX_NAMES_MANAGER) {
        out->max_depth = (uint32_t)values[QMGR_UNITS];
        out->max_length = (uint32_t)values[QMGR_LENGTH];
    } else if (name_space == MQX_NAMES_STRUCTURE) {
        out->max_depth = (uint32_t)values[LEVEL];
        out->max_length = values[LEVEL] < LARGE_LEVEL ? (uint32_t)SMALL_STRUCTURE_MAX
                                                      : (uint32_t)MQX_MAX_BODY;
        out->may_persist = values[LEVEL] >= RECOVERABLE_LEVEL && values[RECOVER] != 0;
    }
}

int mqx_definition_read_values(const struct ps_object_name *name, const void *list, uint32_t length,
                               struct mqx_values *out)
{
    int64_t values[FIELD_COUNT];
    uint32_t at = 0;
    int status = MQX_OK;
    for (int field = 0; field < FIELD_COUNT; field++) {
        values[field] = rules[field].absent;
    }
    *out = (struct mqx_values){.max_depth = 0};
    memset(out->structure, ' ', sizeof out->structure);
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
            status = read_value(name->name_space, &entry, values);
        }
        if (status == MQX_OK) {
            status = read_structure(name, &entry, out->structure);
        }
    }
    if (rules_of(name->name_space) == MQX_NAMES_QUEUE) {
        fill_queue(values, out);
    } else {
        fill_other(name->name_space, values, out);
    }
    return status;
}
