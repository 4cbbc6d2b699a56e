"""Forms of SQL that people try, and what each is told: it runs, or the refusal says what does instead."""

from __future__ import annotations

from pathlib import Path

from frontends.cql import FRONTEND
from river.diagnostics import Diagnostic, Rejected, Severity
from river.il.parse import parse
from river.il.pretty import pretty
from river.source import Source

INPUTS = """
s: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
t: {ts: int; a: int; k: string; q: int?; x: float} stream by ts;
c: {at: int; k: string; n: int} relation by at;
"""
STREAMS = """
bid: { auction: bigint; bidder: bigint; price: bigint; channel: string; url: string;
  dateTime: timestamp; extra: string } stream by dateTime;
auction: { id: bigint; itemName: string; seller: bigint;
  category: bigint; initialBid: bigint; reserve: bigint;
  dateTime: timestamp; expires: timestamp } stream by dateTime;
person: { id: bigint; name: string;
  emailAddress: string; city: string; state: string;
  dateTime: timestamp } stream by dateTime;
StockTick: { symbol: string; price: float; volume: int; feed: string; ts: timestamp } stream by ts;
Withdrawal: { account: int; amount: float; ts: timestamp } stream by ts;
FraudWarning: { accountNumber: int; warning: string; ts: timestamp } stream by ts;
Orders: { order_id: string; price: decimal(32,2); currency: string; amount: int; order_time: timestamp } stream by order_time;
rates: { currency: string; rate: float; at: timestamp } relation by at;
pageviews: { viewtime: timestamp; userid: string; pageid: string } stream by viewtime;
users: { registertime: timestamp; userid: string; regionid: string; gender: string } relation by registertime;
Sensor: { device: string; temp: float; location: { lat: float?; lon: float?; tags: list<string> }; ts: timestamp } stream by ts;
"""


def forms(name: str) -> dict[str, str]:
    lines = (Path(__file__).parent / name).read_text("utf-8").splitlines()[1:]
    return dict(zip(lines[::2], (line.strip() for line in lines[1::2]), strict=True))


FORMS = forms("sql_forms.txt")
OTHERS = forms("stream_forms.txt")


def first_error(form: str, inputs: str = INPUTS, kind: str = "relation") -> Diagnostic | None:
    try:
        program = FRONTEND.lower(
            FRONTEND.check(FRONTEND.parse(Source("<form>", f"{inputs}v: {kind} = {form};")))
        )
    except Rejected as refused:
        return next(found for found in refused.diagnostics if found.severity is Severity.ERROR)
    assert parse(Source("<il>", pretty(program))) == program, "text and tree are the same"
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


def test_what_is_said_of_queries_of_other_engines() -> None:
    """As users of STREAM, Esper, Flink and ksqlDB write them; what tells a stream of its rows is declared as one."""
    said: dict[str, str | None] = {}
    for form in OTHERS:
        stream = "stream" in form[:25].lower() or "system_time" in form.lower()
        error = first_error(form, STREAMS, "stream" if stream else "relation")
        said[form] = "ok" if error is None else error.help
        assert not str(said[form]).startswith("expected"), form
    assert said == OTHERS
