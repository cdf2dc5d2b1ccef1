#include "cel/library/go_url.h"

#include "cel/library/library.h"
#include "cel/library/writer.h"
#include "codec/go_address.h"

#include <ctype.h>

/* Where a text is in a URL, which decides about what is escaped. */
enum place { PATH, HOST, ZONE, USER, QUERY, FRAGMENT };

static bool is_one_of(uint8_t c, const char *bytes)
{
    return c && strchr(bytes, c);
}

static bool is_letter(uint8_t c)
{
    uint8_t lower = c | 0x20;
    return lower >= 'a' && lower <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* -- Escapes -- */

static bool needs_escape(uint8_t c, enum place place)
{
    static const char *const plain[] = {
        [PATH] = "$&+,/:;=@",
        [HOST] = "!$&'()*+,;=:[]<>\"",
        [ZONE] = "!$&'()*+,;=:[]<>\"",
        [USER] = "$&+,;=",
        [QUERY] = "",
        [FRAGMENT] = "$&+,/:;=?@!()*",
    };
    return !is_letter(c) && !is_digit(c) && !is_one_of(c, "-_.~") && !is_one_of(c, plain[place]);
}

static void write_escaped(struct cel_writer *to, struct slice text, enum place place)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len && !to->failed; i++) {
        uint8_t c = text.ptr[i];
        char escape[] = {'%', digits[c >> 4], digits[c & 15]};
        cel_write(to, needs_escape(c, place) ? slice_of(escape, 3) : slice_sub(text, i, 1));
    }
}

/* The value of two digits behind a percent sign, or -1. */
static int escaped_byte(struct slice text, size_t at)
{
    int value = 0;
    for (size_t i = at + 1; i < at + 3; i++) {
        if (i >= text.len || !isxdigit(text.ptr[i]))
            return -1;
        uint8_t lower = text.ptr[i] | 0x20;
        value = value * 16 + (is_digit(text.ptr[i]) ? lower - '0' : lower - 'a' + 10);
    }
    return value;
}

static struct cel_value bad_escape(struct cel_work *work, struct slice text, size_t at)
{
    struct slice escape = slice_sub(text, at, size_min(3, text.len - at));
    return cel_of_error_format(work, "invalid URL escape %s", cel_quoted(work, escape));
}

/* Whether the escapes and characters are those that are allowed here. */
static bool check_escapes(struct cel_work *work, struct slice text, enum place place,
                          struct cel_value *ret_error)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c != '%') {
            if ((place != HOST && place != ZONE) || c >= 0x80 || !needs_escape(c, place))
                continue;
            *ret_error = cel_of_error_format(work, "invalid character %s in host name",
                                             cel_quoted(work, slice_sub(text, i, 1)));
            return false;
        }
        int value = escaped_byte(text, i);
        bool is_allowed = value >= 0;
        /* A host may have escapes for characters beyond ASCII, and for the percent sign before a
         * zone, which may itself have those that a host may have unescaped. */
        if (place == HOST)
            is_allowed = value >= 0x80 || value == '%';
        else if (place == ZONE)
            is_allowed =
                value == '%' || value == ' ' || (value >= 0 && !needs_escape((uint8_t)value, HOST));
        if (!is_allowed) {
            *ret_error = bad_escape(work, text, i);
            return false;
        }
        i += 2;
    }
    return true;
}

static bool unescape(struct cel_work *work, struct slice text, enum place place,
                     struct slice *ret_text, struct cel_value *ret_error)
{
    work->steps_left -= (int64_t)(text.len / 16);
    if (!check_escapes(work, text, place, ret_error))
        return false;
    uint8_t *to = arena_alloc(work->arena, text.len + 1);
    size_t length = 0;
    if (!to) {
        *ret_error = CEL_NO_MEMORY;
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        if (c == '%') {
            to[length++] = (uint8_t)escaped_byte(text, i);
            i += 2;
        } else {
            to[length++] = c == '+' && place == QUERY ? ' ' : c;
        }
    }
    *ret_text = slice_of(to, length);
    return true;
}

bool go_url_unescape_query(struct cel_work *work, struct slice text, struct slice *ret_text)
{
    struct cel_value error;
    return unescape(work, text, QUERY, ret_text, &error);
}

/* -- Hosts -- */

/* The part behind the last of these bytes, which is removed with it. False: there is none. */
static bool cut_last(struct slice *text, char byte, struct slice *ret_behind)
{
    const uint8_t *at = text->len ? memrchr(text->ptr, byte, text->len) : NULL;
    if (!at)
        return false;
    size_t before = (size_t)(at - text->ptr);
    *ret_behind = slice_sub(*text, before + 1, text->len - before - 1);
    text->len = before;
    return true;
}

