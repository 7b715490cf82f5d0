/* Claims of mutex_words.h, and of lock.c about damaged mutexes: libc never follows a damaged word,
 * nobody waits for an owner that does not exist, and the queue manager stops. */
#include "fixtures/region_fixture.h"

#include "os/host_info.h"
#include "region/mutex_words.h"

#if MQX_MUTEX_WORDS_KNOWN

static struct mqx_lock *first, *second;

static void begin(void)
{
    region_begin();
    first = &region.header->catalog_lock;
    second = &region.stripes[1].lock;
}

static struct __pthread_mutex_s *words(struct mqx_lock *lock)
{
    return &lock->mutex.__data;
}

TEST(every_lock_of_a_region_has_the_kind_that_a_new_mutex_gets)
{
    begin();
    CHECK(region.mutex_kind != 0);
    CHECK_INT(mqx_mutex_kind(&first->mutex), region.mutex_kind);
    CHECK_INT(mqx_mutex_kind(&second->mutex), region.mutex_kind);
}

TEST(a_mutex_of_another_kind_is_not_given_to_libc)
{
    for (int bit = 0; bit < 31; bit++) {
        begin();
        words(second)->__kind ^= 1 << bit;
        CHECK_INT(mqx_lock_take(&region, second), MQRC_CONNECTION_BROKEN);
        CHECK_STR(mqx_region_damage_text(&region), "the mutex of a lock of rank (6)");
        CHECK_INT(mqx_lock_try(&region, second), MQRC_CONNECTION_BROKEN);
    }
}

/* Takes both locks, damages a word of one, drops them in the given order. */
static void damage_while_held(int which, int word, bool newest_first)
{
    begin();
    struct mqx_lock *damaged = which == 0 ? first : second;
    CHECK_INT(mqx_lock_take(&region, first), 0);
    CHECK_INT(mqx_lock_take(&region, second), 0);
    switch (word) {
    case 0: words(damaged)->__kind = 0x25; break;
    case 1: words(damaged)->__list.__next = (void *)8; break;
    case 2: words(damaged)->__list.__prev = (void *)UINTPTR_MAX; break;
    default: words(damaged)->__list.__prev = NULL; break;
    }
    mqx_lock_drop(&region, newest_first ? second : first);
    mqx_lock_drop(&region, newest_first ? first : second);
    /* libc itself writes the link of a neighbour that is dropped first */
    const bool healed = which == 0 ? newest_first && word >= 2 : !newest_first && word == 1;
    CHECK_INT(mqx_region_stopped(&region), healed ? MQX_RUNNING : MQX_STOP_BROKEN);
    if (!healed) {
        CHECK_STR(mqx_region_damage_text(&region), which == 0
                                                       ? "the mutex of a held lock of rank (5)"
                                                       : "the mutex of a held lock of rank (6)");
    }
}

TEST(damaged_links_and_kinds_of_held_mutexes_are_put_right_before_libc_follows_them)
{
    for (int word = 0; word < 4; word++) {
        for (int order = 0; order < 2; order++) {
            damage_while_held(0, word, order == 0);
            damage_while_held(1, word, order == 0);
        }
    }
    begin(); /* and the thread's list is whole: it takes and drops as before */
    for (int i = 0; i < 3; i++) {
        CHECK_INT(mqx_lock_take(&region, first), 0);
        CHECK_INT(mqx_lock_take(&region, second), 0);
        mqx_lock_drop(&region, first);
        mqx_lock_drop(&region, second);
    }
    CHECK(mqx_region_damage_text(&region) == NULL);
}

TEST(a_damaged_word_of_the_only_lock_is_put_right_too)
{
    for (int word = 0; word < 3; word++) {
        begin();
        CHECK_INT(mqx_lock_take(&region, second), 0);
        const struct __pthread_mutex_s sound = *words(second);
        switch (word) {
        case 0: words(second)->__kind = 0x25; break;
        case 1: words(second)->__list.__next = (void *)8; break;
        default: words(second)->__list.__prev = NULL; break;
        }
        mqx_lock_drop(&region, second);
        CHECK_STR(mqx_region_damage_text(&region), "the mutex of a held lock of rank (6)");
        CHECK_INT(words(second)->__kind, sound.__kind);
    }
}

