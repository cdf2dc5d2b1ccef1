/* JSON as Go prints it in error messages: map[name:a ports:[80 443]]. Long texts are truncated. */
#ifndef VIGIL_KUBE_MERGE_PATCH_PRINT_H
#define VIGIL_KUBE_MERGE_PATCH_PRINT_H

#include "codec/json/tree.h"

enum { PRINT_BYTES = 192 };

/* Returns text. */
const char *print_go(const struct json_node *node, char text[PRINT_BYTES]);

/* "map[string]interface {}" */
const char *print_go_type(const struct json_node *node);

#endif
