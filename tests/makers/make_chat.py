#!/usr/bin/env python3
"""Writes tests/data/rerankers/templates.jsonl: chat templates and what transformers makes of them.

usage: make_chat.py [COUNT [SEED]]     (needs transformers 4.57.1 and jinja2)
Each line has a template, whether there is an instruction, whether contents are lists, and "out": the text that
transformers renders, or null where it fails. "runs" says whether Pith runs the template: it may refuse others. With COUNT,
that many made-up templates are printed instead, without "runs".
"""
import json
import pathlib
import random
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

OUT = pathlib.Path(__file__).resolve().parent.parent / "data" / "rerankers" / "templates.jsonl"
QUERY, DOCUMENT, INSTRUCTION = "\u00a0 what? \n", "\x1f a {{ document }} \u3000", " be kind\t"
QUERY_TEXT = "{{ (messages | selectattr('role', 'eq', 'query') | first).content }}"
BOTH = QUERY_TEXT + "|{{ messages[-1].content }}"

RUN = [
    BOTH,
    "{{ messages[-2].content }}{{ messages[-1]['content'] }}\n",
    "{{ messages[-2].content }}{{ messages[-1]['content'] }}\n\n",
    "a\r\nb\r{{ messages[-2].content }}\r\n{% if true %}\r\nc\r\n{% endif %}\r\n" + BOTH + "\r\n",
    "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}",
    "{% for m in messages %}\n  {% if loop.first %}\n  first\n  {% elif loop.last %}\nlast\n    {% else %}\n middle\n{% endif %}\n"
    "{{ m['content'] }}\n{% endfor %}\n",
    "{% for m in messages -%}   {{- m.content -}}   {%- endfor %}",
    "  {%+ if true %} x {% endif +%}\n  {#- c -#}  y {# c #}\n{{ messages[0].content }}" + BOTH,
    "   {# at the beginning #}\n  {% set a = 'x' %}\n\t{{ a }}\n" + BOTH,
    "{% set s = messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first | default('none') %}{{ s }}" + BOTH,
    "{% set s = messages | selectattr('role', 'equalto', 'system') | map(attribute='content') | list %}"
    "{% if s | length %}{{ s[0] | trim }}{% else %}no{% endif %}" + BOTH,
    "{% for m in messages %}{{ m.content | trim }}/{% endfor %}",
    "{{ 'it\\'s' ~ \"a \\\"b\\\"\" + '\\n\\t\\\\' }}" + BOTH,
    "{{ bos_token }}{{ eos_token }}{{ nothing }}" + BOTH,
    "{% if bos_token is defined and eos_token is not defined %}d{% endif %}{% if tools is none %}n{% endif %}" + BOTH,
    "{% if tools %}t{% elif not add_generation_prompt %}g{% endif %}" + BOTH,
    "{% if 'a' in ['b', 'a'] and 'role' in messages[0] and 'x' not in messages[0] %}in{% endif %}" + BOTH,
    "{% if messages[0].role == 'query' or messages[0].role != 'query' and false %}q{% endif %}" + BOTH,
    "{% if not (messages[0].role == 'system') %}no system{% endif %}" + BOTH,
    "{{ 'a' if messages[0].role == 'system' else 'b' if false else 'c' }}{{ 'x' if false }}" + BOTH,
    "{{ (nothing | default('d')) ~ ('' | default('e', true)) ~ ('f' | d('g')) }}" + BOTH,
    "{{ nothing.more if nothing is defined else 'fine' }}" + BOTH,
    "{% if messages[0].content is string %}s{% endif %}{% if messages is string %}t{% endif %}"
    "{% if messages[0] is mapping %}m{% endif %}" + BOTH,
    "{% set a = 'o' %}{% for m in messages %}{% set a = 'i' %}{{ a }}{% endfor %}{{ a }}" + BOTH,
    "{% for a in ['x', 'y'] %}{% for b in ['1', '2'] %}{{ a ~ b }}{{ loop.first and 'f' or 'l' }}{% endfor %}{% endfor %}" + BOTH,
    "{% if 1 == 1 and -1 != 1 and true != false and none == none %}numbers{% endif %}" + BOTH,
    "{{ '}}' }}{{ \"{% x %}\" }}{{ '%}' }}" + BOTH,
    "}} %} #} { { { % }" + BOTH,
    "{{- ' a ' -}}  \n {{- messages[-2].content }}   {{ messages[-1].content -}}  \n x",
    "{{ messages | map(attribute='role') | first }}{{ (messages | map(attribute='role') | list)[-1] }}" + BOTH,
    "{% if messages | selectattr('role', 'eq', 'tool') | first is undefined %}u{% endif %}" + BOTH,
    "{% if messages[7] is undefined and messages[0].name is undefined %}u{% endif %}" + BOTH,
]
STRUCTURED = [
    "{{ messages[-2].content[0].text }}{{ messages[-1]['content'][0]['text'] }}",
    "{% for m in messages %}{% for c in m.content %}{% if c.type == 'text' %}{{ c.text | trim }};{% endif %}{% endfor %}{% endfor %}",
    "{% for m in messages %}{% if m.content is string %}s{% else %}{{ m.content[0].type }}{{ m.content[-1].text }}{% endif %}{% endfor %}",
]
REFUSED = [
    "{{ messages[0].content }}", "", "{{ messages[9].content.x }}" + BOTH, "{{ nothing.more }}" + BOTH,
    "{{ raise_exception('no') }}" + BOTH, "{% if %}{% endif %}" + BOTH, "{% for m messages %}{% endfor %}" + BOTH,
    "{% if true %}" + BOTH, "{{ 'a }}" + BOTH, "{{ 1 + }}" + BOTH, "{% endif %}" + BOTH, "{{ messages[0].content | nofilter }}" + BOTH,
    "{% for m in messages %}{{ m.content }}{% if m.role == 'query' %}{% break %}{% endif %}{% endfor %}",
    "{{ messages[0].content.upper() }}" + BOTH, "{% set ns = namespace(x=1) %}" + BOTH, "{{ messages[1:] | length }}" + BOTH,
    "{% macro f(x) %}{{ x }}{% endmacro %}{{ f('a') }}" + BOTH, "{{ messages | tojson }}" + BOTH, "{{ 3 }}" + BOTH,
    "{% if messages[0].content == 'a' %}a{% endif %}" + BOTH, "{% if messages[-1].content %}a{% endif %}" + BOTH,
    "{% generation %}a{% endgeneration %}" + BOTH, "{% raw %}{{ a }}{% endraw %}" + BOTH, "{{ {'a': 1}['a'] }}" + BOTH,
    "{% filter upper %}a{% endfilter %}" + BOTH, "{{ 'a' * 3 }}" + BOTH, "{% if 1 < 2 %}a{% endif %}" + BOTH,
    "{% for m in messages if m.role == 'query' %}a{% endfor %}" + BOTH, "{% for m in messages %}{% else %}{% endfor %}" + BOTH,
    "{{ messages[0].content | trim('x') }}" + BOTH, "{{ (messages[0].content ~ 'a') | trim }}" + BOTH,
]


