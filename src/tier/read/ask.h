/*
 * What a request asks of the mirror: a get, list or watch of a resource in one of its encodings,
 * whose options are valid. Everything else is passed on to the kube-apiserver, also what it will
 * refuse, so that errors have its texts.
 */
#ifndef VIGIL_TIER_READ_ASK_H
#define VIGIL_TIER_READ_ASK_H

#include "kube/call/shape.h"
#include "kube/request/selection.h"
#include "kube/types/kind.h"
#include "tier/mirror/name.h"
#include "wire/http/exchange.h"

enum tier_verb { TIER_GET, TIER_LIST, TIER_WATCH };

/* Which of the versions that it may be answered from. */
enum tier_freshness {
    TIER_ANY,       /* whatever is there */
    TIER_NOT_OLDER, /* everything up to a version */
    TIER_EXACT,     /* the state at a version */
    TIER_CURRENT,   /* everything that happened before the request */
    TIER_AFTER,     /* a watch: what follows a version */
};

/* In the arena or in the request; shaping has no clock. */
struct tier_ask {
    enum tier_verb verb;
    enum tier_freshness freshness;
    uint64_t version; /* for TIER_NOT_OLDER, TIER_EXACT and TIER_AFTER */
    enum tier_encoding encoding;
    struct kube_shaping shaping; /* KUBE_TABLE: the objects of TIER_JSON are shown as Tables */
    struct kube_path path;
    struct kube_query query;
    const struct kube_kind
        *kind; /* for field selectors: the built-in kind, or one without fields */
    bool is_builtin, is_cluster_scoped; /* the second only of built-in kinds */
    struct slice namespace;             /* whose keys are read: that of the path, or see narrow */
    struct slice name;                  /* the one object that is requested; empty: several */
    struct slice start;  /* where a continue token continues the list, without its prefix */
    int64_t limit;       /* 0: none */
    bool initial_events; /* a watch that begins with the state */
};

static inline bool tier_ask_is_table(const struct tier_ask *ask)
{
    return ask->shaping.shape == KUBE_TABLE;
}

/* False: it is passed on. */
MUST_CHECK
bool tier_ask_read(struct arena *arena, const struct http_request *request,
                   struct tier_ask *ret_ask);

/* Lists and watches whose field selector names one object (as kubelets watch ConfigMaps) read only
 * that. The selection must live as long as the ask. */
void tier_ask_narrow(struct tier_ask *ask, const struct kube_selection *selection);

/* The keys of the objects, after the prefix of the collection: "namespace/name", or "namespace/"
 * and what follows it. range_end is empty for one key. */
struct tier_range {
    struct slice prefix;         /* "namespace/", or empty: what tokens leave out */
    struct slice key, range_end; /* with the prefix of the collection */
};
/* In the arena. ST_NOMEM. */
MUST_CHECK
enum status tier_ask_range(struct arena *arena, const struct tier_ask *ask,
                           struct slice collection_prefix, struct tier_range *ret_range);

#endif
