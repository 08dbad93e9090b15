/* chat_expression.c - expressions of chat templates: read and computed at once, from the left, by
 * precedence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "base/text_out.h"
#include "models/chat/chat_value.h"

static const chat_value undefined = { .type = CHAT_UNDEFINED };

chat_value pith__chat_fail(chat_run *r, const char *at, const char *format, ...) {
    if (r->status) return undefined;
    char what[300];
    int line = 1;
    for (const char *p = r->text.data; p < at && p < r->text.data + r->text.size; p++)
        line += *p == '\n';
    va_list arguments;
    va_start(arguments, format);
    pith__text_format(what, sizeof what, format, arguments);
    va_end(arguments);
    r->status = pith__fail(r->err, PITH_ERR_UNSUPPORTED, "%s: chat template, line %d: %s",
                           r->source, line, what);
    return undefined;
}

void *pith__chat_alloc(chat_run *r, size_t count, size_t size) {
    if (r->status) return NULL;
    if (count > CHAT_MEMORY_MAX / size || r->used + count * size > CHAT_MEMORY_MAX) {
        pith__chat_fail(r, r->at, "it makes too many values");
        return NULL;
    }
    r->used += count * size;
    void *memory = pith__arena_array(r->arena, count, size);
    if (!memory) r->status = pith__fail_memory(r->err, count * size);
    return memory;
}

void pith__chat_want(chat_run *r, chat_value v) {
    if (v.type == CHAT_UNDEFINED && v.number)
        pith__chat_fail(r, r->at, "it reads a member of what is not there");
}

void pith__chat_want_list(chat_run *r, chat_value v) {
    if (v.type == CHAT_LIST && v.number)
        pith__chat_fail(r, r->at, "it needs '| list' behind a filter");
}

chat_value pith__chat_flag(bool flag) { return (chat_value){ .type = CHAT_FLAG, .number = flag }; }

chat_value pith__chat_text(chat_run *r, pith_str words) {
    pith__chat_part *part = pith__chat_alloc(r, 1, sizeof *part);
    if (!part) return undefined;
    *part = (pith__chat_part){ .kind = PITH_CHAT_WORDS, .words = words };
    return (chat_value){ .type = CHAT_TEXT, .parts = part, .count = words.size > 0 };
}

/* Names are few, so they are searched in order. Setting a name again replaces its value. */
void pith__chat_set(chat_run *r, pith_str name, chat_value value) {
    size_t i = 0;
    while (i < r->name_count && !pith__str_eq(r->names[i].name, name)) i++;
    if (i == CHAT_NAMES_MAX)
        pith__chat_fail(r, r->at, "more than %d names", CHAT_NAMES_MAX);
    else
        r->names[i] = (chat_name){ name, value };
    if (i == r->name_count && i < CHAT_NAMES_MAX) r->name_count++;
}

/* ---- characters ---- */

static bool chat_is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool chat_is_letter(char c, bool first) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static void chat_skip(chat_run *r) {
    while (r->at < r->end && chat_is_blank(*r->at)) r->at++;
}

/* Blanks before and behind a sign do not matter, so callers never see any. */
bool pith__chat_take(chat_run *r, const char *sign) {
    const size_t n = strlen(sign);
    chat_skip(r);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, sign, n) != 0) return false;
    r->at += n;
    chat_skip(r);
    return true;
}

pith_str pith__chat_word(chat_run *r) {
    chat_skip(r);
    const char *begin = r->at;
    while (r->at < r->end && chat_is_letter(*r->at, r->at == begin)) r->at++;
    pith_str word = { begin, (size_t)(r->at - begin) };
    chat_skip(r);
    return word;
}

/* Takes this word and no longer one. */
static bool chat_take_word(chat_run *r, const char *wanted) {
    const char *before = r->at;
    if (pith__str_is(pith__chat_word(r), wanted)) return true;
    r->at = before;
    return false;
}

/* Counts what runs, within expressions too: a short template must not run for long. */
static bool chat_step(chat_run *r) {
    if (r->status) return false;
    if (r->steps++ < CHAT_STEPS_MAX) return true;
    pith__chat_fail(r, r->at, "it runs for too long");
    return false;
}

/* ---- comparing ---- */

