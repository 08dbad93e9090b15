/* families.h - tests/data/families: the fused steps of each network, padded and ragged, and what is
 * missed.
 *
 * Quantised forms are left to `pith verify`; one with 4-bit weights shows that its other parts fuse
 * alike. */
#ifndef PITH_TESTS_FAMILIES_H
#define PITH_TESTS_FAMILIES_H

#include <stddef.h>

#define LAYER " Linear Attention Linear SkipNorm Linear Linear SkipNorm"
#define LONGEST_LAYER " Linear Longest Attention Linear SkipNorm Linear Linear SkipNorm"
#define GATED_LAYER " Linear Attention Linear SkipNorm Linear Gated Linear SkipNorm"
#define LONGEST_GATED " Linear Longest Attention Linear SkipNorm Linear Gated Linear SkipNorm"
#define GLU_LAYER " Linear Attention Linear SkipNorm Linear Linear Linear SkipNorm"
#define LONGEST_GLU " Linear Longest Attention Linear SkipNorm Linear Linear Linear SkipNorm"
#define ROTARY_LAYER " Linear Rotary Rotary Attention Linear SkipNorm Linear Linear SkipNorm"
#define ROTARY_GLU " Linear Rotary Rotary Attention Linear SkipNorm Linear Linear Linear SkipNorm"
#define ROTARY_GATED " Linear Rotary Rotary Attention Linear SkipNorm Linear Gated Linear SkipNorm"
#define QWEN_LAYER                                                                                 \
    " Linear Linear Linear Rotary Rotary Attention Linear SkipNorm Linear Linear Linear SkipNorm"
#define Q4_LAYER " Rotary Rotary Attention SkipNorm SkipNorm"
#define DEBERTA_LAYER " Linear Linear Linear Linear SkipNorm Linear Linear SkipNorm"
#define DEBERTA_RAGGED " Linear Linear Linear EachText Linear SkipNorm Linear Linear SkipNorm"
#define LONGEST_DEBERTA                                                                            \
    " Linear Linear Linear Longest EachText Linear SkipNorm Linear Linear SkipNorm"
#define QDQ_LAYER " Linear Linear QuantizedAdd Linear Linear QuantizedAdd"
#define QDQ_RAGGED " Linear EachText Linear QuantizedAdd Linear Linear QuantizedAdd"
#define LONGEST_QDQ " Linear Longest EachText Linear QuantizedAdd Linear Linear QuantizedAdd"
#define NOT_TEXT "the model has no input 'input_ids' of shape [batch, sequence]"

/* missed: what the report says was not fused: position tables are added to each text (skip_norm,
 * embed_norm), DeBERTa's scores are three products and quantised ones are rounded (attention,
 * each_text), SigLIP's pooling has one query for all. output: the only one wanted; -1: all. */
