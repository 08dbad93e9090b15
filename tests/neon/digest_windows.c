/* digest_windows.c - convolutions, pools and the kernels around them, on fixed input. */
#include "kernel_digest.h"

#include <stdlib.h>

#include "engine/kernels/arg_lanes.h"
#include "engine/kernels/conv.h"
#include "engine/kernels/conv_bytes.h"
#include "engine/kernels/grid_sample.h"
#include "engine/kernels/move.h"
#include "engine/kernels/pool_rows.h"
#include "engine/kernels/sliding_windows.h"

/* The family chooses one way by sizes; both ways are run as well. */
#define CONV_WAY(isa, name) [PITH_ISA_##isa] = pith__k_##name##_##isa,
static pith__conv_fn *const conv_ways[][PITH_ISA_COUNT] = {
    { PITH_ISAS(CONV_WAY, conv_f32) },
    { PITH_ISAS(CONV_WAY, conv_positions_f32) },
    { PITH_ISAS(CONV_WAY, conv_maps_f32) }
};

/* A convolution in three parts. */
static void run_conv(const call *c) {
    enum { ROWS = 2, MOST = 60 };
    static int64_t offsets[MOST];
    const int64_t maps = 1 + c->round * 7 % 40, most = DIGEST_ROOM / 3 / ROWS / maps;
    const int64_t wish = c->round % 3 ? 1 + c->round * 13 % 150 : 1 + c->round % 5;
    pith__conv a = { .x = x, .offsets = offsets, .weights = y, .bias = c->round % 2 ? z : NULL };
    a.k = c->round % 5 ? c->round * 11 % 30 : MOST;
    a.columns = wish < most ? wish : most;
    a.step = a.columns + c->round % 4;
    a.y_map = ROWS * a.columns;
    for (int64_t i = 0; i < a.k; i++) offsets[i] = i * 7 % 10;
    const int64_t positions = (ROWS - 1) * a.step + a.columns, half = positions / 2,
                  cut = maps / 32 * 16;
    need_room(3 * maps * a.y_map);
    for (size_t way = 0; way < COUNT(conv_ways); way++) {
        pith__conv_fn *conv = way ? conv_ways[way][c->isa] : (pith__conv_fn *)c->fn;
        a.y = out + (int64_t)way * maps * a.y_map;
        conv(&a, 0, cut, 0, positions);
        conv(&a, cut, maps, half, positions);
        conv(&a, cut, maps, 0, half);
    }
}

/* Windows of bytes: sums, or bytes. */
static void run_depthwise_bytes(const call *c) {
    enum { TAPS = 25, MOST = 64 + ROUNDS, ROWS = 2, COLUMNS = 3 };
    static int8_t weights[(MOST + 64) * (TAPS + 3)];
    static int32_t sums[ROWS * COLUMNS * MOST];
    static uint8_t bytes[ROWS * COLUMNS * MOST];
    const int64_t taps = c->round % 2 ? 9 : 1 + c->round % TAPS,
                  n = 1 + c->round % 3 * 32 + c->round % 33;
    int64_t offsets[TAPS];
    for (int64_t i = 0; i < TAPS; i++) offsets[i] = i * (n + c->round % 3);
    memset(weights, 0, sizeof weights); /* those of taps beyond the last are 0 */
    for (int64_t i = 0; i < taps * n; i++) {
        const int64_t tap = i / n;
        weights[pith__depthwise_place(tap, i % n, taps) * 4 + tap % 4] =
            (int8_t)(z[i % N] * 127.0f);
    }
    for (size_t i = 0; i < COUNT(sums); i++) sums[i] = (int32_t)(y[i % N] * 2000.0f);
    memset(bytes, 0, sizeof bytes);
    const pith__requantize to = { .add = sums + MOST,
                                  .scale = c->round % 4 ? z : NULL,
                                  .y = bytes,
                                  .step = n,
                                  .low = -100,
                                  .high = 155,
                                  .zero = 100 };
    static int32_t found[ROWS * COLUMNS * MOST];
    const pith__depthwise_bytes a = { (const uint8_t *)(const void *)x,
                                      offsets,
                                      (const int32_t *)(const void *)weights,
                                      taps,
                                      n,
                                      ROWS,
                                      COLUMNS,
                                      5 * n,
                                      n,
                                      &to,
                                      found };
    memset(found, 0, sizeof found);
    ((pith__depthwise_bytes_fn *)c->fn)(&a);
    put_bytes(put_bytes(0, bytes, sizeof bytes), found, sizeof found);
}

