/*
 * ring.c - appending records to the log ring. See journal.h for terms and invariants.
 *
 * An append under the ring lock, in this order:
 *   1. Is there room? A put must leave the reserve, the record must fit the active segment and the
 *      ring. A segment without room is closed: its open batch is sealed, its state becomes FULL.
 *   2. Every slot that the micro-transaction will change is validated; nothing is changed yet.
 *   3. The bytes are copied into the ring, beyond `tail`, where they are not read. In front of a
 *      short record (format/short_codec.h) goes its COMMON record, unless the thread's last copy of
 *      it lies in the open batch, and the distance is stored in the record's copy.
 *   4. Undoable stores: tail, batch count, context, message, object; then the commit.
 * A process that dies before the commit leaves bytes beyond `tail`, which do no harm.
 *
 * Why the bytes go in before `tail` moves. The flush leader reads records of sealed batches only;
 * a death between copy and commit leaves `tail` where it was, and the next append overwrites the
 * bytes. mqx_order() keeps the compiler from moving the copy behind the stores; other processors
 * see both behind the lock.
 *
 * How full the ring may get. Pages are written whole, so the ring must hold the pages from
 * `written` to the end of the record. The open batch's header is part of them: 64 bytes at
 * batch_start that the leader fills in.
 *
 * The reserve (rule 12). A put is refused while a get, a commit or a backout of what is there could
 * still be logged: without that a full journal could never be emptied. Each persistent message
 * needs a record to be removed, each open unit one to be decided; the maintenance step counts them.
 *
 * Control words. Whoever takes the ring lock here compares the positions and counters with their
 * sum; every micro-transaction that changes one of them stores the new sum before it commits. So
 * a position that was damaged while the lock was free is found before it decides where a record
 * goes, and a death in between leaves words and sum of the same moment (region/journal_state.h).
 *
 * Locks. Everything here is done under the ring lock, which the mqx_journal_ functions take; only
 * unit ids and reserve_bytes are atomic. A hold copies MQX_RING_RECORD_MAX bytes at most (rule 23).
 *
 * Errors. MQX_NEED_RING, MQX_NEED_SEGMENT and MQRC_STORAGE_MEDIUM_FULL leave everything as it was,
 * except that a segment without room is closed. An impossible value in the region stops the queue
 * manager (region/damage.h).
 */
#include "journal/journal_private.h"

#include "base/error.h"
#include "region/damage.h"

#include <inttypes.h>
#include <string.h>

enum {
    RESERVE_MIN = 65536,
    RESERVE_MESSAGE = 128, /* bytes of journal kept for a persistent message's removal */
    RESERVE_CONTEXT = 4096,
};

#define SET32(at, value) mqx_undo_store32(region->base, &journal->ring_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &journal->ring_lock, (at), (value))

/* ---- control words ----
 *
 * The sum is one undoable store more in an append, whatever number of words it changes.
 */

/* The way to the ring lock for this folder. Readers of single fields elsewhere take it plainly.
 */
static inline int check_control_words(struct mqx_region *region)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    if (MQX_LIKELY(journal->control_sum == mqx_journal_control_sum(journal))) {
        return MQX_OK;
    }
    const int status = mqx_region_damage(region, "journal's control words", journal->tail);
    mqx_lock_drop(region, &journal->ring_lock);
    MQX_ASSERT(status != MQX_OK);
    return status;
}

int mqx_ring_take(struct mqx_region *region)
{
    MQX_ASSERT(region->journal != NULL);
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->ring_lock));
    const int status = mqx_lock_take(region, &region->journal->ring_lock);
    return status == MQX_OK ? check_control_words(region) : status;
}

/* The same for an append: MQE_INTERRUPTED as a wait for room ends. */
static int enter_ring(struct mqx_region *region)
{
    MQX_ASSERT(region->journal != NULL);
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->ring_lock));
    const int status = mqx_lock_enter(region, &region->journal->ring_lock);
    return status == MQX_OK ? check_control_words(region) : status;
}

void mqx_ring_sum(struct mqx_region *region)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(journal->ring_lock.undo_count > 0);
    SET64(&journal->control_sum, mqx_journal_control_sum(journal));
}

