"""Layouts of the MQI's structures: every field's offset, size, initial value, byte for byte.

The table has the form of those in "MQMD - Message descriptor" and the like: one line a field.
"""

from __future__ import annotations

import copy
import pickle
import struct
import subprocess
import sys

import pytest

import penstock
from penstock import mqi
from penstock._engine import ByteField, CharField, Int64Field, ListField, LongField, Structure

NATIVE = 546 if sys.byteorder == "little" else 273

# name, offset, then L (long), P (64 bits), Cn (characters), Bn (bytes), V (MQCHARV), M (MQMD);
# then the initial value where it is not 0, blank or NUL
TABLES = {
    "MQMD": """
        StrucId 0 C4 MD; Version 4 L 1; Report 8 L; MsgType 12 L 8; Expiry 16 L -1; Feedback 20 L;
        Encoding 24 L NATIVE; CodedCharSetId 28 L; Format 32 C8; Priority 40 L -1;
        Persistence 44 L 2; MsgId 48 B24; CorrelId 72 B24; BackoutCount 96 L; ReplyToQ 100 C48;
        ReplyToQMgr 148 C48; UserIdentifier 196 C12; AccountingToken 208 B32;
        ApplIdentityData 240 C32; PutApplType 272 L; PutApplName 276 C28; PutDate 304 C8;
        PutTime 312 C8; ApplOriginData 320 C4; GroupId 324 B24; MsgSeqNumber 348 L 1; Offset 352 L;
        MsgFlags 356 L; OriginalLength 360 L -1""",
    "MQMDE": """
        StrucId 0 C4 MDE; Version 4 L 2; StrucLength 8 L 72; Encoding 12 L NATIVE;
        CodedCharSetId 16 L; Format 20 C8; Flags 28 L; GroupId 32 B24; MsgSeqNumber 56 L 1;
        Offset 60 L; MsgFlags 64 L; OriginalLength 68 L -1""",
    "MQOR": "ObjectName 0 C48; ObjectQMgrName 48 C48",
    "MQRR": "CompCode 0 L; Reason 4 L",
    "MQPMR": """
        MsgId 0 B24; CorrelId 24 B24; GroupId 48 B24; Feedback 72 L; AccountingToken 76 B32""",
    "MQOD": """
        StrucId 0 C4 OD; Version 4 L 1; ObjectType 8 L 1; ObjectName 12 C48; ObjectQMgrName 60 C48;
        DynamicQName 108 C48 AMQ.*; AlternateUserId 156 C12; RecsPresent 168 L;
        KnownDestCount 172 L; UnknownDestCount 176 L; InvalidDestCount 180 L;
        ObjectRecOffset 184 L; ResponseRecOffset 188 L; ObjectRecPtr 192 P; ResponseRecPtr 200 P;
        AlternateSecurityId 208 B40; ResolvedQName 248 C48; ResolvedQMgrName 296 C48;
        ObjectString 344 V; SelectionString 368 V; ResObjectString 392 V; ResolvedType 416 L""",
    "MQPMO": """
        StrucId 0 C4 PMO; Version 4 L 1; Options 8 L; Timeout 12 L -1; Context 16 L;
        KnownDestCount 20 L; UnknownDestCount 24 L; InvalidDestCount 28 L; ResolvedQName 32 C48;
        ResolvedQMgrName 80 C48; RecsPresent 128 L; PutMsgRecFields 132 L; PutMsgRecOffset 136 L;
        ResponseRecOffset 140 L; PutMsgRecPtr 144 P; ResponseRecPtr 152 P;
        OriginalMsgHandle 160 P; NewMsgHandle 168 P; Action 176 L; PubLevel 180 L 9""",
    "MQGMO": """
        StrucId 0 C4 GMO; Version 4 L 1; Options 8 L; WaitInterval 12 L; Signal1 16 L;
        Signal2 20 L; ResolvedQName 24 C48; MatchOptions 72 L 3; GroupStatus 76 C1;
        SegmentStatus 77 C1; Segmentation 78 C1; Reserved1 79 C1; MsgToken 80 B16;
        ReturnedLength 96 L -1; Reserved2 100 L; MsgHandle 104 P""",
    "MQDLH": """
        StrucId 0 C4 DLH; Version 4 L 1; Reason 8 L; DestQName 12 C48; DestQMgrName 60 C48;
        Encoding 108 L; CodedCharSetId 112 L; Format 116 C8; PutApplType 124 L;
        PutApplName 128 C28; PutDate 156 C8; PutTime 164 C8""",
    "MQXQH": """
        StrucId 0 C4 XQH; Version 4 L 1; RemoteQName 8 C48; RemoteQMgrName 56 C48; MsgDesc 104 M""",
    "MQBO": "StrucId 0 C4 BO; Version 4 L 1; Options 8 L",
    "MQCNO": """
        StrucId 0 C4 CNO; Version 4 L 1; Options 8 L; ClientConnOffset 12 L; ClientConnPtr 16 P;
        ConnTag 24 B128; SSLConfigPtr 152 P; SSLConfigOffset 160 L; ConnectionId 164 B24;
        SecurityParmsOffset 188 L; SecurityParmsPtr 192 P; CCDTUrlPtr 200 P; CCDTUrlOffset 208 L;
        CCDTUrlLength 212 L; Reserved 216 B8; ApplName 224 C28; Reserved2 252 L;
        BalanceParmsPtr 256 P; BalanceParmsOffset 264 L; Reserved3 268 L""",
    "MQSTS": """
        StrucId 0 C4 STAT; Version 4 L 1; CompCode 8 L; Reason 12 L; PutSuccessCount 16 L;
        PutWarningCount 20 L; PutFailureCount 24 L; ObjectType 28 L 1; ObjectName 32 C48;
        ObjectQMgrName 80 C48; ResolvedObjectName 128 C48; ResolvedQMgrName 176 C48;
        ObjectString 224 V; SubName 248 V; OpenOptions 272 L; SubOptions 276 L""",
}
LENGTHS = {
    "MQMD": {1: 324, 2: 364},
    "MQMDE": {2: 72},
    "MQOR": {0: 96},
    "MQRR": {0: 8},
    "MQPMR": {0: 108},
    "MQOD": {1: 168, 2: 208, 3: 344, 4: 424},
    "MQPMO": {1: 128, 2: 160, 3: 184},
    "MQGMO": {1: 72, 2: 80, 3: 100, 4: 112},
    "MQDLH": {1: 172},
    "MQXQH": {1: 428},
    "MQBO": {1: 12},
    "MQCNO": {1: 12, 2: 24, 3: 152, 4: 168, 5: 200, 6: 224, 7: 256, 8: 272},
    "MQSTS": {1: 224, 2: 280},
}
REASONS = {
    "MQMD": 2026,
    "MQOD": 2044,
    "MQBO": 2134,
    "MQCNO": 2139,
    "MQDLH": 2141,
    "MQOR": 2155,
    "MQRR": 2156,
    "MQPMR": 2159,
    "MQPMO": 2173,
    "MQGMO": 2186,
    "MQMDE": 2248,
    "MQXQH": 2260,
    "MQSTS": 2426,
}
CHARV = struct.pack("=qiiii", 0, 0, 0, 0, -3)
ALL = sorted(TABLES)
VERSIONED = [name for name in ALL if 0 not in LENGTHS[name]]


