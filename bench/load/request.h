/*
 * A request as the bytes that go out: HEADERS and DATA frames with a gRPC message, made once.
 * Sending one is a copy and a few stores for stream id and key.
 */
#ifndef VIGIL_LOAD_REQUEST_H
#define VIGIL_LOAD_REQUEST_H

#include "base/buf.h"

enum { BENCH_GRPC_PREFIX_BYTES = 5 };

struct bench_request {
    struct buf frames;
    size_t first_data_at; /* where the DATA frames begin */
    size_t body_bytes;    /* what the DATA frames take from the send windows */
    size_t prefix_bytes;  /* length of the prefix of gRPC, before the message */
};

/* end_stream: the request is the only message of its call. */
MUST_CHECK
enum status bench_request_init(struct bench_request *request, struct slice header_block,
                               struct slice message, bool end_stream);
/* One that is not gRPC's, and whole; body may be empty. */
MUST_CHECK
enum status bench_request_init_plain(struct bench_request *request, struct slice header_block,
                                     struct slice body);
void bench_request_fini(struct bench_request *request);

/* The offset in `frames` of byte `at` of the message, which must be in the first DATA frame. */
size_t bench_request_place(const struct bench_request *request, size_t at);

/* Appends the request on this stream; ret_at points at its copy until out grows again. */
MUST_CHECK
enum status bench_request_append(const struct bench_request *request, uint32_t stream,
                                 struct buf *out, uint8_t **ret_at);

/* Appends a further message of an open call: a DATA frame, without END_STREAM. */
MUST_CHECK
enum status bench_request_append_message(uint32_t stream, struct slice message, struct buf *out);

#endif
