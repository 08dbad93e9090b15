/* open_text_modules.c - the part "text_modules": what makes a model embed text that is not
 * compiled. The modules of its directory, the output that becomes vectors, its tokenizer's files,
 * and the graph for packed texts. */
#include <string.h>

#include "base/error.h"
#include "base/left_out_pieces.h"
#include "base/log.h"
#include "base/piece_listener.h"
#include "base/str.h"
#include "engine/ragged/ragged.h"
#include "models/heads/word_weights_request.h"
#include "models/modules/answer_logit.h"
#include "models/modules/attention_row.h"
#include "models/open/open_model.h"
#include "models/open/tokenizer_only.h"
#include "pith/encode.h"
#include "text/sources/key_report.h"

/* Faults of the modules are kept for pith_embed, unless they are the caller's, or those of a build
 * that was made without a module: the graph would have other outputs. */
static pith_status text_modules_of_directory(pith_model *m, pith_error *err) {
    const pith__modules_source source = { m->dir.data, m->options.route, &m->files,
                                          m->options.call.log, &m->account.allocator };
    pith_error fault = PITH_ERROR_INIT;
    m->modules_read = true;
    pith_status status = pith__modules_read(&m->modules, &source, &m->arena, &fault);
    if (!status) return PITH_OK;
    if (status == PITH_ERR_MEMORY || status == PITH_ERR_ARGUMENT || pith__status_stops(status) ||
        pith__error_is_lack(&fault))
        return pith__fail(err, status, "%s", fault.message);
    m->no_text = fault;
    m->modules = (pith__modules){ .folder = PITH_STR("") };
    return PITH_OK;
}

static pith_status text_modules_make_ragged(pith_model *m, pith_error *err) {
    return pith__text_view_make_ragged(&m->text, m,
                                       m->options.flags & PITH_OPEN_DESCRIBE ? &m->report : NULL,
                                       m->making.stop, err);
}

/* Markers of PyLate that are no tokens; see encoding_find_marker. */
static pith_status text_modules_note_markers(pith_model *m, pith_error *err) {
    static const char *const what[2] = {
        [PITH_ROLE_QUERY] = "query_prefix", [PITH_ROLE_DOCUMENT] = "document_prefix"
    };
    for (int role = 0; role < 2; role++) {
        const pith_str marker = m->late.markers[role];
        if (!m->late.texts || !marker.size || pith__tokenizer_id(m->tokenizer, marker) >= 0)
            continue;
        pith_str said = pith__arena_printf(
            &m->arena,
            "'" PITH_STR_FMT
            "' is no token of the vocabulary, so it is put in front of texts as text",
            PITH_STR_ARG(marker));
        if (!said.data) return pith__fail_memory(err, marker.size);
        PITH_TRY(pith__modules_note(&m->modules, what[role], said,
                                    PITH_STR("config_sentence_transformers.json"), &m->arena, err));
    }
    return PITH_OK;
}

/* What queries are filled up with: the mask token, or the token at the end of a text. Source:
 * PyLate 1.6, models/colbert.py; sentence-transformers 6.2, base/modules/transformer.py
 * (_validate_query_expansion_token). */
static pith_status text_modules_find_filler(pith_model *m, const char *dir, pith_error *err) {
    pith__late_fillers named;
    if (!m->late.expands) return PITH_OK;
    PITH_TRY(pith__late_fillers_read(&named, dir, &m->account.allocator, &m->arena, err));
    m->late.in_front = named.in_front;
    if (m->late.filler.size) return PITH_OK;
    m->late.filler = named.mask;
    const bool has_mask = pith__tokenizer_id(m->tokenizer, PITH_STR("[MASK]")) >= 0 ||
                          pith__tokenizer_id(m->tokenizer, PITH_STR("<mask>")) >= 0;
    if (!named.mask.size && (named.no_mask || !has_mask)) m->late.filler = named.end;
    return PITH_OK;
}

