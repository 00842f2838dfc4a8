"""The report on an exploration: its sentences are true and plain, and page, text and summary hold whatever was found."""

import json
import re
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from foldwise.report.equal_plane import equal_plot
from foldwise.report.explore import explore_report, summary_of
from foldwise.report.explore.cautions import cautions
from foldwise.report.explore.sentences import sentences
from foldwise.report.explore.words import row_name
from foldwise.report.html import as_html
from foldwise.report.place_labels import Anchor, Box, place
from foldwise.report.scree_rules import scree_with_rules
from foldwise.report.text import WIDTH
from foldwise.report.values import Chart, Group, Note, Scatter, Table

from .explorations import blobs, explored
from .explorations import penguins as make_penguins

JARGON = re.compile(
    r"\b(BIC|ICL|silhouette|inertia|Hotelling|T2|eigen\w+|Jaccard|Rand|PCA|k-means|component|cluster)s?\b", re.I
)
LOST = ("components", "number", "kmeans", "comparison", "clusters", "profile", "labels", "confidence", "silhouette")
LOST += ("silhouette_labels", "ensemble", "stability", "outliers", "points")


@cache
def penguins():
    return make_penguins()


@cache
def groups_of(count):
    return blobs(count)


def cut_short(found, after):
    """The exploration as it is if it was stopped after some of its parts."""
    lost = dict.fromkeys(LOST[after:])
    more = {"summaries": (), "categories": ()} if after < len(LOST) - 2 else {}
    return replace(found, **lost, **more, unfinished=("number of groups", "stability"))


def parts_of(report):
    for part in report.parts:
        yield from (part.parts if isinstance(part, Group) else [part])


def drawings(report):
    for part in parts_of(report):
        if isinstance(part, Chart) and (drawn := part.draw()):
            yield part, drawn
        if isinstance(part, Scatter):
            yield part, part.fallback()


def whole_page(found):
    return as_html(explore_report(found))


# ---------------------------------------------------------------- sentences


@pytest.mark.parametrize("count", [1, 2, 20])
def test_five_plain_sentences(count):
    told = sentences(groups_of(count))
    assert len(told) == 5
    for one in [*told, *sentences(penguins())]:
        assert one[0].isupper()
        assert one.endswith(".")
        assert "  " not in one
        assert not JARGON.search(one), one
        assert not re.search(r"\b(None|nan|True|False)\b", one), one


def test_sentences_on_the_penguins_are_true():
    found = penguins()
    data, directions, groups, apart, careful = sentences(found)
    held = 100 * float(found.pca.explained_variance_ratio_[:2].sum())
    assert data.startswith("The data (penguins.csv) have 342 rows and 5 columns: 4 are used")
    assert "1 only describes them (species)" in data
    assert re.match(r"There are (perhaps|probably|clearly) two directions that matter \(", directions)
    assert f"which hold {held:.0f} % of the variation: the first is mainly flipper_length_mm" in directions
    assert "flipper_length_mm, body_mass_g and bill_length_mm against bill_depth_mm;" in directions
    share = f"{100 * found.number.strength:.0f} % of the votes, from 3 of 4 ways of counting; the other says 4"
    assert groups.startswith(f"There are clearly 2 groups ({share})")
    assert groups.endswith("and both are very stable: found again when other rows are drawn.")
    assert "group 1 (123 rows) has high flipper_length_mm (217.2 on average, 200.9 overall)" in apart
    rule = found.summaries[1].rule
    values = found.points.values[:, 2]
    picked = found.labels[values > rule.conditions[0].value]
    assert f"{100 * np.mean(picked == 1):.0f} of 100 rows where flipper_length_mm is at least 210 are" in apart
    assert careful.startswith("Nothing here calls for special caution")


