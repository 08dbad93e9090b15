/* jpeg.c - JPEG by libjpeg-turbo: baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK.
 *
 * libjpeg reports errors by longjmp; all that is live across it is in `jpeg_state`. A file that
 * ends too early is an error only if bits were missing: some lack nothing but their end marker.
 * Memory beyond that of libjpeg is one row. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "codec.h"

/* Scans of a progressive file. Encoders write about ten; each may cost as much time as the whole
 * picture, so a large one may have fewer. */
enum { MAX_SCANS = 100, SURE_SCANS = 30, SCANNED_PIXELS = 1500000000 };

/* Markers that jpeglib.h does not name. */
enum { JPEG_TEM = 0x01, JPEG_SOS = 0xDA };

typedef struct jpeg_state {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    pith_image_call *call;
    pith_image_outcome outcome;
    uint8_t *row;     /* of CMYK */
    uint8_t *profile; /* from malloc */
    int most_scans;
    int at_end; /* the source has given its last byte */
    jmp_buf leave;
} jpeg_state;

static void jpeg_leave(jpeg_state *s, pith_image_outcome outcome) {
    s->outcome = outcome;
    longjmp(s->leave, 1);
}

static void jpeg_error_exit(j_common_ptr info) {
    jpeg_state *s = (jpeg_state *)(void *)info->err;
    char text[JMSG_LENGTH_MAX];
    if (s->errors.msg_code == JERR_OUT_OF_MEMORY) jpeg_leave(s, PITH_IMAGE_NO_MEMORY);
    s->errors.format_message(info, text);
    jpeg_leave(s, pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "%s", text));
}

static void jpeg_emit_message(j_common_ptr info, int level) {
    jpeg_state *s = (jpeg_state *)(void *)info->err;
    if (level < 0 && s->at_end && s->errors.msg_code == JWRN_HIT_MARKER)
        jpeg_leave(s, pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "it is cut off"));
}

static void jpeg_output_message(j_common_ptr info) { (void)info; }

static int jpeg_most_scans(uint64_t pixels) {
    const uint64_t scans = SCANNED_PIXELS / pixels;
    if (scans > MAX_SCANS) return MAX_SCANS;
    if (scans < SURE_SCANS) return SURE_SCANS;
    return (int)scans;
}

/* Called for each row of blocks that is read, and each row of pixels that is made. */
static void jpeg_monitor(j_common_ptr info) {
    jpeg_state *s = (jpeg_state *)(void *)info->err;
    if (pith__decode_stops(s->call)) jpeg_leave(s, PITH_IMAGE_STOPPED);
    if (s->jpeg.input_scan_number > s->most_scans)
        jpeg_leave(s, pith__codec_fail(s->call, PITH_IMAGE_UNKNOWN, "it has more than %d scans",
                                       s->most_scans));
}

static void jpeg_source_nothing(j_decompress_ptr jpeg) { (void)jpeg; }

