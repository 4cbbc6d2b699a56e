"""The parts of a graph, and what they are called from outside: `Main/Equalizer/Band[3]`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, assert_never

from frontends.streamit import typed as ty

if TYPE_CHECKING:
    from collections.abc import Sequence


LONGEST: Final = 16
"""Names in a path."""


def parts(graph: ty.Graph) -> tuple[ty.Graph, ...]:
    """What a part consists of."""
    match graph:
        case ty.Pipeline(parts=inner) | ty.SplitJoin(parts=inner):
            return inner
        case ty.FeedbackLoop(body=body, loop=loop):
            return (body, loop)
        case _:
            return ()


def label(names: Sequence[str], index: int) -> str:
    """What one of several parts is called: by its name, numbered from 0 where others have it, too."""
    name = names[index]
    return name if names.count(name) == 1 else f"{name}[{names[:index].count(name)}]"


def inside(path: str, name: str) -> str:
    """The path of a part; of a long one, which recursion makes, the middle is left out."""
    names = f"{path}/{name}".split("/")
    return "/".join(
        names if len(names) <= LONGEST else (*names[: LONGEST // 2], "...", *names[-LONGEST // 2 :])
    )


def paths(graph: ty.Graph) -> dict[int, str]:
    """The names of all streams from the whole graph down to each of its parts, by identity."""
    found: dict[int, str] = {}
    stack = [(graph, _name(graph))]
    while stack:
        at, path = stack.pop()
        found[id(at)] = path
        inner = parts(at)
        names = [_name(each) for each in inner]
        often, seen = Counter(names), Counter[str]()
        for each, name in zip(inner, names, strict=True):
            stack.append((each, inside(path, f"{name}[{seen[name]}]" if often[name] > 1 else name)))
            seen[name] += 1
    return found


def _name(part: ty.Graph) -> str:
    match part:
        case ty.Node(filter_):
            return filter_.name
        case ty.Identity():
            return "Identity"
        case ty.File(_, reads):
            return "FileReader" if reads else "FileWriter"
        case ty.Pipeline(name) | ty.SplitJoin(name) | ty.FeedbackLoop(name):
            return name
        case _:
            assert_never(part)
