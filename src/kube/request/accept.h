/*
 * The Accept field, as the generic API server of Kubernetes interprets it. There it is read twice:
 * by the router, which compares types literally, and by the handler, which knows shapes. Errors are
 * sent in the requested format, whatever the shape.
 */
#ifndef VIGIL_KUBE_REQUEST_ACCEPT_H
#define VIGIL_KUBE_REQUEST_ACCEPT_H

#include "base/slice.h"
#include "base/status.h"

#include <stdbool.h>

enum kube_format { KUBE_JSON, KUBE_YAML, KUBE_PROTOBUF };
enum kube_shape { KUBE_WHOLE, KUBE_TABLE, KUBE_PARTIAL };

struct kube_accept {
    enum kube_format format;
    enum kube_shape shape;
    bool list;         /* PartialObjectMetadataList */
    bool v1beta1;      /* version of the shape; else v1 */
    bool discovery_v2; /* g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList */
    bool pretty;
};

/* Sets of 1 << enum kube_format: the formats that are offered of each shape. */
struct kube_offer {
    unsigned whole, table, partial;
    bool discovery_v2;
};

enum { KUBE_ACCEPT_CLAUSES_MAX = 32 }; /* the following ones are ignored */

/* The first clause that the offer satisfies, in Kubernetes' order by weight. False: none (406). */
MUST_CHECK
bool kube_accept_parse(struct slice accept, const struct kube_offer *offer,
                       struct kube_accept *ret_accept);

/* "application/json" */
struct slice kube_format_type(enum kube_format format);

/* The check of the router: a supported type is named literally, or any type is accepted. */
bool kube_accept_routes(struct slice accept);

#endif
