/*
 * memory_trace.c - see memory_io.h: the recorder, and images of a directory tree.
 *
 * A trace owns its strings and bytes in a list of chunks, so that pointers into it stay valid while
 * it grows and freeing is one walk.
 */
#include "memory_inside.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 18 };

struct chunk {
    struct chunk *next;
    size_t used;
    size_t size;
    uint8_t bytes[];
};

/* ---- memory of a trace ---- */

static void *trace_bytes(struct memory_trace *trace, const void *from, size_t size)
{
    struct chunk *chunk = trace->memory;

    if (chunk == NULL || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        chunk = malloc(sizeof *chunk + room);
        mqx_check(chunk != NULL);
        *chunk = (struct chunk){.next = trace->memory, .used = 0, .size = room};
        trace->memory = chunk;
    }
    void *at = chunk->bytes + chunk->used;
    memcpy(at, from, size);
    chunk->used += size;
    return at;
}

static const char *trace_string(struct memory_trace *trace, const char *text)
{
    return text == NULL ? NULL : trace_bytes(trace, text, strlen(text) + 1);
}

static bool all_zero(const uint8_t *bytes, uint64_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static const uint8_t *trace_content(struct memory_trace *trace, const uint8_t *data, uint64_t size)
{
    return data == NULL || all_zero(data, size) ? NULL : trace_bytes(trace, data, size);
}

void memory_trace_free(struct memory_trace *trace)
{
    if (trace == NULL) {
        return;
    }
    for (struct chunk *chunk = trace->memory; chunk != NULL;) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(trace->start);
    free(trace->events);
    free(trace);
}

/* ---- recorder ---- */

bool mem_is_recorded(const struct memory_io *files, const struct mem_node *where)
{
    return files->trace != NULL && where->recorded;
}

void mem_record(struct memory_io *files, const struct mem_node *where, struct memory_event event)
{
    struct memory_trace *trace = files->trace;

    if (trace == NULL || (where != NULL && !where->recorded)) {
        return;
    }
    event.call = files->calls[MEMORY_OP_COUNT];
    event.data = trace_content(trace, event.data, event.size);
    event.name = trace_string(trace, event.name);
    event.to = trace_string(trace, event.to);
    trace->events = mem_grow(trace->events, trace->event_count, &trace->event_capacity,
                             sizeof trace->events[0]);
    trace->events[trace->event_count++] = event;
}

/* Notes everything below the directory, parents first, and marks it as recorded. */
static void note_start(struct memory_trace *trace, struct mem_node *dir)
{
    dir->recorded = true;
    for (uint32_t i = 0; i < dir->names.count; i++) {
        struct mem_node *node = dir->names.items[i].node;
        if (node->region) {
            continue;
        }
        node->recorded = true;
        trace->start = mem_grow(trace->start, trace->start_count, &trace->start_capacity,
                                sizeof trace->start[0]);
        trace->start[trace->start_count++] = (struct memory_trace_start){
            .dir = dir->id,
            .file = node->id,
            .is_dir = node->directory,
            .name = trace_string(trace, dir->names.items[i].name),
            .data = node->directory ? NULL : trace_content(trace, node->data, node->size),
            .size = node->size,
        };
        if (node->directory) {
            note_start(trace, node);
        }
    }
}

void memory_io_record(struct memory_io *files, const char *path)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *root = mem_walk(&files->tree, path);
    mqx_check(root != NULL);
    mqx_check(root->directory && !root->region);
    memory_trace_free(files->trace);
    for (uint32_t i = 0; i < files->tree.node_count; i++) {
        files->tree.nodes[i]->recorded = false;
    }
    struct memory_trace *trace = calloc(1, sizeof *trace);
    mqx_check(trace != NULL);
    trace->path = trace_string(trace, path);
    trace->root = root->id;
    note_start(trace, root);
    files->trace = trace;
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_ack(struct memory_io *files, uint64_t value)
{
    pthread_mutex_lock(&files->mutex);
    mem_record(files, NULL, (struct memory_event){.kind = MEMORY_EV_ACK, .value = value});
    pthread_mutex_unlock(&files->mutex);
}

struct memory_trace *memory_io_take_trace(struct memory_io *files)
{
    pthread_mutex_lock(&files->mutex);
    struct memory_trace *trace = files->trace;
    files->trace = NULL;
    pthread_mutex_unlock(&files->mutex);
    return trace;
}

/* ---- images ---- */

static char *join(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);
    mqx_check(path != NULL);
    (void)snprintf(path, size, "%s%s%s", dir, dir[0] != '\0' ? "/" : "", name);
    return path;
}

