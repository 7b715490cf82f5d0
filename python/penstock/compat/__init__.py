"""The compiled halves of other people's MQ clients: their own Python layers run on penstock.

Two public Python clients of MQ consist of a Python layer and a compiled module that calls MQ's
libraries: ``pymqi`` with ``pymqe``, and IBM's ``ibmmq`` with ``ibmmqc``. :mod:`.pymqe` and
:mod:`.ibmmqc` stand in for the compiled modules: the same functions with the same arguments and
results, structures as bytes in the layout of MQ on a 64-bit machine, on an embedded queue manager.
A program and the Python layer stay as they are::

    import penstock.compat

    penstock.compat.install()  # first of all
    import pymqi

    qmgr = pymqi.QueueManager("QM1")

or, without a change of the program, ``python -m penstock.compat program.py arguments``.

The Python layer has to be importable: installed, or the source distribution of the client unpacked
in a folder of ``sys.path`` (for ``ibmmq`` also its folder ``ibmmq``, whose modules import each
other by their own names). A compiled module of the client is not needed, and not used.

What differs from the client with MQ's libraries:

* A connection is one in bindings mode. An application that asks for a client connection (an MQCD,
  a CCDT, MQCNO_CLIENT_BINDING) gets 2540: there are no channels. With
  ``install(clients_are_local=True)``, or ``python -m penstock.compat --clients-are-local``, it is
  connected to the queue manager of that name on this machine instead; its channel, address, TLS and
  user are not looked at.
* User and password are not checked: rights are those of the directory of the queue manager.
* What the MQI of penstock refuses is refused here with the same reason code: publish/subscribe,
  message handles and asynchronous consumption with 2298. PCF commands are 2322: there is no command
  server.
* ``ibmmq`` passes no trace context of OpenTelemetry on: it does that by message handles, at every
  put and get of a program in which ``opentelemetry`` can be imported.
* ``last_error()`` is the text that belongs to the newest failure of the thread.

Both modules are written from what the Python layers call and take; no code is theirs.
"""

from __future__ import annotations

import importlib
import sys

from ._native import last_error, options

__all__ = ["install", "last_error", "uninstall"]

_CLIENTS = {"pymqi": "pymqe", "ibmmq": "ibmmqc"}  # the Python layer, its compiled half
_TRACING = "mqotel"  # the part of ibmmq for OpenTelemetry, which goes on without it


def install(*, clients_are_local: bool = False) -> None:
    """Puts the stand-ins in place of the compiled modules, for imports that follow.

    Args:
        clients_are_local: an application that asks for a client connection is connected to the
            queue manager of that name on this machine; else it is refused (2540).

    Raises:
        ImportError: a client has been imported with its compiled module.
    """
    for layer, compiled in _CLIENTS.items():
        there = getattr(sys.modules.get(layer), compiled, None)
        if there is not None and not there.__name__.startswith(__name__):
            raise ImportError(
                f"{layer} has been imported with its own {compiled}: install() goes first"
            )
    for layer, compiled in _CLIENTS.items():
        module = importlib.import_module(f"{__name__}.{compiled}")
        sys.modules[compiled] = sys.modules[f"{layer}.{compiled}"] = module
    sys.modules.setdefault(_TRACING, None)  # type: ignore[arg-type]  # its import fails
    options.clients_are_local = clients_are_local


def uninstall() -> None:
    """Takes the stand-ins away for imports that follow; what was imported keeps them."""
    for layer, compiled in _CLIENTS.items():
        for name in (compiled, f"{layer}.{compiled}"):
            if getattr(sys.modules.get(name), "__name__", "").startswith(__name__):
                del sys.modules[name]
    if sys.modules.get(_TRACING, sys) is None:
        del sys.modules[_TRACING]
    options.clients_are_local = False
