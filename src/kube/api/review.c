/*
 * Questions that are posted and answered, and stored nowhere: may I, who am I, whose token is this.
 * There are no rules of authorization yet, so who was let in may do everything; the answers say so.
 */
#include "kube/api/body.h"
#include "kube/api/change.h"
#include "kube/api/tokens.h"
#include "kube/api/write.h"

/* Who asks: the name of a certificate, the user of a token, or whom everyone is without either. */
static struct slice user_name(const struct kube_call *call, const struct http_request *request,
                              const struct kube_user **ret_user)
{
    const struct kube_tokens *tokens = call->face->config->tokens;
    struct slice field;
    *ret_user = NULL;
    if (request->peer_name)
        return slice_from_text(request->peer_name);
    if (tokens && http_request_get(request, SLICE_LITERAL("authorization"), &field))
        *ret_user = kube_tokens_find(tokens, field);
    return *ret_user ? (*ret_user)->name : SLICE_LITERAL("system:admin");
}

static bool set_object(struct kube_call *call, struct json_node *to, const char *key,
                       struct json_node *value)
{
    if (value && json_node_set(&call->arena, to, slice_from_text(key), value) == ST_OK)
        return true;
    return kube_fail_engine(&call->status, ST_NOMEM);
}

static bool set_bool(struct kube_call *call, struct json_node *to, const char *key, bool truth)
{
    struct json_node *value = json_node_new(&call->arena, JSON_TYPE_BOOL);
    if (value)
        value->truth = truth;
    return set_object(call, to, key, value);
}

static bool set_texts(struct kube_call *call, struct json_node *to, const char *key,
                      const char *const *texts, size_t count)
{
    struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    for (size_t i = 0; list && i < count; i++) {
        struct json_node *text = json_node_new_text(&call->arena, slice_from_text(texts[i]));
        if (!text)
            return kube_fail_engine(&call->status, ST_NOMEM);
        json_node_insert(list, NULL, text);
    }
    return set_object(call, to, key, list);
}

/* The groups of a token's user, then the one of all who are known. */
static bool set_groups(struct kube_call *call, struct json_node *info, struct slice groups)
{
    struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    struct slice all = SLICE_LITERAL("system:authenticated");
    while (list && (groups.len || all.len)) {
        const uint8_t *comma = groups.len ? memchr(groups.ptr, ',', groups.len) : NULL;
        size_t len = comma ? (size_t)(comma - groups.ptr) : groups.len;
        struct slice group = groups.len ? slice_sub(groups, 0, len) : all;
        struct json_node *text = json_node_new_text(&call->arena, group);
        if (!text)
            return kube_fail_engine(&call->status, ST_NOMEM);
        json_node_insert(list, NULL, text);
        if (groups.len) {
            size_t skip = comma ? len + 1 : len;
            groups = slice_sub(groups, skip, groups.len - skip);
        } else {
            all = SLICE_EMPTY;
        }
    }
    return set_object(call, info, "groups", list);
}

/* user NULL: there is none besides the name; groups: of the name. */
static bool set_user(const struct kube_meta *meta, struct kube_call *call, struct slice name,
                     const struct kube_user *user, struct slice groups, struct json_node *status,
                     const char *key)
{
    struct json_node *info;
    return kube_meta_object(meta, status, key, &info) &&
           kube_meta_set_text(meta, info, "username", name) &&
           (!user || !user->uid.len || kube_meta_set_text(meta, info, "uid", user->uid)) &&
           set_groups(call, info, groups);
}

static bool review_self(const struct kube_meta *meta, struct kube_call *call,
                        const struct http_request *request, struct json_node *status)
{
    const struct kube_user *user;
    struct slice name = user_name(call, request, &user);
    struct slice groups = SLICE_LITERAL("system:masters"); /* of whom everyone is */
    if (request->peer_name || user)
        groups = user ? user->groups : SLICE_EMPTY;
    return set_user(meta, call, name, user, groups, status, "userInfo");
}

static bool review_token(const struct kube_meta *meta, struct kube_call *call,
                         struct json_node *object, struct json_node *status)
{
    const struct kube_tokens *tokens = call->face->config->tokens;
    struct slice token;
    struct buf field = {0};
    if (json_node_text(json_node_path(object, "spec.token"), &call->arena, &token) != ST_OK ||
        buf_append_format(&field, "Bearer %.*s", SLICE_ARGS(token)) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    const struct kube_user *user = tokens ? kube_tokens_find(tokens, buf_slice(&field)) : NULL;
    buf_fini(&field);
    if (!user)
        return kube_meta_set_text(meta, status, "error",
                                  SLICE_LITERAL("[invalid bearer token, Token is unknown]"));
    return set_bool(call, status, "authenticated", true) &&
           set_user(meta, call, user->name, user, user->groups, status, "user");
}

/* Every verb on everything. */
static bool set_rules(const struct kube_meta *meta, struct kube_call *call,
                      struct json_node *status)
{
    static const struct {
        const char *list;
        const char *const fields[3];
    } rules[] = {
        {"resourceRules", {"verbs", "apiGroups", "resources"}},
        {"nonResourceRules", {"verbs", "nonResourceURLs", NULL}},
    };
    static const char *const all[] = {"*"};
    (void)meta;
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
        struct json_node *rule = json_node_new(&call->arena, JSON_TYPE_OBJECT);
        if (!list || !rule || !set_object(call, status, rules[i].list, list))
            return kube_fail_engine(&call->status, ST_NOMEM);
        for (size_t f = 0; f < 3 && rules[i].fields[f]; f++) {
            if (!set_texts(call, rule, rules[i].fields[f], all, 1))
                return false;
        }
        json_node_insert(list, NULL, rule);
    }
    return set_bool(call, status, "incomplete", false);
}

static bool is_kind(const struct kube_call *call, const char *kind)
{
    return strcmp(call->kind->kind, kind) == 0;
}

static bool answer(struct kube_call *call, const struct http_request *request,
                   struct json_node *object)
{
    struct kube_meta meta = kube_call_meta(call, &call->arena);
    struct json_node *status = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    if (!kube_meta_check(&meta, object) || !set_object(call, object, "status", status))
        return false;
    if (is_kind(call, "SelfSubjectReview"))
        return review_self(&meta, call, request, status);
    if (is_kind(call, "SelfSubjectRulesReview"))
        return set_rules(&meta, call, status);
    if (is_kind(call, "TokenReview"))
        return review_token(&meta, call, object, status);
    if (is_kind(call, "SelfSubjectAccessReview") || is_kind(call, "SubjectAccessReview") ||
        is_kind(call, "LocalSubjectAccessReview"))
        return set_bool(call, status, "allowed", true) &&
               kube_meta_set_text(&meta, status, "reason",
                                  SLICE_LITERAL("there are no rules: everyone may do everything"));
    return kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                          "the server does not allow this method on the requested resource");
}

void kube_review(struct kube_call *call, const struct http_request *request)
{
    struct json_node *object = NULL;
    struct buf text = {0};
    bool made = kube_body_read(call, request, &object);
    if (made && !object)
        made = kube_fail(&call->status, KUBE_BAD_REQUEST, "a %s is missing", call->kind->kind);
    made = made && answer(call, request, object);
    if (made && json_tree_write(object, &text) != ST_OK)
        made = kube_fail_engine(&call->status, ST_NOMEM);
    if (made)
        kube_call_respond(call, 201, buf_slice(&text));
    else
        kube_call_fail(call);
    buf_fini(&text);
}
