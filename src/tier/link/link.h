/*
 * The kube-apiserver, as one I/O thread reaches it. There are three sets of connections:
 *
 *     reviews   with the tier's own credentials: reviews of tokens and rights (tier_call), which a
 *               client's long call must not delay
 *     own       with them, too: calls for which the tier impersonates a client with a certificate
 *     callers   without any certificate, for calls with the clients' own tokens: a kube-apiserver
 *               that saw the tier's certificate would take the caller for the tier
 *
 * One for each I/O thread, on that thread.
 */
#ifndef VIGIL_TIER_LINK_LINK_H
#define VIGIL_TIER_LINK_LINK_H

#include "base/error.h"
#include "client/http/http_pool.h"
#include "kubeclient/connect/credentials.h"

#include <vigil/kube/client.h>

struct tier_link;

struct tier_link_options {
    struct loop *loop;
    struct network *network; /* NULL: the system's */
    /* Where the server is, and the tier's account; used only by new. Callbacks in it are not. */
    const vigil_kube_options *client;
    /* Called with one line for people, and an enum vigil_log_level; may be NULL. The link must not
     * be freed from within. */
    void (*log)(void *ctx, int level, const char *text);
    void *log_ctx;
};

/* ST_INVALID and others; the error says what is wrong with the configuration. */
MUST_CHECK
enum status tier_link_new(const struct tier_link_options *options, struct tier_link **ret_link,
                          struct error *error);
/* Ends all requests of the pools. No tier_call is under way, and nothing waits for the
 * authorization. Accepts NULL. */
void tier_link_free(struct tier_link *link);
DEFINE_CLEANUP(struct tier_link *, tier_link_free)

struct http_pool *tier_link_own(struct tier_link *link);
struct http_pool *tier_link_callers(struct tier_link *link);
/* Path of the server's URL, without a slash at its end; often empty. */
struct slice tier_link_path_prefix(const struct tier_link *link);
/* The server's URL, for messages. */
const char *tier_link_server(const struct tier_link *link);
/* Passes a line to the log of the options. */
void tier_link_log(const struct tier_link *link, int level, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The value of the Authorization field of the tier's own account, as credentials_get; empty: it has
 * a certificate. */
MUST_CHECK
enum status tier_link_authorization(struct tier_link *link, struct credentials_waiter *waiter,
                                    struct slice *ret_authorization, struct error *error);
/* The kube-apiserver has answered 401 to a request of the tier's own account. */
void tier_link_refused(struct tier_link *link);

/*
 * One exchange in JSON with the tier's own account: a review, or the question whether the server is
 * ready.
 *
 *     idle ──start──► authorizing ──► sent ──► done ──► idle
 *                          ▲           │
 *                          └───────────┘  401: once, with other credentials
 */
struct tier_call {
    /* code: the HTTP status; 0: there was no answer, and reason says why. The body is borrowed, and
     * is at most TIER_CALL_BYTES_MAX long. May free the call or start it again, but not free the
     * link. */
    void (*done)(struct tier_call *call, unsigned code, struct slice body, const char *reason);
    bool unreached; /* in done: no connection to the server could be made */
    /* In done: the number of the connection over which the answer came; those of the link's calls
     * are counted from 1. 0: there was no answer. */
    uint32_t connection;
    struct tier_call_state *state; /* private; NULL: idle */
};
enum { TIER_CALL_BYTES_MAX = 256 * 1024 };
/* done is not called from within. The texts are copied; the path is without the prefix. ST_NOMEM.
 */
MUST_CHECK
enum status tier_call_start(struct tier_link *link, struct tier_call *call, const char *method,
                            const char *path, struct slice body, int64_t timeout_ns);
void tier_call_cancel(struct tier_call *call); /* no effect if it is idle */

#endif
