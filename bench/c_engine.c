#include "c_engine.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { /* selectors of the queue's attributes, as in the MQI */
    SELECT_DEF_PERSISTENCE = 5,
    SELECT_DEF_PRIORITY = 6,
    SELECT_MAX_DEPTH = 15,
    MAX_DEPTH = 999999999,
    LOCAL_QUEUE = 1,
    QUEUE_NAMES = 1,
};

struct int_attr {
    struct ps_attr head;
    int64_t value;
};

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_fail(const char *text)
{
    fprintf(stderr, "%s\n", text);
    exit(1);
}

void bench_must(int reason, const char *what)
{
    if (reason != 0) {
        fprintf(stderr, "%s: %d %s, %s\n", what, reason, mqe_reason_name(reason), mqe_error_text());
        exit(1);
    }
}

static bool is_empty(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    bool empty = true;

    if (directory == NULL)
        bench_fail("the directory cannot be read");
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            empty = false;
    closedir(directory);
    return empty;
}

mqe_manager *bench_attach(const char *path)
{
    struct mqe_settings settings;
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;

    memset(&settings, 0, sizeof(settings));
    memcpy(settings.name, "BENCH", 5);
    memcpy(settings.qm_id, "penstock bench 1", sizeof(settings.qm_id));
    if (is_empty(path))
        bench_must(mqe_create(path, &settings), "create");
    bench_must(mqe_attach(path, &settings, &manager, &info), "attach");
    return manager;
}

void bench_detach(mqe_manager *manager)
{
    uint64_t discarded;

    bench_must(mqe_detach(manager, MQE_DETACH_ORDERLY, &discarded), "detach");
}

static struct int_attr attribute(int32_t selector, int64_t value)
{
    return (struct int_attr){{.selector = selector, .kind = 1, .length = 8}, value};
}

struct bench_queue bench_open(mqe_manager *manager, const char *name, bool persistent)
{
    struct ps_object_name full = {.name_space = QUEUE_NAMES, .type = LOCAL_QUEUE};
    struct int_attr attrs[] = {
        attribute(SELECT_DEF_PERSISTENCE, persistent),
        attribute(SELECT_DEF_PRIORITY, 0),
        attribute(SELECT_MAX_DEPTH, MAX_DEPTH),
    };
    struct bench_queue queue = {0};
    struct mqe_found found;
    int reason;

    memset(full.name, ' ', sizeof(full.name));
    memcpy(full.name, name, strlen(name));
    reason = mqe_find(manager, QUEUE_NAMES, full.name, 0, &found);
    if (reason == MQRC_UNKNOWN_OBJECT_NAME) {
        bench_must(mqe_define(manager, &full, attrs, sizeof(attrs), &found.slot, &found.generation),
                   "define");
        reason = mqe_find(manager, QUEUE_NAMES, full.name, 0, &found);
    }
    bench_must(reason, "find");
    queue.to = mqe_direct(found.slot, found.generation);
    queue.to.step_count = 1;
    queue.to.step[0] = (struct mqe_step){found.slot, found.generation, found.resolution_version};
    bench_must(mqe_open(manager, &queue.to, 1 | MQE_OUTPUT, &queue.handle), "open");
    return queue;
}

void bench_close(struct bench_queue *queue)
{
    bench_must(mqe_close(queue->handle, MQE_CLOSE_KEEP), "close");
}

void bench_put(mqe_manager *manager, mqe_unit *unit, const struct bench_queue *queue,
               int32_t priority, const void *body, uint64_t size)
{
    struct ps_descriptor descriptor = {
        .priority = priority,
        .persistence = 2,
        .msg_type = 8,
        .encoding = 546,
        .format = "        ",
    };

    bench_must(mqe_put(manager, unit, &queue->to, &descriptor, NULL, body, size, -1,
                       MQE_PUT_NEW_MSG_ID),
               "put");
}

void bench_get(mqe_manager *manager, mqe_unit *unit, const struct bench_queue *queue, void *body,
               uint64_t size)
{
    struct mqe_get get;

    memset(&get, 0, offsetof(struct mqe_get, d));
    get.buffer = body;
    get.capacity = size;
    bench_must(mqe_get(manager, unit, queue->handle, &get), "get");
    if (get.length != size)
        bench_fail("wrong: a body of another length");
}

bool bench_command(char *line, int size)
{
    return fgets(line, size, stdin) != NULL;
}

void bench_answer(const char *format, ...)
{
    va_list values;

    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    fflush(stdout);
}

uint32_t bench_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}