/* A colon and digits, or nothing. */
static bool check_port(struct cel_work *work, struct slice port, struct cel_value *ret_error)
{
    bool is_port = !port.len || port.ptr[0] == ':';
    for (size_t i = 1; i < port.len; i++)
        is_port &= is_digit(port.ptr[i]);
    if (!is_port)
        *ret_error =
            cel_of_error_format(work, "invalid port %s after host", cel_quoted(work, port));
    return is_port;
}

/* An IPv6 address, perhaps with a zone, as it is between the brackets. */
static bool read_address(struct cel_work *work, struct slice text, struct slice *ret_host,
                         struct cel_value *ret_error)
{
    struct slice zone = SLICE_EMPTY, decoded_zone = SLICE_EMPTY, host;
    struct go_address address;
    struct go_address_fault fault;
    const uint8_t *percent = text.len ? memmem(text.ptr, text.len, "%25", 3) : NULL;
    if (percent) {
        size_t before = (size_t)(percent - text.ptr);
        zone = slice_sub(text, before, text.len - before);
        text.len = before;
    }
    if (!unescape(work, text, HOST, &host, ret_error) ||
        !unescape(work, zone, ZONE, &decoded_zone, ret_error))
        return false;
    struct cel_writer whole = {.work = work};
    cel_write(&whole, host);
    cel_write(&whole, decoded_zone);
    host = slice_of(whole.bytes, whole.length);
    *ret_host = host;
    if (whole.failed) {
        *ret_error = CEL_NO_MEMORY;
        return false;
    }
    if (!go_address_read(host, &address, &fault)) {
        *ret_error =
            cel_of_error_format(work,
                                fault.at.len ? "invalid host: ParseAddr(%s): %s (at %s)"
                                             : "invalid host: ParseAddr(%s): %s",
                                cel_quoted(work, host), fault.why, cel_quoted(work, fault.at));
        return false;
    }
    if (!address.is_v6)
        *ret_error = CEL_FAIL("invalid IP-literal");
    return address.is_v6;
}

static bool read_bracketed(struct cel_work *work, struct slice text, struct slice *ret_host,
                           struct cel_value *ret_error)
{
    struct slice inner = slice_sub(text, 1, text.len - 1), port, address;
    if (!cut_last(&inner, ']', &port)) {
        *ret_error = CEL_FAIL("missing ']' in host");
        return false;
    }
    if (!check_port(work, port, ret_error) || !read_address(work, inner, &address, ret_error))
        return false;
    struct cel_writer host = {.work = work};
    cel_write_text(&host, "[");
    cel_write(&host, address);
    cel_write_text(&host, "]");
    cel_write(&host, port);
    *ret_host = slice_of(host.bytes, host.length);
    if (host.failed)
        *ret_error = CEL_NO_MEMORY;
    return !host.failed;
}

static bool read_host(struct cel_work *work, struct slice scheme, struct slice text,
                      struct slice *ret_host, struct cel_value *ret_error)
{
    const uint8_t *bracket = text.len ? memrchr(text.ptr, '[', text.len) : NULL;
    if (bracket == text.ptr && bracket)
        return read_bracketed(work, text, ret_host, ret_error);
    if (bracket) {
        *ret_error = CEL_FAIL("invalid IP-literal");
        return false;
    }
    /* Only URLs of the web must not have several colons. */
    bool is_web = slice_is(scheme, "http") || slice_is(scheme, "https");
    const uint8_t *colon = NULL;
    if (text.len)
        colon = is_web ? memchr(text.ptr, ':', text.len) : memrchr(text.ptr, ':', text.len);
    if (colon) {
        size_t before = (size_t)(colon - text.ptr);
        if (!check_port(work, slice_sub(text, before, text.len - before), ret_error))
            return false;
    }
    return unescape(work, text, HOST, ret_host, ret_error);
}

static bool is_user(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_letter(text.ptr[i]) && !is_digit(text.ptr[i]) &&
            !is_one_of(text.ptr[i], "-._:~!$&'()*+,;=%@"))
            return false;
    return true;
}

