/* processor_class.c - the image processors of transformers 4.57 as rows: what each does unless its
 * file says otherwise. */
#include "base/str.h"
#include "images/processor.h"

#define HALF                                                                                       \
    { 0.5f, 0.5f, 0.5f }
#define IMAGENET_MEAN                                                                              \
    { 0.485f, 0.456f, 0.406f }
#define IMAGENET_STD                                                                               \
    { 0.229f, 0.224f, 0.225f }
#define CLIP_MEAN                                                                                  \
    { 0.48145466f, 0.4578275f, 0.40821073f }
#define CLIP_STD                                                                                   \
    { 0.26862954f, 0.26130258f, 0.27577711f }
#define BOTH(n)                                                                                    \
    { n, n, 0, 0 }
#define EDGE(n)                                                                                    \
    { 0, 0, n, 0 }
/* Pillow's numbers. */
enum { NEAREST = 0, BILINEAR = 2, BICUBIC = 3 };

/* name, rule, size, resample, crop, do_crop, mean, std, normalizes, flips, offsets */
static const pith__processor_class classes[] = {
    { "Beit", PITH_SIZE_EXACT, BOTH(256), BICUBIC, 224, true, HALF, HALF, true, false, false },
    { "Bit", PITH_SIZE_EDGE, EDGE(224), BICUBIC, 224, true, CLIP_MEAN, CLIP_STD, true, false,
      false },
    { "Blip", PITH_SIZE_EXACT, BOTH(384), BICUBIC, 0, false, CLIP_MEAN, CLIP_STD, true, false,
      false },
    { "CLIP", PITH_SIZE_EDGE, EDGE(224), BICUBIC, 224, true, CLIP_MEAN, CLIP_STD, true, false,
      false },
    { "ChineseCLIP", PITH_SIZE_BOTH, EDGE(224), BICUBIC, 224, true, CLIP_MEAN, CLIP_STD, true,
      false, false },
    { "ConvNext", PITH_SIZE_CONVNEXT, EDGE(384), BILINEAR, 0, false, HALF, HALF, true, false,
      false },
    { "DeiT", PITH_SIZE_EXACT, BOTH(256), BICUBIC, 224, true, HALF, HALF, true, false, false },
    { "EfficientNet", PITH_SIZE_EXACT, BOTH(346), NEAREST, 289, false, HALF, HALF, true, false,
      true },
    { "Levit", PITH_SIZE_LEVIT, EDGE(224), BICUBIC, 224, true, IMAGENET_MEAN, IMAGENET_STD, true,
      false, false },
    { "MobileNetV1", PITH_SIZE_EDGE, EDGE(256), BILINEAR, 224, true, HALF, HALF, true, false,
      false },
    { "MobileNetV2", PITH_SIZE_EDGE, EDGE(256), BILINEAR, 224, true, HALF, HALF, true, false,
      false },
    { "MobileViT", PITH_SIZE_EDGE, EDGE(224), BILINEAR, 256, true, HALF, HALF, false, true, false },
    { "Pvt", PITH_SIZE_EXACT, BOTH(224), BILINEAR, 0, false, IMAGENET_MEAN, IMAGENET_STD, true,
      false, false },
    { "Siglip", PITH_SIZE_BOTH, BOTH(224), BICUBIC, 0, false, HALF, HALF, true, false, false },
    { "ViT", PITH_SIZE_EXACT, BOTH(224), BILINEAR, 0, false, HALF, HALF, true, false, false },
};

/* As transformers' table of automatic classes has it. */
static const char *const models[][2] = {
    { "aimv2", "CLIP" },
    { "aimv2_vision_model", "CLIP" },
    { "align", "EfficientNet" },
    { "beit", "Beit" },
    { "bit", "Bit" },
    { "blip", "Blip" },
    { "chinese_clip", "ChineseCLIP" },
    { "clip", "CLIP" },
    { "clipseg", "ViT" },
    { "convnext", "ConvNext" },
    { "convnextv2", "ConvNext" },
    { "cvt", "ConvNext" },
    { "data2vec-vision", "Beit" },
    { "deit", "DeiT" },
    { "dinat", "ViT" },
    { "dinov2", "Bit" },
    { "efficientnet", "EfficientNet" },
    { "focalnet", "Bit" },
    { "groupvit", "CLIP" },
    { "hiera", "Bit" },
    { "ijepa", "ViT" },
    { "levit", "Levit" },
    { "metaclip_2", "CLIP" },
    { "mlcd", "CLIP" },
    { "mobilenet_v1", "MobileNetV1" },
    { "mobilenet_v2", "MobileNetV2" },
    { "mobilevit", "MobileViT" },
    { "mobilevitv2", "MobileViT" },
    { "nat", "ViT" },
    { "pvt", "Pvt" },
    { "pvt_v2", "Pvt" },
    { "regnet", "ConvNext" },
    { "resnet", "ConvNext" },
    { "siglip", "Siglip" },
    { "swiftformer", "ViT" },
    { "swin", "ViT" },
    { "swinv2", "ViT" },
    { "van", "ConvNext" },
    { "vit", "ViT" },
    { "vit_mae", "ViT" },
    { "vit_msn", "ViT" },
};

const pith__processor_class *pith__processor_class_find(pith_str name) {
    static const char *const endings[] = { "ImageProcessorFast", "ImageProcessorPil",
                                           "ImageProcessor", "FeatureExtractor" };
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t n = strlen(endings[i]);
        if (name.size <= n || memcmp(name.data + name.size - n, endings[i], n)) continue;
        name.size -= n;
        break;
    }
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (pith__str_is(name, classes[i].name)) return &classes[i];
    return NULL;
}

const pith__processor_class *pith__processor_class_of_model(pith_str model_type) {
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (pith__str_is(model_type, models[i][0]))
            return pith__processor_class_find(pith__str_of(models[i][1]));
    return NULL;
}
