/* cmd_detect.c - pith detect: the faces in pictures.
 *
 * Pictures are read and looked at a few at a time, so memory is bounded by the largest of them, not
 * by their number. A picture that cannot be read gets a message; the others go on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pith/detect.h>

#include "cli/base/cli.h"
#include "cli/base/float_text.h"
#include "cli/base/message.h"
#include "cli/base/parallel.h"
#include "cli/base/progress_line.h"
#include "cli/drawing/drawing.h"
#include "cli/input/picture_files.h"
#include "cli/options/field_flags.h"
#include "cli/options/option_value.h"
#include "cli/options/work_options.h"
#include "cli/output/csv_out.h"
#include "cli/output/format_choice.h"
#include "cli/output/json_out.h"
#include "cli/output/output.h"
#include "cli/output/profile_file.h"
#include "cli/pictures/picture_out.h"
#include "cli/pictures/picture_out_details.h"

/* Pictures that are in memory at once, for each thread. */
enum { PICTURES_PER_THREAD = 2, PICTURES_MOST = 256 };
typedef enum detect_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV } detect_format;

typedef struct detect_settings {
    const char *model, *output, *size, *profile, *annotate, *raw;
    bool json, strict, quiet;
    int format, score;
    double threshold, overlap;
    size_t max_pixels;
    int32_t raw_width, raw_height;
    pith_open_options open;
    pith_detect_options detect;
    runtime_choice runtime;
    work_settings work;
} detect_settings;

typedef struct picture {
    const char *path, *name; /* name: of the annotated picture */
    pith_image image;
    pith_image_details details; /* if annotated pictures are written */
    pith_faces faces;
    char *problem; /* why there are no faces; NULL: there are */
} picture;

typedef struct detect_job {
    const command *c;
    const detect_settings *s;
    const string_list *paths;
    pith_model *model;
    string_list found;
    char **names; /* [found.count], of annotated pictures */
    passed_over passed;
    picture *pictures; /* of the batch */
    size_t count, room, failed;
    size_t done, face_count; /* pictures that were told, faces in them */
    double began;            /* seconds */
    output out;
    bytes text;
} detect_job;

/* ---- faces as text ---- */

static void put_number(bytes *out, float x) {
    char number[NUMBER_CHARS];
    bytes_add(out, number, number_print(number, x));
}

static void put_numbers(bytes *out, const float *x, size_t count, const char *between) {
    for (size_t i = 0; i < count; i++) {
        if (i) bytes_print(out, "%s", between);
        put_number(out, x[i]);
    }
}

static void put_json(bytes *out, const picture *p) {
    bytes_print(out, "{\"file\": ");
    json_quote(out, (pith_str){ p->path, strlen(p->path) });
    bytes_print(out, ", \"width\": %d, \"height\": %d, \"faces\": [", (int)p->image.width,
                (int)p->image.height);
    for (size_t i = 0; i < p->faces.count; i++) {
        const pith_face *f = &p->faces.faces[i];
        bytes_print(out, "%s{\"box\": [", i ? ", " : "");
        put_numbers(out, f->box, 4, ", ");
        bytes_print(out, "], \"landmarks\": [");
        for (int k = 0; k < PITH_FACE_LANDMARKS; k++) {
            bytes_print(out, "%s[", k ? ", " : "");
            put_numbers(out, f->landmarks[k], 2, ", ");
            bytes_print(out, "]");
        }
        bytes_print(out, "], \"score\": ");
        put_number(out, f->score);
        bytes_print(out, "}");
    }
    bytes_print(out, "]}\n");
}

#define CSV_HEADER                                                                                 \
    "file,width,height,x,y,w,h,right_eye_x,right_eye_y,left_eye_x,left_eye_y,nose_x,nose_y,right_" \
    "mouth_x,"                                                                                     \
    "right_mouth_y,left_mouth_x,left_mouth_y,score\n"

