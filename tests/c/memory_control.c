/*
 * memory_control.c - see memory_io.h: life of the object, processes, surroundings, files by path,
 * arming of faults, freeze and restore. Everything a test does behind the core's back.
 */
#include "memory_inside.h"

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { START_SECONDS = 1700000000 };

struct memory_io *memory_io_new(void)
{
    struct memory_io *files = calloc(1, sizeof *files);

    mqx_check(files != NULL);
    mqx_check(pthread_mutex_init(&files->mutex, NULL) == 0);
    mem_init(&files->tree);
    files->now_us = START_SECONDS * UINT64_C(1000000);
    files->medium = MQX_MEDIUM_DISK;
    (void)memory_io_process(files, MEMORY_IO_PID);
    return files;
}

void memory_io_free(struct memory_io *files)
{
    if (files != NULL) {
        memory_trace_free(files->trace);
        mem_fini(&files->tree);
        pthread_mutex_destroy(&files->mutex);
        free(files->locks);
        free(files);
    }
}

struct mqx_io *memory_io_table(struct memory_io *files)
{
    return &files->processes[0].io;
}

struct mqx_io *memory_io_process(struct memory_io *files, int32_t pid)
{
    struct mem_process *found = NULL;

    mqx_check(pid > 0);
    pthread_mutex_lock(&files->mutex);
    for (uint32_t i = 0; i < files->process_count && found == NULL; i++) {
        found = files->processes[i].pid == pid ? &files->processes[i] : NULL;
    }
    if (found == NULL) {
        mqx_check(files->process_count < MEM_PROCESS_COUNT);
        found = &files->processes[files->process_count++];
        *found = (struct mem_process){.files = files, .pid = pid};
        found->io = (struct mqx_io){.ops = &mem_ops, .context = found};
    }
    pthread_mutex_unlock(&files->mutex);
    return &found->io;
}

void memory_io_kill(struct memory_io *files, int32_t pid)
{
    pthread_mutex_lock(&files->mutex);
    for (int i = 0; i < MEM_FD_COUNT; i++) {
        if (files->fds[i].node != NULL && files->fds[i].pid == pid) {
            mem_close_fd(files, &files->fds[i]);
        }
    }
    mem_drop_locks(files, NULL, pid);
    pthread_mutex_unlock(&files->mutex);
}

uint32_t memory_io_open_count(struct memory_io *files)
{
    uint32_t count = 0;
    pthread_mutex_lock(&files->mutex);
    for (int i = 0; i < MEM_FD_COUNT; i++) {
        count += files->fds[i].node != NULL;
    }
    pthread_mutex_unlock(&files->mutex);
    return count;
}

uint32_t memory_io_map_count(struct memory_io *files)
{
    uint32_t count = 0;
    pthread_mutex_lock(&files->mutex);
    for (uint32_t i = 0; i < files->tree.node_count; i++) {
        count += files->tree.nodes[i]->maps;
    }
    pthread_mutex_unlock(&files->mutex);
    return count;
}

