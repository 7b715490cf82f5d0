/*
 * test_attach.c - claims of attach.h: which process is first and last, what is refused, what an
 * orphan region says, what a forked child may do. region_file, lock_record, life_lock and
 * process_table have their own tests.
 */
#include "fixtures/store_fixture.h"

#include "os/fork_guard.h"
#include "process/maintenance.h"
#include "process/reaper.h"
#include "recovery/orphan_region.h"

#include <pthread.h>

static struct memory_io *files;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    mqx_attach_timeout_us = 30000000;
}

static bool region_exists(const struct fixture_process *process)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", FIXTURE_REGIONS, process->store->region_name);
    uint64_t size = 0;
    return memory_io_bytes(files, path, &size) != NULL;
}

/* ---- first, next, last ---- */

TEST(the_first_process_makes_a_region_and_is_told_so)
{
    struct fixture_process a;
    start();
    fixture_attach(files, &a);
    CHECK(a.report.first && a.report.recovery.clean && !a.report.same_boot_orphan);
    CHECK_INT(a.store->region.header->ready, 1);
    CHECK(a.store->region.process > 0);
    CHECK_MEM(a.store->region.header->qm_id, fixture_qm_id, 16);
    CHECK_INT(strncmp(a.store->region_name, "penstock-", 9), 0);
    CHECK_INT(strlen(a.store->region_name), 9 + 16 + 1 + 16);
    CHECK(region_exists(&a));
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_second_process_joins_the_same_region_in_a_slot_of_its_own)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    CHECK(a.report.first && !b.report.first);
    CHECK_STR(a.store->region_name, b.store->region_name);
    CHECK(a.store->region.process != b.store->region.process);
    CHECK(mqx_process_alive(a.store, b.store->region.process));
    CHECK(mqx_process_alive(a.store, a.store->region.process));
    CHECK(!mqx_process_alive(a.store, 17));
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(only_the_last_one_to_leave_ends_the_queue_manager)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK(region_exists(&b));
    CHECK(!fixture_logged(files, "AMQ8004I"));
    char name[80];
    strcpy(name, b.store->region_name);
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK(fixture_logged(files, "AMQ8004I"));
    strcpy(b.store->region_name, name);
    CHECK(!region_exists(&b));
    CHECK_INT(memory_io_open_count(files), 0);
    CHECK_INT(memory_io_map_count(files), 0);
}

TEST(every_descriptor_and_mapping_is_given_back_a_hundred_times)
{
    struct fixture_process a;
    start();
    struct mqx_io *io = memory_io_process(files, 3000);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(fixture_attach_io(io, FIXTURE_PATH, FIXTURE_REGIONS, &a), 0);
        CHECK_INT(fixture_detach(&a, NULL), 0);
        CHECK_INT(memory_io_open_count(files), 0);
        CHECK_INT(memory_io_map_count(files), 0);
    }
}

