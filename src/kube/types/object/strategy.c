#include "kube/types/object/strategy.h"

#include "codec/base64.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/object/stored_fields.h"

#include <stdio.h>

/* -- Content of secrets and config maps -- */

static bool put_text(const struct kube_meta *meta, struct json_node *data,
                     const struct json_node *text)
{
    struct slice bytes;
    if (json_node_text(text, meta->arena, &bytes) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    size_t len = base64_encoded_len(bytes.len);
    uint8_t *encoded = arena_alloc(meta->arena, len + 1);
    if (!encoded)
        return kube_fail_engine(meta->status, ST_NOMEM);
    base64_encode(bytes, encoded);
    struct json_node *value = json_node_new_text(meta->arena, slice_of(encoded, len));
    if (value && json_node_set(meta->arena, data, text->key, value) == ST_OK)
        return true;
    return kube_fail_engine(meta->status, ST_NOMEM);
}

/* Null and an empty map count as absent, as in Kubernetes. */
static void drop_empty(struct json_node *object, const char *key)
{
    struct json_node *node = json_node_named(object, key);
    if (node && !node->first && (node->type == JSON_TYPE_NULL || node->type == JSON_TYPE_OBJECT))
        json_node_remove(object, node);
}

static bool normalize_secret(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *data, *texts = json_node_named(object, "stringData");
    if (!texts)
        return true;
    if (texts->type == JSON_TYPE_OBJECT && texts->first) {
        if (!kube_meta_object(meta, object, "data", &data))
            return false;
        for (const struct json_node *text = texts->first; text; text = text->next) {
            if (!put_text(meta, data, text))
                return false;
        }
    }
    json_node_remove(object, texts);
    return true;
}

static bool normalize_content(const struct kube_meta *meta, struct json_node *object)
{
    bool secret = kube_kind_is(meta->kind, "", "secrets");
    if (!secret && !kube_kind_is(meta->kind, "", "configmaps"))
        return true;
    if (secret && !normalize_secret(meta, object))
        return false;
    drop_empty(object, "data");
    drop_empty(object, "binaryData");
    return true;
}

/* -- Claims -- */

/* The source of the data has two fields, of which one is newer; each is set from the other. */
static bool set_data_source(const struct kube_meta *meta, struct json_node *claim)
{
    struct json_node *spec = json_node_named(claim, "spec");
    const struct json_node *old = json_node_named(spec, "dataSource");
    const struct json_node *reference = json_node_named(spec, "dataSourceRef");
    bool has_old = json_node_is_set(old), has_reference = json_node_is_set(reference);
    if (has_old == has_reference ||
        (has_reference && json_node_has_text(json_node_named(reference, "namespace"))))
        return true;
    return json_node_put(meta->arena, spec, has_old ? "dataSourceRef" : "dataSource",
                         json_node_copy(meta->arena, has_old ? old : reference)) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

/* -- Creating and updating -- */

static bool set_phase(const struct kube_meta *meta, struct json_node *object, const char *phase)
{
    struct json_node *status;
    return kube_meta_object(meta, object, "status", &status) &&
           kube_meta_set_text(meta, status, "phase", slice_from_text(phase));
}

static bool set_name_label(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *labels, *metadata = json_node_named(object, "metadata");
    struct slice name;
    if (json_node_text(json_node_named(metadata, "name"), meta->arena, &name) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    return kube_meta_object(meta, metadata, "labels", &labels) &&
           kube_meta_set_text(meta, labels, "kubernetes.io/metadata.name", name);
}

bool kube_strategy_decode(const struct kube_meta *meta, struct json_node *object)
{
    /* A name that is generated later is set as label with it. */
    bool labelled = kube_kind_is(meta->kind, "", "namespaces") &&
                    json_node_has_text(json_node_path(object, "metadata.name"));
    return normalize_content(meta, object) && (!labelled || set_name_label(meta, object)) &&
           kube_stored_fields_decode(meta, object);
}

bool kube_strategy_update(const struct kube_meta *meta, const struct json_node *old,
                          struct json_node *object)
{
    bool sets_fields = kube_kind_rules(meta->kind) & KUBE_SETS_FIELDS;
    return normalize_content(meta, object) &&
           (!sets_fields || kube_stored_fields_update(meta, old, object)) &&
           (!kube_kind_is(meta->kind, "", "persistentvolumeclaims") ||
            set_data_source(meta, object)) &&
           (!kube_kind_is(meta->kind, "", "namespaces") || set_name_label(meta, object));
}

/* Adds the finalizer that keeps a namespace until its content is deleted, and the name label. */
static bool create_namespace(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *spec, *list, *has;
    struct json_node *item = json_node_new_text(meta->arena, SLICE_LITERAL("kubernetes"));
    if (!kube_meta_object(meta, object, "spec", &spec) || !set_name_label(meta, object))
        return false;
    list = json_node_named(spec, "finalizers");
    if (!list || list->type != JSON_TYPE_ARRAY)
        list = json_node_new(meta->arena, JSON_TYPE_ARRAY);
    if (!list || !item ||
        json_node_set(meta->arena, spec, SLICE_LITERAL("finalizers"), list) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    has = json_node_first(list);
    while (has && !json_node_is_text(has, "kubernetes"))
        has = json_node_next(has);
    if (!has && json_node_insert(list, NULL, item) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    return set_phase(meta, object, "Active");
}

bool kube_strategy_create(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *status = json_node_named(object, "status");
    unsigned rules = kube_kind_rules(meta->kind);
    /* The status of a new object is left to its controller. */
    if (status && meta->kind->flags & KUBE_HAS_STATUS && !(rules & KUBE_KEEPS_STATUS))
        json_node_remove(object, status);
    if (kube_kind_is(meta->kind, "", "namespaces"))
        return create_namespace(meta, object);
    if (kube_kind_is(meta->kind, "", "persistentvolumeclaims") && !set_data_source(meta, object))
        return false;
    if (kube_kind_is(meta->kind, "", "pods") || kube_kind_is(meta->kind, "", "persistentvolumes") ||
        kube_kind_is(meta->kind, "", "persistentvolumeclaims"))
        return set_phase(meta, object, "Pending") &&
               (!(rules & KUBE_SETS_FIELDS) || kube_stored_fields_create(meta, object));
    return normalize_content(meta, object) &&
           (!(rules & KUBE_SETS_FIELDS) || kube_stored_fields_create(meta, object));
}

/* -- Deleting -- */

int64_t kube_strategy_grace_s(const struct kube_kind *kind, const struct json_node *object,
                              int64_t requested_s)
{
    const struct json_node *node = json_node_path(object, "spec.nodeName");
    const struct json_node *phase = json_node_path(object, "status.phase");
    int64_t grace_s = 30;
    if (!kube_kind_is(kind, "", "pods") || !node || node->type != JSON_TYPE_STRING ||
        !node->text.len || json_node_is_text(phase, "Failed") ||
        json_node_is_text(phase, "Succeeded"))
        return 0;
    /* The pod runs on a node, and the client says how long it may take to stop. */
    if (requested_s >= 0)
        return requested_s;
    if (!json_node_int(json_node_path(object, "spec.terminationGracePeriodSeconds"), &grace_s) ||
        grace_s < 0)
        grace_s = 30;
    return grace_s;
}
