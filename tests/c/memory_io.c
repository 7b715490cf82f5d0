/*
 * memory_io.c - see memory_io.h: the operations of the table, and how faults strike them.
 *
 * Every operation has the shape begin(), work, end(). begin() calls the hook, takes the mutex,
 * numbers the call and decides whether the armed fault strikes; end() gives the mutex back.
 */
#include "memory_inside.h"

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICE = 0x50 };

struct call {
    struct memory_io *files;
    int32_t pid;
    enum memory_op op;
    enum memory_fault_kind fault; /* that strikes this call, ERROR excepted: begin() returned it */
};

static const char *const op_names[MEMORY_OP_COUNT] = {
    "open_dir", "open_sub", "make_sub", "remove_sub", "open", "close", "read", "write", "sync",
    "sync_dir", "truncate", "allocate", "rename", "move", "unlink", "list", "stat", "medium",
    "lock", "test_lock", "map", "unmap", "populate", "drop_cache",
};

const char *memory_op_name(enum memory_op op)
{
    return op_names[op];
}

/* ---- begin and end ---- */

/* Whether the armed fault strikes the call that was just counted. */
static bool fault_due(struct memory_io *files, enum memory_op op)
{
    const struct memory_fault *fault = &files->fault;

    if (fault->kind == MEMORY_FAULT_NONE || (fault->ops != 0 && (fault->ops >> op & 1u) == 0)) {
        return false;
    }
    files->fault_calls++;
    return files->fault_calls == fault->at || (fault->for_ever && files->fault_calls > fault->at);
}

/* 0, or the negated errno with which the call is to fail at once. */
static int begin(struct call *call, struct mqx_io *io, enum memory_op op)
{
    struct mem_process *process = io->context;
    struct memory_io *files = process->files;

    *call = (struct call){.files = files, .pid = process->pid, .op = op};
    if (files->hook != NULL) {
        files->hook(files->hook_arg, op, memory_io_calls(files, MEMORY_OP_COUNT) + 1);
    }
    pthread_mutex_lock(&files->mutex);
    files->calls[op]++;
    files->calls[MEMORY_OP_COUNT]++;
    if (!fault_due(files, op)) {
        return 0;
    }
    call->fault = files->fault.kind;
    if (call->fault != MEMORY_FAULT_ERROR || op == MEMORY_CLOSE || op == MEMORY_UNMAP) {
        return 0;
    }
    files->fault_strikes++;
    return -files->fault.error;
}

static int end(struct call *call, int result)
{
    pthread_mutex_unlock(&call->files->mutex);
    return result;
}

/* True when the call meets a fault of this kind; counts the strike. */
static bool strikes(struct call *call, enum memory_fault_kind kind)
{
    bool yes = call->fault == kind;
    call->files->fault_strikes += yes;
    return yes;
}

/* ---- descriptors ---- */

static struct mem_fd *fd_of(struct call *call, int fd)
{
    int index = fd - MEM_FIRST_FD;
    if (index < 0 || index >= MEM_FD_COUNT || call->files->fds[index].node == NULL ||
        call->files->fds[index].pid != call->pid) {
        return NULL;
    }
    return &call->files->fds[index];
}

static int take_fd(struct call *call, struct mem_node *node, bool writable)
{
    for (int i = 0; i < MEM_FD_COUNT; i++) {
        struct mem_fd *fd = &call->files->fds[i];
        if (fd->node == NULL) {
            *fd = (struct mem_fd){.node = node, .pid = call->pid, .writable = writable};
            mem_touch(&call->files->tree, node);
            node->opens++;
            return MEM_FIRST_FD + i;
        }
    }
    return -EMFILE;
}

void mem_drop_locks(struct memory_io *files, const struct mem_node *node, int32_t pid)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < files->lock_count; i++) {
        if (files->locks[i].pid != pid || (node != NULL && files->locks[i].node != node)) {
            files->locks[kept++] = files->locks[i];
        }
    }
    files->lock_count = kept;
}