TEST(a_start_after_an_orderly_end_finds_it_clean_and_gets_a_new_incarnation)
{
    struct fixture_process a, b;
    char first[80];
    start();
    fixture_attach(files, &a);
    strcpy(first, a.store->region_name);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_attach(files, &b);
    CHECK(b.report.first && b.report.recovery.clean && !b.report.same_boot_orphan);
    CHECK(strcmp(first, b.store->region_name) != 0);
    CHECK_INT(strncmp(first, b.store->region_name, 26), 0); /* same directory, same prefix */
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

/* ---- the orphan: rule 46 ---- */

TEST(a_message_got_by_units_that_die_comes_back_with_counts_1_2_3)
{
    struct fixture_process a;
    struct fixture_queue q;
    char text[64];
    uint32_t count = 9;
    mqe_unit *unit = NULL;
    start();
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&a, NULL, q, true, "one", -1), 0);
    CHECK_INT(fixture_put(&a, NULL, q, true, "two", -1), 0);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_INT(mqe_unit_new(a.manager, &unit), 0);
        CHECK_INT(fixture_get(&a, unit, q, text, &count), 0);
        CHECK_STR(text, "one");
        CHECK_INT(count, i);
        fixture_kill(files, &a);
        free(unit);
        fixture_attach(files, &a);
        CHECK(a.report.first && a.report.same_boot_orphan);
        CHECK_INT(fixture_find(&a, "Q", &q), 0);
    }
    CHECK_INT(fixture_get(&a, NULL, q, text, &count), 0);
    CHECK_INT(count, 4);
    CHECK_INT(fixture_get(&a, NULL, q, text, &count), 0);
    CHECK_STR(text, "two");
    CHECK_INT(count, 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_count_that_recovery_raised_survives_further_deaths)
{
    struct fixture_process a;
    struct fixture_queue q;
    char text[64];
    uint32_t count = 9;
    mqe_unit *unit = NULL;
    start();
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&a, NULL, q, true, "one", -1), 0);
    CHECK_INT(mqe_unit_new(a.manager, &unit), 0);
    CHECK_INT(fixture_get(&a, unit, q, text, &count), 0);
    for (int i = 0; i < 3; i++) {
        fixture_kill(files, &a);
        fixture_attach(files, &a);
    }
    free(unit);
    CHECK_INT(fixture_find(&a, "Q", &q), 0);
    CHECK_INT(fixture_get(&a, NULL, q, text, &count), 0);
    CHECK_INT(count, 1);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_count_backed_out_but_not_flushed_is_read_from_the_orphan)
{
    struct fixture_process a;
    struct fixture_queue q;
    char text[64];
    uint32_t count = 9;
    mqe_unit *unit = NULL;
    start();
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&a, NULL, q, true, "one", -1), 0);
    CHECK_INT(mqe_unit_new(a.manager, &unit), 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_INT(fixture_get(&a, unit, q, text, &count), 0);
        CHECK_INT(mqe_backout(unit), 0);
    }
    fixture_kill(files, &a);
    free(unit);
    fixture_attach(files, &a);
    CHECK_INT(fixture_find(&a, "Q", &q), 0);
    CHECK_INT(fixture_get(&a, NULL, q, text, &count), 0);
    CHECK_INT(count, 2);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(non_persistent_messages_lost_by_a_death_are_counted_and_logged)
{
    struct fixture_process a;
    struct fixture_queue q;
    mqe_unit *unit = NULL;
    start();
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(fixture_put(&a, NULL, q, i < 2, "m", -1), 0);
    }
    CHECK_INT(mqe_unit_new(a.manager, &unit), 0);
    CHECK_INT(fixture_put(&a, unit, q, false, "uncommitted", -1), 0);
    fixture_kill(files, &a);
    free(unit);
    fixture_attach(files, &a);
    CHECK_INT(a.report.np_discarded, 3);
    CHECK_INT(a.store->region.header->np_discarded, 3);
    CHECK_INT(a.report.recovery.messages, 2);
    CHECK(fixture_logged(files, "AMQ7901W 3 non-persistent"));
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(an_orderly_end_discards_non_persistent_messages_but_those_of_class_high)
{
    struct fixture_process a;
    struct fixture_queue normal, high;
    struct fixture_attrs attrs = {.length = 0};
    uint64_t lost = 0;
    start();
    fixture_attr(&attrs, 78, 10);
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "NORMAL", NULL, &normal), 0);
    CHECK_INT(fixture_define(&a, "HIGH", &attrs, &high), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(fixture_put(&a, NULL, normal, false, "m", -1), 0);
        CHECK_INT(fixture_put(&a, NULL, high, false, "m", -1), 0);
    }
    CHECK_INT(fixture_put(&a, NULL, normal, true, "kept", -1), 0);
    CHECK_INT(fixture_detach(&a, &lost), 0);
    CHECK_INT(lost, 3);
    CHECK(fixture_logged(files, "AMQ7901W 3 non-persistent"));
    fixture_attach(files, &a);
    CHECK_INT(a.report.recovery.messages, 4);
    CHECK_INT(a.report.np_discarded, 0);
    CHECK_INT(mqx_detach(a.store, MQX_CHECKPOINT_CLEAN_NO_IMAGE, &lost), 0);
    CHECK_INT(lost, 3);
}

