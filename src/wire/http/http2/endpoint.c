#include "wire/http/http2/endpoint.h"

#include "wire/http/http2/endpoint_private.h"
#include "wire/peer/arrival_timeout.h"

#include <stdlib.h>

enum status http2_endpoint_new(const struct http2_server *server, struct http_hooks hooks,
                               struct h2_session *session, struct http2_endpoint **ret_endpoint)
{
    struct http2_endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return ST_NOMEM;
    *endpoint = (struct http2_endpoint){
        .server = server, .hooks = hooks, .session = session, .check_at_ns = INT64_MAX};
    list_init(&endpoint->exchanges);
    list_init(&endpoint->waiting);
    *ret_endpoint = endpoint;
    return ST_OK;
}

void http2_endpoint_free(struct http2_endpoint *endpoint)
{
    if (!endpoint)
        return;
    assert(list_empty(&endpoint->exchanges));
    assert(list_empty(&endpoint->waiting) && endpoint->broken == 0);
    assert(endpoint->queued_bytes == 0 && endpoint->early_bytes == 0);
    free(endpoint);
}

static int64_t wait_ends(const struct http2_exchange *h)
{
    const struct http_limits *limits = h->endpoint->server->limits;
    if (http2_exchange_arrives(h))
        return wire_message_by_ns(h->progress_ns, limits->message_ns, h->opening->http.body.len);
    return h->progress_ns + limits->stall_ns;
}

static void check_in_time(const struct http2_exchange *h)
{
    int64_t at = wait_ends(h);
    if (at < h->endpoint->check_at_ns)
        h->endpoint->check_at_ns = at;
}

struct h2_stream *http2_endpoint_open(struct http2_endpoint *endpoint, struct h2_headers *headers,
                                      int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    struct http2_exchange *h = http2_exchange_new(endpoint, headers);
    if (!h)
        return NULL;
    check_in_time(h);
    return &h->stream;
}

static bool may_dispatch(const struct http2_endpoint *endpoint)
{
    return !list_empty(&endpoint->waiting) && endpoint->queued_bytes <= HTTP2_QUEUED_BYTES_SOFT;
}

/* They are few, so they are looked for. */
static void reset_broken(struct http2_endpoint *endpoint)
{
    struct http2_exchange *h, *following;
    LIST_FOREACH_SAFE (h, following, &endpoint->exchanges, in_exchanges) {
        if (!h->broken)
            continue;
        h2_stream_reset(&h->stream, H2_INTERNAL_ERROR);
        if (h2_session_failed(endpoint->session))
            return;
    }
}

void http2_endpoint_turn(struct http2_endpoint *endpoint, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    if (endpoint->broken)
        reset_broken(endpoint);
    /* A client that sends many requests at once must not keep the core from its other
     * connections. */
    for (int n = 0; n < HTTP2_REQUESTS_PER_TURN && may_dispatch(endpoint); n++) {
        struct http2_opening *opening =
            LIST_ENTRY(endpoint->waiting.next, struct http2_opening, in_waiting);
        struct http2_exchange *h = opening->exchange;
        list_remove(&opening->in_waiting);
        h->progress_ns = now_ns;
        check_in_time(h);
        http2_exchange_proceed(h);
    }
}

bool http2_endpoint_wants_turn(const struct http2_endpoint *endpoint)
{
    return endpoint->broken || may_dispatch(endpoint);
}

/* Answers that wait for the peer's window must not stop reading, which brings the window. */
bool http2_endpoint_wants_read(const struct http2_endpoint *endpoint)
{
    if (endpoint->early_bytes > HTTP2_EARLY_BYTES_SOFT)
        return false;
    return endpoint->queued_bytes <= HTTP2_QUEUED_BYTES_SOFT ||
           !h2_session_wants_write(endpoint->session);
}

void http2_endpoint_shutdown(struct http2_endpoint *endpoint, int64_t now_ns)
{
    struct http2_exchange *h;
    endpoint->now_ns = now_ns;
    endpoint->leaving = true;
    LIST_FOREACH (h, &endpoint->exchanges, in_exchanges) {
        http_exchange_leave(&h->exchange);
        /* Answers that end now get the full time to be read. */
        h->progress_ns = now_ns;
    }
    int64_t at = now_ns + endpoint->server->limits->stall_ns;
    if (at < endpoint->check_at_ns && !list_empty(&endpoint->exchanges))
        endpoint->check_at_ns = at;
}

int64_t http2_endpoint_timeout(const struct http2_endpoint *endpoint)
{
    if (may_dispatch(endpoint))
        return endpoint->now_ns;
    return list_empty(&endpoint->exchanges) ? INT64_MAX : endpoint->check_at_ns;
}

/* An exchange that parks may begin to wait later, so it is checked again after the longest wait. */
void http2_endpoint_tick(struct http2_endpoint *endpoint, int64_t now_ns)
{
    int64_t stall_ns = endpoint->server->limits->stall_ns;
    struct http2_exchange *h, *following;
    endpoint->now_ns = now_ns;
    if (now_ns < endpoint->check_at_ns)
        return;
    int64_t next = now_ns + stall_ns;
    LIST_FOREACH_SAFE (h, following, &endpoint->exchanges, in_exchanges) {
        http_exchange_tick(&h->exchange, now_ns);
        int64_t deadline = http_exchange_deadline(&h->exchange);
        next = deadline < next ? deadline : next;
        if (!http2_exchange_stalls(h))
            continue;
        int64_t at = wait_ends(h);
        if (now_ns < at) {
            next = at < next ? at : next;
            continue;
        }
        h2_stream_reset(&h->stream, H2_CANCEL);
        if (h2_session_failed(endpoint->session))
            return;
    }
    endpoint->check_at_ns = next;
}

void http2_endpoint_check(const struct http2_endpoint *endpoint)
{
    size_t queued_bytes = 0, early_bytes = 0, broken = 0, waiting = 0;
    const struct http2_exchange *h;
    LIST_FOREACH (h, &endpoint->exchanges, in_exchanges) {
        assert(h->endpoint == endpoint);
        assert(h->out_sent <= h->out.len);
        http_exchange_check(&h->exchange);
        assert(h->opening || h->forgotten);
        bool waits = h->opening && !list_empty(&h->opening->in_waiting);
        assert(!waits || h->exchange.state <= HTTP_ADMITTED);
        size_t early = h->opening ? h->opening->early_bytes : 0;
        assert(early == 0 || h->exchange.state <= HTTP_ADMITTED);
        assert(early == 0 || early <= h->opening->http.body.len);
        queued_bytes += h->out.len - h->out_sent;
        early_bytes += early;
        broken += h->broken;
        waiting += waits;
    }
    assert(endpoint->queued_bytes == queued_bytes);
    assert(endpoint->early_bytes == early_bytes);
    assert(endpoint->broken == broken);
    assert(list_length(&endpoint->waiting) == waiting);
}
