"""Folders of pictures with five labels per class: `otprop.label` on the folder beside `OTP()` on raw grey pixels.

Sets on which nothing was chosen: MNIST test images, crops of nine photographs of scikit-image and scikit-learn (which
photograph is it from?), faces and other crops of scikit-image (`lfw_subset`), and shapes of random colour, place, size
and angle, drawn here. A line per set and draw goes to benchmarks/results/pictures.csv. Needs scikit-image, which is not
a dependency.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import sklearn.datasets
from PIL import Image, ImageDraw

import otprop
from common import argument_parser, load, write_csv
from otprop import OTP

PER_CLASS = 5
CROPPED = ("grass.png", "chelsea.png", "rocket.jpg", "retina.jpg", "motorcycle_left.png", "text.png", "moon.png")
SHAPES = ("disc", "ring", "triangle", "cross", "dots")

Set = tuple[str, list[Image.Image], np.ndarray]


def sets() -> Iterator[Set]:
    import skimage.data

    X, y = load("mnist10k")
    rows = np.random.default_rng(0).choice(len(X), 1000, replace=False)
    digits = [Image.fromarray(X[row].reshape(28, 28).astype(np.uint8)) for row in rows]
    yield "MNIST", digits, y[rows].astype(str)
    folder = Path(skimage.data.__file__).parent
    photographs = [folder / name for name in CROPPED]
    photographs += [Path(sklearn.datasets.__file__).parent / "images" / name for name in ("china.jpg", "flower.jpg")]
    yield "crops of photographs", *crops(photographs)
    faces = np.load(folder / "lfw_subset.npy")
    pictures = [Image.fromarray((255 * face).astype(np.uint8)) for face in faces]
    yield "faces", pictures, np.array(["face"] * 100 + ["other"] * 100)
    yield "drawn shapes", *shapes(800)


def crops(paths: list[Path]) -> tuple[list[Image.Image], np.ndarray]:
    rng, found, names = np.random.default_rng(1), [], []
    for path in paths:
        image = Image.open(path).convert("RGB")
        for _ in range(100):
            side = min(int(96 * rng.uniform(0.7, 1.3)), *image.size)
            left, top = (int(rng.integers(0, size - side + 1)) for size in image.size)
            found.append(image.crop((left, top, left + side, top + side)))
            names.append(path.stem)
    return found, np.array(names)


def shapes(n: int, side: int = 96) -> tuple[list[Image.Image], np.ndarray]:
    rng, found = np.random.default_rng(1), []
    names = np.array([SHAPES[number % len(SHAPES)] for number in range(n)])
    for name in names:
        back, front = (tuple(rng.integers(0, 256, 3).tolist()) for _ in range(2))
        image = Image.new("RGB", (side, side), back)
        draw, r = ImageDraw.Draw(image), rng.uniform(0.2, 0.4) * side
        (x, y), turn = rng.uniform(r, side - r, 2), rng.uniform(0, 2 * np.pi)
        box = (x - r, y - r, x + r, y + r)
        if name == "disc":
            draw.ellipse(box, fill=front)
        elif name == "ring":
            draw.ellipse(box, outline=front, width=int(r / 3))
        elif name == "triangle":
            draw.polygon([(x + r * np.cos(turn + a), y + r * np.sin(turn + a)) for a in (0, 2.1, 4.2)], fill=front)
        elif name == "cross":
            for angle in (turn, turn + np.pi / 2):
                dx, dy = r * np.cos(angle), r * np.sin(angle)
                draw.line([(x - dx, y - dy), (x + dx, y + dy)], fill=front, width=int(r / 2.5))
        else:
            for a, b in rng.uniform(-r, r, (25, 2)):
                draw.ellipse((x + a - 3, y + b - 3, x + a + 3, y + b + 3), fill=front)
        found.append(image)
    return found, names


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--draws", type=int, default=3)
    draws = parser.parse_args().draws
    rows = []
    for name, pictures, y in sets():
        raw = np.stack([np.asarray(one.convert("L").resize((28, 28)), dtype=float).ravel() / 255 for one in pictures])
        with tempfile.TemporaryDirectory() as folder:
            files = np.array([f"{number:05d}.png" for number in range(len(pictures))])
            for file, picture in zip(files, pictures, strict=True):
                picture.save(Path(folder) / file)
            for draw in range(draws):
                rng = np.random.default_rng(draw)
                given = np.zeros(len(y), dtype=bool)
                for label in np.unique(y):
                    given[rng.choice(np.flatnonzero(y == label), PER_CLASS, replace=False)] = True
                outcome = otprop.label(folder, labels=dict(zip(files[given], y[given], strict=True))).outcome
                found = np.array(outcome.classes)[outcome.codes]
                pixels = OTP().fit(raw, np.where(given, y.astype(object), None)).transduction_
                rows.append(
                    {
                        "set": name,
                        "draw": draw,
                        "pictures": len(y),
                        "classes": len(np.unique(y)),
                        "labels": int(given.sum()),
                        "otprop": float(np.mean(found[~given] == y[~given])),
                        "raw_pixels": float(np.mean(pixels[~given] == y[~given])),
                        "announced_error": outcome.expected_error,
                    }
                )
                print(rows[-1], flush=True)
    write_csv("pictures.csv", rows)


if __name__ == "__main__":
    main()
