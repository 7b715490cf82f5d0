# constants.pxd - every number that the binding knows: MQ's reason codes, options, selectors, types,
# lengths and structure offsets, and the limits and sizes of the binding itself.
#
# This is the only file of the binding with numbers of MQ: a call site has a name. Names are those
# of the MQI (MQGMO_WAIT), but for reason codes (RC_ for MQRC_) and offsets of fields in a structure
# (MD_FORMAT: the offset of MQMD.Format). All are compile-time constants: a `cdef enum` costs
# nothing at run time. tests/ext/test_layout.py compares them with penstock.mqi, which is the
# table.

# ---- reason codes that the binding itself gives or looks at ----

cdef enum:
    RC_BACKED_OUT = 2003
    RC_BUFFER_ERROR = 2004
    RC_BUFFER_LENGTH_ERROR = 2005
    RC_CONNECTION_BROKEN = 2009
    RC_ENVIRONMENT_ERROR = 2012
    RC_EXPIRY_ERROR = 2013
    RC_FEEDBACK_ERROR = 2014
    RC_HCONN_ERROR = 2018
    RC_HOBJ_ERROR = 2019
    RC_MD_ERROR = 2026
    RC_MISSING_REPLY_TO_Q = 2027
    RC_MSG_TYPE_ERROR = 2029
    RC_NO_MSG_AVAILABLE = 2033
    RC_NOT_OPEN_FOR_BROWSE = 2036
    RC_NOT_OPEN_FOR_INPUT = 2037
    RC_NOT_OPEN_FOR_OUTPUT = 2039
    RC_OBJECT_CHANGED = 2041
    RC_OBJECT_TYPE_ERROR = 2043
    RC_OPTION_NOT_VALID_FOR_TYPE = 2045
    RC_OPTIONS_ERROR = 2046
    RC_PERSISTENCE_ERROR = 2047
    RC_PRIORITY_ERROR = 2050
    RC_PUT_INHIBITED = 2051
    RC_Q_NOT_EMPTY = 2055
    RC_REPORT_OPTIONS_ERROR = 2061
    RC_STORAGE_NOT_AVAILABLE = 2071
    RC_TRUNCATED_MSG_ACCEPTED = 2079
    RC_TRUNCATED_MSG_FAILED = 2080
    RC_UNKNOWN_OBJECT_NAME = 2085
    RC_WAIT_INTERVAL_ERROR = 2090
    RC_NOT_OPEN_FOR_PASS_ALL = 2093
    RC_NOT_OPEN_FOR_PASS_IDENT = 2094
    RC_NOT_OPEN_FOR_SET_ALL = 2095
    RC_NOT_OPEN_FOR_SET_IDENT = 2096
    RC_CONTEXT_HANDLE_ERROR = 2097
    RC_CONTEXT_NOT_AVAILABLE = 2098
    RC_UNKNOWN_REPORT_OPTION = 2104
    RC_UOW_IN_PROGRESS = 2128
    RC_OBJECT_NAME_ERROR = 2152
    RC_Q_MGR_QUIESCING = 2161
    RC_Q_MGR_STOPPING = 2162
    RC_PMO_ERROR = 2173
    RC_GMO_ERROR = 2186
    RC_UNEXPECTED_ERROR = 2195
    RC_MSG_ID_ERROR = 2206
    RC_CORREL_ID_ERROR = 2207
    RC_CALL_IN_PROGRESS = 2219
    RC_MATCH_OPTIONS_ERROR = 2247
    RC_MDE_ERROR = 2248
    RC_MSG_FLAGS_ERROR = 2249
    RC_MSG_SEQ_NUMBER_ERROR = 2250
    RC_OFFSET_ERROR = 2251
    RC_ORIGINAL_LENGTH_ERROR = 2252
    RC_UOW_NOT_AVAILABLE = 2255
    RC_WRONG_GMO_VERSION = 2256
    RC_WRONG_MD_VERSION = 2257
    RC_GROUP_ID_ERROR = 2258
    RC_XQH_ERROR = 2260
    RC_MSG_TOKEN_ERROR = 2331
    RC_SEGMENTATION_NOT_ALLOWED = 2443
    RC_HMSG_ERROR = 2460

# ---- completion codes ----

cdef enum:
    MQCC_OK = 0
    MQCC_WARNING = 1
    MQCC_FAILED = 2

