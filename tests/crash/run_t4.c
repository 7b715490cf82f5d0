/*
 * run_t4.c - layer T4: an I/O error at every call of the file table.
 *
 *     run_t4 --count CASES --seed S --time SECONDS [--only CASE --trace 1]
 *
 * A scene is a short workload (workload.h) with restarts, from the creation of the queue manager
 * on. It is run once without a fault to count its calls; then once for each call, each kind
 * of fault that this call can meet, struck once and from then on. Whatever fails must fail with a
 * mapped reason; what the calls returned must be true:
 *
 *   - a call after one that returned 2009 returns 2009 too, and a failed flush is reported to a
 *     caller;
 *   - what a call refused has not happened, what it reported has (the workload's model continues
 *     checking);
 *   - after the fault is gone the files are opened again, hold exactly what was acknowledged, and
 *     can be worked with;
 *   - the same after a power cut at the moment of the end: flushes that failed did not count;
 *   - no descriptor, no mapping and (in the build with sanitizers) no memory is lost.
 *
 * In company: the same workload beside a second attached process, whose calls never fail. What is
 * the first one's own failure (rule 51: open, look at, create, EFBIG and EBADF of a write) must
 * stop nothing; a failed disk must stop both.
 *
 * A flipped bit that a restart after a death reads in the journal's last batch cannot be
 * distinguished from a torn tail (the exception of promise P7): such losses are allowed, counted
 * and printed.
 */
#include "fixtures/disk_states.h"
#include "drop_cache.h"
#include "layer.h"
#include "process/attach.h"
#include "process/maintenance.h"
#include "recovery/checkpoint.h"
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS = 16,        /* of a scene */
    SCENE_CALLS_MAX = 4096,
    POWER_CUT_CAP = 6,
    COMPANY_PID = MEMORY_IO_PID + 1,
    COMPANY_CALLS = 12,
    COMPANY_VARIANTS = 8, /* of each kind and scene: half of them from then on */
    ALL = (1 << MEMORY_OP_COUNT) - 1,
};

#define OP(name) (1u << MEMORY_##name)
static const uint32_t takes_room = OP(WRITE) | OP(ALLOCATE) | OP(MAKE_SUB) | OP(OPEN) | OP(RENAME) |
                                  OP(MOVE);

static const struct kind {
    const char *name;
    enum memory_fault_kind fault;
    int error;
    uint32_t ops;      /* calls that can meet it */
    uint32_t details;  /* so many variants with different details */
} kinds[] = {
    {"EIO", MEMORY_FAULT_ERROR, EIO, ALL, 1},
    {"ENOSPC", MEMORY_FAULT_ERROR, ENOSPC, takes_room, 1},
    {"EDQUOT", MEMORY_FAULT_ERROR, EDQUOT, takes_room, 1},
    {"EFBIG", MEMORY_FAULT_ERROR, EFBIG, OP(WRITE) | OP(ALLOCATE) | OP(TRUNCATE), 1},
    {"EINTR", MEMORY_FAULT_ERROR, EINTR, OP(CLOSE) | OP(OPEN), 1},
    {"ENOMEM", MEMORY_FAULT_ERROR, ENOMEM, OP(MAP) | OP(OPEN) | OP(LIST) | OP(POPULATE), 1},
    {"EMFILE", MEMORY_FAULT_ERROR, EMFILE, OP(OPEN) | OP(OPEN_DIR) | OP(OPEN_SUB), 1},
    {"EACCES", MEMORY_FAULT_ERROR, EACCES,
     OP(OPEN) | OP(UNLINK) | OP(RENAME) | OP(MOVE) | OP(MAKE_SUB), 1},
    {"short write", MEMORY_FAULT_SHORT, ENOSPC, OP(WRITE), 2},
    {"short read", MEMORY_FAULT_SHORT, EIO, OP(READ), 2},
    {"failed flush", MEMORY_FAULT_FLUSH, EIO, OP(WRITE) | OP(SYNC) | OP(SYNC_DIR), 1},
    {"bit flip", MEMORY_FAULT_FLIP, EIO, OP(READ), 6},
};

