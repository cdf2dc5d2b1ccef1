/* Base64 of RFC 4648, decoded from both alphabets, encoded in the first. */
#ifndef VIGIL_CODEC_BASE64_H
#define VIGIL_CODEC_BASE64_H

#include "base/slice.h"

#include <sys/types.h>

static inline size_t base64_encoded_len(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Writes base64_encoded_len bytes, padded. */
void base64_encode(struct slice bytes, uint8_t *dst);

/*
 * Decodes as Go does in proto3-JSON: '-' or '_' anywhere means the URL alphabet, a length that is
 * not a multiple of four means that there is no padding, line ends are ignored, and remaining bits
 * at the end are dropped. dst has text.len / 4 * 3 + 3 bytes and may be text itself. False: the
 * text is invalid.
 */
MUST_CHECK
bool base64_decode(struct slice text, uint8_t *dst, size_t *ret_len);

/* The offset that Go names if it does not read the text as bytes in JSON: padded, in the first
 * alphabet, with any line ends. -1: it does. */
ssize_t base64_fault(struct slice text);

#endif
