/*
 * What authentication needs besides the engine, created from its flags: the issuer of tokens and
 * the thread that hashes passwords. Owned by the server; outlives its shards.
 */
#ifndef VIGIL_SERVER_AUTH_H
#define VIGIL_SERVER_AUTH_H

#include "auth/token/issuer.h"
#include "auth/token/settings.h"
#include "engine/hasher.h"

struct turns;

struct server_auth_config {
    struct auth_token_settings token; /* from --auth-token; the files are not read yet */
    int64_t simple_ttl_s;
    int64_t bcrypt_cost;          /* as given */
    bool names_from_certificates; /* --client-cert-auth: a certificate's common name is a user's */
};

enum { AUTH_KEY_FILE_BYTES_MAX = 1 << 20 };

struct server_auth {
    struct auth_issuer *issuer; /* owned */
    struct worker *hasher;      /* owned; started */
    unsigned bcrypt_cost;
};

/* turns measures the thread that hashes passwords. */
MUST_CHECK
enum status server_auth_init(struct server_auth *auth, const struct server_auth_config *config,
                             struct turns *turns, struct error *error);
/* After the last shard has ended. Accepts a zeroed struct. */
void server_auth_fini(struct server_auth *auth);

#endif
