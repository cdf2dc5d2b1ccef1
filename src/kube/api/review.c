/*
 * Questions that are posted and answered, and stored nowhere: may I, who am I, whose token is this.
 * There are no rules of authorization yet, so who was let in may do everything; the answers say so.
 */
#include "kube/api/body.h"
#include "kube/api/change.h"
#include "kube/api/write.h"

/* Who asks: the name of a client's certificate, or the user that everyone is without one. */
static const char *user_name(const struct http_request *request)
{
    return request->peer_name ? request->peer_name : "system:admin";
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

static bool set_user(const struct kube_meta *meta, struct kube_call *call,
                     const struct http_request *request, struct json_node *status)
{
    static const char *const groups[] = {"system:masters", "system:authenticated"};
    struct json_node *user;
    return kube_meta_object(meta, status, "userInfo", &user) &&
           kube_meta_set_text(meta, user, "username", slice_from_text(user_name(request))) &&
           set_texts(call, user, "groups", groups, COUNT_OF(groups));
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
        return set_user(&meta, call, request, status);
    if (is_kind(call, "SelfSubjectRulesReview"))
        return set_rules(&meta, call, status);
    if (is_kind(call, "TokenReview"))
        return set_bool(call, status, "authenticated", false) &&
               kube_meta_set_text(&meta, status, "error",
                                  SLICE_LITERAL("there are no tokens of this server"));
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
