"""The demonstration: every line of real files moves through a persistent priority queue, exactly
once, while its processes are killed.

Three producers put lines, two consumers take them, all in units of work and in separate processes:

* A *producer* keeps its position in a message on a queue for this purpose. Each unit takes the old
  position, puts the next lines and puts the new position, so a restarted producer continues where
  the last committed unit ended.
* A *consumer* takes lines and, in the same unit, puts a *receipt* that lists them on the ledger
  queue. So a line is always either on its queue or on a receipt.
* The *supervisor* kills a producer, a consumer, then all five at once with SIGKILL, restarts the
  queue manager, counts the messages, lets the rest finish, and proves that every line of the input
  is on exactly one receipt, with its bytes, its priority, and in order.

Modules: :mod:`plan` (the input and its distribution), :mod:`worker` (the processes), :mod:`census`
(the proofs), :mod:`device` (the raw disk, measured in the same run), :mod:`screen`,
:mod:`supervisor`.
"""

from __future__ import annotations

from .command import command as command
