/*
 * region.h - the shared region: what lies in it, who may change what, how it grows.
 *
 * Purpose. The region is a sparse file on tmpfs that every attached process maps once, at an
 * address of its own, for as long as it is attached. It holds everything that is not the truth on
 * disk: locks, object slots, message index, bodies, the log ring, attachment slots (rules 16-18,
 * 22, 29).
 *
 * Terms
 *   area       a stretch of the region for items of one size (or for cells), reserved in address
 *   space
 *              for the largest count and backed by memory up to `capacity` bytes; it grows by
 *              posix_fallocate of whole steps under the growth lock and `capacity` is published by
 *              one release store (nobody remaps).
 *   slot       index of an item in its area, 1..; 0 means "none" everywhere.
 *   cell       64 bytes of the arena; a cell reference (u32) counts cells from the arena's start, 0
 *   = none.
 *   stripe     one queue lock with everything that is changed under it for the objects that map to
 *   it:
 *              their heaps and indexes, their messages, free cells and entries, waiter lists. An
 *              object maps to stripe (slot % stripe_count) for its whole life.
 *   context    what a unit of work, a single call or a waiter needs in the region. Owned by one
 *   thread of
 *              one process at a time; swept when that process is dead.
 *
 * Invariants
 *   1. No pointers in the region, only offsets, slots and cell references; all are range-checked
 *   when
 *      they were read from it (mqx_object, mqx_message, mqx_cells return NULL on bad ones; rule
 *      28).
 *   2. `layout` in the header is a hash of every struct size and offset here: other builds are
 *   refused.
 *   3. Memory beyond an area's capacity is never touched.
 *   4. A field is changed only under the lock named beside its struct, through mqx_set*(), unless
 *   its
 *      comment says atomic.
 */
#ifndef PENSTOCK_REGION_H
#define PENSTOCK_REGION_H

#include "base/base.h"
#include "base/mqi_constants.h"
#include "format/format.h"
#include "os/io.h"
#include "region/lock.h"

enum { /* fixed table sizes */
    MQX_PROCESS_MAX = 1024,
    MQX_STRIPE_MAX = 256,
    MQX_SEGMENT_MAX = 4096,
    MQX_SEALED_MAX = 64,
    MQX_CELL = 64,
    MQX_CLASS_COUNT = 40,           /* size classes of cells, see arena.h */
    MQX_WAIT_BUCKETS = 64,          /* per stripe, for waiters with match tags */
    MQX_INDEX_COUNT = 3,            /* lookups: MsgId, CorrelId, GroupId */
    MQX_RADIX_FANOUT = 64,
    MQX_RADIX_HEIGHT_MAX = 8,
    MQX_XID_BUCKETS = 1024,
};

/* ---- attachment slots (changed under the slots lock; liveness: rule 25) ---- */
enum { MQX_PROC_FREE = 0, MQX_PROC_LIVE = 1, MQX_PROC_REAPING = 2 };
struct mqx_process {
    uint32_t state;
    int32_t pid;
    uint64_t start_time;         /* field 22 of /proc/<pid>/stat, clock ticks since boot */
    uint64_t pid_namespace;      /* inode of /proc/self/ns/pid */
    uint32_t doorbell;           /* atomic futex word of the helper thread */
    uint32_t leaving;            /* set when it leaves in order */
    uint64_t attached_us;
    uint32_t calls_inside;       /* atomic: statistics for rule 13's life lock */
    uint32_t keeper;             /* `penstock start` */
    char program[80];            /* last component of the program path, NUL-terminated */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_process) == 128, "attachment slot");

