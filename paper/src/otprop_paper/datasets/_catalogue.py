"""The data sets known by name: what each must look like, and how the benchmark prepares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from otprop._validation import ParameterError, did_you_mean

Preprocessing = Literal["none", "standardize", "minmax", "range"]
PREPROCESSINGS: tuple[str, ...] = get_args(Preprocessing)


@dataclass(frozen=True)
class Entry:
    """One known data set.

    The benchmark applies `preprocessing` for every method, for the given `reason`. `paper_name` is the name in the
    paper's tables, None where the paper does not use the set. `sklearn_loader` and `openml_id` are other sources.
    """

    name: str
    about: str
    shape: tuple[int, int]
    class_counts: tuple[int, ...]
    class_names: tuple[str, ...]
    preprocessing: Preprocessing
    reason: str
    paper_name: str | None = None
    feature_names: tuple[str, ...] | None = None
    sklearn_loader: str | None = None
    openml_id: int | None = None
    generated: bool = False


_DIGITS = tuple("0123456789")
_IRIS_FEATURES = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")
_HEART_FEATURES = (
    *("age", "sex", "chest pain type", "resting blood pressure", "serum cholesterol", "fasting blood sugar"),
    *("resting electrocardiogram", "maximum heart rate", "exercise induced angina", "oldpeak", "slope"),
    *("major vessels", "thal"),
)
_DERMATOLOGY_FEATURES = (
    *("erythema", "scaling", "definite borders", "itching", "koebner phenomenon", "polygonal papules"),
    *("follicular papules", "oral mucosal involvement", "knee and elbow involvement", "scalp involvement"),
    *("family history", "melanin incontinence", "eosinophils in the infiltrate", "PNL infiltrate"),
    *("fibrosis of the papillary dermis", "exocytosis", "acanthosis", "hyperkeratosis", "parakeratosis"),
    *("clubbing of the rete ridges", "elongation of the rete ridges"),
    *("thinning of the suprapapillary epidermis", "spongiform pustule", "munro microabcess"),
    *("focal hypergranulosis", "disappearance of the granular layer"),
    *("vacuolisation and damage of basal layer", "spongiosis", "saw-tooth appearance of retes"),
    *("follicular horn plug", "perifollicular parakeratosis", "inflammatory mononuclear infiltrate"),
    "band-like infiltrate",
)
_PIXELS = "pixels share one scale: the whole table is brought to [0, 1] at once, no pixel is blown up"
_CURVE = "21 points of one curve with the same unit noise: the columns are comparable as they are"
_UNITS = "columns in different units (and yes/no columns): none may dominate by its unit"

_ENTRIES = (
    Entry(
        "iris",
        "flowers of three species, scikit-learn's copy",
        (150, 4),
        (50, 50, 50),
        ("setosa", "versicolor", "virginica"),
        "none",
        "four lengths in centimetres: one unit, and what the authors' released code uses",
        paper_name="Iris",
        feature_names=_IRIS_FEATURES,
        sklearn_loader="load_iris",
        openml_id=61,
    ),
    Entry(
        "heart",
        "UCI Statlog (Heart): heart disease absent or present",
        (270, 13),
        (150, 120),
        ("absent", "present"),
        "standardize",
        _UNITS,
        paper_name="Heart",
        feature_names=_HEART_FEATURES,
        openml_id=53,
    ),
    Entry(
        "ionosphere",
        "UCI Ionosphere: bad and good radar returns",
        (351, 34),
        (126, 225),
        ("b", "g"),
        "none",
        "all columns are normalised radar returns in [-1, 1]; standardising would inflate the near-constant ones",
        paper_name="Ionosphere",
        openml_id=59,
    ),
    Entry(
        "dermatology",
        "UCI Dermatology without age, the one column with missing values",
        (366, 33),
        (112, 61, 72, 49, 52, 20),
        (
            *("psoriasis", "seboreic dermatitis", "lichen planus", "pityriasis rosea"),
            *("cronic dermatitis", "pityriasis rubra pilaris"),
        ),
        "none",
        "grades from 0 to 3 given on one scale (family history: 0 or 1)",
        paper_name="Dermatology",
        feature_names=_DERMATOLOGY_FEATURES,
        openml_id=35,
    ),
    Entry(
        "waveform",
        "UCI Waveform, version 1: the published file",
        (5000, 21),
        (1657, 1647, 1696),
        ("0", "1", "2"),
        "none",
        _CURVE,
        paper_name="Waveform",
    ),
    Entry(
        "digits",
        "UCI optdigits: the training rows, then the test rows",
        (5620, 64),
        (554, 571, 557, 572, 568, 558, 558, 566, 554, 562),
        _DIGITS,
        "range",
        _PIXELS,
        paper_name="Digits",
        openml_id=28,
    ),
    Entry(
        "mnist10k",
        "the 10 000 test images of MNIST",
        (10_000, 784),
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
        _DIGITS,
        "range",
        _PIXELS,
        paper_name="MNIST",
        openml_id=554,
    ),
    Entry(
        "digits1797",
        "the test rows of optdigits, which the authors' released code uses",
        (1797, 64),
        (178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
        _DIGITS,
        "range",
        _PIXELS,
        sklearn_loader="load_digits",
    ),
    Entry(
        "wine",
        "UCI Wine: chemical analyses of three cultivars",
        (178, 13),
        (59, 71, 48),
        ("class_0", "class_1", "class_2"),
        "standardize",
        _UNITS,
        sklearn_loader="load_wine",
    ),
    Entry(
        "breast_cancer",
        "UCI Breast Cancer Wisconsin (Diagnostic)",
        (569, 30),
        (212, 357),
        ("malignant", "benign"),
        "standardize",
        _UNITS,
        sklearn_loader="load_breast_cancer",
    ),
    Entry(
        "mnist70k",
        "all of MNIST, the 60 000 training images first",
        (70_000, 784),
        (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        _DIGITS,
        "range",
        _PIXELS,
        openml_id=554,
    ),
    Entry(
        "covtype",
        "UCI Covertype: 10 measurements and 44 yes/no columns",
        (581_012, 54),
        (211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510),
        (
            *("Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow"),
            *("Aspen", "Douglas-fir", "Krummholz"),
        ),
        "minmax",
        "metres and degrees beside yes/no columns so rare that standardising would let them dominate",
    ),
    Entry(
        "waveform-generated",
        "drawn from Breiman's formula, any number of rows",
        (5000, 21),
        (),
        ("0", "1", "2"),
        "none",
        _CURVE,
        generated=True,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
_ALIASES = {entry.paper_name.lower(): entry.name for entry in _ENTRIES if entry.paper_name}


def find_entry(name: str) -> Entry:
    """The entry of a name, the paper's names included, in any case."""
    key = name.strip().lower()
    key = _ALIASES.get(key, key)
    if key in CATALOGUE:
        return CATALOGUE[key]
    near = did_you_mean(key, dict.fromkeys([*CATALOGUE, *_ALIASES]), most=3) or "."
    raise ParameterError(
        "name",
        f"{name!r} is not a known data set{near} Known: {', '.join(CATALOGUE)}. "
        "A file of your own is named by its path, ending in .csv, .parquet or .npz, for instance.",
    )
