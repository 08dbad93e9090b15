/* cmd_crop.c - pith crop: every face as a picture of its own.
 *
 * Pictures are read, looked at and cropped a few at a time on several threads; the crops are then
 * written in order. A picture that cannot be read gets a message; the others go on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/base/message.h"
#include "cli/base/name_set.h"
#include "cli/base/parallel.h"
#include "cli/drawing/drawing.h"
#include "cli/input/picture_files.h"
#include "cli/options/field_flags.h"
#include "cli/options/option_value.h"
#include "cli/options/work_options.h"
#include "cli/output/csv_out.h"
#include "cli/output/output.h"
#include "cli/output/profile_file.h"
#include "cli/pictures/crop_map.h"
#include "cli/pictures/crop_name.h"
#include "cli/pictures/crop_picture.h"
#include "cli/pictures/picture_out.h"
#include "cli/pictures/picture_out_details.h"

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
    const char *model, *dir, *size, *detect_size, *fill, *naming, *list, *map, *sheet, *profile;
    int preset, position, format;
    int32_t quality, most, right, down;
    double threshold, overlap, face, sharpness;
    bool level, resume;
    size_t max_pixels;
    crop_rule rule;
    pith_open_options open;
    pith_detect_options detect;
    runtime_choice runtime;
    work_settings work;
} crop_settings;

typedef struct cropped {
    pith_image image;
    double sharpness;
    char *problem;
} cropped;

typedef struct picture {
    const char *path, *name; /* name: below the folder of the crops, without the face's number */
    const crop_entry *entry; /* of the map; NULL: there is no map */
    pith_faces found;
    const pith_face *faces; /* [count], the best of those that were found, or the one that the map
                               gives */
    cropped *crops;         /* [count] */
    size_t count;
    pith_image_details details;
    const char *lost; /* what of its colours the crops do not have; NULL: nothing */
    char *problem;    /* why there are no faces; NULL: there are */
} picture;

typedef struct crop_job {
    const command *c;
    const crop_settings *s;
    const string_list *paths;
    pith_model *model; /* NULL: the map gives all boxes */
    crop_map map;
    string_list found;
    char **names; /* [found.count] */
    name_set written_names;
    passed_over passed;
    picture *pictures;
    size_t count, done, failed, faces, written, blurred;
    double began; /* seconds */
    output list;
    contact_sheet sheet;
    bool progress;
    double shown;
} crop_job;

/* How far the work is, in a line that the next one replaces. */
static void show_progress(crop_job *j, bool last) {
    if (!j->progress || (!last && now_seconds() - j->shown < 0.2)) return;
    j->shown = now_seconds();
    fputs("\r\033[K", stderr);
    if (!last)
        fprintf(stderr, "%zu of %zu pictures, %zu crops", j->done, j->found.count, j->written);
    fflush(stderr);
}

/* A message about a picture, on a line of its own. */
static void tell(crop_job *j, const char *text) {
    if (j->progress) fputs("\r\033[K", stderr);
    note("pith crop: %s", text);
}

/* ---- names ---- */

/* The name of a crop, which no other has. From malloc. */
static char *name_of(crop_job *j, const picture *p, size_t n) {
    const char *rule = p->entry ? p->entry->name : j->s->naming;
    return name_set_add(&j->written_names,
                        crop_name(p->name, rule, p->entry != NULL, formats[j->s->format], n));
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
    const bool numbered = !p->entry || strstr(p->entry->name, "{n}");
    p->count = p->faces ? 1 : p->found.count;
    if (!p->faces) p->faces = p->found.faces;
    if (j->s->most && p->count > (size_t)j->s->most) p->count = (size_t)j->s->most;
    if (!numbered && p->count > 1) p->count = 1;
    p->crops = grow(NULL, p->count * sizeof *p->crops);
    for (size_t i = 0; i < p->count; i++) {
        pith_error err = PITH_ERROR_INIT;
        cropped *crop = &p->crops[i];
        *crop = (cropped){ .problem = NULL };
        crop_place place = crop_place_of(&p->faces[i], &j->s->rule);
        if (crop_picture(&crop->image, image, &place, &j->s->rule, &err))
            crop->problem = strdup(err.message);
        else
            crop->sharpness = crop_sharpness(&crop->image);
    }
}

