/*
 * process_slot.c - see process_slot.h.
 */
#include "region/process_slot.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "os/host_info.h"
#include "os/life_thread.h"

bool mqx_process_is_askable(const struct mqx_process *process, uint64_t pid_namespace)
{
    MQX_ASSERT(process != NULL);
    MQX_ASSERT(pid_namespace != 0);
    return process->pid_namespace == pid_namespace && process->pid > 0 &&
           process->life_thread > 0 && process->start_time != 0;
}

bool mqx_process_may_live(const struct mqx_process *process, uint64_t pid_namespace)
{
    MQX_ASSERT(process != NULL);
    MQX_ASSERT((uintptr_t)process % sizeof(uint64_t) == 0);
    const uint32_t word = mqx_load_acquire(&process->life_word);
    if (word == 0 || (word & MQX_LIFE_MARKED) != 0) {
        return false;
    }
    return !mqx_process_is_askable(process, pid_namespace) ||
           !mqx_thread_has_ended(process->pid, process->life_thread, process->start_time);
}

bool mqx_process_is_gone(const struct mqx_process *process, uint64_t pid_namespace)
{
    MQX_ASSERT(process != NULL);
    MQX_ASSERT(pid_namespace != 0);
    if (!mqx_process_is_askable(process, pid_namespace)) {
        return false;
    }
    if ((mqx_load_acquire(&process->life_word) & MQX_LIFE_MARKED) == 0) {
        return !mqx_thread_exists(process->pid, process->life_thread);
    }
    return mqx_thread_has_ended(process->pid, process->life_thread, process->start_time);
}
