/* chat_template.c - see chat_template.h. The template is cut into words and tags, which run one
 * after another; a tag that holds others finds its end by counting. Source of the rules for
 * whitespace: Jinja 3.1, "Whitespace Control". */
#include "models/chat/chat_template.h"

#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "models/chat/chat_value.h"

typedef enum chat_tag_kind { CHAT_TAG_WORDS, CHAT_TAG_PUT, CHAT_TAG_BLOCK } chat_tag_kind;

typedef struct chat_tag {
    chat_tag_kind kind;
    pith_str text;    /* of BLOCK, what follows its name */
    pith_str keyword; /* of BLOCK */
} chat_tag;

typedef struct chat_program {
    chat_run run;
    chat_tag *tags;
    size_t count, capacity;
    pith__chat_part *parts;
    size_t part_count, part_capacity, word_bytes;
} chat_program;

/* The most parts, and bytes of words, that a template writes. */
enum { CHAT_PARTS_MAX = 1 << 12, CHAT_WORDS_MAX = 1 << 18 };

static bool chat_is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* ---- cutting ---- */

/* Tags are cut before anything runs, so that blocks can look ahead for their ends. */
static void chat_add_tag(chat_program *c, chat_tag tag) {
    void *tags = c->tags;
    if (c->run.status) return;
    if (!pith__arena_grow(c->run.arena, &tags, c->count, &c->capacity, sizeof tag)) {
        c->run.status = pith__fail_memory(c->run.err, sizeof tag);
        return;
    }
    c->tags = tags;
    c->tags[c->count++] = tag;
}

/* Words up to a tag: without blanks if the tag begins with '-', or, before a block at the beginning
 * of a line, without those of the line. */
static void chat_add_words(chat_program *c, const char *begin, const char *end, bool stripped,
                           bool block) {
    const char *cut = end;
    if (stripped) {
        while (cut > begin && chat_is_space(cut[-1])) cut--;
    } else if (block) {
        while (cut > begin && (cut[-1] == ' ' || cut[-1] == '\t')) cut--;
        const bool line =
            cut > begin ? cut[-1] == '\n' : cut == c->run.text.data || cut[-1] == '\n';
        if (!line) cut = end;
    }
    if (cut > begin)
        chat_add_tag(c,
                     (chat_tag){ CHAT_TAG_WORDS, { begin, (size_t)(cut - begin) }, PITH_STR("") });
}

/* The end of a tag's text, which strings may hide; NULL: it has none. */
static const char *chat_find_end(const char *p, const char *end, char mark) {
    char quote = 0;
    for (; p + 1 < end; p++) {
        if (quote && *p == '\\') {
            p++;
        } else if (quote) {
            if (*p == quote) quote = 0;
        } else if (mark != '#' && (*p == '"' || *p == '\'')) {
            quote = *p;
        } else if (*p == mark && p[1] == '}') {
            return p;
        }
    }
    return NULL;
}

/* Where the words behind a tag begin. */
static const char *chat_behind(const char *p, const char *end, bool stripped, bool block) {
    while (stripped && p < end && chat_is_space(*p)) p++;
    return !stripped && block && p < end && *p == '\n' ? p + 1 : p;
}

/* A comment leaves nothing. Of a block the first word is its keyword, and the rest is scanned when
 * it runs. */
static void chat_add_code(chat_program *c, const char *begin, const char *end, char mark) {
    chat_run *r = &c->run;
    chat_tag tag = { mark == '}' ? CHAT_TAG_PUT : CHAT_TAG_BLOCK,
                     { begin, (size_t)(end - begin) },
                     PITH_STR("") };
    if (mark == '#') return;
    r->at = begin;
    r->end = end;
    if (mark == '%') {
        tag.keyword = pith__chat_word(r);
        tag.text = (pith_str){ r->at, (size_t)(end - r->at) };
    }
    chat_add_tag(c, tag);
}

