"""Classes of data mean what attrs means by the same words, and make their methods when these are first used."""

from __future__ import annotations

import copy
import inspect
import pickle
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import pytest

from river import classes
from river.classes import define, evolve, field, fields, frozen, has_fields

if TYPE_CHECKING:
    from collections.abc import Callable


@frozen(kw_only=True)
class Node:
    span: int | None = field(default=None, eq=False, repr=False)


@frozen
class Call(Node):
    """A call."""

    known: ClassVar[int] = 7
    name: str
    parts: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise ValueError("no name")

    def who(self) -> str:
        return f"{__class__.__name__} {super().__repr__()}"  # pyright: ignore[reportUndefinedVariable]

    @property
    def more(self) -> Call:
        return evolve(self, parts=(*self.parts, 1))


@frozen(cache_hash=True)
class Cached:
    value: object
    note: str = field(default="", hash=False)


@define
class Counter:
    _count: int = field(default=0, alias="count")
    _only: int = 1
    seen: list[int] = field(factory=list[int])
    limit: int = field(default=9, init=False)
    later: int = field(init=False)
    rest: dict[str, Any] = field(factory=dict[str, Any], init=False, repr=False)


@define(eq=False)
class Odd:
    """Names that methods use themselves."""

    required: int
    make0: int
    set0: int = 1


def bodies(words: Any) -> list[type]:
    """The same classes by the words of one library."""
    frozen, define, field = words.frozen, words.define, words.field

    @frozen(kw_only=True)
    class Base:
        where: int = field(default=1, eq=False, repr=False)
        must: str = "m"

    @frozen
    class Derived(Base):
        first: int
        must: str  # states a field of its base again
        second: tuple[int, ...] = ()
        third: list[int] = field(factory=list, hash=False)

    @define
    class Mutable:
        one: int
        two: object = None
        made: list[int] = field(factory=list, init=False, eq=False)
        fixed: int = field(default=3, init=False, repr=False)

    @frozen(slots=False)
    class Open:
        first: int
        last: float = 0.5

    @frozen(eq=False, repr=False)
    class Alone:
        only: int

    @frozen
    class Own:
        only: int

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    @frozen
    class Empty:
        pass

    return [Base, Derived, Mutable, Open, Alone, Own, Empty]


CALLS: list[list[tuple[tuple[Any, ...], dict[str, Any]]]] = [
    [((), {}), ((), {"where": 3}), ((), {"must": "n"}), ((4,), {})],
    [
        ((1, "a"), {}),
        ((1, "a", (2,)), {"where": 9}),
        ((1, "b"), {"third": [1]}),
        ((1,), {}),
        ((), {"first": 1}),
    ],
    [((1,), {}), ((1, None), {}), ((float("nan"), 2), {}), ((1,), {"made": []})],
    [((1,), {}), ((1, 2), {}), ((1,), {"last": 0.5}), ((1, 2, 3), {})],
    [((1,), {}), ((1,), {})],
    [((1,), {}), ((2,), {})],
    [((), {}), ((1,), {})],
]