static bool read_authority(struct cel_work *work, struct slice text, struct go_url *url,
                           struct cel_value *ret_error)
{
    struct slice host = text, user = text, password;
    url->has_user = cut_last(&user, '@', &host);
    if (!read_host(work, url->scheme, host, &url->host, ret_error))
        return false;
    if (!url->has_user)
        return true;
    if (!is_user(user)) {
        *ret_error = CEL_FAIL("net/url: invalid userinfo");
        return false;
    }
    url->has_password = user.len && memchr(user.ptr, ':', user.len);
    password = user;
    user = slice_cut(&password, ':');
    return unescape(work, user, USER, &url->user, ret_error) &&
           unescape(work, password, USER, &url->password, ret_error);
}

/* -- URLs -- */

/* Removes a scheme and its colon. False: there is a colon, but no scheme. */
static bool take_scheme(struct slice *text, struct slice *ret_scheme)
{
    *ret_scheme = SLICE_EMPTY;
    for (size_t i = 0; i < text->len; i++) {
        uint8_t c = text->ptr[i];
        if (c == ':') {
            *ret_scheme = slice_sub(*text, 0, i);
            *text = slice_sub(*text, i + 1, text->len - i - 1);
            return i > 0;
        }
        if (!is_letter(c) && (i == 0 || (!is_digit(c) && !is_one_of(c, "+-."))))
            return true;
    }
    return true;
}

static bool lower(struct cel_work *work, struct slice text, struct slice *ret_lower)
{
    uint8_t *to = arena_alloc(work->arena, text.len + 1);
    for (size_t i = 0; to && i < text.len; i++)
        to[i] = text.ptr[i] >= 'A' && text.ptr[i] <= 'Z' ? text.ptr[i] | 0x20 : text.ptr[i];
    *ret_lower = slice_of(to, to ? text.len : 0);
    return to;
}

static bool has_control(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] == 0x7f)
            return true;
    return false;
}

/* Decodes a path or fragment, and keeps the original if it would be written in another way. */
static bool read_escaped(struct cel_work *work, struct slice text, enum place place,
                         struct slice *ret_decoded, struct slice *ret_raw,
                         struct cel_value *ret_error)
{
    struct cel_writer usual = {.work = work};
    if (!unescape(work, text, place, ret_decoded, ret_error))
        return false;
    write_escaped(&usual, *ret_decoded, place);
    *ret_raw = slice_equal(slice_of(usual.bytes, usual.length), text) ? SLICE_EMPTY : text;
    if (usual.failed)
        *ret_error = CEL_NO_MEMORY;
    return !usual.failed;
}

/* Whether a path or fragment can be written as it was read. */
static bool is_well_escaped(struct slice text, enum place place)
{
    for (size_t i = 0; i < text.len; i++)
        if (needs_escape(text.ptr[i], place) && !is_one_of(text.ptr[i], "!$&'()*+,;=:@[]%"))
            return false;
    return true;
}

/* The query behind the first question mark. */
static void take_query(struct slice *rest, struct go_url *url)
{
    const uint8_t *at = rest->len ? memchr(rest->ptr, '?', rest->len) : NULL;
    url->has_bare_query = at && at == rest->ptr + rest->len - 1;
    struct slice behind = *rest;
    *rest = slice_cut(&behind, '?');
    url->query = behind;
}

/* What comes behind the scheme and before the query. */
static bool read_hierarchy(struct cel_work *work, struct slice rest, bool as_request,
                           struct go_url *url, struct cel_value *ret_error)
{
    bool has_slash = rest.len && rest.ptr[0] == '/';
    if (!has_slash && url->scheme.len) {
        url->opaque = rest;
        return true;
    }
    if (!has_slash && as_request) {
        *ret_error = CEL_FAIL("invalid URI for request");
        return false;
    }
    struct slice behind = rest, segment = slice_cut(&behind, '/');
    if (!has_slash && segment.len && memchr(segment.ptr, ':', segment.len)) {
        *ret_error = CEL_FAIL("first path segment in URL cannot contain colon");
        return false;
    }
    bool may_have_host =
        url->scheme.len || (!as_request && !slice_has_prefix(rest, SLICE_LITERAL("///")));
    if (may_have_host && slice_has_prefix(rest, SLICE_LITERAL("//"))) {
        struct slice authority = slice_sub(rest, 2, rest.len - 2);
        const uint8_t *slash = authority.len ? memchr(authority.ptr, '/', authority.len) : NULL;
        size_t length = slash ? (size_t)(slash - authority.ptr) : authority.len;
        rest = slice_sub(authority, length, authority.len - length);
        if (!read_authority(work, slice_sub(authority, 0, length), url, ret_error))
            return false;
    } else {
        url->has_no_host = url->scheme.len && has_slash;
    }
    return read_escaped(work, rest, PATH, &url->path, &url->raw_path, ret_error);
}

