/*
 * run_t12.c - layer T12: damaged files, recovered by the real engine.
 *
 *     run_t12 --count N --seed S --time SECONDS [--only CASE]
 *
 * With --count N above 1 only each N-th case is tried, for a quick look.
 *
 * An image is a queue manager whose first segment has 64 KiB and is nearly full. Of the file under
 * attack every single bit is flipped, every truncation made, every ordered pair of 512-byte sectors
 * put over each other, every sector zeroed. Each damaged image is opened: right (everything is
 * there), refused with a reason and the name of a file, or lost: opened with something missing.
 *
 *   marked        the last batch is covered by a mark page: nothing may be lost.
 *   unmarked      it is not: nothing but the last batch may be lost (promise P7), which is counted.
 *   checkpoint    two checkpoints that list messages; the newer one is under attack, and everything
 *                 is there whatever becomes of it: the older one takes its place.
 *   both          the same when the older one is damaged: the journal is there from its first
 *                 segment on and says everything.
 *   head          HEAD is under attack: a start with one good page finds everything.
 */
#include "journal/group_commit.h"
#include "fixtures/require.h"
#include "fast_region.h"
#include "layer.h"
#include "workload.h"

#include <stdio.h>
#include <string.h>

enum { SEGMENT = 65536, SECTOR = 512, UNIT_MESSAGES = 5, MESSAGES = 4, LENGTH = 1200 };

enum image_kind { MARKED, UNMARKED, CHECKPOINT, BOTH, HEAD, IMAGE_KINDS };
static const char *const image_names[IMAGE_KINDS] = {"marked", "unmarked", "checkpoint", "both",
                                                     "head"};

enum attack { FLIPS, TRUNCATIONS, SWAPS, ZEROED, ATTACKS };
static const char *const attack_names[ATTACKS] = {"bit flips", "truncations", "sector swaps",
                                                  "zeroed sectors"};

struct tally {
    uint64_t cases, right, refused, last_lost;
};

struct t12 {
    struct layer layer;
    struct memory_io *files;
    struct workload w;
    enum image_kind image;
    char path[128];                    /* of the file under attack */
    uint8_t original[1 << 20];
    uint64_t size;
    uint64_t number;                   /* of the case */
    uint64_t violations;
    struct tally tally[IMAGE_KINDS][ATTACKS];
};

/* ---- images ---- */

struct names { /* of checkpoints */
    char newest[64], older[64];
    uint32_t count;
};

static int one_name(void *arg, const char *name)
{
    struct names *to = arg;
    if (strstr(name, ".psc") == NULL) {
        return 0;
    }
    to->count += 1;
    if (strcmp(name, to->newest) > 0) {
        memcpy(to->older, to->newest, sizeof to->older);
        (void)snprintf(to->newest, sizeof to->newest, "%s", name);
    } else {
        (void)snprintf(to->older, sizeof to->older, "%s", name);
    }
    return 0;
}

/* The newest checkpoint is attacked; the older one may be damaged before. */
static void find_checkpoint(struct t12 *t12)
{
    struct names names = {.count = 0};
    struct mqx_io *io = t12->w.io;
    const int dir = io->ops->open_dir(io, WL_PATH "/checkpoint");
    REQUIRE(dir >= 0);
    REQUIRE(io->ops->list(io, dir, one_name, &names) == 0);
    REQUIRE(names.count == 2);
    (void)io->ops->close(io, dir);
    if (t12->image == BOTH) {
        (void)snprintf(t12->path, sizeof t12->path, "%s/checkpoint/%s", WL_PATH, names.older);
        memory_io_flip_bit(t12->files, t12->path, 8 * 500);
    }
    (void)snprintf(t12->path, sizeof t12->path, "%s/checkpoint/%s", WL_PATH, names.newest);
}

/* Of three prepared units one waits, with an image of a non-persistent message; two have been
 * committed in one record. */
static int use_units(struct workload *w)
{
    int result = workload_put(w, 0, false, LENGTH) || workload_fill(w, 0, UNIT_MESSAGES, LENGTH) ||
                 workload_get_in_unit(w, 0, 0, 0);
    for (uint32_t u = 0; u < WL_PREPARED && result == 0; u++) {
        result = workload_get_in_unit(w, 0, u, 0) || workload_make_prepared(w, u, u, true);
    }
    return result || workload_end_prepared(w, 6, true);
}

