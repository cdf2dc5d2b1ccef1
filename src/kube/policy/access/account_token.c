#include "kube/policy/access/account_token.h"

#include "auth/token/jws.h"
#include "base/options/options.h"
#include "base/xalloc.h"
#include "codec/json/writer.h"
#include "io/whole_file.h"

#include <stdio.h>

struct kube_account_keys {
    struct arena arena; /* memory of issuers and audiences */
    struct kube_texts issuers, audiences;
    struct signature_key *verifiers[KUBE_ACCOUNT_KEYS_MAX]; /* owned */
    size_t verifier_count;
    struct signature_key *signer; /* owned; NULL: none */
    char signer_id[64];           /* base64url */
};

void kube_account_keys_free(struct kube_account_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->verifier_count; i++)
        signature_key_free(keys->verifiers[i]);
    signature_key_free(keys->signer);
    arena_fini(&keys->arena);
    free(keys);
}

/* -- Settings -- */

/* The next PEM block, from BEGIN to the next BEGIN; parameters of curves are skipped. */
static bool next_block(struct slice *rest, struct slice *ret_block)
{
    static const char begin[] = "-----BEGIN ", parameters[] = "-----BEGIN EC PARAMETERS";
    while (rest->len) {
        const uint8_t *at = memmem(rest->ptr, rest->len, begin, sizeof(begin) - 1);
        if (!at)
            return false;
        struct slice from =
            slice_sub(*rest, (size_t)(at - rest->ptr), rest->len - (size_t)(at - rest->ptr));
        const uint8_t *next = memmem(from.ptr + 1, from.len - 1, begin, sizeof(begin) - 1);
        size_t len = next ? (size_t)(next - from.ptr) : from.len;
        *ret_block = slice_sub(from, 0, len);
        *rest = slice_sub(from, len, from.len - len);
        if (!slice_has_prefix(*ret_block, slice_from_text(parameters)))
            return true;
    }
    return false;
}

static enum status add_verifier(struct kube_account_keys *keys, const char *path,
                                struct slice block, struct error *error)
{
    struct error why;
    if (keys->verifier_count == KUBE_ACCOUNT_KEYS_MAX)
        return error_set(error, ST_LIMIT, "%.300s: more than %d keys for service accounts", path,
                         KUBE_ACCOUNT_KEYS_MAX);
    if (signature_key_detect(block, SLICE_EMPTY, &keys->verifiers[keys->verifier_count], &why) !=
        ST_OK)
        return error_set(error, ST_INVALID, "%.300s: %.400s", path, why.text);
    keys->verifier_count++;
    return ST_OK;
}

static enum status add_file(struct kube_account_keys *keys, const char *path, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(whole_file_read(path, WHOLE_FILE_ANY, KUBE_ACCOUNT_KEY_FILE_BYTES_MAX, &text, error));
    struct slice rest = buf_slice(&text), block;
    size_t before = keys->verifier_count;
    while (next_block(&rest, &block))
        TRY(add_verifier(keys, path, block, error));
    /* The file can be read, but has only certificates or parameters. */
    if (keys->verifier_count == before)
        return error_set(error, ST_INVALID, "%.300s: there is no key in it (PEM)", path);
    return ST_OK;
}

static enum status set_signer(struct kube_account_keys *keys, const char *path, struct error *error)
{
    AUTO(buf_fini) struct buf text = {0}, id = {0};
    struct error why;
    uint8_t digest[SIGNATURE_KEY_ID_BYTES];
    TRY(whole_file_read(path, WHOLE_FILE_ANY, KUBE_ACCOUNT_KEY_FILE_BYTES_MAX, &text, error));
    struct slice rest = buf_slice(&text), block;
    if (!next_block(&rest, &block) ||
        signature_key_detect(SLICE_EMPTY, block, &keys->signer, &why) != ST_OK)
        return error_set(error, ST_INVALID, "%.300s: there is no private key for tokens in it",
                         path);
    TRY(signature_key_id(keys->signer, digest));
    TRY(jws_append(&id, slice_of(digest, sizeof(digest))));
    assert(id.len < sizeof(keys->signer_id));
    memcpy(keys->signer_id, id.ptr, id.len);
    return keys->verifier_count ? ST_OK : add_file(keys, path, error);
}