def render(template, instructed, structured):
    def content(text):
        return [{"type": "text", "text": text}] if structured else text
    messages = [{"role": "query", "content": content(QUERY)}, {"role": "document", "content": content(DOCUMENT)}]
    if instructed:
        messages.insert(0, {"role": "system", "content": content(INSTRUCTION)})
    try:
        return _compile_jinja_template(template).render(messages=messages, tools=None, documents=None,
                                                        add_generation_prompt=False, bos_token="<s>")
    except Exception:
        return None


def line(template, instructed, structured, **more):
    return json.dumps({"template": template, "instructed": instructed, "structured": structured,
                       "out": render(template, instructed, structured), **more}) + "\n"


def made_up(r):
    """A template of pieces that fit together more often than not."""
    def value(depth):
        if depth <= 0:
            return r.choice(["'a'", '"b "', "bos_token", "messages[0].role", "messages[-1].content", "m.content", "m.role", "none",
                             "nothing", "true", "1", "messages", "messages[0]", "loop.first", "loop.index", "m", "x", "m['role']"])
        a, b = value(depth - 1), value(depth - 1)
        return r.choice([f"{a} ~ {b}", f"{a} + {b}", f"({a})", f"{a} | trim", f"{a} | default({b})", f"{a} if {b} else {a}",
                         f"{a} == {b}", f"{a} != {b}", f"not {a}", f"{a} and {b}", f"{a} or {b}", f"{a} in [{b}, {a}]",
                         f"{a} is defined", f"{a} is not none", f"{a} is string", f"{a}.content", f"{a}['role']", f"{a}[0]",
                         f"{a} | first", f"{a} | last", f"{a} | list", f"{a} | length", f"messages | selectattr('role', 'eq', {a})",
                         f"messages | map(attribute='content') | {r.choice(['first', 'last', 'list'])}", f"-{a}", a, a])

    def block(depth):
        space = lambda: r.choice(["", " ", "\n", "  \n ", "\t"])
        left, right = r.choice(["", "", "-", "+"]), r.choice(["", "", "-", "+"])
        kind = r.randrange(6) if depth else r.randrange(3)
        end = lambda word: f"{space()}{{%{r.choice(['', '-', '+'])} {word} {r.choice(['', '-'])}%}}{space()}"
        if kind == 0:
            return r.choice(["text", " a\n", "\n", "  ", "{", "}", "%"])
        if kind == 1:
            return f"{space()}{{{{{left.replace('+', '')} {value(r.randrange(3))} {right.replace('+', '')}}}}}{space()}"
        if kind == 2:
            return f"{space()}{{%{left} set x = {value(r.randrange(3))} {right}%}}{space()}"
        inner = "".join(block(depth - 1) for _ in range(r.randrange(1, 4)))
        if kind == 3:
            return f"{space()}{{%{left} for m in messages {right}%}}{space()}{inner}{end('endfor')}"
        other = f"{{% else %}}{block(depth - 1)}" if r.random() < 0.5 else ""
        return f"{space()}{{%{left} if {value(r.randrange(3))} {right}%}}{space()}{inner}{other}{end('endif')}"
    return "".join(block(2) for _ in range(r.randrange(1, 5))) + r.choice([BOTH, BOTH + "\n", "\n" + BOTH])


def main(arguments):
    if arguments:
        r = random.Random(int(arguments[1]) if len(arguments) > 1 else 1)
        for _ in range(int(arguments[0])):
            template = made_up(r)
            try:  # what is in a branch that does not run is not read by Pith
                _compile_jinja_template(template)
            except Exception:
                continue
            sys.stdout.write(line(template, r.random() < 0.5, False))
        return
    with OUT.open("w") as f:
        for instructed in (False, True):
            for structured, templates, runs in ((False, RUN, True), (True, STRUCTURED, True), (False, REFUSED, False)):
                for template in templates:
                    text = line(template, instructed, structured, runs=runs)
                    assert not runs or json.loads(text)["out"] is not None, template
                    f.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
