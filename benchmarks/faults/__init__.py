"""What goes wrong outside: damaged files, kills, forks. Counts of cases, and of wrong answers, which must be 0."""
