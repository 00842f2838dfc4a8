"""How right the answers are."""