void mem_close_fd(struct memory_io *files, struct mem_fd *fd)
{
    struct mem_node *node = fd->node;

    mem_drop_locks(files, node, fd->pid);
    fd->node = NULL;
    node->opens--;
    mem_drop(&files->tree, node);
}

/* The directory behind fd, or NULL with *error set. */
static struct mem_node *dir_of(struct call *call, int fd, int *error)
{
    struct mem_fd *entry = fd_of(call, fd);
    *error = entry == NULL ? -EBADF : !entry->node->directory ? -ENOTDIR : 0;
    return *error == 0 ? entry->node : NULL;
}

static int check_name(const char *name)
{
    if (name[0] == '\0' || strchr(name, '/') != NULL || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0) {
        return -EINVAL;
    }
    return strlen(name) < MEM_NAME_SIZE ? 0 : -ENAMETOOLONG;
}

/* ---- names ---- */

static int mem_open_dir(struct mqx_io *io, const char *path)
{
    struct call call;
    int result = begin(&call, io, MEMORY_OPEN_DIR);

    if (result == 0) {
        struct mem_node *node = mem_walk(&call.files->tree, path);
        result = node == NULL ? -ENOENT : !node->directory ? -ENOTDIR : take_fd(&call, node, false);
    }
    return end(&call, result);
}

static int mem_open_sub(struct mqx_io *io, int dir, const char *name)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_OPEN_SUB);

    if (result == 0 && (result = check_name(name)) == 0 &&
        (parent = dir_of(&call, dir, &result)) != NULL) {
        struct mem_node *node = mem_lookup(parent, name);
        result = node == NULL ? -ENOENT : !node->directory ? -ENOTDIR : take_fd(&call, node, false);
    }
    return end(&call, result);
}

static void record_name(struct call *call, enum memory_event_kind kind, struct mem_node *dir,
                        struct mem_node *node, const char *name, const char *to)
{
    mem_record(call->files, dir, (struct memory_event){.kind = kind,
                                                       .is_dir = node->directory,
                                                       .dir = dir->id,
                                                       .file = node->id,
                                                       .name = name,
                                                       .to = to});
}

/* A new node under a free name; region and recorded are inherited. */
static struct mem_node *add_node(struct call *call, struct mem_node *dir, const char *name,
                                 bool directory, uint32_t mode)
{
    struct mem_node *node = mem_new(&call->files->tree, directory, dir->region, mode);
    node->recorded = dir->recorded;
    mem_link(&call->files->tree, dir, name, node);
    record_name(call, MEMORY_EV_CREATE, dir, node, name, NULL);
    return node;
}

static int mem_make_sub(struct mqx_io *io, int dir, const char *name, uint32_t mode)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_MAKE_SUB);

    if (result == 0 && (result = check_name(name)) == 0 &&
        (parent = dir_of(&call, dir, &result)) != NULL) {
        if (mem_lookup(parent, name) != NULL) {
            result = -EEXIST;
        } else {
            add_node(&call, parent, name, true, mode);
        }
    }
    return end(&call, result);
}

static int mem_remove_sub(struct mqx_io *io, int dir, const char *name)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_REMOVE_SUB);

    if (result == 0 && (result = check_name(name)) == 0 &&
        (parent = dir_of(&call, dir, &result)) != NULL) {
        struct mem_node *node = mem_lookup(parent, name);
        result = node == NULL            ? -ENOENT
                 : !node->directory      ? -ENOTDIR
                 : node->names.count > 0 ? -ENOTEMPTY
                                         : 0;
        if (result == 0) {
            mem_unlink(&call.files->tree, parent, name);
            record_name(&call, MEMORY_EV_UNLINK, parent, node, name, NULL);
            mem_drop(&call.files->tree, node);
        }
    }
    return end(&call, result);
}

