"""Fitted objects in a file: what is written, and what is refused when it is read."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import io
import json
import pickle
import zipfile
import zoneinfo
from types import SimpleNamespace

import numpy as np
import pytest

from otprop import OTP
from otprop.labelling.archive import ArchiveError, read_header, read_root, write_archive
from otprop.labelling.model import ModelError, SavedModel, load_model, predict_table, save_model
from tests.labelling.models import (
    Bomb,
    edited,
    every_object,
    few_columns,
    loaded,
    make,
    members,
    objects,
    saved,
    zipped,
)
from tests.table.frames import mixed

pd = pytest.importorskip("pandas")


def test_the_file_is_an_npz_file_without_pickles(tmp_path, job):
    path = tmp_path / "kept.otprop"
    save_model(path, SavedModel.of_job(job))
    with np.load(path, allow_pickle=False) as arrays:
        assert all(arrays[name] is not None for name in arrays.files)
    with pytest.raises(ValueError, match=r"kept\.otprop"):
        save_model(path, SavedModel.of_job(job))
    save_model(path, SavedModel.of_job(job), force=True)
    assert load_model(str(path)).classes == ["old", "young"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.otprop"]


def test_the_same_model_is_the_same_file(job, content):
    assert saved(job) == content


@pytest.mark.parametrize(
    "name",
    [
        *("tests.labelling.models.Bomb", "os.system", "subprocess.Popen", "otprop.cli.main", "builtins.eval"),
        *("otprop._otp.OTP", "otprop.geometry.exact_search.cKDTree"),
    ],
)
def test_a_file_that_names_another_class_is_refused_and_nothing_runs(content, name):
    def change(text):
        next(every_object(text))["object"] = name

    Bomb.fired = False
    with pytest.raises(ModelError, match=f"holds a {name}, which no model of otprop has; nothing of it was run"):
        loaded(edited(content, change))
    assert not Bomb.fired


def test_a_pickle_inside_an_array_is_refused_and_not_run(content):
    parts, buffer = members(content), io.BytesIO()
    bombs = np.empty(1, dtype=object)
    bombs[0] = Bomb()
    np.save(buffer, bombs, allow_pickle=True)
    Bomb.fired = False
    with pytest.raises(ModelError, match=r"its part 0\.npy is not a plain array"):
        loaded(zipped({**parts, "0.npy": buffer.getvalue()}))
    assert not Bomb.fired


def test_trees_that_point_out_of_bounds_are_refused(content):
    parts = members(content)
    for name, part in parts.items():
        if name.endswith(".npy") and np.load(io.BytesIO(part)).dtype.names:
            for field, value in (("left_child", 10**9), ("feature", 10**6), ("right_child", 0)):
                nodes, buffer = np.load(io.BytesIO(part)), io.BytesIO()
                nodes[field][0] = value
                np.save(buffer, nodes)
                with pytest.raises(ModelError, match="holds a tree"):
                    loaded(zipped({**parts, name: buffer.getvalue()}))
            return
    pytest.fail("the model holds no tree")


def test_a_forest_that_reads_past_the_row_is_refused(content):
    def change(text):
        objects(text)["sklearn.random_forest"]["state"]["n_features_in_"] = 3

    with pytest.raises(ModelError, match="forest whose trees expect other features"):
        loaded(edited(content, change))


def test_row_numbers_out_of_bounds_are_refused(content):
    def change(text):
        objects(text)["geometry.diffusion_graph"]["state"]["n_rows"] = 7

    with pytest.raises(ModelError, match="graph whose parts have different sizes"):
        loaded(edited(content, change))


def test_attributes_that_are_made_up_are_a_plain_error(content):
    def change(text):
        objects(text)["otp.class_predictor"]["state"]["plan"] = "none"

    model = loaded(edited(content, change))
    with pytest.raises(ModelError, match="the model is damaged"):
        predict_table(model, mixed(40, seed=3))


def test_an_array_larger_than_its_file_is_refused_before_any_memory_is_taken(content):
    parts, buffer = members(content), io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with pytest.raises(ModelError, match=r"0\.npy is not a plain array of the declared size"):
        loaded(zipped({**parts, "0.npy": buffer.getvalue()}))


def test_compressed_parts_are_refused(content):
    with pytest.raises(ModelError, match="compressed"):
        loaded(zipped(members(content), zipfile.ZIP_DEFLATED))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_off_is_refused(content, share):
    with pytest.raises(ModelError, match="damaged or cut off"):
        loaded(content[: int(share * len(content))])


def test_a_flipped_bit_is_seen(content):
    for place in range(100, len(content) // 2, len(content) // 20):
        damaged = bytearray(content)
        damaged[place] ^= 1
        try:
            loaded(bytes(damaged))
        except ModelError:
            continue
        # only the names and dates of the archive itself may change without harm
        assert members(bytes(damaged)) == members(content)


VALUES = [
    [datetime.date(2024, 1, 2), datetime.date(2024, 1, 3)],
    [datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.datetime(2024, 1, 3)],
    [datetime.datetime(2024, 1, 2, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))] * 2,
    [pd.Timestamp("2024-01-02 03:04:05.000000006"), pd.Timestamp("2024-01-03", tz="Asia/Tokyo")],
    [datetime.time(3, 4), datetime.time(5, 6, 7)],
    [datetime.timedelta(days=-1, seconds=5), datetime.timedelta(microseconds=1)],
    [decimal.Decimal("1.50"), decimal.Decimal("2")],
    [b"a", b"\xff"],
    [1, 2**70],
    [0.5, float("inf")],
    [False, True],
    ["1", "2024-01-02"],
]


@pytest.mark.parametrize("values", VALUES)
def test_classes_keep_their_type(job, values):
    target = dataclasses.replace(job.target, values=values)
    back = loaded(saved(SimpleNamespace(**{**vars(job), "target": target}))).values
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]
    assert [getattr(value, "tzinfo", None) for value in back] == [getattr(value, "tzinfo", None) for value in values]


def test_a_model_with_something_else_inside_is_not_saved(tmp_path):
    job = make(OTP(evidence=None, n_jobs=1))
    job.estimator.extra = Bomb
    with pytest.raises(ModelError, match=r"cannot be saved: it holds a builtins\.type"):
        save_model(tmp_path / "model", SavedModel.of_job(job))
    assert not list(tmp_path.iterdir())


def test_rows_are_kept_once(content, job):
    """A model of n rows holds the rows, not a copy for each source."""
    n_rows, n_features = len(job.target.codes), len(job.features.feature_names)
    same = [part for name, part in members(content).items() if name.endswith(".npy")]
    shapes = [np.load(io.BytesIO(part)).shape for part in same]
    assert shapes.count((n_rows, n_features)) == 1


@pytest.mark.parametrize("kind", ["V0", "S0", "U0", []])
def test_arrays_whose_items_have_no_size_are_refused(content, kind):
    """A shape of ten to the ninth takes no byte in the file, and gigabytes once it is read."""
    parts, buffer = members(content), io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": (10**9,)})
    with pytest.raises(ModelError, match=r"0\.npy is not a plain array of the declared size"):
        loaded(zipped({**parts, "0.npy": buffer.getvalue()}))


def test_one_array_does_not_become_many_trees():
    job = make(OTP(evidence=None, n_jobs=1), few_columns(2600))

    def change(text):
        tree = objects(text)["geometry.tree_search"]["state"]
        tree["more"] = [{**tree["_tree"], "copy": number} for number in range(1000)]

    with pytest.raises(ModelError, match="makes several objects of the same array"):
        loaded(edited(saved(job), change))


def not_finite_parts(content):
    """The same model with one NaN or infinity in it: every array of real numbers, and every scale of a column."""
    for name, part in members(content).items():
        if not name.endswith(".npy"):
            continue
        array = np.load(io.BytesIO(part))
        fields = [array[field] for field in array.dtype.names] if array.dtype.names else [array]
        if any(field.dtype.kind == "f" and field.size for field in fields):
            yield name, array


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused_in_every_array(content, value):
    parts, tried = members(content), 0
    for name, array in list(not_finite_parts(content))[::5]:
        for field in array.dtype.names or [None]:
            changed = array.copy()
            place = changed if field is None else changed[field]
            if place.dtype.kind != "f" or field == "impurity":
                continue
            place.flat[0] = value
            buffer = io.BytesIO()
            np.save(buffer, changed)
            tried += 1
            try:
                found = predict_table(loaded(zipped({**parts, name: buffer.getvalue()})), mixed(20)).distributions
            except ModelError:
                continue
            assert np.isfinite(found).all()  # minus infinity is sound in a potential of a class without mass
    assert tried > 10


def test_a_scale_that_is_no_number_is_refused(content):
    def change(text):
        objects(text)["table.number"]["state"]["scale"] = {"float": "nan"}

    with pytest.raises(ModelError, match=r"it holds nan in 'scale' of 'table\.number'"):
        loaded(edited(content, change))


def damaged_models(content):
    parts = members(content)
    header = b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8', "
    yield {**parts, "0.npy": header}, zipfile.ZIP_STORED  # TokenError
    for root in ([1], "x", 3, None, {"list": []}, {"same": 5}):
        yield {**parts, "model.json": json.dumps({**json.loads(parts["model.json"]), "root": root})}, zipfile.ZIP_STORED
    yield {**parts, "model.json": "[" * 100_000}, zipfile.ZIP_STORED  # RecursionError


def test_whatever_is_damaged_is_one_sentence(content):
    for parts, compression in damaged_models(content):
        with pytest.raises(ModelError) as caught:
            loaded(zipped(parts, compression))
        assert "\n" not in str(caught.value)
    encrypted, unknown = bytearray(content), bytearray(content)
    for damaged, offset, bits in ((encrypted, 8, 1), (unknown, 10, 77)):  # RuntimeError, NotImplementedError
        place = content.rindex(b"PK\x01\x02")
        damaged[place + offset] |= bits
        with pytest.raises(ModelError) as caught:
            loaded(bytes(damaged))
        assert "\n" not in str(caught.value)


def test_boosted_trees_as_plain_arrays_answer_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    X = rng.normal(size=(240, 6)) + y[:, None]
    model = OTP(n_jobs=1).fit(X, np.where(np.arange(240) < 160, y, -1))
    assert "boosting" in [source.name for source in model.evidence_]
    new = rng.normal(size=(50, 6)) + 1
    kept = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(kept.predict_proba(new), model.predict_proba(new))


def with_array(content, change):
    """The same model with the first array changed for which `change` returns another."""
    parts = members(content)
    for name, part in parts.items():
        new = change(np.load(io.BytesIO(part))) if name.endswith(".npy") else None
        if new is not None:
            buffer = io.BytesIO()
            np.save(buffer, new)
            return zipped({**parts, name: buffer.getvalue()})
    raise AssertionError("no array was changed")


def test_an_array_of_another_shape_is_no_message_of_numpy(content):
    """It once was 'column ... operands could not be broadcast together'."""
    vector = with_array(content, lambda array: array[:-1] if array.ndim == 1 and array.dtype.kind == "f" else None)
    with pytest.raises(ModelError, match=r"the model is damaged \(\w+ while it labelled the rows\)\.$"):
        predict_table(loaded(vector), mixed(20))


def test_complex_numbers_are_refused(content):
    with pytest.raises(ModelError, match="is not a plain array"):
        loaded(with_array(content, lambda array: array.astype(complex) if array.dtype.kind == "f" else None))


@pytest.mark.parametrize("kind", ["a8", "O", "|V8", "i4,f8", 3])
def test_a_scalar_of_no_known_type_is_refused(content, kind):
    def change(text):
        objects(text)["otp"]["state"]["epsilon_"] = {"scalar": [kind, 1]}

    with pytest.raises(ModelError, match="it holds a scalar of no known type"):
        loaded(edited(content, change))


@pytest.mark.parametrize("found", [np.full((20, 2), 0.7), np.tile([-1.0, 2.0], (20, 1)), np.full((20, 2), np.nan)])
def test_what_is_no_probability_is_refused(content, found, monkeypatch):
    model = loaded(content)
    monkeypatch.setattr(type(model.estimator), "predict_all", lambda self, X: (np.zeros(20, int), found, np.ones(20)))
    with pytest.raises(ModelError, match="the model is damaged: its probabilities are invalid"):
        predict_table(model, mixed(20))


def test_a_confidence_above_one_is_refused(content, monkeypatch):
    model, answer = loaded(content), (np.zeros(20, int), np.full((20, 2), 0.5), np.full(20, 1.5))
    monkeypatch.setattr(type(model.estimator), "predict_all", lambda self, X: answer)
    with pytest.raises(ModelError, match="its confidence is invalid"):
        predict_table(model, mixed(20))


def test_a_model_file_holds_no_memory_of_the_process_between_the_fields_of_its_trees():
    nodes = np.zeros(3, dtype=np.dtype({"names": ["a", "b"], "formats": ["i1", "<f8"], "offsets": [0, 8]}))
    nodes.view(np.uint8).reshape(3, 16)[:, 1:8] = 7  # what happened to be in memory
    nodes["b"] = 1.5
    buffer = io.BytesIO()
    write_archive(buffer, {}, {"nodes": nodes})
    with zipfile.ZipFile(buffer) as archive:
        raw = next(archive.read(name) for name in archive.namelist() if name.endswith(".npy"))
    assert b"\x07" not in raw.partition(b"\n")[2]
    assert np.load(io.BytesIO(raw))["b"].tolist() == [1.5] * 3


def test_parts_that_share_bytes_of_the_file_are_refused(content):
    """A thousand names of one array take no more bytes in the file than one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in members(content).items():
            archive.writestr(name, part)
        archive.filelist += archive.filelist
    with pytest.raises(ModelError, match="its parts overlap"):
        loaded(buffer.getvalue())


