/*
 * A CustomResourceDefinition as the face uses it: one kind for each of its versions. Made from the
 * stored object; counted, and read-only but for its revision. Each I/O thread has its own; their
 * schemas are one for all of them (pool.h), compiled when a kind is first written or read in
 * another way than it is stored.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_H

#include "kube/custom/jsonpath.h"
#include "kube/custom/schema/pool.h"
#include "kube/resource/kind.h"

#define KUBE_DEFINITIONS_PREFIX "/registry/apiextensions.k8s.io/customresourcedefinitions/"
#define KUBE_CLEANUP_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

enum {
    KUBE_VERSIONS_MAX = 32,              /* of one definition */
    KUBE_COLUMNS_MAX = 64,               /* of one version */
    KUBE_DEFINITION_BYTES_MAX = 4 << 20, /* without its schemas */
    KUBE_SELECTABLE_MAX = 8,             /* as in Kubernetes */
    KUBE_NAMES_MAX = 64,                 /* short names of one definition, and categories */
    KUBE_DEFINITIONS_MAX = 2000,         /* that are served; more stay objects */
};

struct kube_definition;

struct kube_custom_column {
    const char *name, *type, *format, *description;
    int64_t priority;
    const struct jsonpath *path; /* NULL: it cannot be read, and the cell stays empty */
};

/* One version. */
struct kube_custom {
    struct kube_kind kind; /* first; its flags have KUBE_CUSTOM */
    struct kube_definition *definition;
    bool served;
    const char *warning; /* for clients of a version that is on its way out; NULL: none */
    struct kube_custom_column *columns;
    size_t column_count;
    const char *replicas_path, *status_replicas_path, *selector_path; /* of scale; NULL: none */
    struct pool_schema *schema;                                       /* counted */
};

struct kube_definition_names {
    const char *plural, *singular, *kind, *list_kind;
    struct kube_names short_names, categories;
};

struct kube_definition {
    unsigned refs;
    struct arena arena;
    struct slice name; /* "widgets.example.com" */
    struct slice rest; /* of spec: all but the schemas, as JSON */
    const char *group;
    const char *api_version; /* that objects are stored as: "example.com/v1" */
    int64_t revision;        /* of the stored object */
    int64_t spec_revision;   /* since which spec is as it is, as far as is known */
    bool namespaced;
    bool builtin_group;                 /* there are built-in kinds of its group, too */
    bool established;                   /* its kinds are served */
    bool terminating;                   /* nothing may be created */
    bool accepted;                      /* all names that it wants are its own */
    struct kube_definition_names names; /* that were accepted */
    struct kube_custom *versions;       /* first the one that clients should use */
    size_t version_count;
};

/* ST_MALFORMED: it is none; ST_LIMIT; ST_NOMEM. */
MUST_CHECK
enum status kube_definition_new(struct schema_pool *pool, struct slice text, int64_t revision,
                                struct kube_definition **ret_definition);
struct kube_definition *kube_definition_ref(struct kube_definition *definition);
void kube_definition_unref(struct kube_definition *definition); /* accepts NULL */
DEFINE_CLEANUP(struct kube_definition *, kube_definition_unref)

/* What is said in spec is the same. */
bool kube_definition_same_spec(const struct kube_definition *a, const struct kube_definition *b);

/* NULL: it is built in. */
struct kube_custom *kube_custom_of(const struct kube_kind *kind);

/* NULL: there is none that could be compiled; what is stored was checked, so this is for objects
 * that came another way, and for want of memory. */
const struct schema *kube_custom_schema(struct kube_custom *custom);

/* v2 before v1 before v1beta1, others after them by name, as Kubernetes orders versions. */
bool kube_version_before(const char *a, const char *b);

#endif
