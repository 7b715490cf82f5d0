/*
 * put_bound.c - how far puts may append, and what a full disk must not take away. See journal.h for
 * terms.
 *
 * Purpose. A put is refused when live messages take too much of the journal's limit, and when what
 * gets need of a full disk is not there (rule 59): reserved segments (segment_reserve.c), and the
 * reserve for a checkpoint (recovery/checkpoint_reserve.h), whose length is reckoned here.
 *
 * A full disk. Puts are refused unless a checkpoint of what is present would find room over its
 * reserve: without checkpoints nothing that is got frees the journal. Each put makes the next
 * checkpoint, and the two after it, longer by a line. So `put_until` moves on by no more than an
 * eighth of what the reserve is longer than it must be; a put that comes so far counts again, and
 * has the reserve lengthened when nothing is left of that.
 *
 * What a message takes in a checkpoint differs six times, so it is learnt: from the newest
 * checkpoint that had many, on queues or in units of work. Until there is one, all fields of each
 * are counted.
 *
 * After an orderly end the messages themselves are known, so that the reserve may be as short as a
 * checkpoint of any of them (mqx_journal_know()). New ones stand at the ends of their priority
 * levels, and make the lines of a block longer there, not those of others: the first ones are
 * covered without a longer reserve, and it is lengthened beside them.
 *
 * Locks. None: what is read is atomic and a moment old; a bound that is old is counted again.
 */
#include "journal/journal_private.h"

#include "base/error.h"
#include "os/futex.h"
#include "region/access.h"
#include "region/arena.h"

#include <inttypes.h>

enum {
    RESERVED_SMALL = 256 * 1024,
    CHECKPOINT_LEAST = 16384,   /* header, END block, some definitions and units */
    PUTS_UNCOVERED = 65536,     /* of journal, before there is a reserve for a checkpoint */
    LISTED_MOST = 88,           /* bytes of a message in a checkpoint: all fields */
    LISTED_LEAST = 32,          /* counted at the least */
    LISTED_KNOWN = 1000,        /* messages of a checkpoint that say what others take */
    LISTED_EARLY = 16 * 1024,   /* so many are worth a checkpoint that says it */
    RESERVE_A_PUT = 8,          /* for each byte: 3 1/3 lines of 96 for 40 of a short record */
    RECORD_LEAST = 40,          /* bytes of journal of a put */
    RESERVE_AHEAD = 8 << 20,    /* as in recovery/checkpoint_reserve.c */
    RESERVE_SMALL = 4 << 20,    /* a put lengthens it as fast as it asks for that */
    KNOWN_PUTS = 1000,          /* messages put since, while what is present counts as known */
    LENGTHEN_AT = 100,          /* so many, and the reserve is lengthened for any others */
    KNOWN_UNITS = 10000,        /* gets of units of work that are not ended */
    KNOWN_WIDENED = 360448,     /* longer lines beside new messages: four blocks of 1,024 */
    KNOWN_BLOCK = 1024,         /* messages of a block over the reserve (checkpoint_file.h) */
    BLOCK_HEAD = 256,           /* headers and padding of a block */
    JOURNAL_A_GET = 8192,       /* a page, and what is moved for it */
};

/* The rest is for the tail, for gets and commits, and for what compaction writes before segments
 * are free. */
uint64_t mqx_journal_live_limit(const struct mqx_journal *journal)
{
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->limit > 0);
    return journal->limit / 10 * 7;
}

void mqx_journal_learn(struct mqx_journal *journal, const struct psc_end *totals, uint64_t size)
{
    const uint64_t messages = totals->message_count + totals->unit_put_count;
    const uint64_t others = totals->operation_count * sizeof(struct psc_operation);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(messages <= UINT32_MAX); /* slots are 32 bits */
    MQX_ASSERT(messages == 0 || size > MQX_PAGE_SIZE);
    mqx_store_relaxed(&journal->checkpoint_messages, messages);
    if (messages >= LISTED_KNOWN && size > others) {
        mqx_store_relaxed(&journal->listed_bytes, (size - others) / messages + 1);
    }
    mqx_store_relaxed(&journal->reserve_peak[1], mqx_load_relaxed(&journal->reserve_peak[0]));
    mqx_store_relaxed(&journal->reserve_peak[0], UINT64_C(0));
}

