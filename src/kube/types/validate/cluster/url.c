#include "kube/types/validate/cluster/url.h"

#include <stdio.h>

static bool fail(char why[URL_WHY_BYTES], const char *text)
{
    snprintf(why, URL_WHY_BYTES, "%s", text);
    return false;
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Without a scheme the text stays as it is. */
static bool read_scheme(struct slice *rest, struct slice *ret_scheme, char why[URL_WHY_BYTES])
{
    *ret_scheme = SLICE_EMPTY;
    for (size_t i = 0; i < rest->len; i++) {
        uint8_t c = rest->ptr[i];
        if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
            (i && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            continue;
        if (c != ':')
            return true;
        if (!i)
            return fail(why, "missing protocol scheme");
        *ret_scheme = slice_sub(*rest, 0, i);
        *rest = slice_sub(*rest, i + 1, rest->len - i - 1);
        return true;
    }
    return true;
}

static bool check_escapes(struct slice text, char why[URL_WHY_BYTES])
{
    for (size_t i = 0; i < text.len; i++) {
        size_t len = size_min(text.len - i, 3);
        if (text.ptr[i] != '%' || (len == 3 && is_hex(text.ptr[i + 1]) && is_hex(text.ptr[i + 2])))
            continue;
        snprintf(why, URL_WHY_BYTES, "invalid URL escape \"%.*s\"", (int)len,
                 (const char *)text.ptr + i);
        return false;
    }
    return true;
}

/* Where the port begins, with its colon; an IPv6 address is in brackets. */
static bool check_port_of(struct slice host, char why[URL_WHY_BYTES])
{
    size_t at = host.len;
    if (host.len && host.ptr[0] == '[') {
        const uint8_t *end = memchr(host.ptr, ']', host.len);
        if (!end)
            return fail(why, "missing ']' in host");
        at = (size_t)(end - host.ptr) + 1;
    } else {
        while (at > 0 && host.ptr[at - 1] != ':')
            at--;
        at = at ? at - 1 : host.len;
    }
    struct slice port = slice_sub(host, at, host.len - at);
    bool valid = !port.len || port.ptr[0] == ':';
    for (size_t i = 1; i < port.len; i++)
        valid = valid && port.ptr[i] >= '0' && port.ptr[i] <= '9';
    if (!valid)
        snprintf(why, URL_WHY_BYTES, "invalid port \"%.*s\" after host",
                 (int)size_min(port.len, 100), (const char *)port.ptr);
    return valid;
}

static bool read_authority(struct slice *rest, struct url *u, char why[URL_WHY_BYTES])
{
    struct slice all = slice_sub(*rest, 2, rest->len - 2);
    const uint8_t *slash = all.len ? memchr(all.ptr, '/', all.len) : NULL;
    size_t len = slash ? (size_t)(slash - all.ptr) : all.len;
    *rest = slice_sub(all, len, all.len - len);
    u->host = slice_sub(all, 0, len);
    const uint8_t *at = len ? memrchr(u->host.ptr, '@', len) : NULL;
    if (at) {
        size_t user = (size_t)(at - u->host.ptr);
        u->has_user = true;
        u->user = slice_sub(u->host, 0, user);
        u->host = slice_sub(u->host, user + 1, len - user - 1);
    }
    if (u->host.len && memchr(u->host.ptr, ' ', u->host.len))
        return fail(why, "invalid character \" \" in host name");
    return check_port_of(u->host, why);
}

static bool read_hierarchy(struct slice rest, struct url *u, char why[URL_WHY_BYTES])
{
    bool slashes = slice_has_prefix(rest, SLICE_LITERAL("//"));
    bool three = slice_has_prefix(rest, SLICE_LITERAL("///"));
    if (!rest.len || rest.ptr[0] != '/') {
        struct slice whole = rest, first = slice_cut(&whole, '/');
        if (u->scheme.len)
            return true; /* opaque */
        if (first.len && memchr(first.ptr, ':', first.len))
            return fail(why, "first path segment in URL cannot contain colon");
    }
    if (slashes && (u->scheme.len || !three) && !read_authority(&rest, u, why))
        return false;
    u->path = rest;
    return check_escapes(rest, why);
}

bool url_read(struct slice text, struct url *ret_url, char why[URL_WHY_BYTES])
{
    struct url u = {0};
    struct slice fragment = text, rest = slice_cut(&fragment, '#');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return fail(why, "net/url: invalid control character in URL");
    }
    if (!read_scheme(&rest, &u.scheme, why))
        return false;
    u.query = rest;
    rest = slice_cut(&u.query, '?');
    u.fragment = fragment;
    if (!check_escapes(fragment, why) || !read_hierarchy(rest, &u, why))
        return false;
    *ret_url = u;
    return true;
}
