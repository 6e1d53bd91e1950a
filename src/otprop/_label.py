"""`otprop.label`: the whole sequence of the command `otprop label`, for a file or a DataFrame."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from otprop._label_result import LabelResult, check_output_columns, run_job
from otprop._progress import ProgressCallback, no_progress
from otprop.files import Table, read_table
from otprop.labelling.corrections import issues_to_correct
from otprop.labelling.job import Job, Request, prepare
from otprop.labelling.next_rows import rows_to_fill_in, suggest_next
from otprop.labelling.output_columns import OutputColumns
from otprop.table.errors import RequestError
from otprop.table.frame import is_frame, is_polars, table_of_frame


def label(
    data: Any,
    target: str,
    *,
    method: str = "otp",
    settings: Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    text_model: Any = None,
    unlabeled: Sequence[str] = (),
    merge_labels: bool = False,
    numeric_classes: bool = False,
    abstain_below: float | None = None,
    class_prior: str | Mapping[Any, float] | None = None,
    metric: str | None = None,
    seed: int = 0,
    jobs: int | None = None,
    prefix: str | None = None,
    fill: bool = False,
    probabilities: bool = False,
    corrections: Any = (),
    chosen: str | Sequence[bool] | None = None,
    progress: ProgressCallback = no_progress,
) -> LabelResult:
    """Label the rows of a table whose target is empty, as the command `otprop label` does.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        A file (CSV, TSV, JSON, Excel, Parquet, Feather, NPZ), a table of `otprop.files`, or a DataFrame of pandas or
        polars.
    target : str
        The column with the labels; empty cells get one.
    method : str
        "otp", "otp-paper", or another method of the benchmark: "ls", "trees", ...
    settings : mapping of str to object or None
        Parameters of the method, as in ``{"n_neighbors": 15}``.
    features : sequence of str or None
        The columns to use; None for all that are fit for it.
    ignore : sequence of str
        Columns to leave out.
    embedding : str or None
        The prefix of columns that are one vector.
    text_model : str, path, transformer, callable or None
        What makes vectors of text: the folder of a local sentence-transformers model, an ``.onnx`` file with its
        ``tokenizer.json`` beside it, a scikit-learn transformer (fitted, or fitted here on the texts), or a function
        from a list of texts to a 2-D array. None for words and pieces of words. Nothing is downloaded.
    unlabeled : sequence of str
        Cells with one of these texts are unlabelled, beside the empty ones.
    merge_labels : bool
        Labels that differ only in case, blanks, how a number is written or one typing error are one class.
    numeric_classes : bool
        Numbers in the target are classes even where they look like measurements: hardly any occurs twice, or there
        are many with fractions among them.
    abstain_below : float or None
        Rows with less confidence than this stay unlabelled. ``outcome.expected_error`` is that of the rows that got a
        label, ``model.expected_error_`` that of all unlabelled rows.
    class_prior : "uniform", mapping of every class to its share of all rows, or None
    metric : str or None
        The distance between rows: "euclidean", "cosine", "manhattan", ...
    seed : int
    jobs : int or None
        The number of threads; None for all.
    prefix : str or None
        Of the names of the added columns; None for the target and an underscore.
    fill : bool
        Write the labels into the target column itself.
    probabilities : bool
        Add a column for the probability of every class.
    corrections : path, DataFrame, mapping, Series, or a list of these
        Labels that are not in the table, or replace those in it, as in `LabelResult.add`: the corrections of a page, or
        suggested rows with their labels filled in.
    chosen : str, sequence of bool, or None
        Which given labels were picked and not drawn at random: a column that says so (true, 1, yes, chosen, reviewed),
        or a truth value for every row. The expected error is learnt from the other labels.
    progress : callable
        Called with the work done, the work in all (0 where it is not known) and the current step.

    Returns
    -------
    LabelResult

    Raises
    ------
    ParameterError
        A parameter cannot be used with this table; its name is the attribute `parameter`.
    ValueError
        The table cannot be labelled; the message is one line.

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
    if target is None:
        raise RequestError("target", "must name the column with the labels.", target)
    request = Request(
        str(target),
        method=method,
        settings=settings or {},
        features=features,
        ignore=ignore,
        embedding=embedding,
        text_model=text_model,
        unlabeled=unlabeled,
        merge_labels=merge_labels,
        numeric_classes=numeric_classes,
        abstain_below=abstain_below,
        class_prior=class_prior,
        metric=metric,
        seed=seed,
        jobs=jobs,
        corrections=corrections,
        chosen=chosen,
    )
    output, frame = OutputColumns(prefix, fill, probabilities), _kept_frame(data)
    job = prepare_job(as_table(data), request, output, frame)
    job.keep_geometry()  # for LabelResult.add
    return run_job(job, output, progress, _python_call(data, request, output), frame)


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
    seed: int = 0,
    jobs: int | None = None,
    progress: ProgressCallback = no_progress,
) -> Any:
    """Rows of a table to label next, as the command `otprop suggest` finds them.

    Without labels, or with one class only, typical rows of different regions; else uncertain and typical ones. A share
    of them is drawn at random, so that the expected error of later runs can be estimated.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        As in `otprop.label`.
    target : str or None
        The column with the labels, which need not exist yet; None for a new column `label`.
    n : int
        How many rows at most.
    random_share : float in [0, 1]
        The share that is drawn at random.
    features, ignore, embedding, unlabeled, metric, corrections, chosen, seed, jobs, progress : as in `otprop.label`

    Returns
    -------
    DataFrame
        With the columns of the table, an empty target to fill in, `row` (counted from 1), `reason` and `file_digest`;
        filled in, it is what ``otprop.label(corrections=...)`` takes.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> frame = pd.DataFrame({"weight": [1.0, 1.2, 1.1, 9.0, 9.1, 9.3]})
    >>> rows = otprop.suggest(frame, "kind", n=2)
    >>> list(rows.columns), len(rows)
    (['row', 'reason', 'kind', 'weight', 'file_digest'], 2)
    >>> rows["kind"] = ["heavy" if weight > 5 else "light" for weight in rows["weight"]]
    >>> otprop.label(frame, "kind", corrections=rows).table["kind_source"].value_counts().to_dict()
    {'propagated': 4, 'corrected': 2}
    """
    table, frame = as_table(data), data if is_frame(data) else None
    if target is None and "label" in table.names:
        raise RequestError("target", "must name the column with the labels: the table has a column 'label' already.")
    request = Request(
        "label" if target is None else str(target),
        features=features,
        ignore=ignore,
        embedding=embedding,
        unlabeled=unlabeled,
        metric=metric,
        seed=seed,
        jobs=jobs,
        corrections=corrections,
        chosen=chosen,
    )
    job = prepare(table, request, allow_few=True, frame=frame)
    return rows_to_fill_in(job, suggest_next(job, n, random_share=random_share, progress=progress), frame)


