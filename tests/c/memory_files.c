/*
 * memory_files.c - see memory_files.h.
 */
#include "memory_files.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NO_SLICE = UINT32_MAX, PUNCH_ABOVE = 4 << 20 };

void *mem_grow(void *items, uint32_t count, uint32_t *capacity, size_t item_size)
{
    if (count < *capacity) {
        return items;
    }
    *capacity = *capacity == 0 ? 8 : 2 * *capacity;
    items = realloc(items, *capacity * item_size);
    mqx_check(items != NULL);
    return items;
}

static uint8_t *map_slices(int fd, int protection)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *at = mmap(NULL, MEM_SLICES * MEM_FILE_RESERVE, protection, flags | MAP_NORESERVE, fd, 0);
    mqx_check(at != MAP_FAILED);
    return at;
}

void mem_init(struct mem_files *files)
{
    *files = (struct mem_files){.next_id = 1, .region_reserve = MEM_REGION_RESERVE};
    files->space[0] = UINT64_MAX;
    files->space[1] = UINT64_MAX;
    files->memory_fd = memfd_create("memory_files", MFD_CLOEXEC);
    mqx_check(files->memory_fd >= 0);
    mqx_check(ftruncate(files->memory_fd, (off_t)(MEM_SLICES * MEM_FILE_RESERVE)) == 0);
    files->data = map_slices(files->memory_fd, PROT_READ | PROT_WRITE);
    files->view = map_slices(files->memory_fd, PROT_READ);
    files->base = map_slices(-1, PROT_READ | PROT_WRITE);
    files->slices = calloc(MEM_SLICES, sizeof *files->slices);
    mqx_check(files->slices != NULL);
    files->root = mem_new(files, true, false, 0700);
    files->root->links = 1;
}

static void free_node(struct mem_node *node)
{
    free(node->names.items);
    free(node->frozen_names.items);
    free(node);
}

void mem_fini(struct mem_files *files)
{
    for (uint32_t i = 0; i < files->node_count; i++) {
        struct mem_node *node = files->nodes[i];
        if (node->region && node->data != NULL) {
            munmap(node->data, files->region_reserve);
        }
        free_node(node);
    }
    while (files->spare != NULL) {
        struct mem_node *node = files->spare;
        files->spare = (struct mem_node *)(void *)node->names.items;
        node->names.items = NULL;
        free_node(node);
    }
    for (uint32_t i = 0; i < MEM_SLICES; i++) {
        free(files->slices[i].dirty_bits);
        free(files->slices[i].dirty_list);
    }
    munmap(files->data, MEM_SLICES * MEM_FILE_RESERVE);
    munmap(files->view, MEM_SLICES * MEM_FILE_RESERVE);
    munmap(files->base, MEM_SLICES * MEM_FILE_RESERVE);
    close(files->memory_fd);
    free(files->slices);
    free(files->nodes);
    free(files->touched);
}

/* ---- slices and dirty pages ---- */

static void take_slice(struct mem_files *files, struct mem_node *node)
{
    uint32_t i = files->slice_hint;
    while (i < MEM_SLICES && files->slices[i].used) {
        i++;
    }
    mqx_check(i < MEM_SLICES);
    struct mem_slice *slice = &files->slices[i];
    if (slice->dirty_bits == NULL) {
        slice->dirty_bits = calloc(MEM_FILE_RESERVE / MEM_PAGE / 64, sizeof(uint64_t));
        mqx_check(slice->dirty_bits != NULL);
    }
    mqx_check(slice->dirty_count == 0);
    slice->used = true;
    files->slice_hint = i + 1;
    node->slice = i;
    node->data = files->data + i * MEM_FILE_RESERVE;
    node->view = files->view + i * MEM_FILE_RESERVE;
    node->base = files->base + i * MEM_FILE_RESERVE;
}

static void clear_dirty(struct mem_slice *slice)
{
    for (uint32_t i = 0; i < slice->dirty_count; i++) {
        slice->dirty_bits[slice->dirty_list[i] / 64] = 0;
    }
    slice->dirty_count = 0;
}

static void punch(struct mem_files *files, struct mem_node *node)
{
    off_t start = (off_t)(node->slice * MEM_FILE_RESERVE);
    mqx_check(fallocate(files->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start,
                        (off_t)MEM_FILE_RESERVE) == 0);
    mqx_check(madvise(node->base, MEM_FILE_RESERVE, MADV_DONTNEED) == 0);
}

