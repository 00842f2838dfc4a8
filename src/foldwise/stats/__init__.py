"""What merges: small frozen records with `of(block)` and `merge`."""
