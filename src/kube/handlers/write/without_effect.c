#include "kube/handlers/write/without_effect.h"

#include "kube/call/call.h"
#include "kube/handlers/write/policies_private.h"
#include "kube/policy/access/rbac/rbac.h"
#include "kube/policy/admission/admission.h"
#include "kube/policy/policies/finder.h"

#include <stdio.h>

/* -- Kinds -- */

/* One that exists already, perhaps written by a kube-apiserver, can still be changed. */
static bool check_api_service(struct kube_call *call, const struct json_node *object,
                              const struct json_node *old, struct slice name)
{
    if (!json_node_is_set(json_node_path(object, "spec.service")))
        return true;
    if (json_node_is_set(json_node_path(old, "spec.service"))) {
        kube_call_warn(call, SLICE_LITERAL("this server forwards no requests to other API servers: "
                                           "this APIService is stored and has no effect"));
        return true;
    }
    kube_status_cause(&call->status, "FieldValueForbidden", "spec.service",
                      "Forbidden: this server forwards no requests to other API servers");
    return kube_fail_invalid(&call->status, slice_from_text(call->kind->group),
                             slice_from_text(call->kind->kind), name);
}

/* A level that restricts something, when it is set: there is no audit log, and the plugin may be
 * disabled. */
static bool check_namespace(struct kube_call *call, const struct json_node *object,
                            const struct json_node *old, struct slice name)
{
    static const char *const keys[] = {"pod-security.kubernetes.io/audit",
                                       "pod-security.kubernetes.io/enforce",
                                       "pod-security.kubernetes.io/warn"};
    const struct json_node *labels = json_node_path(object, "metadata.labels");
    const struct json_node *had = json_node_path(old, "metadata.labels");
    bool is_enabled = kube_admission_reviews_pods(call->api->admission);
    char text[192];
    (void)name;
    for (size_t i = 0; i < (is_enabled ? 1 : COUNT_OF(keys)); i++) {
        const struct json_node *level = json_node_named(labels, keys[i]);
        const struct json_node *before = json_node_named(had, keys[i]);
        if (!level || json_node_is_text(level, "privileged") ||
            (before && json_node_equal(before, level)))
            continue;
        snprintf(text, sizeof(text),
                 is_enabled ? "this server has no audit log: the label %s has no effect"
                            : "the admission plugin PodSecurity is disabled: the label %s has no "
                              "effect",
                 keys[i]);
        kube_call_warn(call, slice_from_text(text));
    }
    return true;
}

typedef bool check_fn(struct kube_call *call, const struct json_node *object,
                      const struct json_node *old, struct slice name);

static bool check_usable(struct kube_call *call, const struct json_node *object,
                         const struct json_node *old, struct slice name);

/* A policy is evaluated and a webhook called, unless the plugin is disabled, as far as this server
 * can. */
static bool check_policy(struct kube_call *call, const struct json_node *object,
                         const struct json_node *old, struct slice name)
{
    static const char *const plugins[KUBE_POLICY_PARTS] = {
        [KUBE_POLICIES] = "ValidatingAdmissionPolicy",
        [KUBE_POLICY_BINDINGS] = "ValidatingAdmissionPolicy",
        [KUBE_MUTATING_POLICIES] = "MutatingAdmissionPolicy",
        [KUBE_MUTATING_BINDINGS] = "MutatingAdmissionPolicy",
        [KUBE_VALIDATING_WEBHOOKS] = "ValidatingAdmissionWebhook",
        [KUBE_MUTATING_WEBHOOKS] = "MutatingAdmissionWebhook",
    };
    enum kube_policy_part part = KUBE_POLICIES;
    if (!kube_policy_part_of(call->kind, &part) ||
        !kube_admission_uses(call->api->admission, part)) {
        char text[128];
        snprintf(text, sizeof(text),
                 "the admission plugin %s is disabled: this object has no effect", plugins[part]);
        kube_call_warn(call, slice_from_text(text));
        return true;
    }
    kube_policies_warn(call, object);
    return check_usable(call, object, old, name);
}

