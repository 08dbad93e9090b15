/* chat_value.h - the inside of chat_template.h: values of a template while it runs, and
 * expressions. */
#ifndef PITH_MODELS_CHAT_CHAT_VALUE_H
#define PITH_MODELS_CHAT_CHAT_VALUE_H

#include "models/chat/chat_template.h"

typedef enum chat_type {
    CHAT_UNDEFINED,
    CHAT_NONE,
    CHAT_FLAG,
    CHAT_NUMBER,
    CHAT_TEXT,
    CHAT_LIST,
    CHAT_OBJECT
} chat_type;

typedef struct chat_value {
    chat_type type;
    /* Of FLAG and NUMBER; 1 of UNDEFINED: a member of what is not there; 1 of LIST: a stream, as
     * filters make of a list, which holds even if it is empty, can be read only once, and has no
     * length and no places. */
    int64_t number;
    const pith__chat_part *parts; /* of TEXT: [count] */
    const struct chat_value *items;
    const pith_str *keys; /* of OBJECT: [count], one for each item */
    size_t count;
} chat_value;

typedef struct chat_name {
    pith_str name;
    chat_value value;
} chat_name;

/* More names than any template sets at once; nested tags and parentheses; tags, operators and
 * filters that run; bytes that a run may take for values. */
enum {
    CHAT_NAMES_MAX = 64,
    CHAT_DEPTH_MAX = 32,
    CHAT_STEPS_MAX = 20000,
    CHAT_MEMORY_MAX = 8 << 20
};

typedef struct chat_run {
    const char *source;   /* name of the template, for messages */
    pith_str text;        /* of the template */
    const char *at, *end; /* the expression that is read */
    chat_name names[CHAT_NAMES_MAX];
    size_t name_count;
    int depth, steps;
    size_t used; /* bytes for values */
    pith__arena *arena;
    pith_error *err;
    pith_status status; /* the first fault; after it, values are undefined */
} chat_run;

/* Notes a fault at the place in the template; returns an undefined value. */
chat_value pith__chat_fail(chat_run *r, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns zeroed memory for values; NULL after a fault: too much, or none is left. */
void *pith__chat_alloc(chat_run *r, size_t count, size_t size);
/* Fails for a member of what is not there, which Jinja refuses as soon as it is read. Here it is
 * refused when it is used, since both sides of "and", "or" and "if" are computed. */
void pith__chat_want(chat_run *r, chat_value v);
/* Fails for a stream where Jinja needs a list, or would read it twice. */
void pith__chat_want_list(chat_run *r, chat_value v);
/* Reads an expression at r->at, and leaves r->at behind it and behind blanks. */
chat_value pith__chat_expression(chat_run *r);
/* The same without "x if y else z", as blocks take it. */
chat_value pith__chat_operands(chat_run *r);
/* Whether a condition holds. Fails for a text that may be empty or not. */
bool pith__chat_holds(chat_run *r, chat_value v);
chat_value pith__chat_text(chat_run *r, pith_str words);
chat_value pith__chat_flag(bool flag);
/* Sets a name, which is new or has another value. */
void pith__chat_set(chat_run *r, pith_str name, chat_value value);
/* Reads a name at r->at; size 0 if there is none. Skips blanks before and behind it. */
pith_str pith__chat_word(chat_run *r);
/* Reads these characters, blanks before and behind them; false if others are there. */
bool pith__chat_take(chat_run *r, const char *sign);

#endif
