/*
 * URLs as Go's net/url reads and writes them. The parts of a URL are in the arena or in the text it
 * was read from. A decoded part may have bytes that are not valid UTF-8.
 */
#ifndef VIGIL_CEL_LIBRARY_GO_URL_H
#define VIGIL_CEL_LIBRARY_GO_URL_H

#include "cel/value/value.h"

struct go_url {
    struct slice scheme; /* in lower case */
    struct slice opaque; /* what follows a scheme without a slash */
    struct slice user, password;
    struct slice host; /* with the port */
    struct slice path; /* decoded */
    struct slice raw_path;
    struct slice query;
    struct slice fragment, raw_fragment;
    bool has_user, has_password;
    bool has_bare_query; /* ends with the only question mark */
    bool has_no_host;    /* a path follows the scheme */
};

/* What url.Parse reads; as_request: what url.ParseRequestURI does, which ignores fragments. False,
 * with its error. */
MUST_CHECK
bool go_url_read(struct cel_work *work, struct slice text, bool as_request, struct go_url *ret_url,
                 struct cel_value *ret_error);

/* The URL as a text, and its parts; errors only without memory. */
struct cel_value go_url_write(struct cel_work *work, const struct go_url *url);
struct cel_value go_url_escaped_path(struct cel_work *work, const struct go_url *url);
struct slice go_url_hostname(const struct go_url *url);
struct slice go_url_port(const struct go_url *url);

/* A key or value of a query. False: an escape is not valid, or there is no memory. */
MUST_CHECK
bool go_url_unescape_query(struct cel_work *work, struct slice text, struct slice *ret_text);

#endif
