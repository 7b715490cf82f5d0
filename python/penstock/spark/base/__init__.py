"""Shared by sources and sinks: options, schema, connection, units of work, errors."""
