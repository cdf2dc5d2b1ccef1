/*
 * What a connection speaks: HTTP/2 or HTTP/1.1. The connection drives both in the same way; its
 * owner uses the one it wanted. Embedded in a connection, on the loop's thread.
 */
#ifndef VIGIL_CLIENT_CONNECT_SESSION_H
#define VIGIL_CLIENT_CONNECT_SESSION_H

#include "client/connect/connector.h"
#include "wire/h2/session.h"

enum session_protocol {
    SESSION_HTTP2,
    SESSION_HTTP1,
    SESSION_NEGOTIATED, /* the one that the server selects with TLS; HTTP/1.1 without TLS */
};

/* Zeroed, it does not exist. */
struct session {
    struct h2_session *h2;      /* owned; NULL with HTTP/1.1 */
    struct http1_client *http1; /* owned; NULL with HTTP/2 */
};

/* The protocol is known. The ops and the owner are those of h2_session_new_client; HTTP/1.1 only
 * uses on_output. ST_NOMEM. */
MUST_CHECK
enum status session_begin(struct session *session, enum session_protocol protocol,
                          const struct connector_options *options, const struct h2_session_ops *ops,
                          void *owner, int64_t now_ns);
void session_free(struct session *session);

static inline bool session_exists(const struct session *session)
{
    return session->h2 || session->http1;
}

/* The server speaks the protocol; HTTP/1.1 has no greeting, so nothing is known of it. */
static inline bool session_established(const struct session *session)
{
    return session->http1 ||
           (h2_session_established(session->h2) && !h2_session_failed(session->h2));
}

void session_feed(struct session *session, struct slice bytes, int64_t now_ns);
/* The server sends nothing any more. True: it is still sent to, on an upgraded connection. */
bool session_feed_end(struct session *session);

/* Nothing more will be sent, but an upgraded connection still takes input. */
static inline bool session_output_ended(const struct session *session)
{
    return session->http1 && http1_client_output_ended(session->http1);
}

static inline bool session_wants_read(const struct session *session)
{
    return session->http1 ? http1_client_wants_read(session->http1)
                          : h2_session_wants_read(session->h2);
}

static inline bool session_wants_write(const struct session *session)
{
    return session->http1 ? http1_client_wants_write(session->http1)
                          : h2_session_wants_write(session->h2);
}

size_t session_fill(struct session *session, uint8_t *dst, size_t room, int64_t now_ns);
/* The connection is lost: everything that it carries ends. */
void session_lost(struct session *session, const char *reason);
void session_shutdown(struct session *session, int64_t now_ns);

/* Nothing more will happen. */
static inline bool session_over(const struct session *session)
{
    return session->http1 ? http1_client_is_over(session->http1) : h2_session_over(session->h2);
}

/* It is over because of an error, whose status is ST_CLOSED or ST_NOMEM. */
bool session_failed(const struct session *session, enum status *ret_status,
                    const char **ret_reason);

static inline int64_t session_timeout(const struct session *session)
{
    return session->http1 ? http1_client_timeout(session->http1) : h2_session_timeout(session->h2);
}

void session_tick(struct session *session, int64_t now_ns);
void session_check(const struct session *session);

#endif