static void take_below(struct memory_image *image, const struct mem_node *dir, const char *prefix)
{
    for (uint32_t i = 0; i < dir->names.count; i++) {
        const struct mem_node *node = dir->names.items[i].node;
        if (node->region) {
            continue;
        }
        struct memory_image_file file = {.path = join(prefix, dir->names.items[i].name),
                                         .directory = node->directory,
                                         .size = node->size};
        if (!node->directory) {
            file.data = malloc(node->size + 1);
            mqx_check(file.data != NULL);
            memcpy(file.data, node->data, node->size);
        }
        image->files = mem_grow(image->files, image->count, &image->capacity, sizeof file);
        image->files[image->count++] = file;
        if (node->directory) {
            take_below(image, node, file.path);
        }
    }
}

struct memory_image *memory_image_take(struct memory_io *files, const char *path)
{
    struct memory_image *image = calloc(1, sizeof *image);

    mqx_check(image != NULL);
    pthread_mutex_lock(&files->mutex);
    struct mem_node *dir = mem_walk(&files->tree, path);
    mqx_check(dir != NULL && dir->directory);
    take_below(image, dir, "");
    pthread_mutex_unlock(&files->mutex);
    return image;
}

void memory_image_free(struct memory_image *image)
{
    if (image != NULL) {
        for (uint32_t i = 0; i < image->count; i++) {
            free(image->files[i].path);
            free(image->files[i].data);
        }
        free(image->files);
        free(image);
    }
}

static const struct memory_image_file *image_find(const struct memory_image *image,
                                                  const char *path, bool directory)
{
    for (uint32_t i = 0; i < image->count; i++) {
        if (image->files[i].directory == directory && strcmp(image->files[i].path, path) == 0) {
            return &image->files[i];
        }
    }
    return NULL;
}

/* Takes away what the image has not (or has as the other kind). */
static void prune(struct memory_io *files, const struct memory_image *image, struct mem_node *dir,
                  const char *prefix)
{
    for (uint32_t i = dir->names.count; i-- > 0;) {
        struct mem_node *node = dir->names.items[i].node;
        char name[MEM_NAME_SIZE];
        memcpy(name, dir->names.items[i].name, sizeof name);
        char *path = join(prefix, name);
        bool keep = node->region || image_find(image, path, node->directory) != NULL;
        if (node->directory && !node->region) {
            prune(files, image, node, path);
        }
        if (!keep) {
            mem_unlink(&files->tree, dir, name);
            mem_drop(&files->tree, node);
        }
        free(path);
    }
}

/* Makes the file's content that of the image, touching only pages that differ. */
static void load_content(struct memory_io *files, struct mem_node *node,
                         const struct memory_image_file *file)
{
    for (uint64_t at = 0; at < file->size; at += MEM_PAGE) {
        uint64_t n = file->size - at < MEM_PAGE ? file->size - at : MEM_PAGE;
        if (at + n > node->size || memcmp(node->data + at, file->data + at, n) != 0) {
            mqx_check(mem_write(&files->tree, node, file->data + at, n, at) == 0);
        }
    }
    if (node->size != file->size) {
        mqx_check(mem_set_size(&files->tree, node, file->size) == 0);
    }
}

void memory_image_load(struct memory_io *files, const char *path, const struct memory_image *image)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *root = mem_make_dirs(&files->tree, path);
    prune(files, image, root, "");
    for (uint32_t i = 0; i < image->count; i++) {
        const struct memory_image_file *file = &image->files[i];
        char *slash = strrchr(file->path, '/');
        const char *name = slash != NULL ? slash + 1 : file->path;
        char *dir_path = strdup(file->path);
        mqx_check(dir_path != NULL);
        dir_path[name - file->path] = '\0';
        char *full = join(path, dir_path);
        struct mem_node *dir = mem_walk(&files->tree, full);
        mqx_check(dir != NULL);
        struct mem_node *node = mem_lookup(dir, name);
        if (node == NULL) {
            node = mem_new(&files->tree, file->directory, false, file->directory ? 0700 : 0600);
            node->recorded = dir->recorded;
            mem_link(&files->tree, dir, name, node);
        }
        if (!file->directory) {
            load_content(files, node, file);
        }
        free(full);
        free(dir_path);
    }
    pthread_mutex_unlock(&files->mutex);
}

static int write_real_file(int dir, const struct memory_image_file *file)
{
    int fd = openat(dir, file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint64_t done = 0;

    if (fd < 0) {
        return -errno;
    }
    while (done < file->size) {
        ssize_t n = write(fd, file->data + done, file->size - done);
        if (n <= 0) {
            int result = n < 0 ? -errno : -EIO;
            close(fd);
            return result;
        }
        done += (uint64_t)n;
    }
    return close(fd) == 0 ? 0 : -errno;
}

int memory_image_write(const struct memory_image *image, const char *real_path)
{
    int dir = open(real_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = dir < 0 ? -errno : 0;

    for (uint32_t i = 0; i < image->count && result == 0; i++) {
        const struct memory_image_file *file = &image->files[i];
        if (!file->directory) {
            result = write_real_file(dir, file);
        } else if (mkdirat(dir, file->path, 0700) != 0) {
            result = -errno;
        }
    }
    if (dir >= 0) {
        close(dir);
    }
    return result;
}
