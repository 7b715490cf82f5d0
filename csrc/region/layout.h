/*
 * layout.h - what lies in the shared region, and the process-local view of it.
 *
 * Layout of the file
 *
 *   header      struct mqx_header: identity, flags, areas, locks, attachment slots, journal state
 *   stripes     struct mqx_stripe[stripe_count]
 *   names       uint32_t[2][name_bucket_count]: object slots by name, their complements
 *   log ring    ring_size bytes
 *   extents     struct mqx_extent, one for each that the two areas can have; memory as they grow
 *   areas       objects, contexts, handles, messages, arena: address space in fixed shares
 *
 * Terms
 *   area       a stretch of the region for items of one size (or for cells), reserved in address
 *              space for the largest count and backed by memory up to `capacity` bytes; it grows by
 *              posix_fallocate of whole steps under the growth lock, and `capacity` is published by
 *              one release store, which each process follows when it meets the new part (reach.h).
 *   slot       index of an item in its area, 1..; 0 means "none" everywhere.
 *   cell       64 bytes of the arena; a cell reference (u32) counts cells from the arena's start,
 *              0 = none.
 *   stripe     one queue lock with everything that is changed under it for the objects that map to
 *              it: their priority and id indexes, their messages, free cells and entries, wait
 *              lists. An object maps to stripe (slot % stripe_count) for its whole life.
 *   context    what a unit of work, a single call or a waiter needs in the region (context.h).
 *   extent     MQX_EXTENT_BYTES of the arena or of the message area, for items of one class at
 *              a time (extents.h); named by its index + 1, 0 = none.
 *
 * Invariants
 *   1. No pointers in the region, only offsets, slots and cell references; each is range-checked
 *      after it was read (access.h, rule 28).
 *   2. `layout` in the header is a hash of every struct size and offset here: other builds are
 *      refused.
 *   3. Memory beyond an area's capacity is never touched.
 *   4. A field is changed only under the lock named beside it or its struct, through
 *      mqx_undo_store*(), unless its comment says atomic.
 *   5. Fields called fixed are written once, before `ready`.
 */
#ifndef PENSTOCK_LAYOUT_H
#define PENSTOCK_LAYOUT_H

#include "base/base.h"
#include "os/file_id.h"
#include "os/io.h"
#include "region/context.h"
#include "region/entry.h"
#include "region/handle_slot.h"
#include "region/journal_state.h"
#include "region/lock.h"
#include "region/process_slot.h"
#include "region/queue_slot.h"

enum { /* sizes of tables; others stand with their structs */
    MQX_EXPIRED_MAX = 15,
    MQX_PERFORMANCE_MAX = 15,
    MQX_STRIPE_MAX = 256,
    MQX_CELL = 64,
    MQX_CLASS_COUNT = 40,           /* size classes of cells, see arena.h */
    MQX_ENTRY_CLASS = MQX_CLASS_COUNT, /* message entries, where classes of both are counted */
    MQX_LIST_COUNT = MQX_CLASS_COUNT + 1, /* classes of cells and the entries */
    MQX_EXTENT_BYTES = 128 << 10,
    MQX_WAIT_BUCKETS = 64,          /* per stripe, for waiters with match tags */
    MQX_XID_BUCKETS = 1024,
    MQX_DAMAGE_TEXT = 96,           /* bytes of header.damage_text, NUL included */
    MQX_HUGE_WORDS = 512,           /* of header.huge_block: 64 GiB of 2 MiB blocks */
    MQX_STOP_CALL = 80,             /* bytes of stop_cause.call and .program, NUL included */
    MQX_STOP_PROGRAM = 48,
};

/* ---- extents ---- */