static int open_node(struct call *call, struct mem_node *parent, const char *name, int flags,
                     uint32_t mode)
{
    bool create = (flags & MQX_IO_CREATE) != 0;
    struct mem_node *node = mem_lookup(parent, name);

    if (create && node != NULL) {
        return -EEXIST;
    }
    if (node == NULL && !create) {
        return -ENOENT;
    }
    if (node != NULL && node->directory) {
        return -EISDIR;
    }
    if (node != NULL && node->links != 1) {
        return -EMLINK;
    }
    if (node == NULL) {
        node = add_node(call, parent, name, false, mode);
    }
    return take_fd(call, node, (flags & MQX_IO_WRITE) != 0);
}

static int mem_open(struct mqx_io *io, int dir, const char *name, int flags, uint32_t mode)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_OPEN);

    if (result == 0 && (result = check_name(name)) == 0) {
        if ((flags & (MQX_IO_CREATE | MQX_IO_WRITE)) == MQX_IO_CREATE) {
            result = -EINVAL;
        } else if ((parent = dir_of(&call, dir, &result)) != NULL) {
            result = open_node(&call, parent, name, flags, mode);
        }
    }
    return end(&call, result);
}

static int mem_close(struct mqx_io *io, int fd)
{
    struct call call;
    int result = begin(&call, io, MEMORY_CLOSE);
    struct mem_fd *entry = fd_of(&call, fd);

    if (entry == NULL) {
        result = -EBADF;
    } else {
        mem_close_fd(call.files, entry);
        result = strikes(&call, MEMORY_FAULT_ERROR) ? -call.files->fault.error : 0;
    }
    return end(&call, result);
}

static int rename_node(struct call *call, struct mem_node *dir, const char *from, const char *to)
{
    struct mem_node *node = mem_lookup(dir, from);
    struct mem_node *old = mem_lookup(dir, to);

    if (node == NULL) {
        return -ENOENT;
    }
    if (old == node) {
        return 0;
    }
    if (old != NULL && old->directory != node->directory) {
        return old->directory ? -EISDIR : -ENOTDIR;
    }
    if (old != NULL && old->directory && old->names.count > 0) {
        return -ENOTEMPTY;
    }
    mem_unlink(&call->files->tree, dir, from);
    if (old != NULL) {
        mem_unlink(&call->files->tree, dir, to);
    }
    mem_link(&call->files->tree, dir, to, node);
    record_name(call, MEMORY_EV_RENAME, dir, node, from, to);
    if (old != NULL) {
        mem_drop(&call->files->tree, old);
    }
    return 0;
}

static int mem_rename(struct mqx_io *io, int dir, const char *from, const char *to)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_RENAME);

    if (result == 0 && (result = check_name(from)) == 0 && (result = check_name(to)) == 0 &&
        (parent = dir_of(&call, dir, &result)) != NULL) {
        result = rename_node(&call, parent, from, to);
    }
    return end(&call, result);
}

static int move_node(struct call *call, struct mem_node *from, const char *name,
                     struct mem_node *to)
{
    struct mem_node *node = mem_lookup(from, name);
    if (node == NULL) {
        return -ENOENT;
    }
    if (node->directory || mem_lookup(to, name) != NULL) {
        return -EEXIST; /* nobody moves onto a file */
    }
    mem_unlink(&call->files->tree, from, name);
    mem_link(&call->files->tree, to, name, node);
    mem_record(call->files, from, (struct memory_event){.kind = MEMORY_EV_MOVE,
                                                        .dir = from->id,
                                                        .file = node->id,
                                                        .name = name,
                                                        .value = to->id});
    return 0;
}

