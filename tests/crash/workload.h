/*
 * workload.h - a deterministic load on the engine that always knows what the disk must hold.
 *
 * One thread, one attachment, files in memory (tests/c/memory_io.h). From a seed come: definitions,
 * alterations and deletions of queues (permanent dynamic ones are defined by opening and deleted by
 * closing), lives of temporary queues, puts and gets outside and inside units of work (several open
 * at a time, several queues each), of one message and of several in a call, backouts, browses,
 * clears, long bodies, delayed messages and their cancellation, checkpoints, maintenance, a
 * structure with queues in it and its failures, a process object, prepared units (several at a
 * time, with and without waiting, listed and read, over restarts, ended one by one or several in
 * one call), orderly ends, deaths and restarts.
 *
 * Terms
 *   model    what the queues hold now, message by message in delivery order, with open units.
 *   step     a call with an effect that must survive: a commit, a persistent put or get outside
 *            syncpoint, a definition, a clear, an orderly end (its non-persistent image), a start
 *            (the image is consumed).
 *   picture  what a recovery must find: a model that holds only that. history.step[k] is the
 *            picture after step k; step 0 is where the history begins.
 *   ack      the value 2k is noted in the recording (memory_io_ack) when step k is about to be
 *            made, 2k + 1 when it has returned. Steps are made one at a time, so with k the last
 *            acknowledged step a recovery must find picture k, or picture k + 1 if 2(k + 1) was
 *            noted: every acknowledged effect exactly once, a unit whole or absent, nothing that
 *            was never intended, the order right.
 *   unsure   a unit that is prepared without waiting is a step whose return acknowledges nothing:
 *            a power cut, and the death of everybody, may take it back until a later step, or a
 *            call that tells of the unit, acknowledges both. So a recovery must find one of the
 *            pictures from the last acknowledged to the last noted step, all of each.
 *
 * Everything about a message but the five numbers in struct wl_message follows from its id, so a
 * checker can verify descriptor and body of any message it meets.
 *
 * A message of a prepared unit keeps its position in its queue's list, in a separate state; `order`
 * is the place of its call within the unit. A non-persistent one that was got stays readable in the
 * unit after a restart, but can only vanish then: it is a `ghost`.
 *
 * BackoutCounts may be lost or come back with the last batch (rule 46): a message has `sure`, what
 * the disk holds at least, and `backouts`, what it holds at most.
 */
#ifndef PENSTOCK_TESTS_WORKLOAD_H
#define PENSTOCK_TESTS_WORKLOAD_H

#include "api/context_pool.h"
#include "api/manager.h"
#include "api/queue_handle.h"
#include "api/unit_handle.h"
#include "penstock/engine.h"
#include "fixtures/memory_io.h"

enum {
    WL_QUEUES = 5,
    WL_OTHERS = 2,          /* objects that are no queues: a structure, a process */
    WL_STRUCTURE = 0,
    WL_DEPTH = 20,          /* messages of a queue at most */
    WL_UNITS = 3,
    WL_PREPARED = 3,        /* prepared units at a time */
    WL_BODY_MAX = 200000,
    WL_TROUBLE = 1024,
};
#define WL_PATH "/home/QM1"
#define WL_REGION_DIR "/dev/shm"

enum wl_state { WL_AVAILABLE, WL_PUT, WL_GOT, WL_PREPARED_PUT, WL_PREPARED_GOT };

struct wl_message {
    uint64_t id;
    int32_t priority;       /* as stored in the descriptor */
    uint32_t length;
    uint32_t backouts;
    uint32_t sure;
    uint8_t placement, persistent, has_ext;
    uint8_t kept;           /* in the journal: persistent, or of a queue in the structure */
    uint8_t state, unit;    /* enum wl_state; number of the unit, prepared or not, that has it */
    uint8_t ghost;
    uint8_t delayed;        /* due in another century: only a browse for such shows it */
    uint32_t order; /* of the call in its unit; in a picture and in what is found: 0, 1, ... */
};

struct wl_attributes {      /* values, in the order of the selectors in workload_model.c */
    int32_t max_depth, max_length, def_priority, def_persistence, fifo, npm_class, mark;
    int32_t definition;     /* DEFTYPE: 1 predefined, 2 permanent dynamic */
    int32_t structure;      /* 1: in the structure */
};

struct wl_other {           /* an object that holds no messages */
    bool defined;
    int32_t mark;
    uint32_t slot, generation;
};

struct wl_prepared {        /* a prepared unit; its Xid carries its number and its serial */
    bool there;
    uint32_t serial;
};

