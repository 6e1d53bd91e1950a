"""Text by a model of the user's: a transformer, a function, or local files; never a download."""

from __future__ import annotations

import importlib.util
import json
import os
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from otprop.labelling.model import ModelError, SavedModel, load_model, predict_table, save_model
from otprop.table.errors import RequestError
from otprop.table.features import Features
from otprop.table.text import LocalTextModel, pooled
from tests.table.frames import one
from tests.table.texts import TEXTS, features, frame, lengths

pd = pytest.importorskip("pandas")


def test_a_function_makes_the_vectors_of_text():
    found = features(lengths)
    assert found.columns[0].role == "text"
    assert found.columns[0].why == "60 different texts, by lengths in 4 dimensions"
    X, raw = found.transform(frame())[:, :4].astype(float), lengths(TEXTS)
    np.testing.assert_allclose(X - X.mean(axis=0), (raw - raw.mean(axis=0)) * _ratio(X, raw), atol=1e-4)
    missing = found.transform(frame([None, "a new one"]))
    np.testing.assert_array_equal(missing[0, :4], 0)


def _ratio(X, raw):
    return X[:, 0].std() / raw[:, 0].std()


def test_an_unfitted_transformer_is_fitted_on_the_texts_and_itself_left_alone():
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    transformer = make_pipeline(TfidfVectorizer(), TruncatedSVD(3, random_state=0))
    found = features(transformer).transform(frame())
    assert found.shape == (60, 4)
    assert not hasattr(transformer[0], "vocabulary_")
    again = features(transformer.fit(sorted(TEXTS))).transform(frame())
    np.testing.assert_allclose(np.abs(again), np.abs(found), atol=1e-2)
    assert features(TfidfVectorizer()).transform(frame()).shape[1] > 5  # a sparse matrix


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda texts: np.zeros(len(texts)), r"got an array of shape \(60,\) from its text model for 60 texts"),
        (lambda texts: np.full((len(texts), 2), np.nan), "got vectors with infinity or NaN from its text model"),
        (3, "text_model=3: expected the path of a local model"),
        (
            "all-MiniLM-L6-v2",
            "text_model='all-MiniLM-L6-v2': there is no such file or folder; a name is never downloaded",
        ),
    ],
)
def test_what_makes_no_vectors_is_refused_with_a_sentence(model, message):
    with pytest.raises(ValueError, match=message):
        features(model)


def test_a_path_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"")
    (tmp_path / "a.bin").write_bytes(b"")
    for path, message in (
        (tmp_path, "this folder has no modules.json"),
        (tmp_path / "a.bin", r"or an \.onnx file"),
        (tmp_path / "a.onnx", "no tokenizer.json next to it"),
    ):
        with pytest.raises(ValueError, match=message):
            features(path)


def test_a_saved_model_asks_for_its_text_model_again(local, tmp_path):
    job = _labelled(local.folder)
    save_model(tmp_path / "a.model", SavedModel.of_job(job))
    table = frame().drop(columns="x").assign(x=0.5)
    with pytest.raises(RequestError, match=r"text_model is needed: name .* again \('model' with the sha256 \w{16}"):
        load_model(tmp_path / "a.model")
    moved = local.folder.rename(tmp_path / "elsewhere")
    codes = predict_table(load_model(tmp_path / "a.model", text_model=moved), table).codes
    assert len(codes) == 60
    opened = load_model(tmp_path / "a.model", text_model=str(moved))
    (moved / "weights").write_bytes(b"other")
    with pytest.raises(RequestError, match=r"its sha256 is \w{16}\.\.\.; this model was made with another \('model'"):
        load_model(tmp_path / "a.model", text_model=moved)
    with pytest.raises(ValueError, match=r"column 'note' needs the text model .*, which has changed since"):
        predict_table(opened, table)
    with pytest.raises(RequestError, match="expected the path of the local model"):
        load_model(tmp_path / "a.model", text_model=lengths)


def test_a_model_file_holds_no_path_of_its_text_model(local, tmp_path):
    save_model(tmp_path / "a.model", SavedModel.of_job(_labelled(local.folder)))
    with zipfile.ZipFile(tmp_path / "a.model") as archive:
        assert str(tmp_path) not in archive.read("model.json").decode()


