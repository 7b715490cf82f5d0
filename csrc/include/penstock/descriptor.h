/*
 * descriptor.h - the structs that the public interface and the files of a queue manager share: the
 * message descriptor, names of objects, attribute lists, xids.
 *
 * All of them are little-endian and of fixed width, without holes. They are stored as they are, so
 * a change of one is a change of the format (format/format.h, FORMAT.md). Bytes called "zero" are
 * written as zero and checked. Character fields are blank padded as in MQMD.
 */
#ifndef PENSTOCK_DESCRIPTOR_H
#define PENSTOCK_DESCRIPTOR_H

#include "base/base.h"

/* The message descriptor as stored: MQMD without what is computed. In records, in the checkpoint's
 * image and in the region's message blocks. */
struct ps_descriptor {
    uint8_t msg_id[24];           /*   0..23 */
    uint8_t correl_id[24];        /*  24..47 */
    uint64_t put_time_us;         /*  48..55  microseconds since 1970 UTC */
    uint64_t expiry_us;           /*  56..63  wall clock at which it expires; 0 = unlimited */
    int32_t priority;             /*  64..67  the field as given (resolved when -1 was given) */
    int32_t report;               /*  68..71 */
    int32_t msg_type;             /*  72..75 */
    int32_t feedback;             /*  76..79 */
    int32_t encoding;             /*  80..83 */
    int32_t ccsid;                /*  84..87 */
    char format[8];               /*  88..95 */
    int32_t put_appl_type;        /*  96..99 */
    char user_identifier[12];     /* 100..111 */
    char put_appl_name[28];       /* 112..139 */
    char appl_origin_data[4];     /* 140..143 */
    uint8_t accounting_token[32]; /* 144..175 */
    uint8_t persistence;          /* 176      0 or 1; 0 in the journal: of a queue in a structure */
    uint8_t placement;            /* 177      placement priority 0..9, fixed at arrival */
    uint8_t has_ext;              /* 178      1: a ps_descriptor_ext follows */
    uint8_t md_version;           /* 179      1 or 2 as put */
    uint32_t backout_count;       /* 180..183 0 in a PUT record; in an image the count */
    uint64_t due_us;              /* 184..191 wall clock before which no get finds it; 0: none */
};
MQX_STATIC_ASSERT(sizeof(struct ps_descriptor) == 192, "descriptor");

struct ps_descriptor_ext {
    char reply_to_q[48];          /*   0..47 */
    char reply_to_qmgr[48];       /*  48..95 */
    char appl_identity_data[32];  /*  96..127 */
    uint8_t group_id[24];         /* 128..151 */
    int32_t msg_seq_number;       /* 152..155 */
    int32_t offset;               /* 156..159 */
    int32_t msg_flags;            /* 160..163 */
    int32_t original_length;      /* 164..167 */
    uint64_t zero[3];             /* 168..191 */
};
MQX_STATIC_ASSERT(sizeof(struct ps_descriptor_ext) == 192, "descriptor extension");
struct ps_object_name {
    uint32_t name_space;      /* 1 queues of every type; 100 + MQOT_* */
    uint32_t type;            /* MQQT_* (1 local, 2 model, 3 alias, 6 remote, 7 cluster), MQOT_* */
    char name[48];            /* blank padded */
    uint64_t instance;        /* 0; tells the definitions of one cluster queue apart */
};
MQX_STATIC_ASSERT(sizeof(struct ps_object_name) == 64, "object name");

/* An attribute list is a sequence of these, each followed by `length` bytes padded to 8 with zero.
 * Integers: kind 1, length 8, a signed 64-bit value. Strings: kind 2, UTF-8. Unknown selectors are
 * kept. */
struct ps_attr {
    int32_t selector;         /* MQIA_* or MQCA_* */
    uint16_t kind;
    uint16_t length;
};
MQX_STATIC_ASSERT(sizeof(struct ps_attr) == 8, "attribute");

struct ps_xid { /* names a prepared unit; bytes beyond the lengths are zero */
    int32_t format_id;
    uint16_t gtrid_length;    /* 1..64 */
    uint16_t bqual_length;    /* <= 64 */
    uint8_t gtrid[64];
    uint8_t bqual[64];
};
MQX_STATIC_ASSERT(sizeof(struct ps_xid) == 136, "xid");

#endif
