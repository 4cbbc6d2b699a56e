"""Classes of data: the words and the meaning are those of attrs, but methods are made when somebody first asks for them.

attrs writes and compiles four methods for a class when its module is imported, 1 ms each time. A run knows 400 classes, makes
objects of a third, and compares, hashes and prints those of few: nearly half the time of a short `river run`. Here a module
that is imported only gets classes with fields and slots. `attrs.has`, `attrs.fields` and what hangs on them know these
classes, too. There are no validators and converters; a class that needs them has `__attrs_post_init__`.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, partial
from reprlib import recursive_repr
from types import CellType, CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
C = TypeVar("C", bound=type)


class _Required(Enum):
    """Of one object, so that it is the same one everywhere."""

    REQUIRED = "required"


REQUIRED: Final[Any] = _Required.REQUIRED
"""The default of a field that has none."""

_FIELDS: Final = "__river_fields__"
_HASH: Final = "_hash_of_all"


class ClassField:
    """A field of a class: its type as the text says it, its default, what it takes part in; `alias`: the argument's name."""

    __slots__ = ("alias", "default", "eq", "factory", "hash", "init", "kw_only", "name", "repr", "type")

    def __init__(
        self,
        *,
        default: Any = REQUIRED,
        factory: Callable[[], Any] | None = None,
        init: bool = True,
        repr: bool = True,
        eq: bool = True,
        hash: bool | None = None,
        kw_only: bool = False,
        alias: str | None = None,
    ) -> None:
        """A field that does not know its name yet."""
        self.default, self.factory, self.init, self.repr, self.eq = default, factory, init, repr, eq
        self.hash, self.kw_only = eq if hash is None else hash, kw_only
        self.name = self.type = ""
        self.alias = alias or ""

    @property
    def optional(self) -> bool:
        """Whether an object can be made without it."""
        return self.default is not REQUIRED or self.factory is not None


@overload
def field(
    *,
    init: bool = ...,
    repr: bool = ...,
    eq: bool = ...,
    hash: bool | None = ...,
    kw_only: bool = ...,
    alias: str | None = ...,
) -> Any: ...
@overload
def field(
    *,
    default: T,
    init: bool = ...,
    repr: bool = ...,
    eq: bool = ...,
    hash: bool | None = ...,
    kw_only: bool = ...,
    alias: str | None = ...,
) -> T: ...
@overload
def field(
    *,
    factory: Callable[[], T],
    init: bool = ...,
    repr: bool = ...,
    eq: bool = ...,
    hash: bool | None = ...,
    kw_only: bool = ...,
    alias: str | None = ...,
) -> T: ...
def field(**stated: Any) -> Any:
    """What a class says of a field beyond its type, as in attrs."""
    return ClassField(**stated)


@overload
def frozen(cls: C, /) -> C: ...
@overload
def frozen(
    *,
    eq: bool = ...,
    repr: bool = ...,
    hash: bool | None = ...,
    slots: bool = ...,
    kw_only: bool = ...,
    cache_hash: bool = ...,
) -> Callable[[C], C]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type | None = None, /, **options: Any) -> Any:
    """A class whose objects do not change, compare and hash by their fields: as `attrs.frozen`."""
    make = partial(_made, is_frozen=True, **options)
    return make if cls is None else make(cls)


@overload
def define(cls: C, /) -> C: ...
@overload
def define(
    *, eq: bool = ..., repr: bool = ..., hash: bool | None = ..., slots: bool = ..., kw_only: bool = ...
) -> Callable[[C], C]: ...
@dataclass_transform(field_specifiers=(field,))
def define(cls: type | None = None, /, **options: Any) -> Any:
    """A class whose objects may change: as `attrs.define`."""
    make = partial(_made, is_frozen=False, **options)
    return make if cls is None else make(cls)


def fields(cls: type) -> tuple[ClassField, ...]:
    """The fields of a class, inherited ones first; those of a class of attrs, too, which may be a subclass of one of ours.

    Raises: attrs.exceptions.NotAnAttrsClassError.
    """
    found = cls.__dict__.get(_FIELDS)
    if found is None:
        import attrs

        found = attrs.fields(cls)
    return found


