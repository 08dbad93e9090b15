/* cmd_crop.c - pith crop: every face as a picture of its own.
 *
 * Pictures are read, looked at and cropped a few at a time on several threads; the crops are then written in order. A
 * picture that cannot be read gets a message; the others go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/crop_picture.h"
#include "cli/csv_out.h"
#include "cli/number.h"
#include "cli/output.h"
#include "cli/parallel.h"
#include "cli/picture_files.h"
#include "cli/picture_out.h"
#include "cli/runtime_choice.h"

enum { PICTURES_PER_THREAD = 2, PICTURES_MOST = 64 };

/* Sizes that people ask for by name; face is the face's height as a percentage. */
static const struct {
    const char *name;
    int32_t width, height;
    double face;
    int position;
} presets[] = {
    { "square", 512, 512, 60, CROP_CENTRE },    { "avatar", 256, 256, 70, CROP_CENTRE },
    { "passport", 413, 531, 70, CROP_CENTRE },  { "id", 300, 400, 65, CROP_CENTRE },
    { "portrait", 600, 800, 45, CROP_THIRDS },  { "headshot", 800, 1000, 50, CROP_THIRDS },
    { "landscape", 800, 600, 45, CROP_THIRDS },
};
enum { FORMAT_SAME, FORMAT_JPEG, FORMAT_PNG, FORMAT_WEBP };
static const char *const formats[] = { NULL, "jpeg", "png", "webp" };
static const char *const endings[] = { NULL, ".jpg", ".png", ".webp" };

typedef struct crop_settings {
    const char *model, *dir, *size, *detect_size, *fill, *naming, *list;
    int preset, position, format;
    int32_t quality, most, right, down;
    double threshold, overlap, face, sharpness;
    bool level, resume;
    size_t max_pixels;
    crop_rule rule;
    pith_open_options open;
    pith_detect_options detect;
    runtime_choice runtime;
} crop_settings;

typedef struct cropped {
    pith_image image;
    double sharpness;
    char *problem;
} cropped;

typedef struct picture {
    const char *path;
    pith_faces faces;
    cropped *crops; /* [count], of the best faces */
    size_t count;
    char *problem; /* why there are no faces; NULL: there are */
} picture;

typedef struct crop_job {
    const command *c;
    const crop_settings *s;
    const string_list *paths;
    pith_model *model;
    string_list found;
    picture *pictures;
    size_t count, failed, written, blurred;
    output list;
} crop_job;

/* ---- names ---- */

static void put_piece(bytes *out, const char *text, size_t size) { bytes_add(out, text, size); }

/* {stem}, {n} and {ext} of the rule for names, for face n (from 1) of a picture; in its subfolder. From malloc. */
static char *crop_name(const crop_job *j, const picture *p, size_t n) {
    bytes out = { NULL, 0, 0 };
    char *whole = picture_out_name(j->paths, p->path), *slash = strrchr(whole, '/');
    const char *last = slash ? slash + 1 : whole, *dot = strrchr(last, '.');
    const size_t stem = dot && dot > last ? (size_t)(dot - last) : strlen(last);
    const char *ending = j->s->format ? endings[j->s->format] : picture_out_format(last) ? dot : ".png";
    if (slash) put_piece(&out, whole, (size_t)(slash - whole) + 1);
    for (const char *at = j->s->naming; *at;) {
        if (!strncmp(at, "{stem}", 6))
            put_piece(&out, last, stem), at += 6;
        else if (!strncmp(at, "{n}", 3))
            bytes_print(&out, "%zu", n), at += 3;
        else if (!strncmp(at, "{ext}", 5))
            put_piece(&out, ending, strlen(ending)), at += 5;
        else
            put_piece(&out, at++, 1);
    }
    bytes_add(&out, "", 1);
    free(whole);
    return out.data;
}

static bool is_there(const crop_job *j, const char *name) {
    bytes path = { NULL, 0, 0 };
    bytes_print(&path, "%s/%s", j->s->dir, name);
    bytes_add(&path, "", 1);
    bool there = !access(path.data, F_OK);
    free(path.data);
    return there;
}

/* ---- one picture ---- */

static void make_crops(crop_job *j, picture *p, const pith_image *image) {
    p->count = p->faces.count;
    if (j->s->most && p->count > (size_t)j->s->most) p->count = (size_t)j->s->most;
    p->crops = grow(NULL, p->count * sizeof *p->crops);
    for (size_t i = 0; i < p->count; i++) {
        pith_error err = PITH_ERROR_INIT;
        cropped *crop = &p->crops[i];
        *crop = (cropped){ .problem = NULL };
        crop_place place = crop_place_of(&p->faces.faces[i], &j->s->rule);
        if (crop_picture(&crop->image, image, &place, &j->s->rule, &err))
            crop->problem = strdup(err.message);
        else
            crop->sharpness = crop_sharpness(&crop->image);
    }
}

