"""Small, complete members of the three families. CONTRIBUTING.md shows these files; a test keeps both equal."""