/* Jinja's lexer for {{ }}, {% %} and {# #}, with trim_blocks and lstrip_blocks as transformers sets
 * them: a block takes the blanks before it on its line and the newline behind it; "-" takes all
 * white space, "+" none. */
static void chat_cut(chat_program *c) {
    const char *p = c->run.text.data, *end = p + c->run.text.size, *words = p;
    if (end > p && end[-1] == '\n') end--; /* Jinja drops the last newline */
    while (p + 1 < end && !c->run.status) {
        if (*p != '{' || (p[1] != '{' && p[1] != '%' && p[1] != '#')) {
            p++;
            continue;
        }
        const char mark = p[1] == '{' ? '}' : p[1], *code = p + 2;
        const bool left = code < end && *code == '-', kept = code < end && *code == '+';
        const char *stop = chat_find_end(code + (left || kept), end, mark);
        if (!stop) {
            pith__chat_fail(&c->run, p, "a tag does not end");
            return;
        }
        chat_add_words(c, words, p, left, mark != '}' && !kept);
        const bool right = stop > code && stop[-1] == '-',
                   plus = stop > code && stop[-1] == '+' && mark != '}';
        const char *from = code + (left || kept), *to = stop - (right || plus);
        chat_add_code(c, from, to > from ? to : from, mark);
        p = words = chat_behind(stop + 2, end, right, mark != '}' && !plus);
    }
    chat_add_words(c, words, end, false, false);
}

/* ---- running ---- */

/* Words and places are appended to the result. Loops may write much, so both numbers are bounded.
 */
static void chat_emit(chat_program *c, pith__chat_part part) {
    void *parts = c->parts;
    if (c->run.status) return;
    c->word_bytes += part.words.size;
    if (c->part_count == CHAT_PARTS_MAX || c->word_bytes > CHAT_WORDS_MAX) {
        pith__chat_fail(&c->run, c->run.at, "it writes too much");
        return;
    }
    if (!pith__arena_grow(c->run.arena, &parts, c->part_count, &c->part_capacity, sizeof part)) {
        c->run.status = pith__fail_memory(c->run.err, sizeof part);
        return;
    }
    c->parts = parts;
    c->parts[c->part_count++] = part;
}

/* {{ expression }}. Undefined writes nothing, as in Jinja; anything that is no string would need
 * Python's way of writing it. */
static void chat_put(chat_program *c, const chat_tag *tag) {
    chat_value v = pith__chat_expression(&c->run);
    if (c->run.at < c->run.end)
        pith__chat_fail(&c->run, c->run.at, "something follows an expression");
    pith__chat_want(&c->run, v);
    if (v.type != CHAT_TEXT && v.type != CHAT_UNDEFINED)
        pith__chat_fail(&c->run, tag->text.data, "it writes something other than a string");
    if (v.type == CHAT_TEXT)
        for (size_t i = 0; i < v.count; i++) chat_emit(c, v.parts[i]);
}

/* The next tag of the same nesting that belongs to the block at `at`: elif, else or its end. count:
 * none. */
static size_t chat_next(const chat_program *c, size_t at, const char *end) {
    int depth = 0;
    for (size_t i = at + 1; i < c->count; i++) {
        const pith_str k = c->tags[i].keyword;
        if (c->tags[i].kind != CHAT_TAG_BLOCK) continue;
        if (!depth && (pith__str_is(k, end) || pith__str_is(k, "elif") || pith__str_is(k, "else")))
            return i;
        if (pith__str_is(k, "if") || pith__str_is(k, "for")) depth++;
        if (pith__str_is(k, "endif") || pith__str_is(k, "endfor")) depth--;
        if (depth < 0) break;
    }
    return c->count;
}

static void chat_run_tags(chat_program *c, size_t begin, size_t end);

static bool chat_condition(chat_program *c, const chat_tag *tag) {
    chat_run *r = &c->run;
    r->at = tag->text.data;
    r->end = r->at + tag->text.size;
    const bool holds = pith__chat_holds(r, pith__chat_operands(r));
    if (r->at < r->end) pith__chat_fail(r, r->at, "something follows a condition");
    return holds && !r->status;
}