def has_fields(cls: type) -> bool:
    """Whether `fields` knows those of a class."""
    return any("__attrs_attrs__" in each.__dict__ for each in cls.__mro__)


def astuple(value: object) -> tuple[Any, ...]:
    """The values of an object's fields."""
    return tuple(getattr(value, each.name) for each in fields(type(value)))


def evolve(value: T, /, **changes: Any) -> T:
    """A copy of an object in which some fields are others, by their names as arguments."""
    cls = type(value)
    for alias, name in _given(cls):
        if alias not in changes:
            changes[alias] = getattr(value, name)
    return cls(**changes)


@cache
def _given(cls: type) -> tuple[tuple[str, str], ...]:
    """The arguments that objects of a class are made of, with the fields that have them."""
    return tuple((each.alias, each.name) for each in fields(cls) if each.init)


# ---------------------------------------------------------------------------------------------- making a class


def _made(
    cls: type,
    *,
    is_frozen: bool,
    eq: bool = True,
    repr: bool = True,
    hash: bool | None = None,
    slots: bool = True,
    kw_only: bool = False,
    cache_hash: bool = False,
) -> type:
    """The class with its fields, its slots, and methods that make themselves."""
    body = dict(cls.__dict__)
    own = tuple(_own(body, kw_only))
    names = {each.name for each in own}
    inherited = tuple(each for each in _inherited(cls) if each.name not in names)
    members: dict[str, Any] = {_FIELDS: (*inherited, *own)}
    members["__match_args__"] = tuple(f.name for f in members[_FIELDS] if f.init and not f.kw_only)
    compares = eq and "__eq__" not in body
    members["__attrs_attrs__"] = _Later(lambda cls: _for_attrs(cls, compares))
    members["__init__"] = _Later(lambda cls: _init(cls, is_frozen, cache_hash))
    if compares:
        members["__eq__"] = _Later(_eq)
        if hash is not False and "__hash__" not in body:
            members["__hash__"] = _Later(lambda cls: _hash(cls, cache_hash)) if is_frozen else None
    if repr:
        members["__repr__"] = _Later(_repr_of_all) if is_frozen else _repr
    if is_frozen:
        members["__setattr__"], members["__delattr__"] = _refuse, _refuse
    elif any(base.__setattr__ is _refuse for base in cls.__bases__):
        members["__setattr__"], members["__delattr__"] = object.__setattr__, object.__delattr__
    if slots:
        members["__getstate__"], members["__setstate__"] = _getstate, _setstate
    members = {name: member for name, member in members.items() if name not in body}
    for name, member in members.items():
        if isinstance(member, _Later):
            member.name = name
    made = _slotted(cls, body, members, names, cache_hash) if slots else _in_place(cls, members, names)
    for member in members.values():
        if isinstance(member, _Later):
            member.cls = made
    return made


def _own(body: dict[str, Any], kw_only: bool) -> Iterator[ClassField]:
    """The fields that the class itself states, in their order."""
    for name, type_ in body.get("__annotations__", {}).items():
        text = type_ if isinstance(type_, str) else getattr(type_, "__name__", str(type_))
        if text.startswith(("ClassVar", "typing.ClassVar")):
            continue
        stated = body.get(name, REQUIRED)
        each = stated if isinstance(stated, ClassField) else ClassField(default=stated)
        each.name, each.type = name, text
        each.alias = each.alias or name.lstrip("_")
        each.kw_only = each.kw_only or kw_only
        yield each


def _inherited(cls: type) -> Iterator[ClassField]:
    """The fields of its bases, those of the furthest first, each name once."""
    found: dict[str, ClassField] = {}
    for base in reversed(cls.__mro__[1:]):
        for each in base.__dict__.get(_FIELDS, ()):
            found.pop(each.name, None)
            found[each.name] = each
    yield from found.values()


