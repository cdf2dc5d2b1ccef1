#include "kube/types/object/stored_fields.h"

#include "kube/types/object/app_armor.h"
#include "kube/types/object/qos.h"

#include <stdio.h>
#include <stdlib.h>

#define TEMPLATE_GENERATION "deprecated.daemonset.template.generation"

static bool text_of(const struct kube_meta *meta, const struct json_node *object, const char *path,
                    struct slice *ret_text)
{
    return json_node_text(json_node_path(object, path), meta->arena, ret_text) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

/* -- Jobs -- */

static bool set_absent(const struct kube_meta *meta, struct json_node *object, const char *key,
                       struct slice text)
{
    return json_node_named(object, key) || kube_meta_set_text(meta, object, key, text);
}

static bool set_pod_labels(const struct kube_meta *meta, struct json_node *spec, struct slice name,
                           struct slice uid)
{
    struct json_node *template, *metadata, *labels;
    return kube_meta_object(meta, spec, "template", &template) &&
           kube_meta_object(meta, template, "metadata", &metadata) &&
           kube_meta_object(meta, metadata, "labels", &labels) &&
           set_absent(meta, labels, "batch.kubernetes.io/controller-uid", uid) &&
           set_absent(meta, labels, "batch.kubernetes.io/job-name", name) &&
           set_absent(meta, labels, "controller-uid", uid) &&
           set_absent(meta, labels, "job-name", name);
}

static bool set_selector(const struct kube_meta *meta, struct json_node *spec, struct slice uid)
{
    struct json_node *selector, *labels;
    return kube_meta_object(meta, spec, "selector", &selector) &&
           kube_meta_object(meta, selector, "matchLabels", &labels) &&
           set_absent(meta, labels, "batch.kubernetes.io/controller-uid", uid);
}

/* A job without labels has those of its pods. */
static bool copy_labels(const struct kube_meta *meta, struct json_node *job)
{
    const struct json_node *labels = json_node_path(job, "spec.template.metadata.labels");
    struct json_node *metadata = json_node_named(job, "metadata"), *copy;
    if (!labels || !metadata || json_node_named(metadata, "labels"))
        return true;
    copy = json_node_copy(meta->arena, labels);
    return (copy && json_node_set(meta->arena, metadata, SLICE_LITERAL("labels"), copy) == ST_OK) ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

static bool create_job(const struct kube_meta *meta, struct json_node *job)
{
    struct json_node *spec;
    struct slice name, uid;
    if (!kube_meta_object(meta, job, "spec", &spec) ||
        !text_of(meta, job, "metadata.name", &name) || !text_of(meta, job, "metadata.uid", &uid))
        return false;
    if (!json_node_is_true(json_node_named(spec, "manualSelector")) &&
        (!set_pod_labels(meta, spec, name, uid) || !set_selector(meta, spec, uid)))
        return false;
    return copy_labels(meta, job);
}

/* -- Daemon sets -- */

/* 0: there is none. */
static int64_t generation_of(const struct json_node *object)
{
    const struct json_node *annotations = json_node_path(object, "metadata.annotations");
    const struct json_node *node = json_node_named(annotations, TEMPLATE_GENERATION);
    char digits[24] = "";
    if (node && node->type == JSON_TYPE_STRING && node->text.len < sizeof(digits))
        slice_copy((uint8_t *)digits, node->text);
    return strtoll(digits, NULL, 10);
}

static bool set_generation(const struct kube_meta *meta, struct json_node *object, int64_t value)
{
    struct json_node *metadata, *annotations;
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    return kube_meta_object(meta, object, "metadata", &metadata) &&
           kube_meta_object(meta, metadata, "annotations", &annotations) &&
           kube_meta_set_text(meta, annotations, TEMPLATE_GENERATION, slice_from_text(digits));
}

/* -- Pods and volumes -- */

static bool set_transition(const struct kube_meta *meta, struct json_node *volume)
{
    struct json_node *status;
    char now[KUBE_TIME_BYTES];
    kube_time_text(meta->now_s, now);
    return kube_meta_object(meta, volume, "status", &status) &&
           kube_meta_set_text(meta, status, "lastPhaseTransitionTime", slice_from_text(now));
}

static bool update_volume(const struct kube_meta *meta, const struct json_node *old,
                          struct json_node *volume)
{
    const struct json_node *before = json_node_path(old, "status.phase");
    const struct json_node *after = json_node_path(volume, "status.phase");
    bool same = before && after ? json_node_equal(before, after) : before == after;
    return same || set_transition(meta, volume);
}

bool kube_stored_fields_decode(const struct kube_meta *meta, struct json_node *object)
{
    return !kube_kind_is(meta->kind, "apps", "daemonsets") ||
           json_node_member(json_node_path(object, "metadata.annotations"),
                            SLICE_LITERAL(TEMPLATE_GENERATION)) ||
           set_generation(meta, object, 0);
}

bool kube_stored_fields_create(const struct kube_meta *meta, struct json_node *object)
{
    if (kube_kind_is(meta->kind, "", "pods")) {
        struct json_node *status;
        return kube_app_armor_create(meta, object) &&
               kube_meta_object(meta, object, "status", &status) &&
               kube_meta_set_text(meta, status, "qosClass",
                                  slice_from_text(kube_qos_class(object)));
    }
    if (kube_kind_is(meta->kind, "batch", "jobs"))
        return create_job(meta, object);
    if (kube_kind_is(meta->kind, "apps", "daemonsets")) {
        int64_t given = generation_of(object);
        return set_generation(meta, object, given < 1 ? 1 : given);
    }
    return !kube_kind_is(meta->kind, "", "persistentvolumes") || set_transition(meta, object);
}

bool kube_stored_fields_update(const struct kube_meta *meta, const struct json_node *old,
                               struct json_node *object)
{
    if (kube_kind_is(meta->kind, "batch", "jobs"))
        return copy_labels(meta, object);
    if (kube_kind_is(meta->kind, "apps", "daemonsets")) {
        /* The template generation counts changes of the template; a client cannot set it. */
        const struct json_node *before = json_node_path(old, "spec.template");
        const struct json_node *after = json_node_path(object, "spec.template");
        bool same = before && after ? json_node_equal(before, after) : before == after;
        int64_t generation = generation_of(old);
        return generation < 0 || set_generation(meta, object, generation + !same);
    }
    return !kube_kind_is(meta->kind, "", "persistentvolumes") || update_volume(meta, old, object);
}
