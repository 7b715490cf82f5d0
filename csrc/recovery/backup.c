/*
 * backup.c - see backup.h.
 */
#include "recovery/backup.h"

#include "base/error.h"
#include "journal/group_commit.h"
#include "os/block_hook.h"
#include "recovery/checkpoint_round.h"

/* Maintenance lock held. */
static int begin_locked(struct mqx_store *store, struct mqx_pinned *out,
                        uint64_t *out_checkpoint_lsn)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    int status = mqx_checkpoint_round(store);
    if (status == MQX_OK) {
        status = mqx_flush_mark(store);
    }
    if (status == MQX_OK) {
        *out_checkpoint_lsn = mqx_load_relaxed(&journal->checkpoint_begin);
        status = mqx_pin_begin(store, out);
    }
    MQX_ASSERT(status != MQX_OK || out->end_lsn % MQX_PAGE_SIZE == 0);
    return status;
}

int mqx_backup_begin(struct mqx_store *store, struct mqx_pinned *out, uint64_t *out_checkpoint_lsn)
{
    struct mqx_lock *lock = &store->region.header->maintenance_lock;
    MQX_ASSERT(!mqx_lock_held(&store->region, lock));
    MQX_ASSERT(out != NULL && out_checkpoint_lsn != NULL);
    mqx_about_to_block();
    int status = mqx_lock_enter(&store->region, lock);
    if (status == MQX_OK) {
        status = begin_locked(store, out, out_checkpoint_lsn);
        mqx_lock_drop(&store->region, lock);
    }
    return status;
}
