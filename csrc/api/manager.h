/*
 * manager.h - creating and attaching queue managers on any file table; engine.h has the functions
 * for real files.
 *
 * Locks: a process-local mutex covers the registry of attachments and is held during attach and
 * detach (manager.c).
 */
#ifndef PENSTOCK_MANAGER_H
#define PENSTOCK_MANAGER_H

#include "api/entry.h"

/* The file table for the files' owner: one user, or a group; NULL without memory. */
struct mqx_io *mqx_manager_table(const struct mqe_settings *settings);

/* As mqe_create(). */
int mqx_manager_create(struct mqx_io *io, const char *path,
                       const struct mqe_settings *settings) MQX_MUST_USE;
/* As mqe_attach(). */
int mqx_manager_attach(struct mqx_io *io, const char *path, const struct mqe_settings *settings,
                       mqe_manager **out, struct mqe_attach_info *info) MQX_MUST_USE;

#endif
