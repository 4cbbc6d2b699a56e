"""Forms of SQL that people try, and what each is told: it runs, or the refusal says what does instead."""

from __future__ import annotations

from pathlib import Path

from frontends.cql import FRONTEND
from river.diagnostics import Diagnostic, Rejected, Severity
from river.source import Source

INPUTS = """
s: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
t: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
c: {at: int; k: string; n: int} relation by at;
"""
LINES = (Path(__file__).parent / "sql_forms.txt").read_text("utf-8").splitlines()[1:]
FORMS = dict(zip(LINES[::2], (line.strip() for line in LINES[1::2]), strict=True))


def first_error(form: str) -> Diagnostic | None:
    try:
        FRONTEND.check(FRONTEND.parse(Source("<form>", f"{INPUTS}v: relation = {form};")))
    except Rejected as refused:
        return next(found for found in refused.diagnostics if found.severity is Severity.ERROR)
    return None


def test_what_is_said_of_forms_of_sql() -> None:
    """Each refusal has a hint of its own, not a list of tokens."""
    assert len(FORMS) >= 150
    said: dict[str, str | None] = {}
    for form in FORMS:
        error = first_error(form)
        said[form] = "ok" if error is None else error.help
        assert said[form] is not None
        assert not str(said[form]).startswith("expected"), form
    assert said == FORMS
