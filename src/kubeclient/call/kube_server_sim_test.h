/*
 * For tests: a scripted Kubernetes API server and a client on a simulated network on which one
 * thing may go wrong (client/sim/faulty_sim_test.h). One file of a program includes this.
 *
 *     static void answer(struct sim_reply *reply, const struct sim_request *request, void *ctx)
 *     {
 *         sim_reply_json(reply, 200, "{\"kind\":\"Pod\"}");
 *     }
 *
 *     struct kube_world w;
 *     kube_world_init(&w, SIM_HTTP2, NULL);
 *     kube_server_route(&w.server, "GET", "/api/v1/pods*", answer, NULL);
 *     assert_true(kube_world_start(&w));
 *     … vigil_kube_get(w.kube, …) …
 *     kube_world_run(&w, NS_PER_S);
 *     kube_world_fini(&w);
 *
 * The server is our own: HTTP/1.1 (chunks where a length is not known) or HTTP/2, with or without
 * TLS. A reply may be given at once, in pieces, after a time, or later by the test, which finds
 * those that are not finished with kube_server_reply; it may break after any byte. The client's
 * memory and its side of the network fail as faults and faulty_memory_at say.
 */
#ifndef VIGIL_KUBECLIENT_CALL_KUBE_SERVER_SIM_TEST_H
#define VIGIL_KUBECLIENT_CALL_KUBE_SERVER_SIM_TEST_H

#include "client/sim/faulty_sim_test.h"
#include "kubeclient/call/kube.h"
#include "net/server.h"
#include "net/shard.h"
#include "net/tls/certs_test.h"
#include "net/tls/server_context.h"
#include "net/tls/tls.h"
#include "net/wire.h"
#include "wire/http/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SIM_ROUTES_MAX = 32, SIM_REQUESTS_MAX = 256, SIM_TURNS_MAX = 200000 };

enum sim_protocol { SIM_HTTP1, SIM_HTTP2, SIM_TLS_HTTP1, SIM_TLS_HTTP2, SIM_PROTOCOLS };

struct sim_reply;
struct kube_server_sim;

/* What the server has received; the beginning of texts that are too long. */
struct sim_request {
    char method[16];
    char target[1024]; /* path and query, as sent */
    char body[2048];
    size_t body_bytes;
    char user_agent[128], accept[128], authorization[256], content_type[128], impersonate[128];
    int64_t at_ns;
};

typedef void sim_answer(struct sim_reply *reply, const struct sim_request *request, void *ctx);

struct sim_route {
    const char *method; /* NULL: any */
    const char *path;   /* without the query; a prefix if its last character is '*' */
    sim_answer *answer;
    void *ctx;
};

/* The answer to one request, until it is sent or the client is gone. */
struct sim_reply {
    struct kube_server_sim *server;
    struct http_exchange *exchange;
    size_t number;   /* number of the request, from 0 */
    struct buf body; /* not sent yet, after the bytes that were taken */
    size_t taken;
    size_t sent;     /* bytes of the body, so far */
    size_t break_at; /* after this many bytes of the body; SIZE_MAX: never */
    bool ends, breaks;
    struct http_source source;
    struct timer timer;
    void (*later)(struct sim_reply *reply, void *ctx);
    void *later_ctx;
    struct list in_server; /* links kube_server_sim.replies */
};

struct kube_server_sim {
    struct sim *sim;
    enum sim_protocol protocol;
    struct net_wire wire;
    struct protocol_kind inner, kind;
    struct http_routes *http_routes;
    struct net_server *server; /* NULL: it is stopped */
    struct url bound;
    bool was_started;
    struct test_certs certs;
    bool demands_certificate; /* a client needs one of the authority of certs */
    struct tls_source *tls_source;
    struct net_tls tls;
    struct loop *loop; /* for timers of the script */
    struct net_shard *shard;
    struct deferred poke;
    struct sim_route routes[SIM_ROUTES_MAX];
    size_t route_count;
    struct sim_request requests[SIM_REQUESTS_MAX];
    size_t request_count;
    struct list replies; /* that are not finished, in the order of their requests */
};

static inline void sim_must(enum status status, const struct error *error)
{
    if (status != ST_OK)
        fail_msg("%s", error->text);
}

/* -- Replies -- */