def rows(name: str) -> list[tuple[str, int, str, str]]:
    """(field, offset, kind, initial value) of a structure's table."""
    found = []
    for row in TABLES[name].split(";"):
        field, offset, kind, *initial = row.split()
        found.append((field, int(offset), kind, "".join(initial)))
    return found


def size_of(kind: str) -> int:
    return {"L": 4, "P": 8, "V": 24, "M": 324}.get(kind) or int(kind[1:])


def initial_bytes(name: str) -> bytes:
    """A new structure of the largest version, worked out from the table."""
    result = bytearray(max(LENGTHS[name].values()))
    for _, offset, kind, value in rows(name):
        if kind == "L":
            number = NATIVE if value == "NATIVE" else int(value or "0")
            packed = struct.pack("=i", number)
        elif kind[0] == "C":
            packed = value.encode().ljust(int(kind[1:]))
        elif kind == "V":
            packed = CHARV
        elif kind == "M":
            packed = initial_bytes("MQMD")[:324]
        else:
            packed = bytes(size_of(kind))
        result[offset : offset + size_of(kind)] = packed
    return bytes(result)


def make(name: str) -> Structure:
    structure = getattr(mqi, name)()
    assert isinstance(structure, Structure)
    return structure


@pytest.mark.parametrize("name", ALL)
def test_every_field_has_its_offset_and_no_other_field_exists(name: str) -> None:
    fields = {
        field: (it.offset, it.size)
        for field, it in getattr(mqi, name).layout.fields.items()
        if not isinstance(it, ListField)
    }
    assert fields == {field: (at, size_of(kind)) for field, at, kind, _ in rows(name)}


