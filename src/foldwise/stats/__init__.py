"""Mergeable statistics: small frozen records with `of(block)` and `merge`."""