/* As RGB, in which faces are looked for. */
static bool read_picture(pith_image *image, crop_job *j, picture *p) {
    pith_error err = PITH_ERROR_INIT;
    pith_image_options read = PITH_IMAGE_OPTIONS_INIT;
    read.channels = 3;
    read.max_pixels = j->s->max_pixels;
    read.details = &p->details;
    const uint64_t begin = pith_profile_now();
    const bool there = !pith_image_read(image, p->path, &read, &err);
    pith_profile_phase(j->s->detect.call.profile, "decode", begin);
    if (!there) p->problem = strdup(err.message);
    return there;
}

/* The same with its alpha, of which crops are made. */
static bool read_alpha(pith_image *image, crop_job *j, picture *p) {
    pith_error err = PITH_ERROR_INIT;
    pith_image_options read = PITH_IMAGE_OPTIONS_INIT;
    if (p->details.channels != 4) return true;
    read.channels = 4;
    read.max_pixels = j->s->max_pixels;
    pith_image_free(image);
    if (!pith_image_read(image, p->path, &read, &err)) return true;
    p->problem = strdup(err.message);
    return false;
}

static void crop_one(void *context, size_t index) {
    crop_job *j = context;
    picture *p = &j->pictures[index];
    pith_error err = PITH_ERROR_INIT;
    pith_image image = { 0 };
    pith_detect_options detect = j->s->detect;
    detect.call.threads = 1;
    if (p->entry && p->entry->has_box) p->faces = &p->entry->face;
    if (!read_picture(&image, j, p)) return;
    if (!p->faces && pith_detect(&p->found, j->model, &image, 1, &detect, &err)) {
        const char *said = strncmp(err.message, "picture 0: ", 11) ? err.message : err.message + 11;
        p->problem = grow(NULL, strlen(p->path) + strlen(said) + 3);
        sprintf(p->problem, "%s: %s", p->path, said);
        name_flags(&command_crop, p->problem);
    } else if (read_alpha(&image, j, p)) {
        const uint64_t cut = pith_profile_now();
        make_crops(j, p, &image);
        pith_profile_phase(detect.call.profile, "crop", cut);
    }
    pith_image_free(&image);
}

/* ---- writing ---- */

static void list_crop(crop_job *j, const picture *p, size_t i, const char *name) {
    bytes row = { NULL, 0, 0 };
    char number[NUMBER_CHARS];
    const pith_face *f = &p->faces[i];
    if (!j->s->list) return;
    csv_put(&row, p->path);
    bytes_add(&row, ",", 1);
    csv_put(&row, name);
    for (int k = 0; k < 4; k++) {
        bytes_add(&row, ",", 1);
        bytes_add(&row, number, number_print(number, f->box[k]));
    }
    bytes_add(&row, ",", 1);
    if (p->found.count) bytes_add(&row, number, number_print(number, f->score));
    bytes_print(&row, ",%.1f\n", p->crops[i].sharpness);
    output_write(&j->list, row.data, row.size);
    free(row.data);
}

static void sheet_crop(crop_job *j, const picture *p, size_t i, const char *name) {
    char caption[80];
    if (p->found.count)
        snprintf(caption, sizeof caption, "score %.3f, sharpness %.1f", (double)p->faces[i].score,
                 p->crops[i].sharpness);
    else
        snprintf(caption, sizeof caption, "sharpness %.1f", p->crops[i].sharpness);
    contact_sheet_add(&j->sheet, j->s->dir, name, p->path, caption);
}

/* A face that was found, and of which there is no crop. */
static void leave_out(crop_job *j, const picture *p, size_t i) {
    bytes why = { NULL, 0, 0 };
    const cropped *crop = &p->crops[i];
    if (crop->problem)
        bytes_print(&why, "face %zu: %s", i + 1, crop->problem);
    else
        bytes_print(&why, "face %zu: sharpness %.1f is below %.1f", i + 1, crop->sharpness,
                    j->s->sharpness);
    bytes_add(&why, "", 1);
    contact_sheet_leave_out(&j->sheet, p->path, why.data);
    free(why.data);
}

