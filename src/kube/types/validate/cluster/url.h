/* The parts of a URL, as Go's net/url finds them. */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_URL_H
#define VIGIL_KUBE_TYPES_VALIDATE_CLUSTER_URL_H

#include "base/slice.h"

enum { URL_WHY_BYTES = 160 };

/* Borrows the text. The case of the scheme is that of the text. */
struct url {
    struct slice scheme, user, host, path, query, fragment;
    bool has_user;
};

/* False: `why` has the reason in Go's words. */
bool url_read(struct slice text, struct url *ret_url, char why[URL_WHY_BYTES]);

#endif