def check(
    data: Any,
    target: str,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    embedding: str | None = None,
    unlabeled: Sequence[str] = (),
    metric: str | None = None,
    corrections: Any = (),
    chosen: str | Sequence[bool] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: ProgressCallback = no_progress,
) -> Any:
    """Given labels that the others contradict, as the command `otprop check` lists them; every row may have a label.

    Parameters
    ----------
    data : str, path, Table or DataFrame
        As in `otprop.label`.
    target : str
        The column with the labels.
    features, ignore, embedding, unlabeled, metric, corrections, chosen, seed, jobs, progress : as in `otprop.label`

    Returns
    -------
    DataFrame
        With `row` (counted from 1), an empty `label` to fill in, `given`, `suggested`, the `probability` that the given
        label is wrong, and `file_digest`, the most doubtful first; filled in, it is what
        ``otprop.label(corrections=...)`` takes.

    Examples
    --------
    >>> import pandas as pd
    >>> import otprop
    >>> weights = [number % 7 / 10 + (0 if number < 20 else 8) for number in range(40)]
    >>> frame = pd.DataFrame({"weight": weights, "kind": ["light"] * 20 + ["heavy"] * 20})
    >>> frame.loc[5, "kind"] = "heavy"  # wrong
    >>> otprop.check(frame, "kind")[["row", "given", "suggested"]].head(1).to_dict("records")
    [{'row': 6, 'given': 'heavy', 'suggested': 'light'}]
    """
    request = Request(
        str(target),
        features=features,
        ignore=ignore,
        embedding=embedding,
        unlabeled=unlabeled,
        metric=metric,
        seed=seed,
        jobs=jobs,
        corrections=corrections,
        chosen=chosen,
    )
    job = prepare(as_table(data), request, allow_complete=True, frame=data if is_frame(data) else None)
    return issues_to_correct(job.run(progress).label_issues, job.table)


def as_table(data: Any) -> Table:
    """The table of a path, a DataFrame or a table."""
    if isinstance(data, Table):
        return data
    if is_frame(data):
        return table_of_frame(data)
    if isinstance(data, (str, PathLike)):
        path = str(data)
        if os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path)):
            raise RequestError("data", "several files are labelled by the command `otprop label`, and not here.", path)
        return read_table(Path(data))
    raise TypeError(f"data must be a path, a DataFrame or a table of otprop.files; got {type(data).__name__}.")


def _kept_frame(data: Any) -> Any:
    """The DataFrame as it is now: rows that are sorted or dropped in place later do not change it; None for a file."""
    if not is_frame(data):
        return None
    return data.clone() if is_polars(data) else data.copy(deep=False)


def prepare_job(table: Table, request: Request, output: OutputColumns, frame: Any = None) -> Job:
    """Check everything that can be checked before the work begins."""
    job = prepare(table, request, frame=frame)
    check_output_columns(job, output)
    return job


def _python_call(data: Any, request: Request, output: OutputColumns) -> str:
    """The call that repeats this, without what is as usual."""
    first = repr(Path(data).name) if isinstance(data, (str, PathLike)) else "data"
    usual = {**vars(Request(request.target)), **vars(OutputColumns())}
    more = [
        f"{name}={_text(name, value)}"
        for name, value in {**vars(request), **vars(output)}.items()
        if name != "target" and (_is_long(name, value) or value != usual[name])
    ]
    return f"otprop.label({', '.join([first, repr(request.target), *more])})"


def _is_long(name: str, value: Any) -> bool:
    """Whether a value is data, not to be repeated."""
    if name == "chosen":
        return value is not None and not isinstance(value, str)
    return name == "corrections" and not isinstance(value, (str, PathLike, list, tuple))


def _text(name: str, value: Any) -> str:
    if _is_long(name, value):
        return "..."
    if name == "corrections":
        parts = value if isinstance(value, (list, tuple)) else [value]
        names = [Path(part).name if isinstance(part, (str, PathLike)) else ... for part in parts]
        return repr(names if isinstance(value, (list, tuple)) else names[0]).replace("Ellipsis", "...")
    return repr(value)
