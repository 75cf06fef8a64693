"""``python -m ubunye_orchestrate.cli`` is ``ubunye-orchestrate``."""

from ubunye_orchestrate.cli import main

if __name__ == "__main__":
    main()
