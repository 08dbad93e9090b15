/* baseline_file.c - what a baseline has learned as bytes: a header, then the answer without
 * anything else, then by kind nothing, the group of labels with its weight, or bins and trees, and
 * a checksum of all that. Categories are written as their texts, since another database numbers
 * them otherwise. */
#include <math.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/memory/span_map.h"
#include "base/str.h"
#include "base/writer.h"
#include "tables/baseline/baseline.h"

#define BASELINE_MAGIC "PITHBAS"
enum { BASELINE_VERSION = 1 };

typedef struct baseline_header {
    char magic[8];
    uint32_t version, order;
    uint64_t database; /* checksum */
    uint32_t kind, loss, outputs, features;
    uint32_t rounds, depth;
    uint64_t entity; /* PITH_BASELINE_ENTITY: the group; UINT64_MAX: none */
    double middle, spread, weight;
} baseline_header;

/* A node of a tree. */
typedef struct baseline_node {
    int64_t feature;
    uint64_t left[4];
    double value;
} baseline_node;

static int baseline_nodes(int depth) { return (1 << (depth + 1)) - 1; }

/* ---- writing ---- */

typedef struct baseline_out {
    pith__out out;
    pith__hash hash;
} baseline_out;

static void baseline_put(baseline_out *o, const void *data, size_t size) {
    pith__hash_add(&o->hash, data, size);
    pith__out_put(&o->out, data, size);
}

static void baseline_put_bins(baseline_out *o, const pith__baseline *b,
                              const pith__feature_bins *bins) {
    const uint32_t about[2] = { bins->category, (uint32_t)bins->count };
    baseline_put(o, about, sizeof about);
    for (int i = 0; i + 1 < bins->count; i++) {
        if (!bins->category) {
            baseline_put(o, &bins->cuts[i], sizeof bins->cuts[i]);
            continue;
        }
        const uint64_t begin = b->rdb->string_begin[(uint32_t)bins->cuts[i]],
                       bytes = b->rdb->string_begin[(uint32_t)bins->cuts[i] + 1] - begin;
        baseline_put(o, &bytes, sizeof bytes);
        baseline_put(o, b->rdb->string_bytes + begin, (size_t)bytes);
    }
}

static void baseline_put_trees(baseline_out *o, const pith__baseline *b) {
    const size_t trees = (size_t)b->forest.rounds * (size_t)b->forest.outputs;
    for (int f = 0; f < b->features.count; f++) baseline_put_bins(o, b, &b->bins[f]);
    for (size_t t = 0; t < trees; t++)
        for (int i = 0; i < baseline_nodes(b->forest.depth); i++) {
            const pith__tree_node *n = &b->forest.trees[t][i];
            baseline_node node = { .feature = n->feature, .value = n->value };
            memcpy(node.left, n->left, sizeof node.left);
            baseline_put(o, &node, sizeof node);
        }
}

/* The header is zeroed as a whole first, so that padding bytes are the same in every file. The
 * checksum covers all that was written before it. */
pith_status pith__baseline_save(const pith__baseline *b, const pith_writer *writer,
                                pith__stop *stop, pith_error *err) {
    const bool trees = b->kind > PITH_BASELINE_ENTITY;
    baseline_out o = { .out = { .writer = writer, .stop = stop } };
    baseline_header h;
    PITH_TRY(pith__writer_check(writer, err));
    memset(&h, 0, sizeof h);
    memcpy(h.magic, BASELINE_MAGIC, sizeof h.magic);
    h.version = BASELINE_VERSION;
    h.order = 0x01020304;
    h.database = b->rdb->checksum;
    h.kind = b->kind;
    h.loss = b->loss;
    h.outputs = (uint32_t)b->target->outputs;
    h.features = trees ? (uint32_t)b->features.count : 0;
    h.rounds = trees ? (uint32_t)b->forest.rounds : 0;
    h.depth = trees ? (uint32_t)b->forest.depth : 0;
    h.entity = b->kind == PITH_BASELINE_ENTITY && b->features.group_count ? b->entity : UINT64_MAX;
    h.middle = b->middle;
    h.spread = b->spread;
    h.weight = b->weight;
    pith__hash_init(&o.hash);
    baseline_put(&o, &h, sizeof h);
    baseline_put(&o, b->start, h.outputs * sizeof *b->start);
    if (trees) baseline_put_trees(&o, b);
    const uint64_t hash = pith__hash_end(&o.hash);
    baseline_put(&o, &hash, sizeof hash);
    return pith__out_status(&o.out, "the baseline", err);
}

