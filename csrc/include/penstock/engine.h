/*
 * engine.h - the public header of the core: what Python, C tests and benchmarks call. (The other
 * one is journal_scan.h; descriptor.h has the structs that both the interface and the files use.)
 *
 * Results. Every function returns an MQ reason code (0 = MQRC_NONE) and puts outputs last. A reason
 * with completion code MQCC_WARNING (mqe_comp_code) may come with an effect: 2049 and 2079 took
 * effect, 2080 did not. mqe_error_text() gives this thread's text for the newest failure: the
 * value, the rule. The codes below are not MQ reasons: they never reach an application.
 *
 * Threads. A manager may be used by any number of threads. A unit is used by one thread at a time.
 * A queue handle may be shared for put and get; its browse cursor is protected by a lock of its
 * own.
 *
 * Locks and blocking. No function returns with a lock held. Puts and gets of non-persistent
 * messages make no system call unless a waiter has to be woken. Before a call sleeps it invokes the
 * hook of mqe_block_hook_arm() once.
 *
 * Durability. When a put or get of a persistent message outside syncpoint, or mqe_commit(), returns
 * 0, its effect is on disk. 2009 from them means: outcome unknown until restart.
 *
 * Fork. In a child every call returns MQRC_ENVIRONMENT_ERROR and closing does nothing (rule 32).
 */
#ifndef PENSTOCK_ENGINE_H
#define PENSTOCK_ENGINE_H

#include "base/base.h"
#include "base/error.h"
#include "penstock/descriptor.h"

enum {
    MQE_INTERRUPTED = 90101, /* a wait met a signal, or lasts (mqe_interrupt_allow): look at
                              * signals, call again with what is left */
    MQE_CHANGED = 90102,     /* the object has been altered since it was read: read it again */
    MQE_ATTENDED = 90104,    /* the queue asks more of a put: nothing was put, mqe_put_attended() */
    MQE_CONFIRM = 90103,     /* the message found asks for a confirmation of its delivery, and stays
                              * where it is (MQE_GET_CONFIRM) */
    MQE_LISTED = 90105,      /* there is no message, and the call waits (MQE_GET_LISTED) */
    MQE_EXPIRED = 90106,     /* an expired message on the way asks for a report, which comes first
                              * (MQE_GET_REPORT_EXPIRED): get it with MQE_MATCH_EXPIRED and its
                              * number, in one unit with the report, and call again */
};

struct mqe_manager;
struct mqe_unit;
struct mqe_queue;
typedef struct mqe_manager mqe_manager;
typedef struct mqe_unit mqe_unit;
typedef struct mqe_queue mqe_queue;

/* ---- queue managers ---- */

struct mqe_settings { /* from qm.toml; 0 = default */
    char name[49];
    uint8_t qm_id[16];
    uint32_t platform;            /* 0 unix, 1 z/OS */
    uint64_t segment_size;        /* bytes, page multiple, >= 32 KiB */
    uint64_t first_segment_size;
    uint64_t journal_limit;       /* bytes of all segment files */
    uint64_t ring_size;           /* power of two >= 256 KiB */
    uint64_t region_size;         /* of the sparse region */
    uint64_t body_budget;         /* persistent body bytes kept in the region */
    uint32_t stripe_count;
    uint32_t name_bucket_count;
    uint32_t growth_step;
    uint32_t max_uncommitted;     /* MAXUMSGS */
    uint32_t max_message;         /* MAXMSGL of the queue manager */
    uint32_t max_unit_age;        /* seconds after which an open unit is backed out; 0: never */
    const char *region_dir;       /* NULL = /dev/shm, or memory where that is small */
    uint32_t linear;              /* 1: retired segments move to archive/, for scans and replay */
    uint32_t keeper;              /* 1: this attachment is `penstock start` */
    uint32_t control;             /* 1: administers it, so it may attach while it is quiescing */
    uint32_t keep_mapping;        /* 1: of the region, for the next attachment of this process to
                                   * it; kept until it attaches to another one, or ends */
    uint32_t no_maintenance;      /* 1: no maintenance thread (tests) */
    uint64_t group;               /* 1 + id of the group whose members share the files; 0 none */
};

/* Makes the sub-directories, the lock file, the first segment and checkpoint in the existing empty
 * directory `path`. 2100 when there is a journal already. */
int mqe_create(const char *path, const struct mqe_settings *settings) MQX_MUST_USE;

struct mqe_attach_info {
    uint32_t first;               /* restart recovery ran here */
    uint32_t clean;               /* after an orderly end */
    uint64_t messages;            /* recovered */
    uint64_t np_discarded;        /* non-persistent messages that the restart discarded */
    uint64_t records_replayed;
    uint64_t torn_bytes;
};

/* Attaches, running restart recovery when no process is attached. Several calls in one process for
 * the same directory (device + inode) share one attachment (rule 36). 2161: it is quiescing, and
 * this is no control attachment; 2059: it has stopped, and processes have not left it yet. */
int mqe_attach(const char *path, const struct mqe_settings *settings, mqe_manager **out,
               struct mqe_attach_info *info) MQX_MUST_USE;

/* How the last process leaves. */
enum { MQE_DETACH_ORDERLY = 0, MQE_DETACH_DISCARD = 1 /* as end -p: no NPMCLASS(HIGH) image */ };
/* Gives the attachment back; the last one of the process leaves the region, the last process runs
 * the orderly end. Handles and units must have been closed. *np_discarded: non-persistent messages
 * lost by it. */
int mqe_detach(mqe_manager *manager, int how, uint64_t *np_discarded);

enum { MQE_END_CONTROLLED = 0, MQE_END_WAIT = 1, MQE_END_IMMEDIATE = 2, MQE_END_PREEMPTIVE = 3 };
/* ---- without attaching ---- */

enum { MQE_PROCESSES_MAX = 1024 }; /* attached at a time, at the most */

/* The pids of the processes that are attached to the queue manager in that directory, this one
 * included; starts nothing, and creates no file. Those of a directory that this one is a copy of do
 * not count. *out_count may exceed `capacity`, which is at least 1; a process of another PID
 * namespace has pid 0. 2035 2195 */
