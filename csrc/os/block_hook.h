/*
 * block_hook.h - a hook that is called before this thread sleeps (crash-safety rule 34).
 *
 * The Python binding keeps the GIL through short calls. Before the core sleeps (a contended lock
 * while no other is held, a flush, a wait) or copies much, it calls mqx_about_to_block() once; the
 * binding's hook then releases the GIL and remembers that it did. Nothing is called back
 * afterwards: the binding takes the GIL again when the call has returned. C programs install no
 * hook.
 *
 * A wait may begin by looking at a word for some microseconds (api/wait_spin.h). Whether the hook
 * is called before that, too, is for a rule of the process to say: the binding keeps the GIL when
 * there is no other thread that could want it.
 */
#ifndef PENSTOCK_BLOCK_HOOK_H
#define PENSTOCK_BLOCK_HOOK_H

#include "base/base.h"

typedef void (*mqx_block_hook)(void *arg);

/* Installs the hook for this thread's present call; NULL removes it. It is called at most once. */
void mqx_block_hook_arm(mqx_block_hook hook, void *arg);
/* Calls and removes the hook, if there is one. Never with a lock of the region held. */
void mqx_about_to_block(void);

/* May a thread whose hook is installed be busy for some microseconds without calling it? */
typedef int (*mqx_spin_rule)(void);

/* Sets the rule of the process; NULL, as at first: it may not. */
void mqx_spin_rule_set(mqx_spin_rule rule);
/* As mqx_about_to_block(), unless the rule lets the thread keep what the hook would release. */
void mqx_about_to_spin(void);

#endif
