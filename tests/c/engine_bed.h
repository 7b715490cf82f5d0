/*
 * engine_bed.h - a whole queue manager for tests of what mqe.h promises: on the file table in
 * memory, or in directories of its own on real files when processes are needed.
 *
 *     engine_begin();                               // a fresh queue manager, attached
 *     struct queue q = engine_queue("Q", 0);        // a local queue with MQ's defaults, open for
 *     all CHECK_INT(PUT(q, .text = "hello", .priority = 4), 0);
 *     CHECK_STR(TAKE(q), "hello");
 *
 * One queue manager at a time: engine_begin() first clears away what a test that failed has left.
 * What tests open (handles, units) is remembered and closed by engine_end().
 *
 * PUT and TAKE take fields of struct ask; a field that is not given is 0, and that means the usual:
 * outside syncpoint, no wait, any message, no expiry. An id is given as a number, 0 = none.
 */
#ifndef PENSTOCK_TESTS_ENGINE_BED_H
#define PENSTOCK_TESTS_ENGINE_BED_H

#include "attach.h"
#include "attachment.h"
#include "error.h"
#include "harness.h"
#include "journal.h"
#include "memory_io.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>

#define ENGINE_HOME "/home/QM1"
#define ENGINE_SHM "/shm"

enum { /* selectors of attributes.h */
    DEFPSIST = 5, DEFPRTY = 6, GET_DISABLED = 9, PUT_DISABLED = 10, MAXMSGL = 13, MAXDEPTH = 15,
    FIFO = 16, NPMCLASS = 78, DEFTYPE = 7, INDXTYPE = 57, MAXUMSGS = 33, CFLEVEL = 70, RECOVER = 71,
    CFSTRUCT = 2039,
};
enum { ENGINE_KEPT = 4096, ENGINE_TEXT = 100000 };

struct queue {
    uint32_t slot, generation;
    mqe_queue *handle;
};

static struct engine {
    struct memory_io *files;      /* NULL: real files */
    struct mqx_io *io;
    struct mqe_settings settings;
    char path[80], regions[80];
    int32_t pid;                  /* of the process that is attached, in memory */
    mqe_manager *manager;
    struct mqe_attach_info info;
    mqe_queue *handles[ENGINE_KEPT];
    mqe_unit *units[ENGINE_KEPT];
    uint32_t handle_count, unit_count;
    mqe_manager *dead[64];        /* killed ones, kept reachable */
    uint32_t dead_count;
} engine;

/* ---- making, ending, killing ---- */

__attribute__((unused)) static struct mqe_settings engine_settings(void)
{
    return (struct mqe_settings){
        .name = "QM1",
        .qm_id = {1, 2, 3, 4, 5},
        .segment_size = 1 << 20,
        .first_segment_size = 256 << 10,
        .journal_limit = 256 << 20,
        .ring_size = 1 << 20,
        .region_size = UINT64_C(8) << 30,
        .stripe_count = 4,
        .name_bucket_count = 64,
        .growth_step = 64 << 10,
        .region_dir = ENGINE_SHM,
        .no_helper = 1,
    };
}

/* Closes what the test opened; handles of a dead manager are only forgotten. */
__attribute__((unused)) static void engine_close_all(void)
{
    for (uint32_t i = 0; i < engine.unit_count; i++) {
        mqe_unit_free(engine.units[i]);
    }
    for (uint32_t i = 0; i < engine.handle_count; i++) {
        mqe_close(engine.handles[i], MQE_CLOSE_KEEP);
    }
    engine.unit_count = 0;
    engine.handle_count = 0;
}

__attribute__((unused)) static int engine_detach(int how, uint64_t *np_discarded)
{
    uint64_t ignored;
    engine_close_all();
    mqe_manager *manager = engine.manager;
    engine.manager = NULL;
    return mqe_detach(manager, how, np_discarded != NULL ? np_discarded : &ignored);
}

