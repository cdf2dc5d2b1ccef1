#include "auth/token/jwt.h"

#include "auth/token/jws.h"
#include "base/xalloc.h"
#include "codec/json/writer.h"

#include <stdlib.h>

struct auth_jwt {
    struct signature_key *key;
    int64_t ttl_s;
    char method[8];
};

enum status auth_jwt_new(const struct auth_jwt_settings *settings, struct auth_jwt **ret_jwt,
                         struct error *error)
{
    struct signature_key *key;
    TRY(signature_key_new(settings->method, settings->public_key, settings->private_key, &key,
                          error));
    struct auth_jwt *jwt = xcalloc(1, sizeof(*jwt));
    assert(settings->ttl_s > 0);
    assert(settings->method.len < sizeof(jwt->method));
    jwt->key = key;
    jwt->ttl_s = settings->ttl_s;
    slice_copy(jwt->method, settings->method);
    *ret_jwt = jwt;
    return ST_OK;
}

void auth_jwt_free(struct auth_jwt *jwt)
{
    if (!jwt)
        return;
    signature_key_free(jwt->key);
    free(jwt);
}

/* -- Signing -- */

static MUST_CHECK
enum status append_head(const struct auth_jwt *jwt, struct buf *out)
{
    AUTO(buf_fini) struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_begin_object(&writer);
    json_member_text(&writer, "alg", jwt->method);
    json_member_text(&writer, "typ", "JWT");
    json_end_object(&writer);
    TRY(json_writer_finish(&writer));
    return buf_append(out, buf_slice(&json));
}

static MUST_CHECK
enum status append_claims(const struct auth_jwt *jwt, const struct auth_principal *principal,
                          int64_t now_s, struct buf *out)
{
    AUTO(buf_fini) struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_begin_object(&writer);
    /* The claims are in the order of their names, as Go encodes a map. */
    json_member_i64(&writer, "exp", now_s + jwt->ttl_s);
    json_member_u64(&writer, "revision", principal->revision);
    json_member_string(&writer, "username", principal->user);
    json_end_object(&writer);
    TRY(json_writer_finish(&writer));
    return buf_append(out, buf_slice(&json));
}

enum status auth_jwt_sign(const struct auth_jwt *jwt, const struct auth_principal *principal,
                          int64_t now_s, struct buf *out)
{
    AUTO(buf_fini) struct buf head = {0};
    AUTO(buf_fini) struct buf claims = {0};
    TRY(append_head(jwt, &head));
    TRY(append_claims(jwt, principal, now_s, &claims));
    return jws_sign(jwt->key, buf_slice(&head), buf_slice(&claims), out);
}

/* -- Checking -- */

/* The expiry time is optional. */
static bool is_its_time(struct json_node *claims, int64_t now_s)
{
    double ends, begins;
    const struct json_node *exp = json_node_named(claims, "exp");
    const struct json_node *nbf = json_node_named(claims, "nbf");
    if (exp && (!jws_number(exp, &ends) || (double)now_s >= ends))
        return false;
    return !nbf || (jws_number(nbf, &begins) && (double)now_s >= begins);
}

static MUST_CHECK
enum status read_principal(struct json_node *claims, struct arena *arena,
                           struct auth_principal *ret_principal)
{
    double revision;
    struct auth_principal principal;
    const struct json_node *user = json_node_named(claims, "username");
    const struct json_node *at = json_node_named(claims, "revision");
    if (!user || user->type != JSON_TYPE_STRING || !at || !jws_number(at, &revision))
        return ST_INVALID_AUTH_TOKEN;
    /* 0 would mean that no credentials were given. */
    if (revision < 1 || revision >= 0x1p63)
        return ST_INVALID_AUTH_TOKEN;
    TRY(json_node_text(user, arena, &principal.user));
    principal.revision = (uint64_t)revision;
    *ret_principal = principal;
    return ST_OK;
}

enum status auth_jwt_check(const struct auth_jwt *jwt, struct slice token, int64_t now_s,
                           struct arena *arena, struct auth_principal *ret_principal)
{
    struct jws jws;
    struct json_node *head, *claims;
    /* The length is limited before anything is decoded, because a client can send any token. */
    if (token.len > AUTH_JWT_BYTES_MAX || !jws_split(token, &jws))
        return ST_INVALID_AUTH_TOKEN;
    TRY(jws_verify(&jws, jwt->key, arena));
    TRY(jws_read(jws.head, arena, &head));
    /* The signature was verified with the configured method, whatever the head says. As in Go's
     * library, a head that names another one is refused as well. */
    if (!json_node_is_text(json_node_named(head, "alg"), jwt->method))
        return ST_INVALID_AUTH_TOKEN;
    TRY(jws_read(jws.claims, arena, &claims));
    if (!is_its_time(claims, now_s))
        return ST_INVALID_AUTH_TOKEN;
    return read_principal(claims, arena, ret_principal);
}