/* Sums of 3 x 3 places, one and two places apart. */
static void run_depthwise(const call *c) {
    if (c->row->dtype == PITH_U8) {
        run_depthwise_bytes(c);
        return;
    }
    const int64_t rows = 1 + c->round % 7, columns = 1 + c->round * 37 % 200,
                  step = 1 + c->round % 2;
    pith__window w = {
        .rank = 2, .in = { rows, columns }, .kernel = { 3, 3 }, .dilation = { 1, 1 }
    };
    pith__depthwise a = { .x = y, .y = out, .weights = z, .bias = c->round / 2 % 2 ? z + 9 : NULL };
    for (int d = 0; d < 2; d++) {
        w.stride[d] = step;
        w.begin[d] = step == 1 ? 1 : c->round / (2 + d) % 2;
        w.out[d] = step == 1 ? w.in[d] : (w.in[d] + w.begin[d] + 1 + c->round % 3) / 2;
    }
    if (!pith__depthwise_fits(&a, &w)) abort();
    need_room(w.out[0] * w.out[1]);
    ((pith__depthwise_fn *)c->fn)(&a);
}

/* A window over some rows and columns, with as many results as it has places. */
static pith__window window_of(int64_t rows, int64_t columns, int round, int64_t most_step,
                              int64_t most_pad) {
    pith__window w = { .rank = 2, .in = { rows, columns } };
    for (int d = 0; d < 2; d++) {
        w.kernel[d] = 1 + round / (1 + 2 * d) % 5;
        w.stride[d] = 1 + round / (1 + d) % most_step;
        w.dilation[d] = 1;
        w.begin[d] = round * (3 + d) % most_pad, w.end[d] = round * (5 + d) % most_pad;
        const int64_t all = w.in[d] + w.begin[d] + w.end[d];
        if (w.kernel[d] > all) w.kernel[d] = all;
        w.out[d] = (all - w.kernel[d]) / w.stride[d] + 1;
    }
    return w;
}

static void run_taps_plane(const call *c) {
    const pith__window w = window_of(1 + c->round % 6, 1 + c->round * 29 % 150, c->round, 3, 3);
    need_room(pith__taps_floats(&w));
    ((pith__taps_plane_fn *)c->fn)(out, x, &w, c->round % 2 ? 0.5f : -2.0f);
}

/* Every fourth round has so much padding that windows lie in it alone. */
static void run_pool_rows(const call *c) {
    enum { CHANNELS = 2, MOST = 200 };
    static float counts[MOST];
    const int64_t columns = 1 + c->round * 31 % (c->round % 4 ? 90 : 30);
    const pith__window w = window_of(1 + c->round % 9, columns, c->round, 2, c->round % 4 ? 4 : 20);
    const bool padded = c->round / 2 % 2;
    pith__pool_planes a = {
        .window = &w, .x = x, .y = out, .channels = CHANNELS, .counts = counts, .padded = padded
    };
    need_room(CHANNELS * w.out[0] * w.out[1]);
    if (w.out[1] > MOST || !pith__pool_rows_fits(&w)) abort();
    for (int64_t j = 0; j < w.out[1]; j++) counts[j] = (float)pith__window_places(&w, 1, j, padded);
    ((pith__pool_rows_fn *)c->fn)(&a);
}