__attribute__((unused)) static int engine_attach(void)
{
    if (engine.files != NULL) {
        engine.io = memory_io_process(engine.files, ++engine.pid);
    }
    return mqx_manager_attach(engine.io, engine.path, &engine.settings, &engine.manager,
                              &engine.info);
}

__attribute__((unused)) static void engine_remove_tree(const char *path)
{
    char name[400];
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            if (unlink(name) != 0) {
                engine_remove_tree(name);
            }
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(path);
}

__attribute__((unused)) static void engine_end(void)
{
    if (engine.manager != NULL) {
        mqx_ignore(engine_detach(MQE_DETACH_ORDERLY, NULL));
    }
    if (engine.files != NULL) {
        memory_io_free(engine.files);
    } else if (engine.io != NULL) {
        engine_remove_tree(engine.path);
        engine_remove_tree(engine.regions);
    }
    engine.files = NULL;
    engine.io = NULL;
}

/* A fresh queue manager in memory with these settings, attached. */
__attribute__((unused)) static void engine_begin_with(const struct mqe_settings *settings)
{
    engine_end();
    engine.settings = *settings;
    engine.files = memory_io_new();
    engine.pid = 2000;
    strcpy(engine.path, ENGINE_HOME);
    memory_io_make_dirs(engine.files, ENGINE_HOME);
    memory_io_region_dir(engine.files, ENGINE_SHM);
    engine.io = memory_io_table(engine.files);
    CHECK_INT(mqx_manager_create(engine.io, engine.path, &engine.settings), 0);
    const int status = engine_attach();
    if (status != 0) {
        printf("\n    attach: %s", mqe_error_text());
    }
    CHECK_INT(status, 0);
}

__attribute__((unused)) static void engine_begin(void)
{
    const struct mqe_settings settings = engine_settings();
    engine_begin_with(&settings);
}

/* The same in directories of its own on tmpfs; children attach with mqe_attach(engine.path, ...).
 * */
__attribute__((unused)) static void engine_begin_real(void)
{
    engine_end();
    engine.settings = engine_settings();
    strcpy(engine.path, "/dev/shm/penstock-bed-XXXXXX");
    strcpy(engine.regions, "/dev/shm/penstock-bed-XXXXXX");
    CHECK(mkdtemp(engine.path) != NULL && mkdtemp(engine.regions) != NULL);
    engine.settings.region_dir = engine.regions;
    engine.io = mqx_io_posix();
    CHECK_INT(mqe_create(engine.path, &engine.settings), 0);
    CHECK_INT(engine_attach(), 0);
}

/* An orderly end and a new start. */
__attribute__((unused)) static void engine_restart(void)
{
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
    CHECK_INT(engine_attach(), 0);
}

/* The (only) process dies as by SIGKILL; in memory. Its handles and units are never looked at
 * again, but stay reachable: the sanitizers count what is lost. */
__attribute__((unused)) static void engine_kill(void)
{
    static void *graves[4 * ENGINE_KEPT];
    static uint32_t count;
    for (uint32_t i = 0; i < engine.handle_count && count < MQX_ARRAY_COUNT(graves); i++) {
        graves[count++] = engine.handles[i];
    }
    for (uint32_t i = 0; i < engine.unit_count && count < MQX_ARRAY_COUNT(graves); i++) {
        graves[count++] = engine.units[i];
    }
    CHECK(engine.files != NULL && engine.dead_count < MQX_ARRAY_COUNT(engine.dead));
    engine.handle_count = 0;
    engine.unit_count = 0;
    mqx_check_unguard(&engine.manager->store.region.header->stopped);
    mqx_journal_detach(&engine.manager->store); /* memory of the process, nothing on the disk */
    mqx_attach_forget(&engine.manager->store);
    memory_io_kill(engine.files, engine.pid);
    engine.dead[engine.dead_count++] = engine.manager;
    engine.manager = NULL;
}

__attribute__((unused)) static void engine_kill_and_restart(void)
{
    engine_kill();
    CHECK_INT(engine_attach(), 0);
}