/* ---- contexts (fields: their owner thread; the sweep when the owner is dead) ---- */
enum mqx_context_state {
    MQX_CTX_FREE = 0,
    MQX_CTX_IDLE = 1,         /* owned, no unit of work */
    MQX_CTX_ACTIVE = 2,       /* unit under way: back out when the owner dies */
    MQX_CTX_DECIDED = 3,      /* COMMIT record is in the ring: roll forward when the owner dies */
    MQX_CTX_BACKING_OUT = 4,  /* go on backing out */
    MQX_CTX_PREPARED = 5,     /* nobody's (process 0); waits for who ends it by its xid */
};
enum mqx_wait_state {
    MQX_WAIT_NONE = 0,
    MQX_WAIT_LISTED = 1,      /* in a wait list of its queue's stripe */
    MQX_WAIT_WOKEN = 2,       /* taken off the list by somebody who made a message available */
    MQX_WAIT_CANCELLED = 3,   /* taken off: look at the queue's and manager's state (2016, 2052,
                               * 2161) */
};
enum { /* what a context has in its hands between two links of a chain; LOCKING.md lists the
        * chains */
       MQX_PENDING_NONE = 0,
       MQX_PENDING_RESERVED = 1, /* `hand` = message entry with reserved cells, not yet linked: free
                               * it */
       MQX_PENDING_PINNED = 2,   /* `hand` = message whose `pins` counts this context: unpin it */
       MQX_PENDING_OBJECT = 3,   /* `hand` = object slot being defined, altered or deleted */
};
struct mqx_context {
    uint32_t state;           /* enum mqx_context_state */
    uint32_t process;         /* attachment slot of the owner */
    uint64_t unit_id;         /* of the journal; 0 until the unit's first record */
    uint64_t first_lsn;       /* of the unit's first record; 0 = no record yet. Changed in ring
                               * micro-transactions, read by checkpoints under the ring lock */
    uint64_t decided_lsn;     /* DECIDED: durable at or above this means committed on disk;
                               * PREPARED: the same of the preparation */
    uint32_t record_count;    /* records so far, CHUNKs included */
    uint32_t running_crc;     /* over their crc fields */
    uint32_t head;            /* messages put or got in the unit, oldest first (message.unit_next);
                               * changed in stripe micro-transactions of the message concerned */
    uint32_t count;           /* of that list: MAXUMSGS */
    uint32_t pending_kind;
    uint32_t hand;
    uint32_t pending_object;     /* object slot that `hand` belongs to */
    uint32_t must_back_out;   /* atomic: the queue manager backs it out (2003): journal 80 % full */
    uint64_t started_us;      /* when the unit began */
    int32_t thread;           /* kernel thread id of the owner */
    uint32_t next_free;       /* slots lock */
    /* waiter (stripe lock of wait_object, but wait_word atomic) */
    uint32_t wait_word;       /* futex; raised to wake */
    uint32_t wait_state;      /* enum mqx_wait_state */
    uint32_t wait_object;
    uint32_t wait_list;       /* 0 general list of the object, else bucket + 1 */
    uint32_t wait_next;
    uint32_t wait_prev;
    uint32_t wait_browse;     /* 1: others are woken, too: a browse without lock, or a match that
                               * tags do not decide */
    uint32_t wait_match;      /* MQMO_* bits of the tags below that count */
    uint64_t wait_tag[MQX_INDEX_COUNT];
    uint32_t wait_signal;     /* 1: nobody sleeps on the word; ring the process' doorbell instead */
    uint32_t tail;            /* last message of the list at `head` */
    uint32_t single;          /* 1: a call outside syncpoint; what it claimed goes back uncounted */
    uint32_t unreferenced_attrs; /* attribute list that no object names yet, or no longer: the sweep
                               * frees it */
    uint32_t unreferenced_length;
    uint32_t deleted;         /* object slot of a deleted queue of which the unit held a message */
    /* prepared units: prepared.h */
    uint32_t resolver;           /* slots lock: PREPARED: the context that is to end it, 0 nobody */
    uint32_t leads;           /* enum mqx_leads: what this context makes of those whose resolver it
                               * is */
    uint32_t xid_next;        /* slots lock: hash chain */
    uint32_t xid_listed;      /* slots lock: 1: in the chain of its xid, which is fixed then */
    uint32_t puts;            /* PREPARED: fixed, as the next four */
    uint32_t gets;
    uint32_t nonpersistent;
    uint32_t discarded;       /* while it is backed out: messages that could not be given back */
    uint64_t bytes;
    uint64_t prepared_us;
    struct ps_xid xid;
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_context) == 384, "context");
enum mqx_leads { MQX_LEADS_NOBODY = 0, MQX_LEADS_COMMIT = 1, MQX_LEADS_BACKOUT = 2 };

