"""Attributes of objects that this release only keeps: listeners, services, authentication
information, communication information, subscriptions, and the records of authorities and of channel
authentication.

Sources: "DEFINE LISTENER", "DEFINE SERVICE", "DEFINE AUTHINFO", "DEFINE COMMINFO", "DEFINE SUB",
"SET AUTHREC", "SET CHLAUTH" of the MQSC commands.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from ..constants import NAME_LENGTH, ReasonCode
from .attribute import EVENT, YES_NO, Attribute
from .common_rows import CONTROL, MOST, altered

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .attribute import Stored

_LONG = 10240  # bytes of a topic string, a selector, the data or the name of a subscription
_NAME = 1024  # bytes of a distinguished name
_USER = 64  # bytes of a user identifier
_SECOND = 1000  # milliseconds
_PORT = {"high": 65535}


def _row(keyword: str, selector: int, help: str, default: Stored = 0, **more: Any) -> Attribute:
    """An attribute that MQINQ does not know."""
    return Attribute(keyword, selector, help, default, inquirable=False, **more)


def _text(keyword: str, selector: int, help: str, length: int, **more: Any) -> Attribute:
    """A text, blank by default."""
    return _row(keyword, selector, help, "", length=length, **more)


LISTENER = [
    _text("DESCR", mq.MQCACH_LISTENER_DESC, "Text about the listener", 64),
    _row("TRPTYPE", mq.MQIACH_XMIT_PROTOCOL_TYPE, "Transport", 2,
         words={"LU62": 1, "TCP": 2, "NETBIOS": 3, "SPX": 4}, fixed=True),
    _row("CONTROL", mq.MQIACH_LISTENER_CONTROL, "Who starts and stops it", CONTROL["MANUAL"],
         words=CONTROL),
    _row("PORT", mq.MQIACH_PORT, "Port of TCP", **_PORT),
    _text("IPADDR", mq.MQCACH_IP_ADDRESS, "Address of TCP; blank: all", 48),
    _row("BACKLOG", mq.MQIACH_BACKLOG, "Most waiting connections; 0: as the transport has it",
         high=MOST),
    _row("ADAPTER", mq.MQIACH_ADAPTER, "Adapter of NetBIOS", high=MOST),
    _row("COMMANDS", mq.MQIACH_COMMAND_COUNT, "Commands of NetBIOS", high=MOST),
    _row("NTBNAMES", mq.MQIACH_NAME_COUNT, "Names of NetBIOS", high=MOST),
    _row("SESSIONS", mq.MQIACH_SESSION_COUNT, "Sessions of NetBIOS", high=MOST),
    _text("LOCLNAME", mq.MQCACH_LOCAL_NAME, "Local name of NetBIOS", NAME_LENGTH),
    _row("SOCKET", mq.MQIACH_SOCKET, "Socket of SPX", high=65535),
    _text("TPNAME", mq.MQCACH_TP_NAME, "Transaction program of LU 6.2", 64),
    *altered(),
]  # fmt: skip

SERVICE = [
    _text("DESCR", mq.MQCA_SERVICE_DESC, "Text about the service", 64),
    _row("CONTROL", mq.MQIA_SERVICE_CONTROL, "Who starts and stops it", CONTROL["MANUAL"],
         words=CONTROL),
    _row("SERVTYPE", mq.MQIA_SERVICE_TYPE, "Whether it runs on, and only once",
         words={"COMMAND": 0, "SERVER": 1}),
    _text("STARTCMD", mq.MQCA_SERVICE_START_COMMAND, "Program that starts it", 255),
    _text("STARTARG", mq.MQCA_SERVICE_START_ARGS, "Arguments of that program", 255),
    _text("STOPCMD", mq.MQCA_SERVICE_STOP_COMMAND, "Program that stops it", 255),
    _text("STOPARG", mq.MQCA_SERVICE_STOP_ARGS, "Arguments of that program", 255),
    _text("STDOUT", mq.MQCA_STDOUT_DESTINATION, "File for its output", 255),
    _text("STDERR", mq.MQCA_STDERR_DESTINATION, "File for its errors", 255),
    *altered(),
]  # fmt: skip

# ---- authentication information ----

_LDAP = ("IDPWLDAP",)
_PASSWORDS = ("IDPWOS", "IDPWLDAP")
_CHECKS: Mapping[str, int] = {"OPTIONAL": 0, "NONE": 1, "REQDADM": 2, "REQUIRED": 3}


def _field(keyword: str, selector: int, help: str, length: int = 128) -> Attribute:
    """A class, a field or a base of an LDAP server with users."""
    return _text(keyword, selector, help, length, kinds=_LDAP)


AUTHINFO = [
    _row("AUTHTYPE", mq.MQIA_AUTH_INFO_TYPE, "What authenticates", 1,
         words={"CRLLDAP": 1, "OCSP": 2, "IDPWOS": 3, "IDPWLDAP": 4}, fixed=True, always=True),
    _text("DESCR", mq.MQCA_AUTH_INFO_DESC, "Text about the authentication information", 64),
    _text("CONNAME", mq.MQCA_AUTH_INFO_CONN_NAME, "Where the LDAP server is: host(port)", 264,
          kinds=("CRLLDAP", "IDPWLDAP")),
    _text("LDAPUSER", mq.MQCA_LDAP_USER_NAME, "Distinguished name for the LDAP server", _NAME,
          kinds=("CRLLDAP", "IDPWLDAP")),
    _text("LDAPPWD", mq.MQCA_LDAP_PASSWORD, "Password for the LDAP server", 32, secret=True,
          kinds=("CRLLDAP", "IDPWLDAP")),
    _text("OCSPURL", mq.MQCA_AUTH_INFO_OCSP_URL, "Responder of OCSP", 256, kinds=("OCSP",)),
    _row("CHCKLOCL", mq.MQIA_CHECK_LOCAL_BINDING, "Which local programs need a password",
         words=_CHECKS, kinds=_PASSWORDS),
    _row("CHCKCLNT", mq.MQIA_CHECK_CLIENT_BINDING, "Which clients need a password", 2,
         words=_CHECKS, kinds=_PASSWORDS),
    _row("FAILDLAY", mq.MQIA_AUTHENTICATION_FAIL_DELAY, "Seconds before a refusal", 1, high=60,
         kinds=_PASSWORDS),
    _row("ADOPTCTX", mq.MQIA_ADOPT_CONTEXT, "Whether the user of the password is the context",
         words=YES_NO, kinds=_PASSWORDS),
    _row("AUTHENMD", mq.MQIA_AUTHENTICATION_METHOD, "How the system checks a password",
         words={"OS": 0, "PAM": 1}, kinds=("IDPWOS",)),
    _row("AUTHORMD", mq.MQIA_LDAP_AUTHORMD, "Where groups are",
         words={"OS": 0, "SEARCHGRP": 1, "SEARCHUSR": 2, "SRCHGRPSN": 3}, kinds=_LDAP),
    _row("NESTGRP", mq.MQIA_LDAP_NESTGRP, "Whether groups are in groups", words=YES_NO,
         kinds=_LDAP),
    _row("SECCOMM", mq.MQIA_LDAP_SECURE_COMM, "Whether the LDAP server is called by TLS",
         words={"NO": 0, "YES": 1, "ANON": 2}, kinds=_LDAP),
    _field("BASEDNU", mq.MQCA_LDAP_BASE_DN_USERS, "Base of users", _NAME),
    _field("BASEDNG", mq.MQCA_LDAP_BASE_DN_GROUPS, "Base of groups", _NAME),
    _field("CLASSUSR", mq.MQCA_LDAP_USER_OBJECT_CLASS, "Class of users"),
    _field("CLASSGRP", mq.MQCA_LDAP_GROUP_OBJECT_CLASS, "Class of groups"),
    _field("FINDGRP", mq.MQCA_LDAP_FIND_GROUP_FIELD, "Field that says who is in a group"),
    _field("GRPFIELD", mq.MQCA_LDAP_GROUP_ATTR_FIELD, "Field with the name of a group"),
    _field("SHORTUSR", mq.MQCA_LDAP_SHORT_USER_FIELD, "Field with the short name of a user"),
    _field("USRFIELD", mq.MQCA_LDAP_USER_ATTR_FIELD, "Field that a user's name is taken for"),
    *altered(),
]  # fmt: skip

# ---- communication information ----

COMMINFO = [
    _text("DESCR", mq.MQCA_COMM_INFO_DESC, "Text about the communication information", 64),
    _text("GRPADDR", mq.MQCACH_GROUP_ADDRESS, "Address of the multicast group", 264),
    _row("PORT", mq.MQIACH_PORT, "Port", 1414, **_PORT),
    _row("BRIDGE", mq.MQIA_MCAST_BRIDGE, "Whether other publications come too", 1, words=EVENT),
    _row("CCSID", mq.MQIA_CODED_CHAR_SET_ID, "Coded character set", -4, low=1, high=65535,
         words={"ASPUB": -4}),
    _row("ENCODING", mq.MQIACF_ENCODING, "Encoding", -1, high=MOST, words={
        "ASPUB": -1, "NORMAL": 546, "REVERSED": 273, "S390": 785, "TNS": 1041}),
    _row("COMMEV", mq.MQIA_COMM_EVENT, "Events of multicast",
         words={"DISABLED": 0, "ENABLED": 1, "EXCEPTION": 2}),
    _row("MCPROP", mq.MQIACH_MULTICAST_PROPERTIES, "Which properties are sent", -1,
         words={"ALL": -1, "REPLY": 0, "USER": 1, "NONE": 2, "COMPAT": 3}),
    _row("MCHBINT", mq.MQIACH_MC_HB_INTERVAL, "Milliseconds between heartbeats", 2 * _SECOND,
         high=999999),
    _row("MONINT", mq.MQIA_MONITOR_INTERVAL, "Seconds between reports", 60, high=999999),
    _row("MSGHIST", mq.MQIACH_MSG_HISTORY, "Kilobytes of messages for retransmission", 100,
         high=MOST),
    _row("NSUBHIST", mq.MQIACH_NEW_SUBSCRIBER_HISTORY, "What a new subscriber gets of these",
         words={"ALL": -1, "NONE": 0}),
    *altered(),
]  # fmt: skip

# ---- subscriptions ----

SUB = [
    _text("TOPICSTR", mq.MQCA_TOPIC_STRING, "The topic string, behind that of TOPICOBJ", _LONG,
          fixed=True),
    _text("TOPICOBJ", mq.MQCA_TOPIC_NAME, "Topic object", NAME_LENGTH, name=True, fixed=True),
    _row("DESTCLAS", mq.MQIACF_DESTINATION_CLASS, "Whose the queue is", 2,
         words={"MANAGED": 1, "PROVIDED": 2}, fixed=True),
    _text("DEST", mq.MQCACF_DESTINATION, "Queue for publications", NAME_LENGTH, name=True),
    _text("DESTQMGR", mq.MQCACF_DESTINATION_Q_MGR, "Its queue manager", NAME_LENGTH, name=True),
    _text("DESTCORL", mq.MQBACF_DESTINATION_CORREL_ID, "CorrelId of publications", 48,
          hexadecimal=True),
    _row("EXPIRY", mq.MQIACF_EXPIRY, "Tenths of a second after which it ends", -1, high=MOST,
         words={"UNLIMITED": -1}),
    _row("PSPROP", mq.MQIACF_PUBSUB_PROPERTIES, "Where properties of publish/subscribe are", 3,
         words={"NONE": 0, "COMPAT": 1, "RFH2": 2, "MSGPROP": 3}),
    _text("PUBACCT", mq.MQBACF_ACCOUNTING_TOKEN, "Accounting token of publications", 64,
          hexadecimal=True),
    _text("PUBAPPID", mq.MQCACF_APPL_IDENTITY_DATA, "Identity data of publications", 32),
    _row("PUBPRTY", mq.MQIACF_PUB_PRIORITY, "Priority of publications", -3, high=9,
         words={"ASPUB": -3, "ASQDEF": -1}, reason=ReasonCode.PRIORITY_ERROR),
    _row("REQONLY", mq.MQIACF_REQUEST_ONLY, "Whether publications come on request only",
         words=YES_NO),
    _text("SELECTOR", mq.MQCACF_SUB_SELECTOR, "Which publications", _LONG, fixed=True),
    _row("SUBLEVEL", mq.MQIACF_SUB_LEVEL, "Level of interception", 1, high=9, fixed=True),
    _row("SUBSCOPE", mq.MQIACF_SUBSCRIPTION_SCOPE, "Whether other queue managers know it", 2,
         words={"QMGR": 1, "ALL": 2}, fixed=True),
    _text("SUBUSER", mq.MQCACF_SUB_USER_ID, "User whose authority counts", _USER),
    _text("USERDATA", mq.MQCACF_SUB_USER_DATA, "Data for the subscriber", _LONG),
    _row("VARUSER", mq.MQIACF_VARIABLE_USER_ID, "Whether another user may have it", 1,
         words={"ANY": 1, "FIXED": 2}),
    _row("WSCHEMA", mq.MQIACF_WILDCARD_SCHEMA, "Wildcards of the topic string", 2,
         words={"CHAR": 1, "TOPIC": 2}, fixed=True),
    *altered(),
]  # fmt: skip

# ---- records ----

AUTHORITIES = (
    "NONE", "ALTUSR", "BROWSE", "CHG", "CLR", "CONNECT", "CRT", "CTRL", "CTRLX", "DLT", "DSP",
    "GET", "INQ", "PASSALL", "PASSID", "PUB", "PUT", "RESUME", "SET", "SETALL", "SETID", "SUB",
    "SYSTEM",
)  # fmt: skip
AUTHREC = [
    _row("OBJTYPE", mq.MQIACF_OBJECT_TYPE, "Type of the objects", 1, words={
        "QUEUE": 1, "NAMELIST": 2, "PROCESS": 3, "QMGR": 5, "CHANNEL": 6, "AUTHINFO": 7,
        "TOPIC": 8, "COMMINFO": 9, "LISTENER": 11, "SERVICE": 12, "CLNTCONN": 1014,
        "RQMNAME": 1017}, fixed=True, always=True),
    _row("ENTTYPE", mq.MQIACF_ENTITY_TYPE, "Whether the entity is a user or a group", 1,
         words={"PRINCIPAL": 1, "GROUP": 2}, fixed=True, always=True),
    _text("ENTITY", mq.MQCACF_ENTITY_NAME, "The user or the group", _NAME, fixed=True),
    _row("AUTHLIST", mq.MQIACF_AUTHORIZATION_LIST, "The authorities", "NONE", length=8,
         many=len(AUTHORITIES), choices=AUTHORITIES),
    *altered(),
]  # fmt: skip

_MAPS = ("SSLPEERMAP", "ADDRESSMAP", "USERMAP", "QMGRMAP")
CHLAUTH = [
    _row("CHLAUTYP", mq.MQIACF_AUTH_REC_TYPE, "Type of the record", 4, words={
        "BLOCKUSER": 1, "BLOCKADDR": 2, "SSLPEERMAP": 3, "ADDRESSMAP": 4, "USERMAP": 5,
        "QMGRMAP": 6}, fixed=True, always=True),
    _text("DESCR", mq.MQCA_CHLAUTH_DESC, "Text about the record", 64),
    _text("CUSTOM", mq.MQCA_CUSTOM, "Attributes of later releases, as text", 128),
    _text("ADDRESS", mq.MQCACH_CONNECTION_NAME, "Where the partner calls from", 264, fixed=True,
          kinds=_MAPS),
    _text("ADDRLIST", mq.MQCACH_CONNECTION_NAME_LIST, "Addresses that are refused", 48, many=256,
          kinds=("BLOCKADDR",)),
    _text("USERLIST", mq.MQCACH_MCA_USER_ID_LIST, "Users that are refused", _USER, many=100,
          kinds=("BLOCKUSER",)),
    _text("CLNTUSER", mq.MQCACH_CLIENT_USER_ID, "User that a client asserts", _USER, fixed=True,
          kinds=("USERMAP",)),
    _text("QMNAME", mq.MQCA_REMOTE_Q_MGR_NAME, "Queue manager that calls, or a generic name",
          NAME_LENGTH, fixed=True, kinds=("QMGRMAP",)),
    _text("SSLPEER", mq.MQCACH_SSL_PEER_NAME, "Distinguished name of the certificate", _NAME,
          fixed=True, kinds=("SSLPEERMAP",)),
    _text("SSLCERTI", mq.MQCA_SSL_CERT_ISSUER_NAME, "Distinguished name of its issuer", _NAME,
          fixed=True, kinds=("SSLPEERMAP",)),
    _row("USERSRC", mq.MQIACH_USER_SOURCE, "Where the user comes from",
         words={"MAP": 0, "NOACCESS": 1, "CHANNEL": 2}, kinds=_MAPS),
    _text("MCAUSER", mq.MQCACH_MCA_USER_ID, "User that the record gives", _USER, kinds=_MAPS),
    _row("CHCKCLNT", mq.MQIA_CHECK_CLIENT_BINDING, "Which clients need a password", 4,
         words={"REQDADM": 2, "REQUIRED": 3, "ASQMGR": 4}, kinds=_MAPS),
    _row("WARN", mq.MQIACH_WARNING, "Whether a refusal is a warning only", words=YES_NO),
    *altered(),
]  # fmt: skip
