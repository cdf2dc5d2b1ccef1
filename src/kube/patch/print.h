/* JSON as Go prints it in errors: map[name:a ports:[80 443]]. Cut where the room ends. */
#ifndef VIGIL_KUBE_PATCH_PRINT_H
#define VIGIL_KUBE_PATCH_PRINT_H

#include "codec/json/tree.h"

enum { PRINT_BYTES = 192 };

/* Returns text. */
const char *print_go(const struct json_node *node, char text[PRINT_BYTES]);

/* "map[string]interface {}" */
const char *print_go_type(const struct json_node *node);

#endif
