#include "client/http/http_pool.h"

#include "client/http/http_pool_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>

enum {
    REPEATS_MAX = 7,     /* how often one request is repeated at most, as in Go */
    HTTP1_IDLE_MAX = 25, /* connections that are kept without requests, as in client-go */
    REASON_BYTES = 640,
};
/* Before the second repetition of a request; doubles with each one, as in Go. */
#define REPEAT_PAUSE_NS (1 * NS_PER_S)

void http_pool_schedule(struct http_pool *pool)
{
    if (!pool->closing)
        loop_defer(pool->connector.options.loop, &pool->dispatch);
}

/* -- Requests end -- */

static void queue_remove(struct http_attempt *a)
{
    list_remove(&a->in_pool);
    a->pool->waiting_count -= !a->paused && !a->is_alone;
    a->paused = false;
}

static void name_server(const struct http_pool *pool, const char *reason,
                        char text[static REASON_BYTES])
{
    if (strstr(reason, pool->route.server.text))
        snprintf(text, REASON_BYTES, "%s", reason);
    else
        snprintf(text, REASON_BYTES, "a request to %s failed: %s", pool->route.server.text, reason);
}

/* The attempt is in no list any more. */
void http_pool_finish(struct http_attempt *a, enum status status, const char *reason)
{
    struct pool_request *request = a->request;
    char text[REASON_BYTES] = "";
    if (status != ST_OK)
        name_server(a->pool, reason, text);
    request->attempt = NULL;
    http_attempt_free(a);
    request->ops->on_end(request, status, text);
}

void http_pool_finish_waiting(struct http_pool *pool, size_t count, enum status status,
                              const char *reason)
{
    struct http_attempt *a;
    while (count-- && (a = http_attempt_first(&pool->waiting))) {
        queue_remove(a);
        http_pool_finish(a, status, reason);
    }
}

/* The link has one request less. */
static void settle(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    struct http1_client *client = connection_http1(link->connection);
    if (link->http1 && link->state == POOL_LINK_FULL)
        pool_link_move(link, client && http1_client_is_idle(client) ? POOL_LINK_AVAILABLE
                                                                    : POOL_LINK_RETIRED);
    if (link->state == POOL_LINK_RESERVED)
        pool_link_retire(link);
    if (list_empty(&link->attempts))
        pool_link_begin_idle(link);
    http_pool_schedule(pool);
}

/* -- Requests are sent again -- */

/* At the front: it has waited before. */
static void queue_again(struct http_attempt *a)
{
    list_push_front(&a->pool->waiting, &a->in_pool);
    a->pool->waiting_count++;
    http_pool_schedule(a->pool);
}

static void on_pause(struct timer *timer)
{
    struct http_pool *pool = CONTAINER_OF(timer, struct http_pool, pause);
    struct http_attempt *a, *following;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH_SAFE (a, following, &pool->paused, in_pool) {
        if (a->repeat_ns > http_pool_now(pool)) {
            next = a->repeat_ns < next ? a->repeat_ns : next;
            continue;
        }
        list_remove(&a->in_pool);
        a->paused = false;
        queue_again(a);
    }
    http_pool_set_no_later(pool, timer, next);
}

static void on_attempt_end(struct http_attempt *a, enum status status, const char *reason)
{
    struct http_pool *pool = a->pool;
    struct pool_link *link = a->link, *kept, *following;
    bool over_http1 = link->http1, was_kept_too_long = over_http1 && link->used;
    /* After a connection was closed, a request is sent again only if the server has certainly
     * ignored it, or if it changes nothing and the connection was probably closed before it was
     * sent. */
    bool repeats = status == ST_CLOSED && a->request->reached < POOL_REQUEST_ANSWERED &&
                   a->repeats < REPEATS_MAX && !pool->closing && !a->taken &&
                   (a->ignored || (a->only_reads && was_kept_too_long));
    link->used |= status == ST_OK;
    a->request->connection = link->number;
    a->link = NULL;
    list_remove(&a->in_pool);
    settle(link);
    if (!repeats) {
        http_pool_finish(a, status, reason);
        return;
    }
    if (over_http1) {
        /* Those that were kept as long as one that the server has closed are closed, too, so that a
         * request is not sent over one after the other. */
        LIST_FOREACH_SAFE (kept, following, &pool->links[POOL_LINK_AVAILABLE], in_pool)
            if (kept->http1)
                pool_link_retire(kept);
    }
    counter_add_alone(&pool->counters.repeats, 1);
    if (a->repeats++ == 0) {
        queue_again(a);
        return;
    }
    a->repeat_ns = clock_add(http_pool_now(pool), REPEAT_PAUSE_NS << (a->repeats - 2));
    a->paused = true;
    list_push_back(&pool->paused, &a->in_pool);
    http_pool_set_no_later(pool, &pool->pause, a->repeat_ns);
}

/* -- Sending -- */

