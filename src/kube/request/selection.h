/*
 * The parsed label and field selectors of a list or watch. Requests with the same texts share one
 * selection, so that its result for an object is computed once for all of them, and a thousand
 * watches of one kind of controller use the memory of one.
 *
 * Reference-counted; belongs to one API and its thread.
 */
#ifndef VIGIL_KUBE_REQUEST_SELECTION_H
#define VIGIL_KUBE_REQUEST_SELECTION_H

#include "base/container/hash_map.h"
#include "kube/request/field_selector.h"
#include "kube/request/label_selector.h"

struct kube_selection {
    const struct label_selector *labels; /* NULL: every object */
    const struct field_selector *fields; /* NULL: every object */
    bool selects;                        /* there is one of them */
    uint32_t refs;
    struct kube_selections *selections; /* which contains it */
    struct arena arena;
    uint32_t label_len, text_len;
    /* Both texts with a zero between them, and whether the kind is custom, since that changes their
     * meaning; then the first bytes of the arena. */
    uint8_t bytes[];
};

struct kube_selections {
    struct hash_map known; /* by text */
    uint64_t freed; /* how many were: the address of each may be that of another one by now */
};

void kube_selections_init(struct kube_selections *selections, uint64_t seed);
void kube_selections_fini(struct kube_selections *selections);

/* Errors of both parsers. */
MUST_CHECK
enum status kube_selection_get(struct kube_selections *selections, struct slice label_text,
                               struct slice field_text, const struct kube_kind *kind,
                               struct kube_selection **ret_selection, struct error *error);
struct kube_selection *kube_selection_ref(struct kube_selection *selection);
void kube_selection_unref(struct kube_selection *selection); /* accepts NULL */
DEFINE_CLEANUP(struct kube_selection *, kube_selection_unref)

bool kube_selection_matches(const struct kube_selection *selection,
                            const struct kube_object *object);

/* Whether the field selector, if there is one, requires this value of a field. */
static inline bool kube_selection_requires(const struct kube_selection *selection,
                                           struct slice path, struct slice *ret_value)
{
    return selection->fields && field_selector_requires(selection->fields, path, ret_value);
}

/* False: an object with these bytes does not match, and need not be parsed. */
static inline bool kube_selection_may_match(const struct kube_selection *selection,
                                            struct slice json)
{
    return !selection->fields || field_selector_may_match(selection->fields, json);
}

#endif
