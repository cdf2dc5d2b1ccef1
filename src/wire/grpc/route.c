/* Finds the method of a request from its header fields, or refuses it in grpc-go's words. */
#include "wire/grpc/call_private.h"
#include "wire/grpc/timeout.h"

#include <stdio.h>

enum { QUOTED_BYTES = 256 };

/* The call gets no method. Its HTTP status is sent in addition to the gRPC status. */
static struct grpc_call *refused(struct grpc_call *call, unsigned http_status)
{
    call->http_status = (uint16_t)http_status;
    call->method = NULL;
    return call;
}

/* Quotes like Go's %q, cut to the length that an error text may have. */
static const char *quote(struct slice s, char to[QUOTED_BYTES])
{
    size_t n = 0;
    to[n++] = '"';
    for (size_t i = 0; i < s.len && n < QUOTED_BYTES - 8; i++) {
        uint8_t c = s.ptr[i];
        if (c == '"' || c == '\\') {
            to[n++] = '\\';
            to[n++] = (char)c;
        } else if (c == '\t') {
            to[n++] = '\\';
            to[n++] = 't';
        } else if (c >= ' ' && c != 0x7f) {
            to[n++] = (char)c;
        } else {
            n += (size_t)snprintf(to + n, 5, "\\x%02x", c);
        }
    }
    to[n++] = '"';
    to[n] = '\0';
    return to;
}

static bool is_grpc_type(struct slice type)
{
    struct slice base = SLICE_LITERAL("application/grpc");
    if (!slice_has_prefix(type, base))
        return false;
    return type.len == base.len || type.ptr[base.len] == '+' || type.ptr[base.len] == ';';
}

static bool check_content_type(struct grpc_call *call)
{
    struct slice type = SLICE_EMPTY;
    char quoted[QUOTED_BYTES];
    (void)h2_headers_get(call->headers, SLICE_LITERAL("content-type"), &type);
    if (is_grpc_type(type))
        return true;
    grpc_call_fail_format(refused(call, 415), GRPC_INVALID_ARGUMENT,
                          "invalid gRPC request content-type %s", quote(type, quoted));
    return false;
}

static bool check_host(struct grpc_call *call)
{
    size_t hosts = h2_headers_count(call->headers, SLICE_LITERAL("host"));
    size_t authorities = call->headers->authority.ptr ? 1 : 0;
    if (hosts > 1) {
        grpc_call_fail_format(
            refused(call, 400), GRPC_INTERNAL,
            "num values of :authority: %zu, num values of host: %zu, both must only have 1 value"
            " as per HTTP/2 spec",
            authorities, hosts);
        return false;
    }
    return true;
}

static bool check_authority(struct grpc_call *call)
{
    struct slice host;
    if (call->headers->authority.ptr || h2_headers_get(call->headers, SLICE_LITERAL("host"), &host))
        return true;
    grpc_call_fail_format(refused(call, 400), GRPC_INTERNAL,
                          "no host or :authority header present");
    return false;
}

static const char *const timeout_faults[] = {
    [GRPC_TIMEOUT_SHORT] = "string is too short",
    [GRPC_TIMEOUT_LONG] = "string is too long",
    [GRPC_TIMEOUT_UNIT] = "unit is not recognized",
};

/* ret_fixed: the result is the same for every call with these fields. */
static bool check_timeout(struct grpc_call *call, bool *ret_fixed)
{
    struct slice text;
    char quoted[QUOTED_BYTES];
    if (!h2_headers_get(call->headers, SLICE_LITERAL("grpc-timeout"), &text))
        return true;
    *ret_fixed = false;
    int64_t timeout_ns = 0;
    enum grpc_timeout_fault fault = grpc_timeout_parse(text, &timeout_ns);
    if (fault == GRPC_TIMEOUT_DIGITS) {
        text.len--; /* remove the unit, which is valid */
        grpc_call_fail_format(
            refused(call, 400), GRPC_INTERNAL,
            "malformed grpc-timeout: strconv.ParseUint: parsing %s: invalid syntax",
            quote(text, quoted));
        return false;
    }
    if (fault != GRPC_TIMEOUT_FINE) {
        grpc_call_fail_format(refused(call, 400), GRPC_INTERNAL,
                              "malformed grpc-timeout: transport: timeout %s: %s",
                              timeout_faults[fault], quote(text, quoted));
        return false;
    }
    /* A timeout of 99999999 hours is valid. */
    if (__builtin_add_overflow(call->endpoint->now_ns, timeout_ns, &call->deadline_ns))
        call->deadline_ns = INT64_MAX;
    return true;
}

static bool check_http_method(struct grpc_call *call)
{
    char quoted[QUOTED_BYTES];
    if (slice_equal(call->headers->method, SLICE_LITERAL("POST")))
        return true;
    grpc_call_fail_format(refused(call, 405), GRPC_INTERNAL,
                          "Received a HEADERS frame with :method %s which should be POST",
                          quote(call->headers->method, quoted));
    return false;
}