/* The request for which the connection was made. */
void http_pool_send_reserved(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    struct http_attempt *a = http_attempt_first(&link->attempts);
    enum status status = http_attempt_send(
        a, link->connection, slice_from_text(pool->route.authority), http_pool_now(pool));
    if (status == ST_OK)
        return;
    pool_link_retire(link);
    list_remove(&a->in_pool);
    http_pool_finish(a, status, status == ST_NOMEM ? "out of memory" : "it cannot be sent");
}

static void connect_upgrades(struct http_pool *pool)
{
    struct pool_link *link;
    struct http_attempt *a;
    while (pool->counts[POOL_LINK_RESERVED] < pool->connections_max &&
           (a = http_attempt_first(&pool->upgrades))) {
        enum status status = pool_link_connect(pool, POOL_LINK_RESERVED, &link);
        queue_remove(a);
        if (status == ST_OK) {
            a->link = link;
            list_push_back(&link->attempts, &a->in_pool);
            continue;
        }
        counter_add_alone(&pool->counters.connect_errors, 1);
        http_pool_finish(a, status, "out of memory");
    }
}

static void give(struct http_pool *pool, struct pool_link *link, struct http_attempt *a)
{
    enum status status = http_attempt_send(
        a, link->connection, slice_from_text(pool->route.authority), http_pool_now(pool));
    switch (status) {
    case ST_OK:
        queue_remove(a);
        a->link = link;
        list_push_back(&link->attempts, &a->in_pool);
        if (link->http1)
            pool_link_move(link, POOL_LINK_FULL);
        break;
    case ST_AGAIN:
        pool->streams_seen = h2_session_streams(connection_session(link->connection));
        pool_link_move(link, POOL_LINK_FULL);
        if (pool_link_is_starved(link))
            pool_link_begin_idle(link);
        break;
    case ST_CLOSED:
        pool_link_retire(link);
        break;
    default:
        queue_remove(a);
        http_pool_finish(a, status,
                         status == ST_NOMEM ? "out of memory"
                                            : "the server does not accept its header");
    }
}

/* Requests that begin within on_end wait for the next turn. */
void http_pool_dispatch(struct http_pool *pool)
{
    struct pool_link *link;
    connect_upgrades(pool);
    size_t most = pool->waiting_count + pool_links_count(pool);
    while (most-- && pool->waiting_count && (link = pool_links_first(pool, POOL_LINK_AVAILABLE)))
        give(pool, link, http_attempt_first(&pool->waiting));
    if (pool->waiting_count == 0) {
        /* The least recently used ones of those that are kept are closed. */
        struct list *head = &pool->links[POOL_LINK_AVAILABLE], *at = head->prev;
        while (at != head && pool->idle_http1 > HTTP1_IDLE_MAX) {
            link = LIST_ENTRY(at, struct pool_link, in_pool);
            at = at->prev;
            if (link->http1)
                pool_link_retire(link);
        }
    } else if (pool_links_first(pool, POOL_LINK_AVAILABLE)) {
        http_pool_schedule(pool);
    } else {
        while (pool_links_uncovered(pool) && pool_links_shared(pool) < pool->connections_max &&
               !pool_links_starve(pool)) {
            enum status status = pool_link_connect(pool, POOL_LINK_CONNECTING, &link);
            if (status == ST_OK)
                continue;
            counter_add_alone(&pool->counters.connect_errors, 1);
            http_pool_finish_waiting(pool, pool_links_uncovered(pool), status, "out of memory");
            return;
        }
    }
}

static void on_dispatch(struct deferred *deferred)
{
    http_pool_dispatch(CONTAINER_OF(deferred, struct http_pool, dispatch));
}

/* -- Life -- */

enum status http_pool_new(const struct http_pool_options *options, struct http_pool **ret_pool,
                          struct error *error)
{
    static const enum session_protocol protocols[] = {
        [HTTP_POOL_NEGOTIATED] = SESSION_NEGOTIATED,
        [HTTP_POOL_HTTP1] = SESSION_HTTP1,
        [HTTP_POOL_HTTP2] = SESSION_HTTP2,
    };
    AUTO(http_pool_freep) struct http_pool *pool = calloc(1, sizeof(*pool));
    if (!pool)
        return error_no_memory(error);
    connector_init(&pool->connector, &options->connector);
    pool->protocol = protocols[options->protocol];
    pool->connections_max = options->connections_max;
    pool->idle_ns = options->idle_ns;
    pool->log = options->log;
    pool->log_ctx = options->log_ctx;
    pool->speaks_http1 = options->protocol == HTTP_POOL_HTTP1;
    pool->dispatch.fn = on_dispatch;
    pool->expiry.fn = pool_links_expire;
    pool->pause.fn = on_pause;
    list_init(&pool->waiting);
    list_init(&pool->paused);
    list_init(&pool->upgrades);
    list_init(&pool->tls_changes);
    for (size_t i = 0; i < POOL_LINK_STATES; i++)
        list_init(&pool->links[i]);
    TRY(pool_route_init(&pool->route, &options->endpoint, options->proxy_url,
                        options->protocol == HTTP_POOL_HTTP2, &pool->connector.options, error));
    if (pool->route.forwards)
        pool->protocol = SESSION_HTTP1;
    if (options->authority)
        snprintf(pool->route.authority, sizeof(pool->route.authority), "%s", options->authority);
    *ret_pool = TAKE(pool);
    return ST_OK;
}

