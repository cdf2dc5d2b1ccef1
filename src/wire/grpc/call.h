/*
 * One gRPC call on a server connection, as its service sees it.
 *
 * A call belongs to its connection and lives on that connection's thread. The service is a table
 * of methods; the connection finds the method by path and calls its functions. All four kinds of
 * call are alike: a unary method gets exactly one message and answers with one.
 *
 *     open ──► on_message… ──► (on_half_close) ──► finish / fail ──► on_end
 *       └────────────── the peer resets, the connection ends ──────────┘
 *
 * on_end is called exactly once for every call for which on_message or on_half_close was called. It
 * is the last function of the service that is called, and never from within the functions below. A
 * service with an operation in progress takes a hold (grpc_call_hold), so that the call's memory
 * outlives the operation. No output is sent after on_end.
 */
#ifndef VIGIL_WIRE_GRPC_CALL_H
#define VIGIL_WIRE_GRPC_CALL_H

#include "base/memory/arena.h"
#include "wire/grpc/method.h"
#include "wire/grpc/prefix.h"
#include "wire/peer/peer.h"

enum grpc_fill {
    GRPC_FILL_MORE,   /* wrote something and has more: is called again when there is room */
    GRPC_FILL_PARKED, /* nothing to send now: is called again after grpc_call_wake */
    GRPC_FILL_DONE,   /* that was the last byte: the call ends with status OK */
};

/*
 * Output that is pulled. fill writes at most room bytes of gRPC-framed messages (each with its
 * five-byte prefix, see grpc_prefix_write) to dst and returns their number. It may stop in the
 * middle of a message. Embedded in the service's own state, which lives at least until on_end.
 */
struct grpc_source {
    enum grpc_fill (*fill)(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len);
};

/* Memory that lives until the call is freed: after on_end and the last release. */
struct arena *grpc_call_arena(struct grpc_call *call);
/* The arena of a call that parks has room for this many bytes before it allocates a block of
 * several kilobytes. There may be a hundred thousand such calls. */
enum { GRPC_PARKED_BYTES = 64 };

/* The time of the connection's latest turn. */
int64_t grpc_call_now(const struct grpc_call *call);
/* When the client gives up, by the same clock; INT64_MAX: it has not said. The call is ended then.
 */
int64_t grpc_call_deadline(const struct grpc_call *call);

/* The common name of the client's verified certificate; NULL without one, and once the call has
 * ended. Lives as long as the connection. */
const char *grpc_call_peer_name(const struct grpc_call *call);

/* For the log: the client's address ("" if unknown), the method's path, the only request message,
 * and the only response message, or false unless exactly one is queued. */
enum { GRPC_ADDRESS_BYTES = WIRE_ADDRESS_BYTES };
void grpc_call_peer_address(const struct grpc_call *call, char text[GRPC_ADDRESS_BYTES]);
struct wire_peer grpc_call_peer(const struct grpc_call *call);
struct slice grpc_call_path(const struct grpc_call *call);
struct slice grpc_call_request(const struct grpc_call *call);
bool grpc_call_response(const struct grpc_call *call, struct slice *ret_message);

/* A pointer for the service's own use; NULL at first. */
void grpc_call_set_user(struct grpc_call *call, void *user);
void *grpc_call_user(const struct grpc_call *call);
/* The row of its method (struct grpc_method). */
const void *grpc_call_row(const struct grpc_call *call);

/* A pointer for the guard of the methods (grpc_services_guard), which identifies the caller. */
void grpc_call_set_caller(struct grpc_call *call, void *caller);
void *grpc_call_caller(const struct grpc_call *call);

/* The value of a request header (name in lower case), or false. Lives as long as the call. */
bool grpc_call_metadata(const struct grpc_call *call, struct slice name, struct slice *ret_value);

/* Keeps the call's memory after on_end, until grpc_call_release. */
void grpc_call_hold(struct grpc_call *call);
void grpc_call_release(struct grpc_call *call);

/* True once on_end was called; only for a call that is held. */
bool grpc_call_ended(const struct grpc_call *call);

/*
 * Reserves len contiguous bytes for one response message and writes its prefix before them. The
 * service encodes directly into the output, before it returns. NULL: the call is over or a limit is
 * reached. The bytes count against the connection's queued bytes.
 */
MUST_CHECK
uint8_t *grpc_call_message(struct grpc_call *call, size_t len);

/* The rest of the output comes from a source, after the messages already queued: at most one, and
 * no message after it. */
void grpc_call_set_source(struct grpc_call *call, struct grpc_source *source);

/* For the metrics: the number of messages that the source has written. */
void grpc_call_sent(struct grpc_call *call, uint64_t messages);

/* A parked source has something to send. Cheap to call often. */
void grpc_call_wake(struct grpc_call *call);

/*
 * While paused, the peer gets no more window on this call. What it was allowed to send before, at
 * most a stream's window, is still delivered. For a service that answers more slowly than requests
 * arrive.
 */
void grpc_call_pause(struct grpc_call *call, bool paused);

/* Ends the call once all queued output has been sent. */
void grpc_call_finish(struct grpc_call *call);
/* Ends the call with an error: the code and text of the status table, or the given text. */
void grpc_call_fail(struct grpc_call *call, enum status status);
void grpc_call_fail_text(struct grpc_call *call, enum grpc_code code, struct slice text);

#endif