/* ---- open handles, for counts, DISPLAY and the sweep (slots lock) ---- */
struct mqx_handle {
    uint32_t state;           /* 0 free, 1 open */
    uint32_t process;
    uint32_t object;
    uint32_t object_gen;
    uint32_t options;         /* MQOO_* */
    uint32_t browse_lock;     /* message locked through this handle, 0 none (stripe lock) */
    uint64_t browse_number;   /* its number (guards against re-use) */
    uint64_t opened_us;
    uint32_t next_free;
    int32_t pid;
    uint32_t step[4];         /* objects that its name was resolved through, 0 none */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_handle) == 64, "handle");

/* ---- message index entry (stripe lock of its object) ---- */
enum mqx_message_state {
    MQX_MSG_FREE = 0,
    MQX_MSG_RESERVED = 1,     /* taken from the free list, in somebody's hand, not in the queue */
    MQX_MSG_PUT = 2,          /* in the queue, put by a unit not yet committed */
    MQX_MSG_AVAILABLE = 3,
    MQX_MSG_GOT = 4,          /* in the queue, got by a unit not yet committed */
    MQX_MSG_LOCKED = 5,       /* in the queue, browse lock of a handle */
    MQX_MSG_GONE = 6,         /* out of the queue, kept only until its pins are gone */
};
enum { /* message.flags */
    MQX_MSGF_PERSISTENT = 1,  /* in the journal */
    MQX_MSGF_HAS_EXT = 2,
    MQX_MSGF_VOLATILE = 4,    /* in the journal, but MQPER_NOT_PERSISTENT: of a queue in a
                               * structure */
    MQX_MSGF_TAKEN = 8,       /* non-persistent, got in a prepared unit before a restart: the body
                               * is in the journal, nobody can have it back */
    MQX_MSGF_KEY = 0x10,      /* 0x10, 0x20, 0x40: linked in the MsgId, CorrelId, GroupId index */
};
struct mqx_message {
    uint8_t state;            /*   0 */
    uint8_t placement;        /*   1 placement priority */
    uint8_t flags;            /*   2 */
    uint8_t pins;             /*   3 contexts copying the body unlocked */
    uint32_t object;          /*   4 object slot */
    uint64_t number;          /*   8 identity and arrival number in one: unique in the store, rising
                               *     within a queue */
    uint64_t lsn;             /*  16 of the PUT record, 0 = not in the journal */
    uint64_t position;        /*  24 in the level's sequence */
    uint32_t cells;           /*  32 first cell: ps_descriptor [ps_descriptor_ext] body..., 0 =
                               * journal */
    uint32_t length;          /*  36 body bytes */
    int32_t priority;         /*  40 field as given */
    uint32_t expiry;          /*  44 deciseconds after header.epoch_us, 0 = unlimited */
    uint32_t unit;            /*  48 context slot (PUT, GOT), handle slot (LOCKED) */
    uint32_t unit_next;       /*  52 next in the context's list; next_free when FREE */
    uint64_t tag[MQX_INDEX_COUNT]; /* 56 keyed tags of MsgId, CorrelId, GroupId (0: none) */
    struct {                  /*  80 same-key ring and bucket chain of each lookup (id_index.h) */
        uint32_t next, prev, chain;
    } key[MQX_INDEX_COUNT];
    uint32_t backout_count;   /* 116 */
    uint32_t chunk_count;     /* 120 CHUNK records before the PUT record; 0 = body inline */
    uint32_t record_length;   /* 124 of the PUT record */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_message) == 128, "index entry: at most 128 bytes a message");