static void crop_one(void *context, size_t index) {
    crop_job *j = context;
    picture *p = &j->pictures[index];
    pith_error err = PITH_ERROR_INIT;
    pith_image image = { 0 };
    pith_image_options read = PITH_IMAGE_OPTIONS_INIT;
    pith_detect_options detect = j->s->detect;
    detect.threads = 1;
    read.channels = 3;
    read.max_pixels = j->s->max_pixels;
    if (pith_image_read(&image, p->path, &read, &err)) {
        p->problem = strdup(err.message);
        return;
    }
    if (pith_detect(&p->faces, j->model, &image, 1, &detect, &err)) {
        const char *said = strncmp(err.message, "picture 0: ", 11) ? err.message : err.message + 11;
        p->problem = grow(NULL, strlen(p->path) + strlen(said) + 3);
        sprintf(p->problem, "%s: %s", p->path, said);
    } else {
        make_crops(j, p, &image);
    }
    pith_image_free(&image);
}

/* ---- writing ---- */

static void list_crop(crop_job *j, const picture *p, size_t i, const char *name) {
    bytes row = { NULL, 0, 0 };
    char number[NUMBER_CHARS];
    const pith_face *f = &p->faces.faces[i];
    if (!j->s->list) return;
    csv_put(&row, p->path);
    bytes_add(&row, ",", 1);
    csv_put(&row, name);
    for (int k = 0; k < 4; k++) {
        bytes_add(&row, ",", 1);
        bytes_add(&row, number, number_print(number, f->box[k]));
    }
    bytes_add(&row, ",", 1);
    bytes_add(&row, number, number_print(number, f->score));
    bytes_print(&row, ",%.1f\n", p->crops[i].sharpness);
    output_write(&j->list, row.data, row.size);
    free(row.data);
}

static void write_crop(crop_job *j, picture *p, size_t i) {
    cropped *crop = &p->crops[i];
    char *name = crop_name(j, p, i + 1);
    pith_image_encode_options options = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    options.format = j->s->format ? formats[j->s->format] : picture_out_format(name) ? picture_out_format(name) : "png";
    options.quality = j->s->quality;
    if (crop->problem) {
        fprintf(stderr, "pith crop: %s: face %zu: %s\n", p->path, i + 1, crop->problem);
        j->failed++;
    } else if (crop->sharpness < j->s->sharpness) {
        j->blurred++;
    } else if (!(j->s->resume && is_there(j, name)) &&
               picture_out_write(j->c, &crop->image, j->s->dir, name, &options, &j->found)) {
        j->failed++;
    } else {
        j->written++;
        list_crop(j, p, i, name);
    }
    free(name);
}

static void finish_picture(crop_job *j, picture *p) {
    if (p->problem) {
        fprintf(stderr, "pith crop: %s\n", p->problem);
        j->failed++;
    }
    for (size_t i = 0; i < p->count; i++) {
        write_crop(j, p, i);
        pith_image_free(&p->crops[i].image);
        free(p->crops[i].problem);
    }
    free(p->crops);
    pith_faces_free(&p->faces);
    free(p->problem);
}

static int crop_batches(crop_job *j) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    size_t room = (size_t)(j->s->detect.threads ? j->s->detect.threads : cpu.threads) * PICTURES_PER_THREAD;
    if (room > PICTURES_MOST) room = PICTURES_MOST;
    j->pictures = grow(NULL, room * sizeof *j->pictures);
    for (size_t next = 0; next < j->found.count;) {
        for (j->count = 0; j->count < room && next < j->found.count; j->count++)
            j->pictures[j->count] = (picture){ .path = j->found.items[next++] };
        parallel_run(crop_one, j, j->count, j->s->detect.threads);
        for (size_t i = 0; i < j->count; i++) finish_picture(j, &j->pictures[i]);
    }
    free(j->pictures);
    fprintf(stderr, "%zu crops of %zu pictures", j->written, j->found.count);
    if (j->blurred) fprintf(stderr, ", %zu left out as not sharp", j->blurred);
    fputs("\n", stderr);
    return j->failed ? EXIT_FAILED : EXIT_DONE;
}

static int crop_files(crop_job *j) {
    static const char header[] = "file,crop,x,y,w,h,score,sharpness\n";
    int code = picture_files_find(&j->found, j->c, j->paths);
    if (!code && j->s->list) code = output_open(&j->list, j->c, j->s->list, &j->found);
    if (!code) {
        if (j->s->list) output_write(&j->list, header, sizeof header - 1);
        code = crop_batches(j);
        if (j->s->list) code = output_close(&j->list, j->c, true, code);
    }
    picture_files_free(&j->found);
    return code;
}

/* ---- the command ---- */

static bool read_size(const char *text, int32_t *width, int32_t *height) {
    char end;
    int w, h;
    int got = sscanf(text, "%dx%d%c", &w, &h, &end);
    if (got != 2 && sscanf(text, "%d%c", &w, &end) == 1) h = w, got = 2;
    if (got != 2 || w < 1 || h < 1 || w > 10000 || h > 10000) return false;
    *width = w;
    *height = h;
    return true;
}

static bool read_colour(uint8_t colour[3], const char *text) {
    unsigned r, g, b;
    char end;
    if (strlen(text) != 7 || sscanf(text, "#%2x%2x%2x%c", &r, &g, &b, &end) != 3) return false;
    colour[0] = (uint8_t)r;
    colour[1] = (uint8_t)g;
    colour[2] = (uint8_t)b;
    return true;
}

