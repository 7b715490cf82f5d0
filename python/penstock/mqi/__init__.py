"""The MQI: MQ's structures, constants and verbs under their MQ names, one to one.

Everything is here: ``from penstock import mqi``, then ``mqi.MQMD``, ``mqi.MQOO_OUTPUT``,
``mqi.REASONS[2053]``.

Refused, because what they need is not here; everything else works, or has no effect as in MQ:

2298  message handles: MQCRTMH MQDLTMH MQSETMP MQINQMP MQDLTMP MQBUFMH MQMHBUF; asynchronous
      consumption: MQCB MQCTL; publish/subscribe: MQSUB MQSUBRQ
2012  MQSTAT of MQSTAT_TYPE_RECONNECTION and MQSTAT_TYPE_RECONNECTION_ERROR
2043  MQOPEN of an MQOT_TOPIC
2045  MQCLOSE with MQCO_KEEP_SUB, MQCO_REMOVE_SUB
2046  MQPUT with MQPMO_LOGICAL_ORDER MQPMO_MD_FOR_OUTPUT_ONLY MQPMO_RETAIN MQPMO_SCOPE_QMGR
      MQPMO_SUPPRESS_REPLYTO MQPMO_NOT_OWN_SUBS MQPMO_WARN_IF_NO_SUBS_MATCHED, as in MQ with
      MQPMO_ALTERNATE_USER_AUTHORITY
2046  MQGET with MQGMO_SET_SIGNAL MQGMO_MARK_SKIP_BACKOUT MQGMO_LOGICAL_ORDER MQGMO_COMPLETE_MSG
      MQGMO_ALL_MSGS_AVAILABLE MQGMO_ALL_SEGMENTS_AVAILABLE MQGMO_MARK_BROWSE_HANDLE
      MQGMO_MARK_BROWSE_CO_OP MQGMO_UNMARK_BROWSE_CO_OP MQGMO_UNMARK_BROWSE_HANDLE
      MQGMO_UNMARKED_BROWSE_MSG MQGMO_BROWSE_HANDLE MQGMO_BROWSE_CO_OP MQGMO_PROPERTIES_IN_HANDLE
2046  MQCONNX with MQCNO_CLIENT_BINDING MQCNO_RECONNECT MQCNO_RECONNECT_Q_MGR
      MQCNO_CD_FOR_OUTPUT_ONLY MQCNO_USE_CD_SELECTION MQCNO_GENERATE_CONN_TAG
      MQCNO_SERIALIZE_CONN_TAG_Q_MGR MQCNO_SERIALIZE_CONN_TAG_QSG MQCNO_RESTRICT_CONN_TAG_Q_MGR
      MQCNO_RESTRICT_CONN_TAG_QSG
2046  MQXCNVC with MQDCC_INT_DEFAULT_CONVERSION
2443  messages with MQMF_SEGMENT, MQMF_LAST_SEGMENT
2551  MQOD.SelectionString (2459 when it is none)
2460  MQPMO.OriginalMsgHandle, MQPMO.NewMsgHandle, MQGMO.MsgHandle; 2173 MQPMO.Action
"""

from __future__ import annotations

from . import conversion as conversion  # registers the conversion of MQGET
from . import lists as lists  # registers MQPUT and MQCLOSE of distribution lists
from . import properties as properties  # registers what MQGMO_NO_PROPERTIES takes away
from .absent import *
from .characters import MQXCNVC as MQXCNVC
from .constants import *
from .inquiry import MQINQ as MQINQ
from .inquiry import MQSET as MQSET
from .reasons import REASONS as REASONS
from .reasons import Reason as Reason
from .reasons import reason_name as reason_name
from .status import MQSTAT as MQSTAT
from .structures import *
from .verbs import *
