"""Names, directories and qm.toml of queue managers."""

from __future__ import annotations

import grp
import os
from pathlib import Path

import pytest

from penstock.admin import settings as settings_file

SETTINGS = settings_file.Settings(qm_id=bytes(range(16)), name="QM.1/A")


def test_home_is_argument_then_environment_then_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.delenv("PENSTOCK_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert settings_file.home_directory() == Path("/home/u/.local/share/penstock")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert settings_file.home_directory() == Path("/data/penstock")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert settings_file.home_directory() == Path("/home/u/.local/share/penstock")
    monkeypatch.setenv("PENSTOCK_HOME", "/elsewhere")
    assert settings_file.home_directory() == Path("/elsewhere")
    assert settings_file.home_directory(tmp_path) == tmp_path
    assert settings_file.manager_directory("A.B/C", tmp_path) == tmp_path / "A!B&C"


@pytest.mark.parametrize("name", ["Q", "A.B/C", "x" * 48, "9_%", "..", "/"])
def test_directory_name_maps_back_to_the_queue_manager(name: str) -> None:
    directory = settings_file.directory_name(name)
    assert "/" not in directory and "." not in directory
    assert settings_file.manager_name(directory) == name


@pytest.mark.parametrize(
    ("name", "said"),
    [("", "empty"), ("x" * 49, "49 characters"), ("A B", "' '"), ("Ä", "'Ä'"), ("A\n", r"'\n'")],
)
def test_wrong_name_is_refused_with_its_reason(name: str, said: str) -> None:
    with pytest.raises(settings_file.ManagerNameError, match=said.replace("\\", "\\\\")):
        settings_file.directory_name(name)


def test_name_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="int"):
        settings_file.check_name(7)  # type: ignore[arg-type]


def test_listing_shows_only_directories_with_settings(tmp_path: Path) -> None:
    assert settings_file.manager_names(tmp_path / "absent") == []
    for name in ("B.1", "A"):
        directory = settings_file.manager_directory(name, tmp_path)
        directory.mkdir()
        settings = settings_file.Settings(qm_id=bytes(16), name=name)
        settings_file.write_settings(directory, settings)
    (tmp_path / "EMPTY").mkdir()
    (tmp_path / "not.ours").mkdir()
    (tmp_path / "FILE").write_text("")
    (tmp_path / "LINK").symlink_to(tmp_path / "A")
    assert settings_file.manager_names(tmp_path) == ["A", "B.1"]


def test_settings_come_back_as_written_with_the_mode_of_a_group(tmp_path: Path) -> None:
    group = grp.getgrgid(os.getegid()).gr_name
    settings = settings_file.Settings(
        qm_id=bytes(range(16)),
        name="QM.1/A",
        platform="zos",
        group=group,
        region_dir='/dev/shm/odd "name"\\ ü\t',
        segment_size=1 << 20,
        journal_limit=1 << 30,
    )
    before = os.umask(0o077)
    try:
        settings_file.write_settings(tmp_path, settings)
    finally:
        os.umask(before)
    assert settings_file.read_settings(tmp_path) == settings
    assert (tmp_path / "qm.toml").stat().st_mode & 0o777 == 0o660
    assert os.listdir(tmp_path) == ["qm.toml"]
    settings_file.write_settings(tmp_path, SETTINGS)
    assert settings_file.read_settings(tmp_path) == SETTINGS


def test_left_over_temporary_file_does_not_stop_the_writing(tmp_path: Path) -> None:
    (tmp_path / "qm.toml.tmp").write_text("half")
    settings_file.write_settings(tmp_path, SETTINGS)
    assert settings_file.read_settings(tmp_path) == SETTINGS


def test_settings_behind_a_link_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(settings_file.format_settings(SETTINGS))
    (tmp_path / "qm.toml").symlink_to("real")
    with pytest.raises(OSError, match="symbolic"):
        settings_file.read_settings(tmp_path)


def test_missing_keys_take_their_defaults() -> None:
    text = f'qm_id = "{bytes(16).hex()}"\nname = "Q"\n'
    assert settings_file.parse_settings(text) == settings_file.Settings(qm_id=bytes(16), name="Q")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("qm_id", "qm_ix"), "unknown key qm_ix"),
        (("[journal]", "[jornal]"), "unknown key jornal.segment_size"),
        (('name = "QM.1/A"', ""), "name is missing"),
        (('name = "QM.1/A"', 'name = "a b"'), "has the character ' '"),
        (('"000102', '"00010'), "not 32 lower-case hex digits"),
        (('"unix"', '"vms"'), "platform is"),
        (('"unix"', "7"), "platform is 7, not str"),
        (("segment_size = 67108864", "segment_size = true"), "segment_size is True, not int"),
        (("segment_size = 67108864", "segment_size = 67108865"), "not a multiple of 4096"),
        (("segment_size = 67108864", "segment_size = 4096"), "allowed are 32768"),
        (("limit = 68719476736", "limit = 134217728"), "less than four segments"),
        (('dir = "automatic"', 'dir = "shm"'), "absolute path"),
        (("[limits]", "[limits"), "not TOML"),
        (("[limits]", "limits = 1\n[x]"), "limits"),
    ],
)
def test_unusable_settings_are_refused_naming_the_key(change: tuple[str, str], said: str) -> None:
    text = settings_file.format_settings(SETTINGS)
    assert change[0] in text
    with pytest.raises(settings_file.SettingsError, match=said):
        settings_file.parse_settings(text.replace(*change))
