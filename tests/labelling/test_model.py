"""A model in a file: the same answers after loading, and nothing else than a model is loaded."""

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

import otprop
from otprop import OTP, PaperOTP
from otprop.files import read_table
from otprop.labelling.archive import ArchiveError, read_header, read_root, write_archive
from otprop.labelling.job import Request, prepare
from otprop.labelling.methods import METHODS
from otprop.labelling.model import ModelError, SavedModel, load_model, predict_table, save_model
from otprop.table.features import Features
from otprop.table.target import read_target
from tests.table.frames import mixed

pd = pytest.importorskip("pandas")


def make(estimator=None, frame=None):
    """A job that has run: half of the labels are given."""
    frame = mixed() if frame is None else frame
    rng = np.random.default_rng(0)
    labels = np.where(frame["age"].fillna(40) > 40, "old", "young").astype(object)
    labels[rng.random(len(frame)) < 0.5] = None
    features = Features(list(frame.columns), "y" if "y" in frame else None)
    target = read_target(labels, "y")
    estimator = OTP(n_jobs=1) if estimator is None else estimator
    table = SimpleNamespace(readings=lambda names: {})
    fitted = estimator.fit(features.fit_transform(frame), target.codes)
    return SimpleNamespace(features=features, target=target, estimator=fitted, table=table)


def saved(job):
    buffer = io.BytesIO()
    save_model(buffer, SavedModel.of_job(job))
    return buffer.getvalue()


def loaded(content):
    return load_model(io.BytesIO(content))


@pytest.fixture(scope="module")
def job():
    return make()


@pytest.fixture(scope="module")
def content(job):
    return saved(job)


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def edited(content, change):
    """The same file with its JSON text changed."""
    parts = members(content)
    text = json.loads(parts["model.json"])
    change(text)
    return zipped({**parts, "model.json": json.dumps(text)})


def every_object(node):
    if isinstance(node, dict):
        if "object" in node:
            yield node
        for part in node.values():
            yield from every_object(part)
    elif isinstance(node, list):
        for part in node:
            yield from every_object(part)


def objects(text):
    """The objects of a model by the ids of their classes, the last one of each."""
    return {node["object"]: node for node in every_object(text)}


OTHERS = {"cosine": OTP(metric="cosine"), "manhattan": OTP(metric="manhattan"), "cityblock": OTP("cityblock")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:y contains no unlabeled samples")
@pytest.mark.parametrize("name", [*METHODS, *OTHERS])
def test_a_loaded_model_answers_bit_for_bit_the_same(name):
    job = make(OTHERS[name] if name in OTHERS else METHODS[name]())
    new = mixed(40, seed=7)
    found = predict_table(loaded(saved(job)), new)
    codes, distributions, confidence = found.codes, found.distributions, found.confidence
    expected = job.estimator.predict_proba(job.features.transform(new))
    np.testing.assert_array_equal(distributions, expected)
    np.testing.assert_array_equal(codes, expected.argmax(axis=1))
    if hasattr(job.estimator, "confidence_"):
        assert confidence is not None
        np.testing.assert_array_equal(confidence, job.estimator.predict_confidence(job.features.transform(new)))
    else:
        assert confidence is None


def test_a_model_of_rows_that_no_label_reaches_is_loaded():
    near, far = np.random.default_rng(0).normal(size=(2, 60, 2))
    table = pd.DataFrame(np.vstack([near, far + 50]), columns=["a", "b"])
    table["kind"] = np.where(np.arange(120) < 20, np.where(table["a"] > 0, "x", "y"), None)
    result = otprop.label(table, "kind")
    again = loaded(saved(result.job))
    np.testing.assert_array_equal(
        predict_table(again, table).distributions,
        result.job.estimator.predict_proba(result.job.features.transform(table)),
    )


def as_in_0_2(text):
    """The text of a `PaperOTP` as version 0.2 wrote it: an `OTP` told apart by `marginals`."""
    node = objects(text)["paper_otp"]
    node["object"] = "otp"
    node["state"] |= {"marginals": "balanced", "evidence": None, "n_jobs": None, "alpha": "auto", "max_rounds": "auto"}


def test_a_model_of_version_0_2_is_loaded_as_the_class_of_its_algorithm(content):
    job, new = make(PaperOTP()), mixed(40, seed=7)
    model = loaded(edited(saved(job), as_in_0_2))
    assert type(model.estimator) is PaperOTP
    assert model.estimator.get_params() == PaperOTP().get_params()
    assert set(vars(model.estimator)) == set(vars(loaded(saved(job)).estimator))
    expected = job.estimator.predict_proba(job.features.transform(new))
    np.testing.assert_array_equal(predict_table(model, new).distributions, expected)

    def with_marginals(text):
        objects(text)["otp"]["state"]["marginals"] = "class"

    model = loaded(edited(content, with_marginals))
    assert type(model.estimator) is OTP
    assert not hasattr(model.estimator, "marginals")


def few_columns(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.normal(40, 10, n_rows), "x": rng.normal(size=n_rows)})