static const struct family {
    const char *name, *steps, *ragged, *reason, *missed;
    int output;
} families[] = {
    { "families/albert-script17", " EmbedNorm Linear" LAYER LAYER " Linear",
      " EmbedNorm Linear" LAYER LAYER " Segment Linear", NULL, NULL, -1 },
    { "families/bge-m3-script17", " EmbedNorm" LAYER LAYER " Linear Linear",
      " SegmentScan EmbedNorm" LAYER LAYER " Segment", NULL, NULL, 0 },
    { "families/camembert-script17", " EmbedNorm" LAYER LAYER, " SegmentScan EmbedNorm" LAYER LAYER,
      NULL, NULL, -1 },
    { "families/clip-text-dynamo20", LAYER LAYER " Linear", LAYER LAYER " SegmentTop Linear", NULL,
      "skip_norm", -1 },
    { "families/clip-text-script17", LAYER LAYER " Linear", LAYER LAYER " SegmentTop Linear", NULL,
      "skip_norm", -1 },
    { "families/clip-vision-script14",
      LAYER " Linear Attention Linear SkipNorm Linear Linear Linear", NULL, NOT_TEXT,
      "embed_norm skip_norm", -1 },
    { "families/colbert-dynamo20", " EmbedNorm" LAYER LAYER " Linear",
      " EmbedNorm" LAYER LAYER " Linear", NULL, NULL, -1 },
    { "families/convnext-dynamo20", " Linear Linear Linear Linear", NULL, NOT_TEXT, NULL, -1 },
    { "families/deberta-v2-dynamo20", " EmbedNorm" DEBERTA_LAYER DEBERTA_LAYER,
      " EmbedNorm" LONGEST_DEBERTA DEBERTA_RAGGED, NULL, "attention each_text", -1 },
    { "families/deberta-v2-script17", " EmbedNorm" DEBERTA_LAYER DEBERTA_LAYER,
      " EmbedNorm" LONGEST_DEBERTA DEBERTA_RAGGED, NULL, "attention each_text", -1 },
    { "families/dinov2-script17", LAYER LAYER, NULL, NOT_TEXT, "skip_norm", -1 },
    { "families/distilbert-dynamo20", " EmbedNorm" LAYER LAYER, " EmbedNorm" LAYER LAYER, NULL,
      NULL, -1 },
    { "families/electra-script17", " EmbedNorm" LAYER LAYER, " EmbedNorm" LAYER LAYER, NULL, NULL,
      -1 },
    { "families/gemma3-dynamo20", QWEN_LAYER QWEN_LAYER " Linear Linear",
      QWEN_LAYER QWEN_LAYER " Segment Segment Linear Linear", NULL, NULL, -1 },
    { "families/gru-script17", " Linear", NULL, NOT_TEXT, NULL, -1 },
    { "families/gte-dynamo20", " EmbedNorm" ROTARY_GLU ROTARY_GLU,
      " EmbedNorm" ROTARY_GLU ROTARY_GLU, NULL, NULL, -1 },
    { "families/gte-published-script14", " EmbedNorm" ROTARY_GATED ROTARY_GATED,
      " EmbedNorm" ROTARY_GATED ROTARY_GATED, NULL, NULL, -1 },
    { "families/gte-script17", " EmbedNorm" ROTARY_GLU ROTARY_GLU,
      " EmbedNorm" ROTARY_GLU ROTARY_GLU, NULL, NULL, -1 },
    { "families/jina-reranker-v2-script17", " EmbedNorm" LAYER LAYER " Linear Linear",
      " SegmentScan EmbedNorm" LAYER LAYER " Segment Linear Linear", NULL, NULL, -1 },
    { "families/jina-v2-dynamo20", " EmbedNorm" GATED_LAYER GATED_LAYER,
      " EmbedNorm" LONGEST_GATED GATED_LAYER, NULL, NULL, -1 },
    { "families/jina-v2-script17", " EmbedNorm" GATED_LAYER GATED_LAYER,
      " EmbedNorm" LONGEST_GATED GATED_LAYER, NULL, NULL, -1 },
    { "families/jina-v2-script17-qdq", " QuantizedAdd" QDQ_LAYER QDQ_LAYER,
      " QuantizedAdd" LONGEST_QDQ QDQ_RAGGED, NULL, "attention each_text gelu", -1 },
    { "families/jina-v2-table-dynamo20", " EmbedNorm" GATED_LAYER GATED_LAYER,
      " EmbedNorm" LONGEST_GATED GATED_LAYER, NULL, NULL, -1 },
    { "families/jina-v3-dynamo20", " EmbedNorm" ROTARY_LAYER ROTARY_LAYER,
      " EmbedNorm" ROTARY_LAYER ROTARY_LAYER, NULL, NULL, -1 },
    { "families/jina-v3-script17", " EmbedNorm" ROTARY_LAYER ROTARY_LAYER,
      " EmbedNorm" ROTARY_LAYER ROTARY_LAYER, NULL, NULL, -1 },
    { "families/lstm-dynamo20", " Linear", NULL, NOT_TEXT, NULL, -1 },
    { "families/lstm-script14", " Linear", NULL, NOT_TEXT, NULL, -1 },
    { "families/mobilenet-v2-script17", "", NULL, NOT_TEXT, NULL, -1 },
    { "families/modernbert-dynamo20", " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED,
      " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED, NULL, NULL, -1 },
    { "families/modernbert-script17", " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED,
      " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED, NULL, NULL, -1 },
    { "families/modernbert-script17-f16", " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED,
      " EmbedNorm" ROTARY_GATED ROTARY_GATED ROTARY_GATED, NULL, NULL, -1 },
    { "families/mpnet-script17", " EmbedNorm" LAYER LAYER,
      " SegmentScan EmbedNorm" LONGEST_LAYER LAYER, NULL, NULL, -1 },
    { "families/nomic-bert-dynamo20", " EmbedNorm" ROTARY_GLU ROTARY_GLU,
      " EmbedNorm" ROTARY_GLU ROTARY_GLU, NULL, NULL, -1 },
    { "families/nomic-bert-script17", " EmbedNorm" ROTARY_GLU ROTARY_GLU,
      " EmbedNorm" ROTARY_GLU ROTARY_GLU, NULL, NULL, -1 },
    { "families/nomic-published-script17", " EmbedNorm" ROTARY_GATED ROTARY_GATED,
      " EmbedNorm" ROTARY_GATED ROTARY_GATED, NULL, NULL, -1 },
    { "families/qwen2-dynamo20", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER, NULL, NULL, -1 },
    { "families/qwen2-dynamo20-f16", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER, NULL, NULL, -1 },
    { "families/qwen2-script17", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER, NULL, NULL, -1 },
    { "families/qwen3-dynamo20", QWEN_LAYER QWEN_LAYER, QWEN_LAYER QWEN_LAYER " Segment", NULL,
      NULL, -1 },
    { "families/qwen3-dynamo20-q4", Q4_LAYER Q4_LAYER, Q4_LAYER Q4_LAYER " Segment", NULL, NULL,
      -1 },
    { "families/resnet-script14", "", NULL, NOT_TEXT, NULL, -1 },
    { "families/roberta-script14", " EmbedNorm" LAYER LAYER " Linear",
      " SegmentScan EmbedNorm" LAYER LAYER " Segment Linear", NULL, NULL, -1 },
    { "families/rotary-interleaved-dynamo20", " EmbedNorm" ROTARY_LAYER ROTARY_LAYER,
      " EmbedNorm" ROTARY_LAYER ROTARY_LAYER, NULL, NULL, -1 },
    { "families/rotary-interleaved-script17", " EmbedNorm" ROTARY_LAYER ROTARY_LAYER,
      " EmbedNorm" ROTARY_LAYER ROTARY_LAYER, NULL, NULL, -1 },
    { "families/siglip-text-script14", LAYER LAYER " Linear", LAYER LAYER " Segment Linear", NULL,
      "skip_norm", -1 },
    { "families/siglip-vision-dynamo20", LAYER LAYER " Linear Linear Linear Linear Linear", NULL,
      NOT_TEXT, "attention skip_norm", -1 },
    { "families/splade-script17", " EmbedNorm" LAYER LAYER " Linear Linear",
      " EmbedNorm" LAYER LAYER " Linear Linear Segment", NULL, NULL, -1 },
    { "families/t5-script14", " Linear Linear" GLU_LAYER GLU_LAYER,
      " Linear Linear" LONGEST_GLU GLU_LAYER, NULL, NULL, -1 },
    { "families/t5-script17", " Linear Linear" GLU_LAYER GLU_LAYER,
      " Linear Linear" LONGEST_GLU GLU_LAYER, NULL, NULL, -1 },
    { "families/vit-dynamo20", LAYER LAYER " Linear", NULL, NOT_TEXT, "skip_norm", -1 },
    { "families/vit-script14", LAYER LAYER " Linear", NULL, NOT_TEXT, "skip_norm", -1 },
    { "families/xlm-roberta-script14", " EmbedNorm" LAYER LAYER,
      " SegmentScan EmbedNorm" LAYER LAYER, NULL, NULL, -1 },
};
enum { FAMILIES = sizeof families / sizeof families[0] };

#endif
