"""What the tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from otprop.evidence import boosting

_UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}  # machines may be slow
settings.register_profile("fixed", derandomize=True, max_examples=50, **_UNTIMED)  # the same examples in every run
settings.register_profile("search", max_examples=1000, **_UNTIMED)  # HYPOTHESIS_PROFILE=search looks for new ones
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def find_data_folder() -> Path | None:
    """The folder of the benchmark data sets: OTPROP_DATA, or shared/data beside the checkout."""
    given = os.environ.get("OTPROP_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


_DATA_FOLDER = find_data_folder()  # once, before any test changes the environment
_NO_DATA = "the benchmark data sets are not here: set OTPROP_DATA, or put them into ../shared/data"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("data") and _DATA_FOLDER is None:
        pytest.skip(_NO_DATA)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the benchmark data sets; the test is skipped where there is none."""
    if _DATA_FOLDER is None:
        pytest.skip(_NO_DATA)
    return _DATA_FOLDER


@pytest.fixture(scope="module", autouse=True)
def few_trees(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forests of ten trees, as larger ones would only take time; a module that needs real ones sets ALL_TREES."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "ALL_TREES", False):
            patch.setattr("otprop.evidence.forest.N_TREES", 10)
            patch.setattr("otprop.evidence.forest.MANY_LABELS_TREES", 1.0)
            patch.setattr("otprop.evidence.shift.N_TREES", 10)
            patch.setitem(boosting.PARAMETERS, "max_iter", 5)
        yield
