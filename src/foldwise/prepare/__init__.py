"""From columns as people have them to columns of numbers."""
