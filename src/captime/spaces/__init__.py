"""Parameter spaces: what a program can be set to, drawn from, searched, read from and written to the usual files."""
