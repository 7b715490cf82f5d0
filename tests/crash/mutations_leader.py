"""Mutations of what a leader publishes when: seen where it dies and another process goes on."""

from __future__ import annotations

from mutations_units import mutation

LEADER = (
    mutation(
        "a leader publishes as durable what it is about to write",
        "t3",
        "journal/group_commit.c",
        "    const int err = store->io->ops->write(store->io, fd, parts,",
        "    if (flags != 0) {\n"
        "        mqx_journal_set_durable(store->region.journal, flight->end);\n"
        "    }\n"
        "    const int err = store->io->ops->write(store->io, fd, parts,",
    ),
    mutation(
        "the mark of unsynced bytes is taken away before their flush has returned",
        "t3",
        "journal/group_commit.c",
        "    const int err = store->io->ops->sync(store->io, fd);\n"
        "    if (err != 0) {\n"
        '        return mqx_journal_write_failed(store, err, "flushing the journal");\n'
        "    }\n"
        "    mqx_store_release(&journal->unsynced, 0);\n",
        "    mqx_store_release(&journal->unsynced, 0);\n"
        "    const int err = store->io->ops->sync(store->io, fd);\n"
        "    if (err != 0) {\n"
        '        return mqx_journal_write_failed(store, err, "flushing the journal");\n'
        "    }\n",
    ),
    mutation(
        "a decided unit of a dead process is shown before it is flushed",
        "t3",
        "process/reaper.c",
        "    case MQX_CTX_DECIDED: return mqx_unit_finish(store, slot);\n",
        "    case MQX_CTX_DECIDED:\n"
        "        mqx_context(&store->region, slot)->decided_lsn = 0;\n"
        "        return mqx_unit_finish(store, slot);\n",
    ),
)