/* Before the reply begins. */
static inline void sim_reply_field(struct sim_reply *reply, const char *name, const char *value)
{
    enum status status =
        http_add_field(reply->exchange, slice_from_text(name), slice_from_text(value));
    assert_true(status == ST_OK || status == ST_CLOSED);
}

static inline enum http_fill sim_reply_fill(struct http_source *source, uint8_t *dst, size_t room,
                                            size_t *ret_len)
{
    struct sim_reply *reply = CONTAINER_OF(source, struct sim_reply, source);
    size_t left = reply->break_at - reply->sent;
    struct slice rest =
        slice_sub(buf_slice(&reply->body), reply->taken, reply->body.len - reply->taken);
    *ret_len = size_min(size_min(room, rest.len), left);
    slice_copy(dst, slice_of(rest.ptr, *ret_len));
    reply->taken += *ret_len;
    reply->sent += *ret_len;
    if (reply->taken == reply->body.len)
        reply->taken = reply->body.len = 0;
    if (reply->sent == reply->break_at || (reply->breaks && reply->body.len == 0)) {
        http_abort(reply->exchange);
        return HTTP_FILL_DONE;
    }
    if (reply->body.len)
        return HTTP_FILL_MORE;
    return reply->ends ? HTTP_FILL_DONE : HTTP_FILL_PARKED;
}

static inline void sim_reply_poke(struct deferred *deferred)
{
    (void)deferred;
}

/* The server's loop sends what was written in a turn, which it makes also if the test writes from
 * outside. */
static inline void sim_reply_flush(struct sim_reply *reply)
{
    struct kube_server_sim *s = reply->server;
    s->poke.fn = sim_reply_poke;
    loop_defer(net_shard_loop(s->shard), &s->poke);
}

static inline void sim_reply_wake(struct sim_reply *reply)
{
    http_wake(reply->exchange);
    sim_reply_flush(reply);
}

static inline void sim_reply_leave(struct http_exchange *exchange)
{
    http_end(exchange);
}

/* The head of an answer whose body follows in pieces. */
static inline void sim_reply_begin(struct sim_reply *reply, unsigned code, const char *type)
{
    reply->source.fill = sim_reply_fill;
    http_begin(reply->exchange, code, slice_from_text(type));
    http_park(reply->exchange, sim_reply_leave);
    http_set_source(reply->exchange, &reply->source);
    sim_reply_flush(reply);
}

static inline void sim_reply_write(struct sim_reply *reply, struct slice bytes)
{
    assert_int_equal(buf_append(&reply->body, bytes), ST_OK);
    sim_reply_wake(reply);
}

static inline void sim_reply_text(struct sim_reply *reply, const char *text)
{
    sim_reply_write(reply, slice_from_text(text));
}

/* After what was written; the reply may be gone afterwards. */
static inline void sim_reply_end(struct sim_reply *reply)
{
    reply->ends = true;
    sim_reply_wake(reply);
}

/* The same, but the client sees that the answer is incomplete. */
static inline void sim_reply_break(struct sim_reply *reply)
{
    reply->breaks = true;
    sim_reply_wake(reply);
}

/* A whole answer. */
static inline void sim_reply_whole(struct sim_reply *reply, unsigned code, const char *type,
                                   struct slice body)
{
    sim_reply_flush(reply);
    http_respond(reply->exchange, code, slice_from_text(type), body);
}

static inline void sim_reply_json(struct sim_reply *reply, unsigned code, const char *json)
{
    sim_reply_whole(reply, code, "application/json", slice_from_text(json));
}

static inline void sim_reply_status(struct sim_reply *reply, unsigned code, const char *reason,
                                    const char *message)
{
    char json[1024];
    snprintf(json, sizeof(json),
             "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
             "\"message\":\"%s\",\"reason\":\"%s\",\"code\":%u}",
             message, reason, code);
    sim_reply_json(reply, code, json);
}

/* The connection is lost before the client has received anything of this reply. At this time the
 * client must not receive anything else. */
static inline void sim_reply_lose(struct sim_reply *reply)
{
    faults.kind = FAULT_LOST_READING;
    faults.at = faults.bytes_read;
    faults.happened = false;
    sim_reply_json(reply, 200, "{}"); /* for the client to notice it */
}

static inline void sim_reply_on_timer(struct timer *timer)
{
    struct sim_reply *reply = CONTAINER_OF(timer, struct sim_reply, timer);
    reply->later(reply, reply->later_ctx);
}

