/*
 * Who calls: the user of the token in a call's metadata, or of the name in its connection's
 * certificate. And the guard before every method, which asks the table of auth/method.h.
 *
 *     message ──► guard: who is it? ──► may he call this at all? ──► the service
 *                                        └── the engine asks again, with what the request touches
 *
 * What tokens stand for is remembered for less than a second (auth/token/issuer.h), by each face
 * for itself. One to a face; its thread.
 */
#ifndef VIGIL_ETCD_AUTHENTICATION_H
#define VIGIL_ETCD_AUTHENTICATION_H

#include "auth/rights.h"
#include "wire/grpc/service.h"
#include "wire/http/field.h"

struct engine_shard;
struct etcd_callers;
struct etcd_config;

/* Guards all of services from now on: the last was added. config and shard are borrowed. */
struct etcd_callers *etcd_callers_new(const struct etcd_config *config, struct engine_shard *shard,
                                      struct grpc_services *services);
void etcd_callers_free(struct etcd_callers *callers); /* accepts NULL */

/*
 * As etcd looks for it: a token before a certificate. All zero when there is neither, or access is
 * not controlled. ST_INVALID_AUTH_TOKEN. The name is valid until this is called again.
 */
MUST_CHECK
enum status etcd_callers_find(struct etcd_callers *callers, const struct grpc_call *call,
                              struct auth_principal *ret_principal);

/* Whether the guard lets everybody call this method, now. */
bool etcd_callers_open_to_all(const struct etcd_callers *callers, const struct grpc_row *row);
/*
 * What the guard will say of a call of the gateway, known by its metadata before any of its
 * messages is read. ST_OK: it may go on, and the guard decides again when there is a message.
 */
MUST_CHECK
enum status etcd_callers_check(struct etcd_callers *callers, const struct grpc_row *row,
                               const struct http_field *fields, size_t count, int64_t now_ns);

/* Keeps it with the call, for as long as that lives. ST_NOMEM. */
MUST_CHECK
enum status etcd_call_set_principal(struct grpc_call *call, const struct auth_principal *principal);
/* On whose behalf a call's operations are: what the guard has found, or what was set. */
struct auth_principal etcd_call_principal(const struct grpc_call *call);
/* The same for an operation that comes long after the call's message: with the rights of now, as
 * far as what the caller showed still counts. */
struct auth_principal etcd_callers_again(struct etcd_callers *callers, struct grpc_call *call);

#endif
