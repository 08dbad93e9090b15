/* pith/image.h - pictures: decode them, resize them with Pillow's numbers, and make the input of an
 * image model.
 *
 *     pith_image picture;
 *     pith_image_processor *processor;
 *     if (pith_image_read(&picture, "cat.jpg", NULL, &err)) puts(err.message);
 *     if (pith_image_processor_open(&processor, "clip-vit-base-patch32", NULL, &err))
 *         puts(err.message);
 *     pith_image_process(pixel_values, processor, &picture, NULL, &err);
 *
 * The rules of pith.h hold here too. All functions may be called by several threads at once. JPEG,
 * PNG, WebP, TIFF, JPEG 2000 and GIF are decoded by a module, libpith_image.so, that is loaded when
 * the first such picture is decoded. HEIC and AVIF have libpith_heif.so, which needs libheif. BMP
 * and PNM need no module. */
#ifndef PITH_IMAGE_H
#define PITH_IMAGE_H

#include "pith/call.h"
#include <pith/pith.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pictures ---- */

/* 8 bits per channel. The caller may also fill it himself; the functions that get a picture only
 * read it. */
typedef struct pith_image {
    uint8_t *pixels;                 /* [height, width, channels] without gaps, the top row first */
    int32_t width, height;           /* in pixels, at least 1 */
    int32_t channels;                /* 1: grey, 3: RGB, 4: RGB and alpha, not premultiplied */
    const pith_allocator *allocator; /* of pixels; NULL: the library's own, as far as
                                        pith_image_free is concerned */
} pith_image;

/* Frees the pixels of a picture that the library filled and sets it to zeros. NULL and zeros are
 * allowed. */
PITH_API void pith_image_free(pith_image *image);

#define PITH_IMAGE_MAX_PIXELS 100000000

/* What a file says of its picture in addition to the pixels. Pixels are never changed by it. */
typedef struct pith_image_details {
    size_t size;
    int32_t channels; /* of the file: 1 grey, 3 RGB, 4 with alpha; whatever was asked for */
    uint8_t *profile; /* [profile_size], the ICC colour profile as it is stored; NULL: there is
                         none */
    size_t profile_size;
    int32_t profile_channels; /* of pixels that the profile is for: 1 grey, 3 RGB (with alpha or
                                 without); 0: others, as CMYK, which no decoded picture has */
    double dots[2];           /* per inch, along the picture's width and height; 0: not said */
    char colours[128];        /* what the file says of its colours in another way than by a profile,
                                 or "its colour profile is damaged"; "": nothing */
    const pith_allocator *allocator; /* of profile; NULL: the library's own */
} pith_image_details;

#define PITH_IMAGE_DETAILS_INIT PITH_SIZED_INIT(pith_image_details)

/* Frees the profile that the library filled in; the rest becomes that of PITH_IMAGE_DETAILS_INIT.
 * NULL is allowed. */
PITH_API void pith_image_details_free(pith_image_details *details);

/* In the context, allocator and the ways to stop have an effect. Decoders look between rows, strips
 * and tiles. What their libraries do in one piece is not ended: a strip or tile of TIFF, a tile of
 * JPEG 2000, a picture of HEIC or AVIF, a frame of an animated WebP. */
typedef struct pith_image_options {
    pith_call call;
    int32_t channels;         /* 1, 3, 4: that many; 0: 1 if the file is grey, 4 if it has
                                 transparency, else 3 */
    int32_t keep_orientation; /* 0: the picture is turned upright by its EXIF or TIFF tag; 1: it is
                                 left as it is */
    uint64_t max_pixels;      /* width * height may not be larger; 0: PITH_IMAGE_MAX_PIXELS */
    const char *module_path;  /* libpith_image.so, or the folder it is in; libpith_heif.so lies
                                next to it. NULL: they are searched in the folder of the library (or
                                of the program that contains it), in ../lib from there, and in the
                                folder that libraries were installed to */
    pith_image_details *details; /* receives the profile and the resolution; pith_image_details_free
                                    frees it. If the call fails, there is nothing in it. NULL: they
                                    are not needed */
} pith_image_options;

#define PITH_IMAGE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_image_options)

