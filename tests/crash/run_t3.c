/*
 * run_t3.c - layer T3: every disk state that a power cut may leave, recovered by the real engine.
 *
 *     run_t3 --count STATES --seed S --time SECONDS [--only ROUND --keep DIRECTORY]
 *            [--sample DIRECTORY --every N]           images for the second reader (T11)
 *
 * A round records one workload (workload.h) on files in memory, from the creation of the queue
 * manager on, and shows the states of disk_states.h at tearing of 8, 64, 512 and 4,096 bytes. Each
 * is recovered and judged by the acknowledgements made until then. Of some states the recovery
 * itself, and work after it, are recorded and cut again, and of some of these once more: second and
 * third crash in a row. Every 8th round moves units larger than the log ring.
 *
 * With linear logging, a quarter of the rounds, every segment since the first must be whole in the
 * journal or in the archive as well.
 *
 * In every third round, and in every second one of large units, a second process attaches now and
 * then, works, and dies between two calls of the file table, as leader of a flush or in maintenance
 * (workload_leader.h): what the first one sees after it must be in every later state.
 *
 * Of some states a bit of the newest checkpoint is flipped before the recovery: the older one must
 * lead to the same, but for non-persistent messages of an orderly end.
 *
 * Left out of the recording: what is written into the error log (no promise), and, but for every
 * eighth round, into the lock file; else most states would differ in these alone.
 */
#include "api/context_pool.h"
#include "api/manager.h"
#include "api/queue_handle.h"
#include "api/unit_handle.h"
#include "penstock/journal_scan.h"
#include "fixtures/disk_states.h"
#include "fast_region.h"
#include "layer.h"
#include "workload.h"
#include "workload_leader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SECTORS = 4,
    DEPTH_MAX = 3,
    CALLS = 90,            /* of a workload */
    CALLS_LARGE = 60,
    CAP = 96,              /* states a point at most */
    CAP_LARGE = 16,
    NEST_EVERY = 600,      /* states between those that are followed up, on average */
    NEST_CAP = 5,
    NEST_CALLS = 14,
    CHECK_EVERY = 32,      /* states between those that are verified by mqe_check and drained */
    DAMAGE_EVERY = 8,      /* states between those whose newest checkpoint is damaged, on average */
    LARGE_EVERY = 8,
    LEADERS_EVERY = 3,     /* rounds between those with a second process, which dies ... */
    LEADER_TURNS = 6,      /* ... so many times */
};
static const uint32_t sectors[SECTORS] = {8, 64, 512, 4096};

struct tally {
    uint64_t generated, distinct, points;
};

struct t3 {
    struct layer layer;
    uint64_t round;
    struct tally tally[SECTORS];       /* of the first crash, by tearing */
    struct tally deeper[DEPTH_MAX];    /* [1] second crash, [2] third */
    uint64_t violations;
    uint64_t recoveries_refused;       /* before the creation was acknowledged */
    uint64_t fallbacks;                /* recoveries whose newest checkpoint was damaged */
    struct leader_counts leaders;
};

/* What a visitor needs: the promises of one recording. */
struct cut {
    struct t3 *t3;
    const struct wl_history *history;
    const struct mqe_settings *settings;
    const struct memory_trace *trace;
    enum wl_profile profile;
    uint32_t depth;
    bool from_creation;                /* step 1 is the creation */
    uint32_t sector;
    uint64_t visits;
    bool damaged;                      /* the newest checkpoint of this state */
    struct wl_model *sampled;          /* where the core's findings go when the state is sampled */
};

static const char *const event_names[] = {
    "create", "rename", "move", "unlink", "write", "write with data sync", "sync", "lost flush",
    "directory sync", "allocate", "truncate", "acknowledgement",
};

static int violation(struct cut *cut, const struct disk_state *state, const char *text)
{
    const struct memory_event *event = &cut->trace->events[state->event];
    cut->t3->violations += 1;
    printf("VIOLATION t3 seed %llu round %llu tearing %u crash %u: at event %u (%s%s): %s\n",
           (unsigned long long)cut->t3->layer.seed, (unsigned long long)cut->t3->round, cut->sector,
           cut->depth + 1, state->event, event_names[event->kind],
           state->in_flight ? ", in flight" : "", text);
    return 1;
}

