#include "wire/http/origin.h"

#include <arpa/inet.h>
#include <strings.h>

struct slice http_host_name(struct slice host)
{
    const uint8_t *colon = host.len ? memrchr(host.ptr, ':', host.len) : NULL;
    if (!colon)
        return host;
    struct slice name = slice_sub(host, 0, (size_t)(colon - host.ptr));
    struct slice port = slice_sub(host, name.len + 1, host.len - name.len - 1);
    if (port.len && (memchr(port.ptr, ']', port.len) || memchr(port.ptr, '[', port.len)))
        return host;
    if (name.len && name.ptr[0] == '[') {
        bool closed = name.ptr[name.len - 1] == ']' &&
                      memchr(name.ptr, ']', name.len) == name.ptr + name.len - 1 &&
                      !memchr(name.ptr + 1, '[', name.len - 1);
        return closed ? slice_sub(name, 1, name.len - 2) : host;
    }
    bool plain =
        !name.len || (!memchr(name.ptr, ':', name.len) && !memchr(name.ptr, '[', name.len) &&
                      !memchr(name.ptr, ']', name.len));
    return plain ? name : host;
}

static bool same_text(struct slice a, struct slice b)
{
    return a.len == b.len && strncasecmp((const char *)a.ptr, (const char *)b.ptr, a.len) == 0;
}

static bool is_loopback_address(struct slice name)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr six;
    struct in_addr four;
    if (name.len >= sizeof(text))
        return false;
    slice_copy(text, name);
    text[name.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, text, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

bool http_host_is_loopback(struct slice host)
{
    struct slice name = http_host_name(host);
    if (name.len > 2 && name.ptr[0] == '[' &&
        name.ptr[name.len - 1] == ']') /* an IPv6 address without a port */
        name = slice_sub(name, 1, name.len - 2);
    return same_text(name, SLICE_LITERAL("localhost")) || is_loopback_address(name);
}

/* Browsers request images, scripts, frames and links without Origin, but with Sec-Fetch-Site. */
static bool says_foreign(const struct http_request *request)
{
    struct slice site;
    return http_request_get(request, SLICE_LITERAL("sec-fetch-site"), &site) &&
           !slice_equal(site, SLICE_LITERAL("same-origin")) &&
           !slice_equal(site, SLICE_LITERAL("none")); /* entered by the user, or a bookmark */
}

bool http_is_foreign(const struct http_request *request, struct slice *ret_origin)
{
    struct slice scheme = request->secure ? SLICE_LITERAL("https://") : SLICE_LITERAL("http://");
    struct slice origin = SLICE_EMPTY;
    bool given = http_request_get(request, SLICE_LITERAL("origin"), &origin);
    *ret_origin = origin;
    if (!given)
        return says_foreign(request);
    return origin.len <= scheme.len || !same_text(slice_sub(origin, 0, scheme.len), scheme) ||
           !same_text(slice_sub(origin, scheme.len, origin.len - scheme.len), request->host);
}