/* Words without placeholders, put together; false for other values. */
static bool chat_plain(chat_run *r, chat_value v, pith_str *text) {
    *text = PITH_STR("");
    if (v.type != CHAT_TEXT) return false;
    size_t size = 0;
    for (size_t i = 0; i < v.count; i++) {
        if (v.parts[i].kind != PITH_CHAT_WORDS) return false;
        size += v.parts[i].words.size;
    }
    if (v.count == 1) *text = v.parts[0].words;
    if (v.count <= 1) return true;
    char *all = pith__chat_alloc(r, size, 1);
    if (!all) return false;
    for (size_t i = 0, at = 0; i < v.count; at += v.parts[i++].words.size)
        memcpy(all + at, v.parts[i].words.data, v.parts[i].words.size);
    *text = (pith_str){ all, size };
    return true;
}

/* Python's truth of a value. Whether the text of a message is empty is not known when a template
 * runs; an instruction is only there if it is not empty. */
bool pith__chat_holds(chat_run *r, chat_value v) {
    pith__chat_want(r, v);
    switch (v.type) {
    case CHAT_FLAG:
    case CHAT_NUMBER: return v.number != 0;
    case CHAT_LIST: return v.count > 0 || v.number;
    case CHAT_OBJECT: return v.count > 0;
    case CHAT_TEXT:
        for (size_t i = 0; i < v.count; i++)
            if (v.parts[i].kind == PITH_CHAT_WORDS ||
                (v.parts[i].kind == PITH_CHAT_INSTRUCTION && !v.parts[i].trimmed))
                return true;
        if (v.count) pith__chat_fail(r, r->at, "it asks whether the text of a message is empty");
        return false;
    default: return false;
    }
}

/* Python's ==. The texts of messages are not known here, so a template that looks into them cannot
 * be run. */
static bool chat_equal(chat_run *r, chat_value a, chat_value b) {
    pith_str x, y;
    pith__chat_want(r, a);
    pith__chat_want(r, b);
    if (a.type == CHAT_TEXT && b.type == CHAT_TEXT) {
        if (chat_plain(r, a, &x) && chat_plain(r, b, &y)) return pith__str_eq(x, y);
        pith__chat_fail(r, r->at, "it compares the text of a message");
        return false;
    }
    const bool numbers = (a.type == CHAT_NUMBER || a.type == CHAT_FLAG) &&
                         (b.type == CHAT_NUMBER || b.type == CHAT_FLAG);
    if (a.type != b.type && !numbers) return false; /* in Python, true is 1 */
    if (a.type == CHAT_LIST || a.type == CHAT_OBJECT)
        pith__chat_fail(r, r->at, "it compares lists");
    return a.number == b.number;
}

/* a in b */
static bool chat_is_in(chat_run *r, chat_value a, chat_value b) {
    pith_str word;
    if (b.type == CHAT_OBJECT && chat_plain(r, a, &word)) {
        for (size_t i = 0; i < b.count; i++)
            if (pith__str_eq(b.keys[i], word)) return true;
        return false;
    }
    if (b.type == CHAT_LIST) {
        for (size_t i = 0; i < b.count; i++) {
            if (r->status) break;
            if (chat_equal(r, a, b.items[i])) return true;
        }
        return false;
    }
    pith__chat_fail(r, r->at, "'in' is known for lists and names of members");
    return false;
}

/* ---- members ---- */

/* An undefined member is undefined; a member of something undefined is an error when it is used, as
 * in Jinja, hence the number 1. */
static chat_value chat_member(chat_value v, pith_str name) {
    if (v.type == CHAT_UNDEFINED) return (chat_value){ .type = CHAT_UNDEFINED, .number = 1 };
    if (v.type == CHAT_OBJECT)
        for (size_t i = 0; i < v.count; i++)
            if (pith__str_eq(v.keys[i], name)) return v.items[i];
    return undefined;
}

/* Negative places count from the end, as in Python. */
static chat_value chat_item(chat_value v, int64_t at) {
    if (v.type == CHAT_UNDEFINED) return (chat_value){ .type = CHAT_UNDEFINED, .number = 1 };
    if (at < 0) at += (int64_t)v.count;
    return v.type == CHAT_LIST && at >= 0 && at < (int64_t)v.count ? v.items[at] : undefined;
}

/* x[key]: a place in a list, or the name of a member in quotes. */
static chat_value chat_index(chat_run *r, chat_value v) {
    pith_str name;
    chat_value key = pith__chat_expression(r);
    pith__chat_want(r, key);
    pith__chat_want_list(r, v);
    if (!pith__chat_take(r, "]"))
        return pith__chat_fail(r, r->at, "']' is missing; slices are not run");
    if (key.type == CHAT_NUMBER && v.type != CHAT_TEXT) return chat_item(v, key.number);
    if (chat_plain(r, key, &name)) return chat_member(v, name);
    return pith__chat_fail(r, r->at, "a key that is no name and no number");
}

