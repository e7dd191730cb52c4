"""The file that records every run: one writer, any number of readers, nothing is ever changed."""