__attribute__((unused)) static struct mqx_region *engine_region(void)
{
    return &engine.manager->store.region;
}

/* ---- objects ---- */

struct attributes {
    uint64_t bytes[32];
    uint32_t length;
};

__attribute__((unused)) static struct ps_object_name engine_name(const char *name)
{
    struct ps_object_name out = {.name_space = 1, .type = 1};
    memset(out.name, ' ', sizeof out.name);
    memcpy(out.name, name, strlen(name));
    return out;
}

/* Pairs selector, value, ..., 0. */
__attribute__((unused)) static struct attributes engine_attributes(const int *pairs)
{
    struct attributes out = {.length = 0};
    for (int i = 0; pairs[i] != 0; i += 2) {
        const struct ps_attr head = {.selector = pairs[i], .kind = 1, .length = 8};
        const int64_t value = pairs[i + 1];
        memcpy((char *)out.bytes + out.length, &head, 8);
        memcpy((char *)out.bytes + out.length + 8, &value, 8);
        out.length += 16;
    }
    return out;
}

__attribute__((unused)) static mqe_queue *engine_open(struct queue q, uint32_t options)
{
    mqe_queue *handle = NULL;
    CHECK(engine.handle_count < ENGINE_KEPT);
    CHECK_INT(mqe_open_straight(engine.manager, q.slot, q.generation, options, &handle), 0);
    engine.handles[engine.handle_count++] = handle;
    return handle;
}

/* Closes one before the end. */
__attribute__((unused)) static int engine_close(mqe_queue *handle)
{
    for (uint32_t i = 0; i < engine.handle_count; i++) {
        if (engine.handles[i] == handle) {
            engine.handles[i] = engine.handles[--engine.handle_count];
            break;
        }
    }
    return mqe_close(handle, MQE_CLOSE_KEEP);
}

__attribute__((unused)) static mqe_unit *engine_unit(void)
{
    mqe_unit *unit = NULL;
    CHECK(engine.unit_count < ENGINE_KEPT);
    CHECK_INT(mqe_unit_new(engine.manager, &unit), 0);
    engine.units[engine.unit_count++] = unit;
    return unit;
}

__attribute__((unused)) static struct queue engine_define(const char *name, const int *pairs)
{
    struct queue q = {0};
    const struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes(pairs);
    CHECK_INT(mqe_define(engine.manager, &object, attrs.bytes, attrs.length, &q.slot,
                         &q.generation), 0);
    q.handle = engine_open(q, 2 | MQE_BROWSE | MQE_OUTPUT);
    return q;
}

/* The queue is there after a restart: opened again. */
__attribute__((unused)) static struct queue engine_find(const char *name)
{
    struct queue q = {0};
    const struct ps_object_name object = engine_name(name);
    struct mqe_found found = {0};
    CHECK_INT(mqe_find(engine.manager, 1, object.name, 0, &found), 0);
    q.slot = found.slot;
    q.generation = found.generation;
    q.handle = engine_open(q, 2 | MQE_BROWSE | MQE_OUTPUT);
    return q;
}

__attribute__((unused)) static int engine_alter(struct queue q, const char *name, const int *pairs)
{
    const struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes(pairs);
    return mqe_alter(engine.manager, q.slot, q.generation, &object, attrs.bytes, attrs.length, 0,
                     0);
}

#define QUEUE(name, ...) engine_define(name, (const int[]){__VA_ARGS__ __VA_OPT__(,) 0})
#define ALTER(q, name, ...) engine_alter(q, name, (const int[]){__VA_ARGS__ __VA_OPT__(,) 0})

__attribute__((unused)) static struct mqe_queue_status engine_status(struct queue q)
{
    struct mqe_queue_status status;
    CHECK_INT(mqe_queue_status(engine.manager, q.slot, q.generation, &status), 0);
    return status;
}

__attribute__((unused)) static uint32_t depth(struct queue q)
{
    return engine_status(q).depth;
}

