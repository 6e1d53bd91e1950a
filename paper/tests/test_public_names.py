"""What a reader of the experiment finds: docstrings, and examples that run."""

from __future__ import annotations

import pytest
from tests.test_public_face import check_examples_run, check_parameters_documented, modules_of, public_objects

import otprop_paper


@pytest.mark.parametrize("thing", list(public_objects(("otprop_paper.baselines", "otprop_paper.datasets"))))
def test_every_parameter_of_a_public_name_is_documented(thing):
    check_parameters_documented(thing)


@pytest.mark.parametrize("name", modules_of(otprop_paper))
def test_the_examples_in_docstrings_run(name):
    check_examples_run(name)
