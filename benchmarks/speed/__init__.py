"""How long fits take."""
