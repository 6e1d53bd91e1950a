"""Parameters of `OTP` and `PaperOTP`: declared constraints, and the resulting configuration of the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from otprop._validation import (
    MAX_SEED,
    InputError,
    ParameterError,
    check_count,
    check_n_jobs,
    check_number,
    did_you_mean,
)
from otprop.evidence.registry import NAMED_SOURCES
from otprop.geometry.pairwise import METRICS, check_cost
from otprop.propagation.class_level import AUTO_ROUNDS
from otprop.propagation.config import ClassLevelConfig, EvidenceSource, RowLevelConfig
from otprop.propagation.decisions import check_objective

Parameters = Mapping[str, Any]  # of an estimator, by name
Check = Callable[[str, Any], None]


def _check_metric(name: str, value: Any) -> None:
    known = (*METRICS, "inner")
    if not callable(value) and not (isinstance(value, str) and value in known):
        hint = did_you_mean(value, known) or "."
        raise ParameterError(name, f"must be a callable of two rows or one of {', '.join(known)}; got {value!r}{hint}")


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _must_be(accepted: str, holds: Callable[[Any], bool]) -> Check:
    def check(name: str, value: Any) -> None:
        if not holds(value):
            raise ParameterError(name, f"must be {accepted}; got {value!r}.")

    return check


def _check_random_state(name: str, value: Any) -> None:
    accepted = f"None, a whole number from 0 to {MAX_SEED} or a RandomState"
    if isinstance(value, bool):
        raise ParameterError(name, f"must be {accepted}; got {value!r}.")
    try:
        check_random_state(value)
    except ValueError as error:
        raise ParameterError(name, f"must be {accepted}; got {value!r}.") from error


OWN_NAMES = (*NAMED_SOURCES, "diffusion", "nearness", "votes", "voted_forest")


def _check_evidence(name: str, value: Any) -> None:
    accepted = (
        f"'auto', None, or a list of classifiers, of pairs (name, classifier), and of names among "
        f"{', '.join(map(repr, NAMED_SOURCES))}"
    )
    if value is None or _is_auto(value):
        return
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ParameterError(name, f"must be {accepted}; got {value!r}.")
    seen: list[Any] = []
    for entry in value:
        paired = isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
        source = entry[1] if paired else entry
        if any(entry is other or (isinstance(entry, str) and entry == other) for other in seen):
            raise ParameterError(name, f"holds {entry!r} twice; name every source once.")
        seen.append(entry)
        if isinstance(source, type) and hasattr(source, "predict_proba"):
            raise ParameterError(
                name, f"holds the class {source.__name__}; put an instance of it there: {source.__name__}()."
            )
        named = isinstance(entry, str) and entry in NAMED_SOURCES
        if not named and (isinstance(source, (str, type)) or not hasattr(source, "predict_proba")):
            raise ParameterError(
                name, f"must be {accepted}; got {entry!r} in it. A classifier must have predict_proba."
            )
        if paired and ("__" in entry[0] or not entry[0] or entry[0] in CLASS_LEVEL or entry[0] in OWN_NAMES):
            raise ParameterError(
                name,
                f"holds the name {entry[0]!r}; a name must not be empty, hold '__', be a parameter of OTP, or be the "
                "name of a source of OTP.",
            )
    names = [source.name for source in evidence_sources(value)]
    repeated = [source for source in names if names.count(source) > 1]
    if repeated:
        raise ParameterError(name, f"holds the name {repeated[0]!r} twice; name every source once.")


COMMON: dict[str, Check] = {
    "epsilon": partial(check_number, above=0, words=("auto",)),
    "min_round_share": partial(check_number, least=0, most=1),
    "tol": partial(check_number, above=0, most=1),
    "max_iter": check_count,
    "callback": _must_be("None or a function of one round", lambda value: value is None or callable(value)),
    "verbose": _must_be("a whole number or a boolean", lambda value: isinstance(value, (int, np.bool_, np.integer))),
}
ROW_LEVEL: dict[str, Check] = COMMON | {
    "cost": lambda name, value: check_cost(value),
    "alpha": partial(check_number, least=0, most=1),
    "max_rounds": partial(check_count, words=(None,)),
}
CLASS_LEVEL: dict[str, Check] = COMMON | {
    "cost": lambda name, value: check_cost(value, ("diffusion", "graph", "precomputed")),
    "evidence": _check_evidence,
    "marginal_strength": partial(check_number, least=0, most=1, words=("auto",)),
    "alpha": partial(check_number, least=0, most=1, words=("auto",)),
    "metric": _check_metric,
    "n_neighbors": partial(check_count, words=("auto",)),
    "diffusion": partial(check_number, above=0, below=1, words=("auto",)),
    "abstain_below": partial(check_number, least=0, most=1, words=(None,)),
    "label_noise": _must_be("None or 'auto'", lambda value: value is None or _is_auto(value)),
    "objective": check_objective,
    "max_rounds": partial(check_count, words=("auto", None)),
    "random_state": _check_random_state,
    "n_jobs": check_n_jobs,
    "warm_start": _must_be("True or False", lambda value: isinstance(value, (bool, np.bool_))),
}  # without class_prior, which is checked against the classes of y, and unlabeled, which may be any value


def check_row_level(params: Parameters) -> None:
    """Raise a ParameterError for the first parameter of `PaperOTP` that cannot be used."""
    for name, check in ROW_LEVEL.items():
        check(name, params[name])


def check_class_level(params: Parameters) -> None:
    """Raise a ParameterError for the first parameter of `OTP` that cannot be used."""
    for name, check in CLASS_LEVEL.items():
        check(name, params[name])
    if params["cost"] != "diffusion":
        _refuse_unused(params, f"cost={params['cost']!r}", metric="euclidean", n_neighbors="auto")
        if params["cost"] != "graph":
            _refuse_unused(params, f"cost={params['cost']!r}", diffusion="auto")


def _refuse_unused(params: Parameters, other: str, **defaults: Any) -> None:
    """Refuse parameters that have no effect with `other`, unless they have their default."""
    for name, default in defaults.items():
        value = params[name]
        if value is default or (isinstance(value, str) and value == default):
            continue
        raise ParameterError(name, f"={value!r} has no meaning with {other}; leave it at {default!r}.")


def evidence_sources(evidence: Any) -> list[EvidenceSource]:
    """The entries of `evidence` as named sources; classifiers without a name are named after their type."""
    found = []
    for entry in evidence:
        if isinstance(entry, str):
            found.append(EvidenceSource(entry))
        elif isinstance(entry, tuple):
            found.append(EvidenceSource(entry[0], entry[1]))
        else:
            same = [other for other in evidence if type(other) is type(entry)]
            number = next(number for number, other in enumerate(same, start=1) if other is entry)
            name = type(entry).__name__ + (f" {number}" if len(same) > 1 else "")
            found.append(EvidenceSource(name, entry))
    return found


class WithNamedClassifiers(BaseEstimator):
    """An estimator whose parameter `evidence` may hold pairs (name, classifier): nested parameters and metadata."""

    evidence: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator; with `deep`, also the named classifiers in ``evidence`` and theirs.

        Parameters
        ----------
        deep : bool

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, classifier in self._named_classifiers():
                params[name] = classifier
                if hasattr(classifier, "get_params"):
                    nested = classifier.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in nested.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``name=classifier`` and ``name__parameter=value`` reach named classifiers in ``evidence``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self
        """
        if "evidence" in params:
            self.evidence = params.pop("evidence")
        for name, _ in self._named_classifiers():
            if name in params:
                replaced = (name, params.pop(name))
                self.evidence = [
                    replaced if isinstance(entry, tuple) and entry[0] == name else entry
                    for entry in self.evidence or ()
                ]
        super().set_params(**params)
        return self

    def _named_classifiers(self) -> list[tuple[str, Any]]:
        """The pairs in `evidence`."""
        if isinstance(self.evidence, str) or not isinstance(self.evidence, Sequence):
            return []
        return [entry for entry in self.evidence if isinstance(entry, tuple) and len(entry) == 2]

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata to the classifiers in ``evidence``; see scikit-learn's user guide.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if isinstance(self.evidence, Sequence) and not isinstance(self.evidence, str):
            for source in evidence_sources(self.evidence):
                if hasattr(source.classifier, "get_metadata_routing"):
                    mapping = MethodMapping().add(caller="fit", callee="fit")
                    router.add(**{source.name: source.classifier}, method_mapping=mapping)
        return router

    def _route(self, sample_weight: Any, metadata: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Metadata of each classifier in `evidence`, by classifier name."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=sample_weight, **metadata)
            kept = {name: dict(methods.fit) for name, methods in routed.items()}
            return {name: {key: value for key, value in fit.items() if value is not None} for name, fit in kept.items()}
        if metadata:
            raise InputError(
                f"fit() got {', '.join(metadata)}, which is passed on to classifiers in evidence only with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        return {}


def row_level_config(params: Parameters) -> RowLevelConfig:
    """The configuration of the fit for the parameters of `PaperOTP`."""
    return RowLevelConfig(**_common(params), alpha=float(params["alpha"]), max_rounds=params["max_rounds"])


def class_level_config(params: Parameters, metadata: dict[str, dict[str, Any]]) -> ClassLevelConfig:
    """The configuration of the fit for the parameters of `OTP`.

    `metadata` is what is routed to the `fit` of each classifier in `evidence`.
    """
    return ClassLevelConfig(
        **_common(params),
        alpha=_number(params["alpha"]),
        max_rounds=AUTO_ROUNDS if isinstance(params["max_rounds"], str) else params["max_rounds"],
        sources=_wanted_sources(params, metadata),
        marginal_strength=_number(params["marginal_strength"]),
        class_prior=params["class_prior"],
        metric=params["metric"],
        n_neighbors=None if isinstance(params["n_neighbors"], str) else int(params["n_neighbors"]),
        diffusion=_number(params["diffusion"]),
        seed=int(check_random_state(params["random_state"]).randint(2**31 - 1)),
        n_jobs=effective_n_jobs(params["n_jobs"]),
    )


def _common(params: Parameters) -> dict[str, Any]:
    as_given = {name: params[name] for name in ("cost", "min_round_share", "tol", "max_iter")}
    return {**as_given, "epsilon": _number(params["epsilon"])}


def _number(value: Any) -> float | None:
    return None if isinstance(value, str) else float(value)


def _wanted_sources(params: Parameters, metadata: dict[str, dict[str, Any]]) -> tuple[EvidenceSource, ...] | None:
    featureless = isinstance(params["cost"], str) and params["cost"] in ("graph", "precomputed")
    if params["evidence"] is None or (isinstance(params["evidence"], str) and featureless):
        return ()
    if isinstance(params["evidence"], str):
        return None
    if len(params["evidence"]) and featureless:
        raise ParameterError(
            "evidence",
            f"={params['evidence']!r} needs the features of the rows, which cost={params['cost']!r} does not have. "
            "Leave evidence at 'auto' or set it to None.",
        )
    return tuple(
        EvidenceSource(source.name, source.classifier, metadata.get(source.name, {}))
        for source in evidence_sources(params["evidence"])
    )
