/*
 * The formats of texts that have names: format.dns1123Label().validate("web") and others. Mirrors
 * Kubernetes' library, whose formats are those of names, labels and some of kube-openapi.
 */
#ifndef VIGIL_CEL_LIBRARY_NAMED_FORMAT_H
#define VIGIL_CEL_LIBRARY_NAMED_FORMAT_H

#include "cel/library/library.h"

extern const struct cel_library cel_named_formats;

#endif
