/*
 * entry.h - the index entry of a message: everything about it but its descriptor and body.
 *
 * Terms
 *   message number  identity and arrival order in one 64-bit number: unique in the store, rising
 *                   within a queue.
 *   position        where the message stands in its priority level (queue/priority_index.h).
 *   tag             keyed 64-bit hash of an identifier (base/checksum.h); 0: the identifier is
 *                   all NUL and is not indexed.
 *   pin             a context that copies the body without the lock; the entry is not given back
 *                   while it has pins.
 *   hot half        the first 64 bytes, one line of the processor's cache: all that a get at the
 *                   head of its queue reads or writes. A get from a deep queue waits for this line
 *                   and the body's, and for no other.
 *   cold half       what only puts, id indexes, units, browsing and restarts touch.
 *
 * States
 *   FREE -> RESERVED -> PUT -> AVAILABLE <-> GOT, LOCKED -> FREE, or GONE while pins remain.
 *   PUT, GOT -> DELAYED -> AVAILABLE: it is to be shown later (queue/delayed.h).
 *
 * Locks. The stripe lock of its object (LOCKING.md), all fields.
 */
#ifndef PENSTOCK_ENTRY_H
#define PENSTOCK_ENTRY_H

#include "base/base.h"

enum { MQX_INDEX_COUNT = 3 }; /* id indexes: MsgId, CorrelId, GroupId */

enum mqx_message_state {
    MQX_MSG_FREE = 0,
    MQX_MSG_RESERVED = 1,     /* taken from the free list, a context's pending reference */
    MQX_MSG_PUT = 2,          /* in the queue, put by a unit not yet committed */
    MQX_MSG_AVAILABLE = 3,
    MQX_MSG_GOT = 4,          /* in the queue, got by a unit not yet committed */
    MQX_MSG_LOCKED = 5,       /* in the queue, browse lock of a handle */
    MQX_MSG_GONE = 6,         /* out of the queue, kept only until its pins are gone */
    MQX_MSG_DELAYED = 7,      /* in the queue, committed, hidden until its due time */
};
enum { /* mqx_message.flags */
    MQX_MSGF_PERSISTENT = 1,  /* in the journal */
    MQX_MSGF_HAS_EXT = 2,
    MQX_MSGF_VOLATILE = 4,    /* in the journal, but MQPER_NOT_PERSISTENT: of a queue in a
                               * structure */
    MQX_MSGF_TAKEN = 8,       /* non-persistent, got in a prepared unit before a restart: the body
                               * is in the journal, the message cannot be given back */
    MQX_MSGF_KEY = 0x10,      /* AVAILABLE: 0x10, 0x20, 0x40: linked in the MsgId, CorrelId, GroupId
                               * index */
    MQX_MSGF_DUE = 0x10,      /* PUT, GOT, DELAYED: `due` says when it becomes available; else, and
                               * without the flag, at once */
    MQX_MSGF_DUE_ID = 0x20,   /* DELAYED: in the tree of MsgIds, too (queue/due_index.h) */
    MQX_MSGF_BODY = 0x80,     /* persistent, put with its body in the region: counted in the
                               * stripe's body_bytes */
};

enum { /* mqx_message.record_length of a message that has no record */
    MQX_RECORD_STAYS = 1,     /* in state PUT: it becomes available whichever way its unit ends */
};

enum { MQX_MESSAGE_HOT = 64 }; /* bytes of the hot half */

/* Of a message that becomes available later; it lies where an available one has its links of the id
 * indexes. */
struct mqx_due {
    uint64_t key_us;          /* when: time of the run (queue/due_index.h) */
    uint64_t due_us;          /* the same as the wall clock of the put or backout had it: goes to
                               * disk */
    uint32_t child[2][2];     /* DELAYED: in the two trees of the queue (queue/due_index.h) */
};

struct mqx_message {
    /* hot half */
    uint8_t state;            /*   0 enum mqx_message_state */
    uint8_t placement;        /*   1 placement priority */
    uint8_t flags;            /*   2 */
    uint8_t pins;             /*   3 contexts that copy the body without the lock */
    uint32_t object;          /*   4 object slot */
    uint64_t number;          /*   8 message number */
    uint64_t lsn;             /*  16 of the PUT record, 0 = not in the journal */
    uint64_t position;        /*  24 in the level's sequence */
    uint32_t cells;           /*  32 first cell of its chain (message_body.h), 0 = in the journal */
    uint32_t length;          /*  36 body bytes */
    uint32_t backout_count;   /*  40 */
    uint32_t expiry;          /*  44 0 = unlimited; else tenths of a second, rounded up, after the
                               * last whole one before header.epoch_us */
    uint32_t unit;            /*  48 context slot (PUT, GOT), handle slot (LOCKED) */
    uint32_t unit_next;       /*  52 next in the context's list; free-list link when FREE */
    uint32_t chunk_count;     /*  56 CHUNK records before the PUT record; 0 = body inline */
    uint32_t record_length;   /*  60 of the PUT record, or MQX_RECORD_STAYS */
    /* cold half */
    uint64_t tag[MQX_INDEX_COUNT]; /* 64 of MsgId, CorrelId, GroupId */
    union {
        struct {
            struct {          /*  88 same-key ring and bucket chain of each id index (id_index.h) */
                uint32_t next, prev, chain;
            } key[MQX_INDEX_COUNT];
            int32_t priority; /* 124 field as given */
        };
        struct mqx_due due;   /*  88 with MQX_MSGF_DUE, unless it is AVAILABLE */
    };
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_message) == 128, "index entry: at most 128 bytes a message");
MQX_STATIC_ASSERT(offsetof(struct mqx_message, due) + sizeof(struct mqx_due) <=
                      offsetof(struct mqx_message, priority), "the priority stays");
MQX_STATIC_ASSERT(offsetof(struct mqx_message, record_length) + sizeof(uint32_t) ==
                      (size_t)MQX_MESSAGE_HOT, "what a get of any message reads is hot");
MQX_STATIC_ASSERT(offsetof(struct mqx_message, tag) == (size_t)MQX_MESSAGE_HOT,
                  "the cold half begins with what an id index compares");

#endif
