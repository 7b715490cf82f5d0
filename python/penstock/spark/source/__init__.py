"""Sources: browse a queue, read it as a stream, scan the journal."""