# ---- lengths of character and byte fields ----

cdef enum:
    MQ_ACCOUNTING_TOKEN_LENGTH = 32
    MQ_APPL_IDENTITY_DATA_LENGTH = 32
    MQ_APPL_ORIGIN_DATA_LENGTH = 4
    MQ_CORREL_ID_LENGTH = 24
    MQ_FORMAT_LENGTH = 8
    MQ_GROUP_ID_LENGTH = 24
    MQ_MSG_ID_LENGTH = 24
    MQ_PUT_APPL_NAME_LENGTH = 28
    MQ_PUT_DATE_LENGTH = 8
    MQ_PUT_TIME_LENGTH = 8
    MQ_Q_MGR_NAME_LENGTH = 48
    MQ_Q_NAME_LENGTH = 48
    MQ_USER_ID_LENGTH = 12
    ID_LENGTH = 24            # MsgId, CorrelId, GroupId
    NAME_LENGTH = 48          # any object
    TWO_NAMES_LENGTH = 96     # a queue and its queue manager, one behind the other
    STRUC_ID_LENGTH = 4
    XID_PART_LENGTH = 64      # of gtrid and bqual, at most
    QM_ID_LENGTH = 16
    BLANK = 32                # what pads character fields

# ---- values of descriptor fields ----

cdef enum:
    MQMT_REQUEST = 1
    MQMT_REPLY = 2
    MQMT_DATAGRAM = 8
    MQPER_NOT_PERSISTENT = 0
    MQPER_PERSISTENT = 1
    MQPER_PERSISTENCE_AS_Q_DEF = 2
    MQPRI_PRIORITY_AS_Q_DEF = -1
    MQEI_UNLIMITED = -1
    MQOL_UNDEFINED = -1
    MQAT_NO_CONTEXT = 0
    MQAT_UNIX = 6
    MQENC_NATIVE = 546
    MQCCSI_Q_MGR = 0
    MQCCSI_APPL = -3
    MQWI_UNLIMITED = -1
    MQCCSI_UTF8 = 1208        # of the queue manager and of all text that the binding writes
    MQ_NUMBER_MAX = 999999999 # the largest value of MsgType, Feedback, Expiry, MsgSeqNumber, Offset
    ZOS_BACKOUT_COUNT_MAX = 255

cdef enum:                    # MQRO_*: report options
    MQRO_PASS_CORREL_ID = 64
    MQRO_PASS_MSG_ID = 128
    MQRO_COA = 0x100
    MQRO_COA_WITH_DATA = 0x300
    MQRO_COA_WITH_FULL_DATA = 0x700
    MQRO_COD = 0x800
    MQRO_COD_WITH_DATA = 0x1800
    MQRO_COD_WITH_FULL_DATA = 0x3800
    MQRO_PASS_DISCARD_AND_EXPIRY = 0x4000
    MQRO_EXPIRATION = 0x200000
    MQRO_EXPIRATION_WITH_DATA = 0x600000
    MQRO_EXPIRATION_WITH_FULL_DATA = 0xE00000
    MQRO_EXCEPTION = 0x1000000
    MQRO_EXCEPTION_WITH_DATA = 0x3000000
    MQRO_EXCEPTION_WITH_FULL_DATA = 0x7000000
    MQRO_DISCARD_MSG = 0x08000000
    MQRO_REJECT_UNSUP_MASK = 0x101C0000
    RO_NEEDS_REPLY_Q = 0x07E03F07   # exception, expiration, COA, COD, PAN, NAN, activity
    RO_KNOWN = 0x0FE03FC7 | 0x4000  # every option that has a name
    RO_XMIT_ONLY = 0x00038000       # unknown bits of MQRO_ACCEPT_UNSUP_IF_XMIT_MASK

cdef enum:                    # MQMF_*: message flags
    MQMF_SEGMENTATION_ALLOWED = 1
    MQMF_SEGMENT = 2
    MQMF_LAST_SEGMENT = 4
    MQMF_MSG_IN_GROUP = 8
    MQMF_LAST_MSG_IN_GROUP = 16
    MF_GROUP = 24             # MSG_IN_GROUP, LAST_MSG_IN_GROUP
    MF_SEGMENT = 6            # SEGMENT, LAST_SEGMENT
    MF_KNOWN = 31

