/*
 * disk_model.c - see disk_model.h.
 */
#include "disk_model.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

/* ---- hashing ---- */

static uint64_t bytes_hash(uint64_t offset, const uint8_t *bytes, uint64_t size)
{
    uint64_t hash = 0;
    for (uint64_t at = 0; at < size; at += 8) {
        uint64_t value = 0;
        memcpy(&value, bytes + at, size - at < 8 ? size - at : 8);
        hash ^= model_granule((offset + at) / 8, value);
    }
    return hash;
}

uint64_t model_hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
    }
    return hash;
}

/* ---- files ---- */

static struct mem_files *tree_of(struct model *model)
{
    return &model->stage->tree;
}

static uint32_t find_file(const struct model *model, uint32_t id)
{
    for (uint32_t i = model->file_count; i-- > 0;) {
        if (model->files[i].id == id) {
            return i;
        }
    }
    return NO_INDEX;
}

static struct model_dir *find_dir(const struct model *model, uint32_t id)
{
    for (uint32_t i = 0; i < model->dir_count; i++) {
        if (model->dirs[i].id == id) {
            return &model->dirs[i];
        }
    }
    return NULL;
}

static struct mem_node *add_file(struct model *model, uint32_t id)
{
    struct mem_node *node = mem_new(tree_of(model), false, false, 0600);

    node->opens++;
    node->user = model->file_count;
    model->files = mem_grow(model->files, model->file_count, &model->file_capacity,
                            sizeof model->files[0]);
    model->files[model->file_count++] = (struct model_file){.id = id, .node = node};
    return node;
}

static void need_view(struct model_dir *dir, uint32_t index)
{
    uint32_t before = dir->view_capacity;
    while (index >= dir->view_capacity) {
        dir->views = mem_grow(dir->views, dir->view_capacity, &dir->view_capacity,
                              sizeof dir->views[0]);
    }
    if (dir->view_capacity != before) {
        memset(dir->views + before, 0, (dir->view_capacity - before) * sizeof dir->views[0]);
    }
}

static struct mem_node *add_dir(struct model *model, uint32_t id, struct mem_node *node)
{
    if (node == NULL) {
        node = mem_new(tree_of(model), true, false, 0700);
    }
    node->opens++;
    node->user = model->dir_count;
    model->dirs = mem_grow(model->dirs, model->dir_count, &model->dir_capacity,
                           sizeof model->dirs[0]);
    model->dirs[model->dir_count] = (struct model_dir){.id = id, .node = node};
    need_view(&model->dirs[model->dir_count++], 0);
    return node;
}

/* Makes room for `size` bytes of cache, zeroed, in whole sectors. */
static void grow_cache(struct model *model, struct model_file *file, uint64_t size)
{
    uint64_t want = mqx_round_up(size, MEM_PAGE);
    if (want > file->cache_capacity) {
        uint64_t capacity = want > 2 * file->cache_capacity ? want : 2 * file->cache_capacity;
        file->cache = realloc(file->cache, capacity);
        mqx_check(file->cache != NULL);
        memset(file->cache + file->cache_capacity, 0, capacity - file->cache_capacity);
        file->cache_capacity = capacity;
        uint32_t sectors = (uint32_t)(capacity / model->sector);
        file->open_of = realloc(file->open_of, sectors * sizeof file->open_of[0]);
        mqx_check(file->open_of != NULL);
        memset(file->open_of + file->open_of_count, 0,
               (sectors - file->open_of_count) * sizeof file->open_of[0]);
        file->open_of_count = sectors;
    }
}

/* The durable bytes of a sector (zero behind the durable size); the stage is as frozen. */
static const uint8_t *durable_sector(const struct model *model, const struct model_file *file,
                                     uint32_t number)
{
    return file->node->data + (uint64_t)number * model->sector;
}

/* ---- versions of open sectors ---- */