int mqe_attached(const char *path, int32_t *pids, uint32_t capacity,
                 uint32_t *out_count) MQX_MUST_USE;

struct mqe_exclusion;

/* Keeps every process from attaching until mqe_exclude_end(), and removes the shared region that
 * killed processes left; the files may then be deleted. 2042 with the pids when processes are
 * attached (this one included), 2059 when that is not certain; 2012 2035 2071 2101 */
int mqe_exclude(const char *path, const struct mqe_settings *settings,
                struct mqe_exclusion **out) MQX_MUST_USE;
/* Ends it, also when the directory is gone by now. */
void mqe_exclude_end(struct mqe_exclusion *exclusion);

/* Asks every attached process to leave: CONTROLLED and WAIT set the quiescing flag (2161 with
 * fail-if-quiescing and to whoever attaches), IMMEDIATE and PREEMPTIVE stop the region (2162,
 * 2009). The caller then detaches. */
int mqe_end(mqe_manager *manager, int mode) MQX_MUST_USE;
/* Whether calls would be refused now, whatever they are for: 0, 2009, 2012, 2162; 2161 when
 * fail_if_quiescing is not 0. */
int mqe_usable(mqe_manager *manager, int fail_if_quiescing) MQX_MUST_USE;

struct mqe_manager_status {
    uint32_t attached, quiescing, stopped, contexts, units, handles, objects;
    uint32_t deleted;             /* objects deleted, but still open or in use */
    uint32_t region_in_memory;    /* 1: the region is a memory file, not one in region_dir */
    uint64_t region_bytes, region_used; /* of address space; of memory */
    uint64_t message_entries, body_bytes; /* in the extents that hold any (region/extents.h) */
    uint64_t durable_lsn, tail_lsn, checkpoint_lsn, journal_bytes, journal_limit;
    uint64_t segments, spare_segments, flushes, flushed_bytes, flushed_records, woken_by_bound;
    uint64_t np_discarded, repairs;
    uint64_t checkpoint_damaged;  /* begin LSN of the newest checkpoint when the restart found it
                                   * damaged, until the next one replaces it; else 0 */
    uint64_t prepared;            /* units of work prepared and not ended; not among `units` */
    uint64_t live_bytes, live_limit; /* of journal: what messages take; where puts get 2192 */
    uint64_t moved_messages, moved_bytes; /* by compaction since the start */
    uint64_t held_bytes;          /* of journal, since the first record of the oldest unit of
                                   * work; of these it keeps what it has put, no more */
    uint64_t held_us;             /* when that unit began, 0: no unit has a record */
    int32_t held_pid;             /* its process; 0: none, it is prepared */
    int32_t backup_pid;           /* of the process that makes a backup; 0: none */
    uint64_t backup_bytes;        /* of journal, in segments that stay until they are copied */
    uint64_t region_huge;         /* bytes of region_used that came as huge pages */
    char huge_refusal[96];        /* why there are none, "" when there are */
};
int mqe_status(mqe_manager *manager, struct mqe_manager_status *out) MQX_MUST_USE;

struct mqe_process_status {
    int32_t pid;
    uint32_t keeper;
    uint64_t attached_us;
    char program[80];
};
/* Attached processes, `capacity` at most; *out_count = how many there are. */
int mqe_processes(mqe_manager *manager, struct mqe_process_status *out, uint32_t capacity,
                  uint32_t *out_count) MQX_MUST_USE;

struct mqe_held_lock { /* a lock of the region for which others have waited a second or longer */
    int32_t pid;      /* of the process that has it; 0 while that is attaching */
    uint32_t seconds; /* since it was noticed */
    char lock[16];
    char program[80];
};
/* Those that are held so long now; as mqe_processes(). Takes no lock. */
int mqe_held_locks(mqe_manager *manager, struct mqe_held_lock *out, uint32_t capacity,
                   uint32_t *out_count) MQX_MUST_USE;

struct mqe_unit_status {
    int32_t pid, thread;
    uint32_t state;   /* enum mqx_context_state */
    uint32_t count;   /* messages put and got */
    uint64_t unit_id, started_us;
};
int mqe_units(mqe_manager *manager, struct mqe_unit_status *out, uint32_t capacity,
              uint32_t *out_count) MQX_MUST_USE;

struct mqe_handle_status {
    int32_t pid;
    uint32_t object, generation, options;
    uint32_t deleted;             /* 1: its queue has been deleted */
    uint32_t step[4];             /* slots that its name was resolved through, 0 none; of a path
                                   * of five the fifth is `object` */
    uint64_t opened_us;
};
int mqe_handles(mqe_manager *manager, struct mqe_handle_status *out, uint32_t capacity,
                uint32_t *out_count) MQX_MUST_USE;

/* Takes a checkpoint now; one round of maintenance now (0 also when another process
 * is at it). */
int mqe_checkpoint(mqe_manager *manager) MQX_MUST_USE;
/* Moves messages together and frees the journal segments that they leave: as many as possible. */
int mqe_compact(mqe_manager *manager) MQX_MUST_USE;
int mqe_maintain(mqe_manager *manager) MQX_MUST_USE;

struct mqe_backup {               /* what a copy of this moment consists of (recovery/backup.h) */
    uint64_t first_segment, last_segment, last_generation, end_lsn, checkpoint_lsn, timeline;
};
/* Takes a checkpoint and pins the journal's segments. 2042: another backup is under way. */
int mqe_backup_begin(mqe_manager *manager, struct mqe_backup *out) MQX_MUST_USE;
/* Segments before that one have been copied. *out_slowest_us: of the flushes since the last call.
 * 2192: the pin was broken, because the journal became full. */
int mqe_backup_advance(mqe_manager *manager, uint64_t first_segment,
                       uint64_t *out_slowest_us) MQX_MUST_USE;
int mqe_backup_end(mqe_manager *manager) MQX_MUST_USE;
/* Verifies priority indexes, id indexes and counts of every queue under their locks;
 * MQRC_OBJECT_DAMAGED with a text. */