def test_one_cloud_is_said_as_such():
    found = groups_of(1)
    _, directions, groups, apart, _ = sentences(found)
    assert "No direction stands out" in directions
    assert groups == "There are no separate groups: the rows form one cloud (all 4 ways of counting agree)."
    assert apart.startswith("Rows differ by degree")
    assert "no groups were made" in whole_page(found)


def test_twenty_groups():
    groups, apart = sentences(groups_of(20))[2:4]
    assert "20 groups" in groups
    assert apart.startswith("Most distinct are these: group ")
    assert len(re.findall(r"group \d+ \(\d+ rows?\)", apart)) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sampled_rows": 100}, "looked at 100 of the 342 rows"),
        ({"unfinished": ("stability",)}, "it was stopped early, and this was not done: stability"),
    ],
)
def test_what_to_be_careful_about(change, words):
    assert words in sentences(replace(penguins(), **change))[-1]


def test_missing_cells_and_blank_rows_are_told():
    found = penguins()
    columns = list(found.overview.columns)
    columns[1] = replace(columns[1], missing=171)
    overview = replace(found.overview, columns=tuple(columns))
    labels = found.labels.copy()
    labels[:1] = -1
    told = cautions(replace(found, overview=overview, labels=labels))
    assert "1 row has no value in these columns and is in no group" in told
    assert "12 % of the cells used are missing, all of them in bill_depth_mm" in told


def test_few_rows_columns_alike_and_a_column_that_dominates():
    rng = np.random.default_rng(1)
    first = 1000.0 * rng.standard_normal(12)
    rest = rng.standard_normal((12, 3))
    x = np.column_stack([first, first + rng.standard_normal(12), rest])
    told = cautions(explored(x, list("abcde")))
    assert "there are only 12 rows for 5 columns, so that much can look like a pattern by chance" in told
    assert "a and b say nearly the same and so count twice" in told


def test_doubtful_groups_make_the_number_less_sure():
    found = penguins()
    stability = replace(found.stability, jaccard=np.array([0.4, 0.3]))
    summaries = tuple(replace(one, verdict="dissolves") for one in found.summaries)
    told = sentences(replace(found, stability=stability, summaries=summaries))
    assert told[2].startswith("There are perhaps 2 groups")
    assert told[2].endswith("but both are not found again when other rows are drawn.")
    assert "all groups were not found again when other rows were drawn" in told[4]


def test_a_number_of_groups_that_was_asked_for():
    found = replace(penguins(), settings={"n_clusters": 2}, number=None)
    assert sentences(found)[2].startswith("The rows were divided into 2 groups, as asked, and both are very stable")
    assert "How many groups?" not in whole_page(found)
    other = replace(penguins(), settings={"n_clusters": 3})
    assert "3 groups, as asked (the ways of counting would say 2), and" in sentences(other)[2]
    one = replace(groups_of(1), settings={"n_clusters": 1}, number=None)
    assert "no groups were looked for" in sentences(one)[2]
    assert sentences(one)[3].startswith("Rows differ most of all in")


# ---------------------------------------------------------------- whatever was reached


@pytest.mark.parametrize("after", range(len(LOST)))
def test_an_exploration_that_was_stopped_is_told_as_far_as_it_went(after):
    found = cut_short(penguins(), after)
    report = explore_report(found)
    page, text = as_html(report), str(report)
    assert len(report.lead) == 5
    assert "was not done: number of groups and stability" in " ".join(text.split())
    assert "Not done: number of groups and stability" in page
    json.dumps(summary_of(found), allow_nan=False)


@pytest.mark.parametrize("shape", [(9, 1), (30, 2), (3, 4), (2, 2)])
def test_small_tables(shape):
    rng = np.random.default_rng(2)
    found = explored(rng.standard_normal(shape), [f"c{j}" for j in range(shape[1])])
    report = explore_report(found)
    assert len(report.lead) == 5
    assert "How it was made" in as_html(report)
    assert str(report)


# ---------------------------------------------------------------- text


