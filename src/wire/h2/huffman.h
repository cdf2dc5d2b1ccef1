/* The Huffman code of RFC 7541 appendix B, only for decoding: we write plain strings. No state. */
#ifndef VIGIL_WIRE_H2_HUFFMAN_H
#define VIGIL_WIRE_H2_HUFFMAN_H

#include "base/slice.h"
#include "base/status.h"

/* ST_MALFORMED: an invalid code or padding. ST_LIMIT: the output exceeds room; *ret_len is its
 * length, and dst has its beginning. */
MUST_CHECK
enum status huffman_decode(struct slice code, uint8_t *dst, size_t room, size_t *ret_len);

#endif
