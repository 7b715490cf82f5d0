"""Queue managers beyond one host: bulk data through Arrow Flight.

``penstock serve`` is the server, on the queue managers' host; :func:`connect` is for programs
elsewhere, producers and notebooks::

    remote = penstock.flight.connect("grpc+tls://host:8815", "QM1", token=token, ca="ca.pem")
    remote.put_batch("ORDERS", [b"bolts", b"nuts"], unit="order-4711")
    with remote.take("ORDERS", unit="job-17", max_messages=100_000) as taken:
        table = taken.read_all()
        taken.commit()

This is not the MQI: there are no handles, no waits and no single messages, and every call is one of
many messages or about a unit of work with a name. A call that is repeated under the same name, with
the same attempt, has its effect once, whichever of server, network or client failed in between.

Needs the extra ``serve`` (``pip install 'penstock[serve]'``): pyarrow with Flight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import RemoteQueueManager

__all__ = ["connect"]


def connect(
    endpoint: str,
    manager: str,
    *,
    token: str | None = None,
    ca: str | None = None,
    certificate: tuple[str, str] | None = None,
    call_seconds: float = 30.0,
    retry_seconds: float = 60.0,
) -> RemoteQueueManager:
    """A connection to a queue manager of a server.

    Args:
        endpoint: ``grpc+tls://host:port``, or ``grpc://host:port`` on this machine's own addresses.
        manager: Name of the queue manager.
        token: The bearer token, where the server wants one.
        ca: File with the certificates that the server's is checked against; None: the system's.
        certificate: Files of the client's own certificate and key, for mutual TLS.
        call_seconds: The longest time of a call without progress.
        retry_seconds: How long a call is repeated while the server cannot be reached.

    Raises:
        ConnectionBroken: 2009: there is no such server, or none in that time.
        NotAuthorized: 2035: the token is wrong, or it does not allow this queue manager.
        UnknownQueueManager: 2058: the server does not serve it.
        ImportError: There is no pyarrow with Flight.
    """
    try:
        from .client import RemoteQueueManager
    except ImportError as error:
        raise ImportError("penstock.flight needs pyarrow: pip install 'penstock[serve]'") from error

    return RemoteQueueManager(
        endpoint,
        manager,
        token=token,
        ca=ca,
        certificate=certificate,
        call_seconds=call_seconds,
        retry_seconds=retry_seconds,
    )
