/*
 * process_table.c - see process_table.h.
 */
#include "process/process_table.h"

#include "base/error.h"
#include "os/host_info.h"
#include "os/life_thread.h"

#include <stdio.h>
#include <unistd.h>

static void fill_slot(struct mqx_store *store, struct mqx_process *process, uint64_t pid_namespace)
{
    MQX_ASSERT(process->state == MQX_PROC_FREE);
    process->pid = (int32_t)getpid();
    process->life_thread = mqx_life_thread_id(store->life);
    process->start_time = mqx_life_thread_start_time(store->life);
    process->pid_namespace = pid_namespace;
    process->leaving = 0;
    process->attached_us = store->io->ops->now_us(store->io);
    process->calls_inside = 0;
    process->keeper = 0;
    (void)snprintf(process->program, sizeof process->program, "%s", mqx_program_name());
}

int mqx_process_publish(struct mqx_store *store, uint32_t slot, uint64_t pid_namespace)
{
    MQX_ASSERT(slot != 0 && slot < MQX_PROCESS_MAX);
    MQX_ASSERT(store->region.process == 0);
    MQX_ASSERT(store->life == NULL);
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_process *process = mqx_process_slot(region, slot);
    mqx_store_release(&process->life_word, 0u); /* the mark of the process before */
    int status = mqx_life_thread_start(&process->life_word, &store->life);
    if (status != MQX_OK) {
        return status;
    }
    fill_slot(store, process, pid_namespace);
    status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        mqx_process_end_life(store, true);
        return status;
    }
    if (mqx_undo_note(region->base, lock, &process->state, 4, process->state)) {
        mqx_store_release(&process->state, MQX_PROC_LIVE); /* behind what fill_slot() has written */
    }
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    region->process = slot;
    return MQX_OK;
}

int mqx_process_free(struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    struct mqx_lock *lock = &region->header->slots_lock;
    int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        mqx_undo_store32(region->base, lock, &mqx_process_slot(region, slot)->state, MQX_PROC_FREE);
        mqx_undo_commit(lock);
        mqx_lock_drop(region, lock);
    }
    return status;
}

void mqx_process_end_life(struct mqx_store *store, bool left)
{
    MQX_ASSERT(store != NULL);
    struct mqx_life_thread *life = mqx_exchange(&store->life, (struct mqx_life_thread *)NULL);
    if (life != NULL) {
        mqx_life_thread_end(life, left);
    }
}

bool mqx_process_alive(const struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    const struct mqx_process *process = mqx_process_slot(&store->region, slot);
    if (slot == 0 || mqx_load_acquire(&process->state) == MQX_PROC_FREE) {
        return false;
    }
    if (store->region.ending && mqx_load_acquire(&process->life_word) == 0) {
        return false;
    }
    return !mqx_process_is_gone(process, store->region.header->pid_namespace);
}
