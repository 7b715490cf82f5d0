/*
 * crash_fixture.c - see crash_fixture.h.
 */
#include "crash_fixture.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

_Noreturn void fixture_die(const char *what, int reason)
{
    fprintf(stderr, "%s: %d %s: %s\n", what, reason, mqe_reason_name(reason), mqe_error_text());
    _exit(3);
}

static void demand(const char *what, int reason)
{
    if (reason != 0) {
        fixture_die(what, reason);
    }
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ x >> 29;
}

void fixture_fill_body(unsigned char *body, uint64_t id, uint64_t length)
{
    for (uint64_t at = 0; at + 8 <= length; at += 8) {
        const uint64_t word = at == 0 ? id : mix(id + at);
        memcpy(body + at, &word, 8);
    }
    memset(body + (length & ~7ull), (int)(id & 0x7f), length & 7u);
}

static bool body_is_whole(const unsigned char *body, uint64_t length, uint64_t *id)
{
    memcpy(id, body, 8);
    for (uint64_t at = 8; at + 8 <= length; at += 8) {
        uint64_t word;
        memcpy(&word, body + at, 8);
        if (word != mix(*id + at)) {
            return false;
        }
    }
    return true;
}

/* ---- making and removing ---- */

static void define_queue(struct crash_fixture *fixture, int q)
{
    static const struct {
        int32_t selector;
        int64_t value;
    } attributes[] = {{15, 999999}, {13, 104857600}, {16, 0}};
    unsigned char list[sizeof attributes / sizeof attributes[0] * 16];
    unsigned char *at = list;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++, at += 16) {
        const struct ps_attr attr = {attributes[i].selector, 1, 8};
        memcpy(at, &attr, 8);
        memcpy(at + 8, &attributes[i].value, 8);
    }
    struct ps_object_name name = {.name_space = 1, .type = 1};
    memset(name.name, ' ', sizeof name.name);
    name.name[0] = (char)('A' + q);
    demand("define", mqe_define(fixture->manager, &name, list, sizeof list, &fixture->slot[q],
                                &fixture->generation[q]));
}

static void make(struct crash_fixture *fixture, bool linear)
{
    struct mqe_attach_info info;
    memset(fixture, 0, sizeof *fixture);
    snprintf(fixture->path, sizeof fixture->path, "/dev/shm/penstock-crash-XXXXXX");
    if (mkdtemp(fixture->path) == NULL) {
        fixture_die(fixture->path, errno);
    }
    struct mqe_settings *s = &fixture->settings;
    memcpy(s->name, "CRASH", 6);
    for (size_t i = 0; i < sizeof s->qm_id; i++) {
        s->qm_id[i] = (uint8_t)(i * 7 + 1);
    }
    s->segment_size = 1 << 20;
    s->first_segment_size = 1 << 19;
    s->ring_size = 1 << 18;
    s->journal_limit = 64 << 20;
    s->region_size = 1ull << 32;
    s->stripe_count = 4;
    s->name_bucket_count = 64;
    s->no_maintenance = 1;
    s->linear = linear;
    demand("create", mqe_create(fixture->path, s));
    demand("attach", mqe_attach(fixture->path, s, &fixture->manager, &info));
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        define_queue(fixture, q);
    }
}

void fixture_make(struct crash_fixture *fixture)
{
    make(fixture, false);
}

void fixture_make_linear(struct crash_fixture *fixture)
{
    make(fixture, true);
}

void fixture_set_linear(struct crash_fixture *fixture, bool linear)
{
    fixture->manager->store.plan.linear = linear;
}

static void run(const char *format, const char *a, const char *b)
{
    char command[512];
    snprintf(command, sizeof command, format, a, b);
    if (system(command) != 0) {
        fixture_die(command, 0);
    }
}

void fixture_remove(struct crash_fixture *fixture)
{
    uint64_t lost;
    (void)mqe_detach(fixture->manager, MQE_DETACH_ORDERLY, &lost);
    run("rm -rf '%s'%s", fixture->path, "");
}