static void prepare(void *arg, struct memory_io *files)
{
    (void)arg;
    memory_io_region_dir(files, WL_REGION_DIR);
}

/* ---- recordings ---- */

static bool unpromised(const char *name, bool keep_lock)
{
    return strncmp(name, "AMQERR", 6) == 0 || (!keep_lock && strcmp(name, "lock") == 0);
}

/* Writes into files that carry no promise become empty. */
static void thin_out(struct memory_trace *trace, bool keep_lock)
{
    uint32_t file[64];
    uint32_t count = 0;
    for (uint32_t i = 0; i < trace->start_count && count < MQX_ARRAY_COUNT(file); i++) {
        if (unpromised(trace->start[i].name, keep_lock)) {
            file[count++] = trace->start[i].file;
        }
    }
    for (uint32_t i = 0; i < trace->event_count; i++) {
        struct memory_event *event = &trace->events[i];
        if (event->kind == MEMORY_EV_CREATE && count < MQX_ARRAY_COUNT(file) &&
            unpromised(event->name, keep_lock)) {
            file[count++] = event->file;
        }
        for (uint32_t k = 0; event->kind == MEMORY_EV_WRITE && k < count; k++) {
            event->size = file[k] == event->file ? 0 : event->size;
        }
    }
}

static int show(struct cut *cut, uint32_t sector, uint32_t cap, uint64_t seed, struct tally *tally);

/* ---- a state is cut once more: its recovery and what comes after it is recorded ---- */

static int cut_again(struct cut *cut, struct workload *w, struct memory_trace *trace)
{
    struct cut next = {
        .t3 = cut->t3,
        .history = &w->history,
        .settings = cut->settings,
        .trace = trace,
        .profile = cut->profile,
        .depth = cut->depth + 1,
    };
    const uint64_t seed = wl_mix(w->random);
    const uint32_t sector = cut->profile == WL_LARGE ? 4096 : sectors[seed % SECTORS];
    thin_out(trace, false);
    return show(&next, sector, NEST_CAP, seed, &cut->t3->deeper[next.depth]);
}

static int go_on(struct cut *cut, const struct disk_state *state, mqe_manager *manager,
                 const struct wl_model *found)
{
    struct workload w;
    char text[WL_TROUBLE + 64];
    int result = 0;
    workload_init(&w, state->files, state->image_hash, cut->profile);
    w.settings = *cut->settings;
    w.next_id = (cut->depth + 2) * UINT64_C(1000000000) + state->event;
    w.traced = cut->t3->layer.traced;
    workload_adopt(&w, manager, found);
    if (workload_run(&w, cut->profile == WL_LARGE ? 3 : NEST_CALLS, true) != 0) {
        (void)snprintf(text, sizeof text, "at work after the recovery: %s", w.trouble);
        result = violation(cut, state, text);
    }
    struct memory_trace *trace = memory_io_take_trace(state->files);
    workload_leave(&w);
    if (result == 0) {
        result = cut_again(cut, &w, trace);
    }
    workload_fini(&w);
    memory_trace_free(trace);
    return result;
}

/* ---- the visitor ---- */

/* The heap, lookups and counts agree; prepared units can be ended, one way or the other; then
 * destructive gets bring the same as the browse. Changes `found`. */
static int check_closely(mqe_manager *manager, struct wl_model *found, bool commit, char *text,
                         size_t size)
{
    const int reason = mqe_check(manager);
    if (reason != 0) {
        (void)snprintf(text, size, "mqe_check: %d %s", reason, mqe_error_text());
        return -1;
    }
    wl_mark_ghosts(found);
    if (wl_end_all_prepared(manager, found, commit, text, size) != 0) {
        return -1;
    }
    return wl_drain(manager, found, text, size);
}

