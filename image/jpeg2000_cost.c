/* jpeg2000_cost.c - see jpeg2000_cost.h.
 *
 * A codestream of 150 bytes can ask for a precinct, a code block or a packet per pixel, for each of
 * which OpenJPEG takes memory and time before it sees that there are no data. So all of them are
 * counted here, as ISO/IEC 15444-1, annex B, cuts a tile into them, with the coding style of the
 * main header and of each tile that has its own. */
#include <stdbool.h>
#include <string.h>

#include "jpeg2000_cost.h"

/* What a picture may have for its samples; small pictures may have FREE of each. Encoders write
 * precincts of 64 x 64 samples and more, code blocks of 16 x 16 and more, and about 20 layers at
 * most. A packet takes a byte at least, so a file may have as many packets as bytes. A tile costs
 * OpenJPEG about 10 KB; real tiles have 64 x 64 pixels and more. */
enum {
    MAX_COMPONENTS = 4,
    MAX_LEVELS = 32,
    MAX_TILES = 65535,
    PIXELS_PER_TILE = 1024,
    FREE_TILES = 64,
    SAMPLES_PER_PRECINCT = 128,
    SAMPLES_PER_BLOCK = 32,
    SAMPLES_PER_PACKET = 128,
    SAMPLES_PER_PLACE = 16,
    FREE = 16384
};

enum { SOC = 0xFF4F, SIZ = 0xFF51, COD = 0xFF52, COC = 0xFF53, SOT = 0xFF90, SOD = 0xFF93 };

typedef struct coding {
    uint32_t levels, block_width, block_height; /* the sizes of code blocks are powers of two */
    uint8_t precincts[MAX_LEVELS + 1];          /* per resolution: the height's power of two, then
                                                   the width's */
} coding;

typedef struct rectangle {
    uint64_t x0, y0, x1, y1;
} rectangle;

typedef struct cost {
    pith_image_call *call;
    uint32_t components, layers;
    uint32_t step_x[MAX_COMPONENTS], step_y[MAX_COMPONENTS];
    coding style[MAX_COMPONENTS];
    rectangle picture;
    uint64_t first_x, first_y, tile_width, tile_height, across, tiles, samples;
    uint64_t bytes, precincts, blocks, packets;
    uint64_t least_x, least_y,
        resolutions; /* the smallest distances of precincts on the picture's grid; per component */
} cost;

static uint32_t cost_number(const uint8_t *p, int bytes) {
    uint32_t n = 0;
    for (int i = 0; i < bytes; i++) n = n << 8 | p[i];
    return n;
}

static uint64_t cost_up(uint64_t n, uint64_t by) { return n / by + (n % by != 0); }

static pith_image_outcome cost_damaged(cost *c, const char *what) {
    return pith__codec_fail(c->call, PITH_IMAGE_DAMAGED, "%s", what);
}

/* ---- the sizes ---- */

static pith_image_outcome cost_sizes(cost *c, const uint8_t *siz, size_t size) {
    uint32_t n[8];
    if (size < 36) return cost_damaged(c, "it has no codestream");
    for (int i = 0; i < 8; i++) n[i] = cost_number(siz + 2 + 4 * i, 4);
    c->components = cost_number(siz + 34, 2);
    if (n[0] <= n[2] || n[1] <= n[3] || !n[4] || !n[5] || n[6] > n[2] || n[7] > n[3])
        return cost_damaged(c, "its sizes are impossible");
    c->picture = (rectangle){ n[2], n[3], n[0], n[1] };
    c->tile_width = n[4], c->tile_height = n[5], c->first_x = n[6], c->first_y = n[7];
    c->across = cost_up(n[0] - c->first_x, n[4]);
    c->tiles = c->across * cost_up(n[1] - c->first_y, n[5]);
    if (c->components < 1 || c->components > MAX_COMPONENTS)
        return pith__codec_fail(c->call, PITH_IMAGE_UNKNOWN,
                                "it has %u components; 1 to %d are supported", c->components,
                                MAX_COMPONENTS);
    if (size < 36 + 3 * (size_t)c->components) return cost_damaged(c, "its sizes are cut short");
    const uint64_t width = n[0] - n[2], height = n[1] - n[3];
    const uint64_t pixels = width * height;
    if (c->tiles > MAX_TILES || c->tiles > FREE_TILES + pixels / PIXELS_PER_TILE)
        return pith__codec_fail(c->call, PITH_IMAGE_UNKNOWN, "its tiles are smaller than %d pixels",
                                PIXELS_PER_TILE);
    for (uint32_t i = 0; i < c->components; i++) {
        c->step_x[i] = siz[36 + 3 * i + 1], c->step_y[i] = siz[36 + 3 * i + 2];
        if (!c->step_x[i] || !c->step_y[i]) return cost_damaged(c, "its sizes are impossible");
        c->samples += cost_up(width, c->step_x[i]) * cost_up(height, c->step_y[i]);
    }
    return PITH_IMAGE_DECODED;
}

