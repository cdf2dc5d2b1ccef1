/* For tests and fuzzers: writes the calls of a client. */
#ifndef VIGIL_WIRE_GRPC_REQUESTS_TEST_H
#define VIGIL_WIRE_GRPC_REQUESTS_TEST_H

#include "wire/grpc/call.h"
#include "wire/h2/client_test.h"
#include "wire/h2/hpack.h"

static inline void test_field(struct buf *block, const char *name, const char *value)
{
    uint8_t bytes[8192];
    struct slice n = slice_from_text(name), v = slice_from_text(value);
    if (hpack_literal_bytes(n, v) > sizeof(bytes))
        abort();
    test_put(block, slice_of(bytes, (size_t)(hpack_put_literal(bytes, n, v) - bytes)));
}

/* extra: name, value, ..., NULL */
static inline void test_call_with(struct buf *to, uint32_t id, const char *path, uint8_t flags,
                                  const char *const *extra)
{
    struct buf block = {0};
    test_put(&block, SLICE_LITERAL("\x83\x86"));
    test_field(&block, ":path", path);
    test_field(&block, ":authority", "x");
    test_field(&block, "content-type", "application/grpc");
    test_field(&block, "te", "trailers");
    for (; extra && *extra; extra += 2)
        test_field(&block, extra[0], extra[1]);
    test_headers(to, id, flags, buf_slice(&block));
    buf_fini(&block);
}

/* A request that is not gRPC. */
static inline void test_http(struct buf *to, uint32_t id, const char *path, uint8_t flags)
{
    struct buf block = {0};
    test_put(&block, SLICE_LITERAL("\x83\x86"));
    test_field(&block, ":path", path);
    test_field(&block, ":authority", "x");
    test_headers(to, id, flags, buf_slice(&block));
    buf_fini(&block);
}

static inline void test_call(struct buf *to, uint32_t id, const char *path)
{
    test_call_with(to, id, path, 0, NULL);
}

/* One message in DATA frames of at most 16 KiB. */
static inline void test_message(struct buf *to, uint32_t id, uint8_t flags, struct slice message)
{
    struct buf framed = {0};
    uint8_t prefix[GRPC_PREFIX_BYTES];
    grpc_prefix_write(prefix, (uint32_t)message.len);
    test_put(&framed, slice_of(prefix, sizeof(prefix)));
    test_put(&framed, message);
    for (size_t at = 0; at < framed.len;) {
        size_t n = size_min(framed.len - at, H2_FRAME_BYTES_MAX);
        bool last = at + n == framed.len;
        test_frame(to, H2_DATA, last ? flags : 0, id, slice_of(framed.ptr + at, n));
        at += n;
    }
    buf_fini(&framed);
}

#endif