@pytest.mark.parametrize("name", ALL)
def test_a_field_has_the_kind_of_its_row(name: str) -> None:
    kinds = {"L": LongField, "P": Int64Field, "C": CharField, "B": ByteField}
    for field, _, kind, _ in rows(name):
        if kind[0] in kinds:
            assert type(getattr(mqi, name).layout.fields[field]) is kinds[kind[0]], field


@pytest.mark.parametrize("name", ALL)
def test_a_new_structure_is_the_initial_bytes_of_each_version(name: str) -> None:
    whole = initial_bytes(name)
    for version, length in LENGTHS[name].items():
        structure = make(name)
        expected = bytearray(whole[:length])
        if version:
            structure.Version = version  # type: ignore[attr-defined]
            expected[4:8] = struct.pack("=i", version)
        assert structure.length == length
        assert structure.pack() == bytes(expected)


@pytest.mark.parametrize("name", ALL)
def test_a_field_is_stored_where_its_row_says(name: str) -> None:
    last = max(LENGTHS[name])
    for field, offset, kind, _ in rows(name):
        structure = make(name)
        if last:
            structure.Version = last  # type: ignore[attr-defined]
        before = structure.pack()
        if kind in "LP":
            value: object = 0x01020304
            packed = struct.pack("=i" if kind == "L" else "=q", value)
        elif kind[0] == "C":
            value = "x" * int(kind[1:])
            packed = b"x" * int(kind[1:])
        elif kind[0] == "B":
            value = packed = bytes(range(1, int(kind[1:]) + 1))
        else:
            continue
        setattr(structure, field, value)
        assert getattr(structure, field) == value
        if field == "Version":
            continue
        assert structure.pack() == before[:offset] + packed + before[offset + len(packed) :], field


@pytest.mark.parametrize("name", ALL)
def test_unpack_takes_back_what_pack_gave_in_every_version(name: str) -> None:
    for version, length in LENGTHS[name].items():
        structure = make(name)
        if version:
            structure.Version = version  # type: ignore[attr-defined]
        for field, offset, kind, _ in rows(name):
            if field in ("StrucId", "Version") or offset + size_of(kind) > length:
                continue
            value = {"L": -7, "P": 1 << 40, "C": "y", "B": b"\x01" * size_of(kind)}.get(kind[0])
            if value is not None:
                setattr(structure, field, value)
        again = type(structure).unpack(structure.pack() + b"what follows")
        assert again == structure
        assert again.pack() == structure.pack()


@pytest.mark.parametrize("name", ALL)
def test_unpack_of_a_truncated_buffer_gives_the_structures_reason(name: str) -> None:
    for version, length in LENGTHS[name].items():
        structure = make(name)
        if version:
            structure.Version = version  # type: ignore[attr-defined]
        whole = structure.pack()
        for short in {0, 1, 4, 7, length - 1}:
            with pytest.raises(ValueError, match="bytes") as error:
                type(structure).unpack(whole[:short])
            assert error.value.reason == REASONS[name]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", VERSIONED)
