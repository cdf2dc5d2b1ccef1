/*
 * The server side of one HTTP/2 connection: bytes in, bytes out; no socket, no clock.
 *
 * Checks everything that RFC 9113 requires, and ends the connection with GOAWAY or the stream with
 * RST_STREAM and the code that it names. Answers PING and SETTINGS, does flow control in both
 * directions, and schedules output: control frames first, then streams in turn, then bulk streams,
 * which leave a part of the connection's window to the others. Owned by one connection; its thread.
 */
#ifndef VIGIL_WIRE_H2_SESSION_H
#define VIGIL_WIRE_H2_SESSION_H

#include "wire/h2/limits.h"
#include "wire/h2/stream.h"

struct account;
struct h2_session;

struct h2_session_ops {
    /*
     * A request began; its fields are well-formed. Returns the stream, embedded and with its ops
     * set, or NULL to refuse it. Takes a reference to headers to keep them.
     */
    struct h2_stream *(*on_open)(void *owner, struct h2_headers *headers, int64_t now_ns);
    /* There is output where there was none. Not called during feed, fill and tick. May be NULL. */
    void (*on_output)(void *owner);
};

/* limits and account are borrowed. The account is charged for headers of open streams, parts of
 * frames and control frames; it may be NULL. */
MUST_CHECK
enum status h2_session_new(const struct h2_limits *limits, const struct h2_session_ops *ops,
                           void *owner, struct account *account, int64_t now_ns,
                           struct h2_session **ret_session);
/* Closes every stream (on_close) first. */
void h2_session_free(struct h2_session *session);
DEFINE_CLEANUP(struct h2_session *, h2_session_free)

/* Consumes all bytes, beginning with the preface. A fault of the peer makes h2_session_over true
 * later. */
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

/* Graceful: new streams are refused, those in progress are finished, then h2_session_over is true.
 */
void h2_session_shutdown(struct h2_session *session, int64_t now_ns);
/* Ends the session with this error. */
void h2_session_fail(struct h2_session *session, enum h2_error code, const char *reason);

/* When to call tick, INT64_MAX for never. */
int64_t h2_session_timeout(const struct h2_session *session);
void h2_session_tick(struct h2_session *session, int64_t now_ns);

/* While set, the peer gets no window back for what it sends, so it stops sending data; its PINGs
 * are still answered. */
void h2_session_withhold(struct h2_session *session, bool withhold);

/* The peer's first SETTINGS frame began to arrive. */
bool h2_session_established(const struct h2_session *session);
size_t h2_session_streams(const struct h2_session *session);
/* Iterates over the open streams, oldest first. Streams may be reset meanwhile. */
struct h2_stream *h2_session_next(struct h2_session *session, struct h2_stream *after);

/* Asserts every invariant; for tests. */
void h2_session_check(const struct h2_session *session);

#endif
