#include "server/auth.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/metric/turn.h"
#include "io/whole_file.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Appends the contents of the file; an empty name means that there is none. */
static enum status read_key(const char *what, struct slice name, struct buf *ret_bytes,
                            struct error *error)
{
    char path[PATH_MAX] = {0};
    struct error why;
    if (name.len == 0)
        return ST_OK;
    if (name.len >= sizeof(path))
        return error_set(error, ST_INVALID, "--auth-token: the name of the %s is too long", what);
    slice_copy(path, name);
    if (whole_file_read(path, WHOLE_FILE_REGULAR, AUTH_KEY_FILE_BYTES_MAX, ret_bytes, &why) ==
        ST_OK)
        return ST_OK;
    return error_set(error, ST_INVALID, "--auth-token: cannot read the %s: %s", what, why.text);
}

static enum status make_issuer(struct server_auth *auth, const struct server_auth_config *config,
                               struct error *error)
{
    const struct auth_token_settings *token = &config->token;
    struct auth_issuer_settings settings = {.simple_ttl_ns = config->simple_ttl_s * NS_PER_S};
    AUTO(buf_fini) struct buf public_key = {0};
    AUTO(buf_fini) struct buf private_key = {0};
    TRY(read_key("public key", token->public_key_file, &public_key, error));
    TRY(read_key("private key", token->private_key_file, &private_key, error));
    struct auth_jwt_settings jwt = {
        .method = token->sign_method,
        .public_key = buf_slice(&public_key),
        .private_key = buf_slice(&private_key),
        .ttl_s = token->ttl_s,
    };
    if (token->kind == AUTH_TOKEN_JWT)
        settings.jwt = &jwt;
    struct error why;
    enum status status = auth_issuer_new(&settings, &auth->issuer, &why);
    if (private_key.ptr)
        explicit_bzero(private_key.ptr, private_key.capacity);
    if (status != ST_OK)
        return error_set(error, status, "--auth-token: %.400s", why.text);
    return ST_OK;
}

static unsigned choose_cost(int64_t given)
{
    if (given >= AUTH_BCRYPT_COST_MIN && given <= AUTH_BCRYPT_COST_MAX)
        return (unsigned)given;
    log_warn("use default bcrypt cost instead of the invalid given cost",
             LOG_I64("min-cost", AUTH_BCRYPT_COST_MIN), LOG_I64("max-cost", AUTH_BCRYPT_COST_MAX),
             LOG_I64("default-cost", AUTH_BCRYPT_COST_DEFAULT), LOG_I64("given-cost", given));
    return AUTH_BCRYPT_COST_DEFAULT;
}

enum status server_auth_init(struct server_auth *auth, const struct server_auth_config *config,
                             struct turns *turns, struct error *error)
{
    struct turn *turn;
    *auth = (struct server_auth){0};
    TRY(make_issuer(auth, config, error));
    auth->bcrypt_cost = choose_cost(config->bcrypt_cost);
    auth->hasher = hasher_new();
    TRY(turns_join(turns, "hasher", &turn));
    worker_set_turn(auth->hasher, turn);
    enum status status = worker_start(auth->hasher);
    if (status != ST_OK)
        return error_set(error, status, "cannot start a thread for passwords: %s",
                         status_reason(status));
    return ST_OK;
}

void server_auth_fini(struct server_auth *auth)
{
    worker_free(auth->hasher);
    auth_issuer_free(auth->issuer);
    *auth = (struct server_auth){0};
}
