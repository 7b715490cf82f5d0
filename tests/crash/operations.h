/*
 * operations.h - what the two workers of a schedule do (T9), and what each operation owes.
 *
 * An operation says before each step what it is about to put and get, in memory that its death does
 * not take away, and corrects it with what it was answered. The accounts of both workers together
 * with what was on the queues before give what must be on them afterwards.
 *
 * Terms
 *   decided   from here on the puts and gets may have happened; before, none of them has.
 *   loose     a get or clear in progress: so many messages of that queue may be gone, any of them.
 *   in pieces the puts and gets may have happened one by one, not all or none.
 */
#ifndef PENSTOCK_TESTS_OPERATIONS_H
#define PENSTOCK_TESTS_OPERATIONS_H

#include "crash_fixture.h"

enum {
    ACCOUNT_MAX = 100,
    ACCOUNT_IDS = 1024,     /* all ids of an experiment are below */
    ACCOUNT_FIRST = 900,    /* ids that worker 0 puts; worker 1's follow */
    ACCOUNT_STEP = 40,
};

struct account {
    uint32_t worker;
    bool decided, over, in_pieces;
    uint32_t puts, gets;
    struct {
        uint8_t queue;
        uint64_t id;
    } put[ACCOUNT_MAX], got[ACCOUNT_MAX];
    uint8_t loose_queue;
    uint32_t loose;          /* messages; UINT32_MAX: all */
    int wrong;               /* a reason code that should not have come */
    char text[200];
};

struct operation {
    const char *name;
    void (*run)(mqe_manager *manager, const struct crash_fixture *fixture, struct account *account);
    uint32_t many;           /* messages on queue B that it wants */
    uint32_t prepared;       /* prepared units that it wants */
    bool gives;              /* it puts what the operation of the same pair waits for */
    bool waits;              /* only together with one that gives */
};

extern const struct operation operations[];
extern const uint32_t operation_count;

/* Messages by queue and id. */
struct tally {
    int16_t count[FIXTURE_QUEUES][ACCOUNT_IDS];
};
/* Dies when the picture has something that is not whole. */
bool tally_of(const struct picture *picture, struct tally *out);
/* Is this what both accounts leave of what was there before? Says on stderr what is not. */
bool tally_agrees(const struct tally *before, const struct account accounts[2],
                  const struct tally *found);

#endif
