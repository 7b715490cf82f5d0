"""MQ's constants: the numbers of the founding documents, no contradictions, every reason code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock.constants
from penstock import MQError, _engine, mqi

ROOT = Path(__file__).resolve().parents[2]
CONSTANTS = {name: value for name, value in vars(mqi).items() if re.match(r"MQ\w*_", name)}

# From the descriptions of fields and options; one line for each family.
DOCUMENTED = """
MQCC: UNKNOWN -1 OK 0 WARNING 1 FAILED 2
MQPER: NOT_PERSISTENT 0 PERSISTENT 1 PERSISTENCE_AS_Q_DEF 2 PERSISTENCE_AS_TOPIC_DEF 2
MQPRI: PRIORITY_AS_Q_DEF -1 PRIORITY_AS_PARENT -2 PRIORITY_AS_PUBLISHED -3
MQMT: REQUEST 1 REPLY 2 REPORT 4 DATAGRAM 8 SYSTEM_LAST 65535 APPL_FIRST 65536 APPL_LAST 999999999
MQEI: UNLIMITED -1
MQFB: NONE 0 QUIT 256 EXPIRATION 258 COA 259 COD 260 TM_ERROR 266 PAN 275 NAN 276
MQRO: NONE 0 PAN 1 NAN 2 ACTIVITY 4 PASS_CORREL_ID 64 PASS_MSG_ID 128 COA 256 COD 2048
MQRO: PASS_DISCARD_AND_EXPIRY 16384 EXPIRATION 0x200000 EXCEPTION 0x1000000 DISCARD_MSG 0x8000000
MQRO: REJECT_UNSUP_MASK 0x101C0000 ACCEPT_UNSUP_MASK 0xEFE000FF ACCEPT_UNSUP_IF_XMIT_MASK 0x3FF00
MQENC: INTEGER_MASK 0xF DECIMAL_MASK 0xF0 FLOAT_MASK 0xF00 FLOAT_S390 768
MQCCSI: Q_MGR 0 EMBEDDED -1 INHERIT -2 APPL -3
MQAT: NO_CONTEXT 0 UNIX 6 QMGR 7 WINDOWS_NT 11 USER 25 BROKER 26 JAVA 28 UNKNOWN -1
MQMF: SEGMENTATION_ALLOWED 1 SEGMENT 2 LAST_SEGMENT 4 MSG_IN_GROUP 8 LAST_MSG_IN_GROUP 16
MQOL: UNDEFINED -1
MQCO: NONE 0 IMMEDIATE 0 DELETE 1 DELETE_PURGE 2 KEEP_SUB 4 REMOVE_SUB 8 QUIESCE 32
MQHO: UNUSABLE_HOBJ -1
MQOT: NONE 0 Q 1 NAMELIST 2 PROCESS 3 Q_MGR 5 CHANNEL 6 TOPIC 8 CF_STRUC 10
MQOO: INPUT_AS_Q_DEF 1 INPUT_SHARED 2 INPUT_EXCLUSIVE 4 BROWSE 8 OUTPUT 16 INQUIRE 32 SET 64
MQOO: SAVE_ALL_CONTEXT 128 PASS_IDENTITY_CONTEXT 256 PASS_ALL_CONTEXT 512
MQOO: SET_IDENTITY_CONTEXT 1024 SET_ALL_CONTEXT 2048 ALTERNATE_USER_AUTHORITY 4096
MQOO: FAIL_IF_QUIESCING 8192 BIND_ON_OPEN 16384 BIND_NOT_FIXED 32768 BIND_ON_GROUP 4194304
MQOO: BIND_AS_Q_DEF 0 READ_AHEAD_AS_Q_DEF 0 RESOLVE_NAMES 65536 CO_OP 131072
MQOO: RESOLVE_LOCAL_Q 262144 NO_READ_AHEAD 524288 READ_AHEAD 1048576 NO_MULTICAST 2097152
MQPMO: SYNCPOINT 2 NO_SYNCPOINT 4 DEFAULT_CONTEXT 32 NEW_MSG_ID 64 NEW_CORREL_ID 128
MQPMO: PASS_IDENTITY_CONTEXT 256 PASS_ALL_CONTEXT 512 SET_IDENTITY_CONTEXT 1024
MQPMO: SET_ALL_CONTEXT 2048 ALTERNATE_USER_AUTHORITY 4096 FAIL_IF_QUIESCING 8192
MQPMO: NO_CONTEXT 16384 LOGICAL_ORDER 32768 ASYNC_RESPONSE 65536 SYNC_RESPONSE 131072
MQPMO: RESPONSE_AS_Q_DEF 0 RESOLVE_LOCAL_Q 262144 WARN_IF_NO_SUBS_MATCHED 524288 RETAIN 2097152
MQPMO: MD_FOR_OUTPUT_ONLY 8388608 SCOPE_QMGR 67108864 SUPPRESS_REPLYTO 134217728
MQPMO: NOT_OWN_SUBS 268435456
MQPMRF: MSG_ID 1 CORREL_ID 2 GROUP_ID 4 FEEDBACK 8 ACCOUNTING_TOKEN 16
MQACTP: NEW 0 FORWARD 1 REPLY 2 REPORT 3
MQGMO: WAIT 1 NO_WAIT 0 SYNCPOINT 2 NO_SYNCPOINT 4 SYNCPOINT_IF_PERSISTENT 4096 SET_SIGNAL 8
MQGMO: BROWSE_FIRST 16 BROWSE_NEXT 32 BROWSE_MSG_UNDER_CURSOR 2048 MSG_UNDER_CURSOR 256
MQGMO: ACCEPT_TRUNCATED_MSG 64 MARK_SKIP_BACKOUT 128 LOCK 512 UNLOCK 1024 FAIL_IF_QUIESCING 8192
MQGMO: CONVERT 16384 LOGICAL_ORDER 32768 COMPLETE_MSG 65536 ALL_MSGS_AVAILABLE 131072
MQGMO: ALL_SEGMENTS_AVAILABLE 262144 MARK_BROWSE_HANDLE 0x100000 MARK_BROWSE_CO_OP 0x200000
MQGMO: UNMARK_BROWSE_CO_OP 0x400000 UNMARK_BROWSE_HANDLE 0x800000 UNMARKED_BROWSE_MSG 0x1000000
MQGMO: BROWSE_HANDLE 17825808 BROWSE_CO_OP 18874384 PROPERTIES_FORCE_MQRFH2 0x2000000
MQGMO: NO_PROPERTIES 0x4000000 PROPERTIES_IN_HANDLE 0x8000000 PROPERTIES_COMPATIBILITY 0x10000000
MQMO: NONE 0 MATCH_MSG_ID 1 MATCH_CORREL_ID 2 MATCH_GROUP_ID 4 MATCH_MSG_SEQ_NUMBER 8
MQMO: MATCH_OFFSET 16 MATCH_MSG_TOKEN 32
MQWI: UNLIMITED -1
MQCNO: HANDLE_SHARE_NONE 32 HANDLE_SHARE_BLOCK 64 HANDLE_SHARE_NO_BLOCK 128
MQQT: LOCAL 1 MODEL 2 ALIAS 3 REMOTE 6 CLUSTER 7
MQQDT: PREDEFINED 1 PERMANENT_DYNAMIC 2 TEMPORARY_DYNAMIC 3 SHARED_DYNAMIC 4
MQMDS: PRIORITY 0 FIFO 1
MQIT: NONE 0 MSG_ID 1 CORREL_ID 2 MSG_TOKEN 4 GROUP_ID 5
MQNPM: CLASS_NORMAL 0 CLASS_HIGH 10
MQQA: GET_ALLOWED 0 GET_INHIBITED 1 PUT_ALLOWED 0 PUT_INHIBITED 1 SHAREABLE 1 NOT_SHAREABLE 0
MQUS: NORMAL 0 TRANSMISSION 1
MQTC: OFF 0 ON 1
MQTT: NONE 0 FIRST 1 EVERY 2 DEPTH 3
MQIAV: NOT_APPLICABLE -1
MQBND: BIND_ON_OPEN 0 BIND_NOT_FIXED 1 BIND_ON_GROUP 2
MQPRT: SYNC_RESPONSE 1 ASYNC_RESPONSE 2
MQREADA: NO 0 YES 1 DISABLED 2
MQCLWL: USEQ_LOCAL 0 USEQ_ANY 1 USEQ_AS_Q_MGR -3
MQPL: ZOS 1 UNIX 3
MQIA: Q_TYPE 20 INHIBIT_PUT 10 INHIBIT_GET 9 DEF_PRIORITY 6 DEF_PERSISTENCE 5
MQIA: DEF_PUT_RESPONSE_TYPE 184 DEF_READ_AHEAD 188 DEF_INPUT_OPEN_OPTION 4 SHAREABILITY 23
MQIA: MSG_DELIVERY_SEQUENCE 16 MAX_Q_DEPTH 15 MAX_MSG_LENGTH 13 CURRENT_Q_DEPTH 3
MQIA: OPEN_INPUT_COUNT 17 OPEN_OUTPUT_COUNT 18 DEFINITION_TYPE 7 USAGE 12 BACKOUT_THRESHOLD 22
MQIA: HARDEN_GET_BACKOUT 8 NPM_CLASS 78 RETENTION_INTERVAL 21 TRIGGER_CONTROL 24 TRIGGER_TYPE 28
MQIA: TRIGGER_DEPTH 29 TRIGGER_MSG_PRIORITY 26 Q_DEPTH_HIGH_LIMIT 40 Q_DEPTH_LOW_LIMIT 41
MQIA: DIST_LISTS 34 INDEX_TYPE 57 PROPERTY_CONTROL 190 DEF_BIND 61 BASE_TYPE 193 QSG_DISP 63
MQIA: MAX_PRIORITY 14 MAX_HANDLES 11 MAX_UNCOMMITTED_MSGS 33 TRIGGER_INTERVAL 25 SYNCPOINT 30
MQIA: CODED_CHAR_SET_ID 2 COMMAND_LEVEL 31 PLATFORM 32 MAX_PROPERTIES_LENGTH 192
MQIA: CLWL_Q_RANK 95 CLWL_Q_PRIORITY 96 CLWL_USEQ 98 CLWL_MRU_CHANNELS 97 CAP_EXPIRY 276
MQCA: Q_NAME 2016 Q_DESC 2013 BACKOUT_REQ_Q_NAME 2019 TRIGGER_DATA 2023 PROCESS_NAME 2012
MQCA: INITIATION_Q_NAME 2008 CLUSTER_NAME 2029 CLUSTER_NAMELIST 2030 BASE_Q_NAME 2002
MQCA: REMOTE_Q_NAME 2018 REMOTE_Q_MGR_NAME 2017 XMIT_Q_NAME 2024 CREATION_DATE 2004
MQCA: CREATION_TIME 2005 ALTERATION_DATE 2027 ALTERATION_TIME 2028 CF_STRUC_NAME 2039
MQCA: Q_MGR_NAME 2015 Q_MGR_IDENTIFIER 2032 Q_MGR_DESC 2014 DEAD_LETTER_Q_NAME 2006
MQCA: DEF_XMIT_Q_NAME 2025 COMMAND_INPUT_Q_NAME 2003
MQ: Q_NAME_LENGTH 48 Q_MGR_NAME_LENGTH 48 MSG_HEADER_LENGTH 4000 MSG_ID_LENGTH 24
"""


@pytest.mark.parametrize("line", DOCUMENTED.split("\n")[1:-1])
def test_constants_have_the_documented_numbers(line: str) -> None:
    family, pairs = line.split(": ")
    words = pairs.split()
    for name, number in zip(words[::2], words[1::2], strict=True):
        assert CONSTANTS[f"{family}_{name}"] == int(number, 0), name


def test_text_is_as_fields_read_it_and_bytes_are_in_full_length() -> None:
    assert mqi.MQMD(Format=mqi.MQFMT_STRING).Format == mqi.MQFMT_STRING == "MQSTR"
    assert mqi.MQMD().Format == mqi.MQFMT_NONE
    assert mqi.MQMD().MsgId == mqi.MQMI_NONE
    assert mqi.MQMD().CorrelId == mqi.MQCI_NONE
    assert mqi.MQMD().GroupId == mqi.MQGI_NONE
    assert mqi.MQMD().AccountingToken == mqi.MQACT_NONE
    assert mqi.MQGMO().MsgToken == mqi.MQMTOK_NONE
    assert mqi.MQGMO().GroupStatus == mqi.MQGS_NOT_IN_GROUP
    assert mqi.MQGMO().SegmentStatus == mqi.MQSS_NOT_A_SEGMENT
    assert mqi.MQGMO().Segmentation == mqi.MQSEG_INHIBITED
    assert mqi.MQCNO().ConnTag == mqi.MQCT_NONE
    assert mqi.MQCNO().ConnectionId == mqi.MQCONNID_NONE
    assert mqi.MQOD().AlternateSecurityId == mqi.MQSID_NONE
    for name, value in CONSTANTS.items():
        assert type(value) in (int, str, bytes), name
        assert type(value) is not str or value == value.rstrip() or len(value) == 1, name


def test_initial_values_are_the_named_constants() -> None:
    md = mqi.MQMD()
    assert md.Persistence == mqi.MQPER_PERSISTENCE_AS_Q_DEF
    assert md.Priority == mqi.MQPRI_PRIORITY_AS_Q_DEF
    assert md.MsgType == mqi.MQMT_DATAGRAM
    assert md.Expiry == mqi.MQEI_UNLIMITED
    assert md.Encoding == mqi.MQENC_NATIVE
    assert md.OriginalLength == mqi.MQOL_UNDEFINED
    assert mqi.MQGMO().MatchOptions == mqi.MQMO_MATCH_MSG_ID | mqi.MQMO_MATCH_CORREL_ID
    assert mqi.MQGMO().ReturnedLength == mqi.MQRL_UNDEFINED
    assert mqi.MQOD().ObjectType == mqi.MQOT_Q
    assert mqi.MQOD().ResolvedType == mqi.MQOT_NONE


@pytest.mark.parametrize(
    "name", ["MQMD", "MQMDE", "MQOD", "MQPMO", "MQGMO", "MQDLH", "MQXQH", "MQCNO", "MQBO", "MQSTS"]
)
def test_eye_catchers_and_lengths_are_those_of_the_structures(name: str) -> None:
    layout = getattr(mqi, name).layout
    assert CONSTANTS[f"{name}_STRUC_ID"] == layout.struc_id
    lengths = {
        int(found[1]): value
        for constant, value in CONSTANTS.items()
        if (found := re.fullmatch(rf"{name}_LENGTH_(\d)", constant))
    }
    versions = {v for k, v in CONSTANTS.items() if re.fullmatch(rf"{name}_VERSION_\d", k)}
    assert lengths == layout.lengths
    assert versions == set(lengths)


FAMILIES = {
    "CompCode": "MQCC",
    "ReasonCode": "MQRC",
    "MessageType": "MQMT",
    "Report": "MQRO",
    "MessageFlag": "MQMF",
    "OpenOption": "MQOO",
    "QueueType": "MQQT",
}


@pytest.mark.parametrize("enum", sorted(FAMILIES))
def test_the_enumerations_of_the_package_do_not_contradict(enum: str) -> None:
    for member in getattr(penstock.constants, enum):
        assert CONSTANTS[f"{FAMILIES[enum]}_{member.name}"] == member.value


def test_every_integer_selector_is_below_2001_and_every_character_selector_above() -> None:
    for name, value in CONSTANTS.items():
        if name.startswith("MQIA_"):
            assert 1 <= value <= 2000, name
        if name.startswith("MQCA_"):
            assert 2001 <= value <= 4000, name


def core_reasons() -> dict[int, str]:
    """Number -> name out of the core's own table."""
    text = (ROOT / "csrc" / "base" / "reason_codes.def").read_text()
    return {
        int(n): f"MQRC_{name}" for n, name in re.findall(r"^MQX_REASON\((\d+), (\w+)", text, re.M)
    }


