/*
 * attr_cells.h - attribute lists (struct ps_attr of format.h), and the values in them that C acts
 * on.
 *
 * A list is a sequence of attributes, each a header, `length` value bytes, zeroes to a multiple of
 * 8. Integers: kind 1, length 8, signed. Strings: kind 2, UTF-8, no NUL. A selector occurs once. C
 * reads the selectors below, checks their values, and keeps all the others unread.
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
 *     57    MQIA_INDEX_TYPE            INDXTYPE  0..5             0       (*)
 *     78    MQIA_NPM_CLASS             NPMCLASS  0, 10 (HIGH)     0       (*)
 *     2039  MQCA_CF_STRUC_NAME         CFSTRUCT  1..48 bytes      none    (*)
 *     of the queue manager
 *     13    MQIA_MAX_MSG_LENGTH        MAXMSGL   32768..104857600 none    MQRC_MAX_MSG_LENGTH_ERROR
 *     33    MQIA_MAX_UNCOMMITTED_MSGS  MAXUMSGS  1..999999999     none    (*)
 *     of structures
 *     70    MQIA_CF_LEVEL              CFLEVEL   1..5             3       (*)
 *     71    MQIA_CF_RECOVER            RECOVER   0, 1             0       (*)
 *
 * (*) MQRC_SELECTOR_NOT_FOR_TYPE: the MQI has no reason of its own for these; the text names
 * selector and value. A list that is not well-formed, or a selector of the other kind, is
 * MQRC_SELECTOR_ERROR.
 *
 * Input may come from files: nothing is believed, nothing is allocated.
 */
#ifndef PENSTOCK_ATTRIBUTES_H
#define PENSTOCK_ATTRIBUTES_H

#include "format/format.h"

enum { MQX_ATTRS_MAX = 48 * 1024 };

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
    uint8_t np_life;
    uint8_t group_index;
    char structure[MQX_NAME_SIZE]; /* blank padded; blank: none */
};

int mqx_definition_read_values(const struct ps_object_name *name, const void *list, uint32_t length,
                               struct mqx_values *out) MQX_MUST_USE;

#endif
