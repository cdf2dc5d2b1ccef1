#include "kube/handlers/write/delete.h"

#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/custom/definition_rules.h"
#include "kube/handlers/write/admit.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/write.h"
#include "kube/jobs/definitions.h"
#include "kube/jobs/purge.h"
#include "kube/policy/policies/match.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/object/strategy.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>
#include <time.h>

/* The largest period for which a date can be formatted. */
enum { GRACE_MAX_S = INT32_MAX };

/* -- Options -- */

/* All faults of the options are reported. */
static bool check_causes(struct kube_call *call)
{
    return !call->status.cause_count ||
           kube_fail_invalid(&call->status, SLICE_LITERAL("meta.k8s.io"),
                             SLICE_LITERAL("DeleteOptions"), SLICE_EMPTY);
}

static void set_policy(struct kube_call *call, bool given, struct slice text,
                       struct kube_delete_options *options)
{
    static const struct {
        const char *text;
        enum kube_delete_policy policy;
    } policies[] = {
        {"Background", KUBE_BACKGROUND}, {"Foreground", KUBE_FOREGROUND}, {"Orphan", KUBE_ORPHAN}};
    char message[192];
    for (size_t i = 0; given && i < COUNT_OF(policies); i++) {
        if (!slice_is(text, policies[i].text))
            continue;
        options->policy = policies[i].policy;
        given = false;
    }
    if (!given)
        return;
    snprintf(message, sizeof(message),
             "Unsupported value: \"%.*s\": supported values: \"Foreground\", \"Background\", "
             "\"Orphan\", \"nil\"",
             (int)size_min(text.len, 64), (const char *)text.ptr);
    kube_status_cause(&call->status, "FieldValueNotSupported", "propagationPolicy", message);
}

/* orphanDependents, the old form of Orphan and Background. */
static void set_orphan(struct kube_call *call, bool given, bool truth, struct slice policy,
                       struct kube_delete_options *options)
{
    char message[160];
    if (!given)
        return;
    options->policy = truth ? KUBE_ORPHAN : KUBE_BACKGROUND;
    if (!policy.len)
        return;
    snprintf(message, sizeof(message),
             "Invalid value: \"%.*s\": orphanDependents and deletionPropagation cannot be both set",
             (int)size_min(policy.len, 64), (const char *)policy.ptr);
    kube_status_cause(&call->status, "FieldValueInvalid", "propagationPolicy", message);
}

static bool set_dry_run(struct kube_call *call, const struct json_node *list,
                        struct kube_delete_options *options)
{
    const struct json_node *item = json_node_items(list);
    for (; item; item = item->next) {
        if (!json_node_is_text(item, "All")) {
            AUTO(buf_fini) struct buf text = {0};
            char message[192];
            if (json_tree_write(list, &text) != ST_OK)
                return kube_fail_engine(&call->status, ST_NOMEM);
            snprintf(message, sizeof(message), "Unsupported value: %.*s: supported values: \"All\"",
                     (int)size_min(text.len, 128), (const char *)text.ptr);
            kube_status_cause(&call->status, "FieldValueNotSupported", "dryRun", message);
            return true;
        }
        options->dry_run = true;
    }
    return true;
}

