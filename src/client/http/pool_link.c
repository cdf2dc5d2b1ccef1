/* The connections of a pool: their states, how they are made, and when they end. */
#include "client/http/http_pool_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <vigil/client.h>

#define TO(state) (1u << POOL_LINK_##state)

/* Drawn in http_pool.h. */
static const uint8_t moves[] = {
    [POOL_LINK_CONNECTING] = TO(AVAILABLE) | TO(RETIRED),
    [POOL_LINK_AVAILABLE] = TO(FULL) | TO(RETIRED),
    [POOL_LINK_FULL] = TO(AVAILABLE) | TO(RETIRED),
    [POOL_LINK_RESERVED] = TO(RETIRED),
    [POOL_LINK_RETIRED] = 0,
};

/* -- Links -- */

bool pool_link_is_idle_http1(const struct pool_link *link)
{
    return link->http1 && link->state == POOL_LINK_AVAILABLE;
}

/* The latest of a state comes first: a connection of HTTP/1.1 that was used lately is the least
 * likely to be closed by the server. */
void pool_link_move(struct pool_link *link, enum pool_link_state next)
{
    struct http_pool *pool = link->pool;
    assert(moves[link->state] & (1u << next));
    pool->idle_http1 -= pool_link_is_idle_http1(link);
    pool->counts[link->state]--;
    list_remove(&link->in_pool);
    link->state = next;
    list_push_front(&pool->links[next], &link->in_pool);
    pool->counts[next]++;
    pool->idle_http1 += pool_link_is_idle_http1(link);
}

unsigned pool_links_count(const struct http_pool *pool)
{
    unsigned count = 0;
    for (size_t i = 0; i < POOL_LINK_STATES; i++)
        count += pool->counts[i];
    return count;
}

/* Without those that are for one request only. */
unsigned pool_links_shared(const struct http_pool *pool)
{
    return pool_links_count(pool) - pool->counts[POOL_LINK_RESERVED];
}

/* Finishes its requests and closes it. */
void pool_link_retire(struct pool_link *link)
{
    if (link->state != POOL_LINK_RETIRED)
        pool_link_move(link, POOL_LINK_RETIRED);
    connection_shutdown(link->connection);
}

/* The timer may fire too early, and is then set again. */
void http_pool_set_no_later(struct http_pool *pool, struct timer *timer, int64_t at_ns)
{
    if (!pool->closing && at_ns != CLOCK_NEVER && (!timer->set || at_ns < timer->at_ns))
        loop_timer_set(pool->connector.options.loop, timer, at_ns);
}

/* An open connection on which the server allows no stream at all: more of them would not help. */
bool pool_link_is_starved(const struct pool_link *link)
{
    return link->state == POOL_LINK_FULL && list_empty(&link->attempts);
}

/* When it is given up because it carries nothing. */
static int64_t link_expires(const struct pool_link *link)
{
    const struct http_pool *pool = link->pool;
    if (pool_link_is_starved(link))
        return clock_add(link->idle_since_ns, pool->connector.options.connect_timeout_ns);
    if (link->state == POOL_LINK_AVAILABLE && list_empty(&link->attempts))
        return clock_add(link->idle_since_ns, pool->idle_ns);
    return CLOCK_NEVER;
}

void pool_link_begin_idle(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    link->idle_since_ns = http_pool_now(pool);
    http_pool_set_no_later(pool, &pool->expiry, link_expires(link));
}

struct pool_link *pool_links_first(const struct http_pool *pool, enum pool_link_state state)
{
    if (list_empty(&pool->links[state]))
        return NULL;
    return LIST_ENTRY(pool->links[state].next, struct pool_link, in_pool);
}

/* -- TLS -- */

static bool has_links_before(const struct http_pool *pool, uint64_t generation)
{
    const struct pool_link *link;
    for (size_t i = 0; i < POOL_LINK_STATES; i++)
        LIST_FOREACH (link, &pool->links[i], in_pool)
            if (link->tls_generation < generation)
                return true;
    return false;
}