/* ---- filters ---- */

typedef struct chat_arguments {
    chat_value at[4];
    int count;
    pith_str attribute; /* attribute='…' */
} chat_arguments;

/* The arguments of a filter, in parentheses or none at all. Of named ones only "attribute" is
 * known, which map takes. */
static void chat_read_arguments(chat_run *r, chat_arguments *a) {
    *a = (chat_arguments){ .attribute = PITH_STR("") };
    if (!pith__chat_take(r, "(")) return;
    while (!r->status && !pith__chat_take(r, ")")) {
        const char *before = r->at;
        pith_str name = pith__chat_word(r);
        const bool named = name.size && r->at < r->end && *r->at == '=' &&
                           (r->at + 1 == r->end || r->at[1] != '=');
        if (!named) r->at = before;
        if (named) r->at++;
        chat_value v = pith__chat_expression(r);
        pith__chat_want(r, v);
        if (named && !(pith__str_is(name, "attribute") && chat_plain(r, v, &a->attribute)))
            pith__chat_fail(r, before, "the argument '" PITH_STR_FMT "' is not known",
                            PITH_STR_ARG(name));
        if (!named && a->count == 4) pith__chat_fail(r, before, "too many arguments");
        if (!named && a->count < 4) a->at[a->count++] = v;
        if (!pith__chat_take(r, ",") && r->at < r->end && *r->at != ')')
            pith__chat_fail(r, r->at, "',' or ')' is missing");
        if (r->at == r->end) pith__chat_fail(r, before, "')' is missing");
    }
}

/* selectattr("role", "eq", "query"); without a test, members that hold. */
static chat_value chat_select(chat_run *r, chat_value v, const chat_arguments *a, bool wanted) {
    pith_str name, test = PITH_STR("");
    if (v.type != CHAT_LIST || !a->count || !chat_plain(r, a->at[0], &name) ||
        (a->count > 1 && !chat_plain(r, a->at[1], &test)))
        return pith__chat_fail(r, r->at, "selectattr needs a list and the name of a member");
    const bool equals =
        a->count == 3 &&
        (pith__str_is(test, "eq") || pith__str_is(test, "equalto") || pith__str_is(test, "=="));
    if (!equals && a->count != 1)
        return pith__chat_fail(r, r->at, "the test '" PITH_STR_FMT "' is not known",
                               PITH_STR_ARG(test));
    chat_value *items = pith__chat_alloc(r, v.count, sizeof *items);
    size_t count = 0;
    if (!items) return undefined;
    for (size_t i = 0; i < v.count; i++) {
        if (r->status) break;
        chat_value member = chat_member(v.items[i], name);
        if ((equals ? chat_equal(r, member, a->at[2]) : pith__chat_holds(r, member)) == wanted)
            items[count++] = v.items[i];
    }
    return (chat_value){ .type = CHAT_LIST, .number = 1, .items = items, .count = count };
}

/* map(attribute="role"). Jinja gives a stream that can be read once, which number 1 says. */
static chat_value chat_map(chat_run *r, chat_value v, const chat_arguments *a) {
    if (v.type != CHAT_LIST || !a->attribute.size)
        return pith__chat_fail(r, r->at, "map needs a list and an attribute");
    chat_value *items = pith__chat_alloc(r, v.count, sizeof *items);
    if (!items) return undefined;
    for (size_t i = 0; i < v.count; i++) items[i] = chat_member(v.items[i], a->attribute);
    return (chat_value){ .type = CHAT_LIST, .number = 1, .items = items, .count = v.count };
}

static pith_str chat_trim_words(pith_str s) {
    while (s.size && (chat_is_blank(s.data[0]) || s.data[0] == '\v' || s.data[0] == '\f'))
        s.data++, s.size--;
    while (s.size && (chat_is_blank(s.data[s.size - 1]) || s.data[s.size - 1] == '\v' ||
                      s.data[s.size - 1] == '\f'))
        s.size--;
    return s;
}

/* Of plain words, or of a placeholder alone. */
static chat_value chat_trim(chat_run *r, chat_value v) {
    pith_str words;
    if (v.type == CHAT_TEXT && v.count == 1 && v.parts[0].kind != PITH_CHAT_WORDS) {
        pith__chat_part *part = pith__chat_alloc(r, 1, sizeof *part);
        if (!part) return undefined;
        *part = v.parts[0];
        part->trimmed = true;
        return (chat_value){ .type = CHAT_TEXT, .parts = part, .count = 1 };
    }
    if (chat_plain(r, v, &words)) return pith__chat_text(r, chat_trim_words(words));
    return pith__chat_fail(r, r->at, "it trims words together with a text");
}

