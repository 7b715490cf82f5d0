/*
 * replay.h - what the journal's tail changes: records in, surviving effects out
 * (FORMAT.md, section 10).
 *
 * Purpose. A restart reads the records from the checkpoint's begin LSN on, in order, and hands them
 * to mqx_replay_record(). Afterwards the replay says which messages of checkpoint and tail are on
 * the queues, which objects are defined, and which prepared units are still to be resolved.
 *
 * Terms
 *   operation      what a record of a unit will do when the unit is committed.
 *   effect         what an operation has done: a put that counts, a number that is gone, ...
 *   epoch          the records written between two restarts. A unit is decided in its own epoch, or
 *                  prepared, or never.
 *   prepared unit  complete and waiting for its outcome, across epochs (XA: in doubt).
 *   held message   one that a prepared unit has put or got.
 *   image          a non-persistent message that a checkpoint of an orderly end carries.
 *   move           a MOVED record: the message lies there, too, and from then on there.
 *   carried unit   one that the checkpoint has as it was at the begin LSN (units_in_flight.h).
 *
 * Invariants
 *   1. Effects do not depend on the order in which checkpoint and tail are joined, because a
 *      message number is never given twice: puts that count, numbers that are gone, the highest
 *      BackoutCount, the highest CLEAR bound of a queue. Only object definitions are followed in
 *      order.
 *   2. A record of a unit has no effect before the unit's COMMIT, REC_COMMITS or COMMIT_PREPARED
 *      record is read (rule 9), and that record must agree with the count and the running checksum
 *      of the unit's records.
 *   3. next_number and next_unit_id are above everything that was read, units that were dropped
 *      included.
 *
 * An example: the records of the tail, and what is remembered after each
 *   PUT 7 of unit 3        put 7 WAITING; unit 3: one operation, count 1, its checksum
 *   GET 5 of unit 3        unit 3: two operations, count 2
 *   GET 6, unit 0          removed {6}
 *   COMMIT of unit 3       count and checksum agree: put 7 EFFECTIVE, removed {5, 6}
 *   PUT 8 of unit 4        put 8 WAITING
 *   end of the epoch       put 8 DROPPED; units_dropped 1
 * The checkpoint's messages 5 and 6 are gone, 7 is added; 8 was never committed.
 *
 * Memory: a few arrays that double. Nothing is allocated per message (a tail may hold millions),
 * nothing large for a small journal. A message that is gone leaves no entry (replay_sweep.c), only
 * its bit in `removed`: what a replay needs follows from the messages that were on the queues at
 * one time and the operations of undecided units, not from the length of the tail.
 *
 * No locks: a replay belongs to the thread that restarts. Errors: MQRC_OBJECT_DAMAGED with LSN and
 * unit for records that contradict each other, MQRC_STORAGE_NOT_AVAILABLE without memory; the
 * replay is of no use afterwards and is freed.
 */
#ifndef PENSTOCK_RECOVERY_REPLAY_H
#define PENSTOCK_RECOVERY_REPLAY_H

#include "base/number_map.h"
#include "base/number_set.h"
#include "catalog/catalog.h"
#include "format/record_codec.h"

enum mqx_put_state {
    MQX_PUT_WAITING = 0,    /* its unit is not decided */
    MQX_PUT_EFFECTIVE = 1,
    MQX_PUT_DROPPED = 2,
    MQX_PUT_FREE = 3,       /* the entry may be used again; m.object: index + 1 of the next one */
};
struct mqx_replay_put { /* a message put in the tail, or one of the image */
    struct psc_message m;
    uint32_t state;         /* enum mqx_put_state */
    uint32_t image;         /* index + 1 in `images`, else 0 */
    bool taken;             /* image of a message got in a prepared unit */
};
struct mqx_replay_delay { /* a message that was backed out with a delay */
    uint64_t due_us;
    uint32_t count;         /* its BackoutCount then */
    uint32_t zero;
};
struct mqx_image_position { /* where a message of the image lies in the checkpoint */
    uint64_t at;            /* offset of its first record */
    uint64_t block_end;     /* end of the payload that holds it */
};

