#include "client/http/http_pool.h"

#include "client/connect/connection.h"
#include "client/http/http_attempt.h"
#include "client/http/pool_route.h"

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

enum pool_link_state {
    POOL_LINK_CONNECTING,
    POOL_LINK_AVAILABLE,
    POOL_LINK_FULL,
    POOL_LINK_RETIRED,
};

#define TO(state) (1u << POOL_LINK_##state)

/* Drawn in http_pool.h. */
static const uint8_t moves[] = {
    [POOL_LINK_CONNECTING] = TO(AVAILABLE) | TO(RETIRED),
    [POOL_LINK_AVAILABLE] = TO(FULL) | TO(RETIRED),
    [POOL_LINK_FULL] = TO(AVAILABLE) | TO(RETIRED),
    [POOL_LINK_RETIRED] = 0,
};

/* One connection. */
struct pool_link {
    enum pool_link_state state;
    struct http_pool *pool;
    struct connection *connection; /* owned */
    struct list in_pool;           /* links http_pool.links[state] */
    struct list attempts;          /* under way */
    bool http1;                    /* valid once it is open */
    bool used;                     /* a response has been complete */
    uint64_t tls_generation;
    int64_t idle_since_ns; /* valid without attempts, once it is open */
};

/* A source of TLS that was replaced. */
struct tls_change {
    struct list in_pool; /* links http_pool.tls_changes */
    uint64_t generation; /* the old connections have a lower one */
    void (*done)(void *ctx);
    void *ctx;
};

struct http_pool {
    struct connector connector;
    struct pool_route route;
    enum session_protocol protocol;
    unsigned connections_max;
    int64_t idle_ns;
    void (*log)(void *ctx, int level, const char *text); /* may be NULL */
    void *log_ctx;
    bool closing;

    struct list waiting; /* attempts without a link, in order */
    size_t waiting_count;
    struct list paused; /* attempts that will be sent again, and are not waiting yet */
    struct list links[COUNT_OF(moves)];
    unsigned counts[COUNT_OF(moves)]; /* number of links in each state */
    unsigned idle_http1;              /* number of available ones that are idle */

    bool speaks_http1;   /* known from the latest connection */
    size_t streams_seen; /* that one connection of HTTP/2 can carry; 0: unknown */

    uint64_t tls_generation;
    struct list tls_changes;
    struct deferred dispatch;
    struct timer expiry; /* ends idle connections */
    struct timer pause;  /* ends when the first paused attempt is due */
    struct http_pool_stats stats;
};

static int64_t now_of(const struct http_pool *pool)
{
    return loop_now_ns(pool->connector.options.loop);
}

static void schedule(struct http_pool *pool)
{
    if (!pool->closing)
        loop_defer(pool->connector.options.loop, &pool->dispatch);
}

/* -- Links -- */

static bool is_idle_http1(const struct pool_link *link)
{
    return link->http1 && link->state == POOL_LINK_AVAILABLE;
}

/* The latest of a state comes first: a connection of HTTP/1.1 that was used lately is the least
 * likely to be closed by the server. */
static void link_move(struct pool_link *link, enum pool_link_state next)
{
    struct http_pool *pool = link->pool;
    assert(moves[link->state] & (1u << next));
    pool->idle_http1 -= is_idle_http1(link);
    pool->counts[link->state]--;
    list_remove(&link->in_pool);
    link->state = next;
    list_push_front(&pool->links[next], &link->in_pool);
    pool->counts[next]++;
    pool->idle_http1 += is_idle_http1(link);
}

static unsigned link_count(const struct http_pool *pool)
{
    unsigned count = 0;
    for (size_t i = 0; i < COUNT_OF(moves); i++)
        count += pool->counts[i];
    return count;
}

/* Finishes its requests and closes it. */
static void retire(struct pool_link *link)
{
    if (link->state != POOL_LINK_RETIRED)
        link_move(link, POOL_LINK_RETIRED);
    connection_shutdown(link->connection);
}

