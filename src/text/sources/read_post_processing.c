/* read_post_processing.c - reads post-processors, truncation and padding of tokenizer.json as
 * templates. */
#include "text/post_processing.h"
#include "text/sources/key_report.h"

pith_status pith__post_processing_create(pith__loader *loader) {
    loader->tokenizer->post_processing =
        pith__arena_array(loader->arena, 1, sizeof *loader->tokenizer->post_processing);
    return loader->tokenizer->post_processing
               ? PITH_OK
               : pith__fail_memory(loader->err, sizeof(pith__post_processing));
}

int32_t pith__json_id(pith__json *j) {
    int64_t id = pith__json_int(j);
    if (!j->failed && (id < 0 || id >= PITH_TOKEN_ID_MAX))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is not a token id", (long long)id);
    return j->failed ? 0 : (int32_t)id;
}

static void template_add_item(pith__frame_template *t, pith__json *j, pith__loader *loader,
                              int32_t id, int32_t type_id) {
    if (j->failed) return;
    if (!pith__arena_grow(loader->arena, (void **)&t->items, t->count, &t->capacity,
                          sizeof *t->items)) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    t->items[t->count++] = (pith__frame_item){ id, type_id };
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

/* The list of a template as it is written; names of special tokens are resolved later, since
 * "special_tokens" may come after the templates. */
static void parse_pieces(pith__json *j, pith__loader *loader, written_template *out) {
    pith_str key;
    pith__json_array(j);
    while (pith__json_next_item(j)) {
        written_piece piece = { { NULL, 0 }, 0, 0 };
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            bool special = pith__str_is(key, "SpecialToken");
            if (!special && !pith__str_is(key, "Sequence")) {
                pith__json_fail(j, PITH_ERR_FORMAT, "expected Sequence or SpecialToken");
                break;
            }
            pith__json_object(j);
            while (pith__json_next_key(j, &key)) {
                if (pith__str_is(key, "type_id"))
                    piece.type_id = pith__json_id(j);
                else if (pith__str_is(key, "id")) {
                    pith_str id = pith__json_string(j);
                    if (special)
                        piece.special = id;
                    else if (pith__str_is(id, "A") || pith__str_is(id, "B"))
                        piece.text = id.data[0] - 'A';
                    else if (!j->failed)
                        pith__json_fail(j, PITH_ERR_FORMAT, "a sequence must be \"A\" or \"B\"");
                } else
                    pith__key_other(j, loader, key, "");
            }
        }
        if (j->failed) return;
        if (!pith__arena_grow(loader->scratch, (void **)&out->pieces, out->count, &out->capacity,
                              sizeof piece))
            pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        else
            out->pieces[out->count++] = piece;
    }
}

/* special_tokens: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens": […]}}; its raw text is walked
 * once per use. */
static void template_add_special(pith__frame_template *t, pith__json *j, pith__loader *loader,
                                 pith_str tokens, written_piece piece) {
    pith__json *inner = pith__arena_alloc(loader->scratch, sizeof *inner);
    pith_str place = pith__arena_printf(loader->scratch, "%s: special_tokens", j->name);
    if (!inner || !place.data) {
        pith__json_fail(j, PITH_ERR_MEMORY, "out of memory");
        return;
    }
    bool found = false;
    pith_str key, field;
    pith__json_init(inner, tokens, place.data, loader->scratch, loader->err);
    pith__json_object(inner);
    while (pith__json_next_key(inner, &key)) {
        bool wanted = !found && pith__str_eq(key, piece.special);
        pith__json_object(inner);
        while (pith__json_next_key(inner, &field)) {
            if (wanted && pith__str_is(field, "ids")) {
                found = true;
                pith__json_array(inner);
                while (pith__json_next_item(inner))
                    template_add_item(t, inner, loader, pith__json_id(inner), piece.type_id);
            } else
                pith__json_skip(inner);
        }
    }
    if (inner->failed)
        j->failed = true;
    else if (!found)
        pith__json_fail(j, PITH_ERR_FORMAT, "special token \"" PITH_STR_FMT "\" is not defined",
                        PITH_STR_ARG(piece.special));
}

