/* processor_read.c - preprocessor_config.json, or image_processor of processor_config.json → the
 * steps.
 *
 * transformers 5 writes the second, and where both are there, takes it. Keys that a class does not
 * have are ignored if another class has them, since transformers ignores them. A key that no class
 * here has may come from a newer class or from code of the model: unless it is null or false, it is
 * refused. */
#include <string.h>

#include "base/error.h"
#include "base/formats/json.h"
#include "base/os/file.h"
#include "base/str.h"
#include "images/processor.h"
#include "images/resize.h"

#define CONFIG "preprocessor_config.json"
#define WHOLE_CONFIG "processor_config.json"
#define WHOLE_KEY "image_processor"

/* What the file says before the class is known; the class may be named after its settings. */
typedef struct processor_file {
    pith__json *j;
    pith_image_processor *p;
    pith_str type;
    bool size_given, crop_given, mean_given, std_given, pct_given, resample_given, factor_given;
    bool within, found; /* the steps are in an object of the file; whether it was there */
    bool size_number;   /* size is one number, in size.shortest */
    int do_resize, do_crop, do_rescale, do_normalize, do_flip, offset, top; /* -1: not said */
} processor_file;

static int processor_read_flag(pith__json *j) {
    return pith__json_null(j) ? 0 : pith__json_bool(j);
}

static int32_t processor_read_edge(pith__json *j) {
    int64_t n = pith__json_int(j);
    if (!j->failed && (n < 1 || n > PITH_RESIZE_MAX_EDGE))
        pith__json_fail(j, PITH_ERR_FORMAT, "%lld is not an edge of 1 to %d pixels", (long long)n,
                        PITH_RESIZE_MAX_EDGE);
    return (int32_t)n;
}

/* The edge of a size that has this name, or NULL. */
static int32_t *processor_edge(pith__processor_size *size, pith_str key) {
    if (pith__str_is(key, "height")) return &size->height;
    if (pith__str_is(key, "width")) return &size->width;
    if (pith__str_is(key, "shortest_edge")) return &size->shortest;
    return pith__str_is(key, "longest_edge") ? &size->longest : NULL;
}

/* One number, [height, width], or an object. True if it says anything. */
static bool processor_read_size(pith__processor_size *size, bool *number, pith__json *j) {
    pith_str key;
    *size = (pith__processor_size){ 0 };
    *number = false;
    if (pith__json_null(j)) return false;
    switch (pith__json_peek(j)) {
    case PITH_JSON_NUMBER:
        size->shortest = processor_read_edge(j);
        *number = true;
        return true;
    case PITH_JSON_ARRAY: {
        int count = 0;
        pith__json_array(j);
        for (; pith__json_next_item(j); count++)
            *(count == 0 ? &size->height : &size->width) = processor_read_edge(j);
        if (count != 2)
            pith__json_fail(j, PITH_ERR_FORMAT, "a size has two numbers, height and width, not %d",
                            count);
        return true;
    }
    default:
        pith__json_object(j);
        while (pith__json_next_key(j, &key)) {
            int32_t *edge = processor_edge(size, key);
            if (pith__json_null(j)) continue;
            if (!edge)
                pith__json_fail(j, PITH_ERR_UNSUPPORTED,
                                "a size has height, width, shortest_edge and longest_edge only");
            else
                *edge = processor_read_edge(j);
        }
        return true;
    }
}

/* One number or one per channel. */
static bool processor_read_channels(float channels[3], pith__json *j) {
    if (pith__json_null(j)) return false;
    if (pith__json_peek(j) == PITH_JSON_NUMBER) {
        channels[0] = channels[1] = channels[2] = (float)pith__json_double(j);
        return true;
    }
    int count = 0;
    pith__json_array(j);
    for (; pith__json_next_item(j); count++) {
        float value = (float)pith__json_double(j);
        if (count < 3) channels[count] = value;
    }
    if (count != 3)
        pith__json_fail(j, PITH_ERR_UNSUPPORTED, "%d values; one or three, for RGB, are supported",
                        count);
    return true;
}

static bool processor_read_number(double *number, pith__json *j) {
    if (pith__json_null(j)) return false;
    *number = pith__json_double(j);
    return true;
}