cdef enum:                    # letters in an MQGMO
    MQGS_MSG_IN_GROUP = 71  # G
    MQGS_LAST_MSG_IN_GROUP = 76  # L
    MQSS_SEGMENT = 83  # S
    MQSS_LAST_SEGMENT = 76  # L
    MQSEG_ALLOWED = 65  # A

# ---- options of calls ----

cdef enum:                    # MQOO_*: MQOPEN
    MQOO_INPUT_AS_Q_DEF = 1
    MQOO_INPUT_SHARED = 2
    MQOO_INPUT_EXCLUSIVE = 4
    MQOO_BROWSE = 8
    MQOO_OUTPUT = 16
    MQOO_SAVE_ALL_CONTEXT = 128
    MQOO_PASS_IDENTITY_CONTEXT = 256
    MQOO_PASS_ALL_CONTEXT = 512
    MQOO_SET_IDENTITY_CONTEXT = 1024
    MQOO_SET_ALL_CONTEXT = 2048
    OO_INPUT = 7              # any of INPUT_*
    OO_CORE = 127             # what the core counts handles by: INPUT_* to SET

cdef enum:                    # MQCO_*: MQCLOSE
    MQCO_DELETE = 1
    MQCO_DELETE_PURGE = 2
    MQCO_KEEP_SUB = 4
    MQCO_REMOVE_SUB = 8

cdef enum:                    # MQPMO_*: MQPUT, MQPUT1
    MQPMO_SYNCPOINT = 2
    MQPMO_NO_SYNCPOINT = 4
    MQPMO_NEW_MSG_ID = 64
    MQPMO_NEW_CORREL_ID = 128
    MQPMO_PASS_IDENTITY_CONTEXT = 256
    MQPMO_PASS_ALL_CONTEXT = 512
    MQPMO_SET_IDENTITY_CONTEXT = 1024
    MQPMO_SET_ALL_CONTEXT = 2048
    MQPMO_FAIL_IF_QUIESCING = 8192
    MQPMO_NO_CONTEXT = 16384
    MQPMO_RESOLVE_LOCAL_Q = 262144
    PMO_NEEDS_RIGHT = 0xF00   # the context options that the handle must have been opened for
    PMO_CONTEXTS = 0x4F00     # every option that chooses the context; none of them: the default
    CONTEXT_DEFAULT = 0

cdef enum:                    # MQGMO_*: MQGET
    MQGMO_WAIT = 1
    MQGMO_SYNCPOINT = 2
    MQGMO_NO_SYNCPOINT = 4
    MQGMO_BROWSE_FIRST = 16
    MQGMO_BROWSE_NEXT = 32
    MQGMO_ACCEPT_TRUNCATED_MSG = 64
    MQGMO_MSG_UNDER_CURSOR = 256
    MQGMO_LOCK = 512
    MQGMO_UNLOCK = 1024
    MQGMO_BROWSE_MSG_UNDER_CURSOR = 2048
    MQGMO_SYNCPOINT_IF_PERSISTENT = 4096
    MQGMO_FAIL_IF_QUIESCING = 8192
    GMO_BROWSES = 16 | 32 | 2048
    GMO_CURSOR = 256 | 2048   # the message is the one under the cursor: nothing is matched
    GMO_NEEDS_VERSION_2 = 0x7F8000  # LOGICAL_ORDER to ALL_SEGMENTS_AVAILABLE

cdef enum:                    # MQMO_*: match options
    MQMO_MATCH_MSG_ID = 1
    MQMO_MATCH_CORREL_ID = 2
    MQMO_MATCH_GROUP_ID = 4
    MQMO_MATCH_MSG_SEQ_NUMBER = 8
    MQMO_MATCH_OFFSET = 16
    MQMO_MATCH_MSG_TOKEN = 32
    MO_GROUP = 4 | 8 | 16     # what only an MQMD of version 2 has
    MO_KNOWN = 63

cdef enum:
    MQCNO_HANDLE_SHARE_NO_BLOCK = 128

# ---- objects ----

cdef enum:
    MQQT_LOCAL = 1
    MQQT_MODEL = 2
    MQQT_REMOTE = 6
    MQOT_Q = 1
    MQPL_ZOS = 1
    NAME_SPACE_QUEUES = 1           # queues of every type
    NAME_SPACE_QUEUE_MANAGER = 105  # 100 + MQOT_Q_MGR

