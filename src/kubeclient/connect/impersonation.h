/* The header fields of a request that is made in the name of another user. Owned by the credentials
 * of a client. */
#ifndef VIGIL_KUBECLIENT_CONNECT_IMPERSONATION_H
#define VIGIL_KUBECLIENT_CONNECT_IMPERSONATION_H

#include "kubeclient/connect/kubeconfig.h"
#include "wire/http/field.h"

struct impersonation {
    struct arena arena;
    struct http_field *fields; /* names are in lower case; values are borrowed */
    size_t count;
};

/* The texts are borrowed. ST_INVALID: one of them cannot be sent; ST_NOMEM. */
MUST_CHECK
enum status impersonation_init(struct impersonation *impersonation,
                               const struct kubeconfig_impersonation *as, struct error *error);
void impersonation_fini(struct impersonation *impersonation); /* accepts a zeroed one */

#endif
