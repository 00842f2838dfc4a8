"""Tables with numbers and categories, as the benchmarks of FAMD and MCA use them."""

from __future__ import annotations

from typing import Any

from benchmarks.data import SHARED

# Numbers and categories of each table, by the notes of its folder; columns of which most cells are missing are left out.
COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "penguins": (
        ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"),
        ("species", "island", "sex"),
    ),
    "penguins_raw": (
        ("Culmen Length (mm)", "Culmen Depth (mm)", "Flipper Length (mm)", "Body Mass (g)"),
        ("studyName", "Species", "Island", "Clutch Completion", "Sex"),
    ),
    "titanic": (("age", "sibsp", "parch", "fare"), ("survived", "pclass", "sex", "embarked")),
    "mpg": (("mpg", "displacement", "horsepower", "weight", "acceleration"), ("cylinders", "origin", "model_year")),
    "tips": (("total_bill", "tip", "size"), ("sex", "smoker", "day", "time")),
    "taxis": (
        ("passengers", "distance", "fare", "tip", "tolls", "total"),
        ("color", "payment", "pickup_borough", "dropoff_borough"),
    ),
    "planets": (("number", "orbital_period", "distance", "year"), ("method",)),
    "msleep": (("sleep_total", "awake", "bodywt"), ("vore", "order", "conservation")),
    "starwars": (("height", "mass"), ("hair_color", "eye_color", "sex", "gender")),
}


def complete(name: str) -> tuple[Any, tuple[str, ...]]:
    """The rows of a table without missing cells, as a frame with categories as text, and the names of the categories."""
    import pandas as pd

    numbers, categories = COLUMNS[name]
    frame = pd.read_csv(SHARED / "tables-mixed" / f"{name}.csv")[[*numbers, *categories]].dropna()
    frame = frame.astype({**dict.fromkeys(numbers, float), **dict.fromkeys(categories, str)})
    return frame.reset_index(drop=True), categories
