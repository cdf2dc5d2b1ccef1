/*
 * An event of a custom resource or a twin that is shown in another way than it is stored: both
 * objects converted, and what the change means to a selection. For one watch at a time; nothing of
 * it is shared.
 */
#ifndef VIGIL_KUBE_API_SHOWN_H
#define VIGIL_KUBE_API_SHOWN_H

#include "base/buf.h"
#include "kube/api/sight.h"
#include "kube/resource/kind.h"

struct kube_shown {
    enum kube_change change;   /* never KUBE_CHANGE_UNDECODABLE */
    struct kube_object object; /* the one that is told: of a deletion the one before */
    struct buf before, after;  /* what it lies in, if it had to be converted */
};

/* The event that the cursor just gave. Another status than ST_OK: it cannot be read as objects. */
MUST_CHECK
enum status kube_shown_look(struct kube_shown *shown, const struct kube_kind *kind,
                            const struct kube_selection *selection, struct watch_cursor *cursor,
                            const struct watch_event *event);
void kube_shown_fini(struct kube_shown *shown);

#endif