static void template_resolve(pith__frame_template *t, pith__json *j, pith__loader *loader,
                             const written_template *written, pith_str special_tokens, int texts) {
    for (size_t i = 0; i < written->count; i++) {
        if (j->failed) break;
        written_piece piece = written->pieces[i];
        if (piece.special.data)
            template_add_special(t, j, loader, special_tokens, piece);
        else if (piece.text >= texts)
            pith__json_fail(j, PITH_ERR_FORMAT, "the template of a single text has a sequence B");
        else
            template_add_item(t, j, loader, -1 - piece.text, piece.type_id);
    }
}

/* ["[SEP]", 102] */
static int32_t named_id(pith__json *j) {
    int32_t id = -1;
    pith__json_array(j);
    if (pith__json_next_item(j)) {
        pith__json_string(j);
        if (pith__json_next_item(j)) id = pith__json_id(j);
    }
    if (!j->failed && (id < 0 || pith__json_next_item(j)))
        pith__json_fail(j, PITH_ERR_FORMAT, "expected a pair of token and id");
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
static void parse_processor(pith__json *j, pith__loader *loader, written_processor *w) {
    pith_str key;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "type"))
            w->type = pith__json_string(j);
        else if (pith__str_is(key, "single"))
            parse_pieces(j, loader, &w->templates[0]);
        else if (pith__str_is(key, "pair"))
            parse_pieces(j, loader, &w->templates[1]);
        else if (pith__str_is(key, "special_tokens"))
            w->special_tokens = pith__json_raw(j);
        else if (pith__str_is(key, "sep"))
            w->sep = named_id(j);
        else if (pith__str_is(key, "cls"))
            w->cls = named_id(j);
        else if (pith__str_is(key, "trim_offsets"))
            w->trim = pith__json_bool(j);
        else if (pith__str_is(key, "add_prefix_space"))
            w->prefix_space = pith__json_bool(j);
        else if (pith__str_is(key, "processors")) {
            w->nested = true;
            pith__json_array(j);
            while (pith__json_next_item(j)) pith__post_processing_parse(j, loader);
        } else
            pith__key_other(j, loader, key, "use_regex");
    }
}

/* [CLS] A [SEP], and [CLS] A [SEP] B [SEP], with two [SEP] in the middle for RoBERTa. */
static void template_add_sep_cls(pith__post_processing *f, pith__json *j, pith__loader *loader,
                                 const written_processor *w, bool roberta) {
    if (w->sep < 0 || w->cls < 0) {
        pith__json_fail(j, PITH_ERR_FORMAT, "needs sep and cls");
        return;
    }
    f->zero_types = roberta;
    for (int i = 0; i < 2; i++) {
        pith__frame_template *t = &f->templates[i];
        template_add_item(t, j, loader, w->cls, 0);
        template_add_item(t, j, loader, -1, 0);
        template_add_item(t, j, loader, w->sep, 0);
        if (i && roberta) template_add_item(t, j, loader, w->sep, 0);
        if (i) template_add_item(t, j, loader, -2, !roberta);
        if (i) template_add_item(t, j, loader, w->sep, !roberta);
    }
}

/* All post-processors become templates: BertProcessing and RobertaProcessing are [CLS] A [SEP] with
 * different separators of pairs. ByteLevel adds no tokens and only trims offsets, so it may stand
 * beside another one in a Sequence. */
