"""Takes the picture of the metadata panel that the README shows: the real pages in a headless Chromium.

``python scripts/screenshot_panel.py`` looks at the instance that ``make demo`` left; run the demo first.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "metadata_panel.png"

_CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but the server on this machine is asked for anything.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def chromium() -> str | None:
    """Return the path of the system's Chromium, or None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def webserver(home: Path, log: Path, module: str = "definitions") -> Iterator[str]:
    """Serve a project's pages on a free port of the loopback interface, on the instance in ``home``.

    ``module`` is the project, by default the example.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "dagster-webserver"), "-h", "127.0.0.1", "-p", str(port)]
    with log.open("w") as output:
        server = subprocess.Popen(
            [*command, "-m", module],
            cwd=ROOT,
            env={**os.environ, "DAGSTER_HOME": str(home)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_served(f"{url}/server_info", server, log)
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_until_served(url: str, server: subprocess.Popen[bytes], log: Path, patience: float = 120) -> None:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(
                f"dagster-webserver ended with {server.returncode}:\n{log.read_text()[-2000:]}"
            )
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise RuntimeError(f"dagster-webserver did not answer in {patience:.0f} s:\n{log.read_text()[-2000:]}")


@contextmanager
def opened(address: str, *texts: str, width: int = 1700, height: int = 960) -> Iterator[Page]:
    """Open a page, and wait until each of the texts stands on it."""
    executable = chromium()
    if executable is None:
        raise RuntimeError("no chromium on this machine; Debian's package is called chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=_CHROMIUM_FLAGS)
        try:
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(address)
            for text in texts:
                page.get_by_text(text, exact=True).first.wait_for(timeout=60_000)
            page.wait_for_load_state("networkidle")
            yield page
        finally:
            browser.close()


@contextmanager
def panel(url: str, asset: str, partition: str | None = None) -> Iterator[Page]:
    """Open the page of an asset's newest materialization, and wait until its metadata is drawn."""
    query = {"view": "partitions", "partition": partition} if partition else {"view": "events"}
    address = f"{url}/assets/{asset}?{urlencode(query)}"
    with opened(address, "ubunye/data_hash", "ubunye/changes") as page:
        yield page


def main() -> None:
    """Serve the demo's instance, look at one asset, save the picture."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--home", type=Path, default=ROOT / ".ubunye" / "demo" / "dagster_home")
    arguments.add_argument("--asset", default="carrier_report")
    arguments.add_argument("--partition", default="2013-02-01")
    arguments.add_argument("--picture", type=Path, default=PICTURE)
    chosen = arguments.parse_args()
    with (
        webserver(chosen.home, chosen.home / "webserver.log") as url,
        panel(url, chosen.asset, chosen.partition) as page,
    ):
        chosen.picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=chosen.picture)
    print(f"{chosen.picture}: {chosen.picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
