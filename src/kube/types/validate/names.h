/*
 * Names and texts besides those of kube/types/object/name.h. Each function returns whether the text
 * is valid; if not, `why` has the reasons in Kubernetes' words, separated by "; ".
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_NAMES_H
#define VIGIL_KUBE_TYPES_VALIDATE_NAMES_H

#include "kube/types/object/name.h"

/* "http", "web-1": of a port */
bool port_name_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* "key.name": of an entry of a config map or secret */
bool config_key_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* Any printable ASCII but "=": of an environment variable */
bool env_name_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* "*.example.com" */
bool wildcard_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* Subdomains whose labels may have underscores: of a DNS search path */
bool underscored_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* What may be in a path of a URL */
bool segment_valid(struct slice name, char why[NAME_ERROR_BYTES]);
bool percent_valid(struct slice text, char why[NAME_ERROR_BYTES]);
bool http_header_valid(struct slice name, char why[NAME_ERROR_BYTES]);
/* An address in a field that allows leading zeros. */
bool ip_valid(struct slice text, char why[NAME_ERROR_BYTES]);
bool cidr_valid(struct slice text, char why[NAME_ERROR_BYTES]);

#endif
