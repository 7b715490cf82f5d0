/*
 * memory_inside.h - what memory_io.c, memory_control.c, memory_trace.c and disk_states.c share:
 * the insides of a struct memory_io. Nothing else includes it.
 */
#ifndef PENSTOCK_TESTS_MEMORY_INSIDE_H
#define PENSTOCK_TESTS_MEMORY_INSIDE_H

#include "memory_files.h"
#include "memory_io.h"

#include <pthread.h>

enum { MEM_FD_COUNT = 1024, MEM_FIRST_FD = 3, MEM_PROCESS_COUNT = 64 };

struct mem_fd {
    struct mem_node *node; /* NULL: free */
    int32_t pid;
    bool writable;
};

struct mem_lock {
    struct mem_node *node;
    uint64_t start; /* [start, end) */
    uint64_t end;
    int32_t pid;
    bool exclusive;
};

struct mem_process {
    struct mqx_io io;
    struct memory_io *files;
    int32_t pid;
};

struct memory_io {
    pthread_mutex_t mutex;
    struct mem_files tree;
    struct mem_fd fds[MEM_FD_COUNT];
    struct mem_lock *locks;
    uint32_t lock_count;
    uint32_t lock_capacity;
    struct mem_process processes[MEM_PROCESS_COUNT];
    uint32_t process_count;
    uint64_t now_us;
    enum mqx_io_medium medium;
    uint64_t calls[MEMORY_OP_COUNT + 1]; /* the last one: all */
    struct memory_fault fault;
    uint64_t fault_calls;
    uint64_t fault_strikes;
    memory_io_hook hook;
    void *hook_arg;
    struct memory_trace *trace; /* NULL: not recording */
};

extern const struct mqx_io_ops mem_ops;

void mem_close_fd(struct memory_io *files, struct mem_fd *fd);
/* All locks of the process, or (node not NULL) those on one file. */
void mem_drop_locks(struct memory_io *files, const struct mem_node *node, int32_t pid);

/* Appends an event when the node (for names: the directory) is recorded; the caller has filled in
 * everything but `call`, and owns what the pointers name. */
void mem_record(struct memory_io *files, const struct mem_node *where, struct memory_event event);
bool mem_is_recorded(const struct memory_io *files, const struct mem_node *where);

#endif
