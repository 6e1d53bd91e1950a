"""OTP in two settings that are quick, and labels to hide."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from otprop import OTP


def geometry(**parameters: Any) -> OTP:
    """Our way without classifiers: the geometry alone, which is quick."""
    return OTP(**({"evidence": None} | parameters))


def nearness(**parameters: Any) -> OTP:
    """Classes that ship over a cost between rows, without classifiers."""
    return OTP(**({"cost": "sqeuclidean", "evidence": None} | parameters))


def hide(y: np.ndarray, share: float, seed: int = 0) -> np.ndarray:
    """`y` with -1 for all but a stratified share of its entries."""
    kept, _ = train_test_split(np.arange(len(y)), train_size=share, stratify=y, random_state=seed)
    hidden = np.full(len(y), -1)
    hidden[kept] = y[kept]
    return hidden