static bool check_time_left(struct grpc_call *call)
{
    if (call->deadline_ns > call->endpoint->now_ns)
        return true;
    grpc_call_fail_format(refused(call, 200), GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    return false;
}

static void refuse_path(struct grpc_call *call)
{
    struct slice path = call->headers->path;
    const struct grpc_services *services = call->server->services;
    /* As in grpc-go, the method is what follows the last slash, and a path without two slashes is
     * malformed. */
    const uint8_t *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
    if (!slash || slash == path.ptr) {
        char quoted[QUOTED_BYTES];
        grpc_call_fail_format(refused(call, 200), GRPC_UNIMPLEMENTED, "malformed method name: %s",
                              quote(path, quoted));
        return;
    }
    struct slice service = slice_sub(path, 1, (size_t)(slash - path.ptr) - 1);
    struct slice method = slice_sub(path, service.len + 2, path.len - service.len - 2);
    service.len = size_min(service.len, QUOTED_BYTES / 2);
    method.len = size_min(method.len, QUOTED_BYTES / 2);
    if (services && grpc_services_has(services, slice_sub(path, 0, service.len + 2)))
        grpc_call_fail_format(refused(call, 200), GRPC_UNIMPLEMENTED,
                              "unknown method %.*s for service %.*s", SLICE_ARGS(method),
                              SLICE_ARGS(service));
    else
        grpc_call_fail_format(refused(call, 200), GRPC_UNIMPLEMENTED, "unknown service %.*s",
                              SLICE_ARGS(service));
}

static bool check_origin(struct grpc_call *call)
{
    const struct grpc_services *services = call->server->services;
    /* Browsers add Origin to requests of a page; programs do not. */
    struct slice origin;
    char quoted[QUOTED_BYTES];
    if (!call->endpoint->guarded || !services || !grpc_services_refuses_pages(services) ||
        !h2_headers_get(call->headers, SLICE_LITERAL("origin"), &origin))
        return true;
    grpc_call_fail_format(refused(call, 403), GRPC_PERMISSION_DENIED,
                          "vigil: calls from a page of %s are refused without --cors",
                          quote(origin, quoted));
    return false;
}

static bool check_encoding(struct grpc_call *call)
{
    struct slice encoding;
    char quoted[QUOTED_BYTES];
    if (!h2_headers_get(call->headers, SLICE_LITERAL("grpc-encoding"), &encoding) ||
        encoding.len == 0 || slice_equal(encoding, SLICE_LITERAL("identity")))
        return true;
    if (slice_equal(encoding, SLICE_LITERAL("gzip")) &&
        grpc_services_gunzip(call->server->services))
        return true;
    grpc_call_fail_format(refused(call, 200), GRPC_UNIMPLEMENTED,
                          "grpc: Decompressor is not installed for grpc-encoding %s",
                          quote(encoding, quoted));
    return false;
}

/* The deadline counts from the current time, because the turn may have begun a while ago. Counting
 * from its beginning would let the call expire here earlier than at the client. */
static void count_from_now(struct grpc_call *call)
{
    const struct grpc_endpoint *endpoint = call->endpoint;
    if (call->deadline_ns == INT64_MAX || !endpoint->fresh_ns)
        return;
    int64_t late_ns = endpoint->fresh_ns(endpoint->peer.owner) - endpoint->now_ns;
    if (late_ns > 0 && __builtin_add_overflow(call->deadline_ns, late_ns, &call->deadline_ns))
        call->deadline_ns = INT64_MAX;
}

/* The checks are in grpc-go's order. */
static void find_route(struct grpc_call *call)
{
    struct h2_headers *headers = call->headers;
    bool fixed = true;
    if (!check_host(call) || !check_content_type(call) || !check_timeout(call, &fixed) ||
        !check_authority(call) || !check_http_method(call) || !check_time_left(call) ||
        !check_origin(call))
        return;
    const struct grpc_row *row =
        call->server->services ? grpc_services_find(call->server->services, headers->path) : NULL;
    if (!row) {
        refuse_path(call);
        return;
    }
    if (!check_encoding(call))
        return;
    call->row = row;
    call->method = row->method;
    count_from_now(call);
    /* The header decoder remembers recent blocks. A call with the same block finds its method
     * without these checks. */
    if (fixed)
        headers->note = row;
}

void grpc_call_route(struct grpc_call *call)
{
    if (LIKELY(call->headers->note != NULL)) {
        call->row = call->headers->note;
        call->method = call->row->method;
    } else {
        find_route(call);
    }
    grpc_call_count(call, GRPC_COUNT_STARTED, 1);
}