/* Filters go from the value to the next one, so their order is that of the text. Those that are not
 * known are errors: a filter that is passed over changes the result. */
static chat_value chat_filter(chat_run *r, chat_value v) {
    const char *at = r->at;
    pith_str name = pith__chat_word(r);
    chat_arguments a;
    chat_read_arguments(r, &a);
    pith__chat_want(r, v);
    if (!chat_step(r)) return undefined;
    if (pith__str_is(name, "selectattr")) return chat_select(r, v, &a, true);
    if (pith__str_is(name, "rejectattr")) return chat_select(r, v, &a, false);
    if (pith__str_is(name, "map")) return chat_map(r, v, &a);
    if (pith__str_is(name, "first") && v.type == CHAT_LIST) return chat_item(v, 0);
    if (pith__str_is(name, "list") && v.type == CHAT_LIST)
        return (chat_value){ .type = CHAT_LIST, .items = v.items, .count = v.count };
    if (pith__str_is(name, "last") || pith__str_is(name, "length")) pith__chat_want_list(r, v);
    if (pith__str_is(name, "last") && v.type == CHAT_LIST) return chat_item(v, -1);
    if ((pith__str_is(name, "default") || pith__str_is(name, "d")) && a.count) {
        /* also what is empty or false */
        const bool replaces = a.count > 1 && pith__chat_holds(r, a.at[1]);
        return v.type == CHAT_UNDEFINED || (replaces && !pith__chat_holds(r, v)) ? a.at[0] : v;
    }
    if (pith__str_is(name, "trim") && !a.count) return chat_trim(r, v);
    if (pith__str_is(name, "string") && v.type == CHAT_TEXT) return v;
    if (pith__str_is(name, "length") && v.type == CHAT_LIST)
        return (chat_value){ .type = CHAT_NUMBER, .number = (int64_t)v.count };
    return pith__chat_fail(r, at, "the filter '" PITH_STR_FMT "' is not run here",
                           PITH_STR_ARG(name));
}

/* ---- operands ---- */

/* A string in quotes, with the escapes of Python that templates use. */
static chat_value chat_string(chat_run *r) {
    const char quote = *r->at++, *begin = r->at;
    size_t n = 0;
    while (r->at + n < r->end && r->at[n] != quote) n += 1 + (r->at[n] == '\\');
    char *to = pith__chat_alloc(r, n + 1, 1);
    n = 0;
    if (!to) return undefined;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        static const char from[] = "ntr\\'\"\n", into[] = "\n\t\r\\'\"";
        if (*r->at != '\\' || r->at + 1 == r->end) {
            to[n++] = *r->at;
            continue;
        }
        const char *known = strchr(from, *++r->at);
        if (!known || !*known || *known == '\n')
            return pith__chat_fail(r, r->at, "the escape '\\%c' is not known", *r->at);
        to[n++] = into[known - from];
    }
    if (r->at == r->end) return pith__chat_fail(r, begin, "a string does not end");
    r->at++;
    chat_skip(r);
    return pith__chat_text(r, (pith_str){ to, n });
}

/* Whole numbers only; templates use them as places in lists. */
static chat_value chat_number(chat_run *r) {
    int64_t n = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (n > 1000000) return pith__chat_fail(r, r->at, "a number too large");
        n = 10 * n + (*r->at - '0');
    }
    chat_skip(r);
    return (chat_value){ .type = CHAT_NUMBER, .number = n };
}

/* [a, b]. Templates compare roles with short lists. */
static chat_value chat_list(chat_run *r) {
    chat_value *items = pith__chat_alloc(r, 16, sizeof *items);
    size_t count = 0;
    if (!items) return undefined;
    while (!r->status && !pith__chat_take(r, "]")) {
        if (count == 16 || r->at == r->end)
            return pith__chat_fail(r, r->at, "a list that is long or does not end");
        items[count] = pith__chat_expression(r);
        pith__chat_want(r, items[count]);
        pith__chat_want_list(r, items[count++]);
        if (!pith__chat_take(r, ",") && r->at < r->end && *r->at != ']')
            return pith__chat_fail(r, r->at, "',' or ']' is missing");
    }
    return (chat_value){ .type = CHAT_LIST, .items = items, .count = count };
}