static void put_csv(bytes *out, const picture *p) {
    for (size_t i = 0; i < p->faces.count; i++) {
        const pith_face *f = &p->faces.faces[i];
        csv_put(out, p->path);
        bytes_print(out, ",%d,%d,", (int)p->image.width, (int)p->image.height);
        put_numbers(out, f->box, 4, ",");
        bytes_print(out, ",");
        put_numbers(out, f->landmarks[0], 2 * PITH_FACE_LANDMARKS, ",");
        bytes_print(out, ",");
        put_number(out, f->score);
        bytes_print(out, "\n");
    }
}

static void put_text(bytes *out, const picture *p) {
    bytes_print(out, "%s: %zu face%s\n", shown(p->path), p->faces.count,
                p->faces.count == 1 ? "" : "s");
    for (size_t i = 0; i < p->faces.count; i++) {
        const pith_face *f = &p->faces.faces[i];
        bytes_print(out, "  %.1f,%.1f  %.1f x %.1f  score %.3f\n", (double)f->box[0],
                    (double)f->box[1], (double)f->box[2], (double)f->box[3], (double)f->score);
    }
}

/* ---- pictures to faces ---- */

static char *in_words(const char *path, const char *message) {
    char *text = grow(NULL, strlen(path) + strlen(message) + 3);
    sprintf(text, "%s: %s", path, message);
    name_flags(&command_detect, text);
    return text;
}

static void read_picture(void *context, size_t index) {
    detect_job *j = context;
    picture *p = &j->pictures[index];
    pith_error err = PITH_ERROR_INIT;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    uint64_t begin = pith_profile_now();
    options.channels = 3;
    options.max_pixels = j->s->max_pixels;
    options.details = j->s->annotate ? &p->details : NULL;
    if (pith_image_read(&p->image, p->path, &options, &err)) p->problem = strdup(err.message);
    pith_profile_phase(j->s->detect.call.profile, "decode", begin);
}

/* All that could be read; if one is refused, each by itself. */
static void detect_faces(detect_job *j) {
    pith_image *images = grow(NULL, j->count * sizeof *images);
    pith_faces *faces = grow(NULL, j->count * sizeof *faces);
    pith_error err = PITH_ERROR_INIT;
    size_t count = 0, next = 0;
    for (size_t i = 0; i < j->count; i++)
        if (!j->pictures[i].problem) images[count++] = j->pictures[i].image;
    bool whole = !pith_detect(faces, j->model, images, count, &j->s->detect, &err);
    for (size_t i = 0; i < j->count; i++) {
        picture *p = &j->pictures[i];
        if (p->problem) continue;
        if (whole)
            p->faces = faces[next++];
        else if (pith_detect(&p->faces, j->model, &p->image, 1, &j->s->detect, &err))
            p->problem = in_words(
                p->path, strncmp(err.message, "picture 0: ", 11) ? err.message : err.message + 11);
    }
    free(images);
    free(faces);
}

/* With alpha, if the file has it. */
static int read_again(detect_job *j, picture *p) {
    pith_error err = PITH_ERROR_INIT;
    pith_image_options options = PITH_IMAGE_OPTIONS_INIT;
    if (p->details.channels != 4) return EXIT_DONE;
    options.channels = 4;
    options.max_pixels = j->s->max_pixels;
    pith_image_free(&p->image);
    return pith_image_read(&p->image, p->path, &options, &err) ? fail(j->c, "%s", err.message)
                                                               : EXIT_DONE;
}

static int write_annotated(detect_job *j, picture *p) {
    static const uint8_t black[3] = { 0, 0, 0 };
    pith_image_encode_options options = PITH_IMAGE_ENCODE_OPTIONS_INIT;
    int code = read_again(j, p);
    if (code) return code;
    options.format = picture_out_format(p->name);
    annotate_faces(&p->image, &p->faces);
    const pith_image_details fitted =
        picture_out_details_fit(&p->image, &p->details, options.format, black);
    const char *lost = picture_out_details_lost(&p->details, &fitted);
    options.details = &fitted;
    code = picture_out_write(j->c, &p->image, j->s->annotate, p->name, &options, &j->found);
    if (lost)
        note("pith detect: %s: %s; the picture with boxes is written without it: convert it to "
             "sRGB first",
             p->path, lost);
    return code;
}