/* Writes the crop's file; returns an exit code, after a message. */
static int write_file(crop_job *j, picture *p, pith_image *crop, const char *name) {
    pith_image_encode_options options = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    options.format = "png";
    if (picture_out_format(name))
        options.format = picture_out_format(name);
    else if (j->s->format)
        options.format = formats[j->s->format];
    if (!p->entry && j->s->format) options.format = formats[j->s->format];
    options.quality = j->s->quality;
    const pith_image_details fitted =
        picture_out_details_fit(crop, &p->details, options.format, j->s->rule.fill);
    options.details = &fitted;
    if (!p->lost) p->lost = picture_out_details_lost(&p->details, &fitted);
    return picture_out_write(j->c, crop, j->s->dir, name, &options, &j->found);
}

static void write_crop(crop_job *j, picture *p, size_t i) {
    cropped *crop = &p->crops[i];
    char *name = name_of(j, p, i + 1);
    if (crop->problem) {
        bytes text = { NULL, 0, 0 };
        bytes_print(&text, "%s: face %zu: %s", p->path, i + 1, crop->problem);
        bytes_add(&text, "", 1);
        tell(j, text.data);
        free(text.data);
        leave_out(j, p, i);
        j->failed++;
    } else if (crop->sharpness < j->s->sharpness) {
        leave_out(j, p, i);
        j->blurred++;
    } else if (!(j->s->resume && is_there(j, name)) && write_file(j, p, &crop->image, name)) {
        j->failed++;
    } else {
        j->written++;
        list_crop(j, p, i, name);
        sheet_crop(j, p, i, name);
    }
    free(name);
}

static void tell_lost(crop_job *j, const picture *p) {
    bytes text = { NULL, 0, 0 };
    if (!p->lost) return;
    bytes_print(&text,
                "%s: %s; its crops are written without it: convert the picture to sRGB first",
                p->path, p->lost);
    bytes_add(&text, "", 1);
    tell(j, text.data);
    free(text.data);
}

static void finish_picture(crop_job *j, picture *p) {
    if (p->problem) {
        tell(j, p->problem);
        j->failed++;
    }
    j->faces += p->count;
    if (!p->count) contact_sheet_leave_out(&j->sheet, p->path, p->problem ? p->problem : "no face");
    for (size_t i = 0; i < p->count; i++) {
        write_crop(j, p, i);
        pith_image_free(&p->crops[i].image);
        free(p->crops[i].problem);
    }
    tell_lost(j, p);
    free(p->crops);
    pith_image_details_free(&p->details);
    pith_faces_free(&p->found);
    free(p->problem);
    j->done++;
    show_progress(j, false);
}

static int crop_batches(crop_job *j) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    size_t room = (size_t)(j->s->detect.call.threads ? j->s->detect.call.threads : cpu.threads) *
                  PICTURES_PER_THREAD;
    if (room > PICTURES_MOST) room = PICTURES_MOST;
    j->pictures = grow(NULL, room * sizeof *j->pictures);
    for (size_t next = 0; next < j->found.count;) {
        for (j->count = 0; j->count < room && next < j->found.count; j->count++)
            j->pictures[j->count] = (picture){ .path = j->found.items[next],
                                               .name = j->names[next],
                                               .details = PITH_IMAGE_DETAILS_INIT,
                                               .entry = j->s->map ? &j->map.items[next] : NULL },
            next++;
        parallel_run(crop_one, j, j->count, j->s->detect.call.threads);
        const uint64_t begin = pith_profile_now();
        for (size_t i = 0; i < j->count; i++) finish_picture(j, &j->pictures[i]);
        pith_profile_phase(j->s->detect.call.profile, "write", begin);
    }
    free(j->pictures);
    show_progress(j, true);
    fprintf(stderr, "%zu crops of %zu pictures", j->written, j->found.count);
    if (j->blurred) fprintf(stderr, ", %zu left out as not sharp", j->blurred);
    fputs("\n", stderr);
    return j->failed ? EXIT_FAILED : EXIT_DONE;
}

