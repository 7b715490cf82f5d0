"""Values of fields: accepted ones, conversions, and refused ones that change nothing."""

from __future__ import annotations

import gc
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import InvalidType, InvalidValue, mqi
from penstock._engine import (
    ByteField,
    CharField,
    Field,
    Int64Field,
    ListField,
    LongField,
    StringField,
    Structure,
    layout,
)

CLASSES: list[type[Structure]] = [
    mqi.MQMD,
    mqi.MQMDE,
    mqi.MQOR,
    mqi.MQRR,
    mqi.MQPMR,
    mqi.MQOD,
    mqi.MQPMO,
    mqi.MQGMO,
    mqi.MQDLH,
    mqi.MQXQH,
    mqi.MQBO,
    mqi.MQCNO,
    mqi.MQSTS,
]
FIELDS = [
    pytest.param(cls, field, id=f"{cls.__name__}.{name}")
    for cls in CLASSES
    for name, field in cls.layout.fields.items()
]
IDENTITY = ("StrucId", "Version")


def values_of(field: Field) -> st.SearchStrategy[Any]:
    """The values of a field that read as they are set."""
    if isinstance(field, LongField):
        return st.integers(-(2**31), 2**31 - 1)
    if isinstance(field, Int64Field):
        return st.integers(-(2**63), 2**63 - 1)
    if isinstance(field, ByteField):
        return st.binary(min_size=field.size, max_size=field.size)
    if isinstance(field, StringField):
        return st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).map(
            lambda text: text.rstrip(" ")
        )
    if isinstance(field, CharField):
        if field.size == 1:
            return st.characters(max_codepoint=127, exclude_characters="\0")
        characters = st.characters(codec="utf-8", exclude_characters="\0")
        return st.text(characters, max_size=field.size // 4).map(lambda text: text.rstrip(" "))
    if isinstance(field, ListField):
        return st.lists(structures(field.item), max_size=3)
    return structures(mqi.MQMD, later=False)


def structures(cls: type[Structure], later: bool = True) -> st.SearchStrategy[Structure]:
    """A structure of the class; `later`: of any of its versions, else of the first."""
    names = list(cls.layout.fields)
    versions = sorted(cls.layout.lengths) if later else sorted(cls.layout.lengths)[:1]

    @st.composite
    def build(draw: st.DrawFn) -> Structure:
        version = draw(st.sampled_from(versions))
        result = cls(Version=version) if version else cls()
        offsets = {"ObjectRecOffset", "ResponseRecOffset", "PutMsgRecOffset"}
        usable = [
            name
            for name in names
            if name not in IDENTITY
            and name not in offsets
            and cls.layout.fields[name].offset + cls.layout.fields[name].size
            <= cls.layout.lengths[version]
        ]
        for name in draw(st.lists(st.sampled_from(usable), unique=True, max_size=6)):
            setattr(result, name, draw(values_of(cls.layout.fields[name])))
        return result

    return build()


def fix_counts(structure: Structure) -> None:
    """Makes a structure with lists one that packs completely: counts and flags as they must be."""
    for name in ("ObjectRecs", "PutMsgRecs", "ResponseRecs"):
        if name in structure.layout.fields and structure.Version > 1:  # type: ignore[attr-defined]
            records = getattr(structure, name)
            length = len(getattr(structure, "ObjectRecs", None) or records)
            if isinstance(structure, mqi.MQPMO):
                length = len(structure.PutMsgRecs)
                structure.PutMsgRecFields = 31
            setattr(structure, name, (records * 3)[:length] if len(records) else [])
            structure.RecsPresent = length  # type: ignore[attr-defined]


@pytest.mark.parametrize("cls", CLASSES)
def test_any_structure_comes_back_from_its_bytes(cls: type[Structure]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(structures(cls))
    def check(structure: Structure) -> None:
        fix_counts(structure)
        packed = structure.pack()
        again = cls.unpack(packed)
        assert again == structure, (again, structure)
        assert again.pack() == packed
        assert structure.copy() == structure
        version = getattr(structure, "Version", 0)
        assert len(packed) >= cls.layout.lengths[version] == structure.length

    check()


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_a_field_reads_as_it_was_set_and_no_other_changes(
    cls: type[Structure], field: Field
) -> None:
    @settings(max_examples=15, deadline=None)
    @given(values_of(field))
    def check(value: Any) -> None:
        structure = cls()
        before = {name: getattr(structure, name) for name in cls.layout.fields}
        setattr(structure, field.name, value)
        assert getattr(structure, field.name) == value
        counts = {"RecsPresent"} if isinstance(field, ListField) else set()
        for name, old in before.items():
            if name != field.name and name not in counts:
                assert getattr(structure, name) == old, name

    check()


def refused(cls: type[Structure], name: str, value: object, match: str) -> None:
    """Setting the value is refused with the reason of the structure, and nothing changes."""
    structure = cls()
    before = structure.copy()
    field = cls.layout.fields[name]
    reason = field.reason if isinstance(field, ListField) else cls.layout.reason
    with pytest.raises((InvalidValue, InvalidType), match=match) as error:
        setattr(structure, name, value)
    assert error.value.reason == reason
    assert f"{cls.__name__}.{name}" in str(error.value)
    with pytest.raises((InvalidValue, InvalidType), match=match):
        cls(**{name: value})
    assert structure == before


@pytest.mark.parametrize(("cls", "field"), FIELDS)
def test_every_field_refuses_what_does_not_fit(cls: type[Structure], field: Field) -> None:
    if isinstance(field, LongField):
        for value in (2**31, -(2**31) - 1, 10**30):
            refused(cls, field.name, value, "not within")
        for wrong in ("1", 1.0, None, b"1", [1]):
            refused(cls, field.name, wrong, "takes an int")
    elif isinstance(field, Int64Field):
        refused(cls, field.name, 2**63, "64 bits")
        refused(cls, field.name, "1", "takes an int")
    elif isinstance(field, CharField):
        refused(cls, field.name, "x" * (field.size + 1), f"{field.size + 1} bytes, at most")
        refused(cls, field.name, b"x" * (field.size + 1), f"{field.size + 1} bytes, at most")
        refused(cls, field.name, "\u00e9" * field.size, f"{2 * field.size} bytes, at most")
        refused(cls, field.name, "\ud800", "surrogates")
        refused(cls, field.name, 5, "takes str or bytes")
        refused(cls, field.name, None, "takes str or bytes")
    elif isinstance(field, ByteField):
        refused(cls, field.name, bytes(field.size + 1), f"{field.size + 1} bytes, at most")
        refused(cls, field.name, "text", "takes bytes")
        refused(cls, field.name, None, "takes bytes")
    elif isinstance(field, StringField):
        refused(cls, field.name, 5, "takes str or bytes")
    elif isinstance(field, ListField):
        refused(cls, field.name, [5], "in the list")
        refused(cls, field.name, [mqi.MQMD()], "in the list")
        refused(cls, field.name, 5, "takes a list")
        refused(cls, field.name, "text", "takes a list")
    else:
        refused(cls, field.name, mqi.MQOD(), "takes an MQMD")
        refused(cls, field.name, b"", "takes an MQMD")


@pytest.mark.parametrize("cls", CLASSES)
def test_names_that_are_no_fields_are_refused(cls: type[Structure]) -> None:
    for name in ("Prio", "priority", "_raw", "raw", "size"):
        with pytest.raises(AttributeError, match=name):
            setattr(cls(), name, 1)
        with pytest.raises(TypeError, match=f"no field '{name}'"):
            cls(**{name: 1})
    with pytest.raises(TypeError):
        cls(1)  # type: ignore[arg-type]
    assert not hasattr(cls(), "__dict__")


def test_a_nul_ends_text_and_trailing_blanks_do_not_count() -> None:
    md = mqi.MQMD(ReplyToQ="QUEUE\0rubbish")
    assert md.ReplyToQ == "QUEUE"
    assert md.pack()[100:148] == b"QUEUE".ljust(48)
    assert mqi.MQMD(ReplyToQ=b"A B " + bytes(100)).ReplyToQ == "A B"
    assert mqi.MQMD(Format="MQSTR" + " " * 60).pack()[32:40] == b"MQSTR   "
    packed = bytearray(mqi.MQMD().pack())
    packed[100:148] = b"Q\0".ljust(48, b"x")
    assert mqi.MQMD.unpack(packed) == mqi.MQMD(ReplyToQ="Q")
    assert mqi.MQMD.unpack(packed).pack() == mqi.MQMD(ReplyToQ="Q").pack()


def test_bytes_that_are_no_utf8_survive() -> None:
    md = mqi.MQMD(ApplIdentityData=b"\xff\xfeok")
    assert md.ApplIdentityData == "\udcff\udcfeok"
    assert mqi.MQMD(ApplIdentityData=md.ApplIdentityData).pack() == md.pack()
    assert mqi.MQMD(ApplIdentityData="\u00fc").pack()[240:243] == b"\xc3\xbc "


def test_short_bytes_are_padded_with_nuls() -> None:
    assert mqi.MQMD(MsgId=b"ab").MsgId == b"ab" + bytes(22)
    assert mqi.MQMD(MsgId=bytearray(b"ab")) == mqi.MQMD(MsgId=memoryview(b"ab"))


def test_a_number_field_accepts_any_object_with_index() -> None:
    class Handle:
        def __index__(self) -> int:
            return 42

    assert mqi.MQPMO(Context=Handle()).Context == 42
    assert mqi.MQMD(Persistence=True).Persistence == 1


def test_fields_cannot_be_deleted() -> None:
    with pytest.raises(AttributeError, match=r"MQMD\.Priority"):
        del mqi.MQMD().Priority


def test_setting_the_records_sets_their_count() -> None:
    od = mqi.MQOD(Version=2, ObjectRecs=[mqi.MQOR(ObjectName="A"), mqi.MQOR(ObjectName="B")])
    assert od.RecsPresent == 2
    od.ObjectRecs.append(mqi.MQOR())
    assert (od.RecsPresent, len(od.ObjectRecs)) == (2, 3)
    assert mqi.MQPMO(Version=2, PutMsgRecs=[mqi.MQPMR()]).RecsPresent == 1
    assert mqi.MQPMO(Version=2, ResponseRecs=[mqi.MQRR()]).RecsPresent == 0


def test_a_list_that_was_spoilt_afterwards_is_refused_when_it_is_packed() -> None:
    for wrong in (5, mqi.MQRR(), mqi.MQMD()):
        od = mqi.MQOD(Version=2, ObjectRecs=[mqi.MQOR()])
        od.ObjectRecs.append(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidType, match="in the list") as error:
            od.pack()
        assert error.value.reason == 2155


def test_a_state_of_something_else_is_refused() -> None:
    for state in ((bytes(1000), None), (b"", [None]), (b"", [None] * 9)):
        with pytest.raises(ValueError, match="no state of MQOD"):
            mqi.MQOD().__setstate__(state)  # type: ignore[arg-type]


def test_records_follow_the_structure_at_their_offsets() -> None:
    names = ["A", "BB"]
    od = mqi.MQOD(
        Version=2,
        ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names],
        ResponseRecs=[mqi.MQRR(), mqi.MQRR(CompCode=2, Reason=2085)],
    )
    packed = od.pack()
    at, answers = struct.unpack_from("=ii", packed, 184)
    assert (at, answers, len(packed)) == (208, 208 + 2 * 96, 208 + 2 * 96 + 2 * 8)
    assert packed[at : at + 48] == b"A".ljust(48)
    assert packed[at + 96 : at + 144] == b"BB".ljust(48)
    assert struct.unpack_from("=iiii", packed, answers) == (0, 0, 2, 2085)
    assert od.ObjectRecOffset == 0


def test_put_message_fieldss_have_the_fields_that_the_flags_say() -> None:
    record = mqi.MQPMR(MsgId=b"m", CorrelId=b"c", GroupId=b"g", Feedback=7, AccountingToken=b"a")
    sizes = {1: 24, 2: 24, 4: 24, 8: 4, 16: 32}
    for flags in range(32):
        pmo = mqi.MQPMO(Version=2, PutMsgRecFields=flags, PutMsgRecs=[record, record])
        packed = pmo.pack()
        length = sum(size for flag, size in sizes.items() if flags & flag)
        assert len(packed) == 160 + 2 * length
        if flags:
            again = mqi.MQPMO.unpack(packed).PutMsgRecs
            assert [r.Feedback for r in again] == [7 if flags & 8 else 0] * 2
            assert [r.CorrelId[:1] for r in again] == [b"c" if flags & 2 else b"\0"] * 2
            assert [r.AccountingToken[:1] for r in again] == [b"a" if flags & 16 else b"\0"] * 2


def test_strings_follow_the_structure_with_offset_length_and_character_set() -> None:
    od = mqi.MQOD(Version=4, ObjectString="sports/\u00fc", SelectionString="a = 1")
    packed = od.pack()
    assert struct.unpack_from("=qiiii", packed, 344) == (0, 424, 0, 9, 1208)
    assert packed[424:433] == "sports/\u00fc".encode()
    assert struct.unpack_from("=qiiii", packed, 392) == (0, 0, 0, 0, -3)
    assert mqi.MQOD.unpack(packed) == od
    od.ObjectString = od.SelectionString = ""
    assert od == mqi.MQOD(Version=4)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (184, 480, 2155),  # records beyond the end
        (184, 200, 2155),  # in the structure itself
        (184, -8, 2155),
        (168, 1000, 2155),
        (188, 526, 2156),
        (352, 10**9, 2044),  # offset of the string
        (352, -1, 2044),
        (352, 420, 2044),
        (360, 10**9, 2044),  # its length
        (360, -1, 2044),
    ],
)
def test_offsets_that_lead_outside_are_refused(at: int, value: int, reason: int) -> None:
    od = mqi.MQOD(Version=4, ObjectRecs=[mqi.MQOR()], ResponseRecs=[mqi.MQRR()], ObjectString="t")
    packed = bytearray(od.pack())[:529]
    struct.pack_into("=i", packed, at, value)
    with pytest.raises(InvalidValue, match="are not within") as error:
        mqi.MQOD.unpack(packed)
    assert error.value.reason == reason


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_bytes_make_unpack_do_anything_but_refuse_or_succeed(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(CLASSES))
    whole = bytearray(data.draw(structures(cls)).pack())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(0, len(whole))) :]
    try:
        cls.unpack(bytes(whole)).pack()
    except InvalidValue as error:
        assert error.reason in (cls.layout.reason, 2155, 2156, 2159)