/* ---- messages ---- */

int fixture_put_flagged(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                        int q, uint64_t id, uint32_t flags)
{
    const struct mqe_destination to = mqe_direct(fixture->slot[q], fixture->generation[q]);
    struct ps_descriptor d = {.priority = (int32_t)(id % 3)};
    unsigned char body[100];
    memcpy(d.correl_id, &id, sizeof id);
    fixture_fill_body(body, id, sizeof body);
    return mqe_put(manager, unit, &to, &d, NULL, body, sizeof body, -1, flags);
}

int fixture_put(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture, int q,
                uint64_t id, bool persistent, uint64_t length)
{
    return fixture_put_later(manager, unit, fixture, q, id, persistent, length, 0);
}

int fixture_put_later(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint64_t id, bool persistent, uint64_t length, uint64_t delay_us)
{
    const struct mqe_destination to = mqe_direct(fixture->slot[q], fixture->generation[q]);
    struct ps_descriptor d = {.priority = (int32_t)(id % 3), .persistence = persistent};
    unsigned char *body = malloc(length + 8);
    if (body == NULL) {
        fixture_die("malloc", errno);
    }
    memcpy(d.correl_id, &id, sizeof id);
    if (delay_us != 0) {
        memcpy(d.msg_id, &id, sizeof id);
        d.due_us = mqx_clock_wall_us() + delay_us;
    }
    fixture_fill_body(body, id, length);
    const int reason = mqe_put(manager, unit, &to, &d, NULL, body, length, -1, 0);
    free(body);
    return reason;
}

static struct mqe_item items[FIXTURE_BATCH];
static int64_t offsets[FIXTURE_BATCH + 1];
static unsigned char bodies[1 << 20];

int fixture_put_many(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                     int q, const struct fixture_message *messages, uint32_t count)
{
    const struct mqe_destination to = mqe_direct(fixture->slot[q], fixture->generation[q]);
    struct mqe_batch batch = {.items = items,
                              .capacity = FIXTURE_BATCH,
                              .count = count,
                              .bodies = bodies,
                              .body_capacity = sizeof bodies,
                              .offsets = offsets};
    offsets[0] = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fixture_message *m = &messages[i];
        if (m->length > sizeof bodies - (uint64_t)offsets[i]) {
            fixture_die("no room for a batch", 0);
        }
        items[i] = (struct mqe_item){.expiry = -1};
        items[i].d.priority = (int32_t)(m->id % 3);
        items[i].d.persistence = m->persistent;
        memcpy(items[i].d.correl_id, &m->id, sizeof m->id);
        offsets[i + 1] = offsets[i] + (int64_t)m->length;
        fixture_fill_body(bodies + offsets[i], m->id, m->length);
    }
    return mqe_put_batch(manager, unit, &to, &batch, 0);
}

int fixture_put_batch(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint64_t id, uint32_t count, bool persistent)
{
    struct fixture_message messages[FIXTURE_BATCH];
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t one = id + i;
        messages[i] =
            (struct fixture_message){one, one % 4 == 0 ? 9000 : 100, persistent && one % 2 != 0};
    }
    return fixture_put_many(manager, unit, fixture, q, messages, count);
}

/* The messages of a batch: their ids, 0 for a body that is not whole. */
static void take_ids(const struct mqe_batch *batch, uint64_t *ids)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const uint64_t length = (uint64_t)(offsets[i + 1] - offsets[i]);
        if (length != items[i].length || !body_is_whole(bodies + offsets[i], length, &ids[i]) ||
            memcmp(items[i].d.correl_id, &ids[i], sizeof ids[i]) != 0) {
            ids[i] = 0;
        }
    }
}

