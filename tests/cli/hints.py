#!/usr/bin/env python3
"""Help, hints for what other tools call things, and one meaning for each option in all verbs.

usage: hints.py PITH SOURCE_DIR [unittest arguments]
"""
import re
import sys
import unittest

from command import SOURCE, Command

sys.path.insert(0, str(SOURCE / "tools"))
import options as table

ROWS = {row["id"]: row for row in table.rows()}
USERS = table.verbs()
VERBS = re.findall(r"^VERB\((\w+)\)$", (SOURCE / "cli/verbs.def").read_text(), re.M)
OF_VERB = {verb: {ROWS[row]["name"]: ROWS[row] for row, verbs in USERS.items() if verb in verbs} for verb in VERBS}
ALL = {name for names in OF_VERB.values() for name in names} | {row["alias"] for row in ROWS.values() if "alias" in row}


def lines(macro):
    """The arguments of each line of other_tools.def or help_groups.def that has this macro."""
    text = "".join((SOURCE / f"cli/options/{name}.def").read_text() for name in ("other_tools", "help_groups"))
    for body in re.findall(rf"^{macro}\((.*)\)$", text, re.M):
        yield [(quoted or plain).replace('\\"', '"') for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\w+)(?=,)', body)]


# Names of options with more than one row, and what they mean in every verb that has them. A new row under one of these names, or
# under that of another row, needs this meaning; else it needs another name.
MEANINGS = {
    "all": ("everything there is, instead of what is needed", "all all_pieces"),
    "atol": ("the largest absolute difference that is allowed", "atol atol_compare atol_bench"),
    "calibrate": ("the texts on which rounding is calibrated", "calibrate calibrate_quantize"),
    "dim": ("components of a vector", "dim dim_search dim_export"),
    "dtype": ("the type of the numbers that are written", "dtype dtype_export"),
    "embedder": ("what makes vectors of the texts of a database", "embedder embedder_predict"),
    "column": ("the column or member that holds the text", "column column_search"),
    "field": ("the member of an object that holds the text", "field field_rerank"),
    "format": ("the form in which the result is written", "format format_lines format_detect format_crop"),
    "fuse": ("which operators are fused", "fuse_optimize fuse_export"),
    "input": ("a tensor for an input of the model", "input input_run"),
    "json": ("results as JSON", "json json_compile json_models json_list json_remove json_similarity json_verify json_compare json_detect "
             "json_export json_optimize"),
    "jsonl": ("lines are JSON objects", "jsonl jsonl_embed jsonl_rerank jsonl_tokenize"),
    "keep-f32": ("nodes that stay in f32", "keep_quantize keep_optimize"),
    "kind": ("models of this kind only", "kind kind_list"),
    "max-length": ("tokens at which a text is cut", "max_length max_length_classify max_length_embed max_length_rerank max_length_tokenize"),
    "max-pixels": ("larger pictures are refused", "max_pixels max_pixels_detect"),
    "model": ("the model", "model model_classify model_compile model_detokenize model_info model_detect"),
    "nms-threshold": ("how much two boxes may overlap", "nms_threshold nms_threshold_crop"),
    "opset": ("the opset of the file that is written", "opset opset_optimize"),
    "output": ("where the result is written", "output output_compile output_run output_crop output_export output_train output_convert"),
    "pair-field": ("the member that holds the second text", "pair_field pair_field_tokenize"),
    "pooling": ("how vectors of tokens become one", "pooling pooling_export"),
    "precision": ("arithmetic of the dense layers", "precision precision_compile"),
    "profile": ("a trace of the run", "profile_bench profile"),
    "query": ("the text that is searched for", "query query_search"),
    "quiet": ("say less on standard error", "quiet quiet_texts quiet_rerank quiet_export quiet_select quiet_convert"),
    "raw": ("the model's logits", "raw raw_rerank"),
    "resume": ("keep what an earlier call has made, and go on", "resume resume_crop"),
    "rtol": ("the largest relative difference that is allowed", "rtol rtol_compare"),
    "runs": ("how often something is run", "runs runs_verify"),
    "runtime": ("the engine that runs the model", "runtime runtime_bench"),
    "schema": ("what the columns of a database are", "schema schema_predict"),
    "seed": ("the seed of what is random", "seed seed_compare seed_train"),
    "stats": ("what was counted", "stats stats_info"),
    "text": ("a text", "text text_given"),
    "texts": ("a file of texts, one per line", "texts texts_search"),
    "threads": ("number of threads", "threads_bench threads threads_inspect threads_tokenize"),
    "top-k": ("how many of the best are written", "top_k top_k_rerank hits"),
    "verbose": ("say more", "verbose verbose_optimize"),
}


