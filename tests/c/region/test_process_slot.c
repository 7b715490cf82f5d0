/* Claims of process_slot.h: which combination of life word and thread means what. */
#include "region/process_slot.h"

#include "fixtures/harness.h"
#include "os/host_info.h"
#include "os/life_thread.h"

enum { HERE = 4026531836, NO_THREAD = 0x3ffffff0 }; /* above every id that the kernel gives */

static struct mqx_process living(void)
{
    const int32_t self = (int32_t)getpid();
    return (struct mqx_process){.state = MQX_PROC_LIVE,
                                .pid = self,
                                .start_time = mqx_own_start_time(),
                                .pid_namespace = HERE,
                                .life_word = (uint32_t)self,
                                .life_thread = self};
}

TEST(word_and_thread_of_a_living_process_agree)
{
    const struct mqx_process process = living();
    CHECK(mqx_process_may_live(&process, HERE));
    CHECK(!mqx_process_is_gone(&process, HERE));
}

TEST(one_sign_of_death_is_enough_to_doubt_a_life_and_not_enough_to_end_its_work)
{
    struct mqx_process process = living();
    process.life_word = MQX_LIFE_MARKED;
    CHECK(!mqx_process_may_live(&process, HERE));
    CHECK(!mqx_process_is_gone(&process, HERE));
    process.life_word = 0;
    CHECK(!mqx_process_may_live(&process, HERE));
    CHECK(!mqx_process_is_gone(&process, HERE));
}

TEST(a_thread_that_is_gone_means_death_even_without_a_mark)
{
    struct mqx_process process = living();
    process.life_thread = NO_THREAD;
    CHECK(!mqx_process_may_live(&process, HERE));
    CHECK(mqx_process_is_gone(&process, HERE));
    process.life_word = MQX_LIFE_MARKED;
    CHECK(mqx_process_is_gone(&process, HERE));
}

TEST(a_marked_slot_whose_numbers_another_thread_has_now_is_gone)
{
    struct mqx_process process = living();
    process.life_word = MQX_LIFE_MARKED;
    process.start_time -= 1;
    CHECK(!mqx_process_may_live(&process, HERE));
    CHECK(mqx_process_is_gone(&process, HERE));
    process.life_word = (uint32_t)process.life_thread;
    CHECK(!mqx_process_may_live(&process, HERE));
}

TEST(of_a_process_in_another_pid_namespace_only_the_word_is_known)
{
    struct mqx_process process = living();
    process.life_thread = NO_THREAD;
    CHECK(mqx_process_may_live(&process, HERE + 1));
    CHECK(!mqx_process_is_gone(&process, HERE + 1));
    process.life_word = MQX_LIFE_MARKED;
    CHECK(!mqx_process_may_live(&process, HERE + 1));
    CHECK(!mqx_process_is_gone(&process, HERE + 1));
}

TEST(damaged_numbers_are_never_asked_for_and_never_mean_death)
{
    struct mqx_process process = living();
    CHECK(mqx_process_is_askable(&process, HERE));
    CHECK(!mqx_process_is_askable(&process, HERE + 1));
    process.pid = -5;
    CHECK(!mqx_process_is_askable(&process, HERE));
    CHECK(mqx_process_may_live(&process, HERE));
    CHECK(!mqx_process_is_gone(&process, HERE));
    process = living();
    process.life_thread = 0;
    CHECK(!mqx_process_is_gone(&process, HERE));
    process = living();
    process.start_time = 0;
    CHECK(!mqx_process_is_gone(&process, HERE));
}

TEST_MAIN()