struct mqx_replay_move {    /* a MOVED record */
    struct psc_message m;
    uint32_t before;        /* index + 1 of the move of this message before it */
    uint32_t zero;
};

struct mqx_replay_definition { /* attrs follow */
    struct ps_object_name name;
    uint32_t attrs_length;
    uint32_t zero;
};
struct mqx_slot_state { /* of one object slot */
    const struct mqx_replay_definition *definition; /* NULL: not defined */
    uint32_t newest;        /* highest generation seen, 0: slot never seen */
    uint64_t clear_bound;   /* messages of that generation with a lower number are gone */
};

struct mqx_replay_op { /* an operation */
    uint64_t number;        /* of the message; CLEAR: the bound */
    uint64_t lsn;
    uint32_t object;
    uint32_t object_gen;
    uint32_t next;          /* index + 1 */
    uint32_t type;
    uint32_t put;           /* index in puts */
    uint32_t before;        /* TAKEN: logged messages of the unit that come before it */
    const struct mqx_replay_definition *definition;
};
struct mqx_replay_unit {
    uint64_t id;            /* 0: table entry free */
    uint64_t first_lsn;
    uint64_t pieces_lsn;    /* of the first CHUNK record behind its last PUT or TAKEN; 0: none */
    uint32_t record_count;
    uint32_t running_crc;
    uint32_t first_op;      /* index + 1 */
    uint32_t last_op;
    bool carried;           /* by the checkpoint: its first records lie below the begin LSN */
};
struct mqx_replay_prepared { /* a prepared unit without an outcome yet */
    struct mqx_replay_unit unit; /* id 0: entry free */
    struct ps_xid xid;
    uint64_t prepare_end_lsn;
    struct ps_prepared stated;
    size_t first_held;      /* its messages, in the order of the calls: after
                             * mqx_replay_hold_prepared() */
    size_t held_count;
};
struct mqx_replay_held { /* a held message */
    uint64_t number;
    uint32_t type;          /* PS_REC_PUT, _GET or _TAKEN */
    uint32_t put;           /* PUT, TAKEN: index in puts */
    uint32_t slot;          /* its entry, filled in when it is loaded */
};

struct mqx_replay {
    /* set by the caller */
    uint64_t begin_lsn;
    uint64_t checkpoint_end; /* end LSN of the checkpoint */
    uint64_t tag_key;
    uint32_t slot_limit;    /* object slots are below it; at most 2^28 */
    bool units_listed;      /* the checkpoint carries every unit that was not decided at the begin
                             * LSN; else those with records below it were over by then */
    /* results */
    struct mqx_replay_put *puts;
    size_t put_count, put_capacity;       /* free entries included */
    struct mqx_image_position *images;
    size_t image_count, image_capacity;
    struct mqx_slot_state *objects;
    size_t object_capacity;
    struct mqx_number_set removed;        /* message numbers that are gone */
    struct mqx_number_map counts;         /* message number -> highest BackoutCount */
    struct mqx_replay_delay *delays;      /* due times that BACKOUT records gave */
    size_t delay_count, delay_capacity;
    struct mqx_number_map delayed;        /* message number -> index of its last delay */
    struct mqx_replay_move *moves;
    size_t move_count, move_capacity;
    struct mqx_number_map moved;          /* message number -> index of its last move */
    uint64_t next_number;
    uint64_t next_unit_id;
    uint64_t units_dropped;
    bool image_consumed;
    struct mqx_replay_prepared *prepared;
    size_t prepared_count, prepared_capacity; /* entries, free ones included */
    struct mqx_replay_held *held;
    size_t held_count;
    struct mqx_number_map held_by_number; /* values: indexes in held */
    /* inside */
    struct mqx_replay_op *ops;
    size_t op_count, op_capacity;
    uint32_t free_op;       /* index + 1 */
    uint32_t free_put;      /* index + 1 */
    struct {                /* counts at which mqx_replay_sweep() goes through each table */
        size_t puts, moves, counts, prepared;
    } sweep_at;
    struct mqx_replay_unit *units;        /* open addressing by id */
    size_t unit_count, unit_capacity;
    struct mqx_number_map prepared_by_id; /* unit id -> index + 1 in prepared, 0: resolved */
    uint32_t free_prepared; /* index + 1; the next one is in unit.first_op */
    void *pages;            /* list of memory blocks with definitions */
    size_t page_left;
};

