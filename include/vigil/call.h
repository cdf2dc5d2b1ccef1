/*
 * A call: a request to the server and its answer. Functions such as vigil_range create it.
 *
 *     created ──start──► running ──► completed
 *        └───────────────cancel────────▲
 *
 * It completes exactly once: with a response, or with an error. There are two ways to wait:
 *
 *     vigil_call_run(call)                   blocks until it has completed
 *     vigil_call_start(call, done, user)     calls done
 *
 * The library repeats a request that only reads when the connection breaks or the server is
 * unavailable, until the timeout. It never repeats a request that may have changed something:
 * vigil_error.outcome then says whether it was sent. One that a learner refuses has changed nothing
 * and is sent to another endpoint, if there is one. A server that does not answer in time or has no
 * leader is left for another endpoint, so that the next call may succeed.
 *
 * Every function accepts NULL for the call, as if it had failed with VIGIL_ERROR_MEMORY: it is what
 * the functions that make calls return without memory, or if the client is NULL. So only the result
 * needs a check:
 *
 *     vigil_call *call = vigil_put(client, key, value, 0);
 *     if (vigil_call_run(call) != VIGIL_OK)
 *         fprintf(stderr, "%s\n", vigil_call_error(call)->text);
 *     vigil_call_free(call);
 *
 * Streamed calls. The answer of some calls comes in parts: vigil_range_stream, vigil_range_pages,
 * vigil_snapshot and vigil_observe. They are created with a function that is called for every part,
 * in order and before the completion, in the same place as other callbacks. A part is valid during
 * that callback only, so the memory that a call needs does not depend on the size of its answer.
 * The callback may cancel or free the call; no part follows then. When it returns VIGIL_PART_PAUSE,
 * neither a part nor the completion follows until vigil_call_resume, unless the call is cancelled.
 * While a call is paused, its server stops sending, and at most about 256 KiB that were on their
 * way are kept; other calls and watches of the client do not notice. A server may end a stream that
 * is paused for long, and the call then completes with VIGIL_ERROR_UNAVAILABLE once it is resumed:
 * Vigil does so after a minute (--response-stall-timeout), etcd does not.
 *
 * A streamed call is repeated like others until its first part has arrived, and never afterwards,
 * because parts would repeat: if the connection breaks, it completes with VIGIL_ERROR_UNAVAILABLE.
 * Pages and observed leaders are exceptions, as their comments say. With a queue (vigil/queue.h)
 * the completion is taken from the queue; the parts are still received by the function.
 *
 * Errors: every call can fail with these, whatever it does:
 *
 *     VIGIL_ERROR_MEMORY              out of memory
 *     VIGIL_ERROR_ARGUMENT            the call was started before, or cannot be sent
 *     VIGIL_ERROR_CANCELED            vigil_call_cancel, or the client was shut down
 *     VIGIL_ERROR_TIMEOUT             the server has not answered within the timeout
 *     VIGIL_ERROR_UNAVAILABLE         no server can be reached, or the connection broke
 *     VIGIL_ERROR_TOO_LARGE           the response exceeds vigil_options.receive_bytes_max
 *     VIGIL_ERROR_REQUEST_TOO_LARGE   the request exceeds the client's or the server's limit
 *     VIGIL_ERROR_TOO_MANY_REQUESTS   the server is overloaded
 *     VIGIL_ERROR_PROTOCOL            the server sent a response that is not valid
 *     VIGIL_ERROR_UNAUTHENTICATED     unknown user, wrong password or invalid token
 *     VIGIL_ERROR_PERMISSION_DENIED   the user has no permission for this
 *     VIGIL_ERROR_UNIMPLEMENTED       the server does not know this call
 *     VIGIL_ERROR_SERVER              every other error of the server: see its text
 */
#ifndef VIGIL_CALL_H
#define VIGIL_CALL_H

#include <vigil/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_call vigil_call;

/* Called once when the call has completed, also if it failed. It may free the call. */
typedef void (*vigil_done)(vigil_call *call, void *user);

/* Sets the timeout, before the call is started. It counts from the start, and in a streamed call
 * again from every part, but not while that is paused. 0: no timeout. The default is
 * vigil_options.call_timeout_ms, unless the function that creates the call says otherwise. */
VIGIL_API void vigil_call_set_timeout(vigil_call *call, int64_t timeout_ms);

/* Starts a call; done is called once, later. A call can be started once. If the result is not
 * VIGIL_OK, the call has not been started, and done is not called. done may be NULL; to
 * send a call and forget it, pass a function that frees it. vigil_client_free, too, calls done for
 * every call that has not completed, with VIGIL_ERROR_CANCELED. From then on calls cannot be
 * started, and the result is VIGIL_ERROR_CANCELED. */
VIGIL_API int vigil_call_start(vigil_call *call, vigil_done done, void *user);

/* Starts the call and waits until it has completed; returns the code of its error. In the program's
 * loop it does what vigil_client_process does, so it makes other callbacks meanwhile. Inside a
 * callback it returns VIGIL_ERROR_WOULD_BLOCK, and the call can still be started. */
VIGIL_API int vigil_call_run(vigil_call *call);

/* Completes a running call with VIGIL_ERROR_CANCELED, unless it has completed already. */
VIGIL_API void vigil_call_cancel(vigil_call *call);

/* What the function that receives the parts of a streamed call returns. */
enum vigil_part_answer {
    VIGIL_PART_CONTINUE = 0,
    VIGIL_PART_PAUSE = 1 /* nothing follows until vigil_call_resume */
};

/* Continues a streamed call that was paused. It may be called before the callback that pauses has
 * returned, for instance by another thread that has finished its work already. It has no effect on
 * a call that is not paused. */
VIGIL_API void vigil_call_resume(vigil_call *call);

/* Frees a call and its response. A running call is cancelled first, and done is not called any
 * more; if done is running on another thread just now, this waits for it. Accepts NULL. */
VIGIL_API void vigil_call_free(vigil_call *call);

/* Why a call has failed. The code is VIGIL_OK if it has succeeded, and before it has completed; it
 * is VIGIL_ERROR_WOULD_BLOCK after vigil_call_run has refused it. Never NULL. The error belongs to
 * the call. */
VIGIL_API const vigil_error *vigil_call_error(const vigil_call *call);
/* The header of the response; NULL if the call has not succeeded. For a streamed call it is that of
 * the last part that has one, and for vigil_range_pages that of the first page. */
VIGIL_API const vigil_header *vigil_call_header(const vigil_call *call);
/* The user pointer of vigil_call_start. */
VIGIL_API void *vigil_call_user(const vigil_call *call);

#ifdef __cplusplus
}
#endif

#endif
