/*
 * Amounts of resources: quantity("1.5Gi").isLessThan(quantity("2G")) and others, with the
 * arithmetic of Kubernetes' resource.Quantity.
 */
#ifndef VIGIL_CEL_LIBRARY_QUANTITY_H
#define VIGIL_CEL_LIBRARY_QUANTITY_H

#include "cel/library/library.h"

extern const struct cel_library cel_quantities;

#endif
