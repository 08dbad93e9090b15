#!/usr/bin/env python3
"""Writes tests/data/vision: tiny models of pictures, and of pictures and texts, with random weights, and their vectors.

usage: make_vision.py      (needs torch, transformers 4.57.1, Pillow, tokenizers; see ORIGIN.md)
Each directory is as from_pretrained wants it. images.f32 has a row for each of PICTURES, texts.f32 one for each of
TEXTS, each computed alone: get_image_features (in double precision) and get_text_features, or pooler_output; rows.f32
has the mean of last_hidden_state.
"""
import json
import pathlib
import shutil
import warnings

import numpy as np
import torch
import transformers as tf
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

HERE = pathlib.Path(__file__).resolve().parent.parent / "data"
OUT = HERE / "vision"
PICTURES = ("rgb.png", "palette.png", "rgb.bmp", "grey.pgm", "rgba.png")
TEXTS = ("w5 w6 w7", "", "w94", " ".join(f"w{5 + i * 7 % 80}" for i in range(40)), "w9 w9 unknown w8")
VOCAB, START, END, PAD, LENGTH, IMAGE, PATCH = 96, 2, 95, 1, 16, 24, 8
warnings.filterwarnings("ignore")
tf.logging.set_verbosity_error()


def tokenizer(start):
    vocab = {"u": 4, "p": PAD, "s": START, "e": END} | {f"w{i}": i for i in range(5, END)}
    t = Tokenizer(models.WordLevel(vocab, unk_token="u"))
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    frame = "s $A e" if start else "$A e"
    t.post_processor = processors.TemplateProcessing(single=frame, special_tokens=[("s", START), ("e", END)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="p", unk_token="u", model_max_length=LENGTH)


def text_sizes(**more):
    return dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=LENGTH, pad_token_id=PAD, bos_token_id=START) | more


def vision_sizes(**more):
    return dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=IMAGE,
                patch_size=PATCH) | more


def noise(model):
    """Weights that are not all near zero, and norms that are not the identity."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.15 + (1 if "norm" in name and "weight" in name else 0))
        for name, p in model.named_buffers():
            if "running_mean" in name:
                p.copy_(torch.randn(p.shape, generator=generator) * 0.1)
            if "running_var" in name:
                p.copy_(torch.rand(p.shape, generator=generator) + 0.5)
    return model.eval()


def save(name, model, processor, words=None, call=None, text=None, rows=False):
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    noise(model).save_pretrained(folder)
    if processor:
        processor.save_pretrained(folder)
        pictures = [Image.open(HERE / "images" / p).convert("RGB") for p in PICTURES]
        # fp16 and bf16 are not involved: pixels are f32, the network is double
        pixels = [torch.from_numpy(np.array(processor(p, return_tensors="np")["pixel_values"])) for p in pictures]
        with torch.no_grad():
            double = model.double()
            vectors = [call(double, p.double()).reshape(1, -1) for p in pixels]
            np.concatenate([v.numpy() for v in vectors]).astype("<f4").tofile(folder / "images.f32")
            if rows:
                means = [double(p.double()).last_hidden_state.mean(1) for p in pixels]
                np.concatenate([v.numpy() for v in means]).astype("<f4").tofile(folder / "rows.f32")
    if words:
        words.save_pretrained(folder)
        out = []
        for t in TEXTS:
            ids = words(t, return_tensors="pt", truncation=True, padding="max_length" if text[1] else False)
            ids.pop("token_type_ids", None)
            if text[1]:
                ids.pop("attention_mask")
            with torch.no_grad():
                out.append(text[0](model.float(), **ids).numpy())  # transformers' causal mask is for f32
        np.concatenate(out).astype("<f4").tofile(folder / "texts.f32")
    for extra in ("special_tokens_map.json",):
        (folder / extra).unlink(missing_ok=True)


def main():
    small = dict(size={"shortest_edge": IMAGE}, crop_size={"height": IMAGE, "width": IMAGE})
    clip_processor = tf.CLIPImageProcessor(**small)
    square = dict(size={"height": IMAGE, "width": IMAGE})
    image = lambda m, p: m.get_image_features(pixel_values=p)
    words = lambda m, **ids: m.get_text_features(**ids)
    # eos_token_id 2, as OpenAI's files have it
    config = tf.CLIPConfig(text_config=text_sizes(eos_token_id=2), vision_config=vision_sizes(), projection_dim=12)
    save("clip", tf.CLIPModel(config), clip_processor, tokenizer(True), image, (words, False))
    config = tf.CLIPTextConfig(**text_sizes(eos_token_id=END, hidden_act="gelu", projection_dim=12))
    save("clip-text", tf.CLIPTextModelWithProjection(config), None, tokenizer(True),
         text=(lambda m, **ids: m(**ids).text_embeds, False))
    config = tf.CLIPVisionConfig(**vision_sizes(projection_dim=12))
    save("clip-vision", tf.CLIPVisionModelWithProjection(config), clip_processor,
         call=lambda m, p: m(pixel_values=p).image_embeds)
    config = tf.SiglipConfig(text_config=text_sizes(projection_size=16), vision_config=vision_sizes())
    save("siglip", tf.SiglipModel(config), tf.SiglipImageProcessor(**square), tokenizer(False), image, (words, True))
    save("siglip-vision", tf.SiglipVisionModel(tf.SiglipVisionConfig(**vision_sizes())),
         tf.SiglipImageProcessor(**square), call=lambda m, p: m(p).pooler_output)
    pooled = lambda m, p: m(p).pooler_output
    save("vit", tf.ViTModel(tf.ViTConfig(**vision_sizes())), tf.ViTImageProcessor(**square), call=pooled, rows=True)
    save("vit-plain", tf.ViTModel(tf.ViTConfig(**vision_sizes(qkv_bias=False)), add_pooling_layer=False),
         tf.ViTImageProcessor(**square), call=lambda m, p: m(p).last_hidden_state[:, 0])
    resnet = dict(embedding_size=8, hidden_sizes=[16, 32], depths=[2, 1])
    convnext = tf.ConvNextImageProcessor(size={"shortest_edge": IMAGE}, crop_pct=0.875)
    save("resnet", tf.ResNetModel(tf.ResNetConfig(**resnet)), convnext, call=pooled)
    save("resnet-basic", tf.ResNetModel(tf.ResNetConfig(**resnet, layer_type="basic", downsample_in_first_stage=True)),
         convnext, call=pooled)


if __name__ == "__main__":
    main()