@pytest.mark.parametrize("ends", [[0, 3, 0, 3], [3, 2, 1, 3], [-1, 3], [1, 2], [], [1.0, 3.0]])
def test_a_lookup_whose_keys_overlap_is_refused(ends):
    """Keys that share their bytes would take the square of the size of the file."""
    buffer = io.BytesIO()
    write_archive(buffer, {}, {b"a": 0, b"b": 1, b"c": 2})
    parts, array = members(buffer.getvalue()), io.BytesIO()
    np.save(array, np.array(ends, dtype=None if ends else np.int64))
    changed = io.BytesIO(zipped({**parts, "1.npy": array.getvalue()}))
    with zipfile.ZipFile(changed) as archive, pytest.raises(ArchiveError, match="a lookup whose parts overlap"):
        read_root(archive, read_header(archive))
    with zipfile.ZipFile(buffer) as archive:
        assert read_root(archive, read_header(archive)) == {b"a": 0, b"b": 1, b"c": 2}


def test_a_value_in_the_place_of_a_method_is_refused(content):
    def change(text):
        objects(text)["table.number"]["state"]["transform"] = [1]

    with pytest.raises(ModelError, match="a value in the place of a method, 'transform'"):
        loaded(edited(content, change))


def test_a_class_that_is_renamed_or_moved_still_reads_its_files(content):
    """Files hold ids; no path of a module or name of a class."""
    text = members(content)["model.json"].decode()
    assert not [
        word for word in ("otprop.geometry", "otprop.evidence", "_otp", "OTP", "sklearn.ensemble") if word in text
    ]
