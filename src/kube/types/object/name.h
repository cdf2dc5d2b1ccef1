/*
 * The names that Kubernetes accepts. Each function returns whether the name is valid; if not, `why`
 * has the reasons in Kubernetes' words.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_NAME_H
#define VIGIL_KUBE_TYPES_OBJECT_NAME_H

#include "base/memory/arena.h"

enum { NAME_ERROR_BYTES = 448 };

/* "app", "example.com/app" */
bool label_key_valid(struct slice key, char why[NAME_ERROR_BYTES]);
bool label_value_valid(struct slice value, char why[NAME_ERROR_BYTES]);
/* RFC 1123 subdomains: the names of most objects. */
bool subdomain_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* An IP address as Go prints it. */
bool ip_name_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* DNS labels, without dots and at most 63 bytes: namespaces. */
bool dns_label_valid(struct slice name, char why[NAME_ERROR_BYTES]);

/* The name with its ASCII letters in lower case, in the arena; SLICE_EMPTY: out of memory. */
struct slice name_lower(struct arena *arena, struct slice name);

#endif