/* Decodes a picture. The contents decide the format: JPEG, PNG, WebP, TIFF, JPEG 2000, GIF,
 * HEIC, AVIF, BMP or PNM.
 *   - 16 bits per channel become the upper 8. (Pillow cuts 16-bit grey off at 255 instead.)
 *     Palettes are looked up. CMYK becomes RGB without a colour profile. Profiles are handed out in
 *     options->details and change no pixel.
 *   - Converted to RGB, a picture loses its alpha. Grey is ITU-R 601-2 luma. Both are as in Pillow.
 *   - In a file with several frames or pages the first is decoded.
 *   - The size is checked before memory for pixels is allocated. Decoders themselves need up to 8
 *     bytes per pixel of their own, those of JPEG 2000, HEIC and AVIF up to 32.
 *   - HEIC and AVIF are turned by boxes of their own, whatever keep_orientation says.
 * PITH_ERR_ARGUMENT: more pixels than max_pixels. PITH_ERR_FORMAT: damaged or cut off.
 * PITH_ERR_UNSUPPORTED: another format, or a kind of it that the decoder does not know, or a module
 * that cannot be used. PITH_ERR_NOT_FOUND: there is no module; the message says where it was
 * searched and what to install. */
PITH_API pith_status pith_image_decode(pith_image *image, const void *data, size_t size,
                                       const pith_image_options *options, pith_error *err);
/* The same from a file. */
PITH_API pith_status pith_image_read(pith_image *image, const char *path,
                                     const pith_image_options *options, pith_error *err);

/* In the context, the ways to stop have an effect. Lossless WebP is ended only between the few
 * steps of its library. */
typedef struct pith_image_encode_options {
    pith_call call;
    const char *format;                /* "jpeg", "png" or "webp"; NULL: "png" */
    int32_t quality;                   /* of JPEG and WebP, 1 to 100; 100 is WebP without loss. 0:
                                          90 */
    const char *module_path;           /* as in pith_image_options */
    const pith_image_details *details; /* its profile and dots are written; NULL: none are */
} pith_image_encode_options;

#define PITH_IMAGE_ENCODE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_image_encode_options)

/* Writes a picture as a file of this format. JPEG loses alpha; grey becomes RGB in WebP. No
 * orientation is written. WebP has the resolution as EXIF.
 * PITH_ERR_UNSUPPORTED: the format, or a picture that is too large for it. PITH_ERR_ARGUMENT: a
 * profile for other channels than those that are written. */
PITH_API pith_status pith_image_encode(const pith_image *image,
                                       const pith_image_encode_options *options,
                                       const pith_writer *writer, pith_error *err);

/* ---- resizing ---- */

/* Behind the default, the numbers are those of Pillow, and of "resample" in
 * preprocessor_config.json, plus 1. */
typedef enum pith_image_filter {
    PITH_IMAGE_FILTER_DEFAULT = 0, /* bicubic */
    PITH_IMAGE_NEAREST = 1,
    PITH_IMAGE_LANCZOS = 2,
    PITH_IMAGE_BILINEAR = 3,
    PITH_IMAGE_BICUBIC = 4,
    PITH_IMAGE_BOX = 5,
    PITH_IMAGE_HAMMING = 6
} pith_image_filter;

/* The size of the result is given in one of three ways: width and height; shortest_edge, with
 * longest_edge as a limit of the other edge if it is not 0; longest_edge alone. Edges keep the
 * picture's proportions: the other edge is rounded down, as in transformers. In the context,
 * allocator and the ways to stop have an effect. */
typedef struct pith_image_resize_options {
    pith_call call;
    int32_t width, height;
    int32_t shortest_edge, longest_edge;
    int32_t filter;      /* a pith_image_filter */
    uint64_t max_pixels; /* of the result; 0: PITH_IMAGE_MAX_PIXELS */
} pith_image_resize_options;

#define PITH_IMAGE_RESIZE_OPTIONS_INIT PITH_OPTIONS_INIT(pith_image_resize_options)

/* Resizes image to a new picture of as many channels. The bytes are those of Image.resize of Pillow
 * 13: when a picture becomes smaller, the filter becomes wider, so that nothing is skipped (except
 * for NEAREST). Earlier versions of Pillow differ by rounding where the height loses more than
 * twice as many pixels as the width. */
PITH_API pith_status pith_image_resize(pith_image *resized, const pith_image *image,
                                       const pith_image_resize_options *options, pith_error *err);

/* The middle width by height pixels of image as a new picture. Where image is smaller, zeros
 * surround it. If the difference of sizes is odd, the cut or the padding is that of transformers.
 * In call, which may be NULL, allocator and the ways to stop have an effect. */
PITH_API pith_status pith_image_center_crop(pith_image *cropped, const pith_image *image,
                                            int32_t width, int32_t height, const pith_call *call,
                                            pith_error *err);