enum mqx_extent_state {
    MQX_EXTENT_NEW = 0,       /* above area.used */
    MQX_EXTENT_FREE = 1,      /* no item in use; backed by memory */
    MQX_EXTENT_USED = 2,      /* holds items of its class */
    MQX_EXTENT_TO_PUNCH = 3,  /* free; its memory is being given back */
    MQX_EXTENT_PUNCHED = 4,   /* free, without memory */
};
struct mqx_extent {           /* arena lock */
    uint32_t state;           /* enum mqx_extent_state */
    uint32_t class_no;        /* USED: of its items */
    uint32_t total;           /* USED: items that it has room for */
    uint32_t carved;          /* USED: of these, from the start, that have been handed out before */
    uint32_t in_use;          /* USED: items that a stripe, a parcel or a message has */
    uint32_t free_head;       /* USED: list of the items that were given back */
    uint32_t next;            /* extent: of the pool's list or of the class' partial ones */
    uint32_t prev;            /* extent: of the latter */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_extent) == 32, "extent");

enum mqx_pool_no { MQX_POOL_ENTRIES, MQX_POOL_CELLS, MQX_POOL_COUNT };
enum { MQX_STRETCHES = 6 }; /* of a window, in which memory that stays free is looked for */

/* The extents of an area; arena lock, for the last two lists the growth lock, too. */
struct mqx_pool {
    uint64_t extents_offset;  /* fixed: struct mqx_extent[] */
    uint32_t free;            /* list of FREE extents */
    uint32_t free_count;      /* its length */
    uint32_t idle_count;      /* extents in all three lists */
    uint32_t free_low;        /* atomic: least free_count since maintenance asked; a hint */
    uint32_t lows[MQX_STRETCHES]; /* maintenance lock: free_low of the last stretches, a ring */
    uint32_t next_low;        /* maintenance lock: the entry that is stored next */
    uint32_t to_punch;        /* list of TO_PUNCH extents */
    uint32_t punched;         /* list of PUNCHED extents */
};

/* ---- stripes ---- */

enum { MQX_PARCEL_NONE = 0, MQX_PARCEL_OF_CELLS = 1, MQX_PARCEL_OF_ENTRIES = 2 };
struct mqx_parcel { /* items on their way between a stripe and the extents (arena.h) */
    uint32_t kind;  /* MQX_PARCEL_NONE, _OF_CELLS, _OF_ENTRIES */
    uint32_t class_no;
    uint32_t head;
    uint32_t count;
};
struct mqx_stripe {
    struct mqx_lock lock;
    uint64_t next_number;                 /* message numbers: next of this stripe's block ... */
    uint64_t end_number;                  /* ... and its end */
    uint32_t free_entries;
    uint32_t free_entry_count;            /* a hint: plain stores, off after a death */
    uint32_t free_cells[MQX_CLASS_COUNT];
    uint32_t free_count[MQX_CLASS_COUNT]; /* hints */
    uint32_t seen_head[MQX_LIST_COUNT];   /* maintenance lock: the heads when it last looked */
    struct mqx_parcel incoming;           /* arena lock + this lock */
    struct mqx_parcel outgoing;
    uint32_t wait_bucket[MQX_WAIT_BUCKETS]; /* contexts waiting with tags */
    uint64_t persistent_present;          /* persistent messages of its queues */
    uint64_t body_bytes;                  /* of its messages with MQX_MSGF_BODY: their payloads */
    uint64_t live_bytes;                  /* of journal, of its persistent messages: about what
                                           * their records have (queue/queue.h) */
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
    uint64_t offset;          /* fixed */
    uint64_t reserved_bytes;  /* fixed: address space */
    uint64_t capacity;        /* atomic: bytes backed by memory; growth lock */
    uint64_t capacity_inverse; /* atomic: its complement (area.h) */
    uint64_t step;            /* fixed: growth in bytes */
    uint32_t item_size;       /* fixed */
    uint32_t free_head;       /* slots lock: freed slots; not of messages and arena */
    uint64_t used;            /* atomic: high water: items given out so far, item 0 included; same
                               * lock. Of messages and arena: up to the end of the last extent;
                               * arena lock */
    uint64_t used_inverse;    /* atomic: its complement, of objects, contexts and handles */
} MQX_ALIGNED(64);

/* ---- header and fixed part ---- */