TEST(locks_that_are_dropped_in_any_order_are_not_taken_for_damaged)
{
    enum { LOCKS = 4, ORDERS = 24 };
    begin();
    struct mqx_lock *locks[LOCKS] = {&region.header->maintenance_lock, first, second,
                                     &region.header->arena_lock};
    for (uint32_t order = 0; order < ORDERS; order++) {
        uint32_t left = order;
        uint32_t held = (1u << LOCKS) - 1;
        for (int i = 0; i < LOCKS; i++) {
            CHECK_INT(mqx_lock_take(&region, locks[i]), 0);
        }
        for (uint32_t many = LOCKS; many > 0; many--) { /* the next digit of `order` chooses one */
            uint32_t which = left % many;
            left /= many;
            uint32_t i = 0;
            while ((held >> i & 1u) == 0 || which-- > 0) {
                i += 1;
            }
            held &= ~(1u << i);
            mqx_lock_drop(&region, locks[i]);
        }
        CHECK_INT(held, 0);
        CHECK_INT(mqx_region_stopped(&region), MQX_RUNNING);
    }
    CHECK(mqx_region_damage_text(&region) == NULL);
}

static int32_t nobody(void)
{
    int32_t id = 4000000; /* above the highest thread id of Linux' default, 4,194,304: rare */
    while (mqx_task_exists(id)) {
        id -= 1;
    }
    return id;
}

TEST(nobody_waits_for_an_owner_that_does_not_exist)
{
    const int ids[] = {nobody(), mqx_thread_id(), (int)0x80000000 /* waiters of nobody */};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(ids); i++) {
        char text[MQX_DAMAGE_TEXT] = "the mutex of a lock of rank (6)";
        if (ids[i] > 0) {
            (void)snprintf(text, sizeof text, "the owner of the queues lock, thread (%d)", ids[i]);
        }
        begin();
        words(second)->__lock = ids[i];
        CHECK(mqx_mutex_has_no_owner(&second->mutex));
        CHECK_INT(mqx_lock_try(&region, second), MQRC_CONNECTION_BROKEN);
        begin();
        words(second)->__lock = ids[i];
        CHECK_INT(mqx_lock_take(&region, second), MQRC_CONNECTION_BROKEN);
        CHECK_STR(mqx_region_damage_text(&region), text);
        begin(); /* a name beside it: found out when the first wait ends */
        words(second)->__lock = ids[i];
        second->holder = 7;
        CHECK_INT(mqx_lock_take(&region, second), MQRC_CONNECTION_BROKEN);
    }
}

static void die_with_the_lock(void *arg)
{
    (void)arg;
    mqx_ignore(mqx_lock_take(&region, second));
}

TEST(an_owner_that_died_is_not_taken_for_damage)
{
    begin();
    killed_after(die_with_the_lock, NULL);
    CHECK(!mqx_mutex_has_no_owner(&second->mutex));
    CHECK_INT(mqx_lock_take(&region, second), 0);
    CHECK(!mqx_mutex_has_no_owner(&first->mutex)); /* free */
    mqx_lock_drop(&region, second);
    CHECK(mqx_region_damage_text(&region) == NULL);
}

static void *hold_and_drop(void *arg)
{
    CHECK_INT(mqx_lock_take(&region, second), 0);
    __atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE) == 1) {
        sched_yield();
    }
    mqx_lock_drop(&region, second);
    return NULL;
}

TEST(a_living_owner_is_waited_for)
{
    pthread_t thread;
    int state = 0;
    begin();
    CHECK_INT(pthread_create(&thread, NULL, hold_and_drop, &state), 0);
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 0) {
        sched_yield();
    }
    CHECK(!mqx_mutex_has_no_owner(&second->mutex));
    CHECK_INT(mqx_lock_try(&region, second), MQX_BUSY);
    second->holder = 0; /* as in the instant after it was taken */
    CHECK_INT(mqx_lock_try(&region, second), MQX_BUSY);
    second->holder = region.process + 1;
    __atomic_store_n(&state, 2, __ATOMIC_RELEASE);
    CHECK_INT(mqx_lock_take(&region, second), 0);
    mqx_lock_drop(&region, second);
    CHECK_INT(pthread_join(thread, NULL), 0);
}

#endif

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