/* Fills the segment to its last page but one (or two), then marks it or not, then "dies". */
static int make_image(struct t12 *t12, uint64_t seed)
{
    struct workload *w = &t12->w;
    memory_io_restore(t12->files);
    fixed_random_reset(seed);
    workload_init(w, t12->files, seed, WL_SMALL);
    w->settings.segment_size = SEGMENT;
    w->settings.first_segment_size = SEGMENT;
    const bool two = t12->image == CHECKPOINT || t12->image == BOTH;
    int result = workload_create(w) != 0 || workload_start(w) != 0 || workload_define(w, 0) != 0;
    if (result == 0 && two) { /* before the prepared unit, which keeps the begin of later ones */
        result = workload_fill(w, 0, 1, LENGTH) != 0 || mqe_checkpoint(w->manager) != 0;
    }
    result = result || use_units(w) != 0 || workload_fill(w, 0, MESSAGES, LENGTH) != 0;
    if (result == 0 && two) {
        result = mqe_checkpoint(w->manager);
    }
    if (result == 0 && t12->image == MARKED) {
        result = mqx_flush_mark(&w->manager->store);
    }
    if (result != 0) {
        printf("VIOLATION t12: making the %s image: %s\n", image_names[t12->image], w->trouble);
        return 1;
    }
    workload_leave(w);
    if (two) {
        find_checkpoint(t12);
    } else if (t12->image == HEAD) {
        (void)snprintf(t12->path, sizeof t12->path, "%s/HEAD", WL_PATH);
    } else {
        (void)snprintf(t12->path, sizeof t12->path, "%s/journal/0000000001.psj", WL_PATH);
    }
    const uint8_t *bytes = memory_io_bytes(t12->files, t12->path, &t12->size);
    REQUIRE(bytes != NULL && t12->size <= sizeof t12->original);
    memcpy(t12->original, bytes, t12->size);
    return 0;
}

/* The region of the process that "died" is gone too: this is another boot. */
static void freeze_image(struct t12 *t12)
{
    struct memory_image *image = memory_image_take(t12->files, WL_PATH);
    memory_io_free(t12->files);
    t12->files = memory_io_new();
    workload_prepare(t12->files);
    memory_image_load(t12->files, WL_PATH, image);
    memory_image_free(image);
    memory_io_freeze(t12->files);
}

/* ---- one case ---- */

static int violation(struct t12 *t12, enum attack attack, uint64_t at, const char *text)
{
    t12->violations += 1;
    printf("VIOLATION t12 seed %llu, %s image, %s, number %llu: %s\n",
           (unsigned long long)t12->layer.seed, image_names[t12->image], attack_names[attack],
           (unsigned long long)at, text);
    return 1;
}

/* Which outcome an image allows: the older checkpoint, the whole journal, or the other page takes
 * the place of what is damaged. */
static const char *why_wrong(const struct t12 *t12, enum attack attack, uint64_t at, bool opened)
{
    if ((t12->image == CHECKPOINT || t12->image == BOTH) && !opened) {
        return "refused, although the older checkpoint or the whole journal is there";
    }
    if (t12->image == HEAD && !opened && (attack != TRUNCATIONS || at >= MQX_PAGE_SIZE)) {
        return "refused, although a page of HEAD is good";
    }
    return t12->image == HEAD && opened && attack == TRUNCATIONS && at < MQX_PAGE_SIZE
               ? "opened without a good page of HEAD"
               : NULL;
}

static int check_outcome(struct t12 *t12, enum attack attack, uint64_t at, mqe_manager *manager)
{
    static struct wl_model found;
    struct tally *tally = &t12->tally[t12->image][attack];
    const struct wl_history *history = &t12->w.history;
    const uint32_t done = t12->w.done;
    char text[WL_TROUBLE];
    if (wl_look(manager, &found, text, sizeof text) != 0) {
        if (wl_refusal() == MQRC_OBJECT_DAMAGED) { /* a body is read when it is requested */
            tally->refused += 1;
            return 0;
        }
        return violation(t12, attack, at, text);
    }
    if (wl_compare(&found, &history->step[done], text, sizeof text) == 0) {
        tally->right += 1;
        return 0;
    }
    if (t12->image == UNMARKED &&
        wl_compare(&found, &history->step[done - 1], text, sizeof text) == 0) {
        tally->last_lost += 1;
        return 0;
    }
    return violation(t12, attack, at, text);
}

