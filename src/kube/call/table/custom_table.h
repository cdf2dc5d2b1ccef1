/* The rows of custom resources: the columns and cells of their definition. */
#ifndef VIGIL_KUBE_CALL_TABLE_CUSTOM_TABLE_H
#define VIGIL_KUBE_CALL_TABLE_CUSTOM_TABLE_H

#include "kube/call/table/printers.h"
#include "kube/custom/definition.h"

/* Writes the columns after that of the name. */
void kube_custom_columns(const struct kube_custom *custom, struct json_writer *w);
void kube_custom_cells(const struct kube_custom *custom, struct kube_cells *cells);

#endif