/* Few different numbers, so that many are equal, and sometimes any bits. */
static void run_arg_lanes(const call *c) {
    static float few[DIGEST_ROOM];
    static int64_t places[150];
    const int64_t columns = c->round % 3 ? 1 + c->round * 11 % 150 : 1;
    const int64_t n = columns == 1   ? 1 + c->round * 13
                      : c->round % 2 ? 1 + c->round % 9
                                     : 3 + c->round;
    const int64_t stride = columns == 1 ? 1 : columns + c->round % 4;
    for (size_t i = 0; i < COUNT(few); i++) few[i] = (float)(int)(y[i] / 3.0f);
    ((pith__arg_lanes_fn *)c->fn)(c->round % 5 ? few : x, places, n, stride, columns,
                                  c->round / 2 % 2);
    put_bytes(0, places, (size_t)columns * sizeof *places);
}

/* Whole numbers, or bytes. */
static void run_requantize(const call *c) {
    enum { WINDOWS = 30, MAPS = 21, GAP = 2 };
    static int32_t numbers[WINDOWS * (MAPS + GAP)], wide[WINDOWS * MAPS];
    static uint8_t bytes[WINDOWS * (MAPS + GAP)];
    for (size_t i = 0; i < COUNT(numbers); i++) numbers[i] = (int32_t)(y[i] * 2000.0f);
    memset(bytes, 0, sizeof bytes), memset(wide, 0, sizeof wide);
    pith__requantize a = {
        .add = numbers + 40, .row_sums = numbers + 80, .y = bytes, .wide = wide
    };
    a.zeros = c->round % 3 ? numbers + 120 : NULL;
    a.scale = c->round % 4 ? z : NULL;
    const int64_t windows = 1 + (c->round + 13) % WINDOWS, maps = 1 + (c->round + 7) % MAPS;
    a.plane = windows, a.step = maps + c->round % GAP;
    a.low = -100, a.high = 155, a.zero = 100;
    ((pith__requantize_fn *)c->fn)(&a, numbers, maps + c->round % 2, 0, windows, 0, maps);
    put_bytes(put_bytes(0, bytes, sizeof bytes), wide, sizeof wide);
}

/* Rows become columns: of bytes or of words. */
static void run_turn(const call *c) {
    static uint8_t to[4 * 37 * 25];
    const int64_t rows = 1 + c->round % 37, columns = 1 + c->round * 5 % 23,
                  wide = columns + c->round % 3;
    memset(to, 0, sizeof to);
    if (is(c, "turn_bytes")) {
        const uint8_t flip = c->round % 2 ? 0x80 : 0;
        ((pith__turn_bytes_fn *)c->fn)(to, wide, (const uint8_t *)(const void *)x, 40, rows,
                                       columns, flip);
    } else {
        ((pith__turn_fn *)c->fn)(to, wide, x, 40, rows, columns);
    }
    put_bytes(0, to, sizeof to);
}

static void run_grid(const call *c) {
    enum { PLACES = 9 * 96, ELEMENTS = 300 };
    static int32_t at[PLACES];
    const int64_t n = 1 + c->round * 7 % 96;
    for (int64_t i = 0; i < PLACES; i++) at[i] = (int32_t)(i * i * 31 % (ELEMENTS + 10)) - 10;
    ((pith__grid_fn *)c->fn)(&(pith__grid){ .x = x,
                                            .weights = y,
                                            .at = at,
                                            .y = out,
                                            .taps = c->round % 2 ? 4 : 9,
                                            .stride = (n + 15) / 16 * 16,
                                            .n = n,
                                            .channels = 5,
                                            .x_step = ELEMENTS,
                                            .y_step = n });
}

int run_windows(const call *c) {
    static const struct {
        const char *family;
        void (*run)(const call *c);
    } runs[] = { { "arg_max_lanes", run_arg_lanes },
                 { "arg_min_lanes", run_arg_lanes },
                 { "conv", run_conv },
                 { "depthwise", run_depthwise },
                 { "depthwise_vnni", run_depthwise_bytes },
                 { "grid", run_grid },
                 { "pool_rows_max", run_pool_rows },
                 { "pool_rows_mean", run_pool_rows },
                 { "requantize", run_requantize },
                 { "taps_plane", run_taps_plane },
                 { "turn", run_turn },
                 { "turn_bytes", run_turn } };
    for (size_t i = 0; i < COUNT(runs); i++) {
        if (!is(c, runs[i].family)) continue;
        runs[i].run(c);
        return 1;
    }
    return 0;
}
