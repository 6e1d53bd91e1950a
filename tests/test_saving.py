"""Ids of the classes that a model file can hold."""

from __future__ import annotations

import pytest

from otprop import OTP
from otprop._saving import saved_as, saved_class


def test_an_id_belongs_to_one_class():
    class Another:
        pass

    with pytest.raises(ValueError, match="the id 'otp' belongs to OTP"):
        saved_as("otp")(Another)
    assert saved_class(OTP) is not None
    assert saved_class(Another) is None