static uint64_t persistent_messages(const struct mqx_region *region)
{
    uint64_t messages = 0;
    MQX_ASSERT(region->stripes != NULL);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        messages += mqx_load_relaxed(&region->stripes[i].persistent_present);
    }
    return messages;
}

bool mqx_journal_would_learn(const struct mqx_region *region)
{
    MQX_ASSERT(region->journal != NULL);
    MQX_STATIC_ASSERT(LISTED_EARLY > LISTED_KNOWN, "some may be got before they are listed");
    return mqx_load_relaxed(&region->journal->listed_bytes) == 0 &&
           persistent_messages(region) >= LISTED_EARLY;
}

/* Bytes of a message in a checkpoint. Those of a block share what they have in common
 * (format/message_columns.h), which may become less as messages are got: three times what the
 * newest checkpoint with many has, at most all fields. */
static uint64_t listed_bytes(const struct mqx_journal *journal)
{
    const uint64_t known = mqx_load_relaxed(&journal->listed_bytes);
    MQX_ASSERT(journal->limit > 0);
    MQX_STATIC_ASSERT(LISTED_LEAST < LISTED_MOST, "a range");
    const uint64_t wanted = known == 0 || known > LISTED_MOST / 3 ? LISTED_MOST : 3 * known;
    return wanted < LISTED_LEAST ? LISTED_LEAST : wanted;
}

/* What a checkpoint would have now: the newest one says what all but messages take at the most. */
static uint64_t checkpoint_now(const struct mqx_journal *journal, uint64_t messages)
{
    const uint64_t known = mqx_load_relaxed(&journal->checkpoint_messages);
    const uint64_t listed = (known < LISTED_KNOWN ? 0 : known) * LISTED_LEAST / 4;
    const uint64_t bytes = mqx_load_relaxed(&journal->checkpoint_bytes);
    MQX_ASSERT(messages <= UINT32_MAX); /* slots are 32 bits */
    MQX_ASSERT(journal->limit > 0);
    return CHECKPOINT_LEAST + messages * listed_bytes(journal) +
           (bytes > listed ? bytes - listed : 0);
}

void mqx_journal_know(const struct mqx_region *region, const struct mqx_known_lines *known)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(known->line_bytes <= LISTED_MOST);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT((known->line_bytes == 0) == (known->lines == 0));
    mqx_store_relaxed(&journal->known_line, known->line_bytes);
    mqx_store_relaxed(&journal->known_lines, known->lines);
    mqx_store_relaxed(&journal->known_lsn, known->first_lsn);
    mqx_store_relaxed(&journal->known_others, known->others);
    mqx_store_relaxed(&journal->known_given, mqx_numbers_given(region));
}

/* Messages put since what is present was known, at the most; UINT64_MAX: it never was. */
static uint64_t put_since(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    const uint64_t given = mqx_numbers_given(region);
    const uint64_t before = mqx_load_relaxed(&journal->known_given);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(given > 0);
    return mqx_load_relaxed(&journal->known_line) == 0 ? UINT64_MAX
           : given > before                            ? given - before
                                                       : 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    MQX_ASSERT(a < UINT64_MAX || b < UINT64_MAX);
    return a < b ? a : b;
}

/* So many of the known messages, with LSNs of that size. */
static uint64_t lines_of(const struct mqx_journal *journal, uint64_t messages, uint64_t lsn_bytes)
{
    const uint64_t line = mqx_load_relaxed(&journal->known_line);
    MQX_ASSERT(line > 0);
    MQX_ASSERT(lsn_bytes <= sizeof(uint64_t));
    return messages * lsn_bytes + least_of(messages * line,
                                           mqx_load_relaxed(&journal->known_lines));
}

/* The lines of known messages, now or later while they are got. Those that compaction moves have
 * higher LSNs: these take 8 bytes when they differ by 4 GiB, which takes many gets. */
