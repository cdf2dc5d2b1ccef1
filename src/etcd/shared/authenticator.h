/*
 * Finds the user of a call, from the token in its metadata or the name in the certificate of its
 * connection, and guards every method with the permissions in the table of auth/method.h.
 *
 *     message ──► guard: find the user ──► may the user call this method? ──► the service
 *                                          the engine checks the keys of the request later
 *
 * The user of a token is cached for less than a second (auth/token/issuer.h). With an engine in
 * front of a cluster there are no users here: the token itself is passed on, and the cluster
 * decides. There is one authenticator per API, used on its thread.
 */
#ifndef VIGIL_ETCD_SHARED_AUTHENTICATOR_H
#define VIGIL_ETCD_SHARED_AUTHENTICATOR_H

#include "auth/rights.h"
#include "wire/grpc/call.h"
#include "wire/grpc/service.h"
#include "wire/http/field.h"

struct engine;
struct engine_shard;
struct authenticator;
struct etcd_config;

/* Guards all methods of services, to which no more are added. config and shard are borrowed. */
struct authenticator *authenticator_new(const struct etcd_config *config, struct engine *engine,
                                        struct engine_shard *shard, struct grpc_services *services);
void authenticator_free(struct authenticator *authenticator); /* accepts NULL */

/*
 * Finds the user of a call as etcd does: a token comes before a certificate. The principal is all
 * zero when the call has neither, or when authentication is disabled. ST_INVALID_AUTH_TOKEN. The
 * user's name is valid until the next call of this function, a token as long as the call.
 */
MUST_CHECK
enum status authenticator_find(struct authenticator *authenticator, const struct grpc_call *call,
                               struct auth_principal *ret_principal);

/* Whether every client may call this method now. */
bool authenticator_open_to_all(const struct authenticator *authenticator,
                               const struct grpc_row *row);
/*
 * Decides about a call of the gateway from its metadata, before any of its messages is read. ST_OK:
 * the call may continue, and the guard decides again when there is a message.
 */
MUST_CHECK
enum status authenticator_check(struct authenticator *authenticator, const struct grpc_row *row,
                                const struct http_field *fields, size_t count, int64_t now_ns);

/* In front of a cluster: the token to be passed on, or none. Lives as long as the call. */
struct slice etcd_call_token(const struct grpc_call *call);
/* The principal of a call's operations, which the guard has found. */
struct auth_principal etcd_call_principal(const struct grpc_call *call);
/* The same for an operation long after the call's message: with the current auth revision, if the
 * call's token or certificate is still valid. */
struct auth_principal authenticator_refresh(struct authenticator *authenticator,
                                            struct grpc_call *call);

#endif
