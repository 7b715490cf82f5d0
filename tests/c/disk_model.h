/*
 * disk_model.h - the model behind disk_states.c: files with durable and cached content, open
 * sectors with their versions, directories with their unsynced operations. The rules are in
 * disk_states.h.
 *
 * The durable state lives in a memory_io ("stage") as its frozen tree; a state is made by changing
 * the stage and unmade by mem_restore(). Every file of the model keeps its node alive by one count
 * of `opens`, until no durable or pending name leads to it.
 */
#ifndef PENSTOCK_TESTS_DISK_MODEL_H
#define PENSTOCK_TESTS_DISK_MODEL_H

#include "memory_inside.h"

enum { NO_INDEX = UINT32_MAX };

struct model_version { /* of one sector; its bytes are at model.bytes + index * sector */
    uint32_t next;
    uint64_t delta; /* the file's hash changes by this (xor) when it takes the place of old */
};

struct model_open { /* an open sector */
    uint32_t file;
    uint32_t number;
    uint32_t first_version;
    uint32_t version_count;
    uint64_t zero_delta;
    bool can_be_zeroed;
    bool stuck; /* a flush failed: only a rewrite and its flush closes it */
};

struct model_file {
    uint32_t id;
    bool dead; /* no name can ever lead here again */
    struct mem_node *node;
    uint8_t *cache;
    uint64_t cache_capacity;
    uint64_t cache_size;
    uint64_t durable_size;
    uint64_t largest;  /* size of the cache since it was last durable, at most */
    uint64_t hash;     /* xor over the durable content */
    uint32_t *open_of; /* sector number -> index in model.open + 1 */
    uint32_t open_of_count;
};

struct model_change { /* a pending operation on names */
    enum memory_event_kind kind; /* CREATE, RENAME, UNLINK */
    uint32_t move; /* number of the move that it is one half of, 0 none */
    struct mem_node *node;
    char name[MEM_NAME_SIZE];
    char to[MEM_NAME_SIZE];
};

struct model_dir {
    uint32_t id;
    struct mem_node *node;
    struct mem_names *views; /* [k]: names after k pending changes; [0] is durable */
    uint32_t view_capacity;
    struct model_change *changes;
    uint32_t change_count;
    uint32_t change_capacity;
};

struct model {
    uint32_t sector;
    bool no_zeroed;
    struct memory_io *stage;
    struct model_file *files;
    uint32_t file_count;
    uint32_t file_capacity;
    struct model_dir *dirs;
    uint32_t dir_count;
    uint32_t dir_capacity;
    struct model_open *open;
    uint32_t open_count;
    uint32_t open_capacity;
    struct model_version *versions;
    uint8_t *bytes;
    uint32_t version_count;
    uint32_t version_capacity;
    uint32_t version_free; /* list of versions for reuse */
    uint32_t moves;
};

void model_init(struct model *model, const struct memory_trace *trace, uint32_t sector,
                bool no_zeroed);
void model_fini(struct model *model);
/* Applies an event. A DWRITE is applied as a plain write; model_settle() makes it durable. */
void model_apply(struct model *model, const struct memory_event *event);
void model_settle(struct model *model, const struct memory_event *event);
uint64_t model_hash_name(const char *name);
/* False when with kept[d] changes of each directory a file that moves would be in both or in
 * neither: file systems that are allowed make a rename between directories in one step. */
bool model_moves_whole(const struct model *model, const uint32_t *kept);
/* One value of the image hash for 8-byte granule `number` with content `value`. */
static inline uint64_t model_granule(uint64_t number, uint64_t value)
{
    if (value == 0) {
        return 0;
    }
    unsigned __int128 product = (unsigned __int128)(value ^ 0x9e3779b97f4a7c15u) *
                                ((number * 2 + 1) * 0xd6e8feb86659fd93u);
    uint64_t folded = (uint64_t)product ^ (uint64_t)(product >> 64);
    return (folded ^ folded >> 29) * 0xbf58476d1ce4e5b9u;
}

#endif
