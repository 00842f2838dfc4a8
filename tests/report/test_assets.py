"""The scripts of pages are built from web/, carry their licences, and name no machine."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "src/foldwise/report/assets"


def test_the_scripts_are_up_to_date():
    digest = sha256()
    for file in [
        "build.mjs",
        "package-lock.json",
        *(f"src/{path.name}" for path in sorted((ROOT / "web/src").iterdir())),
    ]:
        digest.update(file.encode() + (ROOT / "web" / file).read_bytes())
    assert (ASSETS / "sources.sha256").read_text().strip() == digest.hexdigest(), "run `make web`"


def test_licences_travel_with_the_script():
    script, notices = ((ASSETS / name).read_text(encoding="utf-8") for name in ("page.js", "page-licences.txt"))
    for package in ("regl-scatterplot", "regl", "@observablehq/plot", "d3-scale"):
        assert re.search(rf"(^|[ ]){package} \d+\.\d+", notices, re.MULTILINE)
        assert f"{package} " in script
    assert script.count("Permission") >= 2


@pytest.mark.parametrize("name", ["page.js", "sort.js", "theme.js"])
def test_a_script_cannot_end_its_element(name):
    assert not re.search("</script|<!--", (ASSETS / name).read_text(encoding="utf-8"), re.IGNORECASE)


def test_the_lock_file_names_no_host():
    assert "://" not in re.sub(
        r'"(url|funding)": "[^"]*"', "", (ROOT / "web/package-lock.json").read_text(encoding="utf-8")
    )
