/* known_regex.c - one matcher for a family of expressions.
 *
 * They are alternatives in a fixed order: contraction ('s, 'll …), word, number, run of other
 * characters, white space. A scanner says which form of each it has; a few only look for white
 * space. Matching is leftmost-first as in a backtracking engine, but every form looks at each
 * character a bounded number of times. Character classes are those of Oniguruma 6.9.10 (Unicode
 * 16). */
#include "text/regex/known_regex.h"

#include <string.h>

#include "base/str.h"
#include "base/unicode/character.h"
#include "base/unicode/utf8.h"

/* Every character has one of them. */
enum {
    LU = 1,
    LL = 2,
    LT = 4,
    LM = 8,
    LO = 16,
    MARK = 32,
    NUMBER = 64,
    SPACE = 128,
    PUNCT = 256,
    SYMBOL = 512,
    REST = 1024
};
enum {
    LETTER = LU | LL | LT | LM | LO,
    UPPER = LU | LT | LM | LO | MARK,
    LOWER = LL | LM | LO | MARK,
    SIGN = PUNCT | SYMBOL,
    OTHER = MARK | SIGN | REST /* [^\s\p{L}\p{N}] */
};

typedef enum contraction { NO_CONTRACTION, EXACT, ANY_CASE, ANY_CASE_AFTER_WORD } contraction;
typedef enum word_form {
    LETTERS,       /* \p{L}+ */
    SPACE_LETTERS, /* " ?\p{L}+" */
    OTHER_LETTERS, /* [^\r\n\p{L}\p{N}]?\p{L}+ */
    CASED,         /* o200k's two alternatives: capitals, then small letters, at least one of
                      either */
    SIGN_LETTERS   /* a sign and letters, both of ASCII, or [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ */
} word_form;
typedef enum run_form { NO_RUN, WHITE, BLANKS, NUMBERS, IDEOGRAPHS } run_form;

struct pith__known_regex {
    const char *const *specials; /* literals that come before all else; ends with NULL */
    contraction contraction;
    word_form word;
    uint32_t digits;   /* most in a number; 0: numbers match nothing */
    bool space_number; /* " ?" before it */
    uint32_t other;    /* classes of other characters, which come in runs */
    bool space_other;  /* " ?" before them */
    const char *tail;  /* characters that may follow them: [\r\n]* or [\r\n/]* */
    bool newlines;     /* \s*[\r\n]+ */
    bool skips_spaces; /* white space matches nothing */
    run_form run;      /* not NO_RUN: instead of all this, runs of one kind of characters … */
    uint32_t least, most;
    bool breaks; /* … or a single tab or newline */
};

/* The class of a character in Oniguruma's Unicode 16. Characters that the tables have as unassigned
 * may have been assigned since; pith__character_newer knows those. */
static unsigned class_of(uint32_t c) {
#define CATEGORY(name) [PITH_CATEGORY_##name]
    static const uint16_t by_category[PITH_CATEGORY_CO + 1] = {
        CATEGORY(LU) = LU,     CATEGORY(LL) = LL,     CATEGORY(LT) = LT,     CATEGORY(LM) = LM,
        CATEGORY(LO) = LO,     CATEGORY(MN) = MARK,   CATEGORY(MC) = MARK,   CATEGORY(ME) = MARK,
        CATEGORY(ND) = NUMBER, CATEGORY(NL) = NUMBER, CATEGORY(NO) = NUMBER, CATEGORY(ZS) = SPACE,
        CATEGORY(ZL) = SPACE,  CATEGORY(ZP) = SPACE,  CATEGORY(PC) = PUNCT,  CATEGORY(PD) = PUNCT,
        CATEGORY(PS) = PUNCT,  CATEGORY(PE) = PUNCT,  CATEGORY(PI) = PUNCT,  CATEGORY(PF) = PUNCT,
        CATEGORY(PO) = PUNCT,  CATEGORY(SM) = SYMBOL, CATEGORY(SC) = SYMBOL, CATEGORY(SK) = SYMBOL,
        CATEGORY(SO) = SYMBOL, CATEGORY(CC) = REST,   CATEGORY(CF) = REST,   CATEGORY(CS) = REST,
        CATEGORY(CO) = REST,   CATEGORY(CN) = REST,
    };
#undef CATEGORY
    /* The most frequent ones at once: ideographs, Hangul, kana, Cyrillic. */
    if ((c >= 0x4E00 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7A4)) return LO;
    if ((c >= 0x3041 && c < 0x3097) || (c >= 0x30A1 && c < 0x30FB)) return LO;
    if (c >= 0x410 && c < 0x460) return c < 0x430 ? LU : LL;
    const uint8_t category = pith__character_of(c)->category;
    if (category == PITH_CATEGORY_CN) return by_category[pith__character_newer(c, 16)];
    return c == 0x85 ? SPACE : by_category[category];
}

