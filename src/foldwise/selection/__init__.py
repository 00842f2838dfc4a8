"""How many, how sure."""
