"""
A mixed table from a DataFrame
==============================

A table with numbers, categories, dates, free text and missing cells. :func:`otprop.label` turns the columns into
features, skips identifiers and constants, labels the rows and reports what it did.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import otprop

here = Path.cwd()
folder = next(path / "examples" for path in (here, *here.parents) if (path / "examples").is_dir())
lots = pd.read_csv(folder / "orchard.csv")
print(lots[["weight", "colour", "picked", "remarks", "variety"]].head(3).to_string())

# %%
# 40 of 3 000 lots have a variety. One call labels the others.

result = otprop.label(lots, target="variety")
print(result)

# %%
# The result is the table with the label, certainty, confidence, round and source of each row. The truth is known here
# and was not used.

table = result.table
truth = pd.read_csv(folder / "orchard_truth.csv").set_index("lot")["variety"]
table["right"] = table["variety_label"].to_numpy() == truth[table["lot"]].to_numpy()
found = table[table["variety_source"] == "propagated"]
print(f"announced {result.model.expected_error_:.1%} wrong, really {1 - found['right'].mean():.1%}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
found.groupby(["variety_label", "right"]).size().unstack().plot.barh(
    stacked=True, color=["tab:red", "tab:blue"], ax=axes[0], ylabel="", xlabel="rows"
)
axes[1].hist(
    [found.loc[~found["right"], "variety_confidence"], found.loc[found["right"], "variety_confidence"]],
    bins=20, stacked=True, color=["tab:red", "tab:blue"], label=["wrong", "right"],
)  # fmt: skip
axes[1].set(xlabel="confidence", ylabel="rows", yscale="log")
axes[1].legend()
plt.show()