int mqe_check(mqe_manager *manager) MQX_MUST_USE;

/* ---- objects (control plane) ---- */

/* name: 48 bytes, blank padded; attrs: the attribute list of format.h (struct ps_attr ...). */
int mqe_define(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
               uint32_t attrs_length, uint32_t *slot, uint32_t *generation) MQX_MUST_USE;
struct mqe_definition {
    const struct ps_object_name *name;
    const void *attrs;
    uint32_t length;
};
/* Defines several objects with one flush. Stops at the first that cannot be; those before it,
 * *done, are defined. */
int mqe_define_many(mqe_manager *manager, const struct mqe_definition *definitions, uint32_t count,
                    uint32_t *done) MQX_MUST_USE;
enum { /* flags of mqe_alter */
    MQE_ALTER_RESOLUTION = 1, /* handles whose name was resolved through the object get 2041 */
};
/* Replaces the attributes. definition_version: of the list that the new one was made from
 * (mqe_read_object): no effect and MQE_CHANGED when there is another by now; 0: any. */
int mqe_alter(mqe_manager *manager, uint32_t slot, uint32_t generation,
              const struct ps_object_name *name, const void *attrs, uint32_t attrs_length,
              uint64_t definition_version, uint32_t flags) MQX_MUST_USE;
/* Is a state of the definitions around an instance of a cluster queue to be reported? True to one
 * caller of all processes, again when the state is another one or after an hour. */
bool mqe_report_due(mqe_manager *manager, uint32_t slot, uint32_t generation, uint32_t state);
int mqe_delete(mqe_manager *manager, uint32_t slot, uint32_t generation, int purge) MQX_MUST_USE;
struct mqe_found {
    uint32_t slot, generation;
    uint32_t type;        /* MQQT_*; MQOT_* in other name spaces */
    uint32_t resolution_version; /* raised by each alter with MQE_ALTER_RESOLUTION */
};
int mqe_find(mqe_manager *manager, uint32_t name_space, const char name[48], uint64_t instance,
             struct mqe_found *out) MQX_MUST_USE;
/* The next object with slot > *slot; 2085 at the end. */
int mqe_next_object(mqe_manager *manager, uint32_t *slot, uint32_t *generation) MQX_MUST_USE;
int mqe_read_object(mqe_manager *manager, uint32_t slot, uint32_t generation,
                    struct ps_object_name *name, void *attrs, uint32_t capacity, uint32_t *length,
                    uint64_t *definition_version) MQX_MUST_USE;
/* The same of one that may be logically deleted, which mqe_find() finds on platform z/OS. */
int mqe_read_deleted(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     struct ps_object_name *name, void *attrs, uint32_t capacity,
                     uint32_t *length) MQX_MUST_USE;
/* Waiters of the queue look again: an alias over it has changed. */
int mqe_wake(mqe_manager *manager, uint32_t slot) MQX_MUST_USE;
/* Removes a delayed message with that MsgId from the queue, durable on return: 2033 when there is
 * none, because it is due by now, or was never there. */
int mqe_cancel_delayed(mqe_manager *manager, uint32_t slot, uint32_t generation,
                       const uint8_t msg_id[24]) MQX_MUST_USE;
/* Removes every message: 2055 when units hold some. */
int mqe_clear(mqe_manager *manager, uint32_t slot, uint32_t generation) MQX_MUST_USE;

/* Simulates the failure of a CFSTRUCT: the non-persistent messages of the queues in it are lost,
 * *lost of them, as journalled gets; what a crash leaves half done is completed by calling it
 * again. Puts and gets during it are 2373. 2055 when units hold messages of such a queue, 2043 when
 * it is no structure. */
int mqe_fail_structure(mqe_manager *manager, uint32_t slot, uint32_t generation,
                       uint64_t *lost) MQX_MUST_USE;

struct mqe_queue_status {
    uint32_t depth;        /* CURDEPTH: present, without those got by units */
    uint32_t uncommitted;  /* put by units not yet committed (counted in depth) */
    uint32_t got;          /* got by units not yet committed */
    uint32_t delayed;      /* due later (counted in depth) */
    uint32_t open_input, open_output, open_other, waiters;
    uint64_t put_count, get_count, last_put_us, last_get_us;
};
int mqe_queue_status(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     struct mqe_queue_status *out) MQX_MUST_USE;
/* PutTime of the oldest message that a get could have now, microseconds since 1970 UTC; 0 when
 * there is none, or none whose time is known among the first 64. */
int mqe_queue_oldest(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     uint64_t *out_us) MQX_MUST_USE;

/* A message number: messages that are put from now on have higher ones, all others do not. */
int mqe_queue_newest(mqe_manager *manager, uint32_t slot, uint32_t generation,
                     uint64_t *out_number) MQX_MUST_USE;

/* ---- handles ---- */

enum { /* MQOO_* of mqe_open, as in the MQI */
    MQE_INPUT = MQOO_INPUT_AS_Q_DEF | MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE,
    MQE_INPUT_EXCLUSIVE = MQOO_INPUT_EXCLUSIVE,
    MQE_BROWSE = MQOO_BROWSE,
    MQE_OUTPUT = MQOO_OUTPUT,
};
/* A definition that a name went through on its way: alias, local definition of a remote queue,
 * queue-manager alias, ..., and the queue itself. */
struct mqe_step {
    uint32_t slot, generation, resolution_version; /* as mqe_find() gave them */
};
enum { MQE_STEPS_MAX = 5 }; /* queue-manager alias, alias, remote queue, queue manager, XMITQ */
struct mqe_destination { /* a queue that a name was resolved to */
    uint32_t queue, queue_generation;
    uint32_t first, first_generation; /* first definition in the path: supplies DEF* attributes */
    uint32_t step_count;
    struct mqe_step step[MQE_STEPS_MAX]; /* the rest is not examined */
};
/* A queue found by its own name, nothing in between that could change. */
static inline struct mqe_destination mqe_direct(uint32_t queue, uint32_t generation)
{
    return (struct mqe_destination){.queue = queue, .queue_generation = generation,
                                    .first = queue, .first_generation = generation};
}
/* Gets through the handle are 2041 once a step has changed or is gone (2052 for the queue itself),
 * 2016 while one has GET(DISABLED). 2085 when the queue is gone. Anything but a local queue can
 * only be opened without INPUT, BROWSE and OUTPUT (2043). */
