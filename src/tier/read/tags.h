/*
 * Watches that require a value of a kind's indexed field, such as a kubelet's of the pods of its
 * node, are woken only for events with this value before or after (watch/index/tag_index.h). The
 * hub asks for the tags of an event by its key, so the collections with such watches are registered
 * here.
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_TIER_READ_TAGS_H
#define VIGIL_TIER_READ_TAGS_H

#include "base/container/list.h"
#include "kube/request/selection.h"
#include "tier/mirror/mirror.h"
#include "watch/hub.h"

struct tier_tags {
    struct list prefixes; /* struct tier_tagged */
    struct buf scratch;
};

void tier_tags_init(struct tier_tags *tags, struct watch_hub *hub);
void tier_tags_fini(struct tier_tags *tags); /* nothing may be registered */

/* A collection with such watches; counted by these. */
struct tier_tagged;

enum { TIER_TAG_BYTES_MAX = 512 };

/*
 * The tag of a watch with this selection, if it has one; then the collection is registered until
 * tier_tags_leave. NULL: it has none.
 */
struct tier_tagged *tier_tags_join(struct tier_tags *tags, const uint8_t prefix[TIER_PREFIX_BYTES],
                                   enum tier_encoding encoding, const struct kube_kind *kind,
                                   const struct kube_selection *selection,
                                   uint8_t tag[TIER_TAG_BYTES_MAX], struct slice *ret_tag);
void tier_tags_leave(struct tier_tagged *tagged); /* accepts NULL */

#endif
