/*
 * Reviews, which are posted and answered but not stored: what a user may do, the user of a request,
 * the user of a token. The body may be read on the worker; what is decided uses roles, bindings and
 * objects on the thread of the API.
 *
 *     body ─► check ─► wait for roles, or sign in with the token ─► answer
 *
 * Without authorization every client with access may do everything, and the answers say so.
 */
#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/change.h"
#include "kube/handlers/write/write.h"
#include "kube/policy/access/access.h"
#include "kube/policy/access/rbac/rbac_fetch.h"
#include "kube/policy/access/sign_in.h"

#include <stdio.h>

struct review {
    struct kube_call *call;
    struct kube_meta meta;
    struct json_node *object, *status;
    struct kube_user_info subject; /* for a SubjectAccessReview */
    struct kube_rbac_wait wait;
    /* Owned: the graph of nodes, and roles and bindings that are not held. */
    struct kube_rbac_fetch *fetches[3];
    size_t fetch_count;
    struct kube_sign_in sign_in;
    struct kube_texts audiences; /* for a TokenReview */
};

static bool set_object(struct kube_call *call, struct json_node *to, const char *key,
                       struct json_node *value)
{
    return json_node_put(&call->arena, to, key, value) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool set_bool(struct kube_call *call, struct json_node *to, const char *key, bool truth)
{
    struct json_node *value = json_node_new(&call->arena, JSON_TYPE_BOOL);
    if (value)
        value->truth = truth;
    return set_object(call, to, key, value);
}

static bool add_item(struct kube_call *call, struct json_node *list, struct json_node *item)
{
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool set_texts(struct kube_call *call, struct json_node *to, const char *key,
                      const struct kube_texts *texts)
{
    struct json_node *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    if (!set_object(call, to, key, list))
        return false;
    for (size_t i = 0; i < texts->count; i++)
        if (!add_item(call, list, json_node_new_text(&call->arena, texts->items[i])))
            return false;
    return true;
}

static bool is_kind(const struct kube_call *call, const char *kind)
{
    return strcmp(call->kind->kind, kind) == 0;
}

/* -- The question -- */

static struct slice text_of(struct kube_call *call, const struct json_node *from, const char *name)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_node_named(from, name), &call->arena, &text);
    return text; /* the arena remembers a failure */
}

/* Appends "key=value" with the escapes of a field selector. */
static enum status append_field(struct buf *to, struct slice key, struct slice value)
{
    TRY(buf_append_text(to, to->len ? "," : ""));
    TRY(buf_append(to, key));
    TRY(buf_append_text(to, "="));
    for (size_t i = 0; i < value.len; i++) {
        bool special = value.ptr[i] == '\\' || value.ptr[i] == ',' || value.ptr[i] == '=';
        TRY(buf_append_text(to, special ? "\\" : ""));
        TRY(buf_append(to, slice_sub(value, i, 1)));
    }
    return ST_OK;
}

/* As text, with the requirements that are understood: `In` with one value. As in
 * Kubernetes, others only make it less specific. */
static struct slice field_selector_of(struct kube_call *call, const struct json_node *resource)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *selector = json_node_named(resource, "fieldSelector");
    const struct json_node *item = json_node_items_at(selector, "requirements");
    struct slice copy = text_of(call, selector, "rawSelector");
    if (!item)
        return copy;
    for (; item; item = item->next) {
        const struct json_node *value = json_node_items_at(item, "values");
        struct slice key = text_of(call, item, "key"), one = SLICE_EMPTY;
        if (!json_node_text_is(item, "operator", "In") || !value || value->next)
            continue;
        if (json_node_text(value, &call->arena, &one) != ST_OK ||
            append_field(&text, key, one) != ST_OK)
            return SLICE_EMPTY; /* it allows less */
    }
    return arena_dup(&call->arena, buf_slice(&text), &copy) == ST_OK ? copy : SLICE_EMPTY;
}

static struct kube_attributes attributes_of(struct kube_call *call, const struct json_node *spec)
{
    const struct json_node *resource = json_node_named(spec, "resourceAttributes");
    const struct json_node *path = json_node_named(spec, "nonResourceAttributes");
    if (!resource)
        return (struct kube_attributes){.verb = text_of(call, path, "verb"),
                                        .path = text_of(call, path, "path")};
    return (struct kube_attributes){
        .of_resource = true,
        .verb = text_of(call, resource, "verb"),
        .group = text_of(call, resource, "group"),
        .resource = text_of(call, resource, "resource"),
        .subresource = text_of(call, resource, "subresource"),
        .namespace = text_of(call, resource, "namespace"),
        .name = text_of(call, resource, "name"),
        .field_selector = field_selector_of(call, resource),
    };
}

