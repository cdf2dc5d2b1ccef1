/*
 * One HTTP request and its response, over HTTP/1.1 or HTTP/2: the interface for handlers, which
 * need not know which of the two it is.
 *
 *     on_request ──► respond                                  in one piece
 *        │   └─────► begin ──► write… / source ──► end        in parts
 *        └──(the peer is gone, or it took too long)──► on_end
 *
 * A client is admitted by the head of its request (route.h: admit and authorize), before any of the
 * body is kept. The body is read completely (up to the route's limit) before on_request is called,
 * unless the route takes it as it arrives (route.h: on_body). The handler answers immediately, or
 * keeps the exchange and answers later, perhaps before a body that it takes has arrived. The
 * exchange lives until on_end, which is called exactly once, as the last function, for every
 * request that was given to the route's authorize or on_request. Until then calls on an exchange
 * whose peer is gone do nothing. HTTP/1.1 answers the requests of a connection one after another,
 * HTTP/2 concurrently. Handlers check the method; the body of a response to HEAD is dropped here.
 * Everything happens on the connection's thread.
 */
#ifndef VIGIL_WIRE_HTTP_EXCHANGE_H
#define VIGIL_WIRE_HTTP_EXCHANGE_H

#include "wire/http/request.h"
#include "wire/http/source.h"

struct account;
struct http_exchange;

/* The connection's account, charged for what a handler keeps for the exchange. What is still
 * charged after on_end needs a reference to the account, which an arena has. May be NULL. */
struct account *http_exchange_account(const struct http_exchange *x);

/* For a route's authorize: the client may make this request, so its body is read. Does nothing if
 * the peer is gone or the request was refused meanwhile. */
void http_authorized(struct http_exchange *x);

/* A pointer for the handler's own use; NULL at first. */
void http_exchange_set_user(struct http_exchange *x, void *user);
void *http_exchange_user(const struct http_exchange *x);
const struct http_request *http_exchange_request(const struct http_exchange *x);
/* The client's address, also after http_forget_request. */
struct wire_peer http_exchange_peer(const struct http_exchange *x);
/* The request is not used any more, neither by the handler nor through pointers into it, so that an
 * answer that lasts for hours does not hold it. After begin; the request must not be asked for
 * afterwards. */
void http_forget_request(struct http_exchange *x);

/*
 * Adds a field to the response, before it begins. ST_INVALID: the name or value contains forbidden
 * bytes. ST_LIMIT: the fields exceed HTTP_FIELDS_BYTES_MAX in total. ST_CLOSED: the peer is gone.
 */
enum { HTTP_FIELDS_BYTES_MAX = 10 * 1024 };
MUST_CHECK
enum status http_add_field(struct http_exchange *x, struct slice name, struct slice value);
/* Takes back those that were added: they were meant for another answer. */
void http_drop_fields(struct http_exchange *x);

/* Answers with one call. content_type may be empty. The body is copied. */
void http_respond(struct http_exchange *x, unsigned status, struct slice content_type,
                  struct slice body);

/*
 * Answers in parts: begin, then write as often as needed, then end. An HTTP/1.0 peer gets the bytes
 * without chunks, and then the end of the connection. A write that fails because there is no memory
 * aborts the exchange, as http_abort does.
 */
void http_begin(struct http_exchange *x, unsigned status, struct slice content_type);
/* The same with the length of the body, which is then not sent in chunks. The handler gives exactly
 * as many bytes, or aborts. */
void http_begin_sized(struct http_exchange *x, unsigned status, struct slice content_type,
                      size_t length);
MUST_CHECK
enum status http_write(struct http_exchange *x, struct slice bytes);
void http_end(struct http_exchange *x);
/* There is no memory for the answer, or it cannot be finished. If it has begun, the peer sees that
 * it is incomplete; otherwise the peer gets 429 for a read and 500 for any other request. */
void http_abort(struct http_exchange *x);

/*
 * Answers with a body that is pulled, and ends with it. fill may call http_abort, but no
 * other function on the exchange. The source lives until on_end. Set after begin and after
 * anything written; at most one.
 */
void http_set_source(struct http_exchange *x, struct http_source *source);
/* A parked source has something to send. Cheap to call often. */
void http_wake(struct http_exchange *x);
/* http_wake will be called soon: prefetches the memory that it uses. */
void http_wake_soon(const struct http_exchange *x);

/*
 * For a route that takes the body as it arrives. While set, the client is made to stop sending;
 * what it was allowed to send before, at most its window or what is read at once, is still
 * delivered. A client that waits for "100 Continue" gets it as soon as the body is not withheld
 * after on_request, unless the answer has begun. A client that sends nothing for too long, before
 * the answer begins and while the body is not withheld, is refused.
 */
void http_withhold(struct http_exchange *x, bool withhold);

/*
 * Answers a request with request->upgrade with 101 instead of begin, on a route with on_body; the
 * fields Connection and Upgrade were added before. From now on the connection belongs to the
 * exchange, and its bytes have no framing: what the client sends is passed to on_body, and what is
 * written, or given by the source, is sent. http_end, or the end of the source, ends only our
 * direction, and on_body with no bytes means that the client has ended its own; the exchange is
 * over when both have ended, or is aborted. It may be silent without limit. When the server shuts
 * down, our direction is ended, unless http_park has named a function that does so, and the
 * exchange is over when what was written is sent.
 */
void http_upgrade(struct http_exchange *x);

/*
 * The answer waits for events, like a watch: output without progress is not a stall. Such an answer
 * ends when the peer sends its last byte. When the server shuts down, on_leave is called once, to
 * write the last bytes and end (immediately, if the server already shuts down). NULL: the answer
 * just ends.
 */
void http_park(struct http_exchange *x, void (*on_leave)(struct http_exchange *x));

/*
 * While set, the exchange ends soon after the peer has sent its last byte, as in Go's servers: what
 * the answer waits for, such as a call of another server, would be done for no client. Else an
 * HTTP/1.1 peer gets an answer that is under way, because it may have closed only its own side.
 */
void http_need_peer(struct http_exchange *x, bool needed);

/*
 * on_deadline is called once at that time of http_exchange_now's clock or soon after, unless the
 * answer is complete by then. At most one.
 */
void http_set_deadline(struct http_exchange *x, int64_t at_ns,
                       void (*on_deadline)(struct http_exchange *x));

/* The answer is long and may be delayed: other answers of its connection are sent first and keep a
 * part of the window. Only before the answer begins. */
void http_make_bulk(struct http_exchange *x);

/* The time of the connection's latest turn, monotonic. */
int64_t http_exchange_now(const struct http_exchange *x);

#endif
