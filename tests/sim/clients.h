/*
 * Clients of the client library: each is an actor that makes random requests, one at a time, and
 * records them (operations.h).
 */
#ifndef VIGIL_TESTS_SIM_CLIENTS_H
#define VIGIL_TESTS_SIM_CLIENTS_H

#include "plan.h"

#include <vigil/vigil.h>

enum { CLIENTS_TTL_MAX_S = 12 }; /* limit on the TTL of leases */

/* Inside an actor. */
vigil_client *client_connect(const char *user, const char *endpoints);

/* Sets up users and roles, and enables authentication. Inside an actor. */
void clients_enable_auth(void);

/* The clients of the plan begin. */
void clients_start(const struct plan *plan);
/* Inside an actor: waits until they have made all their requests. */
void clients_join(void);
/* Frees their clients, after the watches. Inside an actor. */
void clients_free(void);

/* Reads all keys until it succeeds; recorded as an operation. Returns the revision. */
int64_t client_read_all(vigil_client *client);

#endif