/* ---- reading ---- */

typedef struct baseline_in {
    const uint8_t *at;
    size_t left;
    bool failed;
} baseline_in;

/* Copies the next bytes; zeros and `failed` if there are not so many. */
static void baseline_get(baseline_in *in, void *data, size_t size) {
    in->failed |= in->left < size;
    if (in->failed) {
        memset(data, 0, size);
        return;
    }
    memcpy(data, in->at, size);
    in->at += size;
    in->left -= size;
}

/* The number of the next text in this database, -1 for one that it does not have. */
static double baseline_get_category(baseline_in *in, const pith__map *strings) {
    uint64_t bytes;
    baseline_get(in, &bytes, sizeof bytes);
    in->failed |= in->left < bytes;
    if (in->failed) return -1;
    const uint32_t number =
        pith__map_get(strings, (pith_str){ (const char *)in->at, (size_t)bytes });
    in->at += bytes;
    in->left -= (size_t)bytes;
    return number == UINT32_MAX ? -1.0 : (double)number;
}

static void baseline_get_bins(baseline_in *in, pith__feature_bins *bins, bool category,
                              const pith__map *strings) {
    uint32_t about[2];
    baseline_get(in, about, sizeof about);
    in->failed |= about[0] != category || about[1] < 1 || about[1] >= PITH_BINS;
    if (in->failed) return;
    bins->category = category;
    bins->count = (int)about[1];
    for (int i = 0; i + 1 < bins->count; i++) {
        if (category)
            bins->cuts[i] = baseline_get_category(in, strings);
        else
            baseline_get(in, &bins->cuts[i], sizeof bins->cuts[i]);
    }
}

/* Nodes that no row reaches may hold anything; those of the last level have no children, whatever
 * they say. */
static void baseline_get_tree(baseline_in *in, pith__tree_node *tree, int depth, int features) {
    const int all = baseline_nodes(depth);
    for (int i = 0; i < all; i++) {
        baseline_node node;
        baseline_get(in, &node, sizeof node);
        in->failed |=
            node.feature < -1 || (features && node.feature >= features) || !isfinite(node.value);
        tree[i].feature = features && 2 * i + 2 < all ? (int32_t)node.feature : -1;
        tree[i].value = node.value;
        memcpy(tree[i].left, node.left, sizeof node.left);
    }
}

static pith_status baseline_get_strings(pith__map *map, pith__baseline *b, pith_error *err) {
    PITH_TRY(pith__map_init(map, &b->arena, b->rdb->string_count));
    for (uint32_t i = 0; i < b->rdb->string_count; i++) {
        PITH_TRY_ROW(b->work->stop, i, err);
        const uint64_t begin = b->rdb->string_begin[i];
        const pith_str text = { b->rdb->string_bytes + begin,
                                (size_t)(b->rdb->string_begin[i + 1] - begin) };
        if (!pith__map_put(map, text, i, NULL)) return pith__fail_memory(err, text.size);
    }
    return PITH_OK;
}

/* Counts of the file must be those that the database gives, and the number of rounds is bounded by
 * the bytes that are left, before anything is allocated by it. */
