/*
 * crash_fixture.h - what crash experiments act on: a queue manager on tmpfs with a few queues,
 * filled the same way before each experiment, and the pictures taken of it afterwards.
 *
 * A picture lists, queue by queue in delivery order, what a browse sees: the number in the body,
 * persistence, length, BackoutCount, and whether body and descriptor are whole; behind them the
 * messages of each prepared unit, in the order of the calls. Two pictures are equal when these are
 * (BackoutCount apart: a death may or may not have raised it by one).
 *
 * The Xid of a prepared unit carries a number, and how it is to be resolved: every process that
 * finds it resolves it like that.
 */
#ifndef PENSTOCK_TESTS_CRASH_FIXTURE_H
#define PENSTOCK_TESTS_CRASH_FIXTURE_H

#include "api/context_pool.h"
#include "api/manager.h"
#include "api/queue_handle.h"
#include "api/unit_handle.h"
#include "penstock/engine.h"

enum { FIXTURE_BATCH = 80, FIXTURE_QUEUES = 3, PICTURE_MAX = 400 };

struct crash_fixture {
    char path[128];
    struct mqe_settings settings;
    mqe_manager *manager;                /* the supervisor's attachment */
    uint32_t slot[FIXTURE_QUEUES], generation[FIXTURE_QUEUES];
};

struct seen {
    uint64_t id;
    uint64_t length;
    uint8_t queue, persistent, whole, placement; /* queue: in a unit whether it was put */
    uint32_t backout_count;
    uint64_t unit;                       /* number of the prepared unit that it is in, 0 none */
};
struct picture {
    uint32_t count, units;               /* units: prepared ones, those without messages too */
    struct seen message[PICTURE_MAX];
};
enum { FIXTURE_PREPARED_MAX = 4096 };

/* Makes directory, queue manager, attachment, queues "A", "B", "C". Exits with a text when anything
 * fails. */
void fixture_make(struct crash_fixture *fixture);
/* The same with linear logging; fixture_set_linear() says whether retired segments are archived. */
void fixture_make_linear(struct crash_fixture *fixture);
void fixture_set_linear(struct crash_fixture *fixture, bool linear);
void fixture_remove(struct crash_fixture *fixture);
/* Empties the queues and fills them: a few messages of each kind, and `many` with CorrelIds on B.
 * Then makes `prepared` units, 1, 2, ..., with puts and gets of both kinds and these flags. */
void fixture_reset(struct crash_fixture *fixture, uint32_t many, uint32_t prepared, uint32_t flags);
/* Fills a segment of the journal with records that are no longer needed, but by the checkpoint
 * before the newest; empties the archive. */
void fixture_fill_segment(struct crash_fixture *fixture);
/* Files in the archive. */
uint32_t fixture_archived(const struct crash_fixture *fixture);
/* What is on the queues, seen through `manager`. */
void fixture_look(mqe_manager *manager, const struct crash_fixture *fixture, struct picture *out);
bool pictures_equal(const struct picture *a, const struct picture *b);
void picture_print(const char *title, const struct picture *picture);

/* Copies the files and recovers them into a new region in a child; the persistent messages
 * found there must equal those of one of the pictures. */
bool fixture_recovers_to(const struct crash_fixture *fixture, const struct picture *const *legal,
                         uint32_t count);

/* The directory's files as they are now, replacing an older copy: what the death of all processes
 * would leave. */
void fixture_copy(const struct crash_fixture *fixture, const char *copy);
void fixture_drop_copy(const char *copy);

/* The body that belongs to an id. */
void fixture_fill_body(unsigned char *body, uint64_t id, uint64_t length);
/* One message onto queue q; the body is made from the id. Returns the reason. */
int fixture_put_flagged(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                        int q, uint64_t id, uint32_t flags); /* not persistent, short */
int fixture_put(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture, int q,
                uint64_t id, bool persistent, uint64_t length);
/* The same with the id as MsgId, due after that time. */
int fixture_put_later(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint64_t id, bool persistent, uint64_t length, uint64_t delay_us);
/* Takes one from queue q, waiting `wait_us`; *id says which (0 when the body was not whole). */
int fixture_get(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture, int q,
                uint32_t flags, uint64_t wait_us, uint64_t correl, uint64_t *id);

/* Messages by one call, and as many as there are, up to `capacity`, from queue q by one call; an id
 * is 0 when its body was not whole. */
struct fixture_message {
    uint64_t id, length;
    bool persistent;
};
int fixture_put_many(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                     int q, const struct fixture_message *messages, uint32_t count);
int fixture_get_many(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                     int q, uint64_t wait_us, uint64_t *ids, uint32_t capacity,
                     uint32_t *out_count);
/* Looks at queue q from the first message on, by calls of `step` messages, in the order in which
 * gets would take them; dies when a message is not whole or stands behind one that comes later. */
void fixture_walk(mqe_manager *manager, const struct crash_fixture *fixture, int q, uint32_t step);

/* Messages id, id + 1, ... by one call, every fourth of 9,000 bytes; with `persistent` every odd
 * one is. */
int fixture_put_batch(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint64_t id, uint32_t count, bool persistent);
/* Takes exactly so many from queue q by one call. */
int fixture_get_batch(mqe_manager *manager, mqe_unit *unit, const struct crash_fixture *fixture,
                      int q, uint32_t count);

enum fixture_fate { FIXTURE_COMMITS = 1, FIXTURE_BACKS_OUT = 2 };
void fixture_xid(uint64_t number, enum fixture_fate fate, struct ps_xid *out);
/* The prepared units there are, those of one fate; how many, FIXTURE_PREPARED_MAX at most. */
uint32_t fixture_prepared(mqe_manager *manager, enum fixture_fate fate, struct ps_xid *out);
/* Ends the first `count` prepared units of each fate, each kind in one call. Others may do the
 * same at the same time. */
void fixture_resolve(mqe_manager *manager, uint32_t count);

/* Accounts for every entry and cell of the region: free exactly once or in use exactly once. Only
 * while no other call runs. False, with a text on stderr, when something leaks or is named twice.
 * */
bool fixture_audit(const struct crash_fixture *fixture);

_Noreturn void fixture_die(const char *what, int reason);

#endif
