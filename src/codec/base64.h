/* Bytes as text: RFC 4648, read in both alphabets, written in the first. */
#ifndef VIGIL_CODEC_BASE64_H
#define VIGIL_CODEC_BASE64_H

#include "base/slice.h"

static inline size_t base64_encoded_len(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Writes base64_encoded_len bytes, padded. */
void base64_encode(struct slice bytes, uint8_t *dst);

/*
 * As proto3-JSON is read by Go: '-' or '_' anywhere means the URL alphabet, a length that is no
 * multiple of four means that there is no padding, line ends are passed over, and bits that are
 * left over at the end are dropped. dst has text.len / 4 * 3 + 3 bytes and may be text itself.
 * False: it is no such text.
 */
MUST_CHECK
bool base64_decode(struct slice text, uint8_t *dst, size_t *ret_len);

#endif
