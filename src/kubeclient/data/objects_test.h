/* For tests: small objects. */
#ifndef VIGIL_KUBECLIENT_DATA_OBJECTS_TEST_H
#define VIGIL_KUBECLIENT_DATA_OBJECTS_TEST_H

#include "kubeclient/data/object.h"

#include <stdio.h>
#include <stdlib.h>

/* One without a namespace. */
static inline struct vigil_kube_object *test_object(const char *name, int version)
{
    char json[128];
    struct vigil_kube_object *made;
    int n = snprintf(json, sizeof(json),
                     "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"%d\"}}", name, version);
    if (object_new(slice_of(json, (size_t)n), &made) != ST_OK)
        abort();
    return made;
}

/* The number that a name or version consists of. */
static inline int test_number(struct slice digits)
{
    char text[16];
    snprintf(text, sizeof(text), "%.*s", SLICE_ARGS(digits));
    return (int)strtol(text, NULL, 10);
}

#endif
