"""`river/methods.py` holds the methods that classes of data ask for, so that no run has to compile them."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from river import classes, methods

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("river", "frontends", "optimizers", "backends")
MADE = ("__init__", "__eq__", "__hash__", "__repr__")
HEAD = '''"""Methods of the classes of `river.classes`, by their shapes: see `classes.method_text`.

Written by `pytest --update-golden tests/house/test_methods.py`; a shape that is missing is compiled when it is asked for.
"""

'''


def _classes() -> list[type]:
    for package in PACKAGES:
        found = importlib.import_module(package)
        for module in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    seen: set[type] = set()
    left: list[type] = [object]
    while left:
        for each in type.__subclasses__(left.pop()):
            if each not in seen:
                seen.add(each)
                left.append(each)
    return [
        each
        for each in seen
        if classes._FIELDS in each.__dict__ and each.__module__.split(".")[0] in PACKAGES
    ]


def _shapes(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The shapes of all methods of all classes of data."""
    found: set[str] = set()
    real = classes._function

    def noting(cls: type, name: str, shape: str, *rest: dict) -> object:
        found.add(shape)
        return real(cls, name, shape, *rest)

    monkeypatch.setattr(classes, "_function", noting)
    for each in _classes():
        frozen = each.__setattr__ is classes._refuse
        cached = classes._HASH in each.__dict__.get("__slots__", ())
        classes._init(each, frozen, cached)
        classes._eq(each)
        if frozen:
            classes._hash(each, cached)
            classes._repr_of_all(each)
    return found


def _there() -> dict[str, FunctionType]:
    return {name: each for name, each in vars(methods).items() if isinstance(each, FunctionType)}


def _alike(one: CodeType, other: CodeType) -> bool:
    """Whether two codes do the same by the same names."""
    facts = (
        "co_code",
        "co_names",
        "co_varnames",
        "co_argcount",
        "co_kwonlyargcount",
        "co_consts",
        "co_flags",
    )
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)


@pytest.mark.parametrize("shape", sorted(_there()))
def test_a_method_is_what_its_shape_says(shape: str) -> None:
    made: dict[str, FunctionType] = {}
    exec(compile(classes.method_text(shape), "<methods>", "exec", dont_inherit=True), made)  # noqa: S102 - the text is ours
    assert _alike(_there()[shape].__code__, made[shape].__code__)


def test_nearly_all_methods_of_the_classes_are_there(
    monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    wanted = _shapes(monkeypatch)
    if pytestconfig.getoption("--update-golden"):
        text = HEAD + "\n".join(classes.method_text(shape) for shape in sorted(wanted)) + "\n"
        (ROOT / "river" / "methods.py").write_text(text, encoding="utf-8")
        return
    missing = wanted - _there().keys()
    assert len(missing) <= len(wanted) / 20, "run `pytest --update-golden tests/house/test_methods.py`"