int fixture_get_many(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                     int q, uint64_t wait_us, uint64_t *ids, uint32_t capacity, uint32_t *out_count)
{
    struct mqe_batch batch = {.items = items, .capacity = capacity, .bodies = bodies,
                              .body_capacity = sizeof bodies, .offsets = offsets};
    struct mqe_get how = {.flags = wait_us != 0 ? MQE_GET_WAIT : 0u, .wait_us = (int64_t)wait_us};
    mqe_queue *queue = NULL;
    int reason = mqe_open_direct(manager, fixture->slot[q], fixture->generation[q], 2, &queue);
    *out_count = 0;
    if (reason == 0) {
        reason = mqe_get_batch(manager, unit, queue, &how, &batch);
        (void)mqe_close(queue, MQE_CLOSE_KEEP);
    }
    if (reason == 0) {
        *out_count = batch.count;
        take_ids(&batch, ids);
    }
    return reason;
}

int fixture_get_batch(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint32_t count)
{
    uint64_t ids[FIXTURE_BATCH];
    uint32_t found = 0;
    const int reason = fixture_get_many(manager, unit, fixture, q, 0, ids, count, &found);
    return reason != 0 || found == count ? reason : MQRC_UNEXPECTED_ERROR;
}

/* Numbers are given in the order of arrival. */
static bool stands_behind(const struct mqe_item *item, const struct mqe_item *before)
{
    return item->d.placement < before->d.placement ||
           (item->d.placement == before->d.placement && item->number > before->number);
}

void fixture_walk(mqe_manager *manager, const struct crash_fixture *fixture, int q, uint32_t step)
{
    struct mqe_item last = {.d.placement = UINT8_MAX};
    uint64_t ids[FIXTURE_BATCH];
    mqe_queue *queue = NULL;
    struct mqe_batch batch = {.items = items, .capacity = step, .bodies = bodies,
                              .body_capacity = sizeof bodies, .offsets = offsets, .count = 1};
    struct mqe_get how = {.flags = MQE_GET_BROWSE_FIRST};
    demand("open",
           mqe_open_direct(manager, fixture->slot[q], fixture->generation[q], MQE_BROWSE, &queue));
    while (batch.count != 0) {
        demand("browse many", mqe_browse_batch(manager, queue, &how, &batch));
        take_ids(&batch, ids);
        for (uint32_t i = 0; i < batch.count; i++) {
            if (ids[i] == 0 || !stands_behind(&items[i], &last)) {
                fixture_die(ids[i] == 0 ? "a body that is not whole" : "a walk out of order", 0);
            }
            last = items[i];
        }
        how.flags = MQE_GET_BROWSE_NEXT;
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
}

int fixture_get(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture, int q,
                uint32_t flags, uint64_t wait_us, uint64_t correl, uint64_t *id)
{
    static unsigned char buffer[1 << 20];
    mqe_queue *queue = NULL;
    struct mqe_get get = {.flags = flags | (wait_us != 0 ? MQE_GET_WAIT : 0u),
                          .wait_us = (int64_t)wait_us,
                          .buffer = buffer,
                          .capacity = sizeof buffer};
    if (correl != 0) {
        get.match = MQE_MATCH_CORREL_ID;
        memcpy(get.correl_id, &correl, sizeof correl);
    }
    int reason =
        mqe_open_direct(manager, fixture->slot[q], fixture->generation[q], 2 | MQE_BROWSE, &queue);
    if (reason == 0) {
        reason = mqe_get(manager, unit, queue, &get);
        if (reason == 0 && !body_is_whole(buffer, get.length, id)) {
            *id = 0;
        }
        (void)mqe_close(queue, MQE_CLOSE_KEEP);
    }
    return reason;
}

/* Messages that a killed experiment left on a separate queue would keep the journal's segments
 * from then on. */
static void clear_leftovers(mqe_manager *manager)
{
    uint32_t slot = 0, generation = 0;
    while (mqe_next_object(manager, &slot, &generation) == 0) {
        struct mqe_queue_status status = {0};
        if (mqe_queue_status(manager, slot, generation, &status) == 0 && status.depth != 0) {
            demand("clear", mqe_clear(manager, slot, generation));
        }
    }
}

/* Unit `number` gets a message of A and one of B, and puts one on A and one on C. */
static void prepare_unit(struct crash_fixture *fixture, uint64_t number, uint32_t flags)
{
    mqe_manager *manager = fixture->manager;
    mqe_unit *unit = NULL;
    struct ps_xid xid;
    uint64_t id;
    fixture_xid(number, FIXTURE_COMMITS, &xid);
    demand("unit", mqe_unit_new(manager, &unit));
    demand("get", fixture_get(manager, unit, fixture, 0, 0, 0, 0, &id));
    demand("put", fixture_put(manager, unit, fixture, 0, 300 + number, true, 500));
    demand("get", fixture_get(manager, unit, fixture, 1, 0, 0, 0, &id));
    demand("put", fixture_put(manager, unit, fixture, 2, 310 + number, number % 2 == 0, 5000));
    demand("prepare", mqe_prepare(unit, &xid, flags));
    mqe_unit_free(unit);
}

void fixture_reset(struct crash_fixture *fixture, uint32_t many, uint32_t prepared, uint32_t flags)
{
    uint64_t id;
    fixture_resolve(fixture->manager, UINT32_MAX);
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        int reason = 0;
        while (reason == 0) {
            reason = fixture_get(fixture->manager, NULL, fixture, q, 0, 0, 0, &id);
        }
        if (reason != MQRC_NO_MSG_AVAILABLE) {
            fixture_die("draining", reason);
        }
    }
    clear_leftovers(fixture->manager);
    for (uint64_t i = 0; i < 4; i++) {
        demand("put",
               fixture_put(fixture->manager, NULL, fixture, 0, 100 + i, i % 2 != 0, 64 + i * 300));
    }
    demand("put", fixture_put(fixture->manager, NULL, fixture, 0, 110, false, 100000));
    demand("put", fixture_put(fixture->manager, NULL, fixture, 2, 120, true, 70000));
    for (uint64_t i = 0; i < many; i++) {
        demand("put", fixture_put(fixture->manager, NULL, fixture, 1, 200 + i, false, 40));
    }
    for (uint32_t i = 1; i <= prepared; i++) {
        prepare_unit(fixture, i, flags);
    }
}

