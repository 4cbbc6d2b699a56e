"""Decimals of different types beside one another: numbers that are written out, choices, unions, keys."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import river
from river.diagnostics import Rejected

HEAD = "t: { ts: int; d: decimal(4,2); e: decimal(10,2)? } stream by ts;\n"
ROWS = [
    {"ts": 1, "d": Decimal("1.25"), "e": Decimal("12345678.90")},
    {"ts": 2, "d": Decimal("-99.99"), "e": None},
]

VALUES = {
    "d * 0.333": ("0.41625", "-33.29667"),
    "d * 100": ("125.00", "-9999.00"),
    "d * -1.175": ("-1.46875", "117.48825"),
    "e - 123456789012": ("-123444443333.10", None),
    "d + -ts": ("0.25", "-101.99"),
    "d * 0.5": ("0.6250", "-49.9950"),
    "coalesce(e, d)": ("12345678.90", "-99.99"),
    "coalesce(e, 0.125)": ("12345678.900", "0.125"),
    "coalesce(e, ts)": ("12345678.90", "2.00"),
    "greatest(d, 0.001, e)": ("12345678.900", "0.001"),
    "case when ts = 1 then d when ts = 2 then e else 0.1234 end": ("1.2500", None),
    "case ts when 1 then 0.5 else d end": ("0.50", "-99.99"),
    "round(2.675 * d, 2)": ("3.34", "-267.47"),
    "round(e, 5)": ("12345678.90", None),
}


@pytest.fixture(scope="module")
def results() -> dict[str, dict[str, list[Any]]]:
    columns = ", ".join(f'{value} as "{value}"' for value in VALUES)
    tests = "d > 1000 as a, d < 0.001 as b, d in (1.25, 1.257) as c, 1.255 = d as f, d between 0.005 and 5.555 as g"
    text = f"{HEAD}v: relation = select {columns}, {tests}, d * 1e40 as h from t;"
    program = river.compile(text, lang="cql")
    return {
        backend: program.run({"t": ROWS}, backend=backend)["v"].to_pydict()
        for backend in ("reference", "multicore")
    }


@pytest.mark.parametrize("backend", ["reference", "multicore"])
def test_numbers_that_are_written_out_have_a_type_of_their_own(results: Any, backend: str) -> None:
    found = results[backend]
    assert {name: tuple(str(x) if x is not None else None for x in found[name]) for name in VALUES} == VALUES
    assert [found[name] for name in "abcfg"] == [
        [False, False], [False, True], [True, False], [False, False], [True, False],
    ]  # fmt: skip
    assert found["h"] == [1.25e40, -9.999e41]  # no decimal has so many digits


def rows(text: str) -> list[Any]:
    found = river.compile(HEAD + text, lang="cql").run({"t": ROWS}, backend="reference")["v"]
    return [str(x) for x in found.column("x").to_pylist()]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("select sum(distinct d * 0.001) as x from t[unbounded] having count(*) = 2", ["-0.09874"]),
        ("select avg(distinct d) as x from t having count(*) = 2", ["-49.37000000"]),
        ("select d as x from t union select e from t where ts = 1", ["1.25", "12345678.90", "-99.99"]),
        ("select ts as x from t union all select d from t where ts = 1", ["1.00", "1.25", "2.00"]),
        ("select a.ts as x from t a join (select d * 1.000 as k from t) b on a.d = b.k", ["1", "2"]),
        ("select corr(d, ts) as x from t having count(*) = 2", ["-1.0"]),
    ],
)
def test_decimals_of_different_types_meet(query: str, told: list[str]) -> None:
    assert rows(f"v: relation = {query};") == told


def test_into_a_declared_decimal_a_number_is_rounded_as_it_is_told() -> None:
    assert rows("v: {x: decimal(12,4)} relation = select d as x from t;") == ["1.2500", "-99.9900"]
    assert rows("v: {x: decimal(12,4)} relation = select ts as x from t;") == ["1.0000", "2.0000"]
    for value in ("d", "0.908 * ts", "e / 2.0"):
        text = f"v: {{x: decimal(12,1)?}} relation = select {value} as x from t"
        (warning,) = river.compile(f"{HEAD}{text};", lang="cql").warnings
        assert (warning.code, warning.span and warning.span.text) == ("sql-truncates", f"{value} as x")
        cast = f"v: relation = select cast({value} as decimal(12,1)) as x from t"
        assert rows(f"{text};") == rows(f"{cast};")
    with pytest.raises(Rejected) as found:
        rows("v: {x: decimal(3,1)} relation = select d * 1000 as x from t;")
    assert [each.code for each in found.value.diagnostics] == ["trap-decimal-precision"]
