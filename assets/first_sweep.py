"""`make sweep`: the bundled sweep where there is only Python, and beside it the truth that grep would give."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx

from ctxstream_dagster.embedded.weights import DEFAULT_MODEL
from ctxstream_dagster.extraction.host import base_url

CORPUS = Path(__file__).parent / "corpora" / "tickets.txt"
_START_S = 600


def main() -> int:
    """Run the sweep against the Ollama of OLLAMA_HOST, or the embedded model when none answers; return its status."""
    with _model() as embedded:
        status = subprocess.run([_ctxstream(), "sweep", "status_census"], check=False).returncode
    truth = Counter(re.findall(r"Status: (\w+)", CORPUS.read_text(encoding="utf-8")))
    print("\nThe truth, counted by code in the file itself:")
    for label, count in sorted(truth.items(), key=lambda pair: pair[1]):
        print(f" {label:<12} {count:>6}")
    print("\nSee every segment in the Dagster UI: make dev, then http://127.0.0.1:3000/assets")
    if embedded:
        print("To ask again from there, first run in another terminal: ctxstream serve-model")
        print(f"and start the UI by: CTXSTREAM_MODEL={DEFAULT_MODEL} make dev")
    return status


@contextlib.contextmanager
def _model() -> Iterator[bool]:
    """Have a model answer meanwhile; yield whether it is the embedded one, which ends afterwards."""
    if _answers():
        yield False
        return
    print(f"No Ollama answers at {base_url(os.environ.get('OLLAMA_HOST', ''))}: starting the embedded model.")
    os.environ.setdefault("CTXSTREAM_MODEL", DEFAULT_MODEL)
    server = subprocess.Popen([_ctxstream(), "serve-model"], stdout=subprocess.DEVNULL)
    try:
        _wait(server)
        yield True
    finally:
        server.terminate()
        server.wait()


def _answers() -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{base_url(os.environ.get('OLLAMA_HOST', ''))}/api/version", timeout=2).is_success
    return False


def _wait(server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not _answers():
        if server.poll() is not None:
            raise SystemExit("The embedded model did not start; its message stands above.")
        if time.monotonic() > deadline:
            raise SystemExit(f"The embedded model did not answer within {_START_S} s.")
        time.sleep(0.2)


def _ctxstream() -> str:
    return str(Path(sys.executable).with_name("ctxstream"))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # `ctxstream sweep` got the same Ctrl-C and has said what is kept.
        sys.exit(130)
