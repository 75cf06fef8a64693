"""Rules that a table must keep, declared beside its asset: a table and its rules in, what broke out."""
