"""Speed of fits."""