/* What the first process meets while it has company. */
static const struct company_kind {
    struct kind kind;
    bool stops; /* a failed disk, not a failure of the process */
} company_kinds[] = {
    {{"EMFILE", MEMORY_FAULT_ERROR, EMFILE, OP(OPEN) | OP(OPEN_SUB), 1}, false},
    {{"EACCES", MEMORY_FAULT_ERROR, EACCES, OP(OPEN), 1}, false},
    {{"ENOMEM", MEMORY_FAULT_ERROR, ENOMEM, OP(OPEN) | OP(ALLOCATE), 1}, false},
    {{"EIO", MEMORY_FAULT_ERROR, EIO, OP(STAT), 1}, false},
    {{"EFBIG", MEMORY_FAULT_ERROR, EFBIG, OP(WRITE) | OP(ALLOCATE), 1}, false},
    {{"EBADF", MEMORY_FAULT_ERROR, EBADF, OP(WRITE), 1}, false},
    {{"failed flush", MEMORY_FAULT_FLUSH, EIO, OP(WRITE), 1}, true},
    {{"failed flush", MEMORY_FAULT_FLUSH, EDQUOT, OP(WRITE), 1}, true},
};

struct tally {
    uint64_t cases, failed_calls, stopped;
};

struct t4 {
    struct layer layer;
    struct memory_io *files;
    uint64_t scene;
    uint64_t number;                    /* of cases begun */
    uint64_t cases;                     /* of these the fault struck */
    uint64_t violations;
    uint64_t lost_last;
    uint64_t power_cuts;
    struct tally tally[MQX_ARRAY_COUNT(kinds)];
    uint8_t ops[SCENE_CALLS_MAX];       /* of the run without a fault */
    uint32_t op_count;
    const struct kind *kind;            /* of the case */
    uint64_t company_cases, company_stops; /* cases in company that the fault struck */
    struct memory_fault fault;
    uint32_t call;
};

static int violation(struct t4 *t4, const char *text)
{
    t4->violations += 1;
    printf("VIOLATION t4 seed %llu case %llu (scene %llu, call %u %s, %s%s): %s\n",
           (unsigned long long)t4->layer.seed, (unsigned long long)t4->number,
           (unsigned long long)t4->scene, t4->call,
           t4->call == 0 ? "in company" : memory_op_name((enum memory_op)t4->ops[t4->call - 1]),
           t4->kind->name,
           t4->fault.for_ever ? " from then on" : "", text);
    return 1;
}

/* ---- a scene ---- */

static void note_op(void *arg, enum memory_op op, uint64_t number)
{
    struct t4 *t4 = arg;
    (void)number;
    if (t4->op_count < SCENE_CALLS_MAX) {
        t4->ops[t4->op_count++] = (uint8_t)op;
    }
}

static uint64_t scene_seed(const struct t4 *t4)
{
    return wl_mix(t4->layer.seed * 7919 + t4->scene);
}

static void begin(struct t4 *t4, struct workload *w)
{
    memory_io_restore(t4->files);
    memory_io_set_clock(t4->files, WL_NOW_US);
    fixed_random_reset(scene_seed(t4));
    workload_init(w, t4->files, scene_seed(t4), WL_SMALL);
    memory_io_record(t4->files, WL_PATH);
}

/* Creates, starts, works, is restarted a few times. Leaves attached or not; 0 unless in trouble. */
static int play(struct workload *w)
{
    int result = workload_create(w);
    if (result != 0 || !w->created) {
        return result;
    }
    result = workload_start(w);
    for (int part = 0; part < 3 && result == 0 && !w->stopped && !w->blind; part++) {
        result = workload_run(w, CALLS / 2, false);
        if (result == 0 && !w->stopped && !w->blind && w->manager != NULL) {
            result = workload_two_phases(w, part > 0);
        }
        if (result == 0 && !w->stopped && !w->blind && w->manager != NULL && part < 2) {
            if (part == 0) {
                workload_die(w);
            } else {
                result = workload_end(w, true);
            }
            result = result == 0 ? workload_start(w) : result;
        }
    }
    return result;
}

