/* The paths of the gateway: which request is a call, and what the others are told. */
#include "etcd/gateway/gateway.h"

#include "etcd/gateway/work.h"

enum { PATH_BYTES_MAX = 128 }; /* no row's is longer */

/* -- Paths -- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without percent signs, and /v3beta/ as /v3/. Empty when it is no path or longer than any row's.
 */
static struct slice plain_path(struct slice path, uint8_t to[PATH_BYTES_MAX])
{
    struct slice beta = SLICE_LITERAL("/v3beta/");
    size_t n = 0;
    if (slice_has_prefix(path, beta)) {
        struct slice version = SLICE_LITERAL("/v3/");
        slice_copy(to, version);
        n = version.len;
        path = slice_sub(path, beta.len, path.len - beta.len);
    }
    for (size_t i = 0; i < path.len; i++) {
        if (n == PATH_BYTES_MAX)
            return SLICE_EMPTY;
        if (path.ptr[i] != '%') {
            to[n++] = path.ptr[i];
            continue;
        }
        int high = i + 2 < path.len ? hex_value(path.ptr[i + 1]) : -1;
        int low = i + 2 < path.len ? hex_value(path.ptr[i + 2]) : -1;
        if (high < 0 || low < 0)
            return SLICE_EMPTY;
        to[n++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return slice_of(to, n);
}

/* A form may say that it means another method; etcd's gateway listens to it. */
static bool is_post(const struct http_request *request)
{
    struct slice post = SLICE_LITERAL("POST"), type, meant;
    if (!slice_equal(request->method, post))
        return false;
    bool form = http_request_get(request, SLICE_LITERAL("content-type"), &type) &&
                slice_equal(type, SLICE_LITERAL("application/x-www-form-urlencoded"));
    if (!form || !http_request_get(request, SLICE_LITERAL("x-http-method-override"), &meant) ||
        meant.len == 0)
        return true;
    return http_name_equal(meant, post);
}

/* -- Routes -- */

static const struct gateway_row *row_of(const struct http_request *request)
{
    uint8_t bytes[PATH_BYTES_MAX];
    return gateway_row_find(plain_path(request->path, bytes));
}

static bool admit(struct http_exchange *x, void *service, const struct http_request *request)
{
    const struct gateway_row *row = row_of(request);
    if (row && is_post(request))
        return gateway_call_admit(service, row, x);
    if (row)
        gateway_respond_error(service, x, GRPC_UNIMPLEMENTED, SLICE_LITERAL("Method Not Allowed"));
    else
        gateway_respond_error(service, x, GRPC_NOT_FOUND, SLICE_LITERAL("Not Found"));
    return false;
}

static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    http_exchange_set_user(x, gateway_call_start(service, row_of(request), x));
}

static void on_end(struct http_exchange *x, void *service)
{
    (void)service;
    gateway_call_end(http_exchange_user(x));
}

static void redirect(struct http_exchange *x, void *service, const struct http_request *request)
{
    (void)service;
    (void)request;
    if (http_add_field(x, SLICE_LITERAL("Location"), SLICE_LITERAL("/v3/")) == ST_OK)
        http_respond(x, 307, SLICE_EMPTY, SLICE_EMPTY);
    else
        http_abort(x);
}

static const struct http_route routes[] = {
    {.path = "/v3", .on_request = redirect},
    {.path = "/v3/", .admit = admit, .on_request = on_request, .on_end = on_end},
    {.path = "/v3beta/", .admit = admit, .on_request = on_request, .on_end = on_end},
};

void gateway_init(struct gateway *gateway, const struct etcd_config *config,
                  const struct grpc_services *services, struct etcd_callers *callers)
{
    gateway->callers = callers;
    gateway->limits = GRPC_LIMITS_DEFAULT;
    gateway->limits.receive_bytes_max =
        (uint32_t)(config->request_bytes_max + ETCD_MESSAGE_OVERHEAD_BYTES);
    gateway->calls_max = config->gateway_calls_max;
    gateway->before_3_5 = config->before_3_5;
    gateway->calls = 0;
    gateway->loop = NULL;
    gateway->desk = NULL;
    list_init(&gateway->waiting);
    grpc_server_init(&gateway->server, services, &gateway->limits);
}

void gateway_fini(struct gateway *gateway)
{
    assert(gateway->calls == 0);
    assert(list_empty(&gateway->waiting));
    gateway_desk_free(gateway->desk);
    grpc_server_fini(&gateway->server);
}

void gateway_set_loop(struct gateway *gateway, struct loop *loop, struct worker *worker)
{
    assert(!gateway->loop);
    gateway->loop = loop;
    if (worker)
        gateway->desk = gateway_desk_new(loop, worker);
}

bool gateway_busy(const struct gateway *gateway)
{
    return gateway_desk_busy(gateway->desk);
}

enum status gateway_add(struct gateway *gateway, struct http_routes *set)
{
    return http_routes_add(set, routes, COUNT_OF(routes), gateway);
}
