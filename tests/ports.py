"""Ports for the servers of tests.

A client goes on asking the port of a server that has ended. Where the kernel chose that port, it
gives it to the next program that wants any, and the client's words go there: a JVM of Spark that
waits on it for its Python workers takes "PRI " for the length of a text, and has no heap left. So
servers and proxies of tests listen on ports that the kernel gives to nobody.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOWEST = 10_000
TRIES = 100
CHOSEN_BY_KERNEL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_anywhere = random.SystemRandom()  # tests side by side choose different ones, also with one seed


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on now."""
    first, last = map(int, CHOSEN_BY_KERNEL.read_text().split())
    ports = [*range(LOWEST, first), *range(last + 1, 1 << 16)]
    for port in _anywhere.sample(ports, TRIES):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:  # somebody listens there, or may not be followed yet
                continue
            return port
    raise AssertionError(f"no port of {TRIES} outside {first}-{last} is free")
