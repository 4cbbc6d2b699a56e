"""Tables of the runtime: names that `*.rt` files may use like variables. Python makes them, of whole numbers and texts.

`SECRETS` is not in the code: each process has its own (`jit.py`).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BLOCK: Final = 256  # code points of a block of the tables by code point
_MOST: Final = 0x110000


def power_of_ten(exponent: int, *, up: bool) -> int:
    """The 128 leading bits of a power of ten, rounded up or down."""
    above, below = (10**exponent, 1) if exponent >= 0 else (1, 10**-exponent)
    shift = 129 - above.bit_length() + below.bit_length()
    quotient, rest = divmod(above << max(shift, 0), below << max(-shift, 0))
    lost = quotient.bit_length() - 128
    exact = rest == 0 and quotient & (1 << lost) - 1 == 0
    return (quotient >> lost) + (up and not exact)


def _powers(low: int, high: int, *, up: bool) -> list[int]:
    found: list[int] = []
    for exponent in range(low, high + 1):
        power = power_of_ten(exponent, up=up)
        found += [power >> 64, power & (1 << 64) - 1]
    return found


def _words(kind: str, values: Sequence[int]) -> str:
    return f"[{len(values)} x {kind}] [{', '.join(f'{kind} {value}' for value in values)}]"


def _bytes(data: bytes) -> str:
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'


@cache
def _cases() -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Lower case, upper case: numbers of blocks and cells; and texts of several code points.

    A cell is 0 (as it is), a code point, or minus the place of {count, code points}.
    """
    several = [0]

    def cell(old: str, new: str) -> int:
        if new == old:
            return 0
        if len(new) == 1:
            return ord(new)
        several.extend((len(new), *map(ord, new)))
        return len(new) - len(several) + 1

    tables: list[list[int]] = []
    for change in (str.lower, str.upper):
        index: list[int] = []
        cells = [0] * _BLOCK
        for start in range(0, _MOST, _BLOCK):
            block = list(map(chr, range(start, start + _BLOCK)))
            found = [cell(old, change(old)) for old in block] if _touched("".join(block), change) else []
            index.append(len(cells) // _BLOCK if any(found) else 0)
            if any(found):
                cells += found
        tables += [index, cells]
    return (tables[0], tables[1], tables[2], tables[3], several)


def _touched(text: str, change: Callable[[str], str]) -> bool:
    return change(text) != text


@cache
def _around_sigma() -> tuple[list[int], list[int]]:
    """By code point what it is beside a capital sigma: 1 passed over, 2 a letter with case (Unicode's Final_Sigma)."""
    index: list[int] = []
    cells = [0] * _BLOCK
    for start in range(0, _MOST, _BLOCK):
        block = list(map(chr, range(start, start + _BLOCK)))
        found = [_beside(point) for point in block] if _interesting("".join(block)) else [0]
        index.append(len(cells) // _BLOCK if any(found) else 0)
        if any(found):
            cells += found
    return index, cells


def _interesting(block: str) -> bool:
    """Whether some code point is not one at which the search for a letter ends without one."""
    import unicodedata

    return any(unicodedata.category(point) in _CATEGORIES for point in block) or "." in block


_CATEGORIES: Final = ("Lu", "Ll", "Lt", "Lm", "Mn", "Me", "Cf", "Sk", "Nl", "So", "Po", "Pf", "Pi")


def _beside(point: str) -> int:
    final = "\N{GREEK SMALL LETTER FINAL SIGMA}"
    after_digit = f"1{point}\N{GREEK CAPITAL LETTER SIGMA}".lower()[-1] == final
    after_letter = f"A{point}\N{GREEK CAPITAL LETTER SIGMA}".lower()[-1] == final
    return 2 if after_digit else 1 if after_letter else 0


SECRETS: Final = "SECRETS"
SECRET_WORDS: Final = 4

TABLES: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "POWERS_UP": ("p64", lambda: _words("i64", _powers(-292, 324, up=True))),
    "POWERS_DOWN": ("p64", lambda: _words("i64", _powers(-348, 347, up=False))),
    "PAIRS": ("p8", lambda: _bytes(b"".join(b"%02d" % i for i in range(100)))),
    "TENS": ("p64", lambda: _words("i64", [10**i for i in range(20)])),
    "LOWER_BLOCKS": ("p16", lambda: _words("i16", _cases()[0])),
    "LOWER_CELLS": ("p32", lambda: _words("i32", _cases()[1])),
    "UPPER_BLOCKS": ("p16", lambda: _words("i16", _cases()[2])),
    "UPPER_CELLS": ("p32", lambda: _words("i32", _cases()[3])),
    "SEVERAL": ("p32", lambda: _words("i32", _cases()[4])),
    "SIGMA_BLOCKS": ("p16", lambda: _words("i16", _around_sigma()[0])),
    "SIGMA_CELLS": ("p8", lambda: _bytes(bytes(_around_sigma()[1]))),
    SECRETS: ("p64", lambda: f"[{SECRET_WORDS} x i64]"),
}
"""By name: the type of the pointer, and what makes the constant."""


@cache
def constant(name: str) -> str:
    """The definition of a table; the declaration of the secrets."""
    if name == SECRETS:
        return f"@{name} = external constant {TABLES[name][1]()}, align 8"
    return f"@{name} = private unnamed_addr constant {TABLES[name][1]()}, align 16"
