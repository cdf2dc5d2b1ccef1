/* Validation of metadata: first the types, with the errors of Go's decoder, then the values. */
#include "kube/types/object/meta_private.h"

#include "codec/json/field_fault.h"
#include "kube/types/go_text.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/object/name.h"
#include "kube/types/schema/go_value.h"

#include <stdio.h>

enum { SHOWN_BYTES_MAX = 322 }; /* a value in a message */

/* -- Types -- */

/* struct_name: "ObjectMeta.metadata"; field: "labels". */
static bool wrong_type(const struct kube_meta *meta, const struct json_node *node,
                       const char *struct_name, const char *field, const char *go_type)
{
    char why[192];
    snprintf(why, sizeof(why), "json: cannot unmarshal %s into Go struct field %.60s.%s of type %s",
             kube_json_type(node), struct_name, field, go_type);
    return kube_fail(meta->status, KUBE_BAD_REQUEST,
                     "%s in version \"%s\" cannot be handled as a %s: %s", meta->kind->kind,
                     meta->kind->version, meta->kind->kind, why);
}

static const struct field {
    const char *name, *go_type;
    enum json_type type;
    enum json_type items; /* type of the items of an array or object; JSON_TYPE_NULL for others */
    const char *items_go_type;
} fields[] = {
    {"name", "string", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"generateName", "string", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"namespace", "string", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"uid", "types.UID", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"resourceVersion", "string", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"creationTimestamp", "v1.Time", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"deletionTimestamp", "v1.Time", JSON_TYPE_STRING, JSON_TYPE_NULL, NULL},
    {"generation", "int64", JSON_TYPE_NUMBER, JSON_TYPE_NULL, NULL},
    {"deletionGracePeriodSeconds", "int64", JSON_TYPE_NUMBER, JSON_TYPE_NULL, NULL},
    {"labels", "map[string]string", JSON_TYPE_OBJECT, JSON_TYPE_STRING, "string"},
    {"annotations", "map[string]string", JSON_TYPE_OBJECT, JSON_TYPE_STRING, "string"},
    {"finalizers", "[]string", JSON_TYPE_ARRAY, JSON_TYPE_STRING, "string"},
    {"ownerReferences", "[]v1.OwnerReference", JSON_TYPE_ARRAY, JSON_TYPE_OBJECT,
     "v1.OwnerReference"},
    {"managedFields", "[]v1.ManagedFieldsEntry", JSON_TYPE_ARRAY, JSON_TYPE_OBJECT,
     "v1.ManagedFieldsEntry"},
};

static bool check_field(const struct kube_meta *meta, struct json_node *metadata,
                        const struct field *field)
{
    struct json_node *node = json_node_named(metadata, field->name);
    if (!node)
        return true;
    if (node->type != field->type)
        return wrong_type(meta, node, "ObjectMeta.metadata", field->name, field->go_type);
    if (field->items == JSON_TYPE_NULL)
        return true;
    if (field->type == JSON_TYPE_OBJECT) {
        /* In Go's maps of strings, null is the empty string. */
        for (struct json_node *member = json_node_first(node); member;
             member = json_node_next(member)) {
            if (member->type != JSON_TYPE_NULL)
                continue;
            member->type = JSON_TYPE_STRING;
            member->text = SLICE_EMPTY;
            member->escaped = false;
        }
    }
    for (const struct json_node *item = node->first; item; item = item->next) {
        if (item->type != field->items)
            return wrong_type(meta, item, "ObjectMeta.metadata", field->name, field->items_go_type);
    }
    return true;
}

static bool check_metadata(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    if (metadata && metadata->type != JSON_TYPE_OBJECT && metadata->type != JSON_TYPE_NULL)
        return wrong_type(meta, metadata, meta->kind->kind, "metadata", "v1.ObjectMeta");
    if (!kube_meta_object(meta, object, "metadata", &metadata))
        return false;
    struct json_node *next;
    /* Go's decoder leaves a field with null as it was, which is empty in a new object. */
    for (struct json_node *member = json_node_first(metadata); member; member = next) {
        next = json_node_next(member);
        if (member->type == JSON_TYPE_NULL)
            json_node_remove(metadata, member);
    }
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (!check_field(meta, metadata, &fields[i]))
            return false;
    }
    return true;
}