/* The timer may fire too early, and is then set again. */
static void set_no_later(struct http_pool *pool, struct timer *timer, int64_t at_ns)
{
    if (!pool->closing && at_ns != CLOCK_NEVER && (!timer->set || at_ns < timer->at_ns))
        loop_timer_set(pool->connector.options.loop, timer, at_ns);
}

/* An open connection on which the server allows no stream at all: more of them would not help. */
static bool is_starved(const struct pool_link *link)
{
    return link->state == POOL_LINK_FULL && list_empty(&link->attempts);
}

/* When it is given up because it carries nothing. */
static int64_t link_expires(const struct pool_link *link)
{
    const struct http_pool *pool = link->pool;
    if (is_starved(link))
        return clock_add(link->idle_since_ns, pool->connector.options.connect_timeout_ns);
    if (link->state == POOL_LINK_AVAILABLE && list_empty(&link->attempts))
        return clock_add(link->idle_since_ns, pool->idle_ns);
    return CLOCK_NEVER;
}

static void begin_idle(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    link->idle_since_ns = now_of(pool);
    set_no_later(pool, &pool->expiry, link_expires(link));
}

static struct pool_link *first_link(const struct http_pool *pool, enum pool_link_state state)
{
    if (list_empty(&pool->links[state]))
        return NULL;
    return LIST_ENTRY(pool->links[state].next, struct pool_link, in_pool);
}

/* -- Requests end -- */

static void queue_remove(struct http_attempt *a)
{
    list_remove(&a->in_pool);
    a->pool->waiting_count -= !a->paused;
    a->paused = false;
}