static unsigned class_of_ascii(unsigned char c) {
    static const uint16_t classes[128] = {
        REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,   SPACE,  SPACE,
        SPACE,  SPACE,  SPACE,  REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,
        REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,   REST,   SPACE,
        PUNCT,  PUNCT,  PUNCT,  SYMBOL, PUNCT,  PUNCT,  PUNCT,  PUNCT,  PUNCT,  PUNCT,  SYMBOL,
        PUNCT,  PUNCT,  PUNCT,  PUNCT,  NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER,
        NUMBER, NUMBER, NUMBER, PUNCT,  PUNCT,  SYMBOL, SYMBOL, SYMBOL, PUNCT,  PUNCT,  LU,
        LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,
        LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,     LU,
        LU,     LU,     LU,     PUNCT,  PUNCT,  PUNCT,  SYMBOL, PUNCT,  SYMBOL, LL,     LL,
        LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,
        LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,     LL,
        LL,     LL,     PUNCT,  SYMBOL, PUNCT,  SYMBOL, REST,
    };
    return classes[c];
}

/* The class of the character at p < end and where the next one begins. */
static inline unsigned class_at(const char *p, const char **after) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x80) {
        *after = p + 1;
        return class_of_ascii(c);
    }
    *after = p;
    return class_of(pith__utf8_next(after));
}

/* The end of the longest run of at most `most` characters of the classes. */
static inline const char *known_regex_run(const char *p, const char *end, unsigned classes,
                                          uint32_t most) {
    const char *after;
    for (; p < end && most && class_at(p, &after) & classes; most--) p = after;
    return p;
}

static const uint32_t any = UINT32_MAX;

/* 's 't 're 've 'm 'll 'd; NULL if there is none. Case folding knows the long s, U+017F. */
static const char *match_contraction(const char *p, const char *end, bool any_case) {
    if (p == end || *p != '\'' || ++p == end) return NULL;
    if (any_case && end - p >= 2 && memcmp(p, "\xC5\xBF", 2) == 0) return p + 2;
    char fold = any_case ? 0x20 : 0;
    char first = (char)(*p >= 'A' && *p <= 'Z' ? *p | fold : *p);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return p + 1;
    if (end - p < 2) return NULL;
    char second = (char)(p[1] >= 'A' && p[1] <= 'Z' ? p[1] | fold : p[1]);
    if (second == 'e' && (first == 'r' || first == 'v')) return p + 2;
    return first == 'l' && second == 'l' ? p + 2 : NULL;
}

/* U*L+ from p, NULL if that fails: capitals give characters back until a small one is found. */
static const char *match_upper_lower(const char *p, const char *end) {
    const char *after, *last_lower = NULL;
    for (unsigned class; p < end && (class = class_at(p, &after)) & UPPER; p = after)
        if (class & LOWER) last_lower = after;
    const char *stop = known_regex_run(p, end, LOWER, any);
    return stop > p ? stop : last_lower;
}

static const char *match_cased(const char *p, const char *end, const char *after_first,
                               bool may_skip) {
    const char *stop = may_skip ? match_upper_lower(after_first, end) : NULL;
    if (!stop) stop = match_upper_lower(p, end);
    for (int skip = may_skip; skip >= 0 && !stop; skip--) {
        const char *from = skip ? after_first : p, *upper = known_regex_run(from, end, UPPER, any);
        if (upper > from) stop = known_regex_run(upper, end, LOWER, any);
    }
    return stop;
}

