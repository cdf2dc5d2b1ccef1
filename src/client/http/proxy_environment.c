#include "client/http/proxy_environment.h"

#include "wire/http/field.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

/* An address of IPv4 or IPv6; len is 0 for a name. */
struct host_address {
    uint8_t bytes[16];
    size_t len;
};

static struct host_address parse_address(struct slice text)
{
    char copy[INET6_ADDRSTRLEN];
    struct host_address address = {.len = 0};
    if (text.len >= sizeof(copy))
        return address;
    slice_copy(copy, text);
    copy[text.len] = 0;
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.len = 4;
    else if (inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.len = 16;
    return address;
}

static bool is_loopback(const struct host_address *address)
{
    static const uint8_t v6[16] = {[15] = 1};
    return address->len == 4 ? address->bytes[0] == 127
                             : address->len == 16 && memcmp(address->bytes, v6, 16) == 0;
}

/* -- Entries of NO_PROXY -- */

static bool parse_number(struct slice text, unsigned max, unsigned *ret_number)
{
    unsigned number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || number > max)
            return false;
        number = number * 10 + (unsigned)(text.ptr[i] - '0');
    }
    *ret_number = number;
    return text.len > 0 && number <= max;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned rest = bits % 8;
    uint8_t mask = (uint8_t)(0xff00 >> rest);
    return memcmp(a, b, bits / 8) == 0 && ((a[bits / 8] ^ b[bits / 8]) & mask) == 0;
}

/* "10.0.0.0/8" */
static bool network_contains(struct slice entry, const struct host_address *address)
{
    unsigned bits;
    struct slice rest = entry;
    struct host_address network = parse_address(slice_cut(&rest, '/'));
    if (network.len == 0 || network.len != address->len ||
        !parse_number(rest, (unsigned)network.len * 8, &bits))
        return false;
    return bits == network.len * 8 ? memcmp(network.bytes, address->bytes, network.len) == 0
                                   : same_bits(network.bytes, address->bytes, bits);
}

/* Removes ":port", and the brackets before it. "": there is none. */
static struct slice cut_port(struct slice *entry)
{
    const uint8_t *first = memchr(entry->ptr, ':', entry->len);
    const uint8_t *last = memrchr(entry->ptr, ':', entry->len);
    bool bracketed = entry->ptr[0] == '[' && last && last > entry->ptr && last[-1] == ']';
    if (!last || (first != last && !bracketed))
        return SLICE_EMPTY; /* the colons are those of an address */
    size_t len = (size_t)(last - entry->ptr);
    struct slice port = slice_sub(*entry, len + 1, entry->len - len - 1);
    *entry = bracketed ? slice_sub(*entry, 1, len - 2) : slice_sub(*entry, 0, len);
    return port;
}

/* "example.com" is the domain and all names in it, ".example.com" and "*.example.com" only those.
 */
static bool domain_contains(struct slice domain, struct slice host)
{
    if (slice_has_prefix(domain, SLICE_LITERAL("*.")))
        domain = slice_sub(domain, 1, domain.len - 1);
    bool itself = domain.len && domain.ptr[0] != '.';
    if (host.len <= domain.len)
        return itself && http_name_equal(host, domain);
    struct slice end = slice_sub(host, host.len - domain.len, domain.len);
    return http_name_equal(end, domain) && (!itself || host.ptr[host.len - domain.len - 1] == '.');
}

static bool entry_matches(struct slice entry, const struct endpoint *server,
                          const struct host_address *address)
{
    unsigned number;
    if (entry.len == 0)
        return false;
    if (slice_equal(entry, SLICE_LITERAL("*")) || network_contains(entry, address))
        return true;
    struct slice port = cut_port(&entry);
    if (entry.len == 0 ||
        (port.len && (!parse_number(port, UINT16_MAX, &number) || number != server->port)))
        return false;
    struct host_address own = parse_address(entry);
    if (own.len)
        return own.len == address->len && memcmp(own.bytes, address->bytes, own.len) == 0;
    return address->len == 0 && domain_contains(entry, slice_from_text(server->host));
}

static bool is_exempt(const struct endpoint *server, const char *no_proxy)
{
    struct host_address address = parse_address(slice_from_text(server->host));
    struct slice rest = slice_from_text(no_proxy ? no_proxy : "");
    if (strcmp(server->host, "localhost") == 0 || is_loopback(&address))
        return true;
    while (rest.len)
        if (entry_matches(slice_trim(slice_cut(&rest, ',')), server, &address))
            return true;
    return false;
}

/* -- The whole -- */

static const char *get_any(proxy_environment_fn *get, const char *name, const char *other)
{
    const char *value = get(name);
    if (!value || !*value)
        value = get(other);
    return value && *value ? value : NULL;
}

enum status proxy_environment_find(const struct endpoint *server, bool secure,
                                   proxy_environment_fn *get, char **ret_url)
{
    const char *url = secure ? get_any(get, "HTTPS_PROXY", "https_proxy")
                             : get_any(get, "HTTP_PROXY", "http_proxy");
    *ret_url = NULL;
    /* In CGI a client of the web server can set HTTP_PROXY. */
    if (!url || (!secure && get_any(get, "REQUEST_METHOD", "REQUEST_METHOD")) || server->is_path ||
        is_exempt(server, get_any(get, "NO_PROXY", "no_proxy")))
        return ST_OK;
    const char *scheme = strstr(url, "://") ? "" : "http://";
    size_t len = strlen(scheme) + strlen(url) + 1;
    char *copy = malloc(len);
    if (!copy)
        return ST_NOMEM;
    snprintf(copy, len, "%s%s", scheme, url);
    *ret_url = copy;
    return ST_OK;
}
