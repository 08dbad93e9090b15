/* score_prompts.c - see score_prompts.h.
 *
 * Sources: the model card of Qwen/Qwen3-Reranker-0.6B (words, limit); mxbai-rerank 0.1.6,
 * mxbai_rerank_v2.py (words, and which part of a pair is cut); sentence-transformers 6.2,
 * base/modules/transformer.py (chat templates, prompts). */
#include "models/texts/score_prompts.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/str.h"
#include "base/unicode/tokenizer_characters.h"
#include "base/unicode/utf8.h"

static const char qwen3_before[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct "
    "provided. "
    "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
static const char qwen3_after[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char qwen3_instruction[] =
    "Given a web search query, retrieve relevant passages that answer the query";

static const char mxbai_before[] = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. "
                                   "You are a helpful assistant.<|im_end|>\n"
                                   "<|im_start|>user\n";
static const char mxbai_task[] = "You are a search relevance expert who evaluates how well "
                                 "documents match search queries. For each query-document "
                                 "pair, carefully analyze the semantic relationship between them, "
                                 "then provide your binary relevance judgment (0 "
                                 "for not relevant, 1 for relevant).\nRelevance:";
static const char mxbai_after[] = "<|im_end|>\n<|im_start|>assistant\n";

/* Tokens at which both models cut by default: all of them for Qwen3-Reranker, query and document
 * for mxbai-rerank. */
enum { PROMPTS_LENGTH = 8192 };

/* ---- pieces ---- */

/* The strings one behind the other; data is NULL if memory is out. */
static pith_str prompts_join(pith__arena *arena, const pith_str *parts, size_t count) {
    size_t size = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        if (pith__add_overflows(size, parts[i].size, &size)) return (pith_str){ NULL, 0 };
    char *text = pith__arena_alloc(arena, size);
    if (!text) return (pith_str){ NULL, 0 };
    for (size_t i = 0; i < count; used += parts[i++].size)
        if (parts[i].size) memcpy(text + used, parts[i].data, parts[i].size);
    return (pith_str){ text, size };
}

static pith_status prompts_tokens(pith_tokens *tokens, const pith__score_prompts *j,
                                  const pith_model *m, pith_str text, int32_t max_length,
                                  pith_error *err) {
    pith_tokenize_options options = PITH_TOKENIZE_OPTIONS_INIT;
    options.no_specials = options.no_offsets = 1;
    options.max_length = max_length;
    return pith__tokenizer_encode(tokens, m->tokenizer, text, NULL, &options, j->stop, err);
}

/* The ids of several token rows one behind the other. */
static pith_status prompts_join_ids(const int32_t **ids, size_t *count, pith__arena *arena,
                                    const pith_tokens *const *rows, size_t n, pith_error *err) {
    size_t used = 0;
    *count = 0;
    for (size_t i = 0; i < n; i++) *count += rows[i]->count;
    int32_t *all = pith__arena_array(arena, *count, sizeof *all);
    if (!all) return pith__fail_memory(err, *count * sizeof *all);
    for (size_t i = 0; i < n; used += rows[i++]->count)
        if (rows[i]->count) memcpy(all + used, rows[i]->ids, rows[i]->count * sizeof *all);
    *ids = all;
    return PITH_OK;
}

/* Before and behind each text stand the tokens of these words. */
static pith_status prompts_frame(pith__score_prompts *j, const pith_model *m, const char *before,
                                 const char *after, pith_error *err) {
    PITH_TRY(prompts_tokens(&j->words[0], j, m, pith__str_of(before), 0, err));
    PITH_TRY(prompts_tokens(&j->words[1], j, m, pith__str_of(after), 0, err));
    j->frame.before = j->words[0].ids;
    j->frame.before_count = j->words[0].count;
    j->frame.after = j->words[1].ids;
    j->frame.after_count = j->words[1].count;
    return PITH_OK;
}

/* ---- Qwen3-Reranker ---- */

/* The words around query and document are those of the model card, and are framed as tokens, so
 * that cutting a text leaves them whole. */
static pith_status prompts_qwen3(pith__score_prompts *j, const pith_model *m, pith_str query,
                                 const pith_str *documents, size_t count, pith_str instruction,
                                 pith_str *texts, pith_error *err) {
    PITH_TRY(prompts_frame(j, m, qwen3_before, qwen3_after, err));
    if (!instruction.size) instruction = pith__str_of(qwen3_instruction);
    for (size_t i = 0; i < count; i++) {
        if (i % 256 == 0) PITH_TRY(pith__stop_check(j->stop, err));
        const pith_str parts[] = { PITH_STR("<Instruct>: "),   instruction,
                                   PITH_STR("\n<Query>: "),    query,
                                   PITH_STR("\n<Document>: "), documents[i] };
        texts[i] = prompts_join(&j->arena, parts, sizeof parts / sizeof *parts);
        if (!texts[i].data) return pith__fail_memory(err, documents[i].size);
    }
    if (!j->max_length) j->max_length = PROMPTS_LENGTH;
    return PITH_OK;
}

/* ---- mxbai-rerank-v2 ---- */

/* The tokens of the query stand before the document; it may take three quarters of the limit.
 * Document and query are tokenised apart, and the document alone is cut. */
static pith_status prompts_mxbai(pith__score_prompts *j, const pith_model *m, pith_str query,
                                 const pith_str *documents, size_t count, pith_str instruction,
                                 pith_str *texts, pith_error *err) {
    const int32_t positions = m->modules.positions;
    pith_tokens *line = &j->words[2], own = PITH_TOKENS_INIT;
    int64_t limit = j->max_length ? j->max_length : PROMPTS_LENGTH;
    PITH_TRY(prompts_frame(j, m, mxbai_before, mxbai_after, err));
    PITH_TRY(prompts_tokens(line, j, m, PITH_STR("\n"), 0, err));
    pith_status status = prompts_tokens(&own, j, m, pith__str_of(mxbai_task), 0, err);
    if (!status)
        status = prompts_join_ids(&j->frame.after, &j->frame.after_count, &j->arena,
                                  (const pith_tokens *[]){ line, &own, &j->words[1] }, 3, err);
    const int64_t words = (int64_t)(j->words[0].count + j->frame.after_count);
    if (positions && limit + words > positions) limit = positions - words;
    if (!status && limit < 4)
        status = pith__fail(
            err, PITH_ERR_ARGUMENT,
            "max_length: %lld tokens are left for a query and a document; the model needs 4",
            (long long)limit);
    const pith_str parts[] = { instruction.size ? PITH_STR("instruction: ") : PITH_STR(""),
                               instruction,
                               instruction.size ? PITH_STR("\nquery: ") : PITH_STR("query: "),
                               query };
    pith_str asked = prompts_join(&j->arena, parts, sizeof parts / sizeof *parts);
    if (!status && !asked.data) status = pith__fail_memory(err, query.size);
    if (!status) status = prompts_tokens(&own, j, m, asked, (int32_t)(limit * 3 / 4), err);
    if (!status)
        status = prompts_join_ids(&j->frame.before, &j->frame.before_count, &j->arena,
                                  (const pith_tokens *[]){ &j->words[0], &own, line }, 3, err);
    pith__token_rows_free(&own);
    PITH_TRY(status);
    for (size_t i = 0; i < count; i++) {
        if (i % 256 == 0) PITH_TRY(pith__stop_check(j->stop, err));
        texts[i] = prompts_join(&j->arena, (pith_str[]){ PITH_STR("document: "), documents[i] }, 2);
        if (!texts[i].data) return pith__fail_memory(err, documents[i].size);
    }
    j->frame.bare = true;
    j->max_length = (int32_t)(limit + words < INT32_MAX ? limit + words : INT32_MAX);
    return PITH_OK;
}

/* ---- chat templates ---- */

/* What str.isspace of Python takes for white space. */
static bool prompts_is_space(uint32_t c) {
    return pith__char_is_space(c) || (c >= 0x1c && c <= 0x1f);
}

/* str.strip of Python: white space of Unicode and the separators 1c to 1f. */
static pith_str prompts_trim(pith_str s) {
    const char *p = s.data, *end = p + s.size, *last = p;
    while (p < end) {
        const char *next = p;
        if (!prompts_is_space(pith__utf8_next(&next))) break;
        p = next;
    }
    last = p;
    for (const char *q = p; q < end;)
        if (!prompts_is_space(pith__utf8_next(&q))) last = q;
    return (pith_str){ p, (size_t)(last - p) };
}

/* The template's words with these texts in their places. */
static pith_status prompts_write(pith_str *text, const pith__chat_form *form, pith_str query,
                                 pith_str document, pith_str instruction, pith__arena *arena,
                                 pith_error *err) {
    const pith_str given[PITH_CHAT_KINDS] = { [PITH_CHAT_QUERY] = query,
                                              [PITH_CHAT_DOCUMENT] = document,
                                              [PITH_CHAT_INSTRUCTION] = instruction };
    pith_str *parts = pith__arena_array(arena, form->count, sizeof *parts);
    if (!parts) return pith__fail_memory(err, form->count * sizeof *parts);
    for (size_t i = 0; i < form->count; i++) {
        const pith__chat_part *p = &form->parts[i];
        parts[i] = p->kind == PITH_CHAT_WORDS ? p->words : given[p->kind];
        if (p->trimmed) parts[i] = prompts_trim(parts[i]);
    }
    *text = prompts_join(arena, parts, form->count);
    return text->data ? PITH_OK : pith__fail_memory(err, document.size);
}

/* The tokens that end every text: those that two unlike pairs have in common. */
static pith_status prompts_find_end(pith__score_prompts *j, const pith_model *m,
                                    const pith__chat_form *form, pith_str instruction,
                                    pith_error *err) {
    static const pith_str fillers[] = { { "0", 1 }, { "1 2 3 4", 7 } };
    for (int i = 0; i < 2; i++) {
        pith_str text;
        PITH_TRY(prompts_write(&text, form, fillers[i], fillers[i], instruction, &j->arena, err));
        PITH_TRY(prompts_tokens(&j->words[i], j, m, text, 0, err));
    }
    const pith_tokens *a = &j->words[0], *b = &j->words[1];
    size_t n = 0, most = a->count < b->count ? a->count : b->count;
    while (n < most && a->ids[a->count - 1 - n] == b->ids[b->count - 1 - n]) n++;
    if (n == most) return PITH_OK;
    j->frame.end = a->ids + a->count - n;
    j->frame.end_count = n;
    return PITH_OK;
}

/* The template puts query and document into one text. If that is cut, its last tokens become those
 * that end every text, as sentence-transformers does (restore_suffix). */
static pith_status prompts_chat(pith__score_prompts *j, const pith_model *m, pith_str query,
                                const pith_str *documents, size_t count, pith_str instruction,
                                pith_str *texts, pith_error *err) {
    const pith__rerank_prompt *rerank = &m->modules.rerank;
    const pith__chat_form *form = &rerank->chat[instruction.size > 0];
    if (!form->count)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "instruction: the model's chat template cannot be run with one (a message of the role "
            "'system')");
    if (rerank->keeps_end) PITH_TRY(prompts_find_end(j, m, form, instruction, err));
    for (size_t i = 0; i < count; i++) {
        if (i % 256 == 0) PITH_TRY(pith__stop_check(j->stop, err));
        PITH_TRY(prompts_write(&texts[i], form, query, documents[i], instruction, &j->arena, err));
    }
    j->frame.bare = true;
    return PITH_OK;
}

/* ---- all of them ---- */

/* As the tokenizer joins pairs; an instruction goes in front of the query, as a prompt of
 * sentence-transformers does. */
static pith_status prompts_pairs(pith__score_prompts *j, pith_str query, const pith_str *documents,
                                 size_t count, pith_str instruction, pith_str *texts,
                                 pith_error *err) {
    pith_str both = query;
    if (instruction.size) both = prompts_join(&j->arena, (pith_str[]){ instruction, query }, 2);
    if (instruction.size && !both.data) return pith__fail_memory(err, query.size);
    for (size_t i = 0; i < count; i++) texts[i] = both;
    j->pairs = documents;
    return PITH_OK;
}

bool pith__score_prompts_takes_instruction(const pith_model *m) {
    return m->modules.rerank.answers || m->modules.rerank.form == PITH_RERANK_CHAT;
}

/* The caller's instruction, or the prompt that the model's files take for granted. */
static pith_status prompts_instruction(pith_str *instruction, const pith_model *m,
                                       const pith_score_options *o, pith_error *err) {
    const pith__modules *s = &m->modules;
    *instruction = PITH_STR("");
    for (size_t i = 0; i < s->prompt_count; i++)
        if (s->default_prompt.data && pith__str_eq(s->prompts[i].name, s->default_prompt))
            *instruction = s->prompts[i].text;
    if (!o->instruction) return PITH_OK;
    *instruction = pith__str_of(o->instruction);
    if (pith__utf8_valid_prefix(instruction->data, instruction->size) < instruction->size)
        return pith__fail(err, PITH_ERR_ARGUMENT, "instruction: is not UTF-8");
    const pith__chat_form *form = &s->rerank.chat[1];
    if (s->rerank.form == PITH_RERANK_CHAT && instruction->size && form->count &&
        !pith__chat_form_has(form, PITH_CHAT_INSTRUCTION))
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "instruction: the model's chat template has no place for one");
    return PITH_OK;
}

