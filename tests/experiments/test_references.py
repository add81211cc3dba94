"""Committed references are written from results of the experiment, and from nothing else."""

import pytest
from jaxbandit.experiments import references


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"results: .* holds no \.nc files; accepted: a folder"):
        references.write(tmp_path, tmp_path / "out.nc")
    assert not (tmp_path / "out.nc").exists()


def test_kept_episodes_divide_the_200_that_a_sweep_records():
    assert 200 % references.POINTS == 0
    assert 200 % references.POINTS_OF_FULL == 0
