/*
 * The header fields that all calls with the same target and credentials share, encoded once and
 * copied into every request. Immutable, reference-counted. One thread.
 */
#ifndef VIGIL_WIRE_GRPC_HEAD_H
#define VIGIL_WIRE_GRPC_HEAD_H

#include "base/status.h"
#include "wire/http/field.h"

struct grpc_head {
    uint32_t refs;
    bool secure;
    uint32_t list_bytes; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts, with method and scheme */
    struct slice block;  /* behind the path: authority, content type, user agent, metadata */
};

struct grpc_head_fields {
    bool secure; /* over TLS */
    struct slice authority;
    struct slice user_agent;           /* may be empty */
    const struct http_field *metadata; /* names in lower case */
    size_t metadata_count;
};

/* Returns one reference. ST_INVALID: a field is not well-formed, or its name is one of gRPC's own.
 * ST_LIMIT: the fields are too large for a request. */
MUST_CHECK
enum status grpc_head_new(const struct grpc_head_fields *fields, struct grpc_head **ret_head);
void grpc_head_ref(struct grpc_head *head);
/* Accepts NULL. */
void grpc_head_unref(struct grpc_head *head);
DEFINE_CLEANUP(struct grpc_head *, grpc_head_unref)

/* The size of a request with this path, encoded and as SETTINGS_MAX_HEADER_LIST_SIZE counts. */
size_t grpc_head_bytes(const struct grpc_head *head, struct slice path);
size_t grpc_head_list_bytes(const struct grpc_head *head, struct slice path);

/* Writes the header block of a request, of at most grpc_head_bytes. timeout_ns: INT64_MAX for none.
 * Returns its end. */
uint8_t *grpc_head_write(const struct grpc_head *head, struct slice path, int64_t timeout_ns,
                         uint8_t *dst);

/*
 * The heads of recent callers, found by the caller's token, so that a caller's next call encodes
 * nothing. A new one replaces the one in its slot. One owner, one thread.
 */
enum { GRPC_HEAD_CACHE_SLOTS = 256 }; /* a power of two; each has at most about 12 KiB */
struct grpc_head_cache;

struct grpc_head_cache *grpc_head_cache_new(uint64_t seed); /* NULL: no memory */
void grpc_head_cache_free(struct grpc_head_cache *cache);   /* accepts NULL */
/* With a reference. kind tells apart heads of one token. False: it has none. */
MUST_CHECK
bool grpc_head_cache_get(const struct grpc_head_cache *cache, struct slice token, unsigned kind,
                         struct grpc_head **ret_head);
/* Takes a reference if there is memory to remember it. */
void grpc_head_cache_put(struct grpc_head_cache *cache, struct slice token, unsigned kind,
                         struct grpc_head *head);

#endif
