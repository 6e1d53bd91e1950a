"""A browser for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture
def quiet(browser: Browser) -> Iterator[Browser]:
    """The browser; after the test it has reported no error, and the page has requested nothing but itself."""
    yield browser
    assert browser.troubles == []
    assert [address for address in browser.requests if not address.startswith(("data:", "blob:"))] == [
        browser.evaluate("location.href")
    ]