/* `after` and `class` are of the character at p. */
static const char *match_word(const pith__known_regex *scan, const char *p, const char *end,
                              const char *after, unsigned class) {
    bool other = !(class & (LETTER | NUMBER)) && *p != '\r' && *p != '\n';
    const char *stop;
    switch (scan->word) {
    case LETTERS: return class & LETTER ? known_regex_run(after, end, LETTER, any) : NULL;
    case SPACE_LETTERS:
    case OTHER_LETTERS:
        if (class & LETTER) return known_regex_run(after, end, LETTER, any);
        if (scan->word == SPACE_LETTERS ? *p != ' ' : !other) return NULL;
        stop = known_regex_run(after, end, LETTER, any);
        return stop > after ? stop : NULL;
    case CASED: return match_cased(p, end, after, other);
    default:
        if (class & (LETTER | MARK)) return known_regex_run(after, end, LETTER | MARK, any);
        stop = after;
        if (class & SIGN) {
            if (*p < 0) return NULL;
            while (stop < end && *stop >= 0 && class_of_ascii((unsigned char)*stop) & LETTER)
                stop++;
        } else if (*p != '\r' && *p != '\n') {
            stop = known_regex_run(after, end, LETTER | MARK, any);
        }
        return stop > after ? stop : NULL;
    }
}

/* The end of the match at p, or NULL. The alternatives are tried in the order of the expressions.
 * The last one is `\s+(?!\S)|\s+`: white space up to the last but one character if a word follows,
 * so that the last space goes with the word; all of it at the end of the text. With `newlines`,
 * `\s*[\r\n]+` comes before it and ends at the last line break. */
static const char *known_regex_match_at(const pith__known_regex *scan, const char *p,
                                        const char *end) {
    const char *after, *stop;
    for (const char *const *special = scan->specials; special && *special; special++) {
        if (*p != **special) continue;
        size_t size = strlen(*special);
        if ((size_t)(end - p) >= size && memcmp(p, *special, size) == 0) return p + size;
    }
    if (*p == '\'' && (scan->contraction == EXACT || scan->contraction == ANY_CASE)) {
        stop = match_contraction(p, end, scan->contraction == ANY_CASE);
        if (stop) return stop;
    }
    unsigned class = class_at(p, &after);
    stop = match_word(scan, p, end, after, class);
    if (stop) {
        const char *tail =
            scan->contraction == ANY_CASE_AFTER_WORD ? match_contraction(stop, end, true) : NULL;
        return tail ? tail : stop;
    }
    if (class & NUMBER && scan->digits)
        return known_regex_run(after, end, NUMBER, scan->digits == any ? any : scan->digits - 1);
    if (*p == ' ' && scan->space_number) {
        stop = known_regex_run(after, end, NUMBER, scan->digits);
        if (stop > after) return stop;
    }
    const char *other = *p == ' ' && scan->space_other ? after : p;
    stop = known_regex_run(other, end, scan->other, any);
    if (stop > other) {
        while (stop < end && *stop && strchr(scan->tail, *stop)) stop++;
        return stop;
    }
    if (scan->skips_spaces) return NULL;
    const char *last = p, *last_newline = NULL, *q = p;
    for (; q < end && class_at(q, &after) & SPACE; q = after) {
        last = q;
        if (*q == '\r' || *q == '\n') last_newline = q;
    }
    if (scan->newlines && last_newline) return last_newline + 1;
    if (q == p) return NULL;
    return q == end || last == p ? q : last;
}