static uint64_t lines_known(const struct mqx_journal *journal, uint64_t messages)
{
    const uint64_t first = mqx_load_relaxed(&journal->known_lsn);
    const uint64_t tail = mqx_load_relaxed(&journal->tail);
    const uint64_t span = tail > first ? tail - first : 0;
    const uint64_t gets = span < UINT32_MAX ? (UINT32_MAX - span) / JOURNAL_A_GET : 0;
    const uint64_t far = messages > gets ? lines_of(journal, messages - gets, 8) : 0;
    const uint64_t near = gets > 0 ? lines_of(journal, messages, 4) : 0;
    MQX_ASSERT(messages > 0);
    MQX_ASSERT(near > 0 || far > 0);
    return near > far ? near : far;
}

/* A checkpoint of known messages, and a few new ones; no more than of any. */
static uint64_t known_now(const struct mqx_journal *journal, uint64_t messages)
{
    MQX_ASSERT(messages > 0);
    MQX_STATIC_ASSERT(KNOWN_PUTS > LENGTHEN_AT, "it is lengthened beside the first ones");
    return CHECKPOINT_LEAST + mqx_load_relaxed(&journal->known_others) +
           lines_known(journal, messages) + (messages / KNOWN_BLOCK + 2) * BLOCK_HEAD +
           least_of(messages, KNOWN_UNITS) * sizeof(struct psc_operation) +
           least_of(messages * LISTED_MOST, KNOWN_WIDENED + KNOWN_PUTS * LISTED_MOST);
}

/* And what the two checkpoints that will take the place of the reserve are too short for that. */
static uint64_t reserve_for(const struct mqx_journal *journal, uint64_t now)
{
    const uint64_t newest = mqx_load_relaxed(&journal->checkpoint_bytes);
    const uint64_t older = mqx_load_relaxed(&journal->older_bytes);
    const uint64_t later =
        (now > newest ? now - newest : 0) + (now > older ? now - older : 0);
    MQX_ASSERT(now > 0);
    MQX_ASSERT(journal->limit > 0);
    return mqx_round_up(now + later, MQX_PAGE_SIZE);
}

/* Of messages that may be any: a third more, as a get of a unit of work that is not ended is a line
 * of its own. */
static uint64_t reserve_for_any(const struct mqx_journal *journal, uint64_t messages)
{
    const uint64_t now = checkpoint_now(journal, messages);
    MQX_ASSERT(messages > 0);
    MQX_ASSERT(now >= CHECKPOINT_LEAST);
    return reserve_for(journal, now) + mqx_round_up(now / 3, MQX_PAGE_SIZE);
}

static uint64_t reserve_for_known(const struct mqx_journal *journal, uint64_t messages)
{
    MQX_ASSERT(messages > 0);
    MQX_ASSERT(messages <= UINT32_MAX); /* slots are 32 bits */
    MQX_ASSERT(mqx_load_relaxed(&journal->known_line) != 0);
    return least_of(reserve_for(journal, known_now(journal, messages)),
                    reserve_for_any(journal, messages));
}

bool mqx_journal_is_known(const struct mqx_region *region)
{
    MQX_ASSERT(region->journal != NULL);
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    return put_since(region) < LENGTHEN_AT;
}

uint64_t mqx_journal_checkpoint_reserve(const struct mqx_region *region)
{
    const uint64_t messages = persistent_messages(region);
    MQX_ASSERT(region->journal->limit > 0);
    return messages == 0                  ? 0
           : mqx_journal_is_known(region) ? reserve_for_known(region->journal, messages)
                                          : reserve_for_any(region->journal, messages);
}

/* Most queue managers never fill their first segment: what they have reserved is smaller than it.
 * With a second one the journal is in use. */
uint64_t mqx_journal_reserved_size(const struct mqx_journal *journal)
{
    const uint64_t smallest = mqx_journal_smallest_segment(journal);
    MQX_ASSERT(smallest >= PS_MIN_SEGMENT);
    MQX_STATIC_ASSERT(RESERVED_SMALL > 2 * MQX_RING_RECORD_MAX, "it holds every record");
    return smallest > RESERVED_SMALL &&
                   mqx_load_relaxed(&journal->used_bytes) <= journal->first_segment_size
               ? RESERVED_SMALL
               : smallest;
}