/* ---- the input of a model ---- */

/* What a preprocessor_config.json says: how pictures are resized, cropped, rescaled and normalised.
 * Immutable. */
typedef struct pith_image_processor pith_image_processor;

/* path: a folder with preprocessor_config.json, or with processor_config.json whose image_processor
 * wins over it, as in transformers 5; or one of these files. The steps are those of the class that
 * the file names in image_processor_type, in its form that uses Pillow. Where no class is named,
 * config.json of the same folder names the model and so the class. A class that is not known, and a
 * key that none of the known classes has, are errors that name it. allocator: NULL is the library's
 * own; must outlive the processor. */
PITH_API pith_status pith_image_processor_open(pith_image_processor **processor, const char *path,
                                               const pith_allocator *allocator, pith_error *err);
PITH_API void pith_image_processor_close(pith_image_processor *processor); /* NULL is allowed */

/* Sets dims to channels, height and width of what pith_image_process makes of a picture of this
 * size. Most processors make the same of any size. */
PITH_API pith_status pith_image_processor_shape(int64_t dims[3],
                                                const pith_image_processor *processor,
                                                int32_t width, int32_t height, pith_error *err);

/* One picture as a model needs it. pixel_values: float[3, height, width], the sizes being those of
 * pith_image_processor_shape. image may have 1, 3 or 4 channels. In call, which may be NULL, the
 * three ways to end it have an effect. */
PITH_API pith_status pith_image_process(float *pixel_values, const pith_image_processor *processor,
                                        const pith_image *image, const pith_call *call,
                                        pith_error *err);

/* ---- vectors ---- */

/* In the call context, only log and allocator have no effect; they are the model's. progress
 * reports "pictures". */
typedef struct pith_embed_images_options {
    pith_call call;
    int32_t pooling;   /* a pith_pooling. PITH_POOLING_MODEL: what the model pools itself
                          (image_embeds, pooler_output), or its modules.json; else the first row of
                          last_hidden_state, the class token. Any other value pools these rows */
    int32_t normalize; /* a pith_choice: whether vectors are scaled to length 1 (L2) */
    int32_t dim;       /* keep the first dim components, then normalise; 0: keep all */
    const pith_image_processor *processor; /* NULL: that of the model's directory */
    pith_error *failures; /* [count], the caller's: receives what is wrong with each picture, code
                             PITH_OK for those that have their vector. A bad picture then does not
                             end the call. NULL: it does */
} pith_embed_images_options;

#define PITH_EMBED_IMAGES_OPTIONS_INIT PITH_OPTIONS_INIT(pith_embed_images_options)

/* Sets *dim to the number of components of a picture's vector. PITH_ERR_UNSUPPORTED if the model
 * cannot embed pictures. Thread-safe. */
PITH_API pith_status pith_embed_images_dim(size_t *dim, const pith_model *model,
                                           const pith_embed_images_options *options,
                                           pith_error *err);

/* Writes one vector per picture to vectors: float[count][dim], row-major, owned by the caller; dim
 * is that of pith_embed_images_dim. Pictures go through the processor of the model's directory and
 * the part of the model that reads pixels: CLIP and SigLIP (image_embeds), ViT and ResNet
 * (pooler_output), or any ONNX file with an input [batch, 3, height, width]. A picture's vector has
 * the same bits whatever the other pictures and the number of threads are.
 *   - Without options->failures an error names the first bad picture by its index; vectors are then
 *     unspecified.
 *   - With it a bad picture (not filled, too large, of a size that the model does not accept) has
 *     its error there and NaN in its row; the others have their vectors, and the call returns
 *     PITH_OK. A call that is cancelled, runs out of memory or cannot begin fails as a whole, with
 *     vectors and failures unspecified.
 * Any number of threads may call this on one model at once. */
PITH_API pith_status pith_embed_images(float *vectors, const pith_model *model,
                                       const pith_image *images, size_t count,
                                       const pith_embed_images_options *options, pith_error *err);

/* ---- modules ---- */

/* Uses this module (pith/image_module.h) for pictures decoded from now on, instead of searching
 * one; NULL: searches again. For programs that link libpith.a and libpith_image.a:
 * pith_image_register(&pith_image_codecs, &err). Wrong interface: PITH_ERR_UNSUPPORTED. */
struct pith_image_module;
PITH_API pith_status pith_image_register(const struct pith_image_module *module, pith_error *err);

#ifdef __cplusplus
}
#endif

#endif
