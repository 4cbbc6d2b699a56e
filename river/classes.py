"""Classes of data: the words and the meaning are those of attrs, but methods are made when somebody first asks for them.

attrs writes and compiles four methods for a class when its module is imported, 1 ms each time. A run knows 400 classes, makes
objects of a third, and compares, hashes and prints those of few: nearly half the time of a short `river run`. Here a module
that is imported only gets classes with fields and slots. The methods of most classes have one of a few hundred shapes, which
stand in `river.methods`: Python keeps their code, as that of any module, and compiles only the rest. `attrs.has`,
`attrs.fields` and what hangs on them know these classes, too. There are no validators and converters; a class that needs them
has `__attrs_post_init__`.
"""

from __future__ import annotations

from enum import Enum
from functools import cache, partial
from reprlib import recursive_repr
from types import CellType, CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform, overload

from river import methods

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
    later = [(name, member) for name, member in members.items() if isinstance(member, _Later)]
    for name, member in later:
        member.name = name
    made = _slotted(cls, body, members, names, cache_hash) if slots else _in_place(cls, members, names)
    for _, member in later:
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
    rest = dict(body)
    for name in (*names, "__dict__", "__weakref__"):
        rest.pop(name, None)
    made = type(cls)(
        cls.__name__,
        cls.__bases__,
        {**rest, **members, "__slots__": tuple(slots), "__qualname__": cls.__qualname__},
    )
    for value in rest.values():
        if isinstance(value, FunctionType) and value.__closure__ is None:
            continue
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


def _function(cls: type, name: str, shape: str, renamed: dict[str, str], names: dict[str, Any]) -> Any:
    """A method of the class: the code of a shape in which its fields have other names, and global names."""
    code = _code(shape)
    return FunctionType(
        code.replace(
            co_varnames=tuple(renamed.get(each, each) for each in code.co_varnames),
            co_names=tuple(renamed.get(each, each) for each in code.co_names),
            co_name=name,
            co_qualname=f"{cls.__qualname__}.{name}",
            co_filename=f"<{name} of {cls.__module__}.{cls.__qualname__}>",
            co_firstlineno=1,
        ),
        {"__name__": cls.__module__, **names},
        name,
    )


@cache
def _code(shape: str) -> CodeType:
    """The code of a shape, which classes share whose fields are alike in number and kind."""
    found: FunctionType | None = getattr(methods, shape, None)
    if found is not None:
        return found.__code__
    made = compile(method_text(shape), "<methods>", "exec", dont_inherit=True)
    (code,) = (each for each in made.co_consts if isinstance(each, CodeType))
    return code


def method_text(shape: str) -> str:
    """The method of a shape: `eq_2`, `hash_2`, `cached_2` and `repr_2` of two fields, `init_z_sm` as `_init` says."""
    kind, *of = shape.split("_")
    if kind == "init":
        return _init_text(shape, *of)
    numbers = range(int(of[0]))
    if kind == "eq":
        same = " and ".join(f"self.f{i} == other.f{i}" for i in numbers) or "True"
        return f"def {shape}(self, other): return ({same}) if other.__class__ is self.__class__ else NotImplemented"
    if kind == "repr":
        told = ", ".join(f"{{label{i}}}={{self.f{i}!r}}" for i in numbers)
        return f"def {shape}(self): return f'{{self.__class__.__qualname__.rpartition(outer)[2]}}({told})'"
    value = f"hash((kind, {''.join(f'self.f{i}, ' for i in numbers)}))"
    if kind == "hash":
        return f"def {shape}(self): return {value}"
    return (
        f"def {shape}(self):\n    if self.{_HASH} is None: set_hash(self, {value})\n    return self.{_HASH}"
    )


