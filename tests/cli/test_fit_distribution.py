"""`foldwise fit-distribution`."""

import json
import re
import subprocess
import sys
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
        r"^inverse-gaussian +-241\.479 +486\.958 +493\.322 +493\.322 +0\.00 +mean 2\.3363, shape 10\.589$", out, re.M
    )
    assert "not fitted: binomial, geometric, poisson, negative-binomial: 1.71 is not a count" in out
    assert "inverse-gaussian is ahead of lognormal, but not by much" in out
    assert re.search(r"^shape +10\.5887 +1\.1224  8\.60228 to 13\.0337$", out, re.M)
    assert (
        "ranked by score: BIC, in which a limit of the support that was estimated counts as up to two parameters" in out
    )
    assert "Anderson-Darling: 2.52, p-value at most 0.005" in out
    assert "the samples are rounded to multiples of 0.01, as the values are" in out


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
    uniform = next(fit for fit in both["fits"] if fit["family"] == "uniform")
    assert uniform["standard_errors"]["low"] is None  # NaN is no JSON
    assert uniform["score"] - uniform["bic"] == pytest.approx(2 * np.log(178))
    assert "counts as up to two parameters" in both["ranked_by"]


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
    assert "://" not in text
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


def test_nothing_that_fits_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "r.html"
    assert main(["fit-distribution", str(WINE), "-c", "malic_acid", "-f", "poisson,beta", "--report", str(report)]) == 2
    assert "none of these families" in capsys.readouterr().err
    assert not report.exists()


def test_a_distribution_cannot_be_applied_to_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.fw"
    assert (
        main(["fit-distribution", str(WINE), "-c", "malic_acid", "-f", "gamma", "--no-test", "--model", str(model)])
        == 0
    )
    assert main(["apply", str(model), str(WINE), "--out", str(tmp_path / "a.csv")]) == 2
    assert "fitted distribution" in capsys.readouterr().err


def test_measurements_in_whole_numbers_are_no_counts() -> None:
    """Densities count by the probability of what is rounded to a whole number, so all families are in one list."""
    values = np.round(np.random.default_rng(0).lognormal(6.0, 0.5, 300))
    found = fw.fit_distribution(values, ["negative-binomial", "lognormal", "poisson"])
    assert found.best.family == "lognormal"
    digits = fw.fit_distribution(values % 10 + 1, ["normal", "poisson", "uniform"])
    assert digits.best.family == "uniform"


def test_censored_values_and_the_start_of_a_count_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng, data, page = np.random.default_rng(0), tmp_path / "x.csv", tmp_path / "r.html"
    data.write_text("x\n" + "\n".join(map(repr, np.minimum(rng.exponential(3.0, 300), 6.0).tolist())))
    assert main(["fit-distribution", str(data), "-f", "exponential", "--no-test", "--report", str(page)]) == 0
    told = "equal the greatest one, 6, where the family expects 0: if they were censored"
    assert told in " ".join(capsys.readouterr().out.split())
    assert told in " ".join(page.read_text().split())
    data.write_text("x\n" + "\n".join(map(str, rng.geometric(0.3, 100) - 1)))
    assert main(["fit-distribution", str(data), "-f", "geometric", "--no-test"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^start +0 +convention$", out, re.M)
    assert "values count the misses before the first hit" in out


def test_the_reader_of_a_pipe_may_leave(tmp_path: Path) -> None:
    out = tmp_path / "m.fw"
    command = (
        f'"{sys.executable}" -m foldwise.cli fit-distribution "{WINE}" -c malic_acid --no-test --model "{out}" | true'
    )
    subprocess.run(command, shell=True, check=True)
    assert out.exists()