/* Tokenizer, modules, ragged graph. */
static pith_status text_modules_tokenizer(pith_model *m, pith_error *err) {
    m->no_ragged = pith__opt_without(m->limits, "ragged");
    if (m->tokenizer_bytes.data) {
        PITH_TRY(pith__tokenizer_load_bytes(&m->tokenizer, m->tokenizer_bytes, &m->options,
                                            &m->arena, err));
        return text_modules_make_ragged(m, err);
    }
    if (!m->dir.data)
        return pith__fail(err, PITH_ERR_NOT_FOUND, "the model has no directory with a tokenizer");
    pith_str dir = m->dir;
    if (m->modules.folder.size)
        PITH_TRY(pith__path_join(&dir, &m->arena, m->dir.data, m->modules.folder, err));
    PITH_TRY(pith__tokenizer_load_as(&m->tokenizer, dir.data, pith__tokenizer_only_how(&m->modules),
                                     &m->options, &m->arena, err));
    const pith__hf_labels_source labels = { dir, m->dir, m->modules.rerank.answers,
                                            m->options.call.log };
    PITH_TRY(pith__hf_labels_read(&m->labels, &labels, &m->account.allocator, &m->arena, err));
    PITH_TRY(pith__late_interaction_read(&m->late, &m->modules.late, m->dir.data,
                                         &m->account.allocator, &m->arena, err));
    PITH_TRY(text_modules_find_filler(m, dir.data, err));
    PITH_TRY(text_modules_note_markers(m, err));
    pith__word_model_kind kind = pith__graph_find_output(m->graph, PITH_BM42_OUTPUT) >= 0
                                     ? PITH_WORD_MODEL_BM42
                                     : PITH_WORD_MODEL_NONE;
    PITH_TRY(pith__word_model_read(&m->word_model, kind, m->dir.data, &m->files, &m->arena, err));
    return text_modules_make_ragged(m, err);
}

/* The path relative to the directory, if it lies in it. */
static pith_str within_directory(const pith_model *m, pith_str path) {
    const size_t n = m->dir.size;
    bool within = path.size > n + 1 && !memcmp(path.data, m->dir.data, n) && path.data[n] == '/';
    return within ? (pith_str){ path.data + n + 1, path.size - n - 1 } : path;
}

/* What became of the keys of the tokenizer's files. */
static pith_status text_modules_keys(pith_model *m, pith_error *err) {
    static const char *const what[PITH_KEY_FATES] = { [PITH_KEY_READ] = "tokenizer settings read",
                                                      [PITH_KEY_IGNORED] =
                                                          "tokenizer settings ignored",
                                                      [PITH_KEY_UNKNOWN] =
                                                          "tokenizer settings not known" };
    size_t count;
    const pith__key_report *reports = pith__tokenizer_key_reports(m->tokenizer, &count);
    for (size_t i = 0; i < count; i++)
        for (int fate = 0; fate < PITH_KEY_FATES; fate++)
            if (reports[i].keys[fate].size)
                PITH_TRY(pith__modules_note(&m->modules, what[fate], reports[i].keys[fate],
                                            reports[i].file, &m->arena, err));
    return PITH_OK;
}

/* Notes what was decided about texts when all is known. */
static pith_status text_modules_note(pith_model *m, pith_error *err) {
    pith__modules *s = &m->modules;
    const int32_t tokens = pith__tokenizer_max_length(m->tokenizer),
                  length = pith__encoder_max_length(m->text.encoder, 0);
    const bool cut =
        s->positions && length == s->positions && length != s->max_length && length != tokens;
    const char *file_name = tokens ? "tokenizer_config.json" : "";
    if (cut) file_name = "config.json";
    const char *slash = s->folder.size && file_name[0] ? "/" : "";
    pith_str from = s->max_length_file;
    if (!s->max_length || cut)
        from = pith__arena_printf(&m->arena, "%s%s%s", file_name[0] ? s->folder.data : "", slash,
                                  file_name);
    pith_str value =
        length ? pith__arena_printf(&m->arena, "%d tokens", (int)length) : PITH_STR("none");
    pith_str file = pith__tokenizer_file(m->tokenizer);
    if (!value.data || !from.data) return pith__fail_memory(err, 0);
    PITH_TRY(
        pith__modules_note(s, "max length", value, length ? from : PITH_STR(""), &m->arena, err));
    if (!s->normalize)
        PITH_TRY(pith__modules_note(s, "normalize", PITH_STR("no"), PITH_STR(""), &m->arena, err));
    PITH_TRY(text_modules_keys(m, err));
    if (!file.data) return PITH_OK;
    return pith__modules_note(s, "tokenizer", within_directory(m, file), PITH_STR(""), &m->arena,
                              err);
}