def test_a_model_cannot_choose_what_is_opened_as_its_text_model(local, tmp_path):
    save_model(tmp_path / "a.model", SavedModel.of_job(_labelled(local.folder)))
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "modules.json").write_text("[1]")
    calls = len(local.calls)
    evil = {"path": str(trap), "digest": LocalTextModel(trap).digest, "_known": {"dict": []}, "_encode": None}
    _edited(tmp_path / "a.model", evil)
    with pytest.raises(RequestError, match="text_model is needed"):
        load_model(tmp_path / "a.model")
    with pytest.raises(RequestError, match="made with another"):
        load_model(tmp_path / "a.model", text_model=local.folder)
    assert len(local.calls) == calls
    _edited(tmp_path / "a.model", {"digest": LocalTextModel(local.folder).digest, "path": "/dev/zero"})
    model = load_model(tmp_path / "a.model", text_model=local.folder)
    predict_table(model, frame(["a new one"] * 3))
    assert local.calls[-1] == ["a new one"]


@pytest.mark.parametrize("digest", ["../victim", "a" * 63, "A" * 64, "a" * 64 + "\n", 7, None, ["a" * 64]])
def test_a_model_with_a_digest_that_is_none_is_refused_and_writes_nothing(digest, local, cache, tmp_path):
    save_model(tmp_path / "a.model", SavedModel.of_job(_labelled(local.folder)))
    victim = cache.parent / "victim.npz"
    victim.write_bytes(b"kept")
    _edited(tmp_path / "a.model", {"digest": digest})
    with pytest.raises(ModelError):
        load_model(tmp_path / "a.model", text_model=local.folder)
    assert victim.read_bytes() == b"kept"


