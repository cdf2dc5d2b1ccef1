/* The routes of the gateway: finds the method of a request, and refuses others. */
#include "etcd/gateway/gateway.h"

#include "base/xalloc.h"
#include "etcd/gateway/offload.h"
#include "etcd/shared/config.h"

#include <stdlib.h>

enum { PATH_BYTES_MAX = 128 }; /* no path in the table is longer */

/* -- Paths -- */

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes percent signs and replaces /v3beta/ with /v3/. Empty if the path is invalid or longer
 * than any path in the table. */
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

/* A form can override its method with a field, as in etcd's gateway. */
static bool is_post(const struct http_request *request)
{
    struct slice post = SLICE_LITERAL("POST"), type, meant;
    if (!slice_equal(request->method, post))
        return false;
    bool form = http_request_get(request, SLICE_LITERAL("content-type"), &type) &&
                slice_is(type, "application/x-www-form-urlencoded");
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

struct gateway *gateway_new(const struct etcd_config *config, const struct grpc_services *services,
                            struct authenticator *authenticator)
{
    struct gateway *gateway = xcalloc(1, sizeof(*gateway));
    gateway->authenticator = authenticator;
    gateway->limits = GRPC_LIMITS_DEFAULT;
    gateway->limits.receive_bytes_max =
        (uint32_t)(config->request_bytes_max + ETCD_MESSAGE_OVERHEAD_BYTES);
    gateway->calls_max = config->gateway_calls_max;
    gateway->before_3_5 = config->before_3_5;
    list_init(&gateway->waiting);
    grpc_server_init(&gateway->server, services, &gateway->limits);
    return gateway;
}

void gateway_free(struct gateway *gateway)
{
    if (!gateway)
        return;
    assert(gateway->calls == 0);
    assert(list_empty(&gateway->waiting));
    gateway_offload_free(gateway->offload);
    grpc_server_fini(&gateway->server);
    free(gateway);
}

void gateway_set_loop(struct gateway *gateway, struct loop *loop, struct worker *worker)
{
    assert(!gateway->loop);
    gateway->loop = loop;
    if (worker)
        gateway->offload = gateway_offload_new(loop, worker);
}

bool gateway_busy(const struct gateway *gateway)
{
    return gateway_offload_busy(gateway->offload);
}

enum status gateway_add(struct gateway *gateway, struct http_routes *set)
{
    return http_routes_add(set, routes, COUNT_OF(routes), gateway);
}
