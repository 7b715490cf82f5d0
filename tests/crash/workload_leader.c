/*
 * workload_leader.c - see workload_leader.h.
 */
#include "workload_leader.h"
#include "workload_steps.h"

#include "fixtures/require.h"
#include "os/life_thread.h"
#include "process/life_lock.h"
#include "process/reaper.h"

#include <pthread.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <stdio.h>
#include <unistd.h>

enum {
    LEADER_PID = MEMORY_IO_PID + 1,
    CALLS = 5,             /* of a turn, each with a step at most */
    DEATH_WITHIN = 14,     /* calls of the file table */
    DEATH_WITHIN_LARGE = 4, /* ... of which the end of a large unit has few */
    UNIT_CALLS = 4,
    UNIT_CALLS_LARGE = 7,  /* puts only: more than the log ring holds */
};

struct leader {
    struct workload *w;
    mqe_manager *manager;
    uint64_t dies_at;      /* among the calls of the file table at which it may die */
    uint64_t calls;
    bool maintains;        /* the model does not change: it may die anywhere */
    bool over;             /* all calls were made: it did not die in one */
    bool led;              /* at its death it had the flush lock */
    struct wl_model before; /* the call in progress */
};

static _Thread_local struct leader *running; /* in the thread of the second process */

/* A SIGKILL, for this thread: nothing is unlocked, freed or written any more. */
static void die_here(void *arg, enum memory_op op, uint64_t number)
{
    struct leader *leader = running;
    (void)arg;
    (void)op;
    (void)number;
    if (leader == NULL || !(leader->w->pending || leader->maintains)) {
        return;
    }
    leader->calls += 1;
    if (leader->calls == leader->dies_at) {
        const struct mqx_region *region = &leader->manager->store.region;
        leader->led = mqx_lock_held(region, &region->journal->flush_lock);
        wl_tell(leader->w, "the other process dies before call %s", memory_op_name(op));
        pthread_exit(NULL);
    }
}

/* ---- its calls ---- */

static int in_unit(struct leader *leader)
{
    struct workload *w = leader->w;
    const bool large = w->profile == WL_LARGE;
    const uint32_t calls = large ? UNIT_CALLS_LARGE : UNIT_CALLS;
    int result = GO_ON;
    for (uint32_t i = 0; i < calls && result == GO_ON; i++) {
        const uint32_t q = wl_below(w, 2);
        const struct wl_queue *queue = &w->model.queue[q];
        const bool puts = large || wl_below(w, 3) > 0;
        if (queue->defined && puts && queue->count < WL_DEPTH - 6) {
            result = workload_put_in_unit(w, q, 0);
        } else if (queue->defined) {
            result = workload_get_in_unit(w, q, 0, 0);
        }
    }
    leader->before = w->model;
    return result == GO_ON ? wl_commit(w, 0) : result;
}

static int one_call(struct leader *leader)
{
    struct workload *w = leader->w;
    const uint32_t q = wl_below(w, 2);
    const uint32_t way = w->profile == WL_LARGE ? 5 + wl_below(w, 5) : wl_below(w, 10);
    leader->before = w->model;
    if (!w->model.queue[q].defined) {
        return workload_define(w, q);
    }
    if (way < 3 && w->model.queue[q].count < WL_DEPTH - 6) {
        return workload_put(w, q, true, wl_below(w, 3000));
    }
    if (way < 5) {
        return wl_get_single(w, q, 0);
    }
    if (way < 9) {
        return in_unit(leader);
    }
    leader->maintains = true;
    const int result = wl_maintain(w);
    leader->maintains = false;
    return result;
}

static void *live(void *arg)
{
    struct leader *leader = arg;
    running = leader;
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable(); /* what a dead process had allocated is no leak */
#endif
    for (int i = 0; i < CALLS && !wl_over(leader->w); i++) {
        (void)one_call(leader);
    }
    running = NULL;
    leader->over = true;
    return NULL;
}

/* ---- its attachment ---- */

/* The registry of managers knows one a directory: a hidden one is not found there. */
static void hide(mqe_manager *manager, uint64_t as)
{
    manager->inode ^= as << 32;
}

static int attach(struct leader *leader, uint64_t number)
{
    struct workload *w = leader->w;
    struct mqe_attach_info info;
    hide(w->manager, number);
    const int reason = mqx_manager_attach(memory_io_process(w->files, LEADER_PID), WL_PATH,
                                          &w->settings, &leader->manager, &info);
    hide(w->manager, number);
    if (reason != 0 || info.first != 0) {
        return wl_trouble(w, "a second process attaches: %d %s", reason, mqe_error_text());
    }
    return GO_ON;
}

/* What is left of a process that was killed. Its manager stays in the registry under a number that
 * nobody asks for: nothing frees the memory of a dead process here. */