static void give_slice_back(struct mem_files *files, struct mem_node *node)
{
    struct mem_slice *slice = &files->slices[node->slice];

    if (node->high > PUNCH_ABOVE) {
        punch(files, node);
    } else if (node->has_base) { /* pages outside the dirty list may be set, too */
        memset(node->data, 0, node->high);
        memset(node->base, 0, node->high);
    } else {
        for (uint32_t i = 0; i < slice->dirty_count; i++) {
            memset(node->data + (uint64_t)slice->dirty_list[i] * MEM_PAGE, 0, MEM_PAGE);
        }
    }
    clear_dirty(slice);
    slice->used = false;
    if (node->slice < files->slice_hint) {
        files->slice_hint = node->slice;
    }
}

static void mark_dirty(struct mem_files *files, struct mem_node *node, uint64_t offset,
                       uint64_t size)
{
    struct mem_slice *slice = &files->slices[node->slice];
    uint64_t last = (offset + size - 1) / MEM_PAGE;

    for (uint64_t page = offset / MEM_PAGE; page <= last; page++) {
        uint64_t bit = UINT64_C(1) << page % 64;
        if ((slice->dirty_bits[page / 64] & bit) == 0) {
            slice->dirty_bits[page / 64] |= bit;
            slice->dirty_list = mem_grow(slice->dirty_list, slice->dirty_count,
                                         &slice->dirty_capacity, sizeof slice->dirty_list[0]);
            slice->dirty_list[slice->dirty_count++] = (uint32_t)page;
        }
    }
    uint64_t high = (last + 1) * MEM_PAGE;
    node->high = high > node->high ? high : node->high;
}

/* ---- nodes ---- */

void mem_touch(struct mem_files *files, struct mem_node *node)
{
    if (!node->touched) {
        node->touched = true;
        files->touched = mem_grow(files->touched, files->touched_count, &files->touched_capacity,
                                  sizeof files->touched[0]);
        files->touched[files->touched_count++] = node;
    }
}

struct mem_node *mem_new(struct mem_files *files, bool directory, bool region, uint32_t mode)
{
    struct mem_node *node = files->spare;

    if (node != NULL) {
        files->spare = (struct mem_node *)(void *)node->names.items;
    } else {
        node = malloc(sizeof *node);
        mqx_check(node != NULL);
    }
    *node = (struct mem_node){.directory = directory, .region = region, .slice = NO_SLICE};
    node->id = files->next_id++;
    node->mode = (mode & 07777u) | (directory ? (uint32_t)S_IFDIR : (uint32_t)S_IFREG);
    if (!directory && !region) {
        take_slice(files, node);
    }
    files->nodes = mem_grow(files->nodes, files->node_count, &files->node_capacity,
                            sizeof files->nodes[0]);
    node->index = files->node_count;
    files->nodes[files->node_count++] = node;
    mem_touch(files, node);
    return node;
}

static void forget_touched(struct mem_files *files, struct mem_node *node)
{
    for (uint32_t i = 0; node->touched && i < files->touched_count; i++) {
        if (files->touched[i] == node) {
            files->touched[i] = files->touched[--files->touched_count];
            node->touched = false;
        }
    }
}

/* The node is in no directory, not open, not mapped. */
static void destroy(struct mem_files *files, struct mem_node *node)
{
    forget_touched(files, node);
    files->space_used[node->region] -= node->allocated;
    if (node->slice != NO_SLICE) {
        give_slice_back(files, node);
    } else if (node->data != NULL) {
        munmap(node->data, files->region_reserve);
    }
    files->nodes[node->index] = files->nodes[--files->node_count];
    files->nodes[node->index]->index = node->index;
    free(node->names.items);
    free(node->frozen_names.items);
    node->frozen_names.items = NULL;
    node->names.items = (struct mem_entry *)(void *)files->spare;
    files->spare = node;
}

void mem_drop(struct mem_files *files, struct mem_node *node)
{
    if (node->links == 0 && node->opens == 0 && node->maps == 0 && !node->frozen) {
        destroy(files, node);
    }
}

