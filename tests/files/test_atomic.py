"""Writing: the old file or the new one, never a part of either."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
from threading import Thread

import pytest

from otprop.files import TableError, check_output, read_table, write_atomic
from otprop.files.atomic import record_writes

WRITER = """
import sys
from otprop.files import read_table
table = read_table(sys.argv[1])
values = ["label"] * table.n_rows
def write():
    table.write(sys.argv[2], {"y_label": values, "n": list(range(table.n_rows))}, force=True)
"""
KILLED = """
import os, random, signal, time
from pathlib import Path
out, moments = Path(sys.argv[2]), random.Random(0)
write()
whole = out.read_bytes()
for _ in range(20):
    out.write_bytes(b"old")
    child = os.fork()
    while child == 0:
        write()
    time.sleep(moments.uniform(0, 0.3))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    content = out.read_bytes()
    print("old" if content == b"old" else "new" if content == whole else "broken")
"""


@pytest.fixture
def big(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b"id,text,y\n" + b"".join(b"%d,some text that fills the line,\n" % i for i in range(100_000)))
    return path


def test_sigkill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path, big):
    out = tmp_path / "out.csv"
    before = big.read_bytes()
    result = subprocess.run([sys.executable, "-c", WRITER + KILLED, big, out], stdout=subprocess.PIPE, check=True)
    found = result.stdout.decode().split()
    assert len(found) == 20
    assert set(found) <= {"old", "new"}
    assert big.read_bytes() == before
    strays = set(os.listdir(tmp_path)) - {"in.csv", "out.csv"}
    assert all(name.startswith(".out.csv.") and name.endswith(".part") for name in strays)
    assert len(strays) <= 1  # each writer removes what the one before it left
    write_atomic(out, b"next", force=True)
    assert out.read_bytes() == b"next"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv"]


def test_a_full_disk_leaves_the_old_file(tmp_path, big):
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n" + WRITER + "write()"
    result = subprocess.run([sys.executable, "-c", limited, big, out], capture_output=True, text=True, check=False)
    assert f"TableError: cannot write {out}: File too large; it is unchanged." in result.stderr
    assert out.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["in.csv", "out.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz"])
def test_a_device_without_space_is_an_error_in_one_line(kind):
    with pytest.raises(TableError, match="cannot write /dev/full: No space left on device"):
        read_table(io.BytesIO(b"a,b\n" + b"1,2\n" * 10_000)).write("/dev/full", {}, format=kind)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_an_interrupted_writer_leaves_nothing_behind(tmp_path, error):
    def write(handle):
        handle.write(b"half")
        raise error

    (tmp_path / "old").write_bytes(b"old")
    for name in ("old", "new"):
        with pytest.raises(error):
            write_atomic(tmp_path / name, write, force=True)
    assert os.listdir(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


def test_an_existing_file_is_refused_without_force(tmp_path):
    out = tmp_path / "out.csv"
    out.write_bytes(b"old")
    for attempt in (lambda: check_output(out), lambda: write_atomic(out, b"new")):
        with pytest.raises(TableError, match=r"out\.csv exists already; pass force=True to replace it"):
            attempt()
    assert out.read_bytes() == b"old"
    check_output(out, force=True)
    write_atomic(out, "neu: ü", force=True)
    assert out.read_text("utf-8") == "neu: ü"


def test_a_file_that_comes_to_be_meanwhile_is_not_replaced(tmp_path):
    def write(handle):
        (tmp_path / "out").write_bytes(b"somebody else's")

    with pytest.raises(TableError, match="was created by another process in the meantime; pass force=True"):
        write_atomic(tmp_path / "out", write)
    assert (tmp_path / "out").read_bytes() == b"somebody else's"
    assert os.listdir(tmp_path) == ["out"]


def test_the_input_is_never_written(tmp_path):
    source = tmp_path / "in.csv"
    source.write_bytes(b"a,b\n1,2\n")
    os.link(source, tmp_path / "hard.csv")
    os.symlink(source, tmp_path / "soft.csv")
    table = read_table(source)
    for name in ("in.csv", "hard.csv", "soft.csv", "../" + tmp_path.name + "/in.csv"):
        for attempt in (
            lambda out: check_output(out, force=True, inputs=[source]),
            lambda out: table.write(out, {"c": [1]}, force=True),
        ):
            with pytest.raises(TableError, match="is an input and is never overwritten"):
                attempt(tmp_path / name)
    assert source.read_bytes() == b"a,b\n1,2\n"


def test_places_that_cannot_be_written_are_said_at_the_start(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TableError, match=r"there is no folder .*nowhere; create it first"):
        check_output(tmp_path / "nowhere" / "out.csv")
    with pytest.raises(TableError, match="Not a directory"):
        check_output(tmp_path / "file" / "out.csv")
    with pytest.raises(TableError, match="is a folder; name a file in it"):
        check_output(tmp_path)
    check_output("-")
    check_output("/dev/null")
    check_output(tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(TableError, match="Permission denied"):
        check_output(tmp_path / "out.csv")


def test_a_link_stays_a_link_and_permissions_stay(tmp_path):
    real = tmp_path / "real.csv"
    real.write_bytes(b"old")
    real.chmod(0o640)
    os.symlink(real, tmp_path / "link.csv")
    write_atomic(tmp_path / "link.csv", b"new", force=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_has_the_permissions_of_new_files(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    write_atomic(tmp_path / "safe", b"")
    assert (tmp_path / "safe").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o755, 0o644), (0o666, 0o644)])
def test_an_output_is_no_more_public_than_its_input(tmp_path, mode, expected):
    source = tmp_path / "in.csv"
    source.write_bytes(b"a\n1\n")
    source.chmod(mode)
    (tmp_path / "old.csv").write_bytes(b"")
    (tmp_path / "old.csv").chmod(0o664)
    umask = os.umask(0o022)
    try:
        for name in ("new.csv", "old.csv"):
            read_table(source).write(tmp_path / name, {"b": [1]}, force=True)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == expected
    assert stat.S_IMODE((tmp_path / "old.csv").stat().st_mode) == 0o664  # as it was


def test_a_temporary_file_is_private_while_it_is_written(tmp_path):
    modes = []

    def write(handle):
        modes.extend(stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(tmp_path))

    umask = os.umask(0)
    try:
        write_atomic(tmp_path / "out", write)
    finally:
        os.umask(umask)
    assert modes == [0o600]
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o666


def test_only_the_writer_whose_file_is_in_place_has_written_it(tmp_path):
    written = record_writes()
    write_atomic(tmp_path / "first", b"")
    assert written == [tmp_path / "first"]

    def lose(handle):
        winner = Thread(target=write_atomic, args=(tmp_path / "race", b"the winner's"))
        winner.start()
        winner.join()

    with pytest.raises(TableError, match="another process"):
        write_atomic(tmp_path / "race", lose)
    assert written == [tmp_path / "first"]
    read_table(io.BytesIO(b"a\n1\n")).write(tmp_path / "t.csv", {})
    assert written == [tmp_path / "first", tmp_path / "t.csv"]
    assert record_writes() == []


TERMINATED = """
import os, random, signal, time
ready, moments, received = os.pipe(), random.Random(0), []
def stop(number, frame):
    received.append(number)
    raise KeyboardInterrupt
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGTERM, stop)
            os.write(ready[1], b"x")
            while not received:  # the exception can be lost where Python ignores errors, in a destructor say
                write()
        except KeyboardInterrupt:
            pass
        os._exit(0)
    os.read(ready[0], 1)
    time.sleep(moments.uniform(0, 0.2))
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_signal_that_raises_at_any_moment_leaves_no_temporary_file(tmp_path, big):
    out = tmp_path / "out.csv"
    result = subprocess.run([sys.executable, "-c", WRITER + TERMINATED, big, out], stdout=subprocess.PIPE, check=True)
    assert result.stdout.decode().split() == ["0"] * 20
    assert set(os.listdir(tmp_path)) <= {"in.csv", "out.csv"}


