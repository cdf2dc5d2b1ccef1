/*
 * Discovery: which resources a server has. The answer is kept by the client until it is discovered
 * again, for instance because a name is not found in it.
 *
 *     vigil_kube_call *call = vigil_kube_discover(kube);
 *     if (vigil_kube_call_run(call) == VIGIL_OK &&
 *         vigil_kube_find_resource(kube, "deploy", &deployments) == VIGIL_OK)
 *         …
 */
#ifndef VIGIL_KUBE_DISCOVERY_H
#define VIGIL_KUBE_DISCOVERY_H

#include <vigil/kube/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a server says about a resource. Texts are cut if they do not fit. */
typedef struct vigil_kube_resource {
    char group[256]; /* "apps"; "" for the core group */
    char version[64];
    char resource[128];    /* "deployments" */
    char singular[128];    /* "deployment" */
    char kind[128];        /* "Deployment" */
    char short_names[128]; /* "deploy", separated by commas */
    int namespaced;
    unsigned verbs; /* enum vigil_kube_verb */
} vigil_kube_resource;

/* What a resource can do, as bits. */
enum vigil_kube_verb {
    VIGIL_KUBE_VERB_GET = 1,
    VIGIL_KUBE_VERB_LIST = 2,
    VIGIL_KUBE_VERB_WATCH = 4,
    VIGIL_KUBE_VERB_CREATE = 8,
    VIGIL_KUBE_VERB_UPDATE = 16,
    VIGIL_KUBE_VERB_PATCH = 32,
    VIGIL_KUBE_VERB_DELETE = 64,
    VIGIL_KUBE_VERB_DELETE_COLLECTION = 128
};

/* Reads the resources of the server: with one request where it knows aggregated discovery,
 * otherwise group by group. What is known already is replaced when the call completes; groups whose
 * own server does not answer are missing then. The timeout counts for each request. */
VIGIL_API vigil_kube_call *vigil_kube_discover(vigil_kube *kube);

/*
 * Finds a resource by its name, singular name, short name or kind, in any case; "name.group" and
 * "name.version.group" choose among several: "deploy", "Deployment", "deployments.apps",
 * "deployments.v1.apps". Of several versions it is the one that the server prefers. It looks only
 * at what is known: VIGIL_ERROR_UNAVAILABLE if nothing is, VIGIL_ERROR_SERVER if there is no such
 * resource.
 */
VIGIL_API int vigil_kube_find_resource(vigil_kube *kube, const char *name,
                                       vigil_kube_resource *ret_resource);

/* A target for the collection of a resource. Its texts are those of the resource. */
VIGIL_API vigil_kube_target vigil_kube_resource_target(const vigil_kube_resource *resource,
                                                       const char *name_space);

#ifdef __cplusplus
}
#endif

#endif
