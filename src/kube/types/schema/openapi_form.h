/* The versions of OpenAPI in which documents are written. */
#ifndef VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_FORM_H
#define VIGIL_KUBE_TYPES_SCHEMA_OPENAPI_FORM_H

enum kube_openapi_form { KUBE_OPENAPI_V3, KUBE_OPENAPI_V2 };

#endif
