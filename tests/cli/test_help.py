"""Help is complete and readable: every command explains itself with an example, on any terminal, in any colours."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from typer.models import OptionInfo

from ctxstream_dagster.cli import app
from tests.cli.conftest import Cli

COMMANDS: dict[str, Callable[..., Any]] = {
    str(info.name): info.callback for info in app.registered_commands if info.callback is not None
}
SERVERS = {"dev", "serve-model"}
ANSI = re.compile(r"\x1b\[")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from ctxstream_dagster.cli import main; sys.argv[0] = 'ctxstream'; main()"
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(ctxstream: Cli, name: str) -> None:
    done = ctxstream(name, "--help")
    assert (done.status, done.err) == (0, "")
    shown = " ".join(done.out.split())
    assert shown.startswith(f"Usage: ctxstream {name}")
    purpose, *rest = inspect.cleandoc(COMMANDS[name].__doc__ or "").split("\n\n")
    assert " ".join(purpose.split())[:40] in shown
    example = next((text for text in rest if text.startswith(f"ctxstream {name} ") or text == f"ctxstream {name}"), "")
    assert example, f"the help of {name} shows no example"
    assert " ".join(example.split()) in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_is_for(name: str) -> None:
    for parameter in inspect.signature(COMMANDS[name], eval_str=True).parameters.values():
        notes = getattr(parameter.annotation, "__metadata__", ())
        assert any(getattr(note, "help", "") for note in notes), f"{name}: {parameter.name} has no help"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - SERVERS))
def test_every_command_that_ends_can_answer_in_json(name: str) -> None:
    assert "--json" in option_names(name)


def test_the_overview_lists_every_command(ctxstream: Cli) -> None:
    done = ctxstream("--help")
    assert done.status == 0
    assert all(re.search(rf"\b{name} ", done.out) for name in COMMANDS)


def test_without_a_command_the_overview_is_shown(ctxstream: Cli) -> None:
    done = ctxstream()
    assert all(name in done.out + done.err for name in COMMANDS)
    assert done.status == 2


@pytest.mark.parametrize("columns", [40, 79, 80, 200])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_terminal_is_too_narrow_for_an_option_s_name(
    ctxstream: Cli, monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = ctxstream(name, "--help").out
    # Lines may be as long as the terminal; below 52 columns the terminal itself wraps them.
    assert max(map(len, text.splitlines())) <= max(columns, 52)
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w…])", text))
    assert option_names(name) <= shown


def option_names(name: str) -> set[str]:
    """Return the names of a command's options, as they were declared."""
    names: set[str] = set()
    for parameter in inspect.signature(COMMANDS[name], eval_str=True).parameters.values():
        for note in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(note, OptionInfo):
                given = [text for text in (note.default, *(note.param_decls or ())) if isinstance(text, str)]
                names.add(given[0] if given else f"--{parameter.name.replace('_', '-')}")
    return names


def test_colours_go_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ANSI.search(run("plan", "--help", FORCE_COLOR="1", TERM="xterm-256color").stdout)
    plain = run("plan", "--help", FORCE_COLOR="1", TERM="xterm-256color", NO_COLOR="1").stdout
    assert not re.search(r"\x1b\[(?:3|9)\d", plain)


def test_a_pipe_gets_no_colours() -> None:
    assert not ANSI.search(run("--help", TERM="xterm-256color").stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_every_shell(shell: str) -> None:
    done = run("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert done.returncode == 0, done.stderr
    assert "_CTXSTREAM_COMPLETE" in done.stdout


def test_completion_knows_commands_and_options() -> None:
    asked = {"_CTXSTREAM_COMPLETE": "complete_bash", "COMP_CWORD": "1", "COMP_WORDS": "ctxstream "}
    assert set(COMMANDS) <= set(run(**asked).stdout.split())
    asked = {"_CTXSTREAM_COMPLETE": "complete_bash", "COMP_CWORD": "2", "COMP_WORDS": "ctxstream plan --seg"}
    assert "--segment-chars" in run(**asked).stdout.split()


def test_a_misspelt_command_names_the_nearest(ctxstream: Cli) -> None:
    done = ctxstream("swep", "status_census")
    assert done.status == 2
    assert "sweep" in done.err


def test_the_version_is_printed(ctxstream: Cli) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", ctxstream("--version").out)
