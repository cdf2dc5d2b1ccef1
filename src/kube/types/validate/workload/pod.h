/*
 * The rules of pods, in the parts that pods and templates of pods have in common.
 *
 *     pod.c ─► container.c ─► env.c, volume.c
 *           └► affinity.c, security.c
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_POD_H
#define VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_POD_H

#include "kube/types/validate/check.h"

/* The pod of the containers that are checked. */
struct pod_check {
    const struct json_node *spec;
    /* The one that is stored, if only containers have changed; NULL otherwise. */
    const struct json_node *old;
    bool is_pod;         /* otherwise a template, for which some rules do not count yet */
    struct seen volumes; /* names of the volumes that are valid */
    struct seen claims;  /* names of its resource claims */
};

/* pod.c; old NULL: there is none, or what the rules also depend on has changed */
void rule_pod_spec(struct check *c, const struct at *at, const struct json_node *spec,
                   const struct json_node *old, bool is_pod);
/* Labels, annotations and spec. */
void rule_pod_template(struct check *c, const struct at *at, const struct json_node *template,
                       const struct json_node *old);

/* Whether they differ only in values that were filled in: an object that was stored before is not
 * changed by them. */
bool rule_same_but_defaults(const struct json_node *a, const struct json_node *b);

/* container.c */
void rule_containers(struct check *c, const struct at *spec, struct pod_check *pod);
void rule_resources(struct check *c, const struct at *at, const struct json_node *resources,
                    const struct pod_check *pod);

/* env.c */
void rule_env(struct check *c, const struct at *at, const struct json_node *list);
void rule_env_from(struct check *c, const struct at *at, const struct json_node *list);

/* security.c */
void rule_security(struct check *c, const struct at *at, const struct json_node *context,
                   const struct json_node *pod_spec);
void rule_pod_security(struct check *c, const struct at *at, const struct json_node *spec);

/* affinity.c */
void rule_affinity(struct check *c, const struct at *at, const struct json_node *affinity);
void rule_tolerations(struct check *c, const struct at *at, const struct json_node *list);
void rule_topology_spread(struct check *c, const struct at *at, const struct json_node *list);

#endif
