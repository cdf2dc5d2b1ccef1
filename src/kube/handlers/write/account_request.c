/*
 * POST of a TokenRequest to …/serviceaccounts/x/token: a token of the account, for some audiences
 * and some time, and perhaps bound to a pod, a secret or a node, with which it ends.
 *
 *     body ─► read the account ─► admission policies, and between them: check, complete
 *         ─► read what it is bound to ─► sign (on the worker) ─► 201
 */
#include "base/clock.h"
#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/change.h"
#include "kube/handlers/write/write.h"
#include "kube/policy/access/account_token.h"
#include "kube/policy/policies/validate.h"

#include <stdio.h>

#define GROUP "authentication.k8s.io"

/* As in Kubernetes: how long a token is valid. */
enum { DEFAULT_S = 3600, SHORTEST_S = 600 };
#define LONGEST_S (INT64_C(1) << 32)

struct account_request {
    struct kube_change change; /* decides nothing but what policies decide; never stored */
    struct kube_meta meta;
    struct json_node *object;
    struct pb_range_request range;
    struct kube_account_claims claims;
    struct kube_account_ref *bound; /* in claims; NULL: not bound */
    const char *bound_kind;
    struct slice bound_uid; /* that the client gives; may be empty */
    int64_t seconds;
};

static struct account_request *request_of(struct kube_call *call)
{
    return CONTAINER_OF(call->handler.change, struct account_request, change);
}

static struct slice text_of(struct kube_call *call, const struct json_node *from, const char *path)
{
    struct slice text = SLICE_EMPTY;
    (void)!json_node_text(json_node_path(from, path), &call->arena, &text);
    return text; /* the arena remembers a failure */
}

/* -- The answer -- */