static uint32_t new_version(struct model *model, const uint8_t *bytes)
{
    uint32_t index = model->version_free;

    if (index != NO_INDEX) {
        model->version_free = model->versions[index].next;
    } else {
        uint32_t before = model->version_capacity;
        model->versions = mem_grow(model->versions, model->version_count,
                                   &model->version_capacity, sizeof model->versions[0]);
        if (model->version_capacity != before) {
            model->bytes = realloc(model->bytes, (size_t)model->version_capacity * model->sector);
            mqx_check(model->bytes != NULL);
        }
        index = model->version_count++;
    }
    memcpy(model->bytes + (size_t)index * model->sector, bytes, model->sector);
    return index;
}

static bool has_version(const struct model *model, const struct model_open *open,
                        const uint8_t *bytes)
{
    for (uint32_t v = open->first_version; v != NO_INDEX; v = model->versions[v].next) {
        if (memcmp(model->bytes + (size_t)v * model->sector, bytes, model->sector) == 0) {
            return true;
        }
    }
    return false;
}

/* Notes what the cache has now as one more version of the sector, opening it when needed. */
static void note_version(struct model *model, uint32_t file_index, uint32_t number)
{
    struct model_file *file = &model->files[file_index];
    const uint8_t *now = file->cache + (uint64_t)number * model->sector;
    const uint8_t *old = durable_sector(model, file, number);
    uint64_t offset = (uint64_t)number * model->sector;
    bool same = memcmp(now, old, model->sector) == 0;

    if (file->open_of[number] == 0) {
        if (same) {
            return; /* nothing to choose */
        }
        uint64_t old_hash = bytes_hash(offset, old, model->sector);
        model->open = mem_grow(model->open, model->open_count, &model->open_capacity,
                               sizeof model->open[0]);
        model->open[model->open_count] = (struct model_open){
            .file = file_index,
            .number = number,
            .first_version = NO_INDEX,
            .zero_delta = old_hash,
            .can_be_zeroed = !model->no_zeroed && old_hash != 0,
        };
        file->open_of[number] = ++model->open_count;
    }
    struct model_open *open = &model->open[file->open_of[number] - 1];
    if (!same && !has_version(model, open, now)) {
        uint32_t version = new_version(model, now);
        uint64_t hash = bytes_hash(offset, now, model->sector);
        model->versions[version].delta = hash ^ open->zero_delta;
        model->versions[version].next = open->first_version;
        open->first_version = version;
        open->version_count++;
    }
}

/* Closes open sector `index`: its cached bytes become durable. */
static void close_sector(struct model *model, uint32_t index)
{
    struct model_open *open = &model->open[index];
    struct model_file *file = &model->files[open->file];
    uint64_t offset = (uint64_t)open->number * model->sector;

    file->hash ^= open->zero_delta ^ bytes_hash(offset, file->cache + offset, model->sector);
    uint64_t size = file->node->size;
    mqx_check(mem_write(tree_of(model), file->node, file->cache + offset, model->sector,
                        offset) == 0);
    file->node->size = size; /* the size is decided apart; see settle_size() */
    for (uint32_t v = open->first_version; v != NO_INDEX;) {
        uint32_t next = model->versions[v].next;
        model->versions[v].next = model->version_free;
        model->version_free = v;
        v = next;
    }
    file->open_of[open->number] = 0;
    *open = model->open[--model->open_count];
    if (index < model->open_count) {
        model->files[open->file].open_of[open->number] = index + 1;
    }
}

static void settle_size(struct model *model, struct model_file *file, uint64_t size)
{
    mem_touch(tree_of(model), file->node);
    file->durable_size = size;
    file->node->size = size;
    if (file->durable_size == file->cache_size) {
        file->largest = size;
    }
}

/* Everything that is open in [offset, offset + size) becomes durable. */
static void close_range(struct model *model, uint32_t file_index, uint64_t offset, uint64_t size)
{
    struct model_file *file = &model->files[file_index];
    uint64_t last = (offset + size - 1) / model->sector;

    for (uint64_t k = offset / model->sector; size > 0 && k <= last; k++) {
        if (file->open_of[k] != 0) {
            close_sector(model, file->open_of[k] - 1);
        }
    }
}