static struct kube_texts split(struct kube_account_keys *keys, const char *text)
{
    struct kube_text_list list = {.arena = &keys->arena};
    struct slice rest = slice_from_text(text), copy;
    while (rest.len && list.count < KUBE_ACCOUNT_AUDIENCES_MAX) {
        struct slice item = slice_trim(slice_cut(&rest, ','));
        if (item.len && arena_dup(&keys->arena, item, &copy) == ST_OK)
            kube_text_add(&list, copy);
    }
    return kube_text_taken(&list);
}

static enum status add_files(struct kube_account_keys *keys, const char *files, struct error *error)
{
    struct slice rest = slice_from_text(files);
    while (rest.len) {
        char path[4096];
        struct slice item = slice_trim(slice_cut(&rest, ','));
        if (!item.len)
            continue;
        if (item.len >= sizeof(path))
            return error_set(error, ST_INVALID, "a path of a key for service accounts is too long");
        slice_copy(path, item);
        path[item.len] = 0;
        TRY(add_file(keys, path, error));
    }
    return ST_OK;
}

enum status kube_account_keys_read(const struct kube_account_settings *settings,
                                   struct kube_account_keys **ret_keys, struct error *error)
{
    *ret_keys = NULL;
    if (!*settings->key_files && !*settings->signing_key_file)
        return ST_OK;
    AUTO(kube_account_keys_freep) struct kube_account_keys *keys = xcalloc(1, sizeof(*keys));
    arena_init(&keys->arena, NULL, 0, 1 << 20);
    keys->issuers = split(keys, settings->issuers);
    keys->audiences = *settings->audiences ? split(keys, settings->audiences) : keys->issuers;
    if (!keys->issuers.count)
        return error_set(error, ST_INVALID,
                         "tokens of service accounts need --kube-service-account-issuer");
    TRY(add_files(keys, settings->key_files, error));
    if (*settings->signing_key_file)
        TRY(set_signer(keys, settings->signing_key_file, error));
    *ret_keys = TAKE(keys);
    return ST_OK;
}

struct kube_texts kube_account_audiences(const struct kube_account_keys *keys)
{
    return keys->audiences;
}

bool kube_account_can_sign(const struct kube_account_keys *keys)
{
    return keys && keys->signer;
}

/* -- Verifying -- */

/* The key whose signature it is. */
static enum status find_key(const struct kube_account_keys *keys, const struct jws *jws,
                            struct arena *arena, const struct signature_key **ret_key)
{
    for (size_t i = 0; i < keys->verifier_count; i++) {
        enum status status = jws_verify(jws, keys->verifiers[i], arena);
        if (status == ST_OK)
            *ret_key = keys->verifiers[i];
        /* Another status than that of a wrong signature ends the search: the key was found, or
         * there is no memory. */
        if (status != ST_INVALID_AUTH_TOKEN)
            return status;
    }
    return ST_INVALID_AUTH_TOKEN;
}

/* False: it is there and not a number. */
static bool time_of(const struct json_node *claims, const char *name, bool *ret_given,
                    double *ret_time)
{
    const struct json_node *node = json_node_named(claims, name);
    *ret_given = node;
    return !node || jws_number(node, ret_time);
}

/* Returns the text of Kubernetes, or NULL if the time is right. A token without an expiry time is
 * not one of a service account. */
static const char *check_time(const struct json_node *claims, int64_t now_s)
{
    double expires = 0, begins = 0, issued = 0, now = (double)now_s;
    bool has_expiry, has_begin, has_issued;
    if (!time_of(claims, "exp", &has_expiry, &expires) ||
        !time_of(claims, "nbf", &has_begin, &begins) ||
        !time_of(claims, "iat", &has_issued, &issued) || !has_expiry)
        return "service account token claims could not be validated due to unexpected validation "
               "error";
    if (has_begin && now + KUBE_ACCOUNT_LEEWAY_S < begins)
        return "service account token is not valid yet";
    if (now - KUBE_ACCOUNT_LEEWAY_S > expires)
        return "service account token has expired";
    if (has_issued && now + KUBE_ACCOUNT_LEEWAY_S < issued)
        return "service account token is issued in the future";
    return NULL;
}