static int bury(struct leader *leader, uint64_t number)
{
    struct workload *w = leader->w;
    uint32_t dead = 0;
    struct mqx_store *store = &leader->manager->store;
    struct mqx_life_lock *lock_file = mqx_life_lock_find(store->io, store->lock_fd);
    REQUIRE(lock_file != NULL && lock_file != mqx_life_lock_find(w->io, w->manager->store.lock_fd));
    hide(leader->manager, number);
    mqx_life_lock_forget(lock_file);
    memory_io_kill(w->files, LEADER_PID);
    mqx_life_thread_end(store->life, false);
    store->life = NULL;
    const int reason = mqx_reap_unless_busy(&w->manager->store, &dead);
    if (reason != 0 || dead != 1) {
        return wl_trouble(w, "cleaning up after one process: %d %s, %u found dead", reason,
                          reason != 0 ? mqe_error_text() : "", dead);
    }
    return GO_ON;
}

/* ---- what became of its last step ---- */

/* Who defines an object hears its slot when the call returns, which it did not. */
static void learn_slots(struct wl_model *model, const struct wl_model *found)
{
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        model->queue[q].slot = found->queue[q].slot;
        model->queue[q].generation = found->queue[q].generation;
    }
}

/* The step is as durable as it is visible: it is acknowledged by who sees it. */
static int settle(struct leader *leader, struct leader_counts *counts)
{
    static struct wl_model found, picture;
    struct workload *w = leader->w;
    char text[WL_TROUBLE / 2], other[WL_TROUBLE / 2];
    const bool pending = w->pending;
    if (wl_look(w->manager, &found, text, sizeof text) != 0) {
        return wl_trouble(w, "after the death of a process: %s", text);
    }
    wl_picture(&found, false, &picture);
    learn_slots(&w->model, &found);
    if (pending && wl_compare(&picture, &w->history.step[wl_newest(w) + 1], text,
                              sizeof text) == 0) {
        wl_end_step(w);
        counts->happened += 1;
        return GO_ON;
    }
    w->model = leader->before;
    w->pending = false;
    wl_forget_units(w, true);
    static struct wl_model expected;
    wl_picture(&w->model, false, &expected);
    if (wl_compare(&picture, &expected, other, sizeof other) != 0) {
        return pending ? wl_trouble(w, "after the death of a process a step has happened in part: "
                                    "%s; %s", text, other)
                       : wl_trouble(w, "after the death of an idle process: %s", other);
    }
    for (uint32_t q = 0; q < WL_QUEUES; q++) { /* counts as they are now */
        for (uint32_t i = 0; i < found.queue[q].count; i++) {
            for (uint32_t k = 0; k < w->model.queue[q].count; k++) {
                struct wl_message *message = &w->model.queue[q].message[k];
                if (message->id == found.queue[q].message[i].id) {
                    message->backouts = found.queue[q].message[i].backouts;
                }
            }
        }
    }
    return GO_ON;
}

/* Units of the first process end first: a unit's number belongs to one process at a time. */
static int end_units(struct workload *w)
{
    int result = GO_ON;
    for (uint32_t u = 0; u < WL_UNITS && result == GO_ON; u++) {
        if (w->unit[u] != NULL) {
            result = wl_below(w, 2) == 0 ? wl_commit(w, u) : wl_back_out(w, u);
        }
    }
    for (uint32_t u = 0; u < WL_UNITS && result == GO_ON; u++) {
        if (w->unit[u] != NULL) {
            mqe_unit_free(w->unit[u]);
            w->unit[u] = NULL;
        }
    }
    return result;
}

int workload_leader_turn(struct workload *w, struct leader_counts *counts)
{
    static struct leader leader;
    mqe_manager *first = w->manager;
    pthread_t thread;
    REQUIRE(first != NULL);
    const uint32_t within = w->profile == WL_LARGE ? DEATH_WITHIN_LARGE : DEATH_WITHIN;
    leader = (struct leader){.w = w, .dies_at = 1 + wl_below(w, within)};
    counts->turns += 1;
    if (end_units(w) != GO_ON || attach(&leader, counts->turns) != GO_ON) {
        return STOP;
    }
    w->manager = leader.manager;
    memory_io_set_hook(w->files, die_here, NULL);
    REQUIRE(pthread_create(&thread, NULL, live, &leader) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    memory_io_set_hook(w->files, NULL, NULL);
    w->manager = first;
    for (uint32_t u = 0; u < WL_UNITS; u++) {
        w->unit[u] = NULL; /* with their process */
    }
    if (wl_over(w)) {
        return STOP;
    }
    counts->deaths += !leader.over;
    counts->as_leader += !leader.over && leader.led;
    if (leader.over) {
        leader.before = w->model;
    }
    return bury(&leader, counts->turns) == GO_ON ? settle(&leader, counts) : STOP;
}
