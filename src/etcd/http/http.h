/*
 * The HTTP endpoints of etcd that are not the gateway's or v2's, and helpers for all HTTP handlers
 * of this layer. There are two sets of routes: those of the client URLs, behind a gate that checks
 * hosts and origins, and those of the metrics URLs, with only the health checks and /metrics.
 */
#ifndef VIGIL_ETCD_HTTP_HTTP_H
#define VIGIL_ETCD_HTTP_HTTP_H

#include "base/log/log.h"
#include "etcd/shared/service.h"
#include "wire/http/routes.h"

#define HTTP_TEXT_PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

/* Answers with plain text that browsers do not interpret as another type, like Go's http.Error. */
void http_reply_text(struct http_exchange *x, unsigned status, struct slice body);
/* True for GET. Any other method is answered with 405. */
bool http_is_get(struct http_exchange *x, const struct http_request *request);
void http_not_found(struct http_exchange *x, void *service, const struct http_request *request);

/* Limits the log lines that any client can cause, per shard: 20 at once, then 10 each second. True:
 * the caller logs its line with *ret_unlogged, the number of lines that were suppressed before. */
bool http_may_log(struct etcd_api *api, struct log_field *ret_unlogged);

/* Adds all routes of etcd's HTTP API that are not the gateway's or v2's. */
MUST_CHECK
enum status http_service_add(struct etcd_api *api);

/* health.c: /health, /livez, /readyz and the single checks below them. */
enum status http_health_add(struct http_routes *routes, struct etcd_api *api);

/* vars.c: /debug/vars, in the format of Go's expvar. */
void http_vars(struct http_exchange *x, void *api, const struct http_request *request);

/* gate.c: ctx is the API. Both add a Date field to every answer; the one for clients also checks
 * requests against --host-whitelist and --cors. */
http_gate http_gate_clients;
http_gate http_gate_metrics;

#endif