/* ---- objects; today queues (stripe lock unless said otherwise) ---- */
enum mqx_object_state {
    MQX_OBJ_FREE = 0,
    MQX_OBJ_DEFINING = 1,     /* name taken, record not yet in the ring: free it when the owner
                               * dies */
    MQX_OBJ_LOGGED = 2,       /* record in the ring, not durable: becomes ACTIVE, by anybody */
    MQX_OBJ_ACTIVE = 3,
    MQX_OBJ_DELETING = 4,     /* logically deleted: nobody can use it; the slot is given back, by
                               * anybody, when no handle is open and no unit holds a message */
};
enum { /* object.name_space: queues of every type, and 100 + MQOT_* */
    MQX_NAMES_QUEUE = 1,
    /* instances of cluster queues: the values that a put asks for */
    MQX_NAMES_CLUSTER = 100 + MQQT_CLUSTER,
    /* max_depth: MAXUMSGS, max_length: MAXMSGL; 0 when not given */
    MQX_NAMES_MANAGER = 100 + MQOT_Q_MGR,
    /* max_depth: CFLEVEL, max_length: what that allows, may_persist */
    MQX_NAMES_STRUCTURE = 100 + MQOT_CF_STRUC,
};
enum { MQX_LOCAL_QUEUE = MQQT_LOCAL };  /* object.type of what holds messages */
enum mqx_definition_type {    /* MQQDT_* */
    MQX_PREDEFINED = MQQDT_PREDEFINED,
    MQX_PERMANENT = MQQDT_PERMANENT_DYNAMIC,
    MQX_TEMPORARY = MQQDT_TEMPORARY_DYNAMIC, /* in the region alone, in no file */
    MQX_SHARED = MQQDT_SHARED_DYNAMIC, /* as PERMANENT */
};
enum mqx_np_life { /* how long non-persistent messages live */
    MQX_NP_TO_RESTART = 0,
    MQX_NP_TO_FAILURE = 1,    /* NPMCLASS(HIGH): an orderly end keeps them in its checkpoint */
    MQX_NP_IN_STRUCTURE = 2,  /* to the failure of object.structure: they are in the journal, too */
};
struct mqx_level {            /* one placement priority of a queue: see priority_index.h */
    uint32_t root;            /* cells of the top node, 0 = never used */
    uint32_t height;          /* 1..MQX_RADIX_HEIGHT_MAX; covers 64^height positions */
    uint64_t next_position;
    uint32_t present;         /* messages in the sequence, available or not */
    uint32_t reset_count;     /* how often positions began again at 0 (browse cursors compare it) */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_level) == 24, "level");

