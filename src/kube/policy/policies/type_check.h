/*
 * Checks the types of a ValidatingAdmissionPolicy's expressions against the kinds that its rules
 * name, as Kubernetes does once for each generation of a policy: what is found are warnings in its
 * status (status.typeChecking), and changes no decision. Validations and their message expressions
 * are checked; variables only as far as these use them.
 *
 *     rules ─► kinds ─► one after another: types of object, oldObject and params ─► errors
 *                                                                                      │
 *     {"fieldRef": "spec.validations[0].expression", "warning": one error for each kind}
 *
 * The caller zeroes it, sets the first members and calls the functions in their order. One owner.
 */
#ifndef VIGIL_KUBE_POLICY_POLICIES_TYPE_CHECK_H
#define VIGIL_KUBE_POLICY_POLICIES_TYPE_CHECK_H

#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/custom/kinds.h"

enum {
    KUBE_CHECKED_KINDS_OF_RULE_MAX = 10, /* as in Kubernetes */
    KUBE_CHECKED_KINDS_MAX = 100,        /* all rules together */
    /* Groups, versions or resources of one rule; a longer list names no kind. */
    KUBE_CHECKED_NAMES_MAX = 1000,
    /* Each combination of a group, a version and a resource is compared with all kinds, in one turn
     * of the loop; further ones are not. */
    KUBE_CHECKED_COMPARISONS_MAX = 1 << 20,
    /* Further warnings are left out. */
    KUBE_TYPE_WARNINGS_BYTES_MAX = 1 << 20,
};

struct kube_type_check {
    struct arena *arena;            /* memory of the warnings, which is limited */
    const struct json_node *policy; /* the stored object */

    const struct kube_kind *kinds[KUBE_CHECKED_KINDS_MAX]; /* by group, version and kind */
    size_t kind_count;
    const struct kube_kind *param_kind; /* NULL: not known, or none */
    size_t comparisons_left;
    struct buf *warnings; /* for each expression (type_check.c); empty: there is none */
    size_t warning_bytes;
};

/* Finds the kinds. On the thread of the kinds, to which a reference is held until the end. */
void kube_type_check_begin(struct kube_type_check *check, struct kube_kinds *kinds);
/* Checks all expressions against the next kind; i counts up to kind_count. On any thread. False: no
 * memory. */
MUST_CHECK
bool kube_type_check_kind(struct kube_type_check *check, size_t i);
/* Writes the value of status.typeChecking. */
void kube_type_check_write(const struct kube_type_check *check, struct json_writer *writer);
/* Before the arena is reset. Accepts a zeroed one. */
void kube_type_check_fini(struct kube_type_check *check);

#endif