struct wl_queue {
    bool defined;
    struct wl_attributes attributes;
    uint32_t slot, generation;
    uint32_t count;
    struct wl_message message[WL_DEPTH]; /* in delivery order */
};

struct wl_model {
    struct wl_queue queue[WL_QUEUES];
    struct wl_other other[WL_OTHERS];
    struct wl_prepared prepared[WL_PREPARED];
};

struct wl_history {
    struct wl_model *step;
    uint32_t count, capacity;
};

enum wl_profile {
    WL_SMALL,               /* short bodies, segments of 32 to 64 KiB */
    WL_LARGE,               /* units larger than the log ring, in larger segments (rule 44) */
};

struct workload {
    struct memory_io *files;
    struct mqx_io *io;
    struct mqe_settings settings;
    enum wl_profile profile;
    bool tolerant;          /* calls may fail with a clean reason (layer T4) */
    int also_clean;         /* a reason that is clean under the present fault, too */
    bool loses_rights;      /* the fault looks like given-up rights: the last process may leave
                             * without an end, as one that is killed, and says what that discards */
    bool may_lose_last;     /* reads are garbled: an unmarked last batch may look torn */
    uint32_t lost_last;     /* how often it did */
    bool traced;            /* every call is printed on stderr */
    uint64_t random;
    uint64_t next_id;
    mqe_manager *manager;   /* NULL while not attached */
    mqe_unit *unit[WL_UNITS];
    uint32_t calls;         /* puts and gets in units so far: where `order` comes from */
    uint32_t serial;        /* units prepared so far */
    struct wl_model model;
    struct wl_history history;
    bool created;           /* the create step was acknowledged */
    uint32_t done;          /* last acknowledged step */
    uint32_t unsure;        /* steps made after it that a crash may take back */
    uint32_t before;        /* the last step before the one that was acknowledged last */
    uint32_t prepared_by[WL_PREPARED]; /* the step that prepared the unit */
    bool pending;           /* a step behind all these was begun, its outcome is unknown */
    bool blind;             /* faults keep the checks from looking: nothing more is called */
    bool stopped;           /* a call said 2009: all later ones must */
    bool ended;             /* the last attachment left in order */
    bool has_alternative;   /* an end failed: this may be on the disk instead of those steps */
    struct wl_model alternative;
    int failed;             /* reason of the last call that failed */
    uint32_t failures;
    bool spared;            /* a fault struck the counts of a decided back-out, which it may lose */
    bool in_trouble;
    char trouble[WL_TROUBLE]; /* what the engine did wrong, for people */
};

/* ---- making and ending; 0 or -1 (see trouble) unless stated otherwise ---- */

void workload_settings(struct mqe_settings *out, uint64_t seed, enum wl_profile profile);
/* Directories and settings; nothing is created in them. */
void workload_init(struct workload *w, struct memory_io *files, uint64_t seed,
                   enum wl_profile profile);
/* The directories that the workload and every recovery need. */
void workload_prepare(struct memory_io *files);
/* Gives up the attachment without touching a file. Before other states of the same files are
 * attached to: the engine tells queue managers of one process apart by device and inode, which
 * files in memory have in common. */
void workload_leave(struct workload *w);
void workload_fini(struct workload *w);

/* Steps "create" and "start". */
int workload_create(struct workload *w);
int workload_start(struct workload *w);
/* `count` random calls, also restarts when `restarts`. Ends early when stopped or in trouble. */
int workload_run(struct workload *w, uint32_t count, bool restarts);
/* Begins a history at a recovered state: `found` is what another recovery of the same files would
 * find. */
void workload_adopt(struct workload *w, mqe_manager *manager, const struct wl_model *found);
/* Leaves in order (a step). */
int workload_end(struct workload *w, bool image);
/* As if the process had died: nothing is written. The region stays behind, as after a SIGKILL. */
void workload_die(struct workload *w);
/* Fills `queue` to `messages` with persistent messages of about `length` bytes, each a step of its
 * own. */
int workload_fill(struct workload *w, uint32_t queue, uint32_t messages, uint32_t length);
int workload_put(struct workload *w, uint32_t queue, bool persistent, uint32_t length);
int workload_get_in_unit(struct workload *w, uint32_t queue, uint32_t unit, uint32_t correl);
int workload_put_in_unit(struct workload *w, uint32_t queue, uint32_t unit);
/* Puts and gets in a unit and prepares it; `ends`: prepared units are ended, too. */
int workload_two_phases(struct workload *w, bool ends);
/* Prepared unit number p: of unit `unit`; bit p of `which`: it ends, all of them in one call. */
int workload_make_prepared(struct workload *w, uint32_t unit, uint32_t p, bool waits);
int workload_end_prepared(struct workload *w, uint32_t which, bool commit);
int workload_define(struct workload *w, uint32_t queue);

