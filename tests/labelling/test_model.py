"""A model in a file: the same answers after loading, and nothing else than a model is loaded."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import otprop
from otprop import OTP, PaperOTP
from otprop.files import read_table
from otprop.labelling.job import Request, prepare
from otprop.labelling.methods import METHODS
from otprop.labelling.model import ModelError, load_model, predict_table
from tests.labelling.models import (
    Bomb,
    edited,
    few_columns,
    loaded,
    make,
    objects,
    saved,
    zipped,
)
from tests.table.frames import mixed

pd = pytest.importorskip("pandas")


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


def test_a_callback_is_not_kept():
    job = make(OTP(evidence=None, n_jobs=1, callback=lambda round_: False))
    assert loaded(saved(job)).estimator.callback is None


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
