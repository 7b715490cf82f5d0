/*
 * wait_spin.c - see wait_spin.h.
 */
#include "api/wait_spin.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "os/host_info.h"

enum { LOOKS_A_CLOCK = 16 }; /* looks at the word between two at the clock */

static void pause_processor(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static uint32_t patience_of(const struct mqx_spin *spin)
{
    const uint32_t patience = mqx_load_relaxed(&spin->patience);
    MQX_ASSERT(patience <= MQX_SPIN_PATIENCE_MOST);
    return patience != 0 ? patience : (uint32_t)MQX_SPIN_PATIENCE_LEAST;
}

uint32_t mqx_spin_length(struct mqx_spin *spin, enum mqx_partner partner)
{
    MQX_ASSERT(spin != NULL);
    const uint32_t misses = mqx_load_relaxed(&spin->misses);
    if (mqx_load_relaxed(&spin->credit) != 0) {
        return misses == 0 ? MQX_SPIN_US : MQX_SPIN_TRIAL_US;
    }
    if (partner == MQX_PARTNER_AWAKE && misses < MQX_SPIN_MISSES_MAX) {
        return MQX_SPIN_US;
    }
    if (mqx_load_relaxed(&spin->near_waits) < patience_of(spin)) {
        return 0;
    }
    mqx_store_relaxed(&spin->near_waits, 0);
    const bool apart = partner == MQX_PARTNER_ELSEWHERE || mqx_usable_processors() > 1;
    return apart ? MQX_SPIN_TRIAL_US : 0;
}

bool mqx_spin_on(const uint32_t *word, uint32_t seen, uint32_t us)
{
    MQX_ASSERT((uintptr_t)word % sizeof *word == 0);
    MQX_ASSERT(us <= MQX_SPIN_TRIAL_US);
    const uint64_t until_us = mqx_clock_monotonic_us() + us;
    do {
        for (int i = 0; i < LOOKS_A_CLOCK; i++) {
            if (mqx_load_acquire(word) != seen) {
                return true;
            }
            pause_processor();
        }
    } while (mqx_clock_monotonic_us() < until_us);
    return false;
}

/* After a spin in vain, or a long sleep. */
static uint32_t halve_credit(struct mqx_spin *spin)
{
    const uint32_t credit = mqx_load_relaxed(&spin->credit) / 2;
    MQX_ASSERT(credit <= MQX_SPIN_CREDIT_MAX / 2);
    mqx_store_relaxed(&spin->credit, credit);
    return credit;
}

static void count_served(struct mqx_spin *spin, uint64_t us)
{
    const uint32_t credit = mqx_load_relaxed(&spin->credit);
    MQX_ASSERT(credit <= MQX_SPIN_CREDIT_MAX);
    mqx_store_relaxed(&spin->misses, 0);
    if (us > MQX_SPIN_US) {
        mqx_store_relaxed(&spin->credit, credit != 0 ? credit : 1);
        return;
    }
    mqx_store_relaxed(&spin->credit, credit < MQX_SPIN_CREDIT_MAX ? credit + 1 : credit);
    mqx_store_relaxed(&spin->patience, 0);
}

static void count_in_vain(struct mqx_spin *spin)
{
    MQX_ASSERT(spin != NULL);
    if (halve_credit(spin) == 0) {
        const uint32_t patience = 2 * patience_of(spin);
        mqx_store_relaxed(&spin->patience, patience < MQX_SPIN_PATIENCE_MOST
                                               ? patience
                                               : (uint32_t)MQX_SPIN_PATIENCE_MOST);
    }
    mqx_store_relaxed(&spin->misses, mqx_load_relaxed(&spin->misses) + 1);
}

void mqx_spin_count(struct mqx_spin *spin, uint32_t spun_us, bool served, uint64_t us)
{
    MQX_ASSERT(spun_us != 0 || !served);
    if (served) {
        count_served(spin, us);
    } else if (spun_us != 0) {
        count_in_vain(spin);
    } else if (us <= MQX_SPIN_NEAR_US) {
        mqx_store_relaxed(&spin->near_waits, mqx_load_relaxed(&spin->near_waits) + 1);
    } else {
        (void)halve_credit(spin);
        mqx_store_relaxed(&spin->near_waits, 0);
    }
}
