"""The guided demo: the example four times on one instance, and what the drift sensor finds after each.

``python -m example_project.demo`` runs it; ``make demo`` does the same from a fresh clone.
"""
