/*
 * Header compression of one connection (RFC 7541). We send only static entries and literals, so
 * there is no encoder state. The decoder is our own: nghttp2's takes 30 KB for a table of 4 KB and
 * is three times slower (docs/decisions/0003-http2.md). A test compares the two.
 *
 * The decoder remembers a few header blocks that do not change the table. Such a block has the same
 * meaning as long as the table does not change, so a client that repeats a call costs a comparison
 * of tens of bytes instead of a decode, and so do the responses of a server. One connection, one
 * thread.
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

enum {
    /* The largest limits that can be set. */
    HPACK_LIST_BYTES_MAX = 64 * 1024,
    HPACK_FIELDS_MAX = 1024,
    /* A list that exceeds the limit by this factor ends the connection; a shorter one only its own
     * request. */
    HPACK_EXCESS_FACTOR = 4,
};

void hpack_decoder_init(struct hpack_decoder *decoder);
void hpack_decoder_fini(struct hpack_decoder *decoder);

/*
 * Decodes one whole block; the caller gets a reference. ST_MALFORMED: the block is invalid, and the
 * connection's state is lost. ST_LIMIT: it expands so much that the connection must end. A block
 * that merely exceeds the limits is decoded to its end, and the result has too_large set. The
 * result is of another kind if the block is well-formed as that one: then it is not as this one,
 * because only the head of a response has a status.
 */
MUST_CHECK
enum status hpack_decode(struct hpack_decoder *decoder, struct slice block,
                         enum h2_headers_kind kind, const struct hpack_limits *limits,
                         struct h2_headers **ret_headers);

/* Writers. The caller has reserved hpack_literal_bytes. Each returns the end of what it wrote. */
static inline size_t hpack_literal_bytes(struct slice name, struct slice value)
{
    return 1 + 5 + name.len + 5 + value.len;
}
uint8_t *hpack_put_literal(uint8_t *dst, struct slice name, struct slice value);
/* The same, with the name in lower case. */
uint8_t *hpack_put_lower(uint8_t *dst, struct slice name, struct slice value);
/* With the name of an entry of the static table, by its index. */
uint8_t *hpack_put_named(uint8_t *dst, unsigned entry, struct slice value);
/* ":status": one byte for common codes, otherwise three digits. */
uint8_t *hpack_put_status(uint8_t *dst, unsigned status);

#endif
