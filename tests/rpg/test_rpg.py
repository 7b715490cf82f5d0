"""The ILE RPG names: positions, fields and constants of the IBM i documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock
from penstock import mqi, rpg

# Positions from 1, as the copy files declare them: the whole MQMD, MQMDE, MQGMO, and of MQOD and
# MQPMO what lies before the first pointer.
POSITIONS = """
MDSID 1-4 MDVER 5-8 MDREP 9-12 MDMT 13-16 MDEXP 17-20 MDFB 21-24 MDENC 25-28 MDCSI 29-32
MDFMT 33-40 MDPRI 41-44 MDPER 45-48 MDMID 49-72 MDCID 73-96 MDBOC 97-100 MDRQ 101-148
MDRM 149-196 MDUID 197-208 MDACC 209-240 MDAID 241-272 MDPAT 273-276 MDPAN 277-304 MDPD 305-312
MDPT 313-320 MDAOD 321-324 MDGID 325-348 MDSEQ 349-352 MDOFF 353-356 MDMFL 357-360 MDOLN 361-364
MESID 1-4 MEVER 5-8 MELEN 9-12 MEENC 13-16 MECSI 17-20 MEFMT 21-28 MEFLG 29-32 MEGID 33-56
MESEQ 57-60 MEOFF 61-64 MEMFL 65-68 MEOLN 69-72
GMSID 1-4 GMVER 5-8 GMOPT 9-12 GMWI 13-16 GMSG1 17-20 GMSG2 21-24 GMRQN 25-72 GMMO 73-76
GMGST 77-77 GMSST 78-78 GMSEG 79-79 GMRE1 80-80 GMTOK 81-96 GMRL 97-100
ODSID 1-4 ODVER 5-8 ODOT 9-12 ODON 13-60 ODMN 61-108 ODDN 109-156 ODAU 157-168 ODREC 169-172
ODKDC 173-176 ODUDC 177-180 ODIDC 181-184 ODORO 185-188 ODRRO 189-192
PMSID 1-4 PMVER 5-8 PMOPT 9-12 PMTO 13-16 PMCT 17-20 PMKDC 21-24 PMUDC 25-28 PMIDC 29-32
PMRQN 33-80 PMRMN 81-128 PMREC 129-132 PMPRF 133-136 PMPRO 137-140 PMRRO 141-144
DLSID 1-4 DLVER 5-8 DLREA 9-12 DLDQ 13-60 DLDM 61-108 DLENC 109-112 DLCSI 113-116 DLFMT 117-124
DLPAT 125-128 DLPAN 129-156 DLPD 157-164 DLPT 165-172
XQSID 1-4 XQVER 5-8 XQRQ 9-56 XQRQM 57-104 XQMD 105-428
"""

# RPG name, MQI name, number: the table of names in the IBM i documentation.
NAMES = """
PEPER MQPER_PERSISTENT 1; PENPER MQPER_NOT_PERSISTENT 0; PEQDEF MQPER_PERSISTENCE_AS_Q_DEF 2
PRQDEF MQPRI_PRIORITY_AS_Q_DEF -1; MSPRIO MQMDS_PRIORITY 0; MSFIFO MQMDS_FIFO 1
CONONE MQCO_NONE 0; CODEL MQCO_DELETE 1; COPURG MQCO_DELETE_PURGE 2; COKPSB MQCO_KEEP_SUB 4
CORMSB MQCO_REMOVE_SUB 8; COQSC MQCO_QUIESCE 32; COIMM MQCO_IMMEDIATE 0
QDPRE MQQDT_PREDEFINED 1; QDPERM MQQDT_PERMANENT_DYNAMIC 2; QDTEMP MQQDT_TEMPORARY_DYNAMIC 3
QTLOC MQQT_LOCAL 1; QTMOD MQQT_MODEL 2; QTALS MQQT_ALIAS 3; QTREM MQQT_REMOTE 6
QTCLUS MQQT_CLUSTER 7; OOINPQ MQOO_INPUT_AS_Q_DEF 1; OOINPS MQOO_INPUT_SHARED 2
OOINPX MQOO_INPUT_EXCLUSIVE 4; OOBRW MQOO_BROWSE 8; OOOUT MQOO_OUTPUT 16; OOINQ MQOO_INQUIRE 32
OOSET MQOO_SET 64; OOBNDO MQOO_BIND_ON_OPEN 16384; OOBNDN MQOO_BIND_NOT_FIXED 32768
OOBNDQ MQOO_BIND_AS_Q_DEF 0; OOSAVA MQOO_SAVE_ALL_CONTEXT 128
OOALTU MQOO_ALTERNATE_USER_AUTHORITY 4096; OOFIQ MQOO_FAIL_IF_QUIESCING 8192
BNDNOT MQBND_BIND_NOT_FIXED 1; PMSYP MQPMO_SYNCPOINT 2; PMNSYP MQPMO_NO_SYNCPOINT 4
PMNMID MQPMO_NEW_MSG_ID 64; GMWT MQGMO_WAIT 1; GMSYP MQGMO_SYNCPOINT 2; GMLK MQGMO_LOCK 512
GMBRWF MQGMO_BROWSE_FIRST 16; GMBRWN MQGMO_BROWSE_NEXT 32
GMBRWC MQGMO_BROWSE_MSG_UNDER_CURSOR 2048; GMMUC MQGMO_MSG_UNDER_CURSOR 256
GMLOGO MQGMO_LOGICAL_ORDER 32768; MONONE MQMO_NONE 0; MOMSGI MQMO_MATCH_MSG_ID 1
MOCORI MQMO_MATCH_CORREL_ID 2; EIULIM MQEI_UNLIMITED -1; TTFRST MQTT_FIRST 1
NPFAST MQNPMS_FAST 2; IADPER MQIA_DEF_PERSISTENCE 5; IADPRI MQIA_DEF_PRIORITY 6
IAMDS MQIA_MSG_DELIVERY_SEQUENCE 16; IAMPRI MQIA_MAX_PRIORITY 14
IABTHR MQIA_BACKOUT_THRESHOLD 22; IADINP MQIA_DEF_INPUT_OPEN_OPTION 4; IADBND MQIA_DEF_BIND 61
IAIPUT MQIA_INHIBIT_PUT 10; IAQTYP MQIA_Q_TYPE 20; IAMUNC MQIA_MAX_UNCOMMITTED_MSGS 33
IATRGI MQIA_TRIGGER_INTERVAL 25; CAQN MQCA_Q_NAME 2016; CAQD MQCA_Q_DESC 2013
CABASQ MQCA_BASE_Q_NAME 2002; CAXQN MQCA_XMIT_Q_NAME 2024; LNQN MQ_Q_NAME_LENGTH 48
LNQMN MQ_Q_MGR_NAME_LENGTH 48; CCOK MQCC_OK 0; CCWARN MQCC_WARNING 1; CCFAIL MQCC_FAILED 2
RCNONE MQRC_NONE 0
ROPDAE MQRO_PASS_DISCARD_AND_EXPIRY 16384
IAIGET MQIA_INHIBIT_GET 9; IACDEP MQIA_CURRENT_Q_DEPTH 3; IAOIC MQIA_OPEN_INPUT_COUNT 17
GMPRIH MQGMO_PROPERTIES_IN_HANDLE 134217728
"""
STRUCTURES = [mqi.MQMD, mqi.MQMDE, mqi.MQOD, mqi.MQPMO, mqi.MQGMO, mqi.MQDLH, mqi.MQXQH]


def pairs() -> list[tuple[str, str]]:
    words = POSITIONS.split()
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(("name", "place"), pairs())
def test_a_field_lies_at_its_position(name: str, place: str) -> None:
    first, last = map(int, place.split("-"))
    assert rpg.POSITIONS[name] == (first, last)


def test_what_is_set_at_a_position_is_in_those_bytes() -> None:
    view = rpg.MSGDSC(MDPER=rpg.PEPER, MDPRI=7, MDFMT="MQSTR", MDVER=rpg.MDVER2, MDGID=b"g" * 24)
    packed = view.structure.pack()
    assert packed[40:44] == (7).to_bytes(4, "little") or packed[40:44] == (7).to_bytes(4, "big")
    assert packed[32:40] == b"MQSTR   "
    assert packed[324:348] == b"g" * 24


def test_every_field_of_the_structures_has_one_rpg_name() -> None:
    for cls in STRUCTURES:
        view = rpg.view(cls())  # type: ignore[call-overload]
        names = {
            at.field.name: name
            for name, at in vars(type(view)).items()
            if isinstance(at, rpg._Name)
        }
        lists = {"ObjectRecs", "ResponseRecs", "PutMsgRecs"}
        assert set(names) == set(cls.layout.fields) - lists
        assert all(re.fullmatch(r"[A-Z][A-Z0-9]{3,5}", name) for name in names.values())


@pytest.mark.parametrize("line", re.split(r";\s|\n", NAMES.strip()))
def test_constants_have_the_values_of_the_mqi(line: str) -> None:
    name, mqi_name, number = line.split()
    assert getattr(rpg, name) == getattr(mqi, mqi_name) == int(number)


def test_every_reason_code_has_its_name() -> None:
    for code in mqi.REASONS:
        assert getattr(rpg, f"RC{code}" if code else "RCNONE") == code
    assert not hasattr(rpg, "RC2015")


def test_ids_and_text_of_none_are_what_the_fields_hold() -> None:
    view = rpg.MSGDSC()
    assert (view.MDMID, view.MDCID, view.MDFMT) == (rpg.MINONE, rpg.CINONE, rpg.FMNONE)
    assert (view.MDPRI, view.MDPER, view.MDEXP) == (rpg.PRQDEF, rpg.PEQDEF, rpg.EIULIM)
    assert (view.MDSID, view.MDVER, view.MDENC) == (rpg.MDSIDV, rpg.MDVER1, rpg.ENNAT)
    get = rpg.GMO()
    assert (get.GMOPT, get.GMMO) == (rpg.GMNWT, rpg.MOMSGI + rpg.MOCORI)
    assert (get.GMGST, get.GMSST, get.GMSEG) == (rpg.GSNIG, rpg.SSNSEG, rpg.SEGIHB)
    assert (get.GMTOK, get.GMRL) == (rpg.MTKNON, rpg.RLUNDF)


def test_a_view_reads_and_writes_the_structure_itself() -> None:
    md = mqi.MQMD(Priority=3)
    view = rpg.view(md)
    assert view.MDPRI == 3
    view.MDPER = rpg.PENPER
    assert md.Persistence == mqi.MQPER_NOT_PERSISTENT
    assert view.structure is md
    assert view == rpg.MSGDSC(MDPRI=3, MDPER=0)
    assert view != rpg.MSGDSC() and view != md
    assert repr(view) == "MSGDSC(MDPRI=3, MDPER=0)"


def test_the_descriptor_inside_a_transmission_header_is_a_view_too() -> None:
    header = rpg.XQH(XQRQ="Q", XQRQM="QM2")
    header.XQMD.MDPRI = 5
    assert mqi.MQXQH.unpack(header.structure.pack()).MsgDesc.Priority == 5
    header.XQMD = rpg.MSGDSC(MDPER=rpg.PEPER)
    assert header.XQMD.MDPER == rpg.PEPER
    header.XQMD = mqi.MQMD(Priority=2)
    assert repr(header) == "XQH(XQRQ='Q', XQRQM='QM2', XQMD=MSGDSC(MDPRI=2))"
    with pytest.raises(AttributeError, match="GroupId"):
        header.XQMD.MDGID = b""


def test_wrong_names_and_structures_are_refused() -> None:
    with pytest.raises(TypeError, match="MDPRX"):
        rpg.MSGDSC(MDPRX=1)
    with pytest.raises(TypeError, match="ODON"):
        rpg.MSGDSC(ODON="Q")
    with pytest.raises(TypeError, match="not 5"):
        rpg.MSGDSC(5)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        rpg.MSGDSC().MDPRX = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="MQOD"):
        rpg.MSGDSC(mqi.MQOD())
    with pytest.raises(TypeError, match="no RPG names"):
        rpg.view(mqi.MQRR())  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"MQMD\.Priority"):
        rpg.MSGDSC(MDPRI=1 << 40)


def test_verbs_take_views_in_place_of_structures(
    home: Path, monkeypatch: pytest.MonkeyPatch, qm: penstock.QueueManager
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    qm.define("QLOCAL", "Q")
    hconn, comp_code, reason = mqi.MQCONN("QM1")
    assert (comp_code, reason) == (rpg.CCOK, rpg.RCNONE)
    od = rpg.OBJDSC(ODON="Q")
    hobj, comp_code, reason = mqi.MQOPEN(hconn, od, rpg.OOINPS | rpg.OOOUT)
    assert (comp_code, reason) == (rpg.CCOK, rpg.RCNONE)
    md = rpg.MSGDSC(MDPRI=3)
    assert mqi.MQPUT(hconn, hobj, md, rpg.PMO(), b"one") == (0, 0)
    assert mqi.MQPUT1(hconn, od, rpg.MSGDSC(), rpg.PMO(), b"two") == (0, 0)
    assert md.MDMID != rpg.MINONE
    got = rpg.MSGDSC(MDMID=md.MDMID)
    assert mqi.MQGET(hconn, hobj, got, rpg.GMO())[0] == b"one" and got.MDPRI == 3
    both = mqi.MQOD(Version=2, ObjectRecs=[mqi.MQOR(ObjectName="Q")] * 2)
    many = mqi.MQOPEN(hconn, rpg.view(both), rpg.OOOUT)[0]
    assert mqi.MQPUT(hconn, many, rpg.MSGDSC(), rpg.PMO(), b"list") == (0, 0)
    assert mqi.MQPUT1(hconn, rpg.view(both), rpg.MSGDSC(), rpg.PMO(), b"list") == (0, 0)
    assert qm.display("QLOCAL", "Q")[0]["curdepth"] == 5
    for wrong in (rpg.GMO(), object(), None):
        assert mqi.MQPUT(hconn, hobj, wrong, rpg.PMO(), b"") == (2, rpg.RC2026)
    assert mqi.MQDISC(hconn) == (0, 0)