static pith_status baseline_get_trees(pith__baseline *b, baseline_in *in, const baseline_header *h,
                                      pith_error *err) {
    const size_t trees = (size_t)h->rounds * h->outputs;
    pith__map strings;
    PITH_TRY(pith__baseline_trees_begin(b, err));
    PITH_TRY(baseline_get_strings(&strings, b, err));
    in->failed |= (uint32_t)b->features.count != h->features || h->depth > PITH_TREE_DEPTH ||
                  h->rounds > in->left / sizeof(baseline_node);
    for (int f = 0; f < b->features.count; f++) {
        if (in->failed) break;
        baseline_get_bins(in, &b->bins[f], b->category[f], &strings);
    }
    if (in->failed) return PITH_OK;
    b->forest = (pith__forest){ .rounds = (int)h->rounds,
                                .outputs = (int)h->outputs,
                                .depth = (int)h->depth };
    b->forest.trees = pith__arena_array(&b->arena, trees + 1, sizeof *b->forest.trees);
    if (!b->forest.trees) return pith__fail_memory(err, trees * sizeof *b->forest.trees);
    for (size_t t = 0; t < trees; t++) {
        if (in->failed) break;
        baseline_get_tree(in, b->forest.trees[t], b->forest.depth, b->features.count);
    }
    return PITH_OK;
}

static pith_status baseline_get_entity(pith__baseline *b, baseline_in *in, const baseline_header *h,
                                       pith_error *err) {
    pith__feature_list list;
    if (h->entity == UINT64_MAX) return PITH_OK;
    PITH_TRY(pith__features_list(&list, b->target, PITH_FEATURE_AGGREGATES, &b->arena, err));
    in->failed |= h->entity >= list.group_count || list.group_count - h->entity < h->outputs ||
                  !(h->weight > 0);
    for (uint32_t k = 0; k < h->outputs && !in->failed; k++)
        in->failed |=
            !list.groups[h->entity + k].target || list.groups[h->entity + k].label != (int)k;
    return in->failed ? PITH_OK
                      : pith__baseline_entity_take(b, &list, (size_t)h->entity, h->weight, err);
}

static pith_status baseline_header_check(const baseline_header *h, const void *bytes, size_t size,
                                         pith_error *err) {
    uint64_t hash;
    if (size < sizeof *h + sizeof hash || memcmp(h->magic, BASELINE_MAGIC, sizeof h->magic) != 0)
        return pith__fail(err, PITH_ERR_FORMAT, "this is no baseline that pith train has saved");
    if (h->version != BASELINE_VERSION || h->order != 0x01020304 || h->kind >= PITH_BASELINE_COUNT)
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "the baseline was written by another version; train it again");
    memcpy(&hash, (const uint8_t *)bytes + size - sizeof hash, sizeof hash);
    if (hash != pith__hash_of(bytes, size - sizeof hash))
        return pith__fail(err, PITH_ERR_FORMAT, "the baseline is damaged: its checksum is wrong");
    return PITH_OK;
}

/* A baseline fits only the database it was trained on, or one that follows it (rdb_keep.h), which
 * the checksum tells. */
pith_status pith__baseline_load(pith__baseline *b, const pith__rdb *rdb, const pith__rdb_task *task,
                                const void *bytes, size_t size, const pith__work *work,
                                const pith_allocator *allocator, pith_error *err) {
    baseline_in in = { bytes, size, false };
    baseline_header h;
    baseline_get(&in, &h, sizeof h);
    *b = (pith__baseline){ .rdb = rdb, .work = work };
    pith__arena_init(&b->arena, allocator);
    PITH_TRY(baseline_header_check(&h, bytes, size, err));
    PITH_TRY(pith__baseline_begin(b, rdb, task, (pith__baseline_kind)h.kind, work, allocator, err));
    if ((h.database != rdb->checksum && !rdb->followed) || h.loss != (uint32_t)b->loss ||
        h.outputs != (uint32_t)b->target->outputs)
        return pith__fail(err, PITH_ERR_ARGUMENT,
                          "the baseline was trained on another database, or on this one before it "
                          "was made again");
    in.left -= sizeof(uint64_t);
    b->middle = h.middle;
    b->spread = h.spread;
    baseline_get(&in, b->start, h.outputs * sizeof *b->start);
    pith_status status = PITH_OK;
    if (b->kind > PITH_BASELINE_ENTITY) status = baseline_get_trees(b, &in, &h, err);
    if (b->kind == PITH_BASELINE_ENTITY) status = baseline_get_entity(b, &in, &h, err);
    if (!status && (in.failed || in.left))
        return pith__fail(err, PITH_ERR_FORMAT,
                          "the baseline is damaged: its parts do not fit together");
    return status;
}