TEST(a_half_made_change_of_a_dead_owner_is_not_believed)
{
    struct fixture_process a;
    struct fixture_queue q;
    struct mqx_orphan_region orphan;
    start();
    fixture_attach(files, &a);
    CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&a, NULL, q, true, "one", -1), 0);
    struct mqx_region *region = &a.store->region;
    struct mqx_stripe *stripe = mqx_stripe_of(region, q.slot);
    struct mqx_context *context = mqx_context(region, a.context);
    uint32_t slot = 1;
    while (mqx_message(region, slot)->state != MQX_MSG_AVAILABLE) {
        slot++;
    }
    struct mqx_message *message = mqx_message(region, slot);
    context->state = MQX_CTX_ACTIVE;
    CHECK_INT(mqx_lock_take(region, &stripe->lock), 0);
    mqx_undo_store8(region->base, &stripe->lock, &message->state, MQX_MSG_GOT);
    mqx_undo_store32(region->base, &stripe->lock, &message->unit, a.context);
    mqx_undo_store32(region->base, &stripe->lock, &context->head, slot);
    mqx_orphan_region_read(a.store->io, a.store->region_dir, a.store->region_name,
                           region->header->incarnation, fixture_qm_id, &orphan);
    CHECK(orphan.read);
    CHECK_INT(orphan.in_flight_count, 0);
    mqx_orphan_region_free(&orphan);
    mqx_undo_commit(&stripe->lock);
    mqx_orphan_region_read(a.store->io, a.store->region_dir, a.store->region_name,
                           region->header->incarnation, fixture_qm_id, &orphan);
    CHECK_INT(orphan.in_flight_count, 1);
    CHECK_INT(orphan.in_flight[0].number, message->number);
    CHECK_INT(orphan.in_flight[0].count, 1);
    mqx_orphan_region_free(&orphan);
    mqx_lock_drop(region, &stripe->lock);
    fixture_kill(files, &a);
}

/* A region that random bits were flipped in is read without harm, or left alone. */
TEST(a_damaged_orphan_never_keeps_a_queue_manager_from_starting)
{
    struct test_random random = {.state = test_seed()};
    for (int round = 0; round < 60; round++) {
        struct fixture_process a;
        struct fixture_queue q;
        char text[64], path[160];
        uint32_t count;
        mqe_unit *unit = NULL;
        start();
        fixture_attach(files, &a);
        CHECK_INT(fixture_define(&a, "Q", NULL, &q), 0);
        for (int i = 0; i < 20; i++) {
            CHECK_INT(fixture_put(&a, NULL, q, true, "m", -1), 0);
        }
        CHECK_INT(mqe_unit_new(a.manager, &unit), 0);
        for (int i = 0; i < 10; i++) {
            CHECK_INT(fixture_get(&a, unit, q, text, &count), 0);
        }
        const struct mqx_header *header = a.store->region.header;
        const struct mqx_area *messages = &header->area[MQX_AREA_MESSAGES];
        const struct mqx_area *contexts = &header->area[MQX_AREA_CONTEXTS];
        const uint64_t where[3] = {0, messages->offset, contexts->offset};
        const uint64_t size[3] = {sizeof *header, messages->used * 128,
                                  contexts->used * sizeof(struct mqx_context)};
        snprintf(path, sizeof path, "%s/%s", FIXTURE_REGIONS, a.store->region_name);
        fixture_kill(files, &a);
        free(unit);
        for (int i = 0; i < 200; i++) {
            uint64_t part = test_below(&random, 3);
            memory_io_flip_bit(files, path, 8 * where[part] + test_below(&random, 8 * size[part]));
        }
        if (round % 4 == 0) {
            uint64_t whole = 0;
            (void)memory_io_bytes(files, path, &whole);
            memory_io_cut(files, path, whole - test_below(&random, 1 << 20));
        }
        fixture_attach(files, &a);
        CHECK_INT(a.report.recovery.messages, 20);
        CHECK_INT(fixture_detach(&a, NULL), 0);
    }
}

/* ---- refusals ---- */

