/*
 * definition.c - see definition.h.
 */
#include "catalog/definition.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mqi_constants.h"
#include "region/region.h"

#include <string.h>

enum { KIND_INTEGER = 1, KIND_STRING = 2 };

enum field {
    PERSISTENCE, PRIORITY, TYPE, GET, PUT, USAGE, LENGTH, DEPTH, SEQUENCE, TRIGGER,
    TRIGGER_PRIORITY, TRIGGER_TYPE, INDEX, NPM, EXPIRY_CAP, DEPTH_HIGH, DEPTH_LOW, FULL_EVENT,
    HIGH_EVENT, LOW_EVENT, SERVICE, SERVICE_EVENT, QMGR_LENGTH, QMGR_UNITS, QMGR_EVENTS, LEVEL,
    RECOVER, FIELD_COUNT
};

enum { /* values and limits of attributes */
    DEPTH_MAX = 999999999,
    DEPTH_DEFAULT = 5000,
    EXPIRY_MAX = 999999999,
    PERCENT_MAX = 100,
    PERCENT_HIGH = 80,
    PERCENT_LOW = 20,
    SERVICE_MAX = 999999999,
    LENGTH_DEFAULT = 4194304,
    QMGR_LENGTH_MIN = 32768,
    UNCOMMITTED_MAX = 999999999,
    CF_LEVEL_DEFAULT = 3,
    CF_LEVEL_RECOVERABLE = 3,  /* RECOVER counts from this level on */
    CF_LEVEL_LARGE = 4,        /* messages of more than CF_LENGTH_SMALL bytes from this level on */
    CF_LEVEL_MAX = 5,
    CF_LENGTH_SMALL = 64512,
};

struct rule {
    uint32_t name_space;
    int32_t selector;
    int reason;
    int64_t least, most, absent;
};

enum { /* short names for the table */
    SPACE_Q = MQX_NAMES_QUEUE,
    SPACE_QMGR = MQX_NAMES_MANAGER,
    SPACE_CF = MQX_NAMES_STRUCTURE,
    NOT_FOR_TYPE = MQRC_SELECTOR_NOT_FOR_TYPE,
    INHIBIT = MQRC_INHIBIT_VALUE_ERROR,
    TOO_LONG = MQRC_MAX_MSG_LENGTH_ERROR,
};