static const void *segment_bytes(const struct disk_state *state, const char *folder,
                                 uint64_t number, uint64_t *size)
{
    char path[200];
    const char *form = strcmp(folder, "archive") == 0 ? "%s/%s/0000000000-%010llu.psj"
                                                      : "%s/%s/%010llu.psj";
    (void)snprintf(path, sizeof path, form, state->path, folder, (unsigned long long)number);
    return memory_io_bytes(state->files, path, size);
}

/* Linear logging: every segment since the first is whole, in the journal or in the archive, and in
 * one of them. */
static int check_archive(const struct disk_state *state, const mqe_manager *manager, char *text,
                         size_t text_size)
{
    const struct mqx_journal *journal = manager->store.region.journal;
    const uint64_t newest = journal->segment[journal->active - 1].number;
    for (uint64_t number = 1; number <= newest; number++) {
        struct mqe_journal_scan scan;
        uint64_t size = 0, archived_size = 0;
        const void *here = segment_bytes(state, "journal", number, &size);
        const void *archived = segment_bytes(state, "archive", number, &archived_size);
        if ((here == NULL) == (archived == NULL) ||
            (archived != NULL &&
             mqe_journal_scan_open(&scan, archived, archived_size, NULL, number) != 0)) {
            (void)snprintf(text, text_size, "segment %llu of %llu is %s",
                           (unsigned long long)number, (unsigned long long)newest,
                           here == NULL && archived == NULL ? "gone"
                           : here != NULL                   ? "in journal and archive"
                                                            : mqe_error_text());
            return -1;
        }
    }
    return 0;
}

static int newest_name(void *arg, const char *name)
{
    char *to = arg;
    if (strlen(name) == 20 && strcmp(name + 16, ".psc") == 0 && strcmp(name, to) > 0) {
        memcpy(to, name, 21);
    }
    return 0;
}

/* Flips a bit of the newest checkpoint of some states, once the queue manager has been created. */
static void damage_checkpoint(struct cut *cut, const struct disk_state *state)
{
    char path[200], newest[32] = "";
    uint32_t done = 0, begun = 0;
    uint64_t size = 0;
    const uint64_t random = wl_mix(state->image_hash ^ (state->event * UINT64_C(77)) ^ 1);
    cut->damaged = false;
    wl_acked(state->acks, state->ack_count, &done, &begun);
    if (random % DAMAGE_EVERY != 0 || (cut->from_creation && done == 0)) {
        return;
    }
    (void)snprintf(path, sizeof path, "%s/checkpoint", state->path);
    const int dir = state->io->ops->open_dir(state->io, path);
    if (dir < 0 || state->io->ops->list(state->io, dir, newest_name, newest) != 0) {
        return;
    }
    (void)state->io->ops->close(state->io, dir);
    (void)snprintf(path, sizeof path, "%s/checkpoint/%s", state->path, newest);
    if (newest[0] != '\0' && memory_io_bytes(state->files, path, &size) != NULL && size > 0) {
        memory_io_flip_bit(state->files, path, random / DAMAGE_EVERY % (8 * size));
        cut->damaged = true;
        cut->t3->fallbacks += 1;
    }
}

/* Of a recovery from the older checkpoint: an image of the damaged one is lost. */
static bool is_judged_right(struct cut *cut, const struct disk_state *state,
                            const struct wl_model *found, char *text, size_t size)
{
    static struct wl_model expected;
    uint32_t done = 0, begun = 0;
    char ignored[WL_TROUBLE];
    if (wl_judge(cut->history, state->acks, state->ack_count, found, text, size) >= 0) {
        return true;
    }
    wl_acked(state->acks, state->ack_count, &done, &begun);
    for (uint32_t step = done; cut->damaged && step <= begun; step++) {
        expected = cut->history->step[step];
        wl_lose_volatile(&expected);
        if (wl_compare(found, &expected, ignored, sizeof ignored) == 0) {
            return true;
        }
    }
    return false;
}

