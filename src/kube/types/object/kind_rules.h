/*
 * How Kubernetes' registries treat one kind differently from others: a table of flags per kind, and
 * the form of its names. The rules of metadata (meta.h) and the handlers of writes consult it.
 * Read-only, for any thread.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_KIND_RULES_H
#define VIGIL_KUBE_TYPES_OBJECT_KIND_RULES_H

#include "kube/types/kind.h"
#include "kube/types/object/name.h"

enum kube_kind_rule {
    KUBE_RETURNS_DELETED = 1 << 0,    /* DELETE answers with the object, not with a Status */
    KUBE_NEEDS_VERSION = 1 << 1,      /* an update must have a resourceVersion */
    KUBE_CREATES_ON_PUT = 1 << 2,     /* PUT of an object that does not exist creates it */
    KUBE_KEEPS_STATUS = 1 << 3,       /* a create keeps the status that the client sent */
    KUBE_STATUS_ONLY = 1 << 4,        /* a write to /status changes nothing in metadata */
    KUBE_NAME_DNS_LABEL = 1 << 5,     /* names are DNS labels; without a flag: subdomains */
    KUBE_NAME_PATH_SEGMENT = 1 << 6,  /* names are any path segment: "system:node" */
    KUBE_HAS_GRACE = 1 << 7,          /* a delete has a grace period */
    KUBE_COUNTS_ANNOTATIONS = 1 << 8, /* a change of annotations increments generation */
    KUBE_STATUS_NO_LABELS = 1 << 9,   /* a write to /status changes metadata except labels */
    KUBE_STATUS_NO_OWNERS = 1 << 10,  /* a write to /status changes metadata except owners */
    KUBE_NAME_IP = 1 << 11,           /* names are IP addresses */
    KUBE_ORPHANS = 1 << 12,           /* a delete without a policy orphans dependents */
    KUBE_NO_DEPENDENTS = 1 << 13,     /* the policy of a delete has no effect */
    KUBE_SETS_FIELDS = 1 << 18,       /* has fields of kube/types/object/stored_fields.h */
    /* Kinds that have steps of their own in a write (kube/handlers/write/write.c). */
    KUBE_IS_DEFINITION = 1 << 14,          /* CustomResourceDefinition */
    KUBE_IS_CERTIFICATE_REQUEST = 1 << 15, /* CertificateSigningRequest */
    KUBE_RESERVES_ADDRESSES = 1 << 16,     /* Service */
    KUBE_IS_NAMESPACE = 1 << 17,           /* Namespace */
};

/* The flags (enum kube_kind_rule) of a kind. */
unsigned kube_kind_rules(const struct kube_kind *kind);

/* False: `why` has the reasons in Kubernetes' words, separated by "; ". */
bool kube_name_valid(const struct kube_kind *kind, struct slice name, char why[NAME_ERROR_BYTES]);

#endif
