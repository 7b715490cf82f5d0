/*
 * disk_states.c - see disk_states.h: chooses states of the model and shows them.
 *
 * A state is a vector of digits, one for each open sector, then one for each file, then one for
 * each directory:
 *   sector     0 old, 1..n a version (1 the newest), n + 1 zeroed
 *   file       0 durable size, 1 cached size, 2 a sector boundary between them (chosen states only)
 *   directory  how many of its pending changes happened
 */
#include "disk_states.h"

#include "check.h"
#include "disk_model.h"

#include <stdlib.h>
#include <string.h>

struct seen_set { /* of 64-bit keys other than 0; open addressing */
    uint64_t *slots;
    uint64_t size; /* power of two */
    uint64_t count;
};

struct run {
    struct model model;
    const struct disk_states_options *options;
    struct disk_states_counts *counts;
    disk_state_visit visit;
    struct disk_state state; /* the fixed part of what the visitor sees */
    uint64_t *acks;
    uint32_t ack_capacity;
    struct seen_set seen;
    uint64_t random;
    uint32_t *digits;
    uint32_t *limits; /* a digit is below its limit */
    uint32_t digit_count;
    uint32_t digit_capacity;
    uint64_t *sizes;     /* of the state under construction, by file */
    uint64_t *hashes;    /* likewise */
    uint32_t file_capacity;
};

