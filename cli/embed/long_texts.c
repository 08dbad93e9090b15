/* long_texts.c - see long_texts.h. */
#include "cli/embed/long_texts.h"

#include "base/text_out.h"
#include "cli/base/message.h"

#include <stdio.h>

int long_texts_check(const command *c, const long_settings *s, bool max_length) {
    if (s->action == LONG_CHUNK && max_length)
        return usage(c, "--max-length cuts texts and --long chunk does not; use --chunk-tokens");
    if (s->action == LONG_CHUNK) return EXIT_DONE;
    if (s->tokens) return usage(c, "--chunk-tokens goes with --long chunk");
    if (s->overlap) return usage(c, "--overlap goes with --long chunk");
    if (s->result != CHUNKS_MEAN) return usage(c, "--chunks goes with --long chunk");
    return EXIT_DONE;
}

void long_texts_warn(const long_settings *s, uint64_t cut, size_t most) {
    const unsigned long long n = cut;
    const char *texts = cut == 1 ? "text was" : "texts were";
    if (!cut) return;
    if (s->action == LONG_CHUNK || !most)
        note("warning: %llu %s longer than 1 MiB and cut there", n, texts);
    else
        note("warning: %llu %s longer than %zu tokens and cut there; --long chunk reads all of a "
             "text, --long "
             "error refuses it",
             n, texts, most);
}

void long_texts_refuse(char *message, size_t size, const pith_model *model, const pith_str *texts,
                       size_t count, uint64_t first, const pith_encode_options *options) {
    pith_embed_stats stats = { 0 };
    pith_embed_options embed = *options->embed;
    pith_encode_options alone = *options;
    size_t i = 0;
    alone.embed = &embed;
    embed.stats = &stats;
    for (; i < count; i++) {
        pith_encoded *encoded;
        if (pith_encode(&encoded, model, &texts[i], 1, &alone, NULL)) continue;
        pith_encoded_free(encoded);
        if (stats.truncated) break;
    }
    pith__text_print(
        message, size,
        "text %llu is longer than %zu tokens; --long chunk reads all of it, --long truncate "
        "cuts it",
        (unsigned long long)first + i, pith_embed_max_length(model, &embed));
}
