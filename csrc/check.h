/*
 * check.h - assertions that stay on in releases.
 *
 * mqx_check(cond): always on, for shared and stored state. One condition each, so that the report
 * says which. A failed one means this process no longer knows what it is doing: it sets the stop
 * flag of every store that registered one (mqx_check_guard), so that no process commits after it,
 * prints file, line and condition to stderr and aborts.
 *
 * mqx_slow_check(cond): the same, compiled in only with -DMQX_SLOW_CHECKS (tests, sanitizers).
 *
 * Damage found in *untrusted* data (rule 28: region contents of another process, files) is not an
 * assertion: return MQRC_Q_MGR_NOT_AVAILABLE or MQRC_OBJECT_DAMAGED with a text instead.
 */
#ifndef PENSTOCK_CHECK_H
#define PENSTOCK_CHECK_H

#include "base.h"

#define mqx_check(cond) \
    (MQX_LIKELY(cond) ? (void)0 : mqx_check_failed(#cond, __FILE__, __LINE__))

#ifdef MQX_SLOW_CHECKS
#define mqx_slow_check(cond) mqx_check(cond)
#else
#define mqx_slow_check(cond) ((void)0)
#endif

_Noreturn void mqx_check_failed(const char *cond, const char *file, int line) MQX_COLD;

/* Registers / removes a word to be set to 1 before the abort (the store's stop flag). At most
 * 16. */
void mqx_check_guard(uint32_t *stop_flag);
void mqx_check_unguard(uint32_t *stop_flag);

#endif
