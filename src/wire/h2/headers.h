/*
 * The decoded and checked header fields of one request or response: immutable, reference-counted,
 * one block of memory.
 *
 * A client that repeats a call sends the same bytes again, so many streams of a connection share
 * one object (see hpack.h). One thread.
 */
#ifndef VIGIL_WIRE_H2_HEADERS_H
#define VIGIL_WIRE_H2_HEADERS_H

#include "base/status.h"
#include "wire/http/field.h"

enum h2_headers_kind {
    H2_REQUEST,
    H2_REQUEST_TRAILERS,
    H2_RESPONSE,
    H2_RESPONSE_TRAILERS,
};

struct h2_headers {
    uint32_t refs;
    uint32_t count;
    uint32_t bytes;         /* memory in total */
    uint32_t malformed : 1; /* violates RFC 9113 section 8: the stream is reset */
    uint32_t too_large : 1; /* exceeds a limit; fields has the ones before */
    uint32_t kind : 2;      /* enum h2_headers_kind */
    uint32_t status : 10;   /* status of a response */
    int64_t content_length; /* -1 if absent */
    struct slice method, scheme, path, authority;
    /* What the user of the session derived from these fields, kept for the next stream that shares
     * them. */
    const void *note;
    struct slice block; /* the bytes they were decoded from */
    struct http_field fields[];
};

void h2_headers_ref(struct h2_headers *headers);
void h2_headers_unref(struct h2_headers *headers);
DEFINE_CLEANUP(struct h2_headers *, h2_headers_unref)

/* The first field of that name, in lower case, or false. */
bool h2_headers_get(const struct h2_headers *headers, struct slice name, struct slice *ret_value);

/* How many fields have that name. */
size_t h2_headers_count(const struct h2_headers *headers, struct slice name);

/* Sets the kind, the pseudo-fields or the status, the content length, and malformed if the rules
 * for this kind are violated. Trailers have no pseudo-fields. */
void h2_headers_check(struct h2_headers *headers, enum h2_headers_kind kind);

#endif