def test_unpack_of_a_wrong_eye_catcher_gives_the_structures_reason(name: str) -> None:
    structure = make(name)
    for wrong in ("", "XX", "md", "MDX"):
        structure.StrucId = wrong  # type: ignore[attr-defined]
        assert structure.pack()[:4] == wrong.encode().ljust(4)
        with pytest.raises(ValueError, match="begins with") as error:
            type(structure).unpack(structure.pack())
        assert error.value.reason == REASONS[name]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", VERSIONED)
def test_unpack_of_a_wrong_version_gives_the_structures_reason(name: str) -> None:
    structure = make(name)
    for wrong in (0, -1, max(LENGTHS[name]) + 1, min(LENGTHS[name]) - 1, 2**31 - 1):
        structure.Version = wrong  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match=f"version {wrong}") as error:
            type(structure).unpack(structure.pack())
        assert error.value.reason == REASONS[name]  # type: ignore[attr-defined]


def test_a_wrong_version_packs_with_the_length_of_the_nearest_below() -> None:
    assert mqi.MQMD(Version=3).length == 364
    assert mqi.MQMD(Version=0).length == 324
    assert mqi.MQGMO(Version=-5).length == 72
    assert mqi.MQOD(Version=99).length == 424


@pytest.mark.parametrize("name", ALL)
def test_copies_are_equal_and_independent(name: str) -> None:
    structure = make(name)
    field, _, kind, _ = rows(name)[-1] if name != "MQXQH" else rows(name)[2]
    for twin in (
        structure.copy(),
        copy.copy(structure),
        copy.deepcopy(structure),
        pickle.loads(pickle.dumps(structure)),
    ):
        assert twin == structure
        setattr(twin, field, {"L": 5, "P": 5, "C": "z", "B": b"z"}[kind[0]])
        assert twin != structure
        twin.clear()
        assert twin == structure


def test_structures_of_different_classes_are_not_equal_and_none_is_hashable() -> None:
    assert mqi.MQMD() != mqi.MQMDE()
    assert mqi.MQMD() != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(mqi.MQMD())


def test_repr_shows_the_fields_that_differ_from_the_initial_value() -> None:
    assert repr(mqi.MQMD()) == "MQMD()"
    md = mqi.MQMD(Priority=3, MsgId=b"ab", Format="MQSTR")
    assert repr(md) == "MQMD(Format='MQSTR', Priority=3, MsgId=b'ab')"
    assert eval(repr(md), vars(mqi)) == md
    assert repr(mqi.MQXQH(MsgDesc=md)).endswith(f"MsgDesc={md!r})")


def test_importing_penstock_does_not_import_the_mqi() -> None:
    program = "import sys, penstock; print('penstock.mqi' in sys.modules)"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout == "False\n"


def test_fields_are_read_and_set_by_their_names_too() -> None:
    md = mqi.MQMD(Priority=3)
    assert md["Priority"] == 3 and md["Format"] == ""
    md["Format"] = "MQSTR"
    md["MsgId"] = b"m"
    assert (md.Format, md["MsgId"]) == ("MQSTR", b"m" + bytes(23))
    for name in ("priority", "Nothing", 0):
        with pytest.raises(KeyError):
            md[name]
        with pytest.raises(KeyError):
            md[name] = 1
    with pytest.raises(penstock.InvalidValue):
        md["Priority"] = 2**31
    with pytest.raises(penstock.InvalidType):
        md["Priority"] = "high"
    header = mqi.MQXQH()
    header["MsgDesc"]["Priority"] = 5
    assert header.MsgDesc.Priority == 5
    options = mqi.MQPMO()
    options["PutMsgRecs"] = [mqi.MQPMR()]
    assert len(options["PutMsgRecs"]) == 1
