"""``penstock serve``: queue managers of this host for programs on others, by Arrow Flight.

The server runs in the foreground until SIGTERM, SIGINT or the end of its service manager; what
clients have prepared stays for the next start. Beyond this machine's own addresses it wants TLS and
either tokens or certificates of clients.
"""

from __future__ import annotations

import ipaddress
import os
import signal
import stat
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .common import F, directory_of, fail, home_option, say
from .terminal import echo

if TYPE_CHECKING:
    from penstock.flight.server import Extension, Server

DEFAULT_LISTEN = "127.0.0.1:8815"
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_SECONDS = click.FloatRange(min=1)
_END_SECONDS = 5.0
_LOOK_SECONDS = 1.0


def _options(function: F) -> F:
    """The options of the command."""
    for option in reversed(
        (
            click.option("--listen", default=DEFAULT_LISTEN, show_default=True,
                         metavar="HOST:PORT", help="Where; port 0: any, which is printed."),
            click.option("--tls", nargs=2, type=_FILE, metavar="CERT KEY",
                         help="Certificate chain and key."),
            click.option("--client-ca", type=_FILE, metavar="FILE",
                         help="Clients need a certificate that one of these has signed."),
            click.option("--token-file", type=_FILE, metavar="FILE",
                         help="Tokens of clients, and what they allow."),
            click.option("--without-token", is_flag=True,
                         help="Serve every process of this machine, on its own addresses alone."),
            click.option("--lease", default=3600.0, show_default=True, metavar="SECONDS",
                         type=_SECONDS, help="What is prepared is backed out after that."),
            click.option("--stall", default=60.0, show_default=True, metavar="SECONDS",
                         type=_SECONDS, help="A put that sends nothing ends after that."),
            click.option("--max-calls", default=64, show_default=True,
                         type=click.IntRange(min=1), help="Calls at a time."),
            click.option("--max-batch", default=128, show_default=True, metavar="MIB",
                         type=click.IntRange(1, 1024), help="A record batch of a put at most."),
            click.option("--new-token", metavar="NAME",
                         help="Print the entry of a new token, and on stderr the token."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@click.command("serve")
@click.argument("qms", metavar="QM...", nargs=-1)
@home_option
@_options
def command(qms: tuple[str, ...], home: Path | None, new_token: str | None, **given: Any) -> None:
    """Serve queue managers to programs on other hosts (penstock.flight)."""
    if new_token is not None:
        _print_token(new_token)
        return
    if not qms:
        raise click.UsageError("name the queue managers to be served")
    for qm in qms:
        directory_of(qm, home)
    _check(**given)
    _serve(qms, home, **given)


def _print_token(name: str) -> None:
    from penstock.flight.access import TokenFileError, made

    try:
        token, entry = made(name)
    except TokenFileError as error:
        fail(str(error))
    for line in entry.splitlines():
        echo(line)
    say(f"the token of {name}, which is stored nowhere: {token}")


def _check(
    listen: str,
    tls: tuple[Path, Path] | None,
    client_ca: Path | None,
    token_file: Path | None,
    without_token: bool,
    **_: Any,
) -> None:
    """Ends the command for what would leave the queues open to others."""
    host, port = listen.rpartition(":")[::2]
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        fail(f"--listen {listen}: it takes HOST:PORT")
    if client_ca is not None and tls is None:
        fail("--client-ca goes with --tls")
    is_own = _is_own(host)
    if tls is None and not is_own:
        fail(f"--listen {listen} is not this machine's own address: there it needs --tls CERT KEY")
    if without_token and (token_file is not None or not is_own):
        fail("--without-token goes without --token-file, on this machine's own addresses")
    if token_file is None and client_ca is None and not without_token:
        fail(
            "who may connect? --token-file FILE (--new-token NAME makes an entry), --client-ca "
            "FILE, or --without-token for every process of this machine"
        )
    for path in (tls[1] if tls else None, token_file):
        if path is not None and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            fail(f"{path}: others can read or write it: chmod 600 {path}")


def _spark(homes: dict[str, Path | None]) -> Extension:
    """The half of Spark's data source that works here."""
    from penstock.flight.without_spark import WithoutSpark

    try:
        from penstock.spark.remote.service import SparkService
    except ImportError:
        return WithoutSpark()
    return SparkService(homes)


def _is_own(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _serve(
    qms: tuple[str, ...],
    home: Path | None,
    listen: str,
    tls: tuple[Path, Path] | None,
    client_ca: Path | None,
    token_file: Path | None,
    lease: float,
    stall: float,
    max_calls: int,
    max_batch: int,
    **_: Any,
) -> None:
    try:
        import pyarrow as pa

        from penstock.flight.server import Limits, Server
    except ImportError as error:
        fail(f"penstock serve needs pyarrow: pip install 'penstock[serve]' ({error})")
    import penstock
    from penstock.flight.access import TokenFile, TokenFileError
    from penstock.flight.service import Service

    try:
        tokens = TokenFile(str(token_file)) if token_file is not None else None
    except TokenFileError as error:
        fail(str(error))
    secure: dict[str, Any] = {}
    if tls is not None:
        secure["tls_certificates"] = [tuple(path.read_bytes() for path in tls)]
    if client_ca is not None:
        secure["verify_client"] = True
        secure["root_certificates"] = client_ca.read_bytes()
    connect = {name: partial(penstock.connect, name, home) for name in qms}
    spark = _spark(dict.fromkeys(qms, home))
    service = Service(connect, lease, stall)
    scheme = "grpc+tls" if tls is not None else "grpc"
    try:
        server = Server(
            f"{scheme}://{listen}",
            service,
            tokens,
            Limits(max_calls, max_batch << 20),
            [spark],
            [] if tokens is None else [tokens.look],
            **secure,
        )
    except pa.ArrowException as error:
        fail(f"--listen {listen}: {error}")
    host = listen.rpartition(":")[0]
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    echo(f"serving {', '.join(qms)} at {scheme}://{host}:{server.port}")
    # a signal that the kernel has given to a thread of gRPC's ends no wait of this one
    while not ended.wait(_LOOK_SECONDS):
        pass
    _end(server)


def _end(server: Server) -> None:
    """Ends the server; what clients have not read of their rows a moment later is left."""
    ending = threading.Thread(target=server.shutdown, daemon=True)
    ending.start()
    ending.join(_END_SECONDS)
    say("ended")
    if ending.is_alive():  # a call whose client is silent: its thread would hold the process up
        sys.stdout.flush()
        os._exit(0)
