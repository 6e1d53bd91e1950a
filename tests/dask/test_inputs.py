"""Which files of a folder are read."""

from __future__ import annotations

from otprop.dask._inputs import find_files


def names_of(pattern):
    found, notes = find_files(str(pattern))
    return [name for _, name in found], notes


def test_links_to_folders_are_not_followed_by_two_stars_and_a_file_is_labelled_once(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("a.csv", "deep/b.csv"):
        (tmp_path / "in" / name).write_text("x\n1\n")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "deep" / "up").symlink_to("..")
    assert names_of(tmp_path / "in" / "**" / "*.csv") == (["a.csv", "deep/b.csv"], [])
    assert names_of(tmp_path / "in" / "**") == (["a.csv", "deep/b.csv"], [])
    assert names_of(tmp_path / "**" / "in" / "**" / "*.csv") == (["a.csv", "deep/b.csv"], [])
    (tmp_path / "in" / "0.csv").symlink_to("a.csv")
    assert names_of(tmp_path / "in") == (["a.csv"], ["skipped, links to other inputs: '0.csv'"])
    assert names_of(tmp_path / "in" / "*" / "*.csv")[0] == ["again/a.csv", "deep/b.csv"]


def test_two_stars_match_what_they_match_without_links(tmp_path, monkeypatch):
    for name in ("a.csv", "x/b.csv", "x/y/c.csv", "x/.hidden/d.csv", "x[1]/e.csv", "out/_otprop/done/a.csv.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n1\n")
    every = ["a.csv", "x/b.csv", "x/y/c.csv", "x[1]/e.csv"]
    assert names_of(tmp_path / "**" / "*.*")[0] == every
    assert names_of(tmp_path / "x" / "**" / "y" / "*.csv")[0] == ["c.csv"]
    monkeypatch.chdir(tmp_path)
    assert names_of("**/*.csv")[0] == every
    assert names_of("./**/?.csv")[0] == every


def test_links_that_lead_nowhere_are_named_and_the_others_are_labelled(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "lost.csv").symlink_to("nowhere.csv")
    notes = ["skipped, broken links: 'loop.csv', 'lost.csv'"]
    assert names_of(tmp_path) == (["a.csv"], notes)
    assert names_of(tmp_path / "*.csv") == (["a.csv"], notes)
