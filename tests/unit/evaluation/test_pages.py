"""Every page on real data, run whole on tiny made-up sets: rows are judged, tables filled, plots drawn."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from evaluation import anomalies, drifting, letters, paper, regressions, texts, topics


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with each file the pages read: 120 rows, the label to be had from the first feature."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(4)
    values = np.round(rng.normal(size=(120, 2)), 3).tolist()

    def write(name, lines):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))

    for name, (target, _) in regressions.SETS.items():
        write(f"{name}/{name}.csv.gz", [f"a,sex,{target}", *(f"{a},{'MF'[b > 0]},{2 * a + b}" for a, b in values)])
    for name in ("http", "smtp"):
        write(f"{name}/{name}.csv.gz", ["duration,src_bytes,dst_bytes,anomaly", *(
            f"0,{900 if row % 10 == 9 else abs(a)},{abs(b)},{int(row % 10 == 9)}"
            for row, (a, b) in enumerate(values))])
    write("letter/letter.csv.gz", ["lettr,a,b", *(f"{'ABE'[int(a > 0) + int(a > 1)]},{a},{b}" for a, b in values)])
    write("elec2/elec2.csv.gz", ["date,nswprice,a,class", *(f"1,2,{a},{'UP' if a > 0 else 'DOWN'}" for a, _ in values)])
    write("sea/sea_50k.csv.gz", ["attrib1,class", *(f"{a},{int(a > 0)}" for a, _ in values)])
    counts = [(1 if a > 0 else 2, 3 if b > 0 else 4) for a, b in values]
    write("reuters/reuters_r90_topics.txt.gz", ["acq", "alum", "corn"])
    write("reuters/reuters_r90.svm.gz", [f"{one - 1},2 {one}:2 {two}:1" for one, two in counts])
    write("20news/20news_vocab.txt.gz", ["goal", "engine", "the", "of"])
    write("20news/20news_classes.txt.gz", ["rec.sport", "rec.autos"])
    write("20news/20news_train.svm.gz", [f"{one} {one}:2 {two}:1" for one, two in counts])
    write("sms_spam/sms_spam.tsv.gz", [("spam\twin it", "ham\tsee you")[one - 1] for one, _ in counts])
    return folder


@pytest.mark.parametrize("name, rows", [
    ("regressions", 8), ("anomalies", 4), ("reuters-topics", 4), ("letters", 5), ("letter-costs", 3), ("texts", 4),
    ("drifting", 4),
])
def test_a_page_judges_all_its_rows(name, rows, data, tmp_path, capsys, monkeypatch):
    for module in (regressions, letters, topics, drifting):
        monkeypatch.setattr(module, "FIRST", 40)
    monkeypatch.setattr(texts, "FIRST", {"sms_spam": 40, "20news": 40})
    monkeypatch.setattr(anomalies, "SETS", {"smtp": slice(0, 120), "http": slice(20, 120)})
    monkeypatch.setattr(letters, "KERNEL_ROWS", 80)
    for module, name_of_values in ((letters, "STEPS"), (letters, "RATES"), (letters, "CAPS"), (drifting, "STEPS"),
                                   (regressions, "STEPS"), (topics, "STEPS"), (texts, "STEPS"), (texts, "RADII")):
        monkeypatch.setattr(module, name_of_values, (0.1, 1.0))
    assert paper.main([name, "--data", str(data), "--output", str(tmp_path)]) == 0
    assert f"of {rows} rows reached" in capsys.readouterr().out
    page = (tmp_path / f"{name}.md").read_text()
    assert page.count("| reached") + page.count("**not reached**") == rows and not re.search(r"\bnan\b", page)
    assert (tmp_path / f"{name}.svg").stat().st_size > 1000