int mqe_open(mqe_manager *manager, const struct mqe_destination *path, uint32_t options,
             mqe_queue **out) MQX_MUST_USE;
static inline MQX_MUST_USE int mqe_open_direct(mqe_manager *manager, uint32_t queue,
                                               uint32_t generation, uint32_t options,
                                               mqe_queue **out)
{
    const struct mqe_destination path = mqe_direct(queue, generation);
    return mqe_open(manager, &path, options, out);
}

/* Defines a dynamic queue (selector 7, DEFTYPE: 2 permanent, 3 temporary) and opens it, in one: the
 * handle is its creator's. A temporary one is in no file; it ends with this handle, however that is
 * closed, with this process, and with the queue manager. A permanent one is on disk on return. As
 * mqe_define and mqe_open; 2100; z/OS: 2201 while a deleted queue of that name is still in use. */
int mqe_open_new(mqe_manager *manager, const struct ps_object_name *name, const void *attrs,
                 uint32_t attrs_length, uint32_t options, mqe_queue **out,
                 struct mqe_found *found) MQX_MUST_USE;

enum { MQE_CLOSE_KEEP = 0, MQE_CLOSE_DELETE = MQCO_DELETE, MQE_CLOSE_PURGE = MQCO_DELETE_PURGE };
/* Closes. What becomes of the queue:
 *                                        KEEP       DELETE                  PURGE
 *     predefined                         stays      2045                    2045
 *     permanent dynamic, any handle      stays      deleted, 2055 unless    deleted with its
 *                                                   empty and no unit       messages, 2055 when a
 *                                                   holds a message         unit holds one
 *     temporary dynamic, by its creator  deleted    deleted                 deleted
 *     temporary dynamic, by others       stays      2045                    2045
 *     deleted already                    (gone)     (gone)                  (gone)
 * A deleted queue has no name any more (z/OS: it keeps it until it is gone), waits on it end, and
 * calls through older handles are 2052. It is gone when the last handle is closed and the last unit
 * that holds a message of it has ended; units don't fail by it. Durable on return.
 * With DELETE or PURGE a failure leaves the handle open and everything as it was, but for 2009,
 * 2012 and 2162; with KEEP the handle is closed whatever is returned. */
int mqe_close(mqe_queue *queue, uint32_t how);

/* ---- the clock of queues ----
 *
 * By it messages are put, expire and become due: the wall clock, unless a test has advanced it. */

uint64_t mqe_advanced_us(const mqe_manager *manager);
/* Messages expire and become due in all processes as if so much time had passed, until the last of
 * them leaves. 2046: more than a hundred years in all. */
int mqe_advance(mqe_manager *manager, uint64_t us) MQX_MUST_USE;

/* ---- units of work ---- */

int mqe_unit_new(mqe_manager *manager, mqe_unit **out) MQX_MUST_USE;
void mqe_unit_free(mqe_unit *unit); /* backs out what is pending */
/* 2003: the queue manager had backed it out. */
int mqe_commit(mqe_unit *unit) MQX_MUST_USE;
/* mqe_commit() of several units of one manager, which share a flush, in their order. *out_count: as
 * many are committed. What is returned else is said of the next one; those behind it are as they
 * were, unless the queue manager has stopped. */
int mqe_commit_many(mqe_unit *const *units, uint32_t count, uint32_t *out_count) MQX_MUST_USE;
int mqe_backout(mqe_unit *unit) MQX_MUST_USE;
/* The same, and no get finds what the unit had got before so many microseconds have passed, through
 * restarts, too. A unit that the queue manager has backed out is back already. 2026: beyond the
 * year 9999. */
int mqe_backout_later(mqe_unit *unit, uint64_t delay_us) MQX_MUST_USE;
/* Messages put and got so far; not 0 while the caller has not ended a unit that was backed out. */
uint32_t mqe_unit_count(const mqe_unit *unit);
/* Messages that MAXUMSGS still allows in it. */
uint32_t mqe_unit_room(const mqe_unit *unit);

/* An open unit is backed out by the maintenance of any process when it holds the journal, or for
 * its age (unit/long_units.h), but never inside a call of its owner. From then on calls in it are
 * 2003, until mqe_commit() or mqe_prepare(), which are 2003, too, or mqe_backout(). */

/* ---- prepared units of work: two-phase commit ----
 *
 * mqe_prepare() makes a unit durable without deciding it, and detaches it from its process: no
 * death, detach or restart ends it; any process commits or backs it out by its xid. Until then what
 * it has got and put is invisible and counts as uncommitted, and its queues cannot be deleted
 * (2055).
 *
 * Non-persistent messages. Those got in the unit are written, too, so that mqe_browse_prepared()
 * shows the same after a restart. A backout gives them back as long as the region lives; after a
 * restart it discards them. Non-persistent messages that the unit put are lost by a restart, and so
 * are those got from temporary queues; both are counted among the discarded ones, then.
 *
 * A prepared unit keeps the journal from its first record on. It is never backed out for that
 * (2003); when the journal is full, puts of logged messages are 2192 until it is ended, which is
 * always possible.
 *
 * Xids: gtrid_length 1 to 64, bqual_length 0 to 64, bytes beyond them zero, format_id not -1; 2046
 * otherwise. */

enum { MQE_PREPARED_MAX = 4096 }; /* units that one call ends */
enum { /* flags of mqe_prepare */
    MQE_PREPARE_EMPTY = 1, /* a unit without messages will do */
    MQE_PREPARE_LAZY = 2,  /* does not wait until it is durable: it is before mqe_prepared_list()
                            * gives it, and with whatever is durable that came later;
                            * until then a crash backs it out, and those prepared after it */
};