def test_the_descriptor_in_a_transmission_header_shares_its_memory() -> None:
    header = mqi.MQXQH()
    inner = header.MsgDesc
    inner.Priority = 4
    assert header.MsgDesc.Priority == 4
    assert struct.unpack_from("=i", header.pack(), 104 + 40) == (4,)
    assert inner == mqi.MQMD(Priority=4) and inner.copy().length == 324
    alone = inner.copy()
    alone.Priority = 9
    assert header.MsgDesc.Priority == 4
    del header
    assert inner.Priority == 4
    with pytest.raises(AttributeError, match="324 bytes and has no GroupId"):
        inner.GroupId = b""
    assert not hasattr(inner, "MsgFlags")


def test_a_descriptor_in_a_cycle_with_its_header_is_collected_once() -> None:
    class Header(mqi.MQXQH):
        part: mqi.MQMD

    for _ in range(200):
        header = Header()
        header.part = header.MsgDesc
    del header
    assert gc.collect() >= 200
    assert [mqi.MQXQH() for _ in range(400)] == [mqi.MQXQH()] * 400


def test_a_descriptor_of_version_2_goes_into_a_transmission_header_as_version_1() -> None:
    md = mqi.MQMD(Version=2, Priority=3, GroupId=b"g")
    inner = mqi.MQXQH(MsgDesc=md).MsgDesc
    assert (inner.Version, inner.Priority) == (1, 3)
    assert md.Version == 2