static uint64_t next_random(struct run *run)
{
    uint64_t x = run->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint32_t random_below(struct run *run, uint32_t bound)
{
    return (uint32_t)((next_random(run) >> 32) * bound >> 32);
}

/* ---- the set of states seen ---- */

static void seen_grow(struct seen_set *set)
{
    struct seen_set bigger = {.size = set->size == 0 ? 4096 : 4 * set->size, .count = set->count};

    bigger.slots = calloc(bigger.size, sizeof bigger.slots[0]);
    mqx_check(bigger.slots != NULL);
    for (uint64_t i = 0; i < set->size; i++) {
        if (set->slots[i] != 0) {
            uint64_t at = set->slots[i] & (bigger.size - 1);
            while (bigger.slots[at] != 0) {
                at = (at + 1) & (bigger.size - 1);
            }
            bigger.slots[at] = set->slots[i];
        }
    }
    free(set->slots);
    *set = bigger;
}

/* True when the key is new. */
static bool seen_add(struct seen_set *set, uint64_t key)
{
    key = key == 0 ? 1 : key;
    if (2 * set->count >= set->size) {
        seen_grow(set);
    }
    uint64_t at = key & (set->size - 1);
    while (set->slots[at] != 0) {
        if (set->slots[at] == key) {
            return false;
        }
        at = (at + 1) & (set->size - 1);
    }
    set->slots[at] = key;
    set->count++;
    return true;
}

/* ---- from digits to an image ---- */

static uint32_t *file_digits(struct run *run)
{
    return run->digits + run->model.open_count;
}

static uint32_t *dir_digits(struct run *run)
{
    return file_digits(run) + run->model.file_count;
}

/* The version that the sector's digit names; NO_INDEX for old and zeroed. */
static uint32_t picked_version(const struct model *model, const struct model_open *open,
                               uint32_t digit)
{
    if (digit == 0 || digit > open->version_count) {
        return NO_INDEX;
    }
    uint32_t version = open->first_version;
    for (uint32_t k = 1; k < digit; k++) {
        version = model->versions[version].next;
    }
    return version;
}

static uint64_t size_option(struct run *run, const struct model_file *file, uint32_t digit)
{
    uint64_t low = file->durable_size < file->cache_size ? file->durable_size : file->cache_size;
    uint64_t sectors = (file->largest - low) / run->model.sector + 1;

    if (digit == 2) {
        uint64_t size = low + next_random(run) % sectors * run->model.sector;
        return size < file->largest ? size : file->largest;
    }
    return digit == 0 ? file->durable_size : file->cache_size;
}

/* Sizes and content hashes of all files for the present digits. */
static void measure(struct run *run)
{
    struct model *model = &run->model;

    for (uint32_t f = 0; f < model->file_count; f++) {
        run->hashes[f] = model->files[f].hash;
        run->sizes[f] = model->files[f].dead
                            ? 0 : size_option(run, &model->files[f], file_digits(run)[f]);
    }
    for (uint32_t i = 0; i < model->open_count; i++) {
        const struct model_open *open = &model->open[i];
        if (run->digits[i] == 0) {
            continue;
        }
        uint32_t version = picked_version(model, open, run->digits[i]);
        run->hashes[open->file] ^= version == NO_INDEX ? open->zero_delta
                                                       : model->versions[version].delta;
        uint64_t end = ((uint64_t)open->number + 1) * model->sector;
        uint64_t largest = model->files[open->file].largest;
        end = end < largest ? end : largest;
        if (version != NO_INDEX && end > run->sizes[open->file]) {
            run->sizes[open->file] = end;
        }
    }
}

static uint64_t hash_dir(struct run *run, const struct mem_node *node, uint32_t depth)
{
    uint32_t index = node->user;
    const struct mem_names *names = &run->model.dirs[index].views[dir_digits(run)[index]];
    uint64_t hash = 0x2545f4914f6cdd1du + depth;

    mqx_check(depth < 16);
    for (uint32_t i = 0; i < names->count; i++) {
        const struct mem_node *child = names->items[i].node;
        uint64_t name = model_hash_name(names->items[i].name);
        uint32_t user = child->user;
        uint64_t content = child->directory
                               ? hash_dir(run, child, depth + 1)
                               : model_granule(run->sizes[user], run->hashes[user] + 1);
        hash += model_granule(name, content + 1);
    }
    return hash;
}

static void build(struct run *run)
{
    struct model *model = &run->model;
    struct mem_files *tree = &model->stage->tree;

    for (uint32_t i = 0; i < model->open_count; i++) {
        const struct model_open *open = &model->open[i];
        if (run->digits[i] == 0) {
            continue;
        }
        uint32_t version = picked_version(model, open, run->digits[i]);
        const uint8_t *bytes =
            version == NO_INDEX ? NULL : model->bytes + (size_t)version * model->sector;
        mqx_check(mem_write(tree, model->files[open->file].node, bytes, model->sector,
                            (uint64_t)open->number * model->sector) == 0);
    }
    for (uint32_t f = 0; f < model->file_count; f++) {
        struct mem_node *node = model->files[f].node;
        if (!model->files[f].dead && node->size != run->sizes[f]) {
            mqx_check(mem_set_size(tree, node, run->sizes[f]) == 0);
        }
    }
    for (uint32_t d = 0; d < model->dir_count; d++) {
        uint32_t kept = dir_digits(run)[d];
        if (kept > 0) {
            mem_set_names(tree, model->dirs[d].node, &model->dirs[d].views[kept]);
        }
    }
}

/* Shows the state of the present digits unless an equal one was shown. */
static int show(struct run *run)
{
    if (!model_moves_whole(&run->model, dir_digits(run))) {
        return 0;
    }
    run->counts->generated++;
    measure(run);
    run->state.image_hash = hash_dir(run, run->model.dirs[0].node, 0);
    uint64_t acks = (run->state.ack_count + UINT64_C(1)) * 0x9e3779b97f4a7c15u;
    if (!seen_add(&run->seen, run->state.image_hash ^ acks)) {
        return 0;
    }
    run->counts->distinct++;
    build(run);
    int result = run->visit(run->options->arg, &run->state);
    memory_io_restore(run->model.stage);
    return result;
}

/* ---- choosing digits ---- */

/* Sets the limits; returns the number of states, or UINT64_MAX when that overflows. */
static uint64_t set_limits(struct run *run)
{
    struct model *model = &run->model;
    uint64_t total = 1;

    run->digit_count = model->open_count + model->file_count + model->dir_count;
    if (run->digit_count > run->digit_capacity) {
        run->digit_capacity = 2 * run->digit_count;
        run->digits = realloc(run->digits, run->digit_capacity * sizeof run->digits[0]);
        run->limits = realloc(run->limits, run->digit_capacity * sizeof run->limits[0]);
        mqx_check(run->digits != NULL && run->limits != NULL);
    }
    if (model->file_count > run->file_capacity) {
        run->file_capacity = 2 * model->file_count;
        run->sizes = realloc(run->sizes, run->file_capacity * sizeof run->sizes[0]);
        run->hashes = realloc(run->hashes, run->file_capacity * sizeof run->hashes[0]);
        mqx_check(run->sizes != NULL && run->hashes != NULL);
    }
    uint32_t *limit = run->limits;
    for (uint32_t i = 0; i < model->open_count; i++) {
        *limit++ = 1 + model->open[i].version_count + model->open[i].can_be_zeroed;
    }
    for (uint32_t f = 0; f < model->file_count; f++) {
        const struct model_file *file = &model->files[f];
        *limit++ = !file->dead && file->durable_size != file->cache_size ? 2 : 1;
    }
    for (uint32_t d = 0; d < model->dir_count; d++) {
        *limit++ = model->dirs[d].change_count + 1;
    }
    for (uint32_t i = 0; i < run->digit_count; i++) {
        total = total > UINT64_MAX / run->limits[i] ? UINT64_MAX : total * run->limits[i];
    }
    return total;
}

static int show_all(struct run *run)
{
    uint32_t i;
    int result;

    memset(run->digits, 0, run->digit_count * sizeof run->digits[0]);
    do {
        result = show(run);
        for (i = 0; i < run->digit_count && ++run->digits[i] == run->limits[i]; i++) {
            run->digits[i] = 0;
        }
    } while (result == 0 && i < run->digit_count); /* until the counter wraps around */
    return result;
}

enum sector_choice { CHOOSE_OLD, CHOOSE_NEW, CHOOSE_ZEROED };

static uint32_t sector_digit(const struct run *run, uint32_t i, enum sector_choice choice)
{
    const struct model_open *open = &run->model.open[i];
    if (choice == CHOOSE_NEW) {
        return open->version_count > 0 ? 1 : 0;
    }
    return choice == CHOOSE_ZEROED && open->can_be_zeroed ? open->version_count + 1 : 0;
}

/* All sectors alike; sizes and names all durable or all cached. */
static void choose_alike(struct run *run, enum sector_choice choice, bool cached)
{
    for (uint32_t i = 0; i < run->digit_count; i++) {
        run->digits[i] = i < run->model.open_count ? sector_digit(run, i, choice)
                         : cached                  ? run->limits[i] - 1
                                                   : 0;
    }
}

/* The telling states number 0, 1, ...; false when there is no such number. */
static bool choose_telling(struct run *run, uint32_t number)
{
    static const struct {
        enum sector_choice choice;
        bool cached;
    } alike[] = {{CHOOSE_OLD, false}, {CHOOSE_NEW, true},  {CHOOSE_OLD, true},
                 {CHOOSE_NEW, false}, {CHOOSE_ZEROED, true}};
    uint32_t opens = run->model.open_count;

    if (number < MQX_ARRAY_COUNT(alike)) {
        choose_alike(run, alike[number].choice, alike[number].cached);
        return true;
    }
    number -= (uint32_t)MQX_ARRAY_COUNT(alike);
    if (number >= 3 * opens) {
        return false;
    }
    uint32_t odd = 3 * opens > run->options->cap / 2 ? random_below(run, opens) : number / 3;
    choose_alike(run, number % 3 == 2 ? CHOOSE_OLD : CHOOSE_NEW, true);
    run->digits[odd] = sector_digit(run, odd, number % 3 == 0   ? CHOOSE_OLD
                                              : number % 3 == 1 ? CHOOSE_ZEROED
                                                                : CHOOSE_NEW);
    return true;
}

/* Any digit below the limit; 0 and the last are likelier. */
static uint32_t random_digit(struct run *run, uint32_t limit)
{
    uint32_t way = random_below(run, 4);
    return way == 0 ? 0 : way == 1 ? limit - 1 : random_below(run, limit);
}

/* How the sectors of one file fare in one random state. */
struct fate {
    uint32_t way;  /* 0 all old, 1 all new, 2 new below `cut`, 3 new from `cut` on, 4.. mixed */
    uint32_t cut;
    uint32_t bias; /* of 256: chance that a sector of a mixed file is not the likelier one */
    bool new_likelier;
};

/* The fate of a file in the state with this random number: the same for all its sectors. */
static struct fate fate_of(const struct model *model, uint64_t state, uint32_t file)
{
    uint64_t r = model_granule(file + UINT64_C(1), state | 1);
    return (struct fate){
        .way = (uint32_t)(r & 7u),
        .cut = model->open[(r >> 16 & 0xffffffu) % model->open_count].number,
        .bias = 2u << (r >> 8 & 7u) % 7,
        .new_likelier = (r >> 4 & 1u) != 0,
    };
}

static void choose_random(struct run *run)
{
    struct model *model = &run->model;
    struct fate fate = {0, 0, 0, false};
    uint64_t state = next_random(run);
    uint32_t file = NO_INDEX;

    for (uint32_t i = 0; i < model->open_count; i++) {
        const struct model_open *open = &model->open[i];
        if (open->file != file) {
            file = open->file;
            fate = fate_of(model, state, file);
        }
        bool fresh = fate.way == 1 || (fate.way == 2 && open->number < fate.cut) ||
                     (fate.way == 3 && open->number >= fate.cut) ||
                     (fate.way > 3 && fate.new_likelier);
        run->digits[i] = sector_digit(run, i, fresh ? CHOOSE_NEW : CHOOSE_OLD);
        if (fate.way > 3 && random_below(run, 256) < fate.bias) {
            run->digits[i] = random_below(run, run->limits[i]);
        }
    }
    for (uint32_t f = 0; f < model->file_count; f++) {
        file_digits(run)[f] = run->limits[model->open_count + f] > 1 ? random_below(run, 3) : 0;
    }
    for (uint32_t d = 0; d < model->dir_count; d++) {
        dir_digits(run)[d] = random_digit(run, model->dirs[d].change_count + 1);
    }
}

static int show_some(struct run *run)
{
    uint32_t shown = 0;
    int result = 0;

    while (result == 0 && shown < run->options->cap / 2 && choose_telling(run, shown)) {
        result = show(run);
        shown++;
    }
    for (; result == 0 && shown < run->options->cap; shown++) {
        choose_random(run);
        result = show(run);
    }
    return result;
}

/* ---- the replay ---- */

static int show_point(struct run *run, uint32_t event, bool in_flight)
{
    const struct disk_states_options *options = run->options;

    if (event < options->first_event) {
        return 0;
    }
    run->state.event = event;
    run->state.in_flight = in_flight;
    run->state.acks = run->acks;
    run->counts->points++;
    if (set_limits(run) <= options->cap) {
        run->counts->enumerated++;
        return show_all(run);
    }
    return show_some(run);
}

static void note_ack(struct run *run, const struct memory_event *event)
{
    run->acks = mem_grow(run->acks, run->state.ack_count, &run->ack_capacity, sizeof run->acks[0]);
    run->acks[run->state.ack_count++] = event->value;
}

static int replay(struct run *run, const struct memory_trace *trace)
{
    uint32_t last = run->options->last_event;
    int result = 0;

    for (uint32_t i = 0; i < trace->event_count && result == 0 && (last == 0 || i <= last); i++) {
        const struct memory_event *event = &trace->events[i];
        model_apply(&run->model, event);
        if (event->kind == MEMORY_EV_ACK) {
            note_ack(run, event);
        }
        if (event->kind == MEMORY_EV_DWRITE) {
            result = show_point(run, i, true);
            model_settle(&run->model, event);
        }
        if (result == 0) {
            result = show_point(run, i, false);
        }
    }
    return result;
}

int disk_states_run(const struct memory_trace *trace, const struct disk_states_options *options,
                    disk_state_visit visit, struct disk_states_counts *counts)
{
    struct run run = {.options = options, .counts = counts, .visit = visit,
                      .random = options->seed};

    mqx_check(options->cap > 0);
    model_init(&run.model, trace, options->sector, options->no_zeroed);
    if (options->prepare != NULL) {
        options->prepare(options->arg, run.model.stage);
        memory_io_freeze(run.model.stage);
    }
    run.state.files = run.model.stage;
    run.state.io = memory_io_table(run.model.stage);
    run.state.path = trace->path;
    run.state.sector = options->sector;
    int result = replay(&run, trace);
    model_fini(&run.model);
    free(run.acks);
    free(run.seen.slots);
    free(run.digits);
    free(run.limits);
    free(run.sizes);
    free(run.hashes);
    return result;
}
