#include "client/names/endpoint.h"

#include "net/url.h"

#include <stdio.h>

static void copy_host(struct endpoint *endpoint, struct slice host)
{
    size_t len = size_min(host.len, sizeof(endpoint->host) - 1);
    slice_copy(endpoint->host, slice_sub(host, 0, len));
    endpoint->host[len] = 0;
}

static void set_text(struct endpoint *endpoint)
{
    bool brackets = strchr(endpoint->host, ':') != NULL;
    snprintf(endpoint->text, sizeof(endpoint->text), "%s%s%s:%u", brackets ? "[" : "",
             endpoint->host, brackets ? "]" : "", endpoint->port);
}

/* "10.0.0.1:2379" is "http://10.0.0.1:2379", except for its security. */
static enum status split(struct slice text, struct url_parts *ret_parts, bool *ret_scheme,
                         struct error *error)
{
    *ret_scheme = text.len && memmem(text.ptr, text.len, "://", 3);
    *ret_scheme |= slice_has_prefix(text, SLICE_LITERAL("unix:")) ||
                   slice_has_prefix(text, SLICE_LITERAL("unixs:"));
    if (*ret_scheme) {
        if (text.len && text.ptr[text.len - 1] == '/' &&
            slice_has_prefix(text, SLICE_LITERAL("http")))
            text.len--; /* "http://10.0.0.1:2379/" */
        return url_split(text, ret_parts, error);
    }
    return url_split_host(text, ret_parts, error);
}

enum status endpoint_parse(struct slice text, struct endpoint *ret_endpoint, struct error *error)
{
    struct url_parts parts;
    bool has_scheme;
    struct endpoint endpoint = {0};
    text = slice_trim(text);
    TRY(split(text, &parts, &has_scheme, error));
    endpoint.security = parts.secure ? ENDPOINT_TLS
                        : has_scheme ? ENDPOINT_PLAIN
                                     : ENDPOINT_TLS_IF_CONFIGURED;
    if (parts.local) {
        if (address_from_path(parts.path, &endpoint.path) != ST_OK)
            return error_set(error, ST_INVALID, "not a path for a Unix socket: %.*s",
                             (int)size_min(text.len, 300), (const char *)text.ptr);
        endpoint.is_path = true;
        snprintf(endpoint.text, sizeof(endpoint.text), "%s", address_path(&endpoint.path));
        const uint8_t *slash = memrchr(parts.path.ptr, '/', parts.path.len);
        size_t skip = slash ? (size_t)(slash - parts.path.ptr) + 1 : 0;
        struct slice rest = slice_sub(parts.path, skip, parts.path.len - skip);
        copy_host(&endpoint, slice_cut(&rest, ':'));
    } else {
        if (parts.host.len >= sizeof(endpoint.host) || !url_is_host(parts.host))
            return error_set(error, ST_INVALID, "not a host name: %.*s",
                             (int)size_min(text.len, 300), (const char *)text.ptr);
        copy_host(&endpoint, parts.host.len ? parts.host : SLICE_LITERAL("localhost"));
        endpoint.port = parts.port;
        set_text(&endpoint);
    }
    *ret_endpoint = endpoint;
    return ST_OK;
}

void endpoint_from_target(const char *host, uint16_t port, bool secure,
                          struct endpoint *ret_endpoint)
{
    struct endpoint endpoint = {.security = secure ? ENDPOINT_TLS : ENDPOINT_PLAIN, .port = port};
    copy_host(&endpoint, slice_from_text(host));
    set_text(&endpoint);
    *ret_endpoint = endpoint;
}