static bool read_body(struct kube_call *call, const struct json_node *body,
                      struct kube_delete_options *options)
{
    const struct json_node *kind = json_node_named(body, "kind");
    const struct json_node *grace = json_node_named(body, "gracePeriodSeconds");
    const struct json_node *orphan = json_node_named(body, "orphanDependents");
    struct slice policy;
    struct slice name, version;
    if (json_node_text(kind, &call->arena, &name) != ST_OK ||
        json_node_text(json_node_named(body, "apiVersion"), &call->arena, &version) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (kind && !slice_is(name, "DeleteOptions"))
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "no kind \"%.*s\" is registered for version \"%.*s\" in scheme "
                         "\"pkg/runtime/scheme.go:111\"",
                         SLICE_ARGS(name), SLICE_ARGS(version));
    if (json_node_is_set(grace) && !json_node_int(grace, &options->grace_s))
        return kube_fail(&call->status, KUBE_BAD_REQUEST,
                         "json: cannot unmarshal %s into Go struct field "
                         "DeleteOptions.gracePeriodSeconds of type int64",
                         kube_json_type(grace));
    /* A negative period counts as one second, as in Kubernetes. */
    if (json_node_is_set(grace) && options->grace_s < 0)
        options->grace_s = 1;
    const struct json_node *propagation = json_node_named(body, "propagationPolicy");
    if (json_node_text(propagation, &call->arena, &policy) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    bool given = propagation && propagation->type == JSON_TYPE_STRING;
    options->preconditions = json_node_named(body, "preconditions");
    set_orphan(call, orphan && orphan->type == JSON_TYPE_BOOL, orphan && orphan->truth, policy,
               options);
    set_policy(call, given, policy, options);
    return set_dry_run(call, json_node_named(body, "dryRun"), options) && check_causes(call);
}

bool kube_delete_options_of(struct kube_call *call, const struct json_node *options,
                            struct kube_delete_options *ret_options)
{
    *ret_options = (struct kube_delete_options){.grace_s = call->query.grace_period_s,
                                                .dry_run = call->query.dry_run};
    struct slice policy = call->query.propagation_policy;
    set_orphan(call, call->query.orphan_given, call->query.orphan_dependents, policy, ret_options);
    set_policy(call, policy.len, policy, ret_options);
    if (!check_causes(call) || (options && !read_body(call, options, ret_options)))
        return false;
    if (ret_options->grace_s > GRACE_MAX_S)
        kube_status_cause(&call->status, "FieldValueInvalid", "gracePeriodSeconds",
                          "Invalid value: must be between 0 and 2147483647");
    return check_causes(call);
}

bool kube_delete_options_read(struct kube_call *call, const struct http_request *request,
                              struct kube_delete_options *ret_options)
{
    struct json_node *body;
    if (request->body.len > KUBE_DELETE_OPTIONS_BYTES_MAX)
        return kube_fail(&call->status, KUBE_TOO_LARGE,
                         "Request entity too large: options of a delete have at most %d bytes",
                         KUBE_DELETE_OPTIONS_BYTES_MAX);
    return kube_body_read(call, request, &body) && kube_delete_options_of(call, body, ret_options);
}

static bool put(struct arena *arena, struct json_node *to, const char *name, struct json_node *node)
{
    return json_node_put(arena, to, name, node) == ST_OK;
}

struct json_node *kube_delete_options_tree(struct kube_call *call,
                                           const struct kube_delete_options *options)
{
    static const char *const policies[] = {[KUBE_BACKGROUND] = "Background",
                                           [KUBE_FOREGROUND] = "Foreground",
                                           [KUBE_ORPHAN] = "Orphan"};
    struct arena *arena = &call->arena;
    struct json_node *to = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *dry_run = json_node_new(arena, JSON_TYPE_ARRAY);
    struct json_node *all = json_node_new_text(arena, SLICE_LITERAL("All"));
    bool made =
        to && dry_run && all && json_node_insert(dry_run, NULL, all) == ST_OK &&
        put(arena, to, "kind", json_node_new_text(arena, SLICE_LITERAL("DeleteOptions"))) &&
        put(arena, to, "apiVersion", json_node_new_text(arena, SLICE_LITERAL("meta.k8s.io/v1"))) &&
        (!options->dry_run || put(arena, to, "dryRun", dry_run)) &&
        (options->grace_s < 0 ||
         put(arena, to, "gracePeriodSeconds", json_node_new_int(arena, options->grace_s))) &&
        (!options->preconditions ||
         put(arena, to, "preconditions", json_node_copy(arena, options->preconditions))) &&
        (options->policy == KUBE_POLICY_UNSET ||
         put(arena, to, "propagationPolicy",
             json_node_new_text(arena, slice_from_text(policies[options->policy]))));
    return made ? to : NULL;
}

/* -- Deciding -- */

/* Sets or removes one of the two finalizers of Kubernetes' garbage collector. */
static bool set_finalizer(struct kube_change *change, struct json_node *object, const char *text,
                          bool wanted)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    struct json_node *list = json_node_named(metadata, "finalizers");
    if (kube_meta_has_finalizer(object, text) == wanted)
        return true;
    if (!wanted) {
        struct json_node *item = json_node_first(list);
        while (!json_node_is_text(item, text))
            item = json_node_next(item);
        json_node_remove(list, item);
        return true;
    }
    struct json_node *item = json_node_new_text(&change->scratch, slice_from_text(text));
    if (!kube_meta_array(&change->meta, metadata, "finalizers", &list))
        return false;
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(&change->call->status, ST_NOMEM);
}

