/* heif_check.c - see heif_check.h. A file is boxes in boxes (ISO/IEC 14496-12; the items of
 * pictures are in 23008-12). */
#include "heif_check.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    const uint8_t *data;
    size_t size;
} span;

enum { ITEMS_MOST = 4096, PIECES_MOST = 1 << 16 };

typedef struct check {
    pith_image_call *call;
    span items, places, here; /* iinf, iloc and idat */
    size_t pieces, bytes;     /* that were looked at */
} check;

/* Takes a number of so many bytes from the front; all that is missing reads as zeros. */
static uint64_t span_take(span *s, int bytes) {
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++) {
        n = n << 8 | (s->size ? s->data[0] : 0);
        if (s->size) s->data++, s->size--;
    }
    return n;
}

static void span_skip(span *s, size_t bytes) {
    if (bytes > s->size) bytes = s->size;
    s->data += bytes;
    s->size -= bytes;
}

/* The next box of a span: its kind and its body. */
static int span_box(span *rest, char kind[4], span *body) {
    const size_t whole = rest->size;
    if (whole < 8) return 0;
    uint64_t size = span_take(rest, 4);
    memcpy(kind, rest->data, 4);
    span_skip(rest, 4);
    if (size == 1) size = span_take(rest, 8);
    const size_t head = whole - rest->size;
    if (!size || size > whole) size = whole;
    if (size < head) return 0;
    *body = (span){ rest->data, (size_t)size - head };
    span_skip(rest, body->size);
    return 1;
}

static int is(const char kind[4], const char *name) { return !memcmp(kind, name, 4); }

/* The parameter sets of HEVC: 22 bytes, a count of arrays; of each its kind, a count, and units
 * with their lengths. */
static pith_image_outcome check_hevc_settings(check *c, span s) {
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    span_skip(&s, 22);
    for (uint64_t arrays = span_take(&s, 1); arrays && s.size; arrays--) {
        span_skip(&s, 1);
        for (uint64_t units = span_take(&s, 2); units && s.size && !outcome; units--) {
            size_t size = (size_t)span_take(&s, 2);
            if (size > s.size) size = s.size;
            outcome = pith__heif_check_hevc_unit(c->call, s.data, size);
            span_skip(&s, size);
        }
    }
    return outcome;
}

static pith_image_outcome check_properties(check *c, span s) {
    char kind[4];
    span body, inner;
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    while (!outcome && span_box(&s, kind, &body)) {
        if (!is(kind, "ipco")) continue;
        while (!outcome && span_box(&body, kind, &inner)) {
            if (is(kind, "hvcC")) outcome = check_hevc_settings(c, inner);
            if (is(kind, "av1C") && inner.size > 4)
                outcome = pith__heif_check_av1(c->call, inner.data + 4, inner.size - 4);
        }
    }
    return outcome;
}

/* What kind of item has this number; "": it is not known. */
static void item_kind(char kind[4], const check *c, uint64_t id) {
    span s = c->items, infe;
    char name[4];
    const int version = (int)span_take(&s, 1);
    memset(kind, 0, 4);
    span_skip(&s, version ? 7 : 5);
    while (span_box(&s, name, &infe)) {
        const int form = (int)span_take(&infe, 1);
        span_skip(&infe, 3);
        if (form < 2 || span_take(&infe, form == 2 ? 2 : 4) != id) continue;
        span_skip(&infe, 2);
        if (infe.size >= 4) memcpy(kind, infe.data, 4);
        return;
    }
}

/* A grid or an overlay states the size that it makes; its flags say whether in two bytes or four.
 */
static pith_image_outcome check_made(check *c, span s, size_t skip) {
    span_skip(&s, 1);
    const int bytes = span_take(&s, 1) & 1 ? 4 : 2;
    span_skip(&s, skip);
    const uint64_t width = span_take(&s, bytes);
    return pith__heif_check_size(c->call, width, span_take(&s, bytes));
}