void mem_thaw(struct mem_files *files, struct mem_node *node)
{
    node->frozen = false;
    mem_drop(files, node);
}

/* ---- names ---- */

struct mem_node *mem_lookup(const struct mem_node *dir, const char *name)
{
    for (uint32_t i = 0; i < dir->names.count; i++) {
        if (strcmp(dir->names.items[i].name, name) == 0) {
            return dir->names.items[i].node;
        }
    }
    return NULL;
}

void mem_link(struct mem_files *files, struct mem_node *dir, const char *name,
              struct mem_node *node)
{
    mqx_check(strlen(name) < MEM_NAME_SIZE);
    mem_touch(files, dir);
    mem_touch(files, node);
    dir->names.items = mem_grow(dir->names.items, dir->names.count, &dir->names.capacity,
                                sizeof dir->names.items[0]);
    struct mem_entry *entry = &dir->names.items[dir->names.count++];
    entry->node = node;
    memset(entry->name, 0, sizeof entry->name);
    memcpy(entry->name, name, strlen(name));
    node->links++;
}

struct mem_node *mem_unlink(struct mem_files *files, struct mem_node *dir, const char *name)
{
    for (uint32_t i = 0; i < dir->names.count; i++) {
        struct mem_node *node = dir->names.items[i].node;
        if (strcmp(dir->names.items[i].name, name) == 0) {
            mem_touch(files, dir);
            mem_touch(files, node);
            dir->names.items[i] = dir->names.items[--dir->names.count];
            node->links--;
            return node;
        }
    }
    return NULL;
}

static void copy_names(struct mem_names *to, const struct mem_names *from)
{
    while (to->capacity < from->count) {
        to->items = mem_grow(to->items, to->capacity, &to->capacity, sizeof to->items[0]);
    }
    if (from->count > 0) {
        memcpy(to->items, from->items, from->count * sizeof from->items[0]);
    }
    to->count = from->count;
}

void mem_set_names(struct mem_files *files, struct mem_node *dir, const struct mem_names *names)
{
    mem_touch(files, dir);
    for (uint32_t i = 0; i < dir->names.count; i++) {
        mem_touch(files, dir->names.items[i].node);
        dir->names.items[i].node->links--;
    }
    copy_names(&dir->names, names);
    for (uint32_t i = 0; i < dir->names.count; i++) {
        mem_touch(files, dir->names.items[i].node);
        dir->names.items[i].node->links++;
    }
}

/* Copies the next component of *path into name and moves on; false at the end. */
static bool next_component(const char **path, char name[MEM_NAME_SIZE])
{
    const char *at = *path + strspn(*path, "/");
    size_t length = strcspn(at, "/");

    mqx_check(length < MEM_NAME_SIZE);
    memcpy(name, at, length);
    name[length] = '\0';
    *path = at + length;
    return length > 0;
}

struct mem_node *mem_walk(const struct mem_files *files, const char *path)
{
    struct mem_node *node = files->root;
    char name[MEM_NAME_SIZE];

    while (node != NULL && next_component(&path, name)) {
        node = node->directory ? mem_lookup(node, name) : NULL;
    }
    return node;
}

struct mem_node *mem_make_dirs(struct mem_files *files, const char *path)
{
    struct mem_node *node = files->root;
    char name[MEM_NAME_SIZE];

    while (next_component(&path, name)) {
        struct mem_node *next = mem_lookup(node, name);
        if (next == NULL) {
            next = mem_new(files, true, node->region, 0700);
            mem_link(files, node, name, next);
        }
        mqx_check(next->directory);
        node = next;
    }
    return node;
}

/* ---- content ---- */