/* The pictures that the arguments stand for, or those of the map. */
static int find_pictures(crop_job *j) {
    if (!j->s->map) return picture_files_find(&j->found, &j->passed, j->c, j->paths);
    for (size_t i = 0; i < j->map.count; i++) {
        const char *path = j->map.items[i].path;
        list_add(&j->found, strcpy(grow(NULL, strlen(path) + 1), path));
    }
    return EXIT_DONE;
}

/* The page may lie in the folder of the crops, which is made here. */
static int open_sheet(crop_job *j) {
    bytes folder = { NULL, 0, 0 };
    bytes_print(&folder, "%s/", j->s->dir);
    bytes_add(&folder, "", 1);
    int code = picture_out_folders(j->c, folder.data);
    free(folder.data);
    return code ? code : contact_sheet_open(&j->sheet, j->c, j->s->sheet, &j->found);
}

static int crop_files(crop_job *j) {
    static const char header[] = "file,crop,x,y,w,h,score,sharpness\n";
    int code = find_pictures(j);
    bool listed = false;
    j->names = picture_out_names(j->paths, &j->found, endings[j->s->format], false);
    if (!code && j->s->list) {
        code = output_open(&j->list, j->c, j->s->list, &j->found);
        listed = !code;
    }
    if (!code && j->s->sheet) code = open_sheet(j);
    const bool begun = !code;
    if (begun) {
        if (listed) output_header(&j->list, header, sizeof header - 1);
        code = crop_batches(j);
        code = contact_sheet_close(&j->sheet, j->c, code);
    }
    if (listed) code = output_close(&j->list, j->c, begun, code);
    if (begun) code = picture_files_tell(&j->passed, j->c, code);
    picture_out_names_free(j->names, j->found.count);
    name_set_free(&j->written_names);
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
    s->detect.score_threshold = option_amount(s->threshold);
    s->detect.nms_threshold = option_amount(s->overlap);
}

static int crop_check(const command *c, crop_settings *s, const string_list *paths) {
    if (!s->model && !s->map)
        return usage(c, "give a model with -m, such as yunet, which 'pith pull yunet' fetches");
    if (!s->dir) return usage(c, "give a folder for the crops with -o");
    if (s->map && paths->count) return usage(c, "--map names the pictures; give no others");
    if (!s->map && !paths->count) return usage(c, "give it pictures, or a folder of them");
    if (s->threshold > 1) return usage(c, "--score-threshold is from 0 to 1, not %g", s->threshold);
    if (s->overlap > 1) return usage(c, "--nms-threshold is from 0 to 1, not %g", s->overlap);
    make_rule(s);
    if (s->rule.face > 1000) return usage(c, "--face-height is a percentage, of at most 1000");
    if (s->size && !read_size(s->size, &s->rule.width, &s->rule.height))
        return usage(c, "--size must be WIDTHxHEIGHT, such as 512x512, of at most 10000, not '%s'",
                     s->size);
    const bool own = s->detect_size && !strcmp(s->detect_size, "original");
    if (own) s->detect.width = s->detect.height = PITH_DETECT_OWN_SIZE;
    if (s->detect_size && !own && !read_size(s->detect_size, &s->detect.width, &s->detect.height))
        return usage(c,
                     "--detect-size must be WIDTHxHEIGHT, such as 640x640, or original, not '%s'",
                     s->detect_size);
    if (s->fill && !read_colour(s->rule.fill, s->fill))
        return usage(c, "--fill must be a colour such as #ffffff, not '%s'", s->fill);
    if (strchr(s->naming, '/') || !strstr(s->naming, "{stem}") || !strstr(s->naming, "{n}"))
        return usage(c, "--name needs {stem} and {n}, and has no slash");
    return EXIT_DONE;
}

