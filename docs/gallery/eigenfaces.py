"""The page of `foldwise faces` on the Olivetti faces, as a picture: `python docs/gallery/eigenfaces.py out.png`.

Needs Chromium, and the data set beside the repository (../shared/data). The faces are those of Olivetti Research Laboratory,
Cambridge, 1992-1994 (Samaria and Harter 1994).
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import foldwise as fw
from benchmarks.data import SHARED

browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if browser is None:
    sys.exit("Chromium is not installed.")
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "faces.html"
    fw.eigenfaces(SHARED / "faces" / "olivetti_64x64.npz", "subject").report(page)
    # The line that says where the images are is about this machine.
    page.write_text(page.read_text().replace(f"{SHARED}/faces/", ""))
    size = ["--window-size=1180,1960", "--hide-scrollbars", f"--screenshot={sys.argv[1]}"]
    subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", *size, page.as_uri()], check=True)