/* ---- an attachment whose process "dies": process memory is freed, no file is touched ---- */
void workload_abandon(mqe_manager *manager);

/* ---- model and pictures (workload_model.c) ---- */

void wl_name(uint32_t queue, struct ps_object_name *out);
void wl_other_name(uint32_t other, struct ps_object_name *out);
uint32_t wl_encode_other(uint32_t other, int32_t mark, unsigned char out[256]);
/* Number of the queue with that name, WL_QUEUES when there is none. */
uint32_t wl_queue_of(const struct ps_object_name *name);
uint32_t wl_encode(const struct wl_attributes *attributes, unsigned char out[256]);
void wl_body(uint64_t id, uint32_t length, unsigned char *out);
/* Descriptor as stored, BackoutCount apart. */
void wl_descriptor(const struct wl_message *message, struct ps_descriptor *out);
void wl_extension(const struct wl_message *message, struct ps_descriptor_ext *out);
/* Where a new message belongs; the caller knows that there is room. */
struct wl_message *wl_insert(struct wl_queue *queue, const struct wl_message *message);
void wl_remove(struct wl_queue *queue, uint32_t index);
/* Index of the message that a get takes; WL_DEPTH when there is none. correl: 0 or 1..4. */
uint32_t wl_first(const struct wl_queue *queue, uint32_t correl);
uint32_t wl_correl(uint64_t id);
/* Where a message of an old arrival belongs: ids rise with the arrival. */
struct wl_message *wl_insert_old(struct wl_queue *queue, const struct wl_message *message);
/* The model is what a restart has found: non-persistent messages that units had got are ghosts. */
void wl_mark_ghosts(struct wl_model *model);
/* What a restart does to the model, the image apart. */
void wl_lose_volatile(struct wl_model *model);
void wl_xid(uint32_t number, uint32_t serial, struct ps_xid *out);
/* The prepared units of `which` (bit p: number p) end; how many ghosts vanish by a backout. */
uint32_t wl_end_prepared(struct wl_model *model, uint32_t which, bool commit);
/* The picture of a model; `image`: with the non-persistent messages of NPMCLASS(HIGH) queues. */
void wl_picture(const struct wl_model *model, bool image, struct wl_model *out);
/* 0 when `found` is what `expected` promises; else -1 and the first difference in words. */
int wl_compare(const struct wl_model *found, const struct wl_model *expected, char *text,
               size_t size);
uint64_t wl_mix(uint64_t value);

/* ---- what an attached manager holds (workload_check.c) ---- */

/* Reads everything by browsing, verifying every descriptor and body. 0, or -1 with the reason in
 * words. */
int wl_look(mqe_manager *manager, struct wl_model *out, char *text, size_t size);
/* The reason with which a call refused what the last wl_look() wanted; 0 when it saw something
 * wrong instead. */
int wl_refusal(void);
/* The same by destructive gets; what it finds must equal `expected`. */
int wl_drain(mqe_manager *manager, const struct wl_model *expected, char *text, size_t size);
/* Ends all prepared units of `model`, which changes with it. 0, or -1 with words. */
int wl_end_all_prepared(mqe_manager *manager, struct wl_model *model, bool commit, char *text,
                        size_t size);
/* Reads the prepared units into `out`, whose queues have been read (workload_prepared.c). */
int wl_look_at_prepared(mqe_manager *manager, struct wl_model *out, char *text, size_t size);
/* Verifies one got message: which it is, and that it is whole. */
int wl_verify(const struct mqe_get *got, struct wl_message *out, char *text, size_t size);

/* Index of the acceptable picture that `found` equals, given the acknowledgements so far; -1 with
 * words. */
int wl_judge(const struct wl_history *history, const uint64_t *acks, uint32_t ack_count,
             const struct wl_model *found, char *text, size_t size);
/* The last acknowledged step, and the last one that was begun, which is no earlier. */
void wl_acked(const uint64_t *acks, uint32_t ack_count, uint32_t *done, uint32_t *begun);
/* The newest step from `first` to `last` whose picture `found` equals; UINT32_MAX when there is
 * none, with what is different from `last` in words. */
uint32_t wl_step_like(const struct wl_history *history, uint32_t first, uint32_t last,
                      const struct wl_model *found, char *text, size_t size);

/* ---- what is fixed in these tests: surroundings, clock and random numbers (fixed.c) ---- */
void fixed_random_reset(uint64_t seed);
#define WL_NOW_US UINT64_C(1700000000000000)
#define WL_DUE_US UINT64_C(4102444800000000) /* of delayed messages: 2100-01-01 */

#endif