enum status kube_meta_append_unknown(const struct json_node *object, struct buf *to)
{
    const struct json_node *metadata = json_node_named(object, "metadata");
    const struct json_node *member =
        metadata && metadata->type == JSON_TYPE_OBJECT ? metadata->first : NULL;
    for (size_t reported = 0; member && reported < KUBE_META_UNKNOWN_MAX; member = member->next) {
        size_t i = 0;
        while (i < COUNT_OF(fields) && !slice_is(member->key, fields[i].name))
            i++;
        if (i < COUNT_OF(fields) || slice_is(member->key, "selfLink"))
            continue;
        AUTO(buf_fini) struct buf path = {0};
        TRY(buf_append_format(&path, "metadata.%.*s", SLICE_ARGS(member->key)));
        TRY(field_fault_append(to, "unknown field", buf_slice(&path)));
        reported++;
    }
    return ST_OK;
}

/* Whether there is a built-in kind of that name. */
static bool is_registered(struct slice kind, struct slice group, struct slice version)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++) {
        if (slice_is(kind, kinds[i].kind) && slice_is(group, kinds[i].group) &&
            slice_is(version, kinds[i].version))
            return true;
    }
    return false;
}

static bool wrong_kind(const struct kube_meta *meta, struct slice kind, struct slice api_version)
{
    char expected[KUBE_API_VERSION_BYTES];
    const uint8_t *slash = api_version.len ? memchr(api_version.ptr, '/', api_version.len) : NULL;
    size_t at = slash ? (size_t)(slash - api_version.ptr) : 0;
    struct slice group = slice_sub(api_version, 0, at);
    at += slash ? 1 : 0;
    struct slice version = slice_sub(api_version, at, api_version.len - at);
    const char *ours = meta->kind->kind;
    /* Kubernetes names the internal version by the first word of the group: "core" for "", "rbac"
     * for "rbac.authorization.k8s.io". */
    const char *own_group = meta->kind->group[0] ? meta->kind->group : "core";
    struct slice internal = slice_of(own_group, strcspn(own_group, "."));
    if (!is_registered(kind, group, version))
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "%.*s in version \"%.*s\" cannot be handled as a %s: no kind \"%.*s\" is "
                         "registered for version \"%.*s\" in scheme \"pkg/runtime/scheme.go:111\"",
                         SLICE_ARGS(kind), SLICE_ARGS(version), ours, SLICE_ARGS(kind),
                         SLICE_ARGS(api_version));
    if (slice_is(kind, ours))
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "the API version in the data (%.*s) does not match the expected API "
                         "version (%s)",
                         SLICE_ARGS(api_version), kube_kind_api_version(meta->kind, expected));
    return kube_fail(meta->status, KUBE_BAD_REQUEST,
                     "%.*s in version \"%.*s\" cannot be handled as a %s: converting (%.*s.%.*s) "
                     "to (%.*s.%s): unknown conversion",
                     SLICE_ARGS(kind), SLICE_ARGS(version), ours, SLICE_ARGS(version),
                     SLICE_ARGS(kind), SLICE_ARGS(internal), ours);
}

/*
 * For custom resources the request handler reports a wrong kind, with other texts than Go's
 * decoder.
 */
static bool check_custom_kind(const struct kube_meta *meta, const struct json_node *object,
                              struct slice kind, struct slice version, struct slice expected)
{
    struct slice name;
    char message[256];
    if (!slice_equal(version, expected) && meta->patched) {
        if (json_node_text(json_node_path(object, "metadata.name"), meta->arena, &name) != ST_OK)
            return kube_fail_engine(meta->status, ST_NOMEM);
        snprintf(message, sizeof(message), "Invalid value: \"%.*s\": must be %.*s",
                 (int)size_min(version.len, 64), (const char *)version.ptr,
                 (int)size_min(expected.len, 128), (const char *)expected.ptr);
        kube_status_cause(meta->status, "FieldValueInvalid", "apiVersion", message);
        return kube_fail_invalid(meta->status, slice_from_text(meta->kind->group), kind, name);
    }
    if (!slice_equal(version, expected))
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "the API version in the data (%.*s) does not match the expected API "
                         "version (%.*s)",
                         SLICE_ARGS(version), SLICE_ARGS(expected));
    if (slice_is(kind, meta->kind->kind))
        return true;
    if (json_node_text(json_node_path(object, "metadata.name"), meta->arena, &name) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    snprintf(message, sizeof(message), "Invalid value: \"%.*s\": must be %.64s",
             (int)size_min(kind.len, 64), (const char *)kind.ptr, meta->kind->kind);
    kube_status_cause(meta->status, "FieldValueInvalid", "kind", message);
    return kube_fail_invalid(meta->status, slice_from_text(meta->kind->group), kind, name);
}