/* The unit becomes prepared, durable on return; `unit` is idle then and may be used again. 2128:
 * the xid is that of a prepared unit; 2255: there is nothing in the unit (without EMPTY); 2046.
 * Then, and after 2071, 2102 and 2192, the unit is as before. 2003: it had been backed out. 2009 as
 * from mqe_commit(). */
int mqe_prepare(mqe_unit *unit, const struct ps_xid *xid, uint32_t flags) MQX_MUST_USE;

struct mqe_prepared {
    struct ps_xid xid;
    uint64_t unit_id, prepared_us;
    uint32_t puts, gets;        /* messages; what a restart has lost is not counted any more */
    uint32_t nonpersistent;     /* of these, not persistent */
    uint32_t zero;
    uint64_t bytes;             /* of all bodies */
};
/* Prepared units, oldest first; *out_count = how many there are. With a smaller `capacity` it is
 * not said which are left out. All that are given are durable. */
int mqe_prepared_list(mqe_manager *manager, struct mqe_prepared *out, uint32_t capacity,
                      uint32_t *out_count) MQX_MUST_USE;

/* Ends all the named units, or, when one of them is unknown, none: 2255, the text names it (and so
 * for units that another call ends at the same time). Durable on return; 2009: unknown until
 * restart, but the same for all. 2046: none, more than MQE_PREPARED_MAX, or one twice; 2102: more
 * than the record in a segment can name (below 64 KiB). */
int mqe_commit_prepared(mqe_manager *manager, const struct ps_xid *xids,
                        uint32_t count) MQX_MUST_USE;
/* Messages got are shown again, BackoutCount + 1. *np_discarded: non-persistent ones that a restart
 * has made impossible to give back. */
int mqe_backout_prepared(mqe_manager *manager, const struct ps_xid *xids, uint32_t count,
                         uint64_t *np_discarded) MQX_MUST_USE;

/* ---- messages ---- */

enum { /* flags of mqe_put */
    MQE_PUT_NEW_MSG_ID = 1,
    MQE_PUT_NEW_CORREL_ID = 2,
    MQE_PUT_KEEP_TIME = 4,          /* put_time_us is given (SET_ALL context), to 9999 */
    MQE_PUT_FAIL_IF_QUIESCING = 8,
    MQE_PUT_OWN_UNIT = 16,          /* the unit is one call's, no application's: no MAXUMSGS */
    MQE_PUT_FROM_RESERVE = 32,      /* a short note of work that frees the journal: may use the room
                                     * that is kept for ending units, as gets and commits do */
    MQE_PUT_ATTENDED = 64,          /* what else the queue asks for, the caller does */
    MQE_PUT_STAYS = 128,            /* a trigger message: becomes available whichever way its unit
                                     * ends, unless the queue's non-persistent messages are in the
                                     * journal; nothing is triggered by it */
    MQE_PUT_NOT_CAPPED = 256,       /* CAPEXPRY does not count: of a message with an MQXQH, whose
                                     * own descriptor has the expiry */
    MQE_PUT_COPY = 512,             /* a copy for a stream queue: is not copied to another one */
};

/* Puts one message. In *d: msg_id (all NUL = generate), correl_id, priority (-1 = AS_Q_DEF),
 * persistence (2 = AS_Q_DEF), report ... accounting_token; expiry in tenths of a second beside it,
 * -1 = unlimited. due_us: the wall clock before which no get finds the message, 0 at once; visible
 * then and when it is committed, whichever comes last. ext may be NULL. On return d holds what was
 * stored: msg_id, put_time_us, expiry_us, placement; d->priority and d->persistence are those that
 * were resolved. unit NULL = outside syncpoint. A message for a transmission queue is put with its
 * MQXQH in the body. 0 or 2049 (took effect); 2003 2009 2013 2024 2026 2030 2031 2041 2043 2047
 * 2048 2050 2051 2052 2053 2071 2161 2162 2192 2373. */
int mqe_put(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
            struct ps_descriptor *d, const struct ps_descriptor_ext *ext, const void *body,
            uint64_t length, int32_t expiry, uint32_t flags) MQX_MUST_USE;

struct mqe_arrival {     /* of a message, at the moment at which it was linked */
    uint32_t before;     /* messages that counted for triggers before it (queue/trigger.h) */
    bool triggers;       /* the queue has triggers; the evaluation of their conditions is claimed:
                          * mqe_trigger_settle() when it is done */
    bool streams;        /* the queue has a stream queue: the caller puts the copy */
};
/* The same for a queue for which mqe_put() returns MQE_ATTENDED, in a unit. */
int mqe_put_attended(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
                     struct ps_descriptor *d, const struct ps_descriptor_ext *ext,
                     const void *body, uint64_t length, int32_t expiry, uint32_t flags,
                     struct mqe_arrival *out) MQX_MUST_USE;

/* ---- reports on expiration are the caller's ---- */

/* A queue in which the maintenance has met expired messages whose reports are to be made; the hint
 * is the caller's then. False: it knows of none. Messages that a get or browse meets are not waited
 * for. */
bool mqe_expired_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation);
/* Is there such a hint? */
bool mqe_expired_due(const mqe_manager *manager);

/* ---- triggers: conditions and messages are the caller's ---- */

/* Another number since the definition of a queue with TRIGGER was made or changed; 0: there has
 * been none since the restart. */
uint32_t mqe_trigger_version(const mqe_manager *manager);
/* The next queue with TRIGGER with slot > *slot; 2085 at the end. */
int mqe_trigger_next(mqe_manager *manager, uint32_t *slot, uint32_t *generation) MQX_MUST_USE;
/* Does somebody have to evaluate the conditions: is its last handle for input closed since, or was
 * a process killed that was about to? Then it is claimed, and the caller evaluates. */
bool mqe_trigger_due(mqe_manager *manager, uint32_t slot, uint32_t generation);
void mqe_trigger_settle(mqe_manager *manager, uint32_t slot, uint32_t generation);
struct mqe_trigger_state {
    uint32_t count;      /* messages that count, uncommitted ones included */
    uint32_t open_input;
    uint64_t last_us;    /* when a trigger message was last made for it; 0 never */
};
int mqe_trigger_state(mqe_manager *manager, uint32_t slot, uint32_t generation,
                      struct mqe_trigger_state *out) MQX_MUST_USE;