enum { /* header.stopped */
    MQX_RUNNING = 0,
    MQX_STOP_BROKEN = 1,      /* failed flush, unrepairable lock, failed check, end -p: 2009 */
    MQX_STOP_ENDED = 2,       /* end -i: 2162 */
};
enum { /* header.damage_claim */
    MQX_DAMAGE_NONE = 0,
    MQX_DAMAGE_CLAIMED = 1,   /* damage_text is being written */
    MQX_DAMAGE_WRITTEN = 2,
};
enum { /* stop_cause.claim */
    MQX_CAUSE_NONE = 0,
    MQX_CAUSE_CLAIMED = 1,    /* the rest is being written */
    MQX_CAUSE_WRITTEN = 2,
};
struct mqx_stop_cause {       /* why the queue manager has stopped; written once (stop_flag.h) */
    uint32_t claim;           /* atomic: MQX_CAUSE_*; the first process that stops owns the rest */
    int32_t error;            /* errno, 0: none */
    int32_t pid;              /* of the process that stopped it */
    uint32_t zero;
    char call[MQX_STOP_CALL]; /* what failed, in words: "writing the journal" */
    char program[MQX_STOP_PROGRAM];
};
enum { MQX_PLATFORM_UNIX = 0, MQX_PLATFORM_ZOS = 1 };
struct mqx_header {
    char magic[8];            /* "PSTKREGN" */
    uint64_t layout;          /* fixed: mqx_region_layout() */
    uint64_t size;            /* fixed: of the file */
    uint8_t qm_id[16];
    uint8_t incarnation[16];
    uint8_t boot_id[16];
    uint64_t directory_device;
    uint64_t directory_inode;
    uint64_t pid_namespace;
    char libc[32];            /* "glibc 2.36" */
    uint64_t epoch_us;        /* wall clock when it was made: generated ids, message.expiry */
    uint64_t run_offset_us;   /* fixed: what the clock of the run (queue/due_index.h) is ahead of
                               * the boot clock */
    uint64_t advanced_us;     /* atomic: what the clock of queues is ahead of the wall clock */
    char id_prefix[16];       /* of generated ids: "AMQ " (z/OS "CSQ ") and 12 characters of the
                               * name */
    uint32_t platform;        /* MQX_PLATFORM_* */
    uint32_t stripe_count;    /* fixed: power of two */
    uint32_t name_bucket_count; /* fixed: power of two */
    uint32_t ready;           /* atomic: recovery is complete */
    uint32_t stopped;         /* atomic: stop flag; while set, calls in all processes fail */
    uint32_t quiescing;       /* atomic: end -c or -w in progress */
    uint32_t max_uncommitted; /* atomic: MAXUMSGS */
    uint32_t max_message;     /* atomic: queue manager's MAXMSGL */
    uint32_t max_unit_age;    /* fixed: seconds after which an open unit is backed out; 0: never */
    uint64_t body_budget;     /* fixed: bytes of persistent bodies kept in the region at most */
    uint64_t memory_limit;    /* fixed: of the control group that the region was created in, bytes;
                               * UINT64_MAX: none */
    uint64_t body_bytes;      /* atomic: sum over the stripes at the newest round of maintenance */
    uint64_t last_reap_us;    /* atomic */
    uint64_t last_round_us;   /* atomic: end of the newest round of maintenance, monotonic clock */
    uint32_t attached;        /* atomic: processes that were attached then */
    uint64_t expired_us;      /* atomic: latest expiry of a persistent message that was discarded
                               * for it: the clock may have been set back since */
    uint32_t trigger_version; /* atomic: raised when the definition of a queue with
                               * MQX_SPECIAL_TRIGGER is made or changed; 0: there is none */
    uint32_t expired[MQX_EXPIRED_MAX]; /* atomic: slots of queues with expired messages whose
                               * reports are to be made, each where its number modulo the size says;
                               * a hint, 0: none (api/expiry.c) */
    uint32_t performance_events; /* atomic: PERFMEV(ENABLED) */
    uint32_t performance[MQX_PERFORMANCE_MAX]; /* atomic: slots of queues that owe event messages,
                               * as `expired` (queue/performance.h) */
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
    struct mqx_pool pool[MQX_POOL_COUNT];
    uint32_t partial[MQX_LIST_COUNT]; /* arena lock: USED extents of a class with free items */
    uint64_t reclaimed_us;    /* maintenance lock: the last look at free memory (reclaim.h) */
    uint64_t stretch_us;      /* maintenance lock: when the present stretch began */
    uint32_t short_looks;     /* atomic: so many looks are about memory that was refused; a hint */
    struct mqx_process process[MQX_PROCESS_MAX];
    struct mqx_journal journal;
    uint64_t stripe_offset;   /* fixed: struct mqx_stripe[stripe_count] */
    uint64_t names_offset;    /* fixed: uint32_t[2][name_bucket_count]; catalog lock */
    uint32_t damage_claim;    /* atomic: MQX_DAMAGE_*; the first process to find damage owns it */
    char damage_text[MQX_DAMAGE_TEXT]; /* names the damaged structure (damage.h) */
    struct mqx_stop_cause stop_cause;
    uint64_t huge_block[MQX_HUGE_WORDS]; /* atomic; stores under the growth lock: a bit for each
                                          * block of the file that is a huge page (huge_blocks.h) */
};

