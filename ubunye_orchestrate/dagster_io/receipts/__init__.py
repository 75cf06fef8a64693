"""What a step leaves behind: from a step's context and a fingerprint to its receipt and its record."""