/* A trigger message is made for it now. */
void mqe_trigger_note(mqe_manager *manager, uint32_t slot, uint32_t generation);

/* ---- performance events: what occurs is the core's, the messages are the caller's ---- */

enum { /* struct mqe_queue_statistics.event */
    MQE_EVENT_FULL = 1,
    MQE_EVENT_DEPTH_HIGH = 2,
    MQE_EVENT_DEPTH_LOW = 4,
    MQE_EVENT_SERVICE_HIGH = 8,
    MQE_EVENT_SERVICE_OK = 16,
};
struct mqe_queue_statistics {
    uint32_t event;      /* 0: these were asked for */
    uint32_t seconds;    /* since they were reset */
    uint32_t high_depth; /* most messages since then */
    uint32_t zero;
    uint64_t put_count;  /* since then */
    uint64_t get_count;
};
/* A word of this process, valid as long as the manager: not 0 after a put or get that has caused an
 * event, until mqe_performance_take(). */
const uint32_t *mqe_performance_flag(const mqe_manager *manager);
/* May mqe_performance_take() find any? */
bool mqe_performance_due(const mqe_manager *manager);
/* An event whose message has not been made; it is the caller's then, and the statistics begin anew.
 * False: there is none. */
bool mqe_performance_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation,
                          struct mqe_queue_statistics *out);
/* The statistics of a local queue, which begin anew. 2009 2052 2162 */
int mqe_queue_statistics_reset(mqe_manager *manager, uint32_t slot, uint32_t generation,
                               struct mqe_queue_statistics *out) MQX_MUST_USE;

/* ---- what a put would do ---- */

/* Priority -1 and persistence 2 in *d become what mqe_put() would make of them now. 2041 2047 2050
 * 2052, or 0 with *warning 0 or 2049. */
int mqe_resolve_defaults(mqe_manager *manager, const struct mqe_destination *to,
                         struct ps_descriptor *d, int *warning) MQX_MUST_USE;
/* What would refuse such a put now, whatever the unit: 0, or as mqe_put(). */
int mqe_put_check(mqe_manager *manager, const struct mqe_destination *to,
                  const struct ps_descriptor *d, uint64_t length) MQX_MUST_USE;
/* An expiry as CAPEXPRY of the queue, and of the definitions on the way to it, limits it now. */
int32_t mqe_cap_expiry(const mqe_manager *manager, const struct mqe_destination *to,
                       int32_t expiry);
/* A MsgId or CorrelId that is unique. */
int mqe_new_id(mqe_manager *manager, uint8_t out[24]) MQX_MUST_USE;

enum { /* flags of mqe_get */
    MQE_GET_WAIT = 1,
    MQE_GET_BROWSE_FIRST = 2,
    MQE_GET_BROWSE_NEXT = 4,
    MQE_GET_BROWSE_UNDER_CURSOR = 8,
    MQE_GET_UNDER_CURSOR = 16,      /* destructive */
    MQE_GET_LOCK = 32,
    MQE_GET_UNLOCK = 64,
    MQE_GET_ACCEPT_TRUNCATED = 128,
    MQE_GET_IF_PERSISTENT = 256,    /* in the unit only when the message is persistent */
    MQE_GET_FAIL_IF_QUIESCING = 512,
    MQE_GET_ROOM_FOR_MDE = 1024,    /* the caller puts an MQMDE before a body whose descriptor has
                                     * values that version 1 has no fields for: 2079 and 2080 count
                                     * its bytes */
    MQE_GET_CONFIRM = 1 << 11,      /* the caller makes the reports on delivery: a message with
                                     * MQRO_COD is described, as far as it was read, and not taken
                                     * (MQE_CONFIRM). To be got by its number without this flag, in
                                     * one unit with its report */
    MQE_GET_LISTED = 1 << 12,       /* waits without a thread: see mqe_wait */
    MQE_GET_REPORT_EXPIRED = 1 << 13, /* the caller makes the reports on expiration: the call ends
                                     * at an expired message that asks for one (MQE_EXPIRED) */
    MQE_MDE_SIZE = MQMDE_LENGTH_2,
};
enum { /* match bits: MQMO_* */
    MQE_MATCH_MSG_ID = 1,
    MQE_MATCH_CORREL_ID = 2,
    MQE_MATCH_GROUP_ID = 4,
    MQE_MATCH_SEQ_NUMBER = 8,
    MQE_MATCH_OFFSET = 16,
    MQE_MATCH_NUMBER = 32,   /* not MQMO_: by the message number (a MsgToken) */
    MQE_MATCH_PERSISTENT = 64, /* not MQMO_: only MQPER_PERSISTENT ones; others are left alone */
    MQE_MATCH_UP_TO = 128,     /* not MQMO_: message number <= up_to */
    MQE_MATCH_DELAYED = 256,   /* not MQMO_, and only of a browse without LOCK (2247): those that
                                * are not due yet are found, too */
    MQE_MATCH_EXPIRED = 512,   /* not MQMO_: expired messages whose report is to be made, no others;
                                * by a handle of any kind */
};

struct mqe_get {
    /* in */
    uint32_t flags;
    uint32_t match;                /* an all-NUL id matches any, whatever the bit says */
    uint8_t msg_id[24], correl_id[24], group_id[24];
    int32_t seq_number, offset;
    int64_t wait_us;               /* with WAIT; -1 unlimited; on MQE_INTERRUPTED: what is left */
    void *buffer;
    uint64_t capacity;
    uint64_t match_number;         /* with MQE_MATCH_NUMBER */
    uint64_t up_to;                /* with MQE_MATCH_UP_TO */
    uint64_t max_bytes;            /* mqe_get_batch: of all bodies together; 0: what fits */
    struct mqe_wait *wait;         /* with LISTED */
    /* out */
    struct ps_descriptor d;        /* d.backout_count and d.expiry_us as stored */
    struct ps_descriptor_ext ext;  /* valid when d.has_ext */
    uint64_t length;               /* full length of the body, also with 2079 and 2080 */
    int32_t expiry;                /* tenths of a second left, -1 = unlimited */
    uint64_t number;               /* message number; with MQE_EXPIRED: of the expired one */
    uint32_t header;               /* with ROOM_FOR_MDE: 72 when that message takes an MQMDE, whose
                                    * room at the end of the buffer is then left as it was */
};