/* The user of a SubjectAccessReview; extra is not used by roles. */
static bool subject_of(struct kube_call *call, const struct json_node *spec,
                       struct kube_user_info *user)
{
    *user = (struct kube_user_info){.name = text_of(call, spec, "user"),
                                    .uid = text_of(call, spec, "uid")};
    return kube_texts_read(&call->arena, json_node_named(spec, "groups"), KUBE_USER_GROUPS_MAX,
                           &user->groups) ||
           kube_fail(&call->status, KUBE_BAD_REQUEST, "a user with more than %d groups",
                     KUBE_USER_GROUPS_MAX);
}

/* -- Checks, with the texts of Kubernetes -- */

static void invalid(struct kube_call *call, const char *field, const char *value, const char *text)
{
    char message[512];
    snprintf(message, sizeof(message), "Invalid value: %s: %s", value, text);
    kube_status_cause(&call->status, "FieldValueInvalid", field, message);
}

static void check_local(struct kube_call *call, const struct json_node *object)
{
    const struct json_node *spec = json_node_named(object, "spec");
    const struct json_node *resource = json_node_named(spec, "resourceAttributes");
    struct slice namespace = text_of(call, json_node_named(object, "metadata"), "namespace");
    struct slice asked = text_of(call, resource, "namespace");
    char value[160];
    if (!is_kind(call, "LocalSubjectAccessReview"))
        return;
    snprintf(value, sizeof(value), "\"%.*s\"", (int)size_min(asked.len, 128),
             (const char *)asked.ptr);
    if (resource && !slice_equal(asked, namespace))
        invalid(call, "spec.resourceAttributes.namespace", value, "must match metadata.namespace");
}

static bool check_access(struct kube_call *call, const struct json_node *object)
{
    const struct json_node *spec = json_node_named(object, "spec");
    const struct json_node *resource = json_node_named(spec, "resourceAttributes");
    const struct json_node *groups = json_node_named(spec, "groups");
    bool self = is_kind(call, "SelfSubjectAccessReview");
    call->status = (struct kube_status){0};
    if (!resource && !json_node_named(spec, "nonResourceAttributes"))
        invalid(call, "spec.resourceAttributes", "null",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    else if (resource && json_node_named(spec, "nonResourceAttributes"))
        invalid(call, "spec.nonResourceAttributes", "{}",
                "cannot be specified in combination with resourceAttributes");
    if (!self && !text_of(call, spec, "user").len && (!groups || !groups->count))
        invalid(call, "spec.user", "\"\"", "at least one of user or group must be specified");
    check_local(call, object);
    return !call->status.cause_count ||
           kube_fail_invalid(&call->status, slice_from_text(call->kind->group), SLICE_EMPTY,
                             SLICE_EMPTY); /* as in Kubernetes, without its kind */
}

/* -- Answers -- */

static bool answer_access(struct review *r)
{
    struct kube_call *call = r->call;
    const struct json_node *spec = json_node_named(r->object, "spec");
    struct kube_attributes attributes = attributes_of(call, spec);
    const struct kube_user_info *user = kube_call_user(call);
    char reason[KUBE_RBAC_REASON_BYTES] = "there are no rules: everyone may do everything";
    bool allowed = true;
    if (!is_kind(call, "SelfSubjectAccessReview")) {
        if (!subject_of(call, spec, &r->subject))
            return false;
        user = &r->subject;
    }
    if (call->api->access)
        allowed = kube_rbac_allows(call->api->access->rbac, user, &attributes, reason);
    if (!allowed && kube_rbac_lacks(call->api->access->rbac))
        return false; /* it is decided again */
    return set_bool(call, r->status, "allowed", allowed) &&
           (!*reason || kube_meta_set_text(&r->meta, r->status, "reason", slice_from_text(reason)));
}

static bool add_rule(struct kube_call *call, struct json_node *list, const struct kube_rule *rule,
                     bool of_resources)
{
    struct json_node *node = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    if (!node)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!set_texts(call, node, "verbs", &rule->verbs))
        return false;
    if (!of_resources)
        return set_texts(call, node, "nonResourceURLs", &rule->urls) && add_item(call, list, node);
    return set_texts(call, node, "apiGroups", &rule->groups) &&
           set_texts(call, node, "resources", &rule->resources) &&
           (!rule->names.count || set_texts(call, node, "resourceNames", &rule->names)) &&
           add_item(call, list, node);
}

static bool set_rules(struct review *r, const struct kube_rules *rules)
{
    struct kube_call *call = r->call;
    struct json_node *resources = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    struct json_node *urls = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    if (!set_object(call, r->status, "resourceRules", resources) ||
        !set_object(call, r->status, "nonResourceRules", urls))
        return false;
    for (size_t i = 0; i < rules->count; i++) {
        const struct kube_rule *rule = &rules->items[i];
        if ((rule->resources.count && !add_rule(call, resources, rule, true)) ||
            (rule->urls.count && !add_rule(call, urls, rule, false)))
            return false;
    }
    return true;
}

