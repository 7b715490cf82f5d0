/*
 * unit_handle.h - units of work as engine.h shows them: a context of the region, held by the
 * caller.
 *
 * A unit handle owns one context. mqe_prepare() replaces it by a fresh one, since the context of a
 * prepared unit belongs to no process any more.
 *
 * Threads: a unit is used by one thread at a time. Locks: none may be held by the caller.
 */
#ifndef PENSTOCK_UNIT_HANDLE_H
#define PENSTOCK_UNIT_HANDLE_H

#include "api/entry.h"

struct mqe_unit {
    mqe_manager *manager;
    uint32_t context;
};

/* Brackets what a call does in a unit: between them no other process backs the unit out. Entering
 * fails with 2003 when one has; then, as after every failure, nothing has been entered. */
int mqx_unit_handle_enter(const mqe_unit *unit) MQX_MUST_USE;
void mqx_unit_handle_leave(const mqe_unit *unit);

/* 2003 when the queue manager has backed the unit out, or will: it can only be ended. The context
 * may be that of an autocommit call, which never is. */
int mqx_unit_check_usable(const struct mqx_region *region, uint32_t context) MQX_MUST_USE;

/* Ends the unit of an autocommit call, in a context of the pool: commits it when `status` is 0;
 * backs it out when the call or the commit has failed. The status of the call. */
int mqx_unit_end_autocommit(struct mqx_store *store, uint32_t context, int status) MQX_MUST_USE;

#endif
