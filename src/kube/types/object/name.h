/* Names of Kubernetes objects, besides those of codec/kube_name.h. */
#ifndef VIGIL_KUBE_TYPES_OBJECT_NAME_H
#define VIGIL_KUBE_TYPES_OBJECT_NAME_H

#include "base/memory/arena.h"
#include "codec/kube_name.h"

/* An IP address as Go prints it. */
bool ip_name_valid(struct slice name, char why[NAME_ERROR_BYTES]);

/* The name with its ASCII letters in lower case, in the arena; SLICE_EMPTY: out of memory. */
struct slice name_lower(struct arena *arena, struct slice name);

#endif
