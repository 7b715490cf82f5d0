/*
 * definition.h - definitions of objects: a name with an attribute list, and the values that C reads
 * from the list.
 *
 * Terms
 *   definition      name space, name, type and instance (struct ps_object_name), attribute list.
 *   attribute list  a sequence of attributes (struct ps_attr of format.h), each a header, `length`
 *                   value bytes, zeroes to a multiple of 8. Integers: kind 1, length 8, signed.
 *                   Strings: kind 2, UTF-8, no NUL. A selector occurs once.
 *   values          what C acts on: the selectors below, checked. All other selectors are kept
 *                   unread.
 *
 *     selector                         MQSC      values           absent  refused with
 *     of queues
 *     5     MQIA_DEF_PERSISTENCE       DEFPSIST  0, 1             0       MQRC_PERSISTENCE_ERROR
 *     6     MQIA_DEF_PRIORITY          DEFPRTY   0..9             0       MQRC_PRIORITY_ERROR
 *     7     MQIA_DEFINITION_TYPE       DEFTYPE   1..4             1       (*)
 *     9     MQIA_INHIBIT_GET           GET       0, 1             0       MQRC_INHIBIT_VALUE_ERROR
 *     10    MQIA_INHIBIT_PUT           PUT       0, 1             0       MQRC_INHIBIT_VALUE_ERROR
 *     12    MQIA_USAGE                 USAGE     0, 1             0       (*)
 *     13    MQIA_MAX_MSG_LENGTH        MAXMSGL   0..104857600     4194304 MQRC_MAX_MSG_LENGTH_ERROR
 *     15    MQIA_MAX_Q_DEPTH           MAXDEPTH  0..999999999     5000    (*)
 *     16    MQIA_MSG_DELIVERY_SEQUENCE MSGDLVSQ  0, 1 (FIFO)      0       (*)
 *     24    MQIA_TRIGGER_CONTROL       TRIGGER   0, 1             0       (+) 2075
 *     26    MQIA_TRIGGER_MSG_PRIORITY  TRIGMPRI  0..9             0       (+) 2077
 *     28    MQIA_TRIGGER_TYPE          TRIGTYPE  0..3             1       (+) 2078
 *     40    MQIA_Q_DEPTH_HIGH_LIMIT    QDEPTHHI  0..100           80      (*)
 *     41    MQIA_Q_DEPTH_LOW_LIMIT     QDEPTHLO  0..100           20      (*)
 *     42    MQIA_Q_DEPTH_MAX_EVENT     QDPMAXEV  0, 1             1       (*)
 *     43    MQIA_Q_DEPTH_HIGH_EVENT    QDPHIEV   0, 1             0       (*)
 *     44    MQIA_Q_DEPTH_LOW_EVENT     QDPLOEV   0, 1             0       (*)
 *     46    MQIA_Q_SERVICE_INTERVAL_EVENT QSVCIEV 0..2            0       (*)
 *     54    MQIA_Q_SERVICE_INTERVAL    QSVCINT   0..999999999 ms  999999999 (*)
 *     57    MQIA_INDEX_TYPE            INDXTYPE  0..5             0       (*)
 *     78    MQIA_NPM_CLASS             NPMCLASS  0, 10 (HIGH)     0       (*)
 *     2039  MQCA_CF_STRUC_NAME         CFSTRUCT  1..48 bytes      none    (*)
 *     of the queue manager
 *     13    MQIA_MAX_MSG_LENGTH        MAXMSGL   32768..104857600 none    MQRC_MAX_MSG_LENGTH_ERROR
 *     33    MQIA_MAX_UNCOMMITTED_MSGS  MAXUMSGS  1..999999999     none    (*)
 *     53    MQIA_PERFORMANCE_EVENT     PERFMEV   0, 1             0       (*)
 *     of structures
 *     70    MQIA_CF_LEVEL              CFLEVEL   1..5             3       (*)
 *     71    MQIA_CF_RECOVER            RECOVER   0, 1             0       (*)
 *
 * (+) MQRC_TRIGGER_CONTROL_ERROR, _MSG_PRIORITY_ERR, _TYPE_ERROR.
 *
 * (*) MQRC_SELECTOR_NOT_FOR_TYPE: the MQI has no reason of its own for these; the text names
 * selector and value. A list that is not well-formed, or a selector of the other kind, is
 * MQRC_SELECTOR_ERROR.
 *
 * Validation. A list may come from a file or from the region: every length in it is checked before
 * it is used, and nothing is allocated by a size in it.
 *
 * Locks: none. Pure functions; nothing here reads or changes the region.
 */
#ifndef PENSTOCK_DEFINITION_H
#define PENSTOCK_DEFINITION_H

#include "format/format.h"

enum { MQX_ATTRS_MAX = 48 * 1024 }; /* bytes of an attribute list at most */

struct mqx_definition {
    struct ps_object_name name;
    const void *attrs;          /* attribute list; may be NULL when attrs_length is 0 */
    uint32_t attrs_length;
};

struct mqx_values { /* of struct mqx_object */
    uint32_t max_depth;
    uint32_t max_length;
    uint8_t def_priority;
    uint8_t def_persistence;
    uint8_t fifo;
    uint8_t put_inhibited;
    uint8_t get_inhibited;
    uint8_t npm_class;
    uint8_t definition_type;
    uint8_t may_persist;
    uint8_t np_life;            /* enum mqx_np_life */
    uint8_t special;            /* enum mqx_special */
    uint8_t trigger_priority;
    uint8_t depth_high;         /* percent of max_depth */
    uint8_t depth_low;
    uint8_t events;             /* enum mqx_performance_event; of the queue manager: PERFMEV */
    uint32_t service_ms;
    uint32_t expiry_cap;        /* tenths of a second, 0: none */
    char structure[MQX_NAME_SIZE]; /* blank padded; blank: none */
};

/* Reads and checks an attribute list. 0 with all of *out filled in, or a reason of the table. */
int mqx_definition_read_values(const struct ps_object_name *name, const void *list, uint32_t length,
                               struct mqx_values *out) MQX_MUST_USE;

/* Checks the name, then reads the values. 2152 when it is not a name, 2043 when a name space other
 * than that of queues defines a local queue. */
int mqx_definition_check(const struct mqx_definition *def, struct mqx_values *out) MQX_MUST_USE;

/* enum mqx_definition_type of the object: anything but a local queue is predefined, whatever
 * DEFTYPE a model queue has for the queues that are made from it. */
uint32_t mqx_definition_type(const struct mqx_definition *def, const struct mqx_values *values);

/* May this call make such an object? 2068 when it is `opened` (MQOPEN of a model queue) and not
 * dynamic, or temporary and not `opened`. */
int mqx_definition_check_type(const struct mqx_definition *def, const struct mqx_values *values,
                              bool opened) MQX_MUST_USE;

#endif
