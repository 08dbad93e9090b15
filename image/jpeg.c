/* jpeg.c - JPEG by libjpeg-turbo: baseline and progressive, grey, YCbCr, RGB, CMYK and YCCK.
 *
 * libjpeg reports errors by longjmp; all that is live across it is in `jpeg_state`. A file that ends too early is an
 * error only if bits were missing: some lack nothing but their end marker. Memory beyond that of libjpeg is one row. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "codec.h"

/* Scans of a progressive file. Encoders write about ten; each may cost as much time as the whole picture. */
enum { MAX_SCANS = 100 };

typedef struct jpeg_state {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    pith_image_call *call;
    pith_image_outcome outcome;
    uint8_t *row;    /* of CMYK */
    JOCTET *profile; /* from malloc */
    int at_end;      /* the source has given its last byte */
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
    jpeg_leave(s, pith_codec_fail(s->call, PITH_IMAGE_DAMAGED, "%s", text));
}

static void jpeg_emit_message(j_common_ptr info, int level) {
    jpeg_state *s = (jpeg_state *)(void *)info->err;
    if (level < 0 && s->at_end && s->errors.msg_code == JWRN_HIT_MARKER)
        jpeg_leave(s, pith_codec_fail(s->call, PITH_IMAGE_DAMAGED, "it is cut off"));
}

static void jpeg_output_message(j_common_ptr info) { (void)info; }

static void jpeg_monitor(j_common_ptr info) {
    jpeg_state *s = (jpeg_state *)(void *)info->err;
    if (s->jpeg.input_scan_number > MAX_SCANS)
        jpeg_leave(s, pith_codec_fail(s->call, PITH_IMAGE_UNKNOWN, "it has more than %d scans", MAX_SCANS));
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
            rgb[c] = (uint8_t)(white - pith_mul255(ink, white));
        }
    }
}

/* JFIF's resolution counts before that of EXIF. */
static void jpeg_details(pith_image_header *header, jpeg_state *s) {
    struct jpeg_decompress_struct *jpeg = &s->jpeg;
    unsigned size = 0;
    if (jpeg->saw_JFIF_marker && (jpeg->density_unit == 1 || jpeg->density_unit == 2)) {
        const double unit = jpeg->density_unit == 1 ? 1 : 2.54;
        header->dots[0] = jpeg->X_density * unit;
        header->dots[1] = jpeg->Y_density * unit;
    }
    for (jpeg_saved_marker_ptr m = jpeg->marker_list; m; m = m->next)
        if (m->data_length > 6 && !memcmp(m->data, "Exif\0", 6)) {
            pith_exif_read(header, m->data, m->data_length);
            break;
        }
    for (jpeg_saved_marker_ptr m = jpeg->marker_list; m; m = m->next)
        if (m->data_length >= 14 && !memcmp(m->data, "ICC_PROFILE", 12))
            header->colours = "its colour profile is damaged";
    if (!header->colours || !jpeg_read_icc_profile(jpeg, &s->profile, &size)) return;
    header->colours = NULL;
    header->profile = s->profile;
    header->profile_size = size;
}

static void jpeg_run(jpeg_state *s) {
    struct jpeg_decompress_struct *jpeg = &s->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg->src = &s->source;
    jpeg->progress = &s->progress;
    jpeg_save_markers(jpeg, JPEG_APP0 + 1, 0xFFFF); /* EXIF */
    jpeg_save_markers(jpeg, JPEG_APP0 + 2, 0xFFFF); /* the profile */
    jpeg_read_header(jpeg, TRUE);
    int ink = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
    int grey = jpeg->jpeg_color_space == JCS_GRAYSCALE;
    jpeg->out_color_space = ink ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    uint32_t channels = grey ? 1 : 3;
    pith_image_header header = {
        .width = jpeg->image_width, .height = jpeg->image_height, .channels = channels, .meaning = channels
    };
    jpeg_details(&header, s);
    uint8_t *to = s->call->begin(s->call, &header);
    if (!to) jpeg_leave(s, PITH_IMAGE_REFUSED);
    if (ink && !(s->row = malloc((size_t)header.width * 4))) jpeg_leave(s, PITH_IMAGE_NO_MEMORY);
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = ink ? s->row : to;
        if (jpeg_read_scanlines(jpeg, &row, 1) != 1) continue;
        if (ink) jpeg_row_from_cmyk(to, s->row, header.width, jpeg->saw_Adobe_marker);
        to += (size_t)header.width * channels;
    }
    /* Whether scans are missing is told by the end marker alone. */
    if (s->at_end && jpeg_has_multiple_scans(jpeg))
        jpeg_leave(s, pith_codec_fail(s->call, PITH_IMAGE_DAMAGED, "it is cut off"));
}

pith_image_outcome pith_jpeg_decode(pith_image_call *call) {
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
