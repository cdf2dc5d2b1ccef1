#include "kube/policy/access/sign_in.h"

#include "base/clock.h"
#include "codec/kube_time.h"
#include "kube/types/object/object.h"
#include "kube/types/storage.h"
#include "wire/http/certificate.h"
#include "wire/http/exchange.h"

/* -- Users -- */

void kube_user_add_group(struct arena *arena, struct kube_user_info *user, struct slice group)
{
    struct kube_text_list list = {.arena = arena};
    if (kube_texts_have(&user->groups, group))
        return;
    for (size_t i = 0; i < user->groups.count; i++)
        kube_text_add(&list, user->groups.items[i]);
    kube_text_add(&list, group);
    user->groups = kube_text_taken(&list);
}

static struct kube_texts split(struct arena *arena, struct slice text, char between)
{
    struct kube_text_list list = {.arena = arena};
    while (text.len)
        kube_text_add(&list, slice_cut(&text, between));
    return kube_text_taken(&list);
}

static void set_credential(struct arena *arena, struct kube_user_info *user, struct slice id)
{
    struct kube_user_extra *extra = arena_calloc(arena, 1, sizeof(*extra));
    struct slice *value = arena_alloc(arena, sizeof(*value));
    if (!extra || !value)
        return;
    *value = id;
    *extra = (struct kube_user_extra){KUBE_EXTRA_CREDENTIAL, {value, 1}};
    user->extra = extra;
    user->extra_count = 1;
}

bool kube_user_of_certificate(struct arena *arena, const struct http_request *request,
                              struct kube_user_info *ret_user)
{
    const struct http_certificate *certificate = request->certificate;
    if (!request->peer_name || (certificate && certificate->has_bad_uid))
        return false;
    *ret_user = (struct kube_user_info){.name = slice_from_text(request->peer_name)};
    if (certificate) {
        ret_user->groups =
            split(arena, slice_of(certificate->groups, certificate->groups_bytes), '\0');
        ret_user->uid =
            slice_of(certificate->groups + certificate->groups_bytes, certificate->uid_bytes);
        set_credential(arena, ret_user, slice_from_text(certificate->id));
    }
    kube_user_add_group(arena, ret_user, KUBE_GROUP_AUTHENTICATED);
    return true;
}

void kube_user_of_file(struct arena *arena, const struct kube_user *from,
                       struct kube_user_info *ret_user)
{
    *ret_user = (struct kube_user_info){
        .name = from->name, .uid = from->uid, .groups = split(arena, from->groups, ',')};
    kube_user_add_group(arena, ret_user, KUBE_GROUP_AUTHENTICATED);
}

/* -- Objects that a token is bound to -- */

static void finish(struct kube_sign_in *s, enum status status, const char *why)
{
    s->status = arena_ran_out(s->arena) ? ST_NOMEM : status;
    s->why = why;
    s->done(s);
}

static void check_next(struct kube_sign_in *s);

/* It ends with its deletion, not only when it is gone. */
static bool is_deleted(const struct kube_object *object, int64_t now_s)
{
    struct slice text;
    int64_t at_s;
    int32_t ignored;
    if (!kube_object_field(object, SLICE_LITERAL("metadata.deletionTimestamp"), &text) || !text.len)
        return false;
    return !kube_time_read(text, &at_s, &ignored) || at_s < now_s - KUBE_ACCOUNT_LEEWAY_S;
}

static const char *look_at(struct kube_sign_in *s)
{
    const struct kube_sign_in_check *check = &s->checks[s->checked];
    struct kube_object object;
    struct slice field;
    if (!engine_range_next(&s->range, &field) ||
        kube_object_parse(kube_kv_of(field).value, &object) != ST_OK)
        return s->checked ? "service account token has been invalidated"
                          : "the service account of the token does not exist";
    if (!slice_equal(object.uid, check->ref->uid))
        return "the uid of an object that the token names is another one";
    if (is_deleted(&object, clock_real_ns(s->clock) / NS_PER_S))
        return "service account token has been invalidated";
    return NULL;
}

static void on_object(struct engine_op *op)
{
    struct kube_sign_in *s = CONTAINER_OF(op, struct kube_sign_in, range.op);
    enum status status = op->status;
    const char *why = status == ST_OK ? look_at(s) : NULL;
    engine_range_close(&s->range);
    --*s->under_way;
    s->checked++;
    if (status != ST_OK)
        finish(s, status, NULL);
    else if (why)
        finish(s, ST_INVALID_AUTH_TOKEN, why);
    else
        check_next(s);
}

