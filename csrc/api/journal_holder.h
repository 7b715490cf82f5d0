/*
 * journal_holder.h - what takes the journal's space, for texts and status.
 *
 * A journal that is full is so for one of two reasons: messages that nobody gets, or units of work
 * that nobody ends, with what they have put. Who is refused a put is told which queue is deep and
 * which unit is old, and which command frees it.
 *
 * Read without locks: names and numbers of a moment. No errors.
 */
#ifndef PENSTOCK_JOURNAL_HOLDER_H
#define PENSTOCK_JOURNAL_HOLDER_H

#include "region/store.h"

struct mqx_journal_holder { /* the unit of work with the oldest record */
    uint64_t bytes;    /* of journal since that record; 0: no unit has one */
    uint64_t since_us; /* when it began */
    int32_t pid;       /* of its process; 0: it is prepared */
    uint32_t context;
};
void mqx_journal_holder_find(const struct mqx_region *region, struct mqx_journal_holder *out);

/* For a put that is refused with MQRC_STORAGE_MEDIUM_FULL: adds to the error text what holds the
 * space. Any other status stays as it is; the status is returned. */
int mqx_journal_full(const struct mqx_store *store, int status) MQX_COLD;

#endif
