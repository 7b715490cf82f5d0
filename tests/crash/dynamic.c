/*
 * dynamic.c - see dynamic.h.
 */
#include "dynamic.h"

#include <string.h>

enum { ALL = 2 | MQE_BROWSE | MQE_OUTPUT, NAMES = 4, MESSAGES = 4 };

static struct ps_object_name full_name(const char *name)
{
    struct ps_object_name full = {.name_space = 1, .type = 1};
    memset(full.name, ' ', sizeof full.name);
    memcpy(full.name, name, strlen(name));
    return full;
}

int dynamic_make(mqe_manager *manager, const char *name, int definition, mqe_queue **out,
                 struct crash_fixture *as)
{
    const struct ps_object_name full = full_name(name);
    const struct ps_attr head = {7, 1, 8};
    const int64_t value = definition;
    unsigned char attrs[16];
    struct mqe_found found;
    memcpy(attrs, &head, 8);
    memcpy(attrs + 8, &value, 8);
    const int reason =
        mqe_open_new(manager, &full, attrs, sizeof attrs, ALL, out, &found);
    if (reason == 0) {
        *as = (struct crash_fixture){.slot = {found.slot}, .generation = {found.generation}};
    }
    return reason;
}

int dynamic_open(mqe_manager *manager, const char *name, uint32_t options, mqe_queue **out,
                 struct crash_fixture *as)
{
    const struct ps_object_name full = full_name(name);
    *as = (struct crash_fixture){.slot = {0}};
    struct mqe_found found;
    int reason = mqe_find(manager, 1, full.name, 0, &found);
    if (reason == 0) {
        as->slot[0] = found.slot;
        as->generation[0] = found.generation;
        reason = mqe_open_direct(manager, found.slot, found.generation, options, out);
    }
    return reason;
}

static void allow(const char *what, int reason, const int *reasons, size_t count)
{
    bool allowed = reason == 0;
    for (size_t i = 0; i < count && !allowed; i++) {
        allowed = reason == reasons[i];
    }
    if (!allowed) {
        fixture_die(what, reason);
    }
}
#define ALLOW(what, reason, ...) \
    allow(what, reason, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void use(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *queue,
                uint64_t number)
{
    uint64_t id;
    mqe_unit *in = number % 3 != 0 ? unit : NULL;
    const uint64_t length = number % 5 == 0 ? 9000 : 100;
    if (number % 2 == 0) {
        const int reason = fixture_put(manager, in, queue, 0, number, number % 4 == 0, length);
        ALLOW("put on a dynamic queue", reason, MQRC_Q_DELETED, MQRC_PERSISTENT_NOT_ALLOWED,
              MQRC_STORAGE_MEDIUM_FULL, MQRC_BACKED_OUT, MQRC_Q_FULL);
    } else {
        const uint32_t flags = number % 7 == 0 ? MQE_GET_BROWSE_FIRST | MQE_GET_LOCK : 0u;
        const int reason = fixture_get(manager, in, queue, 0, flags, number % 11 == 0 ? 3000 : 0,
                                       number % 13 == 0 ? number : 0, &id);
        ALLOW("get from a dynamic queue", reason, MQRC_Q_DELETED, MQRC_UNKNOWN_OBJECT_NAME,
              MQRC_NO_MSG_AVAILABLE, MQRC_BACKED_OUT);
    }
}

static void end_unit(mqe_unit *unit, bool commit)
{
    const int reason = commit ? mqe_commit(unit) : mqe_backout(unit);
    ALLOW("the end of a unit on a dynamic queue", reason, MQRC_BACKED_OUT);
}

void dynamic_turn(mqe_manager *manager, mqe_unit *unit, uint64_t (*random)(uint64_t *),
                  uint64_t *state)
{
    const uint64_t way = random(state);
    const char name[] = {'D', (char)('0' + way % NAMES), '\0'};
    mqe_queue *queue = NULL;
    struct crash_fixture as;
    int reason = dynamic_make(manager, name, way / 4 % 3 == 0 ? DYNAMIC_PERMANENT
                                                              : DYNAMIC_TEMPORARY, &queue, &as);
    ALLOW("open_new", reason, MQRC_OBJECT_ALREADY_EXISTS, MQRC_STORAGE_MEDIUM_FULL);
    if (reason != 0) {
        reason = dynamic_open(manager, name, ALL, &queue, &as);
        ALLOW("open of a dynamic queue", reason, MQRC_UNKNOWN_OBJECT_NAME);
    }
    if (reason != 0) {
        return;
    }
    for (int i = 0; i < MESSAGES; i++) {
        use(manager, unit, &as, random(state));
    }
    if (way / 16 % 2 == 0) {
        end_unit(unit, way / 32 % 2 == 0);
    }
    reason = mqe_close(queue, (uint32_t)(way / 64 % 3));
    ALLOW("close of a dynamic queue", reason, MQRC_OPTION_NOT_VALID_FOR_TYPE, MQRC_Q_NOT_EMPTY);
    if (reason != 0) {
        ALLOW("close with none", mqe_close(queue, MQE_CLOSE_KEEP), 0);
    }
    end_unit(unit, way / 128 % 2 == 0);
}