void pith__post_processing_parse(pith__json *j, pith__loader *loader) {
    pith__post_processing *f = loader->tokenizer->post_processing;
    written_processor w = {
        .special_tokens = PITH_STR("{}"), .sep = -1, .cls = -1, .trim = true, .prefix_space = true
    };
    if (pith__json_null(j)) return;
    parse_processor(j, loader, &w);
    if (j->failed) return;
    bool bert = pith__str_is(w.type, "BertProcessing"),
         roberta = pith__str_is(w.type, "RobertaProcessing");
    bool byte_level = pith__str_is(w.type, "ByteLevel");
    if (pith__str_is(w.type, "Sequence") && w.nested) return;
    if ((byte_level || roberta) && w.trim) {
        f->trim = true;
        f->trim_prefix_space = w.prefix_space;
    }
    if (byte_level) return;
    if (!bert && !roberta && !pith__str_is(w.type, "TemplateProcessing")) {
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "unknown post-processor \"" PITH_STR_FMT "\"",
                        PITH_STR_ARG(w.type));
        return;
    }
    if (f->has_template) {
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "more than one post-processor that adds tokens");
        return;
    }
    f->has_template = true;
    if (bert || roberta) {
        template_add_sep_cls(f, j, loader, &w, roberta);
        return;
    }
    for (int i = 0; i < 2; i++)
        template_resolve(&f->templates[i], j, loader, &w.templates[i], w.special_tokens, i + 1);
}

static bool parse_left(pith__json *j) {
    pith_str side = pith__json_string(j);
    if (!j->failed && !pith__str_is(side, "Left") && !pith__str_is(side, "Right"))
        pith__json_fail(j, PITH_ERR_FORMAT, "expected Left or Right");
    return pith__str_is(side, "Left");
}

static int64_t parse_size(pith__json *j) {
    int64_t n = pith__json_int(j);
    if (!j->failed && n < 0) pith__json_fail(j, PITH_ERR_FORMAT, "a size must not be negative");
    return n > PITH_TEXT_MAX ? PITH_TEXT_MAX : n;
}

/* Defaults are those of Hugging Face tokenizers (TruncationParams): 512 tokens, the longest text
 * first, at the right end. */
void pith__truncation_parse(pith__json *j, pith__loader *loader, pith__truncation *truncation) {
    static const char *const names[] = { "LongestFirst", "OnlyFirst", "OnlySecond" };
    pith__truncation t = { true, false, PITH_CUT_LONGEST, 512, 0 };
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "max_length"))
            t.max_length = parse_size(j);
        else if (pith__str_is(key, "stride"))
            t.stride = parse_size(j);
        else if (pith__str_is(key, "direction"))
            t.left = parse_left(j);
        else if (pith__str_is(key, "strategy")) {
            pith_str name = pith__json_string(j);
            int i = 0;
            while (i < 3 && !pith__str_is(name, names[i])) i++;
            if (i == 3 && !j->failed)
                pith__json_fail(
                    j, PITH_ERR_FORMAT,
                    "unknown strategy; known are LongestFirst, OnlyFirst and OnlySecond");
            t.strategy = (pith_cut)(i % 3);
        } else
            pith__key_other(j, loader, key, "");
    }
    *truncation = t;
}

void pith__padding_parse(pith__json *j, pith__loader *loader, pith__padding *padding) {
    pith__padding p = { .on = true };
    pith_str key;
    if (pith__json_null(j)) return;
    pith__json_object(j);
    while (pith__json_next_key(j, &key)) {
        if (pith__str_is(key, "direction"))
            p.left = parse_left(j);
        else if (pith__str_is(key, "pad_to_multiple_of")) {
            if (!pith__json_null(j)) p.multiple = parse_size(j);
        } else if (pith__str_is(key, "pad_id"))
            p.id = pith__json_id(j);
        else if (pith__str_is(key, "pad_type_id"))
            p.type_id = pith__json_id(j);
        /* {"Fixed": 128} */
        else if (pith__str_is(key, "strategy") && pith__json_peek(j) == PITH_JSON_OBJECT) {
            pith__json_object(j);
            while (pith__json_next_key(j, &key)) p.fixed = parse_size(j);
        } else
            pith__key_other(j, loader, key, "strategy pad_token");
    }
    *padding = p;
}
