/*
 * journal_rig.h - a store on files in memory, driven at the level of the journal: records go in as
 * they are, restart recovery reads them back, queues show what it made of them.
 *
 * Messages have bodies that follow from their number, so that what comes back can be verified
 * without remembering it. Numbers are chosen by the test.
 */
#ifndef PENSTOCK_TESTS_JOURNAL_RIG_H
#define PENSTOCK_TESTS_JOURNAL_RIG_H

#include "memory_io.h"

#include "checkpoint.h"
#include "recovery.h"

enum { RIG_QUEUE = 1, RIG_GENERATION = 1, RIG_LISTED_MAX = 16384 };
#define RIG_HOME "/qm"
#define RIG_SHM "/shm"

struct rig {
    struct memory_io *files;
    struct mqx_io *io;
    struct mqx_store store;
    struct mqx_region_plan plan;
    struct mqx_recovery_report report;
    bool open;
    bool distrust;                /* the next rig_open() distrusts the cache */
    uint32_t regions;             /* made so far: names of region files */
    const struct mqx_in_flight *in_flight; /* handed to the next rig_open() */
    size_t in_flight_count;
};

/* A small plan: segments of `segment` bytes, a ring of 256 KiB. */
struct mqx_region_plan rig_plan(uint64_t segment);
/* Fresh files in memory (or `files`, which then is not freed) with a new queue manager in them. */
void rig_create(struct rig *rig, const struct mqx_region_plan *plan);
/* Restart into a new region. */
int rig_open(struct rig *rig) MQX_MUST_USE;
/* The region is forgotten, files stay as the cache has them: death of the last process. */
void rig_crash(struct rig *rig);
/* The orderly end. Since records that the rig appends change the files only, a restart brings them
 * into the index first. */
int rig_end(struct rig *rig) MQX_MUST_USE;
void rig_free(struct rig *rig);

/* A context slot for a unit. */
uint32_t rig_unit(struct rig *rig);
/* The unit is over: its context as before. */
void rig_unit_over(struct rig *rig, uint32_t unit);

/* Appends; no flush. Unit 0: the record stands alone. `append` may be NULL. */
int rig_define(struct rig *rig, uint32_t slot, uint32_t generation) MQX_MUST_USE;
/* The same with attributes of format.h. */
int rig_define_with(struct rig *rig, uint32_t slot, uint32_t generation, const void *attrs,
                    uint32_t attrs_length) MQX_MUST_USE;
int rig_put(struct rig *rig, uint32_t unit, uint64_t number, int priority, uint32_t length,
            struct mqx_append *append) MQX_MUST_USE;
/* In CHUNK records of at most `piece` bytes. */
int rig_put_chunked(struct rig *rig, uint32_t unit, uint64_t number, int priority, uint32_t length,
                    uint32_t piece, struct mqx_append *append) MQX_MUST_USE;
int rig_record(struct rig *rig, uint32_t unit, uint16_t type, uint64_t number,
               struct mqx_append *append) MQX_MUST_USE;
int rig_commit(struct rig *rig, uint32_t unit, struct mqx_append *append) MQX_MUST_USE;
/* Everything appended so far is made durable. */
int rig_flush(struct rig *rig) MQX_MUST_USE;

/* Byte i of the body of that message. */
unsigned char rig_byte(uint64_t number, uint32_t i);
/* The messages of a queue in delivery order; how many. */
uint32_t rig_list(struct rig *rig, uint32_t slot, struct psc_message *out);
/* Fetches descriptor and body from the journal and compares them with what rig_put() made. */
bool rig_verify(struct rig *rig, const struct psc_message *message);
/* Path of a journal file or checkpoint. */
const char *rig_segment_path(uint64_t number);
const char *rig_checkpoint_path(struct rig *rig);
/* Messages 1 to 36, of which the first 24 are got again; then a crash. */
int rig_fill_and_crash(struct rig *rig) MQX_MUST_USE;

/* What disk states on a rig need. */
void rig_prepare_state(void *arg, struct memory_io *files);
void rig_trace_free(struct memory_trace **trace);

/* A rig, and a trace, that go with their scope. */
#define RIG_OF(name, segment) \
    __attribute__((cleanup(rig_free))) struct rig name; \
    const struct mqx_region_plan plan_of_##name = rig_plan(segment); \
    rig_create(&name, &plan_of_##name); \
    CHECK_INT(rig_open(&name), 0); \
    CHECK_INT(rig_define(&name, RIG_QUEUE, RIG_GENERATION), 0)
#define TAKE_TRACE(name, rig) \
    __attribute__((cleanup(rig_trace_free))) struct memory_trace *name = \
        memory_io_take_trace((rig).files)

#endif