static bool share_one(const struct kube_texts *a, const struct kube_texts *b)
{
    for (size_t i = 0; i < a->count; i++)
        if (kube_texts_have(b, a->items[i]))
            return true;
    return false;
}

static struct slice text_of(struct arena *arena, const struct json_node *from, const char *name)
{
    struct slice text = SLICE_EMPTY;
    const struct json_node *node = json_node_named(from, name);
    if (!node || node->type != JSON_TYPE_STRING || json_node_text(node, arena, &text) != ST_OK)
        return SLICE_EMPTY;
    return text;
}

static struct kube_account_ref ref_of(struct arena *arena, const struct json_node *from,
                                      const char *name)
{
    const struct json_node *ref = json_node_named(from, name);
    return (struct kube_account_ref){text_of(arena, ref, "name"), text_of(arena, ref, "uid")};
}

/* An audience may be one text instead of a list. */
static bool read_audiences(struct arena *arena, const struct json_node *claims,
                           struct kube_texts *ret_audiences)
{
    const struct json_node *aud = json_node_named(claims, "aud");
    if (!aud || aud->type != JSON_TYPE_STRING)
        return kube_texts_read(arena, aud, KUBE_ACCOUNT_AUDIENCES_MAX, ret_audiences);
    struct kube_text_list list = {.arena = arena};
    kube_text_add(&list, text_of(arena, claims, "aud"));
    *ret_audiences = kube_text_taken(&list);
    return true;
}

static const char *read_claims(const struct kube_account_keys *keys, const struct json_node *claims,
                               const struct kube_texts *wanted, struct arena *arena,
                               struct kube_account_claims *to)
{
    const struct json_node *private = json_node_named(claims, "kubernetes.io");
    struct slice issuer = text_of(arena, claims, "iss");
    double expires;
    if (!kube_texts_have(&keys->issuers, issuer))
        return "the issuer of the token is not known";
    if (!read_audiences(arena, claims, &to->audiences) || !share_one(wanted, &to->audiences))
        return "token audiences is invalid for the target audiences";
    to->namespace = text_of(arena, private, "namespace");
    to->account = ref_of(arena, private, "serviceaccount");
    to->pod = ref_of(arena, private, "pod");
    to->secret = ref_of(arena, private, "secret");
    to->node = ref_of(arena, private, "node");
    to->id = text_of(arena, claims, "jti");
    if (jws_number(json_node_named(claims, "exp"), &expires) && expires < 0x1p62)
        to->expires_s = (int64_t)expires;
    struct slice namespace, name;
    struct slice subject = text_of(arena, claims, "sub");
    if (!kube_user_split_account(subject, &namespace, &name) ||
        !slice_equal(namespace, to->namespace) || !slice_equal(name, to->account.name) ||
        !to->account.uid.len)
        return "the token is not one of a service account";
    return NULL;
}

enum status kube_account_verify(const struct kube_account_keys *keys, struct slice token,
                                const struct kube_texts *wanted, int64_t now_s, struct arena *arena,
                                struct kube_account_claims *ret_claims, const char **ret_why)
{
    struct jws jws;
    struct json_node *head, *claims;
    const struct signature_key *key = NULL;
    *ret_why = "invalid bearer token";
    if (token.len > KUBE_ACCOUNT_TOKEN_BYTES_MAX || !jws_split(token, &jws))
        return ST_INVALID_AUTH_TOKEN;
    TRY(find_key(keys, &jws, arena, &key));
    TRY(jws_read(jws.head, arena, &head));
    TRY(jws_read(jws.claims, arena, &claims));
    if (!json_node_text_is(head, "alg", signature_key_method(key)))
        return ST_INVALID_AUTH_TOKEN;
    *ret_why = check_time(claims, now_s);
    *ret_claims = (struct kube_account_claims){0};
    if (!*ret_why)
        *ret_why = read_claims(keys, claims, wanted ? wanted : &keys->audiences, arena, ret_claims);
    if (arena_ran_out(arena))
        return ST_NOMEM;
    return *ret_why ? ST_INVALID_AUTH_TOKEN : ST_OK;
}

