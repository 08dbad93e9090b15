/* hf_rotary.c - rotary positions: frequencies with their scalings, tables, and the turning of
 * heads.
 *
 * Su et al. 2021, "RoFormer". Frequencies are rounded to f32 where transformers rounds them,
 * because angles grow with the position. The tables are computed for the positions at hand. A
 * scaling that depends on the length of the text takes it from the attention mask, so that a text
 * has the same result whatever stands beside it. */
#include <math.h>
#include <stdio.h>

#include "models/architectures/hf_attention.h"
#include "models/architectures/hf_keys.h"

#define PI 3.14159265358979323846

/* Of one table. */
typedef struct frequencies {
    float *items;
    int64_t count;
    double theta, attention; /* factor of cosine and sine */
} frequencies;

/* A number of the scaling object; required ones must be there and above 0. */
static double hf_rotary_number(pith__hf_builder *b, const char *scaling, const char *name,
                               double fallback) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", scaling, name);
    double value = pith__hf_real(b, key, fallback);
    if (!(value > 0) || !isfinite(value)) {
        pith__hf_fail(b, PITH_ERR_FORMAT, "config.json: %s must be a number above 0", key);
        return 1;
    }
    return value;
}

static void hf_rotary_linear(pith__hf_builder *b, const char *scaling, frequencies *f) {
    float factor = (float)hf_rotary_number(b, scaling, "factor", 0);
    for (int64_t i = 0; i < f->count; i++) f->items[i] /= factor;
}

/* theta and the frequencies are both scaled: https://kexue.fm/archives/9706. */
static void hf_rotary_ntk(pith__hf_builder *b, const char *scaling, frequencies *f) {
    double factor = hf_rotary_number(b, scaling, "factor", 0);
    float less = (float)pow(factor, 1 / (double)f->count);
    for (int64_t i = 0; i < f->count; i++) {
        float part = (float)(2 * i) / (float)(2 * f->count);
        f->items[i] = 1 / (float)pow((float)(f->theta * factor), part) / less;
    }
}

/* Long waves are stretched, short ones stay, those between are in between. */
static void hf_rotary_llama3(pith__hf_builder *b, const char *scaling, frequencies *f) {
    double factor = hf_rotary_number(b, scaling, "factor", 0);
    double low = hf_rotary_number(b, scaling, "low_freq_factor", 0);
    double high = hf_rotary_number(b, scaling, "high_freq_factor", 0);
    double old = hf_rotary_number(b, scaling, "original_max_position_embeddings",
                                  (double)b->config->positions);
    for (int64_t i = 0; i < f->count; i++) {
        double x = f->items[i], wave = 2 * PI / x;
        if (wave < old / high) continue;
        double smooth = (old / wave - low) / (high - low);
        f->items[i] =
            (float)(wave > old / low ? x / factor : (1 - smooth) * x / factor + smooth * x);
    }
}

static double hf_rotary_yarn_scale(double factor, double by) {
    return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1;
}

/* The place in the frequencies at which a wave turns `rotations` times over the old length. */
static double hf_rotary_yarn_place(const frequencies *f, double rotations, double old) {
    return 2 * (double)f->count * log(old / (rotations * 2 * PI)) / (2 * log(f->theta));
}

/* Peng et al. 2023, "YaRN": a ramp from frequencies that stay to frequencies that are divided by
 * the factor. */
static void hf_rotary_yarn(pith__hf_builder *b, const char *scaling, frequencies *f) {
    char key[128];
    double positions = (double)b->config->positions,
           factor = hf_rotary_number(b, scaling, "factor", 0);
    double old = hf_rotary_number(b, scaling, "original_max_position_embeddings", positions);
    double low = hf_rotary_yarn_place(f, hf_rotary_number(b, scaling, "beta_fast", 32), old);
    double high = hf_rotary_yarn_place(f, hf_rotary_number(b, scaling, "beta_slow", 1), old);
    snprintf(key, sizeof key, "%s.truncate", scaling);
    if (pith__hf_bool(b, key, true)) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, (double)(2 * f->count - 1));
    if (low == high) high += 0.001;
    for (int64_t i = 0; i < f->count; i++) {
        double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1);
        f->items[i] = (float)(f->items[i] / factor * ramp + f->items[i] * (1 - ramp));
    }
    snprintf(key, sizeof key, "%s.mscale", scaling);
    double above = pith__hf_real(b, key, 0);
    snprintf(key, sizeof key, "%s.mscale_all_dim", scaling);
    double below = pith__hf_real(b, key, 0);
    f->attention = above != 0 && below != 0
                       ? hf_rotary_yarn_scale(factor, above) / hf_rotary_yarn_scale(factor, below)
                       : hf_rotary_yarn_scale(factor, 1);
    f->attention = hf_rotary_number(b, scaling, "attention_factor", f->attention);
}

static pith_str hf_rotary_type(pith__hf_builder *b, const char *scaling) {
    char key[128];
    if (!scaling || !pith__hf_has(b, scaling)) return PITH_STR("default");
    snprintf(key, sizeof key, "%s.type", scaling);
    pith_str type = pith__hf_string(b, key, "default");
    snprintf(key, sizeof key, "%s.rope_type", scaling);
    return pith__hf_has(b, key) ? pith__hf_string(b, key, "default") : type;
}