static int mem_move(struct mqx_io *io, int from, const char *name, int to)
{
    struct call call;
    struct mem_node *source = NULL, *target = NULL;
    int result = begin(&call, io, MEMORY_MOVE);

    if (result == 0 && (result = check_name(name)) == 0 &&
        (source = dir_of(&call, from, &result)) != NULL &&
        (target = dir_of(&call, to, &result)) != NULL) {
        result = move_node(&call, source, name, target);
    }
    return end(&call, result);
}

static int mem_unlink_file(struct mqx_io *io, int dir, const char *name)
{
    struct call call;
    struct mem_node *parent = NULL;
    int result = begin(&call, io, MEMORY_UNLINK);

    if (result == 0 && (result = check_name(name)) == 0 &&
        (parent = dir_of(&call, dir, &result)) != NULL) {
        struct mem_node *node = mem_lookup(parent, name);
        result = node == NULL ? -ENOENT : node->directory ? -EISDIR : 0;
        if (result == 0) {
            mem_unlink(&call.files->tree, parent, name);
            record_name(&call, MEMORY_EV_UNLINK, parent, node, name, NULL);
            mem_drop(&call.files->tree, node);
        }
    }
    return end(&call, result);
}

/* The names are copied first: the visitor may change the directory. */
static int mem_list(struct mqx_io *io, int dir, mqx_io_visit visit, void *arg)
{
    struct call call;
    struct mem_names names = {NULL, 0, 0};
    int result = begin(&call, io, MEMORY_LIST);
    struct mem_node *node = result == 0 ? dir_of(&call, dir, &result) : NULL;

    if (node != NULL && node->names.count > 0) {
        size_t size = node->names.count * sizeof names.items[0];
        names.items = malloc(size);
        mqx_check(names.items != NULL);
        memcpy(names.items, node->names.items, size);
        names.count = node->names.count;
    }
    result = end(&call, result);
    for (uint32_t i = 0; i < names.count && visit(arg, names.items[i].name) == 0; i++) {
    }
    free(names.items);
    return result;
}

/* ---- content ---- */

/* The file behind fd, or NULL with *error set. */
static struct mem_node *file_of(struct call *call, int fd, bool for_writing, int *error)
{
    struct mem_fd *entry = fd_of(call, fd);

    *error = entry == NULL || (for_writing && !entry->writable) ? -EBADF
             : entry->node->directory                           ? -EISDIR
                                                                : 0;
    return *error == 0 ? entry->node : NULL;
}

