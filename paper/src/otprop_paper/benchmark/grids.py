"""The grids of parameters, declared before any tuning, in units of the scale of the data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from otprop_paper.baselines._frame import typical_distance

Params = dict[str, Any]

SIGMAS = tuple(float(f"{value:.4g}") for value in np.geomspace(0.1, 10, 15))  # x median nearest-neighbour distance
EPSILONS = tuple(float(f"{value:.4g}") for value in np.geomspace(0.01, 10, 7))  # x its square
NEIGHBORS = (5, 7, 10, 15, 20, 30)
STRENGTHS = (0.5, 0.8, 0.9, 0.95, 0.99)  # of spreading
LAMBDAS = (1.0, 10.0, 100.0, 1000.0)
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)  # C of logistic regression
LEAVES = (1, 3)


@dataclass(frozen=True)
class Grid:
    """Candidates of a method, and the one to use where nothing can be chosen.

    Attributes
    ----------
    axes : dict of str to tuple, the values of each parameter in order
    default : dict of str, one value of each
    """

    axes: dict[str, tuple[Any, ...]]
    default: Params

    def candidates(self) -> list[Params]:
        """All combinations, in order; one empty one where there is nothing to choose."""
        return [dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values())]

    def steps_from_default(self, params: Params) -> int:
        """How many steps along the axes lie between `params` and the default."""
        return sum(
            abs(values.index(params[name]) - values.index(self.default[name])) for name, values in self.axes.items()
        )

    def thinned(self, **axes: tuple[Any, ...]) -> Grid:
        """The same grid with fewer values of some parameters; a default left out becomes the nearest one kept."""
        default = dict(self.default)
        for name, values in axes.items():
            steps = {
                value: abs(self.axes[name].index(value) - self.axes[name].index(default[name])) for value in values
            }
            default[name] = min(values, key=steps.__getitem__)
        return Grid(self.axes | axes, default)


NOTHING = Grid({}, {})
SIGMA = Grid({"sigma": SIGMAS}, {"sigma": 1.0})
SPREADING = Grid({"sigma": SIGMAS, "alpha": STRENGTHS}, {"sigma": 1.0, "alpha": 0.99})
NEIGHBORHOOD = Grid({"n_neighbors": NEIGHBORS, "alpha": STRENGTHS}, {"n_neighbors": 10, "alpha": 0.99})
EPSILON = Grid({"epsilon": EPSILONS}, {"epsilon": 0.1})
LAMBDA = Grid({"strength": LAMBDAS}, {"strength": 100.0})
COST = Grid({"C": COSTS}, {"C": 1.0})
LEAF = Grid({"leaf": LEAVES}, {"leaf": 1})


def median_neighbor_distance(X: np.ndarray) -> float:
    """The median distance of a row to its nearest other row: the unit of sigma, its square that of epsilon."""
    nearest = NearestNeighbors(n_neighbors=1).fit(X).kneighbors()[0][:, 0]
    extent = float(np.ptp(X, axis=0).max()) or 1.0
    return typical_distance(nearest, extent)