int mem_back(struct mem_files *files, struct mem_node *node, uint64_t end)
{
    if (end > (node->region ? files->region_reserve : MEM_FILE_RESERVE)) {
        return -EFBIG;
    }
    if (node->data == NULL) {
        void *at = mmap(NULL, files->region_reserve, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        mqx_check(at != MAP_FAILED);
        node->data = at;
        node->view = at;
    }
    return 0;
}

int mem_allocate(struct mem_files *files, struct mem_node *node, uint64_t end)
{
    uint64_t pages_end = mqx_round_up(end, MEM_PAGE);
    int result = mem_back(files, node, end);

    if (result != 0) {
        return result;
    }
    if (pages_end > node->allocated) {
        uint64_t more = pages_end - node->allocated;
        uint64_t *used = &files->space_used[node->region];
        if (*used > files->space[node->region] || more > files->space[node->region] - *used) {
            return -ENOSPC;
        }
        mem_touch(files, node);
        *used += more;
        node->allocated = pages_end;
    }
    if (end > node->size) {
        mem_touch(files, node);
        node->size = end;
    }
    return 0;
}

int mem_write(struct mem_files *files, struct mem_node *node, const void *from, uint64_t size,
              uint64_t offset)
{
    if (size == 0) {
        return 0;
    }
    if (offset > MEM_REGION_RESERVE || size > MEM_REGION_RESERVE) {
        return -EFBIG;
    }
    int result = mem_allocate(files, node, offset + size);
    if (result != 0) {
        return result;
    }
    mem_touch(files, node);
    if (!node->region) {
        mark_dirty(files, node, offset, size);
    }
    if (from != NULL) {
        memcpy(node->data + offset, from, size);
    } else {
        memset(node->data + offset, 0, size);
    }
    return 0;
}

int mem_set_size(struct mem_files *files, struct mem_node *node, uint64_t size)
{
    int result = mem_back(files, node, size);

    if (result != 0) {
        return result;
    }
    mem_touch(files, node);
    if (size < node->size && !node->region && size < node->high) {
        uint64_t end = node->size < node->high ? node->size : node->high;
        mark_dirty(files, node, size, end - size);
        memset(node->data + size, 0, end - size);
    } else if (size < node->size && node->region) {
        mqx_check(size == 0 || node->size - size < PUNCH_ABOVE); /* nobody shrinks a region */
        memset(node->data + size, 0, size == 0 ? 0 : node->size - size);
        mqx_check(size > 0 || madvise(node->data, files->region_reserve, MADV_REMOVE) == 0);
    }
    uint64_t keep = mqx_round_up(size, MEM_PAGE);
    if (keep < node->allocated) {
        files->space_used[node->region] -= node->allocated - keep;
        node->allocated = keep;
    }
    node->size = size;
    return 0;
}

/* ---- freeze and restore ---- */

static void copy_dirty_pages(struct mem_slice *slice, uint8_t *to, const uint8_t *from)
{
    for (uint32_t i = 0; i < slice->dirty_count; i++) {
        uint64_t at = (uint64_t)slice->dirty_list[i] * MEM_PAGE;
        memcpy(to + at, from + at, MEM_PAGE);
    }
    clear_dirty(slice);
}

static void freeze_node(struct mem_files *files, struct mem_node *node)
{
    if (node->slice != NO_SLICE) {
        copy_dirty_pages(&files->slices[node->slice], node->base, node->data);
    }
    copy_names(&node->frozen_names, &node->names);
    node->frozen = true;
    node->has_base = true;
    node->frozen_links = node->links;
    node->frozen_mode = node->mode;
    node->frozen_maps = node->maps;
    node->frozen_size = node->size;
    node->frozen_allocated = node->allocated;
}

void mem_freeze(struct mem_files *files)
{
    while (files->touched_count > 0) {
        struct mem_node *node = files->touched[--files->touched_count];
        node->touched = false;
        if (node->links + node->opens + node->maps > 0) {
            freeze_node(files, node);
        } else {
            destroy(files, node);
        }
    }
}

static void restore_node(struct mem_files *files, struct mem_node *node)
{
    if (node->slice != NO_SLICE) {
        copy_dirty_pages(&files->slices[node->slice], node->data, node->base);
    }
    if (node->directory) {
        copy_names(&node->names, &node->frozen_names);
    }
    files->space_used[node->region] -= node->allocated;
    files->space_used[node->region] += node->frozen_allocated;
    node->links = node->frozen_links;
    node->mode = node->frozen_mode;
    node->maps = node->frozen_maps;
    node->size = node->frozen_size;
    node->allocated = node->frozen_allocated;
}

void mem_restore(struct mem_files *files)
{
    while (files->touched_count > 0) {
        struct mem_node *node = files->touched[--files->touched_count];
        node->touched = false;
        if (node->frozen) {
            restore_node(files, node);
        } else {
            destroy(files, node);
        }
    }
}
