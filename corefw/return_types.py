"""The named tuples that ops with several outputs return, by name; each is added when its op is declared."""