def test_the_table_of_reasons_agrees_with_that_of_the_core() -> None:
    core = core_reasons()
    assert len(core) > 200
    for code, name in core.items():
        assert mqi.REASONS[code].name == mqi.reason_name(code) == name
        assert CONSTANTS[name] == code
        assert mqi.REASONS[code].meaning == _engine.reason_text(code)
        assert mqi.REASONS[code].comp_code == _engine.comp_code(code)


def test_every_reason_has_a_name_a_meaning_and_a_completion_code() -> None:
    for code, reason in mqi.REASONS.items():
        name, meaning = reason
        assert CONSTANTS[name] == code == reason.code
        assert re.fullmatch(r"[a-z].*[^.]|[A-Z]{2,}.*[^.]", meaning), (code, meaning)
        assert reason.comp_code in ((0,) if code == 0 else (1, 2))
        assert code == 0 or reason.comp_code == 1 or MQError(code).comp_code == 2
    assert list(mqi.REASONS) == sorted(mqi.REASONS)
    assert len({reason.meaning for reason in mqi.REASONS.values()}) == len(mqi.REASONS)


def test_every_constant_of_a_reason_is_in_the_table() -> None:
    for name, code in CONSTANTS.items():
        if name.startswith("MQRC_") and not name.startswith("MQRC_APPL_"):
            assert code in mqi.REASONS, name


def test_a_number_that_is_no_reason_code_is_mqrc_unknown() -> None:
    for hole in (-1, 1, 2015, 2028, 2032, 2054, 2060, 9999):
        assert mqi.reason_name(hole) == "MQRC_UNKNOWN"
        assert hole not in mqi.REASONS
