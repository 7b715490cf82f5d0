"""Calls that only some files may make, and calls that nobody may make."""

from __future__ import annotations

import re

from c_source import CORE, CSRC, calls, relative

# The core talks to files through os/io.c alone (crash-safety rule 2).
FILE_CALL = re.compile(
    "openat2?|open|creat|p?readv?|p?writev?2?|f(data)?sync|sync_file_range|msync|f?truncate|"
    "(posix_)?fallocate|rename(at2?)?|unlink(at)?|link(at)?|mkdir(at)?|f(open|read|write|close)|"
    "mmap|munmap|flock|fcntl"
)
# ... but for what is no file of a queue manager.
NOT_STORAGE = {
    "base/assert.c": {"write"},  # the last words of a failed assertion, on stderr
    "os/host_info.c": {"open", "read"},  # /proc
    "os/life_thread.c": {"mmap", "munmap"},  # the page that the kernel reads
    "os/process_files.c": {"openat"},  # /proc
    "os/memory_limit.c": {"fopen", "fclose"},  # /proc, /sys
    # /proc, /sys; and a part of the file table, mapped for a moment
    "os/huge_pages.c": {"fopen", "fclose", "mmap", "munmap"},
    "os/page_memory.c": {"mmap", "munmap"},  # memory that malloc() would keep
    "os/fork_guard.c": {"mmap", "munmap"},  # the page that a fork empties
    # a socket and its name, which no storage has
    "os/wake_socket.c": {"close", "fchmod", "chmod", "chown", "fcntl", "fstat", "unlink"},
}
CLOCK_CALL = re.compile("clock_gettime|gettimeofday|time|nanosleep|usleep|clock_nanosleep")
CLOCK_ALLOWED = {
    "base/clock.c": {"clock_gettime", "nanosleep"},
    "os/io.c": {"clock_gettime"},  # the file table's wall clock, which tests set
    "region/lock.c": {"clock_gettime"},  # when a bounded wait for a mutex ends
}
UNSAFE_CALL = re.compile("gets|strcpy|strcat|v?sprintf|alloca|system|popen|atoi|strtok")


def forbidden(pattern: re.Pattern[str], allowed: dict[str, set[str]]) -> list[str]:
    found = []
    for path in CORE:
        may = allowed.get(str(path.relative_to(CSRC)), set())
        for line, name in calls(path.read_text()):
            if path.suffix == ".c" and pattern.fullmatch(name) and name not in may:
                found.append(f"{relative(path)}:{line}: {name}()")
    return found


def test_only_io_talks_to_files() -> None:
    assert forbidden(FILE_CALL, {**NOT_STORAGE, "os/io.c": everything("os/io.c")}) == []


def test_only_the_clock_reads_clocks() -> None:
    assert forbidden(CLOCK_CALL, CLOCK_ALLOWED) == []


def test_no_unsafe_calls() -> None:
    assert forbidden(UNSAFE_CALL, {}) == []


def everything(name: str) -> set[str]:
    return {call for _, call in calls((CSRC / name).read_text())}