/* ---- events on content ---- */

static void write_cache(struct model *model, uint32_t file_index, const struct memory_event *event)
{
    struct model_file *file = &model->files[file_index];
    uint64_t end = event->offset + event->size;

    if (event->size == 0) {
        return;
    }
    grow_cache(model, file, end);
    if (event->data != NULL) {
        memcpy(file->cache + event->offset, event->data, event->size);
    } else {
        memset(file->cache + event->offset, 0, event->size);
    }
    file->cache_size = end > file->cache_size ? end : file->cache_size;
    file->largest = end > file->largest ? end : file->largest;
    uint64_t last = (end - 1) / model->sector;
    for (uint64_t k = event->offset / model->sector; k <= last; k++) {
        note_version(model, file_index, (uint32_t)k);
        uint32_t open = file->open_of[k];
        if (open != 0) {
            model->open[open - 1].stuck = false; /* dirty again: a flush would write it */
        }
    }
}

static void resize_cache(struct model *model, uint32_t file_index, uint64_t size)
{
    struct model_file *file = &model->files[file_index];
    uint64_t old = file->cache_size;

    grow_cache(model, file, size);
    file->cache_size = size;
    file->largest = size > file->largest ? size : file->largest;
    if (size < old) {
        memset(file->cache + size, 0, old - size);
        for (uint64_t k = size / model->sector; k <= (old - 1) / model->sector; k++) {
            note_version(model, file_index, (uint32_t)k);
        }
    }
}

static void sync_file(struct model *model, uint32_t file_index)
{
    for (uint32_t i = model->open_count; i-- > 0;) {
        if (i < model->open_count && model->open[i].file == file_index && !model->open[i].stuck) {
            close_sector(model, i);
        }
    }
    settle_size(model, &model->files[file_index], model->files[file_index].cache_size);
}

static void lose_range(struct model *model, uint32_t file_index, const struct memory_event *event)
{
    for (uint32_t i = 0; i < model->open_count; i++) {
        struct model_open *open = &model->open[i];
        uint64_t start = (uint64_t)open->number * model->sector;
        if (open->file == file_index && start < event->offset + event->size &&
            event->offset < start + model->sector) {
            open->stuck = true;
        }
    }
}

/* ---- events on names ---- */

static void names_add(struct mem_names *names, const char *name, struct mem_node *node)
{
    names->items = mem_grow(names->items, names->count, &names->capacity, sizeof names->items[0]);
    struct mem_entry *entry = &names->items[names->count++];
    memset(entry, 0, sizeof *entry);
    entry->node = node;
    memcpy(entry->name, name, strlen(name));
}

static struct mem_node *names_remove(struct mem_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i].name, name) == 0) {
            struct mem_node *node = names->items[i].node;
            names->items[i] = names->items[--names->count];
            return node;
        }
    }
    return NULL;
}

static void apply_change(struct mem_names *names, const struct model_change *change)
{
    if (change->kind == MEMORY_EV_CREATE) {
        names_add(names, change->name, change->node);
    } else if (change->kind == MEMORY_EV_UNLINK) {
        mqx_check(names_remove(names, change->name) != NULL);
    } else {
        mqx_check(names_remove(names, change->name) == change->node);
        (void)names_remove(names, change->to);
        names_add(names, change->to, change->node);
    }
}

static void add_change(struct model *model, const struct memory_event *event, struct mem_node *node)
{
    struct model_dir *dir = find_dir(model, event->dir);

    mqx_check(dir != NULL);
    dir->changes = mem_grow(dir->changes, dir->change_count, &dir->change_capacity,
                            sizeof dir->changes[0]);
    struct model_change *change = &dir->changes[dir->change_count++];
    *change = (struct model_change){.kind = event->kind, .node = node};
    memcpy(change->name, event->name, strlen(event->name));
    if (event->to != NULL) {
        memcpy(change->to, event->to, strlen(event->to));
    }
    need_view(dir, dir->change_count);
    struct mem_names *view = &dir->views[dir->change_count];
    view->count = 0;
    const struct mem_names *previous = &dir->views[dir->change_count - 1];
    for (uint32_t i = 0; i < previous->count; i++) {
        names_add(view, previous->items[i].name, previous->items[i].node);
    }
    apply_change(view, change);
}