static bool answer_rules(struct review *r)
{
    static const struct slice all = {(const uint8_t *)"*", 1};
    const struct kube_texts star = {&all, 1};
    const struct kube_rule every[] = {{.verbs = star, .groups = star, .resources = star},
                                      {.verbs = star, .urls = star}};
    struct kube_call *call = r->call;
    struct kube_rules rules = {every, COUNT_OF(every)};
    char reason[KUBE_RBAC_REASON_BYTES] = "";
    bool complete = true;
    struct slice namespace = text_of(call, json_node_named(r->object, "spec"), "namespace");
    if (!namespace.len)
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "no namespace on request");
    if (call->api->access)
        complete = kube_rbac_list_rules(call->api->access->rbac, &call->arena, kube_call_user(call),
                                        namespace, &rules, reason);
    if (call->api->access && kube_rbac_lacks(call->api->access->rbac))
        return false; /* it is decided again */
    return set_object(call, r->object, "spec", json_node_new(&call->arena, JSON_TYPE_OBJECT)) &&
           set_object(call, r->object, "status", r->status) && set_rules(r, &rules) &&
           set_bool(call, r->status, "incomplete", !complete) &&
           (!*reason ||
            kube_meta_set_text(&r->meta, r->status, "evaluationError", slice_from_text(reason)));
}

static bool answer_now(struct review *r)
{
    struct kube_call *call = r->call;
    if (is_kind(call, "SelfSubjectReview")) {
        /* Only the SelfSubjectReview has a creation time, as in Kubernetes. */
        char text[KUBE_TIME_BYTES];
        struct json_node *metadata;
        kube_time_text(r->meta.now_s, text);
        return kube_meta_object(&r->meta, r->object, "metadata", &metadata) &&
               kube_meta_set_text(&r->meta, metadata, "creationTimestamp", slice_from_text(text)) &&
               set_object(r->call, r->status, "userInfo",
                          kube_user_json(&r->call->arena, kube_call_user(r->call)));
    }
    if (is_kind(call, "SelfSubjectRulesReview"))
        return answer_rules(r);
    if (is_kind(call, "SelfSubjectAccessReview") || is_kind(call, "SubjectAccessReview") ||
        is_kind(call, "LocalSubjectAccessReview"))
        return check_access(call, r->object) && answer_access(r);
    return kube_fail_not_allowed(&call->status);
}

static void respond(struct review *r, bool made)
{
    struct kube_call *call = r->call;
    AUTO(buf_fini) struct buf text = {0};
    if (made && (arena_ran_out(&call->arena) || json_tree_write(r->object, &text) != ST_OK))
        made = kube_fail_engine(&call->status, ST_NOMEM);
    struct slice json = buf_slice(&text);
    if (made && call->accept.shape != KUBE_WHOLE)
        made = kube_call_object(call, json, 0, &json);
    if (made)
        kube_call_respond(call, 201, json);
    else
        kube_call_fail(call);
}

/* -- TokenReview -- */

/* A token of the file is for this server, and a review may ask for other audiences. */
static bool has_audience(const struct review *r, const struct kube_texts *audiences)
{
    for (size_t i = 0; i < r->audiences.count; i++)
        if (kube_texts_have(audiences, r->audiences.items[i]))
            return true;
    return !r->audiences.count;
}

/* Those of the review that are the token's, too. */
static bool set_audiences(struct review *r, const struct kube_texts *of_token)
{
    const struct kube_account_keys *accounts = r->call->api->config->accounts;
    struct kube_texts own = accounts ? kube_account_audiences(accounts) : (struct kube_texts){0};
    const struct kube_texts *asked = r->audiences.count ? &r->audiences : &own;
    struct kube_text_list both = {.arena = &r->call->arena};
    for (size_t i = 0; i < asked->count; i++)
        if (kube_texts_have(of_token, asked->items[i]))
            kube_text_add(&both, asked->items[i]);
    struct kube_texts texts = kube_text_taken(&both);
    return !texts.count || set_texts(r->call, r->status, "audiences", &texts);
}

#define UNKNOWN "invalid bearer token"

