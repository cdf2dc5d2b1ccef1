/*
 * Which names Kubernetes takes, and its words for those it does not. Each returns whether it does;
 * else `why` says why not.
 */
#ifndef VIGIL_KUBE_OBJECT_NAME_H
#define VIGIL_KUBE_OBJECT_NAME_H

#include "base/slice.h"

enum { NAME_ERROR_BYTES = 448 };

/* "app", "example.com/app" */
bool label_key_valid(struct slice key, char why[NAME_ERROR_BYTES]);
bool label_value_valid(struct slice value, char why[NAME_ERROR_BYTES]);
/* RFC 1123: what most objects are called. */
bool subdomain_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* An address of IP, as Go would print it. */
bool ip_name_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* Without dots and 63 bytes at most: namespaces. */
bool dns_label_valid(struct slice name, char why[NAME_ERROR_BYTES]);

#endif
