#include "client/http/pool_route.h"

#include <stdio.h>

enum status pool_route_init(struct pool_route *r, const struct endpoint *server,
                            const char *proxy_url, bool http2, struct connector_options *options,
                            struct error *error)
{
    bool secure = server->security == ENDPOINT_TLS ||
                  (server->security == ENDPOINT_TLS_IF_CONFIGURED && options->tls);
    *r = (struct pool_route){.server = *server, .first = *server};
    const struct endpoint *e = &r->server;
    snprintf(r->authority, sizeof(r->authority), "%s", e->is_path ? e->host : e->text);
    char *colon = strrchr(r->authority, ':');
    if (!e->is_path && colon && e->port == (secure ? 443 : 80))
        *colon = 0; /* as browsers and Go send it */
    if (!proxy_url || !*proxy_url || server->is_path)
        return ST_OK;
    TRY(proxy_parse(slice_from_text(proxy_url), &r->proxy, error));
    r->forwards = r->proxy.kind == PROXY_HTTP && !secure && !http2;
    if (r->forwards) {
        r->first = r->proxy.endpoint;
        options->server_name = ""; /* it is not the proxy's */
    } else {
        options->proxy = &r->proxy;
    }
    return ST_OK;
}

enum status pool_route_forward(const struct pool_route *r, const struct pool_request_params *params,
                               struct buf *target, struct buf *fields,
                               struct pool_request_params *ret_forwarded)
{
    struct http_field authorization = {SLICE_LITERAL("Proxy-Authorization"),
                                       slice_from_text(r->proxy.authorization)};
    struct pool_request_params forwarded = *params;
    TRY(buf_append_format(target, "http://%s", r->authority));
    TRY(buf_append(target, params->target));
    TRY(buf_append(fields, slice_of(params->fields, params->field_count * sizeof(authorization))));
    if (authorization.value.len) {
        TRY(buf_append(fields, slice_of(&authorization, sizeof(authorization))));
        forwarded.field_count++;
    }
    forwarded.target = buf_slice(target);
    forwarded.fields = (const struct http_field *)(const void *)fields->ptr;
    *ret_forwarded = forwarded;
    return ST_OK;
}
