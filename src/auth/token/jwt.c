#include "auth/token/jwt.h"

#include "auth/token/signature.h"
#include "base/xalloc.h"
#include "codec/base64.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"

#include <math.h>
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

static void buf_finip(struct buf *buf)
{
    buf_fini(buf);
}

/* base64url without padding. */
static MUST_CHECK
enum status append_base64(struct buf *out, struct slice bytes)
{
    size_t len = base64_encoded_len(bytes.len);
    TRY(buf_reserve(out, len));
    uint8_t *text = out->ptr + out->len;
    base64_encode(bytes, text);
    for (; len && text[len - 1] == '='; len--)
        ;
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    out->len += len;
    return ST_OK;
}

static MUST_CHECK
enum status append_head(const struct auth_jwt *jwt, struct buf *out)
{
    AUTO(buf_finip) struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_begin_object(&writer);
    json_key(&writer, "alg");
    json_text(&writer, jwt->method);
    json_key(&writer, "typ");
    json_text(&writer, "JWT");
    json_end_object(&writer);
    TRY(json_writer_finish(&writer));
    return append_base64(out, buf_slice(&json));
}

static MUST_CHECK
enum status append_claims(const struct auth_jwt *jwt, const struct auth_principal *principal,
                          int64_t now_s, struct buf *out)
{
    AUTO(buf_finip) struct buf json = {0};
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_begin_object(&writer);
    json_key(&writer, "exp");
    json_i64(&writer, now_s + jwt->ttl_s);
    json_key(&writer, "revision");
    json_u64(&writer, principal->revision);
    json_key(&writer, "username");
    json_string(&writer, principal->user);
    json_end_object(&writer);
    TRY(json_writer_finish(&writer));
    return append_base64(out, buf_slice(&json));
}

enum status auth_jwt_sign(const struct auth_jwt *jwt, const struct auth_principal *principal,
                          int64_t now_s, struct buf *out)
{
    AUTO(buf_finip) struct buf token = {0};
    uint8_t signature[SIGNATURE_BYTES_MAX];
    size_t signature_len;
    TRY(append_head(jwt, &token));
    TRY(buf_append_text(&token, "."));
    TRY(append_claims(jwt, principal, now_s, &token));
    TRY(signature_make(jwt->key, buf_slice(&token), signature, &signature_len));
    TRY(buf_append_text(&token, "."));
    TRY(append_base64(&token, slice_of(signature, signature_len)));
    return buf_append(out, buf_slice(&token));
}

/* -- Checking -- */

static bool is_base64_url(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '_')
            return false;
    }
    return true;
}

static MUST_CHECK
enum status decode(struct slice text, struct arena *arena, struct slice *ret)
{
    size_t len;
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 3);
    if (!bytes)
        return ST_NOMEM;
    if (!is_base64_url(text) || !base64_decode(text, bytes, &len))
        return ST_INVALID_AUTH_TOKEN;
    *ret = slice_of(bytes, len);
    return ST_OK;
}

/* Three parts, separated by dots. */
static bool split(struct slice token, struct slice parts[3])
{
    size_t part = 0, from = 0;
    for (size_t i = 0; i <= token.len; i++) {
        if (i < token.len && token.ptr[i] != '.')
            continue;
        if (part == 3)
            return false;
        parts[part++] = slice_sub(token, from, i - from);
        from = i + 1;
    }
    return part == 3;
}

static MUST_CHECK
enum status read_object(struct slice text, struct arena *arena, struct json_node **ret_object)
{
    struct slice json;
    struct error ignored;
    TRY(decode(text, arena, &json));
    enum status status = json_tree_read(arena, json, ret_object, &ignored);
    if (status == ST_NOMEM)
        return status;
    bool is_object = status == ST_OK && (*ret_object)->type == JSON_TYPE_OBJECT;
    return is_object ? ST_OK : ST_INVALID_AUTH_TOKEN;
}

/* False: it is not a number. */
static bool number_of(const struct json_node *node, double *ret_number)
{
    char digits[64];
    if (node->type != JSON_TYPE_NUMBER || node->text.len >= sizeof(digits))
        return false;
    memcpy(digits, node->text.ptr, node->text.len);
    digits[node->text.len] = 0;
    *ret_number = strtod(digits, NULL);
    return isfinite(*ret_number);
}

/* The expiry time is optional. */
static bool is_its_time(struct json_node *claims, int64_t now_s)
{
    double ends, begins;
    const struct json_node *exp = json_node_named(claims, "exp");
    const struct json_node *nbf = json_node_named(claims, "nbf");
    if (exp && (!number_of(exp, &ends) || (double)now_s >= ends))
        return false;
    return !nbf || (number_of(nbf, &begins) && (double)now_s >= begins);
}

static MUST_CHECK
enum status read_principal(struct json_node *claims, struct arena *arena,
                           struct auth_principal *ret_principal)
{
    double revision;
    struct auth_principal principal;
    const struct json_node *user = json_node_named(claims, "username");
    const struct json_node *at = json_node_named(claims, "revision");
    if (!user || user->type != JSON_TYPE_STRING || !at || !number_of(at, &revision))
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
    struct slice parts[3], signature;
    struct json_node *head, *claims;
    if (token.len > AUTH_JWT_BYTES_MAX || !split(token, parts))
        return ST_INVALID_AUTH_TOKEN;
    TRY(decode(parts[2], arena, &signature));
    struct slice signed_part = slice_sub(token, 0, parts[0].len + 1 + parts[1].len);
    if (!signature_holds(jwt->key, signed_part, signature))
        return ST_INVALID_AUTH_TOKEN;
    TRY(read_object(parts[0], arena, &head));
    if (!json_node_is_text(json_node_named(head, "alg"), jwt->method))
        return ST_INVALID_AUTH_TOKEN;
    TRY(read_object(parts[1], arena, &claims));
    if (!is_its_time(claims, now_s))
        return ST_INVALID_AUTH_TOKEN;
    return read_principal(claims, arena, ret_principal);
}
