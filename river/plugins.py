"""Languages, passes and backends by name, loaded when first asked for.

A distribution offers them as entry points in the groups `river.frontends`, `river.passes` and `river.backends`; ours
come through the same door as a stranger's. What goes wrong with a plugin is told as a Diagnostic.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from river.diagnostics import Diagnostic, Note, Rejected, closest
from river.entries import entries

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from river.backend import Backend
    from river.entries import Entry
    from river.frontend import Frontend
    from river.passes import Pass

    Point = Entry | EntryPoint

FRONTENDS = "river.frontends"
PASSES = "river.passes"
BACKENDS = "river.backends"


def frontends() -> tuple[str, ...]:
    """Names of the installed languages, sorted."""
    return _names(FRONTENDS)


def passes() -> tuple[str, ...]:
    """Names of the installed passes, sorted."""
    return _names(PASSES)


def backends() -> tuple[str, ...]:
    """Names of the installed backends, sorted."""
    return _names(BACKENDS)


def modules(group: str) -> frozenset[str]:
    """The modules that the plugins of a group are in."""
    return frozenset(entry.module for entry in _entries(group))


def frontend(name: str) -> Frontend[Any, Any]:
    """The frontend of the language `name`.

    Raises: Rejected("unknown-language"), or "plugin-two-owners", "plugin-missing-dependency", "plugin-broken".
    """
    return _load(_find(FRONTENDS, name) or _unknown("unknown-language", "language", FRONTENDS, name))


def pass_(name: str) -> type[Pass[Any]]:
    """The pass `name`: a class whose fields are its options.

    Raises: Rejected("unknown-pass"), or "plugin-two-owners", "plugin-missing-dependency", "plugin-broken".
    """
    return _load(_find(PASSES, name) or _unknown("unknown-pass", "pass", PASSES, name))


def backend(name: str) -> Backend[Any]:
    """The backend `name`.

    Raises: Rejected("unknown-backend"), or "plugin-two-owners", "plugin-missing-dependency", "plugin-broken".
    """
    return _load(_find(BACKENDS, name) or _unknown("unknown-backend", "backend", BACKENDS, name))


def frontend_for_suffix(suffix: str) -> Frontend[Any, Any] | None:
    """The frontend whose files end in `suffix` (`.cql`), or None when no language claims it.

    The language that is called like the suffix is asked first, so that the others need not be loaded.
    Raises: Rejected, when nobody claims it and some language could not be asked.
    """
    unasked: list[Diagnostic] = []
    for name in sorted(frontends(), key=lambda name: (f".{name}" != suffix, name)):
        try:
            candidate = frontend(name)
        except Rejected as rejected:
            unasked += rejected.diagnostics
        else:
            if candidate.suffix == suffix:
                return candidate
    if unasked:
        raise Rejected(unasked)
    return None


def _entries(group: str) -> tuple[Point, ...]:
    return _installed(tuple(sys.path))[group]


@lru_cache(maxsize=16)
def _installed(_path: tuple[str, ...]) -> dict[str, tuple[Point, ...]]:
    """The entry points of each group; looks at every installed distribution on the path: not at start-up, and once."""
    return entries(FRONTENDS, PASSES, BACKENDS)


def _names(group: str) -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in _entries(group)}))


def _find(group: str, name: str) -> Point | None:
    found = [entry for entry in _entries(group) if entry.name == name]
    if len(found) > 1:
        owners = sorted(f"`{_owner(entry)}`" for entry in found)
        raise Rejected(
            [
                Diagnostic(
                    "plugin-two-owners",
                    f"{' and '.join(owners)} both provide `{name}` in `{group}`",
                    notes=tuple(Note(f"`{_owner(entry)}` provides `{entry.value}`") for entry in found),
                    help="uninstall one of them",
                )
            ]
        )
    return found[0] if found else None


def _unknown(code: str, kind: str, group: str, name: str) -> Point:
    known = _names(group)
    if known:
        hint = closest(name, known) or f"known: {', '.join(f'`{k}`' for k in known)}"
    elif any(map(_entries, (FRONTENDS, PASSES, BACKENDS))):
        hint = f"no {kind} is installed"
    else:
        hint = "River is not installed, only its files are here: run `pip install -e .`"
    raise Rejected([Diagnostic(code, f"there is no {kind} `{name}`", help=hint)])


def _load(entry: Point) -> Any:
    try:
        return entry.load()
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if not isinstance(error, ModuleNotFoundError) or missing == entry.module.partition(".")[0]:
            raise Rejected([_broken(entry, error)]) from error
        raise Rejected(
            [
                Diagnostic(
                    "plugin-missing-dependency",
                    f"`{entry.name}` of `{_owner(entry)}` needs `{missing}`, which is not installed",
                    help=f"run `pip install {_requirement(entry, missing)}`",
                )
            ]
        ) from error
    except AttributeError as error:
        raise Rejected([_broken(entry, error)]) from error


def _broken(entry: Point, error: Exception) -> Diagnostic:
    return Diagnostic(
        "plugin-broken",
        f"`{entry.name}` of `{_owner(entry)}` does not load from `{entry.value}`",
        notes=(Note(str(error)),),
        help=f"install `{_owner(entry)}` again, or tell its authors",
    )


def _owner(entry: Point) -> str:
    return entry.dist.name if entry.dist else "an unnamed distribution"


def _requirement(entry: Point, module: str) -> str:
    """What to install to get `module`: the extra of the plugin's distribution that brings it, else the module.

    Of several extras that one which brings least: others are for who works on the distribution.
    """
    extras: dict[str, list[str]] = {}
    for requirement in (entry.dist.requires if entry.dist else None) or ():
        brought = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", requirement)
        if brought and extra:
            extras.setdefault(extra[1], []).append(_normal(brought[0]))
    found = [extra for extra, all_ in extras.items() if _normal(module) in all_]
    return f"'{_owner(entry)}[{min(found, key=lambda each: len(extras[each]))}]'" if found else module


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