/* ---- messages ---- */

struct ask {
    mqe_unit *unit;
    const char *text;             /* body, NUL-terminated; or body and length */
    const void *body;
    uint64_t length;
    int32_t priority;             /* -1 = AS_Q_DEF */
    int persistent;               /* 2 = AS_Q_DEF */
    int32_t expiry;               /* tenths of a second; 0 = unlimited */
    uint64_t msg, correl, group;  /* ids as numbers; get: what to match */
    uint32_t flags, match;
    int64_t wait_us;
    uint64_t capacity;            /* 0: all there is; NONE: no byte */
    uint64_t number;              /* get: to match */
};
#define NONE UINT64_MAX

struct got {
    int status;
    uint32_t backout_count;
    int32_t priority, expiry;
    uint8_t placement, persistence;
    uint64_t length, number, msg, correl, group;
    char text[ENGINE_TEXT + 32];
};
static struct got got; /* of the newest TAKE */
static struct ps_descriptor put_descriptor; /* of the newest PUT, as it came back */

__attribute__((unused)) static void id_of(uint8_t id[24], uint64_t number)
{
    memset(id, 0, 24);
    memcpy(id, &number, sizeof number);
}

/* For any thread: puts, with the descriptor in *d. */
__attribute__((unused)) static int engine_put_with(struct queue q, const struct ask *ask,
                                                   struct ps_descriptor *d)
{
    const struct mqe_destination to = mqe_straight(q.slot, q.generation);
    struct ps_descriptor_ext ext = {.msg_seq_number = 1};
    const void *body = ask->text != NULL ? ask->text : ask->body;
    *d = (struct ps_descriptor){.priority = ask->priority,
                                .persistence = (uint8_t)ask->persistent,
                                .md_version = 2};
    id_of(d->msg_id, ask->msg);
    id_of(d->correl_id, ask->correl);
    id_of(ext.group_id, ask->group);
    return mqe_put(engine.manager, ask->unit, &to, d, ask->group != 0 ? &ext : NULL, body,
                   ask->text != NULL ? strlen(ask->text) : ask->length,
                   ask->expiry != 0 ? ask->expiry : -1, ask->flags);
}

__attribute__((unused)) static int engine_put(struct queue q, const struct ask *ask)
{
    return engine_put_with(q, ask, &put_descriptor);
}
#define PUT(q, ...) engine_put(q, &(const struct ask){__VA_ARGS__})

__attribute__((unused)) static uint64_t number_of(const uint8_t *id)
{
    uint64_t number;
    memcpy(&number, id, sizeof number);
    return number;
}

__attribute__((unused)) static struct mqe_get engine_ask(const struct ask *ask)
{
    struct mqe_get get = {
        .flags = ask->flags | (ask->wait_us != 0 ? MQE_GET_WAIT : 0u),
        .wait_us = ask->wait_us,
        .match = ask->match | (ask->msg != 0 ? MQE_MATCH_MSG_ID : 0u) |
                 (ask->correl != 0 ? MQE_MATCH_CORREL_ID : 0u) |
                 (ask->group != 0 ? MQE_MATCH_GROUP_ID : 0u) |
                 (ask->number != 0 ? MQE_MATCH_NUMBER : 0u),
        .match_number = ask->number,
    };
    id_of(get.msg_id, ask->msg);
    id_of(get.correl_id, ask->correl);
    id_of(get.group_id, ask->group);
    return get;
}

/* For any thread: gets into *out, whose text is the body, or "(2033)" when there is none; a warning
 * follows the body: "abc(2079)". */
