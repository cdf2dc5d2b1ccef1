/*
 * What kubectl prints for an object: the columns of each kind and how their cells are computed, as
 * in Kubernetes' printers. Kinds without their own columns have a name and an age.
 */
#ifndef VIGIL_KUBE_CALL_TABLE_TABLE_H
#define VIGIL_KUBE_CALL_TABLE_TABLE_H

#include "base/buf.h"
#include "kube/types/kind.h"

/* [{"name":"Name","type":"string","format":"name","description":"…","priority":0},…] */
MUST_CHECK
enum status kube_table_columns(const struct kube_kind *kind, struct buf *to);
/* ["a","5d"], for the JSON of an object. A malformed object has empty cells. */
MUST_CHECK
enum status kube_table_cells(const struct kube_kind *kind, struct slice json, int64_t now_s,
                             struct buf *to);

#endif