/* Every further call of a stopped queue manager says so. */
static int probe_stopped(struct t4 *t4, struct workload *w)
{
    mqe_unit *unit = NULL;
    uint32_t slot = 0, generation = 0;
    if (!w->stopped || w->manager == NULL) {
        return 0;
    }
    t4->tally[t4->kind - kinds].stopped += 1;
    if (mqe_unit_new(w->manager, &unit) != MQRC_CONNECTION_BROKEN ||
        mqe_checkpoint(w->manager) != MQRC_CONNECTION_BROKEN ||
        mqe_next_object(w->manager, &slot, &generation) != MQRC_CONNECTION_BROKEN) {
        return violation(t4, "a call after 2009 does not say 2009");
    }
    return 0;
}

/* ---- verdicts ---- */

static bool acceptable(const struct workload *w, const struct wl_model *found, char *text,
                       size_t size)
{
    char other[WL_TROUBLE];
    const uint32_t last = w->done + w->unsure + w->pending;
    return wl_step_like(&w->history, w->done, last, found, text, size) != UINT32_MAX ||
           (w->has_alternative && wl_compare(found, &w->alternative, other, sizeof other) == 0);
}

/* Attaches to files that no process is attached to and checks what is found. */
static int look_again(struct t4 *t4, const struct workload *w, struct mqx_io *io, const char *when,
                      mqe_manager **out)
{
    static struct wl_model found;
    struct mqe_attach_info info;
    char text[WL_TROUBLE], full[WL_TROUBLE + 64];
    const int reason = mqx_manager_attach(io, WL_PATH, &w->settings, out, &info);
    if (reason != 0) {
        *out = NULL;
        if (!w->created) {
            return 0; /* a creation that failed leaves what can only be created again */
        }
        (void)snprintf(full, sizeof full, "%s: refused: %d %s", when, reason, mqe_error_text());
        return violation(t4, full);
    }
    int result = wl_look(*out, &found, text, sizeof text);
    if (result == 0 && w->created && !acceptable(w, &found, text, sizeof text)) {
        result = -1;
    }
    if (result == 0 && mqe_check(*out) != 0) {
        (void)snprintf(text, sizeof text, "mqe_check: %s", mqe_error_text());
        result = -1;
    }
    if (result != 0) {
        (void)snprintf(full, sizeof full, "%s: %s", when, text);
        return violation(t4, full);
    }
    return 0;
}

struct cut {
    struct t4 *t4;
    const struct workload *w;
};

static void prepare(void *arg, struct memory_io *files)
{
    (void)arg;
    memory_io_region_dir(files, WL_REGION_DIR);
}

static int after_power_cut(void *arg, const struct disk_state *state)
{
    const struct cut *cut = arg;
    mqe_manager *manager = NULL;
    const char *keep = cut->t4->layer.keep;
    struct memory_image *image = keep != NULL ? memory_image_take(state->files, WL_PATH) : NULL;
    const int result = look_again(cut->t4, cut->w, state->io, "after a power cut", &manager);
    cut->t4->power_cuts += 1;
    if (image != NULL && result != 0 && memory_image_write(image, keep) != 0) {
        fprintf(stderr, "cannot write into %s\n", keep);
    }
    memory_image_free(image);
    if (manager != NULL) {
        workload_abandon(manager);
    }
    return result;
}

static int cut_power(struct t4 *t4, const struct workload *w, const struct memory_trace *trace)
{
    struct disk_states_counts counts = {0};
    struct cut cut = {t4, w};
    const struct disk_states_options options = {
        .sector = 4096,
        .cap = POWER_CUT_CAP,
        .seed = t4->number,
        .no_zeroed = true,
        .first_event = trace->event_count - 1,
        .prepare = prepare,
        .arg = &cut,
    };
    return disk_states_run(trace, &options, after_power_cut, &counts);
}

/* The fault is gone: open, compare, work, end in order, open once more. */
static int go_on(struct t4 *t4, struct workload *w)
{
    mqe_manager *manager = NULL;
    int result = look_again(t4, w, w->io, "when opened again", &manager);
    if (result != 0 || manager == NULL) {
        if (manager != NULL) {
            workload_abandon(manager);
        }
        return result;
    }
    static struct wl_model found;
    char text[WL_TROUBLE];
    struct workload after;
    workload_init(&after, t4->files, t4->number, WL_SMALL);
    after.io = w->io;
    after.settings = w->settings;
    after.next_id = UINT64_C(9000000000);
    if (wl_look(manager, &found, text, sizeof text) != 0) {
        result = violation(t4, text);
    }
    workload_adopt(&after, manager, &found);
    if (result == 0 && (workload_run(&after, 4, false) != 0 || workload_end(&after, true) != 0 ||
                        workload_start(&after) != 0)) {
        result = violation(t4, after.trouble);
    }
    workload_fini(&after);
    return result;
}

