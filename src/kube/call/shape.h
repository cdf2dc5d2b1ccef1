/*
 * The shapes of an answer besides whole objects: rows of a Table, which kubectl prints, or metadata
 * only.
 */
#ifndef VIGIL_KUBE_CALL_SHAPE_H
#define VIGIL_KUBE_CALL_SHAPE_H

#include "kube/call/call.h"

/* What a row of a Table contains besides its cells. */
enum kube_include { KUBE_INCLUDE_METADATA, KUBE_INCLUDE_NONE, KUBE_INCLUDE_OBJECT };

/* The shape of all objects of an answer. Refers only to the kind of the call. */
struct kube_shaping {
    const struct kube_kind *kind;
    enum kube_shape shape : 8;
    enum kube_include include : 8;
    bool v1beta1;
    struct clock *clock; /* for ages, which a watch computes later */
};

/* "", "Metadata", "None", "Object"; anything else is taken for the first. */
enum kube_include kube_include_of(struct slice text);
struct kube_shaping kube_shaping_of(const struct kube_call *call);

/* Whether the requested kind of metadata, of one object or of a list, fits the answer. False:
 * call->status says why. */
MUST_CHECK
bool kube_shape_fits(struct kube_call *call, bool list);

/* `"kind":"PodList","apiVersion":"v1",`; without the brace before it. */
MUST_CHECK
enum status kube_shape_list_head(const struct kube_shaping *s, struct buf *to);
/* The key of the items with its bracket: `"items":[`, or columns and `"rows":[`. */
MUST_CHECK
enum status kube_shape_list_items(const struct kube_shaping *s, struct buf *to);
/* One item; not for KUBE_WHOLE, whose objects are sent from the store. */
MUST_CHECK
enum status kube_shape_item(const struct kube_shaping *s, const struct kube_object *object,
                            int64_t revision, struct buf *to);
/* One object; in a Table also the columns, if wanted. */
MUST_CHECK
enum status kube_shape_single(const struct kube_shaping *s, const struct kube_object *object,
                              int64_t revision, bool columns, struct buf *to);
/* The object of a bookmark: a revision, and an annotation at the end of the initial events. In a
 * Table it is a row, with the columns if wanted. */
MUST_CHECK
enum status kube_shape_bookmark(const struct kube_shaping *s, int64_t revision, bool initial_end,
                                bool columns, struct buf *to);

#endif
