/* chat_template.h - the chat template of a reranker that is a language model, as a list of parts:
 * words of the template, and the places where query, document and instruction go.
 *
 * Templates are programs in the language of Jinja, with whitespace handled as transformers sets it
 * (trim_blocks and lstrip_blocks). Pith runs a small part of that language, once, when the model is
 * opened, on a message with the role "query", one with the role "document" and, if there is an
 * instruction, one with the role "system" before them. Their contents are placeholders, so a
 * template that looks into them is refused, as is one with constructs not listed here:
 *   set, if/elif/else, for over messages, comments; strings, numbers, true, false, none; and,
 *   or, not, ==, !=, in, is defined, is none, is string, x if y else z; + and ~ of strings;
 *   .name and [key]; selectattr, rejectattr, map(attribute=…), first, last, list, default, trim,
 *   string, length. */
#ifndef PITH_MODELS_CHAT_CHAT_TEMPLATE_H
#define PITH_MODELS_CHAT_CHAT_TEMPLATE_H

#include "base/memory/memory.h"

/* The longest template; those of published models have up to 20,000 bytes. It bounds the time that
 * a template takes, which grows with its length times the tags that run. */
#define PITH_CHAT_BYTES_MAX (1 << 16)

/* The most places for the texts of messages. It bounds what a template makes of a long document. */
enum { PITH_CHAT_PLACES_MAX = 16 };

typedef enum pith__chat_kind {
    PITH_CHAT_WORDS = 0,
    PITH_CHAT_QUERY = 1,
    PITH_CHAT_DOCUMENT = 2,
    PITH_CHAT_INSTRUCTION = 3,
    PITH_CHAT_KINDS = 4
} pith__chat_kind;

typedef struct pith__chat_part {
    pith__chat_kind kind;
    bool trimmed;   /* white space at both ends is left out, as by str.strip of Python; not of
                       words */
    pith_str words; /* of PITH_CHAT_WORDS */
} pith__chat_part;

typedef struct pith__chat_form {
    const pith__chat_part *parts;
    size_t count;
} pith__chat_form;

/* A variable that templates read. */
typedef struct pith__chat_variable {
    pith_str name, text; /* text.data is NULL: a flag */
    bool flag;
} pith__chat_variable;

typedef struct pith__chat_settings {
    bool instructed; /* there is a message with the role "system" */
    bool structured; /* contents are lists of one text, not strings */
    const pith__chat_variable *variables;
    size_t variable_count;
} pith__chat_settings;

/* Runs the template. name is for messages. *form is in the arena, and so are its words.
 * PITH_ERR_UNSUPPORTED names the line and what it has that is not run; so does a template that
 * leaves the query or the document out. */
pith_status pith__chat_template_run(pith__chat_form *form, pith_str text, const char *name,
                                    const pith__chat_settings *settings, pith__arena *arena,
                                    pith_error *err);

/* Copies a form and its words into the arena, with neighbouring words put together. */
pith_status pith__chat_form_copy(pith__chat_form *copy, const pith__chat_form *form,
                                 pith__arena *arena, pith_error *err);
/* Whether the form has a place of this kind. */
bool pith__chat_form_has(const pith__chat_form *form, pith__chat_kind kind);

#endif
