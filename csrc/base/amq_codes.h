/*
 * amq_codes.h - numbers of the messages that the core writes to the error log
 * (process/error_log.h).
 *
 * Where IBM MQ has a message of the same meaning we use its number; those from 7900 on are ours.
 */
#ifndef PENSTOCK_AMQ_CODES_H
#define PENSTOCK_AMQ_CODES_H

enum mqx_amq {
    MQX_AMQ_STARTED = 8003,         /* I the first process attached; what restart recovery did */
    MQX_AMQ_ENDED = 8004,           /* I the last process left in order */
    MQX_AMQ_QUIESCING = 5022,       /* I end -c or -w was requested */
    MQX_AMQ_ENDING = 5024,          /* I W end -i, end -p */
    MQX_AMQ_LONG_UNIT = 7469,       /* W units that hold the journal for too long are backed out */
    MQX_AMQ_NP_DISCARDED = 7901,    /* W non-persistent messages were discarded, with the count */
    MQX_AMQ_DIRECTORY_MOVED = 7902, /* W the directory is a copy or was restored elsewhere */
    MQX_AMQ_COW_MEDIUM = 7903,      /* W copy-on-write: space for open units cannot be reserved */
    MQX_AMQ_PROCESS_DIED = 7905,    /* W processes ended without leaving; backed out */
    MQX_AMQ_LOCK_HELD_LONG = 7906,  /* W a lock of the region has been held for more than 5 s */
    MQX_AMQ_MAINTENANCE = 7907,     /* E a step of maintenance fails: reason and text */
    MQX_AMQ_MAINTENANCE_OK = 7908,  /* I the same step works again */
    MQX_AMQ_STOPPED = 7909,         /* E the queue manager has stopped: call, errno, process */
    MQX_AMQ_END_FAILED = 7910,      /* E the orderly end could not be written */
    MQX_AMQ_LINKED = 7911,          /* W files are shared with a copy made of hard links */
    MQX_AMQ_CHECKPOINT_DAMAGED = 7912, /* E the newest is damaged, an older one is used */
    MQX_AMQ_CANNOT_LEAD = 7920,     /* W this process cannot write the journal, another does */
};

#endif