uint32_t fixture_archived(const struct crash_fixture *fixture)
{
    char name[200];
    uint32_t count = 0;
    snprintf(name, sizeof name, "%s/archive", fixture->path);
    DIR *dir = opendir(name);
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

void fixture_fill_segment(struct crash_fixture *fixture)
{
    const uint64_t bytes = 70000;
    uint64_t id;
    for (uint64_t used = 0; used < fixture->settings.segment_size; used += bytes) {
        demand("put", fixture_put(fixture->manager, NULL, fixture, 2, 130, true, bytes));
        demand("get", fixture_get(fixture->manager, NULL, fixture, 2, 0, 0, 130, &id));
    }
    demand("checkpoint", mqe_checkpoint(fixture->manager)); /* the next two retire it */
    run("rm -f '%s'/archive/*%s", fixture->path, "");
}

/* ---- prepared units ---- */

void fixture_xid(uint64_t number, enum fixture_fate fate, struct ps_xid *out)
{
    *out = (struct ps_xid){.format_id = 0x574f524c, .gtrid_length = 8, .bqual_length = 1};
    memcpy(out->gtrid, &number, sizeof number);
    out->bqual[0] = (uint8_t)fate;
}

static uint32_t list_prepared(mqe_manager *manager, struct mqe_prepared *out)
{
    uint32_t count = 0;
    demand("list", mqe_prepared_list(manager, out, FIXTURE_PREPARED_MAX, &count));
    return count < FIXTURE_PREPARED_MAX ? count : FIXTURE_PREPARED_MAX;
}

uint32_t fixture_prepared(mqe_manager *manager, enum fixture_fate fate, struct ps_xid *out)
{
    static struct mqe_prepared rows[FIXTURE_PREPARED_MAX];
    const uint32_t all = list_prepared(manager, rows);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all; i++) {
        if (rows[i].xid.bqual[0] == (uint8_t)fate) {
            out[count++] = rows[i].xid;
        }
    }
    return count;
}