static int count_leaks(struct t4 *t4, const char *when)
{
    char text[128];
    const uint32_t open = memory_io_open_count(t4->files), maps = memory_io_map_count(t4->files);
    if (open == 0 && maps == 0) {
        return 0;
    }
    (void)snprintf(text, sizeof text, "%s %u descriptors and %u mappings are left over", when, open,
                   maps);
    return violation(t4, text);
}

/* ---- one case ---- */

static bool wants_power_cut(const struct t4 *t4)
{
    return t4->kind->fault == MEMORY_FAULT_FLUSH || t4->number % 4 == 0;
}

static int check_outcome(struct t4 *t4, struct workload *w)
{
    const uint64_t strikes = memory_io_fault_strikes(t4->files);
    memory_io_set_fault(t4->files, NULL);
    struct memory_trace *trace = memory_io_take_trace(t4->files);
    int result = strikes > 0 ? probe_stopped(t4, w) : 0;
    if (w->manager != NULL) {
        workload_die(w); /* what its units had got may come back with one more BackoutCount */
    }
    if (strikes > 0 && result == 0) {
        t4->cases += 1;
        t4->lost_last += w->lost_last;
        t4->tally[t4->kind - kinds].cases += 1;
        t4->tally[t4->kind - kinds].failed_calls += w->failures;
        result = count_leaks(t4, "after the last detach");
    }
    if (strikes > 0 && result == 0 && t4->kind->fault == MEMORY_FAULT_FLUSH && w->failures == 0 &&
        !w->spared && t4->ops[t4->call - 1] == MEMORY_WRITE) {
        result = violation(t4, "a write with data sync failed and was not reported");
    }
    if (strikes > 0 && result == 0 && w->created && wants_power_cut(t4) && trace->event_count > 0) {
        result = cut_power(t4, w, trace);
    }
    if (strikes > 0 && result == 0) {
        result = go_on(t4, w);
    }
    if (strikes > 0 && result == 0) {
        result = count_leaks(t4, "at the end");
    }
    memory_trace_free(trace);
    return result;
}

static int run_case(struct t4 *t4)
{
    struct workload w;
    layer_where("t4: seed %llu case %llu (scene %llu, call %u, %s)",
                (unsigned long long)t4->layer.seed, (unsigned long long)t4->number,
                (unsigned long long)t4->scene, t4->call, t4->kind->name);
    begin(t4, &w);
    w.tolerant = true;
    w.traced = t4->layer.traced;
    w.may_lose_last =
        t4->kind->fault == MEMORY_FAULT_FLIP || t4->ops[t4->call - 1] == MEMORY_READ;
    w.also_clean = t4->kind->error == EINTR ? MQRC_UNEXPECTED_ERROR : 0;
    w.loses_rights = t4->kind->error == EACCES;
    if (t4->kind->fault == MEMORY_FAULT_FLUSH) {
        w.io = drop_cache_table(t4->files, t4->number);
    }
    memory_io_set_fault(t4->files, &t4->fault);
    int result = play(&w);
    if (result != 0) {
        memory_io_set_fault(t4->files, NULL);
        memory_trace_free(memory_io_take_trace(t4->files));
        result = violation(t4, w.trouble);
    } else {
        result = check_outcome(t4, &w);
    }
    workload_fini(&w);
    (void)drop_cache_table(t4->files, 0);
    return result;
}

/* ---- in company ---- */

struct company { /* a second attached process; the registry of managers knows one a directory */
    struct mqx_store store;
    struct mqx_maintenance *thread; /* NULL: not attached */
};

static int join(struct t4 *t4, const struct workload *w, struct company *company)
{
    const struct mqx_store *first = &w->manager->store;
    struct mqx_attach_report report;
    company->store = (struct mqx_store){
        .io = memory_io_process(t4->files, COMPANY_PID),
        .plan = first->plan,
    };
    memcpy(company->store.qm_id, first->qm_id, sizeof first->qm_id);
    memcpy(company->store.name, first->name, sizeof first->name);
    if (mqx_attach(&company->store, WL_PATH, WL_REGION_DIR, &report) != 0 ||
        mqx_maintenance_start(&company->store, &company->thread) != 0) {
        return violation(t4, mqe_error_text());
    }
    return 0;
}