static void put_result(detect_job *j, const picture *p) {
    j->done++;
    j->face_count += p->faces.count;
    if (p->problem) {
        note("pith detect: %s", p->problem);
        j->failed++;
    } else if (j->s->format == FORMAT_JSON) {
        put_json(&j->text, p);
    } else if (j->s->format == FORMAT_CSV) {
        put_csv(&j->text, p);
    } else {
        put_text(&j->text, p);
    }
}

static void finish_picture(detect_job *j, picture *p) {
    put_result(j, p);
    if (!p->problem && j->s->annotate && write_annotated(j, p)) j->failed++;
    pith_faces_free(&p->faces);
    pith_image_free(&p->image);
    pith_image_details_free(&p->details);
    free(p->problem);
}

static int detect_batches(detect_job *j) {
    size_t next = 0;
    bool good = true;
    progress_line progress;
    progress_line_begin(&progress, "pictures", false, j->s->quiet, j->s->output);
    if (j->s->format == FORMAT_CSV) output_header(&j->out, CSV_HEADER, sizeof CSV_HEADER - 1);
    while (good && next < j->found.count) {
        for (j->count = 0; j->count < j->room && next < j->found.count; j->count++)
            j->pictures[j->count] = (picture){ .path = j->found.items[next],
                                               .name = j->names[next],
                                               .details = PITH_IMAGE_DETAILS_INIT },
            next++;
        parallel_run(read_picture, j, j->count, j->s->detect.call.threads);
        detect_faces(j);
        for (size_t i = 0; i < j->count; i++) finish_picture(j, &j->pictures[i]);
        uint64_t begin = pith_profile_now();
        good = output_write(&j->out, j->text.data, j->text.size) && output_flush(&j->out);
        pith_profile_phase(j->s->detect.call.profile, "write", begin);
        j->text.size = 0;
        progress_line_show(&progress, j->done, j->found.count);
    }
    progress_line_end(&progress, j->done, j->found.count);
    return j->failed ? EXIT_FAILED : EXIT_DONE; /* what could not be written is told when the output
                                                   is closed */
}

/* Raw video on standard input: each frame is told before the next one is read. */
static int detect_frames(detect_job *j) {
    const size_t whole = (size_t)j->s->raw_width * (size_t)j->s->raw_height * 3;
    uint8_t *pixels = grow(NULL, whole);
    char name[32];
    size_t got = 0;
    bool good = true;
    int code = output_open(&j->out, j->c, j->s->output, &j->found);
    if (code) {
        free(pixels);
        return code;
    }
    if (j->s->format == FORMAT_CSV) output_header(&j->out, CSV_HEADER, sizeof CSV_HEADER - 1);
    for (size_t frame = 0; good && (got = fread(pixels, 1, whole, stdin)) == whole; frame++) {
        pith_error err = PITH_ERROR_INIT;
        picture p = { .path = name,
                      .image = { pixels, j->s->raw_width, j->s->raw_height, 3, NULL } };
        snprintf(name, sizeof name, "frame:%zu", frame);
        if (pith_detect(&p.faces, j->model, &p.image, 1, &j->s->detect, &err))
            p.problem = in_words(name, err.message);
        put_result(j, &p);
        pith_faces_free(&p.faces);
        free(p.problem);
        good = output_write(&j->out, j->text.data, j->text.size) && output_flush(&j->out);
        j->text.size = 0;
    }
    free(pixels);
    if (ferror(stdin))
        code = fail(j->c, "standard input: %s", strerror(errno));
    else if (good && got) /* the lines of the frames before it are all that standard output gets */
        note("pith detect: the last frame has %zu bytes; a frame of %s has %zu", got, j->s->raw,
             whole);
    if (j->failed || (good && got)) code = EXIT_FAILED;
    return output_close(&j->out, j->c, true, code);
}