/* Two changes, of two directories, that happen together. */
static void add_move(struct model *model, const struct memory_event *event, struct mem_node *node)
{
    const struct memory_event halves[] = {
        {.kind = MEMORY_EV_CREATE, .dir = (uint32_t)event->value, .name = event->name},
        {.kind = MEMORY_EV_UNLINK, .dir = event->dir, .name = event->name},
    };
    model->moves += 1;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(halves); i++) {
        add_change(model, &halves[i], node);
        struct model_dir *dir = find_dir(model, halves[i].dir);
        dir->changes[dir->change_count - 1].move = model->moves;
    }
}

/* Whether a directory keeps that half of a move: 1, 0; -1 when it is durable already. */
static int keeps_half(const struct model_dir *dir, uint32_t kept, uint32_t move)
{
    for (uint32_t i = 0; i < dir->change_count; i++) {
        if (dir->changes[i].move == move) {
            return i < kept;
        }
    }
    return -1;
}

bool model_moves_whole(const struct model *model, const uint32_t *kept)
{
    for (uint32_t d = 0; d < model->dir_count; d++) {
        for (uint32_t i = 0; i < model->dirs[d].change_count; i++) {
            const uint32_t move = model->dirs[d].changes[i].move;
            int other = -1;
            for (uint32_t e = 0; move != 0 && e < model->dir_count && other < 0; e++) {
                other = e != d ? keeps_half(&model->dirs[e], kept[e], move) : -1;
            }
            if (move != 0 && (i < kept[d]) != (other != 0)) {
                return false;
            }
        }
    }
    return true;
}