struct mqx_object {
    uint32_t state;           /* atomic read; catalog lock */
    uint32_t generation;      /* atomic read; raised when the slot is freed */
    uint32_t name_space;
    uint32_t type;            /* MQQT_* */
    char name[MQX_NAME_SIZE]; /* catalog lock; blank padded */
    uint32_t name_next;       /* catalog lock: hash chain */
    uint32_t attrs;           /* catalog lock: cells with the attribute list */
    uint32_t attrs_length;
    uint32_t pending_attrs;   /* catalog lock: of an ALTER whose record is in the ring */
    uint32_t pending_length;
    uint32_t resolution;      /* atomic read; catalog lock: raised by each ALTER of an attribute by
                               * which names are resolved */
    /* attribute values read at each call (atomic; written under the catalog lock) */
    uint32_t max_depth;
    uint32_t max_length;
    uint8_t def_priority;
    uint8_t def_persistence;
    uint8_t fifo;             /* MSGDLVSQ(FIFO) */
    uint8_t put_inhibited;
    uint8_t get_inhibited;
    uint8_t npm_class;        /* 0 NORMAL, 10 HIGH */
    uint8_t may_persist;      /* 0: a persistent put is 2048 */
    uint8_t np_life;          /* enum mqx_np_life */
    /* heap summary */
    uint16_t available_mask;  /* bit p: level p has an available message (a hint that is exact under
                               * the lock) */
    uint16_t zero;            /* stored together with the mask and `present` */
    uint32_t present;         /* messages in the queue in any state */
    uint32_t got;             /* of these in state GOT */
    uint32_t uncommitted;     /* of these in state PUT */
    uint32_t waiters;         /* listed waiters, in the general list and in buckets */
    uint32_t wait_head;       /* general waiters */
    uint32_t wait_tail;
    uint32_t open_input;      /* slots lock: handles */
    uint32_t open_output;
    uint32_t open_other;
    uint32_t index[MQX_INDEX_COUNT]; /* cells of lookup headers, 0 = not built */
    uint32_t expiring;        /* messages present with an expiry */
    uint64_t put_count;       /* statistics (plain, under the lock) */
    uint64_t get_count;
    uint64_t last_put_us;
    uint64_t last_get_us;
    struct mqx_level level[MQX_PRIORITY_COUNT];
    uint32_t changer;         /* catalog lock: context that alters or deletes it, 0 = nobody */
    uint32_t exclusive_input; /* slots lock: handle that has the queue open for exclusive input */
    uint32_t next_free;       /* slots lock */
    uint32_t creator;         /* temporary: the handle that made it, with which it is deleted;
                               * fixed */
    uint8_t definition_type;  /* enum mqx_definition_type; fixed for the life of the object */
    uint8_t group_index;      /* INDXTYPE(GROUPID); attribute value, as those above */
    uint8_t failing;          /* of a structure, catalog lock, atomic read: its failure is being
                               * simulated */
    uint8_t zero_byte;
    uint32_t structure;       /* atomic read; catalog lock: slot of the CFSTRUCT that np_life speaks
                               * of; 0 when there is none of that name */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_object) == 512, "an unopened queue costs at most 512 bytes");

/* ---- stripes ---- */
struct mqx_parcel { /* blocks on their way between a stripe and the global arena (arena.h) */
    uint32_t kind;  /* 0 none, 1 cells, 2 message entries */
    uint32_t class_no;
    uint32_t head;
    uint32_t count;
};
struct mqx_stripe {
    struct mqx_lock lock;
    uint64_t next_number;                 /* message numbers: next of this stripe's block ... */
    uint64_t end_number;                  /* ... and its end */
    uint32_t free_entries;
    uint32_t free_entry_count;
    uint32_t free_cells[MQX_CLASS_COUNT];
    uint32_t free_count[MQX_CLASS_COUNT];
    struct mqx_parcel incoming;           /* arena lock + this lock */
    struct mqx_parcel outgoing;
    uint32_t wait_bucket[MQX_WAIT_BUCKETS]; /* contexts waiting with tags */
    uint64_t persistent_present;          /* persistent messages of its queues */
    uint64_t body_bytes;                  /* bytes of cells held by message bodies */
} MQX_ALIGNED(64);

/* ---- areas ---- */
enum mqx_area_kind {
    MQX_AREA_OBJECTS,
    MQX_AREA_CONTEXTS,
    MQX_AREA_HANDLES,
    MQX_AREA_MESSAGES,
    MQX_AREA_ARENA,
    MQX_AREA_COUNT,
};
struct mqx_area {
    uint64_t offset;          /* fixed at creation */
    uint64_t reserved_bytes;  /* fixed: address space */
    uint64_t capacity;        /* atomic: bytes backed by memory; growth lock */
    uint64_t step;            /* fixed: growth in bytes */
    uint32_t item_size;       /* fixed */
    uint32_t free_head;       /* slots lock (arena lock for messages): freed slots */
    uint64_t used;            /* high water: items (cells) ever handed out; same lock */
} MQX_ALIGNED(64);