static int check_outcome(struct cut *cut, const struct disk_state *state, mqe_manager *manager,
                 bool follow)
{
    static struct wl_model found[DEPTH_MAX]; /* one at each depth: visits nest */
    struct wl_model *mine = &found[cut->depth];
    char text[WL_TROUBLE];
    int result = 0;
    if (wl_look(manager, mine, text, sizeof text) != 0 ||
        !is_judged_right(cut, state, mine, text, sizeof text) ||
        (cut->settings->linear != 0 && check_archive(state, manager, text, sizeof text) != 0)) {
        result = violation(cut, state, text);
    } else if (cut->sampled != NULL) {
        *cut->sampled = *mine;
    } else if (follow) {
        return go_on(cut, state, manager, mine);
    } else if (cut->visits % CHECK_EVERY == 0 &&
               check_closely(manager, mine, cut->visits / CHECK_EVERY % 2 == 0, text,
                             sizeof text) != 0) {
        result = violation(cut, state, text);
    }
    workload_abandon(manager);
    return result;
}

static int recover(struct cut *cut, const struct disk_state *state)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    char text[WL_TROUBLE];
    uint32_t done = 0, begun = 0;
    cut->visits += 1;
    const uint64_t odds = cut->depth == 0 ? 1 : 4;
    const bool follow = cut->depth + 1 < DEPTH_MAX &&
                        wl_mix(state->image_hash ^ state->event) % NEST_EVERY < odds;
    if (follow) {
        memory_io_record(state->files, state->path);
        memory_io_ack(state->files, 2);
    }
    /* What continues after the recovery may need a region that outlives a death. */
    struct mqx_io *io = follow ? state->io
                               : fast_region_table(state->files, cut->settings->region_size);
    const int reason = mqx_manager_attach(io, state->path, cut->settings, &manager, &info);
    wl_acked(state->acks, state->ack_count, &done, &begun);
    if (reason == 0) {
        return check_outcome(cut, state, manager, follow && (!cut->from_creation || done > 0));
    }
    if (cut->from_creation && done == 0) {
        cut->t3->recoveries_refused += 1;
        return 0;
    }
    (void)snprintf(text, sizeof text, "recovery refused: %d %s: %s", reason,
                   mqe_reason_name(reason), mqe_error_text());
    return violation(cut, state, text);
}

static void write_message(FILE *file, uint32_t q, const struct wl_message *m)
{
    struct ps_object_name name;
    wl_name(q, &name);
    fprintf(file, "%.*s %d %d %u %u\n", (int)strcspn(name.name, " "), name.name,
            (int32_t)(m->id * 3), m->priority, m->placement, m->length);
}

/* Prepared unit `p` and its messages in the order of the calls. */
static void write_prepared(FILE *file, const struct wl_model *found, uint32_t p)
{
    bool more = true;
    fprintf(file, "prepared %u %u\n", p, found->prepared[p].serial);
    for (uint32_t order = 0; more; order++) {
        more = false;
        for (uint32_t q = 0; q < WL_QUEUES; q++) {
            for (uint32_t i = 0; i < found->queue[q].count; i++) {
                const struct wl_message *m = &found->queue[q].message[i];
                if (m->state != WL_AVAILABLE && m->unit == p && m->order == order) {
                    fprintf(file, "prepared %u %s ", p,
                            m->state == WL_PREPARED_PUT ? "PUT" : "GET");
                    write_message(file, q, m);
                    more = true;
                }
            }
        }
    }
}

/* One line a message in delivery order, for the second reader: queue, report field (three times the
 * message's id), priority, placement, length; then the prepared units. */