/* Returns the place of endif. */
static size_t chat_if(chat_program *c, size_t at) {
    bool done = false;
    for (size_t i = at; !c->run.status;) {
        const chat_tag *tag = &c->tags[i];
        const size_t next = chat_next(c, i, "endif");
        if (next == c->count) pith__chat_fail(&c->run, tag->text.data, "a block 'if' does not end");
        if (c->run.status) break;
        if (!done && (pith__str_is(tag->keyword, "else") || chat_condition(c, tag))) {
            done = true;
            chat_run_tags(c, i + 1, next);
        }
        if (pith__str_is(c->tags[next].keyword, "endif")) return next;
        i = next;
    }
    return c->count;
}

/* Of Jinja's object "loop", what templates ask for. */
static chat_value chat_loop(chat_run *r, size_t i, size_t count) {
    static const pith_str keys[] = {
        { "first", 5 }, { "last", 4 }, { "index", 5 }, { "index0", 6 }
    };
    chat_value *items = pith__chat_alloc(r, 4, sizeof *items);
    if (!items) return (chat_value){ .type = CHAT_UNDEFINED };
    items[0] = pith__chat_flag(i == 0);
    items[1] = pith__chat_flag(i + 1 == count);
    items[2] = (chat_value){ .type = CHAT_NUMBER, .number = (int64_t)i + 1 };
    items[3] = (chat_value){ .type = CHAT_NUMBER, .number = (int64_t)i };
    return (chat_value){ .type = CHAT_OBJECT, .items = items, .keys = keys, .count = 4 };
}

/* Returns the place of endfor. Names that are set within a round are gone behind it, as in Jinja.
 */
static size_t chat_for(chat_program *c, size_t at) {
    chat_run *r = &c->run;
    const size_t end = chat_next(c, at, "endfor");
    pith_str name = pith__chat_word(r), in = pith__chat_word(r);
    chat_value list = pith__chat_operands(r);
    if (end == c->count || !pith__str_is(c->tags[end].keyword, "endfor") || !name.size ||
        !pith__str_is(in, "in") || list.type != CHAT_LIST || r->at < r->end)
        pith__chat_fail(r, c->tags[at].text.data,
                        "a block 'for' is not of the form that is run here: 'for x in list'");
    for (size_t i = 0; i < list.count; i++) {
        if (r->status) break;
        chat_name kept[CHAT_NAMES_MAX];
        const size_t count = r->name_count;
        memcpy(kept, r->names, sizeof kept);
        pith__chat_set(r, name, list.items[i]);
        pith__chat_set(r, PITH_STR("loop"), chat_loop(r, i, list.count));
        chat_run_tags(c, at + 1, end);
        memcpy(r->names, kept, sizeof r->names);
        r->name_count = count;
    }
    return end;
}

/* {% set name = expression %}. Namespaces and several names are not run. */
static void chat_assign(chat_program *c) {
    chat_run *r = &c->run;
    const char *at = r->at;
    pith_str name = pith__chat_word(r);
    if (!name.size || !pith__chat_take(r, "=")) {
        pith__chat_fail(r, at, "'set' is run for a name only");
        return;
    }
    chat_value v = pith__chat_expression(r);
    pith__chat_want(r, v);
    pith__chat_want_list(r, v);
    if (r->at < r->end) pith__chat_fail(r, r->at, "something follows an expression");
    pith__chat_set(r, name, v);
}

/* Whatever is no block that is run here is an error: passing over it would change the text. */
static size_t chat_run_block(chat_program *c, size_t i) {
    const pith_str k = c->tags[i].keyword;
    if (pith__str_is(k, "if")) return chat_if(c, i);
    if (pith__str_is(k, "for")) return chat_for(c, i);
    if (pith__str_is(k, "set"))
        chat_assign(c);
    else
        pith__chat_fail(&c->run, c->tags[i].text.data, "'" PITH_STR_FMT "' is not run here",
                        PITH_STR_ARG(k));
    return i;
}

