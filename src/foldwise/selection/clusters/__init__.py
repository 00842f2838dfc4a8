"""How many clusters: one sweep over k, and criteria that judge it, each in a file of its own.

`rows.py` takes the rows that are judged, `sweep.py` fits them, `choose.py` counts the votes.
"""
