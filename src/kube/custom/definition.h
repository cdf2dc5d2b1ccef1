/*
 * A CustomResourceDefinition as it is served: one kind for each of its versions. It is made from
 * the stored object; reference-counted, and read-only except for its revision and what its status
 * says about conversions. Each I/O thread has its own definitions; their schemas are shared by all
 * threads (schema_pool.h) and compiled when an object of the kind is first written, or read in
 * another form than it is stored.
 */
#ifndef VIGIL_KUBE_CUSTOM_DEFINITION_H
#define VIGIL_KUBE_CUSTOM_DEFINITION_H

#include "kube/custom/jsonpath.h"
#include "kube/custom/schema_pool.h"
#include "kube/types/kind.h"

#define KUBE_DEFINITIONS_PREFIX "/registry/apiextensions.k8s.io/customresourcedefinitions/"
#define KUBE_CONVERSION_FAILING "ConversionFailing" /* a condition of our own */
#define KUBE_CLEANUP_FINALIZER "customresourcecleanup.apiextensions.k8s.io"

enum {
    KUBE_VERSIONS_MAX = 32,               /* per definition */
    KUBE_COLUMNS_MAX = 64,                /* per version */
    KUBE_DEFINITION_BYTES_MAX = 32 << 20, /* without its schemas */
    KUBE_SELECTABLE_MAX = 8,              /* as in Kubernetes */
    KUBE_NAMES_MAX = 64,                  /* short names per definition, and categories */
    KUBE_DEFINITIONS_MAX = 2000, /* definitions that are served; further ones are only stored */
    KUBE_KINDS_MAX = 4000,       /* versions of all definitions together that are served */
};

struct kube_definition;
struct kube_webhook_target;

struct kube_custom_column {
    const char *name, *type, *format, *description;
    int64_t priority;
    const struct jsonpath *path; /* NULL: the path is not supported, and the cell stays empty */
};

/* One version. */
struct kube_custom {
    struct kube_kind kind; /* first; its flags have KUBE_CUSTOM */
    struct kube_definition *definition;
    bool served;
    const char *warning; /* deprecation warning for clients of this version; NULL: none */
    struct kube_custom_column *columns;
    size_t column_count;
    /* Paths of the scale subresource; NULL: none. */
    const char *replicas_path, *status_replicas_path, *selector_path;
    struct pool_schema *schema; /* counted reference */
};

struct kube_definition_names {
    const char *plural, *singular, *kind, *list_kind;
    struct kube_names short_names, categories;
};

/* Strategy Webhook: another version of an object is made by a webhook
 * (kube/call/conversion_batch.h). */
struct kube_definition_webhook {
    bool converts; /* it is used: there are several versions */
    bool
        mixed; /* by status.storedVersions, objects are stored in others than the storage version */
    const struct kube_webhook_target *target; /* NULL: its configuration cannot be used */
    const char *review_version;               /* "v1", "v1beta1"; NULL: it knows neither */
    size_t list_bytes;                        /* held by lists: kube/handlers/read/list.c */
};

struct kube_definition {
    unsigned refs;
    struct arena arena;
    struct slice name; /* "widgets.example.com" */
    struct slice rest; /* the spec except the schemas, as JSON */
    const char *group;
    const char *api_version; /* the version in which objects are stored: "example.com/v1" */
    int64_t revision;        /* revision of the stored object */
    int64_t spec_revision;   /* first known revision with this spec */
    bool namespaced;
    bool builtin_group;                 /* its group also has built-in kinds */
    bool established;                   /* its kinds are served */
    bool terminating;                   /* it is being deleted, and nothing may be created */
    bool accepted;                      /* all requested names are accepted */
    bool conversion_failing;            /* its status says so; see definition_rules.h */
    struct kube_definition_names names; /* the accepted names */
    struct kube_custom *versions;       /* the preferred version first */
    size_t version_count;
    const struct kube_custom *storage; /* the version in which objects are stored */
    struct kube_definition_webhook webhook;
};

/* ST_MALFORMED: not a valid definition; ST_LIMIT; ST_NOMEM. */
MUST_CHECK
enum status kube_definition_new(struct schema_pool *pool, struct slice text, int64_t revision,
                                struct kube_definition **ret_definition);
struct kube_definition *kube_definition_ref(struct kube_definition *definition);
void kube_definition_unref(struct kube_definition *definition); /* accepts NULL */
DEFINE_CLEANUP(struct kube_definition *, kube_definition_unref)

/* The version of this name: "example.com/v1". NULL: there is none. */
const struct kube_custom *kube_definition_version(const struct kube_definition *definition,
                                                  struct slice api_version);

/* Whether the specs are the same. */
bool kube_definition_same_spec(const struct kube_definition *a, const struct kube_definition *b);

/* NULL for a built-in kind. */
static inline struct kube_custom *kube_custom_of(const struct kube_kind *kind)
{
    /* It is the first member of a struct kube_custom, which is not const. */
    return kind->flags & KUBE_CUSTOM ? (struct kube_custom *)(uintptr_t)kind : NULL;
}

/*
 * NULL: the schema does not compile. Schemas are checked when a definition is written, so this
 * happens only to definitions written through the etcd API, and if there is no memory.
 */
const struct schema *kube_custom_schema(struct kube_custom *custom);

/*
 * The order of versions in Kubernetes: v2 before v1 before v1beta1, and others after them by name.
 */
bool kube_version_before(const char *a, const char *b);
/* The same in two steps, for sorting many. */
struct kube_version_rank {
    const char *text; /* borrowed */
    int stage;        /* 3: stable, 2: beta, 1: alpha, 0: another form */
    int major, minor; /* minor: the number after "beta" or "alpha" */
};
struct kube_version_rank kube_version_rank(const char *version);
int kube_version_rank_compare(const struct kube_version_rank *a, const struct kube_version_rank *b);

#endif
