/*
 * What Kubernetes' registries do differently from kind to kind: a table of exceptions, read where
 * the general way forks.
 */
#ifndef VIGIL_KUBE_OBJECT_STRATEGY_H
#define VIGIL_KUBE_OBJECT_STRATEGY_H

#include "kube/object/meta.h"
#include "kube/object/name.h"

enum kube_strategy_flag {
    KUBE_RETURNS_DELETED = 1 << 0,    /* DELETE answers with the object, not with a Status */
    KUBE_NEEDS_VERSION = 1 << 1,      /* an update must say its resourceVersion */
    KUBE_CREATES_ON_PUT = 1 << 2,     /* PUT of what is not there creates it */
    KUBE_KEEPS_STATUS = 1 << 3,       /* the status of a new object is its creator's */
    KUBE_STATUS_ONLY = 1 << 4,        /* a write to status changes nothing in metadata */
    KUBE_STATUS_NO_LABELS = 1 << 9,   /* … changes all of it but labels */
    KUBE_STATUS_NO_OWNERS = 1 << 10,  /* … but owners */
    KUBE_NAME_DNS_LABEL = 1 << 5,     /* instead of a subdomain */
    KUBE_HAS_GRACE = 1 << 7,          /* a delete gives it time */
    KUBE_COUNTS_ANNOTATIONS = 1 << 8, /* they are part of what generation counts */
    KUBE_NAME_PATH_SEGMENT = 1 << 6,  /* whatever can stand in a path: "system:node" */
    KUBE_NAME_IP = 1 << 11            /* an address */
};

unsigned kube_strategy(const struct kube_kind *kind);

/* False: `why` says why not. */
bool kube_name_valid(const struct kube_kind *kind, struct slice name, char why[NAME_FAULT_BYTES]);

/* What an update cannot take away: the label of a namespace's name. */
MUST_CHECK
bool kube_strategy_update(const struct kube_meta *meta, struct json_node *object);

/* A new object: its status goes, or becomes that of a new one; namespaces get their finalizer. */
MUST_CHECK
bool kube_strategy_create(const struct kube_meta *meta, struct json_node *object);

/* How long a pod stays after a delete: as asked (-1: not said), or as its spec says; 0: any other
 * kind, and pods that no node has. */
int64_t kube_strategy_grace_s(const struct kube_kind *kind, const struct json_node *object,
                              int64_t asked_s);

#endif