/* ---- a tile ---- */

static uint64_t cost_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t cost_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static rectangle cost_tile(const cost *c, uint64_t tile) {
    const uint64_t x = c->first_x + tile % c->across * c->tile_width;
    const uint64_t y = c->first_y + tile / c->across * c->tile_height;
    return (rectangle){ cost_max(x, c->picture.x0), cost_max(y, c->picture.y0),
                        cost_min(x + c->tile_width, c->picture.x1),
                        cost_min(y + c->tile_height, c->picture.y1) };
}

/* Parts of 2^power that [begin, end) touches. */
static uint64_t cost_parts(uint64_t begin, uint64_t end, uint32_t power) {
    return end > begin ? ((end - 1) >> power) - (begin >> power) + 1 : 0;
}

/* Adds a component's precincts, code blocks and packets in a tile. */
static void cost_component(cost *c, rectangle tile, uint32_t component, const coding *style) {
    const uint64_t dx = c->step_x[component], dy = c->step_y[component];
    for (uint32_t r = 0; r <= style->levels; r++) {
        const uint32_t down = style->levels - r, wide = style->precincts[r] & 15,
                       high = style->precincts[r] >> 4;
        const uint64_t part = (uint64_t)1 << down;
        const rectangle at = { cost_up(cost_up(tile.x0, dx), part),
                               cost_up(cost_up(tile.y0, dy), part),
                               cost_up(cost_up(tile.x1, dx), part),
                               cost_up(cost_up(tile.y1, dy), part) };
        const uint64_t count = cost_parts(at.x0, at.x1, wide) * cost_parts(at.y0, at.y1, high);
        /* Above the lowest resolution three bands of half the size share the precincts. A block
         * ends with its precinct. */
        const uint32_t half = r > 0,
                       block_wide =
                           wide < half ? 0 : (uint32_t)cost_min(wide - half, style->block_width),
                       block_high =
                           high < half ? 0 : (uint32_t)cost_min(high - half, style->block_height);
        c->precincts += count;
        c->packets += count * c->layers;
        c->blocks += (half ? 3 : 1) *
                     cost_parts(at.x0 >> half, cost_up(at.x1, 1 + half), block_wide) *
                     cost_parts(at.y0 >> half, cost_up(at.y1, 1 + half), block_high);
        c->least_x = cost_min(c->least_x, dx << (down + wide));
        c->least_y = cost_min(c->least_y, dy << (down + high));
    }
    c->resolutions = cost_max(c->resolutions, style->levels + 1);
}

static pith_image_outcome cost_too_much(const cost *c, const char *what, uint64_t count,
                                        uint64_t per) {
    if (count <= FREE + c->samples / per) return PITH_IMAGE_DECODED;
    return pith__codec_fail(c->call, PITH_IMAGE_UNKNOWN,
                            "it has %llu %s for %llu samples; one for %llu samples is the most",
                            (unsigned long long)count, what, (unsigned long long)c->samples,
                            (unsigned long long)per);
}

/* Adds a tile whose components [first, first + count) have the styles. */
static pith_image_outcome cost_add(cost *c, uint64_t tile, const coding *styles, uint32_t first,
                                   uint32_t count) {
    const rectangle at = cost_tile(c, tile);
    for (uint32_t i = 0; i < count; i++) cost_component(c, at, first + i, &styles[i]);
    pith_image_outcome outcome = cost_too_much(c, "precincts", c->precincts, SAMPLES_PER_PRECINCT);
    if (!outcome) outcome = cost_too_much(c, "code blocks", c->blocks, SAMPLES_PER_BLOCK);
    if (!outcome && c->packets > c->bytes)
        outcome = cost_too_much(c, "packets", c->packets, SAMPLES_PER_PACKET);
    return outcome;
}

/* Some orders of packets go over the grid of all components, and ask at each point whether a
 * precinct begins there. */
static pith_image_outcome cost_grid(const cost *c) {
    const uint64_t across = cost_up(c->picture.x1 - c->picture.x0, c->least_x) + c->across;
    const uint64_t down = cost_up(c->picture.y1 - c->picture.y0, c->least_y) + c->tiles / c->across;
    return cost_too_much(c, "places of packets", across * down * c->resolutions * c->components,
                         SAMPLES_PER_PLACE);
}

/* ---- the markers ---- */

