"""The command `otprop`."""

from otprop.cli._main import main

__all__ = ["main"]