static void leave(struct company *company)
{
    uint64_t discarded = 0;
    if (company->thread != NULL) {
        mqx_maintenance_stop(company->thread);
        mqx_ignore(mqx_detach(&company->store, MQX_CHECKPOINT_CLEAN, &discarded)); /* not last */
    }
}

/* The workload beside a process in good health, which leads when it is asked. */
static int play_in_company(struct t4 *t4, struct workload *w, struct company *company)
{
    int result = workload_create(w);
    result = result == 0 ? workload_start(w) : result;
    result = result == 0 ? join(t4, w, company) : result;
    if (result != 0) {
        return result;
    }
    memory_io_set_fault(t4->files, &t4->fault);
    result = workload_run(w, COMPANY_CALLS, false);
    if (result == 0 && !w->stopped) {
        result = workload_two_phases(w, true);
    }
    return result;
}

static int check_company(struct t4 *t4, const struct workload *w, bool stops, uint64_t strikes)
{
    if (strikes == 0) {
        return 0;
    }
    t4->company_cases += 1;
    t4->company_stops += w->stopped;
    if (!stops && w->stopped) {
        char text[MQX_STOP_TEXT + 64], cause[MQX_STOP_TEXT];
        (void)mqx_region_stop_cause(&w->manager->store.region, cause);
        (void)snprintf(text, sizeof text, "a failure of one process has stopped both: %s", cause);
        return violation(t4, text);
    }
    if (stops && !w->stopped && w->failures > 0) {
        return violation(t4, "a failed flush has not stopped the queue manager");
    }
    return 0;
}

static int run_company_case(struct t4 *t4, bool stops)
{
    struct workload w;
    struct company company = {.thread = NULL};
    layer_where("t4: seed %llu case %llu, in company, %s", (unsigned long long)t4->layer.seed,
                (unsigned long long)t4->number, t4->kind->name);
    begin(t4, &w);
    w.tolerant = true;
    w.traced = t4->layer.traced;
    int result = play_in_company(t4, &w, &company);
    if (result != 0) {
        result = violation(t4, w.trouble);
    }
    const uint64_t strikes = memory_io_fault_strikes(t4->files);
    memory_io_set_fault(t4->files, NULL);
    memory_trace_free(memory_io_take_trace(t4->files));
    leave(&company);
    result = result == 0 ? check_company(t4, &w, stops, strikes) : result;
    if (w.manager != NULL) {
        workload_die(&w);
    }
    if (result == 0) {
        result = go_on(t4, &w);
    }
    if (result == 0) {
        result = count_leaks(t4, "at the end");
    }
    workload_fini(&w);
    return result;
}

/* A few calls of each kind, struck once and from then on. */
static int run_company(struct t4 *t4)
{
    int result = 0;
    t4->call = 0;
    for (size_t k = 0; k < MQX_ARRAY_COUNT(company_kinds) && result == 0; k++) {
        for (uint32_t v = 0; v < COMPANY_VARIANTS && result == 0; v++) {
            t4->kind = &company_kinds[k].kind;
            t4->fault = (struct memory_fault){
                .kind = t4->kind->fault,
                .at = 1 + wl_mix(t4->layer.seed * 37 + t4->number) % COMPANY_CALLS,
                .for_ever = v % 2 != 0,
                .ops = t4->kind->ops,
                .error = t4->kind->error,
                .pid = MEMORY_IO_PID,
            };
            t4->number += 1;
            if (t4->layer.only == UINT64_MAX || t4->layer.only == t4->number) {
                result = run_company_case(t4, company_kinds[k].stops);
            }
        }
    }
    return result;
}

/* ---- all faults of a scene ---- */

static int count_calls(struct t4 *t4)
{
    struct workload w;
    t4->op_count = 0;
    begin(t4, &w);
    memory_io_set_hook(t4->files, note_op, t4);
    const int result = play(&w);
    memory_io_set_hook(t4->files, NULL, NULL);
    memory_trace_free(memory_io_take_trace(t4->files));
    if (result != 0) {
        printf("VIOLATION t4 seed %llu scene %llu, without any fault: %s\n",
               (unsigned long long)t4->layer.seed, (unsigned long long)t4->scene, w.trouble);
        t4->violations += 1;
    }
    workload_fini(&w);
    return result;
}