/* Gets or browses one message. 2080 without ACCEPT_TRUNCATED: nothing taken, descriptor and the
 * bytes that fit are filled in, length is what is needed. 0 2079 (took effect) 2080 2033 2016
 * 2034 2036 2037 2041 2003 2009 2024 2052 2161 2162 2373, 2209 (UNLOCK without lock), MQE_CONFIRM,
 * MQE_EXPIRED. unit NULL = outside syncpoint. */
int mqe_get(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue,
            struct mqe_get *get) MQX_MUST_USE;

/* ---- waits without a thread ----
 *
 * An event loop waits for many gets at once, in no thread. It watches the descriptor of a channel.
 * A get with MQE_GET_LISTED, and without MQE_GET_WAIT, that finds nothing returns MQE_LISTED: it is
 * a waiter of its queue from then on, as one that sleeps is. When it was picked the descriptor is
 * readable, mqe_channel_picked() gives its wait, and the same call is made again: with the message,
 * or with MQE_LISTED again, because another was faster. Any other outcome but MQE_INTERRUPTED ends
 * the wait; so does mqe_wait_end(), which takes no message. How long it waits is the caller's
 * business: to end it, mqe_wait_end() and a last mqe_get() without LISTED.
 *
 * A wait is used by one thread at a time; mqe_channel_picked() by one thread, beside those. Waits
 * are ended before their channel is freed and before their queue is closed. */

struct mqe_channel;
typedef struct mqe_channel mqe_channel;

struct mqe_wait { /* zeroes at first */
    mqe_channel *channel;     /* in */
    void *owner;              /* the caller's own */
    /* the core's own */
    struct mqe_wait *next, **link;
    uint32_t object;
    uint32_t context;         /* 0: it does not wait */
    uint32_t listed;
    uint32_t told;            /* mqe_channel_picked() has given it since its last call */
};

/* 2035 2102 2195 as for files in region_dir, where the channel has a name; 2012 where that has a
 * path that is too long; 2071 2009 */
int mqe_channel_new(mqe_manager *manager, mqe_channel **out) MQX_MUST_USE;
/* Becomes readable; nothing but waiting for that may be done with it. */
int mqe_channel_fd(const mqe_channel *channel);
/* Waits that were picked since they were last called, at most `capacity`; `all`: also those whose
 * waker died before it could tell, to be asked for once a second. Never blocks. With as many as
 * `capacity` there may be more: ask again, for all. */
uint32_t mqe_channel_picked(mqe_channel *channel, int all, struct mqe_wait **out,
                            uint32_t capacity);
/* Microseconds until a delayed message of its queue is due, when the call is to be made again:
 * nobody tells that. -1: the queue has none, or the wait has ended. A message that is due sooner
 * and put later picks the wait. */
int64_t mqe_wait_due_in(const struct mqe_wait *wait);
/* Ends a wait without a message; nothing when it does not wait. */
void mqe_wait_end(struct mqe_wait *wait);
void mqe_channel_free(mqe_channel *channel);

/* ---- many messages a call ---- */

/* A row of a batch; Python's view of it is a NumPy dtype (python/penstock/batch.py). */
struct mqe_item {
    struct ps_descriptor d;         /*   0..191 as in mqe_put() and mqe_get() */
    struct ps_descriptor_ext ext;   /* 192..383 get: always filled in; put: counts with d.has_ext */
    uint64_t number;                /* 384..391 message number */
    uint64_t lsn;                   /* 392..399 of its PUT record, 0 = not in the journal */
    int32_t expiry;                 /* 400..403 tenths of a second, -1 unlimited; get: left */
    uint32_t length;                /* 404..407 bytes of the body (out) */
    int32_t reason;                 /* 408..411 put: 0 or 2049 */
    uint32_t work;                  /* 412..415 the core's own during a put; 0 from a get;
                                     * mqe_browse_prepared: MQE_ITEM_* */
};
MQX_STATIC_ASSERT(sizeof(struct mqe_item) == 416, "a row of a batch has no holes");
MQX_STATIC_ASSERT(offsetof(struct mqe_item, number) == 384, "descriptor and extension come first");

struct mqe_batch {
    struct mqe_item *items;
    uint32_t capacity;              /* of items */
    uint32_t count;                 /* put: messages in it; out: messages that took effect */
    unsigned char *bodies;
    uint64_t body_capacity;
    int64_t *offsets;               /* capacity + 1; body i is bodies[offsets[i] .. offsets[i + 1]);
                                     * get: offsets[0] = 0 */
    uint64_t bytes;                 /* out of a get or browse: of all the bodies together */
    uint64_t needed;                /* out of a get that stopped for room: the next body's bytes */
    uint32_t failed;                /* out of a put that failed: the first message not put */
    uint32_t warnings;              /* out of a put: messages with 2049 */
    uint64_t confirm;               /* out of a get with MQE_GET_CONFIRM: the number of the message
                                     * before which the batch ended; 0: it did not so */
};

/* Puts the batch's messages in their order, each as mqe_put() would; flags as there. Its refusals
 * (also 2005: offsets) that can be known are looked for in all messages before the first is put,
 * then count is 0 and `failed` tells which one. 2053 and 2024 are refused in the same way when not
 * all have room. What fails later:
 *   outside syncpoint, some message persistent (or in a structure): nothing of the batch is put.
 *   The whole of it becomes visible with one commit; MAXUMSGS does not count for it.
 *   outside syncpoint, none persistent: messages are available one by one; `count` are.
 *   in a unit: `count` are part of the unit.
 * 0, 2049 (took effect), or as mqe_put(). The items hold what was stored also when it fails. */
