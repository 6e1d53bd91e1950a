"""`DaskOTP`: the estimator for Dask collections."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import dask
import numpy as np
from dask import delayed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from otprop._errors import warn
from otprop._labels import UNLABELED, class_list, class_numbers, encode_labels, find_unlabeled
from otprop._otp import OTP
from otprop._validation import InputError, ParameterError, check_count, did_you_mean, forget_fit
from otprop.dask._cluster import (
    SHORT_OF_MEMORY,
    check_client,
    close_client,
    default_client,
    keep_freed_memory,
    local_client,
    threads_for_fit,
)
from otprop.dask._landmarks import LandmarkModel, LandmarkRule, Sample, make_sample, merge_as_tree, merge_samples, slim
from otprop.dask._manifest import Tally
from otprop.dask._parts import Parts, is_distributed, read_parts, read_rows
from otprop.labelling.outcome import RowLabels
from otprop.propagation.calibration import Coverage

OF_ONE_PROCESS = {"callback": None, "warm_start": False}  # parameters of OTP without effect here
IN_A_SCRIPT = (
    'put the calls of a script under `if __name__ == "__main__":`, since a new process imports the script that starts '
    f"it; else {SHORT_OF_MEMORY}"
)
_LAZY = ("transduction_", "confidence_", "certainty_", "label_distributions_")
_OF_FIT = ("_fit_client", "_model", "_labels")  # what is on the cluster
_ON_CLUSTER = (*_LAZY, *_OF_FIT, "client", "_own_client")


class DaskOTP(ClassifierMixin, BaseEstimator):
    """Optimal Transport Propagation for more rows than one machine holds.

    An `OTP` is fitted on landmarks: all labelled rows, and a random sample of the others. Every other row gets its
    class from its neighbours among the landmarks and from the classifiers. With at least as many landmarks as rows
    the result is that of `OTP`. It does not depend on the partitions, nor on the number of workers.

    Parameters
    ----------
    estimator : OTP or None, default=None
        Fitted on the landmarks, as a copy; None for ``OTP()``. The costs "graph" and "precomputed" are refused, and
        ``callback`` and ``warm_start`` have no effect. ``n_jobs=None``: the threads of the worker that it runs on.
    landmarks : int, default=200_000
        How many unlabelled rows the fit uses at most, and how many labelled ones; of more labelled rows, the largest
        classes are cut to a common size. More landmarks are more accurate.
    client : dask.distributed.Client or None, default=None
        None: the running client, else a new cluster of this machine's processes, which stays open until `close`. Each
        of them imports the script that starts it: have it call `fit` under ``if __name__ == "__main__":`` only.
    **old_parameters : object
        Parameters of `OTP`, which were those of this class in 0.2; with a FutureWarning.

    Attributes
    ----------
    transduction_, confidence_, certainty_ : lazy, partitioned as X: a series for a frame, else a Dask array
    label_distributions_ : lazy, a frame with one column per class, or a Dask array of shape (n_rows, n_classes)
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,), the classes' shares of all rows, as inferred from the landmarks
    evidence_ : list of Contribution, as in OTP
    error_ : ErrorEstimate, of all unlabelled rows
    expected_error_, error_range_ : as in OTP, estimated on the landmarks
    landmark_rows_ : ndarray of int64, the numbers of the landmarks among all rows
    n_features_in_ : int
    feature_names_in_ : ndarray, where X has names for its columns

    See Also
    --------
    otprop.OTP : for rows that fit into memory

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from dask.distributed import Client
    >>> from otprop.dask import DaskOTP
    >>> X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    >>> y = np.array([0, -1, -1, 1, -1, -1])
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
    ...     model = DaskOTP(client=client).fit(da.from_array(X, chunks=(2, 1)), y)
    ...     model.transduction_.compute()
    array([0, 0, 0, 1, 1, 1])
    """

    def __init__(
        self,
        estimator: OTP | None = None,
        *,
        landmarks: int = 200_000,
        client: Any = None,
        **old_parameters: Any,
    ) -> None:
        self.estimator = estimator_of(estimator, old_parameters)
        self.landmarks = landmarks
        self.client = client

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on the landmarks; what is lazy is computed when it is asked for.

        X is read once for the number of its rows where that is not known, once for the landmarks, and once for each
        time that lazy attributes are computed: compute them together, and persist X where it fits into the workers.

        Parameters
        ----------
        X : Dask frame, Dask array with one chunk of columns, or list of delayed pairs (rows, labels)
        y : name of the target for a frame; a vector (Dask or NumPy) for an array; None for delayed pairs
            With a marker where a row is unlabelled, as in `OTP`.

        Returns
        -------
        self
        """
        forget_fit(self, (*_OF_FIT, "_local", "_columns", "_tally"))
        estimator = self._checked_estimator()
        client = self._client()
        parts = read_parts(X, y, gathering(client))
        if parts.n_rows < 2:
            raise ParameterError("X", f"has {parts.n_rows} rows; at least 2 are needed.")
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        rule = LandmarkRule(int(self.landmarks), seed).with_limit_for(parts.n_rows)
        sample = self._sample(client, parts, estimator.unlabeled, rule)
        model = client.submit(fit_sample, sample, estimator, parts.n_rows, pure=False)
        fitted: LandmarkModel
        fitted, messages = model.result()
        for message, category in messages:
            warn(message, category)
        self._set_fitted(fitted)
        names = None if parts.frame is None else [name for name in parts.frame.columns if name != y]
        self._columns = getattr(self, "feature_names_in_", names)
        self._fit_client, self._model = client, model
        self._set_lazy(parts, model, fitted)
        return self

    def _checked_estimator(self) -> OTP:
        """The `OTP` to fit, as a copy; refuse what has no meaning here."""
        check_count("landmarks", self.landmarks, least=2)
        if self.estimator is not None and not isinstance(self.estimator, OTP):
            raise ParameterError("estimator", f"must be an OTP or None; got {self.estimator!r}.")
        estimator = OTP() if self.estimator is None else clone(self.estimator)
        estimator.set_params(**OF_ONE_PROCESS).check_parameters()
        if isinstance(estimator.cost, str) and estimator.cost in ("graph", "precomputed"):
            raise ParameterError("cost", f"={estimator.cost!r} needs a matrix between all rows; use OTP.")
        return estimator

    def _client(self) -> Any:
        """The client that was given, else the one started here, else the running one, else a new one."""
        client = self.client if self.client is not None else getattr(self, "_own_client", None)
        client = default_client() if client is None else client
        if client is None:
            client = self._own_client = local_client(advice=IN_A_SCRIPT)
        return check_client(client)

    def _sample(self, client: Any, parts: Parts, unlabeled: Any, choice: LandmarkRule) -> Any:
        """The landmarks as a future: each partition sends a few rows, which are merged as a tree."""
        while True:
            found = [
                delayed(sample_part)(rows, labels, first, unlabeled, choice)
                for rows, labels, first in zip(parts.rows, parts.labels, parts.starts, strict=True)
            ]
            sample = client.compute(merge_as_tree(found, partial(delayed(merge_samples), choice=choice)))
            if client.submit(getattr, sample, "n_labeled", pure=False).result() == 0:
                raise InputError(
                    f"y has no labelled row: all {parts.n_rows} entries are the marker for unlabelled. "
                    "Give at least one row a label."
                )
            if client.submit(choice.has_enough_rows, sample, pure=False).result():
                return sample
            choice = choice.with_wider_limit()

    def _set_fitted(self, fitted: LandmarkModel) -> None:
        local = fitted.estimator
        self._local, self.landmark_rows_ = local, fitted.numbers
        self.classes_, self.class_prior_, self.evidence_ = local.classes_, local.class_prior_, local.evidence_
        self.error_ = replace(local.error_, n_rows=fitted.n_unlabeled)
        self.expected_error_, self.error_range_ = self.error_.expected, self.error_.interval
        self.n_features_in_ = local.n_features_in_
        if hasattr(local, "feature_names_in_"):
            self.feature_names_in_ = local.feature_names_in_
        self._tally: Tally | None = None

    def _set_lazy(self, parts: Parts, model: Any, fitted: LandmarkModel) -> None:
        shared = delayed(model)
        self._labels = [
            delayed(label_part)(shared, rows, labels, first)
            for rows, labels, first in zip(parts.rows, parts.labels, parts.starts, strict=True)
        ]
        names = [delayed(label_names)(shared, one) for one in self._labels]
        self.transduction_ = parts.collect(names, fitted.label_type, "transduction")
        for name in ("confidence", "certainty"):
            values = [delayed(getattr)(one, name) for one in self._labels]
            setattr(self, f"{name}_", parts.collect(values, np.float64, name))
        values = [delayed(getattr)(one, "distributions") for one in self._labels]
        self.label_distributions_ = parts.collect(values, np.float64, "distributions", class_list(self.classes_))

    def coverage(self) -> list[Coverage]:
        """Expected error when only the most confident rows are labelled, as `OTP.coverage`; computes all labels.

        Rows are kept together by thousandths of the confidence.

        Returns
        -------
        list of Coverage
        """
        check_is_fitted(self)
        if self._tally is None:
            client = self._live_client()
            if client is None:
                raise ParameterError(
                    "client", "that fit used is closed: call coverage() before, or fit again with a running one."
                )
            n_classes = len(self.classes_)
            tallies = client.gather(client.compute([delayed(Tally.of)(one, n_classes) for one in self._labels]))
            self._tally = Tally.total(tallies, n_classes)
        return self._tally.coverage(self.error_)

    def predict(self, X: Any) -> Any:
        """The most probable class of each new row.

        Parameters
        ----------
        X : Dask frame or array, list of delayed rows, or rows in memory

        Returns
        -------
        lazy where X is: a series for a frame, else a Dask array; an ndarray for rows in memory
        """
        return self._predict(X, "predict", "predict")

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of new rows, in the order of ``classes_``.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        lazy where X is: a frame for a frame, else a Dask array; an ndarray for rows in memory
        """
        return self._predict(X, "predict_proba", "probability")

    def predict_confidence(self, X: Any) -> Any:
        """Probability that `predict` is right, for new rows.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        lazy where X is, as `predict`
        """
        return self._predict(X, "predict_confidence", "confidence")

    def _predict(self, X: Any, method: str, name: str) -> Any:
        """Call a method of the fitted `OTP`, lazily where X is."""
        check_is_fitted(self)
        names = self._columns
        if not is_distributed(X):
            return getattr(self._local, method)(features_of(X, names))
        client = self._live_client()
        parts = read_rows(X, self.n_features_in_, names, compute if client is None else gathering(client))
        kept: Any = (LandmarkModel(self._local, self.landmark_rows_), [])
        shared = delayed(kept if client is None else self._model)  # the future is gone with its client
        results = [delayed(predict_part)(shared, rows, method, names) for rows in parts.rows]
        dtype = self.classes_.dtype if method == "predict" else np.float64
        return parts.collect(results, dtype, name, class_list(self.classes_) if method == "predict_proba" else None)

    def _live_client(self) -> Any | None:
        """The client that `fit` used; None where it was closed, and for a copy from a file."""
        client = getattr(self, "_fit_client", None)
        return client if client is not None and client.status == "running" else None

    def to_local(self) -> OTP:
        """The estimator fitted on the landmarks, for rows in memory; it needs no cluster.

        Returns
        -------
        OTP
        """
        check_is_fitted(self)
        return self._local

    def close(self) -> None:
        """Close the cluster that `fit` started, if there was no running client; lazy attributes need it."""
        client = self.__dict__.pop("_own_client", None)
        if client is not None:
            close_client(client)

    def __sklearn_clone__(self) -> Self:
        params = self.get_params(deep=False)
        client = params.pop("client")  # is shared: it cannot be copied
        return type(self)(**{name: clone(value, safe=False) for name, value in params.items()}, client=client)

    def __getstate__(self) -> dict[str, Any]:
        """Without the client and what is on the cluster: the estimator fitted on the landmarks is kept."""
        state: dict[str, Any] = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in _ON_CLUSTER} | {"client": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_local")


def gathering(client: Any) -> Callable[[list[Any]], list[Any]]:
    """A function that gives the values of delayed objects, computed by the workers of this client."""
    return lambda tasks: list(client.gather(client.compute(tasks)))


def compute(tasks: list[Any]) -> list[Any]:
    """The values of delayed objects, computed wherever Dask computes without a client of ours."""
    return list(dask.compute(*tasks))


def sample_part(rows: Any, labels: Any, first_row: int, unlabeled: Any, choice: LandmarkRule) -> Sample:
    """The rows of a partition that may be landmarks, with their labels."""
    values, missing = find_unlabeled(labels, unlabeled)
    keys: list[Hashable] = [None] * len(values)
    for place in np.flatnonzero(~missing).tolist():
        keys[place] = values[place]
    return make_sample(first_row, keys, (rows, values), choice)


def estimator_of(estimator: Any, old_parameters: dict[str, Any]) -> Any:
    """The estimator that was given, or one with parameters as in 0.2; refuse others."""
    if not old_parameters:
        return estimator
    known = [name for name in OTP().get_params(deep=False) if name not in OF_ONE_PROCESS]
    for name in old_parameters:
        if name not in known:
            near = did_you_mean(name, ["estimator", "landmarks", "client", *known])
            raise TypeError(f"unexpected argument {name!r}{near or '.'}")
    names = ", ".join(f"{name}=..." for name in old_parameters)
    if estimator is not None:
        raise InputError(f"parameters of the estimator belong to it: DaskOTP(OTP({names})).")
    message = f"pass the estimator itself: DaskOTP(OTP({names})); version 0.4 will not accept its parameters here."
    warnings.warn(message, FutureWarning, stacklevel=3)
    return OTP(**old_parameters)


def fit_sample(sample: Sample, estimator: OTP, n_rows: int) -> tuple[LandmarkModel, list[tuple[str, type[Warning]]]]:
    """Fit on the landmarks, with the threads of this worker unless `n_jobs` says otherwise; and the warnings."""
    rows, labels = sample.parts
    with threads_for_fit(estimator.n_jobs) as n_jobs, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(estimator).set_params(n_jobs=n_jobs).fit(rows, labels)
        marker = encode_labels(labels, estimator.unlabeled).marker
    messages = [(str(one.message), one.category) for one in caught if issubclass(one.category, UserWarning)]
    model = LandmarkModel(slim(fitted, n_rows), sample.numbers, sample.n_unlabeled, marker)
    return model, list(dict.fromkeys(messages))


def label_part(fitted: tuple[LandmarkModel, Any], rows: Any, labels: Any, first_row: int) -> RowLabels:
    """Label the rows of a partition."""
    model = fitted[0]
    values, missing = find_unlabeled(labels, model.estimator.unlabeled)
    codes = np.full(len(values), UNLABELED, dtype=np.intp)
    codes[~missing] = class_numbers(values[~missing], model.estimator.classes_)
    return model.label(rows, codes, first_row)


def label_names(fitted: tuple[LandmarkModel, Any], found: RowLabels) -> np.ndarray:
    """The labels of a partition; the marker of y where there is none."""
    return fitted[0].decode(found.codes)


def predict_part(fitted: tuple[LandmarkModel, Any], rows: Any, method: str, names: Any) -> np.ndarray:
    """Call a method of the estimator with the rows of a partition."""
    keep_freed_memory()
    estimator = fitted[0].estimator
    if rows.shape[0] == 0:
        shape = (0, len(estimator.classes_)) if method == "predict_proba" else (0,)
        return np.empty(shape, dtype=estimator.classes_.dtype if method == "predict" else np.float64)
    return np.asarray(getattr(estimator, method)(features_of(rows, names)))


def features_of(rows: Any, names: Any) -> Any:
    """The columns of a frame that the fit used: the target may be among the others."""
    if names is None or not hasattr(rows, "columns") or not set(names) <= set(rows.columns):
        return rows
    return rows[list(names)]