static void check_next(struct kube_sign_in *s)
{
    if (s->checked == s->check_count) {
        finish(s, ST_OK, NULL);
        return;
    }
    const struct kube_sign_in_check *check = &s->checks[s->checked];
    s->request = (struct pb_range_request){0};
    if (kube_key_make(s->arena, check->prefix, check->namespace, check->ref->name,
                      &s->request.key) != ST_OK) {
        finish(s, ST_NOMEM, NULL);
        return;
    }
    s->range = (struct engine_range){
        .op = {.done = on_object, .arena = s->arena, .principal = ENGINE_SERVER}};
    ++*s->under_way;
    engine_range_start(s->shard, &s->range, &s->request);
}

static void add_check(struct kube_sign_in *s, const char *prefix, struct slice namespace,
                      const struct kube_account_ref *ref)
{
    if (ref->name.len)
        s->checks[s->check_count++] = (struct kube_sign_in_check){prefix, namespace, ref};
}

static void check_bound(struct kube_sign_in *s)
{
    const struct kube_account_claims *c = &s->claims;
    s->check_count = s->checked = 0;
    add_check(s, "/registry/serviceaccounts/", c->namespace, &c->account);
    add_check(s, "/registry/secrets/", c->namespace, &c->secret);
    add_check(s, "/registry/pods/", c->namespace, &c->pod);
    if (!c->pod.name.len)
        add_check(s, "/registry/minions/", SLICE_EMPTY, &c->node);
    check_next(s);
}

/* -- Credentials -- */

/* The token file is searched as it is for a whole field. */
static const struct kube_user *find_in_file(const struct kube_sign_in *s, struct slice token)
{
    AUTO(buf_fini) struct buf field = {0};
    if (!s->tokens || buf_append_format(&field, "Bearer %.*s", SLICE_ARGS(token)) != ST_OK)
        return NULL;
    return kube_tokens_find(s->tokens, buf_slice(&field));
}

void kube_sign_in_token(struct kube_sign_in *s, struct slice token,
                        const struct kube_texts *audiences)
{
    const struct kube_user *known = find_in_file(s, token);
    const char *why = "invalid bearer token";
    if (known) {
        kube_user_of_file(s->arena, known, &s->user);
        finish(s, ST_OK, NULL);
        return;
    }
    enum status status = ST_INVALID_AUTH_TOKEN;
    if (s->accounts)
        status =
            kube_account_verify(s->accounts, token, audiences, clock_real_ns(s->clock) / NS_PER_S,
                                s->arena, &s->claims, &why);
    if (status != ST_OK) {
        finish(s, status, why);
        return;
    }
    s->by_account = true;
    kube_account_user(s->arena, &s->claims, &s->user);
    kube_user_add_group(s->arena, &s->user, KUBE_GROUP_AUTHENTICATED);
    check_bound(s);
}

/* As in Kubernetes, a field of another scheme, or without a token, is ignored. */
static bool bearer_of(const struct http_request *request, struct slice *ret_token)
{
    struct slice field, word = SLICE_LITERAL("Bearer ");
    if (!http_request_get(request, SLICE_LITERAL("authorization"), &field))
        return false;
    field = slice_trim(field);
    if (field.len <= word.len || strncasecmp((const char *)field.ptr, "Bearer ", word.len) != 0)
        return false;
    *ret_token = slice_sub(field, word.len, field.len - word.len);
    return ret_token->len && ret_token->ptr[0] != ' ';
}

void kube_sign_in_start(struct kube_sign_in *s, const struct http_request *request)
{
    struct slice token;
    if (kube_user_of_certificate(s->arena, request, &s->user)) {
        finish(s, ST_OK, NULL);
    } else if (bearer_of(request, &token)) {
        kube_sign_in_token(s, token, NULL);
    } else if (request->certificate && request->certificate->has_bad_uid) {
        finish(s, ST_INVALID_AUTH_TOKEN, "the uid in the client's certificate is not valid");
    } else {
        /* A request without credentials is anonymous; roles decide what it may do. */
        s->user = (struct kube_user_info){.name = KUBE_USER_ANONYMOUS};
        kube_user_add_group(s->arena, &s->user, KUBE_GROUP_UNAUTHENTICATED);
        finish(s, ST_OK, NULL);
    }
}