cdef enum:                    # MQIA_*: selectors of attributes, and values of some
    MQIA_DEF_INPUT_OPEN_OPTION = 4
    MQIA_USAGE = 12
    MQIA_SHAREABILITY = 23
    MQUS_NORMAL = 0
    MQUS_TRANSMISSION = 1
    MQQA_NOT_SHAREABLE = 0
    MQQA_SHAREABLE = 1

cdef enum:                    # an attribute in a definition (struct ps_attr of FORMAT.md)
    ATTRIBUTE_HEADER = 8
    ATTRIBUTE_KIND_AT = 4
    ATTRIBUTE_SIZE_AT = 6
    ATTRIBUTE_KIND_NUMBER = 1
    ATTRIBUTE_ALIGNMENT = 8
    ATTRIBUTES_TYPICAL = 2048 # bytes of a list, for which a read makes room at first

# ---- offsets in structures ----

cdef enum:                    # of any structure that has a StrucId
    VERSION_AT = 4

cdef enum:                    # MQCHARV: VSPtr, VSOffset, VSBufSize, VSLength, VSCCSID
    CHARV_SIZE = 24
    CHARV_OFFSET_AT = 8
    CHARV_LENGTH_AT = 16
    CHARV_CCSID_AT = 20

cdef enum:                    # MQMD
    MD_VERSION = 4
    MD_REPORT = 8
    MD_MSG_TYPE = 12
    MD_EXPIRY = 16
    MD_FEEDBACK = 20
    MD_ENCODING = 24
    MD_CCSID = 28
    MD_FORMAT = 32
    MD_PRIORITY = 40
    MD_PERSISTENCE = 44
    MD_MSG_ID = 48
    MD_CORREL_ID = 72
    MD_BACKOUT_COUNT = 96
    MD_REPLY_TO_Q = 100
    MD_REPLY_TO_QMGR = 148
    MD_USER_IDENTIFIER = 196
    MD_ACCOUNTING_TOKEN = 208
    MD_APPL_IDENTITY_DATA = 240
    MD_PUT_APPL_TYPE = 272
    MD_PUT_APPL_NAME = 276
    MD_PUT_DATE = 304
    MD_PUT_TIME = 312
    MD_APPL_ORIGIN_DATA = 320
    MD_GROUP_ID = 324         # version 2
    MD_MSG_SEQ_NUMBER = 348
    MD_OFFSET = 352
    MD_MSG_FLAGS = 356
    MD_ORIGINAL_LENGTH = 360
    MD_SIZE_1 = 324
    MD_SIZE_2 = 364

cdef enum:                    # MQMDE; GroupId to OriginalLength are as in an MQMD
    MDE_VERSION = 4
    MDE_LENGTH = 8
    MDE_ENCODING = 12
    MDE_CCSID = 16
    MDE_FORMAT = 20
    MDE_GROUP_ID = 32
    MDE_FLAGS = 28
    MDE_SIZE = 72
    MDE_VERSION_NUMBER = 2
    GROUP_FIELDS = 40         # bytes from GroupId to the end of OriginalLength

cdef enum:                    # MQPMO
    PMO_OPTIONS = 8
    PMO_CONTEXT = 16
    PMO_KNOWN = 20
    PMO_UNKNOWN = 24
    PMO_INVALID = 28
    PMO_RESOLVED = 32
    PMO_ORIGINAL_HANDLE = 160
    PMO_NEW_HANDLE = 168
    PMO_ACTION = 176

cdef enum:                    # MQGMO
    GMO_OPTIONS = 8
    GMO_WAIT_INTERVAL = 12
    GMO_RESOLVED_Q = 24
    GMO_MATCH_OPTIONS = 72
    GMO_GROUP_STATUS = 76
    GMO_SEGMENT_STATUS = 77
    GMO_SEGMENTATION = 78
    GMO_MSG_TOKEN = 80
    GMO_MSG_TOKEN_QUEUE = 88  # its second half: slot and generation of the queue
    GMO_RETURNED_LENGTH = 96

cdef enum:                    # MQOD
    OD_OBJECT_TYPE = 8
    OD_OBJECT_NAME = 12
    OD_OBJECT_QMGR_NAME = 60
    OD_RECS_PRESENT = 168
    OD_KNOWN = 172
    OD_UNKNOWN = 176
    OD_INVALID = 180
    OD_RESOLVED = 248
    OD_OBJECT_STRING_LENGTH = 360
    OD_RESOLVED_TYPE = 416

