/*
 * The names that Kubernetes accepts. Each function returns whether the name is valid; if not, `why`
 * has the reasons in Kubernetes' words, separated by "; ". No reason contains that.
 */
#ifndef VIGIL_CODEC_KUBE_NAME_H
#define VIGIL_CODEC_KUBE_NAME_H

#include "base/slice.h"

enum { NAME_ERROR_BYTES = 640 };

/* "app", "example.com/app": also called qualified names. */
bool label_key_valid(struct slice key, char why[NAME_ERROR_BYTES]);
bool label_value_valid(struct slice value, char why[NAME_ERROR_BYTES]);
/* RFC 1123 subdomains: the names of most objects. */
bool subdomain_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* DNS labels, without dots and at most 63 bytes: namespaces. */
bool dns_label_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* DNS labels that begin with a letter: services. */
bool dns_1035_valid(struct slice name, char why[NAME_ERROR_BYTES]);

/* Appends a reason to the earlier ones. */
void name_add_reason(char why[NAME_ERROR_BYTES], const char *text);
/* Cuts the first reason off. */
struct slice name_cut_reason(struct slice *why);

#endif