/* Steps and depth are counted, which bounds the time of a template from the internet. */
static void chat_run_tags(chat_program *c, size_t begin, size_t end) {
    chat_run *r = &c->run;
    if (r->depth == CHAT_DEPTH_MAX)
        pith__chat_fail(r, r->at, "it is nested more than %d deep", CHAT_DEPTH_MAX);
    r->depth++;
    for (size_t i = begin; i < end; i++) {
        if (r->status) break;
        const chat_tag *tag = &c->tags[i];
        r->at = tag->text.data;
        r->end = r->at + tag->text.size;
        if (r->steps++ == CHAT_STEPS_MAX) pith__chat_fail(r, r->at, "it runs for too long");
        if (tag->kind == CHAT_TAG_WORDS)
            chat_emit(c, (pith__chat_part){ .kind = PITH_CHAT_WORDS, .words = tag->text });
        else if (tag->kind == CHAT_TAG_PUT)
            chat_put(c, tag);
        else
            i = chat_run_block(c, i);
    }
    r->depth--;
}

/* ---- messages ---- */

static chat_value chat_object(chat_run *r, const pith_str *keys, chat_value first,
                              chat_value second) {
    chat_value *items = pith__chat_alloc(r, 2, sizeof *items);
    if (!items) return (chat_value){ .type = CHAT_UNDEFINED };
    items[0] = first;
    items[1] = second;
    return (chat_value){ .type = CHAT_OBJECT, .items = items, .keys = keys, .count = 2 };
}

/* A message is an object with role and content, as callers of apply_chat_template pass it; the
 * content is a place for a text that is not known yet. */
static chat_value chat_message(chat_run *r, const char *role, pith__chat_kind kind,
                               bool structured) {
    static const pith_str keys[] = { { "role", 4 }, { "content", 7 } },
                          inner[] = { { "type", 4 }, { "text", 4 } };
    pith__chat_part *part = pith__chat_alloc(r, 1, sizeof *part);
    chat_value *list = pith__chat_alloc(r, 1, sizeof *list);
    if (!part || !list) return (chat_value){ .type = CHAT_UNDEFINED };
    part->kind = kind;
    chat_value content = { .type = CHAT_TEXT, .parts = part, .count = 1 };
    if (structured) {
        list[0] = chat_object(r, inner, pith__chat_text(r, PITH_STR("text")), content);
        content = (chat_value){ .type = CHAT_LIST, .items = list, .count = 1 };
    }
    return chat_object(r, keys, pith__chat_text(r, pith__str_of(role)), content);
}

/* The names that a template finds when it begins: the messages, flags that transformers always
 * passes, and the special tokens of the tokenizer. */
static void chat_begin(chat_program *c, const pith__chat_settings *s) {
    chat_run *r = &c->run;
    chat_value *messages = pith__chat_alloc(r, 3, sizeof *messages);
    size_t count = 0;
    if (!messages) return;
    if (s->instructed)
        messages[count++] = chat_message(r, "system", PITH_CHAT_INSTRUCTION, s->structured);
    messages[count++] = chat_message(r, "query", PITH_CHAT_QUERY, s->structured);
    messages[count++] = chat_message(r, "document", PITH_CHAT_DOCUMENT, s->structured);
    r->at = r->text.data;
    pith__chat_set(r, PITH_STR("messages"),
                   (chat_value){ .type = CHAT_LIST, .items = messages, .count = count });
    pith__chat_set(r, PITH_STR("add_generation_prompt"), pith__chat_flag(false));
    pith__chat_set(r, PITH_STR("tools"), (chat_value){ .type = CHAT_NONE });
    pith__chat_set(r, PITH_STR("documents"), (chat_value){ .type = CHAT_NONE });
    for (size_t i = 0; i < s->variable_count; i++) {
        const pith__chat_variable *v = &s->variables[i];
        pith__chat_set(r, v->name,
                       v->text.data ? pith__chat_text(r, v->text) : pith__chat_flag(v->flag));
    }
}

