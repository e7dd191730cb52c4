"""Charts as values, drawn twice: as SVG for pages (`svg`), and by matplotlib for papers (`print`).

`chart` says what a chart is and where things stand on an axis. Nothing here knows what a campaign is.
"""