static void change_record(struct fixture_process *a, void (*change)(struct mqx_lock_record *))
{
    struct mqx_lock_record record;
    bool found = false;
    CHECK_INT(mqx_lock_record_read(a->store->io, a->store->lock_fd, &record, &found), 0);
    CHECK(found);
    change(&record);
    CHECK_INT(mqx_lock_record_write(a->store->io, a->store->lock_fd, &record), 0);
}

static void other_boot(struct mqx_lock_record *record)
{
    record->where.boot_id[3] ^= 1;
}
static void other_namespace(struct mqx_lock_record *record)
{
    record->where.pid_namespace += 1;
}
static void other_libc(struct mqx_lock_record *record)
{
    strcpy(record->where.libc, "musl");
}
static void other_layout(struct mqx_lock_record *record)
{
    record->layout += 1;
}
static void other_directory(struct mqx_lock_record *record)
{
    record->inode += 1;
}

TEST(while_anybody_lives_other_surroundings_are_refused_and_later_they_are_not)
{
    static const struct {
        void (*change)(struct mqx_lock_record *);
        const char *text;
    } cases[] = {
        {other_boot, "another machine or boot"}, {other_namespace, "another PID namespace"},
        {other_libc, "another libc"},            {other_layout, "another build"},
        {other_directory, "a copy"},
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        struct fixture_process a, b;
        start();
        fixture_attach(files, &a);
        change_record(&a, cases[i].change);
        CHECK_INT(fixture_try_attach(files, &b), MQRC_ENVIRONMENT_ERROR);
        CHECK(strstr(mqx_error_text(), cases[i].text) != NULL);
        mqx_process_slot(&a.store->region, a.store->region.process)->start_time = 1; /* gone */
        fixture_kill(files, &a);
        fixture_attach(files, &b);
        CHECK(b.report.first && !b.report.same_boot_orphan);
        CHECK_INT(fixture_detach(&b, NULL), 0);
    }
}

static void check_refusals_after(uint32_t how, const char *words)
{
    struct fixture_process a, b, c;
    char pid[16];
    start();
    fixture_attach(files, &a);
    fixture_attach(files, &b);
    mqx_region_stop(&a.store->region, how);
    CHECK_INT(fixture_try_attach(files, &c), MQRC_Q_MGR_NOT_AVAILABLE);
    snprintf(pid, sizeof pid, "%d, %d ", (int)getpid(), (int)getpid());
    CHECK(strstr(mqx_error_text(), pid) != NULL);
    CHECK(strstr(mqx_error_text(), words) != NULL);
    mqx_attach_release_life(a.store);
    CHECK_INT(fixture_try_attach(files, &c), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), pid) == NULL);
    mqx_attach_release_life(b.store);
    fixture_attach(files, &c);
    CHECK(c.report.first && c.report.same_boot_orphan);
    CHECK_INT(fixture_detach(&a, NULL), 0); /* the old ones leave later and do no harm */
    CHECK_INT(fixture_detach(&b, NULL), 0);
    CHECK(region_exists(&c));
    CHECK(mqx_process_alive(c.store, c.store->region.process));
    CHECK_INT(fixture_detach(&c, NULL), 0);
}

TEST(a_region_that_stopped_or_was_ended_is_refused_with_the_pids_until_they_have_left)
{
    check_refusals_after(MQX_STOP_BROKEN, "QM1 has stopped; it restarts when process ");
    check_refusals_after(MQX_STOP_ENDED, "QM1 has been ended; it restarts when process ");
}