void mqx_ring_sum_segment(struct mqx_region *region, const struct mqx_segment *segment)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(segment >= journal->segment && segment < journal->segment + MQX_SEGMENT_MAX);
    SET64(&journal->segment_sum[segment - journal->segment], mqx_segment_sum(segment));
}

/* ---- the segment table ---- */

/* `active` is an index + 1 that other processes can write: it is validated at each use. */
struct mqx_segment *mqx_ring_active(const struct mqx_region *region)
{
    struct mqx_journal *journal = region->journal;
    const uint32_t active = journal->active;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    MQX_ASSERT(journal == &region->header->journal);
    if (MQX_UNLIKELY(active < 1 || active > MQX_SEGMENT_MAX ||
                     !mqx_segment_is_sound(journal, active - 1))) {
        (void)mqx_region_damage(region, "journal's active segment", active);
        return NULL;
    }
    return &journal->segment[active - 1];
}

/* Reads the table without a lock: a result is a hint that the caller verifies under one
 * (journal_reader.c), or has reason to believe (the roll lock). */
int mqx_journal_segment_of(const struct mqx_region *region, uint64_t lsn)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->journal != NULL);
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &region->journal->segment[i];
        if ((segment->state == MQX_SEG_ACTIVE || segment->state == MQX_SEG_FULL) &&
            lsn >= segment->base_lsn && lsn - segment->base_lsn < segment->size) {
            return i;
        }
    }
    return -1;
}

/* 0, too, when the ring lock cannot be taken: the flush that follows gives the reason. */
uint64_t mqx_journal_closed_end(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    uint64_t end = 0;
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    if (mqx_ring_take(region) == MQX_OK) {
        const struct mqx_segment *active = mqx_ring_active(region);
        end = active != NULL && active->state == MQX_SEG_FULL ? active->end_lsn : 0;
        mqx_lock_drop(region, &journal->ring_lock);
    }
    MQX_ASSERT(end % MQX_PAGE_SIZE == 0);
    return end;
}

/* One counter for units and for the names of spares, so neither is ever given twice. An id that
 * cannot be true stops the queue manager, so nothing is written under it. */
uint64_t mqx_journal_unit_id(struct mqx_store *store)
{
    MQX_ASSERT(store != NULL);
    MQX_ASSERT(store->region.journal != NULL);
    const uint64_t id = mqx_fetch_add(&store->region.journal->next_unit_id, 1);
    if (MQX_UNLIKELY(id - 1 >= PS_NUMBER_LIMIT - 1)) { /* 0, too */
        (void)mqx_region_damage(&store->region, "journal's next unit id", id);
        return 1;
    }
    MQX_ASSERT(id != 0);
    return id;
}

/* ---- room for appends ---- */

/* At least a quarter of the smallest segment, so that an empty queue manager can still log its
 * definitions when the disk is full. */
uint64_t mqx_journal_reserve_for(const struct mqx_region *region, uint64_t messages,
                                 uint64_t contexts)
{
    const uint64_t quarter = mqx_journal_smallest_segment(region->journal) / 4;
    const uint64_t least = quarter < RESERVE_MIN ? quarter : RESERVE_MIN;
    const uint64_t wanted = messages * RESERVE_MESSAGE + contexts * RESERVE_CONTEXT;
    MQX_ASSERT(messages <= UINT32_MAX); /* slots are 32 bits, so the sum cannot overflow */
    MQX_ASSERT(contexts <= UINT32_MAX);
    return wanted > least ? wanted : least;
}

/* Adds up the table only after the set of spares has changed. */
uint64_t mqx_ring_spare_bytes(struct mqx_store *store)
{
    struct mqx_files *files = store->files;
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(files != NULL); /* mqx_journal_attach() comes first */
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->ring_lock));
    if (files->seen_generation != journal->next_generation ||
        files->seen_used_bytes != journal->used_bytes) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
            sum += journal->segment[i].state == MQX_SEG_SPARE ? journal->segment[i].size : 0;
        }
        files->spare_bytes = sum;
        files->seen_generation = journal->next_generation;
        files->seen_used_bytes = journal->used_bytes;
    }
    return files->spare_bytes;
}

/* The rest of the active segment counts only while it is ACTIVE: a closed one takes nothing more.
 */