/* ---- journal state (ring lock unless said otherwise): see journal.h, group_commit.h ---- */
enum mqx_segment_state {
    MQX_SEG_FREE = 0,         /* table entry unused */
    MQX_SEG_SPARE = 1,        /* whole file spare-<number>.psj, ready */
    MQX_SEG_ACTIVE = 2,       /* being appended to */
    MQX_SEG_FULL = 3,         /* left; still needed */
};
struct mqx_segment {
    uint64_t number;          /* of the file; a spare has the number it is named after */
    uint64_t generation;
    uint64_t base_lsn;
    uint64_t size;
    uint64_t end_lsn;         /* FULL: end of its batches */
    uint64_t live_bytes;      /* record bytes of messages present at the last checkpoint */
    uint32_t live_messages;
    uint32_t state;
    uint64_t prev_end_lsn;
};
MQX_STATIC_ASSERT(sizeof(struct mqx_segment) == 64, "segment table entry");

struct mqx_sealed { /* a closed batch that waits to be written, oldest first */
    uint64_t start;           /* LSN of its header */
    uint32_t length;          /* header + records */
    uint32_t record_count;
    uint32_t segment;         /* index in the segment table */
    uint32_t zero;
};

struct mqx_journal {
    struct mqx_lock ring_lock;
    struct mqx_lock flush_lock;   /* leader of the group commit */
    struct mqx_lock roll_lock;    /* segment files: make, activate, retire */
    uint64_t ring_offset;         /* fixed: in the region */
    uint64_t ring_size;           /* fixed: power of two */
    uint64_t segment_size;        /* fixed: of new full-size segments */
    uint64_t first_segment_size;  /* fixed: of the first one and of one that is needed at once */
    uint64_t limit;               /* fixed: bytes of all segment files together */
    uint64_t tail;                /* next LSN to append at */
    uint64_t batch_start;         /* header of the open batch; tail >= batch_start + 64 when open */
    uint32_t batch_records;
    uint32_t active;              /* segment table index + 1 of the segment being appended to; 0
                                   * none */
    uint32_t sealed_first;        /* sealed[] is a ring of MQX_SEALED_MAX */
    uint32_t sealed_count;
    struct mqx_sealed sealed[MQX_SEALED_MAX];
    uint64_t written;             /* everything below has been handed to the kernel (flush lock) */
    uint64_t durable;             /* atomic: everything below is on the medium (flush lock) */
    uint32_t flush_word;          /* atomic futex: raised after each flush */
    uint32_t flush_waiters;       /* atomic */
    uint32_t unsynced;            /* 1: bytes below `written` await an fdatasync (flush lock) */
    uint32_t leader_process;      /* attachment slot + 1 of the present leader */
    uint64_t next_generation;
    uint64_t next_segment_no;
    uint64_t restart_epoch;
    uint64_t next_unit_id;        /* atomic */
    uint64_t next_number;         /* atomic: message numbers handed to stripes in blocks */
    uint64_t checkpoint_begin;    /* begin LSN of the newest whole checkpoint */
    uint64_t checkpoint_bytes;    /* its size */
    uint64_t reserve_bytes;       /* atomic: journal space kept for gets, commits, backouts (rule
                                   * 12) */
    uint64_t used_bytes;          /* of all segment files */
    uint64_t flushes;             /* statistics */
    uint64_t flushed_bytes;
    uint64_t flushed_records;
    uint64_t last_flush_us;
    uint64_t marked;              /* batch end covered by the newest mark on the medium */
    uint32_t epoch_written;       /* 1: this restart has begun a segment of its own */
    uint32_t clean_tail;          /* 1: the active segment may be appended to as it is */
    struct mqx_segment segment[MQX_SEGMENT_MAX];
};

