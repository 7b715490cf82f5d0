/*
 * store_bed.h - a small queue manager in memory (memory_io.h) or in a real temporary directory, for
 * tests of attaching, catalog, error log and maintenance.
 *
 * Memory: each bed_attach() is a process of its own, a number; bed_kill() ends it as SIGKILL would.
 * Real files: one process is one process; children connect by bed_attach_real().
 */
#ifndef PENSTOCK_TESTS_STORE_BED_H
#define PENSTOCK_TESTS_STORE_BED_H

#include "attach.h"
#include "attachment.h"
#include "catalog.h"
#include "checkpoint.h"
#include "error.h"
#include "harness.h"
#include "journal.h"
#include "lockfile.h"
#include "memory_io.h"
#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define BED_PATH "/home/QM1"
#define BED_REGIONS "/dev/shm"

__attribute__((unused)) static const uint8_t bed_qm_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

__attribute__((unused)) static void bed_plan(struct mqx_region_plan *plan)
{
    mqx_region_default_plan(plan);
    plan->size = UINT64_C(4) << 30;
    plan->ring_size = 256 << 10;
    plan->segment_size = 1 << 20;
    plan->first_segment_size = 256 << 10;
    plan->journal_limit = 64 << 20;
    plan->stripe_count = 4;
    plan->name_bucket_count = 1024;
    plan->growth_step = 64 << 10;
}

/* Subdirectories and first files in an existing directory. */
__attribute__((unused)) static int bed_fill(struct mqx_io *io, const char *path)
{
    static const char *const names[] = {"journal", "checkpoint", "errors"};
    struct mqx_region_plan plan;
    int fd[3];
    bed_plan(&plan);
    int dir = io->ops->open_dir(io, path);
    if (dir < 0) {
        return -dir;
    }
    for (int i = 0; i < 3; i++) {
        int err = io->ops->make_sub(io, dir, names[i], 0700);
        fd[i] = err < 0 ? err : io->ops->open_sub(io, dir, names[i]);
        if (fd[i] < 0) {
            return -fd[i];
        }
    }
    int status = mqx_journal_create(io, fd[0], fd[1], bed_qm_id, &plan);
    for (int i = 0; i < 3; i++) {
        (void)io->ops->close(io, fd[i]);
    }
    (void)io->ops->close(io, dir);
    return status;
}

/* Stores attached now, so that what a failed test left does not get into the next one's way. */
static struct mqx_store *bed_stores[64];
static pthread_mutex_t bed_mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((unused)) static void bed_unnote(const struct mqx_store *store)
{
    pthread_mutex_lock(&bed_mutex);
    for (int i = 0; i < 64; i++) {
        bed_stores[i] = bed_stores[i] == store ? NULL : bed_stores[i];
    }
    pthread_mutex_unlock(&bed_mutex);
}

__attribute__((unused)) static void bed_note(struct mqx_store *store)
{
    bool noted = false;
    bed_unnote(store);
    pthread_mutex_lock(&bed_mutex);
    for (int i = 0; i < 64 && !noted; i++) {
        noted = bed_stores[i] == NULL;
        bed_stores[i] = noted ? store : bed_stores[i];
    }
    pthread_mutex_unlock(&bed_mutex);
}

static int32_t bed_next_pid;

/* A fresh queue manager in memory. */
__attribute__((unused)) static struct memory_io *bed_new(void)
{
    struct memory_io *files = memory_io_new();
    bed_next_pid = 2000;
    for (int i = 0; i < 64; i++) {
        if (bed_stores[i] != NULL) {
            mqx_attach_forget(bed_stores[i]);
            bed_stores[i] = NULL;
        }
    }
    memory_io_make_dirs(files, BED_PATH);
    memory_io_region_dir(files, BED_REGIONS);
    CHECK_INT(bed_fill(memory_io_table(files), BED_PATH), 0);
    return files;
}

static mqe_manager *bed_managers[4096]; /* all that were made, so that they stay reachable */
static int bed_manager_count;

