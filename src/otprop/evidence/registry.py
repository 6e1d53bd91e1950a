"""The sources that `OTP(evidence=...)` knows by name, in the order in which ``evidence="auto"`` uses them."""

from __future__ import annotations

from otprop.evidence.base import NamedSource
from otprop.evidence.boosting import BOOSTING
from otprop.evidence.forest import FOREST, RANDOM_FOREST
from otprop.evidence.gaussian import GAUSSIAN
from otprop.evidence.linear import LINEAR

NAMED_SOURCES: dict[str, NamedSource] = {
    source.name: source for source in (FOREST, RANDOM_FOREST, LINEAR, BOOSTING, GAUSSIAN)
}
