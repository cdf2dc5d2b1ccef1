/*
 * The checks before every HTTP request, in etcd's order: the Host field (against DNS rebinding by
 * pages of other sites, CVE-2018-5702), the origins whose pages may read the answer, and the paths
 * that Go's multiplexer would redirect to their clean form.
 *
 * etcd accepts every host and every origin unless flags restrict them. A guarded request
 * (wire/http/ exchange.h) is refused by default if its host is foreign or if it comes from a page
 * of another origin, because a page can make a browser send a POST even if it cannot read the
 * answer.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "etcd/http/http.h"
#include "wire/http/origin.h"
#include "wire/http/query.h"

#include <stdio.h>
#include <time.h>

/* Limit on the length of a path that is cleaned; a longer one is not found. */
enum { PATH_BYTES_MAX = 2048 };

static bool add_field(struct http_exchange *x, const char *name, struct slice value)
{
    if (http_add_field(x, slice_from_text(name), value) == ST_OK)
        return true;
    http_abort(x);
    return false;
}

static bool add_date(struct http_exchange *x)
{
    time_t now = (time_t)(clock_real_ns(clock_system()) / NS_PER_S);
    struct tm tm;
    char text[64];
    static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    gmtime_r(&now, &tm);
    int len = snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday],
                       tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                       tm.tm_sec);
    return add_field(x, "Date", slice_of(text, size_min((size_t)len, sizeof(text) - 1)));
}

/* An empty list, or one with "*", contains everything. */
static bool list_contains(const struct slice *list, size_t count, struct slice wanted)
{
    bool found = count == 0;
    for (size_t i = 0; i < count && !found; i++)
        found = slice_is(list[i], "*") || slice_equal(list[i], wanted);
    return found;
}

/* -- Hosts -- */

/* Whether the host is in --advertise-client-urls. */
static bool is_advertised(const struct etcd_config *config, struct slice name)
{
    for (size_t i = 0; i < config->client_url_count; i++) {
        struct slice url = config->client_urls[i];
        const uint8_t *host = memmem(url.ptr, url.len, "://", 3);
        size_t at = host ? (size_t)(host - url.ptr) + 3 : 0;
        if (slice_equal(http_host_name(slice_sub(url, at, url.len - at)), name))
            return true;
    }
    return false;
}

/* A browser always sends a host; some programs do not. */
static bool is_own_host(const struct etcd_config *config, struct slice host)
{
    return host.len == 0 || http_host_is_loopback(host) ||
           is_advertised(config, http_host_name(host));
}

static bool accepts_host(const struct etcd_config *config, const struct http_request *request)
{
    if (request->secure)
        return true;
    if (request->guarded && !config->hosts_given)
        return is_own_host(config, request->host);
    return list_contains(config->hosts, config->host_count, http_host_name(request->host));
}

static enum status write_refusal(struct buf *text, struct slice host)
{
    TRY(buf_append_text(text, "\netcd received your request, but the Host header was unrecognized."
                              "\n\nTo fix this, choose one of the following options:\n"
                              "- Enable TLS, then any HTTPS request will be allowed.\n"
                              "- Add the hostname you want to use to the whitelist in settings.\n"
                              "  - e.g. etcd --host-whitelist \""));
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.ptr[i];
        if (c == '"' || c == '\\')
            TRY(buf_append_format(text, "\\%c", c));
        else if (c < ' ' || c >= 0x7f)
            TRY(buf_append_format(text, "\\x%02x", c));
        else
            TRY(buf_append(text, slice_of(&c, 1)));
    }
    return buf_append_text(text, "\"\n\nThis requirement has been added to help prevent \"DNS "
                                 "Rebinding\" attacks (CVE-2018-5702).\n\n");
}

static bool check_host(struct http_exchange *x, struct etcd_api *api,
                       const struct http_request *request)
{
    struct log_field unlogged;
    struct slice host = http_host_name(request->host);
    if (accepts_host(api->config, request))
        return true;
    AUTO(buf_fini) struct buf text = {0};
    if (http_may_log(api, &unlogged))
        log_warn("rejecting HTTP request to prevent DNS rebinding attacks", LOG_SLICE("host", host),
                 unlogged);
    if (write_refusal(&text, host) == ST_OK)
        http_reply_text(x, 421, buf_slice(&text));
    else
        http_abort(x);
    return false;
}

/* -- Origins -- */

/* Adds the fields that let a page of a permitted origin read the answer. Other pages are answered
 * without them, as by etcd. */
static bool add_origin(struct http_exchange *x, const struct etcd_config *config,
                       const struct http_request *request)
{
    struct slice origin = SLICE_LITERAL("*");
    if (request->guarded && !config->origins_given)
        return true;
    if (!list_contains(config->origins, config->origin_count, origin)) {
        origin = SLICE_EMPTY;
        (void)http_request_get(request, SLICE_LITERAL("origin"), &origin);
        if (!list_contains(config->origins, config->origin_count, origin))
            return true;
    }
    return add_field(x, "Access-Control-Allow-Headers",
                     SLICE_LITERAL("accept, content-type, authorization")) &&
           add_field(x, "Access-Control-Allow-Methods",
                     SLICE_LITERAL("POST, GET, OPTIONS, PUT, DELETE")) &&
           add_field(x, "Access-Control-Allow-Origin", origin);
}