void pool_links_check_tls(struct http_pool *pool)
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

/* -- Connecting -- */

/* How many requests a connection that is being made is expected to carry. */
static size_t link_capacity(const struct http_pool *pool)
{
    if (pool->speaks_http1)
        return 1;
    return pool->streams_seen ? pool->streams_seen : SIZE_MAX;
}

/* The requests that wait for more than the connections that are being made. */
size_t pool_links_uncovered(const struct http_pool *pool)
{
    size_t each = link_capacity(pool), connecting = pool->counts[POOL_LINK_CONNECTING];
    if (connecting && each > pool->waiting_count / connecting)
        return 0;
    return pool->waiting_count - connecting * each;
}

static void link_free(struct pool_link *link)
{
    struct http_pool *pool = link->pool;
    assert(list_empty(&link->attempts));
    pool->idle_http1 -= pool_link_is_idle_http1(link);
    pool->counts[link->state]--;
    counter_set(&pool->counters.connections, pool_links_count(pool));
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
    counter_add_alone(&pool->counters.connects, 1);
    link->http1 = connection_http1(link->connection) != NULL;
    if (link->state == POOL_LINK_RESERVED)
        http_pool_send_reserved(link);
    else
        pool->speaks_http1 = link->http1;
    if (link->state == POOL_LINK_CONNECTING)
        pool_link_move(link, POOL_LINK_AVAILABLE);
    pool_link_begin_idle(link);
    char text[ENDPOINT_TEXT_BYTES + 64];
    snprintf(text, sizeof(text), "connected to %s over %s", link->pool->route.server.text,
             link->http1 ? "HTTP/1.1" : "HTTP/2");
    log_line(link->pool, VIGIL_LOG_INFO, text);
    http_pool_dispatch(pool);
}

static void on_link_draining(void *owner, enum h2_error code, const char *text)
{
    struct pool_link *link = owner;
    (void)code, (void)text;
    if (link->state != POOL_LINK_RETIRED)
        pool_link_move(link, POOL_LINK_RETIRED);
    log_line(link->pool, VIGIL_LOG_INFO, "the server closes the connection");
}

static void on_link_room(void *owner)
{
    struct pool_link *link = owner;
    if (link->state == POOL_LINK_FULL)
        pool_link_move(link, POOL_LINK_AVAILABLE);
    http_pool_dispatch(link->pool);
}

static void on_link_closed(void *owner, const struct error *error)
{
    struct pool_link *link = owner;
    struct http_pool *pool = link->pool;
    struct error reason = *error;
    bool failed = link->state == POOL_LINK_CONNECTING;
    bool was_wanted = link->state != POOL_LINK_RETIRED;
    size_t carried = link_capacity(pool);
    /* Not sent yet. What was sent has ended before. */
    struct http_attempt *reserved = http_attempt_first(&link->attempts);
    if (reserved) {
        list_remove(&reserved->in_pool);
        reserved->link = NULL;
    }
    link_free(link);
    http_pool_schedule(pool);
    if (was_wanted)
        log_line(pool, VIGIL_LOG_WARN, reason.text);
    if (failed) {
        counter_add_alone(&pool->counters.connect_errors, 1);
        http_pool_finish_waiting(pool, size_min(carried, pool_links_uncovered(pool)), reason.status,
                                 reason.text);
    } else if (reserved) {
        counter_add_alone(&pool->counters.connect_errors, 1);
        http_pool_finish(reserved, reason.status, reason.text);
    } else {
        counter_add_alone(&pool->counters.disconnects, 1);
    }
    pool_links_check_tls(pool);
}

