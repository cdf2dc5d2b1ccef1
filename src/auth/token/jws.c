#include "auth/token/jws.h"

#include "codec/base64.h"

#include <math.h>
#include <stdlib.h>

enum status jws_append(struct buf *out, struct slice bytes)
{
    size_t len = base64_encoded_len(bytes.len);
    TRY(buf_reserve(out, len));
    uint8_t *text = out->ptr + out->len;
    base64_encode(bytes, text);
    /* JWS uses base64url without padding (RFC 7515, section 2). */
    for (; len && text[len - 1] == '='; len--)
        ;
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    out->len += len;
    return ST_OK;
}

enum status jws_sign(const struct signature_key *key, struct slice head, struct slice claims,
                     struct buf *out)
{
    AUTO(buf_fini) struct buf token = {0};
    uint8_t signature[SIGNATURE_BYTES_MAX];
    size_t signature_len;
    TRY(jws_append(&token, head));
    TRY(buf_append_text(&token, "."));
    TRY(jws_append(&token, claims));
    TRY(signature_make(key, buf_slice(&token), signature, &signature_len));
    TRY(buf_append_text(&token, "."));
    TRY(jws_append(&token, slice_of(signature, signature_len)));
    return buf_append(out, buf_slice(&token));
}

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
    /* The decoder would also accept padding and the other alphabet, with which one token had
     * several forms. */
    if (!is_base64_url(text) || !base64_decode(text, bytes, &len))
        return ST_INVALID_AUTH_TOKEN;
    *ret = slice_of(bytes, len);
    return ST_OK;
}

bool jws_split(struct slice token, struct jws *ret_jws)
{
    struct slice parts[3] = {0};
    size_t part = 0, from = 0;
    for (size_t i = 0; i <= token.len; i++) {
        if (i < token.len && token.ptr[i] != '.')
            continue;
        /* A fourth part: the token is encrypted (JWE), or not a token at all. */
        if (part == 3)
            return false;
        parts[part++] = slice_sub(token, from, i - from);
        from = i + 1;
    }
    *ret_jws = (struct jws){.head = parts[0], .claims = parts[1], .signature = parts[2]};
    if (part == 3)
        ret_jws->signed_part = slice_sub(token, 0, parts[0].len + 1 + parts[1].len);
    return part == 3;
}

enum status jws_verify(const struct jws *jws, const struct signature_key *key, struct arena *arena)
{
    struct slice signature;
    TRY(decode(jws->signature, arena, &signature));
    return signature_holds(key, jws->signed_part, signature) ? ST_OK : ST_INVALID_AUTH_TOKEN;
}

enum status jws_read(struct slice text, struct arena *arena, struct json_node **ret_object)
{
    struct slice json;
    struct error ignored;
    TRY(decode(text, arena, &json));
    enum status status = json_tree_read(arena, json, ret_object, &ignored);
    /* Anything else that is wrong is wrong with the token. */
    if (status == ST_NOMEM)
        return status;
    bool is_object = status == ST_OK && (*ret_object)->type == JSON_TYPE_OBJECT;
    return is_object ? ST_OK : ST_INVALID_AUTH_TOKEN;
}

bool jws_number(const struct json_node *node, double *ret_number)
{
    char digits[64];
    if (node->type != JSON_TYPE_NUMBER || node->text.len >= sizeof(digits))
        return false;
    memcpy(digits, node->text.ptr, node->text.len);
    digits[node->text.len] = 0;
    *ret_number = strtod(digits, NULL);
    return isfinite(*ret_number);
}
