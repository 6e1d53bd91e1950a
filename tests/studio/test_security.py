"""Nobody but the page of this user gets anything from the studio."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.studio.attacks import served
from tests.studio.client import StudioClient
from tests.studio.conftest import MARKUP, running, write_lots

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def test_no_attack_is_served_and_nothing_is_changed_by_them(quiet: tuple[Any, StudioClient]) -> None:
    _, client = quiet
    before = client.get("/api/state")
    assert served(client) == []
    assert client.get("/api/state") == before


def test_the_token_is_swapped_for_a_cookie_that_scripts_and_other_sites_do_not_get(
    quiet: tuple[Any, StudioClient],
) -> None:
    _, client = quiet
    assert "HttpOnly" in client.set_cookie
    assert "SameSite=Strict" in client.set_cookie
    assert client.token not in client.set_cookie


def test_the_server_listens_on_this_machine_only(quiet: tuple[Any, StudioClient]) -> None:
    studio, _ = quiet
    assert studio.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("path", ["/api/state", "/api/labels", "/api/nothing", "/static/nothing.js", "/api/row/0"])
def test_every_answer_has_the_headers(quiet: tuple[Any, StudioClient], path: str) -> None:
    _, client = quiet
    _, headers, _ = client.send("GET", path, {"Cookie": client.cookie})
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers
    assert not any(name.startswith("access-control") for name in headers)


def test_markup_in_cells_columns_and_classes_is_data_of_a_type_that_no_browser_renders(
    quiet: tuple[Any, StudioClient],
) -> None:
    _, client = quiet
    made = client.post("/api/classes", {"name": MARKUP})
    for path in ("/api/state", "/api/row/3", "/api/cells?ids=3", "/api/log", "/api/search?q=onerror"):
        _, headers, data = client.send("GET", path, {"Cookie": client.cookie})
        assert headers["content-type"] == "application/json"
        json.loads(data)
    assert client.get("/api/state")["classes"][made["id"]]["name"] == MARKUP
    assert MARKUP in client.get("/api/row/3")["cells"][2]


@pytest.mark.parametrize(
    "other", ['prefs={"theme":"dark"}', "a=b, c; d", 'x="', "=", "\xe4=\xfc", "otprop_studio_1=x", "$Version=1"]
)
def test_cookies_of_other_local_servers_do_not_lock_the_page_out(quiet: tuple[Any, StudioClient], other: str) -> None:
    _, client = quiet
    for line in (f"{other}; {client.cookie}", f"{client.cookie}; {other}", f"{other};{client.cookie};"):
        assert client.send("GET", "/api/state", {"Cookie": line})[0] == 200, line
    assert client.send("GET", "/api/state", {"Cookie": other})[0] == 401


def test_the_cookie_of_an_earlier_start_is_refused_and_is_in_no_file(tmp_path: Path) -> None:
    path = write_lots(tmp_path / "lots.csv")
    with running(path, worker=False) as (_, client):
        client.label(20, 0)
        first, port = client.cookie, client.port
        value = first.partition("=")[2].encode()
        assert not [one for one in tmp_path.iterdir() if value in one.read_bytes()]
    with running(path, worker=False, port=port) as (_, client):
        assert client.port == port
        assert client.send("GET", "/api/state", {"Cookie": first})[0] == 401
        assert client.get("/api/state")["revision"] == 1


def test_a_label_is_refused_over_http_when_the_session_file_is_gone(tmp_path: Path) -> None:
    path = write_lots(tmp_path / "lots.csv")
    with running(path, worker=False) as (studio, client):
        client.label(20, 0)
        studio.session.path.unlink()
        label = {"rows": [21], "class": 0, "kind": "label"}
        assert "was moved or deleted" in client.post("/api/label", label, 507)["error"]
        name = client.post("/api/export", {"format": "labels"})["url"]  # nothing is lost before the studio ends
        assert b"\n21,apple,chosen," in client.get(name)
