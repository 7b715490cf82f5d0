/*
 * queue_slot.h - the slot of an object: a queue of any type, and the few other objects that share
 * its layout (the queue manager's attributes, coupling-facility structures, cluster instances).
 *
 * Terms
 *   level               one placement priority of a queue (queue/priority_index.h).
 *   resolution version  raised by each ALTER of an attribute by which names are resolved.
 *   structure           a CFSTRUCT object that holds the messages of shared queues.
 *   performance event   of the depth or of the service interval (queue/performance.h).
 *
 * Locks. The stripe lock of the object, unless the field states otherwise. Fields marked atomic are
 * read without a lock. Attribute values are atomic and written under the catalog lock.
 */
#ifndef PENSTOCK_QUEUE_SLOT_H
#define PENSTOCK_QUEUE_SLOT_H

#include "base/mqi_constants.h"
#include "base/base.h"
#include "region/entry.h"

enum { MQX_RADIX_FANOUT = 64, MQX_RADIX_HEIGHT_MAX = 8 }; /* of a level */

enum mqx_object_state {
    MQX_OBJ_FREE = 0,
    MQX_OBJ_DEFINING = 1,     /* name taken, record not yet in the ring: free it when the owner
                               * dies */
    MQX_OBJ_LOGGED = 2,       /* record in the ring, not durable: any process makes it ACTIVE */
    MQX_OBJ_ACTIVE = 3,
    MQX_OBJ_DELETING = 4,     /* logically deleted: unusable; any process gives the slot back when
                               * no handle is open and no unit holds a message */
};
enum { /* mqx_object.name_space: queues of every type, and 100 + MQOT_* */
    MQX_NAMES_QUEUE = 1,
    /* instances of cluster queues: the values that a put asks for */
    MQX_NAMES_CLUSTER = 100 + MQQT_CLUSTER,
    /* max_depth: MAXUMSGS, max_length: MAXMSGL; 0 when not given */
    MQX_NAMES_MANAGER = 100 + MQOT_Q_MGR,
    /* max_depth: CFLEVEL, max_length: what that allows, may_persist */
    MQX_NAMES_STRUCTURE = 100 + MQOT_CF_STRUC,
};
enum { MQX_LOCAL_QUEUE = MQQT_LOCAL };  /* mqx_object.type of what holds messages */
enum mqx_definition_type {    /* MQQDT_* */
    MQX_PREDEFINED = MQQDT_PREDEFINED,
    MQX_PERMANENT = MQQDT_PERMANENT_DYNAMIC,
    MQX_TEMPORARY = MQQDT_TEMPORARY_DYNAMIC, /* in the region alone, in no file */
    MQX_SHARED = MQQDT_SHARED_DYNAMIC, /* as PERMANENT */
};
enum mqx_np_life {            /* how long non-persistent messages live */
    MQX_NP_TO_RESTART = 0,
    MQX_NP_TO_FAILURE = 1,    /* NPMCLASS(HIGH): an orderly end keeps them in its checkpoint */
    MQX_NP_IN_STRUCTURE = 2,  /* to the failure of object.structure: they are in the journal, too */
};

enum mqx_special {            /* mqx_object.special: what a put on the queue has to do besides */
    MQX_SPECIAL_GROUP_INDEX = 1, /* INDXTYPE(GROUPID) */
    MQX_SPECIAL_TRIGGER = 2,  /* TRIGGER, and TRIGTYPE is not NONE */
    MQX_SPECIAL_EXPIRY = 4,   /* CAPEXPRY */
    MQX_SPECIAL_STREAM = 8,   /* STREAMQ */
    MQX_SPECIAL_EVENTS = 16,  /* a performance event that a put or get which succeeds can cause */
};
enum mqx_performance_event {  /* one bit each */
    MQX_EVENT_FULL = 1,
    MQX_EVENT_HIGH = 2,
    MQX_EVENT_LOW = 4,
    MQX_EVENT_SERVICE_HIGH = 8,
    MQX_EVENT_SERVICE_OK = 16,
};