uint64_t mqx_ring_room(struct mqx_store *store, const struct mqx_segment *active)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(active != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->ring_lock));
    const uint64_t end = active->base_lsn + active->size;
    const uint64_t rest =
        active->state == MQX_SEG_ACTIVE && journal->tail < end ? end - journal->tail : 0;
    return rest + mqx_ring_spare_bytes(store);
}

/* ---- the ring (ring lock held) ---- */

/* Copies into the ring at `lsn`, in two parts when the ring ends in between. Beyond `tail`, where
 * they are not read yet. */
static void ring_copy(const struct mqx_region *region, uint64_t lsn, const unsigned char *from,
                      uint32_t length)
{
    const uint64_t size = region->ring_size;
    const uint64_t until_wrap = size - (lsn & (size - 1));
    const uint32_t first = length < until_wrap ? length : (uint32_t)until_wrap;
    MQX_ASSERT(lsn % 8 == 0);
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    MQX_ASSERT(mqx_lock_held(region, &region->journal->ring_lock));
    memcpy(mqx_ring_at(region, lsn), from, first);
    memcpy(mqx_ring_at(region, lsn + first), from + first, length - first);
}

/* Would the pages up to `end` still mirror into the ring beside what is not yet written? */
static bool ring_has_room(const struct mqx_region *region, uint64_t end)
{
    const struct mqx_journal *journal = region->journal;
    MQX_ASSERT(end >= journal->tail);
    MQX_ASSERT(end - journal->tail <= MQX_RING_RECORD_MAX);
    return mqx_round_up(end, MQX_PAGE_SIZE) - journal->written <= region->ring_size;
}

/* Queues what lies in the open batch and opens the next one behind it. */
static int queue_batch(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    if (journal->sealed_count >= MQX_SEALED_MAX) {
        return MQX_NEED_RING;
    }
    const uint64_t end = mqx_round_up(journal->tail, MQX_PAGE_SIZE);
    MQX_ASSERT(journal->batch_start % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(journal->tail >= journal->batch_start + sizeof(struct psj_batch));
    memset(mqx_ring_at(region, journal->tail), 0, end - journal->tail); /* within one page */
    struct mqx_sealed *sealed =
        &journal->sealed[(journal->sealed_first + journal->sealed_count) % MQX_SEALED_MAX];
    SET64(&sealed->start, journal->batch_start);
    SET32(&sealed->length, (uint32_t)(journal->tail - journal->batch_start));
    SET32(&sealed->record_count, journal->batch_records);
    SET32(&sealed->segment, journal->active - 1);
    SET32(&journal->sealed_count, journal->sealed_count + 1);
    SET64(&journal->batch_start, end);
    SET64(&journal->tail, end + sizeof(struct psj_batch));
    SET32(&journal->batch_records, 0);
    mqx_ring_sum(region);
    return MQX_OK;
}

/* A batch without records stays open: an empty batch on the medium is a mark page, which only
 * mqx_journal_seal_mark() makes. */
int mqx_journal_seal(struct mqx_store *store)
{
    MQX_ASSERT(store != NULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    return store->region.journal->batch_records == 0 ? MQX_OK : queue_batch(store);
}

/* The mark page's header, filled in by the leader, carries the durable LSN at that time. */
int mqx_journal_seal_mark(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    const struct mqx_segment *active = mqx_ring_active(&store->region);
    if (active == NULL) {
        return mqx_region_stop_reason(&store->region);
    }
    MQX_ASSERT(journal->batch_records == 0); /* the caller has looked, in this lock hold */
    MQX_ASSERT(journal->sealed_count == 0);
    if (active->state != MQX_SEG_ACTIVE || journal->tail > active->base_lsn + active->size) {
        return MQX_NEED_SEGMENT;
    }
    return ring_has_room(&store->region, journal->tail) ? queue_batch(store) : MQX_NEED_RING;
}

/* Nothing more goes into the active segment. Commits. */
static int close_segment(struct mqx_store *store, struct mqx_segment *active)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(active->state == MQX_SEG_ACTIVE);
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    int status = mqx_journal_seal(store);
    if (status == MQX_OK) {
        MQX_ASSERT(journal->batch_start > active->base_lsn);
        MQX_ASSERT(journal->batch_start <= active->base_lsn + active->size);
        SET64(&active->end_lsn, journal->batch_start);
        SET32(&active->state, MQX_SEG_FULL);
        mqx_ring_sum_segment(region, active);
        mqx_undo_commit(&journal->ring_lock);
        status = MQX_NEED_SEGMENT;
    }
    return status;
}

/* ---- COMMON records ----
 *
 * A writer hands over a short record and the COMMON record that it was made with, both finished.
 * What is decided here is only whether the second must go in front of the first: it lies in the
 * open batch or it does not. It counts as a record of the batch, not of the unit: first_lsn,
 * record_count and running_crc of the context are about the short ones. After the commit the
 * writer's copy of the COMMON record knows where it lies; a death before that leaves bytes beyond
 * `tail` and nothing else.
 */

/* Bytes that must go in front of a short record: none when its COMMON record lies in the open
 * batch. What this thread appended there stays, since a batch only grows; its first 8 bytes, with
 * the CRC, are compared nevertheless: `lsn` may be of a region that is gone (rule 28). */
static uint32_t common_bytes(const struct mqx_region *region, const struct mqx_common *common)
{
    const struct mqx_journal *journal = region->journal;
    MQX_ASSERT(journal->tail >= journal->batch_start + sizeof(struct psj_batch));
    if (common == NULL) {
        return 0;
    }
    MQX_ASSERT(common->length > 0);
    const bool there = common->lsn > journal->batch_start && common->lsn < journal->tail &&
                       memcmp(mqx_ring_at(region, common->lsn), common->record,
                              offsetof(struct psj_record, unit_id)) == 0;
    return there ? 0 : common->length;
}

/* Copies it to the tail if it must go there; the LSN of the copy to refer to. */
static uint64_t enter_common(struct mqx_region *region, const struct mqx_common *common)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->ring_lock));
    if (common == NULL || common_bytes(region, common) == 0) {
        return common == NULL ? 0 : common->lsn;
    }
    ring_copy(region, journal->tail, common->record, common->length);
    MQX_ASSERT(journal->tail % PS_ALIGN == 0);
    return journal->tail;
}

