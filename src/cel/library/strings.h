/*
 * Functions on strings: cel-go's extended library in the version that Kubernetes enables, without
 * format, indexOf and lastIndexOf, which have files of their own. Places are counted in characters;
 * bytes that are not valid UTF-8 are characters of their own, which most functions replace by
 * U+FFFD, as in Go.
 */
#ifndef VIGIL_CEL_LIBRARY_STRINGS_H
#define VIGIL_CEL_LIBRARY_STRINGS_H

#include "cel/library/library.h"

extern const struct cel_library cel_strings;

/* The text with U+FFFD for everything that is not valid. False without memory. */
MUST_CHECK
bool cel_valid_text(struct cel_work *work, struct slice text, struct slice *ret_text);

/* Where a character begins; the length of the text for the one behind the last. False: there are
 * fewer characters. */
MUST_CHECK
bool cel_find_character(struct slice text, int64_t index, size_t *ret_at);

#define CEL_OUT_OF_RANGE(work, index) \
    cel_of_error_format(work, "index out of range: %lld", (long long)(index))

#endif