def test_a_model_of_many_rows_with_few_columns_answers_the_same():
    job, new = make(OTP(evidence=None, n_jobs=1), few_columns(2600)), few_columns(50, seed=1)
    distributions = predict_table(loaded(saved(job)), new).distributions
    np.testing.assert_array_equal(distributions, job.estimator.predict_proba(job.features.transform(new)))


def test_the_training_rows_keep_their_labels_after_loading(job, content):
    codes = predict_table(loaded(content), mixed()).codes
    given = job.target.given
    np.testing.assert_array_equal(codes[given], job.target.codes[given])


def test_a_model_knows_its_target_and_classes(content):
    model = loaded(content)
    assert (model.target, model.classes, model.values, model.notes) == ("y", ["old", "young"], ["old", "young"], [])
    assert model.versions["otprop"]


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


def test_a_table_that_lacks_columns_is_refused_by_name(content):
    model = loaded(content)
    with pytest.raises(ValueError, match="lacks 2 of the 10 columns needed: 'income', 'note'"):
        predict_table(model, mixed().drop(columns=["income", "note", "row"]))
    with pytest.raises(ValueError, match="'income'"):
        model.check_columns(["age"])


def test_an_empty_table_gets_no_labels(content):
    found = predict_table(loaded(content), mixed().iloc[:0])
    codes, distributions, confidence = found.codes, found.distributions, found.confidence
    assert codes.shape == (0,)
    assert distributions.shape == (0, 2)
    assert confidence is not None
    assert confidence.shape == (0,)


class Bomb:
    """Runs something when it is unpickled or made."""

    fired = False

    def __new__(cls):
        Bomb.fired = True
        return super().__new__(cls)

    def __reduce__(self):
        return Bomb, ()