def _slotted(cls: type, body: dict[str, Any], members: dict[str, Any], names: set[str], cached: bool) -> type:
    """The class anew, with slots."""
    taken = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    slots = [each for each in names if each not in taken]
    if not any("__weakref__" in base.__dict__ for base in cls.__mro__[1:]):
        slots.append("__weakref__")
    if cached:
        slots.append(_HASH)
    rest = {name: value for name, value in body.items() if name not in {*names, "__dict__", "__weakref__"}}
    made = type(cls)(
        cls.__name__,
        cls.__bases__,
        {**rest, **members, "__slots__": tuple(slots), "__qualname__": cls.__qualname__},
    )
    for value in rest.values():
        for cell in _cells(value):
            if _holds(cell, cls):
                cell.cell_contents = made
    return made


def _in_place(cls: type, members: dict[str, Any], names: set[str]) -> type:
    """The same class; what it says of its fields is no attribute any longer."""
    for name in names:
        if name in cls.__dict__:
            delattr(cls, name)
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def _cells(value: Any) -> tuple[CellType, ...]:
    """The cells that a method of the class closes over: `super()` and `__class__` are one."""
    value = getattr(value, "__func__", value)  # of a classmethod or staticmethod
    if isinstance(value, property):
        return tuple(cell for each in (value.fget, value.fset) if each for cell in _cells(each))
    return (value.__closure__ or ()) if isinstance(value, FunctionType) else ()


def _holds(cell: CellType, cls: type) -> bool:
    try:
        return cell.cell_contents is cls
    except ValueError:  # nothing yet
        return False


# ---------------------------------------------------------------------------------------------- methods


class _Later:
    """Something of a class that is made when it is first asked for, and then stands in its own place."""

    __slots__ = ("cls", "make", "name")

    cls: type
    name: str

    def __init__(self, make: Callable[[type], Any]) -> None:
        self.make = make

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self.make(self.cls)
        setattr(self.cls, self.name, made)
        return made.__get__(instance, owner) if isinstance(made, FunctionType) else made


def _function(cls: type, name: str, text: str, renamed: dict[str, str], names: dict[str, Any]) -> Any:
    """A method of the class: the code of a text in which its fields have other names, and global names."""
    code = _compiled(text)
    return FunctionType(
        code.replace(
            co_varnames=tuple(renamed.get(each, each) for each in code.co_varnames),
            co_names=tuple(renamed.get(each, each) for each in code.co_names),
            co_qualname=f"{cls.__qualname__}.{name}",
            co_filename=f"<{name} of {cls.__module__}.{cls.__qualname__}>",
        ),
        {"__name__": cls.__module__, **names},
        name,
    )


@cache
def _compiled(text: str) -> CodeType:
    """The code of the function in a text; classes whose fields are alike in number and kind share it."""
    (code,) = (each for each in compile(text, "<methods>", "exec").co_consts if isinstance(each, CodeType))
    return code


def _init(cls: type, is_frozen: bool, cached: bool) -> Any:
    """Takes the fields: by position unless they are for names only."""
    names: dict[str, Any] = {"required": REQUIRED}
    lines: list[str] = []
    taken: dict[bool, list[tuple[ClassField, str]]] = {False: [], True: []}
    for i, each in enumerate(fields(cls)):
        value, argument = f"make{i}()", f"argument{i}"
        if each.init:
            taken[each.kw_only].append((each, argument))
            value = (
                argument if each.factory is None else f"make{i}() if {argument} is required else {argument}"
            )
        if each.factory is not None:
            names[f"make{i}"] = each.factory
        elif not each.init:
            if each.default is REQUIRED:
                continue
            value = f"default{i}"
            names[value] = each.default
        if is_frozen:
            names[f"set{i}"] = _setter(cls, each.name)
        lines.append(f"set{i}(self, {value})" if is_frozen else f"self.field{i} = {value}")
    if cached:
        names["set_hash"] = _setter(cls, _HASH)
        lines.append("set_hash(self, None)")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append("self.__attrs_post_init__()")
    arguments = ["self", *(name for _, name in taken[False])]
    if taken[True]:
        arguments += ["*", *(name for _, name in taken[True])]
    text = "\n    ".join((f"def __init__({', '.join(arguments)}):", *(lines or ["pass"])))
    renamed = {f"field{i}": each.name for i, each in enumerate(fields(cls))}
    renamed |= {name: each.alias for several in taken.values() for each, name in several}
    made = _function(cls, "__init__", text, renamed, names)
    optional = [each.optional for each, _ in taken[False]]
    if optional != sorted(optional):
        raise TypeError(f"`{cls.__qualname__}`: a field without a default stands behind one with a default")
    made.__defaults__ = tuple(each.default for each, _ in taken[False] if each.optional)
    made.__kwdefaults__ = {each.alias: each.default for each, _ in taken[True] if each.optional}
    return made


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What gives a field of a frozen object its value: its slot, which is quickest, if it has one."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, value: object.__setattr__(self, name, value)


