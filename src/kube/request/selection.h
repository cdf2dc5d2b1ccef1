/*
 * The selectors of a list or a watch: labels and fields, parsed. Who sends the same words shares
 * them, so that what one selection says of an object holds for all who have it, and a thousand
 * watches of one kind of controller hold it once.
 *
 * Reference-counted, of one face, on its thread.
 */
#ifndef VIGIL_KUBE_REQUEST_SELECTION_H
#define VIGIL_KUBE_REQUEST_SELECTION_H

#include "base/container/hash_map.h"
#include "kube/selector/field.h"
#include "kube/selector/label.h"

struct kube_selection {
    const struct label_selector *labels;
    const struct field_selector *fields;
    bool selects; /* one of them does */
    uint32_t refs;
    struct kube_selections *selections; /* that it is in */
    struct arena arena;
    uint32_t label_len, text_len;
    /* Both texts with a zero between them, whether the kind is a custom one, since that changes
     * what they mean; then the arena's first. */
    uint8_t bytes[];
};

struct kube_selections {
    struct hash_map known; /* by their texts */
    /* One is freed: nobody may know it by its address any more. */
    void (*on_gone)(void *ctx);
    void *ctx;
};

void kube_selections_init(struct kube_selections *selections, uint64_t seed,
                          void (*on_gone)(void *ctx), void *ctx);
void kube_selections_fini(struct kube_selections *selections);

/* Errors as both parsers have them. */
MUST_CHECK
enum status kube_selection_get(struct kube_selections *selections, struct slice label_text,
                               struct slice field_text, const struct kube_kind *kind,
                               struct kube_selection **ret_selection, struct error *error);
struct kube_selection *kube_selection_ref(struct kube_selection *selection);
void kube_selection_unref(struct kube_selection *selection); /* accepts NULL */
DEFINE_CLEANUP(struct kube_selection *, kube_selection_unref)

bool kube_selection_matches(const struct kube_selection *selection,
                            const struct kube_object *object);

#endif
