/* Ranks texts by dense and by sparse vectors, and joins the two ranks by reciprocal rank fusion:
 * the sum of 1 / (60 + rank). Source: Cormack, Clarke and Buettcher, 2009.
 *
 *     ./hybrid_search MODEL [SPARSE_MODEL]
 *
 * Without SPARSE_MODEL, MODEL makes both in one pass, as BGE-M3 does.
 */
#include <pith/pith.h>
#include <stdio.h>

enum { TEXTS = 6 }; /* the first one is the query */
static const pith_str texts[TEXTS] = {
    { "where is the cat", 16 },       { "a cat sat on the mat", 20 },
    { "interest rates rose", 19 },    { "the dog walked home", 19 },
    { "a red house and a tree", 22 }, { "find the mat , the cat is there", 31 },
};

static pith_encoded *encode(const pith_model *model, uint32_t what) {
    pith_encode_options options = PITH_ENCODE_OPTIONS_INIT;
    pith_error err = PITH_ERROR_INIT;
    pith_encoded *encoded = NULL;
    options.what = what;
    if (pith_encode(&encoded, model, texts, TEXTS, &options, &err)) puts(err.message);
    return encoded;
}

static double dense_score(const pith_encoded *e, size_t text) {
    double sum = 0;
    for (size_t i = 0; i < e->dim; i++) sum += (double)e->dense[i] * e->dense[text * e->dim + i];
    return sum;
}

/* Both rows have ascending indices. */
static double sparse_score(const pith_sparse_rows *s, size_t text) {
    int64_t a = s->offsets[0], b = s->offsets[text];
    double sum = 0;
    while (a < s->offsets[1] && b < s->offsets[text + 1]) {
        if (s->indices[a] == s->indices[b])
            sum += (double)s->values[a++] * s->values[b++];
        else if (s->indices[a] < s->indices[b])
            a++;
        else
            b++;
    }
    return sum;
}

static void add_ranks(double *fused, const double *scores) {
    for (int i = 1; i < TEXTS; i++) {
        int rank = 1;
        for (int k = 1; k < TEXTS; k++) rank += scores[k] > scores[i];
        fused[i] += 1.0 / (60 + rank);
    }
}

int main(int argc, char **argv) {
    pith_error err = PITH_ERROR_INIT;
    pith_model *model = NULL, *other = NULL;
    double dense[TEXTS], sparse[TEXTS], fused[TEXTS] = { 0 };
    const uint32_t dense_only = PITH_ENCODE_DENSE, both = PITH_ENCODE_DENSE | PITH_ENCODE_SPARSE;
    if (argc < 2) return puts("usage: hybrid_search MODEL [SPARSE_MODEL]"), 2;
    if (pith_model_open(&model, argv[1], NULL, &err)) return puts(err.message), 1;
    if (argc > 2 && pith_model_open(&other, argv[2], NULL, &err)) return puts(err.message), 1;
    pith_encoded *first = encode(model, other ? dense_only : both);
    pith_encoded *second = other ? encode(other, PITH_ENCODE_SPARSE) : first;
    if (!first || !second) return 1;

    for (size_t i = 1; i < TEXTS; i++) {
        dense[i] = dense_score(first, i);
        sparse[i] = sparse_score(&second->sparse, i);
    }
    add_ranks(fused, dense);
    add_ranks(fused, sparse);
    for (int i = 1; i < TEXTS; i++)
        printf("%.5f  dense %6.3f  sparse %6.3f  %s\n", fused[i], dense[i], sparse[i],
               texts[i].data);

    if (other) pith_encoded_free(second);
    pith_encoded_free(first);
    pith_model_close(other);
    pith_model_close(model);
}
