"""The browser of the tests of the product."""

from tests.report.conftest import browser, quiet

__all__ = ["browser", "quiet"]