static void refuse_origin(struct http_exchange *x, struct etcd_api *api, struct slice origin)
{
    struct log_field unlogged;
    if (http_may_log(api, &unlogged))
        log_warn("rejecting HTTP request of a page from another origin",
                 LOG_SLICE("origin", origin), unlogged);
    http_reply_text(x, 403,
                    SLICE_LITERAL("This request comes from a page of another origin. On loopback "
                                  "without TLS such requests are refused;\nto serve them, name "
                                  "their origin with --cors.\n"));
}

static bool is_listed(const struct etcd_config *config, const struct http_request *request)
{
    struct slice origin = SLICE_EMPTY; /* without an Origin field only "*" matches */
    (void)http_request_get(request, SLICE_LITERAL("origin"), &origin);
    return config->origins_given && list_contains(config->origins, config->origin_count, origin);
}

/* False: the request was refused. */
static bool check_origin(struct http_exchange *x, struct etcd_api *api,
                         const struct http_request *request)
{
    const struct etcd_config *config = api->config;
    struct slice origin;
    if (request->guarded && !is_listed(config, request) && http_is_foreign(request, &origin)) {
        refuse_origin(x, api, origin);
        return false;
    }
    return true;
}

/* -- Paths -- */

/* Removes empty parts, "." and ".." like Go's path.Clean, but keeps a slash at the end. `to` has
 * room for one byte more than path has. */
static size_t clean_path(struct slice path, uint8_t *to)
{
    size_t n = 0, at = 0;
    bool slash = false;
    while (at < path.len) {
        const uint8_t *end = memchr(path.ptr + at, '/', path.len - at);
        struct slice part =
            slice_sub(path, at, end ? (size_t)(end - path.ptr) - at : path.len - at);
        at += part.len + 1;
        slash = end != NULL;
        if (part.len == 0 || slice_is(part, "."))
            continue;
        if (slice_is(part, "..")) {
            while (n && to[--n] != '/')
                continue;
            continue;
        }
        to[n++] = '/';
        memcpy(to + n, part.ptr, part.len);
        n += part.len;
    }
    if (n == 0 || slash)
        to[n++] = '/';
    return n;
}

static enum status append_html(struct buf *to, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&#34;"
                             : c == '\'' ? "&#39;"
                                         : NULL;
        if (entity)
            TRY(buf_append_text(to, entity));
        else
            TRY(buf_append(to, slice_of(&c, 1)));
    }
    return ST_OK;
}

static enum status redirect(struct http_exchange *x, const struct http_request *request,
                            struct slice path)
{
    AUTO(buf_fini) struct buf location = {0}, body = {0};
    /* The last etcd with a v2 API was built with a Go whose redirects are permanent. */
    bool is_v2 = slice_has_prefix(path, SLICE_LITERAL("/v2/"));
    TRY(http_escape_append(&location, path, "$&+,/:;=@")); /* as in Go */
    if (request->query.len) {
        TRY(buf_append_text(&location, "?"));
        TRY(buf_append(&location, request->query));
    }
    TRY(http_add_field(x, SLICE_LITERAL("Location"), buf_slice(&location)));
    bool shown = slice_is(request->method, "GET") || slice_is(request->method, "HEAD");
    if (shown) {
        TRY(buf_append_text(&body, "<a href=\""));
        TRY(append_html(&body, buf_slice(&location)));
        TRY(buf_append_format(&body, "\">%s</a>.\n\n",
                              is_v2 ? "Moved Permanently" : "Temporary Redirect"));
    }
    http_respond(x, is_v2 ? 301 : 307,
                 shown ? SLICE_LITERAL("text/html; charset=utf-8") : SLICE_EMPTY, buf_slice(&body));
    return ST_OK;
}

/* False: the request was redirected to its clean path. Go cleans the path as it was sent, and
 * escapes it once more. */
static bool check_path(struct http_exchange *x, const struct http_request *request)
{
    uint8_t clean[PATH_BYTES_MAX + 1];
    struct slice path = request->target;
    const uint8_t *mark = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    path.len = mark ? (size_t)(mark - path.ptr) : path.len;
    if (path.len == 0 || path.len > PATH_BYTES_MAX || path.ptr[0] != '/' ||
        slice_is(request->method, "CONNECT"))
        return true;
    size_t len = clean_path(path, clean);
    if (slice_equal(slice_of(clean, len), path))
        return true;
    enum status status = redirect(x, request, slice_of(clean, len));
    if (status != ST_OK && status != ST_LIMIT)
        http_abort(x);
    return status == ST_LIMIT; /* too long to be redirected; no route has such a path */
}

/* etcd has no check of hosts and origins here; ours is for guarded requests only. */
bool http_gate_metrics(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct etcd_api *api = ctx;
    if (!add_date(x))
        return false;
    if (request->guarded && !(check_host(x, api, request) && check_origin(x, api, request)))
        return false;
    return check_path(x, request);
}

bool http_gate_clients(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct etcd_api *api = ctx;
    if (!add_date(x) || !check_host(x, api, request) || !check_origin(x, api, request) ||
        !add_origin(x, api->config, request))
        return false;
    if (slice_is(request->method, "OPTIONS")) {
        http_respond(x, 200, SLICE_EMPTY, SLICE_EMPTY);
        return false;
    }
    return check_path(x, request);
}