TEST(a_process_whose_region_stopped_can_attach_again_beside_its_old_handles)
{
    struct fixture_process a, b;
    start();
    struct mqx_io *io = memory_io_process(files, 4000);
    CHECK_INT(fixture_attach_io(io, FIXTURE_PATH, FIXTURE_REGIONS, &a), 0);
    mqx_region_stop(&a.store->region, MQX_STOP_BROKEN);
    CHECK_INT(fixture_attach_io(io, FIXTURE_PATH, FIXTURE_REGIONS, &b), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_attach_release_life(a.store);
    CHECK_INT(fixture_attach_io(io, FIXTURE_PATH, FIXTURE_REGIONS, &b), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0); /* must not close the lock file under b */
    struct fixture_process other;
    fixture_attach(files, &other);
    CHECK(!other.report.first);
    CHECK(mqx_process_alive(other.store, b.store->region.process));
    bool held = false;
    CHECK_INT(other.store->io->ops->test_lock(other.store->io, other.store->lock_fd,
                                              1 + b.store->region.process, 1, &held), 0);
    CHECK(held);
    CHECK_INT(fixture_detach(&other, NULL), 0);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

TEST(whoever_waits_for_the_attach_lock_in_vain_hears_who_has_it)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    CHECK_INT(a.store->io->ops->lock(a.store->io, a.store->lock_fd, 0, 1, MQX_IO_LOCK_EXCLUSIVE),
              0);
    char pid[32];
    snprintf(pid, sizeof pid, "process %d ", (int)getpid());
    mqx_attach_timeout_us = 20000;
    CHECK_INT(fixture_try_attach(files, &b), MQRC_Q_MGR_NOT_AVAILABLE);
    CHECK(strstr(mqx_error_text(), pid) != NULL);
    CHECK_INT(a.store->io->ops->lock(a.store->io, a.store->lock_fd, 0, 1, MQX_IO_UNLOCK), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_file_system_that_is_not_allowed_is_refused_and_copy_on_write_is_warned_of)
{
    struct fixture_process a;
    start();
    memory_io_set_medium(files, MQX_MEDIUM_REFUSED);
    CHECK_INT(fixture_try_attach(files, &a), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "NFS") != NULL);
    memory_io_set_medium(files, MQX_MEDIUM_COW);
    fixture_attach(files, &a);
    CHECK(fixture_logged(files, "AMQ7903W"));
    CHECK_INT(fixture_detach(&a, NULL), 0);
}

TEST(a_region_directory_that_is_no_tmpfs_is_refused)
{
    struct fixture_process a;
    start();
    CHECK_INT(fixture_attach_io(memory_io_table(files), FIXTURE_PATH, "/home", &a),
              MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "not on a tmpfs") != NULL);
}

/* Each call of the table in turn fails once: attach succeeds or fails with everything given back.
 * */
TEST(an_error_at_any_call_of_an_attach_leaves_nothing_behind)
{
    uint64_t failed = 0;
    bool struck = true;
    for (uint64_t at = 1; struck; at++) {
        const struct memory_fault fault = {
            .kind = MEMORY_FAULT_ERROR, .at = at, .error = EIO,
            .ops = ~(1u << MEMORY_CLOSE | 1u << MEMORY_UNMAP)};
        struct fixture_process a;
        start();
        memory_io_set_fault(files, &fault);
        int status = fixture_try_attach(files, &a);
        struck = memory_io_fault_strikes(files) > 0;
        memory_io_set_fault(files, NULL);
        if (status == 0) {
            CHECK_INT(mqx_region_stopped(&a.store->region), MQX_RUNNING);
            CHECK_INT(fixture_detach(&a, NULL), 0);
        } else {
            failed++;
        }
        CHECK_INT(memory_io_open_count(files), 0);
        CHECK_INT(memory_io_map_count(files), 0);
        fixture_attach(files, &a);
        CHECK_INT(fixture_detach(&a, NULL), 0);
    }
    CHECK(failed > 20);
}

TEST(slots_of_dead_processes_are_swept_before_too_many_is_reported)
{
    struct fixture_process a, b;
    start();
    fixture_attach(files, &a);
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        struct mqx_process *process = mqx_process_slot(&a.store->region, slot);
        if (slot != a.store->region.process) {
            *process = *mqx_process_slot(&a.store->region, a.store->region.process);
            process->life_thread = 0x3ffffff0; /* above every id that the kernel gives */
        }
    }
    fixture_attach(files, &b);
    CHECK_INT(mqx_process_slot(&a.store->region, 1023)->state, MQX_PROC_FREE);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK_INT(fixture_detach(&b, NULL), 0);
}

/* ---- real files and processes ---- */