struct mqx_level {
    uint32_t root;            /* cells of the top node, 0 = never used */
    uint32_t height;          /* 1..MQX_RADIX_HEIGHT_MAX; covers 64^height positions */
    uint64_t next_position;
    uint32_t present;         /* messages in the sequence, available or not */
    uint32_t reset_count;     /* how often positions began again at 0 (browse cursors compare it) */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_level) == 24, "level");

struct mqx_performance {      /* performance events and statistics of a local queue */
    uint32_t enabled;         /* atomic: enum mqx_performance_event; attribute value, which an event
                               * that occurs changes, too */
    uint32_t pending;         /* atomic: of these, what has occurred; the event message is owed */
    uint32_t interval_ms;     /* QSVCINT; attribute value */
    uint8_t high_percent;     /* QDEPTHHI; attribute value */
    uint8_t low_percent;      /* QDEPTHLO; attribute value */
    uint16_t zero;
    uint64_t service_us;      /* when the service timer began, monotonic clock; MQX_SERVICE_OFF */
    uint64_t reset_us;        /* when the statistics began, monotonic clock */
    uint64_t puts_before;     /* put_count then */
    uint64_t gets_before;     /* gets then, those of open units included */
};
#define MQX_SERVICE_OFF UINT64_MAX

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
    uint32_t resolution_version; /* atomic read; catalog lock */
    /* attribute values read at each call */
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
    /* summary of the priority index */
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
    uint32_t high_depth;      /* most messages since the statistics began (plain, under the lock) */
    uint32_t delayed;         /* messages in state DELAYED; beside counts that each call touches */
    uint32_t index[MQX_INDEX_COUNT]; /* cells of the headers of the id indexes, 0 = not built */
    uint32_t expiring;        /* messages present with an expiry */
    uint64_t put_count;       /* statistics (plain, under the lock) */
    uint64_t get_count;
    uint64_t last_put_us;
    uint64_t last_get_us;
    struct mqx_level level[MQX_PRIORITY_COUNT];
    uint64_t trigger_us;      /* atomic: when a trigger message was last made for it; 0 never. Of an
                               * instance of a cluster queue: what mqe_report_due() was last told */
    uint32_t trigger_due;     /* atomic: see queue/trigger.h */
    uint32_t expiry_cap;      /* CAPEXPRY, tenths of a second, 0: none; attribute value, as those
                               * above, of definitions that are no local queue, too */
    uint32_t changer;         /* catalog lock: context that alters or deletes it, 0 = none */
    uint32_t exclusive_input; /* slots lock: handle that has the queue open for exclusive input */
    uint32_t next_free;       /* slots lock */
    uint32_t creator;         /* of a temporary queue, fixed: the handle with which it ends */
    uint8_t definition_type;  /* enum mqx_definition_type; fixed for the life of the object */
    uint8_t special;          /* enum mqx_special; attribute value, as those above */
    uint8_t failing;          /* of a structure, catalog lock, atomic read: its failure is being
                               * simulated */
    uint8_t trigger_priority; /* TRIGMPRI; attribute value */
    uint32_t structure;       /* atomic read; catalog lock: slot of the CFSTRUCT that np_life speaks
                               * of; 0 when there is none of that name */
    /* what the name table's words are compared with (name_table.h); catalog lock */
    uint32_t name_next_inverse; /* complement of name_next; both 0 until the first link */
    uint32_t name_sum;        /* CRC-32C of name_space, type and name */
    uint32_t deleted_generation; /* set together with DELETING; a state alone deletes nothing */
    uint32_t open_other;      /* slots lock, as open_input */
    uint64_t instance;        /* of the name, as in the attribute list's trailer */
    /* delayed messages (queue/due_index.h) */
    uint64_t next_due_us;     /* atomic read; while there are any: of the one that is due first */
    uint32_t due_root[2];     /* of the trees by due time and by MsgId */
    struct mqx_performance performance;
    uint32_t open_output;     /* slots lock, as open_input */
    uint32_t due_ids;         /* enum mqx_due_ids: which of them are in the tree by MsgId */
    uint64_t due_finger;      /* a node of the tree by due time, depth << 32 | slot; 0: none */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_object) == 576, "nine lines of memory a queue");

#endif