static pith_status text_modules_output(int *output, const pith_model *m, pith__graph *graph,
                                       pith_error *err) {
    const pith__head *dense;
    PITH_TRY(pith__head_find(&dense, "dense", err));
    *output = pith__head_output(dense, graph);
    int attention, answer, logits;
    PITH_TRY(pith__attention_row_append(&attention, graph, PITH_BM42_OUTPUT, err));
    PITH_TRY(pith__answer_logit_append(&answer, &logits, graph, &m->modules.rerank, err));
    if (*output < 0) *output = attention;
    if (*output == logits)
        *output = answer; /* logits of a vocabulary are no vectors; both may be
                                                -1 */
    if (!m->modules.row_step_count && attention < 0 && answer < 0) return PITH_OK;
    PITH_TRY(pith__modules_append(output, graph, &m->modules, err));
    for (pith__node *node = graph->first; node; node = node->next)
        if (!node->op) PITH_TRY(pith__op_bind_node(node, err));
    return pith__ops_infer(graph, false, err);
}

/* Settings that go before those of config.json change a network that is made of it, and no other.
 */
static pith_status text_modules_args(const pith_model *m, pith_error *err) {
    if (!m->modules.config_args.size) return PITH_OK;
    return pith__fail(err, PITH_ERR_UNSUPPORTED,
                      "sentence_bert_config.json: config_args or config_kwargs has %s, which "
                      "cannot be applied to the file "
                      "that is opened; remove it there if the file was made with it",
                      m->modules.config_args.data);
}

/* An adapter is added to weights that are read from their own files, not to those in an ONNX file:
 * says so. */
static pith_status text_modules_adapter(pith_model *m, pith_error *err) {
    pith_str dir = m->dir, path;
    bool there;
    if (m->from_safetensors || !dir.data || m->compiled.writer) return PITH_OK;
    if (m->modules.folder.size)
        PITH_TRY(pith__path_join(&dir, &m->arena, dir.data, m->modules.folder, err));
    PITH_TRY(pith__file_find(&there, &path, &m->arena, dir.data, "adapter_config.json", err));
    if (!there) return PITH_OK;
    for (size_t i = 0; i < m->modules.decision_count; i++)
        if (!strcmp(m->modules.decisions[i].what, "adapter"))
            m->modules.decisions[i].value = PITH_STR("left out: the ONNX file is run as it is");
    pith__log_write(m->options.call.log, PITH_LOG_WARNING,
                    "%s: this adapter is left out, since the ONNX file next to it is run as it is; "
                    "if the file was made "
                    "without the adapter, remove the file, so that the weights are read and the "
                    "adapter is added",
                    path.data);
    return PITH_OK;
}

/* Also for a file that was opened by its own name, whose directory is known by now. */
static pith_status text_modules_rows(pith_model *m, pith_error *err) {
    pith_error fault = PITH_ERROR_INIT;
    if (m->dir.data && !m->modules_read && !m->compiled.writer)
        PITH_TRY(text_modules_of_directory(m, err));
    PITH_TRY(text_modules_adapter(m, err));
    int output = -1;
    pith_status status = text_modules_args(m, &fault);
    if (!status) status = text_modules_output(&output, m, m->graph, &fault);
    if (m->graph->output_count != m->chosen_runtime.file_outputs) {
        pith__part_used("text_modules");
        pith__texts_note_use();
    }
    m->text.outputs[0] = output > 0 ? output : 0;
    m->text.output_count = output >= 0;
    if (status == PITH_ERR_MEMORY || pith__status_stops(status))
        return pith__fail(err, status, "%s", fault.message);
    if (status) m->no_text = fault;
    return PITH_OK;
}

/* The ragged form of a graph that does not embed, for looking at it. */
static pith_status text_modules_tell(pith_model *m, pith_error *err) {
    bool told =
        m->text.encoder || m->compiled.writer || m->text.ragged || m->text.ragged_reason.data;
    if (told || !(m->options.flags & PITH_OPEN_DESCRIBE)) return PITH_OK;
    PITH_TRY(text_modules_make_ragged(m, err));
    return pith__text_view_make_program(&m->text, m, m->making.stop, err);
}

static const pith__text_modules_part text_modules_functions = { .modules =
                                                                    text_modules_of_directory,
                                                                .output = text_modules_output,
                                                                .rows = text_modules_rows,
                                                                .tokenizer = text_modules_tokenizer,
                                                                .note = text_modules_note,
                                                                .tell = text_modules_tell };
const pith__part pith__part_text_modules = { "text_modules", &text_modules_functions };