static int64_t mem_read(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset)
{
    struct call call;
    int result = begin(&call, io, MEMORY_READ);
    struct mem_node *node = result == 0 ? file_of(&call, fd, false, &result) : NULL;
    uint64_t n = 0;

    if (node != NULL && offset < node->size) {
        n = node->size - offset < size ? node->size - offset : size;
        if (strikes(&call, MEMORY_FAULT_SHORT) && call.files->fault.detail < n) {
            n = call.files->fault.detail;
        }
        result = mem_back(&call.files->tree, node, offset + n);
        memcpy(to, node->data + offset, n);
        if (n > 0 && strikes(&call, MEMORY_FAULT_FLIP)) {
            uint64_t bit = call.files->fault.detail % (8 * n);
            ((uint8_t *)to)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    result = end(&call, result);
    return result != 0 ? result : (int64_t)n;
}

static void record_bytes(struct call *call, enum memory_event_kind kind, struct mem_node *node,
                         uint64_t offset, uint64_t size)
{
    bool write = kind == MEMORY_EV_WRITE || kind == MEMORY_EV_DWRITE;
    const uint8_t *data = write ? node->data + offset : NULL;
    struct memory_event event = {
        .kind = kind, .file = node->id, .offset = offset, .size = size, .data = data};
    mem_record(call->files, node, event);
}

/* Writes the first `size` bytes of the parts; *done says how many got in. */
static int write_parts(struct call *call, struct mem_node *node, const struct iovec *parts,
                       int part_count, uint64_t offset, uint64_t size, uint64_t *done)
{
    int result = 0;

    for (int i = 0; i < part_count && *done < size && result == 0; i++) {
        uint64_t n = parts[i].iov_len < size - *done ? parts[i].iov_len : size - *done;
        result = mem_write(&call->files->tree, node, parts[i].iov_base, n, offset + *done);
        *done += result == 0 ? n : 0;
    }
    return result;
}

static int write_node(struct call *call, struct mem_node *node, const struct iovec *parts,
                      int part_count, uint64_t offset, bool dsync)
{
    uint64_t size = 0;
    uint64_t done = 0;

    for (int i = 0; i < part_count; i++) {
        size += parts[i].iov_len;
    }
    bool cut = strikes(call, MEMORY_FAULT_SHORT);
    if (cut && call->files->fault.detail < size) {
        size = call->files->fault.detail;
    }
    int result = write_parts(call, node, parts, part_count, offset, size, &done);
    bool lost = dsync && strikes(call, MEMORY_FAULT_FLUSH);
    bool whole = result == 0 && !cut && !lost;
    if (done > 0) {
        record_bytes(call, dsync && whole ? MEMORY_EV_DWRITE : MEMORY_EV_WRITE, node, offset, done);
    }
    if (lost && done > 0) {
        record_bytes(call, MEMORY_EV_LOST, node, offset, done);
    }
    return whole ? 0 : result != 0 ? result : -call->files->fault.error;
}

static int mem_write_parts(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                           uint64_t offset, int flags)
{
    struct call call;
    int result = begin(&call, io, MEMORY_WRITE);
    struct mem_node *node = result == 0 ? file_of(&call, fd, true, &result) : NULL;

    if (node != NULL) {
        result = write_node(&call, node, parts, part_count, offset, (flags & MQX_IO_DSYNC) != 0);
    }
    return end(&call, result);
}

static int mem_sync(struct mqx_io *io, int fd)
{
    struct call call;
    int result = begin(&call, io, MEMORY_SYNC);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (entry != NULL && strikes(&call, MEMORY_FAULT_FLUSH)) {
        record_bytes(&call, MEMORY_EV_LOST, entry->node, 0, entry->node->size);
        result = -call.files->fault.error;
    } else if (entry != NULL) {
        record_bytes(&call, MEMORY_EV_SYNC, entry->node, 0, 0);
    }
    return end(&call, result);
}

static int mem_sync_dir(struct mqx_io *io, int dir)
{
    struct call call;
    int result = begin(&call, io, MEMORY_SYNC_DIR);
    struct mem_node *node = result == 0 ? dir_of(&call, dir, &result) : NULL;

    if (node != NULL && strikes(&call, MEMORY_FAULT_FLUSH)) {
        result = -call.files->fault.error;
    } else if (node != NULL) {
        mem_record(call.files, node, (struct memory_event){.kind = MEMORY_EV_DIRSYNC,
                                                           .dir = node->id});
    }
    return end(&call, result);
}

static int mem_truncate(struct mqx_io *io, int fd, uint64_t size)
{
    struct call call;
    int result = begin(&call, io, MEMORY_TRUNCATE);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (entry != NULL && !entry->writable) {
        result = -EINVAL;
    } else if (entry != NULL) {
        result = mem_set_size(&call.files->tree, entry->node, size);
        if (result == 0) {
            record_bytes(&call, MEMORY_EV_TRUNCATE, entry->node, 0, size);
        }
    }
    return end(&call, result);
}

static int mem_allocate_range(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    struct call call;
    int result = begin(&call, io, MEMORY_ALLOCATE);
    struct mem_node *node = result == 0 ? file_of(&call, fd, true, &result) : NULL;

    if (node != NULL && (size == 0 || offset > INT64_MAX || size > INT64_MAX)) {
        result = -EINVAL;
    } else if (node != NULL) {
        result = mem_allocate(&call.files->tree, node, offset + size);
        if (result == 0) {
            record_bytes(&call, MEMORY_EV_ALLOCATE, node, offset, size);
        }
    }
    return end(&call, result);
}

/* ---- the rest ---- */

static int mem_stat(struct mqx_io *io, int fd, struct mqx_io_stat *out)
{
    struct call call;
    int result = begin(&call, io, MEMORY_STAT);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (entry != NULL) {
        *out = (struct mqx_io_stat){
            .size = entry->node->size,
            .device = DEVICE,
            .inode = entry->node->id,
            .mode = entry->node->mode,
            .owner = (uint32_t)geteuid(),
            .group = (uint32_t)getegid(),
            .links = entry->node->links,
        };
    }
    return end(&call, result);
}

static int mem_medium(struct mqx_io *io, int dir, enum mqx_io_medium *out)
{
    struct call call;
    int result = begin(&call, io, MEMORY_MEDIUM);
    struct mem_fd *entry = result == 0 ? fd_of(&call, dir) : NULL;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (entry != NULL) {
        *out = entry->node->region ? MQX_MEDIUM_MEMORY : call.files->medium;
    }
    return end(&call, result);
}

/* Somebody else's lock that stands in the way, or NULL. */
static struct mem_lock *conflict(struct call *call, const struct mem_lock *want)
{
    for (uint32_t i = 0; i < call->files->lock_count; i++) {
        struct mem_lock *lock = &call->files->locks[i];
        if (lock->node == want->node && lock->pid != want->pid && lock->start < want->end &&
            want->start < lock->end && (lock->exclusive || want->exclusive)) {
            return lock;
        }
    }
    return NULL;
}

static void add_lock(struct memory_io *files, struct mem_lock lock)
{
    if (lock.start < lock.end) {
        files->locks = mem_grow(files->locks, files->lock_count, &files->lock_capacity,
                                sizeof files->locks[0]);
        files->locks[files->lock_count++] = lock;
    }
}

/* Takes [start, end) out of the process's locks on that file, splitting where needed. */
static void carve_locks(struct memory_io *files, const struct mem_lock *hole)
{
    uint32_t count = files->lock_count;

    for (uint32_t i = 0; i < count; i++) {
        struct mem_lock lock = files->locks[i];
        if (lock.node == hole->node && lock.pid == hole->pid && lock.start < hole->end &&
            hole->start < lock.end) {
            files->locks[i].end = lock.start < hole->start ? hole->start : lock.start;
            lock.start = hole->end;
            add_lock(files, lock);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < files->lock_count; i++) {
        if (files->locks[i].start < files->locks[i].end) {
            files->locks[kept++] = files->locks[i];
        }
    }
    files->lock_count = kept;
}

static bool lock_range_valid(uint64_t offset, uint64_t size)
{
    return size > 0 && size <= INT64_MAX && offset <= INT64_MAX - size;
}

static int mem_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int kind)
{
    struct call call;
    int result = begin(&call, io, MEMORY_LOCK);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;
    bool exclusive = kind == MQX_IO_LOCK_EXCLUSIVE;

    if (result == 0 && (entry == NULL || (exclusive && !entry->writable))) {
        result = -EBADF;
    } else if (result == 0 && !lock_range_valid(offset, size)) {
        result = -EINVAL;
    } else if (result == 0) {
        struct mem_lock want = {entry->node, offset, offset + size, call.pid, exclusive};
        if (kind != MQX_IO_UNLOCK && conflict(&call, &want) != NULL) {
            result = -EAGAIN;
        } else {
            carve_locks(call.files, &want);
            if (kind != MQX_IO_UNLOCK) {
                add_lock(call.files, want);
            }
        }
    }
    return end(&call, result);
}

static int mem_test_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int32_t *pid)
{
    struct call call;
    int result = begin(&call, io, MEMORY_TEST_LOCK);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (result == 0 && !lock_range_valid(offset, size)) {
        result = -EINVAL;
    } else if (result == 0) {
        struct mem_lock want = {entry->node, offset, offset + size, call.pid, true};
        struct mem_lock *other = conflict(&call, &want);
        *pid = other != NULL ? other->pid : 0;
    }
    return end(&call, result);
}

static int mem_map(struct mqx_io *io, int fd, uint64_t size, int kind, void **out)
{
    struct call call;
    int result = begin(&call, io, MEMORY_MAP);
    struct mem_fd *entry = result == 0 ? fd_of(&call, fd) : NULL;
    bool region = kind == MQX_IO_MAP_REGION;

    if (result == 0 && entry == NULL) {
        result = -EBADF;
    } else if (result == 0 && (size == 0 || entry->node->directory)) {
        result = size == 0 ? -EINVAL : -ENODEV;
    } else if (result == 0 && region && !entry->writable) {
        result = -EACCES;
    } else if (result == 0) {
        mqx_check(entry->node->region || !region); /* see memory_io_region_dir() */
        result = mem_back(&call.files->tree, entry->node, size) == 0 ? 0 : -ENOMEM;
    }
    if (result == 0) {
        mem_touch(&call.files->tree, entry->node);
        entry->node->maps++;
        *out = region ? entry->node->data : (void *)(uintptr_t)entry->node->view;
    }
    return end(&call, result);
}

/* The node whose mapping starts at `at`, or NULL. */
static struct mem_node *mapped_at(struct mem_files *tree, const void *at)
{
    for (uint32_t i = 0; i < tree->node_count; i++) {
        if (tree->nodes[i]->maps > 0 && tree->nodes[i]->view == at) {
            return tree->nodes[i];
        }
    }
    return NULL;
}

static int mem_unmap(struct mqx_io *io, void *at, uint64_t size)
{
    struct call call;
    int result = begin(&call, io, MEMORY_UNMAP);
    struct mem_node *node = mapped_at(&call.files->tree, at);

    if (node == NULL || size == 0) {
        result = -EINVAL;
    } else {
        node->maps--;
        mem_drop(&call.files->tree, node);
        result = strikes(&call, MEMORY_FAULT_ERROR) ? -call.files->fault.error : 0;
    }
    return end(&call, result);
}

static int mem_populate(struct mqx_io *io, const void *at, uint64_t size)
{
    struct call call;
    (void)at;
    (void)size;
    int result = begin(&call, io, MEMORY_POPULATE);
    return end(&call, result);
}

static int mem_drop_cache(struct mqx_io *io, int fd)
{
    struct call call;
    int result = begin(&call, io, MEMORY_DROP_CACHE);
    if (result == 0 && fd_of(&call, fd) == NULL) {
        result = -EBADF;
    }
    return end(&call, result);
}

static uint64_t mem_now_us(struct mqx_io *io)
{
    struct mem_process *process = io->context;
    pthread_mutex_lock(&process->files->mutex);
    uint64_t now = process->files->now_us++;
    pthread_mutex_unlock(&process->files->mutex);
    return now;
}

const struct mqx_io_ops mem_ops = {
    .open_dir = mem_open_dir,
    .open_sub = mem_open_sub,
    .make_sub = mem_make_sub,
    .remove_sub = mem_remove_sub,
    .open = mem_open,
    .close = mem_close,
    .read = mem_read,
    .write = mem_write_parts,
    .sync = mem_sync,
    .sync_dir = mem_sync_dir,
    .truncate = mem_truncate,
    .allocate = mem_allocate_range,
    .rename = mem_rename,
    .move = mem_move,
    .unlink = mem_unlink_file,
    .list = mem_list,
    .stat = mem_stat,
    .medium = mem_medium,
    .lock = mem_lock,
    .test_lock = mem_test_lock,
    .map = mem_map,
    .unmap = mem_unmap,
    .populate = mem_populate,
    .drop_cache = mem_drop_cache,
    .now_us = mem_now_us,
};
