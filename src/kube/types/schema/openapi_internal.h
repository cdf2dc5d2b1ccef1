/* What the files that write OpenAPI documents share. */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_INTERNAL_H
#define VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_INTERNAL_H

#include "codec/json/writer.h"
#include "kube/types/schema/openapi_form.h"
#include "kube/types/schema/schema.h"

enum { OPENAPI_NAME_BYTES = 256 };

/* "apis/apps/v1", "api/v1" */
const char *openapi_document_of(const struct kube_kind *kind, char text[OPENAPI_NAME_BYTES]);

/* Writes the members that refer to a type. */
void openapi_write_ref(struct json_writer *w, const struct kube_type *type,
                       enum kube_openapi_form form);
/* {"group":"apps","kind":"Deployment","version":"v1"} */
void openapi_write_gvk(struct json_writer *w, struct slice api_version, struct slice kind);

#endif