def outcome(act: Callable[[], Any]) -> object:
    """What comes out, or which exception."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001 - which one is the outcome
        return type(error)


def described(kinds: list[type]) -> list[object]:
    """All that can be seen of the objects of some classes."""
    seen: list[object] = []
    for kind, calls in zip(kinds, CALLS, strict=True):
        seen.append([kind.__name__, kind.__match_args__, inspect.signature(kind).parameters.keys()])
        made = [outcome(partial(kind, *args, **named)) for args, named in calls]
        for one in made:
            if isinstance(one, type):
                seen.append(one)
                continue
            seen += [repr(one).replace(repr(id(one)), "") if kind.__name__ != "Alone" else ""]
            seen += [[outcome(lambda o=other: one == o) for other in made], one != 1]  # noqa: B023
            seen += [[outcome(lambda o=other: hash(one) == hash(o)) for other in made]]  # noqa: B023
            seen += [hasattr(one, "__dict__"), weakref.ref(one)() is one, repr(copy.copy(one)) == repr(one)]
            seen.append(isinstance(outcome(lambda: setattr(one, "where", 2)), type))  # noqa: B023
    return seen


def test_they_mean_what_attrs_means() -> None:
    assert described(bodies(classes)) == described(bodies(attrs))


def test_methods_are_made_when_they_are_first_used() -> None:
    _, derived, *_ = bodies(classes)
    assert not any(inspect.isfunction(vars(derived)[name]) for name in ("__init__", "__eq__", "__hash__"))
    one = derived(1, "a")
    assert inspect.isfunction(vars(derived)["__init__"])
    assert not inspect.isfunction(vars(derived)["__eq__"])
    assert one == derived(1, "a")
    assert inspect.isfunction(vars(derived)["__eq__"])


def test_methods_of_a_class_know_the_class() -> None:
    call = Call("f", (2,), span=4)
    assert call.who() == "Call Call()"  # what a base tells is of its own fields, as in attrs
    assert call.more == Call("f", (2, 1))
    assert call.more.span == 4
    assert Call.__init__.__qualname__ == "Call.__init__"
    with pytest.raises(ValueError, match="no name"):
        Call("")
    with pytest.raises(AttributeError, match="`name` of `Call` stays as it was made"):
        call.name = "g"  # pyright: ignore[reportAttributeAccessIssue]
    match call:
        case Call(name, parts):
            assert (name, parts) == ("f", (2,))


def test_private_fields_and_those_without_arguments() -> None:
    one = Counter(count=2)
    assert (one._count, one._only, one.seen, one.limit, one.rest, hasattr(one, "later")) == (
        2,
        1,
        [],
        9,
        {},
        False,
    )
    assert Counter().seen is not Counter().seen
    assert evolve(one, count=3)._count == 3
    assert (Odd(1, 2).required, Odd(1, 2).make0, Odd(1, 2).set0) == (1, 2, 1)


def test_a_hash_that_is_kept_is_not_copied_to_other_objects() -> None:
    one = Cached((1, 2))
    assert hash(one) == hash(Cached((1, 2), "note")) != hash(evolve(one, value=3))
    again = pickle.loads(pickle.dumps(one))  # noqa: S301 - our own
    assert again == one
    assert hash(again) == hash(one)


def test_an_object_inside_itself_has_a_text() -> None:
    one = Counter()
    one.rest["self"] = one
    one.seen.append(one)  # pyright: ignore[reportArgumentType]
    assert repr(one) == "Counter(_count=0, _only=1, seen=[...], limit=9)"


def test_attrs_knows_them() -> None:
    call = Call("f", (2,), span=4)
    kind: Any = Call
    assert attrs.has(kind)
    assert [each.name for each in attrs.fields(kind)] == [each.name for each in fields(Call)]
    assert attrs.asdict(call) == {"span": 4, "name": "f", "parts": (2,)}
    assert attrs.evolve(call, name="g") == Call("g", (2,))
    assert [each.name for each in attrs.fields(kind) if each.eq] == ["name", "parts"]
    odd: Any = Odd
    assert [each.name for each in attrs.fields(odd) if each.eq] == []

    @attrs.frozen
    class More(Call):
        extra: int = 0

    more: Any = More  # who reads only the text does not know that the two go together
    assert more("f", (), 3, span=1) == more("f", (), 3)
    assert attrs.asdict(more("f"))["extra"] == 0
    assert [each.name for each in fields(More)] == ["span", "name", "parts", "extra"]
    assert evolve(more("f"), extra=2) == more("f", (), 2)
    assert [has_fields(each) for each in (Call, More, int)] == [True, True, False]


def test_a_field_without_a_default_behind_one_with_a_default_is_a_mistake() -> None:
    @frozen
    class Wrong:
        first: int = 1
        second: str  # pyright: ignore[reportGeneralTypeIssues]

    with pytest.raises(TypeError, match="a field without a default stands behind one with a default"):
        Wrong(1, "2")