/* What differs between queue managers, from qm.toml; small values make tests fast. */
struct mqx_region_plan {
    uint64_t size;            /* of the sparse file */
    uint64_t body_budget;
    uint64_t memory_limit;
    uint64_t ring_size;
    uint64_t segment_size;
    uint64_t first_segment_size;
    uint64_t journal_limit;
    uint32_t stripe_count;
    uint32_t name_bucket_count;
    uint32_t growth_step;     /* bytes; a power of two >= 64 KiB; areas grow by this */
    uint32_t max_uncommitted;
    uint32_t max_message;
    uint32_t max_unit_age;    /* seconds; 0: any */
    uint32_t platform;
    uint32_t linear;          /* 1: retired segments move to the archive */
    bool in_memory;           /* in a memory file, where there are such (memory_file.h) */
};

struct mqx_reach { /* what of the region this process has mapped: reach.h */
    uint64_t usable[MQX_AREA_COUNT]; /* atomic: bytes of each area */
    uint64_t mapped[MQX_AREA_COUNT]; /* atomic: bytes of each area */
    uint64_t space[MQX_AREA_COUNT];  /* fixed: address space of each area */
    bool stepwise;                   /* fixed */
    uint32_t lost;                   /* atomic: 1: this attachment does nothing any more */
};

/* Process-local view. One per attachment; passed to everything below the handles. Its addresses are
 * computed once, from a header that was validated, and are not read from the region again. */
struct mqx_region {
    unsigned char *base;
    struct mqx_header *header;    /* = base */
    struct mqx_journal *journal;  /* in the header */
    struct mqx_stripe *stripes;
    unsigned char *area[MQX_AREA_COUNT]; /* where each area begins */
    struct mqx_reach reach;
    struct mqx_extent *extents[MQX_POOL_COUNT];
    uint64_t extent_count[MQX_POOL_COUNT]; /* that the pool's address space has */
    unsigned char *ring;
    uint64_t ring_size;
    uint32_t *names;
    uint32_t name_mask;
    uint64_t tag_key;             /* of keyed tags and names: from the queue manager's id */
    uint32_t process;             /* this attachment's slot; 0 while attaching */
    uint32_t stripe_mask;
    int mutex_kind;               /* of every lock (mutex_words.h) */
    int fd;
    struct mqx_file_id file;      /* that fd was opened for; the program may close or replace it */
    struct mqx_io *io;
    uint64_t size;
    /* Told about long waits for a lock (lock.h); NULL: nobody is. */
    void (*long_wait)(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us);
    bool ending;                  /* this process runs `end -i`: the stop flag it set does not stop
                                   * it */
    bool in_memory;               /* its file is a memory file (memory_file.h) */
    uint32_t events_fired;        /* atomic: a call of this process has caused a performance event;
                                   * its binding takes it (queue/performance.h) */
    char wake_prefix[100];        /* paths of channels begin so (queue/wake_channel.h); "": there
                                   * are none */
};

#endif