/* ---- header and fixed part ---- */
enum { /* header.stopped */
    MQX_RUNNING = 0,
    MQX_STOP_BROKEN = 1,      /* failed flush, unrepairable lock, failed check, end -p: 2009 */
    MQX_STOP_ENDED = 2,       /* end -i: 2162 */
};
enum { MQX_PLATFORM_UNIX = 0, MQX_PLATFORM_ZOS = 1 };
struct mqx_header {
    char magic[8];            /* "PSTKREGN" */
    uint64_t layout;
    uint64_t size;            /* of the file */
    uint8_t qm_id[16];
    uint8_t incarnation[16];
    uint8_t boot_id[16];
    uint64_t directory_device;
    uint64_t directory_inode;
    uint64_t pid_namespace;
    char libc[32];            /* "glibc 2.36" */
    uint64_t epoch_us;        /* wall clock base of message.expiry */
    uint64_t tag_key;         /* of keyed tags: from qm_id */
    char id_prefix[16];       /* of generated ids: "AMQ " (z/OS "CSQ ") and 12 characters of the
                               * name */
    uint32_t platform;        /* MQX_PLATFORM_* */
    uint32_t stripe_count;    /* power of two */
    uint32_t name_bucket_count; /* power of two */
    uint32_t ready;           /* atomic: recovery is complete */
    uint32_t stopped;         /* atomic: stop flag, everybody's calls fail */
    uint32_t quiescing;       /* atomic: end -c or -w under way */
    uint32_t max_uncommitted; /* atomic: MAXUMSGS */
    uint32_t max_message;     /* atomic: queue manager's MAXMSGL */
    uint64_t body_budget;     /* bytes of persistent bodies kept in the region at most */
    uint64_t last_reap_us;   /* atomic */
    uint64_t woken_by_bound;  /* atomic: waits that found a message only because the bound
                               * expired */
    uint64_t np_discarded;    /* non-persistent messages discarded by the last restart */
    uint64_t maintenance_seq; /* atomic */
    struct mqx_area area[MQX_AREA_COUNT];
    struct mqx_lock maintenance_lock;
    struct mqx_lock growth_lock;
    struct mqx_lock catalog_lock;
    struct mqx_lock slots_lock;
    struct mqx_lock arena_lock;
    uint32_t xid_bucket[MQX_XID_BUCKETS]; /* slots lock: contexts with xids */
    uint32_t global_cells[MQX_CLASS_COUNT]; /* arena lock: free cells given back by stripes */
    struct mqx_process process[MQX_PROCESS_MAX];
    struct mqx_journal journal;
    uint64_t stripe_offset;   /* fixed: struct mqx_stripe[stripe_count] */
    uint64_t names_offset;    /* fixed: uint32_t[name_bucket_count], object slots; catalog lock */
};

/* What differs between queue managers, from qm.toml; small values make tests fast. */
struct mqx_region_plan {
    uint64_t size;            /* of the sparse file */
    uint64_t body_budget;
    uint64_t ring_size;
    uint64_t segment_size;
    uint64_t first_segment_size;
    uint64_t journal_limit;
    uint32_t stripe_count;
    uint32_t name_bucket_count;
    uint32_t growth_step;     /* bytes; a power of two >= 64 KiB; areas grow by this */
    uint32_t max_uncommitted;
    uint32_t max_message;
    uint32_t platform;
    uint32_t linear;          /* 1: retired segments move to the archive */
};

/* Process-local view. One per attachment; passed to everything below the handles. */
struct mqx_region {
    unsigned char *base;
    struct mqx_header *header;    /* = base */
    struct mqx_journal *journal;  /* in the header */
    struct mqx_stripe *stripes;
    unsigned char *area[MQX_AREA_COUNT]; /* where each area begins */
    uint32_t *names;
    uint32_t process;             /* this attachment's slot; 0 while attaching */
    uint32_t stripe_mask;
    int fd;
    struct mqx_io *io;
    uint64_t size;
    bool ending;                  /* this process runs `end -i`: the stop flag it set does not stop
                                   * it */
};