pith_status pith__score_prompts_begin(pith__score_prompts *j, const pith_model *m, pith_str query,
                                      const pith_str *documents, size_t count,
                                      const pith_score_options *o, pith__stop *stop,
                                      pith_error *err) {
    *j = (pith__score_prompts){ .frame = { .marker = -1 },
                                .max_length = o->max_length,
                                .stop = stop };
    for (size_t i = 0; i < sizeof j->words / sizeof *j->words; i++)
        j->words[i] = (pith_tokens)PITH_TOKENS_INIT;
    pith__arena_init(&j->arena, m->options.call.allocator);
    pith_str instruction, *texts = pith__arena_array(&j->arena, count, sizeof *texts);
    if (!texts) return pith__fail_memory(err, count * sizeof *texts);
    j->texts = texts;
    PITH_TRY(prompts_instruction(&instruction, m, o, err));
    switch (m->modules.rerank.form) {
    case PITH_RERANK_QWEN3:
        return prompts_qwen3(j, m, query, documents, count, instruction, texts, err);
    case PITH_RERANK_MXBAI:
        return prompts_mxbai(j, m, query, documents, count, instruction, texts, err);
    case PITH_RERANK_CHAT:
        return prompts_chat(j, m, query, documents, count, instruction, texts, err);
    default: return prompts_pairs(j, query, documents, count, instruction, texts, err);
    }
}

void pith__score_prompts_end(pith__score_prompts *j) {
    for (size_t i = 0; i < sizeof j->words / sizeof *j->words; i++)
        pith__token_rows_free(&j->words[i]);
    pith__arena_free(&j->arena);
}