static boolean jpeg_source_fill(j_decompress_ptr jpeg) {
    static const JOCTET end[2] = { 0xFF, JPEG_EOI };
    ((jpeg_state *)(void *)jpeg->err)->at_end = 1;
    jpeg->src->next_input_byte = end;
    jpeg->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void jpeg_source_skip(j_decompress_ptr jpeg, long count) {
    struct jpeg_source_mgr *source = jpeg->src;
    if (count <= 0) return;
    if ((size_t)count > source->bytes_in_buffer) {
        jpeg_source_fill(jpeg);
        return;
    }
    source->next_input_byte += count;
    source->bytes_in_buffer -= (size_t)count;
}

/* Adobe's programs store CMYK inverted, and say so by a marker. */
static void jpeg_row_from_cmyk(uint8_t *rgb, const uint8_t *cmyk, uint32_t width, int inverted) {
    for (uint32_t i = 0; i < width; i++, rgb += 3, cmyk += 4) {
        uint32_t white = inverted ? cmyk[3] : 255u - cmyk[3];
        for (int c = 0; c < 3; c++) {
            uint32_t ink = inverted ? 255u - cmyk[c] : cmyk[c];
            rgb[c] = (uint8_t)(white - pith__mul255(ink, white));
        }
    }
}

/* The segments in front of the first scan, found without libjpeg, which keeps markers in a list
 * that it walks for each further one. A segment is 0xFF, a marker and a length of two bytes; bytes
 * between segments are passed over. */
typedef struct jpeg_segments {
    const uint8_t *at, *end;
} jpeg_segments;

/* What the next segment with this marker holds; NULL: there is none. */
static const uint8_t *jpeg_segment(jpeg_segments *s, uint8_t wanted, size_t *size) {
    while (s->end - s->at >= 4) {
        const uint8_t *p = s->at, marker = p[1];
        if (*p != 0xFF || marker == 0xFF || marker == 0) {
            s->at++;
            continue;
        }
        if (marker == JPEG_SOS || marker == JPEG_EOI) break;
        if (marker == JPEG_TEM || (marker >= JPEG_RST0 && marker <= JPEG_EOI)) {
            s->at += 2;
            continue;
        }
        *size = (size_t)p[2] << 8 | p[3];
        if (*size < 2 || *size > (size_t)(s->end - p) - 2) break;
        s->at += 2 + *size;
        *size -= 2;
        if (marker == wanted) return p + 4;
    }
    return NULL;
}

static jpeg_segments jpeg_segments_of(const pith_image_call *call) {
    return (jpeg_segments){ call->data + 2, call->data + call->size };
}

/* The profile out of its pieces, which are numbered from 1: ICC.1:2022, annex B.4. */
static void jpeg_profile(pith_image_header *header, jpeg_state *s) {
    jpeg_segments segments = jpeg_segments_of(s->call);
    struct {
        const uint8_t *data;
        size_t size;
    } pieces[256] = { { NULL, 0 } };
    size_t size, total = 0;
    unsigned found = 0, count = 0;
    for (const uint8_t *p; (p = jpeg_segment(&segments, JPEG_APP0 + 2, &size));) {
        if (size < 14 || memcmp(p, "ICC_PROFILE", 12) != 0) continue;
        header->colours = "its colour profile is damaged";
        const unsigned number = p[12];
        if (!number || number > p[13] || (found && p[13] != count) || pieces[number].data) return;
        count = p[13];
        pieces[number].data = p + 14;
        pieces[number].size = size - 14;
        total += size - 14;
        found++;
    }
    if (!total || found != count) return;
    s->profile = malloc(total);
    if (!s->profile) jpeg_leave(s, PITH_IMAGE_NO_MEMORY);
    header->profile = s->profile;
    header->profile_size = 0;
    for (unsigned i = 1; i <= count; i++) {
        memcpy(s->profile + header->profile_size, pieces[i].data, pieces[i].size);
        header->profile_size += pieces[i].size;
    }
    header->colours = NULL;
}

/* JFIF's resolution counts before that of EXIF, of which the first block counts. */
static void jpeg_details(pith_image_header *header, jpeg_state *s) {
    const struct jpeg_decompress_struct *jpeg = &s->jpeg;
    jpeg_segments segments = jpeg_segments_of(s->call);
    size_t size;
    if (jpeg->saw_JFIF_marker && (jpeg->density_unit == 1 || jpeg->density_unit == 2)) {
        const double unit = jpeg->density_unit == 1 ? 1 : 2.54;
        header->dots[0] = jpeg->X_density * unit;
        header->dots[1] = jpeg->Y_density * unit;
    }
    for (const uint8_t *p; (p = jpeg_segment(&segments, JPEG_APP0 + 1, &size));)
        if (size > 6 && !memcmp(p, "Exif\0", 6)) {
            pith__exif_read(header, p, size);
            break;
        }
    jpeg_profile(header, s);
}

/* CMYK is read row by row and converted here, because libjpeg has no such conversion. The number of
 * scans is bounded by the size of the picture: a file of a few KB can otherwise ask for minutes of
 * work. */
static void jpeg_run(jpeg_state *s) {
    struct jpeg_decompress_struct *jpeg = &s->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->src = &s->source;
    jpeg->progress = &s->progress;
    jpeg_read_header(jpeg, TRUE);
    int ink = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    int grey = jpeg->jpeg_color_space == JCS_GRAYSCALE;
    jpeg->out_color_space = JCS_RGB;
    if (ink)
        jpeg->out_color_space = JCS_CMYK;
    else if (grey)
        jpeg->out_color_space = JCS_GRAYSCALE;
    uint32_t channels = grey ? 1 : 3;
    pith_image_header header = { .width = jpeg->image_width,
                                 .height = jpeg->image_height,
                                 .channels = channels,
                                 .meaning = channels };
    jpeg_details(&header, s);
    uint8_t *to = s->call->begin(s->call, &header);
    if (!to) jpeg_leave(s, PITH_IMAGE_REFUSED);
    if (ink && !(s->row = malloc((size_t)header.width * 4))) jpeg_leave(s, PITH_IMAGE_NO_MEMORY);
    s->most_scans = jpeg_most_scans((uint64_t)header.width * header.height);
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = ink ? s->row : to;
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1) continue;
        if (ink) jpeg_row_from_cmyk(to, s->row, header.width, jpeg->saw_Adobe_marker);
        to += (size_t)header.width * channels;
    }
    /* Whether scans are missing is told by the end marker alone. */
    if (s->at_end && jpeg_has_multiple_scans(jpeg))
        jpeg_leave(s, pith__codec_fail(s->call, PITH_IMAGE_DAMAGED, "it is cut off"));
}

pith_image_outcome pith__jpeg_decode(pith_image_call *call) {
    jpeg_state *s = calloc(1, sizeof *s);
    if (!s) return PITH_IMAGE_NO_MEMORY;
    s->call = call;
    s->jpeg.err = jpeg_std_error(&s->errors);
    s->errors.error_exit = jpeg_error_exit;
    s->errors.emit_message = jpeg_emit_message;
    s->errors.output_message = jpeg_output_message;
    s->progress.progress_monitor = jpeg_monitor;
    s->source = (struct jpeg_source_mgr){ .next_input_byte = call->data,
                                          .bytes_in_buffer = call->size,
                                          .init_source = jpeg_source_nothing,
                                          .fill_input_buffer = jpeg_source_fill,
                                          .skip_input_data = jpeg_source_skip,
                                          .resync_to_restart = jpeg_resync_to_restart,
                                          .term_source = jpeg_source_nothing };
    if (!setjmp(s->leave)) jpeg_run(s);
    jpeg_destroy_decompress(&s->jpeg);
    pith_image_outcome outcome = s->outcome;
    free(s->row);
    free(s->profile);
    free(s);
    return outcome;
}