static bool set(struct kube_call *call, struct json_node *to, const char *key,
                struct json_node *value)
{
    return json_node_put(&call->arena, to, key, value) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool set_metadata(struct account_request *r)
{
    char now[KUBE_TIME_BYTES];
    struct json_node *metadata;
    kube_time_text(r->claims.issued_s, now);
    return kube_meta_object(&r->meta, r->object, "metadata", &metadata) &&
           kube_meta_set_text(&r->meta, metadata, "name", r->claims.account.name) &&
           kube_meta_set_text(&r->meta, metadata, "namespace", r->claims.namespace) &&
           kube_meta_set_text(&r->meta, metadata, "uid", r->claims.account.uid) &&
           kube_meta_set_text(&r->meta, metadata, "creationTimestamp", slice_from_text(now)) &&
           kube_meta_set_text(&r->meta, r->object, "kind", SLICE_LITERAL("TokenRequest")) &&
           kube_meta_set_text(&r->meta, r->object, "apiVersion", SLICE_LITERAL(GROUP "/v1"));
}

static bool set_spec(struct kube_call *call, struct account_request *r)
{
    struct json_node *spec, *list = json_node_new(&call->arena, JSON_TYPE_ARRAY);
    if (!kube_meta_object(&r->meta, r->object, "spec", &spec) ||
        !set(call, spec, "audiences", list) ||
        !kube_meta_set_int(&r->meta, spec, "expirationSeconds", r->seconds))
        return false;
    for (size_t i = 0; i < r->claims.audiences.count; i++) {
        struct json_node *item = json_node_new_text(&call->arena, r->claims.audiences.items[i]);
        if (!item || json_node_insert(list, NULL, item) != ST_OK)
            return kube_fail_engine(&call->status, ST_NOMEM);
    }
    return json_node_named(spec, "boundObjectRef") ||
           set(call, spec, "boundObjectRef", json_node_new(&call->arena, JSON_TYPE_NULL));
}

/* Policies see an empty one. */
static bool set_status(struct kube_call *call, struct account_request *r, struct slice token)
{
    char expires[KUBE_TIME_BYTES];
    struct json_node *status = json_node_new(&call->arena, JSON_TYPE_OBJECT);
    kube_time_text(r->claims.issued_s + r->seconds, expires);
    return set(call, r->object, "status", status) &&
           kube_meta_set_text(&r->meta, status, "token", token) &&
           (token.len ? kube_meta_set_text(&r->meta, status, "expirationTimestamp",
                                           slice_from_text(expires))
                      : set(call, status, "expirationTimestamp",
                            json_node_new(&call->arena, JSON_TYPE_NULL)));
}

static bool make(struct kube_call *call, struct account_request *r, struct buf *text)
{
    AUTO(buf_fini) struct buf token = {0};
    enum status status = kube_account_sign(call->api->config->accounts, &r->claims, &token);
    if (status != ST_OK)
        return kube_fail_engine(&call->status, status);
    if (!set_status(call, r, buf_slice(&token)))
        return false;
    return (!arena_ran_out(&call->arena) && json_tree_write(r->object, text) == ST_OK) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

/* A signature with a long key takes milliseconds. */
static void sign(struct kube_call *call)
{
    AUTO(buf_fini) struct buf text = {0};
    if (make(call, request_of(call), &text))
        kube_call_respond(call, 201, buf_slice(&text));
    else
        kube_call_fail(call);
}

static void start_signing(struct kube_call *call)
{
    kube_call_work(call, KUBE_WORK_BYTES_MAX + 1, sign);
}

/* -- What the token is bound to -- */

static bool fail_bound(struct kube_call *call, const struct account_request *r)
{
    struct slice plural = strcmp(r->bound_kind, "Pod") == 0      ? SLICE_LITERAL("pods")
                          : strcmp(r->bound_kind, "Secret") == 0 ? SLICE_LITERAL("secrets")
                                                                 : SLICE_LITERAL("nodes");
    return kube_fail_not_found(&call->status, SLICE_EMPTY, plural, r->bound->name);
}

static bool check_pod(struct kube_call *call, const struct account_request *r,
                      const struct kube_object *object)
{
    struct slice account = SLICE_EMPTY;
    if (strcmp(r->bound_kind, "Pod") != 0)
        return true;
    (void)!kube_object_field(object, SLICE_LITERAL("spec.serviceAccountName"), &account);
    return slice_equal(account, r->claims.account.name) ||
           kube_fail(&call->status, KUBE_BAD_REQUEST,
                     "cannot bind token for serviceaccount \"%.*s\" to pod running with different "
                     "serviceaccount name.",
                     SLICE_ARGS(r->claims.account.name));
}

static bool look_at_bound(struct kube_call *call, struct account_request *r)
{
    struct kube_object object;
    struct slice field;
    char why[256];
    if (call->range.op.status != ST_OK)
        return kube_call_set_engine(call, call->range.op.status);
    if (!engine_range_next(&call->range, &field) ||
        kube_object_parse(kube_kv_of(field).value, &object) != ST_OK)
        return fail_bound(call, r);
    if (!check_pod(call, r, &object))
        return false;
    if (arena_dup(&call->arena, object.uid, &r->bound->uid) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!r->bound_uid.len || slice_equal(r->bound_uid, r->bound->uid))
        return true;
    snprintf(why, sizeof(why),
             "the UID in the bound object reference (%.*s) does not match the UID in record. The "
             "object might have been deleted and then recreated",
             (int)size_min(r->bound_uid.len, 64), (const char *)r->bound_uid.ptr);
    return kube_fail_conflict(&call->status, SLICE_EMPTY, slice_from_text(r->bound_kind),
                              r->bound->name, why);
}

static void on_bound(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    bool fine = look_at_bound(call, request_of(call));
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (fine)
        start_signing(call);
    else
        kube_call_fail(call);
}

/* False: it cannot be bound to such an object. */
static bool find_bound(struct kube_call *call, struct account_request *r)
{
    const struct json_node *ref = json_node_path(r->object, "spec.boundObjectRef");
    struct slice kind = text_of(call, ref, "kind"), version = text_of(call, ref, "apiVersion");
    if (!ref || ref->type != JSON_TYPE_OBJECT)
        return true;
    const struct {
        const char *kind;
        struct kube_account_ref *to;
    } rows[] = {{"Pod", &r->claims.pod}, {"Secret", &r->claims.secret}, {"Node", &r->claims.node}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (slice_is(kind, rows[i].kind) && slice_is(version, "v1")) {
            r->bound = rows[i].to;
            r->bound_kind = rows[i].kind;
        }
    if (!r->bound)
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "cannot bind token to object of type %s%.*s, Kind=%.*s",
                         version.len && memchr(version.ptr, '/', version.len) ? "" : "/",
                         (int)size_min(version.len, 64), (const char *)version.ptr,
                         (int)size_min(kind.len, 64), (const char *)kind.ptr);
    r->bound->name = text_of(call, ref, "name");
    r->bound_uid = text_of(call, ref, "uid");
    return true;
}

static void read_bound(struct kube_call *call, struct account_request *r)
{
    bool node = strcmp(r->bound_kind, "Node") == 0;
    const char *prefix = node                                   ? "/registry/minions/"
                         : strcmp(r->bound_kind, "Secret") == 0 ? "/registry/secrets/"
                                                                : "/registry/pods/";
    r->range = (struct pb_range_request){0};
    if (kube_key_make(&call->arena, prefix, node ? SLICE_EMPTY : r->claims.namespace,
                      r->bound->name, &r->range.key) == ST_OK)
        kube_call_range(call, &r->range, on_bound);
    else
        kube_call_fail_engine(call, ST_NOMEM);
}

/* -- The account -- */

static bool check_spec(struct kube_call *call, struct account_request *r)
{
    const struct json_node *spec = json_node_named(r->object, "spec");
    const struct json_node *seconds = json_node_named(spec, "expirationSeconds");
    char message[128];
    r->seconds = DEFAULT_S;
    if (json_node_is_set(seconds) && !json_node_int(seconds, &r->seconds))
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "expirationSeconds is not a number");
    call->status = (struct kube_status){0};
    snprintf(message, sizeof(message), "Invalid value: %lld: may not specify a duration %s",
             (long long)r->seconds,
             r->seconds < SHORTEST_S ? "less than 10 minutes" : "larger than 2^32 seconds");
    if (r->seconds < SHORTEST_S || r->seconds > LONGEST_S)
        kube_status_cause(&call->status, "FieldValueInvalid", "spec.expirationSeconds", message);
    if (call->status.cause_count)
        return kube_fail_invalid(&call->status, SLICE_LITERAL(GROUP), SLICE_LITERAL("TokenRequest"),
                                 SLICE_EMPTY);
    if (!kube_texts_read(&call->arena, json_node_named(spec, "audiences"),
                         KUBE_ACCOUNT_AUDIENCES_MAX, &r->claims.audiences))
        return kube_fail(&call->status, KUBE_BAD_REQUEST, "more than %d audiences",
                         KUBE_ACCOUNT_AUDIENCES_MAX);
    if (!r->claims.audiences.count)
        r->claims.audiences = kube_account_audiences(call->api->config->accounts);
    return true;
}

/* Names that the request gives have to be those of its path. */
static bool check_name(struct kube_call *call, const struct account_request *r, const char *path,
                       struct slice name, const char *what)
{
    struct slice given = text_of(call, r->object, path);
    char message[384];
    if (!given.len || slice_equal(given, name))
        return true;
    snprintf(message, sizeof(message),
             "Invalid value: \"%.*s\": must match the service account %s if specified",
             (int)size_min(given.len, 253), (const char *)given.ptr, what);
    kube_status_cause(&call->status, "FieldValueInvalid", path, message);
    return kube_fail_invalid(&call->status, SLICE_LITERAL(GROUP), SLICE_LITERAL("TokenRequest"),
                             r->claims.account.name);
}

static bool check_names(struct kube_call *call, const struct account_request *r)
{
    struct slice uid = text_of(call, r->object, "metadata.uid");
    char why[256];
    if (!check_name(call, r, "metadata.name", r->claims.account.name, "name") ||
        !check_name(call, r, "metadata.namespace", r->claims.namespace, "namespace"))
        return false;
    if (!uid.len || slice_equal(uid, r->claims.account.uid))
        return true;
    snprintf(why, sizeof(why),
             "the UID in the token request (%.*s) does not match the UID of the service account "
             "(%.*s)",
             (int)size_min(uid.len, 64), (const char *)uid.ptr,
             (int)size_min(r->claims.account.uid.len, 64), (const char *)r->claims.account.uid.ptr);
    return kube_fail_conflict(&call->status, SLICE_LITERAL(GROUP), SLICE_LITERAL("TokenRequest"),
                              r->claims.account.name, why);
}

/* The times and the id of the token. */
static bool set_claims(struct kube_call *call, struct account_request *r)
{
    char id[40];
    struct random *random = &call->random;
    uint64_t high = random_u64(random), low = random_u64(random);
    int len = snprintf(id, sizeof(id), "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(high >> 32),
                       (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xfff),
                       (unsigned)(0x8000 | (low >> 48 & 0x3fff)),
                       (unsigned long long)(low & 0xffffffffffff));
    r->claims.expires_s = r->claims.issued_s + r->seconds;
    return arena_dup(&call->arena, slice_of(id, (size_t)len), &r->claims.id) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool look_at_account(struct kube_call *call, struct account_request *r)
{
    struct kube_object object;
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_call_set_engine(call, call->range.op.status);
    if (!engine_range_next(&call->range, &field) ||
        kube_object_parse(kube_kv_of(field).value, &object) != ST_OK)
        return kube_call_not_found(call);
    r->claims.namespace = call->path.namespace;
    r->claims.account.name = call->path.name;
    r->claims.issued_s = clock_real_ns(call->api->clock) / NS_PER_S;
    return arena_dup(&call->arena, object.uid, &r->claims.account.uid) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

/* Policies may have changed the request; others see it completed. */
static enum kube_decision check(struct kube_change *change, const struct json_node *stored,
                                struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct account_request *r = request_of(call);
    (void)stored, (void)ret_object;
    /* It was read, or mutated, in the arena of the call. */
    r->object = (struct json_node *)(uintptr_t)change->posted;
    return check_names(call, r) && check_spec(call, r) && set_claims(call, r) && set_metadata(r) &&
                   set_spec(call, r) && set_status(call, r, SLICE_EMPTY)
               ? KUBE_DECIDE_KEEP
               : KUBE_DECIDE_FAIL;
}

static void on_admitted(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct account_request *r = request_of(call);
    if (!find_bound(call, r))
        kube_call_fail(call);
    else if (r->bound)
        read_bound(call, r);
    else
        start_signing(call);
}

static void on_account(struct engine_op *op)
{
    static const struct kube_policy_object_kind kind = {GROUP, "v1", "TokenRequest"};
    struct kube_call *call = kube_call_of_range(op);
    struct account_request *r = request_of(call);
    bool fine = look_at_account(call, r);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (!fine) {
        kube_call_fail(call);
        return;
    }
    r->change = (struct kube_change){
        .call = call,
        .namespace = call->path.namespace,
        .name = call->path.name,
        .acts = KUBE_MATCH_CREATE,
        .posted = r->object,
        .posted_kind = &kind,
        .decide = check,
        .done = on_admitted,
        .dry_run = call->query.dry_run,
    };
    kube_change_admit(&r->change);
}

/* Policies see it, as all defaults. */
static bool set_default(struct account_request *r)
{
    struct json_node *spec;
    const struct json_node *seconds = json_node_path(r->object, "spec.expirationSeconds");
    return json_node_is_set(seconds) ||
           (kube_meta_object(&r->meta, r->object, "spec", &spec) &&
            kube_meta_set_int(&r->meta, spec, "expirationSeconds", DEFAULT_S));
}

void kube_account_request(struct kube_call *call)
{
    struct account_request *r = arena_calloc(&call->arena, 1, sizeof(*r));
    if (!r) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    call->handler.change = &r->change;
    r->meta = kube_call_meta(call, &call->arena);
    if (!kube_body_read_object(call, call->request, "TokenRequest", &r->object) ||
        !kube_body_set_posted(call, r->object, GROUP "/v1", "TokenRequest") || !set_default(r)) {
        kube_call_fail(call);
        return;
    }
    r->range = (struct pb_range_request){0};
    if (kube_call_key(call, &r->range.key))
        kube_call_range(call, &r->range, on_account);
}
