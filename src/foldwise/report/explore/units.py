"""Values of columns in words: in their units, whole numbers without decimals, levels of encoded categories by their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from foldwise.data.block import Floats
from foldwise.report.explore.words import LONGEST, listed, name_of, share_of, values_in_units
from foldwise.selection.explore.result import (
    ClusterSummary,
    ColumnSummary,
    Condition,
    Exploration,
    Overrepresented,
    Trait,
)

_USEFUL = 0.5  # a rule must be right, and find the rows of its group, at least this often
_LARGE = 0.5  # standard deviations: the difference from which a group is "high" rather than "higher", as in its name
_MOSTLY = 0.75


@dataclass(frozen=True)
class Units:
    """What is known of columns by their names: deviations, which hold whole numbers, which stand for a level of a category."""

    deviation: dict[str, float] = field(default_factory=dict)
    whole: frozenset[str] = frozenset()
    levels: dict[str, tuple[str, str]] = field(default_factory=dict)  # "sex=female": the category and the level
    pairs: dict[str, dict[str, str]] = field(default_factory=dict)  # how a column of yes and no writes true and false

    @classmethod
    def of(cls, found: Exploration) -> Units:
        """Of the columns that were explored."""
        known = {one.name: one.deviation for one in found.overview.columns if one.deviation is not None}
        if found.profile is not None:
            known |= dict(zip(found.names, map(float, found.profile.deviation), strict=False))
        whole = set()
        if found.points is not None:
            for j, name in enumerate(found.points.columns):
                cells = found.points.values[:, j]
                cells = cells[np.isfinite(cells)]
                if len(cells) and np.array_equal(cells, np.round(cells)):
                    whole.add(name)
        pairs = {one.name: words for one in found.overview.columns if (words := own_words(one))}
        levels = levels_of(found)
        levels = {name: (one, pairs.get(one, {}).get(level.lower(), level)) for name, (one, level) in levels.items()}
        return cls(known, frozenset(whole), levels, pairs)

    def word(self, column: str, level: str) -> str:
        """A level as the data write it."""
        return self.pairs.get(column, {}).get(level.lower(), level)

    def values(self, column: str, values: Floats | Sequence[float]) -> list[str]:
        """Values with as many decimals as they deserve."""
        given = np.asarray(values, dtype=np.float64)
        if column in self.levels:
            return [share_of(float(value)) if value == value else "-" for value in given]
        if column in self.whole and np.array_equal(given, np.round(given)):
            return [f"{value:,.0f}" for value in given]
        return values_in_units(given, self.deviation.get(column))


def own_words(one: ColumnSummary) -> dict[str, str]:
    """The words that a column of yes and no has for true and false; none if it has no others.

    >>> own_words(ColumnSummary("smokes", "boolean", "used", "ja and nein", 0))
    {'true': 'ja', 'false': 'nein'}
    """
    yes, apart, no = one.why.partition(" and ")
    if one.kind != "boolean" or not apart or not yes or not no or " " in yes or " " in no or yes == "0":
        return {}
    return {"true": yes, "false": no}


def levels_of(found: Exploration) -> dict[str, tuple[str, str]]:
    """The columns that stand for a level of an encoded category, with the names of both."""
    known = {}
    for group in getattr(found.pca, "indicators_", None) or ():
        for j, level in enumerate(group.levels):
            if group.first + j < len(found.names):
                known[found.names[group.first + j]] = (str(group.name), str(level))
    return known


# ---------------------------------------------------------------- traits


def trait_words(trait: Trait, units: Units) -> str:
    """A column in which a group differs, in the units of the data; a category by how many rows have the level."""
    if trait.column in units.levels:
        return f"{_having(trait, units)} ({share_of(trait.overall)} of all rows)"
    mean, overall = units.values(trait.column, [trait.mean, trait.overall])
    return f"{_side(trait.difference)} {name_of(trait.column)} ({mean} on average, {overall} overall)"


def _side(difference: float) -> str:
    words = ("high", "low") if abs(difference) >= _LARGE else ("higher", "lower")
    return words[difference < 0]


def _having(trait: Trait, units: Units) -> str:
    category, level = (name_of(one) for one in units.levels[trait.column])
    share = min(max(trait.mean, 0.0), 1.0)
    if share > 1 - 1e-9:
        return f"all have {category} {level}"
    return f"none has {category} {level}" if share < 1e-9 else f"{share_of(share)} have {category} {level}"


def traits_told(one: ClusterSummary, units: Units, most: int) -> list[Trait]:
    """The largest differences; where all rows have one level of a category, the others go without saying."""
    told: list[Trait] = []
    settled: set[str] = set()
    for trait in (_positive(trait, units) for trait in one.traits):
        category = units.levels[trait.column][0] if trait.column in units.levels else None
        if category is not None and category in settled:
            continue
        told.append(trait)
        if category is not None and (trait.mean > 1 - 1e-9 or _two_levels(category, units)):
            settled.add(category)
    return told[:most]


def _positive(trait: Trait, units: Units) -> Trait:
    """Of a category with two levels, the level that more rows of the group have: "all yes" rather than "none no"."""
    if trait.column not in units.levels or trait.mean >= 0.5 or not _two_levels(units.levels[trait.column][0], units):
        return trait
    other = [
        one for one, (name, _) in units.levels.items() if name == units.levels[trait.column][0] and one != trait.column
    ]
    if not other:
        return trait
    return Trait(other[0], 1.0 - trait.mean, 1.0 - trait.overall, -trait.difference)


def _two_levels(category: str, units: Units) -> bool:
    return sum(name == category for name, _ in units.levels.values()) <= 2


def traits_sentence(traits: Sequence[Trait], units: Units) -> str:
    """What a group has, after its name: "has high length (...)", or ": all have sex female (...), high fare (...)"."""
    words = [trait_words(trait, units) for trait in traits]
    if any(trait.column in units.levels for trait in traits):
        return f": {listed(words)}"
    return f" has {listed(words)}"


def level_words(level: Overrepresented, units: Units) -> str:
    """A level that a group has more often than the table."""
    share = "all" if level.share > 1 - 1e-9 else share_of(level.share)
    word = name_of(units.word(level.column, level.level))
    return f"{share} have {name_of(level.column)} {word} ({share_of(level.overall)} of all rows)"


def shown_name(one: ClusterSummary, units: Units) -> str:
    """The proposed name; "mostly" becomes "all" where it is so, and levels of encoded categories are named as such."""
    name, settled = one.name, set[str]()
    for level in one.categories:
        if level.share > 1 - 1e-9:
            name = name.replace(f"mostly {level.level}", f"all {level.level}")
    for trait in one.traits:
        if trait.column not in units.levels:
            continue
        told = _positive(trait, units)
        category, level_ = units.levels[told.column]
        for side in ("high", "low", "higher", "lower"):
            piece = f"{side} {trait.column}"
            if not _has_piece(name, piece):
                continue
            if category in settled:
                name = _without(name, piece)
            else:
                name = name.replace(piece, f"{_much(told)} {category} {level_}", 1)
            if told.mean > 1 - 1e-9 or _two_levels(category, units):
                settled.add(category)
            break
    return name


def group_name(one: ClusterSummary, units: Units, most: int = 60) -> str:
    """The number and the proposed name of a group."""
    return f"{one.number}: {name_of(shown_name(one, units), most)}" if one.name else f"group {one.number}"


def _has_piece(name: str, piece: str) -> bool:
    return f", {piece}, " in f", {name}, "


def _without(name: str, piece: str) -> str:
    return f", {name}, ".replace(f", {piece}, ", ", ", 1).removeprefix(", ").removesuffix(", ")


def _much(trait: Trait) -> str:
    if trait.mean > 1 - 1e-9 or trait.mean < 1e-9:
        return "all" if trait.mean > 0.5 else "no"
    if trait.difference < 0:
        return "fewer"
    return "mostly" if trait.mean >= _MOSTLY else "more"


# ---------------------------------------------------------------- rules


def rule_words(one: ClusterSummary, units: Units, longest: int = LONGEST, *, brief: bool = False) -> str:
    """The rule of a group, its numbers in the units of the data; "" without one that is more often right than not."""
    if one.rule is None or not one.rule.conditions or min(one.rule.precision, one.rule.recall) < _USEFUL:
        return ""
    by_column: dict[str, list[Condition]] = {}
    for condition in one.rule.conditions:
        by_column.setdefault(condition.column, []).append(condition)
    said = []
    for column, conditions in by_column.items():
        name, verb = name_of(column, longest), " " if brief else " is "
        levels = [condition.value for condition in conditions if isinstance(condition.value, str)]
        said += [f"{name} is {name_of(units.word(column, level), longest)}" for level in levels]
        numbers = [condition for condition in conditions if not isinstance(condition.value, str)]
        if numbers:
            told = _between(column, numbers, units)
            said.append(f"{name} is {told}" if told[0].isdigit() or told[0] == "-" else f"{name}{verb}{told}")
    return " and ".join(said)


def _between(column: str, conditions: Sequence[Condition], units: Units) -> str:
    """Conditions on the numbers of one column: "above 2", "at most 3", "between 2 and 3"; for whole numbers "at least 3"."""
    lows = [float(one.value) for one in conditions if one.sign == ">"]
    highs = [float(one.value) for one in conditions if one.sign == "<="]
    low, high = max(lows, default=-math.inf), min(highs, default=math.inf)
    whole = column in units.whole
    if whole:
        low, high = math.floor(low) + 1 if lows else low, math.floor(high) if highs else high
    shown = iter([f"{value:,.12g}" for value in (low, high) if math.isfinite(value)])  # as they were measured
    if lows and highs:
        first, second = next(shown), next(shown)
        return first if first == second else f"between {first} and {second}"
    return f"{'at least' if whole else 'above'} {next(shown)}" if lows else f"at most {next(shown)}"