void memory_io_make_dirs(struct memory_io *files, const char *path)
{
    pthread_mutex_lock(&files->mutex);
    (void)mem_make_dirs(&files->tree, path);
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_region_dir(struct memory_io *files, const char *path)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *dir = mem_make_dirs(&files->tree, path);
    mqx_check(dir->names.count == 0);
    dir->region = true;
    dir->recorded = false;
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_set_clock(struct memory_io *files, uint64_t now_us)
{
    pthread_mutex_lock(&files->mutex);
    files->now_us = now_us;
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_set_medium(struct memory_io *files, enum mqx_io_medium medium)
{
    pthread_mutex_lock(&files->mutex);
    files->medium = medium;
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_set_space(struct memory_io *files, uint64_t file_bytes, uint64_t region_bytes)
{
    pthread_mutex_lock(&files->mutex);
    files->tree.space[0] = file_bytes;
    files->tree.space[1] = region_bytes;
    pthread_mutex_unlock(&files->mutex);
}

/* ---- files by path ---- */

/* Splits "/a/b/name" into the node of /a/b and the name; NULL when the directory is missing. */
static struct mem_node *parent_of(struct mem_files *tree, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    char dir[1024];

    mqx_check(slash != NULL && (size_t)(slash - path) < sizeof dir);
    memcpy(dir, path, (size_t)(slash - path));
    dir[slash - path] = '\0';
    *name = slash + 1;
    return mem_walk(tree, dir);
}

/* The file at the path, which must exist. */
static struct mem_node *file_at(struct mem_files *tree, const char *path)
{
    struct mem_node *node = mem_walk(tree, path);
    mqx_check(node != NULL);
    mqx_check(!node->directory);
    return node;
}

void memory_io_put(struct memory_io *files, const char *path, const void *data, uint64_t size)
{
    const char *name;

    pthread_mutex_lock(&files->mutex);
    struct mem_node *dir = parent_of(&files->tree, path, &name);
    mqx_check(dir != NULL);
    struct mem_node *node = mem_lookup(dir, name);
    if (node == NULL) {
        node = mem_new(&files->tree, false, dir->region, 0600);
        node->recorded = dir->recorded;
        mem_link(&files->tree, dir, name, node);
    }
    mqx_check(mem_set_size(&files->tree, node, 0) == 0);
    mqx_check(mem_write(&files->tree, node, data, size, 0) == 0);
    pthread_mutex_unlock(&files->mutex);
}

const uint8_t *memory_io_bytes(struct memory_io *files, const char *path, uint64_t *size)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *node = mem_walk(&files->tree, path);
    bool found = node != NULL && !node->directory;
    const uint8_t *bytes = NULL;
    if (found) {
        mqx_check(mem_back(&files->tree, node, node->size) == 0);
        bytes = node->view;
        *size = node->size;
    }
    pthread_mutex_unlock(&files->mutex);
    return bytes;
}

void memory_io_patch(struct memory_io *files, const char *path, uint64_t offset, const void *data,
                     uint64_t size)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *node = file_at(&files->tree, path);
    mqx_check(offset <= node->size && size <= node->size - offset);
    mqx_check(mem_write(&files->tree, node, data, size, offset) == 0);
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_flip_bit(struct memory_io *files, const char *path, uint64_t bit)
{
    pthread_mutex_lock(&files->mutex);
    struct mem_node *node = file_at(&files->tree, path);
    mqx_check(bit / 8 < node->size);
    uint8_t byte = node->data[bit / 8] ^ (uint8_t)(1u << bit % 8);
    mqx_check(mem_write(&files->tree, node, &byte, 1, bit / 8) == 0);
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_cut(struct memory_io *files, const char *path, uint64_t size)
{
    pthread_mutex_lock(&files->mutex);
    mqx_check(mem_set_size(&files->tree, file_at(&files->tree, path), size) == 0);
    pthread_mutex_unlock(&files->mutex);
}

bool memory_io_remove(struct memory_io *files, const char *path)
{
    const char *name;

    pthread_mutex_lock(&files->mutex);
    struct mem_node *dir = parent_of(&files->tree, path, &name);
    struct mem_node *node = dir != NULL ? mem_unlink(&files->tree, dir, name) : NULL;
    if (node != NULL) {
        mem_drop(&files->tree, node);
    }
    pthread_mutex_unlock(&files->mutex);
    return node != NULL;
}

/* ---- calls, faults, freeze ---- */

uint64_t memory_io_calls(struct memory_io *files, enum memory_op op)
{
    mqx_check(op <= MEMORY_OP_COUNT);
    pthread_mutex_lock(&files->mutex);
    uint64_t calls = files->calls[op];
    pthread_mutex_unlock(&files->mutex);
    return calls;
}

void memory_io_set_fault(struct memory_io *files, const struct memory_fault *fault)
{
    pthread_mutex_lock(&files->mutex);
    files->fault = fault != NULL ? *fault : (struct memory_fault){.kind = MEMORY_FAULT_NONE};
    files->fault.error = files->fault.error != 0 ? files->fault.error : EIO;
    files->fault_calls = 0;
    files->fault_strikes = 0;
    pthread_mutex_unlock(&files->mutex);
}

uint64_t memory_io_fault_calls(struct memory_io *files)
{
    pthread_mutex_lock(&files->mutex);
    uint64_t calls = files->fault_calls;
    pthread_mutex_unlock(&files->mutex);
    return calls;
}

uint64_t memory_io_fault_strikes(struct memory_io *files)
{
    pthread_mutex_lock(&files->mutex);
    uint64_t strikes_now = files->fault_strikes;
    pthread_mutex_unlock(&files->mutex);
    return strikes_now;
}

void memory_io_set_hook(struct memory_io *files, memory_io_hook hook, void *arg)
{
    files->hook = hook;
    files->hook_arg = arg;
}

void memory_io_freeze(struct memory_io *files)
{
    pthread_mutex_lock(&files->mutex);
    mem_freeze(&files->tree);
    pthread_mutex_unlock(&files->mutex);
}

void memory_io_restore(struct memory_io *files)
{
    pthread_mutex_lock(&files->mutex);
    for (int i = 0; i < MEM_FD_COUNT; i++) {
        if (files->fds[i].node != NULL) {
            mem_close_fd(files, &files->fds[i]);
        }
    }
    files->lock_count = 0;
    memory_trace_free(files->trace);
    files->trace = NULL;
    mem_restore(&files->tree);
    pthread_mutex_unlock(&files->mutex);
}
