"""Research beside captime: methods of other authors, and the figures of the papers from recorded runtimes."""
