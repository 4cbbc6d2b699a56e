"""Templates: what is checked once, what an instance fills in, and lifting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from frontends.cql import FRONTEND
from river.diagnostics import Rejected
from river.il import instantiate as instances
from river.il import namespaces
from river.il.parse import parse, parse_templates
from river.il.pieces import DeclarationText, pieces
from river.il.pretty import pretty
from river.il.program import Instance, Program, Use
from river.il.templates import Library, check_template, expand_instances, instantiate
from river.il.verify import verify
from river.lang import check, typed
from river.lang import syntax as s
from river.source import Source

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = Library.of({})


def program(text: str) -> Program:
    return parse(Source("test.river", "river 1;\n" + text))


def expanded(text: str, library: Library = LIBRARY) -> str:
    return " ".join(pretty(expand_instances(program(text), library)).split())


def codes(rejected: pytest.ExceptionInfo[Rejected]) -> list[str]:
    return [d.code for d in rejected.value.diagnostics]


def refused(text: str, library: Library = LIBRARY) -> list[str]:
    with pytest.raises(Rejected) as rejected:
        expand_instances(program(text), library)
    return codes(rejected)


def template_errors(text: str) -> list[str]:
    (template,) = (d for d in program(text).decls if isinstance(d, s.Template))
    return [d.code for d in check_template(template)]


# ------------------------------------------------------------------------------------------------ the template itself


def test_a_template_is_checked_before_it_has_arguments() -> None:
    assert template_errors("template <#T: type, #T: type> operator f(x: #T) -> () { on x(x) { } }") == [
        "il-template-duplicate"
    ]
    assert template_errors("template <#T: type> operator f(x: #S) -> () { on x(x) { } }") == [
        "il-template-hole"
    ]
    assert template_errors("template <#n: i64> operator f(x: #n) -> () { on x(x) { } }") == [
        "il-template-hole"
    ]
    assert template_errors(
        "template <#f: fn(i64) -> i64> operator f(x: i64) -> (o: i64) { on x(x) { emit o #f(x, x); } }"
    ) == ["il-template-hole"]
    assert template_errors(
        "template <#F: fields> operator f(x: {#F}) -> (o: i64) { on x(x) { #each f in #F { emit o f; } } }"
    ) == ["il-template-each"]
    assert (
        template_errors(
            "template <#F: fields> operator f(x: {#F}) -> (o: i64) { on x(x) { #each f in #F { let f = 1; emit o f; } } }"
        ).count("il-template-each")
        >= 1
    )
    assert (
        template_errors(
            "template <#F: fields> operator f(x: {#F}) -> (o: i64) { on x(x) { #each f in #F { emit o x.f; } } }"
        )
        == []
    )


def test_a_wrong_template_of_the_program_is_refused_once() -> None:
    text = "template <#T: type> operator f(x: #S) -> () { on x(x) { } }\noperator a = f<T = i64>;"
    assert refused(text) == ["il-template-hole"]
    with pytest.raises(Rejected) as rejected:
        verify(program(text), LIBRARY)
    assert codes(rejected) == ["il-template-hole"]


# --------------------------------------------------------------------------------------------------------- arguments

ADD = "template <#n: i64, #f: fn(i64) -> i64> operator add(x: i64) -> (o: i64) { on x(y) { emit o #f(y) + #n; } }\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("n = 1", "il-template-missing"),
        ("n = 1, f = fn(a) => a, m = 2", "il-template-unknown-argument"),
        ("n = 1, f = 2", "il-template-argument"),
        ("n = 1, f = fn(a, b) => a", "il-template-argument"),
        ("n = 1, n = 2, f = fn(a) => a", "il-template-argument"),
        ("n = fn(a) => a, f = fn(a) => a", "il-template-argument"),
        ("n = y, f = fn(a) => a", "il-template-argument"),  # would capture the template's `y`
        ("n = 1, f = fn(a) => (a + y)", "il-template-argument"),
        ("n = 1, f = fn(a) => $v", "il-template-argument"),
    ],
)
def test_arguments_are_checked(arguments: str, code: str) -> None:
    assert refused(f"{ADD}operator a = add<{arguments}>;") == [code]


def test_an_unknown_template_has_a_suggestion() -> None:
    with pytest.raises(Rejected) as rejected:
        expand_instances(program("operator a = std.duplicat<T = i64, n = 2>;"), LIBRARY)
    (found,) = rejected.value.diagnostics
    assert (found.code, found.help) == ("il-template-unknown", "did you mean `std.duplicate`?")


@pytest.mark.parametrize(
    ("instance", "code"),
    [
        ("std.duplicate<T = i64>", "il-template-missing"),
        ("std.duplicate<T = i64, n = 0>", "il-template-argument"),
        ("std.duplicate<n = 2>", "il-template-missing"),
        ("std.rr_join<T = i64, w = [0, 0]>", "il-template-argument"),
        ("std.rr_join<T = i64, w = [1, 0 - 1]>", "il-template-argument"),
        ("std.rr_join<T = i64, w = 2>", "il-template-argument"),
        ("std.split_rr<T = i64, n = 2, epoch = 0>", "il-template-argument"),
        ("std.split_windows<T = i64, n = 2, peek = 0, pop = 1>", "il-template-argument"),
        ("std.split_windows<T = i64, n = 2, peek = 2, pop = 0>", "il-template-argument"),
        ("std.merge_time<T = i64, n = 2, by = 3>", "il-template-argument"),
        ("std.merge_rows<R = i64, n = 2, Tau = {a: i64}>", "il-template-argument"),
    ],
)
def test_shapes_of_standard_templates_are_checked(instance: str, code: str) -> None:
    assert refused(f"operator a = {instance};") == [code]


EVERY = """
type T = {k: string, at: time};
operator a = std.duplicate<T = T, n = 3, by = at>;
operator b = std.identity<T = T>;
operator c = std.rr_split<T = T, w = [2, 0, 3]>;
operator d = std.rr_join<T = T, w = [2, 3]>;
operator e = std.split_hash<T = T, key = fn(t) => t.k, n = 3, epoch = 4>;
operator f = std.split_rr<T = T, n = 1, epoch = 4>;
operator g = std.merge_seq<T = T, n = 3>;
operator h = std.merge_time<T = T, n = 2, by = at>;
operator i = std.split_turns<T = T, n = 3, by = at>;
operator j = std.split_rows<R = T, Tau = time, key = fn(r) => (r.k, r.at), n = 3>;
operator k = std.merge_rows<R = T, n = 2, Tau = i64>;
operator l = std.filter<T = T, where = fn(t) => (t.k == "x")>;
operator m = std.map<T = T, U = string, f = fn(t) => t.k + "!">;
operator n = std.flatten<T = T>;
operator o = std.split_time<T = T, n = 2, by = at>;
operator p = std.split_keys<T = T, key = fn(t) => t.k, n = 2>;
operator q = std.gather<T = T, n = 3>;
operator r = std.gather_seq<T = T, n = 2>;
operator s = std.split_instants<R = T, Tau = time, key = fn(r) => r.k, n = 2>;
operator t = std.split_windows<T = T, n = 3, peek = 5, pop = 2>;
operator u = std.split_hash<T = T, key = fn(t) => t.k, n = 3, epoch = 4, by = at>;
operator v = std.merge_seq<T = T, n = 2, by = at>;
"""


def test_every_standard_template_checks_and_prints_as_an_operator() -> None:
    every = program(EVERY)
    assert {d.template for d in every.decls if isinstance(d, Instance)} == set(LIBRARY.names)
    verify(every, LIBRARY)
    again = parse(Source("again", pretty(expand_instances(every, LIBRARY))))
    assert again == expand_instances(every, LIBRARY)
    verify(again, LIBRARY)


def test_instances_are_the_same_object_again() -> None:
    one = program(EVERY)
    assert all(
        a is b
        for a, b in zip(
            expand_instances(one, LIBRARY).decls, expand_instances(one, LIBRARY).decls, strict=True
        )
    )


# ------------------------------------------------------------------------------------------------------------- filling


def test_lambdas_are_put_in_place_of_their_holes() -> None:
    text = expanded(f"{ADD}operator a = add<n = 7, f = fn(a) => a * a>;")
    assert "emit o y * y + 7;" in text


def test_names_bound_inside_a_lambda_hide_nothing() -> None:
    template = "template <#f: fn(list<i64>) -> i64> operator t(x: list<i64>) -> (o: i64) { on x(y) { emit o #f(y); } }\n"
    text = expanded(f"{template}operator a = t<f = fn(l) => len([y for y in l if (y > 1)])>;")
    assert "len([y_1 for y_1 in y if y_1 > 1])" in text


def test_a_function_of_the_program_is_not_a_local_one_of_the_template() -> None:
    text = (
        "fn g(x: i64) -> i64 = x + 1;\n"
        "template <#f: fn(i64) -> i64> operator t(x: i64) -> (o: i64) "
        "{ fn g(x: i64) -> i64 = x * 10; on x(y) { emit o g(#f(y)); } }\n"
        "operator a = t<f = fn(v) => g(v)>;"
    )
    assert "emit o g_1(g(y));" in expanded(text)


ONCE = """template <#T: type, #f: fn(#T) -> #T>
operator t(x: list<#T>) -> (o: #T) { on x(y) { var l = y; emit o #f(pop(l)); } }
"""


def test_an_argument_is_evaluated_once() -> None:
    first = expanded(f"{ONCE}operator a = t<T = i64, f = fn(v) => v + 1>;")
    assert "emit o pop(l) + 1;" in first  # the body begins with it
    twice = expanded(f"{ONCE}operator a = t<T = i64, f = fn(v) => v + v>;")
    assert "emit o f(pop(l));" in twice
    assert "fn f(v: i64) -> i64 = v + v;" in twice
    late = expanded(f"{ONCE}operator a = t<T = i64, f = fn(v) => 1 + v>;")
    assert "emit o f(pop(l));" in late


def test_a_function_that_cannot_be_called_is_refused_where_it_would_have_to_be() -> None:
    unstated = ONCE.replace("fn(#T) -> #T", "fn(#T) -> any")
    assert "pop(l) + 1" in expanded(f"{unstated}operator a = t<T = i64, f = fn(v) => v + 1>;")
    assert refused(f"{unstated}operator a = t<T = i64, f = fn(v) => v + v>;") == ["il-template-lambda"]


def test_a_lambda_as_a_statement_must_be_a_call() -> None:
    template = "template <#f: fn(list<i64>, i64) -> unit> operator t(x: i64; $l: list<i64>) -> () { on x(y) { #f($l, y); } }\n"
    assert "push($l, y);" in expanded(f"{template}operator a = t<f = fn(l, v) => push(l, v)>;")
    assert refused(f"{template}operator a = t<f = fn(l, v) => v>;") == ["il-template-lambda"]


def test_a_lambda_may_be_handed_on() -> None:
    template = (
        "template <#T: type, #f: fn(#T) -> i64> operator t(x: list<#T>) -> (o: list<#T>) "
        "{ on x(y) { emit o sort_by(y, #f); } }\n"
    )
    instance = f"{template}operator a = t<T = {{n: i64}}, f = fn(y) => -y.n>;"
    assert "sort_by(y, fn(y_1) => -y_1.n)" in expanded(instance)
    verify(program(instance), LIBRARY)


SUMS = """
template <#Ix: fields, #V: fields>
operator sums(x: {#Ix, v: {#V}}; $s: map<{#Ix}, {#each f in #V {f: #f}}>) -> (o: {#Ix, #each f in #V {f: #f}}) {
  on x(x) {
    with a = $s[{#each f in #Ix {f: x.f}}] else {#each f in #V {f: 0}} {
      #each f in #V { let added = x.v.f; a.f = #f(a.f, added); }
      emit o {#each f in #Ix {f: x.f}, #each f in #V {f: a.f}};
    }
  }
}
operator a = sums<Ix = {k: string, day: i64}, V = {n: i64 = fn(a, b) => a + b, top: i64 = fn(a, b) => max(a, b)}>;
"""


def test_fields_are_spliced_and_repeated() -> None:
    text = expanded(SUMS)
    assert "x: {k: string, day: i64, v: {n: i64, top: i64}}" in text
    assert "with a = $s[{k: x.k, day: x.day}] else {n: 0, top: 0}" in text
    assert (
        "let added_n = x.v.n; a.n = a.n + added_n; let added_top = x.v.top; a.top = max(a.top, added_top);"
        in text
    )
    assert "emit o {k: x.k, day: x.day, n: a.n, top: a.top};" in text
    verify(program(SUMS), LIBRARY)


def test_fields_without_a_value_are_refused_where_one_is_wanted() -> None:
    text = SUMS.replace("n: i64 = fn(a, b) => a + b", "n: i64")
    assert refused(text) == ["il-template-lambda"]


def test_no_fields_are_fields() -> None:
    assert "$s: map<{}, {n: i64}>" in expanded(SUMS.replace("{k: string, day: i64}, V", "{}, V").replace(
        ", top: i64 = fn(a, b) => max(a, b)", ""))  # fmt: skip


SCALED = """
input a: f64;
output e: f64;
template <#n: i32, #k: f64, #t: array<f64, 2>, #b: f64> operator scaled(x: f64) -> (y: f64) {
  const k: f64 = #k;
  const t: array<f64, 2> = #t;
  const b: f64 = #b;
  on x[peek #n, pop 1](w) { emit y w[#n - 1] * k + t[1] + b * #b; }
}
"""
"""`k` and `t` are constants only; `n` and `b` stand in the handler, too."""


def instances_of(text: str, arguments: list[dict[str, s.TemplateArg]]) -> list[typed.Operator]:
    """The checked instances of the template in a text, one after the other along a chain of queues."""
    decls = list(program(text).decls)
    (template,) = (d for d in decls if isinstance(d, s.Template))
    for i, each in enumerate(arguments):
        decls.append(Instance(f"i{i}", template.operator.name, tuple(each.items()), span=template.span))
        ends = "a" if i == 0 else f"q{i}", "e" if i == len(arguments) - 1 else f"q{i + 1}"
        decls.append(Use((ends[1],), f"i{i}", (ends[0],)))
    found = [each.operator for each in verify(Program(tuple(decls)), LIBRARY).instances]
    return [each for each in found if isinstance(each, typed.Operator)]


def test_instances_share_all_but_their_constants() -> None:
    def given(n: int, k: float, last: float, b: float) -> dict[str, s.TemplateArg]:
        table = s.ListValue((s.Float(0.5), s.Float(last)))
        return {"n": s.Int(n), "k": s.Float(k), "t": table, "b": s.Float(b)}

    arguments = [
        given(2, 1.0, 1.0, 0.0), given(2, 2.0, 3.0, 0.0), given(3, 1.0, 1.0, 0.0), given(2, 0.0, 1.0, -0.0),
        given(2, -0.0, -0.0, 1.0),
    ]  # fmt: skip
    together = instances_of(SCALED, arguments)
    assert [each.name for each in together] == ["i0", "i1", "i2", "i3", "i4"]
    assert [each.rated is together[0].rated for each in together] == [True, True, False, False, False]
    for each, own in zip(together, arguments, strict=True):
        template = next(d for d in program(SCALED).decls if isinstance(d, s.Template))
        text = instantiate(template, tuple(own.items()), each.name, None)
        assert repr(check.operator(text, check.scope({}))) == repr(each)


COMPUTED = """
input a: f64;
output e: f64;
template <#k: f64, #n: i64, #m: f64> operator turned(x: f64) -> (y: f64) {
  const c: f64 = cos(#k * 2.0) + #k;
  const n: i64 = 7 - #n;
  const d: f64 = c * #m;
  on x[peek 2, pop 1](w) { emit y w[0] * c + w[1] * d + f64(n); }
}
"""


def test_constants_of_instances_may_be_computed() -> None:
    def given(k: float, n: int, m: s.TemplateArg) -> dict[str, s.TemplateArg]:
        return {"k": s.Float(k), "n": s.Int(n), "m": m}

    template = next(d for d in program(COMPUTED).decls if isinstance(d, s.Template))
    sum_ = s.Binary("+", s.Float(1.0), s.Float(2.0))  # no number that is written out
    arguments = [given(1.0, 2, s.Float(3.0)), given(-0.0, 5, s.Float(2.0)), given(1.0, 2, sum_)]
    together = instances_of(COMPUTED, arguments)
    for each, own in zip(together, arguments, strict=True):
        text = instances._instantiated(template, tuple(own.items()), each.name, None)
        assert repr(check.operator(text, check.scope({}))) == repr(each)
    without = COMPUTED.replace("7 - #n", "#n")  # nothing that may trap
    together = instances_of(without, arguments)
    assert [each.rated is together[0].rated for each in together] == [True, True, True]


def test_a_wrong_constant_is_told_of_its_instance() -> None:
    text = """
    input a: i32;
    output e: i32;
    template <#k: i32> operator plus(x: i32) -> (y: i32) { const k: i32 = #k; on x(v) { emit y v + k; } }
    """
    with pytest.raises(Rejected) as rejected:
        instances_of(text, [{"k": s.Int(1)}, {"k": s.Float(1.5)}, {"k": s.Int(2)}])
    (found,) = rejected.value.diagnostics
    assert found.code == "lang-type-mismatch"
    assert [note.message for note in found.notes] == ["in `i1`, an instance of `plus`"]


def test_an_error_inside_an_instance_says_which() -> None:
    text = f"{ADD}operator bad = add<n = true, f = fn(a) => a>;"
    with pytest.raises(Rejected) as rejected:
        verify(program(text), LIBRARY)
    (found,) = rejected.value.diagnostics
    assert found.code.startswith("lang-")
    assert "in `bad`, an instance of `add`" in [note.message for note in found.notes]


# --------------------------------------------------------------------------------------------------------- namespaces


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"river 1;\n{text}", encoding="utf-8")
    return path


def test_a_namespace_spells_its_own_names(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "mine.river",
        "type Pair<T> = {a: T, b: T};\n"
        "fn swap(x: i64) -> i64 = -x;\n"
        "template <#T: type, #f: fn(#T) -> i64> operator pairs(x: #T) -> (o: Pair<i64>) "
        "{ on x(v) { emit o {a: swap(#f(v)), b: 1}; } }\n",
    )
    library = Library.of({"mine": (file,)})
    text = "type Pair = i64;\nfn swap(x: i64) -> i64 = x;\noperator p = mine.pairs<T = Pair, f = fn(v) => swap(v)>;"
    assert "(x: Pair) -> (o: mine.Pair<i64>)" in expanded(text, library)
    assert "{a: mine.swap(swap(v)), b: 1}" in expanded(text, library)
    verify(program(text), library)


def test_template_files_are_checked(tmp_path: Path) -> None:
    twice = "template <#T: type> operator f(x: #T) -> () { on x(x) { } }\n" * 2
    for text, code in (
        ("input q: i64;", "il-template-file"),
        ("input q: i64; fn f(x: i64) -> i64 = x;", "il-template-file"),
        (twice, "il-template-duplicate"),
        ("template <#T: type> operator f(x: #S) -> () { on x(x) { } }", "il-template-hole"),
    ):
        with pytest.raises(Rejected) as rejected:
            Library.of({"mine": (write(tmp_path, "mine.river", text),)})
        assert codes(rejected) == [code]


def test_std_is_closed(tmp_path: Path) -> None:
    with pytest.raises(Rejected) as rejected:
        Library.of({"std": (write(tmp_path, "mine.river", ""),)})
    assert codes(rejected) == ["il-template-namespace"]


# -------------------------------------------------------------------------------------------------------------- lifting


def test_lifting_threads_the_tag_through_functions_that_emit() -> None:
    text = """
      operator f(x: i64; $n: i64) -> (o: i64, p: string) {
        fn inner(seq: i64) { emit o seq; }
        fn outer(v: i64) { inner(v); emit p "out"; }
        fn plain(v: i64) -> i64 = v + 1;
        on x(v) { outer(plain(v)); if v > 0 { emit o v; } }
      }
      operator g = lift(f, seq);"""
    lifted = expanded(text).split("operator g")[1]
    assert "(x: {seq: i64, v: i64} by seq; $n: i64)" in lifted
    assert "-> ( o: {seq: i64, v: i64} by seq, p: {seq: i64, v: string} by seq )" in lifted
    assert "fn inner(seq_1: i64, seq: i64) { emit o {seq: seq_1, v: seq}; }" in lifted
    assert 'fn outer(seq_1: i64, v: i64) { inner(seq_1, v); emit p {seq: seq_1, v: "out"}; }' in lifted
    assert "let seq_1 = tagged.seq; let v = tagged.v; outer(seq_1, plain(v));" in lifted
    verify(program(text), LIBRARY)


@pytest.mark.parametrize(
    "operator",
    [
        "operator f(a: i64, b: i64) -> () { on a(x) { } on b(x) { } }",
        "operator f(a: i64) -> () { on a[pop 2](x) { } }",
        "operator f(a: {k: i64} by k) -> () { on a(x) { } on mark(k) { } }",
        "operator f(a: {k: i64} by k) -> (o: {k: i64} by k) { on a(x) { mark o x.k; } }",
        'operator f(a: i64) -> () = extern python "m:f";',
    ],
)
def test_what_cannot_be_lifted(operator: str) -> None:
    assert refused(f"{operator}\noperator g = lift(f, seq);") == ["il-lift"]


def test_lifts_of_instances_and_of_nothing() -> None:
    assert "{seq: seq, v: x}" in expanded("operator f = std.identity<T = i64>;\noperator g = lift(f, seq);")
    assert refused("operator g = lift(f, seq);") == ["il-unknown-operator"]
    assert set(refused("operator f = lift(g, seq);\noperator g = lift(f, seq);")) == {"il-lift-cycle"}


def test_templates_that_were_checked_are_kept_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "river 1;\ntype row = {a: i64};\nfn one(r: row) -> i64 = r.a;\n" + ADD
    sources = (Source("own.river", text),)
    monkeypatch.setenv("RIVER_CACHE", str(tmp_path))
    checked: list[str] = []
    check = namespaces._checked

    def noted(qualify: Any, source: Source, piece: DeclarationText) -> Any:
        checked.append(f"{qualify.namespace}.{piece.name}")
        return check(qualify, source, piece)

    monkeypatch.setattr(namespaces, "_checked", noted)
    namespace = namespaces._namespace.__wrapped__
    made = namespace("own", sources)
    assert checked == ["own.row"]
    assert (*made.templates, *made.fns) == ("add", "own.one")
    template = made.templates["add"]
    assert template is made.templates["add"]
    again = namespace("own", sources).templates["add"]
    assert again == template
    assert again.operator.span == template.operator.span
    assert checked == ["own.row", "own.add"]
    for file in (tmp_path / "templates").iterdir():
        file.write_text(file.read_text()[:-9])  # damaged: checked anew, and kept
    assert namespace("own", sources).templates["add"] == template
    assert namespace("own", sources).templates["add"] == template
    assert namespace("other", sources).fns["other.one"].name == "other.one"
    assert checked[2:] == ["own.row", "own.add", "other.row", "other.one"]


@pytest.mark.parametrize(
    "text",
    [
        'fn a(x: string) -> string = x + "fn b() }"; fn b(x: {f: i64}) -> {f: i64} { return x; }',
        "// fn c()\nfn a(x: i64) -> i64 { /* } fn c */ return x; }\n\nfn b(x: i64) -> i64 = x; // type z = i64;",
        "fn /* is */ `a`(x: i64) -> i64 { fn(y) => y; } fn // a\n b(x: fn(i64) -> {f: list<i64>}) -> i64 = 1;",
    ],
)
def test_declarations_are_found_by_brackets_and_first_words(text: str) -> None:
    source = Source("mine.river", f"/* of\nmine */ river 1;\n{text}\n")
    a, b = pieces(source)
    assert (a.kind, a.name, b.kind, b.name) == ("fn", "a", "fn", "b")
    assert a.end == b.begin
    assert source.text[b.begin :].startswith("fn")
    assert "b(x" in source.text[b.begin :]


def test_pieces_of_templates_are_what_parsing_finds() -> None:
    for file in FRONTEND.templates:
        source = Source(file.name, file.read_text(encoding="utf-8"))
        parsed = parse_templates(source)
        named = [(d.operator.name if isinstance(d, s.Template) else d.name, d.span) for d in parsed]
        found = pieces(source)
        assert [each.name for each in found] == [name for name, _ in named]
        assert [each.begin for each in found] == [span and span.start for _, span in named]


def test_what_nobody_asks_for_is_not_read(tmp_path: Path) -> None:
    text = "fn broken(x: nowhere) -> i64 = +;\n" + ADD
    library = Library.on_demand({"mine": (write(tmp_path, "mine.river", text),)})
    expanded("operator a = mine.add<n = 1, f = fn(v) => v>;", library)
    assert "mine.broken" in library.fns
    with pytest.raises(Rejected) as rejected:
        _ = library.fns["mine.broken"]
    assert codes(rejected) == ["syntax-unexpected"]
    (span,) = [each.span for each in rejected.value.diagnostics]
    assert span is not None
    assert span.source.position(span.start) == (2, 32)
    with pytest.raises(Rejected):
        Library.of({"mine": (write(tmp_path, "mine.river", text),)})
