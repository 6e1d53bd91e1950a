"""A job that has run, and its model file."""

from __future__ import annotations

import pytest

from tests.labelling.models import make, saved


@pytest.fixture(scope="module")
def job():
    return make()


@pytest.fixture(scope="module")
def content(job):
    return saved(job)