/* state: connecting or reserved. */
enum status pool_link_connect(struct http_pool *pool, enum pool_link_state state,
                              struct pool_link **ret_link)
{
    struct pool_link *link = calloc(1, sizeof(*link));
    if (!link)
        return ST_NOMEM;
    struct connection_hooks hooks = {on_link_open, on_link_draining, on_link_room, on_link_closed,
                                     link};
    enum session_protocol protocol = state == POOL_LINK_RESERVED ? SESSION_HTTP1 : pool->protocol;
    enum status status =
        connection_new(&pool->connector, &pool->route.first, protocol, hooks, &link->connection);
    if (status != ST_OK) {
        free(link);
        return status;
    }
    link->state = state;
    link->number = ++pool->links_made;
    link->pool = pool;
    link->tls_generation = pool->tls_generation;
    list_init(&link->attempts);
    list_push_front(&pool->links[state], &link->in_pool);
    pool->counts[state]++;
    counter_set(&pool->counters.connections, pool_links_count(pool));
    *ret_link = link;
    return ST_OK;
}

bool pool_links_starve(const struct http_pool *pool)
{
    const struct pool_link *link;
    LIST_FOREACH (link, &pool->links[POOL_LINK_FULL], in_pool)
        if (pool_link_is_starved(link))
            return true;
    return false;
}

/* -- Idle connections -- */

/* The links in this state; returns when the next one expires. */
static int64_t expire_some(struct http_pool *pool, enum pool_link_state state)
{
    struct pool_link *link, *following;
    int64_t next = CLOCK_NEVER;
    LIST_FOREACH_SAFE (link, following, &pool->links[state], in_pool) {
        int64_t at = link_expires(link);
        if (at <= http_pool_now(pool))
            pool_link_retire(link);
        else
            next = at < next ? at : next;
    }
    return next;
}

void pool_links_expire(struct timer *timer)
{
    struct http_pool *pool = CONTAINER_OF(timer, struct http_pool, expiry);
    bool was_starved = pool_links_starve(pool);
    http_pool_set_no_later(pool, timer, expire_some(pool, POOL_LINK_AVAILABLE));
    http_pool_set_no_later(pool, timer, expire_some(pool, POOL_LINK_FULL));
    if (was_starved && !pool_links_starve(pool))
        http_pool_finish_waiting(pool, pool->waiting_count, ST_LIMIT,
                                 "the server allows no streams");
}

/* -- TLS -- */

/* In one of the states up to this; NULL: there is none. */
static struct pool_link *any_link(const struct http_pool *pool, enum pool_link_state last)
{
    struct pool_link *link = NULL;
    for (unsigned state = 0; state <= last && !link; state++)
        link = pool_links_first(pool, state);
    return link;
}

void pool_links_drop(struct http_pool *pool, enum status status, const char *reason)
{
    struct pool_link *link;
    while ((link = any_link(pool, POOL_LINK_RETIRED))) {
        struct http_attempt *a;
        while ((a = http_attempt_first(&link->attempts))) {
            list_remove(&a->in_pool);
            http_pool_finish(a, status, reason);
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
        pool_links_drop(pool, ST_NOMEM, "out of memory");
        pool_links_check_tls(pool);
        done(ctx);
        return;
    }
    *change = (struct tls_change){.generation = pool->tls_generation, .done = done, .ctx = ctx};
    list_push_back(&pool->tls_changes, &change->in_pool);
    struct pool_link *link;
    /* The change is complete when the last connection with the old certificate has ended. */
    while ((link = any_link(pool, POOL_LINK_FULL)))
        pool_link_retire(link);
    pool_links_check_tls(pool);
    http_pool_schedule(pool);
}

void pool_link_check(const struct pool_link *link)
{
    const struct http_attempt *a;
    size_t count = list_length(&link->attempts);
    LIST_FOREACH (a, &link->attempts, in_pool) {
        assert(a->link == link && a->pool == link->pool);
        http_attempt_check(a);
    }
    assert(link->state != POOL_LINK_CONNECTING || count == 0);
    assert(link->state != POOL_LINK_RESERVED || count == 1);
    if (link->http1) {
        assert(count <= 1 && (link->state != POOL_LINK_FULL || count == 1));
        assert(link->state != POOL_LINK_AVAILABLE || count == 0);
    }
    assert(link_expires(link) == CLOCK_NEVER || link->pool->expiry.set);
    connection_check(link->connection);
}