/* Calls the function once after this time, unless the client is gone by then; it may call this
 * again. */
static inline void sim_reply_after(struct sim_reply *reply, int64_t ns,
                                   void (*later)(struct sim_reply *reply, void *ctx), void *ctx)
{
    struct loop *loop = reply->server->loop;
    reply->later = later;
    reply->later_ctx = ctx;
    reply->timer.fn = sim_reply_on_timer;
    loop_timer_set(loop, &reply->timer, clock_mono_ns(sim_clock(reply->server->sim)) + ns);
}

/* -- The server -- */

/* The first route that matches a request answers it; without one it is 404. */
static inline void kube_server_route(struct kube_server_sim *s, const char *method,
                                     const char *path, sim_answer *answer, void *ctx)
{
    assert_true(s->route_count < SIM_ROUTES_MAX);
    s->routes[s->route_count++] = (struct sim_route){method, path, answer, ctx};
}

/* The oldest reply that is not finished and whose target contains this; NULL: there is none. */
static inline struct sim_reply *kube_server_reply(struct kube_server_sim *s, const char *target)
{
    struct sim_reply *reply;
    LIST_FOREACH (reply, &s->replies, in_server)
        if (strstr(s->requests[reply->number].target, target))
            return reply;
    return NULL;
}

static inline const struct sim_request *kube_server_last(const struct kube_server_sim *s)
{
    assert_true(s->request_count > 0);
    return &s->requests[s->request_count - 1];
}

static inline bool sim_route_matches(const struct sim_route *route,
                                     const struct http_request *request)
{
    struct slice path = slice_from_text(route->path);
    if (route->method && !slice_equal(request->method, slice_from_text(route->method)))
        return false;
    if (path.len && path.ptr[path.len - 1] == '*')
        return slice_has_prefix(request->path, slice_sub(path, 0, path.len - 1));
    return slice_equal(request->path, path);
}

static inline void sim_copy_text(char *to, size_t size, struct slice text)
{
    size_t len = size_min(text.len, size - 1);
    slice_copy(to, slice_sub(text, 0, len));
    to[len] = 0;
}

static inline void sim_copy_field(const struct http_request *request, const char *name, char *to,
                                  size_t size)
{
    struct slice value;
    *to = 0;
    if (http_request_get(request, slice_from_text(name), &value))
        sim_copy_text(to, size, value);
}

static inline struct sim_request *sim_record(struct kube_server_sim *s,
                                             const struct http_request *request)
{
    assert_true(s->request_count < SIM_REQUESTS_MAX);
    struct sim_request *r = &s->requests[s->request_count++];
    sim_copy_text(r->method, sizeof(r->method), request->method);
    sim_copy_text(r->target, sizeof(r->target), request->target);
    sim_copy_text(r->body, sizeof(r->body), request->body);
    r->body_bytes = request->body.len;
    sim_copy_field(request, "user-agent", r->user_agent, sizeof(r->user_agent));
    sim_copy_field(request, "accept", r->accept, sizeof(r->accept));
    sim_copy_field(request, "authorization", r->authorization, sizeof(r->authorization));
    sim_copy_field(request, "content-type", r->content_type, sizeof(r->content_type));
    sim_copy_field(request, "impersonate-user", r->impersonate, sizeof(r->impersonate));
    r->at_ns = clock_mono_ns(sim_clock(s->sim));
    return r;
}

static inline void kube_server_on_request(struct http_exchange *x, void *service,
                                          const struct http_request *request)
{
    struct kube_server_sim *s = service;
    struct sim_reply *reply = calloc(1, sizeof(*reply));
    const struct sim_request *recorded = sim_record(s, request);
    assert_non_null(reply);
    *reply = (struct sim_reply){
        .server = s, .exchange = x, .number = s->request_count - 1, .break_at = SIZE_MAX};
    list_push_back(&s->replies, &reply->in_server);
    http_exchange_set_user(x, reply);
    for (size_t i = 0; i < s->route_count; i++) {
        if (!sim_route_matches(&s->routes[i], request))
            continue;
        s->routes[i].answer(reply, recorded, s->routes[i].ctx);
        return;
    }
    sim_reply_status(reply, 404, "NotFound", "the server could not find the requested resource");
}