/* Constants, then names. An unknown name is undefined, which is no error by itself. */
static chat_value chat_named(chat_run *r) {
    const char *at = r->at;
    pith_str name = pith__chat_word(r);
    if (pith__str_is(name, "true") || pith__str_is(name, "True")) return pith__chat_flag(true);
    if (pith__str_is(name, "false") || pith__str_is(name, "False")) return pith__chat_flag(false);
    if (pith__str_is(name, "none") || pith__str_is(name, "None"))
        return (chat_value){ .type = CHAT_NONE };
    if (!name.size)
        return pith__chat_fail(r, at,
                               "an operand is missing, or is of a kind that is not run here");
    if (r->at < r->end && *r->at == '(')
        return pith__chat_fail(r, at, "the function '" PITH_STR_FMT "' is not run here",
                               PITH_STR_ARG(name));
    for (size_t i = 0; i < r->name_count; i++)
        if (pith__str_eq(r->names[i].name, name)) return r->names[i].value;
    return undefined;
}

/* A string, a number, a list, an expression in parentheses, or a name. */
static chat_value chat_operand(chat_run *r) {
    chat_skip(r);
    if (r->at == r->end) return pith__chat_fail(r, r->at, "an operand is missing");
    if (*r->at == '\'' || *r->at == '"') return chat_string(r);
    if (*r->at >= '0' && *r->at <= '9') return chat_number(r);
    if (pith__chat_take(r, "[")) return chat_list(r);
    if (!pith__chat_take(r, "(")) return chat_named(r);
    chat_value v = pith__chat_expression(r);
    if (!pith__chat_take(r, ")")) return pith__chat_fail(r, r->at, "')' is missing");
    return v;
}

/* Whether what follows is no argument of a test. */
static bool chat_ends_test(chat_run *r) {
    const char *before = r->at;
    if (r->at == r->end || strchr(")],|~+=!", *r->at)) return true;
    const pith_str word = pith__chat_word(r);
    r->at = before;
    return pith__str_is(word, "and") || pith__str_is(word, "or") || pith__str_is(word, "else");
}

/* x is [not] defined */
static chat_value chat_test(chat_run *r, chat_value v) {
    const bool turned = chat_take_word(r, "not");
    const char *at = r->at;
    pith_str name = pith__chat_word(r);
    bool is = false;
    pith__chat_want(r, v);
    if (!chat_ends_test(r)) return pith__chat_fail(r, at, "a test with an argument, or of a test");
    if (pith__str_is(name, "defined"))
        is = v.type != CHAT_UNDEFINED;
    else if (pith__str_is(name, "undefined"))
        is = v.type == CHAT_UNDEFINED;
    else if (pith__str_is(name, "none"))
        is = v.type == CHAT_NONE;
    else if (pith__str_is(name, "string"))
        is = v.type == CHAT_TEXT;
    else if (pith__str_is(name, "mapping"))
        is = v.type == CHAT_OBJECT;
    else
        return pith__chat_fail(r, at, "the test '" PITH_STR_FMT "' is not known",
                               PITH_STR_ARG(name));
    return pith__chat_flag(is != turned);
}

/* An operand with what is behind it: members, places, filters and tests. Jinja binds a member
 * closer than a filter, so one behind a filter would mean something else. */
static chat_value chat_postfix(chat_run *r) {
    const bool minus = pith__chat_take(r, "-");
    chat_value v = chat_operand(r);
    if (minus && v.type != CHAT_NUMBER)
        return pith__chat_fail(r, r->at, "'-' before what is no number");
    if (minus && r->at < r->end && (*r->at == '[' || *r->at == '.'))
        return pith__chat_fail(r, r->at, "a member of a number");
    if (minus) v.number = -v.number;
    bool filtered = false;
    while (chat_step(r)) {
        if (filtered && r->at < r->end && (*r->at == '.' || *r->at == '['))
            return pith__chat_fail(
                r, r->at, "a member of what a filter or test gives needs '()' around these");
        if (pith__chat_take(r, ".")) {
            pith_str name = pith__chat_word(r);
            if (r->at < r->end && *r->at == '(')
                return pith__chat_fail(r, r->at, "the method '" PITH_STR_FMT "' is not run here",
                                       PITH_STR_ARG(name));
            v = chat_member(v, name);
        } else if (pith__chat_take(r, "[")) {
            v = chat_index(r, v);
        } else if (pith__chat_take(r, "|")) {
            v = chat_filter(r, v);
            filtered = true;
        } else if (chat_take_word(r, "is")) {
            v = chat_test(r, v);
            filtered = true;
        } else {
            return v;
        }
    }
    return undefined;
}

