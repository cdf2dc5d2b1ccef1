/*
 * What a client shows to a server: a token, a user and password, or a certificate; and who it wants
 * to be treated as. They come from a kubeconfig, by the rules of client-go:
 *
 *     fixed        the Authorization field never changes
 *     token file   read again when 50 seconds have passed, at the next request; while it cannot be
 *                  read, the last token is used
 *     exec plugin  a program is run when credentials are needed, when they have expired, and after
 *                  the server has refused them; meanwhile requests wait. It is not used if the
 *                  kubeconfig has a token, a password or a certificate
 *
 *     unknown ──► running ──► known
 *      ▲ ▲  │        ▲  │          │
 *      │ │  └► pausing  │ failed   │ expired, refused
 *      │ └───────┴──────┘          │
 *      └───────────────────────────┘
 *
 * A plugin that is needed again soon after it has ended, because it failed or its credentials do
 * not last, is run after a pause that grows from 1 to 10 seconds. What has expired is used until
 * then; what the server has refused is not.
 *
 * Owned by a client; all functions on its loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_H
#define VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_H

#include "base/container/list.h"
#include "base/error.h"
#include "kubeclient/connect/kubeconfig.h"
#include "wire/http/field.h"

struct child_runner;
struct credentials;
struct loop;

struct credentials_hooks {
    /*
     * An exec plugin has printed another certificate than before, or none any more:
     * credentials_cert and credentials_key are new. With an error the credentials are not used, and
     * the requests that wait fail with its text. NULL: certificates are not used.
     */
    enum status (*on_certificate)(void *ctx, struct error *error);
    void *ctx;
};

/* Waits until an exec plugin has finished. Embedded by its owner; zeroed except for ready, it does
 * not wait. */
struct credentials_waiter {
    /* Called once. ST_OK: the authorization is borrowed until the next call. Otherwise the error
     * says what happened: ST_NOT_FOUND, ST_IO, ST_LIMIT, ST_TIMEOUT, ST_MALFORMED, ST_NOMEM. The
     * credentials must not be freed from within; everything else is allowed. */
    void (*ready)(struct credentials_waiter *waiter, enum status status, struct slice authorization,
                  const struct error *error);
    struct list in_credentials; /* links credentials.waiters; its links are NULL until first used */
};

/* The config is borrowed. ST_INVALID, ST_NOT_FOUND, ST_IO, ST_LIMIT, ST_NOMEM; the error says what
 * is wrong. */
MUST_CHECK
enum status credentials_new(struct loop *loop, const struct kubeconfig *config,
                            struct credentials_hooks hooks, struct credentials **ret_credentials,
                            struct error *error);
/* The same in a simulation, which has no processes: plugins are run by this runner. */
MUST_CHECK
enum status credentials_new_over(const struct child_runner *runner, struct loop *loop,
                                 const struct kubeconfig *config, struct credentials_hooks hooks,
                                 struct credentials **ret_credentials, struct error *error);
/* Ends a plugin that is running. Waiters are not called. */
void credentials_free(struct credentials *credentials);
DEFINE_CLEANUP(struct credentials *, credentials_free)

/*
 * The value of the Authorization field for a request that is sent now; empty: none is needed. It is
 * borrowed until the next call. ST_AGAIN: the waiter, which does not wait yet, is called once,
 * later, with the value or an error of the plugin. At present there are no other errors.
 */
MUST_CHECK
enum status credentials_get(struct credentials *credentials, struct credentials_waiter *waiter,
                            struct slice *ret_authorization, struct error *error);
/* No effect if it does not wait. */
void credentials_waiter_cancel(struct credentials_waiter *waiter);

/* The other fields that every request carries, in lower case: the user that it impersonates.
 * They never change. */
const struct http_field *credentials_fields(const struct credentials *credentials,
                                            size_t *ret_count);

/* The server answered 401 to a request that carried what credentials_get returned when the
 * generation was this. True: another request may have other credentials. */
bool credentials_refused(struct credentials *credentials, uint64_t generation);
/* Changes whenever the credentials change. */
uint64_t credentials_generation(const struct credentials *credentials);

/* The certificate of an exec plugin and its key, as PEM; empty: none. */
struct slice credentials_cert(const struct credentials *credentials);
struct slice credentials_key(const struct credentials *credentials);

/* Asserts every invariant; for tests. */
void credentials_check(const struct credentials *credentials);

#endif