static bool check_kind(const struct kube_meta *meta, struct json_node *object)
{
    char expected[KUBE_API_VERSION_BYTES];
    struct slice kind, version;
    if (json_node_text(json_node_named(object, "kind"), meta->arena, &kind) != ST_OK ||
        json_node_text(json_node_named(object, "apiVersion"), meta->arena, &version) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    kube_kind_api_version(meta->kind, expected);
    if (meta->kind->flags & KUBE_CUSTOM)
        return check_custom_kind(meta, object, kind, version, slice_from_text(expected));
    /* The path of the request supplies what the object leaves out. */
    if (!kind.len)
        kind = slice_from_text(meta->kind->kind);
    if (!version.len)
        version = slice_from_text(expected);
    if (!slice_is(kind, meta->kind->kind) || !slice_is(version, expected))
        return wrong_kind(meta, kind, version);
    return kube_meta_set_text(meta, object, "kind", kind) &&
           kube_meta_set_text(meta, object, "apiVersion", version);
}

bool kube_meta_check(const struct kube_meta *meta, struct json_node *object)
{
    if (object->type != JSON_TYPE_OBJECT)
        return kube_fail(meta->status, KUBE_BAD_REQUEST, "a %s is an object, not %s",
                         meta->kind->kind, kube_json_type(object));
    return check_kind(meta, object) && check_metadata(meta, object);
}

/* -- Values -- */

/* Adds one cause for each reason in `why`; reasons are separated by "; ". */
static void invalid(const struct kube_meta *meta, const char *field, struct slice value,
                    const char *why)
{
    char message[640];
    AUTO(buf_fini) struct buf shown = {0};
    if (go_quote(slice_sub(value, 0, size_min(value.len, SHOWN_BYTES_MAX)), &shown) != ST_OK)
        shown.len = 0;                                /* the error is reported in any case */
    shown.len = size_min(shown.len, SHOWN_BYTES_MAX); /* escapes are longer */
    while (why) {
        const char *end = strstr(why, "; ");
        int len = end ? (int)(end - why) : (int)strlen(why);
        snprintf(message, sizeof(message), "Invalid value: %.*s: %.*s",
                 SLICE_ARGS(buf_slice(&shown)), len, why);
        kube_status_cause(meta->status, "FieldValueInvalid", field, message);
        why = end ? end + 2 : NULL;
    }
}

static bool validate_name(const struct kube_meta *meta, const struct json_node *metadata)
{
    struct slice name, base;
    char why[NAME_ERROR_BYTES];
    if (json_node_text(json_node_named(metadata, "name"), meta->arena, &name) != ST_OK ||
        json_node_text(json_node_named(metadata, "generateName"), meta->arena, &base) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    /* Generated names have characters after a trailing dash, so the dash does not count. */
    struct slice checked = base;
    if (base.len > 1 && base.ptr[base.len - 1] == '-')
        checked.len--;
    if (base.len && !kube_name_valid(meta->kind, checked, why))
        invalid(meta, "metadata.generateName", base, why);
    if (!name.len)
        kube_status_cause(meta->status, "FieldValueRequired", "metadata.name",
                          "Required value: name or generateName is required");
    else if (!kube_name_valid(meta->kind, name, why))
        invalid(meta, "metadata.name", name, why);
    return true;
}

static bool validate_labels(const struct kube_meta *meta, const struct json_node *labels)
{
    char why[NAME_ERROR_BYTES];
    const struct json_node *label = labels ? labels->first : NULL;
    for (; label; label = label->next) {
        struct slice value;
        if (json_node_text(label, meta->arena, &value) != ST_OK)
            return kube_fail_engine(meta->status, ST_NOMEM);
        if (!label_key_valid(label->key, why))
            invalid(meta, "metadata.labels", label->key, why);
        if (!label_value_valid(value, why))
            invalid(meta, "metadata.labels", value, why);
    }
    return true;
}

/* Annotation keys follow the rules of label keys, but upper case is also allowed in the prefix. */
static bool annotation_key_valid(struct slice key, char why[NAME_ERROR_BYTES])
{
    uint8_t lower[512];
    if (key.len > sizeof(lower)) /* too long in any case */
        return label_key_valid(key, why);
    for (size_t i = 0; i < key.len; i++)
        lower[i] = key.ptr[i] >= 'A' && key.ptr[i] <= 'Z' ? key.ptr[i] | 0x20 : key.ptr[i];
    return label_key_valid(slice_of(lower, key.len), why);
}

static void validate_annotations(const struct kube_meta *meta, const struct json_node *annotations)
{
    char why[NAME_ERROR_BYTES];
    size_t bytes = 0;
    const struct json_node *annotation = annotations ? annotations->first : NULL;
    for (; annotation; annotation = annotation->next) {
        /* As in Kubernetes, the limit is on the sum and not on each annotation. */
        bytes += annotation->key.len + annotation->text.len;
        if (!annotation_key_valid(annotation->key, why))
            invalid(meta, "metadata.annotations", annotation->key, why);
    }
    if (bytes > KUBE_ANNOTATIONS_BYTES_MAX)
        kube_status_cause(meta->status, "FieldValueTooLong", "metadata.annotations",
                          "Too long: may not be more than 262144 bytes");
}

/* Finalizers without a domain must be those of Kubernetes itself. */
static void validate_finalizer(const struct kube_meta *meta, struct slice name, size_t at)
{
    static const char *const standard[] = {"kubernetes", "orphan", "foregroundDeletion"};
    char why[NAME_ERROR_BYTES], field[64];
    bool known = name.len && memchr(name.ptr, '/', name.len);
    for (size_t i = 0; i < COUNT_OF(standard); i++)
        known = known || slice_is(name, standard[i]);
    snprintf(field, sizeof(field), "metadata.finalizers[%zu]", at);
    if (!label_key_valid(name, why))
        invalid(meta, "metadata.finalizers", name, why);
    /* Separate API servers of Kubernetes handle these kinds, and they accept any finalizer. */
    else if (!known && !(meta->kind->flags & KUBE_CUSTOM) &&
             strcmp(meta->kind->group, "apiextensions.k8s.io") != 0 &&
             strcmp(meta->kind->group, "apiregistration.k8s.io") != 0)
        invalid(meta, field, name,
                "name is neither a standard finalizer name nor is it fully qualified");
}

static void validate_finalizers(const struct kube_meta *meta, const struct json_node *object,
                                const struct json_node *old)
{
    char message[320];
    size_t at = 0;
    const struct json_node *list = json_node_path(object, "metadata.finalizers");
    const struct json_node *had = old ? json_node_path(old, "metadata.finalizers") : NULL;
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next) {
        const struct json_node *same = had ? had->first : NULL;
        while (same && !json_node_equal(same, item))
            same = same->next;
        validate_finalizer(meta, item->text, at++);
        if (old && kube_meta_is_deleting(old) && !same) {
            snprintf(message, sizeof(message),
                     "Forbidden: no new finalizers can be added if the object is being deleted, "
                     "found new finalizers []string{\"%.*s\"}",
                     (int)size_min(item->text.len, 128), (const char *)item->text.ptr);
            kube_status_cause(meta->status, "FieldValueForbidden", "metadata.finalizers", message);
        }
    }
}

/* Shows the value as JSON, as Kubernetes does for values that are not strings. */
static void invalid_value(const struct kube_meta *meta, const char *field,
                          const struct json_node *value, const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    char message[640];
    if (json_tree_write(value, &text) != ST_OK)
        buf_reset(&text, SIZE_MAX);
    snprintf(message, sizeof(message), "Invalid value: %.*s: %.200s", (int)size_min(text.len, 400),
             (const char *)text.ptr, why);
    kube_status_cause(meta->status, "FieldValueInvalid", field, message);
}

static struct slice text_of(const struct json_node *owner, const char *key)
{
    const struct json_node *node = json_node_named(owner, key);
    return node && node->type == JSON_TYPE_STRING ? node->text : SLICE_EMPTY;
}

/* Events may not be owners, and an object has at most one controller. */
static void validate_ownership(const struct kube_meta *meta, const struct json_node *owners)
{
    const struct json_node *controller = NULL;
    char why[200];
    for (const struct json_node *owner = owners ? owners->first : NULL; owner;
         owner = owner->next) {
        if (json_node_text_is(owner, "apiVersion", "v1") &&
            json_node_text_is(owner, "kind", "Event"))
            invalid_value(meta, "metadata.ownerReferences", owner,
                          "/v1, Kind=Event is disallowed from being an owner");
        if (!json_node_is_true(json_node_named(owner, "controller")))
            continue;
        if (controller) {
            struct slice kind = text_of(controller, "kind"), name = text_of(controller, "name");
            struct slice kind2 = text_of(owner, "kind"), name2 = text_of(owner, "name");
            snprintf(why, sizeof(why),
                     "Only one reference can have Controller set to true. Found \"true\" in "
                     "references for %.*s/%.*s and %.*s/%.*s",
                     (int)size_min(kind.len, 20), (const char *)kind.ptr,
                     (int)size_min(name.len, 20), (const char *)name.ptr,
                     (int)size_min(kind2.len, 20), (const char *)kind2.ptr,
                     (int)size_min(name2.len, 20), (const char *)name2.ptr);
            invalid_value(meta, "metadata.ownerReferences", owners, why);
            return;
        }
        controller = owner;
    }
}

static void validate_owners(const struct kube_meta *meta, const struct json_node *owners)
{
    static const char *const needed[][2] = {
        {"metadata.ownerReferences.apiVersion", "version must not be empty"},
        {"metadata.ownerReferences.kind", "must not be empty"},
        {"metadata.ownerReferences.name", "must not be empty"},
        {"metadata.ownerReferences.uid", "must not be empty"},
    };
    const struct json_node *owner = owners ? owners->first : NULL;
    for (; owner; owner = owner->next) {
        for (size_t i = 0; i < COUNT_OF(needed); i++) {
            const struct json_node *text = json_node_named(owner, strrchr(needed[i][0], '.') + 1);
            if (!text || text->type != JSON_TYPE_STRING || !text->text.len)
                invalid(meta, needed[i][0], SLICE_LITERAL(""), needed[i][1]);
        }
    }
}

static bool few_items(const struct kube_meta *meta, const struct json_node *list, const char *field)
{
    if (!list || list->count <= KUBE_META_ITEMS_MAX)
        return true;
    char path[64], message[64];
    snprintf(path, sizeof(path), "metadata.%s", field);
    snprintf(message, sizeof(message), "Too many: %u: must have at most %d items", list->count,
             KUBE_META_ITEMS_MAX);
    kube_status_cause(meta->status, "FieldValueTooMany", path, message);
    return false;
}

static void validate_generation(const struct kube_meta *meta, const struct json_node *generation)
{
    int64_t given = 0;
    char message[80];
    if (!generation || !json_node_int(generation, &given) || given >= 0)
        return;
    snprintf(message, sizeof(message), "Invalid value: %lld: must be greater than or equal to 0",
             (long long)given);
    kube_status_cause(meta->status, "FieldValueInvalid", "metadata.generation", message);
}

bool kube_meta_validate(const struct kube_meta *meta, const struct json_node *object,
                        const struct json_node *old)
{
    const struct json_node *metadata = json_node_named(object, "metadata");
    const struct json_node *owners = json_node_named(metadata, "ownerReferences");
    struct slice name;
    meta->status->cause_count = 0;
    if (!old && !validate_name(meta, metadata))
        return kube_fail_engine(meta->status, ST_NOMEM);
    validate_generation(meta, json_node_named(metadata, "generation"));
    if (!validate_labels(meta, json_node_named(metadata, "labels")) ||
        json_node_text(json_node_named(metadata, "name"), meta->arena, &name) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    validate_annotations(meta, json_node_named(metadata, "annotations"));
    if (few_items(meta, json_node_named(metadata, "finalizers"), "finalizers"))
        validate_finalizers(meta, object, old);
    if (few_items(meta, owners, "ownerReferences")) {
        validate_owners(meta, owners);
        validate_ownership(meta, owners);
    }
    if (!meta->status->cause_count || meta->goes_on)
        return true;
    return kube_fail_invalid(meta->status, slice_from_text(meta->kind->group),
                             slice_from_text(meta->kind->kind), name);
}