/* Without a lock: exact under the roll lock. Smaller ones are extra. */
uint32_t mqx_journal_reserved_count(const struct mqx_journal *journal)
{
    const uint64_t least = mqx_journal_reserved_size(journal);
    uint32_t count = 0;
    MQX_ASSERT(least > 0);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        count += mqx_load_relaxed(&segment->state) == MQX_SEG_RESERVED && segment->size >= least;
    }
    MQX_ASSERT(count < MQX_SEGMENT_MAX); /* one is the active segment */
    return count;
}

/* MQRC_STORAGE_MEDIUM_FULL: what gets need of a full disk is not there. */
int mqx_pool_no_way_out(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    const uint32_t count = mqx_journal_reserved_count(journal);
    MQX_ASSERT(journal->segment_size > 0);
    MQX_ASSERT(count < MQX_SEGMENT_MAX);
    return mqx_fail(MQRC_STORAGE_MEDIUM_FULL,
                    "the disk has no room for what is reserved for gets (%u of %d segments, "
                    "%" PRIu64 " of %" PRIu64 " bytes for a checkpoint); gets, commits and "
                    "backouts go on",
                    count, MQX_RESERVED_SEGMENTS, mqx_load_relaxed(&journal->checkpoint_reserve),
                    mqx_journal_checkpoint_reserve(region));
}

/* How many bytes of journal puts may append before the reserve is too short, at the least. */
static uint64_t covered_by_reserve(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    const uint64_t has = mqx_load_relaxed(&journal->checkpoint_reserve);
    MQX_ASSERT(journal->ring_size > 0);
    MQX_ASSERT(region->header != NULL);
    if (mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_UNKNOWN) {
        return PUTS_UNCOVERED;
    }
    const uint64_t messages = persistent_messages(region);
    if (messages == 0) {
        return PUTS_UNCOVERED;
    }
    const uint64_t any = reserve_for_any(journal, messages), since = put_since(region);
    if (has > any) {
        return (has - any) / RESERVE_A_PUT;
    }
    return since < KNOWN_PUTS && has >= reserve_for_known(journal, messages)
               ? (KNOWN_PUTS - since) * RECORD_LEAST
               : 0;
}

/* Adding up what messages take reads a word of each stripe, too much for each put. So a put
 * compares its LSN with a bound for the worst case, in which all that was appended since stays:
 * only one that comes that far makes the sum again. */
bool mqx_journal_bound_puts(const struct mqx_region *region, uint64_t *out_live)
{
    struct mqx_journal *journal = region->journal;
    const uint64_t tail = mqx_load_relaxed(&journal->tail); /* first: what follows may be counted
                                                             * twice, and never not at all */
    const uint64_t limit = mqx_journal_live_limit(journal);
    MQX_ASSERT(out_live != NULL);
    *out_live = mqx_store_live_bytes(region);
    const uint64_t covered = covered_by_reserve(region);
    if (mqx_load_relaxed(&journal->way_out) == MQX_WAY_OUT_MISSING || covered == 0) {
        mqx_store_relaxed(&journal->put_until, tail);
        return false;
    }
    if (*out_live > limit) {
        mqx_store_relaxed(&journal->put_until, tail);
        return false;
    }
    /* a message is counted before its records are appended: one of them fits in any case */
    const uint64_t room = limit - *out_live;
    mqx_store_relaxed(&journal->put_until,
                      tail + (room < covered ? room : covered) + MQX_RING_RECORD_MAX);
    return true;
}

void mqx_journal_ask_for_reserve(const struct mqx_region *region)
{
    const struct mqx_journal *journal = region->journal;
    const uint64_t has = mqx_load_relaxed(&journal->checkpoint_reserve);
    const uint64_t wanted = mqx_journal_checkpoint_reserve(region);
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    MQX_ASSERT(journal->limit > 0);
    if (region->process != 0 && has != 0 && wanted > RESERVE_SMALL &&
        (has < wanted || has - wanted < least_of(wanted / 4, RESERVE_AHEAD))) {
        mqx_futex_raise(&mqx_process_slot(region, region->process)->doorbell, 1);
    }
}