/* Frees everything; the replay is all zero afterwards. */
void mqx_replay_free(struct mqx_replay *replay);
/* One record of the tail, in order; `arg` is the replay. Its length and checksum are verified. */
int mqx_replay_record(void *arg, uint64_t lsn, const struct psj_record *record) MQX_MUST_USE;
/* The journal goes on in a later epoch, or ends: units that are not decided are dropped. */
void mqx_replay_end_epoch(struct mqx_replay *replay);
/* After the last record: finds what the prepared units hold. Damage when one of them contradicts
 * the checkpoint. */
int mqx_replay_hold_prepared(struct mqx_replay *replay) MQX_MUST_USE;
/* The held message with that number, or NULL. */
struct mqx_replay_held *mqx_replay_find_held(const struct mqx_replay *replay, uint64_t number);
/* A definition from the checkpoint. */
int mqx_replay_define(struct mqx_replay *replay, const struct mqx_decoded *record) MQX_MUST_USE;
/* An OBJECT_DELETE record of a checkpoint: up to that generation all are gone. */
int mqx_replay_undefine(struct mqx_replay *replay, const struct mqx_decoded *record) MQX_MUST_USE;
/* A message of the image, to be loaded with the puts. */
int mqx_replay_add_image(struct mqx_replay *replay, const struct mqx_decoded *record,
                         const struct mqx_image_position *position) MQX_MUST_USE;
/* Raises a message's BackoutCount; a lower count changes nothing. */
int mqx_replay_count(struct mqx_replay *replay, uint64_t number, uint32_t count) MQX_MUST_USE;

/* The message waits until then, unless it is known to have been backed out more often. */
int mqx_replay_delay(struct mqx_replay *replay, uint64_t number, uint32_t count,
                     uint64_t due_us) MQX_MUST_USE;

/* Is the message (put in the tail and effective, or from the checkpoint) on a queue at the end? */
bool mqx_replay_is_present(const struct mqx_replay *replay, const struct psc_message *m);
/* Its BackoutCount: the higher one of the message and of what was read. */
uint32_t mqx_replay_count_of(const struct mqx_replay *replay, const struct psc_message *m);
/* The time before which no get finds it, 0: none. Of the due time of its PUT or line, and that of
 * its last backout, the later one in the journal. */
uint64_t mqx_replay_due_of(const struct mqx_replay *replay, const struct psc_message *m);
/* Sets where the message lies, by its last move if it has one. Damage when the records differ. */
int mqx_replay_locate(const struct mqx_replay *replay, struct psc_message *m) MQX_MUST_USE;
/* Was the message ever moved to that record? */
bool mqx_replay_was_moved_to(const struct mqx_replay *replay, const struct psc_message *m);
/* At least so many messages are present, if the checkpoint lists `listed` of them and no CLEAR or
 * deletion took others. */
uint64_t mqx_replay_remaining(const struct mqx_replay *replay, uint64_t listed);
/* Indexes of the effective puts by object, placement descending, number; *out is to be freed. */
int mqx_replay_sort(const struct mqx_replay *replay, uint32_t **out,
                    size_t *out_count) MQX_MUST_USE;

/* The key of tags, from the queue manager's id. */
uint64_t mqx_tag_key(const uint8_t qm_id[16]);

#endif
