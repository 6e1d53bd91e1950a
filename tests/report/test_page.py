"""Numbers as the text of a page."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from otprop.report.page import format_percent, format_threshold


@given(st.floats(0, 1))
def test_format_percent_is_near_the_share_and_rounds_only_0_and_1_to_themselves(share):
    text = format_percent(share)
    number = float(text.split()[-2].replace("under", "").replace("over", ""))
    assert abs(number / 100 - share) <= 0.005
    assert (text.split()[0] in ("0", "100")) == (share in (0, 1))


@given(st.floats(0, 1))
def test_format_threshold_is_never_above_the_confidence(confidence):
    assert confidence - 1e-4 < float(format_threshold(confidence)) <= confidence + np.finfo(float).eps