static void write_findings(const struct wl_model *found, const char *path)
{
    FILE *file = fopen(path, "w");
    for (uint32_t q = 0; file != NULL && q < WL_QUEUES; q++) {
        for (uint32_t i = 0; i < found->queue[q].count; i++) {
            if (found->queue[q].message[i].state == WL_AVAILABLE) {
                write_message(file, q, &found->queue[q].message[i]);
            }
        }
    }
    for (uint32_t p = 0; file != NULL && p < WL_PREPARED; p++) {
        if (found->prepared[p].there) {
            write_prepared(file, found, p);
        }
    }
    if (file == NULL || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* A state for T11: its image and what the core finds in it, unless it refuses a queue manager that
 * was not yet created. */
static int sample(struct cut *cut, const struct disk_state *state)
{
    static struct wl_model found;
    static uint64_t number;
    char path[512];
    const uint64_t refused = cut->t3->recoveries_refused;
    struct memory_image *image = memory_image_take(state->files, state->path);
    cut->sampled = &found;
    const int result = recover(cut, state);
    cut->sampled = NULL;
    if (result == 0 && refused == cut->t3->recoveries_refused) {
        (void)snprintf(path, sizeof path, "%s/%llu", cut->t3->layer.sample,
                       (unsigned long long)number++);
        if (mkdir(path, 0700) != 0 || memory_image_write(image, path) != 0) {
            perror(path);
            exit(2);
        }
        (void)snprintf(path, sizeof path, "%s/%llu.txt", cut->t3->layer.sample,
                       (unsigned long long)number - 1);
        write_findings(&found, path);
    }
    memory_image_free(image);
    return result;
}

/* With --keep the image of a violation is written as it was before the recovery. */
static int visit(void *arg, const struct disk_state *state)
{
    struct cut *cut = arg;
    const char *keep = cut->t3->layer.keep;
    if (cut->t3->layer.sample != NULL && cut->depth == 0 &&
        cut->visits % cut->t3->layer.every == 0) {
        return sample(cut, state);
    }
    struct memory_image *image = keep != NULL ? memory_image_take(state->files, state->path) : NULL;
    damage_checkpoint(cut, state);
    const int result = recover(cut, state);
    if (image != NULL && result != 0 && memory_image_write(image, keep) != 0) {
        fprintf(stderr, "cannot write into %s\n", keep);
    }
    memory_image_free(image);
    return result;
}

/* ---- rounds ---- */

static int show(struct cut *cut, uint32_t sector, uint32_t cap, uint64_t seed, struct tally *tally)
{
    struct disk_states_counts counts = {0};
    const struct disk_states_options options = {
        .sector = sector, .cap = cap, .seed = seed, .prepare = prepare, .arg = cut};
    cut->sector = sector;
    layer_where("t3: seed %llu round %llu tearing %u crash %u",
                (unsigned long long)cut->t3->layer.seed, (unsigned long long)cut->t3->round, sector,
                cut->depth + 1);
    const int result = disk_states_run(cut->trace, &options, visit, &counts);
    tally->generated += counts.generated;
    tally->distinct += counts.distinct;
    tally->points += counts.points;
    return result;
}

static int show_all(struct t3 *t3, struct workload *w, struct memory_trace *trace, uint64_t seed)
{
    const bool large = w->profile == WL_LARGE;
    int result = 0;
    for (uint32_t s = large ? 2 : 0; s < SECTORS && result == 0; s++) {
        struct cut cut = {
            .t3 = t3,
            .history = &w->history,
            .settings = &w->settings,
            .trace = trace,
            .profile = w->profile,
            .from_creation = true,
        };
        result = show(&cut, sectors[s], large ? CAP_LARGE : CAP, seed + s, &t3->tally[s]);
    }
    return result;
}

/* The calls of a round. In some a second process attaches now and then, and dies. */
static int work(struct t3 *t3, struct workload *w)
{
    const uint32_t calls = w->profile == WL_LARGE ? CALLS_LARGE : CALLS;
    if (t3->round % LEADERS_EVERY != 0 && t3->round % (2 * LARGE_EVERY) != LARGE_EVERY - 1) {
        return workload_run(w, calls, true);
    }
    int result = 0;
    for (uint32_t i = 0; i < LEADER_TURNS && result == 0; i++) {
        result = workload_run(w, calls / LEADER_TURNS / 2, true);
        if (result == 0 && w->manager == NULL) {
            result = workload_start(w);
        }
        result = result == 0 ? workload_leader_turn(w, &t3->leaders) : result;
    }
    return result == 0 ? workload_run(w, calls / LEADER_TURNS, true) : result;
}

static int run_round(struct t3 *t3)
{
    const uint64_t seed = wl_mix(t3->layer.seed * 1000003 + t3->round);
    struct memory_io *files = memory_io_new();
    struct workload w;
    const enum wl_profile profile =
        t3->round % LARGE_EVERY == LARGE_EVERY - 1 ? WL_LARGE : WL_SMALL;
    layer_where("t3: seed %llu round %llu, recording", (unsigned long long)t3->layer.seed,
                (unsigned long long)t3->round);
    fixed_random_reset(seed);
    workload_prepare(files);
    workload_init(&w, files, seed, profile);
    w.traced = t3->layer.traced;
    memory_io_record(files, WL_PATH);
    int result = workload_create(&w) != 0 || workload_start(&w) != 0 ||
                 work(t3, &w) != 0;
    if (result == 0 && w.manager != NULL && t3->round % 2 == 0) {
        result = workload_end(&w, true) != 0;
    }
    struct memory_trace *trace = memory_io_take_trace(files);
    workload_leave(&w);
    if (result != 0) {
        t3->violations += 1;
        printf("VIOLATION t3 seed %llu round %llu, live: %s\n", (unsigned long long)t3->layer.seed,
               (unsigned long long)t3->round, w.trouble);
    } else {
        thin_out(trace, t3->round % 8 == 0);
        result = show_all(t3, &w, trace, seed);
    }
    workload_fini(&w);
    memory_trace_free(trace);
    memory_io_free(files);
    return result;
}

static uint64_t total(const struct t3 *t3)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < SECTORS; s++) {
        sum += t3->tally[s].distinct;
    }
    for (uint32_t d = 1; d < DEPTH_MAX; d++) {
        sum += t3->deeper[d].distinct;
    }
    return sum;
}