@pytest.mark.parametrize(
    "name",
    [
        *("tests.labelling.test_model.Bomb", "os.system", "subprocess.Popen", "otprop.cli._main.main", "builtins.eval"),
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


@pytest.mark.parametrize(
    "foreign",
    [
        b"",
        b"a,b\n1,2\n",
        pickle.dumps(Bomb),
        zipped({"a.txt": "b"}),
        zipped({"model.json": "[]"}),
        zipped({"model.json": "{"}),
    ],
    ids=["nothing", "a table", "a pickle", "another archive", "a list", "broken JSON"],  # a zip holds the time
)
def test_a_foreign_file_is_refused_in_one_line(tmp_path, foreign):
    path = tmp_path / "model"
    path.write_bytes(foreign)
    with pytest.raises(ModelError, match=str(path)) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


def test_arrays_and_folders_are_said_to_be_no_model(tmp_path):
    np.savez(tmp_path / "three.npz", X=np.zeros(3))
    with pytest.raises(ModelError, match=r"three\.npz is an NPZ file of arrays, not a model"):
        load_model(tmp_path / "three.npz")
    with pytest.raises(ModelError, match="is a folder; name the model file in it"):
        load_model(tmp_path)


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


def labelled(text):
    """A job of a file, that has run."""
    job = prepare(read_table(io.BytesIO(text.encode())), Request("y", method="otp-paper"))
    job.run()
    return job


def test_new_rows_are_read_as_the_rows_of_the_model_were():
    days = [f"{1 + number:02d}/{1 + number % 12:02d}/2024" for number in range(28)]
    rows = [f"{day};{number},{number:03d};{'ab'[number % 2]}" for number, day in enumerate(days)]
    model = loaded(saved(labelled("\n".join(["day;size;y", *rows, "01/02/2024;0,5;"]))))
    new = read_table(io.BytesIO(b"size;day;y\n1,234;11/02/2024;\n"))
    frame = model.frame(new)
    assert frame["day"].tolist() == [pd.Timestamp("2024-02-11")]
    assert frame["size"].tolist() == [1.234]
    assert new.notes == ["delimiter ';'"]
    assert predict_table(model, frame).codes.shape == (1,)
    with pytest.raises(ValueError, match="column 'day', row 1: '02/11/24' is not a date such as 31/12/2024"):
        model.frame(read_table(io.BytesIO(b"size;day\n1,5;02/11/24\n")))
    with pytest.raises(ValueError, match="lacks 1 of the 2 columns needed: 'day'"):
        model.frame(read_table(io.BytesIO(b"size;x\n1,5;2\n")))


def test_a_model_of_an_older_format_is_refused_with_what_to_do(content):
    with pytest.raises(ModelError, match=r"format 2.*label the table again with --save"):
        loaded(edited(content, lambda text: text.update(format=2)))


@pytest.mark.parametrize("readings", [{"x": {"kind": 3}}, {"x": {"sort": "number"}}, {"x": "number"}, [1]])
def test_readings_in_disorder_are_refused(content, readings):
    with pytest.raises(ModelError, match=r"invalid|damaged"):
        loaded(edited(content, lambda text: text.update(readings=readings)))


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(ModelError, match="there is no model file a"):
        load_model(name)


def test_a_path_without_a_file_is_said(tmp_path):
    with pytest.raises(ModelError, match="there is no model file"):
        load_model(tmp_path / "none")


def test_a_newer_format_is_refused_with_what_to_do(content):
    with pytest.raises(ModelError, match=r"format 99.*upgrade otprop"):
        loaded(edited(content, lambda text: text.update(format=99)))


def test_another_scikit_learn_is_noted(content):
    model = loaded(edited(content, lambda text: text["versions"].update({"scikit-learn": "0.1.2"})))
    assert len(model.notes) == 1
    assert "saved with scikit-learn 0.1.2" in model.notes[0]


def test_a_model_with_something_else_inside_is_not_saved(tmp_path):
    job = make(OTP(evidence=None, n_jobs=1))
    job.estimator.extra = Bomb
    with pytest.raises(ModelError, match=r"cannot be saved: it holds a builtins\.type"):
        save_model(tmp_path / "model", SavedModel.of_job(job))
    assert not list(tmp_path.iterdir())


def test_a_callback_is_not_kept():
    job = make(OTP(evidence=None, n_jobs=1, callback=lambda round_: False))
    assert loaded(saved(job)).estimator.callback is None


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


def test_a_class_that_is_renamed_or_moved_still_reads_its_files(content):
    """Files hold ids; no path of a module or name of a class."""
    text = members(content)["model.json"].decode()
    assert not [
        word for word in ("otprop.geometry", "otprop.evidence", "_otp", "OTP", "sklearn.ensemble") if word in text
    ]


def test_an_id_belongs_to_one_class():
    from otprop._saving import saved_as

    with pytest.raises(ValueError, match="the id 'otp' belongs to OTP"):
        saved_as("otp")(Bomb)


def test_boosted_trees_as_plain_arrays_answer_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    X = rng.normal(size=(240, 6)) + y[:, None]
    model = OTP(n_jobs=1).fit(X, np.where(np.arange(240) < 90, y, -1))
    assert "boosting" in [source.name for source in model.evidence_]
    new = rng.normal(size=(50, 6)) + 1
    kept = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(kept.predict_proba(new), model.predict_proba(new))


def made_up_features(text, kind):
    number = objects(text)["table.number"]["state"]
    used = objects(text)["table.features"]["state"]["_used"]
    if kind == "a flag of many columns":
        number["flagged"] = 2**40
    elif kind == "names that are none":
        used[0]["state"]["names"] = 3
    elif kind == "no columns":
        del objects(text)["table.features"]["state"]["_used"]
    else:
        used.pop()


@pytest.mark.parametrize("kind", ["a flag of many columns", "names that are none", "no columns", "a column less"])
def test_features_that_do_not_fit_together_are_refused_when_loaded(content, kind):
    with pytest.raises(ModelError, match="the model is damaged or not a model of otprop"):
        loaded(edited(content, lambda text: made_up_features(text, kind)))


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