struct bed_process { /* an attached process */
    mqe_manager *manager; /* on the heap for ever: a test may end by longjmp */
    struct mqx_store *store;
    struct mqx_attach_report report;
    int32_t pid;
    uint32_t context;  /* for changes of the catalog */
};

__attribute__((unused)) static int bed_attach_io(struct mqx_io *io, const char *path,
                                                 const char *regions, struct bed_process *out)
{
    memset(out, 0, sizeof *out);
    out->manager = calloc(1, sizeof *out->manager);
    const int number = __atomic_fetch_add(&bed_manager_count, 1, __ATOMIC_RELAXED);
    CHECK(out->manager != NULL && number < (int)MQX_ARRAY_COUNT(bed_managers));
    bed_managers[number] = out->manager;
    out->store = &out->manager->store;
    out->store->io = io;
    bed_plan(&out->store->plan);
    memcpy(out->store->qm_id, bed_qm_id, sizeof bed_qm_id);
    strcpy(out->store->name, "QM1");
    pthread_mutex_init(&out->manager->pool_mutex, NULL);
    int status = mqx_attach(out->store, path, regions, &out->report);
    if (status == 0) {
        bed_note(out->store);
        status = mqx_slot_take(&out->store->region, MQX_AREA_CONTEXTS, NULL, &out->context);
        if (status != 0) {
            uint64_t ignored = 0;
            bed_unnote(out->store);
            (void)mqx_detach(out->store, MQX_CHECKPOINT_CLEAN, &ignored);
        }
    }
    return status;
}

__attribute__((unused)) static int bed_try_attach(struct memory_io *files, struct bed_process *out)
{
    const int32_t pid = bed_next_pid++;
    int status = bed_attach_io(memory_io_process(files, pid), BED_PATH, BED_REGIONS, out);
    out->pid = pid;
    return status;
}

__attribute__((unused)) static void bed_attach(struct memory_io *files, struct bed_process *out)
{
    int status = bed_try_attach(files, out);
    if (status != 0) {
        printf("\n    attach: %s", mqx_error_text());
    }
    CHECK_INT(status, 0);
}

__attribute__((unused)) static int bed_detach(struct bed_process *process, uint64_t *np_discarded)
{
    uint64_t ignored = 0;
    bed_unnote(process->store);
    return mqx_detach(process->store, MQX_CHECKPOINT_CLEAN,
                      np_discarded != NULL ? np_discarded : &ignored);
}

/* As SIGKILL: descriptors and locks go, memory of the process is never looked at again. */
__attribute__((unused)) static void bed_kill(struct memory_io *files, struct bed_process *process)
{
    bed_unnote(process->store);
    mqx_journal_detach(process->store); /* memory of the process, and nothing on the disk */
    mqx_attach_forget(process->store);
    memory_io_kill(files, process->pid);
}

/* ---- definitions and messages ---- */

struct bed_attrs {
    uint64_t bytes[64];
    uint32_t length;
};

__attribute__((unused)) static void bed_attr(struct bed_attrs *attrs, int32_t selector,
                                             int64_t value)
{
    const struct ps_attr head = {.selector = selector, .kind = 1, .length = 8};
    CHECK(attrs->length + 16 <= sizeof attrs->bytes);
    memcpy((char *)attrs->bytes + attrs->length, &head, 8);
    memcpy((char *)attrs->bytes + attrs->length + 8, &value, 8);
    attrs->length += 16;
}

__attribute__((unused)) static struct mqx_definition bed_definition(const char *name,
                                                                    const struct bed_attrs *attrs)
{
    struct mqx_definition def = {.name = {.name_space = MQX_NAMES_QUEUE, .type = 1}};
    memset(def.name.name, ' ', sizeof def.name.name);
    memcpy(def.name.name, name, strlen(name));
    def.attrs = attrs != NULL ? attrs->bytes : NULL;
    def.attrs_length = attrs != NULL ? attrs->length : 0;
    return def;
}

struct bed_queue {
    uint32_t slot;
    uint32_t generation;
};

