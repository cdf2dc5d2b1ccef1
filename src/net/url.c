#include "net/url.h"

#include <stdio.h>

struct scheme {
    const char *name;
    bool secure, local;
};

static const struct scheme schemes[] = {
    {"http", false, false},
    {"https", true, false},
    {"unix", false, true},
    {"unixs", true, true},
};

/* Splits "scheme:rest" and removes a leading "//" of the rest. */
static const struct scheme *take_scheme(struct slice *rest)
{
    const uint8_t *colon = rest->len ? memchr(rest->ptr, ':', rest->len) : NULL;
    if (!colon)
        return NULL;
    size_t at = (size_t)(colon - rest->ptr);
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        if (!slice_equal(slice_sub(*rest, 0, at), slice_from_text(schemes[i].name)))
            continue;
        *rest = slice_sub(*rest, at + 1, rest->len - at - 1);
        if (slice_has_prefix(*rest, SLICE_LITERAL("//")))
            *rest = slice_sub(*rest, 2, rest->len - 2);
        return &schemes[i];
    }
    return NULL;
}

static bool parse_port(struct slice digits, uint16_t *ret_port)
{
    uint64_t port;
    if (digits.len > 5 || !slice_decimal(digits, &port) || port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* "host:port"; a host with colons is in brackets. */
static bool split_host_port(struct slice text, struct slice *ret_host, uint16_t *ret_port)
{
    const uint8_t *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    if (!colon)
        return false;
    size_t at = (size_t)(colon - text.ptr);
    struct slice host = slice_sub(text, 0, at);
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[at - 1] == ']')
        host = slice_sub(host, 1, host.len - 2);
    /* An IPv6 address without brackets: its last group would be taken for the port. */
    else if (host.len && memchr(host.ptr, ':', host.len))
        return false;
    if (!parse_port(slice_sub(text, at + 1, text.len - at - 1), ret_port))
        return false;
    *ret_host = host;
    return true;
}

bool url_is_host(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c < 0x80 && (c == 0 || !strchr("-_.~!$&'()*+,;=:[]<>\"", c)))
            return false;
    }
    return true;
}

/* text: for the error. */
static enum status split_host(struct slice rest, struct slice text, struct url_parts *parts,
                              struct error *error)
{
    const uint8_t *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    if (slash)
        return error_set(error, ST_INVALID, "URL must not contain a path: %.*s", SLICE_ARGS(text));
    if (!split_host_port(rest, &parts->host, &parts->port))
        return error_set(error, ST_INVALID,
                         "URL address does not have the form \"host:port\": %.*s",
                         SLICE_ARGS(text));
    return ST_OK;
}

enum status url_split(struct slice text, struct url_parts *ret_parts, struct error *error)
{
    text = slice_trim(text);
    struct slice rest = text;
    const struct scheme *scheme = take_scheme(&rest);
    if (!scheme)
        return error_set(error, ST_INVALID, "URL scheme must be http, https, unix, or unixs: %.*s",
                         SLICE_ARGS(text));
    struct url_parts parts = {.secure = scheme->secure, .local = scheme->local};
    /* What follows is a path, relative or absolute. */
    if (scheme->local) {
        parts.path = rest;
        *ret_parts = parts;
        return ST_OK;
    }
    TRY(split_host(rest, text, &parts, error));
    *ret_parts = parts;
    return ST_OK;
}

enum status url_split_host(struct slice text, struct url_parts *ret_parts, struct error *error)
{
    struct url_parts parts = {0};
    TRY(split_host(text, text, &parts, error));
    *ret_parts = parts;
    return ST_OK;
}

/* names: a host that is not an address is accepted, and the address is left empty. */
static enum status parse(struct slice text, bool names, struct url *ret_url, struct error *error)
{
    struct url_parts parts;
    TRY(url_split(text, &parts, error));
    struct url url = {.secure = parts.secure};
    if (parts.local) {
        if (address_from_path(parts.path, &url.address) != ST_OK)
            return error_set(error, ST_INVALID, "not a path for a Unix socket: %.*s",
                             SLICE_ARGS(slice_trim(text)));
        *ret_url = url;
        return ST_OK;
    }
    if (address_from_host(parts.host, parts.port, &url.address) != ST_OK && !names)
        return error_set(error, ST_INVALID, "expected IP in URL for binding (%.*s)",
                         SLICE_ARGS(slice_trim(text)));
    if (!url_is_host(parts.host))
        return error_set(error, ST_INVALID, "invalid character in host name: %.*s",
                         SLICE_ARGS(slice_trim(text)));
    *ret_url = url;
    return ST_OK;
}

enum status url_parse(struct slice text, struct url *ret_url, struct error *error)
{
    return parse(text, false, ret_url, error);
}

enum status url_check(struct slice text, struct error *error)
{
    struct url unused;
    return parse(text, true, &unused, error);
}

void url_format(const struct url *url, char text[URL_TEXT_BYTES])
{
    char address[ADDRESS_TEXT_BYTES];
    address_format(&url->address, address);
    snprintf(text, URL_TEXT_BYTES, "%s%s://%s", address_is_path(&url->address) ? "unix" : "http",
             url->secure ? "s" : "", address);
}
