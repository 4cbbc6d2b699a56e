"""What workers of Spark are forked of does not read pyspark out of archives if it is there as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backends.spark.daemon import unpacked

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("there", [{"pyspark", "py4j"}, {"pyspark"}, {"py4j"}])
def test_archives_are_left_out_if_they_are_of_what_is_there_as_files(there: set[str], tmp_path: Path) -> None:
    for name in there:
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").touch()
    own = [str(tmp_path / "pyspark/python/lib" / each) for each in ("pyspark.zip", "py4j-0.10.9-src.zip")]
    others = [str(tmp_path / "elsewhere/pyspark.zip"), str(tmp_path)]
    left = others if there == {"pyspark", "py4j"} else [*own, *others]
    assert unpacked([*own, *others]) == left
