#include "kube/request/continue.h"

#include "codec/json/tree.h"
#include "codec/json/writer.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Base64, URL-safe and without padding. */
static struct slice encode(struct arena *arena, struct slice bytes)
{
    uint8_t *text = arena_alloc(arena, bytes.len / 3 * 4 + 4), *to = text;
    if (!text)
        return SLICE_EMPTY;
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = size_min(bytes.len - i, 3);
        uint32_t group = (uint32_t)bytes.ptr[i] << 16;
        group |= n > 1 ? (uint32_t)bytes.ptr[i + 1] << 8 : 0;
        group |= n > 2 ? bytes.ptr[i + 2] : 0;
        for (size_t digit = 0; digit <= n; digit++)
            *to++ = (uint8_t)digits[group >> (18 - 6 * digit) & 63];
    }
    return slice_of(text, (size_t)(to - text));
}

/* ST_MALFORMED: *ret_wrong is the byte that Go reports. ST_NOMEM. */
static enum status decode(struct arena *arena, struct slice text, struct slice *ret_bytes,
                          size_t *ret_wrong)
{
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 4), *to = bytes;
    uint32_t group = 0;
    unsigned bits = 0;
    *ret_wrong = 0;
    if (!bytes)
        return ST_NOMEM;
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = text.ptr[i] ? strchr(digits, text.ptr[i]) : NULL;
        *ret_wrong = i;
        if (!digit)
            return ST_MALFORMED;
        group = group << 6 | (uint32_t)(digit - digits);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *to++ = (uint8_t)(group >> bits);
        }
    }
    *ret_bytes = slice_of(bytes, (size_t)(to - bytes));
    return bits < 6 ? ST_OK : ST_MALFORMED;
}

enum status kube_continue_write(struct arena *arena, int64_t revision, struct slice suffix,
                                struct slice *ret_token)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_member_text(&w, "v", "meta.k8s.io/v1");
    json_member_i64(&w, "rv", revision);
    json_member_string(&w, "start", suffix);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    *ret_token = encode(arena, buf_slice(&text));
    return ret_token->len ? ST_OK : ST_NOMEM;
}

/* No part may be empty, "." or "..", so that the key stays within the list. */
static bool is_clean(struct slice suffix)
{
    const uint8_t *at = suffix.ptr, *end = suffix.ptr + suffix.len;
    while (at < end) {
        const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
        size_t len = slash ? (size_t)(slash - at) : (size_t)(end - at);
        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += len + 1;
    }
    return suffix.len && suffix.ptr[suffix.len - 1] != '/';
}

bool kube_continue_read(struct arena *arena, struct slice token, struct kube_continue *ret_continue,
                        struct kube_status *status)
{
    static const char wrong[] = "invalid continue token: continue key is not valid";
    size_t at;
    struct slice text;
    struct json_node *root;
    struct error error;
    if (token.len > KUBE_TOKEN_BYTES_MAX)
        return kube_fail(status, KUBE_BAD_REQUEST, "%s", wrong);
    enum status read = decode(arena, token, &text, &at);
    if (read == ST_MALFORMED)
        return kube_fail(status, KUBE_BAD_REQUEST, "%s: illegal base64 data at input byte %zu",
                         wrong, at);
    if (read == ST_OK)
        read = json_tree_read(arena, text, &root, &error);
    if (read == ST_NOMEM)
        return kube_fail_engine(status, read);
    if (read != ST_OK)
        return kube_fail(status, KUBE_BAD_REQUEST, "%s: %s", wrong, error.text);
    if (!json_node_text_is(root, "v", "meta.k8s.io/v1"))
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "%s: server does not recognize this encoded version ", wrong);
    if (!json_node_int(json_node_named(root, "rv"), &ret_continue->revision) ||
        ret_continue->revision == 0 || ret_continue->revision < KUBE_AT_NEWEST)
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "%s: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                         wrong);
    if (json_node_text(json_node_named(root, "start"), arena, &ret_continue->suffix) != ST_OK)
        return kube_fail_engine(status, ST_NOMEM);
    if (!ret_continue->suffix.len)
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "%s: encoded start key empty (version meta.k8s.io/v1)", wrong);
    if (!is_clean(ret_continue->suffix))
        return kube_fail(status, KUBE_BAD_REQUEST, "%s: %.*s", wrong,
                         SLICE_ARGS(ret_continue->suffix));
    return true;
}
