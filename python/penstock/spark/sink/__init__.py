"""Sinks: write rows to a queue, in batches and in streams."""
