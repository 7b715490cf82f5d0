"""Attributes of channels, each with the types of channel that have it (CHLTYPE).

Sources: the table "DEFINE and ALTER CHANNEL parameters" of "DEFINE CHANNEL (define a new channel)",
and "DISPLAY CHANNEL (display channel definition)".
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import MAX_MESSAGE_LENGTH, NAME_LENGTH
from .attribute import YES_NO, Attribute
from .common_rows import AS_MANAGER, MOST, OWN_LEVELS, altered

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

CHANNEL_TYPES: Mapping[str, int] = {
    "SDR": 1, "SVR": 2, "RCVR": 3, "RQSTR": 4, "CLNTCONN": 6, "SVRCONN": 7, "CLUSRCVR": 8,
    "CLUSSDR": 9, "AMQP": 11,
}  # fmt: skip
_SENDING = ("SDR", "SVR", "CLUSSDR", "CLUSRCVR")
_CLUSTER = ("CLUSSDR", "CLUSRCVR")
_STARTED = ("SDR", "SVR", "RQSTR", "CLUSSDR", "CLUSRCVR")
_CALLING = (*_STARTED, "CLNTCONN")
_RECEIVING = ("RCVR", "RQSTR", "CLUSRCVR")
_MESSAGE = ("SDR", "SVR", "RCVR", "RQSTR", "CLUSSDR", "CLUSRCVR")
_CLASSIC = (*_MESSAGE, "SVRCONN", "CLNTCONN")  # all but AMQP
_AT_MANAGER = (*_MESSAGE, "SVRCONN")
_LOGON = ("SDR", "SVR", "RQSTR", "CLUSSDR", "CLNTCONN")  # to an LU 6.2 partner
_TLS_SERVER = ("SVR", "RCVR", "RQSTR", "SVRCONN", "CLUSRCVR", "AMQP")
_EXITS = 16  # of one kind at a channel
_HEADERS = ("NONE", "SYSTEM")
_BODIES = ("NONE", "RLE", "ZLIBFAST", "ZLIBHIGH", "LZ4FAST", "LZ4HIGH", "ANY")


def _channel(keyword: str, selector: int, help: str, default: Stored = 0, **more: Any) -> Attribute:
    """An attribute of channels: MQINQ does not know it."""
    return Attribute(keyword, selector, help, default, inquirable=False, **more)


def _text(keyword: str, selector: int, help: str, length: int, **more: Any) -> Attribute:
    """A text of a channel, blank by default."""
    return _channel(keyword, selector, help, "", length=length, **more)


CHANNEL = [
    _channel("CHLTYPE", mq.MQIACH_CHANNEL_TYPE, "Type of channel", 1, words=CHANNEL_TYPES,
             fixed=True, always=True),
    _text("DESCR", mq.MQCACH_DESC, "Text about the channel", 64),
    _channel("TRPTYPE", mq.MQIACH_XMIT_PROTOCOL_TYPE, "Transport", 2,
             words={"LU62": 1, "TCP": 2, "NETBIOS": 3, "SPX": 4}, kinds=_CLASSIC),
    _text("CONNAME", mq.MQCACH_CONNECTION_NAME,
          "Where the partner is: host(port), more after commas", 264, kinds=_CALLING),
    _text("LOCLADDR", mq.MQCACH_LOCAL_ADDRESS, "Local address", 48, kinds=(*_CALLING, "AMQP")),
    _text("XMITQ", mq.MQCACH_XMIT_Q_NAME, "Transmission queue that the channel empties",
          NAME_LENGTH, name=True, kinds=("SDR", "SVR")),
    _text("QMNAME", mq.MQCA_Q_MGR_NAME, "Queue manager that a client asks for", NAME_LENGTH,
          kinds=("CLNTCONN",)),
    _text("CLUSTER", mq.MQCA_CLUSTER_NAME, "Cluster of the channel", NAME_LENGTH, name=True,
          kinds=_CLUSTER),
    _text("CLUSNL", mq.MQCA_CLUSTER_NAMELIST, "Namelist of the channel's clusters", NAME_LENGTH,
          name=True, kinds=_CLUSTER),
    _text("MODENAME", mq.MQCACH_MODE_NAME, "Mode of LU 6.2", 8, kinds=_CALLING),
    _text("TPNAME", mq.MQCACH_TP_NAME, "Transaction program of LU 6.2", 64, kinds=_CALLING),
    _text("USERID", mq.MQCACH_USER_ID, "User for the partner of LU 6.2", 12, kinds=_LOGON),
    _text("PASSWORD", mq.MQCACH_PASSWORD, "Password for the partner of LU 6.2", 12, secret=True,
          kinds=_LOGON),
    _channel("BATCHSZ", mq.MQIACH_BATCH_SIZE, "Most messages in a batch", 50, low=1, high=9999,
             kinds=_MESSAGE),
    _channel("BATCHINT", mq.MQIACH_BATCH_INTERVAL, "Milliseconds that a batch is kept open",
             high=MOST, kinds=_SENDING),
    _channel("BATCHLIM", mq.MQIACH_BATCH_DATA_LIMIT, "Most kilobytes in a batch; 0: no limit", 5000,
             high=999999, kinds=_SENDING),
    _channel("BATCHHB", mq.MQIACH_BATCH_HB,
             "Milliseconds before a batch's partner is asked for life", high=999999,
             kinds=_SENDING),
    _channel("DISCINT", mq.MQIACH_DISC_INTERVAL,
             "Seconds without messages before the channel ends; 0: never", 6000, high=999999,
             kinds=(*_SENDING, "SVRCONN"), kind_defaults={"SVRCONN": 0}),
    _channel("HBINT", mq.MQIACH_HB_INTERVAL, "Seconds between heartbeats", 300, high=999999,
             kinds=_CLASSIC),
    _channel("KAINT", mq.MQIACH_KEEP_ALIVE_INTERVAL, "Seconds between keep-alives of the transport",
             -1, high=99999, words={"AUTO": -1}, kinds=_CLASSIC),
    _channel("AMQPKA", mq.MQIACH_AMQP_KEEP_ALIVE, "Seconds between keep-alives of an AMQP client",
             -1, high=99999, words={"AUTO": -1}, kinds=("AMQP",)),
    _channel("SHORTRTY", mq.MQIACH_SHORT_RETRY, "Short retries", 10, high=MOST, kinds=_SENDING),
    _channel("SHORTTMR", mq.MQIACH_SHORT_TIMER, "Seconds between short retries", 60, high=MOST,
             kinds=_SENDING),
    _channel("LONGRTY", mq.MQIACH_LONG_RETRY, "Long retries", MOST, high=MOST, kinds=_SENDING),
    _channel("LONGTMR", mq.MQIACH_LONG_TIMER, "Seconds between long retries", 1200, high=MOST,
             kinds=_SENDING),
    _channel("SEQWRAP", mq.MQIACH_SEQUENCE_NUMBER_WRAP, "Sequence number after which 1 follows",
             MOST, low=100, high=MOST, kinds=_MESSAGE),
    _channel("NPMSPEED", mq.MQIACH_NPM_SPEED,
             "Whether non-persistent messages go outside the batch", 2,
             words={"NORMAL": 1, "FAST": 2}, kinds=_MESSAGE),
    _channel("MRRTY", mq.MQIACH_MR_COUNT, "Retries of a put that failed", 10, high=MOST,
             kinds=_RECEIVING),
    _channel("MRTMR", mq.MQIACH_MR_INTERVAL, "Milliseconds between these retries", 1000, high=MOST,
             kinds=_RECEIVING),
    _text("MREXIT", mq.MQCACH_MR_EXIT_NAME, "Exit that decides about these retries", 128,
          kinds=_RECEIVING),
    _text("MRDATA", mq.MQCACH_MR_EXIT_USER_DATA, "Data for that exit", 32, kinds=_RECEIVING),
    _text("MSGEXIT", mq.MQCACH_MSG_EXIT_NAME, "Message exits", 128, many=_EXITS, kinds=_MESSAGE),
    _text("MSGDATA", mq.MQCACH_MSG_EXIT_USER_DATA, "Data for the message exits", 32, many=_EXITS,
          kinds=_MESSAGE),
    _text("SENDEXIT", mq.MQCACH_SEND_EXIT_NAME, "Send exits", 128, many=_EXITS, kinds=_CLASSIC),
    _text("SENDDATA", mq.MQCACH_SEND_EXIT_USER_DATA, "Data for the send exits", 32, many=_EXITS,
          kinds=_CLASSIC),
    _text("RCVEXIT", mq.MQCACH_RCV_EXIT_NAME, "Receive exits", 128, many=_EXITS, kinds=_CLASSIC),
    _text("RCVDATA", mq.MQCACH_RCV_EXIT_USER_DATA, "Data for the receive exits", 32, many=_EXITS,
          kinds=_CLASSIC),
    _text("SCYEXIT", mq.MQCACH_SEC_EXIT_NAME, "Security exit", 128, kinds=_CLASSIC),
    _text("SCYDATA", mq.MQCACH_SEC_EXIT_USER_DATA, "Data for the security exit", 32,
          kinds=_CLASSIC),
    _channel("MAXMSGL", mq.MQIACH_MAX_MSG_LENGTH, "Longest message, in bytes", 4194304,
             high=MAX_MESSAGE_LENGTH),
    _channel("CLWLRANK", mq.MQIACH_CLWL_CHANNEL_RANK, "Rank in workload balancing", high=9,
             kinds=_CLUSTER),
    _channel("CLWLPRTY", mq.MQIACH_CLWL_CHANNEL_PRIORITY, "Priority in workload balancing", high=9,
             kinds=_CLUSTER),
    _channel("CLWLWGHT", mq.MQIACH_CLWL_CHANNEL_WEIGHT, "Weight in workload balancing", 50, low=1,
             high=99, kinds=_CLUSTER),
    _channel("NETPRTY", mq.MQIACH_NETWORK_PRIORITY, "Priority of the network connection", high=9,
             kinds=("CLUSRCVR",)),
    _channel("PUTAUT", mq.MQIACH_PUT_AUTHORITY,
             "Whose authority puts need: the channel's or the context's", 1,
             words={"DEF": 1, "CTX": 2, "ONLYMCA": 3, "ALTMCA": 4},
             zos_words=("ONLYMCA", "ALTMCA"), kinds=_RECEIVING),
    _channel("CONVERT", mq.MQIACH_DATA_CONVERSION, "Whether the sender converts the data",
             words=YES_NO, kinds=_SENDING),
    _text("MCANAME", mq.MQCACH_MCA_NAME, "Name of the channel's program", 20, kinds=_STARTED),
    _channel("MCATYPE", mq.MQIACH_MCA_TYPE, "How the channel's program runs", 1,
             words={"PROCESS": 1, "THREAD": 2}, kinds=_STARTED,
             kind_defaults={"CLUSSDR": 2, "CLUSRCVR": 2}),
    _text("MCAUSER", mq.MQCACH_MCA_USER_ID, "User of the channel's program", 64,
          kinds=(*_AT_MANAGER, "AMQP")),
    _channel("USEDLQ", mq.MQIA_USE_DEAD_LETTER_Q, "Whether undeliverable messages are dead letters",
             2, words={"NO": 1, "YES": 2}, kinds=_MESSAGE),
    _channel("PROPCTL", mq.MQIA_PROPERTY_CONTROL, "How message properties are sent",
             words={"COMPAT": 0, "NONE": 1, "ALL": 2}, kinds=_SENDING),
    _channel("COMPHDR", mq.MQIACH_HDR_COMPRESSION, "Compressions of headers, in order of choice",
             "NONE", length=6, many=len(_HEADERS), choices=_HEADERS, kinds=_CLASSIC),
    _channel("COMPMSG", mq.MQIACH_MSG_COMPRESSION, "Compressions of messages, in order of choice",
             "NONE", length=8, many=len(_BODIES), choices=_BODIES, kinds=_CLASSIC),
    _text("CERTLABL", mq.MQCA_CERT_LABEL, "Certificate of the channel", 64,
          kinds=("SDR", "SVR", "RCVR", "RQSTR", "SVRCONN", "CLNTCONN", "CLUSRCVR", "AMQP")),
    _channel("SSLCAUTH", mq.MQIACH_SSL_CLIENT_AUTH, "Whether a TLS client needs a certificate",
             words={"REQUIRED": 0, "OPTIONAL": 1}, kinds=_TLS_SERVER),
    _text("SSLCIPH", mq.MQCACH_SSL_CIPHER_SPEC, "CipherSpec", 32),
    _text("SSLPEER", mq.MQCACH_SSL_PEER_NAME, "Distinguished name that the partner must have",
          1024),
    _channel("SPLPROT", mq.MQIACH_SPL_PROTECTION, "Treatment of protected messages",
             words={"PASSTHRU": 0, "REMOVE": 1, "ASPOLICY": 2}, kinds=_MESSAGE, platform="zos"),
    _channel("DEFCDISP", mq.MQIACH_DEF_CHANNEL_DISP, "Disposition of the channel when started", 4,
             words={"SHARED": 2, "PRIVATE": 4, "FIXSHARED": 5}, kinds=_AT_MANAGER, platform="zos"),
    _channel("MONCHL", mq.MQIA_MONITORING_CHANNEL,
             "How often online monitoring data is collected", AS_MANAGER, words=OWN_LEVELS,
             kinds=_AT_MANAGER),
    _channel("STATCHL", mq.MQIA_STATISTICS_CHANNEL, "How often statistics data is collected",
             AS_MANAGER, words=OWN_LEVELS, kinds=_MESSAGE),
    _channel("MAXINST", mq.MQIACH_MAX_INSTANCES, "Most instances", MOST, high=MOST,
             kinds=("SVRCONN", "AMQP")),
    _channel("MAXINSTC", mq.MQIACH_MAX_INSTS_PER_CLIENT, "Most instances of one client", MOST,
             high=MOST, kinds=("SVRCONN",)),
    _channel("SHARECNV", mq.MQIACH_SHARING_CONVERSATIONS, "Most conversations of one instance", 10,
             high=MOST, kinds=("SVRCONN", "CLNTCONN")),
    _channel("AFFINITY", mq.MQIACH_CONNECTION_AFFINITY, "Whether a client keeps its choice", 1,
             words={"NONE": 0, "PREFERRED": 1}, kinds=("CLNTCONN",)),
    _channel("CLNTWGHT", mq.MQIACH_CLIENT_CHANNEL_WEIGHT, "Weight among definitions for clients",
             high=99, kinds=("CLNTCONN",)),
    _channel("DEFRECON", mq.MQIACH_DEF_RECONNECT, "Whether clients reconnect by themselves",
             words={"NO": 0, "YES": 1, "QMGR": 2, "DISABLED": 3}, kinds=("CLNTCONN",)),
    _channel("PORT", mq.MQIACH_PORT_NUMBER, "Port that AMQP clients call", 5672, high=65535,
             kinds=("AMQP",)),
    _channel("USECLTID", mq.MQIACH_USE_CLIENT_ID, "Whether the client identifier is the user",
             words=YES_NO, kinds=("AMQP",)),
    _channel("TPROOT", mq.MQCACH_TOPIC_ROOT, "Root of the topics of AMQP clients",
             "SYSTEM.BASE.TOPIC", length=10240, kinds=("AMQP",)),
    _channel("TMPMODEL", mq.MQCACH_TEMPORARY_MODEL_Q, "Model of temporary queues of AMQP clients",
             "SYSTEM.DEFAULT.MODEL.QUEUE", length=NAME_LENGTH, name=True, kinds=("AMQP",)),
    _channel("TMPQPRFX", mq.MQCACH_TEMPORARY_Q_PREFIX, "Prefix of names of these queues", "AMQP.*",
             length=32, kinds=("AMQP",)),
    *altered(),
]  # fmt: skip