// clang-format off
static const struct rule rules[FIELD_COUNT] = {
    [PERSISTENCE] = {SPACE_Q, MQIA_DEF_PERSISTENCE, MQRC_PERSISTENCE_ERROR, 0, 1, 0},
    [PRIORITY] = {SPACE_Q, MQIA_DEF_PRIORITY, MQRC_PRIORITY_ERROR, 0, MQX_MAX_PRIORITY, 0},
    [TYPE] = {SPACE_Q, MQIA_DEFINITION_TYPE, NOT_FOR_TYPE, MQX_PREDEFINED, MQX_SHARED,
              MQX_PREDEFINED},
    [GET] = {SPACE_Q, MQIA_INHIBIT_GET, INHIBIT, 0, 1, 0},
    [PUT] = {SPACE_Q, MQIA_INHIBIT_PUT, INHIBIT, 0, 1, 0},
    [USAGE] = {SPACE_Q, MQIA_USAGE, NOT_FOR_TYPE, 0, 1, 0},
    [LENGTH] = {SPACE_Q, MQIA_MAX_MSG_LENGTH, TOO_LONG, 0, MQX_MAX_BODY, LENGTH_DEFAULT},
    [DEPTH] = {SPACE_Q, MQIA_MAX_Q_DEPTH, NOT_FOR_TYPE, 0, DEPTH_MAX, DEPTH_DEFAULT},
    [SEQUENCE] = {SPACE_Q, MQIA_MSG_DELIVERY_SEQUENCE, NOT_FOR_TYPE, 0, 1, 0},
    [TRIGGER] = {SPACE_Q, MQIA_TRIGGER_CONTROL, MQRC_TRIGGER_CONTROL_ERROR, 0, MQTC_ON, 0},
    [TRIGGER_PRIORITY] = {SPACE_Q, MQIA_TRIGGER_MSG_PRIORITY, MQRC_TRIGGER_MSG_PRIORITY_ERR, 0,
                          MQX_MAX_PRIORITY, 0},
    [TRIGGER_TYPE] = {SPACE_Q, MQIA_TRIGGER_TYPE, MQRC_TRIGGER_TYPE_ERROR, 0, MQTT_DEPTH,
                      MQTT_FIRST},
    [INDEX] = {SPACE_Q, MQIA_INDEX_TYPE, NOT_FOR_TYPE, 0, MQIT_GROUP_ID, 0},
    [NPM] = {SPACE_Q, MQIA_NPM_CLASS, NOT_FOR_TYPE, 0, MQNPM_CLASS_HIGH, 0},
    [EXPIRY_CAP] = {SPACE_Q, MQIA_CAP_EXPIRY, MQRC_EXPIRY_ERROR, -1, EXPIRY_MAX, -1},
    [DEPTH_HIGH] = {SPACE_Q, MQIA_Q_DEPTH_HIGH_LIMIT, NOT_FOR_TYPE, 0, PERCENT_MAX, PERCENT_HIGH},
    [DEPTH_LOW] = {SPACE_Q, MQIA_Q_DEPTH_LOW_LIMIT, NOT_FOR_TYPE, 0, PERCENT_MAX, PERCENT_LOW},
    [FULL_EVENT] = {SPACE_Q, MQIA_Q_DEPTH_MAX_EVENT, NOT_FOR_TYPE, 0, MQEVR_ENABLED, MQEVR_ENABLED},
    [HIGH_EVENT] = {SPACE_Q, MQIA_Q_DEPTH_HIGH_EVENT, NOT_FOR_TYPE, 0, MQEVR_ENABLED, 0},
    [LOW_EVENT] = {SPACE_Q, MQIA_Q_DEPTH_LOW_EVENT, NOT_FOR_TYPE, 0, MQEVR_ENABLED, 0},
    [SERVICE] = {SPACE_Q, MQIA_Q_SERVICE_INTERVAL, NOT_FOR_TYPE, 0, SERVICE_MAX, SERVICE_MAX},
    [SERVICE_EVENT] = {SPACE_Q, MQIA_Q_SERVICE_INTERVAL_EVENT, NOT_FOR_TYPE, 0, MQQSIE_OK, 0},
    [QMGR_EVENTS] = {SPACE_QMGR, MQIA_PERFORMANCE_EVENT, NOT_FOR_TYPE, 0, MQEVR_ENABLED, 0},
    [QMGR_LENGTH] = {SPACE_QMGR, MQIA_MAX_MSG_LENGTH, TOO_LONG, QMGR_LENGTH_MIN, MQX_MAX_BODY, 0},
    [QMGR_UNITS] = {SPACE_QMGR, MQIA_MAX_UNCOMMITTED_MSGS, NOT_FOR_TYPE, 1, UNCOMMITTED_MAX, 0},
    [LEVEL] = {SPACE_CF, MQIA_CF_LEVEL, NOT_FOR_TYPE, 1, CF_LEVEL_MAX, CF_LEVEL_DEFAULT},
    [RECOVER] = {SPACE_CF, MQIA_CF_RECOVER, NOT_FOR_TYPE, 0, 1, 0},
};
// clang-format on

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
    MQX_ASSERT(start < length);
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
    MQX_ASSERT(*at <= length);
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
    MQX_ASSERT(at == end); /* `end` is where an attribute begins */
    return false;
}

/* An instance of a cluster queue is the definition of a queue of another queue manager. */
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
            MQX_ASSERT(rule->reason != MQX_OK);
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
    MQX_ASSERT(length <= MQX_NAME_SIZE);
    memcpy(out, entry->value, length);
    return MQX_OK;
}