static inline void kube_server_on_end(struct http_exchange *x, void *service)
{
    struct kube_server_sim *s = service;
    struct sim_reply *reply = http_exchange_user(x);
    loop_timer_cancel(s->loop, &reply->timer);
    list_remove(&reply->in_server);
    buf_fini(&reply->body);
    free(reply);
}

static inline bool sim_is_secure(enum sim_protocol protocol)
{
    return protocol == SIM_TLS_HTTP1 || protocol == SIM_TLS_HTTP2;
}

static inline void kube_server_init(struct kube_server_sim *s, struct sim *sim,
                                    enum sim_protocol protocol)
{
    static const struct http_route all[] = {
        {.path = "/", .on_request = kube_server_on_request, .on_end = kube_server_on_end}};
    *s = (struct kube_server_sim){
        .sim = sim, .protocol = protocol, .wire.limits = WIRE_LIMITS_DEFAULT};
    list_init(&s->replies);
    assert_int_equal(network_loop_new(sim_network(sim), &s->loop), ST_OK);
    assert_int_equal(http_routes_new(&s->http_routes), ST_OK);
    assert_int_equal(http_routes_add(s->http_routes, all, COUNT_OF(all), s), ST_OK);
    s->wire.routes = s->http_routes;
    s->kind = s->inner = net_wire_kind(&s->wire);
    if (sim_is_secure(protocol))
        test_certs_init(&s->certs);
}

static inline void kube_server_secure(struct kube_server_sim *s)
{
    struct tls_options options = TLS_OPTIONS_NONE;
    struct tls_recipe recipe;
    struct error error;
    options.cert_file = s->certs.cert_file;
    options.key_file = s->certs.key_file;
    if (s->demands_certificate)
        options.trusted_ca_file = s->certs.ca_file;
    sim_must(tls_server_recipe(&options, &recipe, &error), &error);
    sim_must(tls_source_new(&recipe, (struct tls_source_hooks){0}, &s->tls_source, &error), &error);
    s->tls = (struct net_tls){
        .inner = &s->inner, .source = s->tls_source, .limits = NET_TLS_LIMITS_DEFAULT};
    s->kind = net_tls_kind(&s->tls);
}

static inline enum status kube_server_note_shard(void *ctx, struct net_shard *shard)
{
    ((struct kube_server_sim *)ctx)->shard = shard;
    return ST_OK;
}

/* Listens; again at the same address after a stop. */
static inline void kube_server_start(struct kube_server_sim *s)
{
    struct net_options net = NET_OPTIONS_DEFAULT;
    struct url url = s->bound;
    struct error error;
    struct net_app app = {.shard_start = kube_server_note_shard, .ctx = s};
    net.shards = 1;
    if (!s->was_started)
        sim_must(url_parse(sim_is_secure(s->protocol) ? SLICE_LITERAL("https://127.0.0.1:0")
                                                      : SLICE_LITERAL("http://127.0.0.1:0"),
                           &url, &error),
                 &error);
    if (!s->was_started && sim_is_secure(s->protocol))
        kube_server_secure(s);
    s->was_started = true;
    assert_int_equal(net_server_new(sim_network(s->sim), &net, &app, &s->server), ST_OK);
    sim_must(net_server_listen(s->server, &url, &s->kind, &s->bound, &error), &error);
    assert_int_equal(net_server_start(s->server), ST_OK);
}

/* All connections break, and new ones are refused. */
static inline void kube_server_stop(struct kube_server_sim *s)
{
    if (!s->server)
        return;
    net_server_stop(s->server);
    loop_defer_cancel(&s->poke);
    net_server_free(s->server);
    s->server = NULL;
}

static inline void kube_server_fini(struct kube_server_sim *s)
{
    kube_server_stop(s);
    assert_true(list_empty(&s->replies));
    tls_source_free(s->tls_source);
    http_routes_free(s->http_routes);
    if (sim_is_secure(s->protocol))
        test_certs_fini(&s->certs);
    loop_free(s->loop);
}

/* "https://127.0.0.1:1234" */
static inline void kube_server_url(const struct kube_server_sim *s, char *to, size_t size)
{
    char text[ADDRESS_TEXT_BYTES];
    address_format(&s->bound.address, text);
    snprintf(to, size, "%s://%s", sim_is_secure(s->protocol) ? "https" : "http", text);
}

/* -- The server and a client -- */

