"""From results to words, files and pictures."""
