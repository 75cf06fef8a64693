"""One kind of Arrow array in, the canonical texts of its values out: whole columns at once, never by row."""
