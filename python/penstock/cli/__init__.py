"""The ``penstock`` command: one module per subcommand, over the public Python interface alone.

Statuses: 0 done, 1 there was nothing to do (``get`` from an empty queue), 2 an error, whose reason
is on stderr, 3 what ``put`` put is lost, because it left as the last process. 130 after Ctrl-C.
"""
