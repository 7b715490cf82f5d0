/*
 * memory_io.h - a file table (csrc/io.h) whose files live in memory, for tests.
 *
 * It behaves as the real one does where the core can tell the difference, and adds what no real
 * file system offers: other processes that are only numbers, faults at a chosen call, a recording
 * of everything that would reach a disk, and images that can be put back in microseconds.
 *
 *     struct memory_io *files = memory_io_new();
 *     memory_io_make_dirs(files, "/home");          // where queue managers are created
 *     memory_io_region_dir(files, "/dev/shm");      // files below are regions: not recorded
 *     struct mqx_io *io = memory_io_table(files);   // hand this to the core
 *
 * Paths are absolute; "/" is the root. Limits: names below 80 bytes, files up to 128 MiB, region
 * files up to 64 GiB of sparse memory, 1024 files at a time, 1024 descriptors.
 *
 * Mappings of kind READ are truly read-only: a store into them faults. Mappings of kind REGION of
 * one file are the same memory at the same address, shared with forked children.
 *
 * Threads: one mutex; every function may be called from any thread.
 */
#ifndef PENSTOCK_TESTS_MEMORY_IO_H
#define PENSTOCK_TESTS_MEMORY_IO_H

#include "../../csrc/io.h"

struct memory_io;

struct memory_io *memory_io_new(void);
void memory_io_free(struct memory_io *files);

/* ---- processes: record locks belong to one, and go when it closes any descriptor of the file */

enum { MEMORY_IO_PID = 1000 };
/* The table of process MEMORY_IO_PID, enough for most tests. */
struct mqx_io *memory_io_table(struct memory_io *files);
/* The table of another process that sees the same files. */
struct mqx_io *memory_io_process(struct memory_io *files, int32_t pid);
/* Its descriptors are closed and its locks dropped, as when it dies (its mappings stay counted). */
void memory_io_kill(struct memory_io *files, int32_t pid);
/* Descriptors open and mappings held now, of all processes. */
uint32_t memory_io_open_count(struct memory_io *files);
uint32_t memory_io_map_count(struct memory_io *files);

/* ---- surroundings; none of these calls is recorded, numbered or failed ---- */

void memory_io_make_dirs(struct memory_io *files, const char *path);
void memory_io_region_dir(struct memory_io *files, const char *path);
/* Starts at 1,700,000,000 s; moves 1 us with every look, so that it ascends. */
void memory_io_set_clock(struct memory_io *files, uint64_t now_us);
void memory_io_set_medium(struct memory_io *files, enum mqx_io_medium medium);
/* Bytes that files (region files) may occupy before ENOSPC. */
void memory_io_set_space(struct memory_io *files, uint64_t file_bytes, uint64_t region_bytes);
/* Creates or replaces a file. */
void memory_io_put(struct memory_io *files, const char *path, const void *data, uint64_t size);
/* Its bytes, or NULL when there is no such file; valid until the file goes. */
const uint8_t *memory_io_bytes(struct memory_io *files, const char *path, uint64_t *size);
/* Overwrites bytes in place, behind everybody's back. */
void memory_io_patch(struct memory_io *files, const char *path, uint64_t offset, const void *data,
                     uint64_t size);
void memory_io_flip_bit(struct memory_io *files, const char *path, uint64_t bit);
void memory_io_cut(struct memory_io *files, const char *path, uint64_t size);
bool memory_io_remove(struct memory_io *files, const char *path); /* false: was not there */

/* ---- calls and faults ---- */

enum memory_op {
    MEMORY_OPEN_DIR, MEMORY_OPEN_SUB, MEMORY_MAKE_SUB, MEMORY_REMOVE_SUB, MEMORY_OPEN, MEMORY_CLOSE,
    MEMORY_READ, MEMORY_WRITE, MEMORY_SYNC, MEMORY_SYNC_DIR, MEMORY_TRUNCATE, MEMORY_ALLOCATE,
    MEMORY_RENAME, MEMORY_MOVE, MEMORY_UNLINK, MEMORY_LIST, MEMORY_STAT, MEMORY_MEDIUM, MEMORY_LOCK,
    MEMORY_TEST_LOCK, MEMORY_MAP, MEMORY_UNMAP, MEMORY_POPULATE, MEMORY_DROP_CACHE,
    MEMORY_OP_COUNT
};
const char *memory_op_name(enum memory_op op);
/* Calls so far, of one kind or (MEMORY_OP_COUNT) of all. now_us has no number: it cannot fail. */
uint64_t memory_io_calls(struct memory_io *files, enum memory_op op);

