/*
 * memory_files.h - a tree of directories and files in memory: the storage under memory_io.c and
 * disk_states.c, which alone include this header. Tests use memory_io.h.
 *
 * Terms
 *   node      a directory or a file, with a number (id) that is never given twice.
 *   slice     the address space of one file: MEM_FILE_RESERVE bytes at the same place in three big
 *             mappings: `data` (written by us), `view` (the same pages, read-only, what map() hands
 *             out, so that a store into a mapped journal faults) and `base` (the frozen content).
 *   frozen    the state remembered by mem_freeze(). mem_restore() goes back to it, copying only the
 *             pages and names that changed since: that is what makes 1e5 images a second possible.
 *   region    files of a region directory: no slice but a large sparse mapping of their own; never
 *             recorded, not part of images; those made after a freeze vanish at the restore.
 *
 * Invariants
 *   1. Bytes of a file behind its size are zero in its slice.
 *   2. A page differs from base only if its dirty bit is set and it is in the dirty list.
 *   3. A node that differs from its frozen form, or has none, is in the touched list.
 *   4. A node without name, descriptor and mapping exists only while it is frozen.
 *
 * Locks: none; the caller serialises (memory_io by one mutex, disk_states by having one thread).
 */
#ifndef PENSTOCK_TESTS_MEMORY_FILES_H
#define PENSTOCK_TESTS_MEMORY_FILES_H

#include "../../csrc/base.h"

enum {
    MEM_NAME_SIZE = 80,
    MEM_PAGE = 4096,
    MEM_SLICES = 1024,
};
#define MEM_FILE_RESERVE (UINT64_C(128) << 20) /* largest file */
#define MEM_REGION_RESERVE (UINT64_C(64) << 30) /* largest region file */

struct mem_node;

struct mem_entry {
    struct mem_node *node;
    char name[MEM_NAME_SIZE];
};

struct mem_names { /* of a directory */
    struct mem_entry *items;
    uint32_t count;
    uint32_t capacity;
};

struct mem_node {
    uint32_t id;
    uint32_t index; /* in mem_files.nodes */
    uint32_t user;  /* for disk_model.c: index of its file or directory */
    bool directory;
    bool region;
    bool recorded;  /* set by memory_io: events of this node are recorded */
    bool frozen;
    bool has_base;  /* base was written: it was frozen once */
    bool touched;
    uint32_t mode;
    uint32_t links; /* names that lead here */
    uint32_t opens;
    uint32_t maps;
    uint32_t frozen_links;
    uint32_t frozen_mode;
    uint32_t frozen_maps;

    uint64_t size;
    uint64_t allocated; /* bytes counted against the space limit */
    uint64_t frozen_size;
    uint64_t frozen_allocated;
    uint64_t high; /* no byte at or behind this was ever set */
    uint8_t *data;
    const uint8_t *view;
    uint8_t *base;
    uint32_t slice;

    struct mem_names names;
    struct mem_names frozen_names;
};

struct mem_slice {
    bool used;
    uint64_t *dirty_bits; /* one a page */
    uint32_t *dirty_list;
    uint32_t dirty_count;
    uint32_t dirty_capacity;
};

struct mem_files {
    struct mem_node *root;
    struct mem_node **nodes;
    uint32_t node_count;
    uint32_t node_capacity;
    struct mem_node **touched;
    uint32_t touched_count;
    uint32_t touched_capacity;
    struct mem_node *spare; /* node structs for reuse, linked by names.items */
    uint32_t next_id;
    uint8_t *data;
    uint8_t *view;
    uint8_t *base;
    int memory_fd;
    struct mem_slice *slices;
    uint32_t slice_hint;
    uint64_t space[2];      /* limit for files [0] and for region files [1] */
    uint64_t space_used[2];
    uint64_t region_reserve;
};

void mem_init(struct mem_files *files);
void mem_fini(struct mem_files *files);

struct mem_node *mem_new(struct mem_files *files, bool directory, bool region, uint32_t mode);
/* Frees the node when nothing refers to it any more (invariant 4). */
void mem_drop(struct mem_files *files, struct mem_node *node);
/* Forgets the frozen form of a node, so that mem_drop() may free it. */
void mem_thaw(struct mem_files *files, struct mem_node *node);
void mem_touch(struct mem_files *files, struct mem_node *node);

struct mem_node *mem_lookup(const struct mem_node *dir, const char *name);
void mem_link(struct mem_files *files, struct mem_node *dir, const char *name,
              struct mem_node *node);
/* Takes the name out, returns its node (not dropped yet) or NULL. */
struct mem_node *mem_unlink(struct mem_files *files, struct mem_node *dir, const char *name);
/* Replaces all names of a directory. */
void mem_set_names(struct mem_files *files, struct mem_node *dir, const struct mem_names *names);

/* The node of an absolute path, or NULL. */
struct mem_node *mem_walk(const struct mem_files *files, const char *path);
/* The same, making missing directories on the way. */
struct mem_node *mem_make_dirs(struct mem_files *files, const char *path);

/* Bytes into the file (NULL: zeroes), growing it; 0, -EFBIG or -ENOSPC. */
int mem_write(struct mem_files *files, struct mem_node *node, const void *from, uint64_t size,
              uint64_t offset);
int mem_set_size(struct mem_files *files, struct mem_node *node, uint64_t size);
/* Counts [0, end) as allocated, growing the file; 0, -EFBIG or -ENOSPC. */
int mem_allocate(struct mem_files *files, struct mem_node *node, uint64_t end);
/* Makes sure that the node has memory for `end` bytes; 0 or -EFBIG. */
int mem_back(struct mem_files *files, struct mem_node *node, uint64_t end);

void mem_freeze(struct mem_files *files);
void mem_restore(struct mem_files *files);

/* items[count++] of a growing array; doubles it when needed. */
void *mem_grow(void *items, uint32_t count, uint32_t *capacity, size_t item_size);

#endif
