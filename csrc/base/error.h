/*
 * error.h - status codes and the per-thread error text.
 *
 * A status is an int: 0 is success, any other value is an MQ reason code (2033, 2192, ...), with
 * the few internal codes below that never leave the core. Functions that can fail are must-use,
 * outputs come last, and each has one cleanup label. The code that finds an error calls
 * mqx_fail() once, naming the offending value and the rule; callers pass the code on unchanged.
 *
 * The text lives in thread-local storage: it costs nothing on success and needs no lock.
 */
#ifndef PENSTOCK_ERROR_H
#define PENSTOCK_ERROR_H

#include "base/base.h"
#include "base/mqi_constants.h" /* MQCC_* */

/* Every reason code the core can give, as MQRC_<NAME>; see reason_codes.def. */
#define MQX_REASON(code, name, cc, text) MQRC_##name = (code),
enum mqx_reason {
#include "base/reason_codes.def"
};
#undef MQX_REASON

/* Internal status codes. None of them may leave the core. */
enum {
    MQX_OK = 0,
    MQX_NEED_CELLS = 90001,   /* stripe's free list is empty: roll back, refill, try again */
    MQX_NEED_GROWTH = 90002,  /* the area is used up to its capacity: drop locks, grow, try again */
    MQX_NEED_SEGMENT = 90003, /* no spare segment: drop locks, make one, try again */
    MQX_NEED_RING = 90004,    /* the log ring is full: drop locks, flush, try again */
    MQX_BUSY = 90005,         /* not now: a trylock failed, or one step of several was made */
    MQX_TORN = 90006,         /* tail scan: nothing valid here (torn tail or end) */
    MQX_CANNOT_LEAD = 90007,  /* this process cannot write the journal; another may (rule 51) */
    MQX_LEAVING = 90008,      /* given up: this process leaves, another does it */
};

/* Remembers the text for `reason` and returns `reason`, so that the place of an error reads
 * `return mqx_fail(MQRC_Q_FULL, "queue holds %u messages, MAXDEPTH is %u", n, max);` */
int mqx_fail(int reason, const char *format, ...) MQX_COLD MQX_PRINTF(2, 3);

/* The text of this thread's newest mqx_fail(), or "" ; valid until the next one. */
const char *mqx_error_text(void);
void mqx_error_clear(void);

/* "MQRC_Q_FULL" for 2053; "MQRC_UNKNOWN" when the code is not in the table. */
const char *mqx_reason_name(int reason);
/* The text for that code: one clause, no full stop. */
const char *mqx_reason_text(int reason);
/* MQCC_OK, MQCC_WARNING or MQCC_FAILED for a reason code (failed when unknown). */
int mqx_comp_code(int reason);

#endif
