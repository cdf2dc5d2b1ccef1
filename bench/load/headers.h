/*
 * The header blocks of a client, mostly of gRPC: the two fixed ones it sends, and the check of
 * those it gets.
 *
 * Sending: like every real client we put our fields into the server's table with the first request
 * of a connection and name them by number in all others, so each request costs the server what a
 * real one would. Both blocks are constant bytes.
 *
 * Receiving: HPACK has state, but a block that changes none means the same as long as no other
 * block changes any. So the last good response head and trailer that changed nothing are kept, and
 * an equal block is known to be good without decoding (6 ns instead of 190); everything else goes
 * through the decoder.
 * The only file of the generator that knows nghttp2. One owner, one thread.
 */
#ifndef VIGIL_LOAD_HEADERS_H
#define VIGIL_LOAD_HEADERS_H

#include "base/buf.h"

/* Appends the block of a request: the first of a connection, or any later one. token identifies
 * the user; empty: anonymous. */
MUST_CHECK
enum status bench_headers_append_first(struct buf *out, const char *path, const char *authority,
                                       const char *token);
MUST_CHECK
enum status bench_headers_append_next(struct buf *out, const char *token);

/* The block of a request that is not gRPC's, which leaves the server's table as it is. type may be
 * NULL. It ends with the user's bearer token; empty: none. */
MUST_CHECK
enum status bench_headers_append_plain(struct buf *out, const char *method, const char *path,
                                       const char *authority, const char *type, const char *token);

/* What one response block said. */
struct bench_verdict {
    int http_status;   /* -1: not in this block */
    int grpc_status;   /* -1: not in this block */
    int retry_after_s; /* 0: not in this block */
    char message[160];
};

struct bench_header_decoder;

MUST_CHECK
enum status bench_header_decoder_new(bool plain, struct bench_header_decoder **ret_decoder);
void bench_header_decoder_free(struct bench_header_decoder *decoder);

/*
 * ret_good: a head with :status 200, or a trailer (end_stream) with grpc-status 0; of a plain one,
 * which has no trailers, a head with any status from 200 to 299. Otherwise
 * ret_verdict says what it was. ST_MALFORMED when the block cannot be decoded.
 */
MUST_CHECK
enum status bench_header_decode(struct bench_header_decoder *decoder, struct slice block,
                                bool end_stream, bool *ret_good, struct bench_verdict *ret_verdict);

/* True if decoding the block leaves the table unchanged; false when that is uncertain. */
bool bench_header_block_is_stateless(struct slice block);

DEFINE_CLEANUP(struct bench_header_decoder *, bench_header_decoder_free)

#endif
