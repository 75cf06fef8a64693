"""Run every benchmark: ``python -m benchmarks [--quick]``."""

from benchmarks.hash_speed import main

main()
