/* jpeg_write.c - JPEG by libjpeg-turbo: baseline, colours sampled at half size below quality 90.
 *
 * The file is made in memory, which takes less than the picture. Errors come by longjmp, as in
 * jpeg.c. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "codec.h"

/* A profile is cut into so many markers of so many bytes. */
enum { PROFILE_MOST = 255 * 65519, FILE_FIRST = 1 << 16 };

typedef struct jpeg_writer {
    struct jpeg_error_mgr errors; /* first: libjpeg hands out pointers to it */
    struct jpeg_compress_struct jpeg;
    struct jpeg_destination_mgr to;
    pith_image_encode_call *call;
    pith_image_outcome outcome;
    unsigned char *file; /* capacity bytes, of which size are the file in the end */
    size_t capacity, size;
    jmp_buf leave;
} jpeg_writer;

static void jpeg_write_exit(j_common_ptr info) {
    jpeg_writer *s = (jpeg_writer *)(void *)info->err;
    char text[JMSG_LENGTH_MAX];
    s->errors.format_message(info, text);
    snprintf(s->call->message, sizeof s->call->message, "%s", text);
    s->outcome =
        s->errors.msg_code == JERR_OUT_OF_MEMORY ? PITH_IMAGE_NO_MEMORY : PITH_IMAGE_UNKNOWN;
    longjmp(s->leave, 1);
}

static void jpeg_write_message(j_common_ptr info) { (void)info; }

/* ---- the file in memory: libjpeg's own loses its memory where the call ends early ---- */

static jpeg_writer *jpeg_writer_of(j_compress_ptr jpeg) { return (jpeg_writer *)(void *)jpeg->err; }

static void jpeg_write_offer(jpeg_writer *s, size_t from) {
    s->to.next_output_byte = s->file + from;
    s->to.free_in_buffer = s->capacity - from;
}

static void jpeg_write_begin(j_compress_ptr jpeg) { jpeg_write_offer(jpeg_writer_of(jpeg), 0); }

/* Called when all of the memory is full. */
static boolean jpeg_write_grow(j_compress_ptr jpeg) {
    jpeg_writer *s = jpeg_writer_of(jpeg);
    unsigned char *grown = s->capacity > SIZE_MAX / 2 ? NULL : realloc(s->file, 2 * s->capacity);
    if (!grown) {
        s->outcome = PITH_IMAGE_NO_MEMORY;
        longjmp(s->leave, 1);
    }
    const size_t full = s->capacity;
    s->file = grown;
    s->capacity = 2 * full;
    jpeg_write_offer(s, full);
    return TRUE;
}

static void jpeg_write_end(j_compress_ptr jpeg) {
    jpeg_writer *s = jpeg_writer_of(jpeg);
    s->size = s->capacity - s->to.free_in_buffer;
}

static void jpeg_write_run(jpeg_writer *s) {
    const pith_image_encode_call *call = s->call;
    jpeg_create_compress(&s->jpeg);
    s->to.init_destination = jpeg_write_begin;
    s->to.empty_output_buffer = jpeg_write_grow;
    s->to.term_destination = jpeg_write_end;
    s->jpeg.dest = &s->to;
    s->jpeg.image_width = call->width;
    s->jpeg.image_height = call->height;
    s->jpeg.input_components = (int)call->channels;
    s->jpeg.in_color_space = call->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&s->jpeg);
    jpeg_set_quality(&s->jpeg, call->quality, TRUE);
    if (call->quality >= 90 && call->channels == 3)
        s->jpeg.comp_info[0].h_samp_factor = s->jpeg.comp_info[0].v_samp_factor = 1;
    if (call->dots[0] > 0 && call->dots[1] > 0 && call->dots[0] < 65535 && call->dots[1] < 65535) {
        s->jpeg.density_unit = 1;
        s->jpeg.X_density = (UINT16)(call->dots[0] + 0.5);
        s->jpeg.Y_density = (UINT16)(call->dots[1] + 0.5);
    }
    jpeg_start_compress(&s->jpeg, TRUE);
    if (call->profile)
        jpeg_write_icc_profile(&s->jpeg, call->profile, (unsigned)call->profile_size);
    while (s->jpeg.next_scanline < call->height) {
        if (pith__encode_stops_at(s->call, s->jpeg.next_scanline)) {
            s->outcome = PITH_IMAGE_STOPPED;
            longjmp(s->leave, 1);
        }
        JSAMPROW row = (JSAMPROW)(uintptr_t)(call->pixels + (size_t)s->jpeg.next_scanline *
                                                                call->width * call->channels);
        jpeg_write_scanlines(&s->jpeg, &row, 1);
    }
    jpeg_finish_compress(&s->jpeg);
}

pith_image_outcome pith__jpeg_encode(pith_image_encode_call *call) {
    if (call->profile_size > PROFILE_MOST) {
        snprintf(call->message, sizeof call->message, "its colour profile is larger than %d bytes",
                 PROFILE_MOST);
        return PITH_IMAGE_UNKNOWN;
    }
    jpeg_writer *s = calloc(1, sizeof *s);
    if (!s) return PITH_IMAGE_NO_MEMORY;
    s->file = malloc(FILE_FIRST);
    if (!s->file) {
        free(s);
        return PITH_IMAGE_NO_MEMORY;
    }
    s->capacity = FILE_FIRST;
    s->call = call;
    s->jpeg.err = jpeg_std_error(&s->errors);
    s->errors.error_exit = jpeg_write_exit;
    s->errors.output_message = jpeg_write_message;
    if (!setjmp(s->leave)) jpeg_write_run(s);
    jpeg_destroy_compress(&s->jpeg);
    pith_image_outcome outcome = s->outcome;
    if (!outcome && call->write(call, s->file, s->size)) outcome = PITH_IMAGE_REFUSED;
    free(s->file);
    free(s);
    return outcome;
}
