"""Connections, queues, status records and dead letters: the Python API."""
