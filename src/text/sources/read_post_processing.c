/* read_post_processing.c - reads post-processors, truncation and padding of tokenizer.json as templates. */
#include "text/post_processing.h"
#include "text/sources/key_report.h"

pith_status pith_framing_create(pith_loader *loader) {
    loader->tokenizer->framing = pith_arena_array(loader->arena, 1, sizeof *loader->tokenizer->framing);
    return loader->tokenizer->framing ? PITH_OK : pith_fail_memory(loader->err, sizeof(pith_framing));
}

int32_t pith_json_id(pith_json *j) {
    int64_t id = pith_json_int(j);
    if (!j->failed && (id < 0 || id >= PITH_TOKEN_ID_MAX))
        pith_json_fail(j, PITH_ERR_FORMAT, "%lld is not a token id", (long long)id);
    return j->failed ? 0 : (int32_t)id;
}

static void framing_read_add_item(pith_frame_template *t, pith_json *j, pith_loader *loader, int32_t id,
                                  int32_t type_id) {
    if (j->failed) return;
    if (!pith_arena_grow(loader->arena, (void **)&t->items, t->count, &t->capacity, sizeof *t->items)) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    t->items[t->count++] = (pith_frame_item){ id, type_id };
    if (id >= 0) t->specials++;
}

/* One piece of a template as it is written, before special tokens are known. */
typedef struct written_piece {
    pith_str special; /* data NULL: text */
    int32_t text, type_id;
} written_piece;

typedef struct written_template {
    written_piece *pieces;
    size_t count, capacity;
} written_template;

static void parse_pieces(pith_json *j, pith_loader *loader, written_template *out) {
    pith_str key;
    pith_json_array(j);
    while (pith_json_next_item(j)) {
        written_piece piece = { { NULL, 0 }, 0, 0 };
        pith_json_object(j);
        while (pith_json_next_key(j, &key)) {
            bool special = pith_str_is(key, "SpecialToken");
            if (!special && !pith_str_is(key, "Sequence")) {
                pith_json_fail(j, PITH_ERR_FORMAT, "expected Sequence or SpecialToken");
                break;
            }
            pith_json_object(j);
            while (pith_json_next_key(j, &key)) {
                if (pith_str_is(key, "type_id"))
                    piece.type_id = pith_json_id(j);
                else if (pith_str_is(key, "id")) {
                    pith_str id = pith_json_string(j);
                    if (special)
                        piece.special = id;
                    else if (pith_str_is(id, "A") || pith_str_is(id, "B"))
                        piece.text = id.data[0] - 'A';
                    else if (!j->failed)
                        pith_json_fail(j, PITH_ERR_FORMAT, "a sequence must be \"A\" or \"B\"");
                } else
                    pith_key_other(j, loader, key, "");
            }
        }
        if (j->failed) return;
        if (!pith_arena_grow(loader->scratch, (void **)&out->pieces, out->count, &out->capacity, sizeof piece))
            pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        else
            out->pieces[out->count++] = piece;
    }
}

