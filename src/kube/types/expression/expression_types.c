/* The types of `request` and `namespaceObject`, field by field as in Kubernetes. */
#include "kube/types/expression/expression.h"

struct field {
    const char *name;
    const struct cel_type *type;
};

struct fields {
    struct cel_object object;
    const struct field *rows;
    size_t count;
};

static enum status find(const struct cel_object *object, struct slice name, struct arena *arena,
                        const struct cel_type **ret_type)
{
    const struct fields *fields = CONTAINER_OF(object, const struct fields, object);
    (void)arena;
    *ret_type = NULL;
    for (size_t i = 0; i < fields->count; i++)
        if (slice_is(name, fields->rows[i].name))
            *ret_type = fields->rows[i].type;
    return ST_OK;
}

#define FIELDS(id) static const struct fields id##_fields = {{find}, id##_rows, COUNT_OF(id##_rows)}
#define OBJECT(id, type_name)                                                                   \
    {                                                                                           \
        .kind = CEL_TYPE_OBJECT, .name = (type_name), .object = &id##_fields.object, .parts = 1 \
    }

#define STRING &cel_type_STRING

static const struct cel_type map_string_string = {.kind = CEL_TYPE_MAP,
                                                  .name = "map",
                                                  .params = {&cel_type_STRING, &cel_type_STRING},
                                                  .parts = 3};
static const struct cel_type list_string = {
    .kind = CEL_TYPE_LIST, .name = "list", .params = {&cel_type_STRING}, .parts = 2};
static const struct cel_type map_string_list = {
    .kind = CEL_TYPE_MAP, .name = "map", .params = {&cel_type_STRING, &list_string}, .parts = 4};

/* -- request -- */

static const struct field kind_rows[] = {{"group", STRING}, {"version", STRING}, {"kind", STRING}};
FIELDS(kind);
static const struct cel_type kube_type_kind = OBJECT(kind, "kubernetes.GroupVersionKind");

static const struct field resource_rows[] = {
    {"group", STRING}, {"version", STRING}, {"resource", STRING}};
FIELDS(resource);
static const struct cel_type kube_type_resource =
    OBJECT(resource, "kubernetes.GroupVersionResource");

static const struct field user_rows[] = {
    {"username", STRING}, {"uid", STRING}, {"groups", &list_string}, {"extra", &map_string_list}};
FIELDS(user);
static const struct cel_type kube_type_user = OBJECT(user, "kubernetes.UserInfo");

static const struct field request_rows[] = {
    {"kind", &kube_type_kind},
    {"resource", &kube_type_resource},
    {"subResource", STRING},
    {"requestKind", &kube_type_kind},
    {"requestResource", &kube_type_resource},
    {"requestSubResource", STRING},
    {"name", STRING},
    {"namespace", STRING},
    {"operation", STRING},
    {"userInfo", &kube_type_user},
    {"dryRun", &cel_type_BOOL},
    {"options", &cel_type_DYN},
};
FIELDS(request);
const struct cel_type kube_type_request = OBJECT(request, "kubernetes.AdmissionRequest");

/* -- namespaceObject -- */

static const struct field metadata_rows[] = {
    {"name", STRING},
    {"generateName", STRING},
    {"namespace", STRING},
    {"labels", &map_string_string},
    {"annotations", &map_string_string},
    {"UID", STRING}, /* sic: no namespace has a field of this name */
    {"creationTimestamp", &cel_type_TIMESTAMP},
    {"deletionGracePeriodSeconds", &cel_type_INT},
    {"deletionTimestamp", &cel_type_TIMESTAMP},
    {"generation", &cel_type_INT},
    {"resourceVersion", STRING},
    {"finalizers", &list_string},
};
FIELDS(metadata);
static const struct cel_type kube_type_metadata = OBJECT(metadata, "kubernetes.NamespaceMetadata");

static const struct field spec_rows[] = {{"finalizers", &list_string}};
FIELDS(spec);
static const struct cel_type kube_type_spec = OBJECT(spec, "kubernetes.NamespaceSpec");

static const struct field condition_rows[] = {
    {"status", STRING},  {"type", STRING},   {"lastTransitionTime", &cel_type_TIMESTAMP},
    {"message", STRING}, {"reason", STRING},
};
FIELDS(condition);
static const struct cel_type kube_type_condition =
    OBJECT(condition, "kubernetes.NamespaceCondition");

static const struct cel_type list_condition = {
    .kind = CEL_TYPE_LIST, .name = "list", .params = {&kube_type_condition}, .parts = 2};
static const struct field status_rows[] = {{"conditions", &list_condition}, {"phase", STRING}};
FIELDS(status);
static const struct cel_type kube_type_status = OBJECT(status, "kubernetes.NamespaceStatus");

static const struct field namespace_rows[] = {
    {"metadata", &kube_type_metadata},
    {"spec", &kube_type_spec},
    {"status", &kube_type_status},
};
FIELDS(namespace);
const struct cel_type kube_type_namespace = OBJECT(namespace, "kubernetes.Namespace");
