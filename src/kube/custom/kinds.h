/*
 * The set of all kinds at a given time: the built-in ones and those of definitions. It is
 * immutable; a change makes a new set, and calls that still use the old one hold a reference.
 * Reference-counted, for one I/O thread.
 */
#ifndef VIGIL_KUBE_CUSTOM_KINDS_H
#define VIGIL_KUBE_CUSTOM_KINDS_H

#include "kube/custom/definition.h"

struct kube_kinds;

/* Takes a reference to each definition. */
struct kube_kinds *kube_kinds_new(struct kube_definition *const *definitions, size_t count);
struct kube_kinds *kube_kinds_ref(struct kube_kinds *kinds);
void kube_kinds_unref(struct kube_kinds *kinds); /* accepts NULL */
/* Asserts that the set is consistent; for tests. */
void kube_kinds_check(struct kube_kinds *kinds);

/*
 * The kinds that are served, by group, version (the preferred one first) and plural; groups with
 * built-in kinds come first. The first call sorts them, which takes a few milliseconds for
 * KUBE_KINDS_MAX. Only on the I/O thread.
 */
const struct kube_kind *const *kube_kinds_rows(struct kube_kinds *kinds, size_t *ret_count);
/* NULL if no such kind is served. */
const struct kube_kind *kube_kinds_find(const struct kube_kinds *kinds, struct slice group,
                                        struct slice version, struct slice plural);

struct kube_definition *const *kube_kinds_definitions(const struct kube_kinds *kinds,
                                                      size_t *ret_count);
/* Finds a definition by "plural.group"; NULL: there is none. */
struct kube_definition *kube_kinds_definition(const struct kube_kinds *kinds, struct slice name);
/* The number of definitions that are not served because of KUBE_KINDS_MAX. */
size_t kube_kinds_omitted(const struct kube_kinds *kinds);

#endif