UNLETTERED = {"quiet_rerank"}  # -q was that of --query there


class Meanings(unittest.TestCase):
    """One meaning for each option in all verbs."""

    def test_no_clashes(self):
        shared = {}
        for row in ROWS.values():
            shared.setdefault(row["name"], set()).add(row["id"])
        for name, ids in shared.items():
            known = set(MEANINGS[name][1].split()) if name in MEANINGS else set()
            if len(ids) > 1 or known:
                self.assertLessEqual(ids, known, f"--{name} has rows whose meaning is not that of MEANINGS: give the option another name, or add the row there")

    def test_form(self):
        """Rows of one name agree on whether a value follows and on their letter, and a letter is that of one name."""
        letters = {}
        for name, (_, ids) in MEANINGS.items():
            rows = [ROWS[row] for row in ids.split() if row in ROWS]
            follows = {"takes" in row for row in rows if "implied" not in row}
            self.assertLessEqual(len(follows), 1, f"--{name} takes a value in some verbs only")
            lettered = {row.get("letter") for row in rows if row["id"] not in UNLETTERED}
            self.assertLessEqual(len(lettered), 1, f"--{name} has a letter in some verbs only")
        for row in ROWS.values():
            if "letter" in row:
                letters.setdefault(row["letter"], set()).add(row["name"])
        for letter, names in letters.items():
            self.assertEqual(len(names), 1, f"-{letter} stands for {names}")

    def test_aliases(self):
        """An alias is a name of no other option in any verb, but for one of the same meaning."""
        same = {"level"}  # of --optimization; optimize calls it so alone
        for row in ROWS.values():
            if "alias" in row and row["alias"] not in same:
                self.assertNotIn(row["alias"], {other["name"] for other in ROWS.values()})