static bool is_gone(int reason)
{
    return reason == MQRC_UOW_NOT_AVAILABLE;
}

void fixture_resolve(mqe_manager *manager, uint32_t count)
{
    static struct ps_xid xids[FIXTURE_PREPARED_MAX];
    for (enum fixture_fate fate = FIXTURE_COMMITS; fate <= FIXTURE_BACKS_OUT; fate++) {
        uint32_t there = fixture_prepared(manager, fate, xids);
        uint64_t discarded = 0;
        there = there < count ? there : count;
        if (there == 0) {
            continue;
        }
        const int reason = fate == FIXTURE_COMMITS
                               ? mqe_commit_prepared(manager, xids, there)
                               : mqe_backout_prepared(manager, xids, there, &discarded);
        if (reason != 0 && !is_gone(reason)) {
            fixture_die("resolving", reason);
        }
    }
}

/* ---- pictures ---- */

static void look_at_queue(mqe_manager *manager, const struct crash_fixture *fixture, int q,
                          struct picture *out)
{
    static unsigned char buffer[1 << 20];
    mqe_queue *queue = NULL;
    demand("open",
           mqe_open_direct(manager, fixture->slot[q], fixture->generation[q], MQE_BROWSE, &queue));
    for (;;) {
        struct mqe_get get = {.flags = MQE_GET_BROWSE_NEXT, .match = MQE_MATCH_DELAYED,
                              .buffer = buffer, .capacity = sizeof buffer};
        const int reason = mqe_get(manager, NULL, queue, &get);
        if (reason == MQRC_NO_MSG_AVAILABLE) {
            break;
        }
        demand("browse", reason);
        if (out->count == PICTURE_MAX) {
            fixture_die("more messages than a picture holds", 0);
        }
        struct seen *seen = &out->message[out->count++];
        *seen = (struct seen){.length = get.length, .queue = (uint8_t)q,
                              .persistent = get.d.persistence, .placement = get.d.placement,
                              .backout_count = get.d.backout_count};
        seen->whole = body_is_whole(buffer, get.length, &seen->id) &&
                      memcmp(get.d.correl_id, &seen->id, 8) == 0;
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
}

static void look_at_unit(mqe_manager *manager, const struct ps_xid *xid, struct picture *out)
{
    enum { ROWS = 3 };
    static unsigned char bodies[1 << 20];
    struct mqe_item items[ROWS];
    int64_t offsets[ROWS + 1];
    struct mqe_prepared_cursor cursor = {0};
    uint64_t number;
    memcpy(&number, xid->gtrid, sizeof number);
    for (;;) {
        struct mqe_batch batch = {.items = items, .capacity = ROWS, .bodies = bodies,
                                  .body_capacity = sizeof bodies, .offsets = offsets};
        demand("browse of a prepared unit", mqe_browse_prepared(manager, xid, &cursor, &batch));
        if (batch.count == 0) {
            return;
        }
        for (uint32_t i = 0; i < batch.count; i++) {
            if (out->count == PICTURE_MAX) {
                fixture_die("more messages than a picture holds", 0);
            }
            struct seen *seen = &out->message[out->count++];
            *seen = (struct seen){.length = items[i].length, .queue = (uint8_t)items[i].work,
                                  .persistent = items[i].d.persistence, .unit = number,
                                  .placement = items[i].d.placement,
                                  .backout_count = items[i].d.backout_count};
            seen->whole = body_is_whole(bodies + offsets[i], items[i].length, &seen->id) &&
                          memcmp(items[i].d.correl_id, &seen->id, 8) == 0;
        }
    }
}

static void look_at_units(mqe_manager *manager, struct picture *out)
{
    static struct mqe_prepared rows[FIXTURE_PREPARED_MAX];
    out->units = list_prepared(manager, rows);
    for (uint32_t i = 0; i < out->units; i++) {
        look_at_unit(manager, &rows[i].xid, out);
    }
}

void fixture_look(mqe_manager *manager, const struct crash_fixture *fixture, struct picture *out)
{
    out->count = 0;
    for (int q = 0; q < FIXTURE_QUEUES; q++) {
        look_at_queue(manager, fixture, q, out);
    }
    look_at_units(manager, out);
}

bool pictures_equal(const struct picture *a, const struct picture *b)
{
    bool equal = a->count == b->count && a->units == b->units;
    for (uint32_t i = 0; equal && i < a->count; i++) {
        const struct seen *x = &a->message[i], *y = &b->message[i];
        equal = x->id == y->id && x->length == y->length && x->queue == y->queue &&
                x->persistent == y->persistent && x->unit == y->unit && x->whole != 0 &&
               y->whole != 0;
    }
    return equal;
}

void picture_print(const char *title, const struct picture *picture)
{
    fprintf(stderr, "%s: %u messages, %u prepared units\n", title, picture->count,
            picture->units);
    for (uint32_t i = 0; i < picture->count; i++) {
        const struct seen *s = &picture->message[i];
        fprintf(stderr,
                "  %c id %llu length %llu persistent %u placement %u backout %u unit %llu%s\n",
                'A' + s->queue, (unsigned long long)s->id, (unsigned long long)s->length,
                s->persistent, s->placement, s->backout_count, (unsigned long long)s->unit,
                s->whole ? "" : " NOT WHOLE");
    }
}

/* ---- the second witness: recovery from a copy of the files ---- */

/* What of it a restart keeps. */
static void keep_lasting(const struct picture *live, struct picture *out)
{
    out->count = 0;
    out->units = live->units;
    for (uint32_t i = 0; i < live->count; i++) {
        const struct seen *seen = &live->message[i];
        const bool image = seen->unit != 0 && seen->queue == MQE_ITEM_GOT;
        if (seen->persistent || image) {
            out->message[out->count++] = *seen;
        }
    }
}

static _Noreturn void look_at_copy(const struct crash_fixture *fixture, const char *copy,
                                   const struct picture *const *legal, uint32_t count)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    static struct picture found, expected;
    uint64_t lost;
    demand("attach to the copy", mqe_attach(copy, &fixture->settings, &manager, &info));
    fixture_look(manager, fixture, &found);
    (void)mqe_detach(manager, MQE_DETACH_ORDERLY, &lost);
    for (uint32_t i = 0; i < count; i++) {
        keep_lasting(legal[i], &expected);
        if (pictures_equal(&found, &expected)) {
            _exit(0);
        }
    }
    picture_print("live, persistent ones", &expected);
    picture_print("recovered from the files", &found);
    _exit(1);
}

void fixture_drop_copy(const char *copy)
{
    run("rm -rf '%s'%s", copy, "");
}

void fixture_copy(const struct crash_fixture *fixture, const char *copy)
{
    fixture_drop_copy(copy);
    run("cp -r '%s' '%s'", fixture->path, copy);
}

bool fixture_recovers_to(const struct crash_fixture *fixture, const struct picture *const *legal,
                         uint32_t count)
{
    char copy[160];
    snprintf(copy, sizeof copy, "%s-copy", fixture->path);
    fixture_copy(fixture, copy);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        look_at_copy(fixture, copy, legal, count);
    }
    int outcome = -1;
    if (child < 0 || waitpid(child, &outcome, 0) != child) {
        fixture_die("waiting for the second witness", errno);
    }
    fixture_drop_copy(copy);
    return WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0;
}