def _init_text(shape: str, flags: str, kinds: str) -> str:
    lines: list[str] = []
    for i, kind in enumerate(kinds):
        match kind.lower():
            case "s":
                value = f"a{i}"
            case "f":
                value = f"make{i}() if a{i} is required else a{i}"
            case "m":
                value = f"make{i}()"
            case "d":
                value = f"default{i}"
            case _:
                continue
        lines.append(f"set{i}(self, {value})" if "z" in flags else f"self.f{i} = {value}")
    if "h" in flags:
        lines.append("set_hash(self, None)")
    if "p" in flags:
        lines.append("self.__attrs_post_init__()")
    by_name = [f"a{i}" for i, kind in enumerate(kinds) if kind in "SF"]
    arguments = [
        "self",
        *(f"a{i}" for i, kind in enumerate(kinds) if kind in "sf"),
        *(["*"] if by_name else []),
    ]
    return f"def {shape}({', '.join((*arguments, *by_name))}): {'; '.join(lines or ['pass'])}"


def _init(cls: type, is_frozen: bool, cached: bool) -> Any:
    """Takes the fields: by position unless they are for names only.

    Its shape says whether the class is frozen (`z`), keeps its hash (`h`), has something to do when the fields have values
    (`p`), and of each field where its value is from: what is stated (`s`), also if it has a default; that, or what a factory
    makes (`f`); a factory (`m`), a default (`d`), or nothing (`n`). A capital: stated by name only.
    """
    names: dict[str, Any] = {"required": REQUIRED}
    renamed: dict[str, str] = {}
    kinds: list[str] = []
    for i, each in enumerate(fields(cls)):
        renamed[f"f{i}"], renamed[f"a{i}"] = each.name, each.alias
        if each.init:
            kind = "s" if each.factory is None else "f"
            kinds.append(kind.upper() if each.kw_only else kind)
        else:
            kinds.append("m" if each.factory is not None else "n" if each.default is REQUIRED else "d")
        if each.factory is not None:
            names[f"make{i}"] = each.factory
        elif kinds[-1] == "d":
            names[f"default{i}"] = each.default
        if is_frozen and kinds[-1] != "n":
            names[f"set{i}"] = _setter(cls, each.name)
    if cached:
        names["set_hash"] = _setter(cls, _HASH)
    after = hasattr(cls, "__attrs_post_init__")
    shape = f"init_{'z' * is_frozen}{'h' * cached}{'p' * after}_{''.join(kinds)}"
    made = _function(cls, "__init__", shape, renamed, names)
    stated = [each for each in fields(cls) if each.init]
    optional = [each.optional for each in stated if not each.kw_only]
    if optional != sorted(optional):
        raise TypeError(f"`{cls.__qualname__}`: a field without a default stands behind one with a default")
    made.__defaults__ = tuple(each.default for each in stated if each.optional and not each.kw_only)
    made.__kwdefaults__ = {each.alias: each.default for each in stated if each.optional and each.kw_only}
    return made


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """What gives a field of a frozen object its value: its slot, which is quickest, if it has one."""
    slot = getattr(cls, name, None)
    if isinstance(slot, MemberDescriptorType):
        return slot.__set__
    return lambda self, value: object.__setattr__(self, name, value)


def _eq(cls: type) -> Any:
    """Whether another object of the same class has equal fields."""
    named = {f"f{i}": each.name for i, each in enumerate(each for each in fields(cls) if each.eq)}
    return _function(cls, "__eq__", f"eq_{len(named)}", named, {})


def _hash(cls: type, cached: bool) -> Any:
    """A number that is equal for equal objects."""
    named = {f"f{i}": each.name for i, each in enumerate(each for each in fields(cls) if each.hash)}
    names: dict[str, Any] = {"kind": hash(f"{cls.__module__}.{cls.__qualname__}")}
    if cached:
        names["set_hash"] = _setter(cls, _HASH)
    return _function(cls, "__hash__", f"{'cached' if cached else 'hash'}_{len(named)}", named, names)


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
    named = {f"f{i}": each.name for i, each in enumerate(shown)}
    labels = {f"label{i}": each.name for i, each in enumerate(shown)}
    return _function(cls, "__repr__", f"repr_{len(shown)}", named, {"outer": ">.", **labels})


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
