"""`ctxstream dev` before it becomes Dagster: what it refuses."""

import socket

from tests.cli.conftest import Cli


def test_a_taken_port_is_a_sentence_and_status_2(ctxstream: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = ctxstream("dev", "--port", str(taken.getsockname()[1]))
    assert done.status == 2
    assert "choose another --port" in done.err
