/* What a request to a Kubernetes API server is about. */
#ifndef VIGIL_KUBE_TARGET_H
#define VIGIL_KUBE_TARGET_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A collection of objects, one object, or a part of one. NULL means "not given":
 *
 *     {.version = "v1", .resource = "pods"}
 *
 *         all pods
 *
 *     {.version = "v1", .resource = "pods", .name_space = "default"}
 *
 *         those of one namespace
 *
 *     {.group = "apps", .version = "v1", .resource = "deployments",
 *      .name_space = "default", .name = "web", .subresource = "scale"}
 *
 *         the scale of one deployment
 */
typedef struct vigil_kube_target {
    const char *group;       /* "apps"; none for the core group */
    const char *version;     /* "v1" */
    const char *resource;    /* "deployments" */
    const char *name_space;  /* none for resources without namespaces, or for all namespaces */
    const char *name;        /* none for the collection */
    const char *subresource; /* "status", "scale" …; needs a name */
} vigil_kube_target;

#ifdef __cplusplus
}
#endif

#endif