void http_pool_free(struct http_pool *pool)
{
    if (!pool)
        return;
    pool->closing = true;
    list_append(&pool->waiting, &pool->paused);
    list_append(&pool->waiting, &pool->upgrades);
    http_pool_finish_waiting(pool, SIZE_MAX, ST_CLOSED, "the client was closed");
    pool_links_drop(pool, ST_CLOSED, "the client was closed");
    pool_links_check_tls(pool);
    loop_defer_cancel(&pool->dispatch);
    loop_timer_cancel(pool->connector.options.loop, &pool->expiry);
    loop_timer_cancel(pool->connector.options.loop, &pool->pause);
    connector_fini(&pool->connector);
    free(pool);
}

/* -- For the owners of requests -- */

static enum status make_attempt(const struct http_pool *pool, struct pool_request *request,
                                const struct pool_request_params *params)
{
    AUTO(buf_fini) struct buf target = {0}, fields = {0};
    struct pool_request_params forwarded;
    if (!pool->route.forwards)
        return http_attempt_new(request, params, &request->attempt);
    TRY(pool_route_forward(&pool->route, params, &target, &fields, &forwarded));
    return http_attempt_new(request, &forwarded, &request->attempt);
}

enum status http_pool_start(struct http_pool *pool, struct pool_request *request,
                            const struct pool_request_params *params)
{
    assert(!request->attempt && request->ops);
    if (pool->closing)
        return ST_CLOSED;
    TRY(make_attempt(pool, request, params));
    struct http_attempt *a = request->attempt;
    request->reached = POOL_REQUEST_UNREACHED;
    request->connection = 0;
    a->pool = pool;
    a->on_end = on_attempt_end;
    list_push_back(a->is_alone ? &pool->upgrades : &pool->waiting, &a->in_pool);
    pool->waiting_count += !a->is_alone;
    http_pool_schedule(pool);
    return ST_OK;
}

void pool_request_cancel(struct pool_request *request)
{
    struct http_attempt *a = request->attempt;
    if (!a)
        return;
    struct pool_link *link = a->link;
    request->attempt = NULL;
    if (!link)
        queue_remove(a);
    http_attempt_free(a);
    if (link)
        settle(link);
}

void pool_request_withhold(struct pool_request *request, bool withhold)
{
    if (request->attempt)
        http_attempt_withhold(request->attempt, withhold, http_pool_now(request->attempt->pool));
}

void pool_request_wake(struct pool_request *request)
{
    if (request->attempt)
        http_attempt_wake(request->attempt, http_pool_now(request->attempt->pool));
}

struct http_pool_stats http_pool_stats(const struct http_pool *pool)
{
    const struct http_pool_counters *c = &pool->counters;
    return (struct http_pool_stats){
        .connects = counter_get(&c->connects),
        .connect_errors = counter_get(&c->connect_errors),
        .disconnects = counter_get(&c->disconnects),
        .repeats = counter_get(&c->repeats),
        .bytes_sent = counter_get(&pool->connector.counters.bytes_sent),
        .bytes_received = counter_get(&pool->connector.counters.bytes_received),
        .connections = counter_get(&c->connections),
    };
}

void http_pool_check(const struct http_pool *pool)
{
    const struct http_attempt *a;
    const struct pool_link *link;
    unsigned idle_http1 = 0;
    LIST_FOREACH (a, &pool->waiting, in_pool) {
        assert(!a->link && !a->paused && a->pool == pool);
        http_attempt_check(a);
    }
    LIST_FOREACH (a, &pool->paused, in_pool) {
        assert(!a->link && a->paused && pool->pause.set);
        http_attempt_check(a);
    }
    assert(list_length(&pool->waiting) == pool->waiting_count);
    for (size_t i = 0; i < POOL_LINK_STATES; i++) {
        assert(list_length(&pool->links[i]) == pool->counts[i]);
        LIST_FOREACH (link, &pool->links[i], in_pool) {
            assert(link->state == i && link->pool == pool);
            idle_http1 += pool_link_is_idle_http1(link);
            pool_link_check(link);
        }
    }
    LIST_FOREACH (a, &pool->upgrades, in_pool) {
        assert(!a->link && !a->paused && a->is_alone && a->pool == pool);
        http_attempt_check(a);
    }
    assert(idle_http1 == pool->idle_http1);
    assert(pool->counts[POOL_LINK_RESERVED] <= pool->connections_max);
    assert(pool_links_shared(pool) - pool->counts[POOL_LINK_RETIRED] <= pool->connections_max);
}
