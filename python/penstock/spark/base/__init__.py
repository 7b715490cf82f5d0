"""What sources and sinks share: options, schema, connection, units of work, errors."""
