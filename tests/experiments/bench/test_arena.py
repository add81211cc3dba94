"""The benchmark's arithmetic and tables; nothing here is timed."""

import doctest

import pytest

pytest.importorskip("numba")

from jaxbandit.experiments.bench import arena as bench
from jaxbandit.experiments.bench import hlo
from jaxbandit.experiments.bench import table as bench_table


@pytest.mark.parametrize("module", [bench, bench_table, hlo])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


def test_an_existing_file_is_not_replaced(tmp_path):
    path = tmp_path / "bench.json"
    path.write_text("{}")
    with pytest.raises(FileExistsError, match="--overwrite"):
        bench.main(["--output", str(path)])