def test_the_terminal_text_is_short_and_narrow():
    text = str(explore_report(penguins()))
    assert len(text.splitlines()) <= 45
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "very stable" in text
    assert "flipper_length_mm at least 210" in text
    many = str(explore_report(groups_of(20)))
    assert len(many.splitlines()) <= 60
    assert max(map(len, many.splitlines())) <= WIDTH


# ---------------------------------------------------------------- page


def test_parts_come_in_the_order_of_a_reader():
    page = whole_page(penguins())
    heads = ["The columns", "The rows", "How many directions matter?", "How many groups?", "The groups"]
    heads += ["Are the groups found again?", "Rows worth a look", "How it was made"]
    places = [page.index(f">{head}</h2>") for head in heads]
    assert places == sorted(places)
    report = explore_report(penguins())
    assert next(part for part in parts_of(report) if getattr(part, "title", "") == "Rows worth a look").searchable
    assert report.parts[-1].collapsed


def test_every_picture_says_in_words_what_it_shows():
    for found in (penguins(), groups_of(1), groups_of(20)):
        for part, drawn in drawings(explore_report(found)):
            assert part.alt.strip().endswith("."), part.title
            assert drawn.startswith("<svg")
            assert drawn.endswith("</svg>")
            assert "nan" not in re.sub(r"<title>.*?</title>", "", drawn)


def test_colours_are_those_of_the_page():
    for _, drawn in drawings(explore_report(groups_of(2))):
        bare = re.sub(r"var\(--[\w-]+, #[0-9a-f]+\)", "", drawn)
        assert not re.search(r"(fill|stroke)[:=]\"?#", bare)


def test_names_from_the_data_stay_inert_and_short():
    bad = "<script>alert(1)</script>"
    names = [bad, "\"quoted\" & 'so'", "n" * 10_000, "line\nbreak\x07"]
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.standard_normal((40, 4)) + shift for shift in (0, 9)])
    label = (bad + "label", [bad] * 40 + ["</svg><img src=x onerror=alert(1)>"] * 40)
    found = explored(x, names, label=label, where=bad)
    report = explore_report(found)
    parts = [part for part in report.parts if not isinstance(part, Scatter)]
    page = as_html(replace(report, parts=parts), page=False)
    assert "<script>alert" not in page
    assert "<img src" not in page
    assert "n" * 500 not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert max(map(len, str(report).splitlines())) <= WIDTH
    assert summary_of(found)["compared"]["columns"][2] == "n" * 10_000  # whole where nobody has to read it


def test_five_thousand_columns_make_a_small_page():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.standard_normal((20, 5000)), rng.standard_normal((20, 5000)) + 1.0])
    report = explore_report(explored(x, [f"gene_{j}" for j in range(5000)]))
    parts = [part for part in report.parts if not isinstance(part, Scatter)]
    page = as_html(replace(report, parts=parts), page=False)
    assert len(page) < 1_500_000
    assert "60 of 5,000 columns" in page
    assert "only 40 rows for 5,000 columns" in page


def test_twenty_groups_make_a_small_page():
    report = explore_report(groups_of(20))
    parts = [part for part in report.parts if not isinstance(part, Scatter)]
    assert len(as_html(replace(report, parts=parts), page=False)) < 1_500_000


def test_the_static_picture_shows_every_row_on_equal_scales():
    report = explore_report(penguins())
    scatter = next(part for part in report.parts if isinstance(part, Scatter))
    drawn = scatter.fallback()
    assert len(re.findall(r"M[\d.]+ [\d.]+h0", drawn)) == 342
    assert len(scatter.components) == penguins().points.scores.shape[1]
    plot = equal_plot((-3.0, 40.0), (0.0, 2.0), "a", "b")
    assert plot.x(1) - plot.x(0) == pytest.approx(plot.y(0) - plot.y(1), rel=0.01)
    found = penguins()
    many = replace(
        found.points,
        rows=np.arange(5000),
        total=5000,
        scores=np.random.default_rng(0).standard_normal((5000, 4)),
        labels=np.zeros(5000, dtype=np.int32),
        ids=(),
    )
    large = explore_report(replace(found, points=many))
    drawn = next(part for part in large.parts if isinstance(part, Scatter)).fallback()
    assert "h0" not in drawn  # squares
    assert len(drawn) < 200_000


