#include "client/connect/session.h"

enum status session_begin(struct session *s, enum session_protocol protocol,
                          const struct connector_options *options, const struct h2_session_ops *ops,
                          void *owner, int64_t now_ns)
{
    assert(!session_exists(s) && protocol != SESSION_NEGOTIATED);
    if (protocol == SESSION_HTTP2)
        return h2_session_new_client(&options->h2, ops, owner, NULL, now_ns, &s->h2);
    struct http1_client_hooks hooks = {ops->on_output, owner};
    return http1_client_new(&options->http1, hooks, &s->http1);
}

void session_free(struct session *s)
{
    h2_session_free(s->h2);
    http1_client_free(s->http1);
    *s = (struct session){0};
}

void session_feed(struct session *s, struct slice bytes, int64_t now_ns)
{
    if (s->http1)
        http1_client_feed(s->http1, bytes, now_ns);
    else
        h2_session_feed(s->h2, bytes, now_ns);
}

bool session_feed_end(struct session *s)
{
    /* The end may be what completes a response of HTTP/1.1. In HTTP/2 a stream never ends in this
     * way. */
    if (!s->http1)
        return false;
    http1_client_feed_end(s->http1);
    return !http1_client_is_over(s->http1);
}

size_t session_fill(struct session *s, uint8_t *dst, size_t room, int64_t now_ns)
{
    if (s->http1)
        return room ? http1_client_fill(s->http1, dst, room, now_ns) : 0;
    return room >= H2_FILL_ROOM_MIN ? h2_session_fill(s->h2, dst, room, now_ns) : 0;
}

void session_lost(struct session *s, const char *reason)
{
    if (s->http1)
        http1_client_lost(s->http1, reason);
    else
        h2_session_lost(s->h2, reason);
}

void session_shutdown(struct session *s, int64_t now_ns)
{
    if (s->http1)
        http1_client_shutdown(s->http1);
    else
        h2_session_shutdown(s->h2, now_ns);
}

bool session_failed(const struct session *s, enum status *ret_status, const char **ret_reason)
{
    if (s->http1) {
        if (!http1_client_is_over(s->http1))
            return false;
        enum status status = http1_client_reason(s->http1, ret_reason);
        *ret_status = status == ST_NOMEM ? ST_NOMEM : ST_CLOSED;
        return true;
    }
    enum h2_error code = h2_session_error(s->h2, ret_reason);
    bool no_memory = code == H2_INTERNAL_ERROR && strcmp(*ret_reason, "out of memory") == 0;
    *ret_status = no_memory ? ST_NOMEM : ST_CLOSED;
    return h2_session_failed(s->h2);
}

void session_tick(struct session *s, int64_t now_ns)
{
    if (s->http1)
        http1_client_tick(s->http1, now_ns);
    else
        h2_session_tick(s->h2, now_ns);
}

void session_check(const struct session *s)
{
    assert(!s->h2 || !s->http1);
    if (s->http1)
        http1_client_check(s->http1);
    if (s->h2)
        h2_session_check(s->h2);
}