class Hints(Command):
    verb = None

    def hint(self, *arguments, code=2):
        result = self.run_pith(*arguments)
        self.assertEqual((result.returncode, result.stdout), (code, b""), (arguments, result.stderr))
        return result.stderr.decode()

    # What people type, and what they are told.
    TYPED = [
        ("download minilm", "'pith pull'"), ("serve --port 8080", "Pith has no server yet"), ("ls", "'pith list'"), ("rm minilm", "'pith remove'"),
        ("encode", "'pith embed'"), ("show minilm", "'pith inspect'"), ("ps", "no model stays loaded"), ("benchmark", "'pith bench'"),
        ("tokenise", "did you mean 'tokenize'?"), ("chat", "does not generate text"), ("finetune", "'pith train'"),
        ("embed --batch-size 32", "--max-batch-size"), ("embed --batch_size=32", "--max-batch-size"), ("embed --device cuda", "--ep cuda,cpu"),
        ("embed --model-id x", "in Pith it is --model"), ("embed -ngl 99", "--ep"), ("embed --ctx-size 512", "--max-length"), ("embed -c512", "--max-length"),
        ("embed --embd-normalize 2", "--normalize"), ("embed --port 80", "no server"), ("embed --num-threads 2", "--threads"),
        ("embed --normalize-embeddings", "--normalize"), ("embed --trust-remote-code", "runs no code"), ("embed --max-seq-length 3", "--max-length"),
        ("embed -f texts.txt", "without an option"), ("embed --max_length 3", "--max-length"), ("embed --show-progress-bar", "--progress"),
        ("pull x --revision main", "NAME@REVISION"), ("pull x --cache-dir y", "PITH_CACHE"), ("pull x --token y", "HF_TOKEN"),
        ("rerank --top-n 3", "--top-k"), ("similarity --batch-size 2", "'pith embed' has"), ("info --graph-optimization-level 3", "--optimization"),
        ("embed --precision fp16", "pith export --dtype f16"), ("embed --precision q4", "pith quantize"), ("embed --format numpy", "npy"),
        ("embed --threads auto", "cores"), ("embed -t hello", "pith embed --text"), ("embed --pooling avg", "mean"), ("quantize -o x --scheme f16", "export --dtype f16"),
        ("search --index x --metric euclidean", "l2"), ("embed --runtime onnxruntime", "ort"),
        ("-v", "-V prints the version"), ("-m minilm -p hello", "pith embed -m ..."), ("--text a", "'pith embed' has --text"), ("--list", "'pith list'"),
        ("EMBED a", "did you mean 'embed'?"), ("embed --TEXT a", "did you mean --text?"), ("embed -p hello", "--text"), ("embed -d {}", "--text"),
        ("embed -X POST", "no server"), ("ollama pull minilm", "'pith pull NAME'"), ("hf download x", "'pith pull NAME'"),
        ("text-embeddings-router --model-id x", "no server"), ("llama-server -m x", "no server"), ("onnxruntime_perf_test x.onnx", "'pith bench'"),
        ("curl localhost", "no server"), ("devices", "'pith info'"), ("embed --list-devices", "'pith info'"), ("embed --fp16 --text a", "pith export --dtype f16"),
        ("embed --debug", "--stats"), ("embed -i texts.txt", "without an option"), ("export --precision int8 -o x.onnx", "pith quantize --scheme int8"),
        ("similarity --format csv a b", "'pith embed' has it"), ("similarity --text a", "'pith embed' has --text"), ("completion bash", "pith --completion bash"),
        ("pull hf.co/BAAI/bge-small-en-v1.5", "pith pull BAAI/bge-small-en-v1.5\n"),
        ("pull https://huggingface.co/BAAI/bge-small-en-v1.5/tree/main", "pith pull BAAI/bge-small-en-v1.5\n"),
        ("pull https://example.com/a/b", "ORGANISATION/NAME"), ("pull all-minilm:latest", "pith pull all-minilm\n"),
        ("export -o x.gguf", "does not write it"), ("export -o x.pith", "'pith compile'"), ("quantize -o x.PITH", "'pith compile'"),
        ("optimize x.onnx -o x.safetensors", "does not write them"), ("compile -o x.onnx", "'pith export'"),
        ("rerank --query a", "'pith pull ms-marco'"), ("classify", "'pith pull emotion'"),
    ]
    # The same for work that fails, and models that are not there.
    FAILED = [
        ("models list", "pith list"), ("models pull minilm", "pith pull"), ("embed -m hf.co/BAAI/bge-small-en-v1.5:Q8_0 --text a", "'pith pull BAAI/bge-small-en-v1.5'"),
        ("embed -m all-minilm:latest --text a", "'pith pull all-minilm'"), ("embed -m folder/model.onnx --text a", "'-m folder' opens"),
        ("embed -m folder/config.json --text a", "-m folder\n"), ("embed folder", "--images"), ("embed folder/a.jpg", "this is a picture"),
    ]

    def test_failed(self):
        (self.dir / "folder").mkdir()
        (self.dir / "folder/config.json").write_text("{}")
        (self.dir / "folder/a.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF")
        for typed, told in self.FAILED:
            with self.subTest(typed):
                self.assertIn(told, self.hint(*typed.split(), code=1))
        missing = self.hint("embed", "-m", "x.gguf", "--text", "a", code=1)
        self.assertNotIn("pith pull", missing)

    def test_typed(self):
        for typed, told in self.TYPED:
            with self.subTest(typed):
                said = self.hint(*typed.split())
                self.assertIn(told, said)

    def test_version(self):
        version = self.good("--version")
        for arguments in (("-V",), ("version",), ("embed", "--version"), ("pull", "-V")):
            self.assertEqual(self.good(*arguments), version)

    def test_tables(self):
        """What hints name is there, and what they hint at is not."""
        for typed, verb, hint in lines("OTHER_VERB"):
            with self.subTest(typed):
                self.assertNotIn(typed, VERBS)
                self.assertTrue(verb in VERBS or (verb == "" and hint))
                self.check(hint)
        for typed, name, hint in lines("OTHER_OPTION"):
            with self.subTest(typed):
                self.assertTrue(name in ALL or (name == "" and hint), name)
                self.check(hint)
        for name, values, hint in lines("OTHER_VALUE"):
            with self.subTest(name):
                self.assertIn(name, ALL)
                self.check(hint)
                choices = [row["choices"].split("|") for row in ROWS.values() if row["name"] == name and "choices" in row]
                for value in values.split("|"):
                    self.assertTrue(not choices or any(value not in words for words in choices), f"{name}: {value} is no other word")
        for macro in ("OTHER_VERB", "OTHER_OPTION"):
            typed = [line[0] for line in lines(macro)]
            self.assertEqual(sorted(set(typed)), sorted(typed))

    def check(self, hint):
        """The verbs and options that a hint names are there."""
        for verb in re.findall(r"'pith ([a-z]+)\b", hint):
            self.assertIn(verb, VERBS)
        for name in re.findall(r"(?<![\w-])--([a-z][\w-]*)", hint):
            self.assertIn(name.removeprefix("no-"), ALL | {"completion", "man", "help", "version"}, hint)

    def test_old_names(self):
        """They still work, and the new name is told."""
        count = 0
        for verb, old, new in lines("OLD_OPTION"):
            with self.subTest(f"{verb} {old}"):
                self.assertNotIn(old.strip("-"), OF_VERB[verb])
                row = OF_VERB[verb][new]
                said = self.hint(verb, old, *(["1"] if "takes" in row else []), "--nothing-of-this-name")
                self.assertIn(f"pith {verb}: {old} is called --{new} now", said)
                self.assertIn("--nothing-of-this-name", said)
                count += 1
        self.assertGreater(count, 15)
        self.assertIn("--per-row now", self.hint("quantize", "--no-rows", "--nothing-of-this-name"))

    def test_old_names_work(self):
        self.quiet = False
        (self.dir / "texts").write_text("a cat\n")
        for old, new in ((("tokenize", "--raw"), ("tokenize", "--file-settings")),):
            self.assertEqual(self.good(*old, "texts"), self.good(*new, "texts"))