def _edited(path, changes):
    """Change the state of the text model in a model file."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    text = json.loads(parts["model.json"])
    places = [text]
    for node in places:
        if isinstance(node, dict) and node.get("object") == "table.local_text_model":
            node["state"].update(changes)
            break
        places.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else [])
    else:
        raise AssertionError("the model has no text model")
    parts["model.json"] = json.dumps(text).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_or_device_is_no_text_model_and_stops_nothing(local, tmp_path):
    with pytest.raises(RequestError, match="not a device or a pipe"):
        LocalTextModel("/dev/zero")
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(RequestError, match="not a device or a pipe"):
        LocalTextModel(tmp_path / "pipe.onnx")
    os.mkfifo(tmp_path / "a.model")
    with pytest.raises(ModelError, match="is a device or a pipe"):
        load_model(tmp_path / "a.model")
    os.mkfifo(local.folder / "config.json")
    with pytest.raises(RequestError, match=r"config\.json' in it is not a file"):
        LocalTextModel(local.folder)


def test_a_link_to_a_folder_in_a_text_model_is_refused_as_its_files_would_escape_the_digest(local, tmp_path):
    (tmp_path / "code").mkdir()
    (local.folder / "1_Pooling").symlink_to(tmp_path / "code")
    with pytest.raises(RequestError, match="a link to a folder"):
        LocalTextModel(local.folder)


def test_a_text_model_for_a_model_without_one_is_named_as_without_effect(local, tmp_path):
    import otprop

    table = frame().assign(kind=["a", "b"] * 10 + [None] * 40)
    otprop.label(table, "kind", features=["x"], n_jobs=1).save(tmp_path / "a.model")
    assert load_model(tmp_path / "a.model", text_model=local.folder).notes == [
        "without effect: text_model, as the model was made without one"
    ]


def test_a_model_with_a_function_cannot_be_saved(tmp_path):
    with pytest.raises(ModelError, match="this model cannot be saved: it holds a builtins"):
        save_model(tmp_path / "a.model", SavedModel.of_job(_labelled(lengths)))
    assert not (tmp_path / "a.model").exists()


def _labelled(model):
    import otprop

    kinds = [("fruit" if row % 2 else "metal") if row < 20 else None for row in range(60)]
    return otprop.label(frame().assign(kind=kinds), "kind", text_model=model, n_jobs=1).job


def test_a_table_without_text_says_that_the_model_has_no_effect():
    found = Features(["x"], text_model=lengths).fit(pd.DataFrame({"x": np.random.default_rng(0).normal(size=20)}))
    assert found.notes == ["without effect: text_model, as no column holds text"]


@pytest.mark.parametrize(("library", "file"), [("sentence_transformers", "modules.json"), ("onnxruntime", "a.onnx")])
def test_a_missing_library_is_named(library, file, tmp_path, cache):
    if importlib.util.find_spec(library):
        pytest.skip(f"{library} is installed")
    (tmp_path / file).write_text("[]")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ImportError, match=library.replace("_", "-")):
        features(tmp_path / file if file.endswith("onnx") else tmp_path)


def test_vectors_of_tokens_are_averaged_without_the_padding():
    tokens = [
        SimpleNamespace(ids=[1, 2], attention_mask=[1, 1], type_ids=[0, 0]),
        SimpleNamespace(ids=[3, 0], attention_mask=[1, 0], type_ids=[0, 0]),
    ]
    session = SimpleNamespace(run=lambda names, given: [given["input_ids"][:, :, None] * np.array([1.0, 10.0])])
    found = pooled(session, ["input_ids", "attention_mask"], "out", tokens)
    np.testing.assert_array_equal(found, [[1.5, 15.0], [3.0, 30.0]])
    with pytest.raises(ValueError, match="this one has 'pixels'"):
        pooled(session, ["pixels"], "out", tokens)


def test_an_onnx_file_and_its_tokenizer_make_vectors(tmp_path, cache):
    pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    onnx = pytest.importorskip("onnx", reason="needs onnx, to make a model")
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    words = {"[UNK]": 0, "apple": 1, "iron": 2, "pear": 3, "gold": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    helper, kinds = onnx.helper, onnx.TensorProto
    table = helper.make_tensor("table", kinds.FLOAT, (5, 3), np.eye(5, 3).ravel().tolist())
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["out"])],
        "tiny",
        [helper.make_tensor_value_info("input_ids", kinds.INT64, ["rows", "tokens"])],
        [helper.make_tensor_value_info("out", kinds.FLOAT, ["rows", "tokens", 3])],
        [table],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), str(tmp_path / "tiny.onnx"))
    found = LocalTextModel(tmp_path / "tiny.onnx")(["apple", "iron iron", "apple iron"])
    np.testing.assert_allclose(found, [[0, 1, 0], [0, 0, 1], [0, 0.5**0.5, 0.5**0.5]], atol=1e-6)


def test_the_command_takes_a_path_and_refuses_a_name(local, tmp_path, capsys):
    from otprop.cli import main

    kinds = ["fruit" if row % 2 else "metal" for row in range(20)] + [""] * 40
    frame().assign(kind=kinds).to_csv(tmp_path / "t.csv", index=False)
    arguments = ["label", str(tmp_path / "t.csv"), "--target", "kind", "-o", str(tmp_path / "o.csv"), "--json"]
    assert main([*arguments, "--text-model", str(local.folder)]) == 0
    json.loads(capsys.readouterr().out)
    assert local.calls
    assert main([*arguments, "--force", "--text-model", str(local.folder), "--save", str(tmp_path / "a.model")]) == 0
    predict = ["predict", str(tmp_path / "a.model"), str(tmp_path / "t.csv"), "-o", str(tmp_path / "p.csv")]
    capsys.readouterr()
    assert main(predict) == 2
    assert "--text-model is needed: name the text model of this model again" in capsys.readouterr().err
    assert main([*predict, "--text-model", str(local.folder)]) == 0
    capsys.readouterr()
    assert main([*arguments, "--force", "--text-model", "some/name"]) == 2
    assert "--text-model some/name: there is no such file or folder" in capsys.readouterr().err


def test_texts_alike_are_near():
    rng = np.random.default_rng(0)
    topics = [["apple", "pear", "plum", "cherry"], ["iron", "copper", "silver", "gold"]]
    texts = [" ".join(rng.choice(topics[number % 2], 5)) for number in range(80)]
    _, X = one(texts)
    apart = ((X[:, None].astype(float) - X[None, :]) ** 2).sum(axis=2)
    same = np.equal.outer(np.arange(80) % 2, np.arange(80) % 2)
    assert apart[~same].mean() > 2 * apart[same].mean()


def test_text_is_tf_idf_of_words_and_pieces_of_words_reduced_to_unit_vectors():
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghij"), 6)) for _ in range(20)]
    texts = [" ".join(rng.choice(words[: 5 + row % 15], 12)) for row in range(90)]
    pieces = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=2)
    theirs = FeatureUnion(
        [("pieces", pieces), ("words", TfidfVectorizer(min_df=2))], transformer_weights={"words": 0.5}
    )
    matrix = theirs.fit_transform(texts).toarray()
    expected = matrix @ np.linalg.svd(matrix, full_matrices=False)[2][:30].T
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    _, X = one(texts)
    assert X.shape == (90, 30)
    ours, expected = (part - part.mean(axis=0) for part in (X.astype(float), expected))
    ours, expected = ours / ours.std(), expected / expected.std()
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=0.05)