struct kube_world {
    struct sim *sim;
    struct kube_server_sim server;
    char url[ADDRESS_TEXT_BYTES + 64];
    const char *path_prefix; /* path of the server's URL */
    vigil_kube_options options;
    vigil_kube *kube;
    vigil_error error;  /* error of vigil_kube_new */
    char log[1024];     /* one line after the other */
    char warnings[512]; /* one per line */
    /* Called after every turn of the client, for checks of the test. */
    void (*check)(struct kube_world *w);
};

static struct kube_world *kube_world_checked;

static inline void kube_world_check(void)
{
    struct kube_world *w = kube_world_checked;
    assert_true(faults.turns < SIM_TURNS_MAX);
    if (!w || !w->kube || !w->kube->pool)
        return;
    http_pool_check(w->kube->pool);
    credentials_check(w->kube->credentials);
    if (w->check)
        w->check(w);
}

static inline void kube_world_on_warning(void *user, const char *text)
{
    struct kube_world *w = user;
    size_t len = strlen(w->warnings);
    snprintf(w->warnings + len, sizeof(w->warnings) - len, "%s\n", text);
}

static inline void kube_world_on_log(void *user, int level, const char *text)
{
    struct kube_world *w = user;
    size_t len = strlen(w->log);
    snprintf(w->log + len, sizeof(w->log) - len, "%d %s\n", level, text);
}

/* Routes and options may be set before the start. There is no limit of calls per second. */
static inline void kube_world_init(struct kube_world *w, enum sim_protocol protocol,
                                   const struct sim_options *sim_options)
{
    struct sim_options defaults = SIM_OPTIONS_DEFAULT;
    memset(w, 0, sizeof(*w));
    w->sim = sim_new(sim_options ? sim_options : &defaults);
    w->path_prefix = "";
    kube_server_init(&w->server, w->sim, protocol);
    vigil_kube_options_init(&w->options);
    w->options.own_thread = 0;
    w->options.calls_per_second = 0;
    w->options.warning = kube_world_on_warning;
    w->options.log = kube_world_on_log;
    w->options.log_user = w;
    if (protocol == SIM_HTTP2 || protocol == SIM_TLS_HTTP2)
        w->options.http = VIGIL_KUBE_HTTP_2;
    if (protocol == SIM_TLS_HTTP1)
        w->options.http = VIGIL_KUBE_HTTP_1;
    if (sim_is_secure(protocol))
        w->options.ca_file = w->server.certs.ca_file;
    (void)faulty_network(sim_network(w->sim));
    faults.check = kube_world_check;
    kube_world_checked = w;
}

/* Makes the client. False: there was no memory, or the options are wrong; see error. */
MUST_CHECK
static inline bool kube_world_connect(struct kube_world *w)
{
    faulty_memory_begin();
    int code = kube_new_over(&faults.network, &w->options, &w->kube, &w->error);
    faulty_memory_end();
    assert_int_equal(code, w->error.code);
    assert_true((code == VIGIL_OK) == (w->error.text[0] == 0));
    return code == VIGIL_OK;
}

MUST_CHECK
static inline bool kube_world_start(struct kube_world *w)
{
    kube_server_start(&w->server);
    kube_server_url(&w->server, w->url, sizeof(w->url));
    strncat(w->url, w->path_prefix, sizeof(w->url) - strlen(w->url) - 1);
    if (!w->options.kubeconfig && !w->options.server)
        w->options.server = w->url;
    return kube_world_connect(w);
}

static inline void kube_world_free_client(struct kube_world *w)
{
    vigil_kube_free(w->kube);
    w->kube = NULL;
    faults.loop = NULL;
}

static inline void kube_world_fini(struct kube_world *w)
{
    kube_world_free_client(w);
    kube_server_fini(&w->server);
    sim_free(w->sim);
    kube_world_checked = NULL;
}

static inline int64_t kube_world_now(const struct kube_world *w)
{
    return clock_mono_ns(sim_clock(w->sim));
}

static inline void kube_world_run(struct kube_world *w, int64_t ns)
{
    sim_run_until(w->sim, kube_world_now(w) + ns);
}

/* Until the condition holds, or for ten minutes. */
#define KUBE_WORLD_RUN_UNTIL(w, condition)                                     \
    for (int64_t until_ns_ = kube_world_now(w) + 600 * NS_PER_S;               \
         !(condition) && kube_world_now(w) < until_ns_ && sim_step((w)->sim);) \
    continue

#endif
