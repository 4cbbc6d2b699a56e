"""CSV read natively gives what the general reader gives: items, errors, places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.ingest_files import BLOCKS, ROWS, TYPES, csv_files, same

pytest.importorskip("llvmlite")


@given(st.data(), st.sampled_from(sorted(TYPES)), BLOCKS, ROWS)
def test_csv_gives_what_the_general_reader_gives(data, name, block, rows):
    same("x.csv", data.draw(csv_files(TYPES[name])), TYPES[name], block, rows)