static int detect_files(detect_job *j, const string_list *paths) {
    pith_cpu_info cpu = PITH_CPU_INFO_INIT;
    pith_cpu_report(&cpu, NULL);
    j->room = (size_t)(j->s->detect.call.threads ? j->s->detect.call.threads : cpu.threads) *
              PICTURES_PER_THREAD;
    if (j->room > PICTURES_MOST) j->room = PICTURES_MOST;
    int code = picture_files_find(&j->found, &j->passed, j->c, paths);
    j->names = picture_out_names(paths, &j->found, NULL, true);
    if (!code) code = output_open(&j->out, j->c, j->s->output, &j->found);
    if (!code) {
        j->pictures = grow(NULL, j->room * sizeof *j->pictures);
        code = output_close(&j->out, j->c, true, detect_batches(j));
        code = picture_files_tell(&j->passed, j->c, code);
    }
    picture_out_names_free(j->names, j->found.count);
    picture_files_free(&j->found);
    free(j->pictures);
    return code;
}

/* ---- the command ---- */

/* "original": the picture's own. */
static bool take_own_size(detect_settings *s) {
    if (!s->size || strcmp(s->size, "original") != 0) return false;
    s->detect.width = s->detect.height = PITH_DETECT_OWN_SIZE;
    return true;
}

/* "640x480", or "640" for a square; text NULL leaves them as they are. */
static int take_size(const command *c, int32_t *width, int32_t *height, const char *text,
                     const char *name) {
    char end;
    int w, h;
    if (!text) return EXIT_DONE;
    int got = sscanf(text, "%dx%d%c", &w, &h, &end);
    if (got != 2 && sscanf(text, "%d%c", &w, &end) == 1) h = w, got = 2;
    if (got != 2 || w < 1 || h < 1 || w > 65536 || h > 65536)
        return usage(c, "--%s must be WIDTHxHEIGHT, such as 640x640, not '%s'", name, text);
    *width = w;
    *height = h;
    return EXIT_DONE;
}

static int detect_check(const command *c, detect_settings *s, const string_list *paths) {
    if (!s->model)
        return usage(c, "give a model with -m, such as yunet, which 'pith pull yunet' fetches");
    if (!paths->count && !s->raw) return usage(c, "give it pictures, or a folder of them");
    if (s->raw && (paths->count || s->annotate))
        return usage(c, "--raw-video reads frames from standard input, and nothing else");
    if (s->threshold > 1) return usage(c, "--score-threshold is from 0 to 1, not %g", s->threshold);
    if (s->overlap > 1) return usage(c, "--nms-threshold is from 0 to 1, not %g", s->overlap);
    if (s->json && s->format) return usage(c, "--json and --format do not go together");
    if (s->json) s->format = FORMAT_JSON;
    int code =
        s->json ? format_only(c, "json", s->output) : format_choose(c, &s->format, s->output);
    if (code) return code;
    s->detect.score_threshold = option_amount(s->threshold);
    s->detect.nms_threshold = option_amount(s->overlap);
    s->detect.score = s->score;
    code = take_own_size(s)
               ? EXIT_DONE
               : take_size(c, &s->detect.width, &s->detect.height, s->size, "detect-size");
    return code ? code : take_size(c, &s->raw_width, &s->raw_height, s->raw, "raw-video");
}

/* The numbers of --stats. */
static int detect_stats(detect_job *j, int code) {
    json_t *told = json_pack("{s:I, s:I, s:I, s:f}", "pictures", (json_int_t)j->done, "faces",
                             (json_int_t)j->face_count, "failed", (json_int_t)j->failed, "seconds",
                             now_seconds() - j->began);
    return work_stats(j->c, &j->s->work, told, j->model, j->paths, code);
}