static void processor_read_resample(processor_file *f) {
    if (pith__json_null(f->j)) return;
    int64_t code = pith__json_int(f->j);
    if (!f->j->failed && (code < 0 || code > PITH_RESAMPLE_MOST))
        pith__json_fail(f->j, PITH_ERR_UNSUPPORTED, "resample %lld is not one of Pillow's 0 to %d",
                        (long long)code, PITH_RESAMPLE_MOST);
    f->p->resample = (int)code;
    f->resample_given = true;
}

/* Those that say nothing of the result, or what is done in any case. */
static bool processor_key_is_ignored(pith_str key) {
    static const char *const ignored[] = { "processor_class",   "_valid_processor_keys",
                                           "do_convert_rgb",    "do_reduce_labels",
                                           "default_to_square", "return_tensors",
                                           "input_data_format", "device",
                                           "disable_grouping" };
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        if (pith__str_is(key, ignored[i])) return true;
    return false;
}

static void processor_read_other(processor_file *f, pith_str key) {
    pith__json *j = f->j;
    if (processor_key_is_ignored(key)) {
        pith__json_skip(j);
    } else if (pith__str_is(key, "data_format")) {
        if (!pith__json_null(j) && !pith__str_is(pith__json_string(j), "channels_first"))
            pith__json_fail(j, PITH_ERR_UNSUPPORTED, "only channels_first is supported");
    } else if (!pith__json_null(j) &&
               (pith__json_peek(j) != PITH_JSON_BOOL || pith__json_bool(j))) {
        pith__json_fail(
            j, PITH_ERR_UNSUPPORTED,
            "the key is not known, and may change the result; remove it if it does not matter");
    }
}

/* The setting of this name that is true or false, or NULL. */
static int *processor_flag(processor_file *f, pith_str key) {
    if (pith__str_is(key, "do_resize")) return &f->do_resize;
    if (pith__str_is(key, "do_center_crop")) return &f->do_crop;
    if (pith__str_is(key, "do_rescale")) return &f->do_rescale;
    if (pith__str_is(key, "do_normalize")) return &f->do_normalize;
    if (pith__str_is(key, "do_flip_channel_order")) return &f->do_flip;
    if (pith__str_is(key, "rescale_offset")) return &f->offset;
    return pith__str_is(key, "include_top") ? &f->top : NULL;
}

static void processor_read_key(processor_file *f, pith_str key) {
    pith__json *j = f->j;
    pith_image_processor *p = f->p;
    bool number;
    int *flag = processor_flag(f, key);
    if (flag) {
        *flag = processor_read_flag(j);
    } else if (pith__str_is(key, "size")) {
        f->size_given = processor_read_size(&p->size, &f->size_number, j);
    } else if (pith__str_is(key, "crop_size")) {
        f->crop_given = processor_read_size(&p->crop_size, &number, j);
        if (number) p->crop_size.width = p->crop_size.height = p->crop_size.shortest;
    } else if (pith__str_is(key, "resample")) {
        processor_read_resample(f);
    } else if (pith__str_is(key, "rescale_factor")) {
        f->factor_given = processor_read_number(&p->rescale_factor, j);
    } else if (pith__str_is(key, "crop_pct")) {
        f->pct_given = processor_read_number(&p->crop_pct, j);
    } else if (pith__str_is(key, "image_mean")) {
        f->mean_given = processor_read_channels(p->mean, j);
    } else if (pith__str_is(key, "image_std")) {
        f->std_given = processor_read_channels(p->std, j);
    } else if (pith__str_is(key, "image_processor_type")) {
        f->type = pith__json_string(j);
    } else if (pith__str_is(key, "feature_extractor_type")) {
        pith_str type = pith__json_string(j);
        if (!f->type.size) f->type = type;
    } else {
        processor_read_other(f, key);
    }
}

