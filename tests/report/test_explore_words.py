"""Words of the report on an exploration: one verdict per group, notes that matter, ties, encoded categories, rules."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import foldwise as fw
from foldwise.report.explore import explore_report, summary_of
from foldwise.report.explore.cautions import alike_pairs, cautions
from foldwise.report.explore.meaning import meaning
from foldwise.report.explore.sentences import sentences
from foldwise.report.explore.units import Units, rule_words, shown_name, trait_words, traits_told
from foldwise.report.explore.votes import direction_votes, vote_words
from foldwise.report.html import as_html
from foldwise.report.scree_rules import scree_with_rules
from foldwise.report.values import Chart, Group, Note
from foldwise.selection.components import ComponentChoice
from foldwise.selection.explore.result import ClusterSummary, Condition, Overrepresented, Rule, Trait
from foldwise.selection.votes import Vote, decided

from .explorations import blobs
from .explorations import penguins as make_penguins


@cache
def penguins():
    return make_penguins()


def parts_of(report):
    for part in report.parts:
        yield from (part.parts if isinstance(part, Group) else [part])


def group(traits=(), categories=(), conditions=(), name=""):
    rule = Rule(tuple(conditions), 1.0, 0.9) if conditions else None
    return ClusterSummary(0, name, 10, 0.1, tuple(traits), tuple(categories), rule, ())


# ---------------------------------------------------------------- verdicts


def test_a_group_has_one_verdict_wherever_it_is_told():
    found = penguins()
    assert set(found.stability.verdicts) == {"very stable"}
    summaries = (replace(found.summaries[0], verdict="could be noise"), replace(found.summaries[1], verdict="stable"))
    found = replace(found, summaries=summaries)
    report, told = explore_report(found), summary_of(found)
    chart = next(part for part in parts_of(report) if getattr(part, "title", "") == "Are the groups found again?")
    drawn = chart.draw()
    assert "could be chance" in drawn
    assert "very stable" not in drawn
    assert chart.alt == "Group 1 is stable; group 0 could be chance."
    assert told["groups"]["stability"]["verdicts"] == ["could be noise", "stable"]
    assert told["groups"]["stability"]["sentence"] == chart.alt
    assert "of which 1 is stable and 1 could be chance when other rows are drawn." in sentences(found)[2]
    assert "group 0 could be chance" in sentences(found)[4]
    assert "could be chance" in str(report)
    assert "very stable" not in str(report)
    page = as_html(report)
    assert "Could be chance: it is found again" in page
    assert "ery stable" not in page


# ---------------------------------------------------------------- notes


@pytest.mark.parametrize(
    ("command", "remedy"),
    [("foldwise explore x.csv", "--missing-values 999,-9"), ("fw.explore(x)", "missing_values=['999', '-9']")],
)
def test_values_that_may_stand_for_missing_come_first_with_a_remedy(command, remedy):
    notes = ("an odd column", "may stand for missing: 999 of age (24 cells), -9 of height (3 cells)")
    overview = replace(penguins().overview, notes=notes)
    found = replace(penguins(), overview=overview, command=command, sampled_rows=100)
    careful = sentences(found)[-1]
    assert careful.startswith(
        "Be careful: 999 of age (24 cells), -9 of height (3 cells) may stand for missing (if so, "
    )
    assert remedy in careful
    assert cautions(found)[0] in careful
    report = explore_report(found)
    first = next(part for part in report.parts if part.only == "page")
    assert first.title == "How the table was understood"
    assert not first.collapsed
    lines = first.parts[0].text.splitlines()
    assert lines[0].startswith("999 of age")
    assert lines[1] == "An odd column."
    assert str(report).count("999 of age") == 1


def test_left_out_rows_and_the_sheet_that_was_read_are_cautions():
    notes = ("row 9 (Total) is no record and was left out: 12", "2 sheets (a, b); read: a")
    found = replace(penguins(), overview=replace(penguins().overview, notes=notes))
    careful = sentences(found)[-1]
    assert "row 9 (Total) is no record and was left out" in careful
    assert "2 sheets (a, b); read: a" in careful


def test_one_cloud_on_which_the_ways_of_counting_disagree():
    found = blobs(1)
    votes = tuple(Vote(rule, k, k, k, "") for rule, k in (("dip", 1), ("bic", 1), ("gap", 3), ("icl", 1), ("x", 3)))
    found = replace(found, number=replace(found.number, votes=votes, strength=0.6, runner_up=3))
    assert "There are no separate groups" in sentences(found)[2]
    assert "the ways of counting groups disagree (2 of 5 see groups, most often 3" in sentences(found)[-1]


def test_columns_in_their_own_units_are_a_caution():
    found = penguins()
    pca = fw.PCA(2).fit(np.random.default_rng(0).standard_normal((200, 4)) * [1.0, 1.2, 1.5, 3.0])
    reason = "columns were used as they are, as their spreads differ only 3.0-fold"
    told = cautions(replace(found, pca=pca, scale=False, scale_reason=reason))
    assert any("body_mass_g" in one and "own units" in one and "standardise" in one for one in told)
    assert not any("own units" in one for one in cautions(found))


# ---------------------------------------------------------------- counts


def test_unusual_rows_are_counted_once():
    found = penguins()
    out = replace(found.outliers, t2_count=5, residual_count=4, count=8)
    found = replace(found, outliers=out)
    report = explore_report(found)
    assert next(fact for fact in report.facts if fact.name == "unusual rows").value == 8
    assert "unusual rows: 8 rows lie far from the others" in str(report)
    assert "counted from 0" in " ".join(str(report).split())
    assert summary_of(found)["unusual_rows"]["count"] == 8


# ---------------------------------------------------------------- votes and directions


def test_a_tie_is_told_as_a_tie():
    say = {"a": (1, 1, 3), "b": (2, 2, 3), "c": (3, 3, 3), "d": (1, 1, 1), "e": (3, 2, 3)}
    votes = [Vote(rule, *numbers, reason="") for rule, numbers in say.items()]
    assert decided(votes) == "1 and 3 have as many votes each, and 3 is in the range of most rules"
    choice = ComponentChoice.of(votes)
    assert choice.agreed == 3
    assert "most votes" not in choice.sentence
    assert direction_votes(choice).startswith("40 % of the votes, from 2 of 5 rules; 1 and 3 have as many votes each")
    told = sentences(replace(penguins(), components=choice))[1]
    assert told.startswith("There are perhaps three directions that matter (40 % of the votes")
    assert decided(votes[:4]) == ""
    assert ComponentChoice.of(votes[:4]).sentence.startswith("1 component stands out")


def test_the_words_for_directions_follow_the_votes():
    votes = [Vote(rule, 1, 1, 1, "") for rule in "abcd"]
    for others, word in ((0, "clearly"), (1, "clearly"), (2, "probably"), (5, "perhaps")):
        more = [Vote(str(i), 2 + i, 2 + i, 2 + i, "") for i in range(others)]
        told = sentences(replace(penguins(), components=ComponentChoice.of([*votes, *more])))[1]
        assert told.startswith(f"There is {word} one direction that matters")


def test_scree_says_what_was_chosen():
    assert "b: 2 (chosen)" in scree_with_rules([0.6, 0.4], [("a", 1), ("b", 2)], 2)


def test_the_other_pole_is_named_if_it_is_strong():
    names = ("flipper", "mass", "length", "depth")
    assert meaning(np.array([0.58, 0.55, 0.46, -0.40]), names) == "flipper, mass and length against depth"
    assert meaning(np.array([0.62, 0.58, 0.48, -0.22]), names) == "flipper, mass and length"


def test_the_share_of_the_votes_is_told_with_their_number():
    number = penguins().number
    chart = next(part for part in parts_of(explore_report(penguins())) if "share of the votes" in _drawn(part))
    assert "share of the votes" in chart.draw()
    assert vote_words(number) in chart.caption
    assert f"{100 * number.strength:.0f} % of the votes" in vote_words(number)


def _drawn(part):
    return (part.draw() or "") if isinstance(part, Chart) else ""


# ---------------------------------------------------------------- encoded categories


LEVELS = {f"pclass={i}": ("pclass", str(i)) for i in (1, 2, 3)} | {f"sex={one}": ("sex", one) for one in ("f", "m")}


def test_levels_of_a_category_are_shares_of_rows():
    units = Units({"fare": 10.0}, frozenset(), LEVELS)
    assert trait_words(Trait("pclass=2", 1.0, 0.21, 2.0), units) == "all have pclass 2 (21 % of all rows)"
    assert trait_words(Trait("pclass=3", 0.0, 0.55, -1.0), units) == "none has pclass 3 (55 % of all rows)"
    assert trait_words(Trait("sex=f", 0.8, 0.35, 0.9), units) == "80 % have sex f (35 % of all rows)"
    one = group([Trait("pclass=2", 1.0, 0.21, 2.0), Trait("pclass=3", 0.0, 0.55, -1.0), Trait("fare", 50.0, 33.0, 0.6)])
    assert [trait.column for trait in traits_told(one, units, 3)] == ["pclass=2", "fare"]
    other = group([Trait("sex=m", 0.0, 0.65, -1.3), Trait("sex=f", 1.0, 0.35, 1.3)], name="low sex=m, high sex=f")
    assert [trait_words(trait, units) for trait in traits_told(other, units, 3)] == [
        "all have sex f (35 % of all rows)"
    ]
    assert shown_name(other, units) == "all sex f"
    named = replace(one, name="high pclass=2, low pclass=3, high fare")
    assert shown_name(named, units) == "all pclass 2, high fare"


def test_columns_of_one_category_do_not_count_twice():
    found = penguins()
    names = ("kind=a", "kind=b", "length", "depth")
    correlation = np.eye(4)
    correlation[0, 1] = correlation[1, 0] = -1.0
    pca = SimpleNamespace(indicators_=(SimpleNamespace(name="kind", first=0, levels=("a", "b")),))
    told = SimpleNamespace(pca=pca, names=names, overview=replace(found.overview, correlation=correlation))
    assert not any({"kind=a", "kind=b"} == {one, two} for one, two, _ in alike_pairs(told))
    assert any({"kind=a", "length"} == {one, two} for one, two, _ in alike_pairs(told))


def test_an_encoded_table_is_told_in_the_words_of_its_categories(tmp_path):
    rng = np.random.default_rng(0)
    kinds = np.repeat(["low", "mid", "top"], 60)
    lines = [
        f"{kind},{'yes' if i % 2 else 'no'},{rng.normal(9 * ['low', 'mid', 'top'].index(kind)):.3f},{rng.normal():.3f}"
        for i, kind in enumerate(kinds)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["kind,even,length,depth", *lines]))
    found = fw.explore(str(path), categories="encode", n_clusters=3, max_clusters=4)
    told = " ".join(sentences(found)) + " ".join(cautions(found))
    assert "all have kind " in told
    page = as_html(explore_report(found))
    assert ">yes</text>" in page
    assert ">True</text>" not in page
    assert "kind=" not in sentences(found)[3]
    assert "say nearly the same" not in told or "kind=" not in told.split("say nearly the same")[0][-30:]


# ---------------------------------------------------------------- rules and names


def test_rules_in_whole_numbers_and_between():
    units = Units({"parch": 0.8, "age": 14.0}, frozenset({"parch"}))
    rule = [Condition("parch", ">", 0.5), Condition("age", ">", 20.0), Condition("parch", "<=", 3.4)]
    assert rule_words(group(conditions=rule), units) == "parch is between 1 and 3 and age is above 20"
    assert rule_words(group(conditions=[Condition("parch", "<=", 1.0)]), units) == "parch is at most 1"
    assert rule_words(group(conditions=[Condition("parch", ">", 1.0)]), units, brief=True) == "parch at least 2"
    same = [Condition("parch", ">", 1.0), Condition("parch", "<=", 2.0)]
    assert rule_words(group(conditions=same), units) == "parch is 2"
    ages = [Condition("age", ">", 20.0), Condition("age", "<=", 30.0), Condition("sex", "=", "f")]
    assert rule_words(group(conditions=ages), units) == "age is between 20 and 30 and sex is f"


def test_all_instead_of_mostly_and_higher_for_small_differences():
    level = Overrepresented("species", "Gentoo", 1.0, 0.36)
    assert shown_name(group(categories=[level], name="high x, mostly Gentoo"), Units()) == "high x, all Gentoo"
    assert shown_name(group(categories=[replace(level, share=0.99)], name="mostly Gentoo"), Units()) == "mostly Gentoo"
    assert trait_words(Trait("x", 2.0, 1.0, 0.3), Units()).startswith("higher x (")
    assert trait_words(Trait("x", 0.0, 1.0, -0.8), Units()).startswith("low x (")


def test_a_group_without_numeric_traits_has_a_card_like_the_others():
    found = penguins()
    differences = np.array(found.profile.differences)
    differences[0] = 0.0
    summaries = (replace(found.summaries[0], traits=(), name="close to the average"), found.summaries[1])
    found = replace(found, profile=replace(found.profile, differences=differences), summaries=summaries)
    page = as_html(explore_report(found))
    assert page.count("<h3 data-cluster=") >= 2
    assert "0: close to the average</h3>" in page


def test_the_model_of_the_groups_is_named_and_follows():
    report = explore_report(penguins())
    notes = [part.text for part in parts_of(report) if isinstance(part, Note)]
    assert any(
        text.endswith("Therefore the groups shown are round groups of about equal size (k-means).") for text in notes
    )
    assert "groups: round groups of about equal size (k-means)" in " ".join(str(report).split())


def test_stable_groups_are_told_first():
    found = blobs(5)
    strongest = max(found.summaries, key=lambda one: max(abs(trait.difference) for trait in one.traits))
    assert f"group {strongest.number} (" in sentences(found)[3].lower()
    summaries = tuple(replace(one, verdict="dissolves") if one is strongest else one for one in found.summaries)
    assert f"group {strongest.number} (" not in sentences(replace(found, summaries=summaries))[3].lower()