static void print_row(const char *what, const struct tally *tally, const char *verdict)
{
    printf("t3  %-20s %10llu states %10llu distinct %9llu points  %s\n", what,
           (unsigned long long)tally->generated, (unsigned long long)tally->distinct,
           (unsigned long long)tally->points, verdict);
}

int main(int argc, char **argv)
{
    struct t3 t3 = {.violations = 0};
    layer_arguments(&t3.layer, argc, argv, 1000000);
    int result = 0;
    if (t3.layer.only != UINT64_MAX) {
        t3.round = t3.layer.only;
        result = run_round(&t3);
    }
    while (t3.layer.only == UINT64_MAX && result == 0 && total(&t3) < t3.layer.count &&
           !layer_time_is_up(&t3.layer)) {
        result = run_round(&t3);
        t3.round += 1;
    }
    const char *verdict = result == 0 ? "all right" : "VIOLATED";
    for (uint32_t s = 0; s < SECTORS; s++) {
        char what[32];
        (void)snprintf(what, sizeof what, "tearing %u bytes", sectors[s]);
        print_row(what, &t3.tally[s], verdict);
    }
    print_row("second crash", &t3.deeper[1], verdict);
    print_row("third crash", &t3.deeper[2], verdict);
    printf("t3  %-20s %10llu turns %11llu deaths in a call, %llu as leader, %llu steps happened\n",
           "a second process", (unsigned long long)t3.leaders.turns,
           (unsigned long long)t3.leaders.deaths, (unsigned long long)t3.leaders.as_leader,
           (unsigned long long)t3.leaders.happened);
    printf("t3  verdict: %s; %llu distinct states in %.0f s, %llu recoveries from the older "
           "checkpoint, %llu workloads, seed %llu\n", verdict, (unsigned long long)total(&t3),
           layer_seconds(&t3.layer), (unsigned long long)t3.fallbacks, (unsigned long long)t3.round,
           (unsigned long long)t3.layer.seed);
    return result == 0 ? 0 : 1;
}
