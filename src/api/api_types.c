/* api_types.c - the public functions of pith/types.h. */
#include "api/entry.h"
#include "base/unicode/utf8.h"

#define TEXT_OF_VALUE(x) #x
#define TEXT_OF(x) TEXT_OF_VALUE(x)

const char *pith_version(void) {
    return TEXT_OF(PITH_VERSION_MAJOR) "." TEXT_OF(PITH_VERSION_MINOR) "." TEXT_OF(
        PITH_VERSION_PATCH);
}

size_t pith_text_valid(pith_str text) { return pith__utf8_valid_prefix(text.data, text.size); }