/* The types of ROPE_INIT_FUNCTIONS in transformers that can be computed beforehand; "dynamic"
 * depends on the length of a text and becomes nodes of the graph (hf_rotary_stretch). */
static void hf_rotary_scale(pith__hf_builder *b, const char *scaling, pith_str type,
                            frequencies *f) {
    static const struct {
        const char *type;
        void (*scale)(pith__hf_builder *b, const char *scaling, frequencies *f);
    } known[] = {
        { "default", NULL },
        { "dynamic", NULL },
        { "linear", hf_rotary_linear },
        { "llama3", hf_rotary_llama3 },
        { "ntk", hf_rotary_ntk },
        { "yarn", hf_rotary_yarn },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!pith__str_is(type, known[i].type)) continue;
        if (known[i].scale) known[i].scale(b, scaling, f);
        return;
    }
    pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                  "config.json: %s: type \"" PITH_STR_FMT
                  "\" is not supported; supported are default, dynamic, linear, llama3, ntk, yarn",
                  scaling, PITH_STR_ARG(type));
}

/* ---- settings ---- */

/* Every key of a scaling object is one that is read here, or refused. */
static void hf_rotary_check(pith__hf_builder *b, const char *section) {
    static const char known[] =
        "rope_theta=0 rope_type=0 type=0 factor=0 original_max_position_embeddings=0 beta_fast=0 "
        "beta_slow=0 "
        "truncate=0 mscale=0 mscale_all_dim=0 attention_factor=0 low_freq_factor=0 "
        "high_freq_factor=0 "
        "partial_rotary_factor=0 full_attention=0 sliding_attention=0 mixed_b=0 finetuned=0";
    int64_t count;
    pith_str value, *names = pith__hf_keys_of(b, section, &count);
    for (int64_t i = 0; i < count; i++)
        if (!pith__hf_keys_default(&value, known, names[i]))
            pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                          "config.json: %s." PITH_STR_FMT " is not supported", section,
                          PITH_STR_ARG(names[i]));
}

static const char *hf_rotary_key(pith__hf_builder *b, const char *section, const char *name) {
    pith_str key = pith__arena_printf(b->graph->arena, "%s.%s", section, name);
    if (!key.data) pith__hf_made(b, NULL);
    return key.data ? key.data : name;
}

void pith__hf_rotary_read(pith__hf_builder *b, pith__hf_rotary_settings *s,
                          const char *layer_type) {
    const char *own = hf_rotary_key(b, "rope_parameters", layer_type);
    const char *now = pith__hf_has(b, own) ? own : "rope_parameters";
    const char *sections[] = { "rope_scaling", now };
    s->theta = pith__hf_real(b, "rope_theta", s->theta);
    for (int i = 1; i >= 0; i--)
        s->theta = pith__hf_real(b, hf_rotary_key(b, sections[i], "rope_theta"), s->theta);
    s->scaling = pith__hf_has(b, "rope_scaling") ? "rope_scaling" : now;
    double part = pith__hf_real(b, "partial_rotary_factor", 1);
    for (int i = 0; i < 2; i++) {
        hf_rotary_check(b, sections[i]);
        part =
            fmin(part, pith__hf_real(b, hf_rotary_key(b, sections[i], "partial_rotary_factor"), 1));
    }
    if (part != 1)
        pith__hf_fail(b, PITH_ERR_UNSUPPORTED,
                      "config.json: partial_rotary_factor is not 1, which alone is supported");
}

/* ---- tables ---- */

/* Angles [.., sequence, count] to a table [.., 1, sequence, 2 * count]. */
static pith__value *hf_rotary_table(pith__hf_builder *b, const char *op, pith__value *angles,
                                    const frequencies *f, bool interleaved) {
    pith__value *half = PITH_HF_PUT(b, op, angles);
    if (f->attention != 1) half = PITH_HF_PUT(b, "Mul", half, pith__hf_f32(b, (float)f->attention));
    if (!interleaved) return pith__hf_unsqueeze(b, pith__hf_join(b, half, half, -1), 1);
    half = pith__hf_unsqueeze(b, half, -1);
    pith__value *pairs = pith__hf_join(b, half, half, -1);
    return pith__hf_unsqueeze(b, pith__hf_reshape(b, pairs, (int64_t[]){ 0, 0, 2 * f->count }, 3),
                              1);
}