/* Stores the distance in the copy of a short record; one aligned word, never at both ring ends. */
static void refer(const struct mqx_region *region, const struct psj_record *record, uint64_t lsn,
                  uint64_t common_lsn)
{
    if (mqx_record_is_short(record)) {
        const uint32_t distance = (uint32_t)(lsn - common_lsn);
        MQX_ASSERT(common_lsn != 0);
        MQX_ASSERT(common_lsn < lsn);
        memcpy(mqx_ring_at(region, lsn + offsetof(struct psj_short, common)), &distance,
               sizeof distance);
    }
}

/* The unit id that the record will have for readers. */
static uint64_t unit_of(const struct psj_record *record, const struct mqx_common *common)
{
    MQX_ASSERT((uintptr_t)record % PS_ALIGN == 0);
    if (!mqx_record_is_short(record)) {
        return record->unit_id;
    }
    const struct psj_record *with = (const void *)common->record;
    const struct psj_short *at = (const void *)record;
    MQX_ASSERT(common->length > 0);
    return mqx_record_type(record) == PS_REC_MOVED ? 0
                                                   : with->unit_id + (uint64_t)(int64_t)at->unit;
}

/* ---- appending one record ---- */

/* Is there room for so many bytes at `tail`? *out_closes: the segment has none and is to be
 * closed. */
static int check_room(struct mqx_store *store, const struct mqx_segment *active, uint32_t length,
                      uint32_t flags, bool *out_closes)
{
    struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(length > 0);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->ring_lock));

    *out_closes = false;
    if ((flags & (MQX_APPEND_PUT | MQX_APPEND_MOVES)) != 0 &&
        mqx_ring_room(store, active) < length + mqx_load_relaxed(&journal->reserve_bytes)) {
        return MQRC_STORAGE_MEDIUM_FULL;
    }
    if ((flags & MQX_APPEND_PUT) != 0 &&
        journal->tail + length > mqx_load_relaxed(&journal->put_until)) {
        return MQRC_STORAGE_MEDIUM_FULL;
    }
    if (active->state != MQX_SEG_ACTIVE) {
        return MQX_NEED_SEGMENT;
    }
    if (journal->tail + length > active->base_lsn + active->size) {
        *out_closes = true;
        return MQX_NEED_SEGMENT;
    }
    return ring_has_room(&store->region, journal->tail + length) ? MQX_OK : MQX_NEED_RING;
}

