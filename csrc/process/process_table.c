/*
 * process_table.c - see process_table.h.
 */
#include "process/process_table.h"

#include "base/amq_codes.h"
#include "base/error.h"
#include "os/host_info.h"
#include "process/error_log.h"
#include "process/life_lock.h"

#include <stdio.h>
#include <unistd.h>

int mqx_process_publish(struct mqx_store *store, uint32_t slot, uint64_t pid_namespace)
{
    MQX_ASSERT(slot != 0 && slot < MQX_PROCESS_MAX);
    MQX_ASSERT(store->region.process == 0);
    MQX_ASSERT(mqx_process_slot(&store->region, slot)->state == MQX_PROC_FREE);
    struct mqx_region *region = &store->region;
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_process *process = mqx_process_slot(region, slot);
    process->pid = (int32_t)getpid();
    process->start_time = mqx_process_start_time(process->pid);
    process->pid_namespace = pid_namespace;
    process->leaving = 0;
    process->attached_us = store->io->ops->now_us(store->io);
    process->calls_inside = 0;
    process->keeper = 0;
    (void)snprintf(process->program, sizeof process->program, "%s", mqx_program_name());
    int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        mqx_undo_store32(region->base, lock, &process->state, MQX_PROC_LIVE);
        mqx_undo_commit(lock);
        mqx_lock_drop(region, lock);
        region->process = slot;
    }
    return status;
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

bool mqx_process_alive(struct mqx_store *store, uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    const struct mqx_process *process = mqx_process_slot(&store->region, slot);
    struct mqx_life_lock *file = mqx_life_lock_find(store->io, store->lock_fd);
    const int32_t pid = process->pid;
    int32_t holder = 0;
    MQX_ASSERT(file != NULL);
    if (mqx_load_acquire(&process->state) == MQX_PROC_FREE || slot == 0) {
        return false;
    }
    if (mqx_life_lock_holder(file, slot, &holder) != MQX_OK) {
        return true; /* unknown counts as alive */
    }
    if (store->region.ending && holder == 0) {
        return false; /* `end -i` is in progress: a process without its life lock has left */
    }
    const bool here = process->pid_namespace == store->region.header->pid_namespace && pid > 0;
    const bool in_table = here && process->start_time != 0 &&
                          mqx_process_start_time(pid) == process->start_time;
    if (holder == 0 && in_table && mqx_life_lock_is_missing(file, slot, process->start_time)) {
        mqx_log(store, MQX_AMQ_LIVENESS_ODD, 'W',
                "process %d in slot %u lives, but its life lock is free: has it closed the file "
                "lock?", pid, slot);
    }
    return holder != 0 || in_table;
}
