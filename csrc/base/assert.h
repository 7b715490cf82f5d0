/*
 * assert.h - assertions: what this code relies on about itself.
 *
 * MQX_ASSERT(cond) states a precondition, a postcondition or an invariant: arguments, states,
 * orders, counts before and after. One condition each, so that the report names it. It is
 * compiled in with -DMQX_ASSERTIONS: in the C tests, the sanitizer builds, the crash layers and
 * debug builds of the extension (PENSTOCK_DEBUG=1); a release has none of them. A failed one sets
 * the stop flag of every store that registered one (mqx_assert_guard), so that no process commits
 * after it, prints file, line and condition to stderr and aborts.
 *
 * What was read from shared memory or from a file is validated instead, in every build, and never
 * aborts: region/damage.h, or MQRC_OBJECT_DAMAGED with a text (crash-safety rule 28).
 */
#ifndef PENSTOCK_ASSERT_H
#define PENSTOCK_ASSERT_H

#include "base/base.h"

#ifdef MQX_ASSERTIONS
#define MQX_ASSERT(cond) (MQX_LIKELY(cond) ? (void)0 : mqx_assert_failed(#cond, __FILE__, __LINE__))
#else
#define MQX_ASSERT(cond) ((void)sizeof(!(cond))) /* compiled, not evaluated */
#endif

_Noreturn void mqx_assert_failed(const char *cond, const char *file, int line) MQX_COLD;

/* Registers / removes a word to be set to 1 before the abort (the store's stop flag). At most
 * 16. */
void mqx_assert_guard(uint32_t *stop_flag);
void mqx_assert_unguard(uint32_t *stop_flag);

#endif
