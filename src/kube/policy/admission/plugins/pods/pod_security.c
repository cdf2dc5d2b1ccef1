/*
 * PodSecurity: the labels of a namespace say by which of the Pod Security Standards
 * (kube/policy/security/standard.h) its pods are judged. A pod that violates the enforced one is
 * refused; workloads, whose pods would be refused later, and pods that violate the one of the mode
 * "warn" cause a Warning. The labels themselves must be valid.
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "kube/policy/admission/plugins/namespaces.h"
#include "kube/policy/security/review.h"

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

static bool check_namespace(struct kube_admission_write *write)
{
    const struct pod_policy defaults = pod_policy_default();
    const struct json_node *object = write->object;
    struct kube_field_errors errors = {.arena = write->arena}, had = {.arena = write->arena};
    struct pod_policy policy;
    struct slice name;
    if (pod_policy_read(json_node_path(object, "metadata.labels"), &defaults, write->arena, &policy,
                        &errors))
        return true;
    if (write->old &&
        !pod_policy_read(json_node_path(write->old, "metadata.labels"), &defaults, write->arena,
                         &policy, &had) &&
        has_same_errors(&errors, &had))
        return true;
    if (json_node_text(json_node_path(object, "metadata.name"), write->arena, &name) != ST_OK)
        return fail_no_memory(write);
    return kube_fail_field_errors(write->status, &errors, slice_from_text(write->kind->group),
                                  slice_from_text(write->kind->kind), name);
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

static bool enforce(struct kube_admission_write *write, const struct pod_standard *standard,
                    const struct buf *violations)
{
    char text[POD_STANDARD_BYTES];
    return !violations->len || kube_admission_forbid(write, "violates PodSecurity \"%s\": %.*s",
                                                     pod_standard_text(standard, text),
                                                     SLICE_ARGS(buf_slice(violations)));
}

static bool warn(struct kube_admission_write *write, const struct pod_standard *standard,
                 const struct buf *violations)
{
    char text[POD_STANDARD_BYTES];
    struct buf warning = {0};
    enum status status = ST_OK;
    if (violations->len)
        status =
            buf_append_format(&warning, "would violate PodSecurity \"%s\": %.*s",
                              pod_standard_text(standard, text), SLICE_ARGS(buf_slice(violations)));
    if (status == ST_OK && warning.len)
        write->warn(write->warned, buf_slice(&warning));
    buf_fini(&warning);
    return status == ST_OK || fail_no_memory(write);
}

static bool review(struct kube_admission_write *write, const struct pod_standard *standard,
                   const struct json_node *pod,
                   bool (*decide)(struct kube_admission_write *write,
                                  const struct pod_standard *standard,
                                  const struct buf *violations))
{
    struct buf violations = {0};
    enum status status = pod_review(standard, json_node_named(pod, "metadata"),
                                    json_node_named(pod, "spec"), write->arena, true, &violations);
    bool fine = status == ST_OK ? decide(write, standard, &violations) : fail_no_memory(write);
    buf_fini(&violations);
    return fine;
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

static bool check(struct kube_admission_write *write)
{
    const struct pod_policy defaults = pod_policy_default();
    const struct json_node *object = write->object;
    bool is_pod = kube_kind_is(write->kind, "", "pods");
    struct pod_policy policy;
    if (kube_kind_is(write->kind, "", "namespaces"))
        return check_namespace(write);
    pod_policy_read(kube_labels_of_namespace(write->facts), &defaults, write->arena, &policy, NULL);
    if (pod_policy_is_privileged(&policy) ||
        (is_pod && write->old && !changes_images(object, write->old)))
        return true;
    if (is_pod && !review(write, &policy.enforce, object, enforce))
        return false;
    const struct json_node *pod = is_pod ? object : template_of(write);
    return !json_node_is_set(pod) || review(write, &policy.warn, pod, warn);
}

#define ON_BOTH (KUBE_ON_CREATE | KUBE_ON_UPDATE)

const struct kube_admission_plugin kube_pod_security = {
    .name = "PodSecurity",
    .needs = 1u << KUBE_FACT_NAMESPACES,
    .by_labels = true,
    .rules =
        {
            {"", "pods", "", ON_BOTH},
            {"", "pods", "ephemeralcontainers", KUBE_ON_UPDATE},
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