static struct http_attempt *first_of(const struct list *attempts)
{
    return list_empty(attempts) ? NULL : LIST_ENTRY(attempts->next, struct http_attempt, in_pool);
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
static void finish(struct http_attempt *a, enum status status, const char *reason)
{
    struct pool_request *request = a->request;
    char text[REASON_BYTES] = "";
    if (status != ST_OK)
        name_server(a->pool, reason, text);
    request->attempt = NULL;
    http_attempt_free(a);
    request->ops->on_end(request, status, text);
}

static void finish_waiting(struct http_pool *pool, size_t count, enum status status,
                           const char *reason)
{
    struct http_attempt *a;
    while (count-- && (a = first_of(&pool->waiting))) {
        queue_remove(a);
        finish(a, status, reason);
    }
}

/* The link has one request less. */
static void settle(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    struct http1_client *client = connection_http1(link->connection);
    if (link->http1 && link->state == POOL_LINK_FULL)
        link_move(link,
                  client && http1_client_is_idle(client) ? POOL_LINK_AVAILABLE : POOL_LINK_RETIRED);
    if (list_empty(&link->attempts))
        begin_idle(link);
    schedule(pool);
}

/* -- Requests are sent again -- */

/* At the front: it has waited before. */
static void queue_again(struct http_attempt *a)
{
    list_push_front(&a->pool->waiting, &a->in_pool);
    a->pool->waiting_count++;
    schedule(a->pool);
}

static void on_pause(struct timer *timer)
{
    struct http_pool *pool = CONTAINER_OF(timer, struct http_pool, pause);
    struct http_attempt *a, *following;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH_SAFE (a, following, &pool->paused, in_pool) {
        if (a->repeat_ns > now_of(pool)) {
            next = a->repeat_ns < next ? a->repeat_ns : next;
            continue;
        }
        list_remove(&a->in_pool);
        a->paused = false;
        queue_again(a);
    }
    set_no_later(pool, timer, next);
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
                   a->repeats < REPEATS_MAX && !pool->closing &&
                   (a->ignored || (a->only_reads && was_kept_too_long));
    link->used |= status == ST_OK;
    a->link = NULL;
    list_remove(&a->in_pool);
    settle(link);
    if (!repeats) {
        finish(a, status, reason);
        return;
    }
    if (over_http1) {
        /* Those that were kept as long as one that the server has closed are closed, too, so that a
         * request is not sent over one after the other. */
        LIST_FOREACH_SAFE (kept, following, &pool->links[POOL_LINK_AVAILABLE], in_pool)
            if (kept->http1)
                retire(kept);
    }
    pool->stats.repeats++;
    if (a->repeats++ == 0) {
        queue_again(a);
        return;
    }
    a->repeat_ns = clock_add(now_of(pool), REPEAT_PAUSE_NS << (a->repeats - 2));
    a->paused = true;
    list_push_back(&pool->paused, &a->in_pool);
    set_no_later(pool, &pool->pause, a->repeat_ns);
}

/* -- Connecting -- */

static void dispatch(struct http_pool *pool);

/* How many requests a connection that is being made is expected to carry. */
static size_t link_capacity(const struct http_pool *pool)
{
    if (pool->speaks_http1)
        return 1;
    return pool->streams_seen ? pool->streams_seen : SIZE_MAX;
}

/* The requests that wait for more than the connections that are being made. */
static size_t uncovered(const struct http_pool *pool)
{
    size_t each = link_capacity(pool), connecting = pool->counts[POOL_LINK_CONNECTING];
    if (connecting && each > pool->waiting_count / connecting)
        return 0;
    return pool->waiting_count - connecting * each;
}

static void check_tls_changes(struct http_pool *pool);

static void link_free(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    assert(list_empty(&link->attempts));
    pool->idle_http1 -= is_idle_http1(link);
    pool->counts[link->state]--;
    list_remove(&link->in_pool);
    connection_free(link->connection);
    free(link);
}

static void log_line(const struct http_pool *pool, int level, const char *text)
{
    if (pool->log)
        pool->log(pool->log_ctx, level, text);
}

static void on_link_open(void *owner)
{
    struct pool_link *link = owner;
    struct http_pool *pool = link->pool;
    pool->stats.connects++;
    link->http1 = connection_http1(link->connection) != NULL;
    pool->speaks_http1 = link->http1;
    if (link->state == POOL_LINK_CONNECTING)
        link_move(link, POOL_LINK_AVAILABLE);
    begin_idle(link);
    char text[ENDPOINT_TEXT_BYTES + 64];
    snprintf(text, sizeof(text), "connected to %s over %s", link->pool->route.server.text,
             link->http1 ? "HTTP/1.1" : "HTTP/2");
    log_line(link->pool, VIGIL_LOG_INFO, text);
    dispatch(pool);
}

static void on_link_draining(void *owner, enum h2_error code, const char *text)
{
    struct pool_link *link = owner;
    (void)code, (void)text;
    if (link->state != POOL_LINK_RETIRED)
        link_move(link, POOL_LINK_RETIRED);
    log_line(link->pool, VIGIL_LOG_INFO, "the server closes the connection");
}

static void on_link_room(void *owner)
{
    struct pool_link *link = owner;
    if (link->state == POOL_LINK_FULL)
        link_move(link, POOL_LINK_AVAILABLE);
    dispatch(link->pool);
}

static void on_link_closed(void *owner, const struct error *error)
{
    struct pool_link *link = owner;
    struct http_pool *pool = link->pool;
    struct error reason = *error;
    bool failed = link->state == POOL_LINK_CONNECTING;
    bool was_wanted = link->state != POOL_LINK_RETIRED;
    size_t carried = link_capacity(pool);
    link_free(link);
    schedule(pool);
    if (was_wanted)
        log_line(pool, VIGIL_LOG_WARN, reason.text);
    if (failed) {
        pool->stats.connect_errors++;
        finish_waiting(pool, size_min(carried, uncovered(pool)), reason.status, reason.text);
    } else {
        pool->stats.disconnects++;
    }
    check_tls_changes(pool);
}

static enum status connect_link(struct http_pool *pool)
{
    struct pool_link *link = calloc(1, sizeof(*link));
    if (!link)
        return ST_NOMEM;
    struct connection_hooks hooks = {on_link_open, on_link_draining, on_link_room, on_link_closed,
                                     link};
    enum status status = connection_new(&pool->connector, &pool->route.first, pool->protocol, hooks,
                                        &link->connection);
    if (status != ST_OK) {
        free(link);
        return status;
    }
    link->pool = pool;
    link->tls_generation = pool->tls_generation;
    list_init(&link->attempts);
    list_push_front(&pool->links[POOL_LINK_CONNECTING], &link->in_pool);
    pool->counts[POOL_LINK_CONNECTING]++;
    return ST_OK;
}

static bool has_starved(const struct http_pool *pool)
{
    const struct pool_link *link;
    LIST_FOREACH (link, &pool->links[POOL_LINK_FULL], in_pool)
        if (is_starved(link))
            return true;
    return false;
}

/* -- Sending -- */

static void give(struct http_pool *pool, struct pool_link *link, struct http_attempt *a)
{
    enum status status = http_attempt_send(a, link->connection,
                                           slice_from_text(pool->route.authority), now_of(pool));
    switch (status) {
    case ST_OK:
        queue_remove(a);
        a->link = link;
        list_push_back(&link->attempts, &a->in_pool);
        if (link->http1)
            link_move(link, POOL_LINK_FULL);
        break;
    case ST_AGAIN:
        pool->streams_seen = h2_session_streams(connection_session(link->connection));
        link_move(link, POOL_LINK_FULL);
        if (is_starved(link))
            begin_idle(link);
        break;
    case ST_CLOSED:
        retire(link);
        break;
    default:
        queue_remove(a);
        finish(a, status,
               status == ST_NOMEM ? "out of memory" : "the server does not accept its header");
    }
}

/* Requests that begin within on_end wait for the next turn. */
static void dispatch(struct http_pool *pool)
{
    struct pool_link *link;
    size_t most = pool->waiting_count + link_count(pool);
    while (most-- && pool->waiting_count && (link = first_link(pool, POOL_LINK_AVAILABLE)))
        give(pool, link, first_of(&pool->waiting));
    if (pool->waiting_count == 0) {
        /* The least recently used ones of those that are kept are closed. */
        struct list *head = &pool->links[POOL_LINK_AVAILABLE], *at = head->prev;
        while (at != head && pool->idle_http1 > HTTP1_IDLE_MAX) {
            link = LIST_ENTRY(at, struct pool_link, in_pool);
            at = at->prev;
            if (link->http1)
                retire(link);
        }
    } else if (first_link(pool, POOL_LINK_AVAILABLE)) {
        schedule(pool);
    } else {
        while (uncovered(pool) && link_count(pool) < pool->connections_max && !has_starved(pool)) {
            enum status status = connect_link(pool);
            if (status == ST_OK)
                continue;
            pool->stats.connect_errors++;
            finish_waiting(pool, uncovered(pool), status, "out of memory");
            return;
        }
    }
}

static void on_dispatch(struct deferred *deferred)
{
    dispatch(CONTAINER_OF(deferred, struct http_pool, dispatch));
}

/* -- Idle connections -- */

/* The links in this state; returns when the next one expires. */
static int64_t expire_some(struct http_pool *pool, enum pool_link_state state)
{
    struct pool_link *link, *following;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH_SAFE (link, following, &pool->links[state], in_pool) {
        int64_t at = link_expires(link);
        if (at <= now_of(pool))
            retire(link);
        else
            next = at < next ? at : next;
    }
    return next;
}

static void on_expiry(struct timer *timer)
{
    struct http_pool *pool = CONTAINER_OF(timer, struct http_pool, expiry);
    bool was_starved = has_starved(pool);
    set_no_later(pool, timer, expire_some(pool, POOL_LINK_AVAILABLE));
    set_no_later(pool, timer, expire_some(pool, POOL_LINK_FULL));
    if (was_starved && !has_starved(pool))
        finish_waiting(pool, pool->waiting_count, ST_LIMIT, "the server allows no streams");
}

/* -- TLS -- */

static bool has_links_before(const struct http_pool *pool, uint64_t generation)
{
    const struct pool_link *link;
    for (size_t i = 0; i < COUNT_OF(moves); i++)
        LIST_FOREACH (link, &pool->links[i], in_pool)
            if (link->tls_generation < generation)
                return true;
    return false;
}

static void check_tls_changes(struct http_pool *pool)
{
    while (!list_empty(&pool->tls_changes)) {
        struct tls_change *change = LIST_ENTRY(pool->tls_changes.next, struct tls_change, in_pool);
        if (has_links_before(pool, change->generation))
            return;
        list_remove(&change->in_pool);
        change->done(change->ctx);
        free(change);
    }
}

/* In one of the states up to this; NULL: there is none. */
static struct pool_link *any_link(const struct http_pool *pool, enum pool_link_state last)
{
    struct pool_link *link = NULL;
    for (unsigned state = 0; state <= last && !link; state++)
        link = first_link(pool, state);
    return link;
}

static void drop_links(struct http_pool *pool, enum status status, const char *reason)
{
    struct pool_link *link;
    while ((link = any_link(pool, POOL_LINK_RETIRED))) {
        struct http_attempt *a;
        while ((a = first_of(&link->attempts))) {
            list_remove(&a->in_pool);
            finish(a, status, reason);
        }
        link_free(link);
    }
}

void http_pool_set_tls(struct http_pool *pool, struct tls_client_source *source,
                       void (*done)(void *ctx), void *ctx)
{
    struct tls_change *change = malloc(sizeof(*change));
    pool->connector.options.tls = source;
    pool->tls_generation++;
    if (!change) {
        drop_links(pool, ST_NOMEM, "out of memory");
        check_tls_changes(pool);
        done(ctx);
        return;
    }
    *change = (struct tls_change){.generation = pool->tls_generation, .done = done, .ctx = ctx};
    list_push_back(&pool->tls_changes, &change->in_pool);
    struct pool_link *link;
    /* The change is complete when the last connection with the old certificate has ended. */
    while ((link = any_link(pool, POOL_LINK_FULL)))
        retire(link);
    check_tls_changes(pool);
    schedule(pool);
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
    pool->expiry.fn = on_expiry;
    pool->pause.fn = on_pause;
    list_init(&pool->waiting);
    list_init(&pool->paused);
    list_init(&pool->tls_changes);
    for (size_t i = 0; i < COUNT_OF(moves); i++)
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
    finish_waiting(pool, SIZE_MAX, ST_CLOSED, "the client was closed");
    drop_links(pool, ST_CLOSED, "the client was closed");
    check_tls_changes(pool);
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
    a->pool = pool;
    a->on_end = on_attempt_end;
    list_push_back(&pool->waiting, &a->in_pool);
    pool->waiting_count++;
    schedule(pool);
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
        http_attempt_withhold(request->attempt, withhold, now_of(request->attempt->pool));
}

struct http_pool_stats http_pool_stats(const struct http_pool *pool)
{
    struct http_pool_stats stats = pool->stats;
    stats.bytes_sent = pool->connector.stats.bytes_sent;
    stats.bytes_received = pool->connector.stats.bytes_received;
    stats.connections = link_count(pool);
    return stats;
}

static void link_check(const struct pool_link *link)
{
    const struct http_attempt *a;
    size_t count = list_length(&link->attempts);
    LIST_FOREACH (a, &link->attempts, in_pool) {
        assert(a->link == link && a->pool == link->pool);
        http_attempt_check(a);
    }
    assert(link->state != POOL_LINK_CONNECTING || count == 0);
    if (link->http1) {
        assert(count <= 1 && (link->state != POOL_LINK_FULL || count == 1));
        assert(link->state != POOL_LINK_AVAILABLE || count == 0);
    }
    assert(link_expires(link) == CLOCK_NEVER || link->pool->expiry.set);
    connection_check(link->connection);
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
    for (size_t i = 0; i < COUNT_OF(moves); i++) {
        assert(list_length(&pool->links[i]) == pool->counts[i]);
        LIST_FOREACH (link, &pool->links[i], in_pool) {
            assert(link->state == i && link->pool == pool);
            idle_http1 += is_idle_http1(link);
            link_check(link);
        }
    }
    assert(idle_http1 == pool->idle_http1);
    assert(link_count(pool) <= pool->connections_max);
}