/* Does the entry name a stream queue? Its name, which the caller resolves, is not kept. */
static int read_stream(const struct ps_object_name *name, const struct entry *entry, bool *out)
{
    MQX_ASSERT(out != NULL);
    if (entry->head.selector != MQCA_STREAM_QUEUE_NAME || name->name_space != MQX_NAMES_QUEUE ||
        name->type != MQX_LOCAL_QUEUE) {
        return MQX_OK;
    }
    if (entry->head.kind != KIND_STRING) {
        return mqx_fail(MQRC_SELECTOR_ERROR, "attribute %d is a string",
                        (int)MQCA_STREAM_QUEUE_NAME);
    }
    *out = entry->head.length != 0 && entry->value[0] != ' ';
    return MQX_OK;
}

/* Which performance events can occur on the queue: enum mqx_performance_event. */
static uint8_t events_of(const int64_t values[FIELD_COUNT])
{
    MQX_ASSERT(values[SERVICE_EVENT] >= MQQSIE_NONE);
    MQX_ASSERT(values[SERVICE_EVENT] <= MQQSIE_OK);
    return (uint8_t)((values[FULL_EVENT] != 0 ? MQX_EVENT_FULL : 0) |
                     (values[HIGH_EVENT] != 0 ? MQX_EVENT_HIGH : 0) |
                     (values[LOW_EVENT] != 0 ? MQX_EVENT_LOW : 0) |
                     (values[SERVICE_EVENT] == MQQSIE_HIGH ? MQX_EVENT_SERVICE_HIGH : 0) |
                     (values[SERVICE_EVENT] == MQQSIE_OK ? MQX_EVENT_SERVICE_OK : 0));
}

/* What calls on a queue with these values have to do besides: enum mqx_special. */
static uint8_t special_of(const int64_t values[FIELD_COUNT])
{
    MQX_ASSERT(values[TRIGGER_TYPE] >= MQTT_NONE);
    MQX_ASSERT(values[TRIGGER_TYPE] <= MQTT_DEPTH);
    const bool triggers = values[TRIGGER] != 0 && values[TRIGGER_TYPE] != MQTT_NONE;
    return (uint8_t)((values[INDEX] == MQIT_GROUP_ID ? MQX_SPECIAL_GROUP_INDEX : 0) |
                     (triggers ? MQX_SPECIAL_TRIGGER : 0) |
                     ((events_of(values) & ~MQX_EVENT_FULL) != 0 ? MQX_SPECIAL_EVENTS : 0) |
                     (values[EXPIRY_CAP] > 0 ? MQX_SPECIAL_EXPIRY : 0));
}

static void fill_queue(const int64_t values[FIELD_COUNT], struct mqx_values *out)
{
    const bool temporary = values[TYPE] == MQX_TEMPORARY; /* deleted with its handle */
    MQX_ASSERT(values[PRIORITY] >= 0);
    MQX_ASSERT(values[PRIORITY] <= MQX_MAX_PRIORITY);
    MQX_ASSERT(values[LENGTH] >= 0);
    MQX_ASSERT(values[LENGTH] <= MQX_MAX_BODY);
    MQX_ASSERT(values[TYPE] >= MQX_PREDEFINED);
    MQX_ASSERT(values[TYPE] <= MQX_SHARED);
    out->max_depth = (uint32_t)values[DEPTH];
    out->max_length = (uint32_t)values[LENGTH];
    out->def_priority = (uint8_t)values[PRIORITY];
    out->def_persistence = (uint8_t)values[PERSISTENCE];
    out->fifo = (uint8_t)values[SEQUENCE];
    out->put_inhibited = (uint8_t)values[PUT];
    out->get_inhibited = (uint8_t)values[GET];
    out->npm_class = (uint8_t)values[NPM];
    out->special = special_of(values);
    out->trigger_priority = (uint8_t)values[TRIGGER_PRIORITY];
    out->events = events_of(values);
    out->depth_high = (uint8_t)values[DEPTH_HIGH];
    out->depth_low = (uint8_t)values[DEPTH_LOW];
    out->service_ms = (uint32_t)values[SERVICE];
    out->expiry_cap = values[EXPIRY_CAP] > 0 ? (uint32_t)values[EXPIRY_CAP] : 0;
    out->definition_type = (uint8_t)values[TYPE];
    out->may_persist = !temporary;
    out->np_life = temporary ? MQX_NP_TO_RESTART
                   : out->structure[0] != ' ' ? MQX_NP_IN_STRUCTURE
                   : values[NPM] != 0         ? MQX_NP_TO_FAILURE
                                              : MQX_NP_TO_RESTART;
}

