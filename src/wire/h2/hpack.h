/*
 * Header compression of one connection (RFC 7541). We write only fields that need no memory at the
 * peer, static entries and literals, so there is no encoder state. The decoder is our own:
 * nghttp2's takes 30 KB for a table of 4 and three times as long (docs/decisions/0003-http2.md); a
 * test holds ours to the same answers.
 *
 * The decoder remembers a few header blocks that put nothing into the table. Such a block
 * means the same fields for as long as the table does not change, so a client that repeats a call
 * costs a comparison of some ten bytes instead of a decode. One connection, one thread.
 */
#ifndef VIGIL_WIRE_H2_HPACK_H
#define VIGIL_WIRE_H2_HPACK_H

#include "wire/h2/entries.h"

enum { HPACK_MEMO = 4 };

struct hpack_decoder {
    struct hpack_entries entries;
    struct h2_headers *memo[HPACK_MEMO];
    unsigned memo_next;
};

struct hpack_limits {
    uint32_t list_bytes;
    uint32_t fields_max;
};

void hpack_decoder_init(struct hpack_decoder *decoder);
void hpack_decoder_fini(struct hpack_decoder *decoder);

/*
 * Decodes one whole block; the caller gets a reference. ST_MALFORMED: the block is broken and so
 * is the connection's state. ST_LIMIT: it expands past reason, the connection must end. A block
 * merely past the limits is decoded to its end, and the headers say too_large.
 */
MUST_CHECK
enum status hpack_decode(struct hpack_decoder *decoder, struct slice block, bool trailers,
                         const struct hpack_limits *limits, struct h2_headers **ret_headers);

/* Writers. The caller has made room: hpack_literal_bytes says how much. Each returns the end. */
static inline size_t hpack_literal_bytes(struct slice name, struct slice value)
{
    return 1 + 5 + name.len + 5 + value.len;
}
uint8_t *hpack_put_literal(uint8_t *dst, struct slice name, struct slice value);
/* ":status" with one of the usual codes as one byte, or three digits. */
uint8_t *hpack_put_status(uint8_t *dst, unsigned status);

#endif