/* The same for a record; closes the segment that has no room for it. */
static int require_room(struct mqx_store *store, uint32_t length, uint32_t flags)
{
    struct mqx_segment *active = mqx_ring_active(&store->region);
    bool closes = false;
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    MQX_ASSERT(store->region.journal->ring_lock.undo_count == 0);
    if (active == NULL) {
        return mqx_region_stop_reason(&store->region);
    }
    const int status = check_room(store, active, length, flags, &closes);
    return closes ? close_segment(store, active) : status;
}

/* Invariant 3 of journal.h: what the unit's context records about them. A deciding record is not
 * counted: record_count and running_crc are what it states itself. */
static void note_in_context(struct mqx_region *region, struct mqx_context *context,
                            const struct mqx_append *append)
{
    struct mqx_journal *journal = region->journal;
    const struct psj_record *record = (const void *)append->record;
    const uint32_t ends = append->flags & (MQX_APPEND_DECIDES | MQX_APPEND_PREPARES);
    MQX_ASSERT(append->end_lsn == append->lsn + append->length);
    MQX_ASSERT(ends != (MQX_APPEND_DECIDES | MQX_APPEND_PREPARES)); /* one of them, or neither */
    MQX_ASSERT(context->first_lsn <= append->lsn);

    const uint64_t unit_id = unit_of(record, append->common);
    if (context->unit_id == 0 && unit_id != 0) {
        SET64(&context->unit_id, unit_id);
    }
    if (context->first_lsn == 0) {
        SET64(&context->first_lsn, append->lsn);
    }
    if (ends == MQX_APPEND_DECIDES) {
        SET64(&context->decided_lsn, append->end_lsn);
        SET32(&context->state, MQX_CTX_DECIDED);
    } else if (ends == MQX_APPEND_PREPARES) {
        SET64(&context->decided_lsn, append->end_lsn);
        SET32(&context->process, 0);
        SET32(&context->state, MQX_CTX_PREPARED);
    } else {
        SET32(&context->record_count, context->record_count + 1);
        SET32(&context->running_crc, mqx_running_crc(context->running_crc, record));
    }
    SET64(&context->unit_sum, mqx_unit_sum(context));
}

/* Does the record belong to the unit of the context, whose words are those of the last append? */
static bool continues_unit(const struct mqx_context *context, uint64_t unit_id)
{
    MQX_ASSERT(context != NULL);
    return mqx_unit_is_sound(context) &&
           (context->unit_id == 0 || unit_id == 0 || context->unit_id == unit_id);
}

struct noted { /* what an append changes besides the journal, NULL: nothing */
    struct mqx_context *context;
    struct mqx_message *message;
    struct mqx_object *object;
};

/* Finds context, message and object; validates their slots before anything is changed. */
static int find_noted(const struct mqx_region *region, const struct mqx_append *append,
                      struct noted *out)
{
    *out = (struct noted){
        .context = mqx_context(region, append->context),
        .message = mqx_message(region, append->message),
        .object = mqx_object(region, append->object),
    };
    MQX_ASSERT((out->context == NULL) || append->context != 0);
    MQX_ASSERT((append->flags & (MQX_APPEND_DECIDES | MQX_APPEND_PREPARES)) == 0 ||
               append->context != 0); /* only a unit is decided */
    if (MQX_UNLIKELY(append->context != 0 &&
                     (out->context == NULL ||
                      !continues_unit(out->context, unit_of((const void *)append->record,
                                                            append->common))))) {
        return mqx_region_damage(region, "context of an append", append->context);
    }
    if (MQX_UNLIKELY(append->message != 0 && out->message == NULL)) {
        return mqx_region_damage(region, "message slot of an append", append->message);
    }
    if (MQX_UNLIKELY(append->object != 0 && out->object == NULL)) {
        return mqx_region_damage(region, "object slot of an append", append->object);
    }
    return MQX_OK;
}