TEST(a_directory_that_others_may_write_or_own_is_refused)
{
    struct fixture_dirs place;
    struct fixture_process a;
    fixture_make_dirs(&place);
    CHECK_INT(chmod(place.path, 0770), 0);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), MQRC_NOT_AUTHORIZED);
    CHECK_INT(chmod(place.path, 0700), 0);
    if (geteuid() == 0) {
        CHECK_INT(chown(place.path, 65534, 65534), 0);
        CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), MQRC_NOT_AUTHORIZED);
        CHECK(strstr(mqx_error_text(), "lock the owner out") != NULL);
        CHECK_INT(chown(place.path, 0, 0), 0);
        CHECK_INT(chown(place.regions, 65533, 0), 0); /* its owner could remove our region */
        CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), MQRC_NOT_AUTHORIZED);
        CHECK_INT(chown(place.regions, 0, 0), 0);
    }
    CHECK_INT(chmod(place.regions, 0777), 0); /* no sticky bit: others could remove our region */
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), MQRC_NOT_AUTHORIZED);
    CHECK_INT(chmod(place.regions, 01777), 0);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_dirs(&place);
}

TEST(a_planted_link_instead_of_the_lock_file_is_refused)
{
    struct fixture_dirs place;
    struct fixture_process a;
    char name[128];
    fixture_make_dirs(&place);
    snprintf(name, sizeof name, "%s/lock", place.path);
    CHECK_INT(symlink("/etc/hostname", name), 0);
    CHECK(fixture_attach_real(&place, mqx_io_posix(), &a) != 0);
    CHECK_INT(unlink(name), 0);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_dirs(&place);
}

struct child_task {
    const struct fixture_dirs *place;
    struct fixture_process *parents;
    int ready[2];
    int go[2];
};

static int attach_and_wait(void *arg)
{
    struct child_task *task = arg;
    struct fixture_process mine;
    char byte = 0;
    int status = fixture_attach_real(task->place, mqx_io_posix(), &mine);
    uint32_t slot = status == 0 ? mine.store->region.process : 0;
    if (write(task->ready[1], &slot, sizeof slot) != sizeof slot || status != 0) {
        return 2;
    }
    close(task->go[1]); /* ours: at the parent's death or word the read ends */
    (void)!read(task->go[0], &byte, 1);
    return fixture_detach(&mine, NULL) == 0 ? 0 : 3;
}

TEST(a_killed_process_is_dead_at_once_even_before_its_parent_took_notice)
{
    struct fixture_dirs place;
    struct fixture_process a;
    struct child_task task = {.place = &place};
    uint32_t slot = 0, dead = 0;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK(pipe(task.ready) == 0 && pipe(task.go) == 0);
    pid_t child = fixture_child(attach_and_wait, &task);
    CHECK_INT(read(task.ready[0], &slot, sizeof slot), sizeof slot);
    CHECK(slot != 0 && slot != a.store->region.process);
    CHECK(mqx_process_alive(a.store, slot));
    CHECK_INT(mqx_process_slot(&a.store->region, slot)->pid, child);
    CHECK_INT(kill(child, SIGKILL), 0);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0); /* a zombie now */
    CHECK(!mqx_process_alive(a.store, slot));
    CHECK_INT(mqx_reap(a.store, &dead), 0);
    CHECK_INT(dead, 1);
    CHECK_INT(fixture_wait(child), 1000 + SIGKILL);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_dirs(&place);
}

TEST(a_process_that_detaches_in_order_frees_its_slot_and_leaves_the_others_alone)
{
    struct fixture_dirs place;
    struct fixture_process a;
    struct child_task task = {.place = &place};
    uint32_t slot = 0;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK(pipe(task.ready) == 0 && pipe(task.go) == 0);
    pid_t child = fixture_child(attach_and_wait, &task);
    CHECK_INT(read(task.ready[0], &slot, sizeof slot), sizeof slot);
    CHECK_INT(write(task.go[1], "x", 1), 1);
    CHECK_INT(fixture_wait(child), 0);
    CHECK_INT(mqx_process_slot(&a.store->region, slot)->state, MQX_PROC_FREE);
    CHECK(mqx_process_alive(a.store, a.store->region.process));
    CHECK_INT(fixture_detach(&a, NULL), 0);
    fixture_remove_dirs(&place);
}