def test_rows_worth_a_look_have_ids_groups_and_reasons():
    found = penguins()
    table = next(p for p in parts_of(explore_report(found)) if isinstance(p, Table) and p.searchable)
    columns = {column.name: list(column.values) for column in table.columns}
    assert columns["row"][:5] == found.outliers.rows.tolist()
    assert columns["why it is here"][-1] == "typical of group 1"
    assert columns["group"][-1] == 1
    assert columns["species"][-1] == "Gentoo"
    assert columns["mainly by"][0] == found.outliers.columns[0]
    assert row_name(found, 341).startswith("row 341 (")


def test_cards_tell_rule_precision_and_recall():
    found = penguins()
    cards = next(
        part
        for part in explore_report(found).parts
        if getattr(part, "title", "") == "The groups" and isinstance(part, Group)
    )
    assert len(cards.parts) == 2
    words = cards.parts[1].caption
    rule = found.summaries[1].rule
    assert f"{100 * rule.precision:.0f} of 100 rows that satisfy it belong to the group" in words
    assert f"it finds {100 * rule.recall:.0f} of 100 of its rows" in words
    assert "All have species Gentoo (36 % of all rows)." in words


# ---------------------------------------------------------------- drawings


def test_labels_keep_apart():
    rng = np.random.default_rng(5)
    turn = rng.uniform(0, 0.6, 14)
    anchors = [
        Anchor(200 + 120 * np.cos(a), 200 + 120 * np.sin(a), f"a_long_name_{i}", np.cos(a), np.sin(a))
        for i, a in enumerate(turn)
    ]
    frame = Box(0, 0, 520, 420)
    boxes = place(anchors, frame)
    assert all(one.overlap(two) == 0 for one, two in combinations(boxes, 2))
    assert all(box.outside(frame) == 0 for box in boxes)
    assert boxes == place(anchors, frame)


def test_arrows_have_heads_and_the_longest_names():
    report = explore_report(penguins())
    drawn = next(draw for part, draw in drawings(report) if part.title == "Columns and rows together")
    assert drawn.count("<polygon") == 4
    for name in penguins().names:
        assert name in drawn


def test_rules_are_marked_in_the_scree():
    drawn = scree_with_rules([0.6, 0.2, 0.15, 0.05], [("parallel", 2), ("mle", 2), ("share", 9)], 2)
    assert "parallel, mle: 2 (chosen)" in drawn
    assert "share: 9 (beyond)" in drawn


# ---------------------------------------------------------------- summary


def test_the_summary_has_everything_as_plain_values():
    found = penguins()
    told = summary_of(found)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["sentences"] == sentences(found)
    assert told["groups"]["number"] == 2
    assert told["groups"]["groups"][1]["rows"] == 123
    assert told["groups"]["groups"][1]["rule"]["conditions"][0]["column"] == "flipper_length_mm"
    assert [vote["rule"] for vote in told["groups"]["votes"]] == [vote.rule for vote in found.number.votes]
    assert told["rows_worth_a_look"][0]["ids"] == list(found.points.ids[found.outliers.rows[0]])
    assert told["directions"]["agreed"] == 2
    assert set(told["versions"]) == {"foldwise", "numpy", "python"}
    assert told["command"] == "foldwise explore penguins.csv"


def test_notes_are_not_lost():
    overview = replace(penguins().overview, notes=("an odd column",))
    report = explore_report(replace(penguins(), overview=overview))
    assert "note: an odd column" in str(report)
    assert any(isinstance(part, Note) and part.text == "An odd column." for part in parts_of(report))