/* One micro-transaction: the record is in the ring, and everything it names refers to it. */
static int enter_record(struct mqx_region *region, struct mqx_append *append)
{
    struct mqx_journal *journal = region->journal;
    struct noted noted;
    MQX_ASSERT(journal->ring_lock.undo_count == 0);
    int status = find_noted(region, append, &noted);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t in_front = common_bytes(region, append->common);
    const uint64_t common_lsn = enter_common(region, append->common);
    append->lsn = journal->tail + in_front;
    append->end_lsn = append->lsn + append->length;
    ring_copy(region, append->lsn, append->record, append->length);
    refer(region, (const void *)append->record, append->lsn, common_lsn);
    mqx_order();
    SET64(&journal->tail, append->end_lsn);
    SET32(&journal->batch_records, journal->batch_records + 1 + (in_front != 0));
    mqx_ring_sum(region);
    if (noted.context != NULL) {
        note_in_context(region, noted.context, append);
    }
    if (noted.message != NULL) {
        SET64(&noted.message->lsn, append->lsn);
        SET32(&noted.message->record_length, append->length);
    }
    if (noted.object != NULL) {
        if (append->object_state == MQX_OBJ_DELETING) {
            SET32(&noted.object->deleted_generation, noted.object->generation);
        }
        SET32(&noted.object->state, append->object_state);
    }
    mqx_undo_commit(&journal->ring_lock);
    if (append->common != NULL) {
        append->common->lsn = common_lsn;
    }
    MQX_ASSERT(journal->tail == append->end_lsn);
    return MQX_OK;
}

/* Bytes in front of a record, at the most. */
static uint32_t longest_common(const struct mqx_common *common)
{
    MQX_ASSERT(common == NULL || common->length <= MQX_COMMON_MAX);
    MQX_ASSERT(common == NULL || common->length >= sizeof(struct psj_record));
    return common == NULL ? 0 : common->length;
}

/* Can a record of this length be in a segment at all? */
static int check_length(const struct mqx_journal *journal, uint32_t length)
{
    MQX_ASSERT(length >= PS_RECORD_MIN);
    MQX_ASSERT(length % 8 == 0);
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    if (length > mqx_journal_smallest_segment(journal) - MQX_PAGE_SIZE - sizeof(struct psj_batch)) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "a record of %u bytes does not fit into a segment",
                        length);
    }
    return MQX_OK;
}

/* Everything after the lock is one micro-transaction, committed by enter_record(); a refusal is
 * rolled back. */
int mqx_journal_try_append(struct mqx_store *store, struct mqx_append *append)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(append->record != NULL);
    MQX_ASSERT(mqx_record_length((const void *)append->record) == append->length);
    int status = check_length(journal, append->length + longest_common(append->common));
    if (status != MQX_OK) {
        return status;
    }
    status = enter_ring(region);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_region_stopped(region) != MQX_RUNNING
                 ? mqx_region_stop_reason(region)
                 : require_room(store, append->length + common_bytes(region, append->common),
                                append->flags);
    if (status == MQX_OK) {
        status = enter_record(region, append);
    }
    mqx_undo_rollback(region, &journal->ring_lock); /* of a segment that could not be closed */
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}

/* ---- appending a run ---- */

/* How many of the run's next records go in together; one when not even that fits. */
static uint32_t count_fitting(struct mqx_store *store, const struct mqx_segment *active,
                              const struct mqx_run *run, uint32_t *out_bytes)
{
    uint32_t count = run->count - run->done;
    uint32_t bytes = 0;
    const uint32_t in_front = common_bytes(&store->region, run->common);
    bool closes;
    MQX_ASSERT(run->done < run->count);
    for (uint32_t i = 0; i < count; i++) {
        bytes += run->length[run->done + i];
    }
    MQX_ASSERT(in_front + bytes <= MQX_RING_RECORD_MAX);
    while (count > 1 &&
           check_room(store, active, in_front + bytes, run->flags, &closes) != MQX_OK) {
        count -= 1;
        bytes -= run->length[run->done + count];
    }
    *out_bytes = bytes;
    MQX_ASSERT(count >= 1);
    return count;
}

