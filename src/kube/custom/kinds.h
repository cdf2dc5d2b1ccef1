/*
 * All kinds there are at a moment: the built-in ones and those of definitions. A picture that does
 * not change; a newer one takes its place, and who still uses the old one holds on to it. Counted,
 * of one I/O thread.
 */
#ifndef VIGIL_KUBE_CUSTOM_KINDS_H
#define VIGIL_KUBE_CUSTOM_KINDS_H

#include "kube/custom/definition.h"

struct kube_kinds;

/* The definitions are counted once more. */
struct kube_kinds *kube_kinds_new(struct kube_definition *const *definitions, size_t count);
struct kube_kinds *kube_kinds_ref(struct kube_kinds *kinds);
void kube_kinds_unref(struct kube_kinds *kinds); /* accepts NULL */

/* Those that are served, by group, version and plural; groups with built-in kinds come first. */
const struct kube_kind *const *kube_kinds_rows(const struct kube_kinds *kinds, size_t *ret_count);
/* NULL: there is none that is served. */
const struct kube_kind *kube_kinds_find(const struct kube_kinds *kinds, struct slice group,
                                        struct slice version, struct slice plural);

struct kube_definition *const *kube_kinds_definitions(const struct kube_kinds *kinds,
                                                      size_t *ret_count);
/* By "plural.group"; NULL: there is none. */
struct kube_definition *kube_kinds_definition(const struct kube_kinds *kinds, struct slice name);

#endif