__attribute__((unused)) static int engine_take_with(mqe_queue *handle, const struct ask *ask,
                                                    struct got *out)
{
    struct mqe_get get = engine_ask(ask);
    get.buffer = out->text;
    get.capacity = ask->capacity == 0 ? (uint64_t)ENGINE_TEXT
                                      : ask->capacity == NONE ? 0 : ask->capacity;
    out->status = mqe_get(engine.manager, ask->unit, handle, &get);
    const bool here = mqe_comp_code(out->status) != MQCC_FAILED;
    const uint64_t bytes = !here ? 0 : get.length < get.capacity ? get.length : get.capacity;
    out->text[bytes] = '\0';
    if (out->status != 0) {
        snprintf(out->text + bytes, 32, "(%d)", out->status);
    }
    out->backout_count = get.d.backout_count;
    out->priority = get.d.priority;
    out->placement = get.d.placement;
    out->persistence = get.d.persistence;
    out->expiry = get.expiry;
    out->length = get.length;
    out->number = get.number;
    out->msg = number_of(get.d.msg_id);
    out->correl = number_of(get.d.correl_id);
    out->group = get.d.has_ext != 0 ? number_of(get.ext.group_id) : 0;
    return out->status;
}

__attribute__((unused)) static const char *engine_take(mqe_queue *handle, const struct ask *ask)
{
    (void)engine_take_with(handle, ask, &got);
    return got.text;
}
#define TAKE(q, ...) engine_take((q).handle, &(const struct ask){__VA_ARGS__})
#define TAKE_BY(handle, ...) engine_take(handle, &(const struct ask){__VA_ARGS__})

/* Takes everything: the texts in order, a blank between them. */
__attribute__((unused)) static const char *drain(struct queue q)
{
    static char all[4096];
    size_t used = 0;
    all[0] = '\0';
    while (TAKE(q), got.status == 0 && used < sizeof all - 200) {
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.100s", used != 0 ? " " : "",
                                 got.text);
    }
    return all;
}

/* The same without taking: a browse from the first one on. */
__attribute__((unused)) static const char *peruse(struct queue q)
{
    static char all[4096];
    size_t used = 0;
    uint32_t first = MQE_GET_BROWSE_FIRST;
    all[0] = '\0';
    while (TAKE(q, .flags = first), got.status == 0 && used < sizeof all - 200) {
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.100s", used != 0 ? " " : "",
                                 got.text);
        first = MQE_GET_BROWSE_NEXT;
    }
    return all;
}

/* ---- time, threads, processes ---- */

__attribute__((unused)) static void sleep_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    struct timespec left = pause;
    while (nanosleep(&left, &left) != 0) {
    }
}

/* Waits until that many waiters are listed on the queue; false after a minute. */
__attribute__((unused)) static bool await_waiters(struct queue q, uint32_t wanted)
{
    const struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    for (int i = 0; i < 60000; i++) {
        if (mqx_load_relaxed(&queue->waiters) == wanted) {
            return true;
        }
        sleep_ms(1);
    }
    return false;
}

struct waiter { /* a thread in a get */
    pthread_t thread;
    mqe_queue *handle;
    struct ask ask;
    struct got got;
};

__attribute__((unused)) static void *waiter_main(void *arg)
{
    struct waiter *waiter = arg;
    (void)engine_take_with(waiter->handle, &waiter->ask, &waiter->got);
    return NULL;
}

#define WAITER(waiter, q, ...) \
    waiter_start(waiter, (q).handle, &(const struct ask){__VA_ARGS__})
__attribute__((unused)) static void waiter_start(struct waiter *waiter, mqe_queue *handle,
                                                 const struct ask *ask)
{
    waiter->handle = handle;
    waiter->ask = *ask;
    waiter->ask.wait_us = ask->wait_us != 0 ? ask->wait_us : 60000000;
    CHECK_INT(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
}

__attribute__((unused)) static const char *waiter_end(struct waiter *waiter)
{
    CHECK_INT(pthread_join(waiter->thread, NULL), 0);
    return waiter->got.text;
}

__attribute__((unused)) static uint64_t woken_by_bound(void)
{
    return engine_region()->header->woken_by_bound;
}

/* Runs body(arg) in a child, which ends with its result; the exit code, or 1000 + signal. */
__attribute__((unused)) static int in_child(int (*body)(void *), void *arg)
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(body(arg));
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#endif