cdef enum:                    # versions; the newest of each structure that the verbs take
    MQMD_VERSION_1 = 1
    MQMD_VERSION_2 = 2
    MQGMO_VERSION_2 = 2
    MQGMO_VERSION_3 = 3
    MQOD_VERSION_2 = 2
    MQOD_VERSION_3 = 3
    MQOD_VERSION_4 = 4
    MQMD_CURRENT_VERSION = 2
    MQPMO_CURRENT_VERSION = 3
    MQGMO_CURRENT_VERSION = 4
    MQXQH_VERSION_1 = 1

cdef enum:                    # MQXQH
    XQH_REMOTE_Q = 8
    XQH_REMOTE_QMGR = 56
    XQH_MSG_DESC = 104
    XQH_SIZE = 428

# ---- the calendar ----

cdef enum:
    DAY_US = 86400000000
    SECOND_US = 1000000
    HUNDREDTH_US = 10000
    MILLISECOND_US = 1000
    EPOCH_DAY = 719468        # 1970-01-01, in days since 0000-03-01
    CYCLE_DAYS = 146097       # of the 400 years after which the calendar repeats itself

# ---- limits and sizes of the binding ----

cdef enum:
    LONG_COPY = 16384         # a body above this is copied without the GIL
    WAIT_SLICE_US = 1000000   # a wait looks at signals and at close() this often
    MAX_BODY = 104857600      # MQX_MAX_BODY: the largest MAXMSGL
    FIRST_HINT = 256          # expected body size of a handle that has seen none
    HINT_SHIFT = 4            # shorter bodies lower the expectation by 1/16 of the difference
    BODY_SLACK = 64           # a body this much shorter than its block, and by a quarter, is copied
    FORCED_PAUSES = 6000      # x 0.5 ms: how long an exiting interpreter waits for daemon threads

cdef enum:                    # state of a Unit
    UNIT_NEW = 0
    UNIT_OPEN = 1
    UNIT_ENDING = 2           # some thread is inside finish()
    UNIT_COMMITTED = 3
    UNIT_BACKED_OUT = 4

cdef enum:                    # rows that a list of the status has room for
    PROCESS_ROWS = 1024
    UNIT_ROWS = 4096
    HANDLE_ROWS = 65536
    PREPARED_ROWS = 64        # at first; grows

cdef enum:                    # batches
    SHORT_BATCH = 16          # more rows than this are moved without the GIL
    DIRECT_ROWS_MAX = 1048576 # of a put that does not go through NumPy
    GET_ROWS_MAX = 4096       # as many rows as a get makes room for without asking for the depth
    LEAST_ROOM = 65536        # bytes for bodies, as in penstock.batch
    TYPICAL_BODY = 320
    BLOCK_STEP = 16384        # sizes of blocks are rounded up to this
    SPARES = 4
    SPARE_MOST = 1048576      # bytes of a block that is kept
    SPARE_WASTE = 4           # a spare this many times larger than what is wanted is left alone
    CACHE_LINE = 64

cdef enum:                    # columns of an Arrow array (penstock.batch names them)
    ARROW_NULLABLE = 2
    COLUMN_FIXED = 0          # `size` bytes as they are
    COLUMN_BOOL = 1           # a byte: 1 is true
    COLUMN_TEXT = 2           # blank-padded characters
    COLUMN_UNLESS_MINUS_1 = 3 # a 32-bit integer, -1 is null
    COLUMN_UNLESS_0 = 4       # a 64-bit integer, 0 is null
    COLUMN_SECONDS = 5        # a 32-bit integer of tenths, -1 is null; seconds in double precision
    COLUMN_BYTES = 6          # `size` bytes, with offsets as those of any length have
    COLUMN_BYTES_UNLESS_0 = 7 # the same, null where all are 0
    GATHER_ROWS = 64          # rows that stay in a processor's nearest cache
    ARROW_OFFSET_MAX = 0x7FFFFFFF

cdef enum:                    # the journal as a table
    SCAN_FIELDS_MAX = 64
    SCAN_SEGMENTS_MAX = 1024  # in which pieces of one body lie
    SCAN_ROWS_MAX = 268435456