/* Jinja reads every end of a line as "\n". */
static pith_status chat_take_lines(pith_str *lines, pith_str text, pith__arena *arena,
                                   pith_error *err) {
    char *to = pith__arena_alloc(arena, text.size + 1);
    size_t n = 0;
    if (!to) return pith__fail_memory(err, text.size);
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\r' && i + 1 < text.size && text.data[i + 1] == '\n') continue;
        to[n++] = text.data[i] == '\r' ? '\n' : text.data[i];
    }
    *lines = (pith_str){ to, n };
    return PITH_OK;
}

/* Run once, at open. What comes out are words and places, into which each call puts its texts, so a
 * rerank call runs no template. */
pith_status pith__chat_template_run(pith__chat_form *form, pith_str text, const char *name,
                                    const pith__chat_settings *settings, pith__arena *arena,
                                    pith_error *err) {
    chat_program *c = pith__arena_array(arena, 1, sizeof *c);
    bool has[PITH_CHAT_KINDS] = { false };
    if (!c) return pith__fail_memory(err, sizeof *c);
    if (text.size > PITH_CHAT_BYTES_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: chat template: it is longer than %d bytes", name,
                          PITH_CHAT_BYTES_MAX);
    PITH_TRY(chat_take_lines(&c->run.text, text, arena, err));
    c->run.source = name;
    c->run.arena = arena;
    c->run.err = err;
    chat_begin(c, settings);
    chat_cut(c);
    chat_run_tags(c, 0, c->count);
    size_t places = 0;
    for (size_t i = 0; i < c->part_count; i++) has[c->parts[i].kind] = true;
    for (size_t i = 0; i < c->part_count; i++) places += c->parts[i].kind != PITH_CHAT_WORDS;
    if (!c->run.status && places > PITH_CHAT_PLACES_MAX)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: chat template: it writes messages more than %d times", name,
                          PITH_CHAT_PLACES_MAX);
    if (!c->run.status && !(has[PITH_CHAT_QUERY] && has[PITH_CHAT_DOCUMENT]))
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "%s: chat template: it leaves the %s of a pair out, as templates for conversations do",
            name, has[PITH_CHAT_QUERY] ? "document" : "query");
    *form = (pith__chat_form){ c->parts, c->part_count };
    return c->run.status;
}

bool pith__chat_form_has(const pith__chat_form *form, pith__chat_kind kind) {
    for (size_t i = 0; i < form->count; i++)
        if (form->parts[i].kind == kind) return true;
    return false;
}

/* The words of a run lie in scratch memory and in the template's text; the copy is all that is
 * kept. */
pith_status pith__chat_form_copy(pith__chat_form *copy, const pith__chat_form *form,
                                 pith__arena *arena, pith_error *err) {
    size_t bytes = 0, used = 0, count = 0;
    for (size_t i = 0; i < form->count; i++) bytes += form->parts[i].words.size;
    pith__chat_part *parts = pith__arena_array(arena, form->count, sizeof *parts);
    char *words = pith__arena_alloc(arena, bytes);
    if (!parts || !words) return pith__fail_memory(err, bytes);
    for (size_t i = 0; i < form->count; i++) {
        pith__chat_part part = form->parts[i];
        if (part.words.size) memcpy(words + used, part.words.data, part.words.size);
        part.words.data = words + used;
        used += part.words.size;
        if (part.kind == PITH_CHAT_WORDS && count && parts[count - 1].kind == PITH_CHAT_WORDS)
            parts[count - 1].words.size += part.words.size;
        else
            parts[count++] = part;
    }
    *copy = (pith__chat_form){ parts, count };
    return PITH_OK;
}