static bool is_ideograph(uint32_t c) {
    return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

static inline bool is_in_run(run_form form, const char *p, const char **after) {
    *after = p + 1;
    if (form == BLANKS) return *p == ' ';
    if (form != IDEOGRAPHS) return class_at(p, after) == (form == WHITE ? SPACE : NUMBER);
    *after = p;
    return is_ideograph(pith__utf8_next(after));
}

/* Whether a character of the run may begin with the byte: a bit for each, in four words. */
static inline bool may_begin(run_form form, unsigned char c) {
#define LEAD(byte) (1ull << ((byte)&63))
#define LEADS(first, last) (LEAD(last) * 2 - LEAD(first))
    static const uint64_t bytes[][4] = {
        [WHITE] = { 0x1Full << '\t' | 1ull << ' ', 0, 0, LEAD(0xC2) | LEADS(0xE1, 0xE3) },
        [BLANKS] = { 1ull << ' ', 0, 0, 0 },
        [NUMBERS] = { 0x3FFull << '0', 0, 0,
                      LEAD(0xC2) | LEAD(0xD9) | LEAD(0xDB) | LEAD(0xDF) | LEADS(0xE0, 0xE3) |
                          LEAD(0xEA) | LEADS(0xEF, 0xF4) },
        [IDEOGRAPHS] = { 0, 0, 0, LEADS(0xE3, 0xE9) },
    };
#undef LEAD
#undef LEADS
    return bytes[form][c >> 6] >> (c & 63) & 1;
}

/* The next run of the one class that the expression looks for. Bytes that cannot begin such a
 * character are passed over without decoding, which is most of the text. */
static bool next_run(const pith__known_regex *scan, const char *text, uint32_t at, uint32_t end,
                     uint32_t *match_begin, uint32_t *match_end) {
    const char *p = text + at, *stop = text + end, *after = p;
    while (p < stop) {
        while (p < stop && !may_begin(scan->run, (unsigned char)*p)) p++;
        const char *begin = p;
        uint32_t count = 0;
        for (; p < stop && count < scan->most && is_in_run(scan->run, p, &after); count++)
            p = after;
        if (count >= scan->least ||
            (count && scan->breaks && (*begin == '\t' || *begin == '\n' || *begin == '\r'))) {
            *match_begin = (uint32_t)(begin - text);
            *match_end = (uint32_t)(p - text);
            return true;
        }
        if (!count && p < stop) p = after;
    }
    return false;
}

bool pith__known_regex_next(const pith__known_regex *scan, const char *text, uint32_t at,
                            uint32_t end, uint32_t *match_begin, uint32_t *match_end) {
    const char *p = text + at, *stop = NULL;
    if (scan->run) return next_run(scan, text, at, end, match_begin, match_end);
    while (p < text + end && !(stop = known_regex_match_at(scan, p, text + end)))
        pith__utf8_next(&p);
    if (!stop) return false;
    *match_begin = (uint32_t)(p - text);
    *match_end = (uint32_t)(stop - text);
    return true;
}

static const char *const clip_specials[] = { "<|startoftext|>", "<|endoftext|>", NULL };

const pith__known_regex pith__scan_gpt2 = { .contraction = EXACT,
                                            .word = SPACE_LETTERS,
                                            .digits = UINT32_MAX,
                                            .space_number = true,
                                            .other = OTHER,
                                            .space_other = true,
                                            .tail = "" };
static const pith__known_regex cl100k = { .contraction = ANY_CASE,
                                          .word = OTHER_LETTERS,
                                          .digits = 3,
                                          .other = OTHER,
                                          .space_other = true,
                                          .tail = "\r\n",
                                          .newlines = true };
static const pith__known_regex qwen2 = { .contraction = ANY_CASE,
                                         .word = OTHER_LETTERS,
                                         .digits = 1,
                                         .other = OTHER,
                                         .space_other = true,
                                         .tail = "\r\n",
                                         .newlines = true };
static const pith__known_regex o200k = { .contraction = ANY_CASE_AFTER_WORD,
                                         .word = CASED,
                                         .digits = 3,
                                         .other = OTHER,
                                         .space_other = true,
                                         .tail = "\r\n/",
                                         .newlines = true };
static const pith__known_regex tekken = { .word = CASED,
                                          .digits = 1,
                                          .other = OTHER,
                                          .space_other = true,
                                          .tail = "\r\n/",
                                          .newlines = true };
static const pith__known_regex deepseek = {
    .word = SIGN_LETTERS, .other = SIGN, .space_other = true, .tail = "\r\n", .newlines = true
};
static const pith__known_regex clip = { .contraction = EXACT,
                                        .word = LETTERS,
                                        .digits = 1,
                                        .other = OTHER,
                                        .tail = "",
                                        .skips_spaces = true };
static const pith__known_regex clip_special = { .specials = clip_specials,
                                                .contraction = EXACT,
                                                .word = LETTERS,
                                                .digits = 1,
                                                .other = OTHER,
                                                .tail = "",
                                                .skips_spaces = true };
static const pith__known_regex spaces = { .run = WHITE, .least = 1, .most = UINT32_MAX };
static const pith__known_regex many_blanks = { .run = BLANKS, .least = 2, .most = UINT32_MAX };
static const pith__known_regex many_spaces = {
    .run = WHITE, .least = 2, .most = UINT32_MAX, .breaks = true
};
static const pith__known_regex three_digits = { .run = NUMBERS, .least = 1, .most = 3 };
static const pith__known_regex ideographs = { .run = IDEOGRAPHS, .least = 1, .most = UINT32_MAX };

#define START "[^\\r\\n\\p{L}\\p{N}]?"
#define CAPITAL "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define FOLDED "(?i:" CONTRACTIONS ")"
#define END(tail) " ?[^\\s\\p{L}\\p{N}]+[" tail "]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2_END " ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CLIP_END CONTRACTIONS "|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"

/* Whether an expression is the known one. Files write line ends as escapes or as they are. */
static bool known_regex_is_known(pith_str regex, const char *known) {
    size_t i = 0;
    for (; i < regex.size && *known; i++) {
        char c = regex.data[i], escape = 0;
        if (c == '\r') escape = 'r';
        if (c == '\n') escape = 'n';
        bool escaped = escape && known[0] == '\\' && known[1] == escape;
        if (!escaped && c != *known) return false;
        known += escaped ? 2 : 1;
    }
    return i == regex.size && !*known;
}

/* Finds the scanner by the text of the expression, in the spellings that published tokenizers have.
 * Equal meaning in another spelling is not recognised; such an expression goes to PCRE2. */
const pith__known_regex *pith__known_regex_find(pith_str regex) {
    static const struct {
        const char *regex;
        const pith__known_regex *scan;
    } known[] = {
        { CONTRACTIONS "|" GPT2_END, &pith__scan_gpt2 },
        { "'(?:[sdmt]|ll|ve|re)|" GPT2_END, &pith__scan_gpt2 },
        { FOLDED "|" START "\\p{L}+|\\p{N}{1,3}|" END("\\r\\n"), &cl100k },
        { "'(?i:[sdmt]|ll|ve|re)|" START
          "+\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|"
          "\\s+(?!\\S)|\\s+",
          &cl100k },
        { FOLDED "|" START "\\p{L}+|\\p{N}|" END("\\r\\n"), &qwen2 },
        { START CAPITAL "*" SMALL "+" FOLDED "?|" START CAPITAL "+" SMALL "*" FOLDED
                        "?|\\p{N}{1,3}|" END("\\r\\n/"),
          &o200k },
        { START CAPITAL "*" SMALL "+|" START CAPITAL "+" SMALL "*|\\p{N}|" END("\\r\\n/"),
          &tekken },
        { "[!\"#$%&'()*+,\\-./"
          ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
          " ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
          &deepseek },
        { "\\p{N}{1,3}", &three_digits },
        { "[一-龥぀-ゟ゠-ヿ]+", &ideographs },
        { CLIP_END, &clip },
        { "\\s+", &spaces },
        { " {2,}", &many_blanks },
        { "\\s{2,}|[\\n\\r\\t]", &many_spaces },
        { "<\\|startoftext\\|>|<\\|endoftext\\|>|" CLIP_END, &clip_special },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known_regex_is_known(regex, known[i].regex)) return known[i].scan;
    return NULL;
}

bool pith__known_regex_cuts_words(const pith__known_regex *scan) {
    return scan->run == NO_RUN || (scan->run == WHITE && scan->least == 1);
}
