/*
 * workload_steps.h - inside a workload: its random numbers, what a result means, history and
 * steps, messages to be put. Included by workload.c and workload_*.c alone.
 */
#ifndef PENSTOCK_TESTS_WORKLOAD_STEPS_H
#define PENSTOCK_TESTS_WORKLOAD_STEPS_H

#include "workload.h"

enum { GO_ON = 0, STOP = -1 };
enum { AS_Q_DEF = -1 };

uint64_t wl_next_random(struct workload *w);
uint32_t wl_below(struct workload *w, uint32_t bound);
/* Notes what the engine did wrong, the first time; STOP. */
int wl_trouble(struct workload *w, const char *format, ...) MQX_PRINTF(2, 3);
void wl_tell(const struct workload *w, const char *format, ...) MQX_PRINTF(2, 3);
/* Nothing more is to be called. */
bool wl_over(const struct workload *w);
bool wl_is_clean(int reason);
bool wl_worked(struct workload *w, const char *what, int reason);

struct wl_model *wl_append_picture(struct workload *w);
void wl_begin_step(struct workload *w, bool image);
void wl_end_step(struct workload *w);
/* The last step that was made, acknowledged or unsure. */
uint32_t wl_newest(const struct workload *w);
/* What was made until then is durable: it was reported. */
void wl_is_durable(struct workload *w, uint32_t step);
int wl_settle_step(struct workload *w, const char *what, int reason,
                   const struct wl_model *before);
/* The same of one that acknowledges nothing when it returns. */
int wl_settle_unsure(struct workload *w, const char *what, int reason,
                     const struct wl_model *before);
int wl_settle_call(struct workload *w, const char *what, int reason,
                   const struct wl_model *before);
void wl_allow_backout(struct workload *w, uint32_t q, uint64_t id, uint32_t count, uint32_t end);
struct wl_order { /* of a message to be put */
    int32_t priority;     /* -1: the queue's */
    uint8_t persistence;  /* 2: the queue's */
    bool has_ext;
    uint32_t length;
    bool delayed;
};
struct wl_order wl_random_order(struct workload *w);
struct wl_message wl_message_for(struct workload *w, const struct wl_queue *queue,
                                 const struct wl_order *order);
/* `expected` is what the model says the call takes; its BackoutCount must be exact. */
void wl_compare_got(struct workload *w, const struct wl_message *got,
                    const struct wl_message *expected);
/* Several messages put or got in one call, in unit `u` (workload_batch.c). */
int wl_put_batch(struct workload *w, uint32_t q, uint32_t u);
int wl_get_batch(struct workload *w, uint32_t q, uint32_t u);
/* One message got outside syncpoint; a checkpoint, a compaction or a round of maintenance
 * (workload.c). */
int wl_get_single(struct workload *w, uint32_t q, uint32_t correl);
/* A delayed message cancelled, or a get when there is none (workload_delayed.c). */
int wl_cancel(struct workload *w, uint32_t q);
/* Ends of unit `u`; commit_together: with the next one, by one call (workload_units.c). */
int wl_commit(struct workload *w, uint32_t u);
int wl_commit_together(struct workload *w, uint32_t u);
int wl_back_out(struct workload *w, uint32_t u);
int wl_maintain(struct workload *w);
/* What the back-out of all open units does to the model: by a death when `count_gets`. */
void wl_forget_units(struct workload *w, bool count_gets);
/* A call about an object that is no queue (workload_others.c). */
int wl_change_other(struct workload *w);
/* Unit `u` is begun, unless it has been. */
int wl_need_unit(struct workload *w, uint32_t u);
/* Unit `u` is prepared; some prepared units are ended; all are listed, or one is read
 * (workload_prepared.c). */
int wl_prepare(struct workload *w, uint32_t u);
int wl_resolve(struct workload *w);
int wl_ask_for_prepared(struct workload *w);
/* A look was refused; -1 (workload_check.c). */
int wl_refused(char *text, size_t size, const char *what, int reason);

#endif
