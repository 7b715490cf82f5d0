"""The reader's file access: a queue manager's directory, mapped read-only.

Files are opened without following links, mapped with PROT_READ and never written. A queue manager
may be writing them: a reader that needs a consistent range copies it first and checks afterwards
that the segment's header is unchanged (FORMAT.md, "Reading beside a writer").
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from .errors import DamagedFile

_POPULATE_READ = 22  # MADV_POPULATE_READ, Linux 5.14
_MAPPED_MAX = 64
_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class FileSet(Protocol):
    """The two folders and the settings file of one queue manager.

    patience: how often the same files must fail before that is believed.
    """

    patience: int

    def names(self, folder: str) -> list[str]:
        """Names in ``journal`` or ``checkpoint``, sorted; empty when the folder is missing."""

    def size(self, path: str) -> int:
        """Bytes of the file; FileNotFoundError when it is not there."""

    def read(self, path: str, offset: int, size: int) -> bytes:
        """A copy of at most ``size`` bytes; shorter at the end of the file."""

    def check_file(self, path: str) -> None:
        """Whether a start would open the file: DamagedFile when not, FileNotFoundError."""

    def forget(self) -> None:
        """Closes the cached files, so that the next read opens the file of that name again."""

    def fingerprint(self) -> object:
        """A value that differs after any change of a file or a name."""


class DirectoryFiles:
    """A directory on disk. Holds at most 64 mappings; ``forget`` drops them all."""

    patience = 1
    only_name = True  # refuse a file that has another name, as a start does

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)
        self._mapped: OrderedDict[str, mmap.mmap] = OrderedDict()

    def names(self, folder: str) -> list[str]:
        """Sorted names in a folder; empty when it is missing."""
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def size(self, path: str) -> int:
        """Bytes of a file. Raises FileNotFoundError."""
        mapped = self._map(path)
        return 0 if mapped is None else len(mapped)

    def read(self, path: str, offset: int, size: int) -> bytes:
        """A copy of at most ``size`` bytes."""
        mapped = self._map(path)
        if mapped is None or offset >= len(mapped) or size <= 0:
            return b""
        size = min(size, len(mapped) - offset)
        first = offset & ~(mmap.PAGESIZE - 1)
        try:
            mapped.madvise(_POPULATE_READ, first, offset + size - first)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: a kernel without it
                text = f"cannot be read: {error.strerror}"
                raise DamagedFile(path, offset, "medium", text) from error
        return mapped[offset : offset + size]

    def check_file(self, path: str) -> None:
        """Opens and closes it. Raises DamagedFile or FileNotFoundError."""
        os.close(self._open(path)[0])

    def forget(self) -> None:
        """Closes all mappings."""
        self._mapped.clear()

    def fingerprint(self) -> object:
        """Changes when names, sizes or times of change do."""
        result = []
        for folder in ("journal", "checkpoint"):
            for name in self.names(folder):
                try:
                    at = os.stat(self.root / folder / name, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                result.append((folder, name, at.st_ino, at.st_size, at.st_mtime_ns))
        return result

    def _map(self, path: str) -> mmap.mmap | None:
        if path in self._mapped:
            self._mapped.move_to_end(path)
            return self._mapped[path]
        fd, size = self._open(path)
        try:
            if size == 0:
                return None
            mapped = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        finally:
            os.close(fd)
        self._mapped[path] = mapped
        if len(self._mapped) > _MAPPED_MAX:
            self._mapped.popitem(last=False)
        return mapped

    def _open(self, path: str) -> tuple[int, int]:
        """Descriptor and size of a file that a start would open, too."""
        try:
            fd = os.open(self.root / path, _OPEN_FLAGS)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise DamagedFile(path, 0, "file", "is a symbolic link") from error
            raise
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise DamagedFile(path, 0, "file", "is not a regular file")
            if status.st_nlink > 1 and self.only_name:
                text = f"has {status.st_nlink} names (hard links)"
                raise DamagedFile(path, 0, "file", text)
        except DamagedFile:
            os.close(fd)
            raise
        return fd, status.st_size


class MemoryFiles:
    """The same over a dictionary path -> bytes, for tests and images that lie in memory."""

    patience = 0

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def names(self, folder: str) -> list[str]:
        """Sorted names in a folder; empty when it is missing."""
        start = folder + "/"
        return sorted(path[len(start) :] for path in self.files if path.startswith(start))

    def size(self, path: str) -> int:
        """Bytes of a file. Raises FileNotFoundError."""
        return len(self._get(path))

    def read(self, path: str, offset: int, size: int) -> bytes:
        """A copy of at most ``size`` bytes."""
        return self._get(path)[offset : offset + size] if size > 0 else b""

    def check_file(self, path: str) -> None:
        """There is nothing to be checked in memory."""

    def forget(self) -> None:
        """Nothing is held."""

    def fingerprint(self) -> object:
        """Changes when names, sizes or times of change do."""
        return len(self.files)

    def _get(self, path: str) -> bytes:
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None
