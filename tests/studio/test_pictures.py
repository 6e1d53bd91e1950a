"""Pictures over HTTP: only with the cookie, only of rows of the table, small, and kept by this browser alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("pyarrow")
pytest.importorskip("PIL")

from PIL import Image

from tests.studio.client import StudioClient
from tests.studio.conftest import running
from tests.table.pictures import picture

EVIL = "<img src=x onerror=alert(1)>.png"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, StudioClient]]:
    folder = tmp_path_factory.mktemp("photos")
    (folder.parent / "outside.png").write_bytes(b"")
    picture().save(folder.parent / "outside.png")
    names = [EVIL, "large.jpg", "deleted.png", "empty.png", "damaged.png", "link.png", "../outside.png", ""]
    for name in (EVIL, "deleted.png", "damaged.png"):
        picture().save(folder / name)
    picture(size=(900, 1200)).save(folder / "large.jpg")
    (folder / "empty.png").write_bytes(b"")
    damaged = (folder / "damaged.png").read_bytes()
    (folder / "damaged.png").write_bytes(damaged[: len(damaged) // 2])
    if os.name == "posix":
        (folder / "link.png").symlink_to(folder.parent / "outside.png")
    lines = [f'"{name}",{"ab"[row % 2] if row < 4 else ""}' for row, name in enumerate(names)]
    (folder / "photos.csv").write_text("photo,kind\n" + "\n".join(lines) + "\n")
    with running(folder / "photos.csv", worker=False) as (_, client):
        yield folder, client


def fetched(client: StudioClient, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    return client.send("GET", path, {"Cookie": client.cookie, **headers})


def test_a_thumbnail_is_small_and_kept_by_this_browser_alone(photos: tuple[Path, StudioClient]) -> None:
    _, client = photos
    for route, side in (("thumbnail", 192), ("image", 1200)):
        status, headers, data = fetched(client, f"/api/{route}/1?v=0")
        assert (status, headers["content-type"]) == (200, "image/jpeg")
        assert headers["cache-control"] == "private, max-age=300"
        assert headers["x-content-type-options"] == "nosniff"
        assert max(Image.open(BytesIO(data)).size) == side
    _, headers, _ = fetched(client, "/api/state")
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("row", ["8", "99999", "-1", "1.5", "abc", "%2e%2e", "0/../1", "..%2f..%2foutside.png", "0x1"])
@pytest.mark.parametrize("route", ["thumbnail", "image"])
def test_nothing_but_rows_of_the_table_can_be_asked_for(
    photos: tuple[Path, StudioClient], route: str, row: str
) -> None:
    _, client = photos
    status, headers, data = fetched(client, f"/api/{route}/{row}")
    assert status in (400, 404)
    assert headers["cache-control"] == "no-store"
    assert not data.startswith((b"\x89PNG", b"\xff\xd8"))


def test_without_the_cookie_there_is_no_picture(photos: tuple[Path, StudioClient]) -> None:
    _, client = photos
    assert client.send("GET", "/api/thumbnail/0", {})[0] == 401
    assert client.send("GET", f"/api/thumbnail/0?token={client.token}", {})[0] == 401
    assert fetched(client, "/api/thumbnail/0", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (3, "empty.png is empty."),
        (4, "damaged.png is damaged"),
        pytest.param(
            *(5, "below only"), marks=pytest.mark.skipif(os.name != "posix", reason="needs links"), id="a link"
        ),
        (6, "below only"),
        (7, "has no picture"),
    ],
)
def test_a_row_without_a_picture_that_can_be_shown_says_why(
    photos: tuple[Path, StudioClient], row: int, why: str
) -> None:
    _, client = photos
    assert why in client.get(f"/api/thumbnail/{row}", 404)["error"]
    detail = client.get(f"/api/row/{row}")
    assert not detail["image"]
    assert detail["no_image"] == "" if row == 7 else why in detail["no_image"]


def test_a_picture_that_is_deleted_while_the_studio_runs_is_missing(photos: tuple[Path, StudioClient]) -> None:
    folder, client = photos
    assert client.get("/api/row/2")["image"]
    client.get("/api/thumbnail/2")
    (folder / "deleted.png").unlink()
    assert "is not there" in client.get("/api/thumbnail/2", 404)["error"]
    assert client.get("/api/row/2")["no_image"] == "deleted.png is not there."


def test_queue_and_cells_say_which_rows_have_pictures(photos: tuple[Path, StudioClient]) -> None:
    _, client = photos
    state = client.get("/api/state")
    assert state["pictures"]
    found: dict[int, Any] = {one["id"]: one["image"] for one in client.get("/api/queue")["rows"]}
    assert (found[4], found[7]) == (True, False)
    rows = client.get("/api/cells?ids=0,7")["rows"]
    assert [one["image"] for one in rows] == [True, False]
    assert rows[0]["cells"] == [EVIL]


def test_each_start_has_pictures_of_its_own(photos: tuple[Path, StudioClient]) -> None:
    folder, client = photos
    other = folder / "other.csv"
    other.write_text("photo,kind\nlarge.jpg,a\n,b\n,\n")
    with running(other, worker=False) as (_, second):
        assert second.get("/api/state")["start"] != client.get("/api/state")["start"]
