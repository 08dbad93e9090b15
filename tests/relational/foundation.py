"""A model that has learned from generated databases is asked about ones it has not seen. PITH GENERATE_DATABASE MODEL [--databases N] [--docs FILE]

As it is, its answers are better than chance by three standard errors. After one pass over 500 labels it is better than a new model after
one pass over the same labels.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from pretrain import CONFIG, database

PITH, GENERATE, BASE = (str(pathlib.Path(name).resolve()) for name in sys.argv[1:4])
COUNT = int(sys.argv[sys.argv.index("--databases") + 1]) if "--databases" in sys.argv else 4
SEEDS = range(100001, 100001 + COUNT)
LABELS = 500
# One pass over the labels.
TUNED = {"steps": 32, "batch": 16, "warmup": 5, "rate": 0.001}
SCRATCH = {**{k: v for k, v in CONFIG.items() if k not in ("steps", "warmup")}, "steps": 32, "batch": 16, "warmup": 5, "rate": 0.002}


def area(folder, file, name, config, *words):
    """AUROC of the test rows and its standard error."""
    place = folder / f"{file.stem}-{name}"
    place.with_suffix(".json").write_text(json.dumps(config))
    subprocess.run([PITH, "train", file, "--task", "target", "--no-compare", "--hyperparameters", place.with_suffix(".json"), "-o", place, "--evaluate-every", "1000000",
                    *words], check=True, stderr=subprocess.DEVNULL)
    told = json.loads(subprocess.run([PITH, "eval", place, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    return told["auroc"], (told["auroc_interval"][1] - told["auroc_interval"][0]) / 3.92


def mean(pairs):
    """The mean of areas, and its standard error over the rows."""
    return sum(a for a, _ in pairs) / len(pairs), sum(e * e for _, e in pairs) ** 0.5 / len(pairs)


def main():
    columns = {"zero-shot": [], "tuned": [], "from scratch": []}
    lines = [f"| database | zero-shot | {TUNED['steps']} steps on {LABELS} labels | from scratch, {SCRATCH['steps']} steps on them |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for seed in SEEDS:
            file = database(PITH, GENERATE, folder, seed, LABELS)
            row = [area(folder, file, "zero", {"steps": 0}, "--from", BASE), area(folder, file, "tuned", TUNED, "--from", BASE),
                   area(folder, file, "scratch", SCRATCH)]
            for column, one in zip(columns.values(), row):
                column.append(one)
            lines.append(f"| {seed} | " + " | ".join(f"{a:.3f}" for a, _ in row) + " |")
            print(lines[-1], flush=True)
    means = {name: mean(pairs) for name, pairs in columns.items()}
    lines.append("| mean, and its standard error | " + " | ".join(f"{a:.3f} ± {e:.3f}" for a, e in means.values()) + " |")
    print(lines[-1])
    if "--docs" in sys.argv:
        page = pathlib.Path(sys.argv[sys.argv.index("--docs") + 1])
        page.write_text(re.sub(r"(<!-- foundation -->\n)(?:.*?\n)??(<!-- end -->)",
                               lambda m: m.group(1) + "\n".join(lines) + "\n" + m.group(2), page.read_text(), flags=re.DOTALL))
    zero, error = means["zero-shot"]
    assert zero - 0.5 > 3 * error, means
    assert means["tuned"][0] > means["from scratch"][0], means


main()
