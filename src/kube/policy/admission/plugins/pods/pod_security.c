/*
 * PodSecurity: the labels of a namespace say by which of the Pod Security Standards
 * (kube/policy/security/standard.h) its pods are judged. A pod that violates the enforced one is
 * refused; workloads, whose pods would be refused later, and pods that violate the one of the mode
 * "warn" cause a Warning; those of the mode "audit" are only counted. The labels themselves must be
 * valid. An admission configuration can set the standards of namespaces without labels, and exempt
 * users, namespaces and runtime classes.
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "kube/policy/access/rbac/user.h"
#include "kube/policy/admission/plugins/namespaces.h"
#include "kube/policy/security/metrics.h"
#include "kube/policy/security/review.h"
#include "kube/policy/security/settings.h"

#include <stdio.h>

static bool fail_no_memory(struct kube_admission_write *write)
{
    return kube_fail_engine(write->status, ST_NOMEM);
}

/* -- Namespaces -- */

/* Labels that were stored invalid, with the same errors, do not prevent other changes. */
static bool has_same_errors(const struct kube_field_errors *a, const struct kube_field_errors *b)
{
    const struct kube_field_error *one = a->first, *other = b->first;
    while (one && other && slice_equal(one->field, other->field) &&
           slice_equal(one->message, other->message)) {
        one = one->next;
        other = other->next;
    }
    return !one && !other;
}

/* An exempt namespace whose labels would change something. */
static bool warn_exempt(struct kube_admission_write *write, struct slice name,
                        const struct pod_policy *policy)
{
    AUTO(buf_fini) struct buf warning = {0};
    const struct json_node *labels = json_node_path(write->object, "metadata.labels");
    if (pod_security_warn_exempt(write->pod_security, name, labels, policy, &warning) != ST_OK)
        return fail_no_memory(write);
    if (warning.len)
        write->warn(write->warned, buf_slice(&warning));
    return true;
}

static bool check_namespace(struct kube_admission_write *write)
{
    const struct pod_policy *defaults = &write->pod_security->defaults;
    const struct json_node *object = write->object;
    struct kube_field_errors errors = {.arena = write->arena}, had = {.arena = write->arena};
    struct pod_policy policy, before;
    struct slice name;
    if (json_node_text(json_node_path(object, "metadata.name"), write->arena, &name) != ST_OK)
        return fail_no_memory(write);
    bool fine = pod_policy_read(json_node_path(object, "metadata.labels"), defaults, write->arena,
                                &policy, &errors);
    bool was_fine = !write->old || pod_policy_read(json_node_path(write->old, "metadata.labels"),
                                                   defaults, write->arena, &before, &had);
    if (!fine && (was_fine || !has_same_errors(&errors, &had)))
        return kube_fail_field_errors(write->status, &errors, slice_from_text(write->kind->group),
                                      slice_from_text(write->kind->kind), name);
    if (!pod_names_have(&write->pod_security->namespaces, name) ||
        (write->old && !pod_standard_is_stricter(&policy.enforce, &before.enforce)))
        return true;
    return warn_exempt(write, name, &policy);
}

/* -- Pods and their templates -- */

/* The images in a list of containers; a container of another name is a change, too. */
static bool has_same_images(const struct json_node *is, const struct json_node *was,
                            const char *list)
{
    const struct json_node *now = json_node_items_at(is, list);
    const struct json_node *before = json_node_items_at(was, list);
    for (; now && before; now = now->next, before = before->next) {
        const struct json_node *image = json_node_named(now, "image");
        const struct json_node *image_before = json_node_named(before, "image");
        if (json_node_has_text(image) != json_node_has_text(image_before) ||
            (json_node_has_text(image) && !json_node_equal(image, image_before)))
            return false;
    }
    return !now && !before;
}

/* Nothing else of a pod that these standards consider can be changed: ephemeral containers can only
 * be added, behind those that there are. */
static bool changes_images(const struct json_node *pod, const struct json_node *old)
{
    return !has_same_images(pod, old, "spec.containers") ||
           !has_same_images(pod, old, "spec.initContainers") ||
           !has_same_images(pod, old, "spec.ephemeralContainers");
}

static struct pod_request request_of(const struct kube_admission_write *write)
{
    enum pod_part part = POD_PART_WHOLE;
    if (slice_is(write->subresource, "ephemeralcontainers"))
        part = POD_PART_EPHEMERAL_CONTAINERS;
    else if (slice_is(write->subresource, "resize"))
        part = POD_PART_RESIZE;
    return (struct pod_request){.updates = write->old,
                                .is_controller = !kube_kind_is(write->kind, "", "pods"),
                                .part = part};
}

/* Calls decide with what violates the standard. */
static bool review(struct kube_admission_write *write, enum pod_mode mode,
                   const struct pod_standard *standard, const struct json_node *pod,
                   bool (*decide)(struct kube_admission_write *write,
                                  const struct pod_standard *standard, struct slice violations))
{
    AUTO(buf_fini) struct buf violations = {0};
    const struct pod_request request = request_of(write);
    if (pod_review(standard, json_node_named(pod, "metadata"), json_node_named(pod, "spec"),
                   write->arena, true, &violations) != ST_OK)
        return fail_no_memory(write);
    /* Kubernetes counts pods that comply with a standard only if it is enforced. */
    if (violations.len || mode == POD_MODE_ENFORCE)
        pod_security_count(write->pod_metrics, &request, mode, standard, !violations.len);
    return !violations.len || decide(write, standard, buf_slice(&violations));
}