static int open_damaged(struct t12 *t12, enum attack attack, uint64_t at)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    struct tally *tally = &t12->tally[t12->image][attack];
    int result = 0;
    tally->cases += 1;
    layer_where("t12: seed %llu, %s image, %s, number %llu", (unsigned long long)t12->layer.seed,
                image_names[t12->image], attack_names[attack], (unsigned long long)at);
    struct mqx_io *io = fast_region_table(t12->files, t12->w.settings.region_size);
    const int reason = mqx_manager_attach(io, WL_PATH, &t12->w.settings, &manager, &info);
    const char *wrong = why_wrong(t12, attack, at, reason == 0);
    if (reason == 0) {
        result = wrong != NULL ? violation(t12, attack, at, wrong)
                               : check_outcome(t12, attack, at, manager);
        workload_abandon(manager);
    } else if (wrong != NULL) {
        result = violation(t12, attack, at, wrong);
    } else if (reason == MQRC_OBJECT_DAMAGED && (strstr(mqe_error_text(), ".ps") != NULL ||
                                                 strstr(mqe_error_text(), "HEAD") != NULL)) {
        tally->refused += 1;
    } else {
        char text[WL_TROUBLE];
        (void)snprintf(text, sizeof text, "refused without a useful text: %d %s", reason,
                       mqe_error_text());
        result = violation(t12, attack, at, text);
    }
    memory_io_restore(t12->files);
    return result;
}

/* ---- attacks ---- */

static uint64_t attack_count(const struct t12 *t12, enum attack attack)
{
    const uint64_t whole = t12->size / SECTOR;
    switch (attack) {
    case FLIPS: return 8 * t12->size;
    case TRUNCATIONS: return t12->size;
    case SWAPS: return whole * (whole - 1);
    default: return (t12->size + SECTOR - 1) / SECTOR;
    }
}

static void damage(struct t12 *t12, enum attack attack, uint64_t at)
{
    static const uint8_t zeroes[SECTOR];
    const uint64_t whole = t12->size / SECTOR;
    const uint64_t rest = t12->size - at * SECTOR;
    if (attack == FLIPS) {
        memory_io_flip_bit(t12->files, t12->path, at);
    } else if (attack == TRUNCATIONS) {
        memory_io_cut(t12->files, t12->path, at);
    } else if (attack == ZEROED) {
        memory_io_patch(t12->files, t12->path, at * SECTOR, zeroes, rest < SECTOR ? rest : SECTOR);
    } else { /* sector `from` was written to the place of sector `to`, where it does not belong */
        const uint64_t to = at / (whole - 1), other = at % (whole - 1);
        const uint64_t from = other < to ? other : other + 1;
        memory_io_patch(t12->files, t12->path, to * SECTOR, t12->original + from * SECTOR, SECTOR);
    }
}

static int attack_image(struct t12 *t12)
{
    int result = 0;
    for (enum attack attack = FLIPS; attack < ATTACKS && result == 0; attack++) {
        const uint64_t count = attack_count(t12, attack);
        for (uint64_t at = 0; at < count && result == 0; at++) {
            t12->number += 1;
            if (layer_time_is_up(&t12->layer)) {
                return 0;
            }
            if (at > 0 && t12->layer.count > 1 && t12->number % t12->layer.count != 0) {
                continue; /* a sample: the first case of each kind, then each count-th case */
            }
            if (t12->layer.only == UINT64_MAX || t12->layer.only == t12->number) {
                damage(t12, attack, at);
                result = open_damaged(t12, attack, at);
            }
        }
    }
    return result;
}

static int run_image(struct t12 *t12, enum image_kind image)
{
    t12->image = image;
    int result = make_image(t12, wl_mix(t12->layer.seed));
    if (result == 0) {
        freeze_image(t12);
        result = attack_image(t12);
    }
    workload_fini(&t12->w);
    return result;
}

int main(int argc, char **argv)
{
    static struct t12 t12;
    uint64_t cases = 0, lost = 0;
    int result = 0;
    layer_arguments(&t12.layer, argc, argv, 1);
    for (enum image_kind image = MARKED; image < IMAGE_KINDS && result == 0; image++) {
        t12.files = memory_io_new();
        workload_prepare(t12.files);
        memory_io_freeze(t12.files);
        result = run_image(&t12, image);
        memory_io_free(t12.files);
        for (enum attack attack = FLIPS; attack < ATTACKS; attack++) {
            const struct tally *t = &t12.tally[image][attack];
            printf("t12 %-10s %-14s %8llu cases: %8llu right, %8llu refused, %6llu lost (last "
                   "batch)\n", image_names[image], attack_names[attack],
                   (unsigned long long)t->cases, (unsigned long long)t->right,
                   (unsigned long long)t->refused, (unsigned long long)t->last_lost);
            cases += t->cases;
            lost += t->last_lost;
        }
    }
    printf("t12 verdict: %s; %llu cases in %.0f s, %llu silent losses, %llu of the unmarked last "
           "batch (P7), seed %llu\n", result == 0 ? "all right" : "VIOLATED",
           (unsigned long long)cases, layer_seconds(&t12.layer), (unsigned long long)t12.violations,
           (unsigned long long)lost, (unsigned long long)t12.layer.seed);
    return result == 0 ? 0 : 1;
}
