"""What these tests share with those of the product."""

from tests.conftest import data_folder, few_trees, pytest_runtest_setup

__all__ = ["data_folder", "few_trees", "pytest_runtest_setup"]