/* What becomes of the dependents: the request decides, then finalizers of the object, then its
 * kind. */
static enum kube_delete_policy find_policy(unsigned rules, const struct json_node *object,
                                           const struct kube_delete_options *options)
{
    const struct json_node *item = json_node_items_at(object, "metadata.finalizers");
    if (rules & KUBE_NO_DEPENDENTS)
        return KUBE_BACKGROUND;
    if (options->policy != KUBE_POLICY_UNSET)
        return options->policy;
    for (; item; item = item->next) {
        if (json_node_is_text(item, "orphan"))
            return KUBE_ORPHAN;
        if (json_node_is_text(item, "foregroundDeletion"))
            return KUBE_FOREGROUND;
    }
    return rules & KUBE_ORPHANS ? KUBE_ORPHAN : KUBE_BACKGROUND;
}

static bool may_be_deleted(struct kube_change *change, const struct json_node *stored)
{
    struct kube_admission_write write =
        kube_admit_write(change, KUBE_ADMISSION_DELETE, NULL, stored);
    unsigned no_facts;
    write.plugins = kube_admission_concerns(change->call->api->admission, change->call->kind,
                                            write.subresource, write.operation, &no_facts);
    return kube_admission_run(&write, KUBE_ADMISSION_VALIDATE);
}

/* The time of an object that is marked already can only be shortened. */
static bool shorten(struct kube_change *change, struct json_node *object, int64_t asked_s)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    struct json_node *at = json_node_named(metadata, "deletionTimestamp");
    struct tm tm = {0};
    int64_t grace_s;
    char text[KUBE_TIME_BYTES];
    if (asked_s < 0 ||
        !json_node_int(json_node_named(metadata, "deletionGracePeriodSeconds"), &grace_s) ||
        asked_s >= grace_s || at->text.len >= sizeof(text))
        return true;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(at->text));
    if (!strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        return true;
    kube_time_text(timegm(&tm) - grace_s + asked_s, text);
    return kube_meta_set_text(&change->meta, metadata, "deletionTimestamp",
                              slice_from_text(text)) &&
           kube_meta_set_int(&change->meta, metadata, "deletionGracePeriodSeconds", asked_s);
}

/* Marks the object for deletion after its grace period, unless it is marked already. */
static bool mark(struct kube_change *change, struct json_node *object, int64_t grace_s,
                 int64_t asked_s)
{
    if (kube_meta_is_deleting(object))
        return shorten(change, object, asked_s);
    if (change->call->rules & KUBE_IS_NAMESPACE) {
        /* The first request to delete a namespace marks it; it is removed when it is empty. */
        struct json_node *status;
        char now[KUBE_TIME_BYTES];
        kube_time_text(change->meta.now_s, now);
        return kube_meta_object(&change->meta, object, "status", &status) &&
               kube_meta_set_text(&change->meta, status, "phase", SLICE_LITERAL("Terminating")) &&
               kube_meta_set_text(&change->meta, json_node_named(object, "metadata"),
                                  "deletionTimestamp", slice_from_text(now));
    }
    if (change->call->rules & KUBE_IS_DEFINITION)
        return kube_definition_mark(&change->meta, object);
    return kube_meta_set_deleting(&change->meta, object, grace_s);
}

/* Starts the purge of a namespace or definition that was marked. */
static void start_purge(struct kube_change *change)
{
    if (change->decision == KUBE_DECIDE_DELETE)
        return;
    if (change->call->rules & KUBE_IS_NAMESPACE)
        kube_purge_start(change->call->api, KUBE_PURGE_NAMESPACE, change->name, NULL);
    if (change->call->rules & KUBE_IS_DEFINITION)
        kube_definitions_purge(change->call->api, change->name);
}

