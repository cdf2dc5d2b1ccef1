/*
 * A collection of the mirror as readers see it (mirror.h): what is known about it, and its versions
 * as revisions of the store. Any thread; looking takes a short lock.
 */
#ifndef VIGIL_TIER_MIRROR_COLLECTION_H
#define VIGIL_TIER_MIRROR_COLLECTION_H

#include "base/clock.h"
#include "tier/mirror/name.h"

struct tier_collection;

enum {
    TIER_PREFIX_BYTES = 12, /* every key begins with the collection's number and the generation */
    TIER_REASON_BYTES = 256,
    TIER_EARLY_WATCHES_MAX = 8, /* that are passed on, of a collection */
    TIER_LATE_READS_MAX = 8,    /* the same, at once; then one each */
};
#define TIER_LATE_READ_NS (5 * NS_PER_S)

struct tier_collection *tier_collection_ref(struct tier_collection *collection);
void tier_collection_close(struct tier_collection *collection); /* accepts NULL */
DEFINE_CLEANUP(struct tier_collection *, tier_collection_close)

const struct tier_name *tier_collection_name(const struct tier_collection *collection);

enum tier_phase { TIER_STARTING, TIER_LOADING, TIER_SERVING, TIER_REFUSED };

/* What is known about a collection at one moment. */
struct tier_view {
    enum tier_phase phase;
    /* The state that reads may use, which is there while SERVING, and while another generation is
     * LOADING; 0: nothing yet. */
    uint64_t generation;
    uint8_t prefix[TIER_PREFIX_BYTES];
    int64_t began;   /* revision at which it was complete */
    uint64_t oldest; /* a watch may begin at this version or later */
    /* Readers see everything up to this version; it is what the watch has delivered. A wait may end
     * well although it is lower than the version that was waited for (tier_collection_revision). */
    uint64_t newest;
    /* The versions (void_after, void_until] belong to a history that the kube-apiserver has lost: a
     * watch from one of them gets 410. Equal: there are none. */
    uint64_t void_after, void_until;
    bool has_kinds;          /* items of its JSON lists have kind and apiVersion */
    bool connected;          /* its watch is running */
    bool store_fails;        /* nothing new can be stored, for example because the disk is full */
    bool is_cluster_scoped;  /* its objects have no namespaces; false if there was none yet */
    uint64_t objects, bytes; /* about so many: those of a state that is loaded meanwhile */
    const char *kind, *list_kind,
        *api_version;               /* "Pod", "PodList", "v1"; valid with the reference */
    char reason[TIER_REASON_BYTES]; /* why it is refused, or not connected; "" otherwise */
};

void tier_collection_look(struct tier_collection *collection, struct tier_view *ret_view);

/*
 * From versions to revisions and back, within a generation. They are false if the generation has
 * ended at that revision, has not begun, or the answer is older than what is kept.
 */

/*
 * The revision that has everything up to a version, and nothing newer: a watch from this version
 * begins after it.
 *
 * A version may be newer than everything that was delivered: it is of another resource, or the
 * object with it was deleted at once, which a fence has shown. Then this is the newest revision,
 * and what is delivered later with a version up to that one is not for this watch: an event whose
 * version is not newer than the one that a watch began with must be skipped.
 */
MUST_CHECK
bool tier_collection_revision(struct tier_collection *collection, uint64_t generation,
                              uint64_t version, int64_t *ret_revision);
/* The newest version of which everything is in the store at a revision: that of a list at it, and
 * of a bookmark there. */
MUST_CHECK
bool tier_collection_version(struct tier_collection *collection, uint64_t generation,
                             int64_t revision, uint64_t *ret_version);

/* The version of the change that was made by a revision: that of a tombstone, which has no version
 * of its own. It may be lower than the one above, which a bookmark may have raised. */
MUST_CHECK
bool tier_collection_change(struct tier_collection *collection, uint64_t generation,
                            int64_t revision, uint64_t *ret_version);

/*
 * Whether a watch from a version before the collection's first state may be passed on to the
 * kube-apiserver, which still has that history: its client has listed before there was a
 * collection. A few may for each collection, counted here, so that the clients of a tier that
 * restarts are not all passed on. False after a state was lost: the history before the new one is
 * not to be seen.
 */
MUST_CHECK
bool tier_collection_pass_early(struct tier_collection *collection, uint64_t generation);

/*
 * Whether a list or watch may be passed on because the state that it has waited for is still being
 * read, or no fence has succeeded. A few may, so that clients see why it takes so long, and the
 * others get 429: the server that cannot answer one list in time does not get the same from a
 * thousand clients.
 */
MUST_CHECK
bool tier_collection_pass_late(struct tier_collection *collection, int64_t now_ns);

#endif