/* The preset first; what is given by itself goes over it. */
static void make_rule(crop_settings *s) {
    const int k = s->preset ? s->preset - 1 : 0;
    s->rule.width = presets[k].width;
    s->rule.height = presets[k].height;
    s->rule.face = s->face > 0 ? s->face : presets[k].face;
    s->rule.position = s->position ? s->position - 1 : presets[k].position;
    s->rule.right = s->right;
    s->rule.down = s->down;
    s->rule.level = s->level;
    s->detect.score_threshold = (float)s->threshold;
    s->detect.nms_threshold = (float)s->overlap;
}

static int crop_check(const command *c, crop_settings *s, const string_list *paths) {
    if (!s->model) return usage(c, "give a model with -m, such as face_detection_yunet_2023mar.onnx");
    if (!s->dir) return usage(c, "give a folder for the crops with -o");
    if (!paths->count) return usage(c, "give it pictures, or a folder of them");
    if (s->threshold > 1 || s->overlap > 1) return usage(c, "thresholds are from 0 to 1");
    make_rule(s);
    if (s->rule.face > 1000) return usage(c, "--face-height is a percentage, of at most 1000");
    if (s->size && !read_size(s->size, &s->rule.width, &s->rule.height))
        return usage(c, "--size takes WIDTHxHEIGHT, such as 512x512, of at most 10000, not '%s'", s->size);
    if (s->detect_size && !read_size(s->detect_size, &s->detect.width, &s->detect.height))
        return usage(c, "--detect-size takes WIDTHxHEIGHT, such as 640x640, not '%s'", s->detect_size);
    if (s->fill && !read_colour(s->rule.fill, s->fill))
        return usage(c, "--fill takes a colour such as #ffffff, not '%s'", s->fill);
    if (strchr(s->naming, '/') || !strstr(s->naming, "{stem}") || !strstr(s->naming, "{n}"))
        return usage(c, "--name needs {stem} and {n}, and has no slash");
    return EXIT_DONE;
}

static int crop_open(const command *c, crop_settings *s, const string_list *paths) {
    pith_error err = PITH_ERROR_INIT;
    crop_job j = { .c = c, .s = s, .paths = paths };
    s->open.log = &warnings;
    runtime_choice_apply(&s->open, &s->runtime, 1);
    if (pith_model_open(&j.model, s->model, &s->open, &err)) return fail_model(c, &err, s->model);
    int code = pith_detect(NULL, j.model, NULL, 0, &s->detect, &err) ? fail(c, "%s: %s", s->model, err.message)
                                                                     : crop_files(&j);
    pith_model_close(j.model);
    return code;
}

static int crop_run(int argc, char **argv) {
    const command *c = &command_crop;
    crop_settings s = { .open = PITH_OPEN_OPTIONS_INIT, .detect = PITH_DETECT_OPTIONS_INIT };
    string_list paths = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &paths);
    if (code >= 0) return code;
    code = crop_check(c, &s, &paths);
    if (!code) code = crop_open(c, &s, &paths);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, crop_settings, member)

static const option options[] = {
    AT(model_detect, model),
    OPTION_SECTION("the crop"),
    AT(preset_crop, preset),
    AT(size_crop, size),
    AT(face_height, face),
    AT(position, position),
    AT(right, right),
    AT(down, down),
    AT(level, level),
    AT(fill, fill),
    OPTION_SECTION("which faces"),
    AT(score_threshold, threshold),
    AT(nms_threshold_crop, overlap),
    AT(detect_size, detect_size),
    AT(most, most),
    AT(sharpness, sharpness),
    AT(max_pixels_detect, max_pixels),
    OPTION_SECTION("result"),
    AT(output_crop, dir),
    AT(name, naming),
    AT(format_crop, format),
    AT(quality, quality),
    AT(list_crop, list),
    AT(resume_crop, resume),
    OPTION_SECTION("work"),
    AT(threads, detect.threads),
    OPTIONS_RUNTIME(crop_settings, runtime),
    OPTION_CONFIG,
    OPTION_END,
};

static const example examples[] = {
    { "pith crop -m yunet.onnx -o faces photos/", "photos/a/b.jpg gives faces/a/b_1.jpg, faces/a/b_2.jpg ..." },
    { "pith crop -m yunet.onnx -o out --preset passport --level --fill '#ffffff' me.jpg", NULL },
    { "pith crop -m yunet.onnx -o out --size 256x320 --face-height 50 --format webp --list crops.csv photos/", NULL },
    { NULL, NULL },
};

const command command_crop = {
    .name = "crop",
    .summary = "cut the faces out of pictures",
    .forms = "-m MODEL -o DIR [options] IMAGE...",
    .takes = "FILE",
    .description =
        "Finds faces as pith detect does, and writes each as a picture of its own. The crop's height follows from the "
        "face's height in it, its width from the size of the result.\n"
        "A picture that cannot be read gets a message, the others go on, and the exit code is 1.",
    .examples = examples,
    .options = options,
    .run = crop_run,
};