/* By how much theta grows for each token's text, a power of 2i/size: [batch, sequence, count]. */
static pith__value *hf_rotary_stretch(pith__hf_builder *b, pith__value *mask, const frequencies *f,
                                      double factor, double trained) {
    float *powers =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)f->count, sizeof *powers);
    if (!powers) return pith__hf_made(b, NULL);
    for (int64_t i = 0; i < f->count; i++) /* d / (d - 2) * -2i / d */
        powers[i] = f->count > 1 ? (float)(-(double)i / (double)(f->count - 1)) : 0;
    pith__value *before = PITH_HF_PUT(b, "CumSum", mask, pith__hf_i64_scalar(b, 1));
    pith__value *after = PITH_HF_PUT(b, "CumSum", mask, pith__hf_i64_scalar(b, 1));
    pith__hf_set_int(b, after, "reverse", 1);
    pith__hf_set_int(b, after, "exclusive", 1);
    pith__value *length = pith__hf_cast(b, PITH_HF_PUT(b, "Add", before, after), PITH_F32);
    pith__value *grown = PITH_HF_PUT(b, "Mul", length, pith__hf_f32(b, (float)(factor / trained)));
    grown = PITH_HF_PUT(b, "Sub", grown, pith__hf_f32(b, (float)(factor - 1)));
    grown = PITH_HF_PUT(b, "Max", grown, pith__hf_f32(b, 1));
    return PITH_HF_PUT(b, "Pow", pith__hf_unsqueeze(b, grown, 2),
                       pith__hf_f32s(b, powers, 3, (int64_t[]){ 1, 1, f->count }));
}

/* Cosines and sines of all positions, computed in the graph from the length of the batch.
 * Frequencies are rounded to f32 where torch rounds them. */
pith__hf_rotary pith__hf_rotary_tables(pith__hf_builder *b, pith__value *ids, pith__value *mask,
                                       const pith__hf_rotary_settings *s) {
    pith__hf_rotary r = { .size = s->size, .interleaved = s->interleaved };
    frequencies f = { .count = s->size / 2, .theta = s->theta, .attention = 1 };
    if (s->size < 2 || s->size % 2 || !(s->theta > 0) || !isfinite(s->theta))
        pith__hf_fail(b, PITH_ERR_FORMAT,
                      "config.json: rotary positions need an even size of heads and a base above "
                      "0, not %lld and %g",
                      (long long)s->size, s->theta);
    f.items =
        b->status ? NULL : pith__arena_array(b->graph->arena, (size_t)f.count, sizeof *f.items);
    if (!f.items) {
        pith__hf_made(b, NULL);
        return r;
    }
    for (int64_t i = 0; i < f.count; i++)
        f.items[i] = 1 / (float)pow(s->theta, (float)(2 * i) / (float)s->size);
    pith_str type = hf_rotary_type(b, s->scaling);
    hf_rotary_scale(b, s->scaling, type, &f);
    double factor = s->stretch, trained = (double)s->trained;
    if (pith__str_is(type, "dynamic")) {
        factor = hf_rotary_number(b, s->scaling, "factor", 0);
        trained = (double)b->config->positions;
    }
    pith__hf_go_to(b, "rotary");
    pith__value *at = pith__hf_cast(b, pith__hf_unsqueeze(b, pith__hf_range(b, ids), 0), PITH_F32);
    pith__value *frequency = pith__hf_f32s(b, f.items, 3, (int64_t[]){ 1, 1, f.count });
    if (factor > 0)
        frequency =
            PITH_HF_PUT(b, "Mul", frequency, hf_rotary_stretch(b, mask, &f, factor, trained));
    pith__value *angles = PITH_HF_PUT(b, "Mul", pith__hf_unsqueeze(b, at, 2), frequency);
    r.cosine = hf_rotary_table(b, "Cos", angles, &f, r.interleaved);
    r.sine = hf_rotary_table(b, "Sin", angles, &f, r.interleaved);
    return r;
}

/* ---- turning ---- */

/* [-b, a] for the halves [a, b]; (-x1, x0) for the pairs (x0, x1). */
static pith__value *hf_rotary_turned(pith__hf_builder *b, const pith__hf_rotary *r, pith__value *x,
                                     int64_t heads) {
    const int64_t pairs[] = { 0, heads, -1, r->size / 2, 2 }, joined[] = { 0, heads, -1, r->size };
    int64_t size = r->interleaved ? 1 : r->size / 2, axis = r->interleaved ? 4 : 3;
    pith__value *parts[2];
    if (r->interleaved) x = pith__hf_reshape(b, x, pairs, 5);
    pith__hf_split(b, parts, 2, x, size, axis);
    pith__value *y = pith__hf_join(b, PITH_HF_PUT(b, "Neg", parts[1]), parts[0], -1);
    return r->interleaved ? pith__hf_reshape(b, y, joined, 4) : y;
}

/* x cos + turned(x) sin, as apply_rotary_pos_emb spells it. Components behind the turned ones stay.
 */
pith__value *pith__hf_turn(pith__hf_builder *b, const pith__hf_rotary *r, pith__value *x,
                           int64_t heads, int64_t head_size) {
    pith__value *rest = NULL;
    if (r->size < head_size) {
        rest = pith__hf_slice(b, x, r->size, head_size, 3);
        x = pith__hf_slice(b, x, 0, r->size, 3);
    }
    pith__value *y = PITH_HF_PUT(b, "Add", PITH_HF_PUT(b, "Mul", x, r->cosine),
                                 PITH_HF_PUT(b, "Mul", hf_rotary_turned(b, r, x, heads), r->sine));
    return rest ? pith__hf_join(b, y, rest, -1) : y;
}