def test_the_longest_names_can_be_written(tmp_path):
    write_atomic(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


def test_temporary_files_in_use_and_other_files_are_left_alone(tmp_path):
    def write(handle):
        handle.write(b"outer")
        write_atomic(tmp_path / "out", b"inner", force=True)

    (tmp_path / ".out.other.part").write_bytes(b"")
    (tmp_path / ".out.0123abcd.part").write_bytes(b"stray")
    write_atomic(tmp_path / "out", write, force=True)
    assert (tmp_path / "out").read_bytes() == b"outer"
    assert sorted(os.listdir(tmp_path)) == [".out.other.part", "out"]


def test_a_reader_that_goes_away_is_not_an_error_of_the_file():
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb", buffering=0) as pipe, pytest.raises(BrokenPipeError):
        read_table(io.BytesIO(b"a\n1\n")).write(pipe, {})


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz"])
def test_every_format_goes_through_a_pipe(kind):
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as pipe:
        read_table(io.BytesIO(b"a,b\n007,2\n")).write(pipe, {"c": ["x"]}, format=kind)  # fits into its buffer
    with os.fdopen(read_end, "rb") as pipe:
        table = read_table(io.BytesIO(pipe.read()))
    assert table.kind == kind
    assert table.cells("a").tolist() == ["007"]
    assert table.cells("c").tolist() == ["x"]


def test_temporary_file_that_no_block_removed_is_removed_at_the_end(tmp_path):
    from otprop.files import atomic

    block = atomic._temporary_file(tmp_path / "out.csv")
    part, _ = block.__enter__()
    assert part.exists()
    atomic._remove_unfinished()
    assert not part.exists()
    block.__exit__(None, None, None)
    assert part not in atomic._UNFINISHED
