#include "kubeclient/connect/server_url.h"

#include "wire/http/http1/parser.h"

#include <stdio.h>
#include <strings.h>

/* A URL that may have a password is not shown. */
static enum status invalid(struct error *error, const char *text, const char *why)
{
    if (strchr(text, '@'))
        return error_set(error, ST_INVALID, "the server's URL %s", why);
    return error_set(error, ST_INVALID, "the server's URL \"%.200s\" %s", text, why);
}

static bool take_scheme(struct slice *rest, const char *scheme)
{
    size_t len = strlen(scheme);
    if (rest->len < len || strncasecmp((const char *)rest->ptr, scheme, len) != 0)
        return false;
    *rest = slice_sub(*rest, len, rest->len - len);
    return true;
}

static enum status parse_web(const char *text, struct slice rest, bool secure,
                             struct server_url *url, struct error *error)
{
    char whole[ENDPOINT_TEXT_BYTES + 16];
    const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;
    struct slice authority = slice_sub(rest, 0, len);
    rest = slice_sub(rest, len, rest.len - len); /* the path, with its slash */
    if (authority.len == 0)
        return invalid(error, text, "has no host");
    if (memchr(authority.ptr, '@', authority.len))
        return invalid(error, text, "has a user, which is not supported: use user and password");
    if (authority.len >= ENDPOINT_HOST_BYTES)
        return invalid(error, text, "has too long a host");
    while (rest.len && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    if (rest.len && (!http1_is_target(rest) || memchr(rest.ptr, '?', rest.len)))
        return invalid(error, text, "has a path that cannot be used");
    /* A colon within the brackets of an IPv6 address does not begin a port. */
    const uint8_t *colon = memrchr(authority.ptr, ':', authority.len);
    const uint8_t *bracket = memrchr(authority.ptr, ']', authority.len);
    bool has_port = colon && (!bracket || bracket < colon);
    snprintf(whole, sizeof(whole), "%s://%.*s%s", secure ? "https" : "http", SLICE_ARGS(authority),
             has_port ? "" : (secure ? ":443" : ":80"));
    url->prefix = rest;
    return endpoint_parse(slice_from_text(whole), &url->endpoint, error);
}

enum status server_url_parse(const char *text, bool tls_configured, struct server_url *ret_url,
                             struct error *error)
{
    struct server_url url = {0};
    struct slice rest = slice_trim(slice_from_text(text));
    if (slice_has_prefix(rest, SLICE_LITERAL("unix")) && memchr(rest.ptr, ':', rest.len))
        TRY(endpoint_parse(rest, &url.endpoint, error));
    else if (take_scheme(&rest, "https://"))
        TRY(parse_web(text, rest, true, &url, error));
    else if (take_scheme(&rest, "http://"))
        TRY(parse_web(text, rest, false, &url, error));
    else if (rest.len && memmem(rest.ptr, rest.len, "://", 3))
        return invalid(error, text, "must begin with https:// or http://");
    else
        TRY(parse_web(text, rest, tls_configured, &url, error));
    *ret_url = url;
    return ST_OK;
}