enum kube_decision kube_delete_decide(struct kube_change *change,
                                      const struct kube_delete_options *options,
                                      const struct json_node *stored, struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    bool namespaces = call->rules & KUBE_IS_NAMESPACE;
    change->follow = start_purge;
    if (!may_be_deleted(change, stored) ||
        !kube_meta_preconditions(&change->meta, stored, options->preconditions, change->revision))
        return KUBE_DECIDE_FAIL;
    struct json_node *object = json_node_copy(&change->scratch, stored);
    if (!object || !json_node_named(object, "metadata")) {
        kube_fail_engine(&call->status, ST_NOMEM);
        return KUBE_DECIDE_FAIL;
    }
    int64_t grace_s = kube_strategy_grace_s(call->kind, stored, options->grace_s);
    enum kube_delete_policy policy = find_policy(call->rules, object, options);
    if (!set_finalizer(change, object, "orphan", policy == KUBE_ORPHAN) ||
        !set_finalizer(change, object, "foregroundDeletion", policy == KUBE_FOREGROUND))
        return KUBE_DECIDE_FAIL;
    /* A definition or namespace is only marked at first: its objects have to be deleted before it,
     * by a purge. Other objects stay only because of their finalizers or their grace period. */
    bool first = call->rules & KUBE_IS_DEFINITION && !kube_meta_is_deleting(object);
    bool held = first || kube_meta_has_finalizers(object) ||
                (namespaces && (!kube_meta_is_deleting(object) ||
                                json_node_items(json_node_path(object, "spec.finalizers"))));
    if (!held && grace_s == 0) {
        /* The last event of a pod has the grace period 0; other kinds are removed unchanged. */
        struct json_node *metadata = json_node_named(object, "metadata");
        if (!(change->call->rules & KUBE_HAS_GRACE))
            return KUBE_DECIDE_DELETE;
        bool marked =
            kube_meta_is_deleting(object)
                ? kube_meta_set_int(&change->meta, metadata, "deletionGracePeriodSeconds", 0)
                : kube_meta_set_deleting(&change->meta, object, 0);
        if (!marked || !kube_meta_order(&change->meta, object))
            return KUBE_DECIDE_FAIL;
        *ret_object = object;
        return KUBE_DECIDE_DELETE;
    }
    if (!mark(change, object, grace_s, options->grace_s) || !kube_meta_order(&change->meta, object))
        return KUBE_DECIDE_FAIL;
    *ret_object = object;
    return json_node_equal(stored, object) ? KUBE_DECIDE_KEEP : KUBE_DECIDE_PUT;
}

/* -- One object -- */

struct delete
{
    struct kube_change change;
    struct kube_delete_options options;
};

static enum kube_decision decide(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    struct delete *d = CONTAINER_OF(change, struct delete, change);
    if (stored)
        return kube_delete_decide(change, &d->options, stored, ret_object);
    kube_call_not_found(call);
    return KUBE_DECIDE_FAIL;
}

/* {"kind":"Status",…,"status":"Success","details":{"name":…,"uid":…}} */
static void respond_success(struct kube_change *change)
{
    struct kube_call *call = change->call;
    struct kube_object object;
    struct buf text = {0};
    call->status = (struct kube_status){
        .name = change->name,
        .group = slice_from_text(call->kind->group),
        .kind = slice_from_text(call->kind->plural),
    };
    if (kube_object_parse(change->value, &object) == ST_OK)
        call->status.uid = object.uid;
    if (kube_status_write(&call->status, &text) == ST_OK)
        kube_call_respond(call, 200, buf_slice(&text));
    else
        http_abort(call->exchange);
    buf_fini(&text);
}

static void done(struct kube_change *change)
{
    if (change->decision == KUBE_DECIDE_DELETE && !(change->call->rules & KUBE_RETURNS_DELETED))
        respond_success(change);
    else
        kube_change_respond(change, 200);
}

void kube_delete(struct kube_call *call)
{
    struct delete *d = arena_calloc(&call->arena, 1, sizeof(*d));
    if (!d)
        kube_fail_engine(&call->status, ST_NOMEM);
    if (!d || !kube_delete_options_read(call, call->request, &d->options)) {
        kube_call_fail(call);
        return;
    }
    d->change = (struct kube_change){
        .call = call,
        .name = call->path.name,
        .namespace = call->path.namespace,
        .decide = decide,
        .done = done,
        .dry_run = d->options.dry_run,
        .acts = KUBE_MATCH_DELETE,
        .delete_options = kube_delete_options_tree(call, &d->options),
    };
    if (d->change.delete_options)
        kube_change_start(&d->change);
    else
        kube_call_fail_engine(call, ST_NOMEM);
}
