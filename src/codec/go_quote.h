/* Texts in quotes, as Go's strconv.Quote and %q write them. */
#ifndef VIGIL_CODEC_GO_QUOTE_H
#define VIGIL_CODEC_GO_QUOTE_H

#include "base/slice.h"

/* The room that a text of this length may need, with the zero byte. */
static inline size_t go_quote_room(size_t length)
{
    return 4 * length + 3;
}

/* Writes the text with its quotes and a zero byte behind it, and returns the length without it. */
size_t go_quoted(struct slice text, char *to);

#endif