/* The stores that enter one record of a run at `lsn`; its crc field goes to *out_crc. */
static int enter_run_record(struct mqx_region *region, const struct mqx_run *run, uint32_t i,
                            const struct psj_record *record, uint64_t lsn, uint32_t *out_crc)
{
    struct mqx_journal *journal = region->journal;
    struct mqx_message *message = mqx_message(region, run->message[i]);
    MQX_ASSERT(i < run->count);
    MQX_ASSERT(mqx_record_length(record) == run->length[i]);
    *out_crc = record->crc;
    if (message != NULL) {
        SET64(&message->lsn, lsn);
        SET32(&message->record_length, run->length[i]);
    } else if (MQX_UNLIKELY(run->message[i] != 0)) {
        return mqx_region_damage(region, "message slot of an append", run->message[i]);
    }
    return MQX_OK;
}

/* One micro-transaction: `count` records are in the ring; context and messages refer to them. */
static int enter_run(struct mqx_store *store, struct mqx_run *run, uint32_t count, uint32_t bytes)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_context *context = mqx_context(region, run->context);
    const unsigned char *records = run->records + run->done_bytes;
    const uint32_t in_front = common_bytes(region, run->common);
    const uint64_t first = journal->tail + in_front;
    const uint64_t unit_id = unit_of((const void *)records, run->common);
    uint32_t crcs[MQX_RUN_MAX];
    uint32_t at = 0;
    int status = MQX_OK;
    MQX_ASSERT(count >= 1);
    MQX_ASSERT(count <= MQX_RUN_MAX);
    if (MQX_UNLIKELY(context == NULL || !continues_unit(context, unit_id))) {
        return mqx_region_damage(region, "context of an append", run->context);
    }
    const uint64_t common_lsn = enter_common(region, run->common);
    ring_copy(region, first, records, bytes);
    mqx_order();
    if (context->unit_id == 0) {
        SET64(&context->unit_id, unit_id);
    }
    if (context->first_lsn == 0) {
        SET64(&context->first_lsn, first);
    }
    for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
        const struct psj_record *record = (const void *)(records + at);
        status = enter_run_record(region, run, run->done + i, record, first + at, &crcs[i]);
        refer(region, record, first + at, common_lsn);
        at += run->length[run->done + i];
    }
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(at == bytes);
    SET32(&context->record_count, context->record_count + count);
    SET32(&context->running_crc, mqx_running_crcs(context->running_crc, crcs, count));
    SET64(&context->unit_sum, mqx_unit_sum(context));
    SET32(&journal->batch_records, journal->batch_records + count + (in_front != 0));
    SET64(&journal->tail, first + bytes);
    mqx_ring_sum(region);
    mqx_undo_commit(&journal->ring_lock);
    if (run->common != NULL) {
        run->common->lsn = common_lsn;
    }
    run->done += count;
    run->done_bytes += bytes;
    return MQX_OK;
}

/* Ring lock held. Enters what fits, in one micro-transaction. */
static int append_part(struct mqx_store *store, struct mqx_run *run)
{
    const struct mqx_segment *active = mqx_ring_active(&store->region);
    uint32_t bytes = 0;
    MQX_ASSERT(run->done < run->count);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->ring_lock));
    if (active == NULL) {
        return mqx_region_stop_reason(&store->region);
    }
    const uint32_t count = count_fitting(store, active, run, &bytes);
    const int status = require_room(store, bytes + common_bytes(&store->region, run->common),
                                    run->flags);
    return status == MQX_OK ? enter_run(store, run, count, bytes) : status;
}

/* Several micro-transactions in one hold when the run does not fit as a whole. Rolled back is at
 * most the part that was not committed; run->done counts the others. */
int mqx_journal_try_run(struct mqx_store *store, struct mqx_run *run)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = MQX_OK;
    MQX_ASSERT(run->count <= MQX_RUN_MAX);
    MQX_ASSERT(run->done <= run->count);
    MQX_ASSERT(run->context != 0);
    for (uint32_t i = run->done; i < run->count && status == MQX_OK; i++) {
        status = check_length(journal, run->length[i] + longest_common(run->common));
    }
    if (status == MQX_OK) {
        status = enter_ring(region);
    }
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_region_stopped(region) != MQX_RUNNING) {
        status = mqx_region_stop_reason(region);
    }
    while (status == MQX_OK && run->done < run->count) { /* each turn enters one at least */
        status = append_part(store, run);
    }
    mqx_undo_rollback(region, &journal->ring_lock); /* of a segment that could not be closed */
    mqx_lock_drop(region, &journal->ring_lock);
    return status;
}
