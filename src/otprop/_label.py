"""`otprop.label`, `suggest` and `check`: the sequence of the commands, for a file or a DataFrame."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from otprop._label_result import LabelResult
from otprop._progress import ProgressCallback, shown_progress
from otprop._validation import did_you_mean
from otprop.files import Table
from otprop.labelling.job import Request, files_among, prepare
from otprop.labelling.methods import METHODS
from otprop.labelling.next_rows import rows_to_fill_in, suggest_next
from otprop.labelling.output_columns import OutputColumns
from otprop.table.cells import is_anndata
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, is_polars
from otprop.table.opening import as_table, target_of

_OLD_NAMES = {"seed": "random_state", "jobs": "n_jobs"}  # of 0.2, accepted until 0.4
_ELSEWHERE = {  # options of the command that are not arguments
    **dict.fromkeys(("cost", "costs"), "; costs of errors are given as objective={('yes', 'no'): 10}."),
    **dict.fromkeys(("report", "save"), "; call the method of this name of the result."),
    **dict.fromkeys(("output", "out"), "; call the method write() of the result."),
    "set": "; parameters of the estimator are given as settings={'n_neighbors': 15}.",
}
_FIELDS = {"random_state": "seed", "n_jobs": "jobs"}  # of a request, named after the options of the command
_ARGUMENTS = {field: name for name, field in _FIELDS.items()}


def label(
    data: Any,
    target: str | None = None,
    *,
    method: str = "otp",
    settings: Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    text_model: Any = None,
    image_model: Any = None,
    labels: Any = None,
    use_rep: str | None = None,
    graph: str | None = None,
    vectors: Any = None,
    unlabeled: Sequence[str] = (),
    merge_labels: bool = False,
    numeric_classes: bool = False,
    abstain_below: float | None = None,
    class_prior: str | Mapping[Any, float] | None = None,
    objective: str | Mapping[tuple[Any, Any], float] | None = None,
    metric: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    prefix: str | None = None,
    fill: bool = False,
    probabilities: bool = False,
    corrections: Any = (),
    chosen: str | Sequence[bool] | None = None,
    groups: str | Sequence[Any] | None = None,
    votes: Sequence[str] | Mapping[str, Any] = (),
    votes_file: Any = None,
    new_classes: bool = False,
    progress: ProgressCallback | None = None,
    **old_names: Any,
) -> LabelResult:
    """Label the rows of a table whose target is empty, as the command `otprop label` does.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        A file (CSV, TSV, JSON, Excel, Parquet, Feather, NPZ, or Label Studio's JSON, whose annotators are voters), a
        table of an SQLite database (``"lots.db::lots"``), a table of `otprop.files`, a pandas or polars DataFrame, a
        folder of pictures or ``.txt`` files, or an AnnData object or ``.h5ad`` file of cells. Columns may be paths of
        pictures.
    target : str or None
        The column with the labels; empty cells get one. Not needed for a folder of pictures or texts, and for Label
        Studio's JSON with one field of choices.
    method : str
        "otp", or "otp-paper" for the algorithm of the paper.
    settings : mapping of str to object or None
        Parameters of the method, as in ``{"n_neighbors": 15}``.
    features : sequence of str or None
        The columns to use; None for all usable columns.
    ignore : sequence of str
        Columns to skip.
    embedding : str or None
        The prefix of the columns of an embedding.
    text_model : str, path, transformer, callable or None
        Turns text into vectors: the folder of a local sentence-transformers model, an ``.onnx`` file with its
        ``tokenizer.json`` next to it, a scikit-learn transformer (fitted, or fitted here on the texts), or a function
        from a list of texts to a 2-D array. None for words and character n-grams. Nothing is downloaded.
    image_model : str, path, callable or None
        Turns pictures into vectors: an ``.onnx`` or TorchScript file that takes a batch of shape (n, 3, height,
        width), or a function from a list of Pillow RGB images, with sides of at most 1024 pixels, to a 2-D array. None
        for gradients, thumbnails and colours. Nothing is downloaded.
    labels : path, DataFrame, mapping of names to labels, or None
        The labels of a folder of pictures or texts; None to use the names of its sub-folders.
    use_rep : str or None
        The matrix in ``obsm`` of an AnnData object or ``.h5ad`` file that holds the vectors of the cells, or "X". None
        for "X_pca" if it exists, else "X", log-normalised and reduced.
    graph : str or None
        The matrix in ``obsp`` of an AnnData object or ``.h5ad`` file that labels spread over, such as scanpy's
        "connectivities". None for a graph made of the vectors.
    vectors : path or None
        A ``.npy`` file with one vector per row of the file `data`, used in addition to its columns.
    unlabeled : sequence of str
        Cells with one of these texts are unlabelled, in addition to empty ones.
    merge_labels : bool
        Merge labels that differ only in case, spaces, the format of a number or one typing error.
    numeric_classes : bool
        Accept numbers in the target as classes even if they look like measurements (hardly any occurs twice, or many
        have fractions).
    abstain_below : float or None
        Rows with less confidence than this stay unlabelled. ``outcome.expected_error`` refers to the rows that got a
        label, ``model.expected_error_`` to all unlabelled rows.
    class_prior : "uniform", mapping of every class to its share of all rows, or None
        The shares of the classes, if you know them; None to infer them.
    objective : "accuracy", "balanced", mapping of pairs (true class, label given) to costs, or None
        Which errors count, as in `OTP`; None for "accuracy".
    metric : str or None
        The distance between rows: "euclidean", "cosine", "manhattan", ...
    random_state : int
        The seed: the same table and seed give the same labels.
    n_jobs : int or None
        The number of threads; None for all.
    prefix : str or None
        The prefix of the added columns; None for the target and an underscore.
    fill : bool
        Write the labels into the target column itself.
    probabilities : bool
        Add one column per class with its probability.
    corrections : path, DataFrame, mapping, Series, or a list of these
        Labels that are added to those of the table, or replace them, as in `LabelResult.add`: corrections from a
        report, or suggested rows with their labels filled in.
    chosen : str, sequence of bool, or None
        Which given labels were picked and not drawn at random: a column (true, 1, yes, chosen, reviewed), or one
        boolean per row. The expected error is learnt from the other labels.
    groups : str, sequence, or None
        The group of each row, such as the patient or the site, if whole groups were labelled: a column, which is not
        used as a feature, or one value per row. The expected error is then that of rows of other groups.
    votes : sequence of str, or mapping of str to values or functions
        Columns with noisy labels from a language model, annotators or rules, empty where a voter did not vote. They
        are not used as features. A prefix such as ``"llm_p_"`` stands for one voter with one column of probabilities
        per class: ``llm_p_yes``, ``llm_p_no``. A mapping goes from the name of a voter to one label or None per row,
        to a DataFrame of probabilities with one column per class, or to a function of the DataFrame that returns
        either. The labels determine how much each voter counts: `outcome.voters`. Without labels, the votes alone
        decide, and the error cannot be checked.
    votes_file : path, DataFrame or None
        Votes with one line per row and annotator, as annotation tools export them: columns "annotator" and "label",
        and either "row", counted from 1, or one column that the table has as well, such as its identifier.
    new_classes : bool
        Accept labels of corrections as new classes even if they look like a typing error of a class.
    progress : callable or None
        Called with the work done, the total work (0 if unknown) and the current step; None for a progress bar in a
        notebook, and nothing elsewhere.
    **old_names : object
        `seed` and `jobs`, the names of `random_state` and `n_jobs` in 0.2; with a FutureWarning.

    Returns
    -------
    LabelResult

    Raises
    ------
    OtpropError
        If a parameter cannot be used with this table, or the table cannot be labelled; also a ValueError. The message
        is one line. The attributes `parameter` and `hint` name the parameter and what to do, if known.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> frame = pd.DataFrame(
    ...     {
    ...         "weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3],
    ...         "kind": ["light", None, None, "heavy", None, None],
    ...     }
    ... )
    >>> result = otprop.label(frame, "kind")
    >>> result.table["kind_label"].tolist()
    ['light', 'light', 'light', 'heavy', 'heavy', 'heavy']
    """
    request = _request(locals())
    output = OutputColumns(prefix, fill, probabilities)
    opening = {"labels": labels, "use_rep": use_rep, "graph": graph, "vectors": vectors}
    with shown_progress(progress) as report:
        frame, table, request = _read(data, request, report, **opening)
        call = _python_call(data, request, output, opening)
        job = prepare(table, request, output=output, frame=frame, call=call)
        job.inputs += files_among(labels, vectors)
        return LabelResult(job, job.run(report))


def suggest(
    data: Any,
    target: str | None = None,
    n: int = 20,
    *,
    random_share: float = 0.2,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    unlabeled: Sequence[str] = (),
    metric: str | None = None,
    corrections: Any = (),
    chosen: str | Sequence[bool] | None = None,
    groups: str | Sequence[Any] | None = None,
    votes: Sequence[str] | Mapping[str, Any] = (),
    votes_file: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
    **old_names: Any,
) -> Any:
    """Rows of a table to label next, as the command `otprop suggest` finds them.

    Without labels, or with one class only, these are typical rows of different regions; otherwise, uncertain and
    typical rows. A share of them is drawn at random, so that the expected error of later runs can be estimated.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        As in `otprop.label`.
    target : str or None
        The column with the labels, which need not exist yet; None for that of a folder of pictures or texts, otherwise
        a new column `label`.
    n : int
        The number of rows.
    random_share : float in [0, 1]
        The share that is drawn at random.
    features, ignore, embedding, unlabeled, metric, corrections, chosen, groups, votes, votes_file : as in
        `otprop.label`
    random_state, n_jobs, progress, **old_names : as in `otprop.label`

    Returns
    -------
    DataFrame
        Rows of the table by its index (counted from 0 for a file; a column `index` in polars), with an empty target to
        fill in, `reason` and `file_digest`. Once filled in, pass it, or a file written with its index, to
        ``otprop.label(corrections=...)``.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> frame = pd.DataFrame({"weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3]})
    >>> rows = otprop.suggest(frame, "kind", n=2)
    >>> list(rows.columns), len(rows)
    (['reason', 'kind', 'weight', 'file_digest'], 2)
    >>> rows["kind"] = ["heavy" if weight > 5 else "light" for weight in rows["weight"]]
    >>> otprop.label(frame, "kind", corrections=rows).table["kind_source"].value_counts().to_dict()
    {'propagated': 4, 'corrected': 2}
    """
    request = _request(locals())
    with shown_progress(progress) as report:
        frame, table, request = _read(data, request, report, new_target=True)
        job = prepare(table, request, allow_few=True, allow_complete=True, frame=frame)
        found = suggest_next(job, n, random_share=random_share, progress=report)
    return rows_to_fill_in(job, found, numbered=False)


def check(
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    unlabeled: Sequence[str] = (),
    metric: str | None = None,
    corrections: Any = (),
    chosen: str | Sequence[bool] | None = None,
    groups: str | Sequence[Any] | None = None,
    votes: Sequence[str] | Mapping[str, Any] = (),
    votes_file: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: ProgressCallback | None = None,
    **old_names: Any,
) -> Any:
    """Given labels that the others contradict, as the command `otprop check` lists them; every row may have a label.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        As in `otprop.label`.
    target : str or None
        The column with the labels. Not needed for a folder of pictures or texts.
    features, ignore, embedding, unlabeled, metric, corrections, chosen, groups, votes, votes_file : as in
        `otprop.label`
    random_state, n_jobs, progress, **old_names : as in `otprop.label`

    Returns
    -------
    DataFrame
        The most doubtful labels first, by the index of the table (counted from 0 for a file or polars): an empty
        `label` to fill in, `given`, `suggested`, the `probability` that the given label is wrong, and `file_digest`.
        Once filled in, pass it to ``otprop.label(corrections=...)``.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> weights = [number % 7 / 10 + (0 if number < 20 else 8) for number in range(40)]
    >>> frame = pd.DataFrame({"weight": weights, "kind": ["light"] * 20 + ["heavy"] * 20})
    >>> frame.loc[5, "kind"] = "heavy"  # wrong
    >>> otprop.check(frame, "kind")[["given", "suggested"]].head(1).to_dict("index")
    {5: {'given': 'heavy', 'suggested': 'light'}}
    """
    request = _request(locals())
    with shown_progress(progress) as report:
        frame, table, request = _read(data, request, report)
        job = prepare(table, request, allow_complete=True, frame=frame)
        return LabelResult(job, job.run(report)).label_issues


def _request(arguments: Mapping[str, Any]) -> Request:
    """The request of a function with these arguments: a new one needs a field of `Request` of its name, no more."""
    arguments = {**arguments, **_renamed(arguments["old_names"])}
    named = {_FIELDS.get(name, name): value for name, value in arguments.items()}
    asked = {one.name: named[one.name] for one in fields(Request) if one.name in named}
    target = named["target"]
    if isinstance(target, (list, tuple, set, Mapping)) or hasattr(target, "__array__"):
        raise RequestError("target", f"must be the name of one column; got a {type(target).__name__}.")
    target = None if target is None else str(target)
    return Request(**{**asked, "target": target, "settings": named.get("settings") or {}})


def _read(
    data: Any, request: Request, progress: ProgressCallback, *, new_target: bool = False, **opening: Any
) -> tuple[Any, Table, Request]:
    """The DataFrame that is kept, the table, and the request with the target of the table where the call names none.

    With `new_target`, that of a table without its own is a new column `label`.
    """
    frame = _kept_frame(data)
    table = as_table(data, target=request.target, progress=progress, **opening)
    target: str | None = request.target
    if new_target and target is None and table.default_target is None:
        if "label" in table.names:
            why = "must name the column with the labels: the table has a column 'label' already."
            raise RequestError("target", why)
        target = "label"
    return frame, table, replace(request, target=target_of(table, target))


def _renamed(old_names: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names they have now; refuse those that never were."""
    for name in old_names:
        if name not in _OLD_NAMES:
            known = [_ARGUMENTS.get(one.name, one.name) for one in (*fields(Request), *fields(OutputColumns))]
            known.append("progress")
            hint = _ELSEWHERE.get(name) or _hint_to_settings(name) or did_you_mean(name, known) or "."
            raise TypeError(f"unexpected argument {name!r}{hint}")
        message = f"{name} is now called {_OLD_NAMES[name]}; version 0.4 will not accept the old name."
        warnings.warn(message, FutureWarning, stacklevel=4)
    return {_OLD_NAMES[name]: value for name, value in old_names.items()}


def _hint_to_settings(name: str) -> str:
    known = {parameter for make in METHODS.values() for parameter in make().get_params(deep=False)}
    return f"; parameters of the estimator are given as settings={{{name!r}: ...}}." if name in known else ""


def _kept_frame(data: Any) -> Any:
    """The DataFrame as it is now: rows that are sorted or dropped in place later do not change it; None for a file."""
    if is_anndata(data):
        return data.obs.copy(deep=False)
    if not is_frame(data):
        return None
    return data.clone() if is_polars(data) else data.copy(deep=False)


def _python_call(data: Any, request: Request, output: OutputColumns, opening: Mapping[str, Any]) -> str:
    """The call that repeats this, without what is as usual."""
    first = repr(Path(data).name) if isinstance(data, (str, PathLike)) else "data"
    usual = {**vars(Request(request.target)), **vars(OutputColumns())}
    given = {name: _text(name, value) for name, value in {**vars(request), **vars(output), **opening}.items()}
    more = [
        f"{_ARGUMENTS.get(name, name)}={text}"
        for name, text in given.items()
        if name != "target" and text != _text(name, usual.get(name))
    ]
    return f"otprop.label({', '.join([first, repr(request.target), *more])})"


def _text(name: str, value: Any) -> str:
    """An argument of the call; of a file its name, and "..." for data, which is not repeated."""
    in_list = isinstance(value, (list, tuple))
    if name == "corrections" and in_list:
        return f"[{', '.join(_text(name, part) for part in value)}]"
    if name in ("labels", "vectors", "votes_file", "corrections") and value is not None:
        return repr(Path(value).name) if isinstance(value, (str, PathLike)) else "..."
    is_data = not in_list if name == "votes" else value is not None and not isinstance(value, str)
    return "..." if name in ("votes", "chosen", "groups") and is_data else repr(value)
