/* Sources of volumes, of pods and of persistent volumes, and paths in them. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_VOLUME_H
#define VIGIL_KUBE_TYPES_VALIDATE_WORKLOAD_VOLUME_H

#include "kube/types/validate/rules.h"

enum volume_owner { VOLUME_OF_POD, VOLUME_OF_CLUSTER };

/* Exactly one source must be there. */
void rule_volume_source(struct check *c, const struct at *at, const struct json_node *source,
                        enum volume_owner owner);

/* A path without "..". */
void rule_path_stays(struct check *c, const struct at *at, struct slice path);
/* The same, and relative. */
void rule_path_descends(struct check *c, const struct at *at, struct slice path);
/* The same, and not beginning with "..". */
void rule_local_path(struct check *c, const struct at *at, struct slice path);

/* How long a token of a service account may be valid. */
extern const struct rule rule_token_seconds[2];

/* Terms of nodes: affinity.c */
void rule_node_selector(struct check *c, const struct at *at, const struct json_node *selector);

/* The spec of a claim, also in a template: claim.c */
void rule_claim_spec(struct check *c, const struct at *at, const struct json_node *spec);
void rule_access_modes(struct check *c, const struct at *at, const struct json_node *modes);

/* References of the downward API: env.c */
void rule_field_ref(struct check *c, const struct at *at, const struct json_node *ref,
                    const char *paths);
void rule_resource_ref(struct check *c, const struct at *at, const struct json_node *ref,
                       bool of_volume);

#endif
