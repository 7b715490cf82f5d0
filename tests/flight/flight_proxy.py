"""A TCP proxy between clients and a server, which cuts or silences connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from ports import free_port


class Proxy:
    """Carries bytes between a client and a server, until it is told to cut or to be silent."""

    def __init__(self, address: str, host: str = "127.0.0.1") -> None:
        target, port = address.removeprefix("grpc://").rsplit(":", 1)
        self.target = (target, int(port))
        self.listener = socket.create_server((host, free_port()))
        self.address = f"grpc://{host}:{self.listener.getsockname()[1]}"
        self.most = 1 << 62  # bytes to the server, after which the connection is cut
        self.delay = 0.0  # seconds that each piece of bytes waits
        self.cuts = 0
        self.open: list[socket.socket] = []
        self.silent: set[socket.socket] = set()
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:  # there is no server at the moment
                near.close()
                continue
            self.open += [near, far]
            for pair, counts in (((near, far), True), ((far, near), False)):
                threading.Thread(target=self.carry, args=(*pair, counts), daemon=True).start()

    def carry(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if source in self.silent:
                    continue
                if self.delay:
                    time.sleep(self.delay)
                if counts and not self.may_pass(len(data)):
                    break
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def may_pass(self, size: int) -> bool:
        with self.lock:
            self.most -= size
            if self.most > 0:
                return True
            self.cuts += 1
            self.most = 1 << 62
            return False

    def silence(self) -> None:
        """From now on nothing passes through the connections that there are, which stay open."""
        self.silent = set(self.open)

    def cut(self) -> None:
        """Ends the connections that there are."""
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()
