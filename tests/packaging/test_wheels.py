"""What the builder of wheels, the project's settings and its pins say of each other is true."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import wheels  # noqa: E402

X86_PYCONFIG = """\
#define HAVE_GCC_ASM_FOR_X64 1
#define HAVE_GCC_ASM_FOR_X87 1
/* #undef HAVE_USABLE_WCHAR_T */
#define PY_SUPPORT_TIER 1
#define SIZEOF_LONG 8
"""


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def pins() -> dict[str, str]:
    lines = wheels.PINS.read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_the_header_for_aarch64_differs_in_its_four_macros_only() -> None:
    assert wheels.aarch64_pyconfig(X86_PYCONFIG) == (
        "/* #undef HAVE_GCC_ASM_FOR_X64 */\n"
        "/* #undef HAVE_GCC_ASM_FOR_X87 */\n"
        "#define HAVE_USABLE_WCHAR_T 1\n"
        "#define PY_SUPPORT_TIER 2\n"
        "#define SIZEOF_LONG 8\n"
    )


@pytest.mark.parametrize(
    "name, oldest",
    [
        ("penstock-0.1.0-cp311-cp311-manylinux_2_26_x86_64.whl", (2, 26)),
        ("p-1-cp310-cp310-manylinux_2_28_aarch64.manylinux_2_27_aarch64.whl", (2, 27)),
    ],
)
def test_the_oldest_platform_of_a_wheel_is_read_from_its_name(
    name: str, oldest: tuple[int, int]
) -> None:
    assert wheels.oldest_glibc(name) == oldest


def test_a_wheel_without_a_manylinux_tag_is_refused() -> None:
    with pytest.raises(wheels.BuildError, match="no manylinux tag"):
        wheels.oldest_glibc("penstock-0.1.0-cp311-cp311-linux_x86_64.whl")


def test_names_of_a_wheel_follow_from_version_and_processor() -> None:
    wheel = wheels.Wheel("3.13", "aarch64")
    assert (wheel.tag, wheel.name) == ("cp313", "cp313-aarch64")
    assert wheel.suffix == ".cpython-313-aarch64-linux-gnu.so"


def test_a_missing_interpreter_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    with pytest.raises(wheels.BuildError, match=r"no Python 3\.99 with headers"):
        wheels.interpreter("3.99")


def test_every_version_that_the_package_names_gets_a_wheel(settings: dict[str, Any]) -> None:
    named = re.findall(r":: (3\.\d+)$", "\n".join(settings["project"]["classifiers"]), flags=re.M)
    assert list(wheels.VERSIONS) == named
    assert settings["project"]["requires-python"] == f">={wheels.VERSIONS[0]}"
    public = settings["tool"]["cibuildwheel"]["build"].split()
    assert {f"{wheels.Wheel(version, 'x86_64').tag}-*" for version in named} <= set(public)


def test_both_builders_have_the_same_processors_and_platform(settings: dict[str, Any]) -> None:
    linux = settings["tool"]["cibuildwheel"]["linux"]
    assert tuple(linux["archs"]) == wheels.ARCHES
    platform = f"manylinux_{wheels.TARGET_GLIBC.replace('.', '_')}"
    assert {linux[f"manylinux-{arch}-image"] for arch in wheels.ARCHES} == {platform}
    assert linux["environment"]["PIP_CONSTRAINT"].endswith(str(wheels.PINS.relative_to(ROOT)))


def test_the_pins_allow_what_the_build_requires(
    settings: dict[str, Any], pins: dict[str, str]
) -> None:
    for requirement in settings["build-system"]["requires"]:
        name, least = requirement.split(">=")
        pinned = [int(part) for part in pins[name].split(".")]
        assert pinned >= [int(part) for part in least.split(".")], name
