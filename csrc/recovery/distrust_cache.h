/*
 * distrust_cache.h - rewriting the last segment after a failed flush (rule 14).
 *
 * Purpose. After a failed flush the page cache may show bytes that the medium does not have, and
 * believe them clean: a later flush of the same pages would write nothing. A restart that read them
 * would build on what a power cut takes away. So the last segment, the only one that can have
 * unflushed bytes, is copied into a fresh file, whose pages are dirty, flushed, and named in its
 * place; the restart then reads what is certainly on the medium.
 *
 * Invariants
 *   1. Until the rename the old file is as it was; after it the new one is whole and flushed.
 *   2. A copy that was interrupted is a *.tmp file, which the next attempt removes.
 *   3. A file whose header page reads wrong is not replaced by a copy of that: the error may lie on
 *      the way from the medium, and pass.
 *
 * No locks: the restart has the files for itself. Errors: those of the file table; the journal is
 * unchanged then. MQRC_OBJECT_DAMAGED: see 3.
 */
#ifndef PENSTOCK_DISTRUST_CACHE_H
#define PENSTOCK_DISTRUST_CACHE_H

#include "region/store.h"

/* To be called before mqx_recover() when the orphan region says that the queue manager was stopped
 * by a failure (MQX_STOP_BROKEN) in this boot of the machine. */
int mqx_recover_distrust_cache(struct mqx_store *store) MQX_MUST_USE;

#endif
