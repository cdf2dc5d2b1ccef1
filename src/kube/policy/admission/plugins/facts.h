/*
 * What the admission of a write needs to know of objects of other kinds: the service account of a
 * pod, the default storage class, the quotas of a namespace. They come from lookups
 * (kube/policy/lookup/lookup.h), one for each kind, which are created when they are first needed.
 *
 *     kube_facts_gather ─► lookups are ready? ─► as new as the store was? ─► hold objects ─► go
 *                            │  ▲                  │  ▲
 *                            └──┘ wait             └──┘ a turn of the loop
 *
 * A client that has created a limit range and has its answer finds it applied to its next pod,
 * whichever threads serve the two: the facts are as new as the store when the write began.
 *
 * What is not held in memory (kube/policy/lookup/stock.h) is read from the store for this write
 * alone: one object by its name, the defaults of a kind, or all of the namespace.
 *
 * The objects are held, not copied: what a write decides from does not change while it is on the
 * worker. Gathered and released on the thread of the API.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_FACTS_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_FACTS_H

#include "io/loop.h"
#include "kube/policy/lookup/read.h"

enum kube_fact {
    KUBE_FACT_LIMIT_RANGES,
    KUBE_FACT_ACCOUNTS,
    KUBE_FACT_PRIORITY_CLASSES,
    KUBE_FACT_STORAGE_CLASSES,
    KUBE_FACT_RUNTIME_CLASSES,
    KUBE_FACT_INGRESS_CLASSES,
    KUBE_FACT_QUOTAS,
    KUBE_FACT_NAMESPACES,
    KUBE_FACTS,
};

/* Objects of a namespace that are gathered for one write. */
enum { KUBE_FACT_ALL_MAX = 100 };

/* How objects of one kind are found and what is kept of them. */
struct kube_fact_row {
    struct kube_lookup_kind kind;
    /* The path at which an object names the one that it uses; NULL: none. */
    const char *named_by;
    const char *unnamed; /* the name if it gives none; NULL: none */
    /* How long the one without a name is waited for, because a controller creates it. */
    int64_t patience_ns;
    /* The default of its kind is the best object for which `is_default` holds; NULL: none is. */
    bool (*is_default)(const void *data);
    bool (*is_better)(const struct kube_lookup_object *a, const struct kube_lookup_object *b);
    bool all;              /* all objects of the namespace are needed */
    bool is_own_namespace; /* the object is the namespace in which is written */
};

/* What is known of one kind. */
struct kube_fact_objects {
    const struct kube_lookup_object *named;    /* NULL: there is none of that name */
    const struct kube_lookup_object *standard; /* the default; NULL: there is none */
    const struct kube_lookup_object **all;
    size_t count;
    bool incomplete; /* there are more than KUBE_FACT_ALL_MAX, or one that cannot be read */
};

struct kube_facts {
    unsigned known; /* 1 << KUBE_FACT_… */
    struct kube_fact_objects of[KUBE_FACTS];
};

struct kube_fact_finder;

struct kube_fact_finder_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way;                       /* counter of the API */
    struct kube_lookup_pool *pool;           /* kube/policy/lookup/stock.h */
    const struct kube_fact_row *const *rows; /* KUBE_FACTS of them; NULL: no plugin needs it */
};

/* One per API, on its thread. Reads nothing yet; the options are copied. */
struct kube_fact_finder *kube_fact_finder_new(const struct kube_fact_finder_options *options);
void kube_fact_finder_stop(struct kube_fact_finder *finder);
void kube_fact_finder_free(struct kube_fact_finder *finder); /* must be stopped; accepts NULL */

/* Embedded by its caller until go. */
struct kube_facts_wait {
    /* Set by the caller. */
    unsigned needs;
    struct slice namespace;
    const struct json_node *object; /* from which names are read, or NULL: */
    struct slice stored;            /* the same as it is stored; may be empty */
    struct arena *arena;
    struct account *account; /* charged with what is read for this write; may be NULL, */
    struct http_exchange *const *client; /* and this, too: see kube/policy/lookup/read.h */
    struct kube_facts *facts;            /* zeroed; filled before go */
    int64_t revision; /* a change that must be known; 0: the last one that the store has now */
    void (*go)(struct kube_facts_wait *wait);
    enum status status; /* in go; ST_TIMEOUT: the lookups do not follow the store */

    /* Private. */
    struct kube_fact_finder *finder;
    struct kube_lookup_wait lookup;
    struct deferred soon;
    struct timer again;
    unsigned tries;
    int64_t until_ns;
    struct kube_lookup_read read;           /* reads what is not held, one kind after the other */
    size_t reads;                           /* which of them */
    struct slice name;                      /* that is looked for in it */
    struct kube_shelf *shelves[KUBE_FACTS]; /* owned: what was read */
    size_t charged;                         /* for them */
};

/* The lookup of one kind, which is created if no write has needed it so far. */
struct kube_lookup *kube_facts_lookup(struct kube_fact_finder *finder, enum kube_fact fact);

/* Calls go, perhaps at once. The facts must be released also if the status is not ST_OK. */
void kube_facts_gather(struct kube_fact_finder *finder, struct kube_facts_wait *wait);
void kube_facts_release(struct kube_facts *facts); /* and zeroes them; accepts NULL */

#endif