static void fill_other(uint32_t name_space, const int64_t values[FIELD_COUNT],
                       struct mqx_values *out)
{
    if (name_space == MQX_NAMES_MANAGER) {
        out->max_depth = (uint32_t)values[QMGR_UNITS];
        out->max_length = (uint32_t)values[QMGR_LENGTH];
        out->events = values[QMGR_EVENTS] != 0;
    } else if (name_space == MQX_NAMES_STRUCTURE) {
        out->max_depth = (uint32_t)values[LEVEL];
        out->max_length = values[LEVEL] < CF_LEVEL_LARGE ? (uint32_t)CF_LENGTH_SMALL
                                                         : (uint32_t)MQX_MAX_BODY;
        out->may_persist = values[LEVEL] >= CF_LEVEL_RECOVERABLE && values[RECOVER] != 0;
        MQX_ASSERT(out->max_depth >= 1);
        MQX_ASSERT(out->max_depth <= CF_LEVEL_MAX);
    }
}

int mqx_definition_read_values(const struct ps_object_name *name, const void *list, uint32_t length,
                               struct mqx_values *out)
{
    int64_t values[FIELD_COUNT];
    uint32_t at = 0;
    bool streams = false;
    int status = MQX_OK;
    MQX_ASSERT(name != NULL);
    MQX_ASSERT(list != NULL || length == 0);
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
        if (status == MQX_OK) {
            status = read_stream(name, &entry, &streams);
        }
    }
    if (rules_of(name->name_space) == MQX_NAMES_QUEUE) {
        fill_queue(values, out);
        out->special |= streams ? (uint8_t)MQX_SPECIAL_STREAM : (uint8_t)0;
    } else {
        fill_other(name->name_space, values, out);
    }
    return status;
}

int mqx_definition_check(const struct mqx_definition *def, struct mqx_values *out)
{
    const struct ps_object_name *name = &def->name;
    if (name->name[0] == ' ' || memchr(name->name, 0, sizeof name->name) != NULL) {
        return mqx_fail(MQRC_OBJECT_NAME_ERROR,
                        "\"%.48s\" is not an object name: it begins with a blank or is not padded "
                        "with blanks", name->name);
    }
    if (name->name_space != MQX_NAMES_QUEUE && name->type == MQX_LOCAL_QUEUE) {
        return mqx_fail(MQRC_OBJECT_TYPE_ERROR, "\"%.48s\": in name space %u nothing is a local "
                        "queue", name->name, name->name_space);
    }
    return mqx_definition_read_values(name, def->attrs, def->attrs_length, out);
}

uint32_t mqx_definition_type(const struct mqx_definition *def, const struct mqx_values *values)
{
    const bool local = def->name.name_space == MQX_NAMES_QUEUE && def->name.type == MQX_LOCAL_QUEUE;
    MQX_ASSERT(!local || values->definition_type >= MQX_PREDEFINED);
    return local ? values->definition_type : (uint32_t)MQX_PREDEFINED;
}

int mqx_definition_check_type(const struct mqx_definition *def, const struct mqx_values *values,
                              bool opened)
{
    const uint32_t type = mqx_definition_type(def, values);
    if (opened && type == MQX_PREDEFINED) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                        "\"%.48s\" is not a dynamic queue (attribute 7, DEFTYPE): opening cannot "
                        "define it", def->name.name);
    }
    if (!opened && type == MQX_TEMPORARY) {
        return mqx_fail(MQRC_SELECTOR_NOT_FOR_TYPE,
                        "\"%.48s\" is a temporary dynamic queue (attribute 7, DEFTYPE): only "
                        "opening defines it", def->name.name);
    }
    return MQX_OK;
}