enum memory_fault_kind {
    MEMORY_FAULT_NONE,
    MEMORY_FAULT_ERROR, /* the call does nothing and fails; close and unmap are done and fail */
    MEMORY_FAULT_SHORT, /* write: the first `detail` bytes are written, then it fails;
                         * read: at most `detail` bytes come, as at the end of the file */
    MEMORY_FAULT_FLUSH, /* sync, sync_dir, write with DSYNC: data stays in the cache, it fails;
                         * the kernel believes the pages clean, a later sync does not write them */
    MEMORY_FAULT_FLIP,  /* read: bit `detail` (modulo the size) of what is read is wrong */
};

struct memory_fault {
    enum memory_fault_kind kind;
    uint64_t at;     /* first failing call, counted from 1 at memory_io_set_fault() among `ops` */
    bool for_ever;   /* every later call of `ops`, too */
    uint32_t ops;    /* 1u << memory_op, ...; 0 means all */
    int error;       /* errno, such as EIO */
    uint64_t detail;
};

/* Arms a fault (NULL: none) and starts its counting anew. */
void memory_io_set_fault(struct memory_io *files, const struct memory_fault *fault);
/* Calls of the fault's ops since it was armed. */
uint64_t memory_io_fault_calls(struct memory_io *files);
/* How often it has struck. A fault that does not fit the call it met (FLIP at a write) has not. */
uint64_t memory_io_fault_strikes(struct memory_io *files);

/* Called before each numbered call, outside the mutex; may end the process or leave by longjmp. */
typedef void (*memory_io_hook)(void *arg, enum memory_op op, uint64_t number);
void memory_io_set_hook(struct memory_io *files, memory_io_hook hook, void *arg);

/* ---- recorder ---- */

enum memory_event_kind {
    MEMORY_EV_CREATE,   /* dir, file, name: a file or (is_dir) a directory */
    MEMORY_EV_RENAME,   /* dir, file, name -> to */
    MEMORY_EV_MOVE,     /* dir, file, name -> value, the other directory; in one step */
    MEMORY_EV_UNLINK,   /* dir, file, name (remove_sub, too) */
    MEMORY_EV_WRITE,    /* file, offset, size, data */
    MEMORY_EV_DWRITE,   /* the same with DSYNC: durable when it returned */
    MEMORY_EV_SYNC,     /* file */
    MEMORY_EV_LOST,     /* file, offset, size: a flush failed; these bytes count as clean, but
                         * nobody knows whether they are on the medium */
    MEMORY_EV_DIRSYNC,  /* dir */
    MEMORY_EV_ALLOCATE, /* file, offset, size */
    MEMORY_EV_TRUNCATE, /* file, size */
    MEMORY_EV_ACK,      /* value: the test's own mark */
};

struct memory_event {
    enum memory_event_kind kind;
    bool is_dir;
    uint32_t dir;        /* number of the directory */
    uint32_t file;       /* number of the file or directory; never given twice */
    uint64_t offset;
    uint64_t size;
    const uint8_t *data; /* NULL: zeroes */
    const char *name;
    const char *to;
    uint64_t value;
    uint64_t call;       /* memory_io_calls() of all kinds when it happened */
};

struct memory_trace_start { /* what was there when recording began, parents first */
    uint32_t dir;
    uint32_t file;
    bool is_dir;
    const char *name;
    const uint8_t *data;
    uint64_t size;
};

struct memory_trace {
    const char *path;   /* of the recorded directory */
    uint32_t root;      /* its number */
    struct memory_trace_start *start;
    uint32_t start_count;
    uint32_t start_capacity;
    struct memory_event *events;
    uint32_t event_count;
    uint32_t event_capacity;
    void *memory;       /* behind the pointers above */
};

/* Records from now on what happens at and below the directory `path` (region directories excluded),
 * which must exist. The sequence number of an event is its index. */
void memory_io_record(struct memory_io *files, const char *path);
void memory_io_ack(struct memory_io *files, uint64_t value);
/* Ends the recording and hands it over; NULL when none was on. */
struct memory_trace *memory_io_take_trace(struct memory_io *files);
void memory_trace_free(struct memory_trace *trace);

/* ---- images ---- */

struct memory_image_file {
    char *path;     /* relative to the image's directory, parents before their children */
    bool directory;
    uint8_t *data;
    uint64_t size;
};

struct memory_image {
    struct memory_image_file *files;
    uint32_t count;
    uint32_t capacity;
};

/* A copy of everything below the directory. */
struct memory_image *memory_image_take(struct memory_io *files, const char *path);
/* Makes the directory equal to the image (creating it), copying only pages that differ. */
void memory_image_load(struct memory_io *files, const char *path, const struct memory_image *image);
/* Writes it into a real, existing directory; 0 or a negated errno. */
int memory_image_write(const struct memory_image *image, const char *real_path) MQX_MUST_USE;
void memory_image_free(struct memory_image *image);

/* Remembers all files (not region files) as they are; restore goes back, closing every descriptor,
 * dropping every lock, forgetting later mappings and ending a recording. Cost: what changed. */
void memory_io_freeze(struct memory_io *files);
void memory_io_restore(struct memory_io *files);

#endif
