"""``python -m ubunye_orchestrate.cli`` is ``ubunye-orchestrate``."""

from ubunye_orchestrate.cli import main

main()
