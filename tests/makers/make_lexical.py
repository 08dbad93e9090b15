#!/usr/bin/env python3
"""Writes tests/data/lexical: texts in many languages and the vectors that fastembed's Bm25 makes of them.

usage: make_lexical.py      (needs fastembed 0.9.1; see ORIGIN.md)
cases.jsonl has an object per text: the options that differ from the defaults, the text, and its document and query
vectors with ascending indices. stops/<language>.txt are short lists of stop words, written for this test.
"""
import json
import pathlib

from fastembed.sparse.bm25 import Bm25

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "lexical"
STOPS = {"english": "the a is are of and The", "german": "der die das und ist", "french": "le la les et est",
         "russian": "и в на не", "spanish": "el la los y es"}
TEXTS = {
    "english": ["The quick brown foxes are jumping over the lazy dogs, running and ran.", "", "a", "_ __ snake_case x_1",
                "don't can't won't — “quoted” re-entry 3.14 1,000", "COVID-19 COVID 19 19 19 covid", "naïve café ﬁ ＡＢＣ ⅷ ½ ²",
                "x" * 40 + " " + "y" * 41 + " " + "Z" * 300, "tab\tnew\nline\u00a0nbsp\u2003em", "the The THE of",
                "İstanbul ΣΊΣΥΦΟΣ ΑΣ Σ ΑΣΒ ǅ ß ẞ", "word " * 300, "日本語のテキスト 中文 한국어 हिन्दी ไทย", "emoji 😀 👩‍👩‍👧 done"],
    "german": ["Der Hund läuft schnell durch die Wälder und Häuser der Städte.", "Größe STRASSE Straße"],
    "french": ["Les chevaux mangeaient l'herbe verte des prés; c'était magnifique.", "Œuvre cœur ÉCOLE", "Ambiguïté archaïque aiguë Noël laïcité aïe canoë naïfs"],
    "spanish": ["Los niños corrían rápidamente por las calles y cantaban.", "¿Qué pasa? ¡Nada!"],
    "russian": ["Быстрые лисы прыгают через ленивых собак и не бегут.", "Ежик ЕЛКА", "Ёлка актёров бельё всё приём её ЧЁРНОЕ ещё"],
    "arabic": ["القطط السوداء تنام في البيوت الكبيرة"], "danish": ["Hundene løber hurtigt gennem skovene"],
    "dutch": ["De honden lopen snel door de bossen"], "finnish": ["Koirat juoksevat nopeasti metsien läpi"],
    "greek": ["Τα σκυλιά τρέχουν γρήγορα μέσα στα δάση"], "hungarian": ["A kutyák gyorsan futnak az erdőkben"],
    "italian": ["I cani corrono velocemente attraverso i boschi"], "norwegian": ["Hundene løper raskt gjennom skogene"],
    "portuguese": ["Os cães correm rapidamente pelas florestas"], "romanian": ["Câinii aleargă repede prin păduri"],
    "swedish": ["Hundarna springer snabbt genom skogarna"], "tamil": ["நாய்கள் காடுகளில் வேகமாக ஓடுகின்றன"],
    "turkish": ["Köpekler ormanlarda hızla koşuyorlar"],
}
OPTIONS = [{"k": 2.0, "b": 0.3, "avg_len": 5.0}, {"b": 0.0}, {"k": 0.0}, {"token_max_length": 4}, {"disable_stemmer": True},
           {"stopwords": ["Quick", "DOGS"]}]


def case(language, text, options):
    model = Bm25("Qdrant/bm25", specific_model_path=str(OUT / "stops"), language=language,
                 **{k: set(v) if k == "stopwords" else v for k, v in options.items()})
    document, query = list(model.raw_embed([text]))[0], list(model.query_embed(text))[0]
    pairs = sorted(zip(document.indices.tolist(), document.values.tolist()))
    return {"language": language, **options, "text": text, "indices": [i for i, _ in pairs],
            "values": [v for _, v in pairs], "query": sorted(query.indices.tolist())}


def main():
    (OUT / "stops").mkdir(parents=True, exist_ok=True)
    (OUT / "stops/config.json").write_text("{}\n")
    for language, words in STOPS.items():
        (OUT / f"stops/{language}.txt").write_text("".join(w + "\n" for w in words.split()))
    cases = [case(language, text, {}) for language, texts in TEXTS.items() for text in texts]
    cases += [case("english", TEXTS["english"][0], options) for options in OPTIONS]
    (OUT / "cases.jsonl").write_text("".join(json.dumps(c, ensure_ascii=False) + "\n" for c in cases))


if __name__ == "__main__":
    main()