__attribute__((unused)) static int bed_define(struct bed_process *process, const char *name,
                                              const struct bed_attrs *attrs, struct bed_queue *out)
{
    struct mqx_definition def = bed_definition(name, attrs);
    return mqx_catalog_define(process->store, process->context, &def, &out->slot,
                              &out->generation);
}

__attribute__((unused)) static int bed_find(struct bed_process *process, const char *name,
                                            struct bed_queue *out)
{
    struct mqx_definition def = bed_definition(name, NULL);
    struct mqe_found found = {0};
    const int status =
        mqx_catalog_find(process->store, MQX_NAMES_QUEUE, def.name.name, 0, &found);
    if (status == MQX_OK) {
        out->slot = found.slot;
        out->generation = found.generation;
    }
    return status;
}

__attribute__((unused)) static int bed_put(struct bed_process *process, mqe_unit *unit,
                                           struct bed_queue queue, bool persistent,
                                           const char *text, int32_t expiry)
{
    const struct mqe_destination to = mqe_straight(queue.slot, queue.generation);
    struct ps_descriptor d = {.priority = 0, .persistence = persistent, .md_version = 2};
    return mqe_put(process->manager, unit, &to, &d, NULL, text, strlen(text), expiry, 0);
}

/* The first message, NUL-terminated; *count its BackoutCount. */
__attribute__((unused)) static int bed_get(struct bed_process *process, mqe_unit *unit,
                                           struct bed_queue queue, char text[64], uint32_t *count)
{
    mqe_queue *handle = NULL;
    struct mqe_get get = {.buffer = text, .capacity = 63};
    int status = mqe_open_straight(process->manager, queue.slot, queue.generation, 1, &handle);
    if (status == 0) {
        status = mqe_get(process->manager, unit, handle, &get);
        text[status == 0 ? get.length : 0] = '\0';
        *count = get.d.backout_count;
        mqe_close(handle, MQE_CLOSE_KEEP);
    }
    return status;
}

/* ---- real files ---- */

struct bed_place {
    char path[64];
    char regions[64];
};

/* Removes a directory made by mkdtemp with everything in it: at most two levels. */
__attribute__((unused)) static void bed_remove_tree(const char *path, int depth)
{
    char name[512];
    struct dirent *entry;
    DIR *dir = opendir(path);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            if (unlink(name) != 0 && depth > 0) {
                bed_remove_tree(name, depth - 1);
            }
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    rmdir(path);
}

__attribute__((unused)) static void bed_leave_place(struct bed_place *place)
{
    bed_remove_tree(place->path, 2);
    bed_remove_tree(place->regions, 1);
}

/* A queue manager in a temporary directory; regions in a directory of our own below /dev/shm. */
__attribute__((unused)) static void bed_make_place(struct bed_place *place)
{
    strcpy(place->path, "/tmp/penstock-bed-XXXXXX");
    strcpy(place->regions, "/dev/shm/penstock-bed-XXXXXX");
    CHECK(mkdtemp(place->path) != NULL);
    CHECK(mkdtemp(place->regions) != NULL);
    CHECK_INT(bed_fill(mqx_io_posix(), place->path), 0);
}

__attribute__((unused)) static int bed_attach_real(const struct bed_place *place,
                                                   struct mqx_io *io, struct bed_process *out)
{
    int status = bed_attach_io(io, place->path, place->regions, out);
    out->pid = (int32_t)getpid();
    return status;
}

/* Runs body(arg) in a child that ends with its result; its pid. */
__attribute__((unused)) static pid_t bed_child(int (*body)(void *), void *arg)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(body(arg));
    }
    CHECK(child > 0);
    return child;
}

/* The exit code, or 1000 + signal. */
__attribute__((unused)) static int bed_wait(pid_t child)
{
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Does the newest log contain that text? */
__attribute__((unused)) static bool bed_logged(struct memory_io *files, const char *text)
{
    uint64_t size = 0;
    const uint8_t *bytes = memory_io_bytes(files, BED_PATH "/errors/AMQERR01.LOG", &size);
    return bytes != NULL && memmem(bytes, size, text, strlen(text)) != NULL;
}

#endif