/* special_tokens: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": […]}}; its raw text is walked once per use. */
static void framing_read_add_special(pith_frame_template *t, pith_json *j, pith_loader *loader, pith_str tokens,
                                     written_piece piece) {
    pith_json *inner = pith_arena_alloc(loader->scratch, sizeof *inner);
    pith_str place = pith_arena_printf(loader->scratch, "%s: special_tokens", j->name);
    if (!inner || !place.data) {
        pith_json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    bool found = false;
    pith_str key, field;
    pith_json_init(inner, tokens, place.data, loader->scratch, loader->err);
    pith_json_object(inner);
    while (pith_json_next_key(inner, &key)) {
        bool wanted = !found && pith_str_eq(key, piece.special);
        pith_json_object(inner);
        while (pith_json_next_key(inner, &field)) {
            if (wanted && pith_str_is(field, "ids")) {
                found = true;
                pith_json_array(inner);
                while (pith_json_next_item(inner))
                    framing_read_add_item(t, inner, loader, pith_json_id(inner), piece.type_id);
            } else
                pith_json_skip(inner);
        }
    }
    if (inner->failed)
        j->failed = true;
    else if (!found)
        pith_json_fail(j, PITH_ERR_FORMAT, "special token \"" PITH_STR_FMT "\" is not defined",
                       PITH_STR_ARG(piece.special));
}

static void framing_read_resolve(pith_frame_template *t, pith_json *j, pith_loader *loader,
                                 const written_template *written, pith_str special_tokens, int texts) {
    for (size_t i = 0; i < written->count && !j->failed; i++) {
        written_piece piece = written->pieces[i];
        if (piece.special.data)
            framing_read_add_special(t, j, loader, special_tokens, piece);
        else if (piece.text >= texts)
            pith_json_fail(j, PITH_ERR_FORMAT, "the template of a single text has a sequence B");
        else
            framing_read_add_item(t, j, loader, -1 - piece.text, piece.type_id);
    }
}

/* ["[SEP]", 102] */
static int32_t named_id(pith_json *j) {
    int32_t id = -1;
    pith_json_array(j);
    if (pith_json_next_item(j)) {
        pith_json_string(j);
        if (pith_json_next_item(j)) id = pith_json_id(j);
    }
    if (!j->failed && (id < 0 || pith_json_next_item(j)))
        pith_json_fail(j, PITH_ERR_FORMAT, "expected a pair of token and id");
    return id;
}

/* A post-processor as it is written. */
typedef struct written_processor {
    pith_str type, special_tokens;
    written_template templates[2]; /* single, pair */
    int32_t sep, cls;
    bool trim, prefix_space, nested;
} written_processor;

/* Processors inside of a Sequence are taken at once. */
static void parse_processor(pith_json *j, pith_loader *loader, written_processor *w) {
    pith_str key;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "type"))
            w->type = pith_json_string(j);
        else if (pith_str_is(key, "single"))
            parse_pieces(j, loader, &w->templates[0]);
        else if (pith_str_is(key, "pair"))
            parse_pieces(j, loader, &w->templates[1]);
        else if (pith_str_is(key, "special_tokens"))
            w->special_tokens = pith_json_raw(j);
        else if (pith_str_is(key, "sep"))
            w->sep = named_id(j);
        else if (pith_str_is(key, "cls"))
            w->cls = named_id(j);
        else if (pith_str_is(key, "trim_offsets"))
            w->trim = pith_json_bool(j);
        else if (pith_str_is(key, "add_prefix_space"))
            w->prefix_space = pith_json_bool(j);
        else if (pith_str_is(key, "processors")) {
            w->nested = true;
            pith_json_array(j);
            while (pith_json_next_item(j)) pith_framing_parse(j, loader);
        } else
            pith_key_other(j, loader, key, "use_regex");
    }
}

/* [CLS] A [SEP], and [CLS] A [SEP] B [SEP], with two [SEP] in the middle for RoBERTa. */
static void framing_read_add_sep_cls(pith_framing *f, pith_json *j, pith_loader *loader, const written_processor *w,
                                     bool roberta) {
    if (w->sep < 0 || w->cls < 0) {
        pith_json_fail(j, PITH_ERR_FORMAT, "needs sep and cls");
        return;
    }
    f->zero_types = roberta;
    for (int i = 0; i < 2; i++) {
        pith_frame_template *t = &f->templates[i];
        framing_read_add_item(t, j, loader, w->cls, 0);
        framing_read_add_item(t, j, loader, -1, 0);
        framing_read_add_item(t, j, loader, w->sep, 0);
        if (i && roberta) framing_read_add_item(t, j, loader, w->sep, 0);
        if (i) framing_read_add_item(t, j, loader, -2, !roberta);
        if (i) framing_read_add_item(t, j, loader, w->sep, !roberta);
    }
}

