/*
 * fixed.c - surroundings that cost nothing and do not change from run to run. Linked with --wrap
 * (Makefile): /proc is read once, wall clock and random numbers come from a counter. Only what such
 * tests ask a hundred thousand times a second, and what would make two runs of one seed differ.
 */
#include "os/host_info.h"
#include "workload.h"

static uint64_t random_state = 1;

void fixed_random_reset(uint64_t seed)
{
    random_state = seed * 2 + 1;
}

int __real_mqx_host_info_read(struct mqx_host_info *out);
int __wrap_mqx_host_info_read(struct mqx_host_info *out);
int __wrap_mqx_host_info_read(struct mqx_host_info *out)
{
    static struct mqx_host_info known;
    static bool read;
    if (!read) {
        const int status = __real_mqx_host_info_read(&known);
        if (status != MQX_OK) {
            return status;
        }
        read = true;
    }
    *out = known;
    return MQX_OK;
}

int __wrap_mqx_random_bytes(void *to, size_t size);
int __wrap_mqx_random_bytes(void *to, size_t size)
{
    unsigned char *at = to;
    for (size_t i = 0; i < size; i++) {
        random_state = wl_mix(random_state + 1);
        at[i] = (unsigned char)(random_state >> 24);
    }
    return MQX_OK;
}

uint64_t __wrap_mqx_process_start_time(int32_t pid);
/* Never the same: a process that "died" in these tests has a pid that stays alive, and only its
 * locks tell. */
uint64_t __wrap_mqx_process_start_time(int32_t pid)
{
    static uint64_t ticks;
    return pid > 0 ? ++ticks : 0;
}

uint64_t __wrap_mqx_clock_coarse_us(void);
uint64_t __wrap_mqx_clock_coarse_us(void)
{
    return WL_NOW_US;
}