/* Levels, sizes of code blocks and precincts, as COD and COC end with them. */
static pith_image_outcome cost_style(cost *c, coding *style, const uint8_t *p, size_t size,
                                     bool sized) {
    if (size < 5) return cost_damaged(c, "its coding style is cut short");
    *style = (coding){ .levels = p[0], .block_width = p[1] + 2u, .block_height = p[2] + 2u };
    if (style->levels > MAX_LEVELS || style->block_width > 10 || style->block_height > 10 ||
        style->block_width + style->block_height > 12 ||
        (sized && size < 5 + style->levels + (size_t)1))
        return cost_damaged(c, "its coding style is impossible");
    memset(style->precincts, 0xFF, sizeof style->precincts);
    if (sized) memcpy(style->precincts, p + 5, style->levels + (size_t)1);
    return PITH_IMAGE_DECODED;
}

/* COD or COC with `size` bytes behind its length. tile < 0: of the main header, whose styles are
 * added later. */
static pith_image_outcome cost_marker(cost *c, uint32_t marker, const uint8_t *p, size_t size,
                                      int64_t tile) {
    coding styles[MAX_COMPONENTS];
    const uint32_t layers = c->layers;
    uint32_t first = 0, count = c->components;
    pith_image_outcome outcome;
    if (size < (marker == COD ? 5 : 2)) return cost_damaged(c, "its coding style is cut short");
    if (marker == COD) {
        c->layers = cost_number(p + 2, 2);
        outcome = cost_style(c, &styles[0], p + 5, size - 5, p[0] & 1);
        for (uint32_t i = 1; i < count; i++) styles[i] = styles[0];
    } else {
        first = p[0], count = 1;
        if (first >= c->components) return cost_damaged(c, "its coding style is of no component");
        outcome = cost_style(c, &styles[0], p + 2, size - 2, p[1] & 1);
    }
    if (outcome) return outcome;
    if (tile < 0) {
        memcpy(&c->style[first], styles, count * sizeof *styles);
        return PITH_IMAGE_DECODED;
    }
    outcome = cost_add(c, (uint64_t)tile, styles, first, count);
    c->layers = layers;
    return outcome;
}

/* The markers from *at to SOT or SOD, which *at is left at. */
static pith_image_outcome cost_header(cost *c, const uint8_t **at, const uint8_t *end,
                                      uint32_t stop, int64_t tile) {
    for (;;) {
        if (end - *at < 4) return cost_damaged(c, "its headers are cut short");
        const uint32_t marker = cost_number(*at, 2), size = cost_number(*at + 2, 2);
        if (marker == stop) return PITH_IMAGE_DECODED;
        /* Markers from 0xFF30 to 0xFF3F have no length, and no decoder knows them. */
        if (marker < 0xFF50 || marker > 0xFF7F || size < 2 || size > end - *at - 2)
            return cost_damaged(c, "its headers are broken");
        if (marker == COD || marker == COC) {
            pith_image_outcome outcome = cost_marker(c, marker, *at + 4, size - 2, tile);
            if (outcome) return outcome;
        }
        *at += 2 + size;
    }
}

static pith_image_outcome cost_tile_parts(cost *c, const uint8_t *at, const uint8_t *end) {
    while (end - at >= 12 && cost_number(at, 2) == SOT) {
        const uint32_t tile = cost_number(at + 4, 2);
        const uint64_t size = cost_number(at + 6, 4), left = (uint64_t)(end - at);
        const uint8_t *stop = size && size < left ? at + size : end, *p = at + 12;
        if (tile >= c->tiles) return cost_damaged(c, "it has a part of no tile");
        if (size && size < 14) return cost_damaged(c, "a part of a tile is too short");
        pith_image_outcome outcome = cost_header(c, &p, stop, SOD, tile);
        if (outcome) return outcome;
        at = stop;
    }
    return PITH_IMAGE_DECODED;
}

pith_image_outcome pith__jpeg2000_cost(pith_image_call *call, const uint8_t *stream,
                                       const uint8_t *end) {
    cost c = { .call = call, .least_x = UINT32_MAX, .least_y = UINT32_MAX };
    if (!stream || end - stream < 6 || cost_number(stream, 2) != SOC ||
        cost_number(stream + 2, 2) != SIZ)
        return cost_damaged(&c, "it has no codestream");
    const size_t size = cost_number(stream + 4, 2);
    c.bytes = (uint64_t)(end - stream);
    const uint8_t *at = stream + 4 + size;
    if (size < 2 || size > (size_t)(end - stream) - 4)
        return cost_damaged(&c, "it has no codestream");
    pith_image_outcome outcome = cost_sizes(&c, stream + 6, size - 2);
    if (!outcome) outcome = cost_header(&c, &at, end, SOT, -1);
    if (!outcome && !c.layers) outcome = cost_damaged(&c, "it has no coding style");
    for (uint64_t i = 0; i < c.tiles && !outcome; i++)
        outcome = cost_add(&c, i, c.style, 0, c.components);
    if (!outcome) outcome = cost_tile_parts(&c, at, end);
    return outcome ? outcome : cost_grid(&c);
}