/* The class by model_type of config.json next to the file. */
static pith_status processor_class_by_model(const pith__processor_class **kind, const char *path,
                                            pith__arena *arena, pith_error *err) {
    pith_str config, model_type = { NULL, 0 }, key,
                     folder = pith__path_parent(arena, pith__str_of(path));
    bool there;
    if (!folder.data) return pith__fail_memory(err, 1);
    PITH_TRY(pith__file_find(&there, &config, arena, folder.data, "config.json", err));
    if (!there)
        return pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "%s: names no image_processor_type, and there is no config.json next to it", path);
    pith__file file;
    PITH_TRY(pith__file_open(&file, config.data, false, NULL, err));
    pith__json j;
    pith__json_init(&j, (pith_str){ (const char *)file.data, file.size }, config.data, arena, err);
    j.python = true;
    pith__json_object(&j);
    while (pith__json_next_key(&j, &key)) {
        if (pith__str_is(key, "model_type"))
            model_type = pith__json_string(&j);
        else
            pith__json_skip(&j);
    }
    pith_status status = j.failed ? err->code : PITH_OK;
    if (!status && !(*kind = pith__processor_class_of_model(model_type)))
        status = pith__fail(
            err, PITH_ERR_UNSUPPORTED,
            "%s: names no image_processor_type, and none is known for the model_type '" PITH_STR_FMT
            "' of config.json",
            path, PITH_STR_ARG(model_type));
    pith__file_close(&file);
    return status;
}

/* What the file does not say, as the class has it. */
static void processor_fill_defaults(processor_file *f) {
    pith_image_processor *p = f->p;
    const pith__processor_class *kind = p->kind;
    if (!f->size_given) p->size = kind->size;
    if (!f->crop_given) p->crop_size = (pith__processor_size){ kind->crop, kind->crop, 0, 0 };
    if (!f->resample_given) p->resample = kind->resample;
    if (!f->factor_given) p->rescale_factor = 1.0 / 255;
    if (!f->pct_given) p->crop_pct = 224.0 / 256;
    for (int c = 0; c < 3; c++) {
        if (!f->mean_given) p->mean[c] = kind->channel_mean[c];
        if (!f->std_given) p->std[c] = kind->channel_std[c];
    }
    p->do_resize = f->do_resize != 0;
    p->do_rescale = f->do_rescale != 0;
    p->do_crop = kind->crop && (f->do_crop < 0 ? kind->do_crop : f->do_crop);
    p->do_normalize = kind->normalizes && f->do_normalize != 0;
    p->do_flip = kind->flips && f->do_flip != 0;
    p->rescale_offset = kind->offsets && f->offset > 0;
    p->include_top = kind->offsets && f->top != 0;
}

/* Whether the sizes are of the form the class wants. */
static pith_status processor_check_sizes(const pith_image_processor *p, const char *path,
                                         pith_error *err) {
    const pith__processor_size *size = &p->size;
    const pith__size_rule rule = p->kind->rule;
    bool both = size->height && size->width, edge = size->shortest != 0;
    bool fits = edge != both;
    const char *needs = "shortest_edge, or height and width";
    if (rule == PITH_SIZE_CONVNEXT) {
        fits = edge && !both;
        needs = "shortest_edge";
    } else if (rule == PITH_SIZE_EXACT || rule == PITH_SIZE_BOTH) {
        fits = both && !edge && !size->longest;
        needs = "height and width";
    }
    if (p->do_resize && !fits)
        return pith__fail(err, PITH_ERR_FORMAT, "%s: size: %sImageProcessor needs %s", path,
                          p->kind->name, needs);
    if (p->do_crop && !(p->crop_size.height && p->crop_size.width))
        return pith__fail(err, PITH_ERR_FORMAT, "%s: crop_size: height and width are needed", path);
    if (!(p->crop_pct > 0))
        return pith__fail(err, PITH_ERR_FORMAT, "%s: crop_pct: must be above 0", path);
    return PITH_OK;
}

/* The arithmetic of NumPy on one byte. */
static float processor_value(const pith_image_processor *p, int byte, float mean, float std) {
    float value = p->do_rescale ? (float)(byte * p->rescale_factor) : (float)byte;
    if (p->do_rescale && p->rescale_offset) value -= 1.0f;
    if (p->do_normalize) value = (value - mean) / std;
    if (p->include_top) value /= std;
    return value;
}

pith_status pith__processor_complete(pith_image_processor *p, const char *path, pith_error *err) {
    PITH_TRY(processor_check_sizes(p, path, err));
    for (int c = 0; c < 3; c++)
        for (int byte = 0; byte < 256; byte++)
            p->values[c][byte] = processor_value(p, byte, p->mean[c], p->std[c]);
    return PITH_OK;
}

