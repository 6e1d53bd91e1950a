"""Cells as text."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pandas")

from otprop.files import read_table
from otprop.studio.cells import Cells


def cells_of(text: str, target: str = "kind", folder: Path = Path()) -> Cells:
    return Cells(read_table(BytesIO(text.encode())), target, folder)


def test_cells_are_those_of_the_file_without_the_target() -> None:
    cells = cells_of("id;price;kind\n007;1,50;a\n008;;\n")
    assert cells.columns == ["id", "price"]
    assert [cells.of_row(0), cells.of_row(1)] == [["007", "1,50"], ["008", ""]]


def test_columns_are_numbers_categories_text_pictures_or_vectors() -> None:
    remark = "a remark that is long enough to be read, and so wrapped on the page"
    cells = cells_of(f"n,c,t,p\n1,red,{remark!r},a.png\n2.5,blue,{remark!r},b/c.JPG\n".replace("'", '"'))
    assert cells.kinds == ["number", "category", "text", "image"]
    assert cells.text_columns == ["t"]
    data = BytesIO()
    np.savez(data, X=np.zeros((3, 20)), y=np.array(["a", "", ""]))
    data.seek(0)
    vectors = Cells(read_table(data), "y", Path())
    assert vectors.kinds == ["vector"]
    assert vectors.of_row(0) == ["[0, 0, 0, 0, 0, 0, 0, 0, … 20 values]"]


def test_a_search_ignores_case_and_takes_no_patterns() -> None:
    cells = cells_of("a,b,kind\nRed,x,\nblue,RED.,\ngreen,.,\n")
    assert cells.search("red").tolist() == [0, 1]
    assert cells.search(".").tolist() == [1, 2]
    assert cells.search(".*").tolist() == []


def test_short_cells_are_cut() -> None:
    cells = cells_of(f"a,kind\n{'x' * 500},\n")
    assert len(cells.of_row(0)[0]) == 500
    assert len(cells.of_row(0, 200)[0]) == 201


def test_fingerprints_tell_rows_apart_and_do_not_depend_on_their_place() -> None:
    one, two = cells_of("a,b,kind\n1,2,\n12,,x\n,12,\n"), cells_of("a,b,kind\n,12,z\n1,2,\n12,,\n")
    prints = one.fingerprints()
    assert len(set(prints)) == 3
    assert two.fingerprints([1, 2, 0]) == prints
    assert cells_of("a,new,b,kind\n1,9,2,\n").fingerprints([0], ["a", "b"]) == prints[:1]


def test_an_array_of_pictures_is_shown_and_not_spelled_out(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((4, 48, 48, 3))
    np.savez(tmp_path / "photos.npz", images=images, weight=np.arange(4.0), kind=np.array(["a", "", "", ""]))
    cells = Cells(read_table(tmp_path / "photos.npz"), "kind", tmp_path)
    assert cells.kinds == ["picture", "number"]
    assert cells.of_row(2) == ["", "2"]
    assert cells.pictures.has(2)


def test_names_of_pictures_may_have_blanks_around_them(tmp_path: Path) -> None:
    cells = cells_of('p,kind\n"a.tiff ",\n,\n', folder=tmp_path)
    assert cells.kinds == ["image"]
    assert (cells.pictures.has(0), cells.pictures.has(1)) == (True, False)
