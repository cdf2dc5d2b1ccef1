/*
 * Reviews, which are posted and answered but not stored: access, the user of a request, the user of
 * a token. There are no authorization rules yet, so every client with access may do everything, and
 * the answers say so.
 */
#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/request/tokens.h"
#include "kube/write/body.h"
#include "kube/write/change.h"
#include "kube/write/write.h"
#include "wire/http/certificate.h"

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

static bool add_text(struct kube_call *call, struct json_node *list, struct slice text)
{
    struct json_node *item = json_node_new_text(&call->arena, text);
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

/* A list of one text. */
static bool set_list(struct kube_call *call, struct json_node *to, const char *key,
                     const char *text)
{
    struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    return set_object(call, to, key, list) && add_text(call, list, slice_from_text(text));
}

/* A user, for the answers. */
struct person {
    struct slice name, uid;
    struct slice groups;    /* a list, */
    char between;           /* with this between its items */
    const char *credential; /* NULL: omitted */
};

/* The groups of the user, then system:authenticated. */
static bool set_groups(struct kube_call *call, struct json_node *info, const struct person *person)
{
    struct slice all = SLICE_LITERAL("system:authenticated"), groups = person->groups;
    struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    bool has_all = false;
    if (!set_object(call, info, "groups", list))
        return false;
    while (groups.len) {
        const uint8_t *end = memchr(groups.ptr, person->between, groups.len);
        size_t len = end ? (size_t)(end - groups.ptr) : groups.len, skip = end ? len + 1 : len;
        struct slice group = slice_sub(groups, 0, len);
        has_all = has_all || slice_equal(group, all);
        if (!add_text(call, list, group))
            return false;
        groups = slice_sub(groups, skip, groups.len - skip);
    }
    return has_all || add_text(call, list, all);
}

static bool set_person(const struct kube_meta *meta, struct kube_call *call,
                       const struct person *person, struct json_node *status, const char *key)
{
    struct json_node *info, *extra;
    if (!kube_meta_object(meta, status, key, &info) ||
        !kube_meta_set_text(meta, info, "username", person->name) ||
        (person->uid.len && !kube_meta_set_text(meta, info, "uid", person->uid)) ||
        !set_groups(call, info, person))
        return false;
    return !person->credential ||
           (kube_meta_object(meta, info, "extra", &extra) &&
            set_list(call, extra, "authentication.kubernetes.io/credential-id",
                     person->credential));
}

static struct person person_of_user(const struct kube_user *user)
{
    return (struct person){
        .name = user->name, .uid = user->uid, .groups = user->groups, .between = ','};
}

/* The user of the request: that of the certificate or of the token, or the anonymous one. */
static struct person person_of(const struct kube_call *call, const struct http_request *request)
{
    const struct kube_tokens *tokens = call->api->config->tokens;
    const struct http_certificate *certificate = request->certificate;
    const struct kube_user *user = NULL;
    struct slice field;
    struct person person = {.name = SLICE_LITERAL("system:admin"),
                            .groups = SLICE_LITERAL("system:masters"),
                            .between = ','};
    if (request->peer_name) {
        person = (struct person){.name = slice_from_text(request->peer_name)};
        if (certificate) {
            person.groups = slice_of(certificate->groups, certificate->groups_bytes);
            person.credential = certificate->id;
        }
        return person;
    }
    if (tokens && http_request_get(request, SLICE_LITERAL("authorization"), &field))
        user = kube_tokens_find(tokens, field);
    return user ? person_of_user(user) : person;
}

static bool review_self(const struct kube_meta *meta, struct kube_call *call,
                        const struct http_request *request, struct json_node *status)
{
    struct person person = person_of(call, request);
    return set_person(meta, call, &person, status, "userInfo");
}

static bool review_token(const struct kube_meta *meta, struct kube_call *call,
                         struct json_node *object, struct json_node *status)
{
    const struct kube_tokens *tokens = call->api->config->tokens;
    struct slice token;
    AUTO(buf_fini) struct buf field = {0};
    if (json_node_text(json_node_path(object, "spec.token"), &call->arena, &token) != ST_OK ||
        buf_append_format(&field, "Bearer %.*s", SLICE_ARGS(token)) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    const struct kube_user *user = tokens ? kube_tokens_find(tokens, buf_slice(&field)) : NULL;
    if (!user)
        return kube_meta_set_text(meta, status, "error",
                                  SLICE_LITERAL("[invalid bearer token, Token is unknown]"));
    struct person person = person_of_user(user);
    return set_bool(call, status, "authenticated", true) &&
           set_person(meta, call, &person, status, "user");
}

/* Every verb on everything. */
static bool set_rules(struct kube_call *call, struct json_node *status)
{
    static const struct {
        const char *list;
        const char *const fields[3];
    } rules[] = {
        {"resourceRules", {"verbs", "apiGroups", "resources"}},
        {"nonResourceRules", {"verbs", "nonResourceURLs", NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
        struct json_node *rule = json_node_new(&call->arena, JSON_TYPE_OBJECT);
        if (!list || !rule || !set_object(call, status, rules[i].list, list))
            return kube_fail_engine(&call->status, ST_NOMEM);
        for (size_t f = 0; f < 3 && rules[i].fields[f]; f++) {
            if (!set_list(call, rule, rules[i].fields[f], "*"))
                return false;
        }
        if (json_node_insert(list, NULL, rule) != ST_OK)
            return kube_fail_engine(&call->status, ST_NOMEM);
    }
    return set_bool(call, status, "incomplete", false);
}

static bool is_kind(const struct kube_call *call, const char *kind)
{
    return strcmp(call->kind->kind, kind) == 0;
}

/* Only the SelfSubjectReview has a creation time, as in Kubernetes. */
static bool set_time(const struct kube_meta *meta, struct json_node *object)
{
    char text[KUBE_TIME_BYTES];
    struct json_node *metadata;
    kube_time_text(meta->now_s, text);
    return kube_meta_object(meta, object, "metadata", &metadata) &&
           kube_meta_set_text(meta, metadata, "creationTimestamp", slice_from_text(text));
}

static bool answer(struct kube_call *call, const struct http_request *request,
                   struct json_node *object)
{
    struct kube_meta meta = kube_call_meta(call, &call->arena);
    struct json_node *status = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    if (!kube_meta_check(&meta, object) || !set_object(call, object, "status", status))
        return false;
    if (is_kind(call, "SelfSubjectReview"))
        return set_time(&meta, object) && review_self(&meta, call, request, status);
    if (is_kind(call, "SelfSubjectRulesReview"))
        return set_rules(call, status);
    if (is_kind(call, "TokenReview"))
        return review_token(&meta, call, object, status);
    if (is_kind(call, "SelfSubjectAccessReview") || is_kind(call, "SubjectAccessReview") ||
        is_kind(call, "LocalSubjectAccessReview"))
        return set_bool(call, status, "allowed", true) &&
               kube_meta_set_text(&meta, status, "reason",
                                  SLICE_LITERAL("there are no rules: everyone may do everything"));
    return kube_fail_not_allowed(&call->status);
}

void kube_review(struct kube_call *call, const struct http_request *request)
{
    struct json_node *object = NULL;
    AUTO(buf_fini) struct buf text = {0};
    bool made = kube_body_read(call, request, &object);
    if (made && !object)
        made = kube_fail(&call->status, KUBE_BAD_REQUEST, "a %s is missing", call->kind->kind);
    made = made && answer(call, request, object);
    if (made && json_tree_write(object, &text) != ST_OK)
        made = kube_fail_engine(&call->status, ST_NOMEM);
    struct slice json = buf_slice(&text);
    if (made && call->accept.shape != KUBE_WHOLE)
        made = kube_call_object(call, json, 0, &json);
    if (made)
        kube_call_respond(call, 201, json);
    else
        kube_call_fail(call);
}
