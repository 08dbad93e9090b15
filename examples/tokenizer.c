/* tokenizer.c - a tokenizer alone: text to tokens with their places, and back.
 *
 * No weights are needed: a directory with a tokenizer.json is enough, or such a file by itself. A
 * tokenizer never changes once it is open and may be shared by threads; the tokens are a buffer of
 * the caller's, reused from text to text.
 *
 *     cc tokenizer.c $(pkg-config --cflags --libs pith) -o tokenizer
 *     ./tokenizer tokenizer.json "a cat sat"
 */
#include <pith/pith.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "all-MiniLM-L6-v2";
    const char *given = argc > 2 ? argv[2] : "Tokenizers cut unbelievable words.";
    const pith_str text = { given, strlen(given) };
    pith_error err = PITH_ERROR_INIT;
    pith_tokenizer *tokenizer;
    pith_tokens tokens = PITH_TOKENS_INIT;
    if (pith_tokenizer_open(&tokenizer, path, NULL, &err)) return puts(err.message), 1;

    /* NULL for the pair: one text. NULL for the options: nothing is cut, special tokens are added.
     */
    if (pith_tokenize(&tokens, tokenizer, text, NULL, NULL, &err)) return puts(err.message), 1;
    for (size_t i = 0; i < tokens.count; i++) {
        pith_str token = pith_token_text(tokenizer, tokens.ids[i]);
        printf("%6d  %-14.*s", tokens.ids[i], (int)token.size, token.data);
        if (tokens.special[i]) /* [CLS] and the like come from no text */
            puts("special");
        else
            printf("bytes %u to %u: '%.*s'\n", tokens.begin[i], tokens.end[i],
                   (int)(tokens.end[i] - tokens.begin[i]), given + tokens.begin[i]);
    }

    /* Back to text, id by id, as a program that generates tokens would: text that is not whole yet
     * is held back. */
    pith_text_stream *stream;
    pith_str piece;
    if (pith_text_stream_create(&stream, tokenizer, 1, &err)) return puts(err.message), 1;
    for (size_t i = 0; i < tokens.count; i++) {
        if (pith_text_stream_push(stream, &piece, tokens.ids[i], &err)) return puts(err.message), 1;
        printf("%.*s", (int)piece.size, piece.data);
    }
    if (pith_text_stream_finish(stream, &piece, &err)) return puts(err.message), 1;
    printf("%.*s\n", (int)piece.size, piece.data);

    pith_text_stream_destroy(stream);
    pith_tokens_free(&tokens);
    pith_tokenizer_close(tokenizer);
    return 0;
}
