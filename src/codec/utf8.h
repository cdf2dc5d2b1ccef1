/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. */
#ifndef VIGIL_CODEC_UTF8_H
#define VIGIL_CODEC_UTF8_H

#include "base/slice.h"

bool utf8_valid(struct slice text);

/* Bytes of the valid character at the beginning of a non-empty text, or 0. */
size_t utf8_char_len(struct slice text);

#endif
