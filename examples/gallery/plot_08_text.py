"""
A table of text
===============

Free text is a column like any other: its words and character n-grams become features. The example uses messages to a
shop, generated from a few patterns; 24 of them are labelled.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import otprop

PATTERNS = {
    "billing": ["charged twice for order {}", "the invoice {} has a wrong total", "no refund yet for {}"],
    "delivery": ["parcel {} has not arrived", "the courier left {} at the wrong door", "where is shipment {}"],
    "defect": ["{} stopped working after a day", "{} came broken out of the box", "{} leaks and smells"],
}
THINGS = ["the blue kettle", "a reading lamp", "my radio", "the garden hose", "this alarm clock", "one heater"]
ENDINGS = ["please help", "thank you", "this is the second time I write", "", "I need it for a birthday"]
random = np.random.default_rng(0)
rows = []
for _ in range(300):
    topic = random.choice(list(PATTERNS))
    text = random.choice(PATTERNS[topic]).format(random.choice(THINGS))
    rows.append({"message": f"{text}, {random.choice(ENDINGS)}".strip(", "), "truth": topic})
messages = pd.DataFrame(rows)
messages["topic"] = messages["truth"].where(messages.index < 24)
print(messages["message"].head(4).to_string())

result = otprop.label(messages, target="topic", ignore=["truth"])
table = result.table
print(result)
print(f"{(table['topic_label'] == messages['truth']).mean():.1%} of the labels are right")

# %%
# If words alone do not separate the classes, use a local language model (``text_model=``). Nothing is downloaded.

counts = pd.crosstab(table["truth"], table["topic_label"]).reindex(
    index=list(PATTERNS), columns=list(PATTERNS), fill_value=0
)
figure, axis = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
axis.imshow(counts, cmap="Blues")
for (line, column), count in np.ndenumerate(counts.to_numpy()):
    axis.text(column, line, count, ha="center", va="center", color="white" if count > 50 else "black")
axis.set_xticks(range(3), counts.columns)
axis.set_yticks(range(3), counts.index)
axis.set(xlabel="label found", ylabel="true topic")
plt.show()