static bool answer_token(struct review *r)
{
    struct kube_call *call = r->call;
    const struct kube_sign_in *s = &r->sign_in;
    const struct kube_account_keys *accounts = call->api->config->accounts;
    struct kube_texts own = accounts ? kube_account_audiences(accounts) : (struct kube_texts){0};
    const struct kube_texts *of_token = s->by_account ? &s->claims.audiences : &own;
    AUTO(buf_fini) struct buf error = {0};
    if (s->status != ST_OK && s->status != ST_INVALID_AUTH_TOKEN)
        return kube_fail_engine(&call->status, s->status);
    if (s->status == ST_OK && (s->by_account || has_audience(r, &own)))
        return set_bool(call, r->status, "authenticated", true) &&
               set_object(call, r->status, "user", kube_user_json(&call->arena, &s->user)) &&
               set_audiences(r, of_token);
    bool more = s->why && strcmp(s->why, UNKNOWN) != 0;
    if (buf_append_format(&error, more ? "[" UNKNOWN ", %s]" : UNKNOWN "%s", more ? s->why : "") !=
        ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return set_object(call, r->status, "user", json_node_new(&call->arena, JSON_TYPE_OBJECT)) &&
           kube_meta_set_text(&r->meta, r->status, "error", buf_slice(&error));
}

static void on_signed_in(struct kube_sign_in *sign_in)
{
    struct review *r = CONTAINER_OF(sign_in, struct review, sign_in);
    if (kube_call_done(r->call))
        respond(r, answer_token(r));
}

static bool start_token(struct review *r)
{
    struct kube_call *call = r->call;
    const struct json_node *spec = json_node_named(r->object, "spec");
    struct slice token = text_of(call, spec, "token");
    if (!token.len)
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "token is required for TokenReview in authentication");
    if (!kube_texts_read(&call->arena, json_node_named(spec, "audiences"),
                         KUBE_ACCOUNT_AUDIENCES_MAX, &r->audiences))
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "more than %d audiences",
                         KUBE_ACCOUNT_AUDIENCES_MAX);
    r->sign_in = (struct kube_sign_in){
        .shard = call->api->shard,
        .clock = call->api->clock,
        .under_way = &call->api->under_way,
        .tokens = call->api->config->tokens,
        .accounts = call->api->config->accounts,
        .arena = &call->arena,
        .done = on_signed_in,
    };
    kube_call_hold(call);
    kube_sign_in_token(&r->sign_in, token, r->audiences.count ? &r->audiences : NULL);
    return true;
}

/* -- The whole -- */

static void free_fetches(struct review *r)
{
    while (r->fetch_count)
        kube_rbac_fetch_free(r->fetches[--r->fetch_count]);
}

static void decide(struct kube_call *call);

static void on_fetched(void *ctx)
{
    struct review *r = ctx;
    struct kube_call *call = r->call;
    enum status status = kube_rbac_fetch_status(r->fetches[r->fetch_count - 1]);
    if (status != ST_OK || !call->exchange)
        free_fetches(r);
    if (kube_call_succeeded(call, status))
        decide(call);
}

/* From roles and bindings; those that are not held are read first. */
static void answer_or_fetch(struct review *r)
{
    struct kube_call *call = r->call;
    struct kube_rbac *rbac = call->api->access ? call->api->access->rbac : NULL;
    if (rbac)
        kube_rbac_begin(rbac, r);
    bool made = answer_now(r), lacks = !made && rbac && kube_rbac_lacks(rbac);
    if (lacks && r->fetch_count < COUNT_OF(r->fetches)) {
        kube_call_hold(call);
        r->fetches[r->fetch_count++] =
            kube_rbac_fetch_new(rbac, call->arena.account, &call->exchange, on_fetched, r);
        return;
    }
    free_fetches(r);
    if (lacks)
        kube_call_fail_engine(call, ST_AGAIN);
    else
        respond(r, made);
}

static void on_roles(struct kube_rbac_wait *wait)
{
    struct review *r = CONTAINER_OF(wait, struct review, wait);
    if (kube_call_succeeded(r->call, wait->status))
        answer_or_fetch(r);
}

static void decide(struct kube_call *call)
{
    struct review *r = call->handler.review;
    if (kube_call_defers(call, decide))
        return;
    if (is_kind(call, "TokenReview")) {
        if (!start_token(r))
            kube_call_fail(call);
    } else if (call->api->access) {
        kube_call_hold(call);
        r->wait.current = true; /* what was granted before the review is not denied by it */
        r->wait.go = on_roles;
        kube_rbac_wait(call->api->access->rbac, &r->wait);
    } else {
        answer_or_fetch(r);
    }
}

static bool begin(struct kube_call *call, struct json_node *object)
{
    struct review *r = arena_calloc(&call->arena, 1, sizeof(*r));
    if (!object)
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "a %s is missing", call->kind->kind);
    if (!r)
        return kube_fail_engine(&call->status, ST_NOMEM);
    call->handler.review = r;
    r->call = call;
    r->object = object;
    r->meta = kube_call_meta(call, &call->arena);
    r->status = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    return kube_meta_check(&r->meta, object) && set_object(call, object, "status", r->status);
}

void kube_review(struct kube_call *call)
{
    struct json_node *object = NULL;
    if (kube_body_read(call, call->request, &object) && begin(call, object))
        decide(call);
    else
        kube_call_fail(call);
}