static int detect_open(const command *c, detect_settings *s, const string_list *paths) {
    pith_error err = PITH_ERROR_INIT;
    pith_profile *profile;
    detect_job j = { .c = c, .s = s, .paths = paths };
    int code = runtime_choice_check(c, &s->runtime);
    if (!code) code = profile_open(&profile, c, s->profile, paths);
    if (!code) code = telemetry_begin(&profile, c, s->runtime.telemetry, s->detect.call.threads);
    if (code) return code;
    s->open.call.log = &warnings;
    s->open.flags = s->strict ? PITH_OPEN_STRICT_SHAPES : 0;
    s->open.call.profile = s->detect.call.profile = profile;
    runtime_choice_apply(&s->open, &s->runtime, s->detect.call.threads);
    if (pith_model_open(&j.model, s->model, &s->open, &err)) {
        pith_profile_destroy(profile);
        return fail_model(c, &err, s->model);
    }
    telemetry_model(j.model);
    j.began = now_seconds();
    if (pith_detect(NULL, j.model, NULL, 0, &s->detect, &err))
        code = fail(c, "%s: %s", s->model, err.message);
    else
        code = detect_stats(&j, s->raw ? detect_frames(&j) : detect_files(&j, paths));
    free(j.text.data);
    pith_model_close(j.model);
    telemetry_end(&profile);
    return profile_close(profile, c, code);
}

static int detect_run(int argc, char **argv) {
    const command *c = &command_detect;
    detect_settings s = { .open = PITH_OPEN_OPTIONS_INIT,
                          .detect = PITH_DETECT_OPTIONS_INIT,
                          .work = WORK_SETTINGS_INIT };
    string_list paths = { NULL, 0 };
    int code = take_options(c, &s, argc, argv, &paths);
    if (code >= 0) return code;
    code = detect_check(c, &s, &paths);
    if (!code) code = detect_open(c, &s, &paths);
    runtime_choice_free(&s.runtime);
    return code;
}

#define AT(id, member) OPTION_PLACE(id, detect_settings, member)

static const option options[] = {
    AT(model_detect, model),
    OPTION_SECTION("which faces"),
    AT(score_threshold, threshold),
    AT(nms_threshold, overlap),
    AT(top_k_detect, detect.top_k),
    AT(score, score),
    AT(detect_size, size),
    AT(raw_detect, raw),
    AT(max_pixels_detect, max_pixels),
    OPTION_SECTION("result"),
    AT(format_detect, format),
    AT(json_detect, json),
    AT(output, output),
    AT(annotate, annotate),
    AT(quiet_texts, quiet),
    AT(stats, work.stats),
    AT(stats_file, work.stats_file),
    AT(profile, profile),
    OPTION_SECTION("work"),
    AT(optimization, open.optimization),
    AT(strict_shapes, strict),
    AT(threads, detect.call.threads),
    AT(memory_limit, open.memory_limit),
    OPTIONS_RUNTIME(detect_settings, runtime),
    AT(telemetry, runtime.telemetry),
    OPTION_SOURCES,
    OPTION_END,
};

static const example examples[] = {
    { "pith detect -m yunet group.jpg", "group.jpg: 3 faces" },
    { "pith detect -m yunet --json photos/", "a line of JSON for each picture" },
    { "ffmpeg -i film.mp4 -f rawvideo -pix_fmt rgb24 - | pith detect -m yunet --json "
      "--raw-video "
      "640x480",
      "a line for each frame" },
    { "pith detect -m yunet --detect-size 640x640 --score-threshold 0.6 large.jpg", NULL },
    { NULL, NULL },
};

const command command_detect = {
    .name = "detect",
    .summary = "find the faces in pictures",
    .forms = "-m MODEL [options] IMAGE...",
    .takes = "FILE",
    .reads = "jpg|jpeg|png|webp|tif|tiff|jp2|j2k|heic|heif|avif|gif|bmp|ppm|pgm|pnm",
    .description = "Finds faces with the network YuNet, or with MTCNN: box, five landmarks (right "
                   "eye, left eye, nose, right and "
                   "left "
                   "corner of the mouth) and score, in pixels of the picture. A picture may have "
                   "any size, whatever the model "
                   "declares.\n"
                   "A folder stands for all pictures in it and below. A picture that cannot be "
                   "read gets a message, the others follow "
                   "on, and the exit code is 1.",
    .examples = examples,
    .options = options,
    .run = detect_run,
};