class Help(Command):
    verb = None

    def test_one_screen(self):
        """The help of the program fits a terminal of 80 columns and 24 lines, and names every verb."""
        shown = self.good("--help").decode()
        self.assertLessEqual(shown.count("\n"), 24)
        self.assertLessEqual(max(map(len, shown.splitlines())), 80)
        for verb in VERBS:
            self.assertRegex(shown, rf"(?m)^  \S.* {verb}\b")
        self.assertEqual(self.good("help").decode(), shown)
        everything = self.good("--help", "all").decode()
        for verb in VERBS:
            self.assertIn(f"\n  {verb} ", everything)
        self.assertEqual(self.good("help", "all").decode(), everything)

    def test_short(self):
        """Purpose, at most three examples and about ten options; --help all has every option."""
        for verb in VERBS:
            with self.subTest(verb):
                shown, everything = (self.good(verb, "--help", *more).decode() for more in ((), ("all",)))
                self.assertLessEqual(shown.count("\n"), 45)
                self.assertIn(f"usage: pith {verb}", shown)
                examples = re.findall(rf"(?m)^  (?=\S).*\bpith {verb}\b", shown[:shown.index("\noptions\n")])
                self.assertTrue(1 <= len(examples) <= 3, shown)
                names = re.findall(r"^  (?:-\w, )?(?:--[\w-]+, )?--(?:\[no-\])?([\w-]+)", shown, re.M)
                self.assertLessEqual(len(names), 13)
                self.assertEqual(set(re.findall(r"^  (?:-\w, )?(?:--[\w-]+, )?--(?:\[no-\])?([\w-]+)", everything, re.M)), set(OF_VERB[verb]))
                self.assertIn(f"'pith {verb} --help all' shows all {len(OF_VERB[verb])} options", shown)
                for arguments in ((verb, "-h"), ("help", verb)):
                    self.assertEqual(self.good(*arguments).decode(), shown)
                for arguments in ((verb, "--help=all"), ("help", verb, "all")):
                    self.assertEqual(self.good(*arguments).decode(), everything)

    def test_tables(self):
        grouped = [verb for _, verbs in lines("HELP_GROUP") for verb in verbs.split()]
        self.assertEqual(set(grouped), set(VERBS))
        mains = dict(lines("HELP_VERB"))
        self.assertEqual(set(mains), set(VERBS))
        for verb, names in mains.items():
            known = set(OF_VERB[verb]) | {row["alias"] for row in OF_VERB[verb].values() if "alias" in row}
            self.assertLessEqual(set(names.split()), known, verb)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
