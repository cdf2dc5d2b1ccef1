/*
 * One admission plugin: what a cluster does to an object besides storing it, under the name that
 * Kubernetes has for it. The chain is in kube/policy/admission/admission.h.
 *
 *     body ─► defaults ─► admit ─► metadata, strategy ─► validation ─► check ─► charge ─► put
 *
 * The functions are pure: they decide from the write and from its facts, on any thread.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PLUGIN_H
#define VIGIL_KUBE_POLICY_ADMISSION_PLUGINS_PLUGIN_H

#include "kube/policy/access/write_right.h"
#include "kube/policy/admission/plugins/facts.h"
#include "kube/types/object/meta.h"

struct kube_companion;
struct kube_node_facts;
struct pod_security_metrics;
struct pod_security_settings;

enum kube_admission_operation {
    KUBE_ADMISSION_CREATE,
    KUBE_ADMISSION_UPDATE,
    KUBE_ADMISSION_DELETE,
};

/* Writes that a plugin concerns. */
struct kube_admission_rule {
    const char *group, *plural; /* a built-in kind, in whatever version; plural NULL: every kind */
    const char *subresource;    /* "": the object itself; NULL: it and all of its subresources */
    unsigned operations;        /* KUBE_ON_… */
};
enum {
    KUBE_ON_CREATE = 1 << KUBE_ADMISSION_CREATE,
    KUBE_ON_UPDATE = 1 << KUBE_ADMISSION_UPDATE,
    KUBE_ON_DELETE = 1 << KUBE_ADMISSION_DELETE,
};
enum { KUBE_ADMISSION_RULES_MAX = 12 };

/* One attempt; everything is borrowed. */
struct kube_admission_write {
    uint32_t plugins;    /* those that concern it: kube_admission_concerns */
    struct arena *arena; /* memory of the attempt */
    const struct kube_kind *kind;
    struct slice subresource; /* empty: the object itself */
    enum kube_admission_operation operation;
    struct slice namespace;
    struct slice name;                 /* from the path; empty for a create */
    const struct kube_user_info *user; /* NULL: nothing has asked for it so far */
    struct random *random;
    bool dry_run;
    struct json_node *object;       /* NULL: it is deleted */
    const struct json_node *wanted; /* what the client wants in an update, of which a status is only
                                       a part; NULL: the object */
    bool patched;                   /* it is the stored object with a patch */
    const struct json_node *old;    /* NULL: it is created */
    const struct kube_facts *facts; /* those that the plugins of this kind need */
    const struct pod_security_settings *pod_security; /* kube/policy/security/settings.h */
    struct pod_security_metrics *pod_metrics; /* kube/policy/security/metrics.h; may be NULL */
    /* Whether the user may do what this write does besides its request; NULL: it may. */
    const struct kube_write_right *right;
    struct kube_node_facts *nodes; /* for NodeRestriction; NULL: it needs nothing */
    /* Written together with the object; the charge that adds the first allocates room for
     * KUBE_ADMISSION_COMPANIONS_MAX in the arena. */
    struct kube_companion *companions;
    size_t companion_count;
    struct kube_status *status;                    /* why it is refused */
    void (*warn)(void *ctx, struct slice warning); /* adds a Warning to the answer */
    void *warned;                                  /* ctx */
};

enum { KUBE_ADMISSION_COMPANIONS_MAX = 16 };

struct kube_admission_plugin {
    const char *name;
    bool is_optional; /* enabled only by its name */
    unsigned needs;   /* 1 << KUBE_FACT_… */
    /* PodSecurity, which labels of the namespace configure: its facts are needed only if there are
     * such labels, and without them most writes do not get to it (kube_admission.pods_are_free). */
    bool follows_labels;
    /* Those with operations; other writes do not get to the plugin. */
    struct kube_admission_rule rules[KUBE_ADMISSION_RULES_MAX];
    /* Excludes kinds that a rule includes. May be NULL. */
    bool (*concerns)(const struct kube_kind *kind);
    /* May change the object. False: write->status says why it is refused. May be NULL. */
    bool (*admit)(struct kube_admission_write *write);
    /* May only refuse. The same result; may be NULL. */
    bool (*check)(struct kube_admission_write *write);
    /* May refuse, and add companions. The same result; may be NULL. */
    bool (*charge)(struct kube_admission_write *write);
};

/* Returns false: the write is forbidden, with the name of the object as Kubernetes gives it. */
bool kube_admission_forbid(const struct kube_admission_write *write, const char *format, ...)
    PRINTF_LIKE(2, 3);

/* For the functions that change metadata (kube/types/object/meta.h). */
struct kube_meta kube_admission_meta(const struct kube_admission_write *write);

#endif
