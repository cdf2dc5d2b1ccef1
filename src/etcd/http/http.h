/*
 * HTTP of the face, as etcd answers it. Two sets of routes: those of the client URLs, behind a gate
 * that knows hosts and origins, and those of the metrics URLs, which has the health checks and
 * /metrics only. Used by the files of the face.
 */
#ifndef VIGIL_ETCD_HTTP_HTTP_H
#define VIGIL_ETCD_HTTP_HTTP_H

#include "base/log/log.h"
#include "etcd/service.h"
#include "wire/http/routes.h"

#define HTTP_TEXT_PLAIN SLICE_LITERAL("text/plain; charset=utf-8")

/* http.c: plain text that no browser shall take for something else, as Go's http.Error has it. */
void http_reply_text(struct http_exchange *x, unsigned status, struct slice body);
/* True for GET; everything else is refused here. */
bool http_is_get(struct http_exchange *x, const struct http_request *request);
void http_not_found(struct http_exchange *x, void *service, const struct http_request *request);

/* Whether a line may be logged that any client can cause: 20 at once, then 10 a second, each shard.
 * Those left out are told with the next: a field, or one that is not shown. */
bool http_may_log(struct etcd_face *face, struct log_field *ret_unlogged);

/* health.c: /health, /livez, /readyz and the single checks below them. */
enum status http_health_add(struct http_routes *routes, struct etcd_face *face);

/* vars.c: /debug/vars, in the shape that Go's expvar gives it. */
void http_vars(struct http_exchange *x, void *face, const struct http_request *request);

/* gate.c: ctx is the face. Every answer gets a date; those of clients are held
 * to --host-whitelist and --cors. */
http_gate http_gate_clients;
http_gate http_gate_metrics;

#endif