static int open_detector(crop_job *j, crop_settings *s) {
    pith_error err = PITH_ERROR_INIT;
    if (s->map && !j->map.unknown) return EXIT_DONE;
    if (!s->model)
        return usage(j->c, "some rows of %s have no box; give a model with -m that finds the faces",
                     s->map);
    const int code = runtime_choice_check(j->c, &s->runtime);
    if (code) return code;
    s->open.call.log = &warnings;
    runtime_choice_apply(&s->open, &s->runtime, 1);
    if (pith_model_open(&j->model, s->model, &s->open, &err))
        return fail_model(j->c, &err, s->model);
    telemetry_model(j->model);
    return pith_detect(NULL, j->model, NULL, 0, &s->detect, &err)
               ? fail(j->c, "%s: %s", s->model, err.message)
               : EXIT_DONE;
}

/* The numbers of --stats. */
static int crop_stats(crop_job *j, int code) {
    json_t *told = json_pack("{s:I, s:I, s:I, s:I, s:I, s:f}", "pictures", (json_int_t)j->done,
                             "faces", (json_int_t)j->faces, "crops", (json_int_t)j->written,
                             "not_sharp", (json_int_t)j->blurred, "failed", (json_int_t)j->failed,
                             "seconds", now_seconds() - j->began);
    return work_stats(j->c, &j->s->work, told, j->model, j->paths, code);
}

static int crop_open(const command *c, crop_settings *s, const string_list *paths) {
    crop_job j = { .c = c, .s = s, .paths = paths, .progress = isatty(STDERR_FILENO) == 1 };
    pith_profile *profile;
    int code = profile_open(&profile, c, s->profile, paths);
    if (!code) code = telemetry_begin(&profile, c, s->runtime.telemetry, s->detect.call.threads);
    if (code) return code;
    s->open.call.profile = s->detect.call.profile = profile;
    code = s->map ? crop_map_read(&j.map, c, s->map) : EXIT_DONE;
    if (!code) code = open_detector(&j, s);
    j.began = now_seconds();
    if (!code) code = crop_stats(&j, crop_files(&j));
    pith_model_close(j.model);
    crop_map_free(&j.map);
    telemetry_end(&profile);
    return profile_close(profile, c, code);
}

static int crop_run(int argc, char **argv) {
    const command *c = &command_crop;
    crop_settings s = { .open = PITH_OPEN_OPTIONS_INIT,
                        .detect = PITH_DETECT_OPTIONS_INIT,
                        .work = WORK_SETTINGS_INIT };
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
    AT(map_crop, map),
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
    AT(contact_sheet, sheet),
    AT(resume_crop, resume),
    AT(stats, work.stats),
    AT(stats_file, work.stats_file),
    AT(profile, profile),
    OPTION_SECTION("work"),
    AT(threads, detect.call.threads),
    OPTIONS_RUNTIME(crop_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_CONFIG,
    OPTION_END,
};

static const example examples[] = {
    { "pith crop -m yunet -o faces photos/",
      "photos/a/b.jpg gives faces/a/b_1.jpg, faces/a/b_2.jpg ..." },
    { "pith crop -m yunet -o out --framing passport --upright --fill '#ffffff' me.jpg", NULL },
    { "pith crop -m yunet -o out --size 256x320 --face-height 50 --format webp --report "
      "crops.csv photos/",
      NULL },
    { "pith crop -m yunet -o out --contact-sheet out/index.html photos/",
      "a page with all crops, to look at" },
    { "pith crop -o out --map boxes.csv", "columns file, name, x, y, w, h" },
    { NULL, NULL },
};

const command command_crop = {
    .name = "crop",
    .summary = "cut the faces out of pictures",
    .forms = "-m MODEL -o DIR [options] IMAGE...\n-o DIR --map FILE [options]",
    .takes = "FILE",
    .reads = "jpg|jpeg|png|webp|tif|tiff|jp2|j2k|heic|heif|avif|gif|bmp|ppm|pgm|pnm",
    .description =
        "Finds faces as pith detect does, and writes each as a picture of its own. The crop's "
        "height follows from the "
        "face's height in it, its width from the size of the result.\n"
        "A picture that cannot be read gets a message, the others follow, and the exit code is 1.",
    .examples = examples,
    .options = options,
    .run = crop_run,
};