static bool read_url(struct cel_work *work, struct slice text, bool as_request, struct go_url *url,
                     struct cel_value *ret_error)
{
    struct slice rest = text, scheme;
    *url = (struct go_url){0};
    if (has_control(text)) {
        *ret_error = CEL_FAIL("net/url: invalid control character in URL");
        return false;
    }
    if (!text.len && as_request) {
        *ret_error = CEL_FAIL("empty url");
        return false;
    }
    if (slice_is(text, "*")) {
        url->path = text;
        return true;
    }
    if (!take_scheme(&rest, &scheme)) {
        *ret_error = CEL_FAIL("missing protocol scheme");
        return false;
    }
    if (!lower(work, scheme, &url->scheme)) {
        *ret_error = CEL_NO_MEMORY;
        return false;
    }
    take_query(&rest, url);
    return read_hierarchy(work, rest, as_request, url, ret_error);
}

static bool fail(struct cel_work *work, struct slice text, struct cel_value *error)
{
    *error = cel_of_error_format(work, "parse %s: %.*s", cel_quoted(work, text),
                                 SLICE_ARGS(cel_text(*error)));
    return false;
}

bool go_url_read(struct cel_work *work, struct slice text, bool as_request, struct go_url *ret_url,
                 struct cel_value *ret_error)
{
    struct slice fragment = text, before = text;
    work->steps_left -= (int64_t)(text.len / 16);
    if (!as_request)
        before = slice_cut(&fragment, '#');
    else
        fragment = SLICE_EMPTY;
    if (!read_url(work, before, as_request, ret_url, ret_error))
        return fail(work, before, ret_error);
    if (fragment.len && !read_escaped(work, fragment, FRAGMENT, &ret_url->fragment,
                                      &ret_url->raw_fragment, ret_error))
        return fail(work, text, ret_error);
    return true;
}

/* -- Writing -- */

static void write_original(struct cel_writer *to, struct slice raw, struct slice decoded,
                           enum place place)
{
    if (raw.len && is_well_escaped(raw, place))
        cel_write(to, raw);
    else if (place == PATH && slice_is(decoded, "*"))
        cel_write(to, decoded);
    else
        write_escaped(to, decoded, place);
}

struct cel_value go_url_escaped_path(struct cel_work *work, const struct go_url *url)
{
    struct cel_writer to = {.work = work};
    write_original(&to, url->raw_path, url->path, PATH);
    return cel_written(&to);
}

static void write_host(struct cel_writer *to, const struct go_url *url)
{
    if ((!url->scheme.len && !url->host.len && !url->has_user) ||
        (url->has_no_host && !url->host.len && !url->has_user))
        return;
    if (url->host.len || url->path.len || url->has_user)
        cel_write_text(to, "//");
    if (url->has_user) {
        write_escaped(to, url->user, USER);
        cel_write_text(to, url->has_password ? ":" : "");
        write_escaped(to, url->password, USER);
        cel_write_text(to, "@");
    }
    write_escaped(to, url->host, HOST);
}

struct cel_value go_url_write(struct cel_work *work, const struct go_url *url)
{
    struct cel_writer to = {.work = work};
    cel_write(&to, url->scheme);
    cel_write_text(&to, url->scheme.len ? ":" : "");
    if (url->opaque.len) {
        cel_write(&to, url->opaque);
    } else {
        write_host(&to, url);
        if (url->path.len && url->path.ptr[0] != '/' && url->host.len)
            cel_write_text(&to, "/");
        write_original(&to, url->raw_path, url->path, PATH);
    }
    if (url->has_bare_query || url->query.len)
        cel_write_text(&to, "?");
    cel_write(&to, url->query);
    if (url->fragment.len) {
        cel_write_text(&to, "#");
        write_original(&to, url->raw_fragment, url->fragment, FRAGMENT);
    }
    return cel_written(&to);
}

/* The host without its port, and the port. */
static struct slice split_port(struct slice host, struct slice *ret_port)
{
    struct slice before = host;
    bool is_port = cut_last(&before, ':', ret_port);
    for (size_t i = 0; is_port && i < ret_port->len; i++)
        is_port = is_digit(ret_port->ptr[i]);
    if (is_port)
        return before;
    *ret_port = SLICE_EMPTY;
    return host;
}

struct slice go_url_hostname(const struct go_url *url)
{
    struct slice port, host = split_port(url->host, &port);
    if (host.len > 1 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        return slice_sub(host, 1, host.len - 2);
    return host;
}

struct slice go_url_port(const struct go_url *url)
{
    struct slice port;
    split_port(url->host, &port);
    return port;
}
