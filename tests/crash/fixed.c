/*
 * fixed.c - surroundings that cost nothing and do not change from run to run. Linked with --wrap
 * (Makefile): /proc is read once, wall clock and random numbers come from a counter. Only what such
 * tests ask a hundred thousand times a second, and what would make two runs of one seed differ.
 */
#include "os/host_info.h"
#include "os/life_thread.h"
#include "process/life_table.h"
#include "workload.h"

#include <stdlib.h>

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

/* Life threads without threads: an id from a counter, and a list of those that live. */
enum { LIVES_MAX = 64 };
struct mqx_life_thread {
    uint32_t *word;
    int32_t id;
};
static struct mqx_life_thread *lives[LIVES_MAX];
static int32_t last_id = 1000;

int __wrap_mqx_life_thread_start(uint32_t *word, struct mqx_life_thread **out);
int __wrap_mqx_life_thread_start(uint32_t *word, struct mqx_life_thread **out)
{
    int free_at = 0;
    while (free_at < LIVES_MAX && lives[free_at] != NULL) {
        free_at++;
    }
    struct mqx_life_thread *life = free_at < LIVES_MAX ? malloc(sizeof *life) : NULL;
    if (life == NULL) {
        return MQRC_STORAGE_NOT_AVAILABLE;
    }
    *life = (struct mqx_life_thread){.word = word, .id = ++last_id};
    lives[free_at] = life;
    *word = (uint32_t)life->id;
    *out = life;
    return MQX_OK;
}

int32_t __wrap_mqx_life_thread_id(const struct mqx_life_thread *life);
int32_t __wrap_mqx_life_thread_id(const struct mqx_life_thread *life)
{
    return life->id;
}

void __wrap_mqx_life_thread_end(struct mqx_life_thread *life, bool left);
void __wrap_mqx_life_thread_end(struct mqx_life_thread *life, bool left)
{
    for (int i = 0; i < LIVES_MAX; i++) {
        lives[i] = lives[i] == life ? NULL : lives[i];
    }
    if (left) {
        *life->word = 0;
    } else if (*life->word == (uint32_t)life->id) {
        *life->word = MQX_LIFE_MARKED;
    }
    free(life);
}

bool __wrap_mqx_thread_exists(int32_t pid, int32_t thread);
bool __wrap_mqx_thread_exists(int32_t pid, int32_t thread)
{
    bool found = false;
    for (int i = 0; i < LIVES_MAX; i++) {
        found = found || (lives[i] != NULL && lives[i]->id == thread);
    }
    return pid > 0 && found;
}

bool __wrap_mqx_thread_has_ended(int32_t pid, int32_t thread, uint64_t start_time);
bool __wrap_mqx_thread_has_ended(int32_t pid, int32_t thread, uint64_t start_time)
{
    return start_time == 0 || !__wrap_mqx_thread_exists(pid, thread);
}

uint64_t __wrap_mqx_life_thread_start_time(const struct mqx_life_thread *life);
uint64_t __wrap_mqx_life_thread_start_time(const struct mqx_life_thread *life)
{
    return life->id > 0 ? 1 : 0;
}

int __real_mqx_life_table_write(struct mqx_io *io, int fd, uint32_t slot,
                                const struct mqx_life_entry *entry);
int __wrap_mqx_life_table_write(struct mqx_io *io, int fd, uint32_t slot,
                                const struct mqx_life_entry *entry);
/* The pid goes into a file, and differs from run to run. */
int __wrap_mqx_life_table_write(struct mqx_io *io, int fd, uint32_t slot,
                                const struct mqx_life_entry *entry)
{
    struct mqx_life_entry fixed = *entry;
    fixed.pid = entry->pid != 0 ? 1 : 0;
    return __real_mqx_life_table_write(io, fd, slot, &fixed);
}

uint64_t __wrap_mqx_clock_coarse_us(void);
uint64_t __wrap_mqx_clock_coarse_us(void)
{
    return WL_NOW_US;
}
