"""`foldwise fit-distribution`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import foldwise as fw
from foldwise.cli import main

WINE = Path(__file__).parents[2] / "examples" / "wine.csv"
CALL = ["fit-distribution", str(WINE), "--column", "malic_acid"]


def test_it_compares_families(capsys):
    assert main(CALL) == 0
    out = capsys.readouterr().out
    assert "wine.csv, column malic_acid: 178 values (float64)" in out
    assert re.search(
        r"^inverse-gaussian +-241\.479 +486\.958 +493\.322 +0\.00 +mean 2\.3363, shape 10\.589$", out, re.M
    )
    assert "not fitted: binomial, poisson, negative-binomial: 1.71 is not a count" in out
    assert "inverse-gaussian is ahead of lognormal, but not by much" in out
    assert re.search(r"^shape +10\.5887 +1\.1224  8\.60228 to 13\.0337$", out, re.M)
    assert "Anderson-Darling: 2.523, p-value 0.005" in out
    assert "0.005 is the least that they can show" in out


def test_one_family_with_something_given(capsys):
    assert main([*CALL, "--family", "normal", "--fixed", "sigma=1.1", "--no-test", "--confidence", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "normal, closed form, 1 pass" in out
    assert re.search(r"^sigma +1\.1 +given$", out, re.M)
    assert "90 % interval" in out
    assert "Anderson" not in out
    assert main([*CALL, "--family", "normal,gamma", "--fixed", "normal.sigma=1.1", "--no-test"]) == 0
    assert "sigma 1.1" in capsys.readouterr().out
    assert main([*CALL, "-f", "gamma", "--method", "gradient", "--no-test"]) == 0
    assert "gamma, gradient, converged after" in capsys.readouterr().out


def test_json_and_files(tmp_path, capsys):
    out, model = tmp_path / "f.json", tmp_path / "m.fw"
    assert main([*CALL, "-f", "gamma", "--json", "--out", str(out), "--model", str(model)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(out.read_text())
    expected = fw.fit_distribution(WINE, "gamma", column="malic_acid")
    assert printed["parameters"] == expected.parameters
    assert printed["goodness_of_fit"]["p_values"].keys() == {"Anderson-Darling", "Kolmogorov-Smirnov"}
    assert len(printed["trace"]) == len(expected.trace)
    assert fw.load(model).parameters == expected.parameters
    assert main([*CALL, "--json", "--no-test"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["best"] == "inverse-gaussian"
    assert both["fits"][10]["standard_errors"]["low"] is None  # uniform: NaN is no JSON


def test_where_weights_and_npy(tmp_path, capsys):
    assert main([*CALL, "-f", "normal", "--where", "cultivar = 'barolo'", "--weights", "ash", "--no-test"]) == 0
    assert "59 values, weight 144.88" in capsys.readouterr().out
    np.save(tmp_path / "x.npy", np.random.default_rng(0).poisson(3.0, 500))
    assert main(["fit-distribution", str(tmp_path / "x.npy"), "-f", "poisson", "--column", "0"]) == 0
    assert "chi-square" in capsys.readouterr().out


@pytest.mark.parametrize("family", ["all", "gamma", "weibull", "poisson", "uniform", "cauchy"])
def test_the_report_is_one_small_page_that_loads_nothing(family, tmp_path, capsys):
    page, data = tmp_path / "r.html", tmp_path / "x.csv"
    data.write_text("x & y\n" + "\n".join(map(str, np.random.default_rng(1).poisson(5.0, 300) + 1)))
    assert main(["fit-distribution", str(data), "-f", family, "--no-test", "--report", str(page)]) == 0
    text = page.read_text()
    assert "http" not in text
    assert len(text) < 200_000
    assert "x &amp; y" in text
    assert "x & y" not in text
    assert "nan" not in text.lower().replace("covariance", "")
    assert "Log-likelihood along" in text
    assert f"report: {page}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["-f", "poisson"], "row 0 (counting from 0), column 'malic_acid': 1.71 is not a count"),
        (["-f", "gama"], "'gama' is not known"),
        (["--fixed", "sigma=5"], "normal.sigma=5"),
        (["-f", "normal", "--fixed", "sigma"], "as in sigma=5"),
        (["-f", "normal", "--fixed", "sigma=x"], "as in sigma=5"),
        (["--report", "r.txt"], "ends in .html"),
    ],
)
def test_errors_are_one_line(extra, words, capsys):
    call = [*CALL, *extra]
    assert main(call) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "Traceback" not in told


def test_several_columns_ask_for_one(capsys):
    assert main(["fit-distribution", str(WINE), "--column", "x"]) == 2
    assert "there is no column 'x'" in capsys.readouterr().err
    assert main(["fit-distribution", str(WINE)]) == 2
    assert "a distribution is fitted to one" in capsys.readouterr().err