static int forked_child(void *arg)
{
    struct child_task *task = arg;
    struct fixture_process mine;
    uint64_t ignored = 0;
    if (!mqx_forked(task->parents->store)) {
        return 10;
    }
    if (fixture_attach_real(task->place, mqx_io_posix(), &mine) != 0) {
        return 11;
    }
    if (mine.report.first || mqx_forked(mine.store) || !mqx_forked(task->parents->store)) {
        return 12;
    }
    if (mine.store->region.process == task->parents->store->region.process) {
        return 13;
    }
    if (fixture_detach(&mine, NULL) != 0) {
        return 14;
    }
    /* A destructor of what was copied: nothing may happen, above all not to the parent's locks. */
    return mqx_detach(task->parents->store, MQX_CHECKPOINT_CLEAN, &ignored) == 0 ? 0 : 15;
}

TEST(a_forked_child_owns_nothing_may_connect_anew_and_does_not_harm_its_parent)
{
    struct fixture_dirs place;
    struct fixture_process a, b;
    struct child_task task = {.place = &place, .parents = &a};
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &a), 0);
    CHECK(!mqx_forked(a.store));
    CHECK_INT(fixture_wait(fixture_child(forked_child, &task)), 0);
    CHECK(!mqx_forked(a.store));
    /* the parent's life lock is still there for others to see */
    CHECK_INT(pipe(task.ready), 0);
    CHECK_INT(pipe(task.go), 0);
    pid_t child = fixture_child(attach_and_wait, &task);
    uint32_t slot = 0;
    CHECK_INT(read(task.ready[0], &slot, sizeof slot), sizeof slot);
    CHECK(slot != 0);
    CHECK_INT(write(task.go[1], "x", 1), 1);
    CHECK_INT(fixture_wait(child), 0);
    CHECK_INT(fixture_detach(&a, NULL), 0);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &b), 0);
    CHECK(b.report.first && b.report.recovery.clean);
    CHECK_INT(fixture_detach(&b, NULL), 0);
    fixture_remove_dirs(&place);
}

struct crowd {
    const struct fixture_dirs *place;
    uint32_t firsts;
    uint32_t failures;
};

static int attach_in_a_crowd(void *arg)
{
    struct crowd *crowd = arg;
    struct fixture_process mine;
    for (int i = 0; i < 20; i++) {
        if (fixture_attach_real(crowd->place, mqx_io_posix(), &mine) != 0) {
            return 1;
        }
        if (!mine.report.recovery.clean && mine.report.first) {
            return 2;
        }
        if (fixture_detach(&mine, NULL) != 0) {
            return 3;
        }
    }
    return 0;
}

TEST(processes_that_come_and_go_at_the_same_time_always_find_one_region_or_a_clean_end)
{
    struct fixture_dirs place;
    struct crowd crowd = {.place = &place};
    pid_t child[6];
    fixture_make_dirs(&place);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(child); i++) {
        child[i] = fixture_child(attach_in_a_crowd, &crowd);
    }
    for (size_t i = 0; i < MQX_ARRAY_COUNT(child); i++) {
        CHECK_INT(fixture_wait(child[i]), 0);
    }
    fixture_remove_dirs(&place);
}

static void *attach_in_a_thread(void *arg)
{
    struct crowd *crowd = arg;
    for (int i = 0; i < 20; i++) {
        struct fixture_process mine;
        bool ok = fixture_attach_real(crowd->place, mqx_io_posix(), &mine) == 0;
        ok = ok && fixture_detach(&mine, NULL) == 0;
        __atomic_fetch_add(&crowd->failures, !ok, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(threads_of_one_process_attach_one_after_the_other_too)
{
    struct fixture_dirs place;
    struct crowd crowd = {.place = &place};
    pthread_t thread[3];
    fixture_make_dirs(&place);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(thread); i++) {
        CHECK_INT(pthread_create(&thread[i], NULL, attach_in_a_thread, &crowd), 0);
    }
    for (size_t i = 0; i < MQX_ARRAY_COUNT(thread); i++) {
        CHECK_INT(pthread_join(thread[i], NULL), 0);
    }
    CHECK_INT(crowd.failures, 0);
    fixture_remove_dirs(&place);
}

TEST_MAIN()
