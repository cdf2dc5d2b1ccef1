/*
 * The server side of one HTTP/2 connection: bytes in, bytes out; no socket, no clock.
 *
 * Checks everything RFC 9113 asks of a server and ends the connection with GOAWAY, or the stream
 * with RST_STREAM, under the code it names. Answers PING and SETTINGS by itself, keeps both
 * directions of flow control, and decides who may send: control frames first, then streams in turn,
 * then bulk streams, which leave a part of the connection's window to the others.
 * Owned by one connection; its thread.
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
     * set, or NULL to refuse it. It takes a reference to headers if it wants to keep them.
     */
    struct h2_stream *(*on_open)(void *owner, struct h2_headers *headers, int64_t now_ns);
    /* There is output where there was none. Not called during feed, fill and tick. May be NULL. */
    void (*on_output)(void *owner);
};

/* limits and account are borrowed. What the session holds is charged to the account: headers of
 * open streams, parts of frames, control frames. NULL: it is not. */
MUST_CHECK
enum status h2_session_new(const struct h2_limits *limits, const struct h2_session_ops *ops,
                           void *owner, struct account *account, int64_t now_ns,
                           struct h2_session **ret_session);
/* Closes every stream (on_close) first. */
void h2_session_free(struct h2_session *session);
DEFINE_CLEANUP(struct h2_session *, h2_session_free)

/* Takes all the bytes, preface first. A peer's fault shows in h2_session_over later. */
void h2_session_feed(struct h2_session *session, struct slice bytes, int64_t now_ns);

/* False while the peer has made us queue too much: stop reading from it. */
bool h2_session_wants_read(const struct h2_session *session);

/* Output is waiting and may be sent now. */
bool h2_session_wants_write(const struct h2_session *session);

/* Writes frames to dst; returns how many bytes. room is at least H2_FILL_ROOM_MIN. */
enum { H2_FILL_ROOM_MIN = H2_BLOCK_BYTES_MAX + H2_FRAME_HEAD_BYTES };
size_t h2_session_fill(struct h2_session *session, uint8_t *dst, size_t room, int64_t now_ns);

/* Everything was said and written: close the connection. */
bool h2_session_over(const struct h2_session *session);
/* A fault ended it: there are no streams any more. */
bool h2_session_failed(const struct h2_session *session);
/* The code it ends with (H2_NO_ERROR when in peace) and a sentence for the log, never NULL. */
enum h2_error h2_session_error(const struct h2_session *session, const char **ret_reason);

/* Says good-bye: no new streams, those under way may end. Then h2_session_over. */
void h2_session_shutdown(struct h2_session *session, int64_t now_ns);
/* Ends with an error of our own choosing. */
void h2_session_fail(struct h2_session *session, enum h2_error code, const char *reason);

/* When to call tick, INT64_MAX for never. */
int64_t h2_session_timeout(const struct h2_session *session);
void h2_session_tick(struct h2_session *session, int64_t now_ns);

/* While set, the peer gets no window back for what it sends: it stops by itself, and its PINGs are
 * still heard. */
void h2_session_withhold(struct h2_session *session, bool withhold);

/* The first byte of the peer's SETTINGS after the preface was seen. */
bool h2_session_established(const struct h2_session *session);
size_t h2_session_streams(const struct h2_session *session);
/* Every open stream, oldest first. A stream may be reset in between. */
struct h2_stream *h2_session_next(struct h2_session *session, struct h2_stream *after);

/* Checks every invariant; for tests. */
void h2_session_check(const struct h2_session *session);

#endif
