/*
 * The head of a request as it is sent on to the kube-apiserver, and that of the answer as it is
 * sent back. What belongs to a connection is left out (RFC 9110, section 7.6.1), and so are the
 * fields with which a proxy that is trusted names a user (X-Remote-…). The client's address is
 * appended to X-Forwarded-For.
 */
#ifndef VIGIL_TIER_FORWARD_HEAD_H
#define VIGIL_TIER_FORWARD_HEAD_H

#include "base/memory/arena.h"
#include "wire/http/exchange.h"

/* Borrowed. */
struct tier_head_options {
    struct slice path_prefix; /* before the path of the request */
    /* Fields that are added: Authorization, Impersonate-… */
    const struct http_field *add;
    size_t add_count;
    /* The request's own credentials are left out: Authorization and Impersonate-… */
    bool drop_credentials;
};

enum { TIER_BYTES_UNKNOWN = -1 };

struct tier_head {
    struct slice target;
    struct http_field *fields;
    size_t field_count;
    struct slice upgrade; /* empty: it asks for none */
    /* It has a body, perhaps an empty one; the length is TIER_BYTES_UNKNOWN if it is not given. */
    bool has_body;
    int64_t body_bytes;
    bool lasts; /* a watch or a log that is followed: its answer may last for ever */
};

/* Borrows from the request and the options. ST_INVALID: the request cannot be passed on. ST_NOMEM.
 */
MUST_CHECK
enum status tier_head_make(struct arena *arena, const struct http_request *request,
                           const struct tier_head_options *options, struct tier_head *ret_head);

/* Adds the fields of an answer. *ret_bytes: the length of its body, TIER_BYTES_UNKNOWN. ST_INVALID,
 * ST_LIMIT: it cannot be sent back. ST_NOMEM, ST_CLOSED. */
MUST_CHECK
enum status tier_head_answer(struct http_exchange *x, bool upgraded,
                             const struct http_field *fields, size_t count, int64_t *ret_bytes);

#endif
