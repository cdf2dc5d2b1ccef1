/*
 * Amounts of some resources, for limit ranges and quotas. Only resources that the caller names have
 * a place, so that adding up an object takes time in proportion to its length, however many
 * resources it names. In an arena.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_AMOUNTS_H
#define VIGIL_KUBE_POLICY_ADMISSION_AMOUNTS_AMOUNTS_H

#include "codec/json/tree.h"
#include "kube/types/defaults/quantity.h"

struct kube_amount {
    struct slice name; /* name of the resource; borrowed */
    bool known;        /* otherwise there is none, which is not the same as 0 */
    struct quantity value;
};

/* Ordered by name, each name once. Zeroed: none. */
struct kube_amounts {
    struct kube_amount *items;
    size_t count;
};

/* One place for each name; names may repeat. ST_NOMEM. */
MUST_CHECK
enum status kube_amounts_init(struct kube_amounts *amounts, struct arena *arena,
                              const struct slice *names, size_t count);
/* A copy of the places, without amounts. ST_NOMEM. */
MUST_CHECK
enum status kube_amounts_same(struct kube_amounts *amounts, struct arena *arena,
                              const struct kube_amounts *as);
/* NULL: no place has that name. */
struct kube_amount *kube_amounts_find(const struct kube_amounts *amounts, struct slice name);

/* A sum that does not fit becomes larger than every quantity that does. */
void kube_amount_add(struct kube_amount *to, const struct quantity *value);
void kube_amount_raise(struct kube_amount *to, const struct quantity *value);

/* The value of a node of a resource list: a string or a number. */
struct quantity kube_amount_read(const struct json_node *node);
/* The same for values that Kubernetes shows: the canonical text, in `to` or in the node. */
struct slice kube_amount_text(const struct json_node *node, char to[QUANTITY_BYTES]);

#endif
