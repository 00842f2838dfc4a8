"""`fw.explore`: directions, groups, how many, how sure, in one call."""
