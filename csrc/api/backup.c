/*
 * backup.c - what the copying of a backup asks of the core: the begin, how far it is, the end.
 */
#include "recovery/backup.h"

#include "api/entry.h"
#include "base/error.h"
#include "os/fork_guard.h"

int mqe_backup_begin(mqe_manager *manager, struct mqe_backup *out)
{
    struct mqx_pinned pinned = {0};
    uint64_t checkpoint_lsn = 0;
    MQX_ASSERT(out != NULL);
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_backup_begin(&manager->store, &pinned, &checkpoint_lsn);
    }
    *out = (struct mqe_backup){
        .first_segment = pinned.first,
        .last_segment = pinned.last,
        .last_generation = pinned.last_generation,
        .end_lsn = pinned.end_lsn,
        .checkpoint_lsn = checkpoint_lsn,
        .timeline = status == MQX_OK ? manager->store.region.journal->timeline : 0,
    };
    return status;
}

int mqe_backup_advance(mqe_manager *manager, uint64_t first_segment, uint64_t *out_slowest_us)
{
    MQX_ASSERT(out_slowest_us != NULL);
    *out_slowest_us = 0;
    const int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_journal *journal = manager->store.region.journal;
    *out_slowest_us = mqx_load_relaxed(&journal->slowest_flush_us);
    mqx_store_relaxed(&journal->slowest_flush_us, 0);
    return mqx_pin_advance(&manager->store, first_segment > 0 ? first_segment : 1);
}

int mqe_backup_end(mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    if (mqx_forked(&manager->store)) {
        return MQX_OK; /* the pin is the parent's */
    }
    const int status = mqx_enter(manager, false);
    return status == MQX_OK ? mqx_pin_end(&manager->store, manager->store.region.process) : status;
}
