/* embed_settings.h - what the options of pith embed say, and which of them go together. */
#ifndef PITH_CLI_EMBED_EMBED_SETTINGS_H
#define PITH_CLI_EMBED_EMBED_SETTINGS_H

#include "cli/arrays/vector_layout.h"
#include "cli/embed/embed_bm25.h"
#include "cli/embed/long_texts.h"
#include "cli/input/bad_lines.h"
#include "cli/input/row_options.h"
#include "cli/options/runtime_choice.h"
#include "cli/options/work_options.h"

typedef struct embed_settings {
    const char *model, *output, *keep;
    bool images, resume, progress, pin;
    bool dense, sparse, multi_vector, tokens;
    int role;
    row_options rows;
    int32_t rows_per_file;
    size_t max_pixels;
    bm25_settings bm25;
    layout_settings layout;
    long_settings longs;
    work_settings work;
    pith_open_options open;
    pith_embed_options embed;
    runtime_choice runtime;
} embed_settings;

/* The kinds of results that are asked for, PITH_ENCODE_*. */
uint32_t embed_settings_what(const embed_settings *s);
/* Takes the arguments of the call and the format of its output. EXIT_DONE, or another exit code
 * after a message that says what does not go together. */
int embed_settings_check(const command *c, embed_settings *s, const string_list *arguments);
/* The options that decide what the rows of the output are, a line each. */
void embed_settings_text(bytes *text, const embed_settings *s);

#endif