void mqx_region_default_plan(struct mqx_region_plan *plan);

/* Hash of every struct size and offset above. */
uint64_t mqx_region_layout(void);

/* Creates the file `name` in directory `dir` (exclusively), lays it out and formats it; `ready`
 * stays 0. 2071 with the sizes when the medium has not the room for the first part. */
int mqx_region_create(struct mqx_io *io, int dir, const char *name,
                      const struct mqx_region_plan *plan, struct mqx_region *out) MQX_MUST_USE;
/* Maps an existing one and verifies magic, layout and size. */
int mqx_region_open(struct mqx_io *io, int dir, const char *name,
                    struct mqx_region *out) MQX_MUST_USE;
void mqx_region_close(struct mqx_region *region);
/* The same, but the mapping is kept for the next mqx_region_open() of this process (mapping_cache.h). */
void mqx_region_leave(struct mqx_region *region);

/* Makes at least `bytes` of the area usable; takes the growth lock only. 2071 when it cannot. */
int mqx_region_grow(struct mqx_region *region, enum mqx_area_kind kind,
                    uint64_t bytes) MQX_MUST_USE;

/* Sets the stop flag (a worse reason wins) and wakes every sleeper of the region. */
void mqx_region_stop(const struct mqx_region *region, uint32_t how);
/* MQRC_CONNECTION_BROKEN or MQRC_Q_MGR_STOPPING when stopped, else 0. */
static inline uint32_t mqx_region_stopped(const struct mqx_region *region)
{
    const uint32_t how = mqx_load_acquire(&region->header->stopped);
    return MQX_UNLIKELY(how == MQX_STOP_ENDED && region->ending) ? (uint32_t)MQX_RUNNING : how;
}
int mqx_region_stop_reason(const struct mqx_region *region);

/* Checked access; NULL when the slot is 0 or beyond the memory that its area has (rule 28). The
 * size is a constant at each use: an area's item_size was compared with it when the region was
 * mapped. */
static inline __attribute__((always_inline)) void *
mqx_item(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t slot, uint64_t size)
{
    const uint64_t at = slot * size;
    if (MQX_UNLIKELY(slot == 0 ||
                     at + size > mqx_load_acquire(&region->header->area[kind].capacity))) {
        return NULL;
    }
    return region->area[kind] + at;
}
static inline struct mqx_object *mqx_object(const struct mqx_region *region, uint32_t slot)
{
    return mqx_item(region, MQX_AREA_OBJECTS, slot, sizeof(struct mqx_object));
}
static inline struct mqx_context *mqx_context(const struct mqx_region *region, uint32_t slot)
{
    return mqx_item(region, MQX_AREA_CONTEXTS, slot, sizeof(struct mqx_context));
}
static inline struct mqx_handle *mqx_handle(const struct mqx_region *region, uint32_t slot)
{
    return mqx_item(region, MQX_AREA_HANDLES, slot, sizeof(struct mqx_handle));
}
static inline struct mqx_message *mqx_message(const struct mqx_region *region, uint32_t slot)
{
    return mqx_item(region, MQX_AREA_MESSAGES, slot, sizeof(struct mqx_message));
}
static inline void *mqx_cells(const struct mqx_region *region, uint32_t cell)
{
    return mqx_item(region, MQX_AREA_ARENA, cell, MQX_CELL);
}
static inline bool mqx_object_is_temporary(const struct mqx_object *object)
{
    return object->definition_type == MQX_TEMPORARY;
}
static inline struct mqx_stripe *mqx_stripe_of(const struct mqx_region *region, uint32_t object)
{
    return &region->stripes[object & region->stripe_mask];
}
static inline struct mqx_process *mqx_process_slot(const struct mqx_region *region, uint32_t slot)
{
    return &region->header->process[slot % MQX_PROCESS_MAX];
}

#endif
