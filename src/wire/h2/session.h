/*
 * One side of an HTTP/2 connection, the server's or the client's: bytes in, bytes out; no socket,
 * no clock.
 *
 * Checks everything that RFC 9113 requires, and ends the connection with GOAWAY or the stream with
 * RST_STREAM and the code that it names. Answers PING and SETTINGS, does flow control in both
 * directions, and schedules output: control frames first, then streams in turn, then bulk streams,
 * which leave a part of the connection's window to the others. Owned by one connection; its thread.
 *
 * A server's streams begin with on_open, a client's with h2_session_open.
 */
#ifndef VIGIL_WIRE_H2_SESSION_H
#define VIGIL_WIRE_H2_SESSION_H

#include "wire/h2/limits.h"
#include "wire/h2/stream.h"

struct account;
struct h2_session;

struct h2_session_ops {
    /*
     * Server: a request began; its fields are well-formed. Returns the stream, embedded and with
     * its ops set, or NULL to refuse it. Takes a reference to headers to keep them.
     */
    struct h2_stream *(*on_open)(void *owner, struct h2_headers *headers, int64_t now_ns);
    /* There is output where there was none. Not called during feed, fill and tick. May be NULL. */
    void (*on_output)(void *owner);
    /*
     * Client: h2_session_open returned ST_AGAIN before, and now a stream may be opened. Called at
     * the end of feed, fill, tick and h2_stream_reset; streams may be opened from within. May be
     * NULL.
     */
    void (*on_room)(void *owner);
    /*
     * Client: the server sent GOAWAY, so no stream can be opened any more. Streams that it does not
     * process are closed afterwards; the others continue, and then h2_session_over is true. May be
     * called again, because a server that leaves in two steps sends two frames. text is borrowed;
     * "too_many_pings" means that our pings come too often. May be NULL.
     */
    void (*on_goaway)(void *owner, enum h2_error code, struct slice text);
};

/* limits and account are borrowed. The account is charged for headers of open streams, parts of
 * frames and control frames; it may be NULL. */
MUST_CHECK
enum status h2_session_new(const struct h2_limits *limits, const struct h2_session_ops *ops,
                           void *owner, struct account *account, int64_t now_ns,
                           struct h2_session **ret_session);
/* The client's side: the preface and SETTINGS are the first output. The server can only send data
 * on streams that this session opened. */
MUST_CHECK
enum status h2_session_new_client(const struct h2_limits *limits, const struct h2_session_ops *ops,
                                  void *owner, struct account *account, int64_t now_ns,
                                  struct h2_session **ret_session);
/* Closes every stream (on_close) first. */
void h2_session_free(struct h2_session *session);
DEFINE_CLEANUP(struct h2_session *, h2_session_free)

/*
 * Client: begins a request on the stream, whose ops are set and which is ready to send at once. The
 * session uses the stream until on_close. Otherwise the stream was not touched: ST_AGAIN if as many
 * streams are open as the server allows (then on_room is called later), ST_CLOSED if no stream can
 * be opened on this session any more, ST_NOMEM.
 */
MUST_CHECK
enum status h2_session_open(struct h2_session *session, struct h2_stream *stream);

/* Consumes all bytes, beginning with the preface of a client. A fault of the peer makes
 * h2_session_over true later. */
void h2_session_feed(struct h2_session *session, struct slice bytes, int64_t now_ns);

/* False while too much is queued because of the peer: stop reading from it. */
bool h2_session_wants_read(const struct h2_session *session);

/* Output is waiting and may be sent now. */
bool h2_session_wants_write(const struct h2_session *session);

/* Writes frames to dst and returns their size. room is at least H2_FILL_ROOM_MIN. */
enum { H2_FILL_ROOM_MIN = H2_BLOCK_BYTES_MAX + H2_FRAME_HEAD_BYTES };
size_t h2_session_fill(struct h2_session *session, uint8_t *dst, size_t room, int64_t now_ns);

/* All output was written: close the connection. */
bool h2_session_over(const struct h2_session *session);
/* An error ended the session: it has no streams any more. */
bool h2_session_failed(const struct h2_session *session);
/* The code that it ends with (H2_NO_ERROR for a regular end) and a reason for the log, never NULL.
 */
enum h2_error h2_session_error(const struct h2_session *session, const char **ret_reason);

/* It ended because the peer did not answer a ping in time. */
bool h2_session_timed_out(const struct h2_session *session);

/* Graceful: new streams are refused, those in progress are finished, then h2_session_over is true.
 */
void h2_session_shutdown(struct h2_session *session, int64_t now_ns);
/* Ends the session with this error. */
void h2_session_fail(struct h2_session *session, enum h2_error code, const char *reason);
/* The connection is lost: closes all streams and drops all output. */
void h2_session_lost(struct h2_session *session, const char *reason);

/* When to call tick, INT64_MAX for never. */
int64_t h2_session_timeout(const struct h2_session *session);
void h2_session_tick(struct h2_session *session, int64_t now_ns);

/* While set, the peer gets no window back for what it sends, so it stops sending data; its PINGs
 * are still answered. */
void h2_session_withhold(struct h2_session *session, bool withhold);

/* The peer's first SETTINGS frame began to arrive. */
bool h2_session_established(const struct h2_session *session);
/* The time of the latest feed, fill or tick. */
int64_t h2_session_now(const struct h2_session *session);
/* The largest header list that the peer accepts, as HPACK counts (RFC 9113 section 6.5.2). */
uint32_t h2_session_peer_header_list_bytes(const struct h2_session *session);
/* Client: how many streams the server allows at the same time; 0: none, for now. */
uint32_t h2_session_peer_streams_max(const struct h2_session *session);
size_t h2_session_streams(const struct h2_session *session);
/* Iterates over the open streams, oldest first. Streams may be reset meanwhile. */
struct h2_stream *h2_session_next(struct h2_session *session, struct h2_stream *after);

/* Asserts every invariant; for tests. */
void h2_session_check(const struct h2_session *session);

#endif