/* -- Signing -- */

static void write_ref(struct json_writer *w, const char *name, const struct kube_account_ref *ref)
{
    if (!ref->name.len)
        return;
    json_member_object(w, name);
    json_member_string(w, "name", ref->name);
    if (ref->uid.len) {
        json_member_string(w, "uid", ref->uid);
    }
    json_end_object(w);
}

static enum status write_claims(const struct kube_account_keys *keys,
                                const struct kube_account_claims *c, struct buf *out)
{
    struct json_writer w;
    AUTO(buf_fini) struct buf subject = {0};
    TRY(buf_append_format(&subject, "system:serviceaccount:%.*s:%.*s", SLICE_ARGS(c->namespace),
                          SLICE_ARGS(c->account.name)));
    json_writer_init(&w, out);
    json_begin_object(&w);
    json_member_array(&w, "aud");
    for (size_t i = 0; i < c->audiences.count; i++)
        json_string(&w, c->audiences.items[i]);
    json_end_array(&w);
    json_member_i64(&w, "exp", c->expires_s);
    json_member_i64(&w, "iat", c->issued_s);
    json_member_string(&w, "iss", keys->issuers.items[0]);
    json_member_string(&w, "jti", c->id);
    json_member_object(&w, "kubernetes.io");
    json_member_string(&w, "namespace", c->namespace);
    write_ref(&w, "node", &c->node);
    write_ref(&w, "pod", &c->pod);
    write_ref(&w, "secret", &c->secret);
    write_ref(&w, "serviceaccount", &c->account);
    json_end_object(&w);
    json_member_i64(&w, "nbf", c->issued_s);
    json_member_string(&w, "sub", buf_slice(&subject));
    json_end_object(&w);
    return json_writer_finish(&w);
}

enum status kube_account_sign(const struct kube_account_keys *keys,
                              const struct kube_account_claims *claims, struct buf *out)
{
    AUTO(buf_fini) struct buf head = {0}, text = {0};
    if (!keys->signer)
        return ST_UNIMPLEMENTED;
    TRY(buf_append_format(&head, "{\"alg\":\"%s\",\"kid\":\"%s\"}",
                          signature_key_method(keys->signer), keys->signer_id));
    TRY(write_claims(keys, claims, &text));
    return jws_sign(keys->signer, buf_slice(&head), buf_slice(&text), out);
}

/* -- The user -- */

static void add_extra(struct arena *arena, struct kube_user_info *user,
                      struct kube_user_extra *extra, const char *key, struct slice value)
{
    struct slice *item = arena_alloc(arena, sizeof(*item));
    if (!value.len || !item)
        return;
    *item = value;
    extra[user->extra_count++] = (struct kube_user_extra){slice_from_text(key), {item, 1}};
}

void kube_account_user(struct arena *arena, const struct kube_account_claims *claims,
                       struct kube_user_info *ret_user)
{
    enum { EXTRAS = 5 };
    AUTO(buf_fini) struct buf id = {0};
    struct slice credential = SLICE_EMPTY;
    struct kube_user_extra *extra = arena_calloc(arena, EXTRAS, sizeof(*extra));
    kube_user_account(arena, claims->namespace, claims->account.name, ret_user);
    ret_user->uid = claims->account.uid;
    if (!extra)
        return;
    if (claims->id.len && buf_append_format(&id, "JTI=%.*s", SLICE_ARGS(claims->id)) == ST_OK)
        (void)!arena_dup(arena, buf_slice(&id), &credential);
    ret_user->extra = extra;
    add_extra(arena, ret_user, extra, "authentication.kubernetes.io/credential-id", credential);
    add_extra(arena, ret_user, extra, "authentication.kubernetes.io/node-name", claims->node.name);
    add_extra(arena, ret_user, extra, "authentication.kubernetes.io/node-uid", claims->node.uid);
    add_extra(arena, ret_user, extra, "authentication.kubernetes.io/pod-name", claims->pod.name);
    add_extra(arena, ret_user, extra, "authentication.kubernetes.io/pod-uid", claims->pod.uid);
}