void pith_framing_parse(pith_json *j, pith_loader *loader) {
    pith_framing *f = loader->tokenizer->framing;
    written_processor w = {
        .special_tokens = PITH_STR("{}"), .sep = -1, .cls = -1, .trim = true, .prefix_space = true
    };
    if (pith_json_null(j)) return;
    parse_processor(j, loader, &w);
    if (j->failed) return;
    bool bert = pith_str_is(w.type, "BertProcessing"), roberta = pith_str_is(w.type, "RobertaProcessing");
    bool byte_level = pith_str_is(w.type, "ByteLevel");
    if (pith_str_is(w.type, "Sequence") && w.nested) return;
    if ((byte_level || roberta) && w.trim) {
        f->trim = true;
        f->trim_prefix_space = w.prefix_space;
    }
    if (byte_level) return;
    if (!bert && !roberta && !pith_str_is(w.type, "TemplateProcessing")) {
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "unknown post-processor \"" PITH_STR_FMT "\"", PITH_STR_ARG(w.type));
        return;
    }
    if (f->has_template) {
        pith_json_fail(j, PITH_ERR_UNSUPPORTED, "more than one post-processor that adds tokens");
        return;
    }
    f->has_template = true;
    if (bert || roberta) {
        framing_read_add_sep_cls(f, j, loader, &w, roberta);
        return;
    }
    for (int i = 0; i < 2; i++)
        framing_read_resolve(&f->templates[i], j, loader, &w.templates[i], w.special_tokens, i + 1);
}

static bool parse_left(pith_json *j) {
    pith_str side = pith_json_string(j);
    if (!j->failed && !pith_str_is(side, "Left") && !pith_str_is(side, "Right"))
        pith_json_fail(j, PITH_ERR_FORMAT, "expected Left or Right");
    return pith_str_is(side, "Left");
}

static int64_t parse_size(pith_json *j) {
    int64_t n = pith_json_int(j);
    if (!j->failed && n < 0) pith_json_fail(j, PITH_ERR_FORMAT, "a size must not be negative");
    return n > PITH_TEXT_MAX ? PITH_TEXT_MAX : n;
}

void pith_truncation_parse(pith_json *j, pith_loader *loader, pith_truncation *truncation) {
    static const char *const names[] = { "LongestFirst", "OnlyFirst", "OnlySecond" };
    pith_truncation t = { true, false, PITH_CUT_LONGEST, 512, 0 };
    pith_str key;
    if (pith_json_null(j)) return;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "max_length"))
            t.max_length = parse_size(j);
        else if (pith_str_is(key, "stride"))
            t.stride = parse_size(j);
        else if (pith_str_is(key, "direction"))
            t.left = parse_left(j);
        else if (pith_str_is(key, "strategy")) {
            pith_str name = pith_json_string(j);
            int i = 0;
            while (i < 3 && !pith_str_is(name, names[i])) i++;
            if (i == 3 && !j->failed)
                pith_json_fail(j, PITH_ERR_FORMAT,
                               "unknown strategy; known are LongestFirst, OnlyFirst and OnlySecond");
            t.strategy = (pith_cut)(i % 3);
        } else
            pith_key_other(j, loader, key, "");
    }
    *truncation = t;
}

void pith_padding_parse(pith_json *j, pith_loader *loader, pith_padding *padding) {
    pith_padding p = { .on = true };
    pith_str key;
    if (pith_json_null(j)) return;
    pith_json_object(j);
    while (pith_json_next_key(j, &key)) {
        if (pith_str_is(key, "direction"))
            p.left = parse_left(j);
        else if (pith_str_is(key, "pad_to_multiple_of")) {
            if (!pith_json_null(j)) p.multiple = parse_size(j);
        } else if (pith_str_is(key, "pad_id"))
            p.id = pith_json_id(j);
        else if (pith_str_is(key, "pad_type_id"))
            p.type_id = pith_json_id(j);
        else if (pith_str_is(key, "strategy") && pith_json_peek(j) == PITH_JSON_OBJECT) { /* {"Fixed": 128} */
            pith_json_object(j);
            while (pith_json_next_key(j, &key)) p.fixed = parse_size(j);
        } else
            pith_key_other(j, loader, key, "strategy pad_token");
    }
    *padding = p;
}
