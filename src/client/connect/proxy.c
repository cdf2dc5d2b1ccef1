#include "client/connect/proxy.h"

#include "codec/base64.h"
#include "wire/http/query.h"

#include <stdio.h>

static const struct scheme {
    const char *name;
    enum proxy_kind kind;
    bool secure;
    uint16_t port; /* the default */
} schemes[] = {
    {"http", PROXY_HTTP, false, 80},
    {"https", PROXY_HTTP, true, 443},
    {"socks5", PROXY_SOCKS5, false, 1080},
    {"socks5h", PROXY_SOCKS5, false, 1080}, /* names are always looked up by the proxy */
};

static const struct scheme *cut_scheme(struct slice *url)
{
    for (size_t i = 0; i < COUNT_OF(schemes); i++) {
        size_t len = strlen(schemes[i].name);
        struct slice head = slice_sub(*url, 0, size_min(url->len, len));
        struct slice rest = slice_sub(*url, head.len, url->len - head.len);
        if (!http_name_equal(head, slice_from_text(schemes[i].name)) ||
            !slice_has_prefix(rest, SLICE_LITERAL("://")))
            continue;
        *url = slice_sub(rest, 3, rest.len - 3);
        return &schemes[i];
    }
    return NULL;
}

/* -- The user -- */

static bool decode(struct slice text, char to[static PROXY_USER_BYTES])
{
    size_t len;
    if (text.len >= 3 * PROXY_USER_BYTES)
        return false;
    uint8_t decoded[3 * PROXY_USER_BYTES];
    if (!http_path_decode(text, decoded, &len) || len >= PROXY_USER_BYTES ||
        memchr(decoded, 0, len))
        return false;
    memcpy(to, decoded, len);
    to[len] = 0;
    return true;
}

/* Removes "user:password@". False: it is malformed or too long. */
static bool cut_user(struct slice *authority, struct proxy *proxy)
{
    const uint8_t *at = authority->len ? memrchr(authority->ptr, '@', authority->len) : NULL;
    if (!at)
        return true;
    size_t len = (size_t)(at - authority->ptr);
    struct slice password = slice_sub(*authority, 0, len);
    struct slice user = slice_cut(&password, ':');
    *authority = slice_sub(*authority, len + 1, authority->len - len - 1);
    proxy->has_user = true;
    if (!decode(user, proxy->user) || !decode(password, proxy->password))
        return false;
    char plain[2 * PROXY_USER_BYTES];
    int plain_len = snprintf(plain, sizeof(plain), "%s:%s", proxy->user, proxy->password);
    struct slice pair = slice_of(plain, (size_t)plain_len);
    memcpy(proxy->authorization, "Basic ", 6);
    base64_encode(pair, (uint8_t *)proxy->authorization + 6);
    proxy->authorization[6 + base64_encoded_len(pair.len)] = 0;
    return true;
}

/* -- The whole -- */

static enum status set_endpoint(struct proxy *proxy, const struct scheme *scheme, struct slice host,
                                struct error *error)
{
    char text[ENDPOINT_TEXT_BYTES + 16], port[8] = "";
    if (host.len == 0 || host.len >= ENDPOINT_TEXT_BYTES)
        return error_set(error, ST_INVALID, "the URL of the proxy has no host, or a too long one");
    /* A colon within the brackets of an IPv6 address does not begin a port. */
    const uint8_t *colon = memrchr(host.ptr, ':', host.len);
    const uint8_t *bracket = memrchr(host.ptr, ']', host.len);
    if (!colon || (bracket && colon < bracket))
        snprintf(port, sizeof(port), ":%u", scheme->port);
    int len = snprintf(text, sizeof(text), "%s://%.*s%s", scheme->secure ? "https" : "http",
                       SLICE_ARGS(host), port);
    return endpoint_parse(slice_of(text, (size_t)len), &proxy->endpoint, error);
}

enum status proxy_parse(struct slice url, struct proxy *ret_proxy, struct error *error)
{
    struct slice rest = url;
    const struct scheme *scheme = cut_scheme(&rest);
    if (!scheme)
        return error_set(error, ST_INVALID,
                         "the URL of the proxy must begin with http://, https:// or socks5://");
    struct proxy proxy = {.kind = scheme->kind};
    /* The path, the query and the fragment mean nothing to a proxy. */
    static const uint8_t ends[] = {'/', '?', '#'};
    size_t len = 0;
    while (len < rest.len && !memchr(ends, rest.ptr[len], sizeof(ends)))
        len++;
    struct slice authority = slice_sub(rest, 0, len);
    if (!cut_user(&authority, &proxy))
        return error_set(error, ST_INVALID,
                         "the user or the password in the URL of the proxy is malformed or longer "
                         "than %d bytes",
                         PROXY_USER_BYTES - 1);
    TRY(set_endpoint(&proxy, scheme, authority, error));
    *ret_proxy = proxy;
    return ST_OK;
}
