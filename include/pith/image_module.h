/* pith/image_module.h - what a module of decoders gives libpith.
 *
 * libpith_image.so is such a module. It exports one symbol, pith_image_codecs, and knows only this
 * header of libpith. A decoder reads the header of a picture, calls `begin` with its size,
 * and writes rows to the memory it gets. So libpith alone decides on limits and memory. Decoders
 * keep no state; any number of threads may decode at once. */
#ifndef PITH_IMAGES_DECODER_MODULE_H
#define PITH_IMAGES_DECODER_MODULE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when anything in this header changes. libpith loads modules of its own number only. */
#define PITH_IMAGE_MODULE_ABI 4

typedef struct pith_image_header {
    uint32_t width, height;
    uint32_t channels;    /* of the rows that follow: 1 grey, 3 RGB, 4 RGB and alpha that is not
                             premultiplied */
    uint32_t meaning;     /* channels that say something: 1 or 3 if rows of 4 channels repeat grey
                             or have no alpha */
    uint32_t orientation; /* as in EXIF, 1 to 8; 0 if the file has none */
    /* What else the file says; zeros if it says nothing. The memory is the decoder's, and is read
     * before begin returns. */
    const uint8_t *profile; /* [profile_size], the ICC profile as it is stored */
    size_t profile_size;
    double dots[2];      /* per inch, along the stored rows and across them */
    const char *colours; /* what it says of its colours in another way than by a profile: "its ...";
                            NULL: nothing */
} pith_image_header;

typedef enum pith_image_outcome {
    PITH_IMAGE_DECODED = 0,
    PITH_IMAGE_DAMAGED = 1, /* message says what is wrong */
    PITH_IMAGE_UNKNOWN = 2, /* a kind of the format that the decoder does not know; message says
                               which */
    PITH_IMAGE_NO_MEMORY = 3,
    PITH_IMAGE_REFUSED = 4, /* begin returned NULL, or write something else than 0 */
    PITH_IMAGE_STOPPED = 5  /* stops said so */
} pith_image_outcome;

typedef struct pith_image_call {
    const uint8_t *data;
    size_t size;
    uint64_t max_pixels; /* begin refuses more; decoders bound memory of their own by it */
    /* Room for height rows of width * channels bytes without gaps, not cleared; NULL: refused.
     * Called once at most. */
    uint8_t *(*begin)(struct pith_image_call *call, const pith_image_header *header);
    /* Non-zero: the picture is no longer needed, and the decoder returns PITH_IMAGE_STOPPED. The
     * decoder calls it every millisecond or so, between rows, strips or tiles, on the calling
     * thread; it is quick. NULL: the picture is needed in any case. */
    int (*stops)(struct pith_image_call *call);
    void *user;
    char message[200]; /* one line, set by the decoder if it fails; else "" */
} pith_image_call;

/* A picture to be written. */
typedef struct pith_image_encode_call {
    const uint8_t *pixels; /* [height, width, channels] without gaps */
    uint32_t width, height;
    uint32_t channels;      /* one of the codec's */
    int32_t quality;        /* 1 to 100, of formats that lose something */
    const uint8_t *profile; /* [profile_size], an ICC profile for so many channels; NULL: none */
    size_t profile_size;
    double dots[2]; /* per inch, across and down; 0: not said */
    /* Takes the next bytes of the file; non-zero ends the call with PITH_IMAGE_REFUSED. */
    int (*write)(struct pith_image_encode_call *call, const void *data, size_t size);
    int (*stops)(struct pith_image_encode_call *call); /* as in pith_image_call */
    void *user;
    char message[200]; /* one line, set by the encoder if it fails; else "" */
} pith_image_encode_call;

typedef struct pith_image_codec {
    const char *format; /* "JPEG", "PNG", "WebP", "TIFF", "JPEG 2000" */
    pith_image_outcome (*decode)(pith_image_call *call);
    /* PITH_IMAGE_UNKNOWN: the format cannot hold a picture of this size. NULL: the format is not
     * written. */
    pith_image_outcome (*encode)(pith_image_encode_call *call);
    uint32_t encodes; /* bit n: it writes pictures of n channels */
} pith_image_codec;

typedef struct pith_image_module {
    uint32_t abi;        /* PITH_IMAGE_MODULE_ABI */
    const char *version; /* of libpith the module was built with */
    const pith_image_codec *codecs;
    size_t codec_count;
} pith_image_module;

/* What libpith_image.so exports and libpith looks up; in libpith_image.a it has the same name. */
extern const pith_image_module pith_image_codecs;

#ifdef __cplusplus
}
#endif

#endif