/* ---- operators ---- */

/* Strings with places in them are joined by joining their parts. */
static chat_value chat_join(chat_run *r, chat_value a, chat_value b) {
    pith__chat_want(r, a);
    pith__chat_want(r, b);
    if (a.type != CHAT_TEXT || b.type != CHAT_TEXT)
        return pith__chat_fail(r, r->at, "'+' and '~' are known for strings");
    pith__chat_part *parts = pith__chat_alloc(r, a.count + b.count, sizeof *parts);
    if (!parts) return undefined;
    if (a.count) memcpy(parts, a.parts, a.count * sizeof *parts);
    if (b.count) memcpy(parts + a.count, b.parts, b.count * sizeof *parts);
    return (chat_value){ .type = CHAT_TEXT, .parts = parts, .count = a.count + b.count };
}

/* + and ~ are the same for strings, which are all that is joined here. */
static chat_value chat_sum(chat_run *r) {
    chat_value v = chat_postfix(r);
    while (!r->status && (pith__chat_take(r, "+") || pith__chat_take(r, "~")))
        v = chat_join(r, v, chat_postfix(r));
    return v;
}

typedef enum chat_comparison {
    CHAT_NO_COMPARISON,
    CHAT_EQUAL,
    CHAT_UNEQUAL,
    CHAT_IN,
    CHAT_NOT_IN
} chat_comparison;

/* Takes an operator, if one is next. */
static chat_comparison chat_take_comparison(chat_run *r) {
    const char *before = r->at;
    if (pith__chat_take(r, "==")) return CHAT_EQUAL;
    if (pith__chat_take(r, "!=")) return CHAT_UNEQUAL;
    if (chat_take_word(r, "in")) return CHAT_IN;
    if (chat_take_word(r, "not") && chat_take_word(r, "in")) return CHAT_NOT_IN;
    r->at = before;
    return CHAT_NO_COMPARISON;
}

/* Python allows chains such as a == b == c; they are refused. */
static chat_value chat_compare(chat_run *r) {
    chat_value v = chat_sum(r);
    const chat_comparison how = r->status ? CHAT_NO_COMPARISON : chat_take_comparison(r);
    if (!how) return v;
    chat_value other = chat_sum(r);
    const bool by_value = how == CHAT_EQUAL || how == CHAT_UNEQUAL;
    const bool holds = by_value ? chat_equal(r, v, other) : chat_is_in(r, v, other);
    if (chat_take_comparison(r)) return pith__chat_fail(r, r->at, "a comparison of a comparison");
    return pith__chat_flag(holds == (how == CHAT_EQUAL || how == CHAT_IN));
}

/* Several "not" cancel out in pairs, and what is left is a flag. */
static chat_value chat_not(chat_run *r) {
    int turns = 0;
    while (chat_take_word(r, "not")) turns++;
    chat_value v = chat_compare(r);
    return turns ? pith__chat_flag(pith__chat_holds(r, v) != (turns % 2 == 1)) : v;
}

/* As in Python, the value is that of an operand and not a flag. Both sides run: nothing here has an
 * effect, and faults on the side that Python would skip are told. */
static chat_value chat_and(chat_run *r) {
    chat_value v = chat_not(r);
    while (!r->status && chat_take_word(r, "and")) {
        chat_value other = chat_not(r);
        if (pith__chat_holds(r, v)) v = other;
    }
    return v;
}

static chat_value chat_or(chat_run *r) {
    chat_value v = chat_and(r);
    while (!r->status && chat_take_word(r, "or")) {
        chat_value other = chat_and(r);
        if (!pith__chat_holds(r, v)) v = other;
    }
    return v;
}

chat_value pith__chat_operands(chat_run *r) { return chat_or(r); }

chat_value pith__chat_expression(chat_run *r) {
    if (r->depth == CHAT_DEPTH_MAX)
        return pith__chat_fail(r, r->at, "it is nested more than %d deep", CHAT_DEPTH_MAX);
    r->depth++;
    chat_value v = chat_or(r);
    if (!r->status && chat_take_word(r, "if")) {
        const bool holds = pith__chat_holds(r, chat_or(r));
        chat_value other = chat_take_word(r, "else") ? pith__chat_expression(r) : undefined;
        if (!holds) v = other;
    }
    r->depth--;
    return v;
}
