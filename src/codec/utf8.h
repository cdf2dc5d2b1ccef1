/* UTF-8 as defined in RFC 3629: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
#ifndef VIGIL_CODEC_UTF8_H
#define VIGIL_CODEC_UTF8_H

#include "base/slice.h"

bool utf8_valid(struct slice text);

/* The number of characters of a valid text. */
size_t utf8_count(struct slice text);

/* Writes a character, at most U+10FFFF, and returns its length. */
size_t utf8_encode(uint32_t character, uint8_t dst[4]);

/* The length of the valid character at the beginning of a non-empty text, or 0. */
size_t utf8_char_len(struct slice text);

#endif
