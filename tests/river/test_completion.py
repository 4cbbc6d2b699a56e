"""Completion in shells: commands, options and the names that plugins bring."""

from __future__ import annotations

import signal
import sys

import pytest

from river import cli


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """The command puts streams and handlers of its own in the place of Python's, and leaves signals to the system."""
    for name in ("stdin", "stdout", "stderr", "unraisablehook"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def complete(monkeypatch, capfd, words):
    monkeypatch.setenv("_RIVER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        cli.run()
    return [line.partition(",")[2] for line in capfd.readouterr().out.splitlines()]


def test_commands_options_and_names(monkeypatch, capfd):
    assert {"run", "graph", "explain"} <= set(complete(monkeypatch, capfd, "river "))
    assert "--backend" in complete(monkeypatch, capfd, "river run --ba")
    assert {"multicore", "reference"} <= set(complete(monkeypatch, capfd, "river run --backend "))
    assert complete(monkeypatch, capfd, "river graph --format m") == ["mermaid"]
    assert complete(monkeypatch, capfd, "river run --me") == ["--metrics", "--memory"]
    assert "cql" in complete(monkeypatch, capfd, "river compile --lang c")
    assert complete(monkeypatch, capfd, "river run --on-error s") == ["stop", "skip"]


def test_the_script_for_the_shell(monkeypatch, capfd):
    monkeypatch.setenv("_RIVER_COMPLETE", "zsh_source")
    with pytest.raises(SystemExit) as end:
        cli.run()
    assert end.value.code == 0
    assert "_RIVER_COMPLETE=zsh_complete" in capfd.readouterr().out


def test_no_arguments_show_the_help():
    import io

    from river.cli import commands

    out = io.StringIO()
    assert cli.main([], io.StringIO(), out, io.StringIO()) == 0
    assert "Commands:" in out.getvalue()
    for command in commands.river.commands:
        shown = io.StringIO()
        assert cli.main([command, "--help"], io.StringIO(), shown, io.StringIO()) == 0
        assert f"river {command}" in shown.getvalue()
        assert "Example" in shown.getvalue() or command == "version"