static bool is_named(const struct model *model, const struct mem_node *node)
{
    for (uint32_t d = 0; d < model->dir_count; d++) {
        const struct model_dir *dir = &model->dirs[d];
        for (uint32_t k = 0; k <= dir->change_count && k < dir->view_capacity; k++) {
            for (uint32_t i = 0; i < dir->views[k].count; i++) {
                if (dir->views[k].items[i].node == node) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Gives up files that no name can lead to any more. */
static void bury_files(struct model *model)
{
    for (uint32_t f = 0; f < model->file_count; f++) {
        struct model_file *file = &model->files[f];
        if (file->dead || is_named(model, file->node)) {
            continue;
        }
        close_range(model, f, 0, file->cache_capacity);
        file->dead = true;
        file->node->opens--;
        mem_thaw(tree_of(model), file->node);
        free(file->cache);
        free(file->open_of);
        file->node = NULL;
        file->cache = NULL;
        file->open_of = NULL;
    }
}

static void sync_names(struct model *model, struct model_dir *dir)
{
    if (dir->change_count > 0) {
        struct mem_names last = dir->views[dir->change_count];
        dir->views[dir->change_count] = dir->views[0];
        dir->views[0] = last;
        dir->change_count = 0;
        mem_set_names(tree_of(model), dir->node, &dir->views[0]);
        bury_files(model);
    }
}

/* ---- life and events ---- */

static void load_start(struct model *model, const struct memory_trace *trace)
{
    for (uint32_t i = 0; i < trace->start_count; i++) {
        const struct memory_trace_start *start = &trace->start[i];
        struct mem_node *node = start->is_dir ? add_dir(model, start->file, NULL)
                                              : add_file(model, start->file);
        if (!start->is_dir) {
            uint32_t index = find_file(model, start->file);
            struct memory_event event = {.size = start->size, .data = start->data};
            write_cache(model, index, &event);
            sync_file(model, index);
        }
        struct memory_event event = {
            .kind = MEMORY_EV_CREATE, .dir = start->dir, .name = start->name};
        add_change(model, &event, node);
        sync_names(model, find_dir(model, start->dir));
    }
}

void model_init(struct model *model, const struct memory_trace *trace, uint32_t sector,
                bool no_zeroed)
{
    mqx_check(sector >= 8 && sector <= MEM_PAGE && (sector & (sector - 1)) == 0);
    *model = (struct model){.sector = sector, .no_zeroed = no_zeroed, .version_free = NO_INDEX};
    model->stage = memory_io_new();
    struct mem_node *root = mem_make_dirs(tree_of(model), trace->path);
    (void)add_dir(model, trace->root, root);
    load_start(model, trace);
    mem_freeze(tree_of(model));
}

void model_fini(struct model *model)
{
    for (uint32_t i = 0; i < model->file_count; i++) {
        free(model->files[i].cache);
        free(model->files[i].open_of);
    }
    for (uint32_t i = 0; i < model->dir_count; i++) {
        for (uint32_t k = 0; k < model->dirs[i].view_capacity; k++) {
            free(model->dirs[i].views[k].items);
        }
        free(model->dirs[i].views);
        free(model->dirs[i].changes);
    }
    memory_io_free(model->stage);
    free(model->files);
    free(model->dirs);
    free(model->open);
    free(model->versions);
    free(model->bytes);
}

static struct mem_node *node_of(struct model *model, const struct memory_event *event)
{
    if (event->is_dir) {
        return find_dir(model, event->file)->node;
    }
    uint32_t index = find_file(model, event->file);
    mqx_check(index != NO_INDEX);
    return model->files[index].node;
}

static void apply_to_names(struct model *model, const struct memory_event *event)
{
    if (event->kind == MEMORY_EV_DIRSYNC) {
        sync_names(model, find_dir(model, event->dir));
    } else if (event->kind == MEMORY_EV_CREATE) {
        struct mem_node *node = event->is_dir ? add_dir(model, event->file, NULL)
                                              : add_file(model, event->file);
        add_change(model, event, node);
    } else if (event->kind == MEMORY_EV_MOVE) {
        add_move(model, event, node_of(model, event));
    } else {
        add_change(model, event, node_of(model, event));
    }
}

static void apply_to_content(struct model *model, const struct memory_event *event)
{
    uint32_t index = find_file(model, event->file);

    if (index == NO_INDEX || model->files[index].dead) {
        return; /* written or synced through a descriptor after its name went */
    }
    if (event->kind == MEMORY_EV_WRITE || event->kind == MEMORY_EV_DWRITE) {
        write_cache(model, index, event);
    } else if (event->kind == MEMORY_EV_SYNC) {
        sync_file(model, index);
    } else if (event->kind == MEMORY_EV_LOST) {
        lose_range(model, index, event);
    } else if (event->kind == MEMORY_EV_TRUNCATE) {
        resize_cache(model, index, event->size);
    } else if (event->offset + event->size > model->files[index].cache_size) {
        resize_cache(model, index, event->offset + event->size); /* ALLOCATE */
    }
}

void model_apply(struct model *model, const struct memory_event *event)
{
    switch (event->kind) {
    case MEMORY_EV_CREATE:
    case MEMORY_EV_RENAME:
    case MEMORY_EV_MOVE:
    case MEMORY_EV_UNLINK:
    case MEMORY_EV_DIRSYNC:
        apply_to_names(model, event);
        break;
    case MEMORY_EV_ACK:
        break;
    default:
        apply_to_content(model, event);
    }
    mem_freeze(tree_of(model));
}

void model_settle(struct model *model, const struct memory_event *event)
{
    uint32_t index = find_file(model, event->file);

    if (index != NO_INDEX && !model->files[index].dead) {
        struct model_file *file = &model->files[index];
        uint64_t end = mqx_round_up(event->offset + event->size, model->sector);
        end = end < file->cache_size ? end : file->cache_size;
        close_range(model, index, event->offset, event->size);
        settle_size(model, file, end > file->durable_size ? end : file->durable_size);
    }
    mem_freeze(tree_of(model));
}