def _eq(cls: type) -> Any:
    """Whether another object of the same class has equal fields."""
    named = {f"field{i}": each.name for i, each in enumerate(each for each in fields(cls) if each.eq)}
    same = " and ".join(f"self.{each} == other.{each}" for each in named) or "True"
    text = f"def __eq__(self, other):\n    return ({same}) if other.__class__ is self.__class__ else NotImplemented"
    return _function(cls, "__eq__", text, named, {})


def _hash(cls: type, cached: bool) -> Any:
    """A number that is equal for equal objects."""
    named = {f"field{i}": each.name for i, each in enumerate(each for each in fields(cls) if each.hash)}
    value = f"hash((kind, {''.join(f'self.{each}, ' for each in named)}))"
    names: dict[str, Any] = {"kind": hash(f"{cls.__module__}.{cls.__qualname__}")}
    lines = [f"return {value}"]
    if cached:
        names["set_hash"] = _setter(cls, _HASH)
        lines = [f"if self.{_HASH} is None:", f"    set_hash(self, {value})", f"return self.{_HASH}"]
    return _function(cls, "__hash__", "\n    ".join(("def __hash__(self):", *lines)), named, names)


def _for_attrs(cls: type, compares: bool) -> Any:
    """The fields as attrs describes them; none takes part in the equality of a class that has one of its own, or none."""
    import attrs

    these: dict[str, Any] = {}
    for each in fields(cls):
        default: Any = attrs.NOTHING if each.default is REQUIRED else each.default
        if each.factory is not None:
            default = attrs.Factory(each.factory)
        these[each.name] = attrs.field(  # pyright: ignore[reportCallIssue] - its overloads know no such default
            default=default,
            init=each.init,
            repr=each.repr,
            eq=compares and each.eq,
            hash=compares and each.hash,
            kw_only=each.kw_only,
            alias=each.alias,
        )
    return attrs.fields(attrs.make_class(cls.__name__, these))


def _repr_of_all(cls: type) -> Any:
    """What an object tells of its fields, which all have values. It is no part of itself unless by way of one that may change."""
    shown = [each for each in fields(cls) if each.repr]
    if not all(each.init or each.optional for each in shown):
        return _repr
    told = ", ".join(f"{{label{i}}}={{self.field{i}!r}}" for i in range(len(shown)))
    named = {f"field{i}": each.name for i, each in enumerate(shown)}
    labels = {f"label{i}": each.name for i, each in enumerate(shown)}
    text = f"def __repr__(self):\n    return f'{{self.__class__.__qualname__.rpartition(outer)[2]}}({told})'"
    return _function(cls, "__repr__", text, named, {"outer": ">.", **labels})


@recursive_repr()
def _repr(self: object) -> str:
    """What an object tells of those of its fields that have values; a few dots within itself."""
    known = [each.name for each in fields(type(self)) if each.repr and hasattr(self, each.name)]
    told = (f"{name}={getattr(self, name)!r}" for name in known)
    return f"{type(self).__qualname__.rpartition('>.')[2]}({', '.join(told)})"


def _refuse(self: object, name: str, *_: object) -> None:
    raise AttributeError(f"`{name}` of `{type(self).__qualname__}` stays as it was made")


def _getstate(self: object) -> dict[str, Any]:
    return {each.name: getattr(self, each.name) for each in fields(type(self)) if hasattr(self, each.name)}


def _setstate(self: object, state: dict[str, Any]) -> None:
    for name, value in state.items():
        object.__setattr__(self, name, value)
    if hasattr(type(self), _HASH):
        object.__setattr__(self, _HASH, None)