/* The place of call `call` among those of `ops`. */
static uint64_t place_among(const struct t4 *t4, uint32_t call, uint32_t ops)
{
    uint64_t place = 0;
    for (uint32_t i = 0; i < call; i++) {
        place += (ops >> t4->ops[i] & 1u) != 0;
    }
    return place;
}

static int strike(struct t4 *t4, const struct kind *kind, bool for_ever, uint32_t variant)
{
    const uint64_t r = wl_mix(t4->layer.seed * 31 + t4->number);
    const uint32_t own = 1u << t4->ops[t4->call - 1];
    /* From then on: the same call when anything may fail, else everything that needs the same. */
    const uint32_t ops = kind->ops == ALL ? own : kind->ops;
    t4->kind = kind;
    t4->fault = (struct memory_fault){
        .kind = kind->fault,
        .at = for_ever ? place_among(t4, t4->call, ops) : t4->call,
        .for_ever = for_ever,
        .ops = for_ever ? ops : 0,
        .error = kind->error,
        .detail = kind->fault == MEMORY_FAULT_FLIP ? r >> 8 : variant == 0 ? 0 : (r >> 8) % 5000,
    };
    t4->number += 1;
    if (t4->layer.only != UINT64_MAX && t4->layer.only != t4->number) {
        return 0;
    }
    return run_case(t4);
}

static bool enough(const struct t4 *t4)
{
    return t4->cases >= t4->layer.count || layer_time_is_up(&t4->layer);
}

/* Calls of the scene are taken in an order that spreads over it, so that a small count reaches all
 * parts. */
static int run_scene(struct t4 *t4)
{
    int result = count_calls(t4);
    uint32_t stride = 1 + t4->op_count * 2 / 5;
    while (t4->op_count > 0 && (stride % 2 == 0 || t4->op_count % stride == 0)) {
        stride += 1;
    }
    for (uint32_t i = 0, at = 0; i < t4->op_count && result == 0; i++) {
        at = (at + stride) % t4->op_count;
        t4->call = at + 1;
        for (size_t k = 0; k < MQX_ARRAY_COUNT(kinds) && result == 0 && !enough(t4); k++) {
            if ((kinds[k].ops >> t4->ops[at] & 1u) == 0) {
                continue;
            }
            for (uint32_t v = 0; v < 2 * kinds[k].details && result == 0; v++) {
                result = strike(t4, &kinds[k], v % 2 != 0, v / 2);
            }
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    static struct t4 t4;
    layer_arguments(&t4.layer, argc, argv, 20000);
    t4.files = memory_io_new();
    workload_prepare(t4.files);
    memory_io_freeze(t4.files);
    int result = 0;
    while (result == 0 && !enough(&t4) &&
           (t4.layer.only == UINT64_MAX || t4.number < t4.layer.only)) {
        result = run_company(&t4);
        result = result == 0 ? run_scene(&t4) : result;
        t4.scene += 1;
    }
    memory_io_free(t4.files);
    for (size_t k = 0; k < MQX_ARRAY_COUNT(kinds); k++) {
        printf("t4  %-14s %8llu cases %8llu calls failed %8llu times stopped\n", kinds[k].name,
               (unsigned long long)t4.tally[k].cases, (unsigned long long)t4.tally[k].failed_calls,
               (unsigned long long)t4.tally[k].stopped);
    }
    printf("t4  in company     %8llu cases %8llu times stopped\n",
           (unsigned long long)t4.company_cases, (unsigned long long)t4.company_stops);
    printf("t4  verdict: %s; %llu cases in %.0f s, %llu scenes, %llu power cuts, %llu last batches "
           "garbled while read (P7), seed %llu\n", result == 0 ? "all right" : "VIOLATED",
           (unsigned long long)t4.cases, layer_seconds(&t4.layer), (unsigned long long)t4.scene,
           (unsigned long long)t4.power_cuts, (unsigned long long)t4.lost_last,
           (unsigned long long)t4.layer.seed);
    return result == 0 ? 0 : 1;
}
