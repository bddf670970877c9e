"""`corefw conform`: every check of one backend, each in a process that may crash or hang, and the report of them."""
