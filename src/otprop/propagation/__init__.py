"""Rounds of labelling: class-level and row-level fits, their predictors, class shares and calibration."""