int mqe_put_batch(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
                  struct mqe_batch *batch, uint32_t flags) MQX_MUST_USE;

/* Gets up to `capacity` messages, in the order in which single gets would give them. Of *how count:
 * flags (WAIT: for the first message; FAIL_IF_QUIESCING, CONFIRM, REPORT_EXPIRED), wait_us, match
 * (PERSISTENT, UP_TO, NUMBER), up_to, match_number, max_bytes (one message is got whatever it
 * says). Outside syncpoint non-persistent messages are gone as they are copied; from the first
 * persistent one on all are one unit, which commits when everything has been copied. A body that
 * does not fit stays on the queue: the batch ends before it, `needed` tells its size; 2080 when it
 * would be the first. With CONFIRM it ends before a message that asks for a confirmation, too,
 * `confirm` is its number; MQE_CONFIRM when it would be the first. With REPORT_EXPIRED it ends
 * before an expired message that asks for a report, MQE_EXPIRED and how->number when it would be
 * the first. What ends a batch after its first message is returned by the next call; in a unit
 * MAXUMSGS ends it. 2033 with nothing there. 0, or as mqe_get(). In a unit that will be prepared,
 * whose messages are read later: bodies NULL copies none and needs no offsets, items NULL too
 * copies nothing at all, and confirms nothing; 2046 outside syncpoint, which would lose them. Then
 * max_bytes alone bounds the bytes. */
int mqe_get_batch(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, struct mqe_get *how,
                  struct mqe_batch *batch) MQX_MUST_USE;

/* Copies up to `capacity` messages from behind the handle's browse cursor, or from the first on
 * (MQE_GET_BROWSE_FIRST), in delivery order, and moves the cursor behind them; nothing else is
 * changed. Of *how count: flags (BROWSE_*, FAIL_IF_QUIESCING), match and up_to and max_bytes as in
 * mqe_get_batch(). A body that does not fit ends the batch, `needed` tells its size; 2080 when it
 * would be the first. 0 with count 0: there are no more. bodies, items NULL: as there. */
int mqe_browse_batch(mqe_manager *manager, mqe_queue *queue, struct mqe_get *how,
                     struct mqe_batch *batch) MQX_MUST_USE;

/* A position in delivery order (placements fall, in each of them message numbers rise): behind the
 * message of that number, be it there or not. Positions mean the same after a restart. {9, 0} is
 * before all messages, {0, UINT64_MAX} behind them. */
struct mqe_position {
    uint32_t placement, zero;
    uint64_t number;
};
/* As mqe_browse_batch(), of the messages behind range[0] up to range[1] alone: BROWSE_FIRST begins
 * with the first of those, BROWSE_NEXT continues from the cursor. 2046: no placements. */
int mqe_browse_range(mqe_manager *manager, mqe_queue *queue, struct mqe_get *how,
                     const struct mqe_position range[2], struct mqe_batch *batch) MQX_MUST_USE;
/* Positions that cut the queue into `parts` ranges of about the same number of messages, got and
 * uncommitted ones counted: at most parts - 1, in their order, each behind a message. Where many
 * messages have left from between others, ranges differ. 2052 2161. */
int mqe_queue_split_points(mqe_manager *manager, uint32_t slot, uint32_t generation, uint32_t parts,
                           struct mqe_position *out, uint32_t *out_count) MQX_MUST_USE;

/* ---- the messages of a prepared unit ---- */

enum { MQE_ITEM_GOT = 0, MQE_ITEM_PUT = 1 }; /* item.work: what the unit did with the message */
struct mqe_prepared_cursor { /* zeroes: at the first message */
    uint64_t index;               /* of the next message in the order of the calls; may be set */
    uint64_t unit_id, next_index, next_number; /* the core's own: where it was left */
    uint32_t next_slot, zero;
};
/* Copies messages of the unit from the cursor's index on, what it got and what it put, and moves
 * the cursor behind them; nothing is changed by it, and the unit stays prepared. 0 with count 0:
 * there are no more. 2080: the first one's body does not fit, `needed` tells its size. 2255: there
 * is no such unit, or it has been resolved since; 2046. */
int mqe_browse_prepared(mqe_manager *manager, const struct ps_xid *xid,
                        struct mqe_prepared_cursor *cursor, struct mqe_batch *batch) MQX_MUST_USE;

/* ---- errors, environment ---- */
const char *mqe_error_text(void);
const char *mqe_reason_name(int reason);
const char *mqe_reason_text(int reason);
int mqe_comp_code(int reason);

/* The hook is called at most once during this thread's next calls, before the first one sleeps
 * (rule 34). */
void mqe_block_hook_arm(void (*hook)(void *arg), void *arg);

/* May this thread's next call end with MQE_INTERRUPTED when it has waited for a second and decided
 * nothing? Nothing was done then: call again, after a look at signals; what a batch counts, and the
 * first definitions of many, took effect, and the next call begins behind them. A wait whose
 * outcome is decided goes on. mqe_backout() does not end so: it goes without its record, whose
 * counts a restart would lose. To be set for each such call; 0 after the last one. */
void mqe_interrupt_allow(int allowed);
/* The same, for the thread of an event loop: the call ends with MQE_INTERRUPTED before it waits for
 * a lock or for room, or flushes (mqe_put, mqe_get, mqe_commit); another thread makes it again. */
void mqe_interrupt_at_once(void);

/* A get whose answers come within microseconds looks for the next one for some microseconds before
 * it sleeps. The rule says whether it may do that without calling the hook of its thread; without a
 * rule the hook is called first. Of the process; called by any thread. */
void mqe_spin_rule_set(int (*rule)(void));

/* A line for errors/ (AMQ number, 'I' 'W' 'E'). */
void mqe_log(mqe_manager *manager, int amq, char severity, const char *text);

/* CRC-32C of the core, for tests of the second reader. */
uint32_t mqe_crc32c(uint32_t crc, const void *data, size_t size);

#endif