static pith_image_outcome check_item(check *c, const char kind[4], span s) {
    if (is(kind, "hvc1")) return pith__heif_check_hevc(c->call, s.data, s.size);
    if (is(kind, "av01")) return pith__heif_check_av1(c->call, s.data, s.size);
    if (is(kind, "grid")) return check_made(c, s, 2);
    return is(kind, "iovl") ? check_made(c, s, 8) : PITH_IMAGE_DECODED;
}

typedef struct place_form {
    int version, offset, length, base, index;
} place_form;

/* The bytes of an item, which may lie in pieces; those of several are put together in memory from
 * malloc. */
static pith_image_outcome check_place(check *c, span *s, const place_form *f) {
    char kind[4];
    span whole = { NULL, 0 };
    uint8_t *joined = NULL;
    const uint64_t id = span_take(s, f->version < 2 ? 2 : 4);
    const int method = f->version ? (int)span_take(s, 2) & 15 : 0;
    span_skip(s, 2);
    const uint64_t base = span_take(s, f->base), count = span_take(s, 2);
    const span all = method == 1 ? c->here : (span){ c->call->data, c->call->size };
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    item_kind(kind, c, id);
    for (uint64_t i = 0; i < count; i++) {
        if (!s->size || outcome) break;
        span_skip(s, (size_t)f->index);
        const uint64_t from = base + span_take(s, f->offset), length = span_take(s, f->length);
        const size_t there = from < all.size ? all.size - (size_t)from : 0,
                     size = !length || length > there ? there : (size_t)length;
        c->bytes += size; /* items of real files do not overlap */
        if (++c->pieces > PIECES_MOST || c->bytes / 2 > c->call->size) {
            outcome = pith__codec_fail(c->call, PITH_IMAGE_UNKNOWN, "its items overlap");
        } else if (!i) {
            whole = (span){ size ? all.data + from : all.data, size };
        } else {
            uint8_t *grown = realloc(joined, whole.size + size + 1);
            if (!grown) {
                outcome = PITH_IMAGE_NO_MEMORY;
                break;
            }
            if (!joined) memcpy(grown, whole.data, whole.size);
            joined = grown;
            if (size) memcpy(joined + whole.size, all.data + from, size);
            whole = (span){ joined, whole.size + size };
        }
    }
    if (!outcome && whole.size && method < 2) outcome = check_item(c, kind, whole);
    free(joined);
    return outcome;
}

static pith_image_outcome check_places(check *c) {
    span s = c->places;
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    place_form f = { .version = (int)span_take(&s, 1) };
    span_skip(&s, 3);
    const int sizes = (int)span_take(&s, 2);
    f.offset = sizes >> 12 & 15;
    f.length = sizes >> 8 & 15;
    f.base = sizes >> 4 & 15;
    f.index = f.version ? sizes & 15 : 0;
    if (f.offset > 8 || f.length > 8 || f.base > 8 || f.index > 8)
        return pith__codec_fail(c->call, PITH_IMAGE_DAMAGED,
                                "the places of its items are no numbers");
    const uint64_t count = span_take(&s, f.version < 2 ? 2 : 4);
    if (count > ITEMS_MOST)
        return pith__codec_fail(c->call, PITH_IMAGE_UNKNOWN, "it has more than %d items",
                                ITEMS_MOST);
    for (uint64_t i = 0; i < count && s.size && !outcome; i++) outcome = check_place(c, &s, &f);
    return outcome;
}

pith_image_outcome pith__heif_check(pith_image_call *call) {
    check c = { .call = call };
    span file = { call->data, call->size }, body, inner;
    char kind[4];
    pith_image_outcome outcome = PITH_IMAGE_DECODED;
    while (!outcome && span_box(&file, kind, &body)) {
        if (!is(kind, "meta")) continue;
        span_skip(&body, 4);
        while (!outcome && span_box(&body, kind, &inner)) {
            if (is(kind, "iinf")) c.items = inner;
            if (is(kind, "iloc")) c.places = inner;
            if (is(kind, "idat")) c.here = inner;
            if (is(kind, "iprp")) outcome = check_properties(&c, inner);
        }
        if (!outcome && c.places.size) outcome = check_places(&c);
    }
    return outcome;
}
