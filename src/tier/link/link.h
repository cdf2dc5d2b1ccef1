/*
 * The kube-apiserver, as one I/O thread reaches it. There are two sets of connections:
 *
 *     own       with the tier's own credentials: reviews of tokens and rights, and calls in the
 * name of clients with certificates, whom the tier impersonates callers   without any certificate,
 * for calls with the clients' own tokens: a kube-apiserver that saw the tier's certificate would
 * take the caller for the tier
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
    const vigil_kube_options
        *client; /* where the server is, and the tier's account; used only by new */
    void (*log)(void *ctx, int level, const char *text); /* may be NULL */
    void *log_ctx;
};

/* ST_INVALID and others; the error says what is wrong with the configuration. */
MUST_CHECK
enum status tier_link_new(const struct tier_link_options *options, struct tier_link **ret_link,
                          struct error *error);
void tier_link_free(struct tier_link *link); /* ends all requests; accepts NULL */
DEFINE_CLEANUP(struct tier_link *, tier_link_free)

struct http_pool *tier_link_own(struct tier_link *link);
struct http_pool *tier_link_callers(struct tier_link *link);
/* Path of the server's URL, without a slash at its end; often empty. */
struct slice tier_link_path_prefix(const struct tier_link *link);
/* The server's URL, for messages. */
const char *tier_link_server(const struct tier_link *link);

/* The value of the Authorization field of the tier's own account, as credentials_get; empty: it has
 * a certificate. */
MUST_CHECK
enum status tier_link_authorization(struct tier_link *link, struct credentials_waiter *waiter,
                                    struct slice *ret_authorization, struct error *error);
/* The kube-apiserver has answered 401 to a request of the tier's own account. */
void tier_link_refused(struct tier_link *link);

/* One exchange in JSON with the tier's own account: a POST of a review. */
struct tier_call {
    /* code: the HTTP status; 0: there was no answer, and reason says why. The body is borrowed, and
     * is at most TIER_CALL_BYTES_MAX long. */
    void (*done)(struct tier_call *call, unsigned code, struct slice body, const char *reason);
    struct tier_call_state *state; /* private; NULL: idle */
};
enum { TIER_CALL_BYTES_MAX = 256 * 1024 };
/* done is not called from within. ST_NOMEM. */
MUST_CHECK
enum status tier_call_start(struct tier_link *link, struct tier_call *call, const char *method,
                            const char *path, struct slice body, int64_t timeout_ns);
void tier_call_cancel(struct tier_call *call);

#endif
