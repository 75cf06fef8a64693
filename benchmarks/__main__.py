"""Run every benchmark, each in a process of its own: ``python -m benchmarks [--quick]``."""

import subprocess
import sys

for name in ("hash_speed", "cli_speed", "receipt_cost", "drift_speed", "spark_speed"):
    print(f"\n=== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]], check=True)