static bool enforce(struct kube_admission_write *write, const struct pod_standard *standard,
                    struct slice violations)
{
    char text[POD_STANDARD_BYTES];
    return kube_admission_forbid(write, "violates PodSecurity \"%s\": %.*s",
                                 pod_standard_text(standard, text), SLICE_ARGS(violations));
}

static bool warn(struct kube_admission_write *write, const struct pod_standard *standard,
                 struct slice violations)
{
    char text[POD_STANDARD_BYTES];
    AUTO(buf_fini) struct buf warning = {0};
    if (buf_append_format(&warning, "would violate PodSecurity \"%s\": %.*s",
                          pod_standard_text(standard, text), SLICE_ARGS(violations)) != ST_OK)
        return fail_no_memory(write);
    write->warn(write->warned, buf_slice(&warning));
    return true;
}

/* There is no audit log: the violation is only counted. */
static bool audit(struct kube_admission_write *write, const struct pod_standard *standard,
                  struct slice violations)
{
    (void)write, (void)standard, (void)violations;
    return true;
}

static const struct json_node *template_of(const struct kube_admission_write *write)
{
    const struct json_node *object = write->object;
    if (kube_kind_is(write->kind, "", "podtemplates"))
        return json_node_named(object, "template");
    if (kube_kind_is(write->kind, "batch", "cronjobs"))
        return json_node_path(object, "spec.jobTemplate.spec.template");
    return json_node_path(object, "spec.template");
}

static bool is_exempt(const struct kube_admission_write *write)
{
    const struct pod_security_settings *settings = write->pod_security;
    return pod_names_have(&settings->namespaces, write->namespace) ||
           (settings->users.count && write->user &&
            pod_names_have(&settings->users, write->user->name));
}

static bool has_exempt_runtime(const struct kube_admission_write *write,
                               const struct json_node *pod)
{
    struct slice class;
    const struct json_node *node = json_node_path(pod, "spec.runtimeClassName");
    return write->pod_security->runtime_classes.count && node &&
           json_node_text(node, write->arena, &class) == ST_OK &&
           pod_names_have(&write->pod_security->runtime_classes, class);
}

static bool evaluate(struct kube_admission_write *write, const struct pod_policy *policy,
                     const struct json_node *pod, bool enforces)
{
    /* A pod that is refused is counted by the mode "audit", but causes no Warning. */
    return review(write, POD_MODE_AUDIT, &policy->audit, pod, audit) &&
           (!enforces || review(write, POD_MODE_ENFORCE, &policy->enforce, pod, enforce)) &&
           review(write, POD_MODE_WARN, &policy->warn, pod, warn);
}

static bool check_pod(struct kube_admission_write *write)
{
    const struct pod_request request = request_of(write);
    const struct json_node *pod = request.is_controller ? template_of(write) : write->object;
    struct kube_field_errors errors = {.arena = write->arena};
    struct pod_policy policy;
    if (is_exempt(write)) {
        pod_security_count_exempt(write->pod_metrics, &request);
        return true;
    }
    bool readable = pod_policy_read(kube_labels_of_namespace(write->facts),
                                    &write->pod_security->defaults, write->arena, &policy, &errors);
    bool is_privileged = policy.warn.level == POD_LEVEL_PRIVILEGED &&
                         policy.audit.level == POD_LEVEL_PRIVILEGED &&
                         (request.is_controller || policy.enforce.level == POD_LEVEL_PRIVILEGED);
    if (readable && is_privileged) {
        if (!request.is_controller)
            pod_security_count(write->pod_metrics, &request, POD_MODE_ENFORCE, &policy.enforce,
                               true);
        return true;
    }
    if (!json_node_is_set(pod) ||
        (!request.is_controller && write->old && !changes_images(write->object, write->old)))
        return true;
    if (has_exempt_runtime(write, pod)) {
        pod_security_count_exempt(write->pod_metrics, &request);
        return true;
    }
    if (!readable)
        pod_security_count_error(write->pod_metrics, &request);
    return evaluate(write, &policy, pod, !request.is_controller);
}

static bool check(struct kube_admission_write *write)
{
    return kube_kind_is(write->kind, "", "namespaces") ? check_namespace(write) : check_pod(write);
}

#define ON_BOTH (KUBE_ON_CREATE | KUBE_ON_UPDATE)

const struct kube_admission_plugin kube_pod_security = {
    .name = "PodSecurity",
    .needs = 1u << KUBE_FACT_NAMESPACES,
    .follows_labels = true,
    .rules =
        {
            {"", "pods", "", ON_BOTH},
            {"", "pods", "ephemeralcontainers", KUBE_ON_UPDATE},
            {"", "pods", "resize", KUBE_ON_UPDATE},
            {"", "namespaces", "", ON_BOTH},
            {"", "podtemplates", "", ON_BOTH},
            {"", "replicationcontrollers", "", ON_BOTH},
            {"apps", "daemonsets", "", ON_BOTH},
            {"apps", "deployments", "", ON_BOTH},
            {"apps", "replicasets", "", ON_BOTH},
            {"apps", "statefulsets", "", ON_BOTH},
            {"batch", "cronjobs", "", ON_BOTH},
            {"batch", "jobs", "", ON_BOTH},
        },
    .check = check,
};