static void processor_parse(processor_file *f, pith_str text, const char *path, pith__arena *arena,
                            pith_error *err) {
    pith_str key;
    pith__json_init(f->j, text, path, arena, err);
    f->j->python = true;
    pith__json_object(f->j);
    while (pith__json_next_key(f->j, &key)) {
        if (!f->within) {
            processor_read_key(f, key);
        } else if (!pith__str_is(key, WHOLE_KEY) || pith__json_peek(f->j) != PITH_JSON_OBJECT) {
            pith__json_skip(f->j);
        } else {
            f->found = true;
            pith__json_object(f->j);
            while (pith__json_next_key(f->j, &key)) processor_read_key(f, key);
        }
    }
    pith__json_finish(f->j);
}

/* *found: NULL for a file that has the steps themselves; else whether there is the object that has
 * them. */
static pith_status processor_read_text(pith_image_processor *p, bool *found, pith_str text,
                                       const char *path, pith__arena *arena, pith_error *err) {
    pith__json j;
    processor_file f = { .j = &j,
                         .p = p,
                         .within = found != NULL,
                         .do_resize = -1,
                         .do_crop = -1,
                         .do_rescale = -1,
                         .do_normalize = -1,
                         .do_flip = -1,
                         .offset = -1,
                         .top = -1 };
    processor_parse(&f, text, path, arena, err);
    if (j.failed) return err->code;
    if (found) *found = f.found;
    if (found && !f.found) return PITH_OK;
    if (!f.type.size) {
        PITH_TRY(processor_class_by_model(&p->kind, path, arena, err));
    } else if (!(p->kind = pith__processor_class_find(f.type))) {
        return pith__fail(err, PITH_ERR_UNSUPPORTED,
                          "%s: image_processor_type: '" PITH_STR_FMT "' is not supported", path,
                          PITH_STR_ARG(f.type));
    }
    processor_fill_defaults(&f);
    if (f.size_number && p->kind->rule == PITH_SIZE_EXACT)
        p->size = (pith__processor_size){ p->size.shortest, p->size.shortest, 0, 0 };
    return pith__processor_complete(p, path, err);
}

static pith_status processor_read_file(pith_image_processor *p, bool *found, const char *path,
                                       pith__arena *arena, pith_error *err) {
    pith__file file;
    PITH_TRY(pith__file_open(&file, path, false, NULL, err));
    pith_status status = processor_read_text(
        p, found, (pith_str){ (const char *)file.data, file.size }, path, arena, err);
    pith__file_close(&file);
    return status;
}

static bool processor_is_whole(const char *path) {
    const char *slash = strrchr(path, '/');
    return !strcmp(slash ? slash + 1 : path, WHOLE_CONFIG);
}

pith_status pith__processor_read(pith_image_processor *p, const char *path, pith__arena *arena,
                                 pith_error *err) {
    pith_error own = PITH_ERROR_INIT;
    if (!err) err = &own; /* the JSON scanner keeps its failure there */
    pith_str name = pith__str_of(path);
    bool found = false;
    const bool folder = pith__dir_exists(path);
    if (folder) PITH_TRY(pith__path_join(&name, arena, path, PITH_STR(WHOLE_CONFIG), err));
    if (processor_is_whole(name.data) && (!folder || pith__file_exists(name.data))) {
        PITH_TRY(processor_read_file(p, &found, name.data, arena, err));
        if (found) return PITH_OK;
        if (!folder)
            return pith__fail(err, PITH_ERR_FORMAT, "%s: it has no object " WHOLE_KEY, path);
    }
    if (folder) PITH_TRY(pith__path_join(&name, arena, path, PITH_STR(CONFIG), err));
    return processor_read_file(p, NULL, name.data, arena, err);
}

pith_status pith__processor_open(pith_image_processor **processor, const char *path,
                                 const pith_allocator *allocator, pith_error *err) {
    if (!allocator) allocator = &pith__allocator_default;
    pith_image_processor *p = pith__memory_alloc(allocator, sizeof *p, 64);
    if (!p) return pith__fail_memory(err, sizeof *p);
    *p = (pith_image_processor){ .allocator = allocator };
    pith__arena arena;
    pith__arena_init(&arena, allocator);
    pith_status status = pith__processor_read(p, path, &arena, err);
    pith__arena_free(&arena);
    if (status)
        pith__memory_free(allocator, p);
    else
        *processor = p;
    return status;
}

void pith__processor_close(pith_image_processor *processor) {
    if (processor) pith__memory_free(processor->allocator, processor);
}