/* The warning about a kind, or the function that decides by the object. */
static const struct row {
    const char *group, *plural; /* plural NULL: the others of the group */
    const char *why;
    check_fn *check;
} rows[] = {
    {"", "namespaces", NULL, check_namespace},
    {"admissionregistration.k8s.io", NULL, NULL, check_policy},
    {"apiregistration.k8s.io", "apiservices", NULL, check_api_service},
    {"flowcontrol.apiserver.k8s.io", NULL, "does not limit requests by priority and fairness",
     NULL},
    {"networking.k8s.io", "servicecidrs", "takes addresses from --kube-service-cluster-ip-range",
     NULL},
};

/* -- Objects from which this server decides -- */

static const struct kube_lookup_kind *lookup_kind_of(const struct kube_kind *kind)
{
    /* Roles and bindings decide permissions, and some other kinds are facts of plugins. */
    if (strcmp(kind->group, "rbac.authorization.k8s.io") == 0)
        return kube_rbac_kind(kind->storage_prefix);
    if (strcmp(kind->group, "admissionregistration.k8s.io") == 0)
        return kube_policy_checks(kind->storage_prefix);
    for (size_t i = 0; i < KUBE_FACTS; i++)
        if (strcmp(kube_admission_facts[i]->kind.prefix, kind->storage_prefix) == 0)
            return &kube_admission_facts[i]->kind;
    return NULL;
}

/* One that could not be read again for decisions would be stored and ignored. One that exists
 * already, because it was imported, can still be changed. */
static bool check_usable(struct kube_call *call, const struct json_node *object,
                         const struct json_node *old, struct slice name)
{
    const struct kube_lookup_kind *kind = lookup_kind_of(call->kind);
    char text[384];
    if (!kind || !kind->read)
        return true;
    struct arena arena;
    arena_init(&arena, NULL, 0, KUBE_CALL_ARENA_BYTES_MAX);
    arena_charge(&arena, call->arena.account);
    bool usable = kind->read(&arena, object) || arena_ran_out(&arena);
    bool was_unusable = !usable && old && !kind->read(&arena, old) && !arena_ran_out(&arena);
    bool ran_out = arena_ran_out(&arena);
    arena_fini(&arena);
    if (ran_out)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (usable)
        return true;
    const char *limits = kind->limits ? kind->limits : "it is not valid";
    if (was_unusable) {
        snprintf(text, sizeof(text), "this %s %s, because this server can use %s", call->kind->kind,
                 kind->denies ? "denies what it concerns" : "has no effect", limits);
        kube_call_warn(call, slice_from_text(text));
        return true;
    }
    snprintf(text, sizeof(text), "Forbidden: this server can use %s", limits);
    kube_status_cause(&call->status, "FieldValueForbidden", kind->limited ? kind->limited : "",
                      text);
    return kube_fail_invalid(&call->status, slice_from_text(call->kind->group),
                             slice_from_text(call->kind->kind), name);
}

static const struct row *find(const struct kube_kind *kind)
{
    for (size_t i = 0; i < COUNT_OF(rows) && !(kind->flags & KUBE_CUSTOM); i++)
        if (strcmp(rows[i].group, kind->group) == 0 &&
            (!rows[i].plural || strcmp(rows[i].plural, kind->plural) == 0))
            return &rows[i];
    return NULL;
}

enum kube_stepped kube_without_effect(struct kube_change *change)
{
    struct kube_call *call = change->call;
    const struct json_node *object = change->object, *old = change->old;
    const struct row *row = find(call->kind);
    char text[192];
    if (!row)
        return check_usable(call, object, old, change->name);
    if (row->check)
        return row->check(call, object, old, change->name);
    snprintf(text, sizeof(text), "this server %s: this %s is stored and has no effect", row->why,
             call->kind->kind);
    kube_call_warn(call, slice_from_text(text));
    return true;
}