def test_fields_of_a_later_version_are_kept_and_not_packed() -> None:
    md = mqi.MQMD(GroupId=b"g")
    assert md.pack() == mqi.MQMD().pack()
    md.Version = 2
    assert md.pack()[324:325] == b"g"


def test_bytes_of_an_early_version_that_belong_to_a_later_field_are_nul() -> None:
    cno = mqi.MQCNO(Version=4, ConnectionId=b"x" * 24)
    assert cno.pack()[164:] == bytes(4)
    cno.Version = 5
    assert cno.pack()[164:188] == b"x" * 24


def test_clear_gives_the_initial_values() -> None:
    od = mqi.MQOD(Version=4, ObjectName="Q", ObjectRecs=[mqi.MQOR()], ObjectString="t")
    od.clear()
    assert od == mqi.MQOD()
    header = mqi.MQXQH(MsgDesc=mqi.MQMD(Priority=3))
    header.MsgDesc.clear()
    assert header == mqi.MQXQH()


def test_a_layout_with_a_fault_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="overlaps"):

        @layout("XX", {1: 12}, 2195)
        class Overlapping(Structure):
            StrucId = CharField(0, 4, "XX")
            Version = LongField(3, 1)

    with pytest.raises(TypeError, match="does not fit"):

        @layout("", {0: 4}, 2195)
        class TooLong(Structure):
            Number = LongField(2)

    with pytest.raises(TypeError, match="no layout"):
        Structure()
    with pytest.raises(ValueError, match="no place"):
        ByteField(-1, 4)


def test_a_subclass_has_the_layout_of_its_base() -> None:
    class Mine(mqi.MQMD):
        __slots__ = ()

        def urgent(self) -> bool:
            return self.Priority > 6

    assert Mine(Priority=9).urgent()
    assert Mine.unpack(mqi.MQMD(Priority=2).pack()).Priority == 2
    assert type(Mine().copy()) is Mine
